//! `/api/document-chunks`.

use axum::{Extension, Json, extract::State, http::HeaderMap};
use colloquy_accounts::PartnerTenant;
use colloquy_base::{clock::rfc3339, invalid::InvalidField};
use colloquy_http::{ApiError, ApiPath, Listing, PageQuery, memory::Share};
use colloquy_index::chunking::Chunk;
use serde::Serialize;
use utoipa::ToSchema;

use super::{DocumentPath, base_of};
use crate::{Bases, document, embedding::StoredChunks, store};

/// The memory of a chunk beside the file: its texts, the passage, and both as JSON, for each byte of its texts.
const PER_BYTE: usize = 4;

/// A page of the chunks of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkPage {
    /// The embedding profile: the model, and its dimensions if they are set.
    profile: String,
    /// When the document was embedded. RFC 3339.
    embedded_at: String,
    /// True if the chunks are not searched, since the final content has changed or an index refused them.
    is_stale: bool,
    /// Number of chunks of the document.
    total: usize,
    /// The chunks, in the order of the text.
    chunks: Vec<ChunkView>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A chunk: a part of the final content of a document that is embedded and found as a whole.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkView {
    /// Index in the document, from 0.
    index: usize,
    /// Hash of the passage; equal passages have equal ids.
    id: String,
    /// Titles of the document and of the headings above the text.
    path: Vec<String>,
    /// The text, Markdown.
    text: String,
    /// The text that was embedded: `path` joined by ` > `, and `text` on the next line.
    passage: String,
    /// First byte of the text in the final content.
    start: usize,
    /// The byte behind the text in the final content.
    end: usize,
    /// Tokens of the passage.
    tokens: usize,
}

impl From<Chunk> for ChunkView {
    fn from(chunk: Chunk) -> Self {
        Self {
            index: chunk.index,
            id: chunk.id.to_string(),
            passage: chunk.passage(),
            path: chunk.path,
            text: chunk.text,
            start: chunk.range.start,
            end: chunk.range.end,
            tokens: chunk.tokens,
        }
    }
}

/// Lists the chunks of a document as they were embedded, in the order of its text.
#[utoipa::path(
    get, path = "/api/document-chunks/{partner}/{kb}/{doc_id}", operation_id = "page_document_chunks", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), PageQuery),
    responses(
        (status = 200, body = ChunkPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the document was not found, or the document has not been embedded"),
        (status = 413, description = "The answer takes more memory than the server has for one (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    share: Option<Extension<Share>>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<ChunkPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let first = first_index(page.after())?;
    let id = document::find(&bases, &base, &path.doc_id)
        .await?
        .document
        .id;
    let embedded = store::embedded_chunks(bases.store.db(), &id).await?;
    let embedded = embedded.ok_or_else(|| ApiError::not_found("Chunks"))?;
    let file = StoredChunks::open(&bases, &embedded.blob).await?;
    let reserve = |bytes: usize| share.as_deref().map_or(Ok(()), |share| share.grow(bytes));
    reserve(file.memory())?;
    let rows = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let slice = file.read(first..first.saturating_add(rows)).await?;
    let texts = slice.chunks.iter().map(|chunk| {
        let titles: usize = chunk.path.iter().map(String::len).sum();
        chunk.text.len() + titles
    });
    reserve(texts.sum::<usize>().saturating_mul(PER_BYTE))?;
    let listed = page.of(slice.chunks, |chunk| chunk.index.to_string());
    let view = ChunkPage {
        profile: embedded.profile,
        embedded_at: rfc3339(embedded.embedded_at),
        is_stale: embedded.stale,
        total: slice.total,
        chunks: listed.entries.into_iter().map(Into::into).collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}

/// Returns the index that follows a cursor.
fn first_index(cursor: Option<&str>) -> Result<usize, InvalidField> {
    let Some(cursor) = cursor else {
        return Ok(0);
    };
    let last = cursor.parse::<u32>();
    let last = last.map_err(|_| InvalidField::new("cursor", "is not one of this list"))?;
    Ok(usize::try_from(last)
        .unwrap_or(usize::MAX)
        .saturating_add(1))
}
