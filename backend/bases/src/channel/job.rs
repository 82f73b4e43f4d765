//! The job that looks through a channel.

use std::time::Duration;

use colloquy_accounts::storage::StorageLimitReached;
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::NoRoom;
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_store::{StoreError, Transaction};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::{
    Channel, ChannelAddress, ChannelStatus, Import,
    address::video_url,
    discovery::{ByProgram, ChannelDiscovery as _, DiscoveryFailure, ListedVideo, Listing},
    documents_of, has_headroom, scan_bound,
};
use crate::{
    Bases,
    admission::{self, Admission, PaidRequest, PaidStep, Payer, Subject, UsageOutcome, Used},
    budget::{self, BudgetState},
    error::BaseError,
    outage, rows,
    store::{self, OwnedChannel, VideoState, Whole},
    video::YtDlp,
};

/// How often it is tried while the platform cannot be reached, before it waits for longer.
const ATTEMPTS: u32 = 5;
/// How long after a scan the next one is, and after one that failed.
const SCAN_EVERY: Duration = Duration::from_secs(24 * 3_600);
const SCAN_AGAIN: Duration = Duration::from_secs(3_600);
/// Scans are spread over so much more, so that channels that were added together are not all looked through at once.
const SPREAD: Duration = Duration::from_secs(1_800);
/// How many videos are noted in a transaction.
const SEEN_AT_ONCE: usize = 500;

/// Looks through a channel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Discover {
    /// The id of the folder that follows it.
    pub folder: String,
}

impl Job for Discover {
    type State = Bases;

    const KIND: &'static str = "bases.discover";

    const RETRY: RetryRule = RetryRule {
        // The last one does not fail.
        attempts: ATTEMPTS + 1,
        first: Duration::from_secs(10),
        most: Duration::from_secs(600),
    };

    /// They wait for the platform.
    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.folder.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    /// It is looked through again in an hour, or when somebody wants it: its process may have ended for another reason.
    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        let reason = match why {
            GivenUp::Failed => {
                "the channel could not be looked through; it was tried several times"
            }
            GivenUp::Died => "looking through the channel ended the server's process",
        };
        let status = ChannelStatus::Error;
        let Some(transaction) = self.begin_ending(&bases).await? else {
            return Ok(());
        };
        store::end_scan(&transaction, &self.folder, status, Some(reason)).await?;
        self.schedule(&bases, &transaction, spread(SCAN_AGAIN), false)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// A while, and a part of the spread.
fn spread(wait: Duration) -> Duration {
    wait + rand::rng().random_range(Duration::ZERO..SPREAD)
}

/// Whether a scan begins.
enum Begun {
    Now,
    /// It is not due before so long.
    Later(Duration),
    /// Nobody wants it, or the base has no room, which wakes it.
    Never,
}

/// Outcome of noting videos.
#[derive(Debug, Clone, Copy)]
enum Noted {
    /// All of them are noted.
    All,
    /// Number of leading videos whose rows fit; the partner has room for no more.
    Fitting(usize, StorageLimitReached),
    /// Nothing is noted: the job is another run's.
    Lost,
}

/// The longest that a channel is left alone.
pub(super) const LONGEST_REST: Duration = SCAN_EVERY.saturating_add(SPREAD);

/// How long a channel that was looked through is left alone: a process that died between the end of a scan and that of its job has the
/// job run again. A time beyond that comes from a clock that was ahead.
fn not_due(channel: &Channel, now: i64) -> Option<Duration> {
    let has_ended = match channel.status {
        ChannelStatus::Synced | ChannelStatus::Incomplete | ChannelStatus::Error => true,
        ChannelStatus::Pending
        | ChannelStatus::Syncing
        | ChannelStatus::BudgetBlocked
        | ChannelStatus::Paused
        | ChannelStatus::Duplicate => false,
    };
    let wait = u64::try_from(channel.next_sync_at?.checked_sub(now)?).ok()?;
    let wait = Duration::from_millis(wait);
    (has_ended && !wait.is_zero() && wait <= LONGEST_REST).then_some(wait)
}

/// What becomes of the job.
fn again(next: Option<Duration>) -> RunResult {
    next.map_or(RunResult::Done, RunResult::Again)
}

impl Discover {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let db = bases.store.db();
        let Some(owned) = store::load_channel(db, &self.folder).await? else {
            self.rest(bases).await?;
            return Ok(RunResult::Done);
        };
        if !owned.channel.enabled {
            return Ok(RunResult::Done);
        }
        match self.begin(bases, run, &owned).await? {
            Begun::Now => {}
            Begun::Later(wait) => return Ok(RunResult::Again(wait)),
            Begun::Never => return Ok(RunResult::Done),
        }
        let payer = Payer {
            tenant: owned.tenant(),
            base: &owned.base_id,
            subject: Subject::Channel(&self.folder),
        };
        let bound = scan_bound(bases);
        let request = PaidRequest {
            step: PaidStep::Discover,
            model: "yt-dlp",
            is_local: true,
            bound,
        };
        let Ok(admission) = admission::admit(bases, payer, request).await? else {
            return Ok(RunResult::Done);
        };
        let claim = Claim::new(Priority::Background, owned.tenant().partner().as_str());
        let settings = &bases.config.knowledge;
        let discovery = ByProgram(YtDlp::new(settings, &bases.sandbox, &bases.fetcher, claim));
        let found = discovery.discover(&address(&owned.channel)).await;
        let used = Used {
            tokens: None,
            seconds: None,
            cost: bound.cost,
        };
        let failure = match found {
            Ok(listing) => {
                // It is charged as the last of what it found is stored: a process that dies before has to look again.
                return self
                    .store(bases, run, &owned, &listing, admission, used)
                    .await;
            }
            Err(failure) => failure,
        };
        let (outcome, used) = (UsageOutcome::Fault, Used::nothing());
        admission.settle(outcome, used).await?;
        let reason = match failure {
            DiscoveryFailure::Later(reason) if run.attempt < ATTEMPTS => {
                self.note_retry(bases, run, &owned, &reason).await?;
                return Err(anyhow::anyhow!(reason));
            }
            failure => failure.to_string(),
        };
        let (reason, owned) = (reason.as_str(), &owned);
        let next = run.insist(bases, || async move {
            let Some(transaction) = self.begin_noting(bases, run, owned).await? else {
                return Ok(None);
            };
            let next = self.fail(bases, &transaction, reason).await?;
            transaction.commit().await?;
            Ok(next)
        });
        Ok(again(next.await?))
    }

    /// Notes that nobody looks through a channel whose folder is being deleted.
    async fn rest(&self, bases: &Bases) -> Result<(), StoreError> {
        let Some(transaction) = self.begin_ending(bases).await? else {
            return Ok(());
        };
        store::rest_channel(&transaction, &self.folder).await?;
        transaction.commit().await
    }

    /// Begins a transaction with the budget of the folder's base; returns `None` if the folder is gone. Whoever deletes the folder changes it before its
    /// channel, and a change of either locks the row in which the changes of the folder are recorded.
    async fn begin_ending(&self, bases: &Bases) -> Result<Option<Transaction>, StoreError> {
        let base = store::base_with(bases.store.db(), Whole::Folder, &self.folder).await?;
        match base {
            Some(base) => Ok(Some(budget::begin(bases, &base).await?)),
            None => Ok(None),
        }
    }

    /// Notes that it is being looked through, unless the base has no room for what it brings, which then wakes it.
    async fn begin(&self, bases: &Bases, run: &Run, owned: &OwnedChannel) -> anyhow::Result<Begun> {
        let transaction = bases.store.begin().await?;
        let Some(state) = BudgetState::lock(&transaction, &owned.base_id).await? else {
            return Ok(Begun::Never);
        };
        let found = store::load_channel(&transaction, &self.folder).await?;
        let channel = found.map(|it| it.channel).filter(|it| it.enabled);
        let (true, Some(channel)) = (run.holds(&transaction).await?, channel) else {
            return Ok(Begun::Never);
        };
        if let Some(wait) = not_due(&channel, bases.clock.now_ms()) {
            return Ok(Begun::Later(wait));
        }
        let characters = store::count_characters(&transaction, &owned.base_id, None).await?;
        let has_room = has_headroom(bases, &state, characters);
        let status = match has_room {
            true => ChannelStatus::Syncing,
            false => ChannelStatus::BudgetBlocked,
        };
        // The reason of the attempt before stays until this one has succeeded.
        let reason = channel.last_error.as_deref();
        let reason = reason.filter(|_| has_room && run.attempt > 1);
        store::set_channel_status(&transaction, &self.folder, status, reason).await?;
        transaction.commit().await?;
        Ok(match has_room {
            true => Begun::Now,
            false => Begun::Never,
        })
    }

    /// Notes why an attempt failed that another one follows, unless somebody has paused it.
    async fn note_retry(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedChannel,
        reason: &str,
    ) -> anyhow::Result<()> {
        let Some(transaction) = self.begin_noting(bases, run, owned).await? else {
            return Ok(());
        };
        let (status, error) = (ChannelStatus::Syncing, Some(reason));
        store::finish_scan(&transaction, &self.folder, status, error).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Notes why it was not looked through. In how long it is tried again, unless somebody has paused it.
    async fn fail(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        reason: &str,
    ) -> Result<Option<Duration>, StoreError> {
        let (folder, error) = (&self.folder, Some(reason));
        if !store::finish_scan(transaction, folder, ChannelStatus::Error, error).await? {
            return Ok(None);
        }
        let next = spread(SCAN_AGAIN);
        self.schedule(bases, transaction, next, false).await?;
        Ok(Some(next))
    }

    /// Notes when it is looked through again.
    async fn schedule(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        next: Duration,
        is_complete: bool,
    ) -> Result<(), StoreError> {
        let now = bases.clock.now_ms();
        let last = is_complete.then_some(now);
        let next = now + i64::try_from(next.as_millis()).unwrap_or(i64::MAX);
        store::set_scan_times(transaction, &self.folder, last, next).await
    }

    /// Notes what was found, and charges the scan.
    async fn store(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedChannel,
        listing: &Listing,
        admission: Admission,
        used: Used,
    ) -> anyhow::Result<RunResult> {
        let (charge, outcome) = (&admission, UsageOutcome::Success);
        let is_it = run.insist(bases, || async move {
            let Some(transaction) = self.begin_noting(bases, run, owned).await? else {
                return Ok(None);
            };
            let is_it = self.identify(bases, &transaction, owned, listing).await?;
            if !is_it {
                charge.settle_in(&transaction, outcome, used).await?;
            }
            transaction.commit().await?;
            Ok(Some(is_it))
        });
        match is_it.await? {
            Some(true) => {}
            Some(false) => {
                admission.committed();
                return Ok(RunResult::Done);
            }
            None => {
                admission.settle(outcome, used).await?;
                return Ok(RunResult::Done);
            }
        }
        let full = match self.note(bases, run, owned, &listing.videos).await? {
            Noted::All => None,
            Noted::Fitting(_, why) => Some(why.to_string()),
            Noted::Lost => {
                admission.settle(outcome, used).await?;
                return Ok(RunResult::Done);
            }
        };
        let missing = full.as_deref().or(listing.missing.as_deref());
        let finished = run.insist(bases, || async move {
            let Some(transaction) = self.begin_noting(bases, run, owned).await? else {
                return Ok(None);
            };
            let next = self.finish(bases, &transaction, owned, missing).await?;
            charge.settle_in(&transaction, outcome, used).await?;
            transaction.commit().await?;
            Ok(Some(next))
        });
        let Some(next) = finished.await? else {
            admission.settle(outcome, used).await?;
            return Ok(RunResult::Done);
        };
        admission.committed();
        bases.kernel.jobs.wake();
        Ok(again(next))
    }

    /// Notes videos, some in a transaction, until the partner has no room for more.
    async fn note(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedChannel,
        videos: &[ListedVideo],
    ) -> anyhow::Result<Noted> {
        let placed: Vec<(i64, &ListedVideo)> = (0..).zip(videos).collect();
        let (mut noted, mut most) = (0, SEEN_AT_ONCE);
        while noted < placed.len() {
            let end = placed.len().min(noted + most);
            let videos = &placed[noted..end];
            let ended = run.insist(bases, || async move {
                let Some(transaction) = self.begin_noting(bases, run, owned).await? else {
                    return Ok(Noted::Lost);
                };
                let ended = self.see(bases, &transaction, owned, videos).await?;
                if matches!(ended, Noted::All) {
                    transaction.commit().await?;
                }
                Ok(ended)
            });
            match ended.await? {
                Noted::All => (noted, most) = (end, SEEN_AT_ONCE),
                Noted::Fitting(0, why) => return Ok(Noted::Fitting(noted, why)),
                // The transaction has the rows that were refused: the videos before them are noted by another one.
                Noted::Fitting(fitting, _) => most = fitting,
                Noted::Lost => return Ok(Noted::Lost),
            }
        }
        Ok(Noted::All)
    }

    /// A transaction of whoever still holds the job. Another folder's scan does not come between.
    async fn begin_noting(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedChannel,
    ) -> Result<Option<Transaction>, StoreError> {
        let transaction = budget::begin(bases, &owned.base_id).await?;
        let holds = run.holds(&transaction).await?;
        Ok(holds.then_some(transaction))
    }

    /// Whether it is the channel that is followed, and nobody else follows it. If not, nothing of it is imported, and it says why.
    async fn identify(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        owned: &OwnedChannel,
        listing: &Listing,
    ) -> Result<bool, StoreError> {
        let (folder, found) = (&self.folder, &listing.channel_ids);
        let known = owned.channel.channel_id.as_ref();
        let other = match known {
            Some(known) => found.iter().find(|id| *id != known),
            None => found.get(1),
        };
        if let Some(other) = other {
            let reason = format!(
                "the address leads to another channel now ({other}); nothing of it is imported"
            );
            store::set_channel_enabled(transaction, folder, false).await?;
            let status = ChannelStatus::Paused;
            store::end_scan(transaction, folder, status, Some(&reason)).await?;
            return Ok(false);
        }
        let Some(found) = found.first() else {
            if known.is_none() || listing.videos.is_empty() {
                return Ok(true);
            }
            let reason =
                "the platform does not say whose videos these are; none of them is imported";
            let status = ChannelStatus::Error;
            store::end_scan(transaction, folder, status, Some(reason)).await?;
            self.schedule(bases, transaction, spread(SCAN_EVERY), false)
                .await?;
            return Ok(false);
        };
        let base = &owned.base_id;
        if let Some(other) = store::channel_owner(transaction, base, folder, found).await? {
            store::set_duplicate_of(transaction, folder, &other, found).await?;
            let status = ChannelStatus::Duplicate;
            let reason = "another folder of the knowledge base follows the same channel";
            store::end_scan(transaction, folder, status, Some(reason)).await?;
            return Ok(false);
        }
        store::set_channel_id(transaction, folder, found).await?;
        Ok(true)
    }

    /// Notes some videos, and charges the rows of those that are new. The transaction is to be committed if all of them are noted.
    async fn see(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        owned: &OwnedChannel,
        videos: &[(i64, &ListedVideo)],
    ) -> anyhow::Result<Noted> {
        let documents = documents_of(transaction, &owned.base_id).await?;
        let now = bases.clock.now_ms();
        let mut new = Vec::new();
        for (index, (place, video)) in videos.iter().enumerate() {
            let document = documents.get(&video.id).map(String::as_str);
            let state = match document {
                Some(_) => VideoState::Duplicate,
                None if video.is_live => VideoState::Deferred,
                None => VideoState::Pending,
            };
            let seen = store::SeenVideo {
                channel: &self.folder,
                video: &video.id,
                url: &video_url(&video.id),
                title: &video.title,
                state,
                document,
                place: *place,
            };
            if store::see_video(transaction, &seen, now).await? {
                new.push(index);
            }
        }
        if new.is_empty() {
            return Ok(Noted::All);
        }
        let bytes = rows::VIDEO_BYTES * new.len() as u64;
        match rows::charge(bases, transaction, &owned.tenant(), bytes).await {
            Ok(()) => Ok(Noted::All),
            Err(BaseError::NoRoom(NoRoom::Partner(reached))) => {
                let room = reached.limit.saturating_sub(reached.used) / rows::VIDEO_BYTES;
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                let fitting = new.get(room).copied().unwrap_or_default();
                Ok(Noted::Fitting(fitting, reached))
            }
            Err(BaseError::Store(error)) => Err(error.into()),
            Err(other) => Err(other.into()),
        }
    }

    /// Notes that it was looked through, and has what is new imported. In how long it is looked through again, if it is.
    async fn finish(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        owned: &OwnedChannel,
        missing: Option<&str>,
    ) -> Result<Option<Duration>, StoreError> {
        let folder = &self.folder;
        let status = match missing {
            None => ChannelStatus::Synced,
            Some(_) => ChannelStatus::Incomplete,
        };
        if !store::finish_scan(transaction, folder, status, missing).await? {
            return Ok(None);
        }
        let (next, is_complete) = (spread(SCAN_EVERY), status == ChannelStatus::Synced);
        self.schedule(bases, transaction, next, is_complete).await?;
        let import = Import {
            folder: folder.clone(),
        };
        let tenant = owned.tenant();
        jobs::enqueue(bases, transaction, Some(tenant.partner()), &import).await?;
        Ok(Some(next))
    }
}

/// Where a channel is: by what the platform calls it, once that is known.
fn address(channel: &Channel) -> ChannelAddress {
    match &channel.channel_id {
        Some(id) => ChannelAddress::of_id(id),
        None => ChannelAddress::of_stored(channel.alias.clone()),
    }
}
