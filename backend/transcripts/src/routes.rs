//! `/v2/transcript`: having a recording written down, reading what was said, deleting it.

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{StatusCode, request::Parts},
};
use colloquy_accounts::{
    Accounts, Scope, Tenant,
    quotas::{Payer, QuotaKind},
};
use colloquy_base::{invalid::InvalidField, json};
use colloquy_http::{
    ApiError,
    extract::{ApiPath, body_up_to, id_in_path, is_json},
    form::Form,
};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::stored;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    accept, delete,
    error::{AcceptError, transcript_not_found},
    kept_since,
    request::{
        AUDIO, BOOSTED, MAX_BOOSTED, Options, Source, TranscriptBody, TranscriptForm, Upload, Wrong,
    },
    store,
};
use crate::Transcripts;

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Transcripts: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_transcript))
        .routes(routes!(read_transcript, delete_transcript))
}

/// The largest JSON body, and the largest text of all fields of a form, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The repeated field of a form, which may have no brackets, too.
const REPEATED: [&str; 2] = ["boosted_words[]", BOOSTED];
/// The fields of a form that are true or false.
const FLAGS: [&str; 3] = ["language_auto", "filler_words", "format_text"];

/// Where a transcript stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TranscriptStatus {
    /// It waits for its turn.
    Queued,
    /// It is being worked on.
    Processing,
    /// `text` is there.
    Completed,
    /// `error` says why there is no text.
    Error,
}

stored!(pub(super) TranscriptStatus: Queued = "queued", Processing = "processing", Completed = "completed", Error = "error");

/// A transcript.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transcript)]
pub(crate) struct TranscriptView {
    /// Its path.
    #[schema(example = "/v2/transcript/01890c5e-0000-7000-8000-000000000000")]
    pub(super) id: String,
    /// Where it stands.
    pub(super) status: TranscriptStatus,
    /// What is said, once it is `completed`; empty where nobody speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// How long the recording is, in whole seconds, once it is `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audio_duration: Option<i64>,
    /// The language that was detected, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) language_code: Option<String>,
    /// Why there is no text, when the status is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl TranscriptView {
    /// A transcript without a text.
    pub(super) fn new(id: &str, status: TranscriptStatus) -> Self {
        Self {
            id: format!("/v2/transcript/{id}"),
            status,
            text: None,
            audio_duration: None,
            language_code: None,
            error: None,
        }
    }
}

/// Whoever asks. The key is that of a quota for transcripts, or an API key with the scope `transcripts`.
async fn payer(parts: &Parts, transcripts: &Transcripts) -> Result<(Payer, Tenant), ApiError> {
    let payer = Payer::of_request(
        parts,
        transcripts,
        QuotaKind::Transcript,
        Scope::Transcripts,
    );
    let payer = payer.await?;
    let tenant = payer.tenant(None)?;
    Ok((payer, tenant))
}

/// Has a recording written down: the one at `audio_url`, or the file `audio`. It is done in the background: read the transcript until
/// it is `completed` or ended in `error`.
///
/// What a recording is, its content says, whatever it is called. All fields that are wrong are told at once. A recording from an
/// address has to be public; it may be as large as one that is uploaded.
///
/// A transcript counts in the partner's storage until it is deleted: 1 KiB, its options, `audio_url` until it ends, and then its text, which
/// is kept beyond the limit, too.
#[utoipa::path(
    post, path = "/v2/transcript", tag = "transcripts",
    request_body(
        content(
            (TranscriptBody = "application/json"),
            (TranscriptForm = "multipart/form-data"),
        ),
    ),
    responses(
        (status = 200, body = TranscriptView, description = "It is `queued`"),
        (status = 400, description = "`{error}`: the body is malformed, or did not arrive"),
        (status = 401, description = "`{error}`: no key, or one that is not valid"),
        (status = 403, description = "`{error}`: the key is not for transcripts, or they are switched off for its partner"),
        (
            status = 413,
            description = "`{error}`: a JSON body of more than 256 KiB, or the partner's storage has no room for the recording or the transcript",
        ),
        (status = 415, description = "`{error}`: neither JSON nor a form"),
        (status = 422, description = "`{message, errors: {field: [text]}}`: fields are wrong"),
        (
            status = 429,
            description = "`{error}`: the key asks too often, its partner has too many transcripts in progress, or the quota is exhausted",
        ),
        (status = 503, description = "`{error}`: the recording cannot be stored now; Retry-After says when to ask again"),
    ),
)]
pub(crate) async fn create_transcript(
    State(transcripts): State<Transcripts>,
    request: Request,
) -> Result<Json<TranscriptView>, ApiError> {
    let (parts, body) = request.into_parts();
    let (payer, tenant) = payer(&parts, &transcripts).await?;
    accept::check_room(&transcripts, &payer, &tenant).await?;
    let request = Request::from_parts(parts, body);
    let mut upload = None;
    let taken = take(&transcripts, &payer, &tenant, request, &mut upload).await;
    if let (Err(_), Some(upload)) = (&taken, upload) {
        transcripts.blobs.discard(&upload.written).await;
    }
    Ok(Json(TranscriptView::new(&taken?, TranscriptStatus::Queued)))
}

/// Takes a request; what was uploaded is in `upload`, whatever becomes of it.
async fn take(
    transcripts: &Transcripts,
    payer: &Payer,
    tenant: &Tenant,
    request: Request,
    upload: &mut Option<Upload>,
) -> Result<String, ApiError> {
    let (fields, wrong) = match is_json(request.headers()) {
        true => {
            let body = body_up_to(request, MAX_BODY_BYTES).await?;
            (json::object(&body)?, Wrong::default())
        }
        false => form(transcripts, tenant, request, upload).await?,
    };
    let has_audio = upload.is_some() || wrong.has(AUDIO);
    let allowed = |url: &url::Url| {
        let checked = transcripts.fetcher.check(url, false);
        checked.map_err(|error| error.to_string())
    };
    let understood = transcripts.providers.batch.transcriber.understands();
    let read = Options::read(&fields, has_audio, allowed, &understood, wrong);
    let (options, url) = read.map_err(AcceptError::Invalid)?;
    let source = match (upload, url) {
        (Some(upload), _) => Source::Upload(upload.clone()),
        (None, Some(url)) => Source::Url(url),
        (None, None) => return Err(InvalidField::new(AUDIO, "is required").into()),
    };
    Ok(accept::accept(transcripts, payer, tenant, &options, source).await?)
}

/// Reads a form as the fields of a body, with those that are wrong already. The file is stored as it comes. A file that is misplaced is not
/// read, so nothing behind it is told.
async fn form(
    transcripts: &Transcripts,
    tenant: &Tenant,
    request: Request,
    upload: &mut Option<Upload>,
) -> Result<(Map<String, Value>, Wrong), ApiError> {
    let mut form = Form::of(request).map_err(|error| ApiError {
        message: "Send JSON, or a form with Content-Type: multipart/form-data".to_owned(),
        ..error
    })?;
    let (mut fields, mut boosted, mut wrong) = (Map::new(), Vec::new(), Wrong::default());
    let mut left = MAX_BODY_BYTES;
    while let Some(mut part) = form.next().await? {
        let name = part.name.clone();
        if name == AUDIO {
            if upload.is_some() || wrong.has(AUDIO) {
                return Err(ApiError::invalid(AUDIO, "is given twice"));
            }
            if part.file_name.is_none() {
                return Err(ApiError::invalid(
                    AUDIO,
                    "is a file: the part needs a filename",
                ));
            }
            match accept::receive(transcripts, tenant, part.pieces()).await {
                Ok(received) => *upload = Some(received),
                // All of it was read, and so are the fields behind it.
                Err(AcceptError::Invalid(refused)) => {
                    for InvalidField { field, message } in refused {
                        wrong.tell(field, message);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        if part.file_name.is_some() {
            return Err(ApiError::invalid(
                name,
                "is a file; the recording goes into audio",
            ));
        }
        let text = part.text(left).await?;
        left -= text.len();
        if REPEATED.contains(&name.as_str()) {
            // One more than there may be is enough to tell that there are too many.
            if boosted.len() <= MAX_BOOSTED {
                boosted.push(Value::String(text));
            }
        } else if fields.contains_key(&name) {
            wrong.tell(name, "is given twice");
        } else {
            let value = value_of(&name, text);
            fields.insert(name, value);
        }
    }
    fields.insert(BOOSTED.to_owned(), Value::Array(boosted));
    Ok((fields, wrong))
}

/// The value of a body that the text of a field stands for. An empty text is none.
fn value_of(field: &str, text: String) -> Value {
    let is_flag = FLAGS.contains(&field);
    match text.as_str() {
        "" => Value::Null,
        "true" | "True" | "1" if is_flag => Value::Bool(true),
        "false" | "False" | "0" if is_flag => Value::Bool(false),
        _ => Value::String(text),
    }
}

/// Reads a transcript. Once it ended, it is kept for 30 days, unless that is configured otherwise or it is deleted.
#[utoipa::path(
    get, path = "/v2/transcript/{id}", tag = "transcripts",
    params(("id" = String, Path, description = "The UUID of the transcript")),
    responses(
        (status = 200, body = TranscriptView),
        (status = 401, description = "`{error}`"),
        (status = 403, description = "`{error}`: the key is not for transcripts"),
        (status = 404, description = "`{error}`: also for the key of a quota that did not ask for it"),
        (status = 429, description = "`{error}`: the key asks too often"),
    ),
)]
pub(crate) async fn read_transcript(
    State(transcripts): State<Transcripts>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<Json<TranscriptView>, ApiError> {
    let (payer, tenant) = payer(&parts, &transcripts).await?;
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let ApiPath(id) = path?;
    let id = id_in_path(&id, "/v2/transcript/").ok_or_else(transcript_not_found)?;
    let found = store::find(
        transcripts.store.db(),
        &tenant,
        quota,
        &id,
        kept_since(&transcripts),
    );
    found.await?.map(Json).ok_or_else(transcript_not_found)
}

/// Deletes a transcript that is `completed` or ended in `error`, and releases its bytes in the partner's storage. The key is an API key with
/// the scope `transcripts`, not that of a quota. Usage stays as it is.
#[utoipa::path(
    delete, path = "/v2/transcript/{id}", tag = "transcripts",
    params(("id" = String, Path, description = "The UUID of the transcript")),
    responses(
        (status = 204, description = "The transcript is deleted"),
        (status = 401, description = "`{error}`"),
        (status = 403, description = "`{error}`: the key is that of a quota, or is not for transcripts"),
        (status = 404, description = "`{error}`: also for a transcript of another partner"),
        (status = 409, description = "`{error}`: the transcript is `queued` or `processing`"),
        (status = 429, description = "`{error}`: the key asks too often"),
    ),
)]
pub(crate) async fn delete_transcript(
    State(transcripts): State<Transcripts>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<StatusCode, ApiError> {
    let (payer, tenant) = payer(&parts, &transcripts).await?;
    if payer.quota().is_some() {
        let message = "The key of a quota deletes no transcripts; use a secret key of the partner";
        return Err(ApiError::forbidden(message));
    }
    let ApiPath(id) = path?;
    let id = id_in_path(&id, "/v2/transcript/").ok_or_else(transcript_not_found)?;
    delete(&transcripts, &tenant, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
