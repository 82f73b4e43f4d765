//! What tests ask of transcripts, at routes or at a server.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    http::{Method, StatusCode},
    response::{IntoResponse as _, Redirect},
    routing::get,
};
use futures_util::stream;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use support::until;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    Answer, TestClient,
    sounds::{go_forward, wav},
    upstream::{Api, Script, Upstream},
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

/// Whether nothing more comes of a transcript.
pub fn is_over(read: &Value) -> bool {
    read["status"] == "completed" || read["status"] == "error"
}

/// The transcript, once it ended.
pub async fn ended(client: &TestClient, key: &str, made: &Value) -> Value {
    let path = made["id"].as_str().expect("a path").to_owned();
    until("the transcript ends", is_over, async || {
        client.get(key, &path).await.expect(200)
    })
    .await
}

/// An upstream that hears "Um, go forward ten meters." in every recording.
pub async fn scripted() -> Upstream {
    let upstream = Upstream::start().await;
    let heard = Script::text("Um, go forward ten meters.");
    upstream.set_default(Api::Transcription, heard);
    upstream
}

/// A site on this machine with recordings and what is none; it ends with the set.
pub async fn site() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let flaky = move || {
        let before = asked.fetch_add(1, Ordering::Relaxed);
        async move {
            match before {
                0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                _ => recording().into_response(),
            }
        }
    };
    let endless = || async {
        let pieces = stream::repeat_with(|| Ok::<_, io::Error>(vec![7_u8; 65_536]));
        Body::from_stream(pieces)
    };
    let router = Router::new()
        .route("/a.wav", get(|| async { recording() }))
        .route("/moved", get(|| async { Redirect::temporary("/a.wav") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route("/flaky.wav", get(flaky))
        .route("/page", get(|| async { "<html>This is a page.</html>" }))
        .route("/endless", get(endless));
    let mut server = JoinSet::new();
    server.spawn(async move {
        axum::serve(listener, router).await.expect("it is served");
    });
    (origin, server)
}
