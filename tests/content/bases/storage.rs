//! How much a partner may store.

use harness::app::ADMIN_KEY;

use super::*;

on_both_databases!(
    a_partner_stores_no_more_than_it_may,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let limited = async |bytes: u64| {
            let body = json!({"settings": {"storage_bytes": bytes}});
            let request = app.request(Method::PUT, "/api/partners/acme");
            send(request.bearer_auth(ADMIN_KEY).json(&body))
                .await
                .expect(200)
        };
        let storage = async || {
            let listed = app.get(key, "/api/partners").await.expect(200);
            listed[0]["storage"].clone()
        };
        assert_eq!(storage().await["limit_bytes"], 100_u64 << 30);
        // Beside the key and the rows of the base, its folder and a document.
        limited(22_408).await;
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
        for (path, field) in [("/api/voices/acme", "file"), ("/v2/transcript", "audio")] {
            let form = fields(&[("name", "Ada")]).part(field, file("a.wav", vec![0; 2_000]));
            let request = app.request(Method::POST, path).header("x-api-key", key);
            let answer = send(request.multipart(form)).await;
            assert_eq!(answer.status, 413, "{path}: {}", answer.text);
        }

        // What does not fit when it is read says so at the document.
        limited(30_600).await;
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
        limited(0).await;
        upload(&app, key, "e.txt", b"e".to_vec()).await.expect(413);
    }
);
