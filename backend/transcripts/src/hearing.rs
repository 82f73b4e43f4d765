//! The words of one part of a recording, and what they cost.
//!
//! Where a quota pays, a part is reserved before a transcriber is asked for its words, and settled in the transaction that stores
//! them. A process that dies between the two leaves a row without words: what this server computes itself is then taken back, and of
//! what a service elsewhere was asked for nobody knows what became of it, so its bound is what it cost.

use std::{ops::Range, sync::Arc};

use colloquy_accounts::{
    begin_run,
    ledger::{self, Amounts, DetachedUsage, Measure, Outcome, UsageContext},
};
use colloquy_audio::pauses::{RATE_HZ, is_silent};
use colloquy_base::fair_queue::Claim;
use colloquy_kernel::jobs::Run;
use colloquy_providers::{ProviderError, ProviderErrorKind, Utterance};
use colloquy_store::{StoreError, Transaction};
use tokio_util::task::AbortOnDropHandle;

use super::{
    failure::Failure,
    store::{self, OpenRow, Part},
};
use crate::Transcripts;

/// What the records of usage call it.
pub(super) const ENDPOINT: &str = "transcripts";

/// The seconds that a price is for.
const PRICED_SECONDS: u64 = 3_600;

/// What all parts of a transcript have in common.
pub(super) struct Hearing<'a> {
    pub(super) transcripts: &'a Transcripts,
    pub(super) run: &'a Run,
    pub(super) row: &'a OpenRow,
    /// The language; `None` where the transcriber finds it out.
    pub(super) language: Option<String>,
    /// Terms that are likelier than they would be.
    pub(super) expected: Arc<[String]>,
    pub(super) claim: Claim,
}

/// A part of a window of a recording.
#[derive(Debug, Clone)]
pub(super) struct Sound {
    pub(super) window: Arc<Vec<i16>>,
    /// Where the window begins, in samples of the recording.
    pub(super) offset: i64,
    /// Where the part stands in it.
    pub(super) place: Range<usize>,
}

/// A part whose words are asked for.
pub(super) struct Asked {
    sound: Sound,
    reservation: Option<String>,
    words: AbortOnDropHandle<Result<String, ProviderError>>,
}

/// The words of a part, and what was reserved for them.
pub(super) struct Heard {
    sound: Sound,
    reservation: Option<String>,
    words: Result<String, ProviderError>,
}

impl Asked {
    /// Waits for the words.
    pub(super) async fn answered(self) -> Heard {
        let words = self.words.await.unwrap_or_else(|_| {
            let (kind, message) = (ProviderErrorKind::Failed, "its task ended");
            Err(ProviderError::new("transcriber", kind, message))
        });
        Heard {
            sound: self.sound,
            reservation: self.reservation,
            words,
        }
    }
}

impl Sound {
    /// Where it begins and ends, in samples of the recording.
    pub(super) fn samples(&self) -> (i64, i64) {
        let at = |place: usize| self.offset + i64::try_from(place).unwrap_or(i64::MAX);
        (at(self.place.start), at(self.place.end))
    }

    pub(super) fn end(&self) -> i64 {
        self.samples().1
    }

    fn sound(&self) -> &[i16] {
        &self.window[self.place.clone()]
    }

    /// The seconds that are paid for: those of the recording that begin in it, so that parts are paid for as the whole is.
    fn seconds(&self) -> u64 {
        let begun = |sample: i64| sample.unsigned_abs().div_ceil(RATE_HZ as u64);
        let (begin, end) = self.samples();
        match is_silent(self.sound()) {
            true => 0,
            false => begun(end) - begun(begin),
        }
    }
}

impl Hearing<'_> {
    /// Begins to ask for the words of a part. What is silent has none, and nobody is asked.
    ///
    /// # Errors
    /// A [`Failure`] when the quota has no room, or the database's.
    pub(super) async fn begin(&self, sound: Sound) -> anyhow::Result<Asked> {
        let seconds = sound.seconds();
        let reservation = match seconds {
            0 => None,
            seconds => self.reserve(&sound, seconds).await?,
        };
        let utterance = Utterance {
            expected: Arc::clone(&self.expected),
            ..Utterance::new(sound.sound(), self.language.clone(), self.claim.clone())
        };
        let transcriber = Arc::clone(&self.transcripts.providers.batch.transcriber);
        let is_silent = is_silent(sound.sound());
        // A task of its own: it goes on while the words of other parts are stored.
        let words = self.transcripts.kernel.tasks.spawn(async move {
            match is_silent {
                true => Ok(String::new()),
                false => transcriber.transcribe(utterance).await,
            }
        });
        Ok(Asked {
            sound,
            reservation,
            words: AbortOnDropHandle::new(words),
        })
    }

    /// Reserves a part, where a quota pays; gives the id of what is reserved.
    async fn reserve(&self, sound: &Sound, seconds: u64) -> anyhow::Result<Option<String>> {
        let Some(quota) = &self.row.quota else {
            return Ok(None);
        };
        let transcripts = self.transcripts;
        let now = transcripts.clock.now_ms();
        let id = transcripts.clock.new_id().to_string();
        let about = UsageContext {
            endpoint: ENDPOINT,
            model: transcripts.providers.batch.transcriber.name().to_owned(),
            character: None,
            request_id: self.row.id.clone(),
        };
        let bound = amounts(transcripts, seconds);
        let transaction = begin_run(transcripts, &self.row.tenant(), self.run).await?;
        let reserved = ledger::reserve_kept(&transaction, quota, &id, bound, about, now).await?;
        reserved.map_err(Failure::Quota)?;
        let (begin_sample, end_sample) = sound.samples();
        let part = Part {
            begin_sample,
            end_sample,
            reservation: Some(id.clone()),
            words: None,
        };
        store::put_part(&transaction, &self.row.id, &part).await?;
        transaction.commit().await?;
        Ok(Some(id))
    }

    /// Stores the words of a part, however long the database is away, with what they cost.
    ///
    /// # Errors
    /// A [`Failure`] when there are none: then only what it cost is stored.
    pub(super) async fn keep(&self, heard: Heard) -> anyhow::Result<()> {
        let Heard {
            sound,
            reservation,
            words,
        } = heard;
        let (transcripts, seconds) = (self.transcripts, sound.seconds());
        let spent = match &words {
            Ok(_) => DetachedUsage::Used(amounts(transcripts, seconds), Outcome::Completed),
            Err(error) => of_failure(transcripts, error),
        };
        let (begin_sample, end_sample) = sound.samples();
        let part = Part {
            begin_sample,
            end_sample,
            reservation: None,
            words: words.as_ref().ok().cloned(),
        };
        let (part, reservation) = (&part, reservation.as_deref());
        let tenant = &self.row.tenant();
        self.run
            .insist(transcripts, || async move {
                let transaction = begin_run(transcripts, tenant, self.run).await?;
                if let Some(id) = reservation {
                    ledger::settle_kept(transcripts, &transaction, id, spent).await?;
                }
                let id = &self.row.id;
                match part.words {
                    Some(_) => store::put_part(&transaction, id, part).await?,
                    None => store::remove_part(&transaction, id, part.begin_sample).await?,
                }
                transaction.commit().await?;
                Ok(())
            })
            .await?;
        match words {
            Ok(_) => {
                metrics::counter!("colloquy_transcript_seconds_total").increment(seconds);
                Ok(())
            }
            Err(error) if error.kind == ProviderErrorKind::Busy => Err(error.into()),
            Err(error) => Err(Failure::Transcription(error).into()),
        }
    }
}

/// Settles the parts whose words somebody asked for and nobody stored, in a transaction.
pub(super) async fn settle_lost(
    transcripts: &Transcripts,
    transaction: &Transaction,
    transcript: &str,
) -> Result<(), StoreError> {
    for part in store::parts_without_words(transaction, transcript).await? {
        if let Some(id) = &part.reservation {
            let spent = match is_local(transcripts) {
                true => DetachedUsage::Nothing,
                false => DetachedUsage::Bound,
            };
            ledger::settle_kept(transcripts, transaction, id, spent).await?;
        }
        store::remove_part(transaction, transcript, part.begin_sample).await?;
    }
    Ok(())
}

/// What a part cost that has no words.
fn of_failure(transcripts: &Transcripts, error: &ProviderError) -> DetachedUsage {
    use ProviderErrorKind as Kind;
    match error.kind {
        // Nothing was sent, or it says itself that it did nothing.
        Kind::Connect
        | Kind::Busy
        | Kind::Resting
        | Kind::Rejected
        | Kind::RateLimited
        | Kind::Misconfigured => DetachedUsage::Nothing,
        _ if is_local(transcripts) => DetachedUsage::Nothing,
        _ => DetachedUsage::Bound,
    }
}

/// Whether this server hears recordings itself.
pub(super) fn is_local(transcripts: &Transcripts) -> bool {
    transcripts.config.transcriber.base_url.is_none()
}

/// So many seconds, and what they cost.
fn amounts(transcripts: &Transcripts, seconds: u64) -> Amounts {
    let price = transcripts
        .config
        .transcriber
        .usd_per_hour
        .unwrap_or_default();
    let cost = match is_local(transcripts) {
        true => 0,
        false => price.cost_of(seconds, PRICED_SECONDS),
    };
    Amounts::default()
        .with(Measure::Seconds, seconds)
        .with(Measure::Cost, cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_paid_for_as_the_whole_is() {
        let second = RATE_HZ;
        let window: Vec<i16> = (0..10 * second).map(|at| (at % 100) as i16 * 100).collect();
        let window = Arc::new(window);
        let borders = [
            0,
            second / 3,
            second,
            7 * second / 2,
            9 * second + 1,
            10 * second,
        ];
        let parts = borders.windows(2).map(|borders| Sound {
            window: Arc::clone(&window),
            offset: (100 * second + second / 2) as i64,
            place: borders[0]..borders[1],
        });
        let paid: Vec<u64> = parts.map(|part| part.seconds()).collect();
        assert_eq!(paid, [0, 1, 2, 6, 1]);
        let silent = Sound {
            window: Arc::new(vec![0; second]),
            offset: 0,
            place: 0..second,
        };
        assert_eq!(silent.seconds(), 0);
    }
}
