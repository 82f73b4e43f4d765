//! Knowledge bases: what comes in, what is made of it, how it goes.

mod addresses;
mod bounds;
mod budgets;
mod channels;
mod characters;
mod complaints;
mod crashes;
mod damage;
mod embeddings;
mod histories;
mod memory;
mod neural;
mod outages;
mod pages;
mod races;
mod reading;
mod reconciliation;
mod recordings;
mod searching;
mod storage;
mod turns;
mod usage;
mod vectorstores;
mod videos;

use std::{fs, path::Path, time::Duration};

use colloquy::store::{Executor as _, statement};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, Answer, TestPartner, send},
    eventually, on_both_databases,
    process::Server,
    until,
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use test_routes::bases::{
    BASE, HOURS, add, best, digitized, document, fields, file, finds, found, furnished, post, put,
    rows, sample, search, search_answer, settled, upload,
};
use tokio::time::sleep;

/// A server that `tests/run unit` starts.
fn given(name: &str) -> String {
    let missing = format!("{name} is set by tests/run unit");
    std::env::var(name).map_err(|_| missing).unwrap()
}

/// A partner with the base `manual` and the folder `texts` in it, at a server in a process.
async fn furnished_server(server: &Server) -> TestPartner {
    let acme = server.partner("acme").await;
    for (path, name) in [
        ("/api/knowledgebases/acme", "manual"),
        ("/api/folders/acme/manual", "texts"),
    ] {
        let request = server.request(&acme.key, Method::POST, path);
        let made = send(request.multipart(fields(&[("name", name)]))).await;
        made.expect(201);
    }
    acme
}

on_both_databases!(
    a_file_becomes_text_and_goes_again,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let original = sample("docx/word_sample.docx");
        let made = upload(&app, key, "word_sample.docx", original.clone()).await;
        let made = made.expect(201);
        assert_eq!(made["name"], "word_sample.docx");
        assert_eq!(made["folder"], "texts");
        assert_eq!(made["bytes"], original.len());
        assert_eq!(made["duplicate_document_ids"], json!([]));
        let id = made["id"].as_str().unwrap();
        let document = digitized(&app, key, id).await;
        assert_eq!(document["status"], "digitized", "{document}");
        assert_eq!(document["processing_error"], Value::Null);

        let contents = format!("/api/documents/acme/manual/{id}/content");
        let text = app
            .get(key, &format!("{contents}/digitized"))
            .await
            .expect(200);
        assert_eq!(text["format"], "raw");
        let text = text["content"].as_str().unwrap();
        assert!(text.contains("| Leaves | Ash, Elm, Maple | 50 |"), "{text}");
        assert_eq!(document["digitized_chars"], text.chars().count());
        let path = format!("/api/documents/acme/manual/{id}/download/original");
        let download = app.request(Method::GET, &path).bearer_auth(key);
        let download = download.send().await.unwrap();
        assert_eq!(
            download.headers()["content-disposition"],
            "attachment; filename*=UTF-8''word_sample.docx"
        );
        assert_eq!(download.bytes().await.unwrap(), original);
        app.get(key, &format!("{contents}/rewritten"))
            .await
            .expect(404);
        let path = format!("{contents}/rewritten?format=markdown");
        app.get(key, &path).await.expect(400);
        app.get(key, &format!("{contents}/digitized?format=html"))
            .await
            .expect(400);
        app.get(key, &format!("{contents}/extracted"))
            .await
            .expect(400);

        let same = upload(&app, key, "again.docx", original).await.expect(201);
        assert_eq!(same["duplicate_document_ids"], json!([id]));
        let stats = app.get(key, "/api/kb-stats/acme/manual").await.expect(200);
        assert_eq!(stats["document_count"], 2);
        let all = app.get(key, "/api/documents/acme/manual").await.expect(200);
        assert_eq!(
            all["documents"][0]["duplicate_document_ids"],
            json!([same["id"]])
        );

        digitized(&app, key, same["id"].as_str().unwrap()).await;
        let path = format!("/api/documents/acme/manual/{id}");
        let gone = app.delete(key, &path).await;
        assert_eq!(gone.expect(200), json!({"status": "deleted"}));
        app.get(key, &format!("{contents}/digitized"))
            .await
            .expect(404);
        let gone = app.delete(key, "/api/knowledgebases/acme/manual").await;
        assert_eq!(gone.expect(200), json!({"status": "deleted"}));
        assert_eq!(
            app.get(key, "/api/knowledgebases/acme").await.expect(200),
            json!([])
        );
        app.app.blobs.sweep().await.unwrap();
        for table in [
            "blobs",
            "knowledge_documents",
            "knowledge_contents",
            "knowledge_folders",
        ] {
            assert_eq!(rows(&app, table).await, 0, "{table}");
        }
    }
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_says_why() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let damaged = [&sample("pdf/multi_page.pdf")[..3_000], b"\n%%EOF"].concat();
    let made = upload(&app, &acme.key, "damaged.pdf", damaged)
        .await
        .expect(201);
    let document = digitized(&app, &acme.key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "failed", "{document}");
    let why = document["processing_error"].as_str().unwrap();
    assert!(why.starts_with("the document"), "{why}");
    let stats = app
        .get(&acme.key, "/api/kb-stats/acme/manual")
        .await
        .expect(200);
    assert_eq!(stats["error_count"], 1);
}

#[tokio::test]
async fn nothing_is_made_for_a_partner_that_does_not_exist() {
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.without_worker().start().await;
    for path in ["/api/knowledgebases/nobody", "/api/voices/nobody/empty"] {
        let form = fields(&[("name", "manual")]);
        let refused = post(&app, ADMIN_KEY, path, form).await;
        assert_eq!(refused.expect(404)["detail"], "Partner not found", "{path}");
    }
}

/// A file is never in memory as a whole, however many come at once, and one that is too large stops early.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_refused_while_it_comes() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| config.knowledge.max_file_bytes = 1_000_000)
        .without_worker()
        .start()
        .await;
    let acme = furnished(&app).await;
    let large = vec![b'a'; 3_000_000];
    let refused = upload(&app, &acme.key, "a.txt", large).await.expect(413);
    assert!(refused.to_string().contains("1000000 bytes"), "{refused}");
    upload(&app, &acme.key, "a.txt", vec![b'a'; 1_000_000])
        .await
        .expect(201);
    let form = fields(&[("folder", "texts")])
        .part("files", file("a.txt", vec![b'a'; 3_000_000]))
        .part("files", file("b.txt", "b"));
    let path = "/api/documents/acme/manual/files/batch";
    let batch = post(&app, &acme.key, path, form).await.expect(200);
    assert_eq!(batch["results"][1]["status"], "success", "{batch}");
    app.app.blobs.sweep().await.unwrap();
    assert_eq!(rows(&app, "blobs").await, 2);
}
