//! The SQL of what was asked of services.

use colloquy_store::{Executor, StoreError, statement};

use crate::admission::{PaidStep, UsageBound, UsageOutcome, Used};

/// A request that is about to be sent.
#[derive(Debug)]
pub(crate) struct NewUsage<'a> {
    pub(crate) id: &'a str,
    pub(crate) base: &'a str,
    pub(crate) document: &'a str,
    pub(crate) step: PaidStep,
    pub(crate) model: &'a str,
    pub(crate) bound: UsageBound,
}

fn number(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

pub(crate) async fn insert_usage(
    db: &impl Executor,
    new: &NewUsage<'_>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, outcome, bound_tokens, bound_seconds, created_at) \
               VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)";
    let values = [
        new.id.into(),
        new.base.into(),
        new.document.into(),
        new.step.as_str().into(),
        new.model.into(),
        number(new.bound.tokens).into(),
        number(new.bound.seconds).into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes what a request came to, once.
pub(crate) async fn settle_usage(
    db: &impl Executor,
    id: &str,
    outcome: UsageOutcome,
    used: &Used,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_usage SET outcome = $2, input_tokens = $3, output_tokens = $4, seconds = $5, cost = $6, settled_at = $7 \
               WHERE id = $1 AND outcome = 'pending'";
    let values = [
        id.into(),
        outcome.as_str().into(),
        number(used.tokens.map(|tokens| tokens.input)).into(),
        number(used.tokens.map(|tokens| tokens.output)).into(),
        number(used.seconds).into(),
        number(used.cost).into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Forgets a request that was not sent.
pub(crate) async fn remove_usage(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM knowledge_usage WHERE id = $1 AND outcome = 'pending'";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}
