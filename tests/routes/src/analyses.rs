//! What tests ask of analyses of dialogs, at routes or at a server.

use serde_json::{Value, json};
use support::until;

use crate::TestClient;

/// Where conversations are brought.
pub const PATH: &str = "/v2/dialog_analyses";

/// A conversation in which somebody tells of himself.
pub fn conversation() -> Value {
    json!({"input": {
        "messages": [
            {"text": "Hello! Who are you?", "originator": "bot"},
            {"text": "My name is Ada, and I live in Berlin now.", "originator": "user"},
        ],
        "language": "English",
        "current_profile": {"name": null, "city": "Paris", "job": "clerk"},
        "profile_schema": {
            "name": {"type": "string", "description": "What the user is called"},
            "city": {"type": "string"}, "job": {"type": "string"}, "pet": {"type": "string"},
        },
        "feedback_schema": {"mood": {"type": "string"}, "stars": {"type": "integer", "description": "1 to 5"}},
        "prompt_extra_text": "Be brief.",
    }})
}

/// The analysis, once it ended.
pub async fn ended(client: &TestClient, key: &str, made: &Value) -> Value {
    let path = made["id"].as_str().expect("a path").to_owned();
    until(
        "the analysis ends",
        |read: &Value| read["state"] != "in-progress",
        async || client.get(key, &path).await.expect(200),
    )
    .await
}

/// What came of a conversation.
pub async fn analyzed(client: &TestClient, key: &str, body: Value) -> Value {
    let made = client.post(key, PATH, body).await.expect(200);
    assert_eq!(made["state"], "in-progress");
    assert_eq!(made.as_object().expect("an object").len(), 3, "{made}");
    ended(client, key, &made).await
}
