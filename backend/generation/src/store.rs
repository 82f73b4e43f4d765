//! The SQL of stored responses.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    iter,
};

use colloquy_accounts::{
    quotas::Quota,
    share_partner, share_partner_of_quota,
    storage::{self, Sum},
};
use colloquy_base::json;
use colloquy_formats::ItemPlace;
use colloquy_store::{Executor, Statement, Store, StoreError, statement};
use serde::Deserialize;
use serde_json::Value;

use super::stored::{MAX_TURNS, StoredResponse, StoredText, identified};

/// The query of the bytes of each stored response of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT octet_length(r.input) + octet_length(r.response) AS bytes \
     FROM responses r JOIN quotas q ON q.id = r.quota WHERE q.partner = $1";

/// Inserts a response, and counts its bytes. A response that is stored stays as it is, and counts once.
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
    if let Some(bytes) = inserted {
        storage::count_text_of_quota(&transaction, quota, bytes).await?;
    }
    transaction.commit().await
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

/// A query of the texts in these places, `held (id, is_input, bytes)`. `select` stands behind it.
fn held_by(quota: &str, places: &HashSet<ItemPlace>, now: i64, select: &str) -> Statement {
    let mut values = vec![quota.into(), now.into()];
    let [outputs, inputs] = [false, true].map(|is_input| {
        let responses = places.iter().filter(|place| place.is_input == is_input);
        let responses: Vec<&str> = responses.map(|place| place.response.as_str()).collect();
        // Few lengths make few texts to prepare. An empty name is no response's.
        let padding = responses.len().next_power_of_two() - responses.len();
        let first = values.len() + 1;
        values.extend(responses.into_iter().map(Into::into));
        values.extend(iter::repeat_n("", padding).map(Into::into));
        let names = (first..=values.len()).map(|number| format!("${number}"));
        names.collect::<Vec<_>>().join(", ")
    });
    let sql = format!(
        "WITH held (id, is_input, bytes) AS ( \
           SELECT r.id, FALSE, octet_length(r.response) FROM responses r \
           WHERE r.quota = $1 AND r.expires_at > $2 AND r.id IN ({outputs}) \
           UNION ALL \
           SELECT r.id, TRUE, octet_length(r.input) FROM responses r \
           WHERE r.quota = $1 AND r.expires_at > $2 AND r.id IN ({inputs})) \
         {select}"
    );
    statement(sql, values)
}

/// How long the texts in these places are, in bytes.
pub(super) async fn holding_bytes(
    db: &impl Executor,
    quota: &str,
    places: &HashSet<ItemPlace>,
    now: i64,
) -> Result<u64, StoreError> {
    let select = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM held";
    db.fetch_count(held_by(quota, places, now, select)).await
}

/// The texts in these places.
pub(super) async fn holding(
    db: &impl Executor,
    quota: &str,
    places: &HashSet<ItemPlace>,
    now: i64,
) -> Result<Holding, StoreError> {
    let select = "SELECT h.id, h.is_input, CASE WHEN h.is_input THEN r.input ELSE r.response END AS text \
                  FROM held h JOIN responses r ON r.id = h.id";
    let held = db.fetch_all(held_by(quota, places, now, select)).await?;
    Ok(Holding(held))
}

/// Texts with items in them, as they are stored.
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
}

impl Holding {
    /// The memory that they take once they are parsed, in bytes.
    pub(super) fn weight(&self) -> usize {
        let texts = self.0.iter().map(|held| held.text.as_bytes());
        let weights = texts.map(|text| json::weigh(text).bytes);
        weights.fold(0, usize::saturating_add)
    }

    /// The items of these ids, by them.
    pub(super) fn items(self, ids: &[&str]) -> Result<HashMap<String, Value>, StoreError> {
        let wanted: HashSet<&str> = ids.iter().copied().collect();
        let mut found = HashMap::new();
        for Held { id, is_input, text } in self.0 {
            let items: Vec<Value> = match is_input {
                true => serde_json::from_str(&text).map_err(StoreError::malformed)?,
                false => {
                    let read = serde_json::from_str(&text);
                    read.map(|read: Output| read.output)
                        .map_err(StoreError::malformed)?
                }
            };
            let place = ItemPlace {
                response: id,
                is_input,
            };
            for (index, item) in items.into_iter().enumerate() {
                let item = match is_input {
                    true => identified(&place.response, index, item),
                    false => item,
                };
                // A client may have sent what is an item of another response.
                if let Some(id) = item.get("id").and_then(Value::as_str)
                    && wanted.contains(id)
                    && ItemPlace::of(id).as_ref() == Some(&place)
                {
                    found.insert(id.to_owned(), item);
                }
            }
        }
        Ok(found)
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
