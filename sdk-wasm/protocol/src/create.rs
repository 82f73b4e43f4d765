//! The HTTP request that creates a call: `POST /v2/calls`, which a browser makes only in client mode.

use crate::wire::{Fields, Frame};
use crate::{CallError, ErrorCode};

/// Who the visitor talks with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Character {
    /// A saved character's name, or a whole reference `repo:<partner>/<character>`.
    Saved(String),
    /// A custom character: the JSON text of an object.
    Custom(String),
}

/// What a call in client mode is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// Where the backend is, without a path: `https://calls.example.org`.
    pub backend_url: String,
    /// The partner as `repo:<partner>`; not needed when `character` stands alone.
    pub partner: Option<String>,
    /// The character.
    pub character: Character,
    /// The API key.
    pub key: String,
    /// The longest the call may last.
    pub time_limit_seconds: u32,
    /// Template parameters of a saved character: the JSON text of an object.
    pub character_params: Option<String>,
}

/// The HTTP request that creates a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRequest {
    /// Where to POST.
    pub url: String,
    /// The value of the `X-Api-Key` header.
    pub key: String,
    /// The JSON body.
    pub body: String,
}

impl NewCall {
    /// The request, or what is wrong with the arguments.
    pub(crate) fn into_request(self) -> Result<CreateRequest, CallError> {
        if self.key.is_empty() {
            return Err(CallError::with_detail(
                ErrorCode::InvalidKey,
                "the credential is empty",
            ));
        }
        let body = match self.character {
            Character::Saved(name) => {
                Frame::object().text("character", &reference(self.partner.as_deref(), &name)?)
            }
            Character::Custom(json) => Frame::object().json("character", &json),
        };
        let body = body.text(
            "call_time_limit_seconds",
            &self.time_limit_seconds.to_string(),
        );
        let body = match self.character_params {
            Some(json) => body.json("character_params", &json),
            None => body,
        };
        Ok(CreateRequest {
            url: String::from_iter([self.backend_url.trim_end_matches('/'), "/v2/calls"]),
            key: self.key,
            body: body.end(),
        })
    }
}

/// `repo:<partner>/<character>`.
fn reference(partner: Option<&str>, name: &str) -> Result<String, CallError> {
    let refuse = |detail| Err(CallError::with_detail(ErrorCode::InvalidCharacter, detail));
    match partner {
        _ if name.is_empty() => refuse("the character must be a name or an object"),
        None | Some("") if name.contains(':') => Ok(name.to_owned()),
        None | Some("") => refuse("a character name needs its partner"),
        Some(partner) => {
            let scheme = if partner.contains(':') { "" } else { "repo:" };
            Ok(String::from_iter([scheme, partner, "/", name]))
        }
    }
}

/// What came back from an address that did not say more.
pub(crate) fn answered(status: u16, url: &str) -> String {
    String::from_iter([
        "HTTP status ",
        &u32::from(status).to_string(),
        " from POST ",
        url,
    ])
}

/// What the backend answered to `POST /v2/calls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateAnswer {
    /// The HTTP status.
    pub status: u16,
    signed_url: Option<String>,
    code: String,
    message: String,
}

impl CreateAnswer {
    /// Reads the parsed body, `None` when it is no JSON object.
    #[must_use]
    pub fn read<F: Fields>(status: u16, body: Option<&F>) -> Self {
        let data = body.and_then(|body| body.object("data"));
        let error = body.and_then(|body| body.object("error"));
        let text = |key| error.as_ref().and_then(|error| error.text(key));
        Self {
            status,
            signed_url: data.and_then(|data| data.text("signedUrl")),
            code: text("code").unwrap_or_default(),
            // It names the field that it is about.
            message: text("message").unwrap_or_default(),
        }
    }

    /// The signed URL, or why there is none. `url` is where the request went.
    pub(crate) fn signed_url(self, url: &str) -> Result<String, CallError> {
        if (200..300).contains(&self.status) {
            return self.signed_url.ok_or_else(|| {
                let detail = ["the response to POST ", url, " has no data.signedUrl"];
                CallError::with_detail(ErrorCode::Protocol, &String::from_iter(detail))
            });
        }
        let otherwise = ErrorCode::from_http_status(self.status);
        // A backend says itself what is wrong; anything else may be at another address than the one that was meant.
        let message = match self.message.is_empty() {
            true => answered(self.status, url),
            false => self.message,
        };
        Err(CallError::from_server(&self.code, &message, otherwise))
    }
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn new_call(partner: Option<&str>, character: &str) -> NewCall {
        NewCall {
            backend_url: "https://calls.example.org/".into(),
            partner: partner.map(str::to_owned),
            character: Character::Saved(character.to_owned()),
            key: "key".into(),
            time_limit_seconds: 600,
            character_params: None,
        }
    }

    #[test]
    fn the_request_names_the_character_as_the_document_does() {
        let request = new_call(Some("repo:acme"), "guide").into_request().unwrap();
        assert_eq!(request.url, "https://calls.example.org/v2/calls");
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(
            body,
            json!({"character": "repo:acme/guide", "call_time_limit_seconds": "600"})
        );
    }

    #[test]
    fn a_partner_without_scheme_a_whole_reference_and_an_object_work() {
        let character = |call: NewCall| {
            let body: Value = serde_json::from_str(&call.into_request().unwrap().body).unwrap();
            body["character"].clone()
        };
        assert_eq!(
            character(new_call(Some("acme"), "guide")),
            "repo:acme/guide"
        );
        assert_eq!(
            character(new_call(Some("repo-force:acme"), "guide")),
            "repo-force:acme/guide"
        );
        assert_eq!(
            character(new_call(None, "repo:acme/guide")),
            "repo:acme/guide"
        );
        let custom = json!({"description": "{}", "personality": "You are a guide."});
        let mut call = new_call(None, "");
        call.character = Character::Custom(custom.to_string());
        assert_eq!(character(call), custom);
    }

    #[test]
    fn character_params_are_passed_through() {
        let mut call = new_call(Some("repo:acme"), "guide");
        call.character_params = Some(r#"{"city":"Prague"}"#.into());
        let body: Value = serde_json::from_str(&call.into_request().unwrap().body).unwrap();
        assert_eq!(body["character_params"]["city"], "Prague");
    }

    #[test]
    fn arguments_that_cannot_work_are_refused_before_the_network() {
        let code = |call: NewCall| call.into_request().unwrap_err().code;
        assert_eq!(code(new_call(None, "guide")), ErrorCode::InvalidCharacter);
        assert_eq!(
            code(new_call(Some("acme"), "")),
            ErrorCode::InvalidCharacter
        );
        let mut keyless = new_call(Some("acme"), "guide");
        keyless.key.clear();
        assert_eq!(code(keyless), ErrorCode::InvalidKey);
    }

    #[test]
    fn responses_become_a_url_or_a_stable_code() {
        let signed_url = |status, body: &str| {
            let body: Option<Value> = serde_json::from_str(body).ok();
            CreateAnswer::read(status, body.as_ref()).signed_url("https://h/v2/calls")
        };
        let url = signed_url(
            200,
            r#"{"data":{"id":"/v2/calls/1","signedUrl":"wss://h/s"}}"#,
        );
        assert_eq!(url.unwrap(), "wss://h/s");
        let code = |status, body| signed_url(status, body).unwrap_err().code;
        assert_eq!(code(200, "<html>"), ErrorCode::Protocol);
        assert_eq!(
            code(
                400,
                r#"{"error":{"code":"INVALID_CHARACTER","message":"no such character"}}"#
            ),
            ErrorCode::InvalidCharacter
        );
        assert_eq!(
            code(
                400,
                r#"{"error":{"code":"INVALID_PARAMETERS","message":"call_time_limit_seconds"}}"#
            ),
            ErrorCode::InvalidArgument
        );
        assert_eq!(code(401, ""), ErrorCode::InvalidKey);
        assert_eq!(code(429, "slow down"), ErrorCode::RateLimited);
        assert_eq!(
            code(
                500,
                r#"{"error":{"code":"INTERNAL","message":"Internal error"}}"#
            ),
            ErrorCode::Server
        );
        assert_eq!(code(503, ""), ErrorCode::Capacity);
        let message = |status, body| signed_url(status, body).unwrap_err().message;
        assert!(message(404, "<html>").ends_with("(HTTP status 404 from POST https://h/v2/calls)"));
        assert!(message(200, "{}").contains("https://h/v2/calls"));
        let body = r#"{"error":{"code":"INVALID_PARAMETERS","message":"character: is required","field":"character"}}"#;
        let told = message(400, body);
        assert_eq!(told.matches("character").count(), 1, "{told}");
    }
}
