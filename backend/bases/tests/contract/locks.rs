//! Requests lock what they change in the order in which jobs do it: the budget of the base, the job of a document, and then the document. Those who
//! add to a base count what it has once they hold its budget.

use colloquy_bases::Discover;
use colloquy_kernel::jobs::{GivenUp, Job as _, Run};
use colloquy_store::Dialect;

use super::*;

/// Routes with a document that is ready, a key for it, and its id.
async fn ready(upstream: &Upstream) -> (App, String, String) {
    let text = Script::text("A text about animals, rewritten.");
    upstream.set_default(Api::Chat, text);
    let models = |config: &mut Config| {
        upstream.offer(config);
        upstream.embed(config, "scripted-embeddings");
        config.rewriting.model = Some("scripted-chat".to_owned());
    };
    let builder = builder(&TestDatabase::postgres().await).config(models);
    let app = start_working(builder).await;
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
    (app, key, id)
}

/// Waits until so many wait for locks.
async fn waiting(app: &App, number: u64) {
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("they wait for a lock", async || {
        app.state.store.db().fetch_count(sql).await.unwrap() == number
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_for_a_job_before_it_has_the_document() {
    let upstream = Upstream::start().await;
    let (app, key, id) = ready(&upstream).await;
    let named = json!({"document": {"id": id}});
    let process = "/api/queue/process?partner=acme&kb=manual&action=digitize";
    let bulk = format!("/api/bulk/rewrite/folder/{BASE}/texts?skip_rewritten=false");
    let embed = format!("/api/embedding/{BASE}/documents/{id}");
    for (kind, request, body) in [
        ("bases.digitize", process, named),
        ("bases.rewrite", &bulk, json!({})),
        ("bases.embed", &embed, json!({})),
    ] {
        // Its time is yet to come.
        let row = format!(
            "INSERT INTO work (id, kind, dedup_key, payload, state, run_at, attempts, again, fence, created_at, updated_at) \
             VALUES ('{kind}', '{kind}', '{id}', '{{\"document\":\"{id}\"}}', 'queued', 9000000000000, 0, FALSE, 0, 0, 0)"
        );
        app.state.store.db().execute(row).await.unwrap();
        let job = app.state.store.begin().await.unwrap();
        let lock = format!("UPDATE work SET fence = fence WHERE id = '{kind}'");
        assert_eq!(job.execute(lock).await.unwrap(), 1);
        let on_document = async {
            waiting(&app, 1).await;
            let sql =
                format!("UPDATE knowledge_documents SET revision = revision WHERE id = '{id}'");
            assert_eq!(job.execute(sql).await.unwrap(), 1, "{kind}");
            job.commit().await.unwrap();
        };
        let (answer, ()) = tokio::join!(app.post(&key, request, body), on_document);
        answer.expect(200);
        settled(&app, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_the_end_of_a_job_wait_for_each_other() {
    let upstream = Upstream::start().await;
    let (app, key, id) = ready(&upstream).await;
    let answers = upstream.hold(Api::Embeddings);
    let embed = format!("/api/embedding/{BASE}/documents/{id}");
    let before = upstream.requests(Api::Embeddings).len();
    app.post(&key, &embed, json!({})).await.expect(200);
    eventually("vectors are asked for", async || {
        upstream.requests(Api::Embeddings).len() > before
    })
    .await;
    // The job ends once it has its row.
    let held = app.state.store.begin().await.unwrap();
    let lock = "UPDATE work SET fence = fence WHERE kind = 'bases.embed' AND state = 'running'";
    assert_eq!(held.execute(lock).await.unwrap(), 1);
    drop(answers);
    waiting(&app, 1).await;
    let let_go = async {
        waiting(&app, 2).await;
        held.commit().await.unwrap();
    };
    let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
    let content = [("content", "Another text.")];
    let (written, ()) = tokio::join!(put(&app, &key, &path, &content), let_go);
    written.expect(200);
    settled(&app, &key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_scan_waits_for_whoever_deletes_the_folder() {
    let app = start(&TestDatabase::postgres().await).await;
    furnished(&app).await;
    let db = app.state.store.db();
    let follow = "INSERT INTO knowledge_channels (folder_id, base_id, channel_url, alias, enabled, model_tier, status, created_at) \
                  SELECT f.id, f.base_id, '@zoo', '@zoo', TRUE, 'standard', 'pending', 1 FROM knowledge_folders f RETURNING folder_id";
    let folder = db.fetch_scalar::<String>(follow).await.unwrap().unwrap();
    // The second scan finds its folder deleted.
    for is_given_up in [true, false] {
        let sync = "UPDATE knowledge_channels SET status = 'syncing'";
        assert_eq!(db.execute(sync).await.unwrap(), 1);
        let held = app.state.store.begin().await.unwrap();
        // A deletion has the budget, then the folder with its row of changes, and then the channel.
        let lock = "SELECT 1 FROM quotas WHERE purpose = 'budget' FOR UPDATE";
        held.execute(lock).await.unwrap();
        let delete = "UPDATE knowledge_folders SET deletion_requested_at = 1";
        assert_eq!(held.execute(delete).await.unwrap(), 1);
        let on_channel = async {
            waiting(&app, 1).await;
            let stop = "UPDATE knowledge_channels SET enabled = FALSE";
            assert_eq!(held.execute(stop).await.unwrap(), 1);
            held.commit().await.unwrap();
        };
        let job = Discover {
            folder: folder.clone(),
        };
        let run = Run {
            id: String::new(),
            fence: 0,
            attempt: 1,
        };
        let bases = app.state.bases.clone();
        let end = async {
            match is_given_up {
                true => job.give_up(bases, run, GivenUp::Failed).await.unwrap(),
                false => drop(job.run(bases, run).await.unwrap()),
            }
        };
        tokio::join!(end, on_channel);
        let ended = "SELECT COUNT(*) FROM knowledge_channels WHERE status <> 'syncing'";
        assert_eq!(db.fetch_count(ended).await.unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_comes_while_its_folder_is_deleted_counts_no_more() {
    let app = start(&TestDatabase::postgres().await).await;
    let key = furnished(&app).await.key;
    let folder = fields(&[("name", "more")]);
    post(&app, &key, "/api/folders/acme/manual", folder)
        .await
        .expect(201);
    let form = fields(&[
        ("type", "url"),
        ("folder", "more"),
        ("url", "https://example.com/"),
    ]);
    post(&app, &key, &format!("/api/documents/{BASE}"), form)
        .await
        .expect(201);
    let held = app.state.store.begin().await.unwrap();
    let comes = "UPDATE knowledge_documents SET folder_id = (SELECT id FROM knowledge_folders WHERE name = 'texts')";
    assert_eq!(held.execute(comes).await.unwrap(), 1);
    let let_go = async {
        waiting(&app, 1).await;
        held.commit().await.unwrap();
    };
    let path = "/api/folders/acme/manual/texts";
    let (deleted, ()) = tokio::join!(app.delete(&key, path), let_go);
    deleted.expect(200);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_and_a_document_wait_for_a_change_of_the_partner_first() {
    let app = start(&TestDatabase::postgres().await).await;
    let key = furnished(&app).await.key;
    let folder = fields(&[("name", "more")]);
    let document = fields(&[
        ("type", "url"),
        ("folder", "texts"),
        ("url", "https://example.com/"),
    ]);
    let documents = format!("/api/documents/{BASE}");
    for (path, form) in [("/api/folders/acme/manual", folder), (&documents, document)] {
        let held = app.state.store.begin().await.unwrap();
        let lock = "SELECT 1 FROM partners WHERE id = 'acme' FOR UPDATE";
        held.execute(lock).await.unwrap();
        let on_base = async {
            waiting(&app, 1).await;
            // Nothing below the partner is locked by whoever waits for it.
            let lock = "SELECT 1 FROM knowledge_bases FOR UPDATE";
            held.execute(lock).await.unwrap();
            held.commit().await.unwrap();
        };
        let (made, ()) = tokio::join!(post(&app, &key, path, form), on_base);
        made.expect(201);
    }
}

/// Brings a document or a folder in one of three ways, and returns true if there was room for it.
async fn is_taken(app: &App, key: &str, way: &str, name: &str) -> bool {
    let url = format!("https://example.com/{name}");
    let documents = format!("/api/documents/{BASE}");
    let made = match way {
        "batch" => {
            let body = json!({"folder": "texts", "urls": [url]});
            let made = app.post(key, &format!("{documents}/batch"), body).await;
            return made.expect(200)["summary"]["succeeded"] == 1;
        }
        "document" => {
            let form = fields(&[("type", "url"), ("folder", "texts"), ("url", &url)]);
            post(app, key, &documents, form).await
        }
        _ => {
            let form = fields(&[("name", name)]);
            post(app, key, "/api/folders/acme/manual", form).await
        }
    };
    let status = made.status.as_u16();
    assert!([201, 409].contains(&status), "{}", made.text);
    status == 201
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_at_once_is_no_more_than_a_base_may_have() {
    for way in ["document", "batch", "folder"] {
        let builder = builder(&TestDatabase::postgres().await).config(|config| {
            config.knowledge.max_documents = 1;
            config.knowledge.max_folders = 2;
        });
        let app = start_by(builder).await;
        let key = furnished(&app).await.key;
        // Each of them locks this last, once it has counted what the base has.
        let held = app.state.store.begin().await.unwrap();
        let lock = "SELECT 1 FROM partner_storage WHERE partner = 'acme' FOR UPDATE";
        assert_eq!(held.execute(lock).await.unwrap(), 1, "{way}");
        let let_go = async {
            waiting(&app, 2).await;
            held.commit().await.unwrap();
        };
        let (first, second, ()) = tokio::join!(
            is_taken(&app, &key, way, "first"),
            is_taken(&app, &key, way, "second"),
            let_go
        );
        assert_ne!(first, second, "{way}");
    }
}

on_each_database!(
    bases_that_come_at_once_are_no_more_than_a_partner_may_have,
    |database| {
        let builder = builder(&database).config(|config| config.knowledge.max_bases = 2);
        let app = start_by(builder).await;
        let key = furnished(&app).await.key;
        let create = async |name: &str| {
            let form = fields(&[("name", name)]);
            let made = post(&app, &key, "/api/knowledgebases/acme", form).await;
            made.status.as_u16()
        };
        // On PostgreSQL each of them locks this last, once it has counted what the partner has. On SQLite transactions are in one line.
        let held = app.state.store.begin().await.unwrap();
        let is_postgres = held.dialect() == Dialect::Postgres;
        if is_postgres {
            let lock = "SELECT 1 FROM partner_storage WHERE partner = 'acme' FOR UPDATE";
            assert_eq!(held.execute(lock).await.unwrap(), 1);
        }
        let let_go = async {
            if is_postgres {
                waiting(&app, 2).await;
            }
            held.commit().await.unwrap();
        };
        let (first, second, ()) = tokio::join!(create("first"), create("second"), let_go);
        let mut statuses = [first, second];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
    }
);
