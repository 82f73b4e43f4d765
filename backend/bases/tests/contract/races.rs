//! What people do while a document is being worked on is kept.

use axum::{Router, routing::get};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

use super::{budgets::Budgeted, *};

/// A site whose page comes when it is let go.
async fn slow_site(go: Arc<Semaphore>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let page = move || {
        let go = Arc::clone(&go);
        async move {
            go.acquire().await.unwrap().forget();
            let kind = [("content-type", "text/html")];
            let words = "Lions are fed twice a day, in the morning and in the evening. ".repeat(8);
            (
                kind,
                format!(
                    "<html><head><title>Its title</title></head><body><article><p>{words}</p></article></body></html>"
                ),
            )
        }
    };
    let router = Router::new().route("/page", get(page));
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (origin, server)
}

on_each_database!(what_is_asked_while_a_document_is_read_counts, |database| {
    let builder = builder(&database).config(|config| config.fetch.allow_private = true);
    let app = start_working(builder).await;
    let go = Arc::new(Semaphore::new(0));
    let (origin, _site) = slow_site(Arc::clone(&go)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let page = format!("{origin}/page");
    let form = fields(&[("type", "url"), ("folder", "texts"), ("url", &page)]);
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    eventually("it is read", async || {
        document(&app, key, id).await["digitize_status"] == "running"
    })
    .await;
    // Another name, and another limit.
    let path = format!("/api/documents/{BASE}/{id}/name");
    put(&app, key, &path, &[("name", "Plan")]).await.expect(200);
    let process = "/api/queue/process?partner=acme&kb=manual&action=digitize&character_limit=100";
    let body = json!({"document": {"id": id}});
    app.post(key, process, body).await.expect(200);
    go.add_permits(10);
    eventually("the limit holds", async || {
        document(&app, key, id).await["digitize_status"] == "blocked"
    })
    .await;
    assert_eq!(document(&app, key, id).await["name"], "Plan");
});

on_each_database!(a_new_name_is_found, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let id = add(&app, key, "Animals", "They eat meat at noon.").await;
    settled(&app, key).await;
    assert_eq!(best(&app, key, "animals").await, "Animals");
    let path = format!("/api/documents/{BASE}/{id}/name");
    put(&app, key, &path, &[("name", "Predators")])
        .await
        .expect(200);
    settled(&app, key).await;
    finds(&app, key, "predators", "Predators").await;
    assert_eq!(best(&app, key, "animals").await, "");
});

on_each_database!(names_are_looked_at_before_files_are_taken, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let long = "x".repeat(201);
    let form = fields(&[("folder", "texts"), ("names", "First"), ("names", &long)])
        .part("files", file("a.md", "One."))
        .part("files", file("b.md", "Two."));
    let path = format!("/api/documents/{BASE}/files/batch");
    let refused = post(&app, key, &path, form).await.expect(400);
    assert!(refused.to_string().contains("names"), "{refused}");
    assert_eq!(rows(&app, "knowledge_documents").await, 0);
});

on_each_database!(no_text_has_a_nul, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let batch = json!({
        "folder": "texts",
        "urls": ["https://zoo.example/1", "https://zoo.example/\u{0}x", "https://zoo.example/2"],
    });
    let path = format!("/api/documents/{BASE}/batch");
    let batch = app.post(key, &path, batch).await.expect(200);
    assert_eq!(batch["summary"]["succeeded"], 2, "{batch}");
    assert_eq!(batch["summary"]["failed"], 1, "{batch}");
    let process = "/api/queue/process?partner=acme&kb=man%00ual&action=digitize";
    let body = json!({"document": {"id": "x"}});
    let refused = app.post(key, process, body).await.expect(400);
    assert!(
        refused["detail"] == "kb: has a NUL character" && refused["field"] == "kb",
        "{refused}"
    );
    let body = json!({"partner": "acme", "kb": "man\u{0}ual", "user_message": "?"});
    let missing = app.post(key, "/api/rag-test/search", body).await;
    assert!(
        [400, 404].contains(&missing.status.as_u16()),
        "{}",
        missing.status
    );
});

/// A text that somebody wrote is asked again with the limits of that request.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_waits_is_taken_when_its_base_has_room() {
    let budgeted = Budgeted::start(&TestDatabase::sqlite()).await;
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    let id = budgeted.add(1, &[("character_limit", "100")]).await;
    budgeted.becomes(&id, "digitized").await;
    budgeted.limit(json!({"character_limit": 120})).await;
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let text = "x".repeat(150);
    let kept = put(app, key, &content, &[("content", &text)])
        .await
        .expect(200);
    assert_eq!(kept["status"], "budget_blocked", "{kept}");
    budgeted.limit(json!({"character_limit": 10_000})).await;
    budgeted.becomes(&id, "digitized").await;
    let taken = app.get(key, &content).await.expect(200);
    assert_eq!(taken["content"], text);
}
