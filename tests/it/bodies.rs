//! Bodies that are not the JSON objects which operations take.

use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, send},
};
use reqwest::Method;
use serde_json::{Value, json};

const JSON: &str = "application/json";

/// The path of an operation, with `acme` for all parameters that it needs.
fn path_of(template: &str, operation: &Value) -> String {
    let pieces = template.split(['{', '}']).enumerate();
    let path: String = pieces
        .map(|(at, piece)| if at % 2 == 0 { piece } else { "acme" })
        .collect();
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let needed = parameters.filter(|it| it["in"] == "query" && it["required"] == true);
    let query: Vec<String> = needed
        .map(|it| format!("{}=acme", it["name"].as_str().unwrap()))
        .collect();
    format!("{path}?{}", query.join("&"))
}

/// The fields that an error of any interface names.
fn named(error: &Value) -> Vec<&str> {
    if let Some(errors) = error["errors"].as_object() {
        return errors.keys().map(String::as_str).collect();
    }
    let places = ["/field", "/error/field", "/detail/context/field"];
    let fields = places.iter().filter_map(|place| error.pointer(place));
    fields.filter_map(Value::as_str).collect()
}

/// The operations are those of the API document, so that a new one is asked, too.
#[tokio::test]
async fn every_operation_refuses_a_body_that_is_no_object_and_names_the_body() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let text = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let document = serde_json::to_value(colloquy::server::openapi::document()).unwrap();
    let mut asked = 0;
    for (template, operations) in document["paths"].as_object().unwrap() {
        let key = match template.split('/').nth(1) {
            Some("api") => ADMIN_KEY,
            Some("v3") => text.key.as_str(),
            _ => acme.key.as_str(),
        };
        for (method, operation) in operations.as_object().unwrap() {
            if operation["requestBody"]["content"][JSON].is_null() {
                continue;
            }
            let path = path_of(template, operation);
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            for (body, message) in [
                ("[7]", "The body must be a JSON object"),
                ("{", "The body is not JSON: it breaks off"),
            ] {
                let request = app.request(method.clone(), &path);
                let request = request
                    .header("x-api-key", key)
                    .header("content-type", JSON)
                    // As the console sends it, which alone may sign in.
                    .header("host", "localhost")
                    .header("origin", "http://localhost")
                    .header("x-colloquy-console", "http");
                let answer = send(request.body(body)).await;
                let told = format!("{method} {path} {body}: {} {}", answer.status, answer.text);
                assert!(matches!(answer.status.as_u16(), 400 | 422), "{told}");
                assert_eq!(named(&answer.json()), ["body"], "{told}");
                assert!(answer.text.contains(message), "{told}");
                asked += 1;
            }
        }
    }
    assert!(asked > 40, "{asked}");
}
