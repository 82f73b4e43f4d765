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
use test_routes::messaging::{PATH, asked, ended, is_over, output, question, written};

/// A new message of sound.
fn voiced(id: &str, file: &str) -> Value {
    json!({"id": id, "type": "audio", "audio_file_id": file, "is_processed": false})
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
