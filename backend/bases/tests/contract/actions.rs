//! What people do with one document of a list, and what they see before they change a budget.

use colloquy_store::{Dialect, Transaction};

use super::{
    budgets::{Budgeted, FINAL, LIMITS, REWRITTEN},
    *,
};

async fn in_folder(app: &App, key: &str, folder: &str) -> Value {
    let path = format!("/api/document-list/{BASE}?folder={folder}");
    app.get(key, &path).await.expect(200)["total"].clone()
}

/// Holds the budgets of all bases.
async fn lock_budgets(transaction: &Transaction) {
    if transaction.dialect() == Dialect::Postgres {
        let sql = "SELECT 1 FROM quotas FOR UPDATE";
        transaction.execute(sql).await.unwrap();
    }
}

/// Waits until a statement waits for a lock. On SQLite transactions are in one line.
async fn one_waits(app: &App) {
    let db = app.state.store.db();
    if db.dialect() == Dialect::Postgres {
        let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("a statement waits for a lock", async || {
            db.fetch_count(sql).await.unwrap() == 1
        })
        .await;
    }
}

on_each_database!(a_document_moves_to_another_folder, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for name in ["more", "going"] {
        let form = fields(&[("name", name)]);
        let made = post(&app, key, "/api/folders/acme/manual", form).await;
        made.expect(201);
    }
    let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
    let made = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/api/documents/{BASE}/{id}/folder");
    let moved = put(&app, key, &path, &[("folder", "more")]).await;
    assert_eq!(moved.expect(200)["folder"], "more");
    assert_eq!(in_folder(&app, key, "more").await, 1);
    assert_eq!(in_folder(&app, key, "texts").await, 0);
    put(&app, key, &path, &[("folder", "none")])
        .await
        .expect(404);
    put(&app, key, &path, &[]).await.expect(400);
    let other = app.partner("other").await;
    put(&app, &other.key, &path, &[("folder", "texts")])
        .await
        .expect(403);
    let missing = format!("/api/documents/{BASE}/none/folder");
    put(&app, key, &missing, &[("folder", "texts")])
        .await
        .expect(404);
    let going = "UPDATE knowledge_folders SET deletion_requested_at = 1 WHERE name = 'going'";
    app.state.store.db().execute(going).await.unwrap();
    put(&app, key, &path, &[("folder", "going")])
        .await
        .expect(409);

    // Whoever deletes a folder holds the budget, which the move waits for. On SQLite transactions are in one line.
    let held = app.state.store.begin().await.unwrap();
    lock_budgets(&held).await;
    let deletion = async {
        one_waits(&app).await;
        let going = "UPDATE knowledge_folders SET deletion_requested_at = 1 WHERE name = 'texts'";
        assert_eq!(held.execute(going).await.unwrap(), 1);
        held.commit().await.unwrap();
    };
    let to = [("folder", "texts")];
    let (moved, ()) = tokio::join!(put(&app, key, &path, &to), deletion);
    moved.expect(409);
    assert_eq!(in_folder(&app, key, "more").await, 1);
});

rule!(a_failed_step_is_retried, |budgeted: Budgeted| {
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    let text = Script::text("A text about animals, rewritten.");
    budgeted.upstream.set_default(Api::Chat, text);
    let id = budgeted.add(1, &[REWRITTEN]).await;
    budgeted.becomes(&id, "ready").await;
    let path = format!("/api/documents/{BASE}/{id}/retry");
    app.post(key, &path, Value::Null).await.expect(409);
    for step in ["digitizing", "rewriting", "embedding"] {
        settled(app, key).await;
        let failed = format!("UPDATE knowledge_documents SET {step} = 'failed'");
        app.state.store.db().execute(failed).await.unwrap();
        assert_eq!(budgeted.document(&id).await["status"], "failed");
        app.post(key, &path, Value::Null).await.expect(200);
        budgeted.becomes(&id, "ready").await;
    }
    let other = app.partner("other").await;
    app.post(&other.key, &path, Value::Null).await.expect(403);

    // Two retries at once queue one step; the second one finds it queued.
    settled(app, key).await;
    let failed = "UPDATE knowledge_documents SET rewriting = 'failed'";
    app.state.store.db().execute(failed).await.unwrap();
    let held = app.state.store.begin().await.unwrap();
    lock_budgets(&held).await;
    let other = async {
        one_waits(app).await;
        let queued = "UPDATE knowledge_documents SET rewriting = 'queued'";
        assert_eq!(held.execute(queued).await.unwrap(), 1);
        held.commit().await.unwrap();
    };
    let (retried, ()) = tokio::join!(app.post(key, &path, Value::Null), other);
    retried.expect(409);
});

rule!(a_plan_names_what_a_raise_wakes, |budgeted: Budgeted| {
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    budgeted.limit(json!({"token_limit": 0})).await;
    let mut waiting = Vec::new();
    for number in 0..3 {
        let id = budgeted.add(number, &[FINAL]).await;
        budgeted.becomes(&id, "blocked").await;
        waiting.push(id);
    }
    let plan = async |query: &str| {
        let path = format!("{LIMITS}/wake{query}");
        app.get(key, &path).await.expect(200)
    };
    let now = plan("").await;
    assert_eq!(
        (&now["documents"], &now["still_blocked"]),
        (&json!(0), &json!(3))
    );
    let all = plan("?token_limit=").await;
    assert_eq!(all["document_ids"], json!(waiting));
    assert_eq!(
        (&all["still_blocked"], &all["complete"]),
        (&json!(0), &json!(true))
    );
    let tokens = all["tokens"].as_u64().unwrap();
    assert!(tokens > 0, "{all}");
    // A limit without room for the last one.
    let limit = tokens - 1;
    let some = plan(&format!("?token_limit={limit}")).await;
    assert_eq!(
        (&some["documents"], &some["still_blocked"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(some["document_ids"], json!(waiting[..2]));
    for query in ["?token_limit=x", "?dollar_limit_usd=-1", "?limit=5"] {
        app.get(key, &format!("{LIMITS}/wake{query}"))
            .await
            .expect(400);
    }
    budgeted.limit(json!({"token_limit": limit})).await;
    for id in &waiting[..2] {
        budgeted.becomes(id, "ready").await;
    }
});

on_each_database!(a_plan_looks_at_so_many_documents, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let insert = |from: usize, to: usize| {
        format!(
            "WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to}) \
             INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, \
             use_original_as_rewritten, digitizing, rewriting, embedding, revision, created_at, updated_at) \
             SELECT 'd' || n.i, f.base_id, f.id, 'Notes', 'file', 'auto', 'standard', FALSE, FALSE, 'done', 'none', 'blocked', 0, n.i, 1 \
             FROM n, knowledge_folders f WHERE f.name = 'texts'"
        )
    };
    let plan = async || {
        let plan = app.get(&key, &format!("{LIMITS}/wake")).await.expect(200);
        [
            "documents",
            "unbounded",
            "tokens",
            "still_blocked",
            "complete",
        ]
        .map(|field| plan[field].clone())
    };
    let db = app.state.store.db();
    if db.dialect() == Dialect::Postgres {
        // Many rows at once take long with triggers, which these do without.
        let quick = "ALTER TABLE knowledge_documents DISABLE TRIGGER USER";
        db.execute(quick).await.unwrap();
    }
    assert_eq!(db.execute(insert(1, 10_000)).await.unwrap(), 10_000);
    let all = [
        json!(10_000),
        json!(10_000),
        json!(0),
        json!(0),
        json!(true),
    ];
    assert_eq!(plan().await, all);
    db.execute(insert(10_001, 10_001)).await.unwrap();
    let [documents, .., complete] = plan().await;
    assert_eq!((documents, complete), (json!(10_000), json!(false)));
});

rule!(unknown_requests_are_listed, |budgeted: Budgeted| {
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    budgeted.limit(json!({"token_limit": 1_000_000})).await;
    let fault = Script::fault(Fault::Status(500));
    budgeted.upstream.script(Api::Chat, fault);
    let id = budgeted.add(1, &[REWRITTEN]).await;
    budgeted.becomes(&id, "failed").await;
    let path = format!("{LIMITS}/unknown");
    let listed = app.get(key, &path).await.expect(200);
    let request = &listed["requests"][0];
    assert_eq!(listed["requests"].as_array().unwrap().len(), 1);
    assert_eq!(request["document_id"], id.as_str());
    assert_eq!(request["document_name"], "001.txt");
    assert_eq!(
        (&request["kind"], &request["outcome"]),
        (&json!("rewrite"), &json!("uncertain"))
    );
    assert_eq!(request["taken_for"], Value::Null);
    let bound = request["bound_tokens"].as_u64().unwrap();
    assert!(bound > 1_000, "{request}");
    let decided = format!("{path}?decided=true");
    let none = app.get(key, &decided).await.expect(200);
    assert_eq!(none["requests"], json!([]));
    let decision = json!({"taken_for": "bound"});
    app.post(ADMIN_KEY, &path, decision).await.expect(200);
    let listed = app.get(key, &decided).await.expect(200);
    let request = &listed["requests"][0];
    assert_eq!(
        (&request["taken_for"], &request["outcome"]),
        (&json!("bound"), &json!("fault"))
    );
    assert!(request["decided_at"].is_string());
    assert_eq!(request["input_tokens"], bound);
    assert_eq!(app.get(key, &path).await.expect(200)["requests"], json!([]));
    app.get(key, &format!("{path}?decided=maybe"))
        .await
        .expect(400);
});
