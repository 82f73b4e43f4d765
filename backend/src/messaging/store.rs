//! The SQL of completions.

use anyhow::anyhow;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, FromQueryResult};
use serde::Serialize;

use super::{
    accept::Accepted,
    output::{CompletionState, CompletionView, Output, Reason},
};
use crate::{
    accounts::Tenant,
    http::ApiError,
    store::{self, statement},
};

/// A completion that has not ended.
#[derive(Debug, FromQueryResult)]
pub(super) struct OpenRow {
    question: String,
    pub(super) created_at: i64,
}

impl OpenRow {
    /// # Errors
    /// When it cannot be read; where, and nothing of what it says, since that is what people said.
    pub(super) fn accepted(&self) -> anyhow::Result<Accepted> {
        serde_json::from_str(&self.question).map_err(|error| {
            let column = error.column();
            anyhow!("the stored question cannot be read at column {column}")
        })
    }
}

/// A completion as its client reads it.
#[derive(Debug, FromQueryResult)]
struct Row {
    id: String,
    state: String,
    output: Option<String>,
    error: Option<String>,
}

pub(super) async fn insert(
    db: &impl ConnectionTrait,
    tenant: &Tenant,
    id: &str,
    accepted: &Accepted,
    now: i64,
) -> Result<(), ApiError> {
    let sql = "INSERT INTO completions (id, partner, state, question, created_at) VALUES ($1, $2, 'in-progress', $3, $4)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        serde_json::to_string(accepted)
            .map_err(ApiError::internal)?
            .into(),
        now.into(),
    ];
    db.execute_raw(statement(db, sql, values)).await?;
    Ok(())
}

/// How many completions of a partner are in progress. No other transaction adds one before this one ends.
pub(super) async fn count_open(db: &DatabaseTransaction, tenant: &Tenant) -> Result<u64, DbErr> {
    // On SQLite the transaction is the lock.
    if db.get_database_backend() == DbBackend::Postgres {
        let sql = "SELECT 1 FROM partners WHERE id = $1 FOR NO KEY UPDATE";
        db.query_one_raw(statement(db, sql, [tenant.partner().as_str().into()]))
            .await?;
    }
    let sql = "SELECT COUNT(*) FROM completions WHERE partner = $1 AND state = 'in-progress'";
    store::count(db, sql, [tenant.partner().as_str().into()]).await
}

/// A completion of a partner, or of anyone for an admin key, unless it ended at `kept_since` or before.
pub(super) async fn find(
    db: &impl ConnectionTrait,
    tenant: Option<&Tenant>,
    id: &str,
    kept_since: i64,
) -> Result<Option<CompletionView>, ApiError> {
    let mut sql = "SELECT id, state, output, error FROM completions \
                   WHERE id = $1 AND (ended_at IS NULL OR ended_at > $2)"
        .to_owned();
    let mut values = vec![id.into(), kept_since.into()];
    if let Some(tenant) = tenant {
        sql += " AND partner = $3";
        values.push(tenant.partner().as_str().into());
    }
    let row = Row::find_by_statement(statement(db, &sql, values))
        .one(db)
        .await?;
    row.map(view).transpose()
}

fn view(row: Row) -> Result<CompletionView, ApiError> {
    let state = CompletionState::from_stored(&row.state)
        .ok_or_else(|| ApiError::internal(format!("completion {} has no known state", row.id)))?;
    let output = row.output.as_deref().map(serde_json::from_str);
    let error = row.error.as_deref().map(serde_json::from_str);
    Ok(CompletionView {
        output: output.transpose().map_err(ApiError::internal)?,
        error: error.transpose().map_err(ApiError::internal)?,
        ..CompletionView::new(&row.id, state)
    })
}

/// A completion that is still to be worked on.
pub(super) async fn load_open(
    db: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<OpenRow>, DbErr> {
    let sql =
        "SELECT question, created_at FROM completions WHERE id = $1 AND state = 'in-progress'";
    OpenRow::find_by_statement(statement(db, sql, [id.into()]))
        .one(db)
        .await
}

pub(super) async fn complete(
    db: &impl ConnectionTrait,
    id: &str,
    output: &Output,
    now: i64,
) -> anyhow::Result<()> {
    end(db, id, CompletionState::Completed, "output", output, now).await
}

pub(super) async fn fail(
    db: &impl ConnectionTrait,
    id: &str,
    reason: &Reason,
    now: i64,
) -> anyhow::Result<()> {
    end(db, id, CompletionState::Failed, "error", reason, now).await
}

/// Ends a completion. What was asked is not needed any more, so it does not stay.
async fn end(
    db: &impl ConnectionTrait,
    id: &str,
    state: CompletionState,
    column: &'static str,
    value: &impl Serialize,
    now: i64,
) -> anyhow::Result<()> {
    let sql = format!(
        "UPDATE completions SET state = $2, {column} = $3, question = NULL, ended_at = $4 \
         WHERE id = $1 AND state = 'in-progress'"
    );
    let values = [
        id.into(),
        state.as_str().into(),
        serde_json::to_string(value)?.into(),
        now.into(),
    ];
    db.execute_raw(statement(db, &sql, values)).await?;
    Ok(())
}

pub(super) async fn purge(db: &impl ConnectionTrait, kept_since: i64) -> Result<u64, DbErr> {
    let sql = "DELETE FROM completions WHERE ended_at <= $1";
    let result = db
        .execute_raw(statement(db, sql, [kept_since.into()]))
        .await?;
    Ok(result.rows_affected())
}
