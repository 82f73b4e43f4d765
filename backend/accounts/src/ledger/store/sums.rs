//! The SQL that sums days of usage in groups.

use colloquy_store::{Executor, StoreError, Value, statement};

use super::stored;
use crate::ledger::{
    Amounts, Measure, UsageFilter, UsageQuota, UsageRow, UsageScope, budget::DRAFTS,
};

/// Returns at most `most` sums of days in groups, in the order of the groups: those after the group `after`.
pub(in crate::ledger) async fn usage(
    db: &impl Executor,
    scope: &UsageScope,
    filter: &UsageFilter,
    after: Option<&UsageRow>,
    most: u64,
) -> Result<Vec<UsageRow>, StoreError> {
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .filter(|group| group.is_in(filter))
        .collect();
    let (mut values, condition) = scope.condition();
    // Days are the first column of the order, so earlier ones hold no later group.
    let first = after.and_then(|row| row.day.clone());
    let first = first.unwrap_or_else(|| filter.from.to_string());
    values.extend([first.into(), filter.to.to_string().into()]);
    let mut later = String::new();
    if let Some(after) = after {
        let mut reached = Vec::new();
        for group in &groups {
            values.push(group.of(after).into());
            reached.push(format!("${}", values.len()));
        }
        later = format!("AND ({}) > ({})", columns(&groups), reached.join(", "));
    }
    values.push(stored(most).into());
    let sql = sums(&groups, &condition, &later, values.len());
    let rows: Vec<SumRow> = db.fetch_all(statement(sql, values)).await?;
    Ok(rows.into_iter().map(SumRow::parse).collect())
}

/// Returns the statement of [`usage`]; `most` is the number of its last value.
fn sums(groups: &[Group], condition: &str, later: &str, most: usize) -> String {
    let wanted = columns(groups);
    let shown = Group::ALL.map(|group| match groups.contains(&group) {
        true => group.column().to_owned(),
        false => format!("CAST(NULL AS TEXT) AS {}", group.column()),
    });
    let name = match groups.contains(&Group::Quota) {
        true => "(SELECT q.name FROM quotas q WHERE q.id = usage_days.quota)",
        false => "CAST(NULL AS TEXT)",
    };
    format!(
        "SELECT {shown}, {name} AS quota_name, {sums} FROM usage_days \
         WHERE {condition} AND day BETWEEN $2 AND $3 {later} GROUP BY {wanted} ORDER BY {wanted} LIMIT ${most}",
        shown = shown.join(", "),
        sums = summed(),
    )
}

/// Returns the columns of [`Sums`], over rows of `usage_days`.
pub(super) fn summed() -> String {
    let sums = Measure::ALL.map(|measure| {
        let name = measure.stored_name();
        format!("CAST(COALESCE(SUM({name}), 0) AS BIGINT) AS {name}")
    });
    sums.join(", ")
}

fn columns(groups: &[Group]) -> String {
    let names: Vec<_> = groups.iter().map(|group| group.column()).collect();
    names.join(", ")
}

/// A column that rows are made for, in the order in which rows are sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Day,
    Model,
    Character,
    Quota,
}

impl Group {
    const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Character, Self::Quota];

    fn column(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Character => "character_ref",
            Self::Quota => "quota",
        }
    }

    fn is_in(self, filter: &UsageFilter) -> bool {
        match self {
            Self::Day => filter.by_day,
            Self::Model => filter.by_model,
            Self::Character => filter.by_character,
            Self::Quota => filter.by_quota,
        }
    }

    fn of(self, row: &UsageRow) -> Option<String> {
        match self {
            Self::Day => row.day.clone(),
            Self::Model => row.model.clone(),
            Self::Character => row.character.clone(),
            Self::Quota => row.quota.as_ref().map(|quota| quota.id.clone()),
        }
    }
}

impl UsageScope {
    /// Returns the value of `$1`, and the condition on rows of `usage_days`. Budgets are quotas that no key opens; only that of drafts counts for the
    /// partner.
    fn condition(&self) -> (Vec<Value>, String) {
        match self {
            Self::Quota(id) => (vec![id.as_str().into()], "quota = $1".to_owned()),
            Self::Partner(tenant) => (
                vec![tenant.partner().as_str().into()],
                format!(
                    "quota IN (SELECT id FROM quotas WHERE partner = $1 AND (purpose = 'key' OR id = '{DRAFTS}' || partner))"
                ),
            ),
            Self::All => (
                vec!["key".into()],
                format!(
                    "quota IN (SELECT id FROM quotas WHERE purpose = $1 OR id = '{DRAFTS}' || partner)"
                ),
            ),
            Self::Knowledge(tenant) => (
                vec![tenant.partner().as_str().into()],
                format!(
                    "quota IN (SELECT id FROM quotas WHERE partner = $1 AND purpose = 'budget' AND id <> '{DRAFTS}' || partner)"
                ),
            ),
            Self::AllKnowledge => (
                vec!["budget".into()],
                format!(
                    "quota IN (SELECT id FROM quotas WHERE purpose = $1 AND id <> '{DRAFTS}' || partner)"
                ),
            ),
        }
    }
}

/// The sums of a group. Columns that are not grouped by are null.
#[derive(sqlx::FromRow)]
struct SumRow {
    day: Option<String>,
    model: Option<String>,
    character_ref: Option<String>,
    quota: Option<String>,
    quota_name: Option<String>,
    #[sqlx(flatten)]
    sums: Sums,
}

impl SumRow {
    fn parse(self) -> UsageRow {
        let name = self.quota_name.unwrap_or_default();
        UsageRow {
            day: self.day,
            model: self.model,
            character: self.character_ref,
            quota: self.quota.map(|id| UsageQuota { id, name }),
            usage: self.sums.0,
        }
    }
}

/// A column for each measure.
pub(super) struct Sums(pub(super) Amounts);

impl<'r, R> sqlx::FromRow<'r, R> for Sums
where
    R: sqlx::Row,
    &'static str: sqlx::ColumnIndex<R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let mut sums = Amounts::default();
        for measure in Measure::ALL {
            let amount: i64 = row.try_get(measure.stored_name())?;
            sums = sums.with(measure, amount.unsigned_abs());
        }
        Ok(Self(sums))
    }
}
