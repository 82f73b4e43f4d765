//! `/api/toc`. The tables of a base can take more than a gigabyte, so the answer is made while it is sent, a page of documents at a time.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_accounts::PartnerTenant;
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiPath, ApiQuery};
use colloquy_store::StoreError;
use futures_util::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{BasePath, base_of, views::EmbeddingInfoView};
use crate::{
    Bases,
    document::Step,
    embedding::info,
    store::{self, TOC_PAGE, TocPlace, TocRow},
};

/// How the table of contents is told.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ContentsQuery {
    /// Whether it says how far each document is embedded.
    #[param(default = false)]
    include_status: Option<bool>,
}

/// The table of contents of a base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentsView {
    /// The name of the base.
    knowledge_base: String,
    /// The documents that can be found, oldest first; with `include_status` the others, too.
    documents: Vec<DocumentContentsView>,
    /// How far the base is embedded; with `include_status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_info: Option<EmbeddingInfoView>,
}

/// The table of contents of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentContentsView {
    /// The id.
    document_id: String,
    /// The name.
    name: String,
    /// The name of its folder.
    folder: String,
    /// Its highest headings, each with those below it in `children`.
    contents: Vec<ContentsEntry>,
    /// How far it is embedded; with `include_status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<DocumentEmbeddingView>,
}

/// A heading.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ContentsEntry {
    /// Its words.
    title: String,
    /// 1 to 6; 1 is the highest.
    level: u8,
    /// The chunk in which it begins, from 0.
    chunk_index: usize,
    /// The headings below it.
    #[schema(no_recursion)]
    children: Vec<ContentsEntry>,
}

/// How far a document is embedded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentEmbeddingView {
    /// How far it is.
    embedding_status: Step,
    /// Its chunks, once they can be found.
    chunk_count: Option<i64>,
    /// Since when they can be found. RFC 3339.
    embedded_at: Option<String>,
    /// Why it failed.
    error: Option<String>,
}

/// The headings of all documents of a knowledge base.
#[utoipa::path(
    get, path = "/api/toc/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ContentsQuery),
    responses((status = 200, body = ContentsView), (status = 404))
)]
pub(super) async fn contents(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    ApiQuery(query): ApiQuery<ContentsQuery>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let with_status = query.include_status.unwrap_or_default();
    let embedding_info = match with_status {
        true => Some(info(&bases, &base).await?.into()),
        false => None,
    };
    // Read before the head is sent, so that an outage has a status.
    let first = store::toc_page(bases.store.db(), &base.id, &TocPlace::first()).await?;
    let frame = serde_json::to_string(&ContentsView {
        knowledge_base: base.name,
        documents: Vec::new(),
        embedding_info,
    });
    let frame = frame.map_err(ApiError::internal)?;
    let base_id = base.id;
    let read_page: ReadPage = Box::new(move |after: TocPlace| {
        let (bases, base_id) = (bases.clone(), base_id.clone());
        async move { store::toc_page(bases.store.db(), &base_id, &after).await }.boxed()
    });
    let tables = Tables {
        page: Some(first),
        after: None,
        read_page,
        with_status,
        is_begun: false,
    };
    let body = json(&frame, tables)
        .ok_or_else(|| ApiError::internal("the frame of a table of contents has no documents"))?;
    let mut response = Body::from_stream(body).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

/// The list that the documents are put into. No string in JSON has these bytes: its quotation marks are escaped.
const LIST: &str = r#""documents":["#;

/// Puts tables into the empty list of a serialized [`ContentsView`]. Breaks off when a page cannot be read. Returns `None` for a frame without
/// the list.
fn json(
    frame: &str,
    tables: Tables,
) -> Option<impl Stream<Item = anyhow::Result<Bytes>> + Send + use<>> {
    let (begin, end) = frame.split_once(LIST)?;
    let begin = Bytes::from(format!("{begin}{LIST}"));
    let end = Bytes::from(end.to_owned());
    let json = stream::once(async { Ok(begin) })
        .chain(stream::try_unfold(tables, Tables::next))
        .chain(stream::once(async { Ok(end) }));
    Some(json)
}

type ReadPage =
    Box<dyn FnMut(TocPlace) -> BoxFuture<'static, Result<Vec<TocRow>, StoreError>> + Send>;

/// Tables of contents that are being written.
struct Tables {
    /// The page that was read already.
    page: Option<Vec<TocRow>>,
    /// What the next page follows; `None` after the last one.
    after: Option<TocPlace>,
    read_page: ReadPage,
    with_status: bool,
    /// Whether a document was written.
    is_begun: bool,
}

impl Tables {
    async fn next(mut self) -> anyhow::Result<Option<(Bytes, Self)>> {
        loop {
            let page = match (self.page.take(), self.after.take()) {
                (Some(page), _) => page,
                (None, Some(after)) => (self.read_page)(after).await?,
                (None, None) => return Ok(None),
            };
            let is_full = page.len() >= usize::from(TOC_PAGE);
            self.after = page.last().filter(|_| is_full).map(|row| TocPlace {
                created_at: row.created_at,
                id: row.id.clone(),
            });
            let mut json = Vec::new();
            for row in page {
                self.write(row, &mut json)?;
            }
            if !json.is_empty() {
                return Ok(Some((json.into(), self)));
            }
        }
    }

    fn write(&mut self, row: TocRow, json: &mut Vec<u8>) -> anyhow::Result<()> {
        if row.chunk_count.is_none() && !self.with_status {
            return Ok(());
        }
        if self.is_begun {
            json.push(b',');
        }
        self.is_begun = true;
        let contents = match row.contents.as_deref() {
            Some(contents) => serde_json::from_str(contents)?,
            None => Vec::new(),
        };
        let document = DocumentContentsView {
            contents,
            status: self.with_status.then(|| DocumentEmbeddingView {
                embedding_status: row.embedding,
                chunk_count: row.chunk_count,
                embedded_at: row.embedded_at.map(rfc3339),
                error: row.embedding_error,
            }),
            document_id: row.id,
            name: row.name,
            folder: row.folder,
        };
        serde_json::to_writer(json, &document)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use colloquy_index::chunking::TocEntry;
    use serde_json::Value;

    use super::*;

    /// A name of a base that looks like the list.
    const FRAME: &str = r#"{"knowledge_base":"\"documents\":[","documents":[],"more":1}"#;

    fn row(number: i64) -> TocRow {
        let entry = |title: &str, children| TocEntry {
            title: title.to_owned(),
            level: 1,
            start: 7,
            chunk_index: 3,
            children,
        };
        let table = [entry("Lions", vec![entry("Sleep", vec![])])];
        TocRow {
            id: format!("id{number}"),
            name: format!("name {number}"),
            folder: "texts".to_owned(),
            created_at: number,
            embedding: Step::Done,
            embedding_error: None,
            // Every other page has documents that cannot be found only.
            chunk_count: (number / i64::from(TOC_PAGE) % 2 == 0).then_some(1),
            embedded_at: Some(0),
            contents: serde_json::to_string(&table).ok(),
        }
    }

    /// Tables of so many documents, and how many pages of them were read.
    fn tables(count: i64, with_status: bool) -> (Tables, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let reads = Arc::clone(&read);
        let page = move |from: i64| -> Vec<TocRow> {
            (from..count.min(from + i64::from(TOC_PAGE)))
                .map(row)
                .collect()
        };
        let tables = Tables {
            page: Some(page(0)),
            after: None,
            read_page: Box::new(move |after: TocPlace| {
                reads.fetch_add(1, Ordering::Relaxed);
                let page = page(after.created_at + 1);
                async move { Ok(page) }.boxed()
            }),
            with_status,
            is_begun: false,
        };
        (tables, read)
    }

    async fn written(count: i64, with_status: bool) -> (Value, usize) {
        let (tables, read) = tables(count, with_status);
        let pieces: Vec<_> = json(FRAME, tables).unwrap().collect().await;
        let mut whole = Vec::new();
        for piece in pieces {
            whole.extend_from_slice(&piece.unwrap());
        }
        let json = serde_json::from_slice(&whole).unwrap();
        (json, read.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_page_is_sent_before_the_next_one_is_read() {
        let (tables, read) = tables(40, true);
        let mut json = Box::pin(json(FRAME, tables).unwrap());
        // The begin, and three pages.
        for expected in [0, 0, 1, 2] {
            json.next().await.unwrap().unwrap();
            assert_eq!(read.load(Ordering::Relaxed), expected);
        }
    }

    #[tokio::test]
    async fn all_documents_are_in_the_list_once_and_in_order() {
        for count in [0, 1, 15, 16, 17, 40] {
            let (json, _) = written(count, true).await;
            assert_eq!(json["knowledge_base"], "\"documents\":[");
            assert_eq!(json["more"], 1);
            let documents = json["documents"].as_array().unwrap();
            let id = |document: &Value| document["document_id"].as_str().unwrap().to_owned();
            let ids: Vec<String> = documents.iter().map(id).collect();
            let expected: Vec<String> = (0..count).map(|number| format!("id{number}")).collect();
            assert_eq!(ids, expected);
        }
        let (json, _) = written(1, true).await;
        let contents = &json["documents"][0]["contents"];
        assert_eq!(contents[0]["title"], "Lions");
        assert_eq!(contents[0]["children"][0]["chunk_index"], 3, "{json}");
    }

    #[tokio::test]
    async fn pages_of_nothing_that_can_be_found_are_passed_over() {
        let (json, read) = written(40, false).await;
        assert_eq!(json["documents"].as_array().unwrap().len(), 16 + 8);
        assert_eq!(json["documents"][16]["document_id"], "id32");
        assert_eq!(read, 2);
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_read_breaks_the_answer_off() {
        let (mut tables, _) = tables(16, true);
        tables.page = Some((0..16).map(row).collect());
        tables.read_page =
            Box::new(|_: TocPlace| async { Err(StoreError::unavailable("it is away")) }.boxed());
        let pieces: Vec<_> = json(FRAME, tables).unwrap().collect().await;
        assert!(pieces[2].is_err());
    }
}
