//! The SQL of usage: records in detail, and sums of days.

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult};

use super::{integer, rows::Rows};
use crate::{
    accounts::ledger::{
        Outcome, Usage, UsageFilter, UsageRow,
        reservation::{Entry, Held},
    },
    store::statement,
};

/// The usage of a reservation that was settled.
pub(in crate::accounts::ledger) struct NewRecord<'a> {
    pub(in crate::accounts::ledger) held: &'a Held,
    pub(in crate::accounts::ledger) usage: Usage,
    pub(in crate::accounts::ledger) outcome: Outcome,
    pub(in crate::accounts::ledger) settled_at: i64,
}

/// Stores usage in detail.
pub(in crate::accounts::ledger) async fn insert_records(
    transaction: &DatabaseTransaction,
    new: &[NewRecord<'_>],
) -> Result<(), DbErr> {
    static INSERT: Rows<16> = Rows::new(
        "INSERT INTO usage_records (id, quota, endpoint, model, character_ref, request_id, outcome, input_tokens, \
         cached_tokens, output_tokens, reasoning_tokens, characters, seconds, cost, created_at, settled_at) VALUES ",
        "",
    );
    let values = new.iter().map(|new| {
        let Entry {
            endpoint,
            model,
            character,
            request_id,
        } = &new.held.entry;
        [
            new.held.id.as_str().into(),
            new.held.quota.as_str().into(),
            endpoint.as_ref().into(),
            model.as_str().into(),
            character.clone().into(),
            request_id.as_str().into(),
            new.outcome.as_str().into(),
            integer(new.usage.input_tokens),
            integer(new.usage.cached_tokens),
            integer(new.usage.output_tokens),
            integer(new.usage.reasoning_tokens),
            integer(new.usage.characters),
            integer(new.usage.seconds),
            integer(new.usage.cost),
            new.held.created_at.into(),
            new.settled_at.into(),
        ]
    });
    INSERT.execute(transaction, values).await
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

/// Adds to the sums of days, of locked quotas. Each key comes once.
pub(in crate::accounts::ledger) async fn add_days<'a>(
    transaction: &DatabaseTransaction,
    sums: impl ExactSizeIterator<Item = (&'a DayKey<'a>, &'a DaySum)>,
) -> Result<(), DbErr> {
    static UPSERT: Rows<12> = Rows::new(
        "INSERT INTO usage_days (quota, day, model, character_ref, requests, input_tokens, cached_tokens, output_tokens, \
         reasoning_tokens, characters, seconds, cost) VALUES ",
        " ON CONFLICT (quota, day, model, character_ref) DO UPDATE SET \
         requests = usage_days.requests + excluded.requests, \
         input_tokens = usage_days.input_tokens + excluded.input_tokens, \
         cached_tokens = usage_days.cached_tokens + excluded.cached_tokens, \
         output_tokens = usage_days.output_tokens + excluded.output_tokens, \
         reasoning_tokens = usage_days.reasoning_tokens + excluded.reasoning_tokens, \
         characters = usage_days.characters + excluded.characters, \
         seconds = usage_days.seconds + excluded.seconds, \
         cost = usage_days.cost + excluded.cost",
    );
    let values = sums.map(|(key, sum)| {
        [
            key.quota.into(),
            key.day.as_str().into(),
            key.model.into(),
            key.character.into(),
            integer(sum.requests),
            integer(sum.usage.input_tokens),
            integer(sum.usage.cached_tokens),
            integer(sum.usage.output_tokens),
            integer(sum.usage.reasoning_tokens),
            integer(sum.usage.characters),
            integer(sum.usage.seconds),
            integer(sum.usage.cost),
        ]
    });
    UPSERT.execute(transaction, values).await
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
    for column in SUMMED {
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

const SUMMED: [&str; 8] = [
    "requests",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "characters",
    "seconds",
    "cost",
];

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
