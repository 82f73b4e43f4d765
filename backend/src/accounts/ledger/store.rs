//! The SQL of reservations and usage, and of the counters in a quota's row.

mod rows;
mod usage;

use std::{borrow::Cow, collections::HashMap};

use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, FromQueryResult, QueryResult, Value,
};

use self::rows::Rows;
pub(super) use self::usage::{DayKey, DaySum, NewRecord, add_days, insert_records, prune, usage};
use super::{
    Amounts, Limits, Period, Standing, books,
    reservation::{Entry, Held},
};
use crate::{accounts::quotas::Force, node, store::statement};

/// The columns that [`standing`] reads.
pub(in crate::accounts) const STANDING: &str = "period, period_start, limit_tokens, limit_cost, limit_characters, \
     limit_seconds, used_tokens, used_cost, used_characters, used_seconds, reserved_tokens, reserved_cost, \
     reserved_characters, reserved_seconds";

#[derive(FromQueryResult)]
struct StandingRow {
    period: String,
    period_start: i64,
    limit_tokens: Option<i64>,
    limit_cost: Option<i64>,
    limit_characters: Option<i64>,
    limit_seconds: Option<i64>,
    used_tokens: i64,
    used_cost: i64,
    used_characters: i64,
    used_seconds: i64,
    reserved_tokens: i64,
    reserved_cost: i64,
    reserved_characters: i64,
    reserved_seconds: i64,
}

/// Reads how a quota stands from its row.
pub(in crate::accounts) fn standing(row: &QueryResult) -> Result<Standing, DbErr> {
    let row = StandingRow::from_query_result(row, "")?;
    Ok(Standing {
        period: Period::from_stored(&row.period)
            .ok_or_else(|| DbErr::Type("quotas.period holds an unknown period".to_owned()))?,
        period_start: row.period_start,
        limits: Limits {
            tokens: row.limit_tokens.map(i64::unsigned_abs),
            cost: row.limit_cost.map(i64::unsigned_abs),
            characters: row.limit_characters.map(i64::unsigned_abs),
            seconds: row.limit_seconds.map(i64::unsigned_abs),
        },
        used: Amounts {
            tokens: row.used_tokens.unsigned_abs(),
            cost: row.used_cost.unsigned_abs(),
            characters: row.used_characters.unsigned_abs(),
            seconds: row.used_seconds.unsigned_abs(),
        },
        reserved: Amounts {
            tokens: row.reserved_tokens.unsigned_abs(),
            cost: row.reserved_cost.unsigned_abs(),
            characters: row.reserved_characters.unsigned_abs(),
            seconds: row.reserved_seconds.unsigned_abs(),
        },
    })
}

/// An amount as the database keeps it.
pub(in crate::accounts) fn integer(amount: u64) -> Value {
    i64::try_from(amount).unwrap_or(i64::MAX).into()
}

/// A quota's row, locked, as the writer needs it.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) id: String,
    pub(super) standing: Standing,
    pub(super) force: Force,
    pub(super) last_used_at: Option<i64>,
    /// Whether it has to be written.
    pub(super) changed: bool,
}

impl Account {
    fn parse(row: &QueryResult) -> Result<Self, DbErr> {
        Ok(Self {
            id: row.try_get("", "id")?,
            standing: standing(row)?,
            force: Force {
                revoked: row.try_get::<Option<i64>>("", "revoked_at")?.is_some(),
                expires_at: row.try_get("", "expires_at")?,
                disabled: row.try_get("", "disabled")?,
            },
            last_used_at: row.try_get("", "last_used_at")?,
            changed: false,
        })
    }
}

/// Reads and locks the rows of these quotas. The ids are sorted, so that two nodes lock in the same order; on SQLite the
/// transaction is the lock.
pub(super) async fn lock(
    transaction: &DatabaseTransaction,
    ids: &[&str],
) -> Result<HashMap<String, Account>, DbErr> {
    const SELECT: &str = "SELECT id, revoked_at, expires_at, disabled, last_used_at, period, \
         period_start, limit_tokens, limit_cost, limit_characters, limit_seconds, used_tokens, used_cost, \
         used_characters, used_seconds, reserved_tokens, reserved_cost, reserved_characters, reserved_seconds \
         FROM quotas WHERE id IN (";
    static SQLITE: Rows<1> = Rows::new(SELECT, ")");
    static POSTGRES: Rows<1> = Rows::new(SELECT, ") ORDER BY id FOR UPDATE");
    let rows = match transaction.get_database_backend() {
        DbBackend::Postgres => &POSTGRES,
        _ => &SQLITE,
    };
    let found = rows
        .query(transaction, ids.iter().map(|id| [(*id).into()]))
        .await?;
    found
        .iter()
        .map(|row| Account::parse(row).map(|account| (account.id.clone(), account)))
        .collect()
}

/// Writes the counters of a locked row back.
pub(super) async fn save(
    transaction: &DatabaseTransaction,
    account: &Account,
) -> Result<(), DbErr> {
    let sql = "UPDATE quotas SET period_start = $2, used_tokens = $3, used_cost = $4, used_characters = $5, \
               used_seconds = $6, reserved_tokens = $7, reserved_cost = $8, reserved_characters = $9, \
               reserved_seconds = $10, last_used_at = $11 WHERE id = $1";
    let Standing { used, reserved, .. } = account.standing;
    let values = [
        account.id.as_str().into(),
        account.standing.period_start.into(),
        integer(used.tokens),
        integer(used.cost),
        integer(used.characters),
        integer(used.seconds),
        integer(reserved.tokens),
        integer(reserved.cost),
        integer(reserved.characters),
        integer(reserved.seconds),
        account.last_used_at.into(),
    ];
    transaction
        .execute_raw(statement(transaction, sql, values))
        .await
        .map(|_| ())
}

/// A reservation to store.
pub(super) struct NewReservation<'a> {
    pub(super) id: &'a str,
    pub(super) quota: &'a str,
    pub(super) node: &'a str,
    pub(super) period_start: i64,
    pub(super) bound: Amounts,
    pub(super) entry: &'a Entry,
    pub(super) created_at: i64,
}

/// Stores reservations of locked quotas.
pub(super) async fn insert(
    transaction: &DatabaseTransaction,
    new: &[NewReservation<'_>],
) -> Result<(), DbErr> {
    static INSERT: Rows<13> = Rows::new(
        "INSERT INTO reservations (id, quota, node_id, period_start, endpoint, model, character_ref, request_id, \
         tokens, cost, characters, seconds, created_at) VALUES ",
        "",
    );
    let values = new.iter().map(|new| {
        [
            new.id.into(),
            new.quota.into(),
            new.node.into(),
            new.period_start.into(),
            new.entry.endpoint.as_ref().into(),
            new.entry.model.as_str().into(),
            new.entry.character.clone().into(),
            new.entry.request_id.as_str().into(),
            integer(new.bound.tokens),
            integer(new.bound.cost),
            integer(new.bound.characters),
            integer(new.bound.seconds),
            new.created_at.into(),
        ]
    });
    INSERT.execute(transaction, values).await
}

/// Removes reservations and gives the start of their period, by id. Those that somebody else has settled are missing.
pub(super) async fn take(
    transaction: &DatabaseTransaction,
    ids: impl ExactSizeIterator<Item = &str>,
) -> Result<HashMap<String, i64>, DbErr> {
    static DELETE: Rows<1> = Rows::new(
        "DELETE FROM reservations WHERE id IN (",
        ") RETURNING id, period_start",
    );
    let found = DELETE.query(transaction, ids.map(|id| [id.into()])).await?;
    found
        .iter()
        .map(|row| Ok((row.try_get("", "id")?, row.try_get("", "period_start")?)))
        .collect()
}

/// What stands for a node where there is none.
const NO_NODE: &str = "";

/// The columns of a [`ReservationRow`].
const RESERVATION: &str = "id, quota, endpoint, model, character_ref, request_id, tokens, cost, characters, seconds, created_at";

#[derive(FromQueryResult)]
struct ReservationRow {
    id: String,
    quota: String,
    endpoint: String,
    model: String,
    character_ref: Option<String>,
    request_id: String,
    tokens: i64,
    cost: i64,
    characters: i64,
    seconds: i64,
    created_at: i64,
}

impl From<ReservationRow> for Held {
    fn from(row: ReservationRow) -> Self {
        Self {
            id: row.id,
            quota: row.quota,
            bound: Amounts {
                tokens: row.tokens.unsigned_abs(),
                cost: row.cost.unsigned_abs(),
                characters: row.characters.unsigned_abs(),
                seconds: row.seconds.unsigned_abs(),
            },
            entry: Entry {
                endpoint: Cow::Owned(row.endpoint),
                model: row.model,
                character: row.character_ref,
                request_id: row.request_id,
            },
            created_at: row.created_at,
        }
    }
}

/// Some of the reservations of nodes that are gone.
pub(super) async fn lost(
    db: &impl ConnectionTrait,
    own_node: &str,
    lost_before: i64,
    most: u64,
) -> Result<Vec<Held>, DbErr> {
    let sql = format!(
        "SELECT {RESERVATION} FROM reservations \
         WHERE node_id <> $2 AND node_id <> '{NO_NODE}' AND node_id NOT IN ({}) ORDER BY id LIMIT $3",
        node::LIVING
    );
    let values = [lost_before.into(), own_node.into(), integer(most)];
    let rows = ReservationRow::find_by_statement(statement(db, &sql, values))
        .all(db)
        .await?;
    Ok(rows.into_iter().map(Held::from).collect())
}

/// Makes a reservation one of no node.
pub(super) async fn keep(transaction: &DatabaseTransaction, id: &str) -> Result<(), DbErr> {
    let sql = "UPDATE reservations SET node_id = $2 WHERE id = $1";
    transaction
        .execute_raw(statement(transaction, sql, [id.into(), NO_NODE.into()]))
        .await
        .map(|_| ())
}

/// A reservation of no node.
pub(super) async fn kept(
    transaction: &DatabaseTransaction,
    id: &str,
) -> Result<Option<Held>, DbErr> {
    let sql = format!("SELECT {RESERVATION} FROM reservations WHERE id = $1 AND node_id = $2");
    let values = [id.into(), NO_NODE.into()];
    let row = ReservationRow::find_by_statement(statement(transaction, &sql, values))
        .one(transaction)
        .await?;
    Ok(row.map(Held::from))
}

/// Counts the running period of a locked quota anew, after its sort of period was changed: what was used since the period
/// began, and the reservations that were made since then.
pub(in crate::accounts) async fn recount(
    transaction: &DatabaseTransaction,
    quota: &str,
    period: Period,
    now: i64,
) -> Result<(), DbErr> {
    let start = period.start(now);
    let sql = "UPDATE reservations SET period_start = $2 WHERE quota = $1 AND created_at >= $2";
    let values = [quota.into(), start.into()];
    transaction
        .execute_raw(statement(transaction, sql, values))
        .await?;
    let mut counters = Vec::new();
    for column in ["tokens", "cost", "characters", "seconds"] {
        let used = match column {
            "tokens" => "input_tokens + output_tokens",
            column => column,
        };
        counters.push(format!(
            "used_{column} = (SELECT CAST(COALESCE(SUM({used}), 0) AS BIGINT) FROM usage_days WHERE quota = $1 AND day >= $3), \
             reserved_{column} = (SELECT CAST(COALESCE(SUM({column}), 0) AS BIGINT) FROM reservations \
             WHERE quota = $1 AND period_start = $2)"
        ));
    }
    let sql = format!(
        "UPDATE quotas SET period_start = $2, {} WHERE id = $1",
        counters.join(", ")
    );
    let values = [quota.into(), start.into(), books::day(start).into()];
    transaction
        .execute_raw(statement(transaction, &sql, values))
        .await
        .map(|_| ())
}
