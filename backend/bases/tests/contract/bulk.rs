//! What people do with many documents, and what they see before.

use super::{
    budgets::{Budgeted, REWRITTEN},
    lists::{DOCUMENTS, Row, id_of, run, write},
    *,
};

fn path_of(action: &str) -> String {
    format!("/api/bulk/{action}/{BASE}")
}

/// Documents that are written by SQL.
fn many(count: usize) -> Vec<Row> {
    let row = |number: usize| Row {
        number,
        folder: "texts",
        name: format!("Document {number}"),
        steps: ["done", "none", "none"],
        ..Row::default()
    };
    (0..count).map(row).collect()
}

/// The ids of documents, with what became of each.
fn results(answer: &Value) -> Vec<(String, String)> {
    let results = answer["results"].as_array().unwrap().iter();
    let word = |result: &Value, field: &str| result[field].as_str().unwrap().to_owned();
    results
        .map(|result| (word(result, "document_id"), word(result, "status")))
        .collect()
}

async fn count(app: &App, key: &str, filter: &str) -> Value {
    let path = format!("{DOCUMENTS}?limit=1&{filter}");
    app.get(key, &path).await.expect(200)["total"].clone()
}

/// Checks who may do this, and what bodies are refused. `body` is that of a document.
async fn is_guarded(app: &App, key: &str, action: &str, body: Value) {
    let path = path_of(action);
    let with = |ids: Vec<String>| {
        let mut body = body.clone();
        body["document_ids"] = json!(ids);
        body
    };
    let too_many: Vec<String> = (0..1_001).map(id_of).collect();
    let has_nul = vec![id_of(0), "a\0b".to_owned()];
    for ids in [vec![], too_many, has_nul] {
        let refused = app.post(key, &path, with(ids)).await.expect(400);
        assert_eq!(refused["field"], "document_ids", "{refused}");
    }
    for (field, value) in [("document_ids", json!("all")), ("documents", json!([]))] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let refused = app.post(key, &path, wrong).await.expect(400);
        assert_eq!(refused["field"], field, "{refused}");
    }
    let large = with(vec!["x".repeat(2 * 1024 * 1024)]);
    app.post(key, &path, large).await.expect(413);
    let missing = format!("/api/bulk/{action}/acme/none");
    app.post(key, &missing, body.clone()).await.expect(404);
    let other = app.partner("other").await;
    app.post(&other.key, &path, body.clone()).await.expect(403);
    let calls = app.key("acme", json!({"name": "calls", "scopes": ["calls"]}));
    let calls = calls.await["api_key"].as_str().unwrap().to_owned();
    app.post(&calls, &path, body.clone()).await.expect(403);

    // The document of another partner is not found, whoever's the base is.
    for (path, form) in [
        ("/api/knowledgebases/other", fields(&[("name", "manual")])),
        ("/api/folders/other/manual", fields(&[("name", "texts")])),
    ] {
        post(app, &other.key, path, form).await.expect(201);
    }
    let foreign = format!("/api/bulk/{action}/other/manual");
    let answer = app.post(&other.key, &foreign, body).await.expect(200);
    assert_eq!(
        (&answer["done"], &answer["skipped"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        answer["results"][0]["reason"], "Document not found",
        "{answer}"
    );
}

on_each_database!(many_documents_are_moved, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    for name in ["more", "going"] {
        let form = fields(&[("name", name)]);
        post(&app, &key, "/api/folders/acme/manual", form)
            .await
            .expect(201);
    }
    let mut rows = many(150);
    rows[149].is_going = true;
    write(&app, &rows).await;
    let mut ids: Vec<String> = (0..150).map(id_of).collect();
    ids.extend(["none".to_owned(), id_of(0)]);
    let body = json!({"document_ids": ids, "folder": "more"});
    let moved = app.post(&key, &path_of("move"), body).await.expect(200);
    assert_eq!(
        (&moved["done"], &moved["skipped"]),
        (&json!(149), &json!(2))
    );
    let all = results(&moved);
    assert_eq!(all.len(), 151);
    for (place, (id, status)) in all.iter().enumerate() {
        assert_eq!(*id, ids[place]);
        let expected = if place < 149 { "moved" } else { "skipped" };
        assert_eq!(status, expected, "{place}");
    }
    assert_eq!(
        moved["results"][149]["reason"],
        "The document is being deleted"
    );
    assert_eq!(count(&app, &key, "folder=more").await, 149);
    let body = |folder: &str| json!({"document_ids": [id_of(1)], "folder": folder});
    app.post(&key, &path_of("move"), body("none"))
        .await
        .expect(404);
    run(
        &app,
        "UPDATE knowledge_folders SET deletion_requested_at = 1 WHERE name = 'going'",
    )
    .await;
    app.post(&key, &path_of("move"), body("going"))
        .await
        .expect(409);
    let bare = json!({"document_ids": [id_of(1)]});
    let refused = app.post(&key, &path_of("move"), bare).await.expect(400);
    assert_eq!(refused["field"], "folder");
    is_guarded(&app, &key, "move", body("texts")).await;
    assert_eq!(count(&app, &key, "folder=more").await, 149);
});

on_each_database!(many_documents_are_deleted, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let mut rows = many(5);
    rows[4].steps = ["running", "none", "none"];
    write(&app, &rows).await;
    is_guarded(&app, &key, "delete", json!({"document_ids": [id_of(0)]})).await;
    assert_eq!(count(&app, &key, "").await, 5);
    let body = json!({"document_ids": [id_of(0), "none", id_of(1), id_of(4)]});
    let deleted = app.post(&key, &path_of("delete"), body).await.expect(200);
    let states = ["deleted", "skipped", "deleted", "delete_pending"];
    let found = results(&deleted);
    let found: Vec<&str> = found.iter().map(|(_, status)| status.as_str()).collect();
    assert_eq!(found, states);
    assert_eq!(
        (&deleted["done"], &deleted["skipped"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(count(&app, &key, "").await, 3);
    assert_eq!(count(&app, &key, "state=delete_pending").await, 1);
});

rule!(many_failed_steps_are_retried, |budgeted: Budgeted| {
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    let text = Script::text("A text about animals, rewritten.");
    budgeted.upstream.set_default(Api::Chat, text);
    let mut ids = Vec::new();
    for number in 0..3 {
        let id = budgeted.add(number, &[REWRITTEN]).await;
        budgeted.becomes(&id, "ready").await;
        ids.push(id);
    }
    settled(app, key).await;
    is_guarded(app, key, "retry", json!({"document_ids": [ids[0]]})).await;
    for (id, step) in ids.iter().zip(["digitizing", "rewriting"]) {
        run(
            app,
            format!("UPDATE knowledge_documents SET {step} = 'failed' WHERE id = '{id}'"),
        )
        .await;
    }
    let body = json!({"document_ids": ids});
    let retried = app.post(key, &path_of("retry"), body).await.expect(200);
    let found = results(&retried);
    let found: Vec<&str> = found.iter().map(|(_, status)| status.as_str()).collect();
    assert_eq!(found, ["queued", "queued", "skipped"]);
    assert_eq!(
        retried["results"][2]["reason"],
        "No step of the document failed"
    );
    for id in &ids {
        budgeted.becomes(id, "ready").await;
    }
});

rule!(
    an_estimate_is_that_of_the_documents_that_pass,
    |budgeted: Budgeted| {
        let (app, key) = (&budgeted.app, budgeted.key.as_str());
        let form = fields(&[("name", "more")]);
        post(app, key, "/api/folders/acme/manual", form)
            .await
            .expect(201);
        let steps = ["none", "running", "done", "failed"];
        let mut rows = many(160);
        for row in &mut rows {
            let number = row.number;
            row.folder = ["texts", "more"][number % 2];
            row.steps = [steps[number / 2 % 4], steps[number / 8 % 4], "none"];
            let text = ("digitized", 9, 977 * number);
            let last = ("rewritten", 9, 9);
            row.contents = [vec![], vec![text], vec![text], vec![text, last]][number % 4].clone();
            row.is_going = number.is_multiple_of(19);
        }
        write(app, &rows).await;
        let estimate = async |query: &str| {
            let path = format!("/api/rewrite-estimate/{BASE}?{query}");
            app.get(key, &path).await.expect(200)
        };
        for (query, bulk) in [
            ("", format!("kb/{BASE}?dry_run=true")),
            (
                "skip_rewritten=false",
                format!("kb/{BASE}?dry_run=true&skip_rewritten=false"),
            ),
            ("folder=more", format!("folder/{BASE}/more?dry_run=true")),
        ] {
            let dry = app
                .post(key, &format!("/api/bulk/rewrite/{bulk}"), Value::Null)
                .await;
            let dry = dry.expect(200);
            let found = estimate(query).await;
            for field in ["documents", "input_tokens", "output_tokens"] {
                assert_eq!(found[field], dry["estimate"][field], "{query} {field}");
            }
            assert!(found["documents"].as_u64().unwrap() > 3, "{found}");
            let mut skipped = std::collections::BTreeMap::<&str, u64>::new();
            for document in dry["skipped_documents"].as_array().unwrap() {
                let reason = document["reason"].as_str().unwrap();
                *skipped.entry(reason).or_default() += 1;
            }
            let expected: Vec<Value> = skipped
                .into_iter()
                .map(|(reason, documents)| json!({"reason": reason, "documents": documents}))
                .collect();
            assert_eq!(found["skipped"], json!(expected), "{query}");
        }
        let some = estimate("q=document%201&state=digitized").await;
        let all = estimate("").await;
        assert!(some["documents"].as_u64() < all["documents"].as_u64());
        assert_eq!(all["fits_budget"], true);
        let tokens = all["input_tokens"].as_u64().unwrap() + all["output_tokens"].as_u64().unwrap();
        budgeted.limit(json!({"token_limit": tokens})).await;
        assert_eq!(estimate("").await["fits_budget"], true);
        budgeted.limit(json!({"token_limit": tokens - 1})).await;
        assert_eq!(estimate("").await["fits_budget"], false);

        let path = format!("/api/rewrite-estimate/{BASE}");
        for (query, field) in [
            ("q=", "q"),
            ("state=fine", "state"),
            ("dry_run=true", "dry_run"),
        ] {
            let refused = app.get(key, &format!("{path}?{query}")).await.expect(400);
            assert_eq!(refused["field"], field, "{refused}");
        }
        for missing in [
            format!("{path}?folder=none"),
            path.replace("manual", "none"),
        ] {
            app.get(key, &missing).await.expect(404);
        }
        let other = app.partner("other").await;
        app.get(&other.key, &path).await.expect(403);
        let calls = app.key("acme", json!({"name": "calls", "scopes": ["calls"]}));
        let calls = calls.await["api_key"].as_str().unwrap().to_owned();
        app.get(&calls, &path).await.expect(403);
    }
);
