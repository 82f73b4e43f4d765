//! Answers with a row for each document of a base, made while they are sent.

use axum::{
    body::Body,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use colloquy_http::ApiError;
use futures_util::TryStreamExt as _;
use serde::Serialize;

use crate::{
    listing,
    pages::{Pages, Placed},
};

/// Answers with `frame`, whose list `documents` is empty, and the views of the rows in it; rows without a view are left out. The body ends
/// abnormally, with a line in the log, when a page cannot be read or the base was deleted meanwhile.
///
/// # Errors
/// When the first page cannot be read, or the frame has no such list.
pub(super) async fn documents<F, R, V>(
    frame: &F,
    pages: Pages<R>,
    view: impl FnMut(R) -> anyhow::Result<Option<V>> + Send + 'static,
) -> Result<Response, ApiError>
where
    F: Serialize + Sync,
    R: Placed + Send + 'static,
    V: Serialize + 'static,
{
    // Read before the head is sent, so that an outage has a status.
    let pages = pages.begun().await?;
    let frame = serde_json::to_string(frame).map_err(ApiError::internal)?;
    let body = listing::json(&frame, pages, view)
        .ok_or_else(|| ApiError::internal("the frame of an answer has no documents"))?;
    let body = body.inspect_err(listing::log_break_off);
    let mut response = Body::from_stream(body).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pages::tests::{Numbered, numbered};

    #[tokio::test]
    async fn a_first_page_that_cannot_be_read_has_a_status() {
        let (pages, _) = numbered(40, Some(0));
        let frame = json!({"documents": []});
        let answer = documents(&frame, pages, |row: Numbered| Ok(Some(row.number))).await;
        assert_eq!(answer.unwrap_err().status, 503);
    }
}
