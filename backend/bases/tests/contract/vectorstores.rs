//! Final content at a vector store elsewhere.

mod clocks;

use support::patience;
use test_routes::vectorstores::{Failure, Operation, VectorStores};

use super::*;

const SYNC: &str = "/api/vectorstore-sync/acme/manual";

/// Routes with a vector store, and the base `manual`.
struct Synced {
    app: App,
    service: VectorStores,
    key: String,
}

impl Synced {
    /// The sync is on, in real time: the service has that of its machine, by which what it made is found, and requests keep to a rate.
    async fn start(database: &TestDatabase) -> Self {
        Self::with(builder(database).real_time()).await
    }

    /// Routes that were set up so far.
    async fn with(builder: TestRoutesBuilder) -> Self {
        let service = VectorStores::start().await;
        let builder = builder.config(|config| service.offer(config));
        let app = start_working(builder).await;
        let key = furnished(&app).await.key;
        let synced = Self { app, service, key };
        synced.set(json!({"vectorstore_sync_enabled": true})).await;
        synced
    }

    async fn set(&self, settings: Value) {
        let body = json!({"settings": settings});
        let answer = self.app.put(ADMIN_KEY, "/api/partners/acme", body);
        answer.await.expect(200);
    }

    /// Uploads a text that is final at once.
    async fn add(&self, name: &str, text: &str) -> String {
        let form = fields(&[
            ("type", "file"),
            ("folder", "texts"),
            ("use_original_as_rewritten", "true"),
        ]);
        let form = form.part("file", file(name, text));
        let path = format!("/api/documents/{BASE}");
        let made = post(&self.app, &self.key, &path, form).await.expect(201);
        let id = made["id"].as_str().unwrap().to_owned();
        eventually("its final content is there", async || {
            self.document(&id).await["status"] == "ready"
        })
        .await;
        id
    }

    /// The base and its folder again, of those the ones that are not there.
    async fn furnish(&self) {
        for (path, name) in [
            ("/api/knowledgebases/acme", "manual"),
            ("/api/folders/acme/manual", "texts"),
        ] {
            let form = fields(&[("name", name)]);
            let made = post(&self.app, &self.key, path, form).await;
            assert!(matches!(made.status.as_u16(), 201 | 409), "{path}");
        }
    }

    async fn document(&self, id: &str) -> Value {
        let path = format!("/api/document/{BASE}/{id}");
        self.app.get(&self.key, &path).await.expect(200)
    }

    /// Writes another final content.
    async fn rewrite(&self, id: &str, text: &str) {
        let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
        put(&self.app, &self.key, &path, &[("content", text)])
            .await
            .expect(200);
    }

    async fn state(&self) -> Value {
        self.app.get(ADMIN_KEY, SYNC).await.expect(200)
    }

    async fn post(&self, action: &str) -> Answer {
        let path = format!("{SYNC}/{action}");
        self.app.post(ADMIN_KEY, &path, json!({})).await
    }

    /// What is known of the sync, once it is so far.
    async fn becomes(&self, status: &str) -> Value {
        let what = format!("the sync becomes {status}");
        eventually(&what, async || self.state().await["status"] == status).await;
        self.state().await
    }

    /// What is searched, once the sync has done all it can.
    async fn searched(&self) -> Vec<String> {
        self.becomes("synced").await;
        self.service.searched()
    }

    fn count(&self, operation: Operation) -> usize {
        self.service.count(operation)
    }
}

rule!(final_content_is_searched_elsewhere, |synced: Synced| {
    let id = synced.add("Animals.md", "# Animals\n\nThey eat hay.").await;
    assert_eq!(synced.searched().await, ["# Animals\n\nThey eat hay.\n"]);
    let state = synced.state().await;
    let counts = json!({"documents": 1, "synced": 1, "pending": 0, "failed": 0, "missing": 0, "removing": 0});
    assert_eq!(state["counts"], counts);
    assert_eq!(
        (
            &state["enabled"],
            &state["configured"],
            &state["last_error"]
        ),
        (&json!(true), &json!(true), &Value::Null)
    );
    let document = &state["documents"][0];
    assert_eq!(document["document_id"], id);
    assert_eq!(document["status"], "synced");
    let stores = synced.service.stores();
    let (store_id, store) = stores.iter().next().unwrap();
    assert_eq!(state["vector_store_id"], *store_id);
    assert_eq!(store.name, BASE);
    let (file_id, attributes) = store.files.iter().next().unwrap();
    assert_eq!(document["file_id"], *file_id);
    assert_eq!(attributes["document_id"], id);
    assert_eq!(attributes["name"], "Animals.md");
    assert_eq!(attributes["folder"], "texts");
    assert_eq!(attributes["knowledge_base"], "manual");
    // Whoever sees the base sees how far it is, without ids.
    let path = format!("/api/kb-data/{BASE}");
    let data = synced.app.get(&synced.key, &path).await.expect(200);
    assert_eq!(data["vectorstore_sync"]["status"], "synced");
    assert_eq!(data["vectorstore_sync"]["counts"], counts);
    assert_eq!(data["vectorstore_sync"]["vector_store_id"], Value::Null);
    // The same content again changes nothing.
    synced.rewrite(&id, "# Animals\n\nThey eat hay.\n").await;
    assert_eq!(synced.searched().await.len(), 1);
    assert_eq!(synced.count(Operation::Upload), 1);
    assert_eq!(synced.count(Operation::Attach), 1);
    assert_eq!(synced.count(Operation::Create), 1);
});

rule!(
    what_is_off_is_refused_and_sends_nothing,
    |synced: Synced| {
        synced.set(json!({})).await;
        synced.add("Animals.md", "They eat hay.").await;
        let state = synced.state().await;
        assert_eq!(
            (&state["status"], &state["enabled"]),
            (&json!("disabled"), &json!(false))
        );
        assert_eq!(state["counts"]["missing"], 1);
        let path = format!("/api/kb-data/{BASE}");
        let data = synced.app.get(&synced.key, &path).await.expect(200);
        assert_eq!(data["vectorstore_sync"], Value::Null);
        for action in ["backfill", "retry-failed"] {
            let refused = synced.post(action).await.expect(409);
            assert!(
                refused["detail"].as_str().unwrap().contains("switched off"),
                "{refused}"
            );
        }
        // It is for administrators alone.
        synced.app.get(&synced.key, SYNC).await.expect(403);
        for action in ["backfill", "retry-failed"] {
            let path = format!("{SYNC}/{action}");
            let refused = synced.app.post(&synced.key, &path, json!({})).await;
            refused.expect(403);
        }
        for path in [
            "/api/vectorstore-sync/acme/nothing",
            "/api/vectorstore-sync/nobody/manual",
        ] {
            synced.app.get(ADMIN_KEY, path).await.expect(404);
        }
        assert!(
            synced
                .service
                .asked()
                .iter()
                .all(|it| it.operation == Operation::ListStores)
        );
    }
);

on_each_database!(a_server_without_a_vector_store_says_so, |database| {
    let app = start(&database).await;
    furnished(&app).await;
    let settings = json!({"settings": {"vectorstore_sync_enabled": true}});
    app.put(ADMIN_KEY, "/api/partners/acme", settings)
        .await
        .expect(200);
    let state = app.get(ADMIN_KEY, SYNC).await.expect(200);
    assert_eq!(
        (&state["configured"], &state["status"]),
        (&json!(false), &json!("disabled"))
    );
    let refused = app
        .post(ADMIN_KEY, &format!("{SYNC}/backfill"), json!({}))
        .await
        .expect(409);
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("no vector store"),
        "{refused}"
    );
});

rule!(
    a_base_that_is_being_deleted_is_not_synced,
    |synced: Synced| {
        synced.add("Animals.md", "They eat hay.").await;
        synced.searched().await;
        let running = "UPDATE knowledge_documents SET rewriting = 'running'";
        let db = synced.app.state.store.db();
        db.execute(running).await.unwrap();
        let path = format!("/api/knowledgebases/{BASE}");
        let pending = synced.app.delete(&synced.key, &path).await.expect(200);
        assert_eq!(pending["status"], "delete_pending");
        for action in ["backfill", "retry-failed"] {
            let refused = synced.post(action).await.expect(409);
            assert!(
                refused["detail"]
                    .as_str()
                    .unwrap()
                    .contains("being deleted"),
                "{refused}"
            );
        }
    }
);

rule!(
    a_backfill_brings_everything_and_nothing_twice,
    |synced: Synced| {
        synced.set(json!({})).await;
        for number in 0..3 {
            let text = format!("Animal {number} eats hay.");
            synced.add(&format!("{number}.md"), &text).await;
        }
        synced.set(json!({"vectorstore_sync_enabled": true})).await;
        let state = synced.state().await;
        assert_eq!(
            (&state["status"], &state["counts"]["missing"]),
            (&json!("incomplete"), &json!(3))
        );
        let queued = synced.post("backfill").await.expect(200);
        assert_eq!(queued, json!({"status": "queued", "queued": 3}));
        let all = [
            "Animal 0 eats hay.\n",
            "Animal 1 eats hay.\n",
            "Animal 2 eats hay.\n",
        ];
        assert_eq!(synced.searched().await, all);
        // Whatever is there stays.
        let looked = synced.count(Operation::ReadFile);
        assert_eq!(synced.post("backfill").await.expect(200)["queued"], 3);
        assert_eq!(synced.searched().await, all);
        assert_eq!(synced.count(Operation::ReadFile), looked + 3);
        assert_eq!(synced.count(Operation::Upload), 3);
        assert_eq!(synced.count(Operation::Attach), 3);
        // What somebody has deleted there comes back, and nothing else is sent.
        let lost = synced.service.files().into_keys().next().unwrap();
        synced.service.lose_file(&lost);
        synced.post("backfill").await.expect(200);
        assert_eq!(synced.searched().await, all);
        assert_eq!(synced.count(Operation::Upload), 4);
        assert_eq!(synced.service.files().len(), 3);
        // So does a vector store, with the files that are there already.
        synced.service.lose_stores();
        synced.post("backfill").await.expect(200);
        assert_eq!(synced.searched().await, all);
        assert_eq!(synced.count(Operation::Upload), 4);
        assert_eq!(synced.count(Operation::Create), 2);
        assert_eq!(synced.service.files().len(), 3);
    }
);

rule!(
    other_content_takes_the_place_of_the_first_when_it_can_be_searched,
    |synced: Synced| {
        let id = synced.add("Animals.md", "They eat hay.").await;
        assert_eq!(synced.searched().await, ["They eat hay.\n"]);
        synced.service.files_become("in_progress");
        synced.rewrite(&id, "They eat grass.").await;
        eventually("it is uploaded", async || synced.service.files().len() == 2).await;
        synced.app.run_due_jobs().await;
        assert_eq!(synced.state().await["status"], "syncing");
        assert_eq!(
            synced.service.searched(),
            ["They eat grass.", "They eat hay.\n"]
        );
        synced.service.files_become("completed");
        assert_eq!(synced.searched().await, ["They eat grass."]);
        assert_eq!(synced.service.files().len(), 1);
        // While the sync is off nothing is sent, and a backfill finds what has changed.
        synced.set(json!({})).await;
        synced.rewrite(&id, "They eat leaves.").await;
        synced.set(json!({"vectorstore_sync_enabled": true})).await;
        let state = synced.becomes("incomplete").await;
        assert_eq!(state["documents"][0]["status"], "outdated");
        assert_eq!(synced.post("backfill").await.expect(200)["queued"], 1);
        assert_eq!(synced.searched().await, ["They eat leaves."]);
        assert_eq!(synced.service.files().len(), 1);
    }
);

rule!(what_is_deleted_here_is_removed_there, |synced: Synced| {
    let gone = async |what: &str, files: usize| {
        eventually(what, async || synced.service.files().len() == files).await;
        assert_eq!(synced.service.searched().len(), files, "{what}");
    };
    let first = synced.add("1.md", "The first.").await;
    synced.add("2.md", "The second.").await;
    assert_eq!(synced.searched().await.len(), 2);
    let (app, key) = (&synced.app, &synced.key);
    app.delete(key, &format!("/api/documents/{BASE}/{first}"))
        .await
        .expect(200);
    gone("a document goes", 1).await;
    // Also with the sync off.
    synced.set(json!({})).await;
    app.delete(key, &format!("/api/folders/{BASE}/texts"))
        .await
        .expect(200);
    gone("a folder goes", 0).await;
    synced.set(json!({"vectorstore_sync_enabled": true})).await;
    synced.furnish().await;
    synced.add("3.md", "The third.").await;
    assert_eq!(synced.searched().await.len(), 1);
    app.delete(key, &format!("/api/knowledgebases/{BASE}"))
        .await
        .expect(200);
    gone("a base goes", 0).await;
    eventually("its vector store goes", async || {
        synced.service.stores().is_empty()
    })
    .await;
    synced.furnish().await;
    synced.add("4.md", "The fourth.").await;
    assert_eq!(synced.searched().await.len(), 1);
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    gone("a partner goes", 0).await;
    eventually("all vector stores go", async || {
        synced.service.stores().is_empty()
    })
    .await;
    let db = app.state.store.db();
    for table in ["vectorstores", "vectorstore_files"] {
        let rows = async || {
            db.fetch_count(format!("SELECT COUNT(*) FROM {table}"))
                .await
        };
        eventually("nothing is remembered", async || rows().await.unwrap() == 0).await;
    }
});

rule!(what_goes_later_is_still_to_be_removed, |synced: Synced| {
    let id = synced.add("1.md", "The first.").await;
    assert_eq!(synced.searched().await, ["The first.\n"]);
    // As it is while a document goes that is being worked on.
    let db = synced.app.state.store.db();
    let sql = "UPDATE knowledge_documents SET deletion_requested_at = 1 WHERE id = $1";
    db.execute(statement(sql, [id.as_str().into()]))
        .await
        .unwrap();
    let state = synced.state().await;
    assert_eq!(state["status"], "syncing", "{state}");
    assert_eq!(state["counts"]["removing"], 1, "{state}");
});

rule!(what_fails_is_tried_again_and_then_told, |synced: Synced| {
    synced
        .service
        .fail(Operation::Upload, [Failure::Status(500)]);
    synced
        .service
        .fail(Operation::Attach, [Failure::Status(500)]);
    let id = synced.add("1.md", "The first.").await;
    let state = synced.state().await;
    assert_eq!(state["status"], "syncing", "{state}");
    assert_eq!(synced.searched().await, ["The first.\n"]);
    assert_eq!(synced.service.files().len(), 1);
    // What is refused is not asked again, until somebody wants it.
    synced
        .service
        .fail(Operation::Upload, [Failure::Status(400)]);
    synced.rewrite(&id, "The second.").await;
    let state = synced.becomes("incomplete").await;
    let document = &state["documents"][0];
    assert_eq!(document["status"], "failed");
    assert!(
        document["error"].as_str().unwrap().contains("status 400"),
        "{document}"
    );
    assert_eq!(synced.service.searched(), ["The first.\n"]);
    let queued = synced.post("retry-failed").await.expect(200);
    assert_eq!(queued, json!({"status": "queued", "queued": 1}));
    assert_eq!(synced.searched().await, ["The second."]);
    assert_eq!(synced.post("retry-failed").await.expect(200)["queued"], 0);
    // What the service cannot read goes, and is uploaded anew.
    synced.service.files_become("failed");
    synced.rewrite(&id, "The third.").await;
    let state = synced.becomes("incomplete").await;
    let document = &state["documents"][0];
    assert!(
        document["error"].as_str().unwrap().contains("invalid_file"),
        "{document}"
    );
    synced.service.files_become("completed");
    assert_eq!(synced.post("retry-failed").await.expect(200)["queued"], 1);
    assert_eq!(synced.searched().await, ["The third."]);
    assert_eq!(synced.service.files().len(), 1);
});

rule!(
    answers_that_are_lost_make_nothing_twice,
    |synced: Synced| {
        for operation in [Operation::Upload, Operation::Create, Operation::Attach] {
            synced.service.fail(operation, [Failure::Lost]);
        }
        synced.add("1.md", "The first.").await;
        assert_eq!(synced.searched().await, ["The first.\n"]);
        assert_eq!(synced.service.files().len(), 1);
        assert_eq!(synced.service.stores().len(), 1);
        assert_eq!(synced.count(Operation::Upload), 1);
        assert_eq!(synced.count(Operation::Create), 1);
        assert_eq!(synced.count(Operation::Attach), 1);
        // So it is when things go.
        for operation in [
            Operation::Detach,
            Operation::DeleteFile,
            Operation::DeleteStore,
        ] {
            synced.service.fail(operation, [Failure::Lost]);
        }
        let path = format!("/api/knowledgebases/{BASE}");
        synced.app.delete(&synced.key, &path).await.expect(200);
        let db = synced.app.state.store.db();
        let rows = async || {
            db.fetch_count("SELECT COUNT(*) FROM vectorstores")
                .await
                .unwrap()
        };
        eventually("it is forgotten", async || rows().await == 0).await;
        assert!(synced.service.files().is_empty() && synced.service.stores().is_empty());
    }
);

rule!(requests_keep_to_the_rate, |synced: Synced| {
    synced
        .set(json!({"vectorstore_sync_enabled": true, "vectorstore_sync_requests_per_minute": 120}))
        .await;
    synced
        .service
        .fail(Operation::Attach, [Failure::Limited(3)]);
    let (first, second) = (
        synced.add("1.md", "The first."),
        synced.add("2.md", "The second."),
    );
    tokio::join!(first, second);
    assert_eq!(synced.searched().await.len(), 2);
    let asked = synced.service.asked();
    let (first, last) = (asked.first().unwrap().at, asked.last().unwrap().at);
    let least = Duration::from_millis(500) * (asked.len() as u32 - 1);
    let taken = last - first + patience(Duration::from_millis(300)).min(Duration::from_secs(1));
    assert!(taken >= least, "{} requests in {taken:?}", asked.len());
    // Nothing at all is asked while the service wants to be left alone, whatever comes meanwhile.
    let mut waits = asked.windows(2).map(|pair| pair[1].at - pair[0].at);
    let longest = waits.clone().max().unwrap();
    let least = Duration::from_secs(3)
        .saturating_sub(patience(Duration::from_millis(600)).min(Duration::from_secs(1)));
    assert!(longest >= least, "{longest:?}");
    assert!(
        waits.any(|wait| wait < patience(Duration::from_millis(700)).min(Duration::from_secs(2)))
    );
    assert_eq!(synced.count(Operation::Upload), 2);
});

rule!(a_switch_holds_what_is_on_its_way, |synced: Synced| {
    synced
        .service
        .fail(Operation::Upload, [Failure::Status(401)]);
    synced.add("1.md", "The first.").await;
    eventually("the key is refused", async || {
        synced.state().await["last_error"]
            .as_str()
            .is_some_and(|it| it.contains("status 401"))
    })
    .await;
    eventually("operators see the hold", async || {
        !waiting(&synced.app.state).await.is_empty()
    })
    .await;
    let held = waiting(&synced.app.state).await.remove(0);
    let expected = (WaitingKind::VectorstoreFiles, WaitReason::Service, 1);
    assert_eq!((held.kind, held.reason, held.count), expected);
    assert!(held.next_at.is_some() && held.detail.is_some(), "{held:?}");
    synced.set(json!({})).await;
    synced.add("2.md", "The second.").await;
    synced.app.run_due_jobs().await;
    assert_eq!(synced.service.files().len(), 0);
    synced.set(json!({"vectorstore_sync_enabled": true})).await;
    eventually("the first goes on", async || {
        synced.service.files().len() == 1
    })
    .await;
    let state = synced.becomes("incomplete").await;
    assert_eq!(state["last_error"], Value::Null);
    assert_eq!(state["counts"]["missing"], 1);
});

rule!(
    what_is_made_late_is_found_and_not_made_again,
    |synced: Synced| {
        synced
            .service
            .fail(Operation::Upload, [Failure::Late(2_500)]);
        synced
            .service
            .fail(Operation::Create, [Failure::Late(2_500)]);
        // It stands behind those of others, on another page of the list.
        synced.service.crowd(250);
        let id = synced.add("1.md", "The first.").await;
        assert_eq!(synced.searched().await, ["The first.\n"]);
        assert_eq!(synced.count(Operation::Upload), 1);
        assert_eq!(synced.count(Operation::Create), 1);
        assert_eq!(synced.service.files().len(), 251);
        assert!(synced.count(Operation::ListFiles) >= 3);
        // So it is with one whose document goes meanwhile.
        synced
            .service
            .fail(Operation::Upload, [Failure::Late(2_500)]);
        synced.rewrite(&id, "The second.").await;
        eventually("it is being uploaded", async || {
            synced.count(Operation::Upload) == 2
        })
        .await;
        let document = format!("/api/documents/{BASE}/{id}");
        synced.app.delete(&synced.key, &document).await.expect(200);
        synced.becomes("synced").await;
        assert_eq!(synced.service.files().len(), 250);
        assert!(synced.service.searched().is_empty());
    }
);

rule!(
    content_that_comes_back_is_searched_all_the_same,
    |synced: Synced| {
        let id = synced.add("1.md", "The first.").await;
        synced.searched().await;
        // The first has not gone when it comes again, and its second upload fails.
        synced.service.files_become("in_progress");
        synced.rewrite(&id, "The second.").await;
        eventually("the second is there", async || {
            synced.service.files().len() == 2
        })
        .await;
        synced.service.fail(Operation::Upload, [Failure::Lost]);
        synced.rewrite(&id, "The first.\n").await;
        synced.service.files_become("completed");
        assert_eq!(synced.searched().await, ["The first.\n"]);
        synced.app.run_due_jobs().await;
        assert_eq!(synced.service.searched(), ["The first.\n"]);
        assert_eq!(synced.service.files().len(), 1);
    }
);

rule!(
    a_partner_that_goes_during_an_upload_leaves_nothing,
    |synced: Synced| {
        synced.service.delay(Duration::from_secs(1));
        synced.add("1.md", "The first.").await;
        eventually("it is being uploaded", async || {
            synced.count(Operation::Upload) == 1
        })
        .await;
        let gone = synced.app.delete(ADMIN_KEY, "/api/partners/acme").await;
        gone.expect(204);
        let db = synced.app.state.store.db();
        let rows = async |table: &str| {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            db.fetch_count(sql).await.unwrap()
        };
        eventually("nothing is remembered", async || {
            rows("vectorstores").await + rows("vectorstore_files").await == 0
        })
        .await;
        eventually("what was uploaded all the same is removed", async || {
            synced.count(Operation::DeleteFile) == 1
                && synced.service.files().is_empty()
                && synced.service.stores().is_empty()
        })
        .await;
    }
);

rule!(
    what_cannot_be_removed_holds_up_nothing_else,
    |synced: Synced| {
        let (app, key) = (&synced.app, &synced.key);
        synced.add("1.md", "The first.").await;
        synced.searched().await;
        // A vector store that never goes, and a file that is never taken.
        let stuck = vec![Failure::Status(500); 1_000];
        synced.service.fail(Operation::DeleteStore, stuck);
        let path = format!("/api/knowledgebases/{BASE}");
        app.delete(key, &path).await.expect(200);
        eventually("its file goes", async || synced.service.files().is_empty()).await;
        synced.furnish().await;
        synced.add("2.md", "The second.").await;
        assert_eq!(synced.searched().await, ["The second.\n"]);
        assert_eq!(synced.service.stores().len(), 2);
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn documents_come_in_pages() {
    let synced = Synced::start(&TestDatabase::sqlite()).await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(
            synced
                .add(&format!("{number}.md"), &format!("Animal {number}."))
                .await,
        );
    }
    synced.searched().await;
    ids.sort_unstable();
    let mut listed = Vec::new();
    let mut path = format!("{SYNC}?limit=2");
    loop {
        let page = synced.app.get(ADMIN_KEY, &path).await;
        let link = page
            .headers
            .get("link")
            .map(|link| link.to_str().unwrap().to_owned());
        let page = page.expect(200);
        let documents = page["documents"].as_array().unwrap();
        listed.extend(
            documents
                .iter()
                .map(|it| it["document_id"].as_str().unwrap().to_owned()),
        );
        let Some(link) = link else { break };
        path = link
            .trim_start_matches('<')
            .split('>')
            .next()
            .unwrap()
            .to_owned();
    }
    assert_eq!(listed, ids);
}
