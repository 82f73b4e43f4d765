//! Responses that are kept, so that clients can read them again and later requests go on from them.
//!
//! A response belongs to the quota key that made it; to everybody else it is not there. It is kept for
//! `limits.response_days`.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{store, wire};
use crate::{accounts::quotas::Quota, app::App, http::ApiError};

/// How often responses that are too old are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// The longest conversation that can be gone on from, in responses.
pub(super) const MAX_TURNS: i64 = 1_000;

/// A response as it is kept.
#[derive(Debug, Clone, PartialEq)]
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

impl StoredResponse {
    /// The input, each item with an id: clients give them none.
    pub(super) fn identified_input(self) -> Vec<Value> {
        let mut input = self.input;
        let of = self.id.trim_start_matches("resp_");
        for (index, item) in input.iter_mut().enumerate() {
            if let Value::Object(item) = item {
                item.entry("id")
                    .or_insert_with(|| format!("item_{of}_{index}").into());
            }
        }
        input
    }
}

/// What is known of a response before it is there.
#[derive(Debug)]
pub(super) struct Storing {
    /// Whose it will be.
    pub(super) quota: Arc<Quota>,
    /// The response that it goes on from.
    pub(super) previous_id: Option<String>,
    /// The items that the client gave.
    pub(super) input: Vec<Value>,
}

impl Storing {
    /// Keeps the response. When that fails, the client has the answer all the same; what it cannot do is to go on from it.
    pub(super) async fn keep(self, app: &App, id: &str, response: &Value) {
        let now = app.clock.now_ms();
        let days = i64::from(app.config.limits.response_days);
        let expires_at = now + days * 24 * 60 * 60 * 1_000;
        let row = StoredResponse {
            id: id.to_owned(),
            previous_id: self.previous_id,
            input: self.input,
            response: response.clone(),
        };
        let stored = store::insert(app.store.db(), &self.quota.id, &row, now, expires_at).await;
        if let Err(error) = stored {
            tracing::error!(response_id = id, %error, "a response was not stored");
        }
    }
}

/// The items of a conversation up to and with this response, oldest first.
///
/// # Errors
/// 400 when the response is not there, or one before it is not any more, or all of them are longer than a body may be; the
/// database's failure.
pub(super) async fn conversation(
    app: &App,
    quota: &Quota,
    id: &str,
) -> Result<Vec<Value>, ApiError> {
    let unknown = |what: &str| {
        ApiError::invalid("previous_response_id", what).with_code("previous_response_not_found")
    };
    let (db, now) = (app.store.db(), app.clock.now_ms());
    let most = app.config.limits.text_body_bytes;
    if store::chain_length(db, &quota.id, id, now).await? > most as u64 {
        let message = format!("the conversation up to it is longer than {most} bytes");
        return Err(ApiError::invalid("previous_response_id", message));
    }
    let turns = store::chain(db, &quota.id, id, now).await?;
    let first = turns
        .first()
        .ok_or_else(|| unknown("there is no such response"))?;
    if first.previous_id.is_some() {
        return Err(unknown("a response before it is not kept any more"));
    }
    let items = turns.into_iter().flat_map(|turn| {
        let output = wire::output_items(&turn.response);
        turn.input.into_iter().chain(output)
    });
    Ok(items.collect())
}

/// A response.
///
/// # Errors
/// 404, or the database's failure.
pub(super) async fn read(app: &App, quota: &Quota, id: &str) -> Result<StoredResponse, ApiError> {
    store::find(app.store.db(), &quota.id, id, app.clock.now_ms())
        .await?
        .ok_or_else(|| ApiError::not_found("Response"))
}

/// Deletes a response. Those that went on from it cannot be gone on from any more.
///
/// # Errors
/// 404, or the database's failure.
pub(super) async fn delete(app: &App, quota: &Quota, id: &str) -> Result<(), ApiError> {
    match store::delete(app.store.db(), &quota.id, id, app.clock.now_ms()).await? {
        true => Ok(()),
        false => Err(ApiError::not_found("Response")),
    }
}

/// Removes what is too old, until the server stops.
pub fn start(app: &App) {
    let pruned = app.clone();
    app.tasks.spawn(async move {
        let app = pruned;
        loop {
            if let Err(error) = store::prune(app.store.db(), app.clock.now_ms()).await {
                tracing::error!(%error, "removing old responses");
            }
            tokio::select! {
                () = app.shutdown.cancelled() => return,
                () = tokio::time::sleep(PRUNE_EVERY) => {}
            }
        }
    });
}
