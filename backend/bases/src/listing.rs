//! The JSON of a row for each document of a base, made while it is sent: all of the rows can take hundreds of megabytes.

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde::Serialize;

use super::{
    error::BaseError,
    pages::{Pages, Placed},
};

/// The list that the rows are put into.
const DOCUMENTS: &str = "documents";

/// Why a list breaks off.
const UNREAD_PAGE: &str = "a page of documents cannot be read";

/// Puts the views of rows into the first empty list [`DOCUMENTS`] of a serialized frame. Breaks off when a page cannot be read, for
/// [`log_break_off`]. Returns `None` for a frame without the list.
pub(crate) fn json<R, V, W>(
    frame: &str,
    pages: Pages<R>,
    view: W,
) -> Option<impl Stream<Item = anyhow::Result<Bytes>> + Send + use<R, V, W>>
where
    R: Placed + Send + 'static,
    V: Serialize + 'static,
    W: FnMut(R) -> anyhow::Result<Option<V>> + Send + 'static,
{
    // No string in JSON has these bytes: its quotation marks are escaped.
    let list = format!(r#""{DOCUMENTS}":["#);
    let (begin, end) = frame.split_once(&list)?;
    let begin = Bytes::from(format!("{begin}{list}"));
    let end = Bytes::from(end.to_owned());
    let listing = Listing {
        begin: Some(begin),
        pages,
        view,
        is_begun: false,
        end: Some(end),
    };
    Some(stream::try_unfold(listing, Listing::next))
}

/// Logs why an answer with documents breaks off: a base that was deleted meanwhile is no fault.
pub(crate) fn log_break_off(error: &anyhow::Error) {
    match is_base_deleted(error) {
        true => tracing::info!("an answer with documents breaks off: {error:#}"),
        false => tracing::error!("an answer with documents breaks off: {error:#}"),
    }
}

fn is_base_deleted(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        matches!(
            cause.downcast_ref::<BaseError>(),
            Some(BaseError::NotFound(_))
        )
    })
}

/// An answer that is being written.
struct Listing<R, W> {
    /// What stands before the rows, until it was written.
    begin: Option<Bytes>,
    pages: Pages<R>,
    view: W,
    /// True once a row was written.
    is_begun: bool,
    /// What stands behind the rows, until it was written.
    end: Option<Bytes>,
}

impl<R, V, W> Listing<R, W>
where
    R: Placed,
    V: Serialize,
    W: FnMut(R) -> anyhow::Result<Option<V>>,
{
    async fn next(mut self) -> anyhow::Result<Option<(Bytes, Self)>> {
        if let Some(begin) = self.begin.take() {
            return Ok(Some((begin, self)));
        }
        // With a context, the cause can be found behind the errors that a stream around this one makes of it.
        while let Some(page) = self.pages.next().await.context(UNREAD_PAGE)? {
            let json = self.written(page)?;
            if !json.is_empty() {
                return Ok(Some((json.into(), self)));
            }
        }
        let end = self.end.take();
        Ok(end.map(|end| (end, self)))
    }

    fn written(&mut self, page: Vec<R>) -> anyhow::Result<Vec<u8>> {
        let mut json = Vec::new();
        for row in page {
            let Some(view) = (self.view)(row)? else {
                continue;
            };
            if self.is_begun {
                json.push(b',');
            }
            self.is_begun = true;
            serde_json::to_writer(&mut json, &view)?;
        }
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use colloquy_blobs::BundleError;
    use futures_util::{StreamExt as _, TryStreamExt as _};
    use serde_json::{Value, json};

    use super::*;
    use crate::pages::tests::{Counters, Numbered, numbered, numbered_in};

    /// The name of a base that looks like the list.
    const FRAME: &str = r#"{"knowledge_base":"\"documents\":[","documents":[],"more":1}"#;

    /// The pieces of an answer with these rows. Rows whose page is an odd one may have no view.
    fn pieces(
        count: i64,
        fails_at: Option<i64>,
        with_odd: bool,
    ) -> (impl Stream<Item = anyhow::Result<Bytes>>, Counters) {
        let (pages, counters) = numbered(count, fails_at);
        let view = move |row: Numbered| {
            let is_shown = with_odd || row.number / 16 % 2 == 0;
            Ok(is_shown.then(|| json!({"id": row.number})))
        };
        (json(FRAME, pages, view).unwrap(), counters)
    }

    async fn written(count: i64, with_odd: bool) -> (Value, Counters) {
        let (pieces, counters) = pieces(count, None, with_odd);
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        (serde_json::from_slice(&pieces.concat()).unwrap(), counters)
    }

    #[tokio::test]
    async fn a_page_is_sent_before_the_next_one_is_read() {
        let (pieces, counters) = pieces(40, None, true);
        let mut pieces = Box::pin(pieces);
        // The begin, and three pages.
        for expected in [0, 1, 2, 3] {
            pieces.next().await.unwrap().unwrap();
            assert_eq!(counters.reads(), expected);
        }
        assert_eq!(counters.most_held(), 16);
    }

    #[tokio::test]
    async fn all_documents_are_in_the_list_once_and_in_order() {
        for count in [0, 1, 15, 16, 17, 40] {
            let (json, counters) = written(count, true).await;
            assert_eq!(json["knowledge_base"], "\"documents\":[");
            assert_eq!(json["more"], 1);
            let expected: Vec<Value> = (0..count).map(|number| json!({"id": number})).collect();
            assert_eq!(json["documents"], Value::from(expected));
            assert!(counters.most_held() <= 16);
        }
    }

    #[tokio::test]
    async fn pages_without_a_view_are_passed_over() {
        let (json, counters) = written(40, false).await;
        assert_eq!(json["documents"].as_array().unwrap().len(), 16 + 8);
        assert_eq!(json["documents"][16]["id"], 32);
        assert_eq!(counters.reads(), 3);
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_read_breaks_the_answer_off() {
        let (pieces, _) = pieces(40, Some(16), true);
        let pieces: Vec<_> = pieces.collect().await;
        let is_read: Vec<bool> = pieces.iter().map(Result::is_ok).collect();
        assert_eq!(is_read, [true, true, false]);
    }

    #[tokio::test]
    async fn a_deleted_base_is_told_from_an_outage() {
        let view = |row: Numbered| Ok(Some(row.number));
        for has_base in [true, false] {
            let (pages, _) = numbered_in(40, has_base.then_some(32), has_base);
            let pieces = json(FRAME, pages, view).unwrap();
            let pieces: Vec<_> = pieces.collect().await;
            // The begin, two pages, and the failure.
            assert_eq!(pieces.len(), 4);
            let failure = pieces.into_iter().next_back().unwrap().unwrap_err();
            assert_eq!(is_base_deleted(&failure), !has_base, "{failure:#}");
            let failure = anyhow::Error::from(BundleError::List(failure.into()));
            assert_eq!(is_base_deleted(&failure), !has_base, "{failure:#}");
        }
    }
}
