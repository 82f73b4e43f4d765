//! Knowledge bases: what comes in, what is made of it, how it goes.

/// A test on either database, of a setup that `start`s on it.
macro_rules! rule {
    ($name:ident, |$setup:ident: $kind:ty| $body:block) => {
        mod $name {
            use super::*;

            async fn body($setup: $kind) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body(<$kind>::start(&TestDatabase::sqlite()).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body(<$kind>::start(&TestDatabase::postgres().await).await).await;
            }
        }
    };
}

mod addresses;
mod admission;
mod batches;
mod bounds;
mod budgets;
mod channels;
mod characters;
mod complaints;
mod contract;
mod crashes;
mod damage;
mod embeddings;
mod histories;
mod locks;
mod memory;
mod neural;
mod outages;
mod pages;
mod races;
mod reading;
mod reconciliation;
mod recordings;
mod rewriting;
mod searching;
mod signs;
mod storage;
mod turns;
mod usage;
mod vectorstores;
mod videos;

use std::{fs, path::Path, time::Duration};

use colloquy::store::{Executor as _, statement};
use harness::{
    TestApp,
    app::{Answer, TestPartner, send},
    eventually, on_both_databases,
    process::Server,
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const BASE: &str = "acme/manual";

fn sample(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/documents");
    fs::read(folder.join(name)).unwrap()
}

/// A server that `tests/run unit` starts.
fn given(name: &str) -> String {
    let missing = format!("{name} is set by tests/run unit");
    std::env::var(name).map_err(|_| missing).unwrap()
}

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Part {
    Part::bytes(bytes.into()).file_name(name.to_owned())
}

fn fields(fields: &[(&'static str, &str)]) -> Form {
    let add =
        |form: Form, (name, text): &(&'static str, &str)| form.text(*name, (*text).to_owned());
    fields.iter().fold(Form::new(), add)
}

async fn post(app: &TestApp, key: &str, path: &str, form: Form) -> Answer {
    let request = app.request(Method::POST, path).bearer_auth(key);
    send(request.multipart(form)).await
}

async fn put(app: &TestApp, key: &str, path: &str, form: &[(&str, &str)]) -> Answer {
    let request = app.request(Method::PUT, path).bearer_auth(key);
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let kind = "application/x-www-form-urlencoded";
    send(request.header("Content-Type", kind).body(body.finish())).await
}

/// A partner with the base `manual` and the folder `texts` in it.
async fn furnished(app: &TestApp) -> TestPartner {
    let acme = app.partner("acme").await;
    let form = fields(&[("name", "manual"), ("expert_name", "Ada")]);
    let made = post(app, &acme.key, "/api/knowledgebases/acme", form).await;
    assert_eq!(made.expect(201)["embedding_status"], "none");
    let made = post(
        app,
        &acme.key,
        "/api/folders/acme/manual",
        fields(&[("name", "texts")]),
    );
    made.await.expect(201);
    acme
}

/// The same in a process.
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

async fn upload(app: &TestApp, key: &str, name: &str, bytes: Vec<u8>) -> Answer {
    let form = fields(&[("type", "file"), ("folder", "texts")]).part("file", file(name, bytes));
    post(app, key, "/api/documents/acme/manual", form).await
}

/// What was read of files that are refused is given up at once.
async fn nothing_is_pending(app: &TestApp) {
    let pending = "SELECT COUNT(*) FROM blobs WHERE state = 'pending'";
    eventually("refused files are given up", || async {
        app.app.store.db().fetch_count(pending).await.unwrap() == 0
    })
    .await;
}

/// The document, once its text was read or could not be.
async fn digitized(app: &TestApp, key: &str, id: &str) -> Value {
    let path = format!("/api/document/acme/manual/{id}");
    for _ in 0..600 {
        let document = app.get(key, &path).await.expect(200);
        if document["status"] != "digitizing" {
            return document;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the document was not digitized in time");
}

/// The base's embedding, once nothing of it waits.
async fn settled(app: &TestApp, key: &str) -> Value {
    let data = async || {
        let answer = app.get(key, &format!("/api/kb-data/{BASE}")).await;
        answer.expect(200)
    };
    for _ in 0..600 {
        let seen = data().await;
        let waits = |document: &Value| {
            ["digitize_status", "rewrite_status", "embedding_status"]
                .iter()
                .any(|step| matches!(document[step].as_str(), Some("queued" | "running")))
        };
        if !seen["documents"].as_array().unwrap().iter().any(waits) {
            // The answer before tells of the embedding as it was when the documents were first read.
            return data().await["embedding_info"].clone();
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the documents were not embedded in time");
}

async fn search(app: &TestApp, key: &str, question: &str) -> Value {
    search_answer(app, key, question).await.expect(200)
}

async fn search_answer(app: &TestApp, key: &str, question: &str) -> Answer {
    let body = json!({"partner": "acme", "kb": "manual", "user_message": question});
    app.post(key, "/api/rag-test/search", body).await
}

/// The names of the documents that a search finds.
async fn found(app: &TestApp, key: &str, question: &str) -> Vec<String> {
    let found = search(app, key, question).await;
    let results = found["combined_results"].as_array().unwrap();
    let name = |result: &Value| result["document_name"].as_str().unwrap().to_owned();
    results.iter().map(name).collect()
}

/// The name of the best document.
async fn best(app: &TestApp, key: &str, question: &str) -> String {
    let mut names = found(app, key, question).await;
    names.drain(..).next().unwrap_or_default()
}

async fn rows(app: &TestApp, table: &str) -> u64 {
    let db = app.app.store.db();
    db.fetch_count(format!("SELECT COUNT(*) FROM {table}"))
        .await
        .unwrap()
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

on_both_databases!(
    a_file_that_is_refused_leaves_the_others_alone,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        for (name, bytes, why) in [
            ("a.zip", b"PK\x03\x04".to_vec(), "archives"),
            (
                "a.exe",
                b"MZ".to_vec(),
                r#"files of the type \"exe\" are not supported"#,
            ),
            (
                "README",
                b"Read me.".to_vec(),
                "a file without an extension is not supported",
            ),
            ("a.pdf", b"plain text".to_vec(), "the name says PDF"),
            ("a.txt", Vec::new(), "empty"),
            ("a.pptx", sample("docx/word_sample.docx"), "PowerPoint"),
        ] {
            let refused = upload(&app, key, name, bytes).await.expect(400);
            let message = refused["detail"].to_string();
            assert!(message.contains(why), "{name}: {refused}");
        }
        let form = fields(&[("folder", "texts"), ("names", "First"), ("names", "")])
            .part("files", file("a.md", "# A\n\nOne."))
            .part("files", file("b.zip", "PK\x03\x04"))
            .part("files", file("c.txt", "Three."));
        let path = "/api/documents/acme/manual/files/batch";
        let batch = post(&app, key, path, form).await.expect(200);
        assert_eq!(
            batch["summary"],
            json!({"total": 3, "succeeded": 2, "failed": 1})
        );
        let status: Vec<&Value> = (0..3).map(|at| &batch["results"][at]["status"]).collect();
        assert_eq!(status, ["success", "error", "success"]);
        let first = batch["results"][0]["document_id"].as_str().unwrap();
        assert_eq!(digitized(&app, key, first).await["name"], "First");
        let third = batch["results"][2]["document_id"].as_str().unwrap();
        assert_eq!(digitized(&app, key, third).await["name"], "c.txt");
        nothing_is_pending(&app).await;
        app.app.blobs.sweep().await.unwrap();
        let empty = fields(&[("folder", "texts")]);
        assert_eq!(
            post(&app, key, path, empty).await.expect(400)["detail"][0]["field"],
            Value::Null
        );
    }
);

on_both_databases!(
    what_cannot_be_read_says_why,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
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
);

on_both_databases!(
    documents_are_written_and_renamed,
    |builder| builder.without_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
        let path = "/api/documents/acme/manual/empty";
        let made = post(&app, key, path, form).await.expect(201);
        assert_eq!(made["status"], "empty");
        let document = format!(
            "/api/documents/acme/manual/{}",
            made["id"].as_str().unwrap()
        );
        let content = format!("{document}/content/digitized");
        let written = put(&app, key, &content, &[("content", "Zwölf Boxkämpfer")]).await;
        assert_eq!(written.expect(200)["digitized_chars"], 16);
        let long = [
            ("content", "Zwölf Boxkämpfer jagen"),
            ("character_limit", "16"),
        ];
        let refused = put(&app, key, &content, &long).await.expect(403);
        assert_eq!(refused["detail"], "QUOTA_EXCEEDED:knowledge_chars");
        let kept = app.get(key, &content).await.expect(200);
        assert_eq!(kept["content"], "Zwölf Boxkämpfer");
        put(
            &app,
            key,
            &format!("{document}/content/draft"),
            &[("content", "x")],
        )
        .await
        .expect(400);

        let renamed = put(&app, key, &format!("{document}/name"), &[("name", "Plan")]).await;
        assert_eq!(renamed.expect(200)["name"], "Plan");
        put(&app, key, &format!("{document}/name"), &[("name", " ")])
            .await
            .expect(400);
        put(&app, key, &format!("{document}/type"), &[("type", "url")])
            .await
            .expect(200);
        put(&app, key, &format!("{document}/type"), &[("type", "tape")])
            .await
            .expect(400);
        let url = [("url", "https://a.example/b")];
        let renamed = put(&app, key, &format!("{document}/url"), &url)
            .await
            .expect(200);
        assert_eq!(
            (&renamed["type"], &renamed["url"]),
            (&json!("url"), &json!(url[0].1))
        );
        let url = [("url", "ftp://a.example")];
        put(&app, key, &format!("{document}/url"), &url)
            .await
            .expect(400);
    }
);

// A document that is being worked on goes when that has ended.
on_both_databases!(
    a_deletion_waits_for_work_that_runs,
    |builder| builder.quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
        let made = post(&app, &acme.key, "/api/documents/acme/manual/empty", form).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        let db = app.app.store.db();
        let mark = |step: &str| format!("UPDATE knowledge_documents SET digitizing = '{step}'");
        db.execute(mark("running")).await.unwrap();
        let document = format!("/api/documents/acme/manual/{id}");
        let path = format!("{document}?force=false");
        app.delete(&acme.key, &path).await.expect(409);
        let pending = app.delete(&acme.key, &document).await.expect(200);
        assert_eq!(pending["status"], "delete_pending");
        let process = "/api/queue/process?partner=acme&kb=manual";
        let body = json!({"document": {"id": id}});
        for action in ["digitize", "rewrite"] {
            let path = format!("{process}&action={action}");
            app.post(&acme.key, &path, body.clone()).await.expect(409);
        }
        let pending = app
            .delete(&acme.key, "/api/folders/acme/manual/texts")
            .await;
        let expected = json!({"status": "delete_pending", "pending": {"active_documents": 1}});
        assert_eq!(pending.expect(200), expected);
        let data = app.get(&acme.key, &format!("/api/kb-data/{BASE}")).await;
        let data = data.expect(200);
        assert_eq!(
            (&data["folders"], &data["pending_folder_deletions"]),
            (&json!([]), &json!(["texts"])),
            "{data}"
        );
        assert_eq!(data["name"], "manual");
        assert_eq!(data["folder_details"], json!([]));
        assert_eq!(data["embedding_info"]["embedded_document_count"], 0);
        assert_eq!(data["documents"][0]["id"], made["id"]);
        assert!(data["documents"][0]["deletion_requested_at"].is_string());
        let form = fields(&[("name", "More"), ("folder", "texts"), ("type", "file")]);
        let late = post(&app, &acme.key, "/api/documents/acme/manual/empty", form).await;
        late.expect(409);
        db.execute(mark("done")).await.unwrap();
        for _ in 0..200 {
            if rows(&app, "knowledge_folders").await == 0 {
                assert_eq!(rows(&app, "knowledge_documents").await, 0);
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("the folder is still there");
    }
);

on_both_databases!(
    bases_are_made_as_the_document_says,
    |builder| builder,
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let path = "/api/knowledgebases/acme";
        for (form, field) in [
            (vec![("expert_name", "Ada")], "name"),
            (vec![("name", "a/b")], "name"),
            (
                vec![("name", "b"), ("character_limit", "-1")],
                "character_limit",
            ),
            (vec![("name", "b"), ("token_limit", "1.5")], "token_limit"),
            (
                vec![("name", "b"), ("dollar_limit_usd", "0.123456789")],
                "dollar_limit_usd",
            ),
            (vec![("name", "b"), ("user_email", "nobody")], "user_email"),
            (vec![("name", "b"), ("colour", "red")], "colour"),
        ] {
            let refused = post(&app, key, path, fields(&form)).await.expect(400);
            assert!(refused.to_string().contains(field), "{form:?}: {refused}");
        }
        let form = fields(&[
            ("name", "知識 1"),
            ("character_limit", "0"),
            ("dollar_limit_usd", "1.50000001"),
            ("user_email", "a@b.example"),
        ]);
        post(&app, key, path, form).await.expect(201);
        post(&app, key, path, fields(&[("name", "manual")]))
            .await
            .expect(409);
        let listed = app.get(key, path).await.expect(200);
        let names: Vec<&Value> = (0..2).map(|at| &listed[at]["name"]).collect();
        assert_eq!(names, ["manual", "知識 1"]);
        let folders = "/api/folders/acme/%E7%9F%A5%E8%AD%98%201";
        assert_eq!(
            app.get(key, folders).await.expect(200),
            json!({"folders": []})
        );
        let types = send(app.request(Method::GET, "/api/content_types"))
            .await
            .expect(200);
        assert_eq!(types["content_types"][0]["id"], "auto");
    }
);

// Nobody reads what is another partner's, whatever the paths say.
on_both_databases!(
    bases_belong_to_their_partner,
    |builder| builder.without_worker(),
    |app| {
        let acme = furnished(&app).await;
        let made = upload(&app, &acme.key, "a.txt", b"secret".to_vec())
            .await
            .expect(201);
        let id = made["id"].as_str().unwrap();
        let other = app.partner("other").await;
        let form = fields(&[("name", "manual")]);
        post(&app, &other.key, "/api/knowledgebases/other", form)
            .await
            .expect(201);
        for partner in ["acme", "other"] {
            for path in [
                format!("/api/document/{partner}/manual/{id}"),
                format!("/api/documents/{partner}/manual/{id}/content/original"),
                format!("/api/documents/{partner}/manual/{id}/download/original"),
            ] {
                let answer = app.get(&other.key, &path).await;
                answer.expect(if partner == "acme" { 403 } else { 404 });
            }
        }
        let path = format!("/api/documents/other/manual/{id}");
        app.delete(&other.key, &path).await.expect(404);
        app.get(&acme.key, &format!("/api/document/acme/manual/{id}"))
            .await
            .expect(200);
    }
);

#[tokio::test]
async fn nothing_is_made_for_a_partner_that_does_not_exist() {
    let app = TestApp::builder(&harness::TestDatabase::sqlite());
    let app = app.without_worker().start().await;
    for path in ["/api/knowledgebases/nobody", "/api/voices/nobody/empty"] {
        let form = fields(&[("name", "manual")]);
        let refused = post(&app, harness::app::ADMIN_KEY, path, form).await;
        assert_eq!(refused.expect(404)["detail"], "Partner not found", "{path}");
    }
}

/// A file is never in memory as a whole, however many come at once, and one that is too large stops early.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_refused_while_it_comes() {
    let app = TestApp::builder(&harness::TestDatabase::sqlite())
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
