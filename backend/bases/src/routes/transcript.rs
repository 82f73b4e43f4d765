//! `/api/document-transcript`.

use axum::{Json, extract::State, http::HeaderMap};
use colloquy_accounts::PartnerTenant;
use colloquy_audio::pauses::RATE_HZ;
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, ApiPath, Listing, PageQuery};
use serde::Serialize;
use utoipa::ToSchema;

use super::{DocumentPath, base_of};
use crate::{
    Bases,
    content::{Variant, of_variant},
    document,
    store::{self, TranscribedPart},
};

/// A page of the segments of a recording.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentPage {
    /// The segments, in the order of the recording.
    segments: Vec<SegmentView>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A part of a recording between two pauses, of 15 seconds at most, with the words that were heard in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentView {
    /// Begin in the recording, in milliseconds.
    begin_ms: i64,
    /// End in the recording, in milliseconds.
    end_ms: i64,
    /// The words.
    text: String,
}

impl From<TranscribedPart> for SegmentView {
    fn from(part: TranscribedPart) -> Self {
        Self {
            begin_ms: milliseconds(part.begin_sample),
            end_ms: milliseconds(part.end_sample),
            text: part.words.trim().to_owned(),
        }
    }
}

/// Returns the time of a sample.
fn milliseconds(sample: i64) -> i64 {
    sample * 1_000 / RATE_HZ as i64
}

/// Lists what was heard in the original of a document, with its times, in the order of the recording. While the recording is digitized, the list grows.
/// Edits of the digitized text change nothing here. The list is empty for originals without sound, and for a new original until that is digitized.
#[utoipa::path(
    get, path = "/api/document-transcript/{partner}/{kb}/{doc_id}", operation_id = "page_document_transcript", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), PageQuery),
    responses(
        (status = 200, body = SegmentPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the document was not found"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<SegmentPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let after = last_sample(page.after())?;
    let found = document::find(&bases, &base, &path.doc_id).await?;
    let parts = match of_variant(&found.contents, Variant::Original) {
        Some(original) => {
            let (db, id) = (bases.store.db(), &found.document.id);
            store::spoken_parts(db, id, &original.sha256, after, page.rows()).await?
        }
        None => Vec::new(),
    };
    let listed = page.of(parts, |part| part.begin_sample.to_string());
    let view = SegmentPage {
        segments: listed.entries.into_iter().map(Into::into).collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}

/// Returns the first sample of the last segment before the page; -1 for the first page.
fn last_sample(cursor: Option<&str>) -> Result<i64, InvalidField> {
    let Some(cursor) = cursor else {
        return Ok(-1);
    };
    let last = cursor.parse::<u64>().ok();
    last.and_then(|sample| i64::try_from(sample).ok())
        .ok_or_else(|| InvalidField::new("cursor", "is not one of this list"))
}
