//! The SQL of usage: records in detail, and sums of days.

use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use serde::Serialize;

use super::{insert, integer, stored};
use crate::{
    accounts::ledger::{Outcome, Usage, UsageFilter, UsageRow, reservation::Held},
    store::statement,
};

/// The usage of a reservation that was settled.
pub(in crate::accounts::ledger) struct NewRecord<'a> {
    pub(in crate::accounts::ledger) held: &'a Held,
    pub(in crate::accounts::ledger) usage: Usage,
    pub(in crate::accounts::ledger) outcome: Outcome,
    pub(in crate::accounts::ledger) settled_at: i64,
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
    ];
    let integers = [SUMS.as_slice(), &["created_at", "settled_at"]].concat();
    insert("usage_records", &texts, &integers)
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
        let [input, cached, output, reasoning, characters, seconds, cost] = sums(self.usage);
        (
            id.as_str(),
            quota.as_str(),
            entry.endpoint.as_ref(),
            entry.model.as_str(),
            entry.character.as_deref(),
            entry.request_id.as_str(),
            self.outcome.as_str(),
            input,
            cached,
            output,
            reasoning,
            characters,
            seconds,
            cost,
            *created_at,
            self.settled_at,
        )
    }
}

/// The columns of usage.
const SUMS: [&str; 7] = [
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "characters",
    "seconds",
    "cost",
];

/// Usage in the order of [`SUMS`].
fn sums(usage: Usage) -> [i64; SUMS.len()] {
    [
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.characters,
        usage.seconds,
        usage.cost,
    ]
    .map(stored)
}

/// What usage is summed by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::accounts::ledger) struct DayKey<'a> {
    pub(in crate::accounts::ledger) quota: &'a str,
    /// `YYYY-MM-DD`.
    pub(in crate::accounts::ledger) day: String,
    pub(in crate::accounts::ledger) model: &'a str,
    /// Empty for none.
    pub(in crate::accounts::ledger) character: &'a str,
}

/// Usage that is added to a day.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::accounts::ledger) struct DaySum {
    pub(in crate::accounts::ledger) requests: u64,
    pub(in crate::accounts::ledger) usage: Usage,
}

/// Adds to the sums of days, of locked quotas: rows of [`day_row`], each key once.
pub(super) fn add_days() -> String {
    let texts = ["quota", "day", "model", "character_ref"];
    let integers = [["requests"].as_slice(), &SUMS].concat();
    let added: Vec<String> = integers
        .iter()
        .map(|column| format!("{column} = usage_days.{column} + excluded.{column}"))
        .collect();
    format!(
        "{} ON CONFLICT ({}) DO UPDATE SET {}",
        insert("usage_days", &texts, &integers),
        texts.join(", "),
        added.join(", ")
    )
}

/// What is added to a day.
pub(super) fn day_row<'a>((key, sum): (&'a DayKey<'_>, &DaySum)) -> impl Serialize + use<'a> {
    let [input, cached, output, reasoning, characters, seconds, cost] = sums(sum.usage);
    (
        key.quota,
        key.day.as_str(),
        key.model,
        key.character,
        stored(sum.requests),
        input,
        cached,
        output,
        reasoning,
        characters,
        seconds,
        cost,
    )
}

/// Removes some of the records that were settled before. How many it removed.
pub(in crate::accounts::ledger) async fn prune(
    db: &impl ConnectionTrait,
    before: i64,
    most: u64,
) -> Result<u64, DbErr> {
    let sql = "DELETE FROM usage_records WHERE (settled_at, id) IN \
               (SELECT settled_at, id FROM usage_records WHERE settled_at < $1 ORDER BY settled_at, id LIMIT $2)";
    let values = [before.into(), integer(most)];
    let result = db.execute_raw(statement(db, sql, values)).await?;
    Ok(result.rows_affected())
}

/// Sums of days in groups, in the order of the groups. There is at least one thing to group by.
pub(in crate::accounts::ledger) async fn usage(
    db: &impl ConnectionTrait,
    quota: &str,
    filter: &UsageFilter,
) -> Result<Vec<UsageRow>, DbErr> {
    let groups: Vec<&str> = [
        (filter.by_day, "day"),
        (filter.by_model, "model"),
        (filter.by_character, "character_ref"),
    ]
    .into_iter()
    .filter_map(|(wanted, column)| wanted.then_some(column))
    .collect();
    let mut columns: Vec<String> = groups.iter().map(|column| (*column).to_owned()).collect();
    for column in ["requests"].iter().chain(&SUMS) {
        columns.push(format!("CAST(SUM({column}) AS BIGINT) AS sum_{column}"));
    }
    let sql = format!(
        "SELECT {0} FROM usage_days WHERE quota = $1 AND day BETWEEN $2 AND $3 GROUP BY {1} ORDER BY {1}",
        columns.join(", "),
        groups.join(", ")
    );
    let values = [
        quota.into(),
        filter.from.to_string().into(),
        filter.to.to_string().into(),
    ];
    let rows = db.query_all_raw(statement(db, &sql, values)).await?;
    rows.iter().map(|row| usage_row(row, filter)).collect()
}

fn usage_row(row: &QueryResult, filter: &UsageFilter) -> Result<UsageRow, DbErr> {
    let text = |wanted: bool, column: &str| wanted.then(|| row.try_get("", column)).transpose();
    let sum = |column: &str| row.try_get("", column).map(i64::unsigned_abs);
    Ok(UsageRow {
        day: text(filter.by_day, "day")?,
        model: text(filter.by_model, "model")?,
        character: text(filter.by_character, "character_ref")?,
        requests: sum("sum_requests")?,
        usage: Usage {
            input_tokens: sum("sum_input_tokens")?,
            cached_tokens: sum("sum_cached_tokens")?,
            output_tokens: sum("sum_output_tokens")?,
            reasoning_tokens: sum("sum_reasoning_tokens")?,
            characters: sum("sum_characters")?,
            seconds: sum("sum_seconds")?,
            cost: sum("sum_cost")?,
        },
    })
}
