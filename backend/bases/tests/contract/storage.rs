//! How much a partner may store.

use super::*;

on_each_database!(a_partner_stores_no_more_than_it_may, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let storage = async || {
        let listed = app.get(key, "/api/partners").await.expect(200);
        listed[0]["storage"].clone()
    };
    assert_eq!(storage().await["limit_bytes"], 100_u64 << 30);
    // Beside the key and the rows of the base, its folder and a document.
    app.limit_storage("acme", 22_408).await;
    let made = upload(&app, key, "a.txt", vec![b'a'; 2_000]).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    let document = digitized(&app, key, &id).await;
    assert_eq!(document["status"], "digitized", "{document}");
    let used = storage().await["used_bytes"].as_u64().unwrap();
    assert!((21_408..21_508).contains(&used), "{used}");
    assert_eq!(storage().await["limit_bytes"], 22_408);

    let refused = upload(&app, key, "b.txt", vec![b'b'; 2_000]).await;
    let refused = refused.expect(413);
    assert_eq!(refused["code"], "storage_limit_reached", "{refused}");
    let told = refused["detail"].as_str().unwrap();
    assert!(told.contains("22408") && told.contains("delete"), "{told}");
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let text = "c".repeat(2_000);
    put(&app, key, &content, &[("content", &text)])
        .await
        .expect(413);

    // What does not fit when it is read says so at the document.
    app.limit_storage("acme", 30_600).await;
    let made = upload(&app, key, "d.txt", vec![b'd'; 600]).await;
    let made = made.expect(201);
    let document = digitized(&app, key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "failed", "{document}");
    let why = document["processing_error"].as_str().unwrap();
    assert!(why.contains("30600 bytes together"), "{why}");

    // Deleting makes room at once, whenever the files are removed.
    let before = storage().await["used_bytes"].as_u64().unwrap();
    let path = format!("/api/documents/{BASE}/{id}");
    app.delete(key, &path).await.expect(200);
    let after = storage().await["used_bytes"].as_u64().unwrap();
    assert!(after + 8_192 + 4_000 <= before, "{before} {after}");
    upload(&app, key, "b.txt", vec![b'b'; 2_000])
        .await
        .expect(201);
    app.limit_storage("acme", 0).await;
    upload(&app, key, "e.txt", b"e".to_vec()).await.expect(413);
});

on_each_database!(rows_count_until_they_are_deleted, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let used = async || {
        let listed = app.get(key, "/api/partners").await.expect(200);
        assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
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

    app.limit_storage("acme", furniture + 3 * 8_192 + 100).await;
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
