//! What was used, from the sums of days.

use colloquy_store::StoreError;
use jiff::civil::Date;

use super::{Amounts, store};
use crate::{Directory, Tenant};

/// The most rows of a report, and of a page. With their texts they take a few megabytes.
pub const MAX_ROWS: usize = 10_000;

/// Whose usage is summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageScope {
    /// The quota of this id.
    Quota(String),
    /// All quotas of a partner, revoked ones too. Budgets are none.
    Partner(Tenant),
    /// All quotas of all partners. Budgets are none.
    All,
    /// The budgets of all knowledge bases of a partner. Those of deleted ones are gone.
    Knowledge(Tenant),
    /// The budgets of all knowledge bases of all partners.
    AllKnowledge,
}

/// Which days, and what rows are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    /// The first day, UTC.
    pub from: Date,
    /// The last day, UTC.
    pub to: Date,
    /// A row for each day.
    pub by_day: bool,
    /// A row for each model.
    pub by_model: bool,
    /// A row for each saved character, and one for none.
    pub by_character: bool,
    /// A row for each quota.
    pub by_quota: bool,
}

/// The quota of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuota {
    /// The id.
    pub id: String,
    /// The name that it has now.
    pub name: String,
}

/// Usage of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageRow {
    /// `YYYY-MM-DD`; when rows are made by day.
    pub day: Option<String>,
    /// When rows are made by model.
    pub model: Option<String>,
    /// When rows are made by character; empty for inline ones and for none.
    pub character: Option<String>,
    /// When rows are made by quota.
    pub quota: Option<UsageQuota>,
    /// What was used, by how many requests.
    pub usage: Amounts,
}

/// Returns the usage of these days, by the day of its reservation: a row for each group, and their sum. `None` if there are more than [`MAX_ROWS`]
/// groups.
///
/// # Errors
/// The database's failure.
pub async fn usage(
    directory: &Directory,
    scope: &UsageScope,
    filter: &UsageFilter,
) -> Result<Option<(Vec<UsageRow>, UsageRow)>, StoreError> {
    let one_more = MAX_ROWS as u64 + 1;
    let rows = store::usage(directory.store.db(), scope, filter, None, one_more).await?;
    if rows.len() > MAX_ROWS {
        return Ok(None);
    }
    let mut total = UsageRow::default();
    for row in &rows {
        total.usage = total.usage.plus(row.usage);
    }
    Ok(Some((rows, total)))
}

/// Returns the rows after the group of `after`, [`MAX_ROWS`] at most. Usage that is settled between two pages counts in the later one alone.
///
/// # Errors
/// The database's failure.
pub async fn usage_page(
    directory: &Directory,
    scope: &UsageScope,
    filter: &UsageFilter,
    after: Option<&UsageRow>,
) -> Result<Vec<UsageRow>, StoreError> {
    store::usage(directory.store.db(), scope, filter, after, MAX_ROWS as u64).await
}
