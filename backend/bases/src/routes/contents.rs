//! `/api/documents/../content` and `../download`.

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse as _, Response},
};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_http::{
    ApiError, ApiPath, ApiQuery,
    form::{Fields, Form},
};
use colloquy_store::Transaction;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::byte_serialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, FIELD_BYTES, base_of, bases::optional, uploads::positive, views::DocumentView,
};
use crate::{
    Bases,
    accepting::{self, AcceptedText},
    base::KnowledgeBase,
    bundle,
    content::{self, Content, NewContent, Variant},
    document::{self, Described, Document, Fetching},
    error::BaseError,
    rewriting, store,
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
                "type is original, digitized, rewritten or draft",
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
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentView {
    /// The text. An original that is no text has its bytes read as UTF-8; `download` has them as they are.
    content: String,
    /// `raw` or `markdown`: what it is.
    format: &'static str,
}

/// A content of a document. What is longer than `knowledge.max_text_bytes` can be downloaded only.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path), FormatQuery),
    responses((status = 200, body = ContentView), (status = 400), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<ContentPath>,
    ApiQuery(query): ApiQuery<FormatQuery>,
    caller: PartnerTenant,
) -> Result<Json<ContentView>, ApiError> {
    let is_final = matches!(path.variant()?, Variant::Rewritten | Variant::Draft);
    let format = match query.format.as_deref() {
        None | Some("raw") => "raw",
        Some("markdown") if is_final => "markdown",
        Some("markdown") => "raw",
        Some(_) => return Err(ApiError::invalid("format", "format is raw or markdown")),
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
    let mut content = content::text(&bases, content, most).await?;
    if format == "markdown" && variant == Variant::Draft {
        // The marks between its sections are nobody's words.
        content = content.replace(rewriting::BETWEEN, "\n\n");
    }
    Ok(Json(ContentView { content, format }))
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
    responses((status = 200, description = "the file", content_type = "application/octet-stream", body = Vec<u8>), (status = 404))
)]
pub(super) async fn download(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<ContentPath>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let (described, variant) = found(&bases, caller, &path).await?;
    let content = described.content(variant);
    let content = content.ok_or_else(|| ApiError::not_found("Content"))?;
    let file = bases.blobs.read(&content.blob).await;
    let file = file.map_err(BaseError::from)?;
    let mut response = Body::from_stream(file.pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(file.bytes));
    headers.insert(CONTENT_DISPOSITION, disposition(&content.file_name));
    // A page or a picture of a stranger is nothing to be shown as one of this origin's.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_TYPE, media_type(content));
    Ok(response)
}

fn media_type(content: &Content) -> HeaderValue {
    HeaderValue::try_from(content.media_type.as_str())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Says that it is a file of this name (RFC 6266).
fn disposition(name: &str) -> HeaderValue {
    let encoded: String = byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    HeaderValue::try_from(format!("attachment; filename*=UTF-8''{encoded}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// The final contents of a base as a ZIP file: `documents_info.json`, and a file `<doc_id>.md` for each document. It is sent while it is
/// made; when that fails, it breaks off.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}/rewritten-bundle", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, description = "the ZIP file", content_type = "application/zip", body = Vec<u8>), (status = 404))
)]
pub(super) async fn bundle(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let documents = document::list(&bases, &base).await?;
    let bundle = bundle::stream(bases.blobs.clone(), &documents);
    let mut response = Body::from_stream(bundle).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    let name = format!("{}.zip", base.name);
    headers.insert(CONTENT_DISPOSITION, disposition(&name));
    Ok(response)
}

/// The field of a form that writes a content.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct ContentForm {
    /// The text.
    content: String,
    /// The most characters, for `digitized`.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// Writes a content of a document in the place of what it had.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path)),
    request_body(content = ContentForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = DocumentView), (status = 400), (status = 404),
        (status = 403, description = "`QUOTA_EXCEEDED:knowledge_chars`: there are more characters than `character_limit`"),
    )
)]
pub(super) async fn write(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<ContentPath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let place = place(&bases, caller, &path).await?;
    let most = bases.config.knowledge.max_text_bytes as usize;
    let mut fields = Fields::read(request, 3 * most).await?;
    let text = fields.take_text("content");
    let text = text.ok_or_else(|| ApiError::invalid("content", "content is required"))?;
    let limit = place.limit(&mut fields)?;
    fields.finish()?;
    if text.len() > most {
        let message = format!("content has {most} bytes at most");
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
    /// The most characters, for `digitized`.
    #[schema(minimum = 1)]
    character_limit: Option<u64>,
}

/// Puts a file in the place of a content of a document. What an original says is read when it is asked for (`/api/queue/process`).
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), ("type" = inline(Variant), Path)),
    request_body(content = ContentFileForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = DocumentView), (status = 400), (status = 404), (status = 413),
        (status = 403, description = "`QUOTA_EXCEEDED:knowledge_chars`: there are more characters than `character_limit`"),
    )
)]
pub(super) async fn upload(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<ContentPath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let place = place(&bases, caller, &path).await?;
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
            let message = format!("{name}: one file, in the field file");
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
        None => Err(ApiError::invalid("file", "file is required")),
        Some(PutContent::Text(text)) => place.put_text(&bases, text, limit).await,
        Some(PutContent::File(file)) => place.put_original(&bases, &file.into_content()).await,
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
}

async fn place(
    bases: &Bases,
    caller: PartnerTenant,
    path: &ContentPath,
) -> Result<Place, ApiError> {
    let variant = path.variant()?;
    if variant == Variant::Draft {
        return Err(ApiError::invalid(
            "type",
            "type is original, digitized or rewritten",
        ));
    }
    let (tenant, base) = base_of(bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let described = document::find(bases, &base, &path.doc_id).await?;
    Ok(Place {
        tenant,
        base,
        document: described.document,
        variant,
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
    ) -> Result<Json<DocumentView>, ApiError> {
        let document = &self.document;
        if limit.is_some_and(|limit| text.chars().count() as u64 > limit) {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "quota_exceeded",
                "QUOTA_EXCEEDED:knowledge_chars",
            ));
        }
        if self.variant == Variant::Digitized {
            let accepted = AcceptedText::write(bases, &self.tenant, document, text).await?;
            let transaction = self.begin(bases).await?;
            accepted
                .store(bases, &transaction, &self.tenant, document, false)
                .await?;
            return self.commit(bases, transaction).await;
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
        self.commit(bases, transaction).await
    }

    /// What was read of another original is not this one's.
    async fn put_original(
        self,
        bases: &Bases,
        original: &NewContent,
    ) -> Result<Json<DocumentView>, ApiError> {
        let transaction = self.begin(bases).await?;
        let id = &self.document.id;
        original.store(bases, &transaction, id).await?;
        store::set_fetching(&transaction, id, Fetching::None).await?;
        let extracted = store::remove_content(&transaction, id, Variant::Extracted).await?;
        bases.blobs.doom(&transaction, extracted.as_slice()).await?;
        self.commit(bases, transaction).await
    }

    async fn begin(&self, bases: &Bases) -> Result<Transaction, ApiError> {
        let transaction = bases.store.begin().await?;
        let now = bases.clock.now_ms();
        match store::raise_revision(&transaction, &self.document.id, now).await? {
            true => Ok(transaction),
            false => Err(ApiError::not_found("Document")),
        }
    }

    async fn commit(
        self,
        bases: &Bases,
        transaction: Transaction,
    ) -> Result<Json<DocumentView>, ApiError> {
        transaction.commit().await?;
        bases.index.wake();
        bases.kernel.jobs.wake();
        let found = document::find(bases, &self.base, &self.document.id).await?;
        Ok(Json(found.into()))
    }
}
