//! Transcripts count in the storage of their partner, from when they are created until they are deleted.

use colloquy::{server, transcripts};
use harness::app::{counted, quick};

use super::*;

/// Bytes that a transcript counts beside its texts.
const ROW_BYTES: u64 = 1_024;
/// The text of every transcript, as it is stored.
const TEXT: &str = "Go forward ten meters.";

/// The bytes of the options of all transcripts.
async fn option_bytes(app: &TestApp) -> u64 {
    let sql = "SELECT CAST(COALESCE(SUM(octet_length(options)), 0) AS BIGINT) FROM transcripts";
    app.app.store.db().fetch_count(sql).await.unwrap()
}

async fn limit_storage(app: &TestApp, bytes: u64) {
    let limited = json!({"settings": {"storage_bytes": bytes}});
    app.put(ADMIN_KEY, "/api/partners/acme", limited)
        .await
        .expect(200);
}

/// The bytes of the files and texts of `acme`, without files that were deleted.
async fn used(app: &TestApp) -> u64 {
    let read = app.get(ADMIN_KEY, "/api/partners/acme").await.expect(200);
    read["storage"]["used_bytes"].as_u64().unwrap()
}

async fn delete_status(app: &TestApp, key: &str, path: &str) -> u16 {
    app.delete(key, path).await.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_counts_until_it_is_deleted() {
    let (origin, _site) = site().await;
    let upstream = scripted().await;
    for database in TestDatabase::both().await {
        let builder = heard_by(&upstream, TestApp::builder(&database)).without_worker();
        let builder = builder.config(|config| config.fetch.allow_private = true);
        let app = builder.start().await;
        let (acme, _) = app.acme_and_other().await;
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

        server::start_worker(&app.app, quick()).await.unwrap();
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
            server::recount_texts(&app.app.store)
        );
        assert_eq!(recounted.unwrap(), 0);
        assert_eq!(first.min(second), 204);
        assert_eq!(first.max(second), 404);
        let last = ROW_BYTES + option_bytes(&app).await + TEXT.len() as u64;
        assert_eq!(counted(&app).await, before + last);

        assert_eq!(transcripts::purge(&app.app).await.unwrap(), 0);
        let old = "UPDATE transcripts SET ended_at = 1";
        app.app.store.db().execute(old).await.unwrap();
        assert_eq!(transcripts::purge(&app.app).await.unwrap(), 1);
        app.get(key, path(2)).await.expect(404);
        assert_eq!(counted(&app).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_refused_beyond_the_limit_and_its_text_is_not() {
    let upstream = scripted().await;
    for database in TestDatabase::both().await {
        let builder = heard_by(&upstream, TestApp::builder(&database)).without_worker();
        let app = builder.start().await;
        let acme = app.partner("acme").await;
        let key = acme.key.as_str();
        let before = counted(&app).await;
        let post = async || post_form(&app, key, audio("a.wav", recording())).await;
        let made = post().await.expect(200);
        let row = ROW_BYTES + option_bytes(&app).await;
        assert_eq!(counted(&app).await, before + row);

        // Room for the recording, and for all but a byte of the row.
        let used_bytes = used(&app).await;
        limit_storage(&app, used_bytes + recording().len() as u64 + row - 1).await;
        let url = "https://example.com/a.mp3";
        let refused = post().await;
        assert_eq!(refused.status, 413, "{}", refused.text);
        assert!(refused.text.contains("transcripts"), "{}", refused.text);
        limit_storage(&app, used_bytes + row + url.len() as u64 - 1).await;
        let refused = app.post(key, PATH, json!({"audio_url": url})).await;
        assert_eq!(refused.status, 413, "{}", refused.text);
        assert_eq!(counted(&app).await, before + row);
        assert_eq!(count(&app, "transcripts").await, 1);
        let jobs = "work WHERE kind = 'transcripts.transcribe'";
        assert_eq!(count(&app, jobs).await, 1);
        app.app.blobs.sweep().await.unwrap();
        assert_eq!(count(&app, "blobs").await, 1, "that of the first");

        limit_storage(&app, 0).await;
        server::start_worker(&app.app, quick()).await.unwrap();
        let read = ended(&app, key, &made).await;
        assert_eq!(read["text"], TEXT, "{read}");
        assert_eq!(counted(&app).await, before + row + TEXT.len() as u64);

        // The server measures the disk of the test as well, which may come between.
        for attempt in 1.. {
            assert!(attempt <= 5, "the disk was not low");
            app.app.edge.set_disk_low(true);
            let refused = app.post(key, PATH, json!({"audio_url": url})).await;
            if refused.status == 507 {
                break;
            }
        }
        app.app.edge.set_disk_low(true);
        app.delete(key, made["id"].as_str().unwrap())
            .await
            .expect(204);
        assert_eq!(counted(&app).await, before);
        app.app.edge.set_disk_low(false);
        limit_storage(&app, used(&app).await + recording().len() as u64 + row).await;
        post().await.expect(200);
    }
}

/// A recording that a disk has lost is no reason to try again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_lost_ends_its_transcript() {
    let upstream = scripted().await;
    let database = TestDatabase::sqlite();
    let builder = heard_by(&upstream, TestApp::builder(&database)).without_worker();
    let app = builder.start().await;
    let key = app.partner("acme").await.key;
    let made = post_form(&app, &key, audio("a.wav", recording())).await;
    let made = made.expect(200);
    let sql = "SELECT key FROM blobs WHERE state = 'kept'";
    let blob: Option<String> = app.app.store.db().fetch_scalar(sql).await.unwrap();
    let file = database.config().dir.join("blobs").join(blob.unwrap());
    fs::remove_file(file).unwrap();
    server::start_worker(&app.app, quick()).await.unwrap();
    let read = ended(&app, &key, &made).await;
    let told = "the stored recording is damaged; send it again";
    assert_eq!(
        (&read["status"], &read["error"]),
        (&json!("error"), &json!(told))
    );
}
