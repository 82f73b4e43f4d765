//! Answers with a row for each document of a base, made while they are sent.

use axum::{
    body::Body,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use colloquy_http::{
    ApiError,
    memory::{NoRoom, Share},
};
use futures_util::TryStreamExt as _;
use serde::Serialize;

use crate::{
    Bases,
    base::KnowledgeBase,
    listing,
    pages::{ListMemory, Pages, Placed},
    store,
};

/// The sort of the line in the log of lists that break off.
const BREAKS_OFF: &str = "sending a list of documents, which breaks off";

/// Reserves the memory of an answer with the documents of a base, before they are read. The body of an answer without a known size keeps what
/// its request holds until it ends.
///
/// # Errors
/// 503 if the memory is not free, 413 if it never can be, or the database's failure.
pub(super) async fn reserve(
    bases: &Bases,
    base: &KnowledgeBase,
    memory: ListMemory,
    share: Option<&Share>,
) -> Result<(), ApiError> {
    if share.is_none() {
        return Ok(());
    }
    let documents = store::count_documents(bases.store.db(), &base.id).await?;
    let documents = usize::try_from(documents).unwrap_or(usize::MAX);
    grow(share, memory.bytes(documents))
}

fn grow(share: Option<&Share>, bytes: usize) -> Result<(), ApiError> {
    let grown = share.map_or(Ok(()), |share| share.grow(bytes));
    grown.map_err(|why| match why {
        NoRoom::Now => ApiError::from(why),
        NoRoom::Ever => ApiError {
            message: "The documents of the knowledge base take more memory than this server has for one answer"
                .to_owned(),
            ..ApiError::from(why)
        },
    })
}

/// Answers with `frame`, whose list `documents` is empty, and the views of the rows in it; rows without a view are left out. The body ends
/// abnormally, with a line in the log, when a page cannot be read or the base was deleted meanwhile. The memory of the frame counts in
/// `share`; that of the rows was reserved before ([`reserve`]).
///
/// # Errors
/// When the first page cannot be read, there is no memory for the frame, or it has no such list.
pub(super) async fn documents<F, R, V>(
    frame: &F,
    pages: Pages<R>,
    share: Option<&Share>,
    view: impl FnMut(R) -> anyhow::Result<Option<V>> + Send + 'static,
) -> Result<Response, ApiError>
where
    F: Serialize + Sync,
    R: Placed + Send + 'static,
    V: Serialize + 'static,
{
    // Read before the head is sent, so that an outage has a status.
    let pages = pages.begun().await?;
    let complain = pages.complain();
    let frame = serde_json::to_string(frame).map_err(ApiError::internal)?;
    grow(share, frame.len())?;
    let body = listing::json(&frame, pages, view)
        .ok_or_else(|| ApiError::internal("the frame of an answer has no documents"))?;
    let body = body.inspect_err(move |error| listing::log_break_off(&complain, BREAKS_OFF, error));
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
        let answer = documents(&frame, pages, None, |row: Numbered| Ok(Some(row.number))).await;
        assert_eq!(answer.unwrap_err().status, 503);
    }
}
