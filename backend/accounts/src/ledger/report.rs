//! What was used, from the sums of days.

use colloquy_store::StoreError;
use jiff::civil::Date;

use super::{Amounts, store};
use crate::{Directory, quotas::Quota};

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
}

/// Usage of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// `YYYY-MM-DD`; when rows are made by day.
    pub day: Option<String>,
    /// When rows are made by model.
    pub model: Option<String>,
    /// When rows are made by character; empty for inline ones and for none.
    pub character: Option<String>,
    /// What was used, by how many requests.
    pub usage: Amounts,
}

/// What was used of a quota on these days, by the day of its reservation, in rows and all together.
///
/// # Errors
/// The database's failure.
pub async fn usage(
    directory: &Directory,
    quota: &Quota,
    filter: &UsageFilter,
) -> Result<(Vec<UsageRow>, UsageRow), StoreError> {
    let rows = store::usage(directory.store.db(), &quota.id, filter).await?;
    let mut total = UsageRow {
        day: None,
        model: None,
        character: None,
        usage: Amounts::default(),
    };
    for row in &rows {
        total.usage = total.usage.plus(row.usage);
    }
    Ok((rows, total))
}
