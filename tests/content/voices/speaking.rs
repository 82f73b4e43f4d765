//! Which voice of the synthesizer speaks as a voice of the library, and that it is the one that is shown.

use colloquy::{Config, providers};
use harness::{
    app::ADMIN_KEY,
    upstream::{Api, Upstream},
};

use super::*;

/// A server whose synthesizer is elsewhere, and a voice of two samples. A worker has named a voice of the synthesizer for each sample, and
/// one for both.
struct Stage {
    app: TestApp,
    key: String,
    upstream: Upstream,
}

impl Stage {
    async fn start() -> Self {
        let upstream = Upstream::start().await;
        let mut config = Config::default();
        upstream.configure(&mut config);
        let providers = providers::from_config(&config).unwrap();
        let app = TestApp::builder(&TestDatabase::sqlite())
            .config(|settings| settings.synthesizer = config.synthesizer)
            .providers(providers)
            .start()
            .await;
        let key = app.partner("acme").await.key;
        let stage = Self { app, key, upstream };
        for sql in [
            "INSERT INTO voices (id, partner, name, splitting, max_samples, sample_seconds, window_sample, embeds_next, embedding_type, created_at) \
             VALUES ('1', 'acme', 'Anna', 'completed', 25, 15, 0, FALSE, 'builtin', 1)",
            "INSERT INTO voice_samples (voice_id, sample_index, source_seconds, milliseconds, blob_key, blob_bytes) \
             VALUES ('1', 0, 0, 5000, 'a', 1), ('1', 1, 5, 5000, 'b', 1)",
            "INSERT INTO voice_embeddings (voice_id, voice_type, status, run, token, begun_at, updated_at, given, synthesizer_voice) \
             VALUES ('1', 'builtin', 'completed', '1', '1', 1, 1, 1, 'both')",
            "INSERT INTO voice_scores (voice_id, voice_type, sample_index, score_thousandths, synthesizer_voice) \
             VALUES ('1', 'builtin', 0, 500, 'first'), ('1', 'builtin', 1, 500, 'second')",
        ] {
            stage.change(sql).await;
        }
        stage
    }

    async fn change(&self, sql: &'static str) {
        self.app.app.store.db().execute(sql).await.unwrap();
    }

    async fn prefer(&self, sample: &str) {
        let place = format!("{}/preferred-sample", path("Anna"));
        let set = put(&self.app, &self.key, &place, &[("sample_index", sample)]).await;
        set.expect(200);
    }

    /// The type of what was last made of the voice, null where that is removed, and the voice of the synthesizer that is shown.
    async fn shown(&self) -> (Value, Value) {
        let voice = self.app.get(&self.key, &path("Anna")).await.expect(200);
        let info = &voice["embedding_info"];
        let speaking = &voice["synthesizer_voice"];
        assert!(info.is_null() || info["synthesizer_voice"] == *speaking);
        (info["tts_type"].clone(), speaking.clone())
    }

    /// The voice that the synthesizer is asked for; null where it is not asked.
    async fn spoken(&self) -> Value {
        let before = self.upstream.requests(Api::Speech).len();
        // No text is spoken twice: the first answer would be given again.
        let text = format!("This is sentence {before}.");
        let body = json!({"model": "colloquy-tts", "voice": "repo:acme/Anna", "input": text, "response_format": "pcm"});
        let request = self.app.request(Method::POST, "/v2/audio/speech");
        let said = send(request.bearer_auth(&self.key).json(&body)).await;
        let asked = self.upstream.requests(Api::Speech).split_off(before);
        let voice = asked.first().map(|asked| asked.body["voice"].clone());
        let expected = if voice.is_some() { 200 } else { 400 };
        assert_eq!(said.status, expected, "{}", said.text);
        voice.unwrap_or_default()
    }
}

#[tokio::test]
async fn the_voice_of_the_preferred_sample_speaks() {
    let stage = Stage::start().await;
    for (sample, voice) in [("", "both"), ("0", "first"), ("1", "second"), ("", "both")] {
        stage.prefer(sample).await;
        assert_eq!(stage.spoken().await, voice, "{sample}");
        assert_eq!(stage.shown().await, (json!("builtin"), json!(voice)));
    }
}

/// A worker that names no voice leaves the one that was made before for another type.
#[tokio::test]
async fn the_voice_that_speaks_is_shown() {
    let stage = Stage::start().await;
    stage.prefer("1").await;
    let speaks = async |voice: Value| {
        assert_eq!(stage.spoken().await, voice);
        assert_eq!(stage.shown().await, (json!("xtts"), voice));
    };
    for sql in [
        "INSERT INTO voice_embeddings (voice_id, voice_type, status, run, token, begun_at, updated_at, given) \
         VALUES ('1', 'xtts', 'in_progress', '2', '2', 2, 2, 1)",
        "UPDATE voices SET embedding_type = 'xtts'",
    ] {
        stage.change(sql).await;
    }
    speaks(json!("second")).await;
    stage
        .change("UPDATE voice_embeddings SET status = 'completed', updated_at = 3 WHERE run = '2'")
        .await;
    speaks(json!("second")).await;
    stage.prefer("").await;
    speaks(json!("both")).await;
    stage
        .change("UPDATE voice_embeddings SET synthesizer_voice = 'new' WHERE run = '2'")
        .await;
    speaks(json!("new")).await;
    // What was last made is removed, and what was made before speaks.
    let files = format!("{}/test-files/xtts", path("Anna"));
    stage.app.delete(&stage.key, &files).await.expect(204);
    assert_eq!(stage.spoken().await, "both");
    assert_eq!(stage.shown().await, (Value::Null, json!("both")));
    stage
        .change("UPDATE voice_embeddings SET synthesizer_voice = NULL")
        .await;
    assert_eq!(stage.spoken().await, Value::Null);
    assert_eq!(stage.shown().await, (Value::Null, Value::Null));
}

#[tokio::test]
async fn administrators_list_and_speak_with_the_voices_of_a_partner() {
    let stage = Stage::start().await;
    let other = stage.app.partner("other").await.key;
    let ids = async |key: &str, query: &str| {
        let path = format!("/v2/audio/voices{query}");
        let page = stage.app.get(key, &path).await.expect(200);
        let voices = page["voices"].as_array().unwrap().iter();
        let ids = voices.map(|voice| voice["id"].as_str().unwrap().to_owned());
        ids.filter(|id| id.starts_with("repo:")).collect::<Vec<_>>()
    };
    let anna = ["repo:acme/Anna"];
    assert_eq!(ids(&stage.key, "").await, anna);
    assert_eq!(ids(&stage.key, "?partner=acme").await, anna);
    assert_eq!(ids(ADMIN_KEY, "?partner=acme").await, anna);
    assert!(ids(ADMIN_KEY, "").await.is_empty());
    assert!(ids(ADMIN_KEY, "?partner=other").await.is_empty());
    for (key, query, status) in [
        (&other, "?partner=acme", 403),
        (&other, "?partner=A", 400),
        (&other, "?owner=acme", 400),
    ] {
        let path = format!("/v2/audio/voices{query}");
        stage.app.get(key, &path).await.expect(status);
    }
    let body = json!({"model": "colloquy-tts", "voice": "repo:acme/Anna", "input": "Hello.", "response_format": "pcm"});
    for (key, status) in [(ADMIN_KEY, 200), (&other, 400)] {
        let request = stage.app.request(Method::POST, "/v2/audio/speech");
        let said = send(request.bearer_auth(key).json(&body)).await;
        assert_eq!(said.status, status, "{}", said.text);
    }
}
