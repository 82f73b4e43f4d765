//! What is said in recordings and films, as text with marks of time.
//!
//! A recording is decoded a window of ten minutes at a time, cut at pauses, and transcribed part by part. The words of each part are stored as soon as
//! they are there, so that whatever ends a run loses at most the part that was being asked for, and a run has one window, so that long
//! recordings leave room for others between them.

use std::time::Duration;

use colloquy_accounts::partners;
use colloquy_audio::pauses::{RATE_HZ, is_silent, joined, parts};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_digitize::{Container, DigitizeError, Input, sound};
use colloquy_fetch::CONNECT_ATTEMPTS;
use colloquy_kernel::jobs::Run;
use colloquy_providers::{
    ProviderError, ProviderErrorKind, Transcriber, Utterance, spoken_language,
};

use super::{
    Bases,
    admission::{self, Blocked, PaidRequest, PaidStep, UsageBound, UsageOutcome, Used, is_unsent},
    digitizing::ATTEMPTS,
    outage,
    store::{self, OwnedDocument, TranscribedPart},
};

/// The language that models which cannot tell are asked for.
const ASSUMED_LANGUAGE: &str = "en";

/// The seconds that a price is for.
const PRICED_SECONDS: u64 = 3_600;

/// A mark of time stands at least so far from the one before, in seconds.
const BETWEEN_MARKS: i64 = 30;

/// What came of a run.
pub(crate) enum Transcribed {
    /// There is more to be heard, in another run.
    More,
    /// The document waits for room in a budget, and says so.
    Waits,
    /// All of it.
    Text {
        /// As Markdown.
        text: String,
        /// The language that some of it was transcribed as although no model could tell whether it is spoken there.
        assumed_language: Option<String>,
    },
    /// Why there is no text, for whoever uploaded it.
    None(String),
}

/// A recording or a film.
pub(crate) struct Recording<'a> {
    pub(crate) owned: &'a OwnedDocument,
    pub(crate) container: Container,
    pub(crate) file: Input,
    /// Its hash, by which its transcript is known.
    pub(crate) sha256: &'a str,
    /// The language that its platform names, a tag.
    pub(crate) named_language: Option<&'a str>,
}

/// What a transcriber is to listen for.
struct Spoken {
    /// A tag; `None` where the transcriber finds out by itself.
    language: Option<String>,
    /// Whether nobody and nothing named it.
    is_assumed: bool,
}

impl Recording<'_> {
    /// Transcribes the next window of it.
    pub(crate) async fn transcribe(self, bases: &Bases, run: &Run) -> anyhow::Result<Transcribed> {
        let (db, tenant) = (bases.store.db(), self.owned.tenant());
        let partner = partners::read(bases, &tenant).await?;
        if !partner.settings.is_transcription_enabled() {
            let reason = "transcription is switched off for this partner";
            return Ok(Transcribed::None(reason.to_owned()));
        }
        let document = &self.owned.document.id;
        store::forget_other_transcripts(db, document, self.sha256).await?;
        let transcriber = &*bases.providers.batch.transcriber;
        let understood = transcriber.understands();
        if understood.check_detection().is_ok() {
            store::forget_assumed_transcripts(db, document).await?;
        } else if let Some(named) = self.named_language
            && let Err(error) = understood.check(named)
        {
            return Ok(Transcribed::None(error.to_string()));
        }
        let mut transcript = store::transcript(db, document, self.sha256).await?;
        let begin = transcript.last().map_or(0, |part| part.end_sample);
        let most = bases.config.knowledge.max_sound_seconds;
        let longest = Duration::from_secs(most.into());
        let too_long = || Transcribed::None(format!("the recording lasts longer than {most} s"));
        let heard = Duration::from_secs(begin.unsigned_abs() / RATE_HZ as u64);
        if heard > longest {
            return Ok(too_long());
        }
        let claim = Claim::new(Priority::Background, tenant.partner().as_str());
        let (sandbox, from) = (&bases.sandbox, begin.unsigned_abs());
        let span = sound::speech_from(from);
        let window = sound::window(sandbox, &claim, &self.file, self.container, span).await;
        let window = match window {
            Ok(window) => window,
            Err(error @ DigitizeError::Later(_)) => return Err(error.into()),
            Err(error) => return Ok(Transcribed::None(error.to_string())),
        };
        if window.declared.is_some_and(|declared| declared > longest) {
            return Ok(too_long());
        }
        let mut parts = parts(&window.samples);
        if !window.is_last && parts.len() > 1 {
            // It may end in the middle of a word; the next window begins with it.
            parts.pop();
        }
        let spoken = match self.spoken(transcriber, &parts, &claim).await {
            Ok(spoken) => spoken,
            Err(error) => return self.refused(bases, run, error).await,
        };
        let mut at = begin;
        for samples in parts {
            let end = at + i64::try_from(samples.len())?;
            let words = match is_silent(samples) {
                true => String::new(),
                false => match self.ask(bases, samples, &spoken, &claim).await? {
                    Ok(Ok(words)) => words,
                    Ok(Err(error)) => return self.refused(bases, run, error).await,
                    Err(Blocked) => return Ok(Transcribed::Waits),
                },
            };
            let part = TranscribedPart {
                begin_sample: at,
                end_sample: end,
                words,
                assumed_language: spoken.language.clone().filter(|_| spoken.is_assumed),
            };
            self.keep(bases, run, &part).await?;
            transcript.push(part);
            at = end;
        }
        if !window.is_last {
            return Ok(Transcribed::More);
        }
        let mut assumed = transcript
            .iter_mut()
            .filter(|part| !part.words.trim().is_empty());
        let assumed_language = assumed.find_map(|part| part.assumed_language.take());
        Ok(match markdown(&transcript) {
            Some(text) => Transcribed::Text {
                text,
                assumed_language,
            },
            None => Transcribed::None("nobody speaks in the recording".to_owned()),
        })
    }

    /// The language of these parts of a window.
    async fn spoken(
        &self,
        transcriber: &dyn Transcriber,
        parts: &[&[i16]],
        claim: &Claim,
    ) -> Result<Spoken, ProviderError> {
        if transcriber.understands().check_detection().is_ok() {
            let language = spoken_language(transcriber, parts, None, claim).await?;
            return Ok(Spoken {
                language,
                is_assumed: false,
            });
        }
        let language = self.named_language.unwrap_or(ASSUMED_LANGUAGE).to_owned();
        Ok(Spoken {
            language: Some(language),
            is_assumed: self.named_language.is_none(),
        })
    }

    /// Asks for the words of a part.
    async fn ask(
        &self,
        bases: &Bases,
        samples: &[i16],
        spoken: &Spoken,
        claim: &Claim,
    ) -> anyhow::Result<Result<Result<String, ProviderError>, Blocked>> {
        let transcriber = &bases.providers.batch.transcriber;
        let seconds = samples.len().div_ceil(RATE_HZ) as u64;
        let settings = &bases.config.transcriber;
        let is_local = settings.base_url.is_none();
        let cost = match settings.usd_per_hour {
            _ if is_local => Some(0),
            price => price.map(|price| price.cost_of(seconds, PRICED_SECONDS)),
        };
        let request = PaidRequest {
            step: PaidStep::Transcribe,
            model: transcriber.name(),
            is_local,
            bound: UsageBound {
                counts_tokens: false,
                tokens: None,
                seconds: Some(seconds),
                cost,
            },
        };
        let admission = match admission::admit(bases, self.owned.payer(), request).await? {
            Ok(admission) => admission,
            Err(blocked) => return Ok(Err(blocked)),
        };
        let utterance = Utterance::new(samples, spoken.language.clone(), claim.clone());
        let answer = transcriber.transcribe(utterance).await;
        match &answer {
            Ok(_) => {
                let used = Used {
                    tokens: None,
                    seconds: Some(seconds),
                    cost,
                };
                admission.settle(UsageOutcome::Success, used).await?;
            }
            Err(error) if is_unsent(error) => admission.withdraw().await?,
            Err(_) if is_local => {
                let (outcome, used) = (UsageOutcome::Fault, Used::nothing());
                admission.settle(outcome, used).await?;
            }
            Err(error) => {
                let (outcome, used) = UsageOutcome::of_failure(error);
                admission.settle(outcome, used).await?;
            }
        }
        Ok(Ok(answer))
    }

    /// Returns the outcome of a run in which the transcriber failed, or notes at the document why another attempt follows.
    ///
    /// # Errors
    /// What another attempt follows.
    async fn refused(
        &self,
        bases: &Bases,
        run: &Run,
        error: ProviderError,
    ) -> anyhow::Result<Transcribed> {
        let reason = match error.kind {
            ProviderErrorKind::Rejected => format!("{} refuses the recording", error.provider),
            // It waits without attempts.
            ProviderErrorKind::Busy => return Err(error.into()),
            _ if run.attempt < most_attempts(&error) => {
                let document = &self.owned.document.id;
                let told = format!(
                    "the transcription service failed and is asked again: {}",
                    error.reason()
                );
                store::wait_with_digitizing(bases.store.db(), document, &told).await?;
                return Err(error.into());
            }
            _ => format!(
                "the transcription service failed, also when it was asked again: {}; \
                 digitizing the recording again goes on where it was",
                error.reason()
            ),
        };
        Ok(Transcribed::None(reason))
    }

    /// Stores the words of a part, however long that takes.
    async fn keep(&self, bases: &Bases, run: &Run, part: &TranscribedPart) -> anyhow::Result<()> {
        let (document, source) = (self.owned.document.id.as_str(), self.sha256);
        outage::insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            anyhow::ensure!(run.holds(&transaction).await?, "the lease is lost");
            store::put_part(&transaction, document, source, part).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }
}

/// Returns the most attempts at a window whose transcriber fails like this.
fn most_attempts(error: &ProviderError) -> u32 {
    match error.is_absent() {
        true => CONNECT_ATTEMPTS,
        false => ATTEMPTS,
    }
}

/// The words with a mark of time in front of each paragraph; `None` where there are none.
fn markdown(transcript: &[TranscribedPart]) -> Option<String> {
    let mut paragraphs: Vec<(i64, Vec<&str>)> = Vec::new();
    for part in transcript {
        let words = part.words.trim();
        if words.is_empty() {
            continue;
        }
        let second = part.begin_sample / RATE_HZ as i64;
        match paragraphs.last_mut() {
            Some((begin, parts)) if second - *begin < BETWEEN_MARKS => parts.push(words),
            _ => paragraphs.push((second, vec![words])),
        }
    }
    let written = paragraphs
        .iter()
        .map(|(second, parts)| format!("[{}] {}\n", mark(*second), joined(parts)));
    let written: Vec<String> = written.collect();
    (!written.is_empty()).then(|| written.join("\n"))
}

/// A time as `mm:ss`, or as `h:mm:ss` from an hour on.
pub(crate) fn mark(second: i64) -> String {
    let (hours, minutes, seconds) = (second / 3_600, second / 60 % 60, second % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use colloquy_providers::Unreachable;

    use super::*;

    #[test]
    fn a_service_that_is_not_there_is_asked_less_often_than_one_that_fails() {
        for (unreachable, attempts) in [
            (Some(Unreachable::Refused), 3),
            (Some(Unreachable::HostNotFound), 3),
            (Some(Unreachable::NotResolved), 5),
            (Some(Unreachable::TimedOut), 5),
            (None, 5),
        ] {
            let error = ProviderError {
                unreachable,
                ..ProviderError::new("model", ProviderErrorKind::Connect, "no connection")
            };
            assert_eq!(most_attempts(&error), attempts, "{unreachable:?}");
        }
    }

    #[test]
    fn words_get_marks_of_time() {
        let part = |second: i64, words: &str| TranscribedPart {
            begin_sample: second * RATE_HZ as i64,
            end_sample: (second + 10) * RATE_HZ as i64,
            words: words.to_owned(),
            assumed_language: None,
        };
        let transcript = [
            part(0, ""),
            part(12, "We open"),
            part(24, "at nine."),
            part(45, "And close at six. "),
            part(3_725, "Good night."),
        ];
        assert_eq!(
            markdown(&transcript).unwrap(),
            "[00:12] We open at nine.\n\n[00:45] And close at six.\n\n[1:02:05] Good night.\n"
        );
        assert_eq!(markdown(&transcript[..1]), None);
        assert_eq!(markdown(&[]), None);
    }
}
