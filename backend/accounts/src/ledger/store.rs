//! The SQL of reservations and usage, and of how quotas stand.

mod standing;
mod sums;
mod usage;

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use serde::Serialize;

pub use self::standing::part_of_limit;
pub(crate) use self::standing::{QUOTA_AMOUNTS, StandingRow, recount, set_limits};
pub(super) use self::standing::{ahead, bring_back, lock_ahead};
pub(super) use self::sums::usage;
pub(super) use self::usage::{
    DayKey, NewRecord, Record, bound_record, correct_day, prune, record, remove_record,
    replace_record,
};
use self::{standing::AmountRow, usage::DayRow};
use super::{
    Amounts, Measure, Standing,
    reservation::{Entry, Held},
};
use colloquy_kernel::node;
use colloquy_store::{
    DbRow, Executor, Found, Rows, StatementBatch, StoreError, Transaction, statement,
};

use crate::quotas::Validity;

/// An amount as the database keeps it.
pub(crate) fn stored(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The measure of this name in the database.
fn measure(name: &str) -> Result<Measure, StoreError> {
    let malformed = || StoreError::malformed(format!("an unknown measure: {name}"));
    Measure::from_stored(name).ok_or_else(malformed)
}

/// The amounts of a reservation or of a record of usage: an object without zeros.
fn parse_amounts(json: &str) -> Result<Amounts, StoreError> {
    let stored: HashMap<&str, u64> = serde_json::from_str(json).map_err(StoreError::malformed)?;
    let mut amounts = Amounts::default();
    for (name, amount) in stored {
        amounts = amounts.with(measure(name)?, amount);
    }
    Ok(amounts)
}

/// A quota, locked, as the writer needs it.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) id: String,
    pub(super) standing: Standing,
    pub(super) validity: Validity,
    pub(super) last_used_at: Option<i64>,
    /// What the database has of `standing` and `last_used_at`.
    read: (Standing, Option<i64>),
}

/// The columns of an [`Account`].
#[derive(sqlx::FromRow)]
struct AccountRow {
    id: String,
    revoked_at: Option<i64>,
    expires_at: Option<i64>,
    disabled: bool,
    last_used_at: Option<i64>,
    #[sqlx(flatten)]
    standing: StandingRow,
}

/// A reservation that was removed.
#[derive(sqlx::FromRow)]
struct Removed {
    id: String,
    period_start: i64,
}

impl Account {
    /// Without its amounts.
    fn parse(row: AccountRow) -> Result<Self, StoreError> {
        let standing = row.standing.parse()?;
        Ok(Self {
            id: row.id,
            standing,
            validity: Validity {
                revoked: row.revoked_at.is_some(),
                expires_at: row.expires_at,
                disabled: row.disabled,
            },
            last_used_at: row.last_used_at,
            read: (standing, row.last_used_at),
        })
    }

    /// What changed of its row.
    fn row(&self) -> Option<impl Serialize + use<'_>> {
        let (read, last_used_at) = self.read;
        let row = (self.standing.period_start, self.last_used_at);
        let changed = row != (read.period_start, last_used_at);
        changed.then_some((self.id.as_str(), row.0, row.1))
    }

    /// What is used and reserved of the measures of which that changed.
    fn counters(&self) -> impl Iterator<Item = impl Serialize + use<'_>> {
        let of = |standing: &Standing, measure| {
            (standing.used.of(measure), standing.reserved.of(measure))
        };
        Measure::LIMITED.into_iter().filter_map(move |measure| {
            let counted = of(&self.standing, measure);
            (counted != of(&self.read.0, measure)).then(|| {
                let (used, reserved) = (stored(counted.0), stored(counted.1));
                (self.id.as_str(), measure.stored_name(), used, reserved)
            })
        })
    }
}

/// Begins a transaction of the ledger. First it reads and locks the rows of quotas, in the order of their ids, so that two
/// nodes lock in the same order. Then it reads their amounts: only a statement that begins when they are locked sees what
/// somebody else has written who had them locked before. Last it removes reservations: those that somebody else has settled
/// are not found.
pub(super) static TAKE: LazyLock<StatementBatch<3>> = LazyLock::new(|| {
    StatementBatch::beginning([
        "SELECT id, revoked_at, expires_at, disabled, last_used_at, period, period_start \
         FROM quotas WHERE id IN (SELECT value ->> 0 FROM {rows}) ORDER BY id{lock}"
            .to_owned(),
        "SELECT quota, measure, limit_amount, used, reserved \
         FROM quota_amounts WHERE quota IN (SELECT value ->> 0 FROM {rows})"
            .to_owned(),
        "DELETE FROM reservations WHERE id IN (SELECT value ->> 0 FROM {rows}) RETURNING id, period_start".to_owned(),
    ])
});

/// The rows of [`TAKE`].
pub(super) fn taking<'a>(
    quotas: impl IntoIterator<Item = &'a str>,
    reservations: impl IntoIterator<Item = &'a str>,
) -> Result<[Rows; 3], StoreError> {
    let quotas = Rows::of(quotas.into_iter().map(|id| [id]))?;
    Ok([
        quotas.clone(),
        quotas,
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
    pub(super) fn parse([quotas, amounts, reservations]: Found<3>) -> Result<Self, StoreError> {
        let account = |row: &DbRow| {
            let account = Account::parse(row.read()?)?;
            Ok((account.id.clone(), account))
        };
        let reservation = |row: &DbRow| {
            let removed: Removed = row.read()?;
            Ok((removed.id, removed.period_start))
        };
        let mut accounts = quotas
            .iter()
            .map(account)
            .collect::<Result<HashMap<_, _>, StoreError>>()?;
        for row in &amounts {
            let row: AmountRow = row.read()?;
            if let Some(account) = accounts.get_mut(&row.quota) {
                row.add_to(&mut account.standing)?;
                account.read.0 = account.standing;
            }
        }
        Ok(Self {
            accounts,
            reservations: reservations
                .iter()
                .map(reservation)
                .collect::<Result<_, StoreError>>()?,
        })
    }
}

/// Ends it: stores reservations, locked quotas and their counters, usage in detail, and what is added to the sums of days.
pub(super) static PUT: LazyLock<StatementBatch<5>> = LazyLock::new(|| {
    let quota = fields(&["id"], &["period_start", "last_used_at"]);
    StatementBatch::committing([
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
                "amounts",
            ],
            &["period_start", "created_at"],
        ),
        format!(
            "UPDATE quotas SET period_start = new.period_start, last_used_at = new.last_used_at \
             FROM (SELECT {quota} FROM {{rows}}) AS new WHERE quotas.id = new.id"
        ),
        standing::put_counters(),
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

/// The rows of [`PUT`]. Of the accounts it takes what changed.
pub(super) fn putting<'a>(
    reservations: &[NewReservation<'_>],
    accounts: impl IntoIterator<Item = &'a Account> + Clone,
    records: &[NewRecord<'_>],
    days: impl IntoIterator<Item = (&'a DayKey<'a>, &'a Amounts)>,
) -> Result<[Rows; 5], StoreError> {
    Ok([
        Rows::of(reservations.iter().map(NewReservation::row))?,
        Rows::of(accounts.clone().into_iter().filter_map(Account::row))?,
        Rows::of(accounts.into_iter().flat_map(Account::counters))?,
        Rows::of(records.iter().map(NewRecord::row))?,
        Rows::of(days.into_iter().map(|(key, sum)| DayRow { key, sum: *sum }))?,
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
            self.bound,
            self.period_start,
            self.created_at,
        )
    }
}

/// What stands for a node where there is none.
pub(super) const NO_NODE: &str = "";

/// The columns of a [`ReservationRow`].
const RESERVATION: &str =
    "id, quota, endpoint, model, character_ref, request_id, amounts, created_at";

#[derive(sqlx::FromRow)]
struct ReservationRow {
    id: String,
    quota: String,
    endpoint: String,
    model: String,
    character_ref: Option<String>,
    request_id: String,
    amounts: String,
    created_at: i64,
}

impl ReservationRow {
    fn parse(self) -> Result<Held, StoreError> {
        Ok(Held {
            bound: parse_amounts(&self.amounts)?,
            id: self.id,
            quota: self.quota,
            entry: Entry {
                endpoint: Cow::Owned(self.endpoint),
                model: self.model,
                character: self.character_ref,
                request_id: self.request_id,
            },
            created_at: self.created_at,
        })
    }
}

/// Some of the reservations of nodes that are gone. One that cannot be read is left to a server that can: a newer one may have
/// made it.
pub(super) async fn lost(
    db: &impl Executor,
    own_node: &str,
    lost_before: i64,
    most: u64,
) -> Result<Vec<Held>, StoreError> {
    let sql = format!(
        "SELECT {RESERVATION} FROM reservations \
         WHERE node_id <> $2 AND node_id <> '{NO_NODE}' AND node_id NOT IN ({}) ORDER BY id LIMIT $3",
        node::LIVING
    );
    let values = [lost_before.into(), own_node.into(), stored(most).into()];
    let rows: Vec<ReservationRow> = db.fetch_all(statement(sql, values)).await?;
    let found = rows.len();
    let read: Vec<_> = rows.into_iter().flat_map(ReservationRow::parse).collect();
    if read.len() < found {
        let unreadable = found - read.len();
        tracing::error!(unreadable, "lost reservations cannot be read");
    }
    Ok(read)
}

/// Makes a reservation one of no node.
pub(super) async fn keep(transaction: &Transaction, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE reservations SET node_id = $2 WHERE id = $1";
    transaction
        .execute(statement(sql, [id.into(), NO_NODE.into()]))
        .await
        .map(|_| ())
}

/// A reservation of no node.
pub(super) async fn kept(transaction: &Transaction, id: &str) -> Result<Option<Held>, StoreError> {
    let sql = format!("SELECT {RESERVATION} FROM reservations WHERE id = $1 AND node_id = $2");
    let values = [id.into(), NO_NODE.into()];
    let row: Option<ReservationRow> = transaction.fetch_one(statement(sql, values)).await?;
    row.map(ReservationRow::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_were_stored() {
        let some = Amounts::tokens(7, 5).with(Measure::Cost, 34);
        let all = Amounts::from_fn(|measure| 1 + measure as u64);
        for amounts in [Amounts::default(), some, all] {
            let json = serde_json::to_string(&amounts).unwrap();
            assert_eq!(parse_amounts(&json).unwrap(), amounts, "{json}");
        }
        // As PostgreSQL writes them.
        let spaced =
            parse_amounts(r#"{"cost": 34, "tokens": 12, "input_tokens": 7, "output_tokens": 5}"#);
        assert_eq!(spaced.unwrap(), some);
    }

    #[test]
    fn what_no_server_has_stored_is_malformed() {
        for json in [
            "",
            "[]",
            r#"{"dollars":1}"#,
            r#"{"tokens":-1}"#,
            r#"{"tokens":null}"#,
        ] {
            let error = parse_amounts(json).unwrap_err();
            assert_eq!(
                error.kind(),
                colloquy_store::StoreErrorKind::Malformed,
                "{json}"
            );
        }
    }
}
