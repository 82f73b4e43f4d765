//! What a base may cost, and how that stands.
//!
//! Tokens and dollars are counted in the ledger of text generation, in a budget under the base's id
//! ([`ledger::budget`](colloquy_accounts::ledger::budget)): what is used is used for ever. Characters are those of the texts that are there,
//! so they are counted where the texts are. Whoever takes of any of them locks the budget, and so does whoever changes its limits: what was
//! decided holds until the transaction ends. The budget comes before everything else that a transaction locks, jobs among it.

use std::collections::HashMap;

use colloquy_accounts::{
    Tenant,
    ledger::{Amounts, Limits, Measure, Standing, budget},
};
use colloquy_base::money::Usd;
use colloquy_store::{Executor, StoreError, Transaction};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Bases,
    admission::UsageBound,
    base::KnowledgeBase,
    store::{self, ListedBase, Spending},
    waking,
};

/// A transaction that has the budget of a base, for what changes its documents and queues their jobs: of those who lock both, each waits for
/// the others before it has either.
pub(crate) async fn begin(bases: &Bases, base: &str) -> Result<Transaction, StoreError> {
    let transaction = bases.store.begin().await?;
    budget::lock(&transaction, base).await?;
    Ok(transaction)
}

/// The same for many documents.
pub(crate) async fn begin_patient(bases: &Bases, base: &str) -> Result<Transaction, StoreError> {
    let transaction = bases.store.begin_patient().await?;
    budget::lock(&transaction, base).await?;
    Ok(transaction)
}

/// What every `processing_error` of a document that waits for room begins with.
pub(crate) const BLOCKED: &str = "BUDGET_BLOCKED:";

/// What a base may cost; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Characters of accepted digitized text.
    pub(crate) characters: Option<u64>,
    /// Tokens of rewriting and embedding, for ever.
    pub(crate) tokens: Option<u64>,
    /// What the partner was charged, for ever.
    pub(crate) dollars: Option<Usd>,
}

impl Budget {
    /// Returns the limits after a change.
    fn changed(self, change: BudgetChange) -> Self {
        Self {
            characters: change.characters.unwrap_or(self.characters),
            tokens: change.tokens.unwrap_or(self.tokens),
            dollars: change.dollars.unwrap_or(self.dollars),
        }
    }

    /// The limit of characters, with those that the ledger keeps.
    fn of(characters: Option<u64>, standing: &Standing) -> Self {
        Self {
            characters,
            tokens: standing.limits.of(Measure::Tokens),
            dollars: standing.limits.of(Measure::Cost).map(Usd),
        }
    }

    /// The part that the ledger keeps.
    pub(crate) fn limits(&self) -> Limits {
        Limits::default()
            .with(Measure::Tokens, self.tokens)
            .with(Measure::Cost, self.dollars.map(|usd| usd.0))
    }
}

/// Opens the budget of a new base.
pub(crate) async fn open(
    transaction: &Transaction,
    tenant: &Tenant,
    base: &KnowledgeBase,
    limits: &Budget,
) -> Result<(), StoreError> {
    let (id, now) = (&base.id, base.created_at);
    store::set_character_limit(transaction, id, limits.characters).await?;
    budget::open(transaction, tenant, id, &limits.limits(), now).await
}

/// Which limits of a budget change, each to what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BudgetChange {
    pub(crate) characters: Option<Option<u64>>,
    pub(crate) tokens: Option<Option<u64>>,
    pub(crate) dollars: Option<Option<Usd>>,
}

/// Gives a base other limits. What waits for room is looked at when there is some; what was sent is not called back.
pub(crate) async fn change(
    bases: &Bases,
    tenant: &Tenant,
    base: &str,
    change: BudgetChange,
) -> Result<(), StoreError> {
    let transaction = bases.store.begin().await?;
    let Some(state) = BudgetState::lock(&transaction, base).await? else {
        return Ok(());
    };
    let limits = state.limits.changed(change);
    store::set_character_limit(&transaction, base, limits.characters).await?;
    budget::set_limits(&transaction, base, &limits.limits()).await?;
    waking::wake(bases, &transaction, tenant, base).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(())
}

/// Why a base takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BlockingReason {
    /// There are as many characters as may be.
    CharacterLimit,
    /// As many tokens as may be are used or reserved.
    TokenLimit,
    /// As many dollars as may be are used or reserved.
    DollarLimit,
    /// There is a limit of tokens, and nobody knows how many some requests used.
    UnknownTokens,
    /// There is a limit of dollars, and nobody knows what some requests cost.
    UnknownDollars,
    /// There is a limit of tokens or dollars, and nobody knows what became of some requests.
    UncertainOperations,
}

/// Why a step has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    /// There would be too many characters.
    #[error(
        "the text has {characters} characters, and {room} are left of the {limit} that are allowed"
    )]
    Characters {
        characters: u64,
        room: u64,
        limit: u64,
    },
    /// It may use more tokens than are left.
    #[error("the next request may use {0} tokens, which token_limit has no room for")]
    Tokens(u64),
    /// It may cost more than is left.
    #[error("the next request may cost {0} dollars, which dollar_limit_usd has no room for")]
    Dollars(Usd),
    /// Nobody can say how many tokens it may use.
    #[error("how many tokens the next request may use is not known, and there is a token_limit")]
    UnboundedTokens,
    /// Nobody can say what it may cost.
    #[error(
        "what the next request may cost is not known, since its service has no price, and there is a dollar_limit_usd"
    )]
    UnboundedDollars,
    /// Nobody knows how many tokens earlier requests used.
    #[error("how many tokens earlier requests used is not known, and there is a token_limit")]
    UnknownTokens,
    /// Nobody knows what earlier requests cost.
    #[error("what earlier requests cost is not known, and there is a dollar_limit_usd")]
    UnknownDollars,
    /// Nobody knows what became of earlier requests.
    #[error(
        "what became of earlier requests is not known, and there is a limit of tokens or dollars"
    )]
    UncertainOperations,
}

/// How a budget stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetState {
    pub(crate) limits: Budget,
    /// Of tokens and dollars.
    pub(crate) standing: Standing,
    /// What is not known of what was spent.
    pub(crate) spending: Spending,
}

impl BudgetState {
    /// How the budget of a base stands; `None` when there is no such base.
    pub(crate) async fn read(db: &impl Executor, base: &str) -> Result<Option<Self>, StoreError> {
        let standing = budget::standing(db, base).await?;
        Self::with(db, base, standing).await
    }

    /// The same, which nobody changes until the transaction ends.
    pub(crate) async fn lock(
        transaction: &Transaction,
        base: &str,
    ) -> Result<Option<Self>, StoreError> {
        let standing = budget::lock(transaction, base).await?;
        Self::with(transaction, base, standing).await
    }

    /// Returns how the budgets of bases stand, by their ids.
    pub(crate) async fn among(
        db: &impl Executor,
        bases: &[ListedBase],
    ) -> Result<HashMap<String, Self>, StoreError> {
        let ids: Vec<String> = bases.iter().map(|it| it.base.id.clone()).collect();
        let mut standings = budget::standings(db, &ids).await?;
        let spending = store::spending_among(db, &ids).await?;
        let state = |listed: &ListedBase| {
            let id = &listed.base.id;
            let standing = standings.remove(id)?;
            let limits = Budget::of(listed.character_limit, &standing);
            let spending = spending.get(id).copied().unwrap_or_default();
            Some((
                id.clone(),
                Self {
                    limits,
                    standing,
                    spending,
                },
            ))
        };
        Ok(bases.iter().filter_map(state).collect())
    }

    async fn with(
        db: &impl Executor,
        base: &str,
        standing: Option<Standing>,
    ) -> Result<Option<Self>, StoreError> {
        let Some(standing) = standing else {
            return Ok(None);
        };
        let limits = Budget::of(store::character_limit(db, base).await?, &standing);
        Ok(Some(Self {
            limits,
            standing,
            spending: store::spending(db, base).await?,
        }))
    }

    /// Returns how the budget would stand with other limits.
    pub(crate) fn with_limits(mut self, change: BudgetChange) -> Self {
        self.limits = self.limits.changed(change);
        self.standing.limits = self.limits.limits();
        self
    }

    /// The cost of all settled requests, as far as it is known.
    pub(crate) fn cost(&self) -> Usd {
        Usd(self.standing.used.of(Measure::Cost))
    }

    /// Why it takes no more, when it has texts of so many characters.
    pub(crate) fn blocking_reasons(&self, characters: u64) -> Vec<BlockingReason> {
        use BlockingReason as Reason;
        let is_used_up = |measure| self.standing.remaining(measure) == Some(0);
        let (tokens, dollars) = (self.limits.tokens.is_some(), self.limits.dollars.is_some());
        let spending = &self.spending;
        let reasons = [
            (
                Reason::CharacterLimit,
                self.limits
                    .characters
                    .is_some_and(|limit| characters >= limit),
            ),
            (Reason::TokenLimit, is_used_up(Measure::Tokens)),
            (Reason::DollarLimit, is_used_up(Measure::Cost)),
            (Reason::UnknownTokens, tokens && spending.unknown_tokens > 0),
            (
                Reason::UnknownDollars,
                dollars && spending.unknown_dollars > 0,
            ),
            (
                Reason::UncertainOperations,
                (tokens || dollars) && spending.uncertain > 0,
            ),
        ];
        let blocking = reasons.into_iter().filter(|(_, blocks)| *blocks);
        blocking.map(|(reason, _)| reason).collect()
    }

    /// Whether there is room for a request of this bound.
    pub(crate) fn room_for(&self, bound: &UsageBound) -> Result<(), NoRoom> {
        let (tokens, dollars) = (self.limits.tokens.is_some(), self.limits.dollars.is_some());
        let spending = &self.spending;
        if (tokens || dollars) && spending.uncertain > 0 {
            return Err(NoRoom::UncertainOperations);
        }
        if tokens && bound.counts_tokens {
            if spending.unknown_tokens > 0 {
                return Err(NoRoom::UnknownTokens);
            }
            let bound = bound.tokens.ok_or(NoRoom::UnboundedTokens)?;
            if self.lacks(Measure::Tokens, bound) {
                return Err(NoRoom::Tokens(bound));
            }
        }
        if dollars {
            if spending.unknown_dollars > 0 {
                return Err(NoRoom::UnknownDollars);
            }
            let bound = bound.cost.ok_or(NoRoom::UnboundedDollars)?;
            if self.lacks(Measure::Cost, bound) {
                return Err(NoRoom::Dollars(Usd(bound)));
            }
        }
        Ok(())
    }

    fn lacks(&self, measure: Measure, bound: u64) -> bool {
        let left = self.standing.remaining(measure);
        bound > 0 && left.is_some_and(|left| bound > left)
    }

    /// The same after a request of this bound was reserved.
    pub(crate) fn after(mut self, bound: &UsageBound) -> Self {
        let reserved = self.standing.reserved;
        let bound = bound.amounts();
        self.standing.reserved =
            Amounts::from_fn(|measure| reserved.of(measure).saturating_add(bound.of(measure)));
        self
    }

    /// Whether a text of so many characters may be accepted beside the others of the base, with a limit of the request or the document beside
    /// that of the base: the smaller one counts.
    pub(crate) fn room_for_text(
        &self,
        characters: u64,
        others: u64,
        limit: Option<u64>,
    ) -> Result<(), NoRoom> {
        let limits = [limit, self.limits.characters];
        let Some(limit) = limits.into_iter().flatten().min() else {
            return Ok(());
        };
        let room = limit.saturating_sub(others);
        match characters <= room {
            true => Ok(()),
            false => Err(NoRoom::Characters {
                characters,
                room,
                limit,
            }),
        }
    }
}

impl NoRoom {
    /// What a document that waits says of it.
    pub(crate) fn told(&self) -> String {
        format!("{BLOCKED} {self}; the document goes on by itself when there is room")
    }
}
