//! Lost processes and failing databases.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use colloquy_store::Dialect;
use serde_json::json;

use super::*;

/// The database and the quota, as [`the_killed_process`] is told of them.
const CHILD: &str = "COLLOQUY_TEST_CHILD";

/// The node that is killed and starts again.
const KILLED: &str = "killed";

/// Not a test: the process that the test below kills. It reserves 100 tokens six times, settles half of them, and waits.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that another test starts and kills"]
async fn the_killed_process() {
    let Ok(settings) = std::env::var(CHILD) else {
        return;
    };
    let (database, quota): (TestDatabase, String) = serde_json::from_str(&settings).unwrap();
    let node = start_as(&database, KILLED).await;
    let quota = quotas::read(&node, &acme(), &quota).await.unwrap();
    let quota = Arc::new(quota.quota);
    let mut open = Vec::new();
    for index in 0..6 {
        let reservation = reserve(&node, &quota, 100).await.unwrap();
        if index % 2 == 0 {
            reservation.settled(usage(30), Outcome::Completed).await;
        } else {
            open.push(reservation);
        }
    }
    println!("\nready");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_with_9_loses_no_usage_and_its_reservations_are_settled_at_their_bound() {
    for database in TestDatabase::both().await {
        let other = start_as(&database, "other").await;
        let quota = quota(&other, 1_000).await;
        let settings = json!([database, quota.id]);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "failures::the_killed_process",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD, settings.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = output.any(|line| line.unwrap() == "ready");
        // SIGKILL: nothing of it is cleaned up.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ready, "the process ended by itself");
        assert_eq!(counters(&other, &quota).await, (90, 300));

        let next = start_as(&database, KILLED).await;
        assert_eq!(counters(&next, &quota).await, (390, 0));
        let expected = [
            vec![record("bound", 100); 3],
            vec![record("completed", 30); 3],
        ];
        assert_eq!(records(&next).await, expected.concat());
    }
}

on_each_database!(
    a_failing_database_refuses_reservations_and_loses_no_settlement,
    |database| {
        let node = start(&database).await;
        let quota = quota(&node, 10_000).await;
        let mut open = Vec::new();
        for _ in 0..20 {
            open.push(reserve(&node, &quota, 100).await.unwrap());
        }
        let last = open.pop().unwrap();
        execute(&node, "ALTER TABLE reservations RENAME TO gone").await;
        for reservation in open {
            reservation.settle(usage(40), Outcome::Completed);
        }
        let waiting = node
            .kernel
            .tasks
            .spawn(last.settled(usage(50), Outcome::Failed));
        // The writer tries the settlements again with each of them.
        for _ in 0..20 {
            let error = reserve(&node, &quota, 100).await.unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (503, "unavailable"));
        }
        assert!(!waiting.is_finished());
        assert_eq!(node.ledger.open(), 20);
        assert_eq!(counters(&node, &quota).await, (0, 2_000));

        execute(&node, "ALTER TABLE gone RENAME TO reservations").await;
        waiting.await.unwrap();
        eventually("all is settled", async || node.ledger.open() == 0).await;
        assert_eq!(counters(&node, &quota).await, (19 * 40 + 50, 0));
        let mut expected = vec![record("completed", 40); 19];
        expected.push(record("failed", 50));
        assert_eq!(records(&node).await, expected);
        reserve(&node, &quota, 100)
            .await
            .unwrap()
            .settle(usage(1), Outcome::Completed);
    }
);

/// Keeps records of the model `bad` from being stored.
fn refuse_bad(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "ALTER TABLE usage_records ADD CONSTRAINT no_bad CHECK (model <> 'bad')"
        }
        Dialect::Sqlite => {
            "CREATE TRIGGER no_bad BEFORE INSERT ON usage_records WHEN NEW.model = 'bad' \
              BEGIN SELECT RAISE(ABORT, 'bad'); END"
        }
    }
}

fn allow_bad(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "ALTER TABLE usage_records DROP CONSTRAINT no_bad",
        Dialect::Sqlite => "DROP TRIGGER no_bad",
    }
}

on_each_database!(
    one_settlement_that_cannot_be_stored_does_not_stop_the_others,
    |database| {
        let node = start(&database).await;
        let dialect = node.store.db().dialect();
        let quota = quota(&node, 10_000).await;
        let mut open = Vec::new();
        for _ in 0..21 {
            open.push(reserve(&node, &quota, 100).await.unwrap());
        }
        open[10].set_model("bad");
        execute(&node, refuse_bad(dialect)).await;
        for reservation in open {
            reservation.settle(usage(10), Outcome::Completed);
        }
        eventually("the others are settled", async || node.ledger.open() == 1).await;
        assert_eq!(counters(&node, &quota).await, (200, 100));
        // New ones are not held up.
        let next = reserve(&node, &quota, 100).await.unwrap();
        next.settled(usage(10), Outcome::Completed).await;
        assert_eq!(counters(&node, &quota).await, (210, 100));
        execute(&node, allow_bad(dialect)).await;
        eventually("it is settled as well", async || node.ledger.open() == 0).await;
        assert_eq!(counters(&node, &quota).await, (220, 0));
    }
);
