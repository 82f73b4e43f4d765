//! Requests lock what they change in the order in which jobs do it: the job of a document, and then the document.

use harness::{
    TestDatabase, eventually,
    upstream::{Api, Script, Upstream},
};

use super::*;

/// A job that has its row, and goes on to the document.
async fn does_not_wait_for(
    app: &TestApp,
    key: &str,
    kind: &str,
    id: &str,
    request: &str,
    body: Value,
) {
    let db = app.app.store.db();
    // Its time is yet to come.
    let row = format!(
        "INSERT INTO work (id, kind, dedup_key, payload, state, run_at, attempts, again, fence, created_at, updated_at) \
         VALUES ('{kind}', '{kind}', '{id}', '{{\"document\":\"{id}\"}}', 'queued', 9000000000000, 0, FALSE, 0, 0, 0)"
    );
    db.execute(row).await.unwrap();
    let job = app.app.store.begin().await.unwrap();
    let lock = format!("UPDATE work SET fence = fence WHERE id = '{kind}'");
    assert_eq!(job.execute(lock).await.unwrap(), 1);
    let on_document = async {
        eventually("the request waits for the job", async || {
            let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            db.fetch_count(sql).await.unwrap() > 0
        })
        .await;
        let sql = format!("UPDATE knowledge_documents SET revision = revision WHERE id = '{id}'");
        assert_eq!(job.execute(sql).await.unwrap(), 1, "{kind}");
        job.commit().await.unwrap();
    };
    let (answer, ()) = tokio::join!(app.post(key, request, body), on_document);
    answer.expect(200);
    settled(app, key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_for_a_job_before_it_has_the_document() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::text("A text about animals, rewritten."));
    let models = |config: &mut colloquy::Config| {
        upstream.offer(config);
        upstream.embed(config, "scripted-embeddings");
        config.rewriting.model = Some("scripted-chat".to_owned());
    };
    let app = TestApp::builder(&TestDatabase::postgres().await).config(models);
    let app = app.with_decoder().quick_worker().start().await;
    let key = furnished(&app).await.key;
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file("animals.txt", "A text about animals."));
    let made = post(&app, &key, &format!("/api/documents/{BASE}"), form).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    settled(&app, &key).await;
    let named = json!({"document": {"id": id}});
    let process = "/api/queue/process?partner=acme&kb=manual&action=digitize";
    let bulk = format!("/api/bulk/rewrite/folder/{BASE}/texts?skip_rewritten=false");
    let embed = format!("/api/embedding/{BASE}/documents/{id}");
    for (kind, request, body) in [
        ("bases.digitize", process, named),
        ("bases.rewrite", &bulk, json!({})),
        ("bases.embed", &embed, json!({})),
    ] {
        does_not_wait_for(&app, &key, kind, &id, request, body).await;
    }
}
