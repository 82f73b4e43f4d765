//! `/v2/audio`: speech of a text, and the voices there are.

use axum::{
    Json,
    extract::{FromRef, FromRequestParts as _, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse as _, Response},
};
use colloquy_accounts::{
    Accounts, PartnerId, Scope,
    ledger::Outcome,
    quotas::{self, Payer, QuotaKind},
};
use colloquy_audio::encode::{Format, RATE_HZ};
use colloquy_base::{
    fair_queue::{Claim, Priority},
    invalid::InvalidField,
};
use colloquy_http::{
    ApiError, ApiQuery,
    extract::{body_bytes, is_json, unsupported_media_type},
    memory::Share,
};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_providers::{Gender, VoiceInfo};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    bill::{self, Bill},
    cache::Key,
    library,
    recording::{SoundError, expected_wav_bytes},
    request::SpeechBody,
    sound::{Order, SoundStream},
    spoken::spoken,
    text_reader::TextReader,
    voices,
};
use crate::Speech;

/// The speech interface.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Speech: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_speech))
        .routes(routes!(list_voices))
}

/// The number of a request, for support.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-svc-tts-request-id");
/// The rate of samples without a header of their own, in Hz.
const SAMPLE_RATE: HeaderName = HeaderName::from_static("x-svc-tts-sample-rate");

/// The fields of a request, for the API document; they are read in `request.rs`.
#[derive(ToSchema)]
#[schema(as = SpeechRequest)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct SpeechRequestSchema {
    /// The model's public name; there is one, `colloquy-tts` unless it is configured otherwise.
    #[schema(example = "colloquy-tts")]
    model: String,
    /// An id of `GET /v2/audio/voices`: a voice of the synthesizer, or `repo:<partner>/<name>`, one of the voice library.
    #[schema(example = "en")]
    voice: String,
    /// The text. Marks that cannot be heard (Markdown, HTML tags, emoji) are left out, as in calls.
    #[schema(min_length = 1, max_length = 2000)]
    input: String,
    /// `auto`, or `en`, `es`, `fr`, `de`, `it`, `pt`, `pl`, `ru`, `nl`, `ar`, `zh-cn`, `ja`, `ko`, `hi`, `he`. With `auto` the
    /// language is detected; where that is not sure, the voice's own is taken, or that of the text's script where the voice does not read it.
    #[schema(default = "auto")]
    language: Option<String>,
    /// The format of the answer, mono.
    #[schema(value_type = Option<Format>, default = "mp3")]
    response_format: Option<Format>,
    /// The speed, 1 is normal.
    #[schema(minimum = 0.5, maximum = 1.5)]
    speed: Option<f64>,
}

/// Sound in the format that was asked for.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct SoundFile(Vec<u8>);

/// Speaks a text. `Authorization: Bearer`, else `X-Api-Key`, carries the key of a quota for speech, or an API key with the
/// scope `speech`; usage counts the characters of `input`.
///
/// The body is sound at 24,000 Hz, mono. All formats but `wav` are sent while they are made; when speech fails after that,
/// the body breaks off without its proper end. `wav` begins with its length, so the server holds all of it until it is sent.
/// `pcm` is signed 16-bit little-endian samples; the header `X-Svc-TTS-Sample-Rate` repeats their rate.
/// `X-Svc-TTS-Request-Id` is a number, also on errors.
///
/// Wrong fields are answered with 400, as everywhere in this API, and all of them are named at once.
#[utoipa::path(
    post, path = "/v2/audio/speech", tag = "speech",
    request_body = SpeechRequestSchema,
    responses(
        (
            status = 200, description = "The sound",
            content(
                (SoundFile = "audio/mpeg"),
                (SoundFile = "audio/ogg"),
                (SoundFile = "audio/wav"),
                (SoundFile = "application/octet-stream"),
            ),
            headers(
                ("X-Svc-TTS-Request-Id" = u64, description = "The number of the request"),
                ("X-Svc-TTS-Sample-Rate" = u32, description = "The rate of `pcm`, in Hz"),
            ),
        ),
        (
            status = 400,
            description = "`{message, errors: {field: [text]}}` for wrong fields, and for an `input` that is mostly in a script that no voice \
                of its language reads; `{error}` when there is no such voice, or the \
                voice service refuses the request",
        ),
        (status = 401, description = "`{error}`: no key, or one that is not valid"),
        (status = 403, description = "`{error}`: the key is not for speech"),
        (
            status = 413,
            description = "`{error}`: the body is too large, or the sound, as `wav`, takes more memory than the server has for one",
        ),
        (status = 429, description = "`{error, code: QUOTA_EXHAUSTED}`, or `{error}` beyond the key's rate"),
        (status = 502, description = "`{error}`: the voice service failed"),
        (
            status = 503,
            description = "`{error}`: the voice service is not available, or there is no memory for the sound now; Retry-After says \
                when to ask again",
        ),
    ),
)]
pub(crate) async fn create_speech(State(speech): State<Speech>, request: Request) -> Response {
    let id = request_id(&speech);
    let answer = answer(&speech, id, request).await;
    let mut response = answer.unwrap_or_else(|error| error.into_response());
    response
        .headers_mut()
        .insert(REQUEST_ID, HeaderValue::from(id));
    response
}

/// Whoever asks for speech. The key is in `Authorization: Bearer` or in `X-Api-Key`, looked for in this order.
///
/// # Errors
/// As of [`Payer::with_key`].
async fn payer(parts: &Parts, speech: &Speech) -> Result<Payer, ApiError> {
    let key = quotas::key_text(&parts.headers);
    Payer::with_key(parts, speech, key, QuotaKind::Speech, Scope::Speech).await
}

async fn answer(speech: &Speech, request_id: u64, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let payer = payer(&parts, speech).await?;
    let memory = parts.extensions.get::<Share>().cloned();
    let wanted = wanted(speech, parts, body).await?;
    let voices = voices::list(speech).await.map_err(SoundError::from)?;
    let id = match library::parsed(&wanted.voice) {
        Some(reference) => named(speech, &payer, reference).await?,
        None => wanted.voice,
    };
    let synthesizer = &speech.providers.synthesizer;
    let heard = spoken(&wanted.input);
    let language = wanted.language;
    let language = language.or_else(|| synthesizer.detect_language(Some(&id), &heard));
    let checked = synthesizer.check_language(Some(&id), language, Some(&heard));
    checked.map_err(|unspoken| InvalidField::new("input", unspoken.to_string()))?;
    let voice = voices::choose(&voices, &id, language, wanted.speed).ok_or_else(unknown_voice)?;
    let claim = Claim::new(Priority::Request, &bill::owner(&payer));
    let reading = TextReader::new(speech, voice.clone(), &wanted.input, &claim);
    let reading = reading.ok_or_else(unspeakable)?;
    let characters = wanted.input.chars().count() as u64;
    let bill = Bill::reserve(speech, &payer, characters, request_id).await?;
    let limits = bill.limits(speech.clock.now_ms());
    tracing::info!(tts_request_id = request_id, characters, "speech");

    let format = wanted.format;
    let expected_bytes = expected_wav_bytes(&wanted.input, wanted.speed);
    let key = (speech.cache.room() > 0)
        .then(|| Key::new(bill::owner(&payer), &voice, wanted.input, format));
    let kept = key.as_ref().and_then(|key| speech.cache.get(key));
    let mut response = if let Some(file) = kept {
        // Others may make the cache forget the file before this client has read it.
        if let Some(memory) = &memory
            && let Err(why) = memory.grow(file.len())
        {
            bill.settle(0, Outcome::Failed);
            return Err(SoundError::from(why).into());
        }
        bill.settle(characters, Outcome::Completed);
        file.into_response()
    } else {
        let order = Order {
            request_id,
            format,
            characters,
            key,
            memory,
            expected_bytes,
        };
        SoundStream::new(speech, order, reading, bill)
            .body()
            .await?
    };
    let headers = response.headers_mut();
    headers.extend(limits);
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(format.content_type()),
    );
    if format == Format::Pcm {
        headers.insert(SAMPLE_RATE, HeaderValue::from(RATE_HZ));
    }
    Ok(response)
}

/// What the synthesizer calls a voice of the library, of a partner that the key reaches.
async fn named(
    speech: &Speech,
    payer: &Payer,
    reference: (&str, &str),
) -> Result<String, ApiError> {
    let partner = PartnerId::parse(reference.0).map_err(|_| unknown_voice())?;
    let tenant = payer.principal().tenant(&partner);
    let tenant = tenant.map_err(|_| unknown_voice())?;
    let meant = library::meant(speech, &tenant, reference).await?;
    meant.ok_or_else(unknown_voice)
}

/// Reads the body.
async fn wanted(
    speech: &Speech,
    parts: Parts,
    body: axum::body::Body,
) -> Result<SpeechBody, ApiError> {
    if !is_json(&parts.headers) {
        return Err(unsupported_media_type());
    }
    let bytes = body_bytes(Request::from_parts(parts, body)).await?;
    Ok(SpeechBody::parse(&bytes, &speech.config.speech.model)?)
}

/// A number for support: later ones are larger, and two of the same millisecond differ by chance.
fn request_id(speech: &Speech) -> u64 {
    const CHANCE_BITS: u32 = 22;
    let now_ms = u64::try_from(speech.clock.now_ms()).unwrap_or_default();
    let chance = speech.clock.new_id().as_u128() as u64 & ((1 << CHANCE_BITS) - 1);
    (now_ms << CHANCE_BITS) | chance
}

fn unknown_voice() -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "unknown_voice",
        "There is no such voice; GET /v2/audio/voices lists those there are",
    )
}

fn unspeakable() -> ApiError {
    let wrong = InvalidField::new("input", "has nothing in it that can be spoken");
    ApiError::invalid_fields(vec![wrong])
}

/// The voices that requests may name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Voices)]
pub(crate) struct VoicesPage {
    /// The `model` of requests for speech.
    #[schema(example = "colloquy-tts")]
    model: String,
    voices: Vec<VoiceView>,
    /// Whether other ids are passed on to the configured voice service, which knows what they are.
    may_have_others: bool,
}

/// A voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Voice)]
struct VoiceView {
    /// What requests, and characters, call it.
    #[schema(example = "pt-br+f3")]
    id: String,
    /// What people call it.
    name: String,
    /// Its own language, as a BCP 47 tag; null where it is not known. A text in another language is spoken with the same
    /// sort of voice in that language.
    language: Option<String>,
    /// How it sounds; null where it is not known.
    gender: Option<Gender>,
}

impl From<VoiceInfo> for VoiceView {
    fn from(voice: VoiceInfo) -> Self {
        Self {
            id: voice.id,
            name: voice.name,
            language: voice.language,
            gender: voice.gender,
        }
    }
}

/// Whose voices are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VoicesQuery {
    /// The partner whose library is listed, too; without it that of the key, and for an administrator none.
    partner: Option<String>,
}

/// Lists the voices, with the same keys as for speech: those of the synthesizer, and those of the partner's library that it can speak with.
#[utoipa::path(
    get, path = "/v2/audio/voices", tag = "speech", params(VoicesQuery),
    responses(
        (status = 200, body = VoicesPage),
        (status = 503, description = "`{error}`: the voice service is not available"),
    ),
)]
pub(crate) async fn list_voices(
    State(speech): State<Speech>,
    mut parts: Parts,
) -> Result<Json<VoicesPage>, ApiError> {
    let payer = payer(&parts, &speech).await?;
    let ApiQuery(query) = ApiQuery::<VoicesQuery>::from_request_parts(&mut parts, &()).await?;
    let tenant = match &query.partner {
        Some(partner) => Some(payer.principal().tenant(&PartnerId::parse(partner)?)?),
        None => payer.principal().own_tenant(),
    };
    let list = voices::list(&speech).await.map_err(SoundError::from)?;
    let mut own = Vec::new();
    if let Some(tenant) = tenant {
        for voice in speech.library.voices(&tenant).await? {
            let id = voice.synthesizer_voice;
            let known = list.voices.iter().find(|known| known.id == id);
            own.push(VoiceView {
                id: library::reference(&tenant, &voice.name),
                name: voice.name,
                language: known.and_then(|known| known.language.clone()),
                gender: known.and_then(|known| known.gender),
            });
        }
    }
    let voices = list.voices.into_iter().map(VoiceView::from);
    Ok(Json(VoicesPage {
        model: speech.config.speech.model.clone(),
        voices: voices.chain(own).collect(),
        may_have_others: list.may_have_others,
    }))
}
