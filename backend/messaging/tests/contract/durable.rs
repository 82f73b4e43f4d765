//! Completions in time: kept for a while, and not lost with a process.

use colloquy_config::Config;

use super::*;

fn hello() -> Value {
    question(json!([written("m1", "Hello")]), json!({}))
}

/// How many completions still hold what was asked.
async fn open(app: &TestRoutes<Place>) -> u64 {
    let db = app.state.store.db();
    let sql = "SELECT COUNT(*) FROM completions WHERE question IS NOT NULL";
    db.fetch_count(sql).await.unwrap()
}

on_each_database!(
    a_result_is_kept_for_twenty_minutes_after_its_end,
    |database| {
        let app = start_by(builder(&database)).await;
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        // What nobody has worked on yet waits for as long as that takes.
        app.advance(Duration::from_secs(24 * 3600));
        assert_eq!(messaging::purge(&app.state).await.unwrap(), 0);
        let waiting = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(waiting, json!({"id": path, "state": "in-progress"}));
        assert_eq!(open(&app).await, 1);

        app.start_worker(&CAPABILITIES, quick()).await;
        assert_eq!(ended(&app, &acme.key, &path).await["state"], "completed");
        assert_eq!(open(&app).await, 0, "what was asked is gone");
        app.advance(Duration::from_secs(20 * 60 - 1));
        assert_eq!(messaging::purge(&app.state).await.unwrap(), 0);
        app.get(&acme.key, &path).await.expect(200);
        app.advance(Duration::from_secs(1));
        app.get(&acme.key, &path).await.expect(404);
        assert_eq!(messaging::purge(&app.state).await.unwrap(), 1);
    }
);

on_each_database!(
    a_completion_whose_process_dies_every_time_fails,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        let db = app.state.store.db();
        // As four processes leave it that were killed while they worked on it.
        let sql =
            "UPDATE work SET attempts = 4, state = 'running', lease_until = 1 WHERE kind = $1";
        let done = db
            .execute(statement(sql, ["messaging.complete".into()]))
            .await;
        assert_eq!(done.unwrap(), 1);
        app.start_worker(&CAPABILITIES, quick()).await;
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "failed");
        assert_eq!(completion["error"]["code"], "interrupted");
    }
);

fn little_memory(config: &mut Config) {
    config.limits.document_memory_bytes = 4_000_000;
}

/// A question to a character with documents whose index takes more than a third of that memory.
fn tides() -> Value {
    let text = "The tide is high at seven. ".repeat(1_500);
    let parameters = json!({"rag_enabled": true, "documents": [{"title": "Tides", "text": text}]});
    let eve = json!({"description": parameters.to_string(), "personality": "You are Eve."});
    question(
        json!([written("m1", "When is the tide high?")]),
        json!({"character": eve}),
    )
}

/// A character whose documents take most of a partner's part of it.
fn large() -> Character {
    let document = json!({"title": "T", "text": "x".repeat(35_000)});
    let parameters = json!({"rag_enabled": true, "documents": [document]});
    serde_json::from_value(json!({"personality": "P", "parameters": parameters})).unwrap()
}

on_each_database!(
    a_completion_waits_for_the_memory_of_its_documents,
    |database| {
        let app = start_by(builder(&database).config(little_memory)).await;
        let (acme, _) = app.acme_and_other().await;
        let body = tides();
        let path = asked(&app, &acme.key, body.clone()).await;
        // What calls and requests of the partner hold.
        let (tenant, character) = (Tenant::of_row("acme"), large());
        let hold = || app.state.documents(&tenant, &character);
        let held = hold().unwrap();
        let refused = app.post(&acme.key, PATH, body).await;
        refused.expect(503);
        assert_eq!(refused.header("retry-after"), "2");

        // Nobody worked on it for long, which is no time that it waited for memory.
        let db = app.state.store.db();
        let old = "UPDATE completions SET created_at = 1";
        db.execute(old).await.unwrap();
        app.start_worker(&CAPABILITIES, quick()).await;
        // Every run raises the fence, and one that found no memory is no attempt.
        let put_off = "SELECT COUNT(*) FROM work WHERE kind = 'messaging.complete' AND state = 'queued' AND attempts = 0 \
                       AND fence > 0";
        eventually("it is put off", || async {
            db.fetch_count(put_off).await.unwrap() == 1
        })
        .await;
        drop(held);
        let due = "UPDATE work SET run_at = 1 WHERE state = 'queued'";
        db.execute(due).await.unwrap();
        assert_eq!(ended(&app, &acme.key, &path).await["state"], "completed");
        assert!(hold().is_ok());
    }
);

on_each_database!(
    a_completion_that_finds_no_memory_for_long_fails,
    |database| {
        let app = start_by(builder(&database).config(little_memory)).await;
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, tides()).await;
        let tenant = Tenant::of_row("acme");
        let _held = app.state.documents(&tenant, &large()).unwrap();
        // As after it was put off for ten minutes.
        let db = app.state.store.db();
        let put_off = "UPDATE work SET fence = 24 WHERE kind = 'messaging.complete'";
        assert_eq!(db.execute(put_off).await.unwrap(), 1);
        app.start_worker(&CAPABILITIES, quick()).await;
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "failed");
        assert_eq!(completion["error"]["code"], "no_memory");
        assert_eq!(open(&app).await, 0);
        app.works_off("messaging.complete").await;
        let once = "SELECT COUNT(*) FROM work WHERE state = 'done' AND fence = 25";
        assert_eq!(db.fetch_count(once).await.unwrap(), 1, "it ran once more");
    }
);

on_each_database!(
    a_completion_that_took_its_process_down_twice_fails,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        let db = app.state.store.db();
        // As a process leaves it that died while it ran alone, which it does after a first death.
        let sql = "UPDATE work SET attempts = 2, deaths = 1, alone = TRUE, state = 'running', node_id = 'gone', \
                   lease_until = 1 WHERE kind = $1";
        let done = db
            .execute(statement(sql, ["messaging.complete".into()]))
            .await;
        assert_eq!(done.unwrap(), 1);
        app.start_worker(&CAPABILITIES, quick()).await;
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "failed");
        assert_eq!(completion["error"]["code"], "interrupted");
        assert_eq!(open(&app).await, 0);
    }
);
