//! The samples of a voice.

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_blobs::BlobKey;
use colloquy_http::{ApiError, ApiPath, file::attachment};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{
    super::{
        error::VoiceError,
        sample,
        store::{self, SampleRow},
        voice::{self, Original},
    },
    Upload, VoicePath, allowed, read_form,
    views::{SampleView, VoiceView},
};
use crate::Voices;

/// What is known of a voice, as a file of its bundle.
const INFO: &str = "voice_info.json";

/// A sample in the path.
#[derive(Debug, Deserialize)]
pub(super) struct SamplePath {
    voice: String,
    index: String,
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
pub(super) async fn add_sample(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
    request: Request,
) -> Result<(StatusCode, Json<SampleView>), ApiError> {
    let tenant = allowed(caller)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    voice::check_takes_samples(&found)?;
    let mut upload = None;
    let made = match read_form(&voices, &tenant, request, None, &mut upload).await {
        Ok(fields) => match (fields.finish(), &upload) {
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(ApiError::invalid("file", "is required")),
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
pub(super) async fn read_sample(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<SamplePath>,
) -> Result<Response, ApiError> {
    let tenant = allowed(caller)?;
    let found = voice::find(&voices, &tenant, &path.voice).await?;
    let sample = store::sample(voices.store.db(), &found.id, index(&path.index)?).await?;
    let sample = sample.ok_or(VoiceError::NotFound("Sample"))?;
    file(&voices, &sample.blob_key, "audio/ogg").await
}

pub(super) async fn file(
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
pub(super) async fn delete_sample(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<SamplePath>,
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
pub(super) async fn read_bundle(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
