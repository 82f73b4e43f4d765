//! Legacy messaging: what is asked, what comes back, and what outlives a process.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod answers;
mod audio;
mod durable;
mod neural;
mod requests;
mod untrusted;

use std::time::Duration;

use harness::{
    TestApp, TestDatabase,
    app::TestPartner,
    upstream::{Api, Recorded, Upstream},
};
use serde_json::{Value, json};

const PATH: &str = "/v2/completions";

/// A new message of text.
fn written(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "text", "text": text, "is_processed": false})
}

/// A new message of sound.
fn voiced(id: &str, file: &str) -> Value {
    json!({"id": id, "type": "audio", "audio_file_id": file, "is_processed": false})
}

/// A question to Ada that wants no sound; `more` goes over its fields.
fn question(messages: Value, more: Value) -> Value {
    let mut input =
        json!({"messages": messages, "character": "repo:acme/ada", "generate_audio": false});
    for (field, value) in more.as_object().unwrap() {
        input[field] = value.clone();
    }
    json!({"input": input})
}

/// Asks, and gives the path of the completion.
async fn asked(app: &TestApp, key: &str, body: Value) -> String {
    let accepted = app.post(key, PATH, body).await.expect(200);
    assert_eq!(accepted["state"], "in-progress");
    assert_eq!(accepted.as_object().unwrap().len(), 2, "{accepted}");
    accepted["id"].as_str().unwrap().to_owned()
}

/// The completion at this path, once it ended.
async fn ended(app: &TestApp, key: &str, path: &str) -> Value {
    for _ in 0..3_000 {
        let completion = app.get(key, path).await.expect(200);
        assert_eq!(completion["id"], path);
        if completion["state"] != "in-progress" {
            return completion;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} does not end");
}

/// The result of a question that is answered.
async fn output(app: &TestApp, key: &str, body: Value) -> Value {
    let path = asked(app, key, body).await;
    let mut completion = ended(app, key, &path).await;
    assert_eq!(completion["state"], "completed", "{completion}");
    assert_eq!(completion.as_object().unwrap().len(), 3, "{completion}");
    completion["output"].take()
}

/// The reason of a question that fails.
async fn reason(app: &TestApp, key: &str, body: Value) -> (String, String) {
    let path = asked(app, key, body).await;
    let completion = ended(app, key, &path).await;
    assert_eq!(completion["state"], "failed", "{completion}");
    assert_eq!(completion.as_object().unwrap().len(), 3, "{completion}");
    let text = |name: &str| completion["error"][name].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}
