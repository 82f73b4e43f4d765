//! The job that brings files to a vector store and removes them there.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use colloquy_accounts::{PartnerSettings, Tenant, partners};
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::{ProviderError, ProviderErrorKind};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{
    FileState,
    steps::{LOOK_FIRST, Pace, SETTLES_MS, StepFailure, Sync, milliseconds},
};
use crate::{
    Bases, outage,
    store::{self, BroughtBack, SyncedFile},
};

/// How long a run goes on before other partners have their turn.
const RUN_FOR: Duration = Duration::from_secs(60);
/// How many files are looked up at once, and how many of them are worked on at once.
const PAGE: usize = 8;
const AT_ONCE: usize = 4;
/// How often a file is tried before it has failed.
const ATTEMPTS: i64 = 8;
/// When a step that failed is tried again.
const TRY_AGAIN: RetryRule = RetryRule {
    attempts: u32::MAX,
    first: Duration::from_secs(2),
    most: Duration::from_secs(600),
};
/// When it is tried again while the service cannot be reached, does not take the key, or has had enough without saying for how long.
const UNREACHABLE: Duration = Duration::from_secs(30);
const REFUSED: Duration = Duration::from_secs(300);
const BUSY: Duration = Duration::from_secs(30);
/// When it is tried again to remove a vector store.
const FAILED: Duration = Duration::from_secs(5);
/// How often something that is gone there is made again at once.
const MADE_AGAIN: i64 = 2;
/// The longest wait that the service may ask for.
const LONGEST: Duration = Duration::from_secs(3_600);
/// How long a clock is ahead at most before it is put right. What was asked for by one that was ahead is looked for among what the service
/// has of so long, and made again where it is older: a list of everything may be longer than can be read.
const MOST_AHEAD: Duration = Duration::from_secs(24 * 3_600);

/// Brings the files of a partner to its vector stores, and removes them there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SyncFiles {
    /// The partner; `None`: what those have left that are gone.
    pub partner: Option<String>,
}

impl Job for SyncFiles {
    type State = Bases;

    const KIND: &'static str = "bases.vectorstore";

    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    /// They wait for the service.
    const AT_ONCE: usize = 4;

    fn dedup_key(&self) -> Option<String> {
        Some(self.partner.clone().unwrap_or_default())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    /// It is queued again after a while.
    async fn give_up(self, _bases: Bases, _run: Run, _why: GivenUp) -> anyhow::Result<()> {
        Ok(())
    }
}

impl SyncFiles {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let db = bases.store.db();
        let Some(service) = &bases.vectorstore else {
            return Ok(RunResult::Done);
        };
        let owner = self.partner.as_deref();
        let settings = self.settings(bases).await?;
        let rate = settings.vectorstore_sync_requests_per_minute;
        let rate = rate.map_or(bases.config.vectorstore.requests_per_minute, u32::from);
        let sync = Sync {
            bases,
            run,
            service,
            pace: Pace::new(rate),
            making: Mutex::default(),
            begun: bases.clock.instant(),
            is_interrupted: AtomicBool::new(false),
        };
        let (now, latest) = (bases.clock.now_ms(), bases.kernel.latest_now_ms().await?);
        let times = BroughtBack {
            latest,
            longest: latest.saturating_add(milliseconds(LONGEST)),
            asked_at: now - milliseconds(MOST_AHEAD),
            settled_at: now + SETTLES_MS,
        };
        store::bring_sync_back(db, owner, now, times).await?;
        if let Some(until) = store::held_until(db, owner).await? {
            let wait = until.saturating_sub(bases.clock.now_ms());
            if wait > 0 {
                return Ok(RunResult::Again(Duration::from_millis(wait.unsigned_abs())));
            }
        }
        while !sync.is_over() {
            let only_removals = !self.settings(bases).await?.is_vectorstore_sync_enabled();
            let now = bases.clock.now_ms();
            let files = store::due_files(db, owner, only_removals, now, PAGE).await?;
            if files.is_empty() {
                return sync.finish(owner, only_removals).await;
            }
            match sync.advance_all(owner, files).await? {
                Progress::Made => {}
                Progress::Lost => return Ok(RunResult::Done),
                Progress::Held(ended) => return Ok(ended),
            }
        }
        Ok(RunResult::Again(Duration::ZERO))
    }

    /// What is switched for the partner, if it is there.
    async fn settings(&self, bases: &Bases) -> anyhow::Result<PartnerSettings> {
        let Some(partner) = &self.partner else {
            return Ok(PartnerSettings::default());
        };
        let settings = partners::settings(bases.store.db(), &Tenant::of_row(partner)).await?;
        Ok(settings.unwrap_or_default())
    }
}

/// What came of some files.
enum Progress {
    /// Whatever could be done.
    Made,
    /// Nothing can be asked for a while, and the run ends.
    Held(RunResult),
    /// Another run has the job.
    Lost,
}

/// When a step that failed is tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// Nothing else would come of it.
    Never,
    /// At once, the first times.
    AtOnce,
    /// After a while.
    Later,
}

/// Why nothing of a run goes on.
enum Interruption {
    /// The service cannot be used now.
    Later(Duration, String),
    Own(anyhow::Error),
    Lost,
}

impl Sync<'_> {
    /// Whether others have their turn now.
    fn is_over(&self) -> bool {
        let now = self.bases.clock.instant();
        now.saturating_duration_since(self.begun) >= RUN_FOR
    }

    /// Brings files as far as they get now.
    async fn advance_all(
        &self,
        owner: Option<&str>,
        files: Vec<SyncedFile>,
    ) -> anyhow::Result<Progress> {
        let mut of_bases: Vec<String> = files.iter().map(|file| file.base_id.clone()).collect();
        of_bases.sort_unstable();
        of_bases.dedup();
        let mut ended = stream::iter(files)
            .map(|file| self.advance(file))
            .buffer_unordered(AT_ONCE);
        let mut interruption = None;
        while let Some(result) = ended.next().await {
            interruption = interruption.or(result.err());
        }
        let (progress, error) = match interruption {
            None => (Progress::Made, None),
            Some(Interruption::Lost) => return Ok(Progress::Lost),
            Some(Interruption::Own(error)) => return Err(error),
            Some(Interruption::Later(wait, reason)) => {
                // Before people are told of the reason: what they change ends the wait.
                let ended = self.hold(owner, wait).await?;
                (Progress::Held(ended), Some(reason))
            }
        };
        for base in of_bases {
            store::set_vectorstore_error(self.bases.store.db(), &base, error.as_deref()).await?;
        }
        Ok(progress)
    }

    /// Ends a run, after which nothing is asked for a while, whatever is queued meanwhile.
    async fn hold(&self, owner: Option<&str>, wait: Duration) -> anyhow::Result<RunResult> {
        let until = self.bases.clock.now_ms().saturating_add(milliseconds(wait));
        store::hold(self.bases.store.db(), owner, Some(until)).await?;
        Ok(RunResult::Again(wait))
    }

    /// Ends a run in which nothing is due: vector stores go that have no files any more.
    async fn finish(&self, owner: Option<&str>, only_removals: bool) -> anyhow::Result<RunResult> {
        let db = self.bases.store.db();
        let mut next = store::next_due(db, owner, only_removals).await?;
        for store in store::empty_vectorstores(db, owner).await? {
            let again = match self.remove_vectorstore(&store).await {
                Ok(()) | Err(StepFailure::Gone(_)) => continue,
                Err(StepFailure::Lost) => return Ok(RunResult::Done),
                Err(StepFailure::Own(error)) => return Err(error),
                Err(StepFailure::Unsettled(until)) => until,
                Err(StepFailure::Service(error)) => match wait_of(&error) {
                    Some(wait) => return self.hold(owner, wait).await,
                    None => self.bases.clock.now_ms() + milliseconds(FAILED),
                },
            };
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        let Some(next) = next else {
            return Ok(RunResult::Done);
        };
        let wait = next.saturating_sub(self.bases.clock.now_ms()).max(0);
        Ok(RunResult::Again(Duration::from_millis(wait.unsigned_abs())))
    }

    /// Brings a file as far as it gets now.
    async fn advance(&self, mut file: SyncedFile) -> Result<(), Interruption> {
        if self.is_interrupted.load(Ordering::Relaxed) || self.is_over() {
            return Ok(());
        }
        let ended = self.steps(&mut file).await;
        let ended = match ended {
            Ok(()) => return Ok(()),
            Err(StepFailure::Unsettled(until)) => self.defer(&file, until).await,
            Err(StepFailure::Service(error)) => match wait_of(&error) {
                Some(wait) => {
                    // Others come first then: it may be this file after all.
                    let until = self.bases.clock.now_ms() + milliseconds(wait) + 1;
                    let deferred = self.defer(&file, until).await;
                    deferred.and(Err(Interruption::Later(wait, reason(&error))))
                }
                None => {
                    let retry = match error.kind {
                        ProviderErrorKind::Rejected => Retry::Never,
                        _ => Retry::Later,
                    };
                    self.fail(&file, &reason(&error), retry).await
                }
            },
            Err(StepFailure::Gone(what)) => self.fail(&file, what, Retry::AtOnce).await,
            Err(StepFailure::Own(error)) => Err(Interruption::Own(error)),
            Err(StepFailure::Lost) => Err(Interruption::Lost),
        };
        if ended.is_err() {
            self.is_interrupted.store(true, Ordering::Relaxed);
        }
        ended
    }

    async fn defer(&self, file: &SyncedFile, until: i64) -> Result<(), Interruption> {
        store::defer_file(self.bases.store.db(), &file.id, until)
            .await
            .map_err(|error| Interruption::Own(error.into()))
    }

    /// Notes that a step of a file failed.
    async fn fail(
        &self,
        file: &SyncedFile,
        reason: &str,
        retry: Retry,
    ) -> Result<(), Interruption> {
        let (db, attempts) = (self.bases.store.db(), file.attempts + 1);
        let is_final = retry == Retry::Never || attempts >= ATTEMPTS;
        let wait = match retry {
            Retry::AtOnce if attempts <= MADE_AGAIN => Duration::ZERO,
            _ => TRY_AGAIN.wait(u32::try_from(attempts).unwrap_or(u32::MAX)),
        };
        let next = self.bases.clock.now_ms().saturating_add(milliseconds(wait));
        // What is to be removed is tried for ever.
        let next = (!is_final || file.state == FileState::Removing).then_some(next);
        store::fail_file(db, &file.id, attempts, next, reason)
            .await
            .map_err(|error| Interruption::Own(error.into()))
    }
}

/// When it is tried again, for a failure that says nothing about a file.
fn wait_of(error: &ProviderError) -> Option<Duration> {
    let status = error.told.as_ref().and_then(|told| told.status);
    let wait = match error.kind {
        // What stands before the service is there, and the service is not.
        ProviderErrorKind::Failed if matches!(status, Some(502..=504)) => {
            error.retry_after.unwrap_or(UNREACHABLE)
        }
        // No money left, or not such a service.
        ProviderErrorKind::Rejected if matches!(status, Some(402 | 404 | 405)) => REFUSED,
        ProviderErrorKind::RateLimited => error.retry_after.unwrap_or(BUSY),
        ProviderErrorKind::Connect | ProviderErrorKind::Busy | ProviderErrorKind::Resting => {
            UNREACHABLE
        }
        ProviderErrorKind::Misconfigured => REFUSED,
        _ => return None,
    };
    Some(wait.clamp(LOOK_FIRST, LONGEST))
}

/// What people are told of a failure.
fn reason(error: &ProviderError) -> String {
    format!("the vector store: {}", error.message)
}
