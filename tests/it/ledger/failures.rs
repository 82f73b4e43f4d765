//! Lost processes, failing databases, shutdown.

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
    let (database, path, key): (TestDatabase, String, String) =
        serde_json::from_str(&settings).unwrap();
    let app = TestApp::builder(&database).node(KILLED).start().await;
    let caller = TestQuota { path, key }.caller(&app.app).await.unwrap();
    let mut open = Vec::new();
    for index in 0..6 {
        let reservation = reserve(&app.app, &caller, 100).await.unwrap();
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
        let other = TestApp::builder(&database).node("other").start().await;
        let quota = quota(&other, 1_000).await;
        let settings = json!([database, quota.path, quota.key]);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "ledger::failures::the_killed_process",
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

        let next = TestApp::builder(&database).node(KILLED).start().await;
        assert_eq!(counters(&next, &quota).await, (390, 0));
        let expected = [
            vec![record("bound", 100); 3],
            vec![record("completed", 30); 3],
        ];
        assert_eq!(records(&next.app).await, expected.concat());
        next.stop().await;
        other.stop().await;
    }
}

on_both_databases!(
    a_failing_database_refuses_reservations_and_loses_no_settlement,
    |app| {
        let quota = quota(&app, 10_000).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let mut open = Vec::new();
        for _ in 0..20 {
            open.push(reserve(&app.app, &caller, 100).await.unwrap());
        }
        let last = open.pop().unwrap();
        execute(&app.app, "ALTER TABLE reservations RENAME TO gone").await;
        for reservation in open {
            reservation.settle(usage(40), Outcome::Completed);
        }
        let waiting = app
            .app
            .kernel
            .tasks
            .spawn(last.settled(usage(50), Outcome::Failed));
        for _ in 0..3 {
            let error = reserve(&app.app, &caller, 100).await.unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (503, "unavailable"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(!waiting.is_finished());
        assert_eq!(app.app.ledger.open(), 20);
        assert_eq!(counters(&app, &quota).await, (0, 2_000));

        execute(&app.app, "ALTER TABLE gone RENAME TO reservations").await;
        waiting.await.unwrap();
        eventually("all is settled", async || app.app.ledger.open() == 0).await;
        assert_eq!(counters(&app, &quota).await, (19 * 40 + 50, 0));
        let mut expected = vec![record("completed", 40); 19];
        expected.push(record("failed", 50));
        assert_eq!(records(&app.app).await, expected);
        reserve(&app.app, &caller, 100)
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

on_both_databases!(
    one_settlement_that_cannot_be_stored_does_not_stop_the_others,
    |app| {
        let dialect = app.app.store.db().dialect();
        let quota = quota(&app, 10_000).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let mut open = Vec::new();
        for _ in 0..21 {
            open.push(reserve(&app.app, &caller, 100).await.unwrap());
        }
        open[10].set_model("bad");
        execute(&app.app, refuse_bad(dialect)).await;
        for reservation in open {
            reservation.settle(usage(10), Outcome::Completed);
        }
        eventually("the others are settled", async || {
            app.app.ledger.open() == 1
        })
        .await;
        assert_eq!(counters(&app, &quota).await, (200, 100));
        // New ones are not held up.
        let next = reserve(&app.app, &caller, 100).await.unwrap();
        next.settled(usage(10), Outcome::Completed).await;
        assert_eq!(counters(&app, &quota).await, (210, 100));
        execute(&app.app, allow_bad(dialect)).await;
        eventually("it is settled as well", async || app.app.ledger.open() == 0).await;
        assert_eq!(counters(&app, &quota).await, (220, 0));
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn stopping_stores_what_was_settled_and_waits_for_what_is_open() {
    for database in TestDatabase::both().await {
        let app = TestApp::builder(&database).start().await;
        let quota = quota(&app, 1_000_000).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let mut open = rush(&[&app], &quota, 300, 100).await;
        assert_eq!(open.len(), 300);
        let last = open.pop().unwrap();
        for reservation in open {
            reservation.settle(usage(10), Outcome::Completed);
        }
        app.app.kernel.tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            last.settle(usage(1), Outcome::Cancelled);
        });
        let parts = app.app.clone();
        app.stop().await;
        assert_eq!(parts.ledger.open(), 0);
        let error = reserve(&parts, &caller, 1).await.unwrap_err();
        assert_eq!(error.status.as_u16(), 503);
        // It holds the data folder.
        drop(parts);

        let next = TestApp::builder(&database).start().await;
        assert_eq!(counters(&next, &quota).await, (2_991, 0));
        assert_eq!(records(&next.app).await.len(), 300);
    }
}

on_both_databases!(
    old_records_are_removed_and_the_sums_of_days_stay,
    |builder| builder
        .manual_clock()
        .config(|config| config.limits.usage_record_days = 3),
    |app| {
        let quota = quota(&app, 1_000).await;
        let caller = quota.caller(&app.app).await.unwrap();
        for _ in 0..3 {
            let reservation = reserve(&app.app, &caller, 10).await.unwrap();
            reservation.settled(usage(10), Outcome::Completed).await;
            app.advance(DAY);
        }
        assert_eq!(ledger::prune(&app.app).await.unwrap(), 0);
        app.advance(Duration::from_millis(1));
        assert_eq!(ledger::prune(&app.app).await.unwrap(), 1);
        app.advance(DAY * 2);
        assert_eq!(ledger::prune(&app.app).await.unwrap(), 2);
        assert_eq!(records(&app.app).await, []);
        let path = format!("{}/usage", quota.path);
        let report = app.get(harness::app::ADMIN_KEY, &path).await.expect(200);
        assert_eq!(report["total"]["requests"], 3);
        assert_eq!(report["rows"].as_array().map(Vec::len), Some(3));
        assert_eq!(report["rows"][0]["model"], Value::Null);
    }
);
