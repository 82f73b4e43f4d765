//! Completions in time: kept for a while, and not lost with a process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use colloquy::{
    Config,
    accounts::Tenant,
    characters::Character,
    messaging, server,
    store::{Executor as _, statement},
};
use harness::{
    app::{ADMIN_KEY, client, quick},
    eventually, on_both_databases,
    process::{command, run_ok},
    upstream::{Fault, Script},
};

use super::*;

fn hello() -> Value {
    question(json!([written("m1", "Hello")]), json!({}))
}

/// How many completions still hold what was asked.
async fn open(app: &TestApp) -> u64 {
    let db = app.app.store.db();
    let sql = "SELECT COUNT(*) FROM completions WHERE question IS NOT NULL";
    db.fetch_count(sql).await.unwrap()
}

on_both_databases!(
    a_result_is_kept_for_twenty_minutes_after_its_end,
    |builder| builder.manual_clock().without_worker(),
    |app| {
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        // What nobody has worked on yet waits for as long as that takes.
        app.advance(Duration::from_secs(24 * 3600));
        assert_eq!(messaging::purge(&app.app).await.unwrap(), 0);
        let waiting = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(waiting, json!({"id": path, "state": "in-progress"}));
        assert_eq!(open(&app).await, 1);

        server::start_worker(&app.app, quick()).await.unwrap();
        assert_eq!(ended(&app, &acme.key, &path).await["state"], "completed");
        assert_eq!(open(&app).await, 0, "what was asked is gone");
        app.advance(Duration::from_secs(20 * 60 - 1));
        assert_eq!(messaging::purge(&app.app).await.unwrap(), 0);
        app.get(&acme.key, &path).await.expect(200);
        app.advance(Duration::from_secs(1));
        app.get(&acme.key, &path).await.expect(404);
        assert_eq!(messaging::purge(&app.app).await.unwrap(), 1);
    }
);

on_both_databases!(
    a_completion_whose_process_dies_every_time_fails,
    |builder| builder.without_worker(),
    |app| {
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        let db = app.app.store.db();
        // As four processes leave it that were killed while they worked on it.
        let sql =
            "UPDATE work SET attempts = 4, state = 'running', lease_until = 1 WHERE kind = $1";
        let done = db
            .execute(statement(sql, ["messaging.complete".into()]))
            .await;
        assert_eq!(done.unwrap(), 1);
        server::start_worker(&app.app, quick()).await.unwrap();
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

on_both_databases!(
    a_completion_waits_for_the_memory_of_its_documents,
    |builder| builder.without_worker().config(little_memory),
    |app| {
        let (acme, _) = app.acme_and_other().await;
        let body = tides();
        let path = asked(&app, &acme.key, body.clone()).await;
        // What calls and requests of the partner hold.
        let (tenant, character) = (Tenant::of_row("acme"), large());
        let hold = || app.app.characters.documents(&tenant, &character);
        let held = hold().unwrap();
        let refused = app.post(&acme.key, PATH, body).await;
        refused.expect(503);
        assert_eq!(refused.header("retry-after"), "2");

        // Nobody worked on it for long, which is no time that it waited for memory.
        let db = app.app.store.db();
        let old = "UPDATE completions SET created_at = 1";
        db.execute(old).await.unwrap();
        server::start_worker(&app.app, quick()).await.unwrap();
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

on_both_databases!(
    a_completion_that_finds_no_memory_for_long_fails,
    |builder| builder.without_worker().config(little_memory),
    |app| {
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, tides()).await;
        let tenant = Tenant::of_row("acme");
        let _held = app.app.characters.documents(&tenant, &large()).unwrap();
        // As after it was put off for ten minutes.
        let db = app.app.store.db();
        let put_off = "UPDATE work SET fence = 24 WHERE kind = 'messaging.complete'";
        assert_eq!(db.execute(put_off).await.unwrap(), 1);
        server::start_worker(&app.app, quick()).await.unwrap();
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "failed");
        assert_eq!(completion["error"]["code"], "no_memory");
        assert_eq!(open(&app).await, 0);
    }
);

on_both_databases!(
    a_completion_that_took_its_process_down_twice_fails,
    |builder| builder.without_worker(),
    |app| {
        let (acme, _) = app.acme_and_other().await;
        let path = asked(&app, &acme.key, hello()).await;
        let db = app.app.store.db();
        // As a process leaves it that died while it ran alone, which it does after a first death.
        let sql = "UPDATE work SET attempts = 2, deaths = 1, alone = TRUE, state = 'running', node_id = 'gone', \
                   lease_until = 1 WHERE kind = $1";
        let done = db
            .execute(statement(sql, ["messaging.complete".into()]))
            .await;
        assert_eq!(done.unwrap(), 1);
        server::start_worker(&app.app, quick()).await.unwrap();
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "failed");
        assert_eq!(completion["error"]["code"], "interrupted");
        assert_eq!(open(&app).await, 0);
    }
);

/// The server's binary.
struct Server {
    child: Child,
    base: String,
}

impl Server {
    fn start(database: &TestDatabase, upstream: &Upstream) -> Self {
        let mut child = command(database, &["serve"])
            .env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0")
            .env("COLLOQUY_ADMIN_KEY", ADMIN_KEY)
            .env("COLLOQUY_CHAT_BASE_URL", upstream.base_url().as_str())
            .env("COLLOQUY_CHAT_MODEL", "scripted-chat")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let base = line.trim().strip_prefix("colloquy listening on ");
        let base = base.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, base }
    }

    async fn send(&self, key: &str, path: &str, body: Option<&Value>) -> Value {
        let url = format!("{}{path}", self.base);
        let request = match body {
            Some(body) => client().post(url).json(body),
            None => client().get(url),
        };
        let answer = request.header("x-api-key", key).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }
}

impl Drop for Server {
    /// SIGKILL: nothing of it is cleaned up.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_outlives_a_process_that_is_killed_in_the_middle() {
    for database in TestDatabase::both().await {
        let upstream = Upstream::start().await;
        upstream.script(Api::Chat, Script::fault(Fault::Stall { after: 1 }));
        run_ok(&database, &["migrate"]);
        let key = run_ok(&database, &["partner", "create", "acme", "--quiet"]);
        let key = key.trim();
        let first = Server::start(&database, &upstream);
        let character = json!({"character": {"description": "{}", "personality": "You are Ada."}});
        let body = question(json!([written("m1", "Hello")]), character);
        let accepted = first.send(key, PATH, Some(&body)).await;
        let path = accepted["id"].as_str().unwrap();
        eventually("the model is asked", || async {
            upstream.requests(Api::Chat).len() == 1
        })
        .await;
        assert_eq!(first.send(key, path, None).await, accepted);
        drop(first);

        let second = Server::start(&database, &upstream);
        eventually("it is completed", || async {
            second.send(key, path, None).await["state"] == "completed"
        })
        .await;
        let completion = second.send(key, path, None).await;
        let answer = &completion["output"]["messages"][1]["text"];
        assert_eq!(answer, Script::default().text.as_str());
        assert_eq!(upstream.requests(Api::Chat).len(), 2);
    }
}
