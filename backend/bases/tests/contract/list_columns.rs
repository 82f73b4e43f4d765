//! The columns of documents that triggers keep for lists.

use super::{
    lists::{DOCUMENTS, Row, id_of, run, scalar, tied, write},
    *,
};

/// Numbers that look random.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    pub(super) fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// The number of documents whose columns differ from what they are kept of.
const DIFFERENT: &str = "SELECT COUNT(*) FROM knowledge_documents d \
     LEFT JOIN knowledge_contents o ON o.document_id = d.id AND o.variant = 'original' \
     LEFT JOIN knowledge_contents t ON t.document_id = d.id AND t.variant = 'digitized' \
     LEFT JOIN knowledge_contents f ON f.document_id = d.id AND f.variant = 'rewritten' \
     LEFT JOIN knowledge_rewrites r ON r.document_id = d.id \
     LEFT JOIN (SELECT u.document_id, SUM(COALESCE(u.input_tokens, 0) + COALESCE(u.output_tokens, 0)) AS tokens, \
     SUM(CASE WHEN u.kind = 'transcribe' THEN COALESCE(u.cost, 0) ELSE 0 END) AS cost, \
     SUM(CASE WHEN u.kind = 'transcribe' THEN 1 ELSE 0 END) AS requests, \
     SUM(CASE WHEN u.kind = 'transcribe' AND u.cost IS NULL THEN 1 ELSE 0 END) AS unpriced \
     FROM knowledge_usage u WHERE u.outcome <> 'pending' GROUP BY u.document_id) x ON x.document_id = d.id \
     WHERE d.size_bytes <> COALESCE(o.bytes, t.bytes, f.bytes, 0) \
     OR d.text_characters IS DISTINCT FROM CASE WHEN t.document_id IS NOT NULL THEN COALESCE(t.characters, 0) END \
     OR d.final_characters IS DISTINCT FROM CASE WHEN f.document_id IS NOT NULL THEN COALESCE(f.characters, 0) END \
     OR d.rewrite_cost IS DISTINCT FROM r.cost OR d.rewrite_known <> COALESCE(r.complete AND NOT r.asking, TRUE) \
     OR d.tokens <> COALESCE(x.tokens, 0) OR d.reading_cost <> COALESCE(x.cost, 0) \
     OR d.reading_requests <> COALESCE(x.requests, 0) OR d.reading_unpriced <> COALESCE(x.unpriced, 0)";

on_each_database!(columns_are_what_they_are_kept_of, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let more = fields(&[("name", "more")]);
    post(&app, &key, "/api/folders/acme/manual", more)
        .await
        .expect(201);
    write(&app, &tied()).await;
    let base = scalar(&app, "SELECT id FROM knowledge_bases").await;
    let mut numbers = Numbers(7);
    let variants = ["original", "extracted", "digitized", "draft", "rewritten"];
    for round in 0..250_usize {
        let document = id_of(numbers.below(23));
        let variant = numbers.of(&variants);
        let characters = match numbers.below(4) {
            0 => "NULL".to_owned(),
            _ => numbers.below(1_000).to_string(),
        };
        let bytes = numbers.below(1_000);
        run(&app, format!(
            "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at) \
             SELECT d.id, '{variant}', 'written', 'f', 't', {bytes}, {characters}, 's', 0 FROM knowledge_documents d WHERE d.id = '{document}' \
             ON CONFLICT (document_id, variant) DO UPDATE SET bytes = excluded.bytes, characters = excluded.characters"
        )).await;
        let (document, variant) = (id_of(numbers.below(23)), numbers.of(&variants));
        run(&app, format!("DELETE FROM knowledge_contents WHERE document_id = '{document}' AND variant = '{variant}'")).await;
        let document = id_of(numbers.below(23));
        let (asking, complete) = (
            numbers.of(&["TRUE", "FALSE"]),
            numbers.of(&["TRUE", "FALSE"]),
        );
        let cost = numbers.below(90);
        run(&app, format!(
            "INSERT INTO knowledge_rewrites (document_id, revision, model, sections, done, asking, input_tokens, output_tokens, cost, complete, updated_at) \
             SELECT d.id, 0, 'm', 1, 1, {asking}, 0, 0, {cost}, {complete}, 0 FROM knowledge_documents d WHERE d.id = '{document}' \
             ON CONFLICT (document_id) DO UPDATE SET asking = excluded.asking, cost = excluded.cost, complete = excluded.complete"
        )).await;
        if round.is_multiple_of(5) {
            let document = id_of(numbers.below(23));
            run(
                &app,
                format!("DELETE FROM knowledge_rewrites WHERE document_id = '{document}'"),
            )
            .await;
        }
        let document = id_of(numbers.below(23));
        let kind = numbers.of(&["transcribe", "rewrite", "embed"]);
        run(&app, format!(
            "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, local, node_id, outcome, unknown, created_at) \
             VALUES ('r{round}', '{base}', '{document}', '{kind}', 'm', FALSE, 'n', 'pending', FALSE, {round})"
        )).await;
        for _ in 0..2 {
            let outcome = numbers.of(&["success", "fault", "uncertain"]);
            let (input, cost) = (numbers.of(&["NULL", "10"]), numbers.of(&["NULL", "7"]));
            let request = numbers.below(round + 1);
            run(&app, format!(
                "UPDATE knowledge_usage SET outcome = '{outcome}', input_tokens = {input}, output_tokens = 5, cost = {cost} \
                 WHERE id = 'r{request}' AND outcome IN ('pending', 'uncertain')"
            )).await;
        }
        if round.is_multiple_of(4) {
            let request = numbers.below(round + 1);
            run(&app, format!("DELETE FROM knowledge_usage WHERE id = 'r{request}' AND outcome IN ('pending', 'uncertain')")).await;
        }
        if round % 50 == 49 {
            let document = id_of(numbers.below(23));
            run(
                &app,
                format!("DELETE FROM knowledge_documents WHERE id = '{document}'"),
            )
            .await;
            run(
                &app,
                format!("DELETE FROM knowledge_usage WHERE document_id = '{document}'"),
            )
            .await;
        }
    }
    let db = app.state.store.db();
    assert_eq!(db.fetch_count(DIFFERENT).await.unwrap(), 0);
    let kept = "SELECT COUNT(*) FROM knowledge_documents WHERE size_bytes > 0 AND tokens > 0 AND reading_requests > 0";
    assert!(db.fetch_count(kept).await.unwrap() > 10);

    // The history of a document has an end.
    let document = scalar(&app, "SELECT MAX(id) FROM knowledge_documents").await;
    let why = "e".repeat(900);
    for round in 0..40 {
        let step = ["failed", "done"][round % 2];
        run(&app, format!("UPDATE knowledge_documents SET rewriting = '{step}', processing_error = '{why}' WHERE id = '{document}'")).await;
    }
    let steps = format!(
        "SELECT COUNT(*) FROM knowledge_steps WHERE document_id = '{document}' AND (state = 'done' AND reason IS NULL OR LENGTH(reason) = 100)"
    );
    assert_eq!(db.fetch_count(steps).await.unwrap(), 16);
    app.delete(&key, "/api/knowledgebases/acme/manual")
        .await
        .expect(200);
    assert_eq!(rows(&app, "knowledge_steps").await, 0);
});

// Each transaction reads the contents of the other once it has the document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contents_that_come_at_once_are_both_measured() {
    let app = start(&TestDatabase::postgres().await).await;
    furnished(&app).await;
    let document = Row {
        contents: Vec::new(),
        folder: "texts",
        steps: ["none"; 3],
        ..tied().remove(1)
    };
    write(&app, &[document]).await;
    let insert = |variant: &str, bytes: usize| {
        format!(
            "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at) \
             VALUES ('{}', '{variant}', 'written', 'f', 't', {bytes}, 5, 's', 0)",
            id_of(1)
        )
    };
    let held = app.state.store.begin().await.unwrap();
    held.execute(insert("original", 100)).await.unwrap();
    let let_go = async {
        let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("the other one waits", async || {
            app.state.store.db().fetch_count(sql).await.unwrap() == 1
        })
        .await;
        held.commit().await.unwrap();
    };
    tokio::join!(run(&app, insert("digitized", 50)), let_go);
    assert_eq!(
        app.state.store.db().fetch_count(DIFFERENT).await.unwrap(),
        0
    );
    let size = "SELECT size_bytes FROM knowledge_documents";
    assert_eq!(app.state.store.db().fetch_count(size).await.unwrap(), 100);
}

// Models and budgets write the columns by their own ways.
rule!(
    columns_follow_jobs_and_requests,
    |budgeted: budgets::Budgeted| {
        use super::budgets::{CHARACTERS, FINAL, REWRITTEN};
        let (app, key) = (&budgeted.app, budgeted.key.as_str());
        let text = Script::text("A text about animals, rewritten.");
        budgeted.upstream.set_default(Api::Chat, text);
        budgeted
            .limit(json!({"character_limit": 3 * CHARACTERS}))
            .await;
        for (number, more) in [FINAL, REWRITTEN, FINAL].into_iter().enumerate() {
            let id = budgeted.add(number, &[more]).await;
            budgeted.becomes(&id, "ready").await;
        }
        let first = "SELECT step || ' ' || state FROM knowledge_steps ORDER BY id LIMIT 1";
        assert_eq!(scalar(app, first).await, "digitize queued");
        let waiting = budgeted.add(3, &[FINAL]).await;
        budgeted.becomes(&waiting, "blocked").await;
        let db = app.state.store.db();
        assert_eq!(db.fetch_count(DIFFERENT).await.unwrap(), 0);
        let listed = app
            .get(key, &format!("{DOCUMENTS}?state=blocked"))
            .await
            .expect(200);
        let blocked = &listed["documents"][0];
        assert_eq!(blocked["id"], waiting.as_str());
        let since = blocked["queued_at"].as_str().unwrap().to_owned();
        // A new name is no new wait.
        app.advance(Duration::from_secs(60));
        let path = format!("/api/documents/{BASE}/{waiting}/name");
        put(app, key, &path, &[("name", "Later")]).await.expect(200);
        let listed = app
            .get(key, &format!("{DOCUMENTS}?q=later"))
            .await
            .expect(200);
        assert_eq!(listed["documents"][0]["queued_at"], since.as_str());
        assert_ne!(listed["documents"][0]["updated_at"], since.as_str());
        let stats = app.get(key, "/api/kb-stats/acme/manual").await.expect(200);
        assert_eq!(stats["total_digitized_chars"], 3 * CHARACTERS);
        assert_eq!(stats["error_count"], 1);
        budgeted.limit(json!({"character_limit": null})).await;
        let ready = budgeted.becomes(&waiting, "ready").await;
        let listed = app
            .get(key, &format!("{DOCUMENTS}?sort=tokens"))
            .await
            .expect(200);
        let entries = listed["documents"].as_array().unwrap();
        assert_eq!(entries.len(), 4);
        for entry in entries {
            assert!(entry["tokens"].as_i64().unwrap() > 0, "{entry}");
            assert_eq!(
                (&entry["queued_at"], &entry["next_attempt_at"]),
                (&Value::Null, &Value::Null)
            );
        }
        let path = format!("/api/documents/{BASE}/{}", ready["id"].as_str().unwrap());
        app.delete(key, &path).await.expect(200);
        assert_eq!(db.fetch_count(DIFFERENT).await.unwrap(), 0);
    }
);
