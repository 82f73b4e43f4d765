//! What a new call shall be, out of the fields of its body (`extract.rs` reads these).
//!
//! In forms every value is text, and an object is its JSON text; JSON bodies may use the same texts. A field that is
//! empty in a form counts as not given. Fields that are not known are ignored; the interface document is silent on them.

use colloquy_base::{invalid::InvalidField, json};
use colloquy_characters::{CharacterInput, parse_character_params};
use serde_json::{Map, Value};
use url::Url;

use crate::error::CreateError;

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

/// The body's fields, before they are checked.
pub(super) type Fields = Map<String, Value>;

impl CreateCall {
    /// Reads the fields of a body.
    ///
    /// # Errors
    /// When a field is wrong, or what stands for the character is none.
    pub(super) fn parse(fields: &Fields) -> Result<Self, CreateError> {
        let given = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.trim().is_empty() => None,
            Some(value) => Some(value),
        };
        let required =
            |name: &'static str| given(name).ok_or_else(|| InvalidField::new(name, "is required"));
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
            Some(_) => return Err(InvalidField::new("partner", "must be a string").into()),
        };
        Ok(Self {
            character,
            time_limit_seconds,
            webhook,
            character_params,
            partner,
        })
    }
}

fn time_limit(value: &Value) -> Result<u32, InvalidField> {
    let seconds = match value {
        Value::String(text) => text.trim().parse().ok(),
        value => json::integer(value).and_then(|seconds| u64::try_from(seconds).ok()),
    };
    seconds
        .and_then(|seconds| u32::try_from(seconds).ok())
        .filter(|seconds| (1..=MAX_TIME_LIMIT_SECONDS).contains(seconds))
        .ok_or_else(|| {
            InvalidField::new(
                "call_time_limit_seconds",
                format!("must be an integer of 1 to {MAX_TIME_LIMIT_SECONDS}, in seconds"),
            )
        })
}

fn webhook(value: &Value) -> Result<Url, InvalidField> {
    let wrong = |message: String| InvalidField::new("on_completion_webhook", message);
    let text = value
        .as_str()
        .filter(|text| text.len() <= MAX_WEBHOOK_BYTES)
        .ok_or_else(|| {
            wrong(format!(
                "must be a URL of at most {MAX_WEBHOOK_BYTES} bytes"
            ))
        })?;
    let url = Url::parse(text.trim()).map_err(|error| wrong(format!("is not a URL: {error}")))?;
    if url.scheme() != "https" {
        return Err(wrong("must use https".to_owned()));
    }
    Ok(url)
}
