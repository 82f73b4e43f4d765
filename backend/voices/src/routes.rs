//! `/api/voices` and `/api/voice-worker`.

use axum::{
    Json,
    body::Body,
    extract::{FromRef, Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
        request::Parts,
    },
    response::{IntoResponse as _, Response},
};
use colloquy_accounts::{Accounts, PartnerTenant, Scope, Tenant};
use colloquy_audio::media::Container;
use colloquy_base::{clock::rfc3339, names};
use colloquy_blobs::{BlobKey, Written};
use colloquy_config::is_voice_type;
use colloquy_http::{
    ApiError, ApiPath, ApiQuery,
    extract::{client_address, id_in_path},
    file::attachment,
    form::{Fields, Form},
};
use colloquy_kernel::jobs;
use serde::{Deserialize, Serialize};
use serde_json::json;
use subtle::ConstantTimeEq as _;
use url::Url;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    embed::Embed,
    error::VoiceError,
    sample,
    store::{self, ListedRow, SampleRow},
    voice::{
        self, Described, MAX_SAMPLES, MOST_SAMPLES, NewVoice, Original, Processing, SAMPLE_SECONDS,
    },
};
use crate::Voices;

/// The longest name, in characters.
const LONGEST_NAME: usize = 255;
/// The text of all fields of a form together, in bytes.
const FIELD_BYTES: usize = 8 * 1024;
/// How long a sample may be that is split off a recording, in seconds.
const SAMPLE_LENGTHS: std::ops::RangeInclusive<u32> = 5..=60;
/// What is known of a voice, as a file of its bundle.
const INFO: &str = "voice_info.json";

pub(super) fn routes<S: colloquy_kernel::State>() -> OpenApiRouter<S>
where
    Accounts: FromRef<S>,
    Voices: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(list_voices, create_voice))
        .routes(routes!(create_empty_voice))
        .routes(routes!(read_voice, delete_voice))
        .routes(routes!(rename_voice))
        .routes(routes!(add_sample))
        .routes(routes!(read_sample, delete_sample))
        .routes(routes!(read_bundle))
        .routes(routes!(split_voice))
        .routes(routes!(embed_voice))
        .routes(routes!(list_test_samples))
        .routes(routes!(read_test_sample))
        .routes(routes!(delete_test_files))
        .routes(routes!(read_embedding))
        .routes(routes!(prefer_sample))
        .routes(routes!(call_back))
}

/// A voice in the path.
#[derive(Debug, Deserialize)]
struct VoicePath {
    voice: String,
}

/// A sample in the path.
#[derive(Debug, Deserialize)]
struct SamplePath {
    voice: String,
    index: String,
}

/// A file in the path.
#[derive(Debug, Deserialize)]
struct FilePath {
    voice: String,
    filename: String,
}

/// A type in the path.
#[derive(Debug, Deserialize)]
struct TypePath {
    voice: String,
    tts_type: String,
}

/// The type of what was made of a voice.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct TypeQuery {
    /// What it is for; what this server makes where nothing is asked for, without it.
    tts_type: Option<String>,
}

/// A voice in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedVoice)]
pub(crate) struct ListedView {
    /// Its name, which is its place in paths.
    name: String,
    /// Whether it was made of a recording.
    has_original: bool,
    /// How many samples it has.
    sample_count: i64,
    /// Where splitting stands.
    splitting_status: Processing,
    /// Where embedding stands.
    embedding_status: Processing,
    /// Who made it.
    creator_name: Option<String>,
    /// How to reach them.
    creator_email: Option<String>,
}

/// Where a voice stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VoiceStatus)]
pub(crate) struct StatusView {
    /// Splitting of the recording.
    splitting: Processing,
    /// Embedding of the samples.
    embedding: Processing,
    /// Why splitting failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    splitting_error: Option<String>,
    /// Why embedding failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_error: Option<String>,
}

/// A sample of a voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VoiceSample)]
pub(crate) struct SampleView {
    /// Its number, which is its place in paths.
    index: i64,
    /// Where it begins in the recording: minutes and seconds.
    #[schema(example = "01:05")]
    source_timestamp: String,
    /// How long it is, in seconds.
    duration: f64,
}

/// A sentence that was spoken with a sample.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestSample)]
pub(crate) struct TestSampleView {
    /// The number of the sample.
    sample_index: i64,
    /// The number of the sentence, from 0.
    sentence_index: i64,
    /// What the file is called: `test_<sample_index>_<sentence_index>.opus`.
    filename: String,
}

/// What a sample is worth.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SampleScore)]
pub(crate) struct ScoreView {
    /// The number of the sample.
    sample_index: i64,
    /// From 0 to 1, the best.
    score: f64,
}

/// What was last made of a voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbeddingOfVoice)]
pub(crate) struct EmbeddingView {
    /// What it is for.
    tts_type: String,
    /// Where it stands.
    last_update_status: Processing,
    /// Since when. RFC 3339.
    last_update_time: String,
    /// The sentences that were spoken.
    test_samples: Vec<TestSampleView>,
    /// What each sample is worth.
    sample_scores: Vec<ScoreView>,
    /// What the synthesizer calls the voice; null where it cannot speak with it.
    synthesizer_voice: Option<String>,
}

/// A voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LibraryVoice)]
pub(crate) struct VoiceView {
    /// Its name, which is its place in paths.
    name: String,
    /// The recording that it was made of, as it is called here; null for a voice that was made empty.
    original_filename: Option<String>,
    /// As it was called by whoever uploaded it.
    original_uploaded_name: Option<String>,
    /// How long it is, in seconds, once that is known.
    original_duration: Option<f64>,
    /// Where splitting and embedding stand.
    status: StatusView,
    /// Its samples, by their numbers.
    samples: Vec<SampleView>,
    /// What was last made of it; null before.
    embedding_info: Option<EmbeddingView>,
    /// The type that it was last embedded for; null before.
    embedding_type: Option<String>,
    /// Where what a synthesizer needs of the voice can be got; null where there is nothing.
    embedding_zip_url: Option<String>,
    /// The number of the sample that somebody likes best.
    preferred_sample_index: Option<i64>,
    /// Who made it.
    creator_name: Option<String>,
    /// How to reach them.
    creator_email: Option<String>,
}

impl From<&SampleRow> for SampleView {
    fn from(row: &SampleRow) -> Self {
        let (minutes, seconds) = (row.source_seconds / 60, row.source_seconds % 60);
        Self {
            index: row.sample_index,
            source_timestamp: format!("{minutes:02}:{seconds:02}"),
            duration: row.milliseconds as f64 / 1_000.0,
        }
    }
}

impl From<ListedRow> for ListedView {
    fn from(row: ListedRow) -> Self {
        let embedding = row.embedding.map(Processing::try_from);
        Self {
            name: row.name,
            has_original: row.blob_key.is_some(),
            sample_count: row.samples,
            splitting_status: row.splitting,
            embedding_status: embedding.and_then(Result::ok).unwrap_or(Processing::Idle),
            creator_name: row.creator_name,
            creator_email: row.creator_email,
        }
    }
}

fn test_sample_view([sample_index, sentence_index]: [i64; 2]) -> TestSampleView {
    TestSampleView {
        sample_index,
        sentence_index,
        filename: format!("test_{sample_index}_{sentence_index}.opus"),
    }
}

impl VoiceView {
    fn new(voices: &Voices, tenant: &Tenant, described: Described) -> Self {
        let Described {
            row,
            samples,
            embedding,
            scores,
            test_samples,
        } = described;
        let original = row.original();
        let embedding_status = embedding.as_ref().map(|embedding| embedding.status);
        let embedding_error = embedding.as_ref().and_then(|it| it.error.clone());
        let zip = embedding.as_ref().filter(|it| it.blob_key.is_some());
        let embedding_zip_url =
            zip.and_then(|it| embedding_url(voices, tenant, &row.name, &it.voice_type));
        let scores = scores.into_iter().map(|score| ScoreView {
            sample_index: score.sample_index,
            score: score.score_thousandths as f64 / 1_000.0,
        });
        let tests = test_samples.into_iter();
        let tests = tests.map(|it| test_sample_view([it.sample_index, it.sentence_index]));
        let embedding_info = embedding.map(|embedding| EmbeddingView {
            tts_type: embedding.voice_type,
            last_update_status: embedding.status,
            last_update_time: rfc3339(embedding.updated_at),
            test_samples: tests.collect(),
            sample_scores: scores.collect(),
            synthesizer_voice: embedding.synthesizer_voice,
        });
        Self {
            original_filename: original.map(|it| format!("original.{}", it.container.name())),
            original_uploaded_name: row.uploaded_name,
            original_duration: row.milliseconds.map(|length| length as f64 / 1_000.0),
            status: StatusView {
                splitting: row.splitting,
                embedding: embedding_status.unwrap_or(Processing::Idle),
                splitting_error: row.splitting_error,
                embedding_error,
            },
            samples: samples.iter().map(SampleView::from).collect(),
            embedding_info,
            embedding_type: row.embedding_type,
            embedding_zip_url,
            preferred_sample_index: row.preferred_sample,
            creator_name: row.creator_name,
            creator_email: row.creator_email,
            name: row.name,
        }
    }
}

/// Where what was made of a voice for a type can be got.
fn embedding_url(voices: &Voices, tenant: &Tenant, name: &str, voice_type: &str) -> Option<String> {
    let mut url = Url::parse(&voices.config.http.origin()).ok()?;
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty();
    path.extend([
        "api",
        "voices",
        tenant.partner().as_str(),
        name,
        "embedding.zip",
    ]);
    drop(path);
    url.query_pairs_mut().append_pair("tts_type", voice_type);
    Some(url.into())
}

/// The tenant of a caller who may work with the voice library.
fn allowed(caller: PartnerTenant) -> Result<Tenant, ApiError> {
    caller.principal.require(Scope::Voices)?;
    Ok(caller.tenant)
}

async fn view(voices: &Voices, tenant: &Tenant, name: &str) -> Result<Json<VoiceView>, ApiError> {
    let found = voice::find(voices, tenant, name).await?;
    let described = voice::describe(voices, found).await?;
    Ok(Json(VoiceView::new(voices, tenant, described)))
}

/// The voices of a partner, by name.
#[utoipa::path(
    get, path = "/api/voices/{partner}", tag = "voices",
    params(("partner" = String, Path)),
    responses((status = 200, body = Vec<ListedView>))
)]
async fn list_voices(
    State(voices): State<Voices>,
    caller: PartnerTenant,
) -> Result<Json<Vec<ListedView>>, ApiError> {
    let tenant = allowed(caller)?;
    let listed = store::list(voices.store.db(), &tenant).await?;
    Ok(Json(listed.into_iter().map(ListedView::from).collect()))
}

/// A voice to make.
#[derive(ToSchema)]
#[schema(as = NewVoice)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct VoiceForm {
    /// Its name: 1 to 255 characters, without / and \.
    name: String,
    /// The recording: MP3, WAV, Ogg, FLAC, M4A, MP4 or WebM, 100 MB at most. Without it the voice is made empty.
    #[schema(value_type = Option<String>, format = Binary)]
    file: Option<Vec<u8>>,
    /// Who makes it.
    creator_name: Option<String>,
    /// How to reach them.
    creator_email: Option<String>,
}

/// A recording that was uploaded.
struct Upload {
    file_name: String,
    written: Written,
    container: Container,
}

/// Reads a form with one recording at most, in a field of this name, or of any.
async fn read_form(
    voices: &Voices,
    tenant: &Tenant,
    request: Request,
    field: Option<&str>,
    upload: &mut Option<Upload>,
) -> Result<Fields, ApiError> {
    let mut form = Form::of(request)?;
    let (mut fields, mut left) = (Fields::default(), FIELD_BYTES);
    while let Some(mut part) = form.next().await? {
        let name = part.name.clone();
        let Some(file_name) = part.file_name.clone() else {
            let text = part.text(left).await?;
            left -= text.len();
            fields.add(name, text)?;
            continue;
        };
        if upload.is_some() || field.is_some_and(|field| field != name) {
            let field = field.unwrap_or("file");
            let message = format!("{name}: one recording, in the field {field}");
            return Err(ApiError::invalid(name, message));
        }
        let (written, container) = sample::receive(voices, tenant, part.pieces()).await?;
        *upload = Some(Upload {
            file_name,
            written,
            container,
        });
    }
    Ok(fields)
}

/// Makes a voice. One with a recording is split and embedded at once.
#[utoipa::path(
    post, path = "/api/voices/{partner}", tag = "voices",
    params(("partner" = String, Path)),
    request_body(content = VoiceForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = VoiceView), (status = 400), (status = 413), (status = 415),
        (status = 409, description = "There is a voice of this name, or as many as there may be"),
        (status = 429, description = "Too many voices are being processed"),
        (status = 503, description = "The recording cannot be stored now"),
    )
)]
async fn create_voice(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<VoiceView>), ApiError> {
    let tenant = allowed(caller)?;
    voice::check_room(&voices, &tenant).await?;
    let mut upload = None;
    let made = match read_form(&voices, &tenant, request, Some("file"), &mut upload).await {
        Ok(fields) => create(&voices, &tenant, fields, upload.as_ref()).await,
        Err(error) => Err(error),
    };
    if let (Err(_), Some(upload)) = (&made, &upload) {
        voices.blobs.discard(&upload.written).await;
    }
    Ok((StatusCode::CREATED, view(&voices, &tenant, &made?).await?))
}

async fn create(
    voices: &Voices,
    tenant: &Tenant,
    mut fields: Fields,
    upload: Option<&Upload>,
) -> Result<String, ApiError> {
    let name = name(&mut fields)?;
    let creator_name = fields.take("creator_name");
    let creator_name = creator_name.map(|it| names::shown("creator_name", &it, LONGEST_NAME));
    let creator_name = creator_name.transpose()?;
    let creator_email = fields.take("creator_email");
    let creator_email = creator_email.map(|it| names::email("creator_email", &it));
    let creator_email = creator_email.transpose()?;
    fields.finish()?;
    let new = NewVoice {
        id: &voices.clock.new_id().to_string(),
        tenant,
        name: &name,
        creator_name: creator_name.as_deref(),
        creator_email: creator_email.as_deref(),
        original: upload.map(|it| (it.file_name.as_str(), &it.written, it.container)),
    };
    voice::create(voices, new).await?;
    Ok(name)
}

fn name(fields: &mut Fields) -> Result<String, ApiError> {
    let name = names::in_path("name", &fields.require("name")?, LONGEST_NAME)?;
    // That is where empty voices are made.
    match name == "empty" {
        true => Err(ApiError::invalid("name", "name cannot be \"empty\"")),
        false => Ok(name),
    }
}

/// The name of a voice.
#[derive(ToSchema)]
#[schema(as = VoiceName)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct NameForm {
    /// Its name: 1 to 255 characters, without / and \.
    name: String,
}

/// Makes a voice without a recording, for samples that come one by one.
#[utoipa::path(
    post, path = "/api/voices/{partner}/empty", tag = "voices",
    params(("partner" = String, Path)),
    request_body(content(
        (NameForm = "multipart/form-data"), (NameForm = "application/x-www-form-urlencoded"),
    )),
    responses((status = 201, body = VoiceView), (status = 400), (status = 409), (status = 415))
)]
async fn create_empty_voice(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<VoiceView>), ApiError> {
    let tenant = allowed(caller)?;
    let fields = Fields::read(request, FIELD_BYTES).await?;
    let name = create(&voices, &tenant, fields, None).await?;
    Ok((StatusCode::CREATED, view(&voices, &tenant, &name).await?))
}

/// A voice.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    responses((status = 200, body = VoiceView), (status = 404))
)]
async fn read_voice(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
) -> Result<Json<VoiceView>, ApiError> {
    let tenant = allowed(caller)?;
    view(&voices, &tenant, &path.voice).await
}

/// Removes a voice with all of its files.
#[utoipa::path(
    delete, path = "/api/voices/{partner}/{voice}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    responses(
        (status = 204), (status = 404),
        (status = 409, description = "It is being split or embedded"),
    )
)]
async fn delete_voice(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
) -> Result<StatusCode, ApiError> {
    let tenant = allowed(caller)?;
    voice::delete(&voices, &tenant, &path.voice).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a voice another name.
#[utoipa::path(
    put, path = "/api/voices/{partner}/{voice}/name", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    request_body(content(
        (NameForm = "multipart/form-data"), (NameForm = "application/x-www-form-urlencoded"),
    )),
    responses(
        (status = 200, body = VoiceView), (status = 400), (status = 404), (status = 415),
        (status = 409, description = "It is being split or embedded, or another voice has the name"),
    )
)]
async fn rename_voice(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<Json<VoiceView>, ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = name(&mut fields)?;
    fields.finish()?;
    voice::rename(&voices, &tenant, &path.voice, &name).await?;
    view(&voices, &tenant, &name).await
}

/// A sample to add.
#[derive(ToSchema)]
#[schema(as = NewVoiceSample)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct SampleForm {
    /// The recording: MP3, WAV, Ogg, FLAC, M4A, MP4 or WebM, of 1 to 60 seconds. The field may have any name.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Adds a sample to a voice that was made empty.
#[utoipa::path(
    post, path = "/api/voices/{partner}/{voice}/samples", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    request_body(content = SampleForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = SampleView), (status = 400), (status = 404), (status = 413), (status = 415),
        (status = 409, description = "It is being embedded, or has as many samples as there may be"),
        (status = 503, description = "The recording cannot be stored or decoded now"),
    )
)]
async fn add_sample(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<SampleView>), ApiError> {
    let tenant = allowed(caller)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    voice::check_takes_samples(&found)?;
    let mut upload = None;
    let made = match read_form(&voices, &tenant, request, None, &mut upload).await {
        Ok(fields) => match (fields.finish(), &upload) {
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(ApiError::invalid("file", "file is required")),
            (Ok(()), Some(upload)) => {
                let added = add(&voices, &tenant, &path.voice, upload).await;
                added.map_err(ApiError::from)
            }
        },
        Err(error) => Err(error),
    };
    if let Some(upload) = upload {
        voices.blobs.discard(&upload.written).await;
    }
    Ok((StatusCode::CREATED, Json(SampleView::from(&made?))))
}

async fn add(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    upload: &Upload,
) -> Result<SampleRow, VoiceError> {
    let recording = Original {
        key: upload.written.key.clone(),
        bytes: upload.written.bytes,
        container: upload.container,
    };
    let (written, length) = sample::of_recording(voices, tenant, &recording).await?;
    let added = voice::add_sample(voices, tenant, name, &written, length).await;
    if added.is_err() {
        voices.blobs.discard(&written).await;
    }
    added
}

/// The number of a sample in a path.
fn index(text: &str) -> Result<i64, VoiceError> {
    text.parse().map_err(|_| VoiceError::NotFound("Sample"))
}

/// A sample: Opus in Ogg.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}/samples/{index}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), ("index" = i64, Path)),
    responses((status = 200, description = "the sound", content_type = "audio/ogg", body = Vec<u8>), (status = 404))
)]
async fn read_sample(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<SamplePath>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let tenant = allowed(caller)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let sample = store::sample(voices.store.db(), &found.id, index(&path.index)?).await?;
    let sample = sample.ok_or(VoiceError::NotFound("Sample"))?;
    file(&voices, &sample.blob_key, "audio/ogg").await
}

async fn file(
    voices: &Voices,
    key: &BlobKey,
    content_type: &'static str,
) -> Result<Response, ApiError> {
    let file = voices.blobs.read(key).await.map_err(VoiceError::from)?;
    let mut response = Body::from_stream(file.pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(file.bytes));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}

/// Removes a sample with what was made of it.
#[utoipa::path(
    delete, path = "/api/voices/{partner}/{voice}/samples/{index}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), ("index" = i64, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "The voice is being split or embedded"))
)]
async fn delete_sample(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<SamplePath>,
    caller: PartnerTenant,
) -> Result<StatusCode, ApiError> {
    let tenant = allowed(caller)?;
    voice::remove_sample(&voices, &tenant, &path.voice, index(&path.index)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The samples of a voice as a ZIP file: `voice_info.json`, and a file `<index>.opus` for each. It is sent while it is made; when that
/// fails, it breaks off.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}/samples-bundle", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    responses((status = 200, description = "the ZIP file", content_type = "application/zip", body = Vec<u8>), (status = 404))
)]
async fn read_bundle(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let tenant = allowed(caller)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let described = voice::describe(&voices, found).await?;
    let files = described.samples.iter();
    let files = files.map(|it| (format!("{}.opus", it.sample_index), it.blob_key.clone()));
    let files = files.collect();
    let info = json!(VoiceView::new(&voices, &tenant, described)).to_string();
    let bundle = colloquy_blobs::bundle(voices.blobs.clone(), (INFO, info), files);
    let mut response = Body::from_stream(bundle).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    headers.insert(
        CONTENT_DISPOSITION,
        attachment(&format!("{}.zip", path.voice)),
    );
    Ok(response)
}

/// How a recording is split.
#[derive(ToSchema)]
#[schema(as = SplitVoice)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct SplitForm {
    /// The most samples.
    #[schema(minimum = 1, maximum = 100, default = 25)]
    max_samples: Option<u32>,
    /// The longest sample, in seconds.
    #[schema(minimum = 5, maximum = 60, default = 15)]
    sample_duration: Option<u32>,
}

/// A whole number of a form, in a range.
fn number(
    fields: &mut Fields,
    field: &'static str,
    range: std::ops::RangeInclusive<u32>,
    default: u32,
) -> Result<u32, ApiError> {
    let Some(text) = fields.take(field) else {
        return Ok(default);
    };
    let number = text.trim().parse().ok();
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let message = format!(
                "{field} is a whole number of {} to {}",
                range.start(),
                range.end()
            );
            ApiError::invalid(field, message)
        })
}

/// Splits the recording of a voice anew. Its samples, and what was made of them, are removed at once.
#[utoipa::path(
    post, path = "/api/voices/{partner}/{voice}/split", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    request_body(content(
        (SplitForm = "application/x-www-form-urlencoded"), (SplitForm = "multipart/form-data"),
    )),
    responses(
        (status = 202, body = VoiceView), (status = 400), (status = 404), (status = 415),
        (status = 409, description = "It is being split or embedded"),
        (status = 429, description = "Too many voices are being processed"),
    )
)]
async fn split_voice(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<VoiceView>), ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = optional_fields(request).await?;
    let how = [
        number(&mut fields, "max_samples", 1..=MOST_SAMPLES, MAX_SAMPLES)?,
        number(
            &mut fields,
            "sample_duration",
            SAMPLE_LENGTHS,
            SAMPLE_SECONDS,
        )?,
    ];
    fields.finish()?;
    voice::split(&voices, &tenant, &path.voice, how).await?;
    Ok((
        StatusCode::ACCEPTED,
        view(&voices, &tenant, &path.voice).await?,
    ))
}

/// The fields of a form that may be left out with all of them.
async fn optional_fields(request: Request) -> Result<Fields, ApiError> {
    match request.headers().contains_key(CONTENT_TYPE) {
        true => Fields::read(request, FIELD_BYTES).await,
        false => Ok(Fields::default()),
    }
}

/// What a voice is embedded for.
#[derive(ToSchema)]
#[schema(as = EmbedVoice)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct EmbedForm {
    /// What it is for; the type that the voice was last embedded for, else what this server makes, without it.
    tts_type: Option<String>,
}

/// The type that was named.
fn voice_type(text: Option<String>) -> Result<Option<String>, ApiError> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) if !is_voice_type(&text) => {
            let message = "tts_type has 1 to 64 letters, digits, '-' and '_'";
            Err(ApiError::invalid("tts_type", message))
        }
        text => Ok(text),
    }
}

/// Has a worker make of the samples what a synthesizer needs, and say what each of them is worth. What was made for the same type is
/// removed at once.
#[utoipa::path(
    post, path = "/api/voices/{partner}/{voice}/embed", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    request_body(content(
        (EmbedForm = "application/x-www-form-urlencoded"), (EmbedForm = "multipart/form-data"),
    )),
    responses(
        (status = 202, body = VoiceView), (status = 400), (status = 404), (status = 415),
        (status = 409, description = "It is being split or embedded"),
        (status = 429, description = "Too many voices are being processed"),
        (status = 503, description = "This server embeds no voices"),
    )
)]
async fn embed_voice(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<VoiceView>), ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = optional_fields(request).await?;
    let voice_type = voice_type(fields.take("tts_type"))?;
    fields.finish()?;
    voice::embed(&voices, &tenant, &path.voice, voice_type).await?;
    Ok((
        StatusCode::ACCEPTED,
        view(&voices, &tenant, &path.voice).await?,
    ))
}

/// The type that a request is about.
fn type_of(voices: &Voices, named: Option<String>) -> Result<String, ApiError> {
    let worker = voices.providers.voice_worker.as_ref();
    let default = || worker.map(|worker| worker.default_type().to_owned());
    Ok(voice_type(named)?.or_else(default).unwrap_or_default())
}

/// The sentences that were spoken with the samples of a voice.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}/test-samples", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), TypeQuery),
    responses((status = 200, body = Vec<TestSampleView>), (status = 400), (status = 404))
)]
async fn list_test_samples(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
    caller: PartnerTenant,
) -> Result<Json<Vec<TestSampleView>>, ApiError> {
    let tenant = allowed(caller)?;
    let voice_type = type_of(&voices, query.tts_type)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let listed = store::test_samples(voices.store.db(), &found.id, &voice_type).await?;
    let listed = listed.into_iter();
    let view = |it: store::TestSampleRow| test_sample_view([it.sample_index, it.sentence_index]);
    Ok(Json(listed.map(view).collect()))
}

/// A sentence that was spoken with a sample: Opus in Ogg.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}/test-samples/{filename}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), ("filename" = String, Path), TypeQuery),
    responses(
        (status = 200, description = "the sound", content_type = "audio/ogg", body = Vec<u8>), (status = 400), (status = 404),
    )
)]
async fn read_test_sample(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<FilePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let tenant = allowed(caller)?;
    let voice_type = type_of(&voices, query.tts_type)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let listed = store::test_samples(voices.store.db(), &found.id, &voice_type).await?;
    let named = listed.into_iter().find(|it| {
        test_sample_view([it.sample_index, it.sentence_index]).filename == path.filename
    });
    let named = named.ok_or(VoiceError::NotFound("Test sample"))?;
    file(&voices, &named.blob_key, "audio/ogg").await
}

/// Removes what was made of a voice for a type: the sentences, the scores, the embedding.
#[utoipa::path(
    delete, path = "/api/voices/{partner}/{voice}/test-files/{tts_type}", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), ("tts_type" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "The voice is being split or embedded"))
)]
async fn delete_test_files(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<TypePath>,
    caller: PartnerTenant,
) -> Result<StatusCode, ApiError> {
    let tenant = allowed(caller)?;
    if !is_voice_type(&path.tts_type) {
        return Err(VoiceError::NotFound("Embedding").into());
    }
    voice::remove_embedding(&voices, &tenant, &path.voice, &path.tts_type).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a synthesizer needs of a voice: a ZIP file, whose content depends on who made it.
#[utoipa::path(
    get, path = "/api/voices/{partner}/{voice}/embedding.zip", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path), TypeQuery),
    responses((status = 200, description = "the ZIP file", content_type = "application/zip", body = Vec<u8>), (status = 400), (status = 404))
)]
async fn read_embedding(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
    caller: PartnerTenant,
) -> Result<Response, ApiError> {
    let tenant = allowed(caller)?;
    let voice_type = type_of(&voices, query.tts_type)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let embedding = store::embedding(voices.store.db(), &found.id, &voice_type).await?;
    let zip = embedding.and_then(|embedding| embedding.blob_key);
    let zip = zip.ok_or(VoiceError::NotFound("Embedding"))?;
    let mut response = file(&voices, &zip, "application/zip").await?;
    let name = attachment(&format!("{}-{voice_type}.zip", path.voice));
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

/// Which sample of a voice is the best.
#[derive(ToSchema)]
#[schema(as = PreferredSample)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct PreferredForm {
    /// The number of the sample; empty for none.
    sample_index: Option<i64>,
}

/// Says which sample of a voice is the best.
#[utoipa::path(
    put, path = "/api/voices/{partner}/{voice}/preferred-sample", tag = "voices",
    params(("partner" = String, Path), ("voice" = String, Path)),
    request_body(content(
        (PreferredForm = "application/x-www-form-urlencoded"), (PreferredForm = "multipart/form-data"),
    )),
    responses(
        (status = 200, body = VoiceView), (status = 400), (status = 404), (status = 415),
        (status = 409, description = "It is being split or embedded"),
    )
)]
async fn prefer_sample(
    State(voices): State<Voices>,
    ApiPath(path): ApiPath<VoicePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<Json<VoiceView>, ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = optional_fields(request).await?;
    let index = fields.take("sample_index");
    fields.finish()?;
    let index = index.filter(|text| !text.trim().is_empty());
    let index = index.map(|text| {
        let number = text.trim().parse().ok().filter(|number: &i64| *number >= 0);
        let wrong =
            || ApiError::invalid("sample_index", "sample_index is a whole number, or empty");
        number.ok_or_else(wrong)
    });
    voice::prefer(&voices, &tenant, &path.voice, index.transpose()?).await?;
    view(&voices, &tenant, &path.voice).await
}

/// What a worker's call back brings.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct CallBackQuery {
    /// What the address had that the worker got with the job.
    #[serde(default)]
    token: String,
}

/// For the voice worker: says that a job has ended. It is then asked for its state; nothing else is believed.
#[utoipa::path(
    post, path = "/api/voice-worker/jobs/{id}", tag = "voices",
    params(("id" = String, Path, description = "The job's id"), CallBackQuery),
    security(()),
    responses((status = 204), (status = 401), (status = 429))
)]
async fn call_back(
    State(voices): State<Voices>,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<CallBackQuery>,
    parts: Parts,
) -> Result<StatusCode, ApiError> {
    let found = match id_in_path(&id, "") {
        Some(id) => store::embedding_of_run(voices.store.db(), &id).await?,
        None => None,
    };
    let is_right = |token: &str| bool::from(token.as_bytes().ct_eq(query.token.as_bytes()));
    let Some(embedding) = found.filter(|embedding| is_right(&embedding.token)) else {
        voices.limits.check_attempt(client_address(&parts))?;
        return Err(ApiError::unauthorized());
    };
    if embedding.status == Processing::InProgress {
        let transaction = voices.store.begin().await?;
        let job = Embed {
            run: embedding.run.clone(),
        };
        let voice = store::by_id(&transaction, &embedding.voice_id).await?;
        if let Some(voice) = voice {
            let owner = voice.tenant();
            jobs::enqueue(&voices, &transaction, Some(owner.partner()), &job).await?;
            transaction.commit().await?;
            voices.kernel.jobs.wake();
        }
    }
    Ok(StatusCode::NO_CONTENT)
}
