//! What a client asks, out of its body.

use colloquy_base::{invalid::InvalidField, json};
use colloquy_formats::{ModelApi, Request};
use serde_json::Value;

use super::{error::PrepareError, svc::Svc};

/// What a client asks.
#[derive(Debug, Clone)]
pub(super) struct ClientRequest {
    /// What goes to a model, with what the service acts on.
    pub(super) text: Request,
    /// What it says to the service alone.
    pub(super) svc: Option<Svc>,
}

impl ClientRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// When a field is wrong. Fields that are not known pass.
    pub(super) fn parse(api: ModelApi, bytes: &[u8]) -> Result<Self, PrepareError> {
        Self::read(api, json_body(bytes)?)
    }

    /// Parses the body of a compaction.
    ///
    /// # Errors
    /// When a field is wrong. Fields that mean nothing for it pass.
    pub(super) fn parse_compaction(bytes: &[u8]) -> Result<Self, PrepareError> {
        let text = Request::read_compaction(json_body(bytes)?)?;
        Ok(Self { text, svc: None })
    }

    /// Reads a body that was parsed.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub(super) fn read(api: ModelApi, body: Value) -> Result<Self, PrepareError> {
        let mut text = Request::read(api, body)?;
        let svc = text.svc.take().map(Svc::parse).transpose()?;
        Ok(Self { text, svc })
    }
}

/// A body as JSON.
///
/// # Errors
/// Names the body if it is no object, or the field that takes too much.
fn json_body(bytes: &[u8]) -> Result<Value, InvalidField> {
    Ok(Value::Object(json::object(bytes)?))
}

#[cfg(test)]
mod tests {
    use colloquy_http::ApiError;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn parse(svc: &Value) -> Result<ClientRequest, ApiError> {
        let body = json!({"model": "m", "input": "Hi", "metadata": {"svc": svc}});
        Ok(ClientRequest::parse(
            ModelApi::Responses,
            body.to_string().as_bytes(),
        )?)
    }

    #[test]
    fn what_is_for_the_service_is_parsed() {
        let said = json!({"character": "repo:acme/ada", "character_params": {"a": 1}});
        let request = parse(&said).unwrap();
        let svc = request.svc.unwrap();
        assert_eq!(svc.character.unwrap().partner().unwrap().as_str(), "acme");
        assert_eq!(svc.character_params["a"], json!(1));
        assert_eq!(parse(&json!({})).unwrap().svc, Some(Svc::default()));
        assert_eq!(parse(&Value::Null).unwrap().svc, None);
    }

    #[test]
    fn mistakes_name_their_field() {
        let personality = json!({"parameters": {"greetings": "Hi"}, "personality": "P"});
        for (svc, field) in [
            (json!("x"), ""),
            (json!({"routing": {}}), ".routing"),
            (json!({"request_id": "1"}), ".request_id"),
            (json!({"character": 7}), ".character"),
            (json!({"character": "acme/ada"}), ".character"),
            (
                json!({ "character": personality }),
                ".character.parameters.greetings",
            ),
            (
                json!({"character_params": {"context": "x"}}),
                ".character_params.context",
            ),
            (
                json!({"character_params": {"a": []}}),
                ".character_params.a",
            ),
            (json!({"character_params": "{}"}), ".character_params"),
        ] {
            let error = parse(&svc).unwrap_err();
            let field = format!("metadata.svc{field}");
            assert_eq!(error.status.as_u16(), 400, "{svc}");
            assert_eq!(error.field.as_ref(), Some(&field), "{svc}");
            assert!(error.message.starts_with(&field), "{}", error.message);
            let part = field.trim_start_matches("metadata.svc");
            let named = error.message.matches(part).count();
            assert!(part.is_empty() || named == 1, "{}", error.message);
        }
    }

    #[test]
    fn a_body_is_a_json_object() {
        let texts = ["", "{", "[]", "7", "{\"model\":\"m\"} x", "\u{feff}"];
        for body in texts.map(str::as_bytes).into_iter().chain([&b"\xff{}"[..]]) {
            let error = ApiError::from(ClientRequest::parse(ModelApi::Chat, body).unwrap_err());
            assert_eq!(error.status.as_u16(), 400, "{body:?}");
            assert_eq!(error.field.as_deref(), Some("body"), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for api in [ModelApi::Chat, ModelApi::Responses] {
                prop_assert!(ClientRequest::parse(api, &bytes).is_err());
            }
        }
    }
}
