//! Work for the server's neural models, all that they can do: vectors of texts.

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::Context as _;
use futures_util::future::try_join_all;
use serde_json::json;

use super::Observer;
use crate::server::Server;

/// The model that makes vectors.
const MODEL: &str = "all-minilm-l6-v2";

/// Texts of a request, about as long as passages of documents are.
const TEXTS: usize = 16;
const WORDS: usize = 180;

/// What the server needs to have the model, and nothing else that computes.
pub(super) fn settings() -> anyhow::Result<Vec<(String, String)>> {
    let models = std::env::var("COLLOQUY_MODELS_DIR");
    let models = models
        .context("COLLOQUY_MODELS_DIR names a folder with models: tests/bench call --busy")?;
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Ok(vec![
        setting("COLLOQUY_MODELS_DIR", &models),
        setting("COLLOQUY_EMBEDDER_MODEL", MODEL),
        setting("COLLOQUY_CALLS_VOICE_ACTIVITY", "earshot"),
    ])
}

/// The key of a quota without limits.
pub(super) async fn key(server: &Server) -> anyhow::Result<String> {
    let quota = server
        .post("/api/quotas/bench", json!({"kinds": ["text"]}))
        .await?;
    let key = quota["api_key"].as_str();
    Ok(key.context("the quota has no key")?.to_owned())
}

/// Asks for vectors, twice as many clients as the server has threads, until the calls have been looked at. Gives how many texts were answered
/// while all calls were active.
pub(super) async fn flood(
    server: &Server,
    key: &str,
    observer: &Observer<'_>,
) -> anyhow::Result<usize> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let texts = vec!["word ".repeat(WORDS); TEXTS];
    let body = json!({"model": MODEL, "input": texts});
    let answered = AtomicUsize::new(0);
    let clients = (0..2 * threads).map(|_| async {
        loop {
            let asked = server.post_with(key, "/v3/embeddings", &body);
            let Some(answer) = observer.is_over.run_until_cancelled(asked).await else {
                return anyhow::Ok(());
            };
            answer?;
            if observer.is_looking() {
                answered.fetch_add(TEXTS, Ordering::Relaxed);
            }
        }
    });
    try_join_all(clients).await?;
    Ok(answered.into_inner())
}
