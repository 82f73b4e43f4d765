//! `/api/toc`. The tables of a base can take more than a gigabyte, so the answer is made while it is sent, a page of documents at a time.

use axum::{Extension, extract::State, response::Response};
use colloquy_accounts::PartnerTenant;
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiPath, ApiQuery, memory::Share};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{BasePath, base_of, streamed, views::EmbeddingInfoView};
use crate::{
    Bases,
    document::Step,
    embedding::info,
    pages::{ListMemory, Pages},
    store::{self, TOC_PAGE, TocRow},
};

/// The memory of an answer: a page of tables of 64 KiB at most each, with the names of their documents.
const MEMORY: ListMemory = ListMemory {
    fixed: 0,
    page: TOC_PAGE,
    per_paged: 72 * 1024,
    per_document: 0,
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
    /// Its highest headings, each with those below it in `children`: 64 KiB at most. Beyond that the lower levels are left out, then the last
    /// headings, and `processing_warning` of the document says how many.
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
///
/// The response is streamed and ends abnormally if a later page of documents cannot be read.
#[utoipa::path(
    get, path = "/api/toc/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ContentsQuery),
    responses(
        (status = 200, body = ContentsView), (status = 404),
        (status = 413, description = "The answer takes more memory than the server has for one (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn contents(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiQuery(query): ApiQuery<ContentsQuery>,
    share: Option<Extension<Share>>,
) -> Result<Response, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let share = share.as_deref();
    streamed::reserve(&bases, &base, MEMORY, share).await?;
    let with_status = query.include_status.unwrap_or_default();
    let embedding_info = match with_status {
        true => Some(info(&bases, &base).await?.into()),
        false => None,
    };
    let pages = Pages::of_base(&bases, &base, TOC_PAGE, |bases, base, after| async move {
        store::toc_page(bases.store.db(), &base, &after).await
    });
    let frame = ContentsView {
        knowledge_base: base.name,
        documents: Vec::new(),
        embedding_info,
    };
    streamed::documents(&frame, pages, share, move |row| {
        DocumentContentsView::of(row, with_status)
    })
    .await
}

impl DocumentContentsView {
    /// The table of contents of a document; `None` where it cannot be found and its status is not wanted.
    fn of(row: TocRow, with_status: bool) -> anyhow::Result<Option<Self>> {
        if row.chunk_count.is_none() && !with_status {
            return Ok(None);
        }
        let contents = match row.contents.as_deref() {
            Some(contents) => serde_json::from_str(contents)?,
            None => Vec::new(),
        };
        Ok(Some(Self {
            contents,
            status: with_status.then(|| DocumentEmbeddingView {
                embedding_status: row.embedding,
                chunk_count: row.chunk_count,
                embedded_at: row.embedded_at.map(rfc3339),
                error: row.embedding_error,
            }),
            document_id: row.id,
            name: row.name,
            folder: row.folder,
        }))
    }
}

#[cfg(test)]
mod tests {
    use colloquy_index::chunking::TocEntry;
    use serde_json::json;

    use super::*;

    fn row(chunk_count: Option<i64>) -> TocRow {
        let entry = |title: &str, children| TocEntry {
            title: title.to_owned(),
            level: 1,
            start: 7,
            chunk_index: 3,
            children,
        };
        let table = [entry("Lions", vec![entry("Sleep", vec![])])];
        TocRow {
            id: "id".to_owned(),
            name: "name".to_owned(),
            folder: "texts".to_owned(),
            created_at: 0,
            embedding: Step::Done,
            embedding_error: None,
            chunk_count,
            embedded_at: Some(0),
            contents: serde_json::to_string(&table).ok(),
        }
    }

    #[test]
    fn a_table_has_its_headings() {
        let view = DocumentContentsView::of(row(Some(1)), false).unwrap();
        let json = json!(view.unwrap());
        let contents = &json["contents"];
        assert_eq!(contents[0]["title"], "Lions");
        assert_eq!(contents[0]["children"][0]["chunk_index"], 3, "{json}");
        assert_eq!(json.get("status"), None);
    }

    #[test]
    fn a_document_that_cannot_be_found_is_told_with_its_status_only() {
        let view = DocumentContentsView::of(row(None), false).unwrap();
        assert!(view.is_none());
        let view = DocumentContentsView::of(row(None), true).unwrap();
        let json = json!(view.unwrap());
        assert_eq!(json["status"]["embedding_status"], "done", "{json}");
    }
}
