//! The SQL of completions.

use colloquy_accounts::{Tenant, storage};
use colloquy_store::{Executor, Store, StoreError, Transaction, statement};
use serde::Serialize;

use super::{
    accept::Accepted,
    output::{CompletionState, CompletionView, Output, Reason},
};

/// The query of the bytes of each completion of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT COALESCE(octet_length(question), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) \
     AS bytes FROM completions WHERE partner = $1";

/// A completion that has not ended.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct OpenRow {
    id: String,
    partner: String,
    question: String,
    pub(super) created_at: i64,
}

impl OpenRow {
    /// Whose it is.
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    /// # Errors
    /// When it cannot be read; where, and nothing of what it says, since that is what people said.
    pub(super) fn accepted(&self) -> Result<(Tenant, Accepted), StoreError> {
        let accepted = serde_json::from_str(&self.question).map_err(|error| {
            let column = error.column();
            StoreError::malformed(format!(
                "the stored question cannot be read at column {column}"
            ))
        })?;
        Ok((self.tenant(), accepted))
    }
}

/// A completion as its client reads it.
#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: String,
    state: String,
    output: Option<String>,
    error: Option<String>,
}

/// Returns how many bytes of text the completion has.
pub(super) async fn insert(
    db: &impl Executor,
    tenant: &Tenant,
    id: &str,
    accepted: &Accepted,
    now: i64,
) -> Result<usize, StoreError> {
    let question = serde_json::to_string(accepted).map_err(StoreError::other)?;
    let bytes = question.len();
    let sql = "INSERT INTO completions (id, partner, state, question, created_at) VALUES ($1, $2, 'in-progress', $3, $4)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        question.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(bytes)
}

/// How many completions of a partner are in progress. No other transaction adds one before this one ends.
pub(super) async fn count_open(db: &Transaction, tenant: &Tenant) -> Result<u64, StoreError> {
    colloquy_accounts::hold_partner(db, tenant).await?;
    let sql = "SELECT COUNT(*) FROM completions WHERE partner = $1 AND state = 'in-progress'";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// A completion of a partner, or of anyone for an admin key, unless it ended at `kept_since` or before.
pub(super) async fn find(
    db: &impl Executor,
    tenant: Option<&Tenant>,
    id: &str,
    kept_since: i64,
) -> Result<Option<CompletionView>, StoreError> {
    let mut sql = "SELECT id, state, output, error FROM completions \
                   WHERE id = $1 AND (ended_at IS NULL OR ended_at > $2)"
        .to_owned();
    let mut values = vec![id.into(), kept_since.into()];
    if let Some(tenant) = tenant {
        sql += " AND partner = $3";
        values.push(tenant.partner().as_str().into());
    }
    let row = db.fetch_one(statement(sql, values)).await?;
    row.map(view).transpose()
}

fn view(row: Row) -> Result<CompletionView, StoreError> {
    let state = CompletionState::try_from(row.state)?;
    let output = row.output.as_deref().map(serde_json::from_str);
    let error = row.error.as_deref().map(serde_json::from_str);
    Ok(CompletionView {
        output: output.transpose().map_err(StoreError::malformed)?,
        error: error.transpose().map_err(StoreError::malformed)?,
        ..CompletionView::new(&row.id, state)
    })
}

/// A completion that is still to be worked on.
pub(super) async fn load_open(db: &impl Executor, id: &str) -> Result<Option<OpenRow>, StoreError> {
    let sql = "SELECT id, partner, question, created_at FROM completions WHERE id = $1 AND state = 'in-progress'";
    db.fetch_one(statement(sql, [id.into()])).await
}

pub(super) async fn complete(
    transaction: &Transaction,
    row: &OpenRow,
    output: &Output,
    now: i64,
) -> Result<(), StoreError> {
    let state = CompletionState::Completed;
    end(transaction, row, state, "output", output, now).await
}

pub(super) async fn fail(
    transaction: &Transaction,
    row: &OpenRow,
    reason: &Reason,
    now: i64,
) -> Result<(), StoreError> {
    let state = CompletionState::Failed;
    end(transaction, row, state, "error", reason, now).await
}

/// Ends a completion. What was asked is not needed any more, so it does not stay, and the outcome counts in its place.
async fn end(
    transaction: &Transaction,
    row: &OpenRow,
    state: CompletionState,
    column: &'static str,
    value: &impl Serialize,
    now: i64,
) -> Result<(), StoreError> {
    let text = serde_json::to_string(value).map_err(StoreError::other)?;
    let bytes = text.len();
    let sql = format!(
        "UPDATE completions SET state = $2, {column} = $3, question = NULL, ended_at = $4 \
         WHERE id = $1 AND state = 'in-progress'"
    );
    let values = [
        row.id.as_str().into(),
        state.as_str().into(),
        text.into(),
        now.into(),
    ];
    if transaction.execute(statement(sql, values)).await? == 1 {
        storage::replace_text(transaction, &row.partner, row.question.len(), bytes).await?;
    }
    Ok(())
}

pub(super) async fn purge(store: &Store, kept_since: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM completions \
               WHERE id IN (SELECT id FROM completions WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
               RETURNING partner, CAST(COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) AS BIGINT) AS bytes";
    storage::purge_texts(store, sql, kept_since).await
}
