//! Responses that are kept, so that clients can read them again and later requests go on from them.
//!
//! A response belongs to the quota key that made it; to everybody else it is not there. It is kept for
//! `limits.response_days`. The last response of a WebSocket is kept with the connection when it is not stored.
//!
//! Stored responses count against the storage limit of the quota's partner. A request is refused before it is paid for when its input does
//! not fit beside those of requests in progress; what the model answers is stored and counts in any case.

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use colloquy_accounts::{quotas::Quota, storage::PendingText};
use colloquy_base::{invalid::InvalidField, json};
use colloquy_formats::{ItemPlace, Referred, Request, input_item_id, output_items};
use colloquy_http::memory::{NoRoom, Share};
use colloquy_kernel::{
    Base,
    journal::{self, Entry},
};
use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::{PrepareError, StoredError},
    store,
};
use crate::Generation;

/// How often responses that are too old are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// The longest conversation that can be gone on from, in responses.
pub(super) const MAX_TURNS: i64 = 1_000;
/// The most stored items that a request may refer to.
const MAX_REFERENCES: usize = 1_000;
/// How often what was said before is held: by the request, by the body for the model that is asked, and by that body's text. Reading
/// a text takes as much: the database, its row and the text itself, and then the text, its items and the answer.
const COPIES: usize = 3;

/// A response as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredResponse {
    /// The id.
    pub(super) id: String,
    /// The response that it went on from.
    pub(super) previous_id: Option<String>,
    /// The items that the client gave, without those of earlier responses.
    pub(super) input: Vec<Value>,
    /// The response as the client got it.
    pub(super) response: Value,
}

/// A text of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredText {
    /// The items that the client gave.
    Input,
    /// The response as the client got it.
    Response,
}

/// The input item of this index of a response, with an id: clients give them none.
pub(super) fn identified(response: &str, index: usize, mut item: Value) -> Value {
    if let Value::Object(item) = &mut item {
        item.entry("id")
            .or_insert_with(|| input_item_id(response, index).into());
    }
    item
}

/// Counts the bytes that are written to it.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reserves storage of the partner for a response with these input items.
///
/// # Errors
/// When it would store more than it may, or the database fails.
pub(super) async fn reserve_storage(
    generation: &Generation,
    quota: &Quota,
    input: &[Value],
) -> Result<PendingText, PrepareError> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, input).map_err(StoreError::other)?;
    let partner = quota.tenant.partner();
    let pending = &generation.pending_texts;
    Ok(pending.reserve(generation, partner, length.0).await?)
}

/// What is known of a response before it is there.
#[derive(Debug)]
pub(super) struct Storing {
    /// Whose it will be.
    pub(super) quota: Arc<Quota>,
    /// The response that it goes on from.
    pub(super) previous_id: Option<String>,
    /// The items that the client gave, behind those of the conversation when that is not stored.
    pub(super) input: Vec<Value>,
    /// The connection that keeps it; the database without one.
    pub(super) kept_by: Option<Arc<Recent>>,
    /// The storage of the input, until it is stored.
    pub(super) pending: Option<PendingText>,
}

impl Storing {
    /// Keeps the response, before the client learns that it is there.
    ///
    /// # Errors
    /// When neither the database nor the data folder takes it.
    pub(super) async fn keep(
        self,
        generation: &Generation,
        id: &str,
        response: Value,
    ) -> Result<(), StoreError> {
        if let Some(recent) = self.kept_by {
            let mut items = self.input;
            items.extend(output_items(&response));
            recent.keep(generation, &self.quota, id, &items);
            return Ok(());
        }
        let now = generation.clock.now_ms();
        let days = i64::from(generation.config.limits.response_days);
        let expires_at = now + days * 24 * 60 * 60 * 1_000;
        let kept = StoredBody {
            quota: self.quota.id.clone(),
            created_at: now,
            expires_at,
            row: StoredResponse {
                id: id.to_owned(),
                previous_id: self.previous_id,
                input: self.input,
                response,
            },
        };
        let stored = journal::store(generation, kept).await;
        drop(self.pending);
        stored
    }
}

/// The last response of a connection that is not stored.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Option<Remembered>>);

#[derive(Debug)]
struct Remembered {
    id: String,
    /// The items of the conversation up to and with it, as JSON.
    conversation: String,
    /// It counts like a body for as long as it is here.
    _room: Share,
}

impl Recent {
    /// Remembers a response instead of the one before. One that is longer than a body may be, or for which there is no room,
    /// is not remembered.
    fn keep(&self, generation: &Generation, quota: &Quota, id: &str, items: &[Value]) {
        let remembered = || {
            let conversation = serde_json::to_string(items).ok()?;
            if conversation.len() > generation.config.limits.text_body_bytes {
                return None;
            }
            let room = Share::new(generation.edge.clone());
            room.belongs_to(Some(quota.tenant.partner().as_str()));
            room.grow(conversation.len()).ok()?;
            Some(Remembered {
                id: id.to_owned(),
                conversation,
                _room: room,
            })
        };
        // What was remembered before makes room first.
        let mut recent = self.lock();
        *recent = None;
        *recent = remembered();
        if recent.is_none() {
            tracing::info!("a response is too long to be remembered by its connection");
        }
    }

    /// Gives the conversation up to a response away, when it is the one that is remembered.
    fn take(&self, id: &str) -> Option<Remembered> {
        self.lock().take_if(|recent| recent.id == id)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response, until it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredBody {
    quota: String,
    created_at: i64,
    expires_at: i64,
    row: StoredResponse,
}

impl Entry for StoredBody {
    type State = Generation;

    const KIND: &'static str = "response";

    fn id(&self) -> &str {
        &self.row.id
    }

    async fn store(&self, generation: &Generation) -> Result<(), StoreError> {
        let (store, row) = (&generation.store, &self.row);
        store::insert(store, &self.quota, row, self.created_at, self.expires_at).await
    }
}

/// A conversation that a request goes on from.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The items up to and with the response, oldest first.
    pub(super) items: Vec<Value>,
    /// The ids of those that clients gave none.
    pub(super) given_ids: HashSet<String>,
    /// What they take in memory, in bytes.
    pub(super) weight: usize,
    /// Whether the database has all of it.
    pub(super) is_stored: bool,
}

/// The conversation up to and with this response.
///
/// # Errors
/// When the response is not there, or one before it is not any more; when all of them are longer than a body may be, or there is
/// no room for them; when the database fails.
pub(super) async fn conversation(
    generation: &Generation,
    quota: &Quota,
    id: &str,
    recent: Option<&Recent>,
    memory: Option<&Share>,
) -> Result<Conversation, PrepareError> {
    if let Some(remembered) = recent.and_then(|recent| recent.take(id)) {
        let text = remembered.conversation;
        let weight = json::weigh(text.as_bytes()).bytes;
        grow(memory, weight)?;
        return Ok(Conversation {
            items: serde_json::from_str(&text).map_err(PrepareError::Remembered)?,
            given_ids: HashSet::new(),
            weight,
            is_stored: false,
        });
    }
    let (db, now) = (generation.store.db(), generation.clock.now_ms());
    let most = generation.config.limits.text_body_bytes;
    let length = store::chain_length(db, &quota.id, id, now).await?;
    if length > most as u64 {
        let message = format!("the conversation up to it is longer than {most} bytes");
        return Err(InvalidField::new("previous_response_id", message).into());
    }
    // The texts count before they are read, and then what they become beyond that.
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    grow(memory, length)?;
    let chain = store::chain(db, &quota.id, id, now).await?;
    let weight = chain.weight();
    grow(memory, weight.saturating_sub(length))?;
    let turns = chain.parsed()?;
    let Some(first) = turns.first() else {
        return Err(match is_pending(generation, id) {
            true => PrepareError::NotStored,
            false => PrepareError::Unknown("there is no such response"),
        });
    };
    if first.previous_id.is_some() {
        let what = "a response before it is not kept any more";
        return Err(PrepareError::Unknown(what));
    }
    let given = turns.iter().flat_map(|turn| {
        let items = turn.input.iter().enumerate();
        let unnamed = items.filter(|(_, item)| item.get("id").is_none());
        unnamed.map(|(index, _)| input_item_id(&turn.id, index))
    });
    let given_ids = given.collect();
    let items = turns.into_iter().flat_map(|turn| {
        let output = output_items(&turn.response);
        turn.input.into_iter().chain(output)
    });
    Ok(Conversation {
        items: items.collect(),
        given_ids,
        weight,
        is_stored: true,
    })
}

/// Replaces the references of a request by the stored items, those of responses of the same quota. What has one of the ids `before` stands in the
/// conversation already.
///
/// # Errors
/// When an item is not found; when there are too many references, the items are longer than a body may be or there is no room for them, or the
/// database fails.
pub(super) async fn resolve_references(
    generation: &Generation,
    quota: &Quota,
    request: &mut Request,
    before: &HashSet<String>,
    memory: Option<&Share>,
) -> Result<(), PrepareError> {
    let ids = request.references();
    if ids.is_empty() {
        return Ok(());
    }
    if ids.len() > MAX_REFERENCES {
        let message = format!("input has more than {MAX_REFERENCES} items of type item_reference");
        return Err(InvalidField::new("input", message).into());
    }
    let places: HashSet<ItemPlace> = ids.iter().filter_map(|id| ItemPlace::of(id)).collect();
    let (db, now) = (generation.store.db(), generation.clock.now_ms());
    let most = generation.config.limits.text_body_bytes;
    let bytes = store::holding_bytes(db, &quota.id, &places, now).await?;
    if bytes > most as u64 {
        let message = format!("the responses that input refers to are longer than {most} bytes");
        return Err(InvalidField::new("input", message).into());
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    grow(memory, bytes)?;
    let holding = store::holding(db, &quota.id, &places, now).await?;
    grow(memory, holding.weight().saturating_sub(bytes))?;
    let items = holding.items(&ids)?;
    let resolved = request.resolve_references(|id| match items.get(id) {
        _ if before.contains(id) => Referred::Before,
        Some(item) => Referred::Item(item),
        None => Referred::Nothing,
    });
    resolved.map_err(|unknown| {
        let mut responses = places.iter().map(|place| &place.response);
        match responses.any(|response| is_pending(generation, response)) {
            true => PrepareError::NotStored,
            false => unknown.into(),
        }
    })
}

/// Each part of a conversation was accepted for itself; together they count like a body.
fn grow(memory: Option<&Share>, weight: usize) -> Result<(), NoRoom> {
    memory.map_or(Ok(()), |memory| memory.grow(COPIES.saturating_mul(weight)))
}

/// Whether the database has not taken a response yet.
fn is_pending(generation: &Generation, id: &str) -> bool {
    generation.kernel.journal.holds::<StoredBody>(id)
}

/// Reads a text of a response as it is stored. What that takes counts before.
///
/// # Errors
/// When there is no such response, there is no memory for the text, or the database fails.
pub(super) async fn text(
    generation: &Generation,
    quota: &Quota,
    id: &str,
    which: StoredText,
    memory: Option<&Share>,
) -> Result<String, StoredError> {
    let (db, now) = (generation.store.db(), generation.clock.now_ms());
    let missing = || match is_pending(generation, id) {
        true => StoredError::NotStored,
        false => StoredError::NotFound,
    };
    let bytes = store::text_bytes(db, &quota.id, id, now, which).await?;
    let bytes = bytes.ok_or_else(missing)?;
    grow(memory, usize::try_from(bytes).unwrap_or(usize::MAX))?;
    let text = store::text(db, &quota.id, id, now, which).await?;
    text.ok_or_else(missing)
}

/// Deletes a response. Those that went on from it cannot be gone on from any more.
///
/// # Errors
/// When there is none, or the database fails.
pub(super) async fn delete(
    generation: &Generation,
    quota: &Quota,
    id: &str,
) -> Result<(), StoredError> {
    let now = generation.clock.now_ms();
    match store::delete(&generation.store, quota, id, now).await? {
        true => Ok(()),
        false => Err(StoredError::NotFound),
    }
}

/// Removes responses that are too old, and returns how many they were.
///
/// # Errors
/// The database's failure.
pub async fn prune(base: &Base) -> Result<u64, StoreError> {
    store::prune(&base.store, base.clock.now_ms()).await
}

/// Stores what an earlier process could not, and removes what is too old, until the server stops.
///
/// # Errors
/// When the journal cannot be read.
pub async fn start(generation: &Generation) -> anyhow::Result<()> {
    journal::replay::<StoredBody>(generation).await?;
    generation
        .kernel
        .repeat("removing old responses", PRUNE_EVERY, |base| async move {
            prune(&base).await.map(|_| ())
        });
    Ok(())
}
