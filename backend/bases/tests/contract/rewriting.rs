//! What models make of the texts of documents.

use std::io::Cursor;

use colloquy_bases::Rewrite;
use colloquy_config::ModelConfig;
use url::Url;

use super::*;

const NOTES: &str =
    "# Lions\n\nSo, um, the lions, they eat meat.\n\n# Hours\n\nWe open at nine, you know.\n";

fn with(upstream: &Upstream) -> impl Fn(TestRoutesBuilder) -> TestRoutesBuilder {
    let models = |config: &mut Config| {
        upstream.offer(config);
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.section_tokens = 200;
    };
    move |builder| builder.config(models)
}

/// A document that is rewritten once its text is there.
async fn add(app: &App, key: &str, text: &str, more: &[(&'static str, &str)]) -> String {
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("auto_rewrite", "true"),
    ]);
    let add =
        |form: Form, (name, text): &(&'static str, &str)| form.text(*name, (*text).to_owned());
    let form = more
        .iter()
        .fold(form, add)
        .part("file", file("notes.md", text));
    let made = post(app, key, &format!("/api/documents/{BASE}"), form).await;
    made.expect(201)["id"].as_str().unwrap().to_owned()
}

async fn document(app: &App, key: &str, id: &str) -> Value {
    settled(app, key).await;
    super::document(app, key, id).await
}

on_each_database!(texts_are_rewritten, |database| {
    let upstream = Upstream::start().await;
    let app = start_working(with(&upstream)(builder(&database))).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    upstream.set_default(Api::Chat, Script::text("# Cats\n\nLions eat zebras."));
    let id = add(&app, key, NOTES, &[]).await;
    let made = document(&app, key, &id).await;
    assert_eq!(made["status"], "ready", "{made}");
    assert_eq!(made["rewrite_model"], "scripted-chat");
    assert_eq!(made["rewrite_sections"], 1);
    assert_ne!(made["rewrite_cost_usd"], "0", "{made}");
    assert_eq!(made["rewrite_cost_complete"], true);
    assert_eq!(made["file_draft"], Value::Null);
    assert!(made["file_rewritten"].is_string());
    assert_eq!(best(&app, key, "zebras").await, "notes.md");
    let asked = upstream.requests(Api::Chat).pop().unwrap().body;
    assert_eq!(asked["stream"], false);
    let told = asked["messages"].to_string();
    assert!(told.contains("they eat meat"), "{told}");

    // A long one goes section by section, and is put together in order.
    let long: String = (0..12)
        .map(|chapter| format!("# Chapter {chapter}\n\n{}\n\n", "Words of it. ".repeat(40)))
        .collect();
    let before = upstream.requests(Api::Chat).len();
    for part in 0..40 {
        upstream.script(Api::Chat, Script::text(format!("Section {part} of it.")));
    }
    let long = add(&app, key, &long, &[]).await;
    let made = document(&app, key, &long).await;
    assert_eq!(made["status"], "ready", "{made}");
    let sections = made["rewrite_sections"].as_u64().unwrap();
    assert!(sections >= 6, "{sections}");
    assert_eq!(
        upstream.requests(Api::Chat).len() - before,
        sections as usize
    );
    let path = format!("/api/documents/{BASE}/{long}/content/rewritten?format=markdown");
    let content = app.get(key, &path).await.expect(200);
    assert_eq!(content["format"], "markdown");
    let expected: Vec<String> = (0..sections)
        .map(|part| format!("Section {part} of it."))
        .collect();
    assert_eq!(content["content"], expected.join("\n\n"));
    upstream.forget_scripts();

    // All of them as one file.
    let path = format!("/api/documents/{BASE}/rewritten-bundle");
    let bundle = app.request(Method::GET, &path).bearer_auth(key);
    let bundle = bundle.send().await;
    assert_eq!(bundle.headers()["content-type"], "application/zip");
    let bundle = bundle.bytes().await.unwrap();
    let mut bundle = zip::ZipArchive::new(Cursor::new(bundle)).unwrap();
    let names = bundle.file_names().map(|name| name.unwrap().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let mut expected = vec![
        format!("{id}.md"),
        format!("{long}.md"),
        "documents_info.json".into(),
    ];
    expected.sort();
    assert_eq!(names, expected);
    let mut text = String::new();
    let mut first = bundle.by_name(&format!("{id}.md")).unwrap();
    std::io::Read::read_to_string(&mut first, &mut text).unwrap();
    assert_eq!(text, "# Cats\n\nLions eat zebras.");

    // Of both, whether they have final content or not.
    let bulk = format!("/api/bulk/rewrite/kb/{BASE}");
    let skipped = app.post(key, &bulk, Value::Null).await.expect(200);
    assert_eq!(
        (&skipped["queued"], &skipped["skipped"]),
        (&json!(0), &json!(2))
    );
    upstream.set_default(Api::Chat, Script::text("Dr. Ada says so."));
    let folder = format!("/api/bulk/rewrite/folder/{BASE}/texts");
    let all = format!("{folder}?skip_rewritten=false&content_type=video&person_name=Dr.%20Ada");
    let all = app.post(key, &all, Value::Null).await.expect(200);
    assert_eq!(all["queued"], 2, "{all}");
    let made = document(&app, key, &id).await;
    assert_eq!(made["content_type"], "video");
    assert_eq!(made["person_name"], "Dr. Ada");
    assert_eq!(best(&app, key, "zebras").await, "");
    assert_ne!(best(&app, key, "Ada").await, "");
    let asked = upstream.requests(Api::Chat).pop().unwrap().body;
    assert!(
        asked["messages"][0].to_string().contains("transcript"),
        "{asked}"
    );
});

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_paid_for_is_not_asked_again_by_itself() {
    let upstream = Upstream::start().await;
    let builder = with(&upstream)(builder(&TestDatabase::sqlite()));
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let asked = || upstream.requests(Api::Chat).len();
    for (fault, reason) in [
        (
            Fault::Status(400),
            "scripted-chat: answered 400: scripted refusal",
        ),
        // The message of a server that failed is the operator's.
        (Fault::Status(500), "scripted-chat: answered 500"),
        (
            Fault::ErrorFrame { after: 0 },
            "scripted-chat: reported a failure",
        ),
        (Fault::Status(429), "scripted-chat: too many requests"),
        (
            Fault::Malformed { after: 0 },
            "scripted-chat: malformed answer",
        ),
        (
            Fault::Finish("content_filter".to_owned()),
            "scripted-chat: its content filter stopped the answer",
        ),
        (
            Fault::Finish("length".to_owned()),
            "scripted-chat: the answer was truncated",
        ),
    ] {
        let before = asked();
        upstream.script(Api::Chat, Script::fault(fault.clone()));
        let id = add(&app, key, NOTES, &[]).await;
        let made = document(&app, key, &id).await;
        assert_eq!(made["rewrite_status"], "failed", "{fault:?}: {made}");
        assert_eq!(made["processing_error"], reason, "{fault:?}");
        app.works_off("bases.rewrite").await;
        assert_eq!(asked(), before + 1, "{fault:?}");
        if matches!(fault, Fault::Finish(_)) {
            assert_ne!(
                made["rewrite_cost_usd"], "0",
                "what was written was paid for"
            );
        }
    }

    // What was rewritten until then is the draft; the marks between its sections are not of it.
    let long: String = (0..12)
        .map(|chapter| format!("# Chapter {chapter}\n\n{}\n\n", "Words of it. ".repeat(40)))
        .collect();
    upstream.script(Api::Chat, Script::text("First section."));
    upstream.script(Api::Chat, Script::text("Second section."));
    upstream.script(Api::Chat, Script::fault(Fault::Status(500)));
    let draft = add(&app, key, &long, &[]).await;
    document(&app, key, &draft).await;
    let content = format!("/api/documents/{BASE}/{draft}/content/draft?format=markdown");
    let content = app.get(key, &content).await.expect(200);
    assert_eq!(content["content"], "First section.\n\nSecond section.");

    // Whoever wants it says so.
    let list = app
        .get(key, &format!("/api/documents/{BASE}"))
        .await
        .expect(200);
    let first = &list["documents"][0];
    let process = "/api/queue/process?partner=acme&kb=manual&action=rewrite";
    let body = json!({ "document": first });
    let queued = app.post(key, process, body).await.expect(200);
    assert_eq!(queued["status"], "queued");
    assert!(queued["job_id"].is_string());
    let made = document(&app, key, first["id"].as_str().unwrap()).await;
    assert_eq!(made["status"], "ready", "{made}");
    assert_eq!(made["processing_error"], Value::Null);

    // A process that died while a section was asked for leaves that unknown.
    let (before, id) = (asked(), first["id"].as_str().unwrap());
    let db = app.state.store.db();
    let asking = "UPDATE knowledge_rewrites SET asking = TRUE, done = 0, updated_at = 0, \
                  revision = (SELECT revision FROM knowledge_documents WHERE id = document_id)";
    db.execute(asking.to_owned()).await.unwrap();
    db.execute(format!(
        "UPDATE knowledge_documents SET rewriting = 'running' WHERE id = '{id}'"
    ))
    .await
    .unwrap();
    let transaction = app.state.store.begin().await.unwrap();
    let job = Rewrite {
        document: id.to_owned(),
    };
    jobs::enqueue(&app.state, &transaction, None, &job)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    app.state.kernel.jobs.wake();
    let path = format!("/api/document/{BASE}/{id}");
    eventually("the rewriting is given up", async || {
        let made = app.get(key, &path).await.expect(200);
        made["rewrite_status"] == "failed"
    })
    .await;
    assert_eq!(asked(), before);

    let nothing = json!({"document": {"id": "01890000-0000-7000-8000-000000000000"}});
    app.post(key, process, nothing).await.expect(404);
    let body = json!({"document": {"id": id}});
    let wrong = "/api/queue/process?partner=acme&kb=manual&action=dance";
    app.post(key, wrong, body.clone()).await.expect(400);
    let other = app.partner("other").await;
    app.post(&other.key, process, body).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_asked_when_nothing_was_asked_yet() {
    let upstream = Upstream::start().await;
    let away = Url::parse("http://127.0.0.1:1/v1").unwrap();
    let builder = with(&upstream)(builder(&TestDatabase::sqlite())).config(|config| {
        let model = ModelConfig {
            base_url: Some(away),
            ..ModelConfig::default()
        };
        config.models.insert("away".to_owned(), model);
        config.rewriting.model = Some("away".to_owned());
        config.rewriting.backup_model = Some("scripted-chat".to_owned());
    });
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    upstream.set_default(Api::Chat, Script::text("Rewritten."));
    let id = add(&app, key, NOTES, &[("model_tier", "economy")]).await;
    let made = document(&app, key, &id).await;
    assert_eq!(made["status"], "ready", "{made}");
    assert_eq!(made["rewrite_model"], "scripted-chat");
}

on_each_database!(
    a_text_beyond_its_limit_is_kept_and_not_accepted,
    |database| {
        let app = start_working(builder(&database)).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let limit = [
            ("character_limit", "10"),
            ("use_original_as_rewritten", "true"),
        ];
        let id = add(&app, key, NOTES, &limit).await;
        let made = document(&app, key, &id).await;
        assert_eq!(made["status"], "blocked", "{made}");
        let reason = made["processing_error"].as_str().unwrap();
        assert!(reason.starts_with("BUDGET_BLOCKED:"), "{reason}");
        assert_eq!(made["file_digitized"], Value::Null);
        let process = "/api/queue/process?partner=acme&kb=manual&character_limit=1000";
        let body = json!({"document": {"id": id}});
        app.post(key, process, body).await.expect(200);
        let made = document(&app, key, &id).await;
        assert_eq!(made["status"], "ready", "{made}");
        assert_eq!(made["processing_error"], Value::Null);
        assert_eq!(best(&app, key, "lions").await, "notes.md");
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_a_text_is_not_rewritten_and_says_so() {
    let app = start_working(builder(&TestDatabase::sqlite())).await;
    let acme = furnished(&app).await;
    let id = add(&app, &acme.key, NOTES, &[]).await;
    // At once: no attempt would find one.
    let made = document(&app, &acme.key, &id).await;
    assert_eq!(made["rewrite_status"], "failed", "{made}");
    let error = made["processing_error"].as_str().unwrap();
    assert!(error.contains("rewriting.model"), "{error}");
    let job = jobs::find::<Rewrite>(app.state.store.db(), &id).await;
    assert_eq!(job.unwrap().unwrap().attempts, 1);

    // Nor is it queued with others.
    let of_base = format!("/api/bulk/rewrite/kb/{BASE}");
    let of_folder = format!("/api/bulk/rewrite/folder/{BASE}/texts");
    let dry = format!("{of_base}?dry_run=true");
    let again = "/api/rewriting/acme/retry-failed".to_owned();
    let left = json!([{"document_id": id, "reason": error}]);
    for path in [of_base, of_folder, dry, again] {
        let bulk = app.post(&acme.key, &path, json!({})).await.expect(200);
        assert_eq!(bulk["queued"], 0, "{path}: {bulk}");
        assert_eq!(bulk["skipped"], 1, "{path}: {bulk}");
        assert_eq!(bulk["document_ids"], json!([]), "{path}: {bulk}");
        assert_eq!(bulk["skipped_documents"], left, "{path}: {bulk}");
    }
    let job = jobs::find::<Rewrite>(app.state.store.db(), &id).await;
    assert_eq!(job.unwrap().unwrap().attempts, 1);
}

/// A document tells why no model can be reached while the request is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_says_why_no_model_is_reached() {
    let builder = builder(&TestDatabase::sqlite()).config(|config| {
        let model = ModelConfig {
            base_url: Some(Url::parse("http://127.0.0.1:1/v1").unwrap()),
            ..ModelConfig::default()
        };
        config.models.insert("away".to_owned(), model);
        config.rewriting.model = Some("away".to_owned());
    });
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let id = add(&app, &acme.key, NOTES, &[]).await;
    let path = format!("/api/document/{BASE}/{id}");
    eventually("the first attempt has failed", async || {
        let made = app.get(&acme.key, &path).await.expect(200);
        made["processing_error"] == "away cannot be reached: connection refused"
    })
    .await;
}

/// A process that ended while a model was asked leaves an outcome that nobody knows. One request tries all of them again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_interrupted_has_no_known_cost_and_is_tried_again() {
    let upstream = Upstream::start().await;
    let builder = with(&upstream)(builder(&TestDatabase::sqlite()));
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    upstream.set_default(Api::Chat, Script::fault(Fault::Status(400)));
    let failed = add(&app, key, NOTES, &[]).await;
    let interrupted = add(&app, key, NOTES, &[]).await;
    let made = document(&app, key, &interrupted).await;
    assert_eq!(made["rewrite_status"], "failed", "{made}");
    let sql = format!(
        "UPDATE knowledge_rewrites SET asking = TRUE, complete = TRUE WHERE document_id = '{interrupted}'"
    );
    app.state.store.db().execute(sql).await.unwrap();
    let made = document(&app, key, &interrupted).await;
    assert_eq!(made["spend_display"], "n/a", "{made}");
    assert_eq!(made["rewrite_cost_complete"], false);

    // Whole bases say what they leave as it is.
    let empty = fields(&[("name", "Empty"), ("folder", "texts"), ("type", "file")]);
    let empty = post(&app, key, &format!("/api/documents/{BASE}/empty"), empty).await;
    let empty = empty.expect(201);
    let path = format!("/api/bulk/rewrite/kb/{BASE}?dry_run=true");
    let bulk = app.post(key, &path, json!({})).await.expect(200);
    let skipped =
        json!([{"document_id": empty["id"], "reason": "The document has no text to rewrite"}]);
    assert_eq!(
        (&bulk["skipped"], &bulk["skipped_documents"]),
        (&json!(1), &skipped)
    );

    upstream.set_default(Api::Chat, Script::text("Lions eat meat."));
    let path = "/api/rewriting/acme/retry-failed";
    let only = format!("{path}?kb=manual&interrupted=true");
    let again = app.post(key, &only, json!({})).await.expect(200);
    assert_eq!(again["document_ids"], json!([interrupted]), "{again}");
    let made = document(&app, key, &interrupted).await;
    assert_eq!(made["status"], "ready", "{made}");
    assert_eq!(
        made["rewrite_cost_complete"], false,
        "it may have been paid for twice"
    );
    let again = app.post(key, path, json!({})).await.expect(200);
    assert_eq!(again["document_ids"], json!([failed]), "{again}");
    assert_eq!(document(&app, key, &failed).await["status"], "ready");
    let none = app.post(key, path, json!({})).await.expect(200);
    assert_eq!(none["queued"], 0);
    let unknown = format!("{path}?kb=none");
    app.post(key, &unknown, json!({})).await.expect(404);
    let other = app.partner("other").await;
    app.post(&other.key, path, json!({})).await.expect(403);
}
