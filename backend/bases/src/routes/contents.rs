//! `/api/documents/../content` and `../download`.

use axum::{
    Extension, Json,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_blobs::{ObjectError, OpenFile};
use colloquy_http::{
    ApiError, ApiPath, ApiQuery,
    file::attachment,
    form::{Fields, Form},
    memory::Share,
};
use colloquy_store::Transaction;
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, FIELD_BYTES, base_of,
    bases::optional,
    conditions::{Condition, ConditionHeaders, etag},
    content_json::{base64_json, content_json, is_text},
    streamed,
    uploads::positive,
    views::DocumentView,
};
use crate::{
    Bases,
    accepting::{self, AcceptedText},
    base::KnowledgeBase,
    budget::{self, BudgetState},
    bundle,
    content::{self, Content, NewContent, Variant},
    digitizing,
    document::{self, Described, Document, Fetching},
    error::BaseError,
    store,
    upload::{self, Uploaded},
};

/// A content in the path.
#[derive(Debug, Deserialize)]
pub(super) struct ContentPath {
    kb: String,
    doc_id: String,
    r#type: String,
}

impl ContentPath {
    fn variant(&self) -> Result<Variant, ApiError> {
        match Variant::try_from(self.r#type.clone()) {
            Ok(variant) if variant != Variant::Extracted => Ok(variant),
            _ => Err(ApiError::invalid(
                "type",
                "must be original, digitized, rewritten or draft",
            )),
        }
    }
}

/// In which form a content is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FormatQuery {
    /// `raw`, or `markdown` for `rewritten` and `draft`.
    #[param(default = "raw")]
    format: Option<String>,
}

/// A content.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(crate) struct ContentView {
    /// The text, or the bytes in base64 if the original is not text. `download` returns the bytes unchanged.
    content: String,
    /// `raw`, `markdown` or `base64`.
    format: &'static str,
}

/// Returns a content of a document. Contents larger than `knowledge.max_text_bytes` are only available as a download. The body is
/// streamed; if reading fails, the connection is closed early. The header `ETag` is the SHA-256 of the content, in any format.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", operation_id = "read_content", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path), FormatQuery),
    responses(
        (status = 200, body = ContentView, headers(("ETag" = String, description = "SHA-256 of the content, in quotes"))), (status = 400), (status = 404),
        (status = 413, description = "Decoding the original takes more memory than the server has for one answer (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<ContentPath>,
    ApiQuery(query): ApiQuery<FormatQuery>,
    share: Option<Extension<Share>>,
) -> Result<Response, ApiError> {
    let is_final = matches!(path.variant()?, Variant::Rewritten | Variant::Draft);
    let format = match query.format.as_deref() {
        None | Some("raw") => "raw",
        Some("markdown") if is_final => "markdown",
        Some("markdown") => "raw",
        Some(_) => return Err(ApiError::invalid("format", "must be raw or markdown")),
    };
    let (described, variant) = found(&bases, caller, &path).await?;
    let Some(content) = described.content(variant) else {
        if format == "markdown" {
            let message = "The document has not been rewritten";
            return Err(ApiError::invalid("format", message));
        }
        return Err(ApiError::not_found("Content"));
    };
    let most = u64::from(bases.config.knowledge.max_text_bytes);
    if content.bytes.unsigned_abs() > most {
        let message = format!("A content of more than {most} bytes can be downloaded only");
        return Err(ApiError::invalid("type", message));
    }
    let body = match variant {
        Variant::Original => original(&bases, content, most, share).await?,
        _ => {
            let is_draft = format == "markdown" && variant == Variant::Draft;
            content_json(open(&bases, content).await?, format, is_draft).boxed()
        }
    };
    let mut response = Body::from_stream(body).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.headers_mut().extend(etag(content));
    Ok(response)
}

async fn open(bases: &Bases, content: &Content) -> Result<OpenFile, BaseError> {
    Ok(bases.blobs.read(&content.blob).await?)
}

/// Bytes of a text in memory that are made JSON at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// What a byte of a text in another encoding takes: itself, and three bytes of UTF-8.
const DECODED: usize = 4;

/// An original of `most` bytes at most as JSON: text as it is or decoded, anything else in base64.
async fn original(
    bases: &Bases,
    content: &Content,
    most: u64,
    share: Option<Extension<Share>>,
) -> Result<BoxStream<'static, Result<Bytes, ObjectError>>, ApiError> {
    let is_text = is_text(open(bases, content).await?).await;
    if is_text.map_err(BaseError::from)? {
        return Ok(content_json(open(bases, content).await?, "raw", false).boxed());
    }
    if !content.is_characters() {
        return Ok(base64_json(open(bases, content).await?).boxed());
    }
    if let Some(Extension(share)) = &share {
        let bytes = usize::try_from(content.bytes).unwrap_or(usize::MAX);
        share.grow(bytes.saturating_mul(DECODED))?;
    }
    let text = Bytes::from(content::decoded(bases, content, most).await?);
    let bytes = text.len() as u64;
    let begins = (0..text.len()).step_by(PIECE_BYTES);
    let pieces = begins.map(move |begin| {
        // What it holds is held until it is sent.
        let _ = &share;
        Ok(text.slice(begin..text.len().min(begin + PIECE_BYTES)))
    });
    let pieces = stream::iter(pieces).boxed();
    Ok(content_json(OpenFile { bytes, pieces }, "raw", false).boxed())
}

async fn found(
    bases: &Bases,
    caller: PartnerTenant,
    path: &ContentPath,
) -> Result<(Described, Variant), ApiError> {
    let variant = path.variant()?;
    let (_, base) = base_of(bases, caller, &path.kb).await?;
    let described = document::find(bases, &base, &path.doc_id).await?;
    Ok((described, variant))
}

/// A content of a document as a file.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}/{doc_id}/download/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path)),
    responses(
        (
            status = 200, description = "the file", content_type = "application/octet-stream", body = Vec<u8>,
            headers(("ETag" = String, description = "SHA-256 of the content, in quotes")),
        ),
        (status = 404),
    )
)]
pub(super) async fn download(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<ContentPath>,
) -> Result<Response, ApiError> {
    let (described, variant) = found(&bases, caller, &path).await?;
    let content = described.content(variant);
    let content = content.ok_or_else(|| ApiError::not_found("Content"))?;
    let file = bases.blobs.read(&content.blob).await;
    let file = file.map_err(BaseError::from)?;
    let mut response = Body::from_stream(file.pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(file.bytes));
    headers.insert(CONTENT_DISPOSITION, attachment(&content.file_name));
    // A page or a picture of a stranger is nothing to be shown as one of this origin's.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_TYPE, media_type(content));
    headers.extend(etag(content));
    Ok(response)
}

fn media_type(content: &Content) -> HeaderValue {
    HeaderValue::try_from(content.media_type.as_str())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// The final contents of a base as a ZIP file: `documents_info.json`, and a file `<doc_id>.md` for each document.
///
/// The response is streamed and ends abnormally if a later page of documents, or a file, cannot be read.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}/rewritten-bundle", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses(
        (status = 200, description = "the ZIP file", content_type = "application/zip", body = Vec<u8>), (status = 404),
        (status = 413, description = "The answer takes more memory than the server has for one (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn bundle(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    share: Option<Extension<Share>>,
) -> Result<Response, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    streamed::reserve(&bases, &base, bundle::MEMORY, share.as_deref()).await?;
    // Read before the head is sent, so that an outage has a status.
    let documents = bundle::documents(&bases, &base).begun().await?;
    let bundle = bundle::stream(bases.blobs.clone(), documents)
        .ok_or_else(|| ApiError::internal("the list of a bundle cannot be begun"))?;
    let mut response = Body::from_stream(bundle).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    let name = format!("{}.zip", base.name);
    headers.insert(CONTENT_DISPOSITION, attachment(&name));
    Ok(response)
}

/// The field of a form that writes a content.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct ContentForm {
    /// The text.
    content: String,
    /// The most characters that the texts of the base may have with this one, for `digitized`.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// A content that waits for room in the budget of its base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockedView {
    /// `budget_blocked`.
    status: &'static str,
    /// What the text is called that waits.
    filename: String,
    /// The document, which has what it had before.
    document: Box<DocumentView>,
}

/// What became of a content.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum PutView {
    /// The document has it.
    Written(Box<DocumentView>),
    /// It waits.
    Blocked(BlockedView),
}

/// Writes a content of a document in the place of what it had.
///
/// With `If-Match` and the `ETag` of the content that was read, nothing is overwritten that somebody wrote since. The response has the new `ETag`,
/// except with `budget_blocked`: the text waits and is not the content yet. Until it is accepted, a conditional write of `digitized` is rejected with
/// 409, and one without a condition replaces it.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path), ConditionHeaders),
    request_body(content = ContentForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = PutView, headers(("ETag" = String, description = "SHA-256 of the content, in quotes; absent with `budget_blocked`"))),
        (status = 400), (status = 404),
        (status = 409, description = "The knowledge base is being deleted, or `content_changed`: a condition of the headers does not hold, or a text waits for its budget"),
        (status = 403, description = "`QUOTA_EXCEEDED:knowledge_chars`: with this text the base has more characters than `character_limit`; it is as it was"),
    )
)]
pub(super) async fn write(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<ContentPath>,
    request: Request,
) -> Result<(HeaderMap, Json<PutView>), ApiError> {
    let place = place(&bases, caller, &path, request.headers()).await?;
    let most = bases.config.knowledge.max_text_bytes as usize;
    let mut fields = Fields::read(request, 3 * most).await?;
    let text = fields.take_text("content");
    let text = text.ok_or_else(|| ApiError::invalid("content", "is required"))?;
    let limit = place.limit(&mut fields)?;
    fields.finish()?;
    if text.len() > most {
        let message = format!("must have at most {most} bytes");
        return Err(ApiError::invalid("content", message));
    }
    place.put_text(&bases, text, limit).await
}

/// The fields of a form that brings a content as a file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct ContentFileForm {
    /// The file: for `original` one of the supported types, else text in UTF-8.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// The most characters that the texts of the base may have with this one, for `digitized`.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// Replaces a content of a document with a file. A new original is processed by `/api/queue/process`; until then `processing_warning`
/// reports that the text is outdated. `If-Match`, `If-None-Match` and `ETag` are those of `PUT`.
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path), ConditionHeaders),
    request_body(content = ContentFileForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = PutView, headers(("ETag" = String, description = "SHA-256 of the content, in quotes; absent with `budget_blocked`"))),
        (status = 400), (status = 404),
        (status = 409, description = "The knowledge base is being deleted, or `content_changed`: a condition of the headers does not hold, or a text waits for its budget"), (status = 413),
        (status = 403, description = "`QUOTA_EXCEEDED:knowledge_chars`: with this text the base has more characters than `character_limit`; it is as it was"),
    )
)]
pub(super) async fn upload(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<ContentPath>,
    request: Request,
) -> Result<(HeaderMap, Json<PutView>), ApiError> {
    let place = place(&bases, caller, &path, request.headers()).await?;
    let most = bases.config.knowledge.max_text_bytes as usize;
    let mut form = Form::of(request)?;
    let (mut fields, mut left) = (Fields::default(), FIELD_BYTES);
    let mut file = None;
    while let Some(mut part) = form.next().await? {
        let name = part.name.clone();
        let Some(file_name) = part.file_name.clone() else {
            let text = part.text(left).await?;
            left -= text.len();
            fields.add(name, text)?;
            continue;
        };
        if name != "file" || file.is_some() {
            let message = "takes no file; one file, in the field file";
            return Err(ApiError::invalid(name, message));
        }
        file = Some(if place.variant == Variant::Original {
            let pieces = part.pieces();
            PutContent::File(upload::receive(&bases, &place.tenant, &file_name, pieces).await?)
        } else {
            PutContent::Text(part.text(most).await?)
        });
    }
    let limit = place.limit(&mut fields)?;
    fields.finish()?;
    match file {
        None => Err(ApiError::invalid("file", "is required")),
        Some(PutContent::Text(text)) => place.put_text(&bases, text, limit).await,
        Some(PutContent::File(file)) => place.put_original(&bases, &file.into_content()).await,
    }
}

/// A document after a content of it was written.
struct Written {
    /// The header of that content.
    etag: HeaderMap,
    document: Box<DocumentView>,
}

impl Written {
    fn answer(self) -> (HeaderMap, Json<PutView>) {
        (self.etag, Json(PutView::Written(self.document)))
    }
}

/// The content that a form puts.
enum PutContent {
    Text(String),
    File(Uploaded),
}

/// A content of a document that is to be written.
struct Place {
    tenant: Tenant,
    base: KnowledgeBase,
    document: Document,
    variant: Variant,
    condition: Condition,
}

async fn place(
    bases: &Bases,
    caller: PartnerTenant,
    path: &ContentPath,
    headers: &HeaderMap,
) -> Result<Place, ApiError> {
    let variant = path.variant()?;
    let condition = Condition::of(headers)?;
    if variant == Variant::Draft {
        return Err(ApiError::invalid(
            "type",
            "must be original, digitized or rewritten",
        ));
    }
    let (tenant, base) = base_of(bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let described = document::find(bases, &base, &path.doc_id).await?;
    // Before anything is written; the transaction decides.
    condition.check(&described.contents, variant)?;
    Ok(Place {
        tenant,
        base,
        document: described.document,
        variant,
        condition,
    })
}

impl Place {
    /// The most characters that the request allows.
    fn limit(&self, fields: &mut Fields) -> Result<Option<u64>, ApiError> {
        match self.variant {
            Variant::Digitized => optional(fields.take("character_limit"), positive),
            _ => Ok(None),
        }
    }

    async fn put_text(
        self,
        bases: &Bases,
        text: String,
        limit: Option<u64>,
    ) -> Result<(HeaderMap, Json<PutView>), ApiError> {
        let document = &self.document;
        if self.variant == Variant::Digitized {
            return self.put_digitized(bases, text, limit).await;
        }
        let name = match self.variant {
            Variant::Original => format!("{}.txt", document.id),
            _ => format!("{}.md", document.id),
        };
        let content = NewContent::of_text(bases, &self.tenant, self.variant, name, text).await?;
        if self.variant == Variant::Original {
            return self.put_original(bases, &content).await;
        }
        let transaction = self.begin(bases).await?;
        accepting::finish(bases, &transaction, &self.tenant, document, &content).await?;
        let written = self.commit(bases, transaction).await?;
        Ok(written.answer())
    }

    /// A text for which the base has no room is kept until there is some; one for which the request allows no room is not taken.
    async fn put_digitized(
        self,
        bases: &Bases,
        text: String,
        limit: Option<u64>,
    ) -> Result<(HeaderMap, Json<PutView>), ApiError> {
        let (document, base) = (&self.document, &self.base.id);
        let characters = text.chars().count() as u64;
        let is_refused =
            |others: u64| limit.is_some_and(|limit| others.saturating_add(characters) > limit);
        let refusal = || {
            ApiError::new(
                StatusCode::FORBIDDEN,
                "quota_exceeded",
                "QUOTA_EXCEEDED:knowledge_chars",
            )
        };
        // Before any of it is written; what counts is decided below.
        let others = store::count_characters(bases.store.db(), base, Some(&document.id)).await?;
        if is_refused(others) {
            return Err(refusal());
        }
        let accepted = AcceptedText::write(bases, &self.tenant, document, text, None).await?;
        let transaction = bases.store.begin().await?;
        let state = BudgetState::lock(&transaction, base).await?;
        let state = state.ok_or_else(|| ApiError::not_found("Knowledge base"))?;
        let id = &document.id;
        let others = store::count_characters(&transaction, base, Some(id)).await?;
        if is_refused(others) {
            return Err(refusal());
        }
        self.raise_revision(bases, &transaction).await?;
        match state.room_for_text(characters, others, None) {
            Ok(()) => {
                let tenant = &self.tenant;
                accepted
                    .store(bases, &transaction, tenant, base, document, false)
                    .await?;
                let written = self.commit(bases, transaction).await?;
                Ok(written.answer())
            }
            Err(why) => {
                accepted.keep(bases, &transaction, document, &why).await?;
                // It is asked again when there is room, with the limit of this request.
                store::set_document_limit(&transaction, id, limit).await?;
                let filename = format!("{id}.md");
                let Written { document, .. } = self.commit(bases, transaction).await?;
                let blocked = BlockedView {
                    status: "budget_blocked",
                    filename,
                    document,
                };
                Ok((HeaderMap::new(), Json(PutView::Blocked(blocked))))
            }
        }
    }

    async fn put_original(
        self,
        bases: &Bases,
        original: &NewContent,
    ) -> Result<(HeaderMap, Json<PutView>), ApiError> {
        let transaction = self.begin(bases).await?;
        let id = &self.document.id;
        original.store(bases, &transaction, id).await?;
        store::set_fetching(&transaction, id, Fetching::None).await?;
        digitizing::forget(bases, &transaction, id).await?;
        let written = self.commit(bases, transaction).await?;
        Ok(written.answer())
    }

    async fn begin(&self, bases: &Bases) -> Result<Transaction, ApiError> {
        let transaction = budget::begin(bases, &self.base.id).await?;
        self.raise_revision(bases, &transaction).await?;
        Ok(transaction)
    }

    /// Raises the revision of the document, whose contents nobody else writes until the transaction ends, and checks the condition of the request.
    async fn raise_revision(
        &self,
        bases: &Bases,
        transaction: &Transaction,
    ) -> Result<(), ApiError> {
        let now = bases.clock.now_ms();
        match store::raise_revision(transaction, &self.document.id, now).await? {
            true => {
                let contents = store::contents_of(transaction, &self.document.id).await?;
                self.condition.check(&contents, self.variant)
            }
            false => Err(ApiError::not_found("Document")),
        }
    }

    async fn commit(self, bases: &Bases, transaction: Transaction) -> Result<Written, ApiError> {
        // As it was written, whatever a worker has begun since.
        let found = document::find_in(&transaction, &self.base, &self.document.id).await?;
        transaction.commit().await?;
        bases.index.wake();
        bases.kernel.jobs.wake();
        let etag = found.content(self.variant).and_then(etag);
        Ok(Written {
            etag: etag.into_iter().collect(),
            document: Box::new(found.into()),
        })
    }
}
