//! The SQL of reservations and usage, and of the counters in a quota's row.

mod usage;

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, FromQueryResult, QueryResult, Value};
use serde::Serialize;

pub(super) use self::usage::{DayKey, DaySum, NewRecord, prune, usage};
use super::{
    Amounts, Limits, Period, Standing, books,
    reservation::{Entry, Held},
};
use crate::{
    accounts::quotas::Force,
    node,
    store::{Found, Rows, Trip, statement},
};

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
fn stored(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The same, as a value of a statement.
pub(in crate::accounts) fn integer(amount: u64) -> Value {
    stored(amount).into()
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

    fn row(&self) -> impl Serialize + use<'_> {
        let Standing { used, reserved, .. } = self.standing;
        (
            self.id.as_str(),
            self.standing.period_start,
            stored(used.tokens),
            stored(used.cost),
            stored(used.characters),
            stored(used.seconds),
            stored(reserved.tokens),
            stored(reserved.cost),
            stored(reserved.characters),
            stored(reserved.seconds),
            self.last_used_at,
        )
    }
}

/// The counters of a locked row that change.
const COUNTERS: [&str; 10] = [
    "period_start",
    "used_tokens",
    "used_cost",
    "used_characters",
    "used_seconds",
    "reserved_tokens",
    "reserved_cost",
    "reserved_characters",
    "reserved_seconds",
    "last_used_at",
];

/// Begins a transaction of the ledger. First it reads and locks the rows of quotas, in the order of their ids, so that two
/// nodes lock in the same order. Then it removes reservations: those that somebody else has settled are not found.
pub(super) static TAKE: LazyLock<Trip<2>> = LazyLock::new(|| {
    Trip::beginning([
        format!(
            "SELECT id, revoked_at, expires_at, disabled, last_used_at, {STANDING} \
             FROM quotas WHERE id IN (SELECT value ->> 0 FROM {{rows}}) ORDER BY id{{lock}}"
        ),
        "DELETE FROM reservations WHERE id IN (SELECT value ->> 0 FROM {rows}) RETURNING id, period_start".to_owned(),
    ])
});

/// The rows of [`TAKE`].
pub(super) fn taking<'a>(
    quotas: impl IntoIterator<Item = &'a str>,
    reservations: impl IntoIterator<Item = &'a str>,
) -> Result<[Rows; 2], DbErr> {
    Ok([
        Rows::of(quotas.into_iter().map(|id| [id]))?,
        Rows::of(reservations.into_iter().map(|id| [id]))?,
    ])
}

/// What [`TAKE`] found.
pub(super) struct Taken {
    /// The quotas, by id.
    pub(super) accounts: HashMap<String, Account>,
    /// The start of the period of the reservations that were removed, by id.
    pub(super) reservations: HashMap<String, i64>,
}

impl Taken {
    pub(super) fn parse([accounts, reservations]: Found<2>) -> Result<Self, DbErr> {
        let account = |row| Account::parse(row).map(|account| (account.id.clone(), account));
        let reservation =
            |row: &QueryResult| Ok((row.try_get("", "id")?, row.try_get("", "period_start")?));
        Ok(Self {
            accounts: accounts.iter().map(account).collect::<Result<_, _>>()?,
            reservations: reservations
                .iter()
                .map(reservation)
                .collect::<Result<_, DbErr>>()?,
        })
    }
}

/// Ends it: stores reservations, the counters of locked quotas, usage in detail, and what is added to the sums of days.
pub(super) static PUT: LazyLock<Trip<4>> = LazyLock::new(|| {
    let counters = COUNTERS.map(|column| format!("{column} = new.{column}"));
    let new = fields(&["id"], &COUNTERS);
    Trip::committing([
        insert(
            "reservations",
            &[
                "id",
                "quota",
                "node_id",
                "endpoint",
                "model",
                "character_ref",
                "request_id",
            ],
            &[
                "period_start",
                "tokens",
                "cost",
                "characters",
                "seconds",
                "created_at",
            ],
        ),
        format!(
            "UPDATE quotas SET {} FROM (SELECT {new} FROM {{rows}}) AS new WHERE quotas.id = new.id",
            counters.join(", ")
        ),
        usage::insert_records(),
        usage::add_days(),
    ])
});

/// Inserts rows of these texts and then these whole numbers.
fn insert(table: &str, texts: &[&str], integers: &[&str]) -> String {
    let columns = [texts, integers].concat().join(", ");
    let fields = fields(texts, integers);
    // The condition tells SQLite that what may follow is no part of a join.
    format!("INSERT INTO {table} ({columns}) SELECT {fields} FROM {{rows}} WHERE true")
}

/// The fields of rows of these texts and then these whole numbers, to select.
fn fields(texts: &[&str], integers: &[&str]) -> String {
    let texts = texts.iter().map(|name| (name, "TEXT"));
    let integers = integers.iter().map(|name| (name, "BIGINT"));
    let fields: Vec<String> = texts
        .chain(integers)
        .enumerate()
        .map(|(place, (name, kind))| format!("CAST(value ->> {place} AS {kind}) AS {name}"))
        .collect();
    fields.join(", ")
}

/// The rows of [`PUT`]. Of the accounts it takes those that changed.
pub(super) fn putting<'a>(
    reservations: &[NewReservation<'_>],
    accounts: impl IntoIterator<Item = &'a Account>,
    records: &[NewRecord<'_>],
    days: impl IntoIterator<Item = (&'a DayKey<'a>, &'a DaySum)>,
) -> Result<[Rows; 4], DbErr> {
    let changed = accounts.into_iter().filter(|account| account.changed);
    Ok([
        Rows::of(reservations.iter().map(NewReservation::row))?,
        Rows::of(changed.map(Account::row))?,
        Rows::of(records.iter().map(NewRecord::row))?,
        Rows::of(days.into_iter().map(usage::day_row))?,
    ])
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

impl<'a> NewReservation<'a> {
    fn row(&self) -> impl Serialize + use<'a> {
        let entry = self.entry;
        (
            self.id,
            self.quota,
            self.node,
            entry.endpoint.as_ref(),
            entry.model.as_str(),
            entry.character.as_deref(),
            entry.request_id.as_str(),
            self.period_start,
            stored(self.bound.tokens),
            stored(self.bound.cost),
            stored(self.bound.characters),
            stored(self.bound.seconds),
            self.created_at,
        )
    }
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
