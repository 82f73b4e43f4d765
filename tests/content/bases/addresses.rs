//! Documents that are addresses.

use colloquy::{bases::Digitize, jobs};
use harness::app::TestAppBuilder;
use test_routes::{
    bases::{nothing_is_pending, text_of},
    site::site,
};

use super::*;

fn open(builder: TestAppBuilder) -> TestAppBuilder {
    let builder = builder.config(|config| config.fetch.allow_private = true);
    builder.with_decoder().quick_worker()
}

on_both_databases!(addresses_become_documents, |builder| open(builder), |app| {
    let (origin, _site) = site().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[
        ("type", "url"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
        ("url", &format!("{origin}/lions")),
    ]);
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    let made = made.expect(201);
    assert_eq!(made["type"], "url");
    assert_eq!(made["url"], format!("{origin}/lions"));
    settled(&app, key).await;
    let path = format!("/api/document/{BASE}/{}", made["id"].as_str().unwrap());
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["status"], "ready", "{document}");
    assert_eq!(document["name"], "Feeding lions");
    assert_eq!(document["file_original"], "lions.html");
    let content = format!(
        "/api/documents/{BASE}/{}/content/digitized",
        made["id"].as_str().unwrap()
    );
    let text = app.get(key, &content).await.expect(200)["content"].clone();
    let text = text.as_str().unwrap();
    assert!(
        text.contains("twice a day") && !text.contains("Shop"),
        "{text}"
    );
    assert_eq!(best(&app, key, "gallery").await, "Feeding lions");

    let urls: Vec<String> = [
        "/moved",
        "/latin",
        "/paper.pdf",
        "/flaky.txt",
        "/round",
        "/song",
        "/nothing",
        "/none",
        "/prices",
        "/table.csv",
        "/prefixed",
    ]
    .map(|path| format!("{origin}{path}"))
    .into();
    let mut all = urls.clone();
    all.push("ftp://example.org/x".to_owned());
    let body = json!({"folder": "texts", "urls": all, "expert_name": "Ada"});
    let batch = format!("/api/documents/{BASE}/batch");
    let made = app.post(key, &batch, body).await.expect(200);
    assert_eq!(
        made["summary"],
        json!({"total": 12, "succeeded": 11, "failed": 1})
    );
    assert_eq!(made["results"][11]["status"], "error");
    let wrong = made["results"][11]["error"].as_str().unwrap();
    assert!(wrong.starts_with("urls[11]: must be an address"), "{wrong}");
    // One of them is there the second time.
    app.advance_through("bases.digitize").await;
    let mut told = Vec::new();
    let results = made["results"].as_array().unwrap().iter();
    for result in results.take(urls.len()) {
        let document = digitized(&app, key, result["document_id"].as_str().unwrap()).await;
        assert_eq!(document["expert_name"], "Ada");
        told.push((
            document["status"].as_str().unwrap().to_owned(),
            document["processing_error"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        ));
    }
    let expected = [
        ("digitized", ""),
        ("digitized", ""),
        ("digitized", ""),
        ("digitized", ""),
        ("failed", "redirected too often"),
        ("failed", "not supported"),
        ("failed", "answers with nothing"),
        ("failed", "status 404"),
        ("digitized", ""),
        ("digitized", ""),
        ("digitized", ""),
    ];
    assert_eq!(told.len(), expected.len());
    for (at, ((status, error), (wanted, part))) in told.iter().zip(expected).enumerate() {
        assert_eq!(status, wanted, "{}: {error}", urls[at]);
        assert!(error.contains(part), "{}: {error}", urls[at]);
    }
    nothing_is_pending(&app).await;
    let latin = made["results"][1]["document_id"].as_str().unwrap();
    let content = format!("/api/documents/{BASE}/{latin}/content/digitized");
    let text = app.get(key, &content).await.expect(200)["content"].clone();
    assert!(text.as_str().unwrap().contains("Löwen"), "{text}");

    for (body, field) in [
        (json!({"folder": "texts", "urls": []}), "urls"),
        (
            json!({"folder": "none", "urls": ["http://a.example"]}),
            "folder",
        ),
        (
            json!({"folder": "texts", "urls": vec!["http://a.example"; 1_001]}),
            "urls",
        ),
        (
            json!({"folder": "texts", "urls": ["http://a.example"], "character_limit": 0}),
            "character_limit",
        ),
        (
            json!({"folder": "texts", "urls": ["http://a.example"], "model_tier": "x"}),
            "model_tier",
        ),
    ] {
        let refused = app.post(key, &batch, body.clone()).await.expect(400);
        assert_eq!(refused["field"], field, "{refused}");
    }
});

on_both_databases!(
    what_is_at_an_address_is_fetched_again_when_that_is_wanted,
    |builder| open(builder),
    |app| {
        let (origin, _site) = site().await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let body = json!({"folder": "texts", "urls": [format!("{origin}/counted.txt"), format!("{origin}/counted.txt"), format!("{origin}/latin")]});
        let batch = format!("/api/documents/{BASE}/batch");
        let made = app.post(key, &batch, body).await.expect(200);
        let ids: Vec<&str> = (0..3)
            .map(|at| made["results"][at]["document_id"].as_str().unwrap())
            .collect();
        let same = |at: usize| &made["results"][at]["duplicate_document_ids"];
        assert_eq!(same(0), &json!([]));
        assert_eq!(same(1), &json!([ids[0]]), "the same address");
        assert_eq!(same(2), &json!([]));
        for id in &ids {
            let document = digitized(&app, key, id).await;
            assert_eq!(document["status"], "digitized", "{document}");
        }
        let process = "/api/queue/process?partner=acme&kb=manual";
        let body = json!({"document": {"id": ids[0]}});
        app.post(key, process, body.clone()).await.expect(200);
        digitized(&app, key, ids[0]).await;
        assert_eq!(text_of(&app, key, ids[0]).await, "This is visit number 3.");

        // Another address is fetched in the place of the first.
        let path = format!("/api/documents/{BASE}/{}/url", ids[0]);
        let lions = format!("{origin}/lions");
        let changed = put(&app, key, &path, &[("url", &lions)]).await.expect(200);
        assert_eq!(changed["duplicate_document_ids"], json!([]));
        assert_eq!(text_of(&app, key, ids[0]).await, "This is visit number 3.");
        app.post(key, process, body.clone()).await.expect(200);
        digitized(&app, key, ids[0]).await;
        assert!(text_of(&app, key, ids[0]).await.contains("twice a day"));
        // What somebody brings in its place is read, and the address left alone.
        let original = format!("/api/documents/{BASE}/{}/content/original", ids[0]);
        put(&app, key, &original, &[("content", "Tigers swim.")])
            .await
            .expect(200);
        app.post(key, process, body).await.expect(200);
        digitized(&app, key, ids[0]).await;
        assert_eq!(text_of(&app, key, ids[0]).await, "Tigers swim.");

        // A later attempt reads what the first one fetched, in its encoding.
        let document = app
            .get(key, &format!("/api/document/{BASE}/{}", ids[2]))
            .await;
        assert_eq!(document.expect(200)["media_type"], "text/html");
        let latin = ids[2];
        let sql =
            format!("UPDATE knowledge_documents SET digitizing = 'queued' WHERE id = '{latin}'");
        app.app.store.db().execute(sql).await.unwrap();
        let transaction = app.app.store.begin().await.unwrap();
        let job = Digitize {
            document: latin.to_owned(),
        };
        jobs::enqueue(&app.app, &transaction, None, &job)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        app.app.kernel.jobs.wake();
        digitized(&app, key, latin).await;
        let text = text_of(&app, key, latin).await;
        assert!(text.contains("Löwen"), "{text}");

        // What is being deleted is no duplicate.
        let sql = format!(
            "UPDATE knowledge_documents SET digitizing = 'running' WHERE id = '{}'",
            ids[1]
        );
        app.app.store.db().execute(sql).await.unwrap();
        let again = json!({"folder": "texts", "urls": [format!("{origin}/counted.txt")]});
        let again = app.post(key, &batch, again).await.expect(200);
        assert_eq!(
            again["results"][0]["duplicate_document_ids"],
            json!([ids[1]])
        );
        app.delete(key, &format!("/api/documents/{BASE}/{}", ids[1]))
            .await
            .expect(200);
        let list = app
            .get(key, &format!("/api/documents/{BASE}"))
            .await
            .expect(200);
        let last = list["documents"].as_array().unwrap().last().unwrap();
        assert_eq!(last["id"], again["results"][0]["document_id"]);
        assert_eq!(last["duplicate_document_ids"], json!([]), "{list}");
    }
);

/// A body that goes on and on is stored as it comes, and given up at the bound.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_page_ends_at_its_bound() {
    let (origin, _site) = site().await;
    let app = open(TestApp::builder(&TestDatabase::sqlite()));
    let app = app
        .config(|config| config.knowledge.max_page_bytes = 3_000_000)
        .start()
        .await;
    let acme = furnished(&app).await;
    let body = json!({"folder": "texts", "urls": [format!("{origin}/endless.txt")]});
    let path = format!("/api/documents/{BASE}/batch");
    let made = app.post(&acme.key, &path, body).await.expect(200);
    let id = made["results"][0]["document_id"].as_str().unwrap();
    let document = digitized(&app, &acme.key, id).await;
    assert_eq!(document["status"], "failed", "{document}");
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.contains("too large"), "{error}");
    app.app.blobs.sweep().await.unwrap();
    assert_eq!(rows(&app, "blobs").await, 0, "nothing of it is left");
}

/// An address of this machine is none of a partner's business.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_inside_are_not_fetched() {
    let (origin, _site) = site().await;
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let body = json!({"folder": "texts", "urls": [format!("{origin}/lions")]});
    let path = format!("/api/documents/{BASE}/batch");
    let made = app.post(&acme.key, &path, body).await.expect(200);
    let id = made["results"][0]["document_id"].as_str().unwrap();
    let document = digitized(&app, &acme.key, id).await;
    assert_eq!(document["status"], "failed");
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.contains("no public address"), "{error}");
}
