//! The SQL of stored responses.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet, hash_map::Entry},
    iter,
};

use colloquy_accounts::{
    quotas::Quota,
    share_partner, share_partner_of_quota,
    storage::{self, Sum},
};
use colloquy_base::json;
use colloquy_formats::{Before, Fit, Found};
use colloquy_store::{Executor, Statement, Store, StoreError, statement};
use serde::Deserialize;
use serde_json::Value;

use super::stored::{MAX_TURNS, StoredResponse, StoredText, identified};

/// The query of the bytes of each stored response of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT octet_length(r.input) + octet_length(r.response) AS bytes \
     FROM responses r JOIN quotas q ON q.id = r.quota WHERE q.partner = $1";
/// The most rows of one statement.
const ROWS: usize = 500;
/// The longest id of an item that can be referred to, in bytes.
pub(super) const MAX_ITEM_ID: usize = 512;
/// The most responses with an item of one id among which the one that a request refers to is looked for: the newest.
const MAX_HOLDERS: usize = 16;

/// Inserts a response and the ids of its output items, and counts its bytes. A response that is stored stays as it is, and counts once.
pub(super) async fn insert(
    store: &Store,
    quota: &str,
    row: &StoredResponse,
    now: i64,
    expires_at: i64,
) -> Result<(), StoreError> {
    let transaction = store.begin().await?;
    share_partner_of_quota(&transaction, quota).await?;
    let inserted = insert_response(&transaction, quota, row, now, expires_at).await?;
    for ids in item_ids(&row.response).chunks(ROWS) {
        insert_items(&transaction, quota, &row.id, ids).await?;
    }
    if let Some(bytes) = inserted {
        storage::count_text_of_quota(&transaction, quota, bytes).await?;
    }
    transaction.commit().await
}

/// The ids of the output items that can be referred to.
fn item_ids(response: &Value) -> Vec<&str> {
    let output = response.get("output").and_then(Value::as_array);
    let items = output.into_iter().flatten();
    items
        .filter_map(|item| item.get("id")?.as_str())
        .filter(|id| is_item_id(id))
        .collect()
}

/// Returns true if an item of this id is found by it.
pub(super) fn is_item_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ITEM_ID && !id.contains('\0')
}

async fn insert_items(
    db: &impl Executor,
    quota: &str,
    response: &str,
    ids: &[&str],
) -> Result<(), StoreError> {
    let rows = (0..ids.len()).map(|row| format!("($1, ${}, $2)", row + 3));
    let sql = format!(
        "INSERT INTO response_items (quota, id, response) VALUES {} ON CONFLICT DO NOTHING",
        rows.collect::<Vec<_>>().join(", ")
    );
    let values = [quota, response].into_iter().chain(ids.iter().copied());
    db.execute(statement(sql, values.map(Into::into))).await?;
    Ok(())
}

/// Returns how many bytes of text the response has, or `None` if it was stored already.
async fn insert_response(
    db: &impl Executor,
    quota: &str,
    row: &StoredResponse,
    now: i64,
    expires_at: i64,
) -> Result<Option<usize>, StoreError> {
    let input = serde_json::to_string(&row.input).map_err(StoreError::other)?;
    let response = serde_json::to_string(&row.response).map_err(StoreError::other)?;
    let bytes = input.len() + response.len();
    let sql = "INSERT INTO responses (id, quota, previous_id, input, response, created_at, expires_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    let values = [
        row.id.as_str().into(),
        quota.into(),
        row.previous_id.clone().into(),
        input.into(),
        response.into(),
        now.into(),
        expires_at.into(),
    ];
    let inserted = db.execute(statement(sql, values)).await?;
    Ok((inserted == 1).then_some(bytes))
}

/// The length of a text of a response, in bytes; `None` if there is no such response.
pub(super) async fn text_bytes(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
    which: StoredText,
) -> Result<Option<u64>, StoreError> {
    let sql = match which {
        StoredText::Input => {
            "SELECT CAST(octet_length(input) AS BIGINT) FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3"
        }
        StoredText::Response => {
            "SELECT CAST(octet_length(response) AS BIGINT) FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3"
        }
    };
    let values = [id.into(), quota.into(), now.into()];
    let bytes: Option<i64> = db.fetch_scalar(statement(sql, values)).await?;
    Ok(bytes.map(i64::unsigned_abs))
}

/// A text of a response; `None` if there is no such response.
pub(super) async fn text(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
    which: StoredText,
) -> Result<Option<String>, StoreError> {
    let sql = match which {
        StoredText::Input => {
            "SELECT input FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3"
        }
        StoredText::Response => {
            "SELECT response FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3"
        }
    };
    let values = [id.into(), quota.into(), now.into()];
    db.fetch_scalar(statement(sql, values)).await
}

/// How long the responses are that lead to this one, with itself and their input, in bytes.
pub(super) async fn chain_length(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<u64, StoreError> {
    let sql = "WITH RECURSIVE turns (previous_id, length, back) AS ( \
                 SELECT previous_id, octet_length(input) + octet_length(response), 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.previous_id, octet_length(r.input) + octet_length(r.response), t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT CAST(COALESCE(SUM(length), 0) AS BIGINT) FROM turns";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    db.fetch_count(statement(sql, values)).await
}

/// The responses that lead to this one, and itself; oldest first. Databases copy the rows of a recursion and those that they sort,
/// so the recursion finds ids alone, and the texts are sorted here.
pub(super) async fn chain(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<Chain, StoreError> {
    let sql = "WITH RECURSIVE turns (id, previous_id, back) AS ( \
                 SELECT id, previous_id, 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.id, r.previous_id, t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT r.id, r.previous_id, r.input, r.response, CAST(t.back AS BIGINT) AS back \
               FROM turns t JOIN responses r ON r.id = t.id";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    let mut rows: Vec<Row> = db.fetch_all(statement(sql, values)).await?;
    rows.sort_unstable_by_key(|row| Reverse(row.back));
    Ok(Chain(rows))
}

/// Responses that lead to each other, as they are stored.
pub(super) struct Chain(Vec<Row>);

impl Chain {
    /// The memory that they take once they are parsed, in bytes.
    pub(super) fn weight(&self) -> usize {
        let weights = self
            .0
            .iter()
            .flat_map(|row| [&row.input, &row.response])
            .map(|text| json::weigh(text.as_bytes()).bytes);
        weights.fold(0, usize::saturating_add)
    }

    /// The responses, oldest first.
    pub(super) fn parsed(self) -> Result<Vec<StoredResponse>, StoreError> {
        self.0.into_iter().map(Row::parse).collect()
    }
}

/// A query of what holds the items of these ids, `held (id, is_input, bytes)`: for each id the newest responses with an output
/// item of this id, [`MAX_HOLDERS`] at most, with their inputs where there are several; and the input of the response that the id names.
/// `select` stands behind it.
fn held_by(quota: &str, ids: &[&str], now: i64, select: &str) -> Statement {
    // Few lengths make few texts to prepare.
    let padding = ids.len().next_power_of_two() - ids.len();
    let last = ids.last().copied().unwrap_or_default();
    let padded = ids.iter().copied().chain(iter::repeat_n(last, padding));
    let rows = (0..ids.len() + padding).map(|row| format!("(${}, ${})", 2 * row + 3, 2 * row + 4));
    let sql = format!(
        "WITH wanted (id, response) AS (VALUES {}), \
         oldest (id, response) AS ( \
           SELECT DISTINCT w.id, COALESCE(( \
             SELECT i.response FROM response_items i WHERE i.quota = $1 AND i.id = w.id \
             ORDER BY i.response DESC LIMIT 1 OFFSET {}), '') FROM wanted w), \
         holders (response, of_item) AS ( \
           SELECT i.response, COUNT(*) OVER (PARTITION BY i.id) FROM oldest o \
           JOIN response_items i ON i.quota = $1 AND i.id = o.id AND i.response >= o.response), \
         held (id, is_input, bytes) AS ( \
           SELECT r.id, FALSE, octet_length(r.response) FROM responses r WHERE r.quota = $1 AND r.expires_at > $2 \
           AND r.id IN (SELECT h.response FROM holders h) \
           UNION ALL \
           SELECT r.id, TRUE, octet_length(r.input) FROM responses r WHERE r.quota = $1 AND r.expires_at > $2 \
           AND r.id IN (SELECT w.response FROM wanted w UNION ALL SELECT h.response FROM holders h WHERE h.of_item > 1)) \
         {select}",
        rows.collect::<Vec<_>>().join(", "),
        MAX_HOLDERS - 1
    );
    let mut values = vec![quota.into(), now.into()];
    for id in padded {
        values.push(id.into());
        // An empty name is no response's.
        values.push(response_in(id).unwrap_or_default().into());
    }
    statement(sql, values)
}

/// How long the texts are that hold the items of these ids, in bytes. There is at least one id.
pub(super) async fn holding_bytes(
    db: &impl Executor,
    quota: &str,
    ids: &[&str],
    now: i64,
) -> Result<u64, StoreError> {
    let select = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM held";
    db.fetch_count(held_by(quota, ids, now, select)).await
}

/// The texts that hold the items of these ids, newest first. There is at least one id.
pub(super) async fn holding(
    db: &impl Executor,
    quota: &str,
    ids: &[&str],
    now: i64,
) -> Result<Holding, StoreError> {
    let select = "SELECT h.id, h.is_input, CASE WHEN h.is_input THEN r.input ELSE r.response END AS text \
                  FROM held h JOIN responses r ON r.id = h.id";
    let mut held: Vec<Held> = db.fetch_all(held_by(quota, ids, now, select)).await?;
    held.sort_unstable_by(|a, b| b.id.cmp(&a.id).then(a.is_input.cmp(&b.is_input)));
    Ok(Holding(held))
}

/// The response whose input an item of this id is in, of the ids that [`identified`] gives.
fn response_in(id: &str) -> Option<String> {
    let (seed, _) = id.strip_prefix("item_")?.rsplit_once('_')?;
    Some(format!("resp_{seed}"))
}

/// Texts with items in them, as they are stored; newest first.
pub(super) struct Holding(Vec<Held>);

#[derive(sqlx::FromRow)]
struct Held {
    id: String,
    is_input: bool,
    text: String,
}

#[derive(Deserialize)]
struct Output {
    output: Vec<Value>,
    previous_response_id: Option<String>,
}

impl Holding {
    /// The memory that they take once they are parsed, in bytes.
    pub(super) fn weight(&self) -> usize {
        let texts = self.0.iter().map(|held| held.text.as_bytes());
        let weights = texts.map(|text| json::weigh(text).bytes);
        weights.fold(0, usize::saturating_add)
    }

    /// The items of these ids.
    pub(super) fn items(self, ids: &[&str]) -> Result<HeldItems, StoreError> {
        let wanted: HashSet<&str> = ids.iter().copied().collect();
        let mut items = HeldItems::default();
        for Held { id, is_input, text } in self.0 {
            if is_input {
                let input = serde_json::from_str(&text).map_err(StoreError::malformed)?;
                items.add_input(&id, input, &wanted);
            } else {
                let output = serde_json::from_str(&text).map_err(StoreError::malformed)?;
                items.add_output(id, output, &wanted);
            }
        }
        Ok(items)
    }
}

/// Items of stored responses, by their ids.
#[derive(Default)]
pub(super) struct HeldItems {
    /// Items of inputs.
    given: HashMap<String, Value>,
    /// Responses with output items, newest first.
    responses: Vec<HeldResponse>,
    /// The indices in `responses` of those with an output item of an id.
    holders: HashMap<String, Vec<usize>>,
}

struct HeldResponse {
    id: String,
    /// Its own input, where that was read.
    asked: Vec<Value>,
    /// True if it went on from another response.
    goes_on: bool,
    output: HashMap<String, Value>,
}

impl HeldItems {
    /// Adds the input of a response, after its output.
    fn add_input(&mut self, response: &str, input: Vec<Value>, wanted: &HashSet<&str>) {
        if let Some(held) = self.responses.last_mut().filter(|it| it.id == response) {
            held.asked.clone_from(&input);
        }
        for (index, item) in input.into_iter().enumerate() {
            let item = identified(response, index, item);
            // Others may have the ids of items of other responses.
            if let Some(id) = item.get("id").and_then(Value::as_str)
                && wanted.contains(id)
                && response_in(id).as_deref() == Some(response)
            {
                self.given.insert(id.to_owned(), item);
            }
        }
    }

    /// Adds the output of a response that is older than those before it.
    fn add_output(&mut self, response: String, output: Output, wanted: &HashSet<&str>) {
        let place = self.responses.len();
        let mut items = HashMap::new();
        for item in output.output {
            let id = item.get("id").and_then(Value::as_str).map(str::to_owned);
            if let Some(id) = id
                && let Entry::Vacant(entry) = items.entry(id)
            {
                if wanted.contains(entry.key().as_str()) {
                    let holders = self.holders.entry(entry.key().clone());
                    holders.or_default().push(place);
                }
                entry.insert(item);
            }
        }
        self.responses.push(HeldResponse {
            id: response,
            asked: Vec::new(),
            goes_on: output.previous_response_id.is_some(),
            output: items,
        });
    }

    /// The item of an id; of several, that of the response that answered the conversation before.
    pub(super) fn find(&self, id: &str, before: &Before<'_>) -> Found<'_> {
        if let Some(item) = self.given.get(id) {
            return Found::One(item);
        }
        let places = self.holders.get(id).into_iter().flatten();
        let holders = places.filter_map(|place| {
            let response = self.responses.get(*place)?;
            Some((response, response.output.get(id)?))
        });
        match holders.collect::<Vec<_>>().as_slice() {
            [] => Found::Nothing,
            &[(_, item)] => Found::One(item),
            several => {
                let fitting = several
                    .iter()
                    .filter_map(|(response, item)| Some((response.fit(before)?, *item)));
                Found::several(&fitting.collect::<Vec<_>>())
            }
        }
    }
}

impl HeldResponse {
    /// Returns how it fits this conversation. Its own input is not all of what it answered if it went on from another response.
    fn fit(&self, before: &Before<'_>) -> Option<Fit> {
        let fit = before.fit(&self.asked, |id| self.output.get(id))?;
        Some(if self.goes_on { Fit::Part } else { fit })
    }
}

/// Whether there was one.
pub(super) async fn delete(
    store: &Store,
    quota: &Quota,
    id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3 \
               RETURNING CAST(octet_length(input) + octet_length(response) AS BIGINT)";
    let values = [id.into(), quota.id.as_str().into(), now.into()];
    let transaction = store.begin().await?;
    share_partner(&transaction, &quota.tenant).await?;
    let bytes: Option<i64> = transaction.fetch_scalar(statement(sql, values)).await?;
    if let Some(bytes) = bytes {
        let partner = quota.tenant.partner().as_str();
        storage::release(&transaction, partner, Sum::Texts, bytes).await?;
    }
    transaction.commit().await?;
    Ok(bytes.is_some())
}

pub(super) async fn prune(store: &Store, now: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM responses \
               WHERE id IN (SELECT id FROM responses WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) \
               RETURNING (SELECT q.partner FROM quotas q WHERE q.id = responses.quota) AS partner, \
               CAST(octet_length(input) + octet_length(response) AS BIGINT) AS bytes";
    storage::purge_texts(store, sql, now).await
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    previous_id: Option<String>,
    input: String,
    response: String,
    /// How many responses followed it.
    back: i64,
}

impl Row {
    fn parse(self) -> Result<StoredResponse, StoreError> {
        let parsed =
            |text: String| serde_json::from_str::<Value>(&text).map_err(StoreError::malformed);
        let input = match parsed(self.input)? {
            Value::Array(items) => items,
            _ => return Err(StoreError::malformed("a stored input is not a list")),
        };
        Ok(StoredResponse {
            id: self.id,
            previous_id: self.previous_id,
            input,
            response: parsed(self.response)?,
        })
    }
}
