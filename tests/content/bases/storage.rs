//! How much a partner may store.

use super::*;

/// Documents leave no room for what other capabilities store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partner_stores_no_more_than_it_may() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    // Beside the key and the rows of the base, its folder and a document.
    app.limit_storage("acme", 22_408).await;
    let made = upload(&app, key, "a.txt", vec![b'a'; 2_000]).await;
    let made = made.expect(201);
    let document = digitized(&app, key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "digitized", "{document}");
    for (path, field) in [("/api/voices/acme", "file"), ("/v2/transcript", "audio")] {
        let form = fields(&[("name", "Ada")]).part(field, file("a.wav", vec![0; 2_000]));
        let answer = post(&app, key, path, form).await;
        assert_eq!(answer.status, 413, "{path}: {}", answer.text);
    }
}
