//! `/api/voices` and `/api/voice-worker`.

mod embeddings;
mod samples;
mod views;

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
};
use colloquy_accounts::{Accounts, PartnerTenant, Scope, Tenant};
use colloquy_audio::media::Container;
use colloquy_base::names;
use colloquy_blobs::Written;
use colloquy_http::{
    ApiError, ApiPath,
    form::{Fields, Form},
};
use colloquy_kernel::{router::DescribedRouter, routes};
use serde::Deserialize;
use utoipa::ToSchema;

use self::views::{ListedView, VoiceView};
use super::{
    sample, store,
    voice::{self, MAX_SAMPLES, MOST_SAMPLES, NewVoice, SAMPLE_SECONDS},
};
use crate::Voices;

/// The longest name, in characters.
const LONGEST_NAME: usize = 255;
/// The text of all fields of a form together, in bytes.
const FIELD_BYTES: usize = 8 * 1024;
/// How long a sample may be that is split off a recording, in seconds.
const SAMPLE_LENGTHS: std::ops::RangeInclusive<u32> = 5..=60;
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Voices: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(list_voices, create_voice))
        .routes(routes!(create_empty_voice))
        .routes(routes!(read_voice, delete_voice))
        .routes(routes!(rename_voice))
        .routes(routes!(samples::add_sample))
        .routes(routes!(samples::read_sample, samples::delete_sample))
        .routes(routes!(samples::read_bundle))
        .routes(routes!(split_voice))
        .routes(routes!(embeddings::embed_voice))
        .routes(routes!(embeddings::list_test_samples))
        .routes(routes!(embeddings::read_test_sample))
        .routes(routes!(embeddings::delete_test_files))
        .routes(routes!(embeddings::read_embedding))
        .routes(routes!(prefer_sample))
}

/// The route of the voice worker.
pub(super) fn of_worker<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Voices: FromRef<S>,
{
    DescribedRouter::new().routes(routes!(embeddings::call_back))
}

/// A voice in the path.
#[derive(Debug, Deserialize)]
struct VoicePath {
    voice: String,
}

/// The tenant of a caller who may work with the voice library. Its document has one message for every 403.
fn allowed(caller: PartnerTenant) -> Result<Tenant, ApiError> {
    let scoped = caller.principal.require(Scope::Voices);
    scoped.map_err(|_| ApiError::forbidden("Access denied"))?;
    Ok(caller.tenant)
}

async fn view(voices: &Voices, tenant: &Tenant, name: &str) -> Result<Json<VoiceView>, ApiError> {
    let found = voice::find(voices, tenant, name).await?;
    let described = voice::describe(voices, found).await?;
    Ok(Json(VoiceView::new(voices, tenant, described)))
}

/// The voices of a partner, by name.
#[utoipa::path(
    get, path = "/api/voices/{partner}", operation_id = "list_library_voices", tag = "voices",
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
            let message = format!("takes no file; one recording, in the field {field}");
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
        (status = 201, body = VoiceView), (status = 400), (status = 404, description = "there is no such partner"),
        (status = 413), (status = 415),
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
        true => Err(ApiError::invalid("name", "must not be \"empty\"")),
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
    responses(
        (status = 201, body = VoiceView), (status = 400), (status = 404, description = "there is no such partner"), (status = 409),
        (status = 415),
    )
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
    request: Request,
) -> Result<Json<VoiceView>, ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = name(&mut fields)?;
    fields.finish()?;
    voice::rename(&voices, &tenant, &path.voice, &name).await?;
    view(&voices, &tenant, &name).await
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
            let message = format!("must be an integer of {} to {}", range.start(), range.end());
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<VoicePath>,
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
            || ApiError::invalid("sample_index", "must be an integer of at least 0, or empty");
        number.ok_or_else(wrong)
    });
    voice::prefer(&voices, &tenant, &path.voice, index.transpose()?).await?;
    view(&voices, &tenant, &path.voice).await
}
