//! The SQL of how quotas stand: a row of `quota_amounts` for each measure that has a limit or was ever used.

use colloquy_store::{Executor, StoreError, Transaction, statement};

use super::{
    Amounts, PUT, Standing, TAKE, Taken, insert, measure, parse_amounts, putting, stored,
    sums::{Sums, summed},
    taking,
};
use crate::{
    ledger::{Limits, Period, books},
    quotas::for_update,
};

/// How a quota stands, in its row: without its amounts.
#[derive(sqlx::FromRow)]
pub(crate) struct StandingRow {
    period: String,
    period_start: i64,
}

impl StandingRow {
    pub(super) fn parse(self) -> Result<Standing, StoreError> {
        Ok(Standing {
            period: Period::from_stored(&self.period)
                .ok_or_else(|| StoreError::malformed("quotas.period holds an unknown period"))?,
            period_start: self.period_start,
            limits: Limits::default(),
            used: Amounts::default(),
            reserved: Amounts::default(),
        })
    }

    /// With what [`QUOTA_AMOUNTS`] selected beside it.
    pub(crate) fn parse_with(self, amounts: Option<&str>) -> Result<Standing, StoreError> {
        let mut standing = self.parse()?;
        let rows = serde_json::from_str(amounts.unwrap_or("[]")).map_err(StoreError::malformed)?;
        let rows: Vec<(String, Option<i64>, i64, i64)> = rows;
        for (measure, limit, used, reserved) in rows {
            add(&mut standing, &measure, limit, used, reserved)?;
        }
        Ok(standing)
    }
}

/// The amounts of the quotas that a statement finds, as one column, `amounts`: they are of the moment at which their quotas
/// were read. It is null, or a JSON array of `[measure, limit_amount, used, reserved]`.
pub(crate) const QUOTA_AMOUNTS: &str = "(SELECT '[' || string_agg('[\"' || measure || '\",' \
     || COALESCE(CAST(limit_amount AS TEXT), 'null') || ',' || CAST(used AS TEXT) || ',' || CAST(reserved AS TEXT) || ']', ',') \
     || ']' FROM quota_amounts WHERE quota_amounts.quota = quotas.id) AS amounts";

/// Returns the SQL of the part of a limit that is used, in millionths: a million for all of it and more. The limit is not null.
#[must_use]
pub fn part_of_limit(used: &str, limit: &str) -> String {
    format!(
        "CASE WHEN {used} >= {limit} THEN 1000000 ELSE CAST(1000000.0 * ({used}) / {limit} AS BIGINT) END"
    )
}

/// An amount of a quota.
#[derive(sqlx::FromRow)]
pub(super) struct AmountRow {
    pub(super) quota: String,
    measure: String,
    limit_amount: Option<i64>,
    used: i64,
    reserved: i64,
}

impl AmountRow {
    pub(super) fn add_to(&self, standing: &mut Standing) -> Result<(), StoreError> {
        add(
            standing,
            &self.measure,
            self.limit_amount,
            self.used,
            self.reserved,
        )
    }
}

fn add(
    standing: &mut Standing,
    name: &str,
    limit: Option<i64>,
    used: i64,
    reserved: i64,
) -> Result<(), StoreError> {
    let measure = measure(name)?;
    standing.limits = standing.limits.with(measure, limit.map(i64::unsigned_abs));
    standing.used = standing.used.with(measure, used.unsigned_abs());
    standing.reserved = standing.reserved.with(measure, reserved.unsigned_abs());
    Ok(())
}

/// Stores what is used and reserved of locked quotas; the limits stay as they are.
pub(super) fn put_counters() -> String {
    let insert = insert(
        "quota_amounts",
        &["quota", "measure"],
        &["used", "reserved"],
    );
    format!(
        "{insert} ON CONFLICT (quota, measure) DO UPDATE SET used = excluded.used, reserved = excluded.reserved"
    )
}

/// Stores the limits of a locked quota, or of a new one; the counters stay as they are.
pub(crate) async fn set_limits(
    connection: &impl Executor,
    quota: &str,
    limits: &Limits,
) -> Result<(), StoreError> {
    let sql = "UPDATE quota_amounts SET limit_amount = NULL WHERE quota = $1";
    connection.execute(statement(sql, [quota.into()])).await?;
    for (measure, limit) in limits.iter() {
        let Some(limit) = limit else { continue };
        let sql = "INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved) VALUES ($1, $2, $3, 0, 0) \
                   ON CONFLICT (quota, measure) DO UPDATE SET limit_amount = excluded.limit_amount";
        let values = [
            quota.into(),
            measure.stored_name().into(),
            stored(limit).into(),
        ];
        connection.execute(statement(sql, values)).await?;
    }
    Ok(())
}

/// Some of the quotas whose period begins after this time.
pub(crate) async fn ahead(
    db: &impl Executor,
    after: i64,
    most: u64,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT id FROM quotas WHERE period_start > $1 ORDER BY period_start LIMIT $2";
    let rows: Vec<QuotaId> = db
        .fetch_all(statement(sql, [after.into(), stored(most).into()]))
        .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

#[derive(sqlx::FromRow)]
struct QuotaId {
    id: String,
}

/// Locks a quota whose period begins after this time, and tells its sort of period; `None` when it does not any more.
pub(crate) async fn lock_ahead(
    transaction: &Transaction,
    quota: &str,
    after: i64,
) -> Result<Option<Period>, StoreError> {
    let sql = format!(
        "SELECT period, period_start FROM quotas WHERE id = $1 AND period_start > $2 {}",
        for_update(transaction)
    );
    let row: Option<StandingRow> = transaction
        .fetch_one(statement(sql, [quota.into(), after.into()]))
        .await?;
    row.map(|row| row.parse().map(|standing| standing.period))
        .transpose()
}

/// Gives reservations of a locked quota that were made after this time, by a clock that was wrong, the time that it is.
pub(crate) async fn bring_back(
    transaction: &Transaction,
    quota: &str,
    after: i64,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE reservations SET created_at = $3 WHERE quota = $1 AND created_at > $2";
    let values = [quota.into(), after.into(), now.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Counts the running period of a locked quota anew, after its sort of period was changed or it was ahead of time: what was
/// used in the period of this time, and the reservations that were made in it.
pub(crate) async fn recount(
    transaction: &Transaction,
    quota: &str,
    period: Period,
    now: i64,
) -> Result<(), StoreError> {
    let start = period.start(now);
    let end = period.end(start);
    let sql = "UPDATE reservations SET period_start = $2 \
               WHERE quota = $1 AND created_at >= $2 AND created_at < COALESCE(CAST($3 AS BIGINT), created_at + 1)";
    transaction
        .execute(statement(sql, [quota.into(), start.into(), end.into()]))
        .await?;
    let taken = TAKE.run_in(transaction, taking([quota], [])?).await?;
    let mut taken = Taken::parse(taken)?;
    for account in taken.accounts.values_mut() {
        account.standing = Standing {
            period_start: start,
            used: used_in(transaction, quota, start, end).await?,
            reserved: reserved_in(transaction, quota, start).await?,
            ..account.standing
        };
    }
    let putting = putting(&[], taken.accounts.values(), &[], [])?;
    PUT.run_in(transaction, putting).await.map(|_| ())
}

/// What was used of a quota between these times, by the sums of its days; without an end since the first.
async fn used_in(
    transaction: &Transaction,
    quota: &str,
    start: i64,
    end: Option<i64>,
) -> Result<Amounts, StoreError> {
    let sql = format!(
        "SELECT {} FROM usage_days WHERE quota = $1 AND day >= $2 AND (CAST($3 AS TEXT) IS NULL OR day < $3)",
        summed()
    );
    let values = [
        quota.into(),
        books::day(start).into(),
        end.map(books::day).into(),
    ];
    let sums: Option<Sums> = transaction.fetch_one(statement(sql, values)).await?;
    let used = sums.map_or(Amounts::default(), |sums| sums.0);
    Ok(used.limited())
}

/// Reservations that are read together.
const SOME: usize = 1_000;

/// A reservation's bound.
#[derive(sqlx::FromRow)]
struct Bound {
    id: String,
    amounts: String,
}

/// What is reserved of a quota in the period that began then.
async fn reserved_in(
    transaction: &Transaction,
    quota: &str,
    start: i64,
) -> Result<Amounts, StoreError> {
    let mut reserved = Amounts::default();
    let mut after = String::new();
    loop {
        let sql = "SELECT id, amounts FROM reservations WHERE quota = $1 AND period_start = $2 AND id > $3 ORDER BY id LIMIT $4";
        let values = [
            quota.into(),
            start.into(),
            after.as_str().into(),
            stored(SOME as u64).into(),
        ];
        let rows: Vec<Bound> = transaction.fetch_all(statement(sql, values)).await?;
        for row in &rows {
            reserved = reserved.plus(parse_amounts(&row.amounts)?);
        }
        match rows.into_iter().nth(SOME - 1) {
            Some(last) => after = last.id,
            None => return Ok(reserved),
        }
    }
}
