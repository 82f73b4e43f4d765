//! Budgets: what something that has no key may use, for ever.
//!
//! A budget is a row of quotas like any other, with the same limits and counters, that no key opens and no list of quotas shows. What is
//! reserved of it belongs to no process ([`reserve_kept`](super::reserve_kept)): whoever does the work reserves and settles in the transactions that store the work itself, so
//! that one is not there without the other. A reservation that nobody settles keeps its bound.

use std::collections::HashMap;

use colloquy_store::{Dialect, Executor, StoreError, Transaction, placeholders, statement};

use super::{
    Limits, Standing,
    store::{self, QUOTA_AMOUNTS, StandingRow},
};
use crate::Tenant;

/// Opens a budget under an id that nothing else has.
///
/// # Errors
/// The database's failure.
pub async fn open(
    transaction: &Transaction,
    tenant: &Tenant,
    id: &str,
    limits: &Limits,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
               VALUES ($1, $2, 'budget', '', '', '[]', $3, 'lifetime', 0, $4, $4)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        false.into(),
        now.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    store::set_limits(transaction, id, limits).await
}

/// The prefix of the id of the budget of drafts; the id of the partner follows. Ids of other budgets and of quotas have no colon.
pub(super) const DRAFTS: &str = "drafts:";
/// The name of that budget in reports of usage.
const DRAFTS_NAME: &str = "Replies of drafts";

/// Returns the id of the budget that replies of a partner's drafts are counted in, which have no quota. Opens it, without limits, if there is none.
/// Reports of the partner's usage have it beside the quotas.
///
/// # Errors
/// The database's failure.
pub async fn of_drafts(
    db: &impl Executor,
    tenant: &Tenant,
    now: i64,
) -> Result<String, StoreError> {
    let partner = tenant.partner().as_str();
    let id = format!("{DRAFTS}{partner}");
    let sql = "SELECT COUNT(*) FROM quotas WHERE id = $1";
    if db.fetch_count(statement(sql, [id.as_str().into()])).await? == 0 {
        // Another request may open it at this moment.
        let sql = "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
                   VALUES ($1, $2, 'budget', $3, '', '[]', $4, 'lifetime', 0, $5, $5) ON CONFLICT (id) DO NOTHING";
        let values = [
            id.as_str().into(),
            partner.into(),
            DRAFTS_NAME.into(),
            false.into(),
            now.into(),
        ];
        db.execute(statement(sql, values)).await?;
    }
    Ok(id)
}

/// Gives it other limits. What is used stays as it is, also above them.
///
/// # Errors
/// The database's failure.
pub async fn set_limits(
    transaction: &Transaction,
    id: &str,
    limits: &Limits,
) -> Result<(), StoreError> {
    store::set_limits(transaction, id, limits).await
}

/// Ends it, with what is reserved of it. The records of what it used stay for as long as others.
///
/// # Errors
/// The database's failure.
pub async fn close(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM quotas WHERE id = $1 AND purpose = 'budget'";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct BudgetRow {
    #[sqlx(flatten)]
    standing: StandingRow,
    amounts: Option<String>,
}

/// How it stands; `None` when there is no such budget.
///
/// # Errors
/// The database's failure.
pub async fn standing(db: &impl Executor, id: &str) -> Result<Option<Standing>, StoreError> {
    let sql = format!(
        "SELECT period, period_start, {QUOTA_AMOUNTS} FROM quotas WHERE id = $1 AND purpose = 'budget'"
    );
    let row: Option<BudgetRow> = db.fetch_one(statement(sql, [id.into()])).await?;
    let parse = |row: BudgetRow| row.standing.parse_with(row.amounts.as_deref());
    row.map(parse).transpose()
}

#[derive(sqlx::FromRow)]
struct ListedBudgetRow {
    id: String,
    #[sqlx(flatten)]
    budget: BudgetRow,
}

/// Returns how budgets stand, by their ids, without those that do not exist.
///
/// # Errors
/// The database's failure.
pub async fn standings(
    db: &impl Executor,
    ids: &[String],
) -> Result<HashMap<String, Standing>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut values = Vec::new();
    let listed = placeholders(&mut values, ids.iter().map(String::as_str));
    let sql = format!(
        "SELECT id, period, period_start, {QUOTA_AMOUNTS} FROM quotas WHERE id IN ({listed}) AND purpose = 'budget'"
    );
    let rows: Vec<ListedBudgetRow> = db.fetch_all(statement(sql, values)).await?;
    let parse = |row: ListedBudgetRow| {
        let standing = row.budget.standing;
        Ok((row.id, standing.parse_with(row.budget.amounts.as_deref())?))
    };
    rows.into_iter().map(parse).collect()
}

/// Locks it until the transaction ends, and says how it stands: nobody else reserves, settles or sets limits meanwhile.
///
/// # Errors
/// The database's failure.
pub async fn lock(transaction: &Transaction, id: &str) -> Result<Option<Standing>, StoreError> {
    if transaction.dialect() == Dialect::Postgres {
        // Before it: whoever deletes the partner locks that first, and what refers to the partner may be stored after this.
        let sql = "SELECT 1 FROM partners p JOIN quotas q ON q.partner = p.id WHERE q.id = $1 AND q.purpose = 'budget' FOR KEY SHARE OF p";
        transaction.execute(statement(sql, [id.into()])).await?;
        let sql = "SELECT id FROM quotas WHERE id = $1 AND purpose = 'budget' FOR UPDATE";
        transaction.execute(statement(sql, [id.into()])).await?;
    }
    // What is read in the statement that locks may be older than the lock.
    standing(transaction, id).await
}
