//! The requests of the console's views.

use anyhow::Context as _;
use colloquy::clock::rfc3339;

use super::seed::{self, BASE, PARTNER, Table};
use crate::server::Server;

/// The page of lists that follow cursors; 100 entries are on each.
const DEEP_PAGE: usize = 50;

/// A request that is measured.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) path: String,
}

impl Request {
    fn new(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
        }
    }
}

/// Returns all requests, in the order of the report.
pub(super) async fn all(server: &Server, seeded: &seed::Seeded) -> anyhow::Result<Vec<Request>> {
    let mut requests = bases();
    requests.extend(documents());
    for sort in ["name", "price"] {
        let path = format!("/api/document-list/{PARTNER}/{BASE}?sort={sort}");
        let name = format!("document-list {sort}, page {DEEP_PAGE}");
        requests.push(Request::new(name, deep(server, &path).await?));
    }
    requests.extend(document(seeded.documents / 2));
    requests.extend(limits());
    requests.extend(calls(seeded));
    requests.extend(accounts());
    requests.extend(usage(seeded));
    requests.extend(jobs());
    Ok(requests)
}

/// Follows the cursors of a list to a deep page, or to the last one.
async fn deep(server: &Server, path: &str) -> anyhow::Result<String> {
    let mut page = path.to_owned();
    for _ in 1..DEEP_PAGE {
        let list = server.get(&page).await?;
        let Some(cursor) = list["next_cursor"].as_str() else {
            break;
        };
        let cursor = [("cursor", cursor)];
        let url = reqwest::Url::parse_with_params(&format!("http://localhost{path}"), cursor)?;
        let query = url.query().context("the URL has no query")?;
        page = format!("{}?{query}", url.path());
    }
    Ok(page)
}

fn bases() -> Vec<Request> {
    let mut requests = Vec::new();
    for (view, path) in [
        ("kb-list", format!("/api/kb-list/{PARTNER}")),
        ("folder-list", format!("/api/folder-list/{PARTNER}/{BASE}")),
    ] {
        for sort in ["name", "price", "size"] {
            let name = format!("{view} {sort}");
            requests.push(Request::new(name, format!("{path}?sort={sort}")));
        }
        requests.push(Request::new(format!("{view} q"), format!("{path}?q=r")));
    }
    requests
}

fn documents() -> Vec<Request> {
    let path = format!("/api/document-list/{PARTNER}/{BASE}");
    let mut requests = Vec::new();
    for sort in ["name", "price", "size", "tokens", "changed", "state"] {
        for order in ["asc", "desc"] {
            requests.push(Request::new(
                format!("document-list {sort} {order}"),
                format!("{path}?sort={sort}&order={order}"),
            ));
        }
    }
    for (filter, query) in [
        ("q", "q=beacon"),
        ("q, none", "q=nowhere"),
        ("state", "state=failed,blocked"),
        ("folder", "folder=folder-7"),
        ("folder, price", "folder=folder-7&sort=price"),
        (
            "q, state, changed",
            "q=beacon&state=ready,rewritten&sort=changed",
        ),
    ] {
        requests.push(Request::new(
            format!("document-list {filter}"),
            format!("{path}?{query}"),
        ));
    }
    requests
}

fn document(number: u32) -> Vec<Request> {
    let id = seed::id(Table::Document, number);
    ["document", "document-history"]
        .map(|view| Request::new(view, format!("/api/{view}/{PARTNER}/{BASE}/{id}")))
        .into()
}

fn limits() -> Vec<Request> {
    let path = format!("/api/knowledgebases/{PARTNER}/{BASE}/limits");
    [
        ("limits", String::new()),
        (
            "limits/wake",
            "/wake?token_limit=&dollar_limit_usd=".to_owned(),
        ),
        ("limits/unknown", "/unknown".to_owned()),
        (
            "limits/unknown, decided",
            "/unknown?decided=true".to_owned(),
        ),
    ]
    .map(|(name, rest)| Request::new(name, format!("{path}{rest}")))
    .into()
}

fn calls(seeded: &seed::Seeded) -> Vec<Request> {
    let call = format!("/v2/calls/{}", seed::id(Table::Call, seeded.calls / 2));
    let deliveries = format!("/api/webhooks/{PARTNER}/deliveries");
    let delivery = seed::id(Table::Delivery, seeded.calls / 2);
    let from = rfc3339(seeded.middle());
    [
        ("calls", "/v2/calls".to_owned()),
        ("calls state", "/v2/calls?state=error".to_owned()),
        ("calls state, none", "/v2/calls?state=ongoing".to_owned()),
        (
            "calls character",
            format!("/v2/calls?character=repo:{PARTNER}/character-7"),
        ),
        (
            "calls created_from",
            format!("/v2/calls?created_from={from}"),
        ),
        (
            "calls created_before",
            format!("/v2/calls?created_before={from}"),
        ),
        ("call", call.clone()),
        ("call transcript", format!("{call}/transcript")),
        ("deliveries", deliveries.clone()),
        ("deliveries state", format!("{deliveries}?state=failed")),
        ("deliveries subject", format!("{deliveries}?subject={call}")),
        ("delivery", format!("{deliveries}/{delivery}")),
    ]
    .map(|(name, path)| Request::new(name, path))
    .into()
}

fn accounts() -> Vec<Request> {
    [
        ("characters", format!("/api/characters/{PARTNER}")),
        ("keys", format!("/api/keys/{PARTNER}")),
        ("quotas", format!("/api/quotas/{PARTNER}")),
    ]
    .map(|(name, path)| Request::new(name, path))
    .into()
}

/// Usage of a month and of a year.
fn usage(seeded: &seed::Seeded) -> Vec<Request> {
    let to = seeded.day(0);
    let mut requests = Vec::new();
    for (what, days) in [("month", 30), ("year", 365)] {
        let from = seeded.day(days - 1);
        for groups in ["day", "model", "character", "key", "day,model"] {
            requests.push(Request::new(
                format!("usage {what} {groups}"),
                format!("/api/usage/{PARTNER}?from={from}&to={to}&group_by={groups}"),
            ));
        }
    }
    requests
}

fn jobs() -> Vec<Request> {
    let questions = format!("/api/rag-questions/{PARTNER}/{BASE}");
    [
        ("transcripts", "/v2/transcript".to_owned()),
        (
            "transcripts failed",
            "/v2/transcript?status=error".to_owned(),
        ),
        ("analyses", "/v2/dialog_analyses".to_owned()),
        (
            "analyses failed",
            "/v2/dialog_analyses?state=failed".to_owned(),
        ),
        ("questions", questions),
    ]
    .map(|(name, path)| Request::new(name, path))
    .into()
}
