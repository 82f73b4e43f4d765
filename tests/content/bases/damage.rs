//! Files that a disk has damaged.

use harness::TestDatabase;

use super::*;

/// A truncated file, an altered one and one that is gone are not served as whole, and degrade the server until they are as they were written.
#[tokio::test]
async fn a_damaged_upload_fails_its_download_and_degrades_the_server() {
    let database = TestDatabase::sqlite();
    let app = TestApp::builder(&database).with_decoder().without_worker();
    let app = app.start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let written = "Lions eat meat.\n".repeat(100).into_bytes();
    let made = upload(&app, key, "lions.txt", written.clone()).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/documents/{BASE}/{id}/download/original");
    let downloaded = async || {
        let request = app.request(Method::GET, &path).bearer_auth(key);
        let response = request.send().await.ok()?.error_for_status().ok()?;
        response.bytes().await.ok().map(Vec::from)
    };
    let sql = "SELECT key FROM blobs WHERE state = 'kept'";
    let blob: Option<String> = app.app.store.db().fetch_scalar(sql).await.unwrap();
    let file = database.config().dir.join("blobs").join(blob.unwrap());
    assert_eq!(fs::read(&file).unwrap(), written);

    let mut altered = written.clone();
    altered[700] ^= 1;
    let truncated = &written[..written.len() - 1];
    for damaged in [Some(truncated), Some(altered.as_slice()), None] {
        match damaged {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        // What has begun to be sent can only break off.
        if damaged != Some(altered.as_slice()) {
            let told = app.get(key, &path).await.expect(500);
            let detail = told["detail"].as_str().unwrap();
            assert!(detail.contains("damaged; upload it again"), "{told}");
        }
        assert_eq!(downloaded().await, None);
        assert_eq!(app.app.blobs.damaged().await.unwrap(), 1);
        let deep = app.get("", "/health/deep").await.expect(200);
        assert_eq!(deep["status"], "degraded", "{deep}");
        assert_eq!(deep["checks"]["files"]["state"], "degraded");
        let warning = deep["checks"]["files"]["warning"].as_str().unwrap();
        assert!(
            warning.starts_with("1 file is damaged or lost"),
            "{warning}"
        );
        fs::write(&file, &written).unwrap();
        assert_eq!(downloaded().await, Some(written.clone()));
        assert_eq!(app.app.blobs.damaged().await.unwrap(), 0);
    }
}
