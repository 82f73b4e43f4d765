//! What tests ask of knowledge bases, at routes or at a server; and none, for tests that are not about them.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use axum::http::Method;
use colloquy_accounts::PartnerId;
use colloquy_knowledge::{KnowledgeBases, KnowledgeSource, MissingBase, Reader};
use colloquy_store::Executor as _;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use support::{eventually, until};

use crate::{Answer, TestClient, TestPartner, TestWork};

/// The base of most tests.
pub const BASE: &str = "acme/manual";

/// A text of a document.
pub const LIONS: &str = "# Lions\n\nLions eat meat.\n\n## Sleep\n\nThey sleep for twenty hours.\n";

/// A text of another one.
pub const HOURS: &str = "# Opening hours\n\nThe zoo opens at nine and closes at six.\n";

/// More than two pages of a list of documents.
pub const DOCUMENTS: usize = 140;

/// No partner has a knowledge base.
#[derive(Debug)]
pub struct NoBases;

#[async_trait]
impl KnowledgeBases for NoBases {
    fn open(&self, name: &str, _: Reader<'_>) -> Arc<dyn KnowledgeSource> {
        Arc::new(MissingBase(name.to_owned()))
    }

    async fn exists(&self, _: &PartnerId, _: &str) -> anyhow::Result<bool> {
        Ok(false)
    }
}

/// A document of the tests.
pub fn sample(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/documents");
    fs::read(folder.join(name)).expect("a document")
}

/// A file for a form.
pub fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Part {
    Part::bytes(bytes.into()).file_name(name.to_owned())
}

/// A form with these fields.
pub fn fields(fields: &[(&'static str, &str)]) -> Form {
    let add =
        |form: Form, (name, text): &(&'static str, &str)| form.text(*name, (*text).to_owned());
    fields.iter().fold(Form::new(), add)
}

/// `POST` of a form.
pub async fn post(client: &TestClient, key: &str, path: &str, form: Form) -> Answer {
    client.form(key, Method::POST, path, form).await
}

/// `PUT` of fields.
pub async fn put(client: &TestClient, key: &str, path: &str, form: &[(&str, &str)]) -> Answer {
    client.fields(key, Method::PUT, path, form).await
}

/// A partner with the base `manual` and the folder `texts` in it.
pub async fn furnished(client: &TestClient) -> TestPartner {
    let acme = client.partner("acme").await;
    let form = fields(&[("name", "manual"), ("expert_name", "Ada")]);
    let made = post(client, &acme.key, "/api/knowledgebases/acme", form).await;
    assert_eq!(made.expect(201)["embedding_status"], "none");
    let made = post(
        client,
        &acme.key,
        "/api/folders/acme/manual",
        fields(&[("name", "texts")]),
    );
    made.await.expect(201);
    acme
}

/// Brings a file.
pub async fn upload(client: &TestClient, key: &str, name: &str, bytes: Vec<u8>) -> Answer {
    let form = fields(&[("type", "file"), ("folder", "texts")]).part("file", file(name, bytes));
    post(client, key, "/api/documents/acme/manual", form).await
}

/// Brings a document whose text is its final content, and returns its id.
pub async fn add(client: &TestClient, key: &str, name: &str, text: &str) -> String {
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("name", name),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file("text.md", text));
    let made = post(client, key, &format!("/api/documents/{BASE}"), form).await;
    made.expect(201)["id"].as_str().expect("an id").to_owned()
}

/// The document.
pub async fn document(client: &TestClient, key: &str, id: &str) -> Value {
    let path = format!("/api/document/{BASE}/{id}");
    client.get(key, &path).await.expect(200)
}

/// The document, once its text was read or could not be.
pub async fn digitized(client: &TestClient, key: &str, id: &str) -> Value {
    until(
        "the document is digitized",
        |document: &Value| document["status"] != "digitizing",
        async || document(client, key, id).await,
    )
    .await
}

/// The text that was made of a document.
pub async fn text_of(client: &TestClient, key: &str, id: &str) -> String {
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let content = client.get(key, &content).await.expect(200);
    content["content"]
        .as_str()
        .expect("a text")
        .trim()
        .to_owned()
}

/// The base's embedding, once nothing of it waits.
pub async fn settled(client: &TestClient, key: &str) -> Value {
    let data = async || {
        let answer = client.get(key, &format!("/api/kb-data/{BASE}")).await;
        answer.expect(200)
    };
    let waits = |document: &Value| {
        ["digitize_status", "rewrite_status", "embedding_status"]
            .iter()
            .any(|step| matches!(document[step].as_str(), Some("queued" | "running")))
    };
    let nothing_waits = |seen: &Value| {
        !seen["documents"]
            .as_array()
            .expect("documents")
            .iter()
            .any(waits)
    };
    until("the documents are embedded", nothing_waits, data).await;
    // The answer before tells of the embedding as it was when the documents were first read.
    data().await["embedding_info"].take()
}

/// What a search finds.
pub async fn search(client: &TestClient, key: &str, question: &str) -> Value {
    search_answer(client, key, question).await.expect(200)
}

/// The answer to a search.
pub async fn search_answer(client: &TestClient, key: &str, question: &str) -> Answer {
    let body = json!({"partner": "acme", "kb": "manual", "user_message": question});
    client.post(key, "/api/rag-test/search", body).await
}

/// The names of the documents that a search finds.
pub async fn found(client: &TestClient, key: &str, question: &str) -> Vec<String> {
    let found = search(client, key, question).await;
    let results = found["combined_results"].as_array().expect("results");
    let name = |result: &Value| result["document_name"].as_str().expect("a name").to_owned();
    results.iter().map(name).collect()
}

/// The name of the best document.
pub async fn best(client: &TestClient, key: &str, question: &str) -> String {
    let mut names = found(client, key, question).await;
    names.drain(..).next().unwrap_or_default()
}

/// Waits until a search finds the document of this name first, or none.
pub async fn finds(client: &TestClient, key: &str, question: &str, name: &str) {
    let what = format!("{question} finds {name:?}");
    eventually(&what, async || best(client, key, question).await == name).await;
}

/// Makes so many documents without content, of which every third one has one of two addresses. Returns their ids in their order.
pub async fn add_many(bring: impl AsyncFn(Form) -> Answer) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..DOCUMENTS {
        let name = format!("Document {number}");
        let url = format!("https://example.org/{}", number % 2);
        let mut form = vec![("name", name.as_str()), ("folder", "texts")];
        match number % 3 {
            0 => form.extend([("type", "url"), ("url", url.as_str())]),
            _ => form.push(("type", "file")),
        }
        let made = bring(fields(&form)).await.expect(201);
        ids.push(made["id"].as_str().expect("an id").to_owned());
    }
    ids
}

/// What was read of files that are refused is given up at once.
pub async fn nothing_is_pending(work: &TestWork) {
    eventually("refused files are given up", async || {
        rows(work, "blobs WHERE state = 'pending'").await == 0
    })
    .await;
}

/// How many rows a table has; conditions may follow its name.
pub async fn rows(work: &TestWork, table: &str) -> u64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    work.store().db().fetch_count(sql).await.expect("a number")
}
