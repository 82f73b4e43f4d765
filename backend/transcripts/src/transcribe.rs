//! The job of a transcript: gets the recording, hears it part by part, and writes down what was said.
//!
//! A recording is decoded a window of ten minutes at a time, cut at pauses, and heard part by part. The words of each part are
//! stored as soon as they are there, so that whatever ends a run loses at most the parts that were being asked for; a
//! run has one window, so that long recordings leave room for others between them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use colloquy_accounts::{
    begin_run, partners,
    storage::{self, Sum},
};
use colloquy_audio::{
    media::Window,
    pauses::{self, RATE_HZ, joined},
};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_digitize::{DigitizeError, Input, is_without_room, sound};
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult, is_database_away};
use colloquy_providers::{ProviderErrorKind, SpeechScores, spoken_language};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use serde::{Deserialize, Serialize};

use super::{
    accept,
    failure::Failure,
    fetching,
    hearing::{self, Hearing, Sound},
    request::{DETECTED, Options},
    store::{self, End, OpenRow, Part, StoredRecording},
    text,
};
use crate::Transcripts;

/// How often a transcript is begun: after a process that died in the middle, and after a failure that may pass.
const ATTEMPTS: u32 = 10;
/// How long a transcript waits for room in the sandbox. A child that is killed again and again, for want of memory, looks like that.
const LONGEST_WAIT_MS: i64 = 24 * 3_600 * 1_000;
/// How many parts of a recording are asked for at a time.
const PARTS_AT_ONCE: usize = 4;
/// The longest part, in samples, and the shortest pause that parts are cut out of. Whisper leaves out what follows a pause: of an hour of human
/// recordings of several speakers, one after the other, 9.3 % of the words are wrong without cuts in pauses and 3.6 % with them, of the same one by
/// one 2.5 % (`tests/bench transcribe`); shorter pauses are within sentences, which are understood worse in pieces. In parts of 28 s, a third of the
/// words are left out.
const LONGEST_PART: usize = 12 * RATE_HZ;
const SHORTEST_PAUSE: usize = RATE_HZ * 7 / 10;

/// Works on a transcript until it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcribe {
    /// The transcript's id.
    pub transcript: String,
}

/// What came of a run.
enum Outcome {
    /// There is more to be heard, in another run. Its attempts start anew.
    More,
    /// All of it.
    Text { text: String, audio_seconds: i64 },
}

impl Job for Transcribe {
    type State = Transcripts;

    const KIND: &'static str = "transcripts.transcribe";

    /// It gives up by itself, after [`ATTEMPTS`], and says so in its row: the worker does when its processes die.
    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(120),
    };

    /// The sandbox has a place a core, and models hear as many parts as there are threads.
    const AT_ONCE: usize = 8;

    fn dedup_key(&self) -> Option<String> {
        Some(self.transcript.clone())
    }

    async fn run(self, transcripts: Transcripts, run: Run) -> anyhow::Result<RunResult> {
        match self.attempt(&transcripts, &run).await {
            // An outage says nothing about the recording: it costs no attempt.
            Err(error) if is_outage(&error) => {
                let what = "working on transcripts, which wait for the end of an outage";
                transcripts.store.complain(what, &format!("{error:#}"));
                Ok(RunResult::after_outage())
            }
            result => result,
        }
    }

    async fn give_up(
        self,
        transcripts: Transcripts,
        run: Run,
        _why: GivenUp,
    ) -> anyhow::Result<()> {
        match store::load_open(transcripts.store.db(), &self.transcript).await? {
            Some(row) => end(&transcripts, &run, &row, Err(Failure::Interrupted)).await,
            None => Ok(()),
        }
    }
}

impl Transcribe {
    async fn attempt(&self, transcripts: &Transcripts, run: &Run) -> anyhow::Result<RunResult> {
        let Some(row) = store::load_open(transcripts.store.db(), &self.transcript).await? else {
            return Ok(RunResult::Done);
        };
        let outcome = match run.attempt > ATTEMPTS {
            true => Err(Failure::Interrupted.into()),
            false => transcribe(transcripts, run, &row).await,
        };
        let waited = transcripts.clock.now_ms() - row.begun_at;
        let outcome = match outcome {
            Err(error) if waited > LONGEST_WAIT_MS && is_without_room(&error) => {
                Err(Failure::Interrupted.into())
            }
            Err(error) if is_outage(&error) => return Err(error),
            outcome => outcome,
        };
        let outcome = match run.outcome(outcome, ATTEMPTS)? {
            Ok(Outcome::More) => return Ok(RunResult::Again(Duration::ZERO)),
            Ok(Outcome::Text {
                text,
                audio_seconds,
            }) => Ok((text, audio_seconds)),
            Err(failure) => Err(failure),
        };
        end(transcripts, run, &row, outcome).await?;
        Ok(RunResult::Done)
    }
}

/// Whether a failure is that of an outage: the database is away, files cannot be stored or read, or there is no room in the sandbox
/// or in a queue of this server now.
fn is_outage(error: &anyhow::Error) -> bool {
    is_without_room(error)
        || is_database_away(error)
        || colloquy_blobs::is_away(error)
        || colloquy_providers::is_busy(error)
}

/// Stores how a transcript ended, and gives its recording up unless it may be tried again. Its text was paid for, so it counts beyond the limit of
/// the partner, too.
async fn end(
    transcripts: &Transcripts,
    run: &Run,
    row: &OpenRow,
    outcome: Result<(String, i64), Failure>,
) -> anyhow::Result<()> {
    let (id, now) = (row.id.as_str(), transcripts.clock.now_ms());
    let failure = outcome.as_ref().err();
    let is_kept = failure.is_some_and(Failure::is_retryable);
    let reason = failure.map(Failure::reason);
    let (outcome_ref, reason) = (&outcome, reason.as_deref().unwrap_or_default());
    let tenant = &row.tenant();
    run.insist(transcripts, || async move {
        let transaction = begin_run(transcripts, tenant, run).await?;
        hearing::settle_lost(transcripts, &transaction, id).await?;
        let end = match outcome_ref {
            Ok((text, audio_seconds)) => End::Text {
                text,
                audio_seconds: *audio_seconds,
            },
            Err(_) => End::Error { reason, is_kept },
        };
        let ended = store::end(&transaction, id, end, now).await?;
        transcripts
            .blobs
            .doom(&transaction, ended.recording.as_slice())
            .await?;
        // Last, since others who hold the row of a file wait for that of the sum.
        let partner = tenant.partner().as_str();
        storage::release(&transaction, partner, Sum::Texts, ended.released_bytes).await?;
        transaction.commit().await?;
        Ok(())
    })
    .await?;
    let code = match &outcome {
        Ok(_) => "completed",
        Err(failure) => {
            let code = failure.code();
            tracing::info!(transcript = id, code, "a transcript ended in error");
            code
        }
    };
    metrics::counter!("colloquy_transcripts_ended_total", "outcome" => code).increment(1);
    metrics::histogram!("colloquy_transcript_seconds")
        .record((now - row.begun_at) as f64 / 1_000.0);
    Ok(())
}

/// Writes down the next window of a recording. What the client is told about is a [`Failure`].
async fn transcribe(
    transcripts: &Transcripts,
    run: &Run,
    row: &OpenRow,
) -> anyhow::Result<Outcome> {
    let db = transcripts.store.db();
    store::begin(db, &row.id).await?;
    let tenant = row.tenant();
    let partner = partners::read(transcripts, &tenant).await?;
    if !partner.settings.is_transcription_enabled() {
        return Err(Failure::SwitchedOff.into());
    }
    // What an earlier run left, however that ended.
    let transaction = begin_run(transcripts, &tenant, run).await?;
    hearing::settle_lost(transcripts, &transaction, &row.id).await?;
    transaction.commit().await?;
    let options = row.options()?;
    let recording = match row.recording()? {
        Some(recording) => recording,
        None => {
            let recording = get(transcripts, run, row).await?;
            if run.attempt > 1 {
                // The attempts so far were to get it, and say nothing of the service that hears it.
                return Ok(Outcome::More);
            }
            recording
        }
    };
    let claim = Claim::new(Priority::Background, tenant.partner().as_str());
    let begin = row.window_sample;
    let window = window(transcripts, &claim, &recording, begin).await?;
    let samples = Arc::new(window.samples);
    let mut parts = parts_of(transcripts, &samples, &claim).await?;
    if !window.is_last && parts.len() > 1 {
        // It may end in the middle of a word; the next window begins with it.
        parts.pop();
    }
    let language = language(transcripts, row, &options, &parts, &claim).await?;
    let hearing = Hearing {
        transcripts,
        run,
        row,
        language: language.clone(),
        expected: options.boosted_words.clone().into(),
        claim,
    };
    let mut sounds: Vec<Sound> = Vec::with_capacity(parts.len());
    for part in parts {
        let begins = sounds.last().map_or(0, |sound| sound.place.end);
        sounds.push(Sound {
            window: Arc::clone(&samples),
            offset: begin,
            place: begins..begins + part.len(),
        });
    }
    let end = sounds.last().map_or(begin, Sound::end);
    let sounds = unheard(transcripts, run, row, sounds).await?;
    hear(&hearing, sounds).await?;
    if !window.is_last {
        run.insist(transcripts, || async {
            let transaction = begin_run(transcripts, &tenant, run).await?;
            store::set_window(&transaction, &row.id, end).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await?;
        return Ok(Outcome::More);
    }
    let heard = store::parts(db, &row.id).await?;
    let words = words_of(&heard);
    let language = match language {
        Some(language) => Some(language),
        None => of_words(transcripts, row, &words).await?,
    };
    Ok(written(&options, language.as_deref(), &words, &heard))
}

/// The parts of a window.
async fn parts_of<'s>(
    transcripts: &Transcripts,
    samples: &'s Arc<Vec<i16>>,
    claim: &Claim,
) -> anyhow::Result<Vec<&'s [i16]>> {
    if !hearing::is_local(transcripts) {
        return Ok(pauses::parts_of(samples, LONGEST_PART));
    }
    let heard = transcripts
        .providers
        .turns
        .scores(Arc::clone(samples), claim);
    let SpeechScores {
        scores,
        frame_samples,
    } = heard.await?;
    Ok(pauses::utterances(
        samples,
        &scores,
        frame_samples,
        SHORTEST_PAUSE,
        LONGEST_PART,
    ))
}

/// Of the parts of a window those that an earlier run has not heard. What it has of others goes: the window is decoded and cut as it was then.
async fn unheard(
    transcripts: &Transcripts,
    run: &Run,
    row: &OpenRow,
    sounds: Vec<Sound>,
) -> anyhow::Result<Vec<Sound>> {
    let transaction = begin_run(transcripts, &row.tenant(), run).await?;
    let heard = store::parts(&transaction, &row.id).await?;
    let heard = heard
        .iter()
        .map(|part| (part.begin_sample, part.end_sample));
    let heard: HashSet<(i64, i64)> = heard
        .filter(|(begin, _)| *begin >= row.window_sample)
        .collect();
    let places: HashSet<(i64, i64)> = sounds.iter().map(Sound::samples).collect();
    for (begin, _) in heard.difference(&places) {
        store::remove_part(&transaction, &row.id, *begin).await?;
    }
    transaction.commit().await?;
    let sounds = sounds.into_iter();
    Ok(sounds
        .filter(|sound| !heard.contains(&sound.samples()))
        .collect())
}

/// Hears parts, several at a time, and stores their words. After a failure nothing more is asked for, and what was is stored.
async fn hear(hearing: &Hearing<'_>, sounds: Vec<Sound>) -> anyhow::Result<()> {
    let (mut asked, mut failure) = (FuturesUnordered::new(), None);
    let mut sounds = sounds.into_iter();
    loop {
        while failure.is_none() && asked.len() < PARTS_AT_ONCE {
            let Some(sound) = sounds.next() else { break };
            match hearing.begin(sound).await {
                Ok(begun) => asked.push(begun.answered()),
                Err(error) => failure = Some(error),
            }
        }
        let Some(heard) = asked.next().await else {
            break;
        };
        if let Err(error) = hearing.keep(heard).await {
            failure.get_or_insert(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Gets the recording from its address.
async fn get(
    transcripts: &Transcripts,
    run: &Run,
    row: &OpenRow,
) -> anyhow::Result<StoredRecording> {
    let url = row.audio_url.as_deref().unwrap_or_default();
    let written = fetching::fetch(transcripts, &row.tenant(), url).await??;
    let container = accept::container_of(transcripts, &written.key, written.bytes).await?;
    let Some(container) = container else {
        transcripts.blobs.discard(&written).await;
        return Err(Failure::NoRecording.into());
    };
    // Where this fails, it is got again: nothing was paid for.
    let transaction = begin_run(transcripts, &row.tenant(), run).await?;
    transcripts.blobs.keep(&transaction, &written).await?;
    store::set_recording(&transaction, &row.id, &written, container).await?;
    transaction.commit().await?;
    Ok(StoredRecording {
        key: written.key,
        bytes: written.bytes,
        container,
    })
}

/// A window of a recording, from a sample on.
async fn window(
    transcripts: &Transcripts,
    claim: &Claim,
    recording: &StoredRecording,
    begin: i64,
) -> anyhow::Result<Window> {
    let most = transcripts.config.transcripts.max_seconds;
    let longest = Duration::from_secs(most.into());
    let begin = begin.unsigned_abs();
    if Duration::from_secs(begin / RATE_HZ as u64) > longest {
        return Err(Failure::TooLong(most).into());
    }
    let file = transcripts
        .blobs
        .local(&recording.key, recording.bytes)
        .await;
    let file = match file {
        Err(error) if error.is_damage() => return Err(Failure::Damaged.into()),
        file => file?,
    };
    let input = Input::File(file.path().to_owned());
    let (sandbox, container) = (&transcripts.sandbox, recording.container);
    let window = sound::window(sandbox, claim, &input, container, sound::speech_from(begin)).await;
    let window = window.map_err(|error| match error {
        passing @ DigitizeError::Later(_) => anyhow::Error::from(passing),
        error => Failure::Unreadable(error).into(),
    })?;
    if window.declared.is_some_and(|declared| declared > longest) {
        return Err(Failure::TooLong(most).into());
    }
    Ok(window)
}

/// The language of a recording: the one that was asked for, or what most of its first parts are in.
async fn language(
    transcripts: &Transcripts,
    row: &OpenRow,
    options: &Options,
    parts: &[&[i16]],
    claim: &Claim,
) -> anyhow::Result<Option<String>> {
    if let Some(language) = options.language {
        return Ok(Some(language.tag().to_owned()));
    }
    if row.language.is_some() {
        return Ok(row.language.clone());
    }
    let transcriber = &transcripts.providers.batch.transcriber;
    let language = match spoken_language(&**transcriber, parts, Some(&DETECTED), claim).await {
        Ok(language) => language,
        Err(error) if error.kind == ProviderErrorKind::Busy => return Err(error.into()),
        Err(error) => return Err(Failure::Transcription(error).into()),
    };
    if let Some(language) = &language {
        store::set_language(transcripts.store.db(), &row.id, language).await?;
    }
    Ok(language)
}

/// What was said, in all parts.
fn words_of(heard: &[Part]) -> String {
    let words: Vec<&str> = heard
        .iter()
        .filter_map(|part| part.words.as_deref())
        .collect();
    joined(&words)
}

/// The language of what was said, where the transcriber did not tell it.
async fn of_words(
    transcripts: &Transcripts,
    row: &OpenRow,
    words: &str,
) -> anyhow::Result<Option<String>> {
    let told = colloquy_language::detect(words).filter(|told| DETECTED.contains(told));
    if let Some(language) = told {
        store::set_language(transcripts.store.db(), &row.id, language).await?;
    }
    Ok(told.map(str::to_owned))
}

/// The text of all parts.
fn written(options: &Options, language: Option<&str>, words: &str, heard: &[Part]) -> Outcome {
    let mut text = words.to_owned();
    if !options.filler_words {
        text = text::without_fillers(&text, language.unwrap_or_default());
    }
    if !options.format_text {
        text = text::unformatted(&text, language.unwrap_or_default());
    }
    let samples = heard.last().map_or(0, |part| part.end_sample);
    let rate = RATE_HZ as i64;
    Outcome::Text {
        text,
        // The nearest whole second, but none that lasts nothing.
        audio_seconds: ((samples + rate / 2) / rate).max(i64::from(samples > 0)),
    }
}

#[cfg(test)]
mod tests {
    use colloquy_accounts::AccountError;
    use colloquy_blobs::ObjectError;
    use colloquy_providers::ProviderError;
    use colloquy_store::StoreError;

    use super::*;
    use crate::request::LanguageCode;

    fn part(seconds: i64, words: &str) -> Part {
        Part {
            begin_sample: 0,
            end_sample: seconds * RATE_HZ as i64,
            reservation: None,
            words: Some(words.to_owned()),
        }
    }

    fn text_of(options: &Options, heard: &[Part]) -> (String, i64) {
        match written(options, Some("en"), &words_of(heard), heard) {
            Outcome::Text {
                text,
                audio_seconds,
            } => (text, audio_seconds),
            Outcome::More => unreachable!("it is all there"),
        }
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        let away = || StoreError::unavailable("away");
        let provider = |kind| ProviderError::new("model", kind, "no");
        for (error, expected) in [
            (away().into(), true),
            (AccountError::Store(away()).into(), true),
            (ObjectError::Failed("no space left".to_owned()).into(), true),
            (DigitizeError::Later("full".to_owned()).into(), true),
            (provider(ProviderErrorKind::Busy).into(), true),
            (provider(ProviderErrorKind::Failed).into(), false),
            (ObjectError::Missing.into(), false),
            (Failure::NoRecording.into(), false),
            (
                Failure::Unreadable(DigitizeError::Crashed("x".to_owned())).into(),
                false,
            ),
            (anyhow::anyhow!("a defect"), false),
        ] {
            assert_eq!(is_outage(&error), expected, "{error:#}");
        }
    }

    #[test]
    fn the_text_is_written_as_it_is_wanted() {
        let heard = [
            part(10, "Um, we open at nine."),
            part(15, ""),
            part(20, "And, uh, close at six."),
        ];
        let mut options = Options {
            language: Some(LanguageCode::En),
            filler_words: false,
            format_text: true,
            boosted_words: vec![],
        };
        let (text, seconds) = text_of(&options, &heard);
        assert_eq!(
            (text.as_str(), seconds),
            ("We open at nine. And close at six.", 20)
        );
        options.filler_words = true;
        assert_eq!(
            text_of(&options, &heard).0,
            "Um, we open at nine. And, uh, close at six."
        );
        options.format_text = false;
        assert_eq!(
            text_of(&options, &heard).0,
            "um we open at nine and uh close at six"
        );
        assert_eq!(text_of(&options, &[]), (String::new(), 0));
        let mut short = part(1, "Go.");
        short.end_sample = 1_000;
        assert_eq!(text_of(&options, &[short]).1, 1);
    }
}
