//! The SQL of analyses.

use colloquy_accounts::{Tenant, storage};
use colloquy_base::clock::rfc3339;
use colloquy_store::{
    Executor, Order, Slice, Store, StoreError, Transaction, Value, placeholders, statement,
};

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
    /// When it was created, or begun again after it had failed.
    pub(super) begun_at: i64,
}

impl OpenRow {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    /// # Errors
    /// When it cannot be read; where, and nothing of what it says, since that is what people said.
    pub(super) fn input(&self) -> Result<Input, StoreError> {
        read_input(&self.input)
    }
}

fn read_input(stored: &str) -> Result<Input, StoreError> {
    serde_json::from_str(stored).map_err(|error| {
        let column = error.column();
        StoreError::malformed(format!(
            "the stored input cannot be read at column {column}"
        ))
    })
}

/// An analysis as its client reads it. Those of lists have no output.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) id: String,
    state: String,
    output: Option<String>,
    error: Option<String>,
    /// Whether it has its input.
    has_input: i64,
    created_at: i64,
    begun_at: i64,
    ended_at: Option<i64>,
}

/// The columns of [`Row`] without the output.
const COLUMNS: &str = "id, state, error, CAST(CASE WHEN input IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_input, created_at, \
     COALESCE(retried_at, created_at) AS begun_at, ended_at";

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

/// The condition of an analysis that the caller reaches: the one with the id `$1`, of the partner `$2` and the quota `$4`, where there are such,
/// unless it ended at `$3` or before.
const REACHED: &str = "id = $1 AND (CAST($2 AS TEXT) IS NULL OR partner = $2) AND (ended_at IS NULL OR ended_at > $3) \
     AND (CAST($4 AS TEXT) IS NULL OR quota = $4)";

/// An analysis that a caller asks for, by its id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) id: &'a str,
    /// The partner that the caller is limited to.
    pub(super) tenant: Option<&'a Tenant>,
    /// The quota that the caller is limited to.
    pub(super) quota: Option<&'a str>,
    pub(super) kept_since: i64,
}

impl Sought<'_> {
    fn values(&self) -> [Value; 4] {
        [
            self.id.into(),
            self.tenant.map(|tenant| tenant.partner().as_str()).into(),
            self.kept_since.into(),
            self.quota.into(),
        ]
    }
}

pub(super) async fn find(
    db: &impl Executor,
    sought: Sought<'_>,
) -> Result<Option<AnalysisView>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, output FROM dialog_analyses WHERE {REACHED}");
    let row: Option<Row> = db.fetch_one(statement(sql, sought.values())).await?;
    row.map(view).transpose()
}

/// What an analysis was asked; `None` within if it does not have that any more.
pub(super) async fn input(
    db: &impl Executor,
    sought: Sought<'_>,
) -> Result<Option<Option<Input>>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Stored {
        input: Option<String>,
    }
    let sql = format!("SELECT input FROM dialog_analyses WHERE {REACHED}");
    let row: Option<Stored> = db.fetch_one(statement(sql, sought.values())).await?;
    let input = row.map(|row| row.input.as_deref().map(read_input).transpose());
    input.transpose()
}

/// Which analyses to list.
#[derive(Debug)]
pub(super) struct AnalysisFilter<'a> {
    /// Those of this partner.
    pub(super) tenant: Option<&'a Tenant>,
    /// Those that this quota pays for.
    pub(super) quota: Option<&'a str>,
    /// Those in these states; in any if there is none.
    pub(super) states: &'a [AnalysisState],
    /// Those created at this time or later, in milliseconds since 1970.
    pub(super) created_from: Option<i64>,
    /// Those created before this time.
    pub(super) created_before: Option<i64>,
    /// Those that have not ended, or after this time.
    pub(super) kept_since: i64,
}

/// A part of the analyses, without their outputs, newest first: ids sort by their time.
pub(super) async fn list(
    db: &impl Executor,
    filter: &AnalysisFilter<'_>,
    slice: &Slice,
) -> Result<Vec<Row>, StoreError> {
    let mut sql = format!(
        "SELECT {COLUMNS}, CAST(NULL AS TEXT) AS output FROM dialog_analyses WHERE (ended_at IS NULL OR ended_at > $1)"
    );
    let mut values: Vec<Value> = vec![filter.kept_since.into()];
    let partner = filter.tenant.map(|tenant| tenant.partner().as_str());
    let conditions: [(&str, Option<Value>); 4] = [
        ("partner =", partner.map(Into::into)),
        ("quota =", filter.quota.map(Into::into)),
        ("created_at >=", filter.created_from.map(Into::into)),
        ("created_at <", filter.created_before.map(Into::into)),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    }
    if !filter.states.is_empty() {
        let states = filter.states.iter().map(|state| state.as_str());
        let states = placeholders(&mut values, states);
        sql.push_str(&format!(" AND state IN ({states})"));
    }
    slice.complete(&mut sql, &mut values, "id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

pub(super) fn view(row: Row) -> Result<AnalysisView, StoreError> {
    let state = AnalysisState::try_from(row.state)?;
    let output = row.output.as_deref().map(serde_json::from_str::<Output>);
    let error = row.error.as_deref().map(serde_json::from_str::<Reason>);
    // Each second that was begun.
    let took = row
        .ended_at
        .map(|ended| (ended - row.begun_at + 999) / 1_000);
    Ok(AnalysisView {
        server_runtime: took.filter(|_| state == AnalysisState::Completed),
        output: output.transpose().map_err(StoreError::malformed)?,
        error: error.transpose().map_err(StoreError::malformed)?,
        retryable: (state == AnalysisState::Failed).then_some(row.has_input == 1),
        ended_at: row.ended_at.map(rfc3339),
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
            retryable: None,
            ended_at: None,
        }
    }
}

/// An analysis that is still to be worked on.
pub(super) async fn load_open(db: &impl Executor, id: &str) -> Result<Option<OpenRow>, StoreError> {
    let sql = "SELECT id, partner, quota, input, asked, reservation, COALESCE(retried_at, created_at) AS begun_at \
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

/// Ends an analysis. What was asked stays only if it failed, so that it can be tried again; else the result counts in its place.
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
    let (input, input_bytes) = match state {
        AnalysisState::Failed => ("", 0),
        _ => (", input = NULL", row.input.len()),
    };
    let sql = format!(
        "UPDATE dialog_analyses SET state = $2, output = $3, error = $4, reservation = NULL, ended_at = $5{input} \
         WHERE id = $1 AND ended_at IS NULL"
    );
    let values = [
        row.id.as_str().into(),
        state.as_str().into(),
        output.into(),
        error.into(),
        now.into(),
    ];
    if transaction.execute(statement(sql, values)).await? == 1 {
        storage::replace_text(transaction, &row.partner, input_bytes, bytes).await?;
    }
    Ok(())
}

/// An analysis that is to be tried again.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Standing {
    partner: String,
    pub(super) quota: Option<String>,
    state: String,
    has_input: i64,
    retried_at: Option<i64>,
    /// The bytes of its error.
    pub(super) error_bytes: i64,
}

impl Standing {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    pub(super) fn state(&self) -> Result<AnalysisState, StoreError> {
        Ok(AnalysisState::try_from(self.state.clone())?)
    }

    pub(super) fn has_input(&self) -> bool {
        self.has_input == 1
    }

    /// Returns true if it was begun again.
    pub(super) fn is_retried(&self) -> bool {
        self.retried_at.is_some()
    }
}

pub(super) async fn standing(
    db: &impl Executor,
    sought: Sought<'_>,
) -> Result<Option<Standing>, StoreError> {
    let sql = format!(
        "SELECT partner, quota, state, CAST(CASE WHEN input IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_input, retried_at, \
         CAST(COALESCE(octet_length(error), 0) AS BIGINT) AS error_bytes FROM dialog_analyses WHERE {REACHED}"
    );
    db.fetch_one(statement(sql, sought.values())).await
}

/// Begins an analysis again that failed and has its input. Returns false if there is none any more.
pub(super) async fn begin_again(
    db: &Transaction,
    id: &str,
    kept_since: i64,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE dialog_analyses SET state = 'in-progress', error = NULL, ended_at = NULL, asked = 0, retried_at = $3 \
               WHERE id = $1 AND state = 'failed' AND ended_at > $2 AND input IS NOT NULL";
    let values = [id.into(), kept_since.into(), now.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

pub(super) async fn purge(store: &Store, kept_since: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM dialog_analyses \
               WHERE id IN (SELECT id FROM dialog_analyses WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
               RETURNING partner, CAST(COALESCE(octet_length(input), 0) + COALESCE(octet_length(output), 0) \
               + COALESCE(octet_length(error), 0) AS BIGINT) AS bytes";
    storage::purge_texts(store, sql, kept_since).await
}
