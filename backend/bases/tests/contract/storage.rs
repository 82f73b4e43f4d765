//! How much a partner may store.

use super::*;

on_each_database!(rows_count_until_they_are_deleted, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let used = async || {
        let listed = app.get(key, "/api/partners").await.expect(200);
        assert_eq!(recount_texts(&app).await.unwrap(), 0);
        listed[0]["storage"]["used_bytes"].as_u64().unwrap()
    };
    // The first key, and the rows of the base and its folder.
    let key_bytes = 1_024;
    let furniture = key_bytes + 4_096 + 4_096;
    assert_eq!(used().await, furniture);
    let documents = format!("/api/documents/{BASE}");
    let of_url = async |url: &str| {
        let form = fields(&[("type", "url"), ("folder", "texts"), ("url", url)]);
        post(&app, key, &documents, form).await
    };
    let long = format!("https://example.com/{}", "x".repeat(2_000));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let made = of_url(&long).await.expect(201);
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(used().await, furniture + 3 * 8_192);

    let body = json!({"settings": {"storage_bytes": furniture + 3 * 8_192 + 100}});
    let request = app.request(Method::PUT, "/api/partners/acme");
    send(request.bearer_auth(ADMIN_KEY).json(&body))
        .await
        .expect(200);
    assert_eq!(of_url("https://example.com/").await.status, 413);
    let folder = fields(&[("name", "more")]);
    let refused = post(&app, key, "/api/folders/acme/manual", folder).await;
    assert_eq!(refused.status, 413, "{}", refused.text);
    let base = fields(&[("name", "more")]);
    let refused = post(&app, key, "/api/knowledgebases/acme", base).await;
    assert_eq!(refused.status, 413, "{}", refused.text);
    assert_eq!(used().await, furniture + 3 * 8_192);

    let path = format!("{documents}/{}", ids[0]);
    app.delete(key, &path).await.expect(200);
    assert_eq!(used().await, furniture + 2 * 8_192);
    let path = "/api/folders/acme/manual/texts";
    app.delete(key, path).await.expect(200);
    assert_eq!(used().await, key_bytes + 4_096);
    let path = "/api/knowledgebases/acme/manual";
    app.delete(key, path).await.expect(200);
    assert_eq!(used().await, key_bytes);
});
