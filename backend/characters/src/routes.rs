//! The endpoints of saved characters.

use axum::{
    Json,
    extract::{FromRef, State},
    http::{HeaderMap, StatusCode, header},
    response::{AppendHeaders, IntoResponse},
};
use colloquy_accounts::{Accounts, PartnerTenant, Scope};
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiJson, ApiPath, Listing, PageQuery};
use colloquy_kernel::{router::DescribedRouter, routes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    CharacterName, CharacterParameters, Problem, RenderedCharacter,
    draft::{self, Draft, DraftCheck},
    parse_character_params,
    saved::{self, CharacterEntry, Content, SavedCharacter},
    validate,
};
use crate::Characters;

/// Saved characters.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Characters: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(read, update, delete))
        .routes(routes!(check_draft))
        .routes(routes!(list_versions))
        .routes(routes!(read_version))
}

/// A version of a saved character.
#[derive(Debug, Serialize, ToSchema)]
pub struct CharacterView {
    /// The name.
    name: String,
    /// How requests name it: `repo:<partner>/<name>`.
    reference: String,
    /// The version, counted from 1.
    version: i64,
    /// The prompt template.
    personality: String,
    /// The parameters.
    parameters: CharacterParameters,
    /// When the character was made; RFC 3339.
    created_at: String,
    /// When this version was made; RFC 3339.
    updated_at: String,
}

/// An entry of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct CharacterEntryView {
    /// The name.
    name: String,
    /// The version.
    version: i64,
    /// When the character was made; RFC 3339.
    created_at: String,
    /// When the version was made; RFC 3339.
    updated_at: String,
}

impl From<CharacterEntry> for CharacterEntryView {
    fn from(entry: CharacterEntry) -> Self {
        Self {
            name: entry.name,
            version: entry.version,
            created_at: rfc3339(entry.created_at),
            updated_at: rfc3339(entry.updated_at),
        }
    }
}

/// A character to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCharacterBody {
    /// The name: 1 to 64 letters, digits, `-`, `_` and `.`.
    name: String,
    /// The prompt template: text with placeholders such as `{{ robot_name }}` or `{{ shop.city|upper }}`, `{% if .. %}` (with `==`,
    /// `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`, `in`, `is defined`, `is undefined`, `is none`) and
    /// `{% for name in list %}` over a parameter. The filters are `default`, `lower`, `upper`, `title`, `capitalize`, `trim`,
    /// `length`, `first` and `last`. Nothing else is available. At most 128 KiB; all templates of a character have 512 KiB and
    /// 20,000 tokens together, a placeholder or tag has 100, and what they give has 512 KiB.
    personality: String,
    /// The parameters.
    #[schema(value_type = Option<CharacterParameters>)]
    parameters: Option<Value>,
}

/// The next version of a character.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CharacterBody {
    /// The name, if given the one in the path: a character is not renamed.
    name: Option<String>,
    /// The prompt template: text with placeholders such as `{{ robot_name }}` or `{{ shop.city|upper }}`, `{% if .. %}` (with `==`,
    /// `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`, `in`, `is defined`, `is undefined`, `is none`) and
    /// `{% for name in list %}` over a parameter. The filters are `default`, `lower`, `upper`, `title`, `capitalize`, `trim`,
    /// `length`, `first` and `last`. Nothing else is available. At most 128 KiB; all templates of a character have 512 KiB and
    /// 20,000 tokens together, a placeholder or tag has 100, and what they give has 512 KiB.
    personality: String,
    /// The parameters; they replace all parameters.
    #[schema(value_type = Option<CharacterParameters>)]
    parameters: Option<Value>,
    /// The version that this one follows; 409 when it is not the newest. `If-Match` says the same.
    version: Option<i64>,
}

/// A character to check without saving it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CharacterDraftBody {
    /// The name, if it has one yet.
    name: Option<String>,
    /// The prompt template, as in a new character.
    personality: String,
    /// The parameters.
    #[schema(value_type = Option<CharacterParameters>)]
    parameters: Option<Value>,
    /// Values for placeholders, as requests give them: strings, numbers, booleans and null. They win over the parameters.
    #[schema(value_type = Option<std::collections::BTreeMap<String, Value>>)]
    character_params: Option<Value>,
}

/// The result of checking a draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct CharacterCheck {
    /// What saving would refuse, at most 21 entries; empty if the draft can be saved.
    problems: Vec<Problem>,
    /// The texts with their placeholders filled in; null if something in `problems` or `unfilled` prevents it.
    rendered: Option<RenderedCharacterView>,
    /// Why the templates cannot be filled in although they can be saved, such as a placeholder without a value (its `field` is
    /// `character_params.NAME`), a template that takes too long, or one whose result is too large.
    unfilled: Option<Problem>,
}

/// The texts of a character after its templates are filled in; 512 KiB at most together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RenderedCharacter)]
pub struct RenderedCharacterView {
    /// The personality, followed by `conversation_prefix` where the personality does not print it.
    personality: String,
    /// The greetings.
    greetings: Vec<String>,
    /// What it says when it was interrupted by a sound without words.
    interruption_message: Option<String>,
    /// What it says when the model is late.
    patience_message: Option<String>,
}

impl From<RenderedCharacter> for RenderedCharacterView {
    fn from(rendered: RenderedCharacter) -> Self {
        Self {
            personality: rendered.system,
            greetings: rendered.greetings,
            interruption_message: rendered.interruption_message,
            patience_message: rendered.patience_message,
        }
    }
}

impl From<DraftCheck> for CharacterCheck {
    fn from(check: DraftCheck) -> Self {
        Self {
            problems: check.problems,
            rendered: check.rendered.map(Into::into),
            unfilled: check.unfilled,
        }
    }
}

fn view(caller: &PartnerTenant, character: SavedCharacter) -> impl IntoResponse + use<> {
    let version = character.version;
    let partner = caller.tenant.partner().as_str();
    let body = CharacterView {
        reference: format!("repo:{partner}/{}", character.name.as_str()),
        name: character.name.as_str().to_owned(),
        version,
        personality: character.personality,
        parameters: character.parameters,
        created_at: rfc3339(character.created_at),
        updated_at: rfc3339(character.updated_at),
    };
    (
        AppendHeaders([(header::ETAG, format!("\"{version}\""))]),
        Json(body),
    )
}

fn content(personality: String, parameters: Option<Value>) -> Result<Content, ApiError> {
    let parameters = match parameters {
        None => CharacterParameters::default(),
        Some(value) => validate::parameters("parameters", value)?,
    };
    Ok(Content {
        personality,
        parameters,
    })
}

/// The partner's characters, by name.
#[utoipa::path(
    get, path = "/api/characters/{partner}", operation_id = "list_characters", tag = "characters", params(("partner" = String, Path), PageQuery),
    responses((status = 200, body = [CharacterEntryView]))
)]
pub(crate) async fn list(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<Vec<CharacterEntryView>>), ApiError> {
    caller.principal.require(Scope::Characters)?;
    let characters = saved::list(&characters, &caller.tenant, &page.slice()).await?;
    let listed = page.of(characters, |character| character.name.clone());
    let entries = listed.entries.into_iter().map(Into::into).collect();
    Ok((listed.links, Json(entries)))
}

/// Makes a character.
#[utoipa::path(
    post, path = "/api/characters/{partner}", operation_id = "create_character", tag = "characters", params(("partner" = String, Path)),
    request_body = NewCharacterBody,
    responses(
        (status = 201, body = CharacterView), (status = 400), (status = 409),
        (status = 413, description = "The body is too large, or the partner would store more than it may (`storage_limit_reached`)"),
    ),
)]
pub(crate) async fn create(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiJson(body): ApiJson<NewCharacterBody>,
) -> Result<impl IntoResponse, ApiError> {
    caller.principal.require(Scope::Characters)?;
    let name = CharacterName::parse(&body.name)?;
    let content = content(body.personality, body.parameters)?;
    let character = saved::create(&characters, &caller.tenant, name, content).await?;
    Ok((StatusCode::CREATED, view(&caller, character)))
}

/// Checks a draft of a character as saving it would, and fills its templates in. Nothing is stored. The templates of a partner are filled in
/// one after the other, with bounds on the work and on the result, as in a call.
#[utoipa::path(
    post, path = "/api/character_drafts/{partner}/check", operation_id = "check_character", tag = "characters",
    params(("partner" = String, Path)),
    request_body = CharacterDraftBody,
    responses(
        (status = 200, body = CharacterCheck, description = "The draft was checked; `problems` says whether it can be saved"),
        (status = 400, description = "The body is malformed, or `character_params` are"),
        (status = 413, description = "The body is too large"),
        (status = 503, description = "Too many templates are being filled in; retry after `Retry-After` seconds"),
    ),
)]
pub(crate) async fn check_draft(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiJson(body): ApiJson<CharacterDraftBody>,
) -> Result<Json<CharacterCheck>, ApiError> {
    caller.principal.require(Scope::Characters)?;
    let draft = Draft {
        name: body.name,
        personality: body.personality,
        parameters: body.parameters,
        character_params: parse_character_params(body.character_params.as_ref())?,
    };
    let check = draft::check(&characters, &caller.tenant, draft).await?;
    Ok(Json(check.into()))
}

/// The newest version of a character.
#[utoipa::path(
    get, path = "/api/characters/{partner}/{name}", operation_id = "read_character", tag = "characters",
    params(("partner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = CharacterView), (status = 404))
)]
pub(crate) async fn read(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiPath((_partner, name)): ApiPath<(String, String)>,
) -> Result<impl IntoResponse, ApiError> {
    caller.principal.require(Scope::Characters)?;
    let name = CharacterName::parse(&name)?;
    let character = saved::read(&characters, &caller.tenant, &name, None).await?;
    Ok(view(&caller, character))
}

/// Makes a new version of a character.
#[utoipa::path(
    put, path = "/api/characters/{partner}/{name}", operation_id = "update_character", tag = "characters",
    params(("partner" = String, Path), ("name" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body = CharacterBody,
    responses(
        (status = 200, body = CharacterView), (status = 400), (status = 404), (status = 409),
        (status = 413, description = "The body is too large, or the partner would store more than it may (`storage_limit_reached`)"),
    ),
)]
pub(crate) async fn update(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiPath((_partner, name)): ApiPath<(String, String)>,
    headers: HeaderMap,
    ApiJson(body): ApiJson<CharacterBody>,
) -> Result<impl IntoResponse, ApiError> {
    caller.principal.require(Scope::Characters)?;
    let name = CharacterName::parse(&name)?;
    if body.name.is_some_and(|given| given != name.as_str()) {
        return Err(ApiError::invalid("name", "a character cannot be renamed"));
    }
    let expected = match body.version {
        Some(version) => Some(version),
        None => if_match(&headers)?,
    };
    let content = content(body.personality, body.parameters)?;
    let character = saved::update(&characters, &caller.tenant, &name, content, expected).await?;
    Ok(view(&caller, character))
}

/// Deletes a character with all its versions.
#[utoipa::path(
    delete, path = "/api/characters/{partner}/{name}", operation_id = "delete_character", tag = "characters",
    params(("partner" = String, Path), ("name" = String, Path)),
    responses((status = 204), (status = 404))
)]
pub(crate) async fn delete(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiPath((_partner, name)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.principal.require(Scope::Characters)?;
    saved::delete(&characters, &caller.tenant, &CharacterName::parse(&name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The versions of a character, newest first.
#[utoipa::path(
    get, path = "/api/characters/{partner}/{name}/versions", tag = "characters",
    params(("partner" = String, Path), ("name" = String, Path), PageQuery),
    responses((status = 200, body = [CharacterEntryView]), (status = 404))
)]
pub(crate) async fn list_versions(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiPath((_partner, name)): ApiPath<(String, String)>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<Vec<CharacterEntryView>>), ApiError> {
    caller.principal.require(Scope::Characters)?;
    let name = CharacterName::parse(&name)?;
    let versions = saved::versions(&characters, &caller.tenant, &name, &page.slice()).await?;
    let listed = page.of(versions, |entry| entry.version.to_string());
    let entries = listed.entries.into_iter().map(Into::into).collect();
    Ok((listed.links, Json(entries)))
}

/// One version of a character.
#[utoipa::path(
    get, path = "/api/characters/{partner}/{name}/versions/{version}", tag = "characters",
    params(("partner" = String, Path), ("name" = String, Path), ("version" = i64, Path)),
    responses((status = 200, body = CharacterView), (status = 404))
)]
pub(crate) async fn read_version(
    State(characters): State<Characters>,
    caller: PartnerTenant,
    ApiPath((_partner, name, version)): ApiPath<(String, String, i64)>,
) -> Result<impl IntoResponse, ApiError> {
    caller.principal.require(Scope::Characters)?;
    let name = CharacterName::parse(&name)?;
    let character = saved::read(&characters, &caller.tenant, &name, Some(version)).await?;
    Ok(view(&caller, character))
}

/// The version of `If-Match: "3"`; `*` and nothing mean any.
fn if_match(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text.trim_matches('"').parse();
    version
        .map(Some)
        .map_err(|_| ApiError::invalid("If-Match", "write the version in quotes, as in the ETag"))
}
