//! The OpenAPI document: made of the routes of all capabilities, committed as `backend/openapi.json`.

use utoipa::{
    Modify, OpenApi,
    openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::router;

/// What the routes do not say: the title and how a key is sent.
#[derive(OpenApi)]
#[openapi(
    info(title = "Colloquy", description = "Voice calls with AI characters"),
    modifiers(&Keys),
    security(("api_key" = []), ("bearer" = []))
)]
struct Base;

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let header = ApiKey::Header(ApiKeyValue::new("X-Api-Key"));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

pub(super) fn base() -> utoipa::openapi::OpenApi {
    Base::openapi()
}

/// The document of all routes.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    router::document()
}

/// The document as it is committed: indented JSON that ends with a line break.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn document_json() -> anyhow::Result<String> {
    let mut text = document().to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::document_json;

    #[test]
    fn every_schema_that_is_referred_to_is_there() {
        let text = document_json().unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let named: BTreeSet<&str> = text
            .split("\"#/components/schemas/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(named.len() > 20, "{named:?}");
        for name in named {
            assert!(schemas.contains_key(name), "{name} is not described");
        }
    }
}
