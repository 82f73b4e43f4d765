//! What tests ask of transcripts, at routes or at a server.

use std::time::Duration;

use axum::http::Method;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    Answer, TestClient,
    sounds::{go_forward, wav},
};

/// Where recordings are brought.
pub const PATH: &str = "/v2/transcript";

/// "go forward ten meters" as a WAV file.
pub fn recording() -> Vec<u8> {
    wav(&go_forward())
}

/// The form of a recording.
pub fn audio(name: &str, bytes: Vec<u8>) -> Form {
    Form::new().part("audio", Part::bytes(bytes).file_name(name.to_owned()))
}

/// Brings a recording.
pub async fn post_form(client: &TestClient, key: &str, form: Form) -> Answer {
    client.form(key, Method::POST, PATH, form).await
}

/// The transcript, once it ended.
pub async fn ended(client: &TestClient, key: &str, made: &Value) -> Value {
    let path = made["id"].as_str().expect("a path").to_owned();
    let mut read = Value::Null;
    for _ in 0..3_600 {
        read = client.get(key, &path).await.expect(200);
        if read["status"] == "completed" || read["status"] == "error" {
            return read;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("it did not end: {read}");
}
