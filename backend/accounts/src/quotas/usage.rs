//! Reports of usage: which days they sum, and how they are written.

use std::vec;

use axum::{
    Json,
    body::Body,
    http::{
        HeaderMap, HeaderValue,
        header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, VARY},
    },
    response::{IntoResponse as _, Response},
};
use colloquy_base::money::Usd;
use colloquy_http::{ApiError, file::attachment};
use colloquy_store::StoreError;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{ToSpan as _, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    csv::{self, Csv},
    view::QuotaView,
};
use crate::{
    Accounts,
    ledger::{self, MAX_ROWS, Measure, UsageFilter, UsageRow, UsageScope},
};

/// The most days of a usage report.
const MOST_DAYS: i64 = 366;
/// The most days of a page of a CSV file with rows for days.
const DAYS_OF_PAGES: i64 = 31;

/// Which days of usage to sum up, and how.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageQuery {
    /// The first day (inclusive), UTC, `YYYY-MM-DD`; without it 29 days before the last.
    pub(super) from: Option<String>,
    /// The last day (inclusive), UTC; today without it. At most 366 days in all.
    pub(super) to: Option<String>,
    /// What a row is made for: `day`, `model`, `character`, `key` (a quota), or several, separated by commas; `day` without it. Rows are sorted by these,
    /// in this order.
    pub(super) group_by: Option<String>,
    /// `knowledge_bases` adds to a JSON report of a partner, or of all partners, what knowledge bases used on these days.
    pub(super) include: Option<String>,
}

/// Usage of a quota, or of all quotas of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageReport {
    /// The first day.
    pub(super) from: String,
    /// The last day.
    pub(super) to: String,
    /// A row for each group that used anything.
    pub(super) rows: Vec<UsageView>,
    /// All rows together.
    pub(super) total: UsageView,
    /// Usage of knowledge bases by their budgets, which `rows` and `total` leave out; with `include=knowledge_bases`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) knowledge_bases: Option<KnowledgeUsage>,
    /// `total` and the usage of knowledge bases together; with `include=knowledge_bases`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all: Option<UsageView>,
}

/// Usage of knowledge bases that were not deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeUsage {
    /// A row for each model that was used.
    models: Vec<UsageView>,
    /// All models together.
    total: UsageView,
}

/// A quota, and what was used of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnUsage {
    /// The quota.
    pub(super) quota: QuotaView,
    /// What was used.
    pub(super) usage: UsageReport,
}

/// Usage of a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageView {
    /// The day, UTC; when rows are made for days.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The model; when rows are made for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The saved character, `<partner>/<name>`, null for inline ones and for none; when rows are made for characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    character: Option<Option<String>>,
    /// Id of the quota, or `drafts:<partner>` for replies of drafts, which have none; when rows are made for keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_id: Option<String>,
    /// Current name of the quota; when rows are made for keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_name: Option<String>,
    /// Requests that were settled.
    requests: u64,
    /// Input and output tokens.
    tokens: u64,
    /// Input tokens.
    input_tokens: u64,
    /// Those of them that came from the model's cache.
    cached_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
    /// Those of them that were reasoning.
    reasoning_tokens: u64,
    /// Characters of text that was spoken.
    characters: u64,
    /// Seconds of calls.
    seconds: u64,
    /// US dollars.
    dollars: Usd,
}

impl From<UsageRow> for UsageView {
    fn from(row: UsageRow) -> Self {
        let character = row
            .character
            .map(|name| Some(name).filter(|name| !name.is_empty()));
        let of = |measure| row.usage.of(measure);
        let quota = row.quota.map(|quota| (quota.id, quota.name));
        let (quota_id, quota_name) = quota.unzip();
        Self {
            day: row.day,
            model: row.model,
            character,
            quota_id,
            quota_name,
            requests: of(Measure::Requests),
            tokens: of(Measure::Tokens),
            input_tokens: of(Measure::InputTokens),
            cached_tokens: of(Measure::CachedTokens),
            output_tokens: of(Measure::OutputTokens),
            reasoning_tokens: of(Measure::ReasoningTokens),
            characters: of(Measure::Characters),
            seconds: of(Measure::Seconds),
            dollars: Usd(of(Measure::Cost)),
        }
    }
}

/// Answers with the usage of these days, in the format that `Accept` prefers.
///
/// # Errors
/// 400 for a malformed query, and for more rows than JSON may have; the database's failure.
pub(super) async fn answer(
    accounts: &Accounts,
    scope: UsageScope,
    query: UsageQuery,
    headers: &HeaderMap,
    name: &str,
) -> Result<Response, ApiError> {
    let mut response = match csv::is_preferred(headers) {
        true => {
            if query.include.is_some() {
                return Err(ApiError::invalid(
                    "include",
                    "CSV has rows alone: leave it out",
                ));
            }
            let filter = filter(accounts, query)?;
            let name = format!("usage-{name}-{}-{}.csv", filter.from, filter.to);
            let mut response = csv_body(accounts.clone(), scope, filter)
                .await?
                .into_response();
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(csv::MEDIA_TYPE));
            headers.insert(CONTENT_DISPOSITION, attachment(&name));
            response
        }
        false => Json(report(accounts, &scope, query).await?).into_response(),
    };
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_name(ACCEPT));
    Ok(response)
}

/// Returns the usage of these days.
///
/// # Errors
/// 400 for a malformed query, and for more than [`MAX_ROWS`] rows; the database's failure.
pub(super) async fn report(
    accounts: &Accounts,
    scope: &UsageScope,
    query: UsageQuery,
) -> Result<UsageReport, ApiError> {
    let knowledge = knowledge_scope(scope, query.include.as_deref())?;
    let filter = filter(accounts, query)?;
    let (rows, total) = sums(accounts, scope, &filter).await?;
    let mut report = UsageReport {
        from: filter.from.to_string(),
        to: filter.to.to_string(),
        rows: rows.into_iter().map(Into::into).collect(),
        total: total.clone().into(),
        knowledge_bases: None,
        all: None,
    };
    if let Some(scope) = knowledge {
        let by_model = UsageFilter {
            by_day: false,
            by_model: true,
            by_character: false,
            by_quota: false,
            ..filter
        };
        let (models, used) = sums(accounts, &scope, &by_model).await?;
        let all = UsageRow {
            usage: total.usage.plus(used.usage),
            ..UsageRow::default()
        };
        report.all = Some(all.into());
        report.knowledge_bases = Some(KnowledgeUsage {
            models: models.into_iter().map(Into::into).collect(),
            total: used.into(),
        });
    }
    Ok(report)
}

/// Returns the rows of these days, and their sum.
async fn sums(
    accounts: &Accounts,
    scope: &UsageScope,
    filter: &UsageFilter,
) -> Result<(Vec<UsageRow>, UsageRow), ApiError> {
    let usage = ledger::usage(accounts, scope, filter).await?;
    usage.ok_or_else(|| {
        let message = format!(
            "More than {MAX_ROWS} rows: choose fewer days or groups, or use `Accept: text/csv`"
        );
        ApiError::invalid("group_by", message)
    })
}

/// Returns the scope of the knowledge bases that a report includes; `None` if it includes none.
fn knowledge_scope(
    scope: &UsageScope,
    include: Option<&str>,
) -> Result<Option<UsageScope>, ApiError> {
    match (include, scope) {
        (None, _) => Ok(None),
        (Some("knowledge_bases"), UsageScope::Partner(tenant)) => {
            Ok(Some(UsageScope::Knowledge(tenant.clone())))
        }
        (Some("knowledge_bases"), UsageScope::All) => Ok(Some(UsageScope::AllKnowledge)),
        (Some(_), UsageScope::Partner(_) | UsageScope::All) => {
            Err(ApiError::invalid("include", "knowledge_bases"))
        }
        (Some(_), _) => Err(ApiError::invalid(
            "include",
            "a quota has no knowledge bases: leave it out",
        )),
    }
}

/// Rows of a CSV file that are still to be written.
struct Rest {
    /// The days that are read now.
    days: UsageFilter,
    /// The group whose row was written last, if it is one of these days.
    after: Option<UsageRow>,
    /// The days after these.
    later: vec::IntoIter<UsageFilter>,
}

impl Rest {
    /// Splits a filter into ones of fewer days, so that a page needs only their sums. Rows without a day are sums of all days.
    fn new(filter: &UsageFilter) -> Self {
        let mut parts = Vec::new();
        let mut days = filter.clone();
        if filter.by_day {
            // There is no such day behind the last ones of the calendar.
            while let Ok(next) = days.from.checked_add(DAYS_OF_PAGES.days())
                && next <= filter.to
            {
                days.to = next.saturating_sub(1.days());
                parts.push(days.clone());
                (days.from, days.to) = (next, filter.to);
            }
        }
        parts.push(days.clone());
        let mut later = parts.into_iter();
        Self {
            days: later.next().unwrap_or(days),
            after: None,
            later,
        }
    }

    /// Reads a page. Returns its text, and what is still to be written.
    async fn read(
        mut self,
        accounts: &Accounts,
        scope: &UsageScope,
    ) -> Result<(String, Option<Self>), StoreError> {
        let after = self.after.as_ref();
        let mut rows = ledger::usage_page(accounts, scope, &self.days, after).await?;
        let text = csv_rows(&rows);
        if rows.len() == MAX_ROWS {
            self.after = rows.pop();
            return Ok((text, Some(self)));
        }
        let next = self.later.next();
        let rest = next.map(|days| Self {
            days,
            after: None,
            ..self
        });
        Ok((text, rest))
    }
}

/// Returns usage as CSV, read and written page by page. The first page is read before the head is sent, so that an outage has a status.
async fn csv_body(
    accounts: Accounts,
    scope: UsageScope,
    filter: UsageFilter,
) -> Result<Body, StoreError> {
    let (page, rest) = Rest::new(&filter).read(&accounts, &scope).await?;
    let first = csv_head(&filter) + &page;
    let store = accounts.store.clone();
    let pages = stream::try_unfold(rest, move |rest| {
        let (accounts, scope) = (accounts.clone(), scope.clone());
        async move {
            match rest {
                None => Ok(None),
                Some(rest) => rest.read(&accounts, &scope).await.map(Some),
            }
        }
    });
    let body = stream::once(async { Ok(first) }).chain(pages);
    Ok(Body::from_stream(body.inspect_err(move |error| {
        store.complain("a CSV file of usage breaks off", error);
    })))
}

fn csv_head(filter: &UsageFilter) -> String {
    let mut csv = Csv::default();
    let groups: [(bool, &[&str]); 4] = [
        (filter.by_day, &["day"]),
        (filter.by_model, &["model"]),
        (filter.by_character, &["character"]),
        (filter.by_quota, &["quota_id", "quota_name"]),
    ];
    let wanted = groups.into_iter().filter(|(wanted, _)| *wanted);
    for name in wanted.flat_map(|(_, names)| names) {
        csv.value(name);
    }
    for measure in Measure::ALL {
        csv.value(measure.as_str());
    }
    csv.end_row();
    csv.finish()
}

fn csv_rows(rows: &[UsageRow]) -> String {
    let mut csv = Csv::default();
    for row in rows {
        if let Some(day) = &row.day {
            csv.value(day);
        }
        for text in [&row.model, &row.character].into_iter().flatten() {
            csv.text(text);
        }
        if let Some(quota) = &row.quota {
            csv.value(&quota.id);
            csv.text(&quota.name);
        }
        for measure in Measure::ALL {
            match (measure, row.usage.of(measure)) {
                (Measure::Cost, cost) => csv.value(&Usd(cost)),
                (_, amount) => csv.value(&amount),
            }
        }
        csv.end_row();
    }
    csv.finish()
}

fn filter(accounts: &Accounts, query: UsageQuery) -> Result<UsageFilter, ApiError> {
    let today = accounts.clock.now().to_zoned(TimeZone::UTC).date();
    let to = day("to", query.to)?.unwrap_or(today);
    let from = day("from", query.from)?.unwrap_or_else(|| to.saturating_sub(29.days()));
    if from > to || from.duration_until(to).as_hours() >= MOST_DAYS * 24 {
        return Err(ApiError::invalid("from", "1 to 366 days up to `to`"));
    }
    let mut filter = UsageFilter {
        from,
        to,
        by_day: false,
        by_model: false,
        by_character: false,
        by_quota: false,
    };
    for group in query.group_by.as_deref().unwrap_or("day").split(',') {
        match group {
            "day" => filter.by_day = true,
            "model" => filter.by_model = true,
            "character" => filter.by_character = true,
            "key" => filter.by_quota = true,
            _ => {
                return Err(ApiError::invalid(
                    "group_by",
                    "day, model, character, key, separated by commas",
                ));
            }
        }
    }
    Ok(filter)
}

fn day(field: &str, text: Option<String>) -> Result<Option<Date>, ApiError> {
    let parse = |text: String| {
        let malformed = || ApiError::invalid(field, "write a day as YYYY-MM-DD");
        let date: Date = text.parse().map_err(|_| malformed())?;
        // More than a date, such as a time, is read and left out by the parser.
        match date.to_string() == text {
            true => Ok(date),
            false => Err(malformed()),
        }
    };
    text.map(parse).transpose()
}
