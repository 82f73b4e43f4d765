//! Admission: the one way to whatever costs something.
//!
//! Whoever asks a service for a document (to rewrite, to embed, to transcribe) is admitted before with the most that it may use
//! ([`admit`]), and settles after with what it used ([`Admission::settle`]). Both are stored, a row for each request to a service, in the
//! transactions in which the base's [budget] reserves the bound and settles it. Where the budget has no room, the document
//! says so in that same transaction, and waits.
//!
//! A process that dies between the two leaves a row without an end. What its own models had computed is nothing to pay for; of everything
//! else nobody knows what became of it ([`UsageOutcome::Uncertain`]): its bound stays reserved, and bases with limits spend nothing more
//! until an administrator decides what it is taken for ([`decide`]), or somebody lifts these. A process that was taken for dead and was
//! only cut off settles late: what it used counts then, once, also where its own request had been taken back.

use std::mem;

use colloquy_accounts::{
    Tenant,
    ledger::{self, Amounts, DetachedUsage, LedgerError, Measure, Outcome, UsageContext},
    quotas::QuotaUnusable,
};
use colloquy_kernel::node;
use colloquy_providers::{ProviderError, ProviderErrorKind, TokenUsage};
use colloquy_store::{StoreError, Transaction, stored};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Bases,
    budget::{self, BudgetState},
    channel::ChannelStatus,
    outage,
    store::{self, Needed, OwnedDocument},
    waking,
};

/// How many requests are decided about in a transaction.
const DECIDED_AT_ONCE: usize = 200;

/// What a service is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PaidStep {
    /// To rewrite a section.
    Rewrite,
    /// To make vectors of chunks.
    Embed,
    /// To write down what is said in a part of a recording.
    Transcribe,
    /// To list the videos of a channel.
    Discover,
}

stored!(pub(crate) PaidStep: Rewrite = "rewrite", Embed = "embed", Transcribe = "transcribe", Discover = "discover");

impl PaidStep {
    /// What the records of usage call it.
    fn endpoint(self) -> &'static str {
        match self {
            Self::Rewrite => "knowledge.rewrite",
            Self::Embed => "knowledge.embed",
            Self::Transcribe => "knowledge.transcribe",
            Self::Discover => "knowledge.discover",
        }
    }
}

/// The most that a request may use, as far as that is known before it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageBound {
    /// Whether it uses tokens at all.
    pub(crate) counts_tokens: bool,
    /// Tokens that are read and written.
    pub(crate) tokens: Option<u64>,
    /// Seconds of sound.
    pub(crate) seconds: Option<u64>,
    /// In units of 1e-8 dollars.
    pub(crate) cost: Option<u64>,
}

impl UsageBound {
    /// What of it a budget counts.
    pub(crate) fn amounts(&self) -> Amounts {
        Amounts::default()
            .with(Measure::Tokens, self.tokens.unwrap_or_default())
            .with(Measure::Cost, self.cost.unwrap_or_default())
    }
}

/// What a request used. What is not known is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) tokens: Option<TokenUsage>,
    pub(crate) seconds: Option<u64>,
    /// In units of 1e-8 dollars.
    pub(crate) cost: Option<u64>,
}

impl Used {
    /// Nothing: it was refused.
    pub(crate) fn nothing() -> Self {
        Self {
            tokens: Some(TokenUsage::default()),
            seconds: Some(0),
            cost: Some(0),
        }
    }

    fn amounts(&self) -> Amounts {
        let tokens = self.tokens.unwrap_or_default();
        Amounts::tokens(tokens.input, tokens.output)
            .with(Measure::CachedTokens, tokens.cached)
            .with(Measure::ReasoningTokens, tokens.reasoning)
            .with(Measure::Cost, self.cost.unwrap_or_default())
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UsageOutcome {
    /// It was answered.
    Success,
    /// It was sent, and not answered as it should be.
    Fault,
    /// Nobody knows whether it was answered, and what that cost.
    Uncertain,
}

stored!(pub(crate) UsageOutcome: Success = "success", Fault = "fault", Uncertain = "uncertain");

impl UsageOutcome {
    /// What a request comes to that was sent and failed: whether its service did anything for it.
    pub(crate) fn of_failure(error: &ProviderError) -> (Self, Used) {
        use ProviderErrorKind as Kind;
        match error.kind {
            // It says itself that it did nothing.
            Kind::Rejected | Kind::RateLimited | Kind::Misconfigured => {
                (Self::Fault, Used::nothing())
            }
            _ => (Self::Uncertain, Used::default()),
        }
    }
}

/// What is to be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaidRequest<'a> {
    pub(crate) step: PaidStep,
    pub(crate) model: &'a str,
    /// Whether this server computes it.
    pub(crate) is_local: bool,
    pub(crate) bound: UsageBound,
}

/// What a request is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A document, by its id.
    Document(&'a str),
    /// A channel, by the id of its folder.
    Channel(&'a str),
}

/// Who pays for a request, and what for.
#[derive(Debug, Clone)]
pub(crate) struct Payer<'a> {
    pub(crate) tenant: Tenant,
    /// The base's id.
    pub(crate) base: &'a str,
    pub(crate) subject: Subject<'a>,
}

impl OwnedDocument {
    /// What is asked for the document its base pays for.
    pub(crate) fn payer(&self) -> Payer<'_> {
        Payer {
            tenant: self.tenant(),
            base: &self.base_id,
            subject: Subject::Document(&self.document.id),
        }
    }
}

/// A document waits for room in its base's budget, and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked;

/// A request that may be sent. It has to be settled, or withdrawn if it was not sent after all; when it is dropped, nobody knows what
/// became of it.
#[derive(Debug)]
#[must_use = "a request that is admitted is settled or withdrawn"]
pub(crate) struct Admission {
    bases: Bases,
    tenant: Tenant,
    base: String,
    id: String,
    /// The id of the document, or of the channel's folder.
    subject: String,
    step: PaidStep,
    model: String,
    bound: UsageBound,
    is_local: bool,
    is_open: bool,
    /// What is stored if this is dropped while it is open; `None` takes the request back.
    ended: Option<(UsageOutcome, Used)>,
}

/// Whether a request that failed so was never sent.
pub(crate) fn is_unsent(error: &ProviderError) -> bool {
    use ProviderErrorKind as Kind;
    matches!(error.kind, Kind::Connect | Kind::Busy | Kind::Resting)
}

/// Admits a request, or has what it is for wait for room.
///
/// # Errors
/// The database's failure: then nothing is to be sent.
pub(crate) async fn admit(
    bases: &Bases,
    payer: Payer<'_>,
    request: PaidRequest<'_>,
) -> Result<Result<Admission, Blocked>, StoreError> {
    let PaidRequest {
        step,
        model,
        is_local,
        bound,
    } = request;
    let base = payer.base;
    let (Subject::Document(subject) | Subject::Channel(subject)) = payer.subject;
    let (id, now) = (bases.clock.new_id().to_string(), bases.clock.now_ms());
    let transaction = bases.store.begin().await?;
    let state = BudgetState::lock(&transaction, base).await?;
    // Without a base there is nothing to work on; the next step finds that out.
    let room = state.map_or(Ok(()), |state| state.room_for(&bound));
    if let Err(why) = room {
        let needed = Needed {
            characters: None,
            tokens: bound.tokens,
            cost: bound.cost,
        };
        match payer.subject {
            Subject::Document(document) => {
                store::block(&transaction, document, step, &why, needed, now).await?;
            }
            Subject::Channel(folder) => {
                let (status, why) = (ChannelStatus::BudgetBlocked, why.to_string());
                store::set_channel_status(&transaction, folder, status, Some(&why)).await?;
            }
        }
        transaction.commit().await?;
        return Ok(Err(Blocked));
    }
    let mut admission = Admission {
        bases: bases.clone(),
        tenant: payer.tenant,
        base: base.to_owned(),
        id,
        subject: subject.to_owned(),
        step,
        model: model.to_owned(),
        bound,
        is_local,
        is_open: false,
        // What this server computes is nothing to pay for unless it was done.
        ended: (!is_local).then(|| (UsageOutcome::Uncertain, Used::default())),
    };
    let begun = admission.begin_in(&transaction, bound.amounts(), now);
    begun.await?.map_err(StoreError::other)?;
    transaction.commit().await?;
    admission.is_open = true;
    Ok(Ok(admission))
}

impl Admission {
    /// Stores what the request came to, however long the database is away. If this is broken off or fails, it is stored in the background.
    ///
    /// # Errors
    /// The database's failure, of a kind that does not pass.
    pub(crate) async fn settle(mut self, outcome: UsageOutcome, used: Used) -> anyhow::Result<()> {
        self.ended = Some((outcome, used));
        self.end().await?;
        self.is_open = false;
        Ok(())
    }

    /// Stores what the request came to in a transaction that holds the budget of its base, with what came of it.
    /// [`Self::committed`] follows the commit.
    ///
    /// # Errors
    /// The database's failure.
    pub(crate) async fn settle_in(
        &self,
        transaction: &Transaction,
        outcome: UsageOutcome,
        used: Used,
    ) -> Result<(), StoreError> {
        self.end_in(transaction, Some(&(outcome, used))).await
    }

    /// Notes that a transaction with [`Self::settle_in`] in it was committed.
    pub(crate) fn committed(mut self) {
        self.is_open = false;
    }

    /// Takes it back: nothing was sent.
    ///
    /// # Errors
    /// The database's failure, of a kind that does not pass.
    pub(crate) async fn withdraw(mut self) -> anyhow::Result<()> {
        self.ended = None;
        self.end().await?;
        self.is_open = false;
        Ok(())
    }

    /// Reserves amounts in the budget of the base, and stores the row of the request.
    async fn begin_in(
        &self,
        transaction: &Transaction,
        reserved: Amounts,
        now: i64,
    ) -> Result<Result<(), LedgerError>, StoreError> {
        let about = UsageContext {
            endpoint: self.step.endpoint(),
            model: self.model.clone(),
            character: None,
            request_id: self.subject.clone(),
        };
        let (base, id) = (&self.base, &self.id);
        let reserved = ledger::reserve_kept(transaction, base, id, reserved, about, now).await?;
        if let Err(refused) = reserved {
            return Ok(Err(refused));
        }
        let new = store::NewUsage {
            id,
            base,
            document: &self.subject,
            step: self.step,
            model: &self.model,
            is_local: self.is_local,
            node: &self.bases.kernel.node.id,
            bound: self.bound,
        };
        store::insert_usage(transaction, &new, now).await?;
        Ok(Ok(()))
    }

    async fn end(&self) -> anyhow::Result<()> {
        outage::insist(&self.bases, || async move {
            let transaction = budget::begin(&self.bases, &self.base).await?;
            self.end_in(&transaction, self.ended.as_ref()).await?;
            transaction.commit().await?;
            self.bases.kernel.jobs.wake();
            Ok(())
        })
        .await
    }

    async fn end_in(
        &self,
        transaction: &Transaction,
        ended: Option<&(UsageOutcome, Used)>,
    ) -> Result<(), StoreError> {
        self.count_in(transaction, ended).await?;
        waking::wake(&self.bases, transaction, &self.tenant, &self.base).await
    }

    async fn count_in(
        &self,
        transaction: &Transaction,
        ended: Option<&(UsageOutcome, Used)>,
    ) -> Result<(), StoreError> {
        match ended {
            None => withdraw_in(&self.bases, transaction, &self.id).await,
            Some((outcome, used)) => {
                let (outcome, now) = (*outcome, self.bases.clock.now_ms());
                let lacks_tokens = self.bound.counts_tokens && used.tokens.is_none();
                let is_unknown =
                    outcome == UsageOutcome::Uncertain || used.cost.is_none() || lacks_tokens;
                let id = &self.id;
                let settle =
                    || store::settle_usage(transaction, id, outcome, used, is_unknown, now);
                let mut settled = settle().await?;
                // Another node took this one for dead and its request back, but it was computed. It counts above a limit, too, since what
                // is reserved for it is nothing.
                if !settled && self.is_local && !store::has_usage(transaction, id).await? {
                    let begun = self.begin_in(transaction, Amounts::default(), now);
                    match begun.await? {
                        Ok(()) => settled = settle().await?,
                        // The base is gone, and its budget with it.
                        Err(LedgerError::Unusable(QuotaUnusable::Ended)) => {
                            let base = self.base.as_str();
                            tracing::info!(
                                request = id.as_str(),
                                base,
                                "what was computed for a base that is gone does not count"
                            );
                        }
                        Err(error) => return Err(StoreError::other(error)),
                    }
                }
                // What was used and is not known keeps its bound reserved. Where a cost is not known alone, none was reserved.
                let keeps_bound = outcome == UsageOutcome::Uncertain || lacks_tokens;
                if !settled || keeps_bound {
                    return Ok(());
                }
                let recorded = match outcome {
                    UsageOutcome::Success => Outcome::Completed,
                    UsageOutcome::Fault | UsageOutcome::Uncertain => Outcome::Failed,
                };
                let spent = DetachedUsage::Used(used.amounts(), recorded);
                ledger::settle_kept(&self.bases, transaction, id, spent).await
            }
        }
    }
}

async fn withdraw_in(bases: &Bases, transaction: &Transaction, id: &str) -> Result<(), StoreError> {
    if store::remove_usage(transaction, id).await? {
        ledger::settle_kept(bases, transaction, id, DetachedUsage::Nothing).await?;
    }
    Ok(())
}

impl Drop for Admission {
    fn drop(&mut self) {
        if !mem::take(&mut self.is_open) {
            return;
        }
        let ended = Self {
            bases: self.bases.clone(),
            tenant: self.tenant.clone(),
            base: mem::take(&mut self.base),
            id: mem::take(&mut self.id),
            subject: mem::take(&mut self.subject),
            model: mem::take(&mut self.model),
            is_open: false,
            ..*self
        };
        let bases = self.bases.clone();
        self.bases.kernel.tasks.spawn(async move {
            if let Err(error) = ended.end().await {
                bases
                    .store
                    .complain("storing what became of a request", &error);
            }
        });
    }
}

/// What requests are taken for of which something is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TakenFor {
    /// The most that they may have used.
    Bound,
    /// Nothing.
    Nothing,
}

stored!(pub(crate) TakenFor: Bound = "bound", Nothing = "nothing");

/// Decides about the requests of a base of which something is not known. Those whose bound is not known either stay as they are, unless they
/// are taken for nothing.
pub(crate) async fn decide(
    bases: &Bases,
    tenant: &Tenant,
    base: &str,
    taken: TakenFor,
) -> Result<(), StoreError> {
    let mut after = String::new();
    let now = bases.clock.now_ms();
    loop {
        let transaction = budget::begin(bases, base).await?;
        let some = store::unknown_usage(&transaction, base, &after, DECIDED_AT_ONCE).await?;
        for unknown in &some {
            let used = unknown.taken_for(taken);
            let counts_tokens = matches!(unknown.kind, PaidStep::Rewrite | PaidStep::Embed);
            if used.cost.is_none() || counts_tokens && used.tokens.is_none() {
                continue;
            }
            store::decide_usage(&transaction, &unknown.id, taken, &used, now).await?;
            let spent = DetachedUsage::Used(used.amounts(), Outcome::Bound);
            ledger::settle_kept(bases, &transaction, &unknown.id, spent).await?;
        }
        waking::wake(bases, &transaction, tenant, base).await?;
        transaction.commit().await?;
        bases.kernel.jobs.wake();
        match some.into_iter().nth(DECIDED_AT_ONCE - 1) {
            Some(last) => after = last.id,
            None => return Ok(()),
        }
    }
}

/// Notes of requests whose process is gone that nobody knows what became of them, or takes them back where that process had computed
/// them itself: should it live after all, it counts them when it settles. Safe on many nodes at once.
///
/// # Errors
/// The database's failure.
pub async fn sweep(bases: &Bases) -> Result<(), StoreError> {
    let before = node::lost_before(&bases.kernel).await?;
    let lost = store::lost_usage(bases.store.db(), &bases.kernel.node.id, before).await?;
    for lost in lost {
        let transaction = budget::begin(bases, &lost.base_id).await?;
        if lost.is_local {
            withdraw_in(bases, &transaction, &lost.id).await?;
        } else {
            let (outcome, used) = (UsageOutcome::Uncertain, Used::default());
            let now = bases.clock.now_ms();
            store::settle_usage(&transaction, &lost.id, outcome, &used, true, now).await?;
        }
        if let Some(tenant) = store::tenant_of(&transaction, &lost.base_id).await? {
            waking::wake(bases, &transaction, &tenant, &lost.base_id).await?;
        }
        transaction.commit().await?;
        bases.kernel.jobs.wake();
    }
    Ok(())
}
