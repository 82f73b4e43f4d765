//! The SQL of usage: records in detail, and sums of days.

use colloquy_store::{Executor, StoreError, Value, statement};
use serde::{Serialize, Serializer, ser::SerializeSeq as _};

use super::{insert, parse_amounts, stored};
use crate::ledger::{Amounts, Measure, Outcome, reservation::Held};

/// The usage of a reservation that was settled.
pub(in crate::ledger) struct NewRecord<'a> {
    pub(in crate::ledger) held: &'a Held,
    pub(in crate::ledger) usage: Amounts,
    pub(in crate::ledger) outcome: Outcome,
    pub(in crate::ledger) settled_at: i64,
}

/// Stores usage in detail: rows of [`NewRecord::row`].
pub(super) fn insert_records() -> String {
    let texts = [
        "id",
        "quota",
        "endpoint",
        "model",
        "character_ref",
        "request_id",
        "outcome",
        "amounts",
    ];
    insert("usage_records", &texts, &["created_at", "settled_at"])
}

impl<'a> NewRecord<'a> {
    pub(super) fn row(&self) -> impl Serialize + use<'a> {
        let Held {
            id,
            quota,
            entry,
            created_at,
            ..
        } = self.held;
        (
            id.as_str(),
            quota.as_str(),
            entry.endpoint.as_ref(),
            entry.model.as_str(),
            entry.character.as_deref(),
            entry.request_id.as_str(),
            self.outcome.as_str(),
            self.usage,
            *created_at,
            self.settled_at,
        )
    }
}

/// What usage is summed by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::ledger) struct DayKey<'a> {
    pub(in crate::ledger) quota: &'a str,
    /// `YYYY-MM-DD`.
    pub(in crate::ledger) day: String,
    pub(in crate::ledger) model: &'a str,
    /// Empty for none.
    pub(in crate::ledger) character: &'a str,
}

/// The columns of a [`DayKey`].
const DAY: [&str; 4] = ["quota", "day", "model", "character_ref"];

/// Adds to the sums of days, of locked quotas: rows of [`DayRow`], each key once.
pub(super) fn add_days() -> String {
    let amounts = Measure::ALL.map(Measure::stored_name);
    format!("{} {}", insert("usage_days", &DAY, &amounts), or_add())
}

/// Returns the end of an `INSERT` into `usage_days` that adds to the sums that are there.
fn or_add() -> String {
    let sums = Measure::ALL.map(|measure| {
        let name = measure.stored_name();
        format!("{name} = usage_days.{name} + excluded.{name}")
    });
    format!(
        "ON CONFLICT ({}) DO UPDATE SET {}",
        DAY.join(", "),
        sums.join(", ")
    )
}

/// The amounts that are added to a day.
pub(super) struct DayRow<'a> {
    pub(super) key: &'a DayKey<'a>,
    pub(super) sum: Amounts,
}

/// An array: the key, then each measure.
impl Serialize for DayRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { key, sum } = self;
        let mut row = serializer.serialize_seq(Some(DAY.len() + Measure::ALL.len()))?;
        for text in [key.quota, key.day.as_str(), key.model, key.character] {
            row.serialize_element(text)?;
        }
        for (_, amount) in sum.iter() {
            row.serialize_element(&stored(amount))?;
        }
        row.end()
    }
}

/// The record of a reservation that was settled.
pub(in crate::ledger) struct Record {
    pub(in crate::ledger) quota: String,
    pub(in crate::ledger) model: String,
    pub(in crate::ledger) character: Option<String>,
    pub(in crate::ledger) amounts: Amounts,
    pub(in crate::ledger) created_at: i64,
    pub(in crate::ledger) settled_at: i64,
}

/// The columns of a [`RecordRow`].
const RECORD: &str = "quota, model, character_ref, amounts, created_at, settled_at";

#[derive(sqlx::FromRow)]
struct RecordRow {
    quota: String,
    model: String,
    character_ref: Option<String>,
    amounts: String,
    created_at: i64,
    settled_at: i64,
}

impl RecordRow {
    fn parse(self) -> Result<Record, StoreError> {
        Ok(Record {
            amounts: parse_amounts(&self.amounts)?,
            quota: self.quota,
            model: self.model,
            character: self.character_ref,
            created_at: self.created_at,
            settled_at: self.settled_at,
        })
    }
}

/// The record of a reservation that was settled at this time or later.
pub(in crate::ledger) async fn record(
    db: &impl Executor,
    id: &str,
    from: i64,
) -> Result<Option<Record>, StoreError> {
    let sql = format!(
        "SELECT {RECORD} FROM usage_records WHERE settled_at >= $2 AND id = $1 ORDER BY settled_at LIMIT 1"
    );
    let row: Option<RecordRow> = db
        .fetch_one(statement(sql, [id.into(), from.into()]))
        .await?;
    row.map(RecordRow::parse).transpose()
}

/// The record of a reservation that was settled at its bound.
pub(in crate::ledger) async fn bound_record(
    db: &impl Executor,
    id: &str,
) -> Result<Option<Record>, StoreError> {
    // As the index of them has it.
    let sql =
        format!("SELECT {RECORD} FROM usage_records WHERE id = $1 AND outcome = 'bound' LIMIT 1");
    let row: Option<RecordRow> = db.fetch_one(statement(sql, [id.into()])).await?;
    row.map(RecordRow::parse).transpose()
}

/// Gives a record another model, other amounts and another outcome.
pub(in crate::ledger) async fn replace_record(
    db: &impl Executor,
    id: &str,
    record: &Record,
    model: &str,
    used: Amounts,
    outcome: Outcome,
) -> Result<(), StoreError> {
    let sql = "UPDATE usage_records SET model = $3, amounts = $4, outcome = $5 WHERE settled_at = $1 AND id = $2";
    let values = [
        record.settled_at.into(),
        id.into(),
        model.into(),
        serde_json::to_string(&used)
            .map_err(StoreError::other)?
            .into(),
        outcome.as_str().into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes a record.
pub(in crate::ledger) async fn remove_record(
    db: &impl Executor,
    id: &str,
    record: &Record,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM usage_records WHERE settled_at = $1 AND id = $2";
    let values = [record.settled_at.into(), id.into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Puts what was used in place of what counted for a day so far, of a locked quota.
pub(in crate::ledger) async fn correct_day(
    db: &impl Executor,
    key: &DayKey<'_>,
    counted: Amounts,
    used: Amounts,
) -> Result<(), StoreError> {
    let more = used.zip(counted, |used, counted| {
        stored(used).saturating_sub(stored(counted))
    });
    if more.iter().all(|(_, more)| more == 0) {
        return Ok(());
    }
    let amounts = Measure::ALL.map(Measure::stored_name);
    let columns = [DAY.as_slice(), &amounts].concat();
    let places: Vec<String> = (1..=columns.len())
        .map(|place| format!("${place}"))
        .collect();
    let sql = format!(
        "INSERT INTO usage_days ({}) VALUES ({}) {}",
        columns.join(", "),
        places.join(", "),
        or_add()
    );
    let day = [key.quota, key.day.as_str(), key.model, key.character];
    let values = day.into_iter().map(Value::from);
    let values = values.chain(more.iter().map(|(_, more)| Value::from(more)));
    db.execute(statement(sql, values)).await?;
    // Without its last request a day has no row.
    let none = amounts.map(|name| format!("{name} = 0"));
    let sql = format!(
        "DELETE FROM usage_days WHERE quota = $1 AND day = $2 AND model = $3 AND character_ref = $4 AND {}",
        none.join(" AND ")
    );
    db.execute(statement(sql, day.map(Value::from)))
        .await
        .map(|_| ())
}

/// Removes some of the records that were settled before. How many it removed.
pub(in crate::ledger) async fn prune(
    db: &impl Executor,
    before: i64,
    most: u64,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM usage_records WHERE (settled_at, id) IN \
               (SELECT settled_at, id FROM usage_records WHERE settled_at < $1 ORDER BY settled_at, id LIMIT $2)";
    let values = [before.into(), stored(most).into()];
    db.execute(statement(sql, values)).await
}
