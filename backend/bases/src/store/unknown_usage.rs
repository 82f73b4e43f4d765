//! The SQL of lists of requests of which something is not known.

use colloquy_store::{Executor, Order, Slice, StoreError, statement};

use crate::admission::{PaidStep, TakenFor, UsageOutcome};

/// A request of which something is not known, or was not until somebody decided about it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ListedUnknown {
    pub(crate) id: String,
    /// The document, or the folder of a channel.
    pub(crate) document_id: String,
    pub(crate) document_name: Option<String>,
    #[sqlx(try_from = "String")]
    pub(crate) kind: PaidStep,
    pub(crate) model: String,
    #[sqlx(try_from = "String")]
    pub(crate) outcome: UsageOutcome,
    pub(crate) created_at: i64,
    pub(crate) bound_tokens: Option<i64>,
    pub(crate) bound_cost: Option<i64>,
    pub(crate) input_tokens: Option<i64>,
    pub(crate) output_tokens: Option<i64>,
    pub(crate) cost: Option<i64>,
    taken_for: Option<String>,
    pub(crate) decided_at: Option<i64>,
}

impl ListedUnknown {
    /// What it was taken for, if somebody decided about it.
    pub(crate) fn taken_for(&self) -> Option<TakenFor> {
        let taken = self.taken_for.clone()?;
        TakenFor::try_from(taken).ok()
    }
}

/// Returns a part of the requests of a base of which something is not known, or of those that somebody decided about, oldest first.
pub(crate) async fn list_unknown(
    db: &impl Executor,
    base: &str,
    is_decided: bool,
    slice: &Slice,
) -> Result<Vec<ListedUnknown>, StoreError> {
    let which = match is_decided {
        true => "u.decided_at IS NOT NULL",
        false => "u.unknown",
    };
    let mut sql = format!(
        "SELECT u.id, u.document_id, d.name AS document_name, u.kind, u.model, u.outcome, u.created_at, u.bound_tokens, u.bound_cost, \
         u.input_tokens, u.output_tokens, u.cost, u.taken_for, u.decided_at FROM knowledge_usage u \
         LEFT JOIN knowledge_documents d ON d.id = u.document_id WHERE u.base_id = $1 AND {which}"
    );
    let mut values = vec![base.into()];
    slice.complete(&mut sql, &mut values, "u.id", Order::Ascending);
    db.fetch_all(statement(sql, values)).await
}
