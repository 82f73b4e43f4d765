//! The voice library: voices of recordings, their samples, and what workers make of them.

mod crashes;
mod neural;
mod outages;
mod speaking;
mod workers;

use std::{fs, io::Read as _, time::Duration};

use colloquy::store::Executor as _;
use harness::{
    TestApp, TestDatabase,
    app::{TestAppBuilder, send},
    client::go_forward,
    patience,
    sounds::{converted, decoded_by_ffmpeg, wav},
    voice_workers::VoiceWorkers,
};
use reqwest::Method;
use serde_json::{Value, json};
use test_routes::voices::{
    self, KEYS, create, file, make_empty, novel, path, post, post_form, processed, put, source,
    spoken,
};
use tokio::time::sleep;

fn builder(database: &TestDatabase) -> TestAppBuilder {
    TestApp::builder(database).with_decoder().quick_worker()
}

async fn bytes(app: &TestApp, key: &str, path: &str) -> Vec<u8> {
    let request = app.request(Method::GET, path).header("x-api-key", key);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.bytes().await.unwrap().to_vec()
}

/// Nothing is stored but what voices refer to, and all of that is.
async fn is_tidy(app: &TestApp) {
    app.app.blobs.sweep().await.unwrap();
    voices::is_tidy(app).await;
}
