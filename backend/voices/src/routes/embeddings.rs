//! What workers make of voices, and what a worker says of it.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_DISPOSITION, request::Parts},
    response::Response,
};
use colloquy_accounts::PartnerTenant;
use colloquy_config::is_voice_type;
use colloquy_http::{
    ApiError, ApiPath, ApiQuery,
    extract::{client_address, id_in_path},
    file::attachment,
};
use colloquy_kernel::jobs;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use utoipa::{IntoParams, ToSchema};

use super::{
    super::{
        embed::Embed,
        error::VoiceError,
        store,
        voice::{self, Processing},
    },
    VoicePath, allowed, optional_fields,
    samples::file,
    view,
    views::{TestSampleView, VoiceView, test_sample_view},
};
use crate::Voices;

/// A file in the path.
#[derive(Debug, Deserialize)]
pub(super) struct FilePath {
    voice: String,
    filename: String,
}

/// A type in the path.
#[derive(Debug, Deserialize)]
pub(super) struct TypePath {
    voice: String,
    tts_type: String,
}

/// The type of what was made of a voice.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TypeQuery {
    /// What it is for; what this server makes where nothing is asked for, without it.
    tts_type: Option<String>,
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
            let message = "must have 1 to 64 letters, digits, '-' and '_'";
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
pub(super) async fn embed_voice(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
pub(super) async fn list_test_samples(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
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
pub(super) async fn read_test_sample(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<FilePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
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
pub(super) async fn delete_test_files(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<TypePath>,
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
pub(super) async fn read_embedding(
    State(voices): State<Voices>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
    ApiQuery(query): ApiQuery<TypeQuery>,
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

/// What a worker's call back brings.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CallBackQuery {
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
pub(super) async fn call_back(
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
