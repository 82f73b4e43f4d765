//! The job that splits a recording: a window is decoded, cut at pauses, and its samples are stored with the place of the next window.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use colloquy_accounts::begin_run;
use colloquy_audio::{
    Resampler,
    media::{Container, Window},
};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::{NoRoom, Written};
use colloquy_digitize::{DigitizeError, Input, is_without_room, sound};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult, is_database_away};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    cutting::{self, RATE_HZ, SHORTEST_SAMPLE},
    error::VoiceError,
    sample,
    store::{self, VoiceRow},
    voice::{self, Original, Processing},
};
use crate::Voices;

/// How often a recording is begun: after a process that died in the middle.
const ATTEMPTS: u32 = 10;
/// How long a recording waits for room in the sandbox. A child that is killed again and again, for want of memory, looks like that.
const LONGEST_WAIT_MS: i64 = 24 * 3_600 * 1_000;
/// The length of a window, in samples: two minutes.
const WINDOW: usize = 120 * RATE_HZ;
/// The rate of what detectors of voice activity hear.
const HEARD_HZ: usize = 16_000;

/// Splits a voice until all of its recording was looked at, or it has as many samples as it may.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Split {
    /// The voice's id.
    pub voice: String,
    /// Which of the times this is that the voice is split.
    pub run: String,
}

/// Why a recording was not split.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Unreadable(DigitizeError),
    #[error("the stored recording is damaged; upload it again")]
    Damaged,
    #[error("the recording lasts longer than {0} s")]
    TooLong(u32),
    #[error("nobody speaks in the recording for a second or longer")]
    NoSpeech,
    #[error("{0}")]
    NoRoom(NoRoom),
    #[error("splitting was begun several times, and interrupted each time")]
    Interrupted,
}

impl jobs::Failure for Failure {
    fn may_pass(&self) -> bool {
        false
    }
}

/// A sample that was cut.
struct CutSample {
    source_seconds: i64,
    milliseconds: i64,
    file: Bytes,
}

/// What came of a window.
struct Splitting {
    samples: Vec<CutSample>,
    /// Where the next one begins, in samples of the recording; `None`: there is none.
    next: Option<i64>,
    /// How long the recording is, in milliseconds, where that is known.
    length: Option<i64>,
}

impl Job for Split {
    type State = Voices;

    const KIND: &'static str = "voices.split";

    /// It gives up by itself, after [`ATTEMPTS`]; the worker does when its processes die.
    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(120),
    };

    /// The sandbox has a place a core.
    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.run.clone())
    }

    async fn run(self, voices: Voices, run: Run) -> anyhow::Result<RunResult> {
        match self.attempt(&voices, &run).await {
            // An outage says nothing about the recording: it costs no attempt.
            Err(error) if is_outage(&error) => {
                let what = "splitting voices, which wait for the end of an outage";
                voices.store.complain(what, &format!("{error:#}"));
                Ok(RunResult::after_outage())
            }
            result => result,
        }
    }

    async fn give_up(self, voices: Voices, run: Run, _why: GivenUp) -> anyhow::Result<()> {
        match self.row(&voices).await? {
            Some(row) => self.fail(&voices, &run, &row, &Failure::Interrupted).await,
            None => Ok(()),
        }
    }
}

/// Whether a failure is that of an outage: the database or the files are away, or there is no room in the sandbox or in a queue.
pub(super) fn is_outage(error: &anyhow::Error) -> bool {
    is_without_room(error)
        || is_database_away(error)
        || colloquy_blobs::is_away(error)
        || colloquy_providers::is_busy(error)
}

impl Split {
    /// The voice, while this run splits it.
    async fn row(&self, voices: &Voices) -> anyhow::Result<Option<VoiceRow>> {
        let row = store::by_id(voices.store.db(), &self.voice).await?;
        Ok(row.filter(|row| self.splits(row)))
    }

    fn splits(&self, row: &VoiceRow) -> bool {
        row.splitting == Processing::InProgress && row.split_run.as_deref() == Some(&self.run)
    }

    async fn attempt(&self, voices: &Voices, run: &Run) -> anyhow::Result<RunResult> {
        let Some(row) = self.row(voices).await? else {
            return Ok(RunResult::Done);
        };
        let splitting = match run.attempt > ATTEMPTS {
            true => Err(Failure::Interrupted.into()),
            false => split(voices, &row).await,
        };
        let begun = row.split_begun_at.unwrap_or_default();
        let splitting = match splitting {
            Err(error)
                if is_without_room(&error) && voices.clock.now_ms() - begun > LONGEST_WAIT_MS =>
            {
                Err(Failure::Interrupted.into())
            }
            splitting => splitting,
        };
        match run.outcome(splitting, ATTEMPTS)? {
            Ok(splitting) => self.keep(voices, run, &row, splitting).await,
            Err(failure) => {
                self.fail(voices, run, &row, &failure).await?;
                Ok(RunResult::Done)
            }
        }
    }

    /// Stores what came of a window.
    async fn keep(
        &self,
        voices: &Voices,
        run: &Run,
        row: &VoiceRow,
        splitting: Splitting,
    ) -> anyhow::Result<RunResult> {
        let tenant = row.tenant();
        let known = store::samples(voices.store.db(), &row.id).await?.len();
        let first = i64::try_from(known)?;
        let room = usize::try_from(row.max_samples)?.saturating_sub(known);
        let mut written: Vec<(Written, [i64; 2])> = Vec::new();
        for sample in splitting.samples.into_iter().take(room) {
            let file = match sample::write(voices, &tenant, sample.file).await {
                Ok(file) => file,
                Err(VoiceError::NoRoom(why @ NoRoom::Partner { .. })) => {
                    for (file, _) in &written {
                        voices.blobs.discard(file).await;
                    }
                    let failure = Failure::NoRoom(why);
                    self.fail(voices, run, row, &failure).await?;
                    return Ok(RunResult::Done);
                }
                Err(error) => return Err(error.into()),
            };
            written.push((file, [sample.source_seconds, sample.milliseconds]));
        }
        let is_full = written.len() == room;
        let next = splitting.next.filter(|_| !is_full);
        if next.is_none() && known + written.len() == 0 {
            self.fail(voices, run, row, &Failure::NoSpeech).await?;
            return Ok(RunResult::Done);
        }
        let (written, tenant) = (&written, &tenant);
        let goes_on = run
            .insist(voices, || async move {
                let transaction = begin_run(voices, tenant, run).await?;
                let now = store::by_id(&transaction, &row.id).await?;
                let Some(now) = now.filter(|now| self.splits(now)) else {
                    return Ok(false);
                };
                if now.window_sample != row.window_sample {
                    // It was stored, although that seemed to fail: what follows is still to be split.
                    return Ok(true);
                }
                for (index, (file, times)) in (first..).zip(written) {
                    voices.blobs.keep(&transaction, file).await?;
                    store::insert_sample(&transaction, &row.id, index, *times, file).await?;
                }
                if let Some(length) = splitting.length {
                    store::set_length(&transaction, &row.id, length).await?;
                }
                match next {
                    Some(next) => store::set_window(&transaction, &row.id, next).await?,
                    None => {
                        store::end_split(&transaction, &row.id, None).await?;
                        if let Some(worker) = &voices.providers.voice_worker
                            && now.embeds_next
                        {
                            let voice_type = worker.default_type();
                            voice::begin_embedding(
                                voices,
                                &transaction,
                                tenant,
                                &row.id,
                                voice_type,
                            )
                            .await?;
                        }
                    }
                }
                transaction.commit().await?;
                Ok(next.is_some())
            })
            .await?;
        voices.kernel.jobs.wake();
        Ok(match goes_on {
            true => RunResult::Again(Duration::ZERO),
            false => RunResult::Done,
        })
    }

    async fn fail(
        &self,
        voices: &Voices,
        run: &Run,
        row: &VoiceRow,
        failure: &Failure,
    ) -> anyhow::Result<()> {
        let tenant = &row.tenant();
        let reason = &failure.to_string();
        run.insist(voices, || async move {
            let transaction = begin_run(voices, tenant, run).await?;
            // What was cut before is no voice.
            let keys = store::remove_samples(&transaction, &row.id).await?;
            voices.blobs.doom(&transaction, &keys).await?;
            store::end_split(&transaction, &row.id, Some(reason)).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await?;
        tracing::info!(voice = row.id, "a recording was not split");
        Ok(())
    }
}

/// Splits the next window of a recording.
async fn split(voices: &Voices, row: &VoiceRow) -> anyhow::Result<Splitting> {
    let Some(original) = row.original() else {
        anyhow::bail!("a voice without a recording is split");
    };
    let claim = Claim::new(Priority::Background, row.tenant().partner().as_str());
    let begin = row.window_sample;
    let window = window(voices, &claim, &original, begin).await?;
    let Window {
        samples,
        is_last,
        declared,
    } = window;
    let samples = Arc::new(samples);
    let heard = spawn_blocking({
        let samples = Arc::clone(&samples);
        move || {
            let mut resampler = Resampler::new(RATE_HZ as u32, HEARD_HZ as u32)?;
            let mut heard = Vec::with_capacity(samples.len() / 3 + 1);
            resampler.push(samples.iter().copied(), &mut heard);
            resampler.finish(&mut heard);
            anyhow::Ok(heard)
        }
    });
    let heard = Arc::new(heard.await??);
    let scores = voices.providers.turns.scores(heard, &claim).await?;
    let longest = usize::try_from(row.sample_seconds)? * RATE_HZ;
    let all = begin + i64::try_from(samples.len())?;
    let cut = spawn_blocking(move || cut(&samples, &scores, longest, begin, is_last));
    let (samples, next) = cut.await??;
    let length = match is_last {
        true => Some(all * 1_000 / RATE_HZ as i64),
        false => declared.and_then(|declared| i64::try_from(declared.as_millis()).ok()),
    };
    Ok(Splitting {
        samples,
        next: next.filter(|_| !is_last),
        length,
    })
}

/// The samples of a window that begins at this sample of its recording, and where the next one begins.
fn cut(
    window: &[i16],
    scores: &colloquy_providers::SpeechScores,
    longest: usize,
    begin: i64,
    is_last: bool,
) -> anyhow::Result<(Vec<CutSample>, Option<i64>)> {
    let frame = scores.frame_samples * (RATE_HZ / HEARD_HZ);
    let phrases = cutting::phrases(&scores.scores, frame, window.len());
    let (cuts, next) = cutting::cut(window, &phrases, longest, is_last);
    let long = cuts
        .into_iter()
        .filter(|cut| cut.length() >= SHORTEST_SAMPLE);
    let samples = long.map(|cut| {
        let sound = cut.sound(window);
        anyhow::Ok(CutSample {
            source_seconds: (begin + i64::try_from(cut.begin())?) / RATE_HZ as i64,
            milliseconds: sample::milliseconds(&sound),
            file: sample::encoded(&sound)?,
        })
    });
    Ok((
        samples.collect::<anyhow::Result<_>>()?,
        Some(begin + i64::try_from(next)?),
    ))
}

/// A window of a recording, from a sample on.
async fn window(
    voices: &Voices,
    claim: &Claim,
    original: &Original,
    begin: i64,
) -> anyhow::Result<Window> {
    let most = voices.config.voices.max_seconds;
    let longest = Duration::from_secs(most.into());
    let begin = begin.unsigned_abs();
    if Duration::from_secs(begin / RATE_HZ as u64) > longest {
        return Err(Failure::TooLong(most).into());
    }
    let file = match voices.blobs.local(&original.key, original.bytes).await {
        Err(error) if error.is_damage() => return Err(Failure::Damaged.into()),
        file => file?,
    };
    let input = Input::File(file.path().to_owned());
    let span = sound::Span {
        rate_hz: RATE_HZ as u32,
        from: begin,
        most: WINDOW,
    };
    let container: Container = original.container;
    let window = sound::window(&voices.sandbox, claim, &input, container, span).await;
    let window = window.map_err(|error| match error {
        passing @ DigitizeError::Later(_) => anyhow::Error::from(passing),
        error => Failure::Unreadable(error).into(),
    })?;
    if window.declared.is_some_and(|declared| declared > longest) {
        return Err(Failure::TooLong(most).into());
    }
    Ok(window)
}

impl From<Failure> for VoiceError {
    fn from(failure: Failure) -> Self {
        Self::Internal(failure.into())
    }
}
