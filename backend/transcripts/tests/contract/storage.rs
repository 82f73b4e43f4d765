//! Transcripts count in the storage of their partner, from when they are created until they are deleted.

use colloquy_providers::from_config;
use colloquy_transcripts::purge;
use test_routes::{
    TestClient,
    bases::rows,
    transcripts::{scripted, site},
    upstream::Upstream,
};

use super::*;

/// Bytes that a transcript counts beside its texts.
const ROW_BYTES: u64 = 1_024;
/// The text of every transcript, as it is stored.
const TEXT: &str = "Go forward ten meters.";

/// Starts with a decoder, and recordings that this upstream hears.
async fn heard_by(upstream: &Upstream, builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let builder = builder.config(|config| upstream.listen(config));
    let providers = from_config(builder.settings()).unwrap();
    start_with(builder.with_decoder(), providers).await
}

/// The bytes of the options of all transcripts.
async fn option_bytes(app: &TestRoutes<Place>) -> u64 {
    let sql = "SELECT CAST(COALESCE(SUM(octet_length(options)), 0) AS BIGINT) FROM transcripts";
    app.state.store.db().fetch_count(sql).await.unwrap()
}

/// The bytes of the files and texts of `acme`, without files that were deleted.
async fn used(client: &TestClient) -> u64 {
    let read = client.get(ADMIN_KEY, "/api/partners/acme").await;
    let read = read.expect(200);
    read["storage"]["used_bytes"].as_u64().unwrap()
}

async fn delete_status(client: &TestClient, key: &str, path: &str) -> u16 {
    client.delete(key, path).await.status.as_u16()
}

on_each_database!(a_transcript_counts_until_it_is_deleted, |database| {
    let (origin, _site) = site().await;
    let upstream = scripted().await;
    let builder = builder(&database).config(|config| config.fetch.allow_private = true);
    let app = heard_by(&upstream, builder).await;
    let (acme, _) = (app.partner("acme").await, app.partner("other").await);
    let key = acme.key.as_str();
    let before = counted(&app).await;
    let (mut made, mut url_bytes) = (Vec::new(), 0);
    for page in ["a.wav", "page", "a.wav"] {
        let url = format!("{origin}/{page}?x={}", "x".repeat(3_000));
        url_bytes += url.len() as u64;
        let body = json!({"audio_url": url, "boosted_words": ["Grüße"]});
        made.push(app.post(key, PATH, body).await.expect(200));
    }
    let rows = before + 3 * ROW_BYTES + option_bytes(&app).await;
    assert_eq!(counted(&app).await, rows + url_bytes);

    app.start_worker(&CAPABILITIES, quick()).await;
    let mut texts = 0;
    for (made, field) in made.iter().zip(["text", "error", "text"]) {
        let read = ended(&app, key, made).await;
        texts += read[field].as_str().unwrap().len() as u64;
    }
    assert_eq!(counted(&app).await, rows + texts);

    let path = |index: usize| made[index]["id"].as_str().unwrap();
    let deleted = app.delete(key, path(0)).await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    app.get(key, path(0)).await.expect(404);
    // Twice at a time, and beside that a recount.
    let (first, second, recounted) = tokio::join!(
        delete_status(&app, key, path(1)),
        delete_status(&app, key, path(1)),
        recount_texts(&app, TEXTS)
    );
    assert_eq!(recounted.unwrap(), 0);
    assert_eq!(first.min(second), 204);
    assert_eq!(first.max(second), 404);
    let last = ROW_BYTES + option_bytes(&app).await + TEXT.len() as u64;
    assert_eq!(counted(&app).await, before + last);

    assert_eq!(purge(&app.state).await.unwrap(), 0);
    let old = "UPDATE transcripts SET ended_at = 1";
    app.state.store.db().execute(old).await.unwrap();
    assert_eq!(purge(&app.state).await.unwrap(), 1);
    app.get(key, path(2)).await.expect(404);
    assert_eq!(counted(&app).await, before);
});

on_each_database!(
    a_transcript_is_refused_beyond_the_limit_and_its_text_is_not,
    |database| {
        let upstream = scripted().await;
        let app = heard_by(&upstream, builder(&database)).await;
        let acme = app.partner("acme").await;
        let key = acme.key.as_str();
        let before = counted(&app).await;
        let post = async || post_form(&app, key, audio("a.wav", recording())).await;
        let made = post().await.expect(200);
        let row = ROW_BYTES + option_bytes(&app).await;
        assert_eq!(counted(&app).await, before + row);

        // Room for the recording, and for all but a byte of the row.
        let used_bytes = used(&app).await;
        let recording_bytes = recording().len() as u64;
        app.limit_storage("acme", used_bytes + recording_bytes + row - 1)
            .await;
        let url = "https://example.com/a.mp3";
        let refused = post().await;
        assert_eq!(refused.status, 413, "{}", refused.text);
        assert!(refused.text.contains("transcripts"), "{}", refused.text);
        app.limit_storage("acme", used_bytes + row + url.len() as u64 - 1)
            .await;
        let refused = app.post(key, PATH, json!({"audio_url": url})).await;
        assert_eq!(refused.status, 413, "{}", refused.text);
        assert_eq!(counted(&app).await, before + row);
        assert_eq!(rows(&app, "transcripts").await, 1);
        let jobs = "work WHERE kind = 'transcripts.transcribe'";
        assert_eq!(rows(&app, jobs).await, 1);
        app.state.blobs.sweep().await.unwrap();
        assert_eq!(rows(&app, "blobs").await, 1, "that of the first");

        app.limit_storage("acme", 0).await;
        app.start_worker(&CAPABILITIES, quick()).await;
        let read = ended(&app, key, &made).await;
        assert_eq!(read["text"], TEXT, "{read}");
        assert_eq!(counted(&app).await, before + row + TEXT.len() as u64);

        app.edge.set_disk_low(true);
        app.post(key, PATH, json!({"audio_url": url}))
            .await
            .expect(507);
        app.delete(key, made["id"].as_str().unwrap())
            .await
            .expect(204);
        assert_eq!(counted(&app).await, before);
        app.edge.set_disk_low(false);
        app.limit_storage("acme", used(&app).await + recording_bytes + row)
            .await;
        post().await.expect(200);
    }
);
