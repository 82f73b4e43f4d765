//! Recordings that a disk has lost.

use colloquy::server;
use harness::app::quick;

use super::*;

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
