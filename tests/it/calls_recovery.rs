//! Calls whose process is killed with -9, or starts again. Calls of silent nodes, `backend/calls/tests/contract` has.

mod elsewhere;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use colloquy::{
    calls::{self, Outcome},
    clock::{Clock as _, ManualClock, SystemClock},
    node,
    store::Executor as _,
};
use harness::{
    TestApp, TestAppBuilder, TestDatabase,
    app::TestPartner,
    elsewhere::eventually,
    process::Server,
    receiver::{Receiver, Reply},
};
use jiff::SignedDuration;
use serde_json::{Value, json};

async fn create(server: &TestApp, partner: &TestPartner, webhook: Option<&str>) -> String {
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60, "on_completion_webhook": webhook});
    let answer = server.post(&partner.key, "/v2/calls", body).await;
    let id = &answer.expect(200)["data"]["id"];
    id.as_str().unwrap().to_owned()
}

async fn state(server: &TestApp, partner: &TestPartner, path: &str) -> Value {
    let read = server.get(&partner.key, path).await.expect(200);
    read["data"]["state"].clone()
}

fn bare(path: &str) -> &str {
    path.strip_prefix("/v2/calls/").unwrap()
}

fn completed() -> Outcome {
    Outcome {
        error: None,
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        visitor: serde_json::Map::new(),
        transcript: Vec::new(),
    }
}

/// An outcome that changes nothing, or what other nodes had presumed, is logged with the call's id.
#[tokio::test(flavor = "multi_thread")]
async fn outcomes_that_are_not_stored_or_come_late_are_logged() {
    let database = TestDatabase::sqlite();
    // Behind the clock of the server that reads the journal.
    let start = SystemClock.now() - SignedDuration::from_secs(60);
    let clock = Arc::new(ManualClock::new(start));
    let node = |name: &str| TestApp::builder(&database).node(name).clock(clock.clone());
    let alive = node("alive").without_worker().start().await;
    let (acme, _) = alive.acme_and_other().await;
    let silent = node("silent").idle().await;
    let ended = create(&alive, &acme, None).await;
    let lost = create(&alive, &acme, None).await;
    for path in [&ended, &lost] {
        let taken = calls::take(&silent.calls, bare(path), None).await;
        taken.unwrap().unwrap();
        let marked = calls::mark_ongoing(&silent.calls, bare(path)).await;
        marked.unwrap();
    }
    let finished = calls::finish(&silent.calls, bare(&ended), completed()).await;
    finished.unwrap();
    clock.advance(Duration::from_secs(31));
    calls::sweep(&alive.app.calls).await.unwrap();
    assert_eq!(state(&alive, &acme, &lost).await, "error");

    let journal = database.config().dir.join("journal");
    std::fs::create_dir_all(&journal).unwrap();
    let expected = [
        (bare(&ended), "the call had ended before"),
        (bare(&lost), "had presumed lost has ended"),
        ("gone", "there is no such call any more"),
    ];
    for (id, _) in expected {
        let entry = json!({"call": id, "ended_at": clock.now_ms(), "outcome": completed()});
        let file = journal.join(format!("call.{id}.json"));
        std::fs::write(file, entry.to_string()).unwrap();
    }
    let server = Server::start(&database, |_| {}).await;
    for (id, told) in expected {
        let is_it = |line: &str| ["WARN", id, told].iter().all(|part| line.contains(part));
        eventually(told, async || server.log().lines().any(is_it)).await;
    }
    // It is logged before the outcome is committed.
    let stored = async || state(&alive, &acme, &lost).await == "completed";
    eventually("the outcome counts", stored).await;
}

#[tokio::test]
async fn two_processes_on_one_data_folder_are_two_nodes_of_one_postgresql() {
    {
        let database = TestDatabase::postgres().await;
        let start = || TestApp::builder(&database).quick_worker().start();
        let first = start().await;
        let (acme, _) = first.acme_and_other().await;
        let id = create(&first, &acme, None).await;
        calls::take(&first.app.calls, bare(&id), None)
            .await
            .unwrap()
            .unwrap();
        let second = start().await;
        let name = |server: &TestApp| server.app.kernel.node.name.clone();
        assert_ne!(name(&first), name(&second));
        assert_eq!(state(&second, &acme, &id).await, "starting");
    }
}

/// A server of this node that delivers to the receiver.
fn serving(database: &TestDatabase, name: &str, receiver: &Receiver) -> TestAppBuilder {
    TestApp::builder(database)
        .node(name)
        .quick_worker()
        .config(|config| receiver.configure(config))
}

/// The database and the receiver's certificate authority, as [`the_killed_process`] is told of them.
const CHILD: &str = "COLLOQUY_TEST_CHILD";

/// The node that is killed and starts again.
const KILLED: &str = "killed";

/// Not a test: the process that the tests below kill. It prints its address, then takes, connects and finishes the calls
/// that it is told on its standard input.
#[tokio::test]
#[ignore = "the process that other tests start and kill"]
async fn the_killed_process() {
    let Ok(settings) = std::env::var(CHILD) else {
        return;
    };
    let (database, ca_file): (TestDatabase, PathBuf) = serde_json::from_str(&settings).unwrap();
    let server = TestApp::builder(&database)
        .node(KILLED)
        .quick_worker()
        .config(|config| {
            config.fetch.allow_private = true;
            config.fetch.ca_file = Some(ca_file);
        })
        .start()
        .await;
    println!("\nready {}", server.address);
    let app = server.app.clone();
    let commands = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Handle::current();
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let (command, id) = line.split_once(' ').unwrap();
            runtime.block_on(async {
                match command {
                    "take" => drop(calls::take(&app.calls, id, None).await.unwrap().unwrap()),
                    "connect" => calls::mark_ongoing(&app.calls, id).await.unwrap(),
                    "finish" => calls::finish(&app.calls, id, completed()).await.unwrap(),
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
    fn start(database: &TestDatabase, receiver: &Receiver) -> Self {
        let settings = json!([database, receiver.ca_file]);
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
        // Another node, so that there is someone to create calls; its sweeper does not know yet that the first died.
        let other = serving(&database, "other", &receiver).start().await;
        let (acme, _) = other.acme_and_other().await;
        let hook = format!("{}/hook", receiver.base);
        let mut paths = Vec::new();
        for _ in 0..4 {
            paths.push(create(&other, &acme, Some(&hook)).await);
        }
        let [starting, ongoing, completed, untouched] = &paths[..] else {
            unreachable!()
        };
        let mut process = Process::start(&database, &receiver);
        process.tell("take", starting);
        process.tell("take", ongoing);
        process.tell("connect", ongoing);
        process.tell("take", completed);
        process.tell("connect", completed);
        process.tell("finish", completed);
        assert_eq!(state(&other, &acme, ongoing).await, "ongoing");
        process.kill();
        assert_eq!(state(&other, &acme, ongoing).await, "ongoing");

        let next = serving(&database, KILLED, &receiver).start().await;
        assert_eq!(state(&next, &acme, starting).await, "error");
        assert_eq!(state(&next, &acme, ongoing).await, "error");
        assert_eq!(state(&next, &acme, completed).await, "completed");
        assert_eq!(state(&next, &acme, untouched).await, "starting");
        next.stop().await;
        other.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_under_way_in_a_process_killed_with_9_arrives_after_the_next_start() {
    for database in TestDatabase::both().await {
        let receiver = Receiver::start().await;
        let mut process = Process::start(&database, &receiver);
        let creator = serving(&database, "creator", &receiver).without_worker();
        let creator = creator.start().await;
        let (acme, _) = creator.acme_and_other().await;
        let path = create(&creator, &acme, Some(&format!("{}/hook", receiver.base))).await;
        receiver.script([Reply::Stall]);
        process.tell("take", &path);
        process.tell("finish", &path);
        let first = receiver.wait_for(1).await;
        process.kill();

        let next = serving(&database, KILLED, &receiver).start().await;
        let both = receiver.wait_for(2).await;
        assert_eq!(first[0].header("webhook-id"), both[1].header("webhook-id"));
        assert_eq!(first[0].body, both[1].body);
        let told = next.get(&acme.key, &path).await.expect(200);
        assert_eq!(both[1].json(), told);
        next.works_off("webhook.deliver").await;
        assert_eq!(receiver.received().len(), 2);
        let list = "/api/webhooks/acme/deliveries";
        let page = next.get(&acme.key, list).await.expect(200);
        assert_eq!(page["deliveries"][0]["state"], "succeeded");
        next.stop().await;
    }
}

/// A process that is killed while the database is away leaves its ends in the data folder.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_the_database_did_not_take_is_stored_at_the_next_start() {
    for database in TestDatabase::both().await {
        let receiver = Receiver::start().await;
        let creator = serving(&database, "creator", &receiver).start().await;
        let (acme, _) = creator.acme_and_other().await;
        let hook = format!("{}/hook", receiver.base);
        let path = create(&creator, &acme, Some(&hook)).await;
        let other = create(&creator, &acme, None).await;
        {
            let dying = serving(&database, KILLED, &receiver).idle().await;
            for path in [&path, &other] {
                calls::take(&dying.calls, bare(path), None)
                    .await
                    .unwrap()
                    .unwrap();
                calls::mark_ongoing(&dying.calls, bare(path)).await.unwrap();
            }
            dying.store.db().close().await;
            let outcome = Outcome {
                transcript: vec![calls::TranscriptLine {
                    text: "Good-bye".to_owned(),
                    originator: colloquy_protocol::Originator::User,
                    at_ms: 1,
                    interrupted: false,
                    reply: None,
                }],
                ..completed()
            };
            let stored = calls::end(&dying.calls, bare(&path), outcome);
            let journal = dying.config.store.dir.join("journal");
            eventually("the end is in the journal", async || {
                let mut files = std::fs::read_dir(&journal).unwrap();
                files.any(|file| {
                    file.unwrap()
                        .path()
                        .extension()
                        .is_some_and(|it| it == "json")
                })
            })
            .await;
            assert!(!stored.is_finished());
            stored.abort();
            drop(stored.await);
            assert_eq!(state(&creator, &acme, &path).await, "ongoing");
        }
        let next = serving(&database, KILLED, &receiver).start().await;
        assert_eq!(state(&next, &acme, &path).await, "completed");
        assert_eq!(state(&next, &acme, &other).await, "error");
        let transcript = next.get(&acme.key, &format!("{path}/transcript")).await;
        assert_eq!(
            transcript.expect(200)["data"]["transcript"][0]["text"],
            "Good-bye"
        );
        assert_eq!(
            receiver.wait_for(1).await[0].json()["data"]["duration"]["call_seconds"],
            5
        );
        let journal = next.app.config.store.dir.join("journal");
        assert_eq!(std::fs::read_dir(journal).unwrap().count(), 0);
        next.stop().await;
        creator.stop().await;
    }
}

/// Nobody could say that it lives while the database was away; so nobody is taken for dead at once when it is back.
#[tokio::test]
async fn nodes_get_their_time_anew_after_the_database_was_away() {
    let database = TestDatabase::sqlite();
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let of = |name: &str| TestApp::builder(&database).node(name).clock(clock.clone());
    let judge = of("judge").without_worker().start().await;
    let (acme, _) = judge.acme_and_other().await;
    let silent = of("silent").idle().await;
    let path = create(&judge, &acme, None).await;
    calls::take(&silent.calls, bare(&path), None)
        .await
        .unwrap()
        .unwrap();

    let run = async |sql: &'static str| judge.app.store.db().execute(sql).await.unwrap();
    run("CREATE TRIGGER away BEFORE UPDATE ON nodes BEGIN SELECT RAISE(ABORT, 'away'); END").await;
    node::heartbeat(&judge.app.kernel).await.unwrap_err();
    clock.advance(Duration::from_secs(40));
    run("DROP TRIGGER away").await;
    node::heartbeat(&judge.app.kernel).await.unwrap();
    clock.advance(Duration::from_secs(29));
    calls::sweep(&judge.app.calls).await.unwrap();
    assert_eq!(state(&judge, &acme, &path).await, "starting");
    clock.advance(Duration::from_secs(1));
    calls::sweep(&judge.app.calls).await.unwrap();
    assert_eq!(state(&judge, &acme, &path).await, "error");
}
