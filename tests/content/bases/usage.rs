//! What the scripted upstream was asked, against what the database and the API say of it.
//!
//! A request has no name of its own in both of them, so the requests for a document are laid beside its rows, in their order.

use std::collections::{BTreeMap, HashSet};

use colloquy::{money::Usd, store::Store};
use harness::upstream::{
    Api, CACHED_TOKENS, Fault, INPUT_TOKENS, Recorded, Upstream, input_tokens,
};

use super::*;

/// What a token costs, in units of 1e-8 dollars: of input, of input that was cached and of output of `scripted-chat`, and of vectors where a
/// million tokens cost [`EMBEDDING_USD`].
const INPUT: u64 = 250;
const CACHED: u64 = 125;
const OUTPUT: u64 = 1_000;
const EMBEDDED: u64 = 2;
pub(super) const EMBEDDING_USD: &str = "0.02";

/// A request as the database has it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) document_id: String,
    pub(super) kind: String,
    pub(super) node_id: String,
    pub(super) outcome: String,
    pub(super) unknown: bool,
    bound_tokens: Option<i64>,
    bound_cost: Option<i64>,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cost: Option<i64>,
    /// How many records of the ledger say that it was taken for something.
    pub(super) decided: i64,
}

/// All of them, in the order of their admission.
pub(super) async fn rows(store: &Store) -> Vec<Row> {
    let sql = "SELECT u.document_id, u.kind, u.node_id, u.outcome, u.unknown, u.bound_tokens, u.bound_cost, u.input_tokens, \
               u.output_tokens, u.cost, (SELECT COUNT(*) FROM usage_records r WHERE r.id = u.id AND r.outcome = 'bound') AS decided \
               FROM knowledge_usage u ORDER BY u.id";
    store.db().fetch_all(sql).await.unwrap()
}

/// What an answer told of what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Used {
        input: u64,
        output: u64,
        cost: u64,
    },
    /// The request was refused.
    Nothing,
    /// It was answered, without telling.
    Untold,
    /// It failed in a way that may have been paid for.
    Failed,
}

impl Told {
    fn by(request: &Recorded) -> Self {
        match &request.fault {
            Some(Fault::Status(400) | Fault::RateLimited { .. }) => return Self::Nothing,
            Some(Fault::Untold) => return Self::Untold,
            None | Some(Fault::Finish(_)) => {}
            Some(_) => return Self::Failed,
        }
        match request.api {
            Api::Embeddings => {
                let input = input_tokens(&request.body);
                Self::Used {
                    input,
                    output: 0,
                    cost: input * EMBEDDED,
                }
            }
            _ => {
                let output = request.output_tokens;
                let cost = (INPUT_TOKENS - CACHED_TOKENS) * INPUT + CACHED_TOKENS * CACHED;
                Self::Used {
                    input: INPUT_TOKENS,
                    output,
                    cost: cost + output * OUTPUT,
                }
            }
        }
    }
}

impl Row {
    fn used(&self) -> (Option<u64>, Option<u64>, Option<u64>) {
        let number = |number: Option<i64>| number.map(i64::unsigned_abs);
        (
            number(self.input_tokens),
            number(self.output_tokens),
            number(self.cost),
        )
    }

    /// Whether its bound is still reserved.
    fn keeps_bound(&self) -> bool {
        matches!(self.outcome.as_str(), "pending" | "uncertain")
            || self.unknown && self.input_tokens.is_none()
    }

    /// Whether it can be what became of this request. Of the requests of processes that were killed nobody may know what became of them.
    fn is_of(&self, request: &Recorded, killed: &HashSet<String>) -> bool {
        if self.decided > 0 {
            // It was taken for its bound, or for nothing, only because it was not known.
            return killed.contains(&self.node_id)
                || matches!(Told::by(request), Told::Failed | Told::Untold);
        }
        if self.outcome == "uncertain" {
            let is_told = self.used() != (None, None, None);
            let may_be = killed.contains(&self.node_id) || Told::by(request) == Told::Failed;
            return self.unknown && !is_told && may_be;
        }
        let is_fault = self.outcome == "fault";
        match Told::by(request) {
            Told::Used {
                input,
                output,
                cost,
            } => {
                is_fault == request.fault.is_some()
                    && !self.unknown
                    && self.used() == (Some(input), Some(output), Some(cost))
            }
            Told::Nothing => {
                is_fault && !self.unknown && self.used() == (Some(0), Some(0), Some(0))
            }
            Told::Untold => !is_fault && self.unknown && self.used() == (None, None, None),
            Told::Failed => false,
        }
    }

    /// Whether its process can have been killed before it was sent.
    fn may_be_unsent(&self, killed: &HashSet<String>) -> bool {
        killed.contains(&self.node_id) && (self.outcome == "uncertain" || self.decided > 0)
    }
}

/// The document that a request is for: texts and names of documents have `animal` and three figures in them.
pub(super) fn marker(request: &Recorded) -> String {
    let body = request.body.to_string();
    let at = body.find("animal").unwrap_or_else(|| panic!("{body}"));
    body[at..at + "animal000".len()].to_owned()
}

/// Requests of one kind for one document beside its rows: every request has a row, in the same order, and a row without a request is one of
/// a process that was killed.
fn agree(rows: &[&Row], requests: &[&Recorded], killed: &HashSet<String>) -> bool {
    // How many of the requests the rows so far may have.
    let mut reached = vec![false; requests.len() + 1];
    reached[0] = true;
    for row in rows {
        let mut next = vec![false; requests.len() + 1];
        for at in 0..=requests.len() {
            next[at] = reached[at] && row.may_be_unsent(killed)
                || at > 0 && reached[at - 1] && row.is_of(requests[at - 1], killed);
        }
        reached = next;
    }
    reached[requests.len()]
}

/// What was used, and what is reserved.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) used: u64,
    pub(super) reserved: u64,
}

/// What the API tells of tokens and of dollars, these in units of 1e-8.
pub(super) fn amounts(budget: &Value) -> [Amounts; 2] {
    ["tokens", "dollars"].map(|measure| Amounts {
        used: units(&budget[measure]["consumed"]),
        reserved: units(&budget[measure]["reserved"]),
    })
}

/// A number of tokens, or dollars in units of 1e-8.
pub(super) fn units(value: &Value) -> u64 {
    match value {
        Value::String(dollars) => dollars.parse::<Usd>().unwrap().0,
        number => number.as_u64().unwrap(),
    }
}

#[derive(sqlx::FromRow)]
struct Sum {
    tokens: i64,
    cost: i64,
}

#[derive(sqlx::FromRow)]
struct Record {
    amounts: String,
}

/// Checks that the upstream's requests, the rows of them, the ledger and the budget say the same, when nothing runs. `markers` has the marker
/// of each document by its id.
#[track_caller]
fn reconcile(
    rows: &[Row],
    upstream: &Upstream,
    markers: &BTreeMap<String, String>,
    killed: &HashSet<String>,
    budget: &Value,
) {
    for (kind, api) in [("rewrite", Api::Chat), ("embed", Api::Embeddings)] {
        let requests = upstream.requests(api);
        let mut of: BTreeMap<String, Vec<&Recorded>> = BTreeMap::new();
        for request in &requests {
            of.entry(marker(request)).or_default().push(request);
        }
        for (id, marker) in markers {
            let of_document = |row: &&Row| row.kind == kind && row.document_id == *id;
            let rows: Vec<&Row> = rows.iter().filter(of_document).collect();
            let requests = of.remove(marker).unwrap_or_default();
            let told = || -> Vec<Told> { requests.iter().map(|it| Told::by(it)).collect() };
            assert!(
                agree(&rows, &requests, killed),
                "{kind} of {marker}: {:#?} were asked, {rows:#?}",
                told()
            );
        }
        assert!(of.is_empty(), "{kind}: nobody asked for {:?}", of.keys());
    }
    let mut counted = [Amounts::default(); 2];
    for row in rows {
        assert_ne!(row.outcome, "pending", "{row:?}");
        let (input, output, cost) = row.used();
        let tokens = input.unwrap_or_default() + output.unwrap_or_default();
        let bounds = [row.bound_tokens, row.bound_cost].map(|it| it.unwrap().unsigned_abs());
        let used = [tokens, cost.unwrap_or_default()];
        if row.decided > 0 {
            assert!(used == bounds || used == [0, 0], "{row:?}");
        }
        for ((sum, bound), used) in counted.iter_mut().zip(bounds).zip(used) {
            assert!(used <= bound, "{row:?}");
            match row.keeps_bound() {
                true => sum.reserved += bound,
                false => sum.used += used,
            }
        }
    }
    assert_eq!(counted, amounts(budget), "{budget}");
    let count = |which: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| which(row)).count();
    let uncertain = count(&|row| row.outcome == "uncertain");
    let untold = count(&|row| row.unknown && row.outcome != "uncertain");
    assert_eq!(budget["uncertain_operations"], uncertain, "{budget}");
    assert_eq!(budget["tokens"]["unknown_events"], untold, "{budget}");
    assert_eq!(budget["dollars"]["unknown_events"], untold, "{budget}");
}

/// The same, and that the sums of days and the records of the ledger say it, too.
pub(super) async fn reconciled(
    store: &Store,
    upstream: &Upstream,
    markers: &BTreeMap<String, String>,
    killed: &HashSet<String>,
    budget: &Value,
) -> Vec<Row> {
    let rows = rows(store).await;
    reconcile(&rows, upstream, markers, killed, budget);
    let sql = "SELECT CAST(COALESCE(SUM(tokens), 0) AS BIGINT) AS tokens, CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS cost FROM usage_days";
    let days: Option<Sum> = store.db().fetch_one(sql).await.unwrap();
    let days = days.unwrap();
    let sql = "SELECT amounts FROM usage_records";
    let records: Vec<Record> = store.db().fetch_all(sql).await.unwrap();
    let records: Vec<Value> = records
        .iter()
        .map(|record| serde_json::from_str(&record.amounts).unwrap())
        .collect();
    let days = [("tokens", days.tokens), ("cost", days.cost)];
    for ((measure, of_days), amounts) in days.into_iter().zip(amounts(budget)) {
        let of_records = records.iter().filter_map(|it| it[measure].as_u64());
        assert_eq!(
            of_days.unsigned_abs(),
            amounts.used,
            "{measure} of the days"
        );
        assert_eq!(
            of_records.sum::<u64>(),
            amounts.used,
            "{measure} of records"
        );
    }
    let settled = rows.iter().filter(|row| !row.keeps_bound()).count();
    assert_eq!(records.len(), settled, "each is recorded once");
    let sql = "SELECT COUNT(*) FROM reservations";
    let reserved = store.db().fetch_count(sql).await.unwrap() as usize;
    assert_eq!(
        reserved,
        rows.len() - settled,
        "what is not known stays reserved"
    );
    rows
}
