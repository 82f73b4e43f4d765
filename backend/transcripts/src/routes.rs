//! `/v2/transcript`: having a recording written down, reading what was said, trying again, deleting it.

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{HeaderMap, StatusCode, request::Parts},
};
use colloquy_accounts::{
    Accounts, Scope, Tenant,
    quotas::{Payer, QuotaKind},
};
use colloquy_base::{invalid::InvalidField, json};
use colloquy_http::{
    ApiError, ApiQuery, Listing, PageQuery,
    extract::{ApiPath, body_up_to, id_in_path, is_json},
    form::Form,
    separated,
};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::stored;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    accept, delete,
    error::{AcceptError, transcript_not_found},
    kept_since,
    request::{
        AUDIO, BOOSTED, MAX_BOOSTED, Options, Source, TranscriptBody, TranscriptForm, Upload, Wrong,
    },
    retry,
    store::{self, TranscriptFilter},
};
use crate::Transcripts;

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Transcripts: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_transcript, list_transcripts))
        .routes(routes!(read_transcript, delete_transcript))
        .routes(routes!(retry_transcript))
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
    /// True if `POST ../retry` tries it again, as its recording or address is kept; present when the status is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retryable: Option<bool>,
    /// When it was created; RFC 3339. Absent in the answer that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(super) created_at: Option<String>,
    /// When it ended; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(super) ended_at: Option<String>,
}

/// A page of transcripts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TranscriptList {
    /// Newest first, without their texts.
    data: Vec<TranscriptView>,
    /// The `cursor` of the next page; null on the last.
    next_cursor: Option<String>,
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
            retryable: None,
            created_at: None,
            ended_at: None,
        }
    }
}

/// Whoever asks. The key is that of a quota for transcripts, or an API key with the scope `transcripts`.
async fn payer(parts: &Parts, transcripts: &Transcripts) -> Result<Payer, ApiError> {
    Payer::of_request(
        parts,
        transcripts,
        QuotaKind::Transcript,
        Scope::Transcripts,
    )
    .await
}

/// The partner whose work a request of an administrator is about.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartnerQuery {
    /// The partner that the transcript is for; administrator keys have to name one.
    partner: Option<String>,
}

/// Has a recording written down: the one at `audio_url`, or the file `audio`. It is done in the background: read the transcript until
/// it is `completed` or ended in `error`.
///
/// What a recording is, its content says, whatever it is called. All fields that are wrong are told at once. A recording from an
/// address has to be public; it may be as large as one that is uploaded.
///
/// A transcript counts in the partner's storage until it is deleted: 1 KiB, its options, `audio_url` while that is kept, and its text, which is
/// stored beyond the limit, too.
#[utoipa::path(
    post, path = "/v2/transcript", tag = "transcripts",
    params(PartnerQuery),
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
    query: Result<ApiQuery<PartnerQuery>, ApiError>,
    request: Request,
) -> Result<Json<TranscriptView>, ApiError> {
    let (parts, body) = request.into_parts();
    let payer = payer(&parts, &transcripts).await?;
    let ApiQuery(PartnerQuery { partner }) = query?;
    let tenant = payer.tenant(partner.as_deref())?;
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

/// Which transcripts to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TranscriptQuery {
    /// Only transcripts of these statuses, separated by commas: `queued`, `processing`, `completed`, `error`.
    #[param(example = "queued,processing")]
    status: Option<String>,
    /// Only transcripts created at this time or later (inclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_from: Option<Timestamp>,
    /// Only transcripts created before this time (exclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_before: Option<Timestamp>,
    /// Only transcripts of this partner; administrator keys reach those of all.
    partner: Option<String>,
}

/// Lists transcripts without their texts, newest first: those of the key's partner, for the key of a quota those that it asked for.
#[utoipa::path(
    get, path = "/v2/transcript", tag = "transcripts",
    params(TranscriptQuery, PageQuery),
    responses(
        (status = 200, body = TranscriptList),
        (status = 401, description = "`{error}`"),
        (status = 403, description = "`{error}`: the key is not for transcripts, or the partner is another"),
        (status = 422, description = "`{message, errors: {parameter: [text]}}`"),
        (status = 429, description = "`{error}`: the key asks too often"),
    ),
)]
pub(crate) async fn list_transcripts(
    State(transcripts): State<Transcripts>,
    listing: Result<Listing<TranscriptQuery>, ApiError>,
    parts: Parts,
) -> Result<(HeaderMap, Json<TranscriptList>), ApiError> {
    let payer = payer(&parts, &transcripts).await?;
    let Listing { filter, page } = listing?;
    let tenant = payer.reach(filter.partner.as_deref())?;
    let statuses = separated(
        "status",
        filter.status.as_deref(),
        "statuses of transcripts",
    )?;
    let filter = TranscriptFilter {
        tenant: tenant.as_ref(),
        quota: payer.quota().map(|quota| quota.id.as_str()),
        statuses: &statuses,
        created_from: filter.created_from.map(Timestamp::as_millisecond),
        created_before: filter.created_before.map(Timestamp::as_millisecond),
        kept_since: kept_since(&transcripts),
    };
    let rows = store::list(transcripts.store.db(), &filter, &page.slice()).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let data = listed.entries.into_iter().map(store::view);
    let list = TranscriptList {
        data: data.collect::<Result<_, _>>()?,
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(list)))
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
    let payer = payer(&parts, &transcripts).await?;
    let tenant = payer.reach(None)?;
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let id = id_of(path)?;
    let found = store::find(
        transcripts.store.db(),
        tenant.as_ref(),
        quota,
        &id,
        kept_since(&transcripts),
    );
    found.await?.map(Json).ok_or_else(transcript_not_found)
}

/// The id in a path.
fn id_of(path: Result<ApiPath<String>, ApiError>) -> Result<String, ApiError> {
    let ApiPath(id) = path?;
    id_in_path(&id, "/v2/transcript/").ok_or_else(transcript_not_found)
}

/// Tries a transcript again that ended in `error`, without the recording being sent again. The recording, or its address, is kept as long as the
/// transcript if the reason may pass: the transcription service failed, the quota was exhausted, transcripts were switched off, the server was
/// interrupted. What was heard before the failure is not heard, or paid for, again; for the rest, the quota pays that paid before.
///
/// Idempotent: while the transcript is open after a retry, another one changes nothing.
#[utoipa::path(
    post, path = "/v2/transcript/{id}/retry", tag = "transcripts",
    params(("id" = String, Path, description = "The UUID of the transcript")),
    responses(
        (status = 200, body = TranscriptView, description = "The transcript is `queued` again"),
        (status = 401, description = "`{error}`"),
        (status = 403, description = "`{error}`: the key is not for transcripts, or they are switched off for its partner"),
        (status = 404, description = "`{error}`: also for the key of a quota that did not ask for it"),
        (status = 409, description = "`{error}`: the transcript has not failed, or nothing is kept of its recording"),
        (
            status = 429,
            description = "`{error}`: the key asks too often, its partner has too many transcripts in progress, or the quota is exhausted",
        ),
    ),
)]
pub(crate) async fn retry_transcript(
    State(transcripts): State<Transcripts>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<Json<TranscriptView>, ApiError> {
    let payer = payer(&parts, &transcripts).await?;
    let tenant = payer.reach(None)?;
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let id = id_of(path)?;
    retry::retry(&transcripts, tenant.as_ref(), quota, &id).await?;
    let since = kept_since(&transcripts);
    let found = store::find(transcripts.store.db(), tenant.as_ref(), quota, &id, since);
    found.await?.map(Json).ok_or_else(transcript_not_found)
}

/// Deletes a transcript that is `completed` or ended in `error`, with the recording if that is kept, and releases their bytes in the partner's
/// storage. The key is an API key with the scope `transcripts`, not that of a quota. Usage stays as it is.
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
    let payer = payer(&parts, &transcripts).await?;
    if payer.quota().is_some() {
        let message = "The key of a quota deletes no transcripts; use a secret key of the partner";
        return Err(ApiError::forbidden(message));
    }
    let tenant = payer.reach(None)?;
    delete(&transcripts, tenant.as_ref(), &id_of(path)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
