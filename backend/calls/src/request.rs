//! The body of `POST /v2/calls`, parsed at the edge: JSON, URL-encoded form or multipart form, one type afterwards.
//!
//! In forms every value is text, and an object is its JSON text; JSON bodies may use the same texts. A field that is
//! empty in a form counts as not given. Fields that are not known are ignored; the interface document is silent on them.

use axum::{
    body::Body,
    extract::{FromRef, FromRequest, Multipart, Request},
    http::{StatusCode, header::CONTENT_TYPE},
};
use colloquy_base::json::{self, JsonError};
use colloquy_characters::{CharacterInput, parse_character_params};
use colloquy_http::{
    ApiError,
    extract::{body_bytes, unparsed},
};
use serde_json::{Map, Value};
use url::Url;

use crate::Calls;

/// The longest call, in seconds.
pub const MAX_TIME_LIMIT_SECONDS: u32 = 14_400;

/// The longest webhook address, in bytes.
const MAX_WEBHOOK_BYTES: usize = 2048;

/// What a new call shall be.
#[derive(Debug, Clone)]
pub struct CreateCall {
    /// Who talks.
    pub character: CharacterInput,
    /// The longest the call may last, in seconds.
    pub time_limit_seconds: u32,
    /// Who is told when the call completed.
    pub webhook: Option<Url>,
    /// The template parameters; flat.
    pub character_params: Map<String, Value>,
    /// Whose call it is; only admin keys say so.
    pub partner: Option<String>,
}

/// The body's fields, before they are checked: the three encodings meet here.
type Fields = Map<String, Value>;

impl<S: Send + Sync> FromRequest<S> for CreateCall
where
    Calls: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let fields = read(request).await?;
        let call = parse(&fields)?;
        if let Some(url) = &call.webhook {
            // A name is checked when it is resolved, for every attempt anew; a literal address can be refused now.
            Calls::from_ref(state)
                .webhooks
                .fetcher
                .check(url, true)
                .map_err(|error| ApiError::invalid("on_completion_webhook", error.to_string()))?;
        }
        Ok(call)
    }
}

async fn read(request: Request) -> Result<Fields, ApiError> {
    let (parts, body) = request.into_parts();
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase())
        .unwrap_or_default();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = body_bytes(whole).await?;
    match content_type.as_str() {
        "application/json" => match json::parse(&bytes) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err(malformed("the body is not a JSON object")),
            Err(JsonError::Malformed(error)) => {
                Err(malformed(format!("the body is not JSON: {error}")))
            }
            Err(error) => Err(unparsed(&error)),
        },
        "application/x-www-form-urlencoded" => {
            let mut fields = Fields::new();
            for (name, value) in url::form_urlencoded::parse(&bytes) {
                add(&mut fields, &name, value.into_owned())?;
            }
            Ok(fields)
        }
        "multipart/form-data" => multipart(Request::from_parts(parts, Body::from(bytes))).await,
        _ => Err(malformed(
            "send application/json, application/x-www-form-urlencoded or multipart/form-data",
        )),
    }
}

async fn multipart(request: Request) -> Result<Fields, ApiError> {
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|error| malformed(error.body_text()))?;
    let mut fields = Fields::new();
    while let Some(field) = form
        .next_field()
        .await
        .map_err(|error| malformed(error.body_text()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        let text = field
            .text()
            .await
            .map_err(|error| ApiError::invalid(&name, error.body_text()))?;
        add(&mut fields, &name, text)?;
    }
    Ok(fields)
}

fn add(fields: &mut Fields, name: &str, value: String) -> Result<(), ApiError> {
    match fields.insert(name.to_owned(), Value::String(value)) {
        None => Ok(()),
        Some(_) => Err(ApiError::invalid(name, format!("{name} is given twice"))),
    }
}

fn malformed(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_parameters", message)
}

fn parse(fields: &Fields) -> Result<CreateCall, ApiError> {
    let given = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(value) => Some(value),
    };
    let required = |name: &'static str| {
        given(name).ok_or_else(|| ApiError::invalid(name, format!("{name} is required")))
    };
    let character = CharacterInput::parse(required("character")?)?;
    let time_limit_seconds = time_limit(required("call_time_limit_seconds")?)?;
    let webhook = given("on_completion_webhook").map(webhook).transpose()?;
    let character_params = parse_character_params(fields.get("character_params"))?;
    let partner = match given("partner") {
        None => None,
        Some(Value::String(partner)) => {
            let bare = partner.strip_prefix("repo:").unwrap_or(partner);
            Some(bare.to_owned())
        }
        Some(_) => return Err(ApiError::invalid("partner", "partner is a string")),
    };
    Ok(CreateCall {
        character,
        time_limit_seconds,
        webhook,
        character_params,
        partner,
    })
}

fn time_limit(value: &Value) -> Result<u32, ApiError> {
    let seconds = match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    seconds
        .and_then(|seconds| u32::try_from(seconds).ok())
        .filter(|seconds| (1..=MAX_TIME_LIMIT_SECONDS).contains(seconds))
        .ok_or_else(|| {
            ApiError::invalid(
                "call_time_limit_seconds",
                format!(
                    "call_time_limit_seconds is a whole number of seconds, 1 to {MAX_TIME_LIMIT_SECONDS}"
                ),
            )
        })
}

fn webhook(value: &Value) -> Result<Url, ApiError> {
    let wrong = |message: &str| ApiError::invalid("on_completion_webhook", message);
    let text = value
        .as_str()
        .filter(|text| text.len() <= MAX_WEBHOOK_BYTES)
        .ok_or_else(|| wrong("on_completion_webhook is a URL of at most 2048 bytes"))?;
    let url = Url::parse(text.trim())
        .map_err(|error| wrong(&format!("on_completion_webhook is not a URL: {error}")))?;
    if url.scheme() != "https" {
        return Err(wrong("on_completion_webhook must use https"));
    }
    Ok(url)
}
