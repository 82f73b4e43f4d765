//! The speech interface: with espeak-ng as it is installed, and against the scripted upstream for what goes wrong.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod embedded;
mod memory;
mod neural;
mod quota;
mod remote;
mod requests;

use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use colloquy::{Config, providers};
use harness::{
    TestApp, TestDatabase,
    app::{TestPartner, send},
    patience,
    upstream::{Api, Upstream},
};
use reqwest::{Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

/// How long a provider may be silent in these tests.
fn limit() -> Duration {
    patience(Duration::from_secs(2))
}

/// A server with the embedded synthesizer, and a partner.
async fn embedded() -> (TestApp, TestPartner) {
    let mut config = Config::default();
    config.calls.provider_timeout_ms = 10 * limit().as_millis() as u32;
    let providers = providers::from_config(&config).unwrap();
    let builder = TestApp::builder(&TestDatabase::sqlite()).providers(providers);
    let app = builder.start().await;
    let partner = app.partner("acme").await;
    (app, partner)
}

/// A server with the scripted upstream as its synthesizer, and a partner.
async fn remote(change: impl FnOnce(&mut Config)) -> (TestApp, TestPartner, Upstream) {
    let upstream = Upstream::start().await;
    let mut config = Config::default();
    upstream.configure(&mut config);
    config.calls.provider_timeout_ms = limit().as_millis() as u32;
    change(&mut config);
    let providers = providers::from_config(&config).unwrap();
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|settings| {
            settings.speech = config.speech;
            settings.synthesizer = config.synthesizer;
            settings.limits.body_bytes = config.limits.body_bytes;
            settings.limits.text_body_bytes = config.limits.text_body_bytes;
            settings.limits.body_memory_bytes = config.limits.body_memory_bytes;
        })
        .providers(providers)
        .start()
        .await;
    let partner = app.partner("acme").await;
    (app, partner, upstream)
}

/// A request for speech; `more` goes over the fields that it has to have.
fn ask(app: &TestApp, key: &str, input: &str, more: Value) -> RequestBuilder {
    let mut body = json!({"model": "colloquy-tts", "voice": "en", "input": input});
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    app.request(Method::POST, "/v2/audio/speech")
        .bearer_auth(key)
        .json(&body)
}

/// An answer of sound.
struct Sound {
    headers: HeaderMap,
    bytes: Bytes,
}

impl Sound {
    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Sends a request that has to be answered with sound.
async fn sound(request: RequestBuilder) -> Sound {
    let response = request.send().await.unwrap();
    let status = response.status();
    let headers = response.headers().clone();
    let bytes = response.bytes().await.unwrap();
    assert_eq!(
        status,
        StatusCode::OK,
        "{}",
        String::from_utf8_lossy(&bytes)
    );
    Sound { headers, bytes }
}

/// The samples of raw sound.
fn samples(bytes: &[u8]) -> Vec<i16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}

/// What ffmpeg makes of its input.
fn ffmpeg(input: &[u8], arguments: &[&str]) -> Vec<u8> {
    let mut child = Command::new("ffmpeg")
        .args(["-v", "error", "-i", "pipe:0"])
        .args(arguments)
        .arg("pipe:1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = thread::spawn(move || stdin.write_all(&input));
    let mut output = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut output)
        .unwrap();
    writing.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    output
}

/// Sound in any format, as samples at 24,000 Hz.
fn decoded(file: &[u8]) -> Vec<i16> {
    samples(&ffmpeg(file, &["-f", "s16le", "-ar", "24000", "-ac", "1"]))
}
