//! The SQL of analyses.

use colloquy_accounts::{Tenant, storage};
use colloquy_base::clock::rfc3339;
use colloquy_store::{Executor, Store, StoreError, Transaction, statement};

use super::{
    output::{AnalysisState, AnalysisView, Output, Reason},
    request::Input,
};

/// The query of the bytes of each analysis of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT COALESCE(octet_length(input), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) \
     AS bytes FROM dialog_analyses WHERE partner = $1";

/// An analysis that has not ended.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct OpenRow {
    pub(super) id: String,
    partner: String,
    pub(super) quota: Option<String>,
    input: String,
    /// How many questions a model was asked that it may have answered.
    pub(super) asked: i64,
    /// What is reserved for the question that a model is being asked.
    pub(super) reservation: Option<String>,
    pub(super) created_at: i64,
}

impl OpenRow {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    /// # Errors
    /// When it cannot be read; where, and nothing of what it says, since that is what people said.
    pub(super) fn input(&self) -> Result<Input, StoreError> {
        serde_json::from_str(&self.input).map_err(|error| {
            let column = error.column();
            StoreError::malformed(format!(
                "the stored input cannot be read at column {column}"
            ))
        })
    }
}

/// An analysis as its client reads it.
#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: String,
    state: String,
    output: Option<String>,
    error: Option<String>,
    created_at: i64,
    ended_at: Option<i64>,
}

/// Returns how many bytes of text the analysis has.
pub(super) async fn insert(
    db: &impl Executor,
    tenant: &Tenant,
    id: &str,
    quota: Option<&str>,
    input: &Input,
    now: i64,
) -> Result<usize, StoreError> {
    let input = serde_json::to_string(input).map_err(StoreError::other)?;
    let bytes = input.len();
    let sql = "INSERT INTO dialog_analyses (id, partner, quota, state, input, asked, created_at) \
               VALUES ($1, $2, $3, 'in-progress', $4, 0, $5)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        quota.into(),
        input.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(bytes)
}

/// How many analyses of a partner are in progress. No other transaction adds one before this one ends.
pub(super) async fn count_open(db: &Transaction, tenant: &Tenant) -> Result<u64, StoreError> {
    colloquy_accounts::hold_partner(db, tenant).await?;
    let sql = "SELECT COUNT(*) FROM dialog_analyses WHERE partner = $1 AND ended_at IS NULL";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// An analysis of a partner, or of one of its quotas, unless it ended at `kept_since` or before.
pub(super) async fn find(
    db: &impl Executor,
    tenant: &Tenant,
    quota: Option<&str>,
    id: &str,
    kept_since: i64,
) -> Result<Option<AnalysisView>, StoreError> {
    let sql = "SELECT id, state, output, error, created_at, ended_at FROM dialog_analyses \
               WHERE id = $1 AND partner = $2 AND (ended_at IS NULL OR ended_at > $3) \
               AND (CAST($4 AS TEXT) IS NULL OR quota = $4)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        kept_since.into(),
        quota.into(),
    ];
    let row: Option<Row> = db.fetch_one(statement(sql, values)).await?;
    row.map(view).transpose()
}

fn view(row: Row) -> Result<AnalysisView, StoreError> {
    let state = AnalysisState::try_from(row.state)?;
    let output = row.output.as_deref().map(serde_json::from_str::<Output>);
    let error = row.error.as_deref().map(serde_json::from_str::<Reason>);
    let output = output.transpose().map_err(StoreError::malformed)?;
    // Each second that was begun.
    let took = row
        .ended_at
        .map(|ended| (ended - row.created_at + 999) / 1_000);
    Ok(AnalysisView {
        server_runtime: took.filter(|_| output.is_some()),
        output,
        error: error.transpose().map_err(StoreError::malformed)?,
        ..AnalysisView::new(&row.id, state, row.created_at)
    })
}

impl AnalysisView {
    /// An analysis without a result.
    pub(super) fn new(id: &str, state: AnalysisState, created_at: i64) -> Self {
        Self {
            id: format!("/v2/dialog_analyses/{id}"),
            state,
            created_at: rfc3339(created_at),
            server_runtime: None,
            output: None,
            error: None,
        }
    }
}

/// An analysis that is still to be worked on.
pub(super) async fn load_open(db: &impl Executor, id: &str) -> Result<Option<OpenRow>, StoreError> {
    let sql = "SELECT id, partner, quota, input, asked, reservation, created_at \
               FROM dialog_analyses WHERE id = $1 AND ended_at IS NULL";
    db.fetch_one(statement(sql, [id.into()])).await
}

/// How many questions were asked, and what is reserved for the one that is being asked.
pub(super) async fn set_asked(
    db: &impl Executor,
    id: &str,
    asked: i64,
    reservation: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE dialog_analyses SET asked = $2, reservation = $3 WHERE id = $1";
    let values = [id.into(), asked.into(), reservation.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Ends an analysis. What was asked is not needed any more, so it does not stay, and the outcome counts in its place.
pub(super) async fn end(
    transaction: &Transaction,
    row: &OpenRow,
    outcome: Result<&Output, &Reason>,
    now: i64,
) -> Result<(), StoreError> {
    let (state, output, error) = match outcome {
        Ok(output) => (
            AnalysisState::Completed,
            Some(serde_json::to_string(output)),
            None,
        ),
        Err(reason) => (
            AnalysisState::Failed,
            None,
            Some(serde_json::to_string(reason)),
        ),
    };
    let output = output.transpose().map_err(StoreError::other)?;
    let error = error.transpose().map_err(StoreError::other)?;
    let bytes = output.as_ref().or(error.as_ref()).map_or(0, String::len);
    let sql = "UPDATE dialog_analyses SET state = $2, output = $3, error = $4, input = NULL, reservation = NULL, ended_at = $5 \
               WHERE id = $1 AND ended_at IS NULL";
    let values = [
        row.id.as_str().into(),
        state.as_str().into(),
        output.into(),
        error.into(),
        now.into(),
    ];
    if transaction.execute(statement(sql, values)).await? == 1 {
        storage::replace_text(transaction, &row.partner, row.input.len(), bytes).await?;
    }
    Ok(())
}

pub(super) async fn purge(store: &Store, kept_since: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM dialog_analyses \
               WHERE id IN (SELECT id FROM dialog_analyses WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
               RETURNING partner, CAST(COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) AS BIGINT) AS bytes";
    storage::purge_texts(store, sql, kept_since).await
}
