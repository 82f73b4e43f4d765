//! Calls whose end nobody else writes: never joined, node lost, process killed with -9.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use colloquy::{
    calls::{self, Outcome},
    clock::{ManualClock, SystemClock},
    config::{Config, Secret},
};
use harness::{
    database::TestDatabase,
    receiver::{Receiver, Reply},
    server::{Server, app, settings},
};
use serde_json::{Value, json};

const ACME: &str = "partner:acme";

async fn create(server: &Server, webhook: Option<&str>) -> String {
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60, "on_completion_webhook": webhook});
    let answer = server.post(ACME, "/v2/calls", &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body["data"]["id"].as_str().unwrap().to_owned()
}

async fn state(server: &Server, path: &str) -> Value {
    server.get(ACME, path).await.body["data"]["state"].clone()
}

fn bare(path: &str) -> &str {
    path.strip_prefix("/v2/calls/").unwrap()
}

fn completed() -> Outcome {
    Outcome {
        error: None,
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        transcript: Vec::new(),
    }
}

#[tokio::test]
async fn a_call_that_nobody_joins_ends_in_error_at_its_expiry() {
    for database in TestDatabase::both().await {
        let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
        let server = Server::without_worker(settings(&database, "n"), clock.clone()).await;
        let (never, joined) = (create(&server, None).await, create(&server, None).await);
        calls::take(&server.app, bare(&joined), None)
            .await
            .unwrap()
            .unwrap();
        clock.advance(Duration::from_secs(299));
        calls::sweep(&server.app).await.unwrap();
        assert_eq!(state(&server, &never).await, "starting");
        clock.advance(Duration::from_secs(1));
        calls::sweep(&server.app).await.unwrap();
        assert_eq!(state(&server, &never).await, "error");
        assert_eq!(state(&server, &joined).await, "starting");
        let take = calls::take(&server.app, bare(&never), None).await.unwrap();
        assert!(take.is_err());
    }
}

#[tokio::test]
async fn calls_of_a_silent_node_end_in_error_and_those_of_living_nodes_go_on() {
    for database in TestDatabase::both().await {
        let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
        let alive = Server::without_worker(settings(&database, "alive"), clock.clone()).await;
        // Joined, but it runs nothing: no heartbeat after the first.
        let silent = app(settings(&database, "silent"), clock.clone()).await;
        let kept = create(&alive, None).await;
        let (lost, lost_early) = (create(&alive, None).await, create(&alive, None).await);
        calls::take(&alive.app, bare(&kept), None)
            .await
            .unwrap()
            .unwrap();
        calls::mark_ongoing(&alive.app, bare(&kept)).await.unwrap();
        calls::take(&silent, bare(&lost), None)
            .await
            .unwrap()
            .unwrap();
        calls::mark_ongoing(&silent, bare(&lost)).await.unwrap();
        calls::take(&silent, bare(&lost_early), None)
            .await
            .unwrap()
            .unwrap();

        clock.advance(Duration::from_secs(30));
        calls::sweep(&alive.app).await.unwrap();
        assert_eq!(state(&alive, &lost).await, "ongoing");
        clock.advance(Duration::from_secs(1));
        calls::sweep(&alive.app).await.unwrap();
        assert_eq!(state(&alive, &lost).await, "error");
        assert_eq!(state(&alive, &lost_early).await, "error");
        assert_eq!(state(&alive, &kept).await, "ongoing");
        // The lost node comes back and finds its call over.
        calls::finish(&silent, bare(&lost), completed())
            .await
            .unwrap();
        assert_eq!(state(&alive, &lost).await, "error");
    }
}

#[tokio::test]
async fn two_processes_on_one_data_folder_are_two_nodes() {
    for database in TestDatabase::both().await {
        let first = Server::start(settings(&database, "n")).await;
        let id = create(&first, None).await;
        calls::take(&first.app, bare(&id), None)
            .await
            .unwrap()
            .unwrap();
        let second = Server::start(settings(&database, "n")).await;
        let name = |server: &Server| server.app.node.get().unwrap().name.clone();
        assert_ne!(name(&first), name(&second));
        assert_eq!(state(&second, &id).await, "starting");
    }
}

/// The settings of [`the_killed_process`].
const CHILD: &str = "COLLOQUY_TEST_CHILD";

/// Not a test: the process that the tests below kill. It prints its address, then takes, connects and finishes the calls
/// that it is told on its standard input.
#[tokio::test]
#[ignore = "the process that other tests start and kill"]
async fn the_killed_process() {
    let Ok(settings) = std::env::var(CHILD) else {
        return;
    };
    let given: Value = serde_json::from_str(&settings).unwrap();
    let text = |name: &str| given[name].as_str().unwrap();
    let mut config = Config {
        admin_key: Some(Secret::new(harness::app::ADMIN_KEY)),
        ..Config::default()
    };
    config.store.dir = text("dir").into();
    config.store.database_url = Some(Secret::new(text("url")));
    config.fetch.allow_private = true;
    config.fetch.ca_file = Some(text("ca").into());
    let server = Server::start(config).await;
    println!("\nready {}", server.base);
    let app = server.app.clone();
    let commands = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Handle::current();
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let (command, id) = line.split_once(' ').unwrap();
            runtime.block_on(async {
                match command {
                    "take" => drop(calls::take(&app, id, None).await.unwrap().unwrap()),
                    "connect" => calls::mark_ongoing(&app, id).await.unwrap(),
                    "finish" => calls::finish(&app, id, completed()).await.unwrap(),
                    other => panic!("{other}"),
                }
            });
            println!("\ndone {line}");
        }
    });
    commands.await.unwrap();
    panic!("the other test ended without killing this process");
}

struct Process {
    child: Child,
    output: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(config: &Config, receiver: &Receiver) -> Self {
        let settings = json!({
            "dir": config.store.dir,
            "url": config.store.database_url.as_ref().unwrap().reveal(),
            "ca": receiver.ca_file,
        });
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "calls_recovery::the_killed_process",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD, settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, output };
        process.wait_for("ready ");
        process
    }

    fn wait_for(&mut self, start: &str) {
        let found = self.output.any(|line| line.unwrap().starts_with(start));
        assert!(found, "the process ended before it said {start:?}");
    }

    fn tell(&mut self, command: &str, path: &str) {
        let line = format!("{command} {}", bare(path));
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
        self.wait_for(&format!("done {line}"));
    }

    /// SIGKILL: nothing of it is cleaned up.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_process_killed_with_9_end_in_error_at_the_next_start() {
    let receiver = Receiver::start().await;
    for database in TestDatabase::both().await {
        let mut config = settings(&database, "n");
        config.fetch.allow_private = true;
        config.fetch.ca_file = Some(receiver.ca_file.clone());
        // Another node, so that there is someone to create calls; its sweeper does not know yet that the first died.
        let other = Server::start(database_config(&config, &settings(&database, "other"))).await;
        let hook = format!("{}/hook", receiver.base);
        let mut paths = Vec::new();
        for _ in 0..4 {
            paths.push(create(&other, Some(&hook)).await);
        }
        let [starting, ongoing, completed, untouched] = &paths[..] else {
            unreachable!()
        };
        let mut process = Process::start(&config, &receiver);
        process.tell("take", starting);
        process.tell("take", ongoing);
        process.tell("connect", ongoing);
        process.tell("take", completed);
        process.tell("connect", completed);
        process.tell("finish", completed);
        assert_eq!(state(&other, ongoing).await, "ongoing");
        process.kill();
        assert_eq!(state(&other, ongoing).await, "ongoing");

        let next = Server::start(config).await;
        assert_eq!(state(&next, starting).await, "error");
        assert_eq!(state(&next, ongoing).await, "error");
        assert_eq!(state(&next, completed).await, "completed");
        assert_eq!(state(&next, untouched).await, "starting");
        next.stop().await;
        other.stop().await;
    }
}

fn database_config(like: &Config, own: &Config) -> Config {
    Config {
        store: own.store.clone(),
        ..like.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_under_way_in_a_process_killed_with_9_arrives_after_the_next_start() {
    for database in TestDatabase::both().await {
        let receiver = Receiver::start().await;
        let mut config = settings(&database, "n");
        config.fetch.allow_private = true;
        config.fetch.ca_file = Some(receiver.ca_file.clone());
        let mut process = Process::start(&config, &receiver);
        let creator_config = database_config(&config, &settings(&database, "creator"));
        let creator = Server::without_worker(creator_config, Arc::new(SystemClock)).await;
        let path = create(&creator, Some(&format!("{}/hook", receiver.base))).await;
        receiver.script([Reply::Stall]);
        process.tell("take", &path);
        process.tell("finish", &path);
        let first = receiver.wait_for(1).await;
        process.kill();

        let next = Server::start(config).await;
        let both = receiver.wait_for(2).await;
        assert_eq!(first[0].header("webhook-id"), both[1].header("webhook-id"));
        assert_eq!(first[0].body, both[1].body);
        assert_eq!(both[1].json(), next.get(ACME, &path).await.body);
        receiver.stays_at(2).await;
        let page = next.get(ACME, "/api/webhooks/acme/deliveries").await.body;
        assert_eq!(page["deliveries"][0]["state"], "succeeded");
        next.stop().await;
    }
}
