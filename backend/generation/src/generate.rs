//! What every request for text does, however its answer reaches the client: it is prepared, named, and told what is kept of
//! its answer.

use std::sync::Arc;

use axum::{
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use colloquy_formats::{Head, ModelApi};
use colloquy_http::ApiError;

use super::{
    answer,
    error::PrepareError,
    prepare::{self, Prepared, Requester},
    request::ClientRequest,
    stored::Storing,
    streamed,
};
use crate::Generation;

/// A request that is paid for and has a name.
pub(super) struct StartedRequest {
    pub(super) prepared: Prepared,
    /// What its answer is called.
    pub(super) head: Head,
    /// What is kept of it.
    pub(super) storing: Option<Storing>,
}

impl StartedRequest {
    /// What the head of the answer tells: how much of the quota is left, and a knowledge base that was not found.
    pub(super) fn headers(&self, generation: &Generation) -> HeaderMap {
        let standing = self.prepared.bill.standing();
        let mut headers = standing.headers(generation.clock.now_ms());
        let unknown = self.prepared.unknown_base.as_ref();
        headers.extend(unknown.map(colloquy_characters::base_warning));
        headers
    }
}

/// Prepares a request and names its answer.
///
/// # Errors
/// Those of [`prepare::prepare`].
pub(super) async fn begin(
    generation: &Generation,
    asker: &Requester<'_>,
    request: ClientRequest,
) -> Result<StartedRequest, PrepareError> {
    let api = request.text.api;
    let mut prepared = prepare::prepare(generation, asker, request).await?;
    let fresh = generation.clock.new_id().simple();
    let head = Head {
        id: match api {
            ModelApi::Chat => format!("chatcmpl-{fresh}"),
            ModelApi::Responses => format!("resp_{fresh}"),
        },
        created_at: generation.clock.now_ms() / 1_000,
        model: prepared.model.name().to_owned(),
    };
    let is_stored = prepared.request.store;
    let recent = asker.recent.filter(|_| !is_stored);
    let is_kept = is_stored || recent.is_some();
    let storing = (api == ModelApi::Responses && is_kept).then(|| Storing {
        quota: Arc::clone(asker.quota),
        previous_id: prepared.previous_id.take(),
        input: std::mem::take(&mut prepared.own_items),
        kept_by: recent.cloned(),
        pending: prepared.pending.take(),
    });
    Ok(StartedRequest {
        prepared,
        head,
        storing,
    })
}

/// The answer of a request over HTTP.
///
/// # Errors
/// Those of [`begin`].
pub(super) async fn answer(
    generation: &Generation,
    asker: &Requester<'_>,
    request: ClientRequest,
) -> Result<Response, PrepareError> {
    let begun = begin(generation, asker, request).await?;
    let limits = begun.headers(generation);
    let answered = if begun.prepared.request.stream {
        streamed::streamed(generation, begun).await
    } else {
        answer::whole(generation, begun).await
    };
    let mut response = answered.unwrap_or_else(|error| ApiError::from(error).into_response());
    response.headers_mut().extend(limits);
    Ok(response)
}
