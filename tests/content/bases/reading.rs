//! How much is read of a document.

use super::*;

/// What could not be embedded later is refused when it is read.
#[tokio::test]
async fn a_text_that_is_too_long_says_so() {
    let app = TestApp::builder(&harness::TestDatabase::sqlite())
        .config(|config| config.knowledge.max_text_bytes = 2_048)
        .with_decoder()
        .quick_worker()
        .start()
        .await;
    let acme = furnished(&app).await;
    let long = "Words of it. ".repeat(200).into_bytes();
    let made = upload(&app, &acme.key, "long.txt", long).await.expect(201);
    let document = digitized(&app, &acme.key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "failed", "{document}");
    let error = document["processing_error"].as_str().unwrap();
    assert!(
        error.starts_with("the document is too large: more than 2048"),
        "{error}"
    );
}
