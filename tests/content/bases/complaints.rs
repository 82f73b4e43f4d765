//! What people complain of in other systems of this kind, once each.
//!
//! | complaint | here, unless it is below |
//! |---|---|
//! | jobs that are stuck for ever | `crashes`, `outages` |
//! | vectors of one model compared with those of another | `searching::another_model_takes_over` in `colloquy-bases` |
//! | memory that large documents and uploads take | `bounds`; the limits of children are tested in `colloquy-digitize` |
//! | texts that cost more than anybody allowed | `rewriting` and `budgets` in `colloquy-bases` |
//! | addresses inside that are fetched | `addresses::addresses_inside_are_not_fetched` |

use harness::{
    TestDatabase, eventually,
    upstream::{Api, Fault, Script, Upstream},
};
use reqwest::Body;
use test_routes::pdfs::scan;

use super::*;

async fn start() -> TestApp {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    builder.with_decoder().quick_worker().start().await
}

fn final_text() -> Form {
    fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
    ])
}

async fn add(app: &TestApp, key: &str, name: &str, text: &str) -> Answer {
    let form = final_text().part("file", file(name, text));
    post(app, key, &format!("/api/documents/{BASE}"), form).await
}

async fn document(app: &TestApp, key: &str, made: &Value) -> Value {
    let path = format!("/api/document/{BASE}/{}", id(made));
    app.get(key, &path).await.expect(200)
}

fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}

async fn documents(app: &TestApp, key: &str) -> usize {
    let all = app.get(key, &format!("/api/documents/{BASE}")).await;
    all.expect(200)["documents"].as_array().unwrap().len()
}

/// A job waits for ever for a model that never answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_answers_leaves_nothing_running() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::fault(Fault::Stall { after: 0 }));
    let app = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        upstream.offer(config);
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.section_ms = 1_000;
    });
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("auto_rewrite", "true"),
    ]);
    let form = form.part("file", file("notes.md", "# Lions\n\nLions sleep."));
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    let made = made.expect(201);
    settled(&app, key).await;
    let document = document(&app, key, &made).await;
    assert_eq!(document["rewrite_status"], "failed", "{document}");
    assert!(document["processing_error"].is_string(), "{document}");
}

/// A document that failed counts as one that was processed.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_no_success_anywhere() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(400)));
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.config(|config| upstream.embed(config, "scripted-embedder"));
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let damaged = [&sample("pdf/multi_page.pdf")[..3_000], b"\n%%EOF"].concat();
    let made = upload(&app, key, "damaged.pdf", damaged).await.expect(201);
    let unread = digitized(&app, key, id(&made)).await;
    let made = add(&app, key, "a.md", "Lions sleep.").await.expect(201);
    let info = settled(&app, key).await;
    let unfound = document(&app, key, &made).await;
    assert_eq!(unread["status"], "failed", "{unread}");
    assert_eq!(unfound["embedding_status"], "failed", "{unfound}");
    assert_ne!(info["last_update_status"], "success", "{info}");
    assert_eq!(
        (
            &info["embedded_document_count"],
            &info["failed_document_count"]
        ),
        (&json!(0), &json!(1)),
        "{info}"
    );
    let stats = app
        .get(key, &format!("/api/kb-stats/{BASE}"))
        .await
        .expect(200);
    assert_eq!(
        (&stats["error_count"], &stats["embedded_count"]),
        (&json!(2), &json!(0)),
        "{stats}"
    );
}

/// The hash of a file is kept before its bytes are, so that the next attempt passes for a duplicate and is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_transfer_broke_can_be_brought_again() {
    let app = start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let text = "Lions sleep for twenty hours.".repeat(100);
    let pieces = [
        Ok(text.clone()),
        Err(std::io::Error::other("the line is cut")),
    ];
    let body = Body::wrap_stream(futures_util::stream::iter(pieces));
    let form = final_text().part("file", Part::stream(body).file_name("lions.md"));
    let request = app.request(Method::POST, &format!("/api/documents/{BASE}"));
    let cut = request.bearer_auth(key).multipart(form).send().await;
    assert!(cut.is_err(), "the transfer was to break: {cut:?}");
    let made = add(&app, key, "lions.md", &text).await.expect(201);
    assert_eq!(made["duplicate_document_ids"], json!([]), "{made}");
    settled(&app, key).await;
    assert_eq!(best(&app, key, "lions").await, "lions.md");
    assert_eq!(documents(&app, key).await, 1);
}

/// What was found is deleted first and embedded again later, so that a failure between leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_cannot_be_embedded_again_is_found_as_it_was() {
    let upstream = Upstream::start().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.config(|config| upstream.embed(config, "scripted-embedder"));
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = add(&app, key, "a.md", "Lions sleep for twenty hours.").await;
    let made = made.expect(201);
    settled(&app, key).await;
    let whole = format!("/api/embedding/{BASE}/documents/{}", id(&made));
    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(400)));
    // Nothing has changed, and everything is to be made again.
    app.post(key, &whole, Value::Null).await.expect(200);
    settled(&app, key).await;
    assert_eq!(found(&app, key, "lions").await, ["a.md"]);
    upstream.set_default(Api::Embeddings, Script::default());
    app.post(key, &whole, Value::Null).await.expect(200);
    let info = settled(&app, key).await;
    assert_eq!(info["last_update_status"], "success", "{info}");
    assert_eq!(found(&app, key, "lions").await, ["a.md"]);
}

/// Files pass for the same by their names, and the same file by another name passes for a new one.
#[tokio::test(flavor = "multi_thread")]
async fn duplicates_are_told_by_content_within_a_base() {
    let app = start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[("name", "other")]);
    post(&app, key, "/api/knowledgebases/acme", form)
        .await
        .expect(201);
    let form = fields(&[("name", "texts")]);
    post(&app, key, "/api/folders/acme/other", form)
        .await
        .expect(201);
    let first = add(&app, key, "a.md", "Lions sleep.").await.expect(201);
    let same_name = add(&app, key, "a.md", "Lions do not sleep.").await;
    assert_eq!(same_name.expect(201)["duplicate_document_ids"], json!([]));
    let same_content = add(&app, key, "b.md", "Lions sleep.").await.expect(201);
    assert_eq!(
        same_content["duplicate_document_ids"],
        json!([first["id"]]),
        "{same_content}"
    );
    let form = final_text().part("file", file("a.md", "Lions sleep."));
    let elsewhere = post(&app, key, "/api/documents/acme/other", form).await;
    assert_eq!(elsewhere.expect(201)["duplicate_document_ids"], json!([]));
    // Told, and kept all the same.
    settled(&app, key).await;
    assert_eq!(documents(&app, key).await, 3);
}

/// A document of scanned pages becomes an empty text that nobody hears of.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_in_which_nothing_is_recognized_says_so() {
    let builder = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| config.knowledge.ocr_languages = vec!["xyz".to_owned()]);
    let app = builder.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "scan.pdf", scan()).await;
    let made = made.expect(201);
    let document = digitized(&app, key, id(&made)).await;
    assert_eq!(document["status"], "failed", "{document}");
    assert!(document["processing_error"].is_string(), "{document}");
    assert_eq!(document["digitized_chars"], Value::Null, "{document}");
}

/// Questions in other scripts than the Latin one have no words, and find nothing.
#[tokio::test(flavor = "multi_thread")]
async fn questions_in_every_script_find_their_document() {
    let app = start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let texts = [
        ("zh", "动物园上午九点开门，下午六点关门。", "几点开门？"),
        ("ja", "動物園は九時に開きます。", "動物園はいつ開きますか"),
        ("ko", "동물원은 아홉시에 문을 엽니다.", "동물원 문"),
        (
            "ar",
            "تفتح حديقة الحيوان في التاسعة صباحا.",
            "متى تفتح الحديقة؟",
        ),
        ("he", "גן החיות נפתח בתשע בבוקר.", "מתי נפתח גן החיות?"),
        ("hi", "चिड़ियाघर सुबह नौ बजे खुलता है।", "चिड़ियाघर कब खुलता है?"),
        (
            "ru",
            "Зоопарк открывается в девять утра.",
            "Когда открывается зоопарк?",
        ),
        ("th", "สวนสัตว์เปิดเวลาเก้าโมงเช้า", "สวนสัตว์เปิดกี่โมง"),
        (
            "el",
            "Ο ζωολογικός κήπος ανοίγει στις εννέα.",
            "Πότε ανοίγει ο κήπος;",
        ),
        ("signs", "Animals: 🦁 🦓", "🦓"),
    ];
    for (name, text, _) in texts {
        add(&app, key, &format!("{name}.md"), text)
            .await
            .expect(201);
    }
    settled(&app, key).await;
    for (name, _, question) in texts {
        let expected = format!("{name}.md");
        eventually(&format!("{question} finds {expected}"), async || {
            best(&app, key, question).await == expected
        })
        .await;
    }
}
