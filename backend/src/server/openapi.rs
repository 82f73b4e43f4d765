//! The OpenAPI document: made of the routes of all capabilities, committed as `backend/openapi.json`.

use axum::http::Method;
use colloquy_http::{ErrorShape, needs_disk};
use serde::Serialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::{
        Content, Ref, RefOr, Response,
        path::{Operation, ParameterIn, PathItem},
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
    },
};

use super::router;

/// What the routes do not say: the title and how a key is sent.
#[derive(OpenApi)]
#[openapi(
    info(title = "Colloquy", description = "Voice calls with AI characters"),
    modifiers(&Keys),
    components(schemas(ErrorBody)),
    security(("api_key" = []), ("bearer" = []))
)]
struct Base;

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
struct ErrorBody {
    /// What is wrong, in words for people.
    detail: String,
    /// What is wrong, in a word for programs.
    code: String,
    /// The field that is wrong, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

/// What any request may be answered with that is sent with a key, has parameters, or a body; and what all may be.
const WITH_KEY: [(&str, &str); 3] = [
    ("401", "There is no key, or one that is not valid"),
    ("403", "The key is not for this"),
    (
        "429",
        "The key asks too often; Retry-After says when to ask again",
    ),
];
const WITH_PARAMETERS: [(&str, &str); 1] = [("400", "A parameter is malformed")];
/// Those of interfaces that answer a wrong field with 422, which a parameter is, too.
const WITH_PARAMETERS_AS_FIELDS: [(&str, &str); 1] = [("422", "A parameter is malformed")];
const WITH_PATH: [(&str, &str); 1] = [("404", "There is no such thing")];
const WITH_BODY: [(&str, &str); 3] = [
    ("400", "The body is malformed, or a field is wrong"),
    ("413", "The body is too large"),
    ("415", "The body is of another type"),
];
/// What a request may be answered with that needs the disk.
const WITH_DISK: [(&str, &str); 1] = [(
    "507",
    "The server's disk is nearly full: only deleting and changing limits is possible",
)];
const ANY: [(&str, &str); 1] = [(
    "503",
    "The server stops, or has no room now; Retry-After says when to ask again",
)];

/// The operations of a document that routes here have, with the method and the path of each.
fn operations(
    document: &mut utoipa::openapi::OpenApi,
) -> impl Iterator<Item = (Method, &str, &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let PathItem {
            get,
            put,
            post,
            delete,
            patch,
            ..
        } = item;
        let all = [
            (Method::GET, get),
            (Method::PUT, put),
            (Method::POST, post),
            (Method::DELETE, delete),
            (Method::PATCH, patch),
        ];
        all.into_iter().filter_map(move |(method, operation)| {
            Some((method, path.as_str(), operation.as_mut()?))
        })
    })
}

/// Adds the errors that no route has of its own to those that the routes say.
pub(super) fn add_errors(document: &mut utoipa::openapi::OpenApi, shape: ErrorShape) {
    for (method, path, operation) in operations(document) {
        complete(operation, needs_disk(&method, path), shape);
    }
}

/// Adds the key in the query to the ways in which a key is sent.
pub(super) fn add_query_key(document: &mut utoipa::openapi::OpenApi) {
    for (_, _, operation) in operations(document) {
        let ways = ["api_key", "bearer", "api_key_query"];
        let ways = ways.map(|way| SecurityRequirement::new(way, [""; 0]));
        operation.security.get_or_insert_with(|| ways.into());
    }
}

fn complete(operation: &mut Operation, needs_disk: bool, shape: ErrorShape) {
    // Those without a key say so.
    let has_key = operation.security.is_none();
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_path = parameters
        .iter()
        .any(|parameter| matches!(parameter, RefOr::T(it) if matches!(it.parameter_in, ParameterIn::Path)));
    let with_parameters: &[(&str, &str)] = match shape {
        ErrorShape::Transcript | ErrorShape::Analysis => &WITH_PARAMETERS_AS_FIELDS,
        _ => &WITH_PARAMETERS,
    };
    let groups: [(bool, &[(&str, &str)]); 6] = [
        (has_key, &WITH_KEY),
        (operation.request_body.is_some(), &WITH_BODY),
        (needs_disk, &WITH_DISK),
        (!parameters.is_empty(), with_parameters),
        (has_path, &WITH_PATH),
        (true, &ANY),
    ];
    let chosen = groups.into_iter().filter(|(applies, _)| *applies);
    for (status, description) in chosen.flat_map(|(_, errors)| errors) {
        let responses = &mut operation.responses.responses;
        let response = responses.entry((*status).to_owned());
        let response = response.or_insert_with(|| Response::new("").into());
        if let RefOr::T(response) = response {
            if response.description.is_empty() {
                (*description).clone_into(&mut response.description);
            }
            if shape == ErrorShape::Detail && response.content.is_empty() {
                let body = Content::new(Some(Ref::from_schema_name("Error")));
                response
                    .content
                    .insert("application/json".to_owned(), RefOr::T(body));
            }
        }
    }
}

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let header = ApiKey::Header(ApiKeyValue::new("X-Api-Key"));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
        let query = ApiKey::Query(ApiKeyValue::new("api_key"));
        components.add_security_scheme("api_key_query", SecurityScheme::ApiKey(query));
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
    use std::collections::{BTreeMap, BTreeSet};

    use axum::http::StatusCode;
    use colloquy_http::{ApiError, ErrorShape};

    use super::{super::capabilities, document_json};

    /// Two capabilities may not call different things by one name: the document would have one of them in the place of both.
    #[test]
    fn no_two_schemas_have_one_name() {
        let mut known: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        for capability in capabilities::ALL {
            for (_, routes) in capability.routes() {
                let document = serde_json::to_value(routes.describe()).unwrap();
                let schemas = document["components"]["schemas"].as_object().cloned();
                for (name, schema) in schemas.unwrap_or_default() {
                    let before = known.insert(name.clone(), schema.clone());
                    let is_other = before.is_some_and(|before| before != schema);
                    assert!(!is_other, "{name} is the name of two schemas");
                }
            }
        }
        assert!(known.len() > 100, "{}", known.len());
    }

    /// A channel's sync and that of a vector store had one name, and the document described one of them for both.
    #[test]
    fn syncs_of_channels_and_of_vector_stores_are_told_apart() {
        let document: serde_json::Value = serde_json::from_str(&document_json().unwrap()).unwrap();
        for (path, method, field) in [
            (
                "/api/folders/{partner}/{kb}/{folder}/sync",
                "post",
                "budget",
            ),
            ("/api/vectorstore-sync/{partner}/{kb}", "get", "documents"),
        ] {
            let response = &document["paths"][path][method]["responses"]["200"];
            let schema = &response["content"]["application/json"]["schema"]["$ref"];
            let (_, name) = schema.as_str().unwrap().rsplit_once('/').unwrap();
            let schema = document["components"]["schemas"][name].to_string();
            assert!(schema.contains(&format!("\"{field}\"")), "{name}: {schema}");
        }
    }

    #[test]
    fn a_low_disk_is_an_answer_of_what_needs_it() {
        let text = document_json().unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let states = |path: &str, method: &str| {
            let operation = &document["paths"][path][method];
            assert!(operation.is_object(), "{method} {path}");
            operation["responses"].get("507").is_some()
        };
        assert!(states("/v3/responses", "post"));
        assert!(!states("/v3/responses", "get"));
        assert!(!states("/v3/responses/{response}", "delete"));
        // What makes room, and what ends a key that leaked.
        let quota = "/api/quotas/{partner}/{quota_id}";
        for (path, method) in [
            ("/api/partners/{partner}", "put"),
            ("/api/keys/{partner}/{key_id}", "delete"),
            (&format!("{quota}/rotate"), "post"),
        ] {
            assert!(!states(path, method), "{method} {path}");
        }
        for path in ["/api/keys/{partner}", "/api/quotas/{partner}"] {
            assert!(states(path, "post"), "{path}");
        }
        // Limits pass, longer lists do not.
        assert!(states(quota, "put"));
    }

    #[test]
    fn a_malformed_parameter_has_the_status_of_its_interface() {
        let document: serde_json::Value = serde_json::from_str(&document_json().unwrap()).unwrap();
        let malformed = ApiError::invalid("path", "has a NUL character");
        for (path, method, shape) in [
            ("/v2/transcript/{id}", "get", ErrorShape::Transcript),
            ("/v2/transcript/{id}", "delete", ErrorShape::Transcript),
            ("/v2/dialog_analyses/{id}", "get", ErrorShape::Analysis),
            ("/v2/calls/{call_id}", "get", ErrorShape::Call),
            ("/v3/responses/{response}", "get", ErrorShape::Text),
        ] {
            let responses = &document["paths"][path][method]["responses"];
            for status in [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY] {
                let is_told = responses.get(status.as_str()).is_some();
                let expected = shape.status(&malformed) == status;
                assert_eq!(is_told, expected, "{method} {path}: {status}");
            }
        }
    }

    #[test]
    fn an_answer_that_may_take_too_much_memory_says_so() {
        let document: serde_json::Value = serde_json::from_str(&document_json().unwrap()).unwrap();
        for path in [
            "/api/documents/{partner}/{kb}",
            "/api/documents/{partner}/{kb}/rewritten-bundle",
            "/api/documents/{partner}/{kb}/{doc_id}/content/{type}",
            "/api/kb-data/{partner}/{kb}",
            "/api/toc/{partner}/{kb}",
            "/v3/responses/{response}",
            "/v3/responses/{response}/input_items",
        ] {
            let responses = &document["paths"][path]["get"]["responses"];
            for status in ["413", "503"] {
                assert!(responses.get(status).is_some(), "{path}: {status}");
            }
        }
    }

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
