//! What tests ask of voices, at routes or at a server.

use std::fs;

use colloquy_store::Executor as _;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::Value;
use support::until;

use crate::{Answer, TestClient, TestPartner, TestWork};

/// Samples of a second.
pub const RATE_HZ: usize = 16_000;
/// Where Debian has recordings of a novel.
const FOLDER: &str = "/usr/share/pocketsphinx/test/data/librivox";

/// The keys of all files that voices refer to.
pub const KEYS: &str = "SELECT blob_key FROM voices WHERE blob_key IS NOT NULL \
    UNION ALL SELECT blob_key FROM voice_samples UNION ALL SELECT blob_key FROM voice_test_samples \
    UNION ALL SELECT blob_key FROM voice_embeddings WHERE blob_key IS NOT NULL";

/// The recordings of a novel, by one person.
pub fn novel() -> Vec<Vec<i16>> {
    ["0870", "0880", "0890", "0920", "0930"]
        .iter()
        .map(|number| {
            let name = format!("{FOLDER}/sense_and_sensibility_01_austen_64kb-{number}.wav");
            let bytes = fs::read(name).unwrap();
            // Behind a header of 44 bytes.
            let (samples, _) = bytes[44..].as_chunks::<2>();
            samples.iter().copied().map(i16::from_le_bytes).collect()
        })
        .collect()
}

/// The recordings one after the other, with pauses of so many seconds, and when each of them begins and ends.
pub fn spoken(pause: usize) -> (Vec<i16>, Vec<(f64, f64)>) {
    let (mut sound, mut times) = (Vec::new(), Vec::new());
    let seconds = |samples: usize| samples as f64 / RATE_HZ as f64;
    for recording in novel() {
        sound.extend(vec![0; pause * RATE_HZ]);
        let begin = seconds(sound.len());
        sound.extend(recording);
        times.push((begin, seconds(sound.len())));
    }
    sound.extend(vec![0; pause * RATE_HZ]);
    (sound, times)
}

/// The path of a voice of `acme`.
pub fn path(voice: &str) -> String {
    format!("/api/voices/acme/{voice}")
}

/// The form of a recording or a sample.
pub fn file(name: &str, bytes: Vec<u8>) -> Form {
    Form::new().part("file", Part::bytes(bytes).file_name(name.to_owned()))
}

/// Sends a form with files.
pub async fn post_form(client: &TestClient, key: &str, path: &str, form: Form) -> Answer {
    client.form(key, Method::POST, path, form).await
}

/// Sends the fields of a form.
pub async fn post(client: &TestClient, key: &str, path: &str, with: &[(&str, &str)]) -> Answer {
    client.fields(key, Method::POST, path, with).await
}

/// Puts the fields of a form.
pub async fn put(client: &TestClient, key: &str, path: &str, with: &[(&str, &str)]) -> Answer {
    client.fields(key, Method::PUT, path, with).await
}

/// Makes a voice of a recording.
pub async fn create(
    client: &TestClient,
    partner: &TestPartner,
    name: &str,
    bytes: Vec<u8>,
) -> Value {
    let form = file("take one.mp3", bytes).text("name", name.to_owned());
    let made = post_form(client, &partner.key, "/api/voices/acme", form).await;
    made.expect(201)
}

/// Makes a voice without samples.
pub async fn make_empty(client: &TestClient, key: &str, name: &str) {
    let name = [("name", name)];
    let made = post(client, key, "/api/voices/acme/empty", &name).await;
    made.expect(201);
}

/// The voice, once nothing of it is in progress.
pub async fn processed(client: &TestClient, key: &str, voice: &str) -> Value {
    let is_over = |read: &Value| {
        let status = &read["status"];
        status["splitting"] != "in_progress" && status["embedding"] != "in_progress"
    };
    until("the voice is processed", is_over, async || {
        client.get(key, &path(voice)).await.expect(200)
    })
    .await
}

/// Where a sample begins in its recording, in seconds.
pub fn source(sample: &Value) -> f64 {
    let text = sample["source_timestamp"].as_str().unwrap();
    let (minutes, seconds) = text.split_once(':').unwrap();
    assert_eq!((minutes.len(), seconds.len()), (2, 2), "{text}");
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

/// Nothing is stored but what voices refer to, and all of that is. What nobody refers to was swept before.
pub async fn is_tidy(work: &TestWork) {
    let db = work.store().db();
    let count = async |what: String| {
        let sql = format!("SELECT COUNT(*) FROM {what}");
        db.fetch_count(sql).await.unwrap()
    };
    assert_eq!(count(format!("blobs WHERE key NOT IN ({KEYS})")).await, 0);
    let missing = format!(
        "({KEYS}) AS keys WHERE blob_key NOT IN (SELECT key FROM blobs WHERE state = 'kept')"
    );
    assert_eq!(count(missing).await, 0);
}
