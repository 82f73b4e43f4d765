//! Completions that outlive a process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use harness::{
    app::{ADMIN_KEY, client},
    elsewhere, eventually,
    process::{command, run_ok},
    upstream::{Fault, Script},
};

use super::*;

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
        elsewhere::eventually("it is completed", || async {
            second.send(key, path, None).await["state"] == "completed"
        })
        .await;
        let completion = second.send(key, path, None).await;
        let answer = &completion["output"]["messages"][1]["text"];
        assert_eq!(answer, Script::default().text.as_str());
        assert_eq!(upstream.requests(Api::Chat).len(), 2);
    }
}
