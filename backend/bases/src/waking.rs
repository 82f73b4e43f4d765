//! How documents and channels that wait for room in a budget go on.
//!
//! Whatever makes room (a limit that is raised, a text that goes, a request that used less than its bound) queues the job [`Wake`] in its
//! own transaction, under the lock under which documents are put to wait, so none of them misses it. The job looks at the documents
//! that wait, oldest first, and queues those again for whose next step there is room now: as many as fit together, not all of
//! them. What is decided in the end is decided when they ask.

use std::time::Duration;

use colloquy_accounts::Tenant;
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_store::{Executor, StoreError, Transaction};
use serde::{Deserialize, Serialize};

use super::{
    Bases,
    admission::UsageBound,
    budget::{BudgetChange, BudgetState},
    channel::{self, ChannelStatus},
    digitizing::Digitize,
    document::Step,
    embedding::Embed,
    outage,
    rewriting::Rewrite,
    store::{self, BlockedDocument, DocumentPlace},
};

/// When it is looked again, while what was queued may not take the room that another document would have found.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How many documents are looked at together.
const PAGE: i64 = 200;

/// Has the documents of a base that wait for room looked at, in the transaction that makes room.
pub(crate) async fn wake(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    base: &str,
) -> Result<(), StoreError> {
    let waits = store::has_blocked(transaction, base).await?
        || !store::blocked_channels(transaction, base).await?.is_empty();
    if !waits {
        return Ok(());
    }
    let job = Wake {
        base: base.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await
}

/// Lets documents of a base go on for which there is room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wake {
    /// The base's id.
    pub base: String,
}

impl Job for Wake {
    type State = Bases;

    const KIND: &'static str = "bases.wake";

    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(60),
    };

    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.base.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    async fn give_up(self, _bases: Bases, _run: Run, _why: GivenUp) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Wake {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let (mut waiting, mut has_skipped) = (Waiting::default(), false);
        loop {
            let transaction = bases.store.begin().await?;
            let base = &self.base;
            let Some(state) = BudgetState::lock(&transaction, base).await? else {
                return Ok(RunResult::Done);
            };
            if !run.holds(&transaction).await? {
                return Ok(RunResult::Done);
            }
            let Some(tenant) = store::tenant_of(&transaction, base).await? else {
                return Ok(RunResult::Done);
            };
            let characters = store::count_characters(&transaction, base, None).await?;
            for folder in scannable(bases, &transaction, base, &state, characters).await? {
                let status = ChannelStatus::Pending;
                store::set_channel_status(&transaction, &folder, status, None).await?;
                channel::queue(bases, &transaction, &tenant, &folder).await?;
            }
            for (document, goes_on) in waiting.next(&transaction, base, &state, characters).await? {
                if goes_on {
                    queue(bases, &transaction, &tenant, &document).await?;
                } else {
                    has_skipped |= Planned::default().takes(&state, characters, &document);
                }
            }
            transaction.commit().await?;
            bases.kernel.jobs.wake();
            if waiting.is_end {
                return Ok(match has_skipped {
                    true => RunResult::Again(LOOK_AGAIN),
                    false => RunResult::Done,
                });
            }
        }
    }
}

/// Returns the channels of a base that wait, if its budget has capacity for them.
async fn scannable(
    bases: &Bases,
    db: &impl Executor,
    base: &str,
    state: &BudgetState,
    characters: u64,
) -> Result<Vec<String>, StoreError> {
    match channel::has_headroom(bases, state, characters) {
        true => store::blocked_channels(db, base).await,
        false => Ok(Vec::new()),
    }
}

/// The documents of a base that wait, oldest first, read in pages.
struct Waiting {
    after: DocumentPlace,
    planned: Planned,
    /// True once no documents follow.
    is_end: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            after: DocumentPlace::first(),
            planned: Planned::default(),
            is_end: false,
        }
    }
}

impl Waiting {
    /// Returns the next documents, each with true if a budget has capacity for it beside those before it.
    async fn next(
        &mut self,
        db: &impl Executor,
        base: &str,
        state: &BudgetState,
        characters: u64,
    ) -> Result<Vec<(BlockedDocument, bool)>, StoreError> {
        let blocked = store::blocked_documents(db, base, &self.after, PAGE).await?;
        self.is_end = (blocked.len() as i64) < PAGE;
        if let Some(last) = blocked.last() {
            self.after = DocumentPlace {
                created_at: last.created_at,
                id: last.id.clone(),
            };
        }
        let plan = |document: BlockedDocument| {
            let goes_on = self.planned.takes(state, characters, &document);
            (document, goes_on)
        };
        Ok(blocked.into_iter().map(plan).collect())
    }
}

/// What a budget would wake at once.
#[derive(Debug, Default)]
pub(crate) struct WakePlan {
    /// Documents that would be queued.
    pub(crate) documents: u64,
    /// The first [`MOST_NAMED`] of them, oldest first.
    pub(crate) document_ids: Vec<String>,
    /// Characters of their texts that wait to be accepted.
    pub(crate) characters: u64,
    /// The most tokens of the next request of each, without those that are unbounded.
    pub(crate) tokens: u64,
    /// The most units of 1e-8 dollars of the next request of each, without those that are unbounded.
    pub(crate) cost: u64,
    /// Those of them whose next request has no known bound: two steps wait, or the model had no price.
    pub(crate) unbounded: u64,
    /// Channels that would be scanned.
    pub(crate) channels: usize,
    /// Documents that would still wait.
    pub(crate) still_blocked: u64,
    /// False if more documents wait than were looked at.
    pub(crate) complete: bool,
}

/// The most documents that a [`WakePlan`] looks at.
const MOST_PLANNED: u64 = 10_000;
/// The most documents that a [`WakePlan`] names.
const MOST_NAMED: usize = 100;

/// Returns what [`Wake`] would queue at once if the limits of a base changed, or `None` if there is no such base.
pub(crate) async fn plan(
    bases: &Bases,
    base: &str,
    change: BudgetChange,
) -> Result<Option<WakePlan>, StoreError> {
    let db = bases.store.db();
    let Some(state) = BudgetState::read(db, base).await? else {
        return Ok(None);
    };
    let state = state.with_limits(change);
    let characters = store::count_characters(db, base, None).await?;
    let (mut plan, mut waiting) = (WakePlan::default(), Waiting::default());
    let channels = scannable(bases, db, base, &state, characters).await?;
    plan.channels = channels.len();
    while !waiting.is_end && plan.documents + plan.still_blocked < MOST_PLANNED {
        for (document, goes_on) in waiting.next(db, base, &state, characters).await? {
            if !goes_on {
                plan.still_blocked += 1;
                continue;
            }
            plan.documents += 1;
            if plan.document_ids.len() < MOST_NAMED {
                plan.document_ids.push(document.id);
            }
        }
    }
    plan.complete = waiting.is_end || {
        let more = store::blocked_documents(db, base, &waiting.after, 1).await?;
        more.is_empty()
    };
    let planned = waiting.planned;
    plan.characters = planned.characters;
    plan.tokens = planned.bound.tokens.unwrap_or_default();
    plan.cost = planned.bound.cost.unwrap_or_default();
    plan.unbounded = planned.unbounded;
    Ok(Some(plan))
}

/// Looks at all that waits when a server starts: its settings may know prices that were not known.
pub(crate) async fn wake_all(bases: &Bases) -> Result<(), StoreError> {
    for (base, tenant) in store::waiting_bases(bases.store.db()).await? {
        let transaction = bases.store.begin().await?;
        wake(bases, &transaction, &tenant, &base).await?;
        transaction.commit().await?;
    }
    bases.kernel.jobs.wake();
    Ok(())
}

/// What the documents need together that were queued again.
#[derive(Debug, Default)]
struct Planned {
    bound: UsageBound,
    characters: u64,
    /// Those of the texts that theirs replace.
    replaced: u64,
    /// Documents of which it is not known.
    unbounded: u64,
}

impl Planned {
    /// Whether there is room for this document beside them, which it takes.
    fn takes(&mut self, state: &BudgetState, characters: u64, document: &BlockedDocument) -> bool {
        let number = |number: Option<i64>| number.map(i64::unsigned_abs);
        let steps = [document.digitizing, document.rewriting, document.embedding];
        let blocked = steps.iter().filter(|step| **step == Step::Blocked);
        if blocked.count() > 1 {
            // What they need is not known of each; they ask again.
            self.unbounded += 1;
            return true;
        }
        if let Some(needed) = number(document.needed_characters) {
            let limit = number(document.character_limit);
            let own = number(document.own_characters).unwrap_or_default();
            let others = (characters + self.characters).saturating_sub(self.replaced + own);
            if state.room_for_text(needed, others, limit).is_err() {
                return false;
            }
            self.characters += needed;
            self.replaced += own;
            return true;
        }
        let bound = UsageBound {
            counts_tokens: document.digitizing != Step::Blocked,
            tokens: number(document.needed_tokens),
            seconds: None,
            cost: number(document.needed_cost),
        };
        if bound.cost.is_none() {
            // There may be a price now.
            self.unbounded += 1;
            return true;
        }
        if state.after(&self.bound).room_for(&bound).is_err() {
            return false;
        }
        let sum = |one: Option<u64>, other: Option<u64>| {
            Some(
                one.unwrap_or_default()
                    .saturating_add(other.unwrap_or_default()),
            )
        };
        self.bound.tokens = sum(self.bound.tokens, bound.tokens);
        self.bound.cost = sum(self.bound.cost, bound.cost);
        true
    }
}

/// Queues the steps of a document again that wait.
async fn queue(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &BlockedDocument,
) -> Result<(), StoreError> {
    let (id, partner, now) = (&document.id, Some(tenant.partner()), bases.clock.now_ms());
    let of = || id.clone();
    if document.digitizing == Step::Blocked {
        let job = Digitize { document: of() };
        jobs::enqueue(bases, transaction, partner, &job).await?;
    }
    if document.rewriting == Step::Blocked {
        let job = Rewrite { document: of() };
        jobs::enqueue(bases, transaction, partner, &job).await?;
    }
    if document.embedding == Step::Blocked {
        let job = Embed { document: of() };
        jobs::enqueue(bases, transaction, partner, &job).await?;
    }
    // After its jobs, as these do it.
    store::unblock(transaction, id, now).await
}
