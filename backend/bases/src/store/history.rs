//! The SQL of the history of a document.

use colloquy_store::{Executor, Keyset, Order, StoreError, UnknownWord, statement};

use crate::{
    admission::{PaidStep, UsageOutcome},
    document::{Step, StepKind},
};

/// The begin or end of a step of a document.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct StepChange {
    #[sqlx(try_from = "String")]
    pub(crate) step: StepKind,
    #[sqlx(try_from = "String")]
    pub(crate) state: Step,
    /// Why it failed or waits.
    pub(crate) reason: Option<String>,
    pub(crate) at: i64,
}

/// Returns the newest steps of a document, newest first. Triggers write them, and delete older ones.
pub(crate) async fn steps_of(
    db: &impl Executor,
    document: &str,
) -> Result<Vec<StepChange>, StoreError> {
    let sql = "SELECT step, state, reason, at FROM knowledge_steps WHERE document_id = $1 ORDER BY id DESC";
    db.fetch_all(statement(sql, [document.into()])).await
}

/// The outcome of a request; `None` while it is pending.
#[derive(Debug)]
pub(crate) struct Settled(pub(crate) Option<UsageOutcome>);

impl TryFrom<String> for Settled {
    type Error = UnknownWord;

    fn try_from(word: String) -> Result<Self, UnknownWord> {
        match word.as_str() {
            "pending" => Ok(Self(None)),
            _ => UsageOutcome::try_from(word).map(|outcome| Self(Some(outcome))),
        }
    }
}

/// A request to a service for a document.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct DocumentRequest {
    pub(crate) id: String,
    #[sqlx(try_from = "String")]
    pub(crate) kind: PaidStep,
    pub(crate) model: String,
    #[sqlx(try_from = "String")]
    pub(crate) outcome: Settled,
    pub(crate) input_tokens: Option<i64>,
    pub(crate) output_tokens: Option<i64>,
    /// Seconds of sound.
    pub(crate) seconds: Option<i64>,
    /// In units of 1e-8 dollars.
    pub(crate) cost: Option<i64>,
    pub(crate) unknown: bool,
    pub(crate) created_at: i64,
    pub(crate) settled_at: Option<i64>,
}

/// Returns a part of the requests for a document, newest first.
pub(crate) async fn requests_of(
    db: &impl Executor,
    base: &str,
    document: &str,
    keyset: &Keyset,
) -> Result<Vec<DocumentRequest>, StoreError> {
    let mut sql = "SELECT u.id, u.kind, u.model, u.outcome, u.input_tokens, u.output_tokens, u.seconds, u.cost, u.unknown, u.created_at, u.settled_at \
                   FROM knowledge_usage u WHERE u.document_id = $1 AND u.base_id = $2"
        .to_owned();
    let mut values = vec![document.into(), base.into()];
    let key = ("u.created_at", "u.id");
    keyset.complete(&mut sql, &mut values, key, Order::Descending);
    db.fetch_all(statement(sql, values)).await
}
