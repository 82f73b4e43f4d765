//! What tests ask of legacy messaging, at routes or at a server.

use serde_json::{Value, json};
use support::until;

use crate::TestClient;

/// Where questions are asked.
pub const PATH: &str = "/v2/completions";

/// A new message of text.
pub fn written(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "text", "text": text, "is_processed": false})
}

/// A question to Ada that wants no sound; `more` goes over its fields.
pub fn question(messages: Value, more: Value) -> Value {
    let mut input =
        json!({"messages": messages, "character": "repo:acme/ada", "generate_audio": false});
    for (field, value) in more.as_object().expect("fields") {
        input[field] = value.clone();
    }
    json!({"input": input})
}

/// Asks, and gives the path of the completion.
pub async fn asked(client: &TestClient, key: &str, body: Value) -> String {
    let accepted = client.post(key, PATH, body).await.expect(200);
    assert_eq!(accepted["state"], "in-progress");
    assert_eq!(
        accepted.as_object().expect("an object").len(),
        2,
        "{accepted}"
    );
    accepted["id"].as_str().expect("a path").to_owned()
}

/// Whether nothing more comes of a completion.
pub fn is_over(completion: &Value) -> bool {
    completion["state"] != "in-progress"
}

/// The completion at this path, once it ended.
pub async fn ended(client: &TestClient, key: &str, path: &str) -> Value {
    let completion = until("the completion ends", is_over, async || {
        client.get(key, path).await.expect(200)
    })
    .await;
    assert_eq!(completion["id"], path);
    completion
}

/// The result of a question that is answered.
pub async fn output(client: &TestClient, key: &str, body: Value) -> Value {
    let path = asked(client, key, body).await;
    let mut completion = ended(client, key, &path).await;
    assert_eq!(completion["state"], "completed", "{completion}");
    assert_eq!(
        completion.as_object().expect("an object").len(),
        3,
        "{completion}"
    );
    completion["output"].take()
}
