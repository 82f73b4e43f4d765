//! The ledger: limits under concurrency and over nodes, lost processes, failing databases, shutdown.

mod budgets;
mod failures;
mod late;

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use colloquy::{
    App,
    accounts::{
        ledger::{self, Amounts, Measure, Outcome, Reservation, UsageContext},
        quotas::Quota,
    },
    clock::ManualClock,
    http::ApiError,
    store::{Dialect, Executor as _},
};
use harness::{TestApp, TestDatabase, app::TestQuota, eventually, on_both_databases};
use proptest::prelude::*;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn about(request_id: &str) -> UsageContext {
    UsageContext {
        endpoint: "chat.completions",
        model: "gpt".to_owned(),
        character: Some("acme/ada".to_owned()),
        request_id: request_id.to_owned(),
    }
}

fn bound(tokens: u64) -> Amounts {
    Amounts::default()
        .with(Measure::Tokens, tokens)
        .with(Measure::Cost, tokens * 100)
}

fn usage(tokens: u64) -> Amounts {
    Amounts::tokens(tokens - tokens / 2, tokens / 2).with(Measure::Cost, tokens * 100)
}

async fn reserve(app: &App, quota: &Arc<Quota>, tokens: u64) -> Result<Reservation, ApiError> {
    let bound = bound(tokens);
    let mut reservation = app.ledger.reserve(quota, bound, about("request")).await?;
    reservation.begin();
    Ok(reservation)
}

/// The partner `acme` and a quota of it with so many tokens for its lifetime.
async fn quota(app: &TestApp, tokens: u64) -> TestQuota {
    let acme = app.partner("acme").await;
    let body = json!({"kinds": ["text"], "limits": {"tokens": tokens}, "period": "lifetime"});
    app.quota(&acme, body).await
}

/// Tokens that are used and reserved, as the API shows them.
async fn counters(app: &TestApp, quota: &TestQuota) -> (u64, u64) {
    let read = app
        .get(harness::app::ADMIN_KEY, &quota.path)
        .await
        .expect(200);
    let tokens = |field: &str| read[field]["tokens"].as_u64().unwrap();
    (tokens("used"), tokens("reserved"))
}

/// `(outcome, tokens, cost)` of each record, sorted.
async fn records(app: &App) -> Vec<(String, i64, i64)> {
    let db = app.store.db();
    let sql = "SELECT outcome, amounts FROM usage_records";
    let rows: Vec<Record> = db.fetch_all(sql).await.unwrap();
    let record = |row: Record| {
        let amounts: Value = serde_json::from_str(&row.amounts).unwrap();
        let of = |measure: &str| amounts[measure].as_i64().unwrap_or_default();
        assert_eq!(of("tokens"), of("input_tokens") + of("output_tokens"));
        (row.outcome, of("tokens"), of("cost"))
    };
    let mut records: Vec<_> = rows.into_iter().map(record).collect();
    records.sort();
    records
}

#[derive(sqlx::FromRow)]
struct Record {
    outcome: String,
    amounts: String,
}

fn record(outcome: &str, tokens: i64) -> (String, i64, i64) {
    (outcome.to_owned(), tokens, tokens * 100)
}

async fn execute(app: &App, sql: &'static str) {
    app.store.db().execute(sql).await.unwrap();
}

/// Runs that many at once and gives those that were admitted.
async fn rush(apps: &[&TestApp], quota: &TestQuota, each: usize, tokens: u64) -> Vec<Reservation> {
    let mut asking = tokio::task::JoinSet::new();
    for app in apps {
        let caller = quota.caller(&app.app).await.unwrap();
        for _ in 0..each {
            let (app, caller) = (app.app.clone(), caller.clone());
            asking.spawn(async move { reserve(&app, &caller, tokens).await });
        }
    }
    let mut admitted = Vec::new();
    for answer in asking.join_all().await {
        match answer {
            Ok(reservation) => admitted.push(reservation),
            Err(error) => assert_eq!(error.code, "quota_exhausted", "{error:?}"),
        }
    }
    admitted
}

on_both_databases!(what_never_began_is_taken_back, |app| {
    let quota = quota(&app, 100).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let unused = app.app.ledger.reserve(&caller, bound(60), about("request"));
    drop(unused.await.unwrap());
    drop(reserve(&app.app, &caller, 70).await.unwrap());
    eventually("both are settled", async || app.app.ledger.open() == 0).await;
    assert_eq!(counters(&app, &quota).await, (70, 0));
    assert_eq!(records(&app.app).await, [record("bound", 70)]);
});

/// What is done to a quota, in any order; reservations are named by their place among those that are open.
#[derive(Debug, Clone)]
enum Step {
    Reserve(u64),
    Settle(usize, u64),
    Drop(usize),
    /// The process is killed, and another one starts.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u64..60).prop_map(Step::Reserve),
        4 => (any::<usize>(), 0_u64..60).prop_map(|(nth, used)| Step::Settle(nth, used)),
        2 => any::<usize>().prop_map(Step::Drop),
        1 => Just(Step::Crash),
    ]
}

/// Plays the steps against the real database; what is used and reserved has to be what the steps say.
async fn play(database: TestDatabase, steps: Vec<Step>) {
    const LIMIT: u64 = 200;
    let node = |nth: usize| {
        TestApp::builder(&database)
            .node(&format!("node-{nth}"))
            .start()
    };
    let mut apps = vec![node(0).await];
    let quota = quota(&apps[0], LIMIT).await;
    let (mut used, mut open) = (0, Vec::<(Reservation, u64)>::new());
    for step in steps {
        let app = apps.last().unwrap();
        match step {
            Step::Reserve(tokens) => {
                let caller = quota.caller(&app.app).await.unwrap();
                let reserved = open.iter().map(|(_, bound)| bound).sum::<u64>();
                match reserve(&app.app, &caller, tokens).await {
                    Ok(reservation) => {
                        assert!(used + reserved + tokens <= LIMIT);
                        open.push((reservation, tokens));
                    }
                    Err(_) => assert!(used + reserved + tokens > LIMIT),
                }
            }
            Step::Settle(nth, tokens) if !open.is_empty() => {
                let (reservation, bound) = open.swap_remove(nth % open.len());
                let tokens = tokens.min(bound);
                reservation.settle(usage(tokens), Outcome::Completed);
                used += tokens;
            }
            Step::Drop(nth) if !open.is_empty() => {
                let (reservation, bound) = open.swap_remove(nth % open.len());
                drop(reservation);
                used += bound;
            }
            Step::Crash => {
                eventually("what was settled is stored", async || {
                    app.app.ledger.open() == open.len()
                })
                .await;
                // Nobody drops what a killed process held.
                used += open.iter().map(|(_, bound)| bound).sum::<u64>();
                open.drain(..)
                    .for_each(|(reservation, _)| std::mem::forget(reservation));
                execute(
                    &app.app,
                    "UPDATE nodes SET ended_at = 1 WHERE ended_at IS NULL",
                )
                .await;
                let next = node(apps.len()).await;
                apps.push(next);
            }
            Step::Settle(..) | Step::Drop(_) => {}
        }
    }
    let app = apps.last().unwrap();
    let reserved = open.iter().map(|(_, bound)| bound).sum::<u64>();
    eventually("the books say what was done", async || {
        counters(app, &quota).await == (used, reserved)
    })
    .await;
    let recorded = records(&app.app)
        .await
        .iter()
        .map(|(_, tokens, _)| tokens)
        .sum::<i64>();
    assert_eq!(recorded.unsigned_abs(), used);
}

#[test]
fn any_order_of_events_leaves_the_books_right() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let steps = proptest::collection::vec(step(), 1..40);
    proptest!(ProptestConfig::with_cases(12), |(steps in steps)| {
        runtime.block_on(async {
            play(TestDatabase::sqlite(), steps.clone()).await;
            play(TestDatabase::postgres().await, steps).await;
        });
    });
}

on_both_databases!(sixty_four_at_once_against_a_limit_for_ten, |app| {
    let quota = quota(&app, 1_009).await;
    let admitted = rush(&[&app], &quota, 64, 100).await;
    assert_eq!(admitted.len(), 10);
    assert_eq!(counters(&app, &quota).await, (0, 1_000));
    assert_eq!(app.app.ledger.open(), 10);
    let settling = admitted
        .into_iter()
        .map(|reservation| reservation.settled(usage(30), Outcome::Completed));
    futures_util::future::join_all(settling).await;
    assert_eq!(counters(&app, &quota).await, (300, 0));
    assert_eq!(records(&app.app).await, vec![record("completed", 30); 10]);
    assert_eq!(app.app.ledger.open(), 0);
    // What was not used can be reserved again.
    assert_eq!(rush(&[&app], &quota, 64, 100).await.len(), 7);
});

on_both_databases!(
    a_request_is_not_refused_for_what_an_ended_one_has_not_used,
    |app| {
        let quota = quota(&app, 100).await;
        let caller = quota.caller(&app.app).await.unwrap();
        // Each bound is all that is left; what was used of it is stored a moment later, and then it is really gone.
        for used in 0..10 {
            let left = 100 - 10 * used;
            let reservation = reserve(&app.app, &caller, left).await.unwrap();
            reservation.settle(usage(10), Outcome::Completed);
        }
        let refused = reserve(&app.app, &caller, 1).await.unwrap_err();
        assert_eq!(refused.code, "quota_exhausted");
        assert_eq!(counters(&app, &quota).await, (100, 0));
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_too_much_of_a_busy_quota_hears_so() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let quota = quota(&app, 1_000_000).await;
    let caller = quota.caller(&app.app).await.unwrap();
    // Each answer takes a few transactions, of which each has one reservation of everybody: no time, which a slow machine would exceed.
    let most = 10_000;
    let made = AtomicUsize::new(0);
    let busy = (0..16).map(async |_| {
        while made.fetch_add(1, Ordering::Relaxed) < most {
            let reservation = reserve(&app.app, &caller, 1).await.unwrap();
            reservation.settle(usage(1), Outcome::Completed);
        }
    });
    let asked = async {
        for _ in 0..20 {
            let refused = reserve(&app.app, &caller, 1_000_001).await.unwrap_err();
            assert_eq!(refused.code, "quota_exhausted");
        }
    };
    tokio::select! {
        _ = futures_util::future::join_all(busy) => panic!("no answer while others made {most} reservations"),
        () = asked => {}
    }
}

/// Two nodes on one database, at the same time.
async fn two_nodes_never_exceed_together(database: TestDatabase) {
    let first = TestApp::builder(&database).node("first").start().await;
    let second = TestApp::builder(&database).node("second").start().await;
    let quota = quota(&first, 1_000).await;
    let mut used = 0;
    for round in 0_u64..5 {
        let admitted = rush(&[&first, &second], &quota, 32, 100).await;
        assert_eq!(admitted.len() as u64, (1_000 - used) / 100, "round {round}");
        let settling = admitted
            .into_iter()
            .map(|reservation| reservation.settled(usage(20), Outcome::Completed));
        used += 20 * futures_util::future::join_all(settling).await.len() as u64;
        assert_eq!(counters(&second, &quota).await, (used, 0));
    }
    // A changed limit counts at once on both.
    let body = json!({"limits": {"tokens": used + 5}});
    first
        .put(harness::app::ADMIN_KEY, &quota.path, body)
        .await
        .expect(200);
    let caller = quota.caller(&second.app).await.unwrap();
    assert!(reserve(&second.app, &caller, 6).await.is_err());
    let _last = reserve(&second.app, &caller, 5).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_never_exceed_together_sqlite() {
    two_nodes_never_exceed_together(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_never_exceed_together_postgres() {
    two_nodes_never_exceed_together(TestDatabase::postgres().await).await;
}

on_both_databases!(
    a_refusal_says_when_to_come_back,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let body =
            json!({"kinds": ["text"], "limits": {"tokens": 100, "dollars": "1"}, "period": "day"});
        let quota = app.quota(&acme, body).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let refused = async |tokens| {
            let error = reserve(&app.app, &caller, tokens).await.unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.code),
                (429, "quota_exhausted")
            );
            error.retry_after.map(|wait| wait.as_secs())
        };
        let running = reserve(&app.app, &caller, 60).await.unwrap();
        let standing = running.standing();
        assert_eq!(standing.reserved, bound(60));
        assert_eq!(standing.remaining(Measure::Tokens), Some(40));
        assert_eq!(refused(41).await, Some(1));
        assert_eq!(refused(101).await, None);
        running.settled(usage(60), Outcome::Completed).await;
        // At 03:04:05 the day has 75,355 seconds left.
        assert_eq!(refused(41).await, Some(75_355));
        app.advance(Duration::from_secs(75_355));
        let tomorrow = reserve(&app.app, &caller, 100).await.unwrap();
        assert_eq!(tomorrow.standing().used, Amounts::default());
        tomorrow.settled(usage(100), Outcome::Completed).await;
        let body = json!({"period": "lifetime"});
        app.put(&acme.key, &quota.path, body).await.expect(200);
        assert_eq!(refused(1).await, None);
    }
);

on_both_databases!(
    a_clock_that_went_forward_and_back_leaves_no_quota_exhausted,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let body = json!({"kinds": ["text"], "limits": {"tokens": 100}, "period": "day"});
        let quota = app.quota(&acme, body).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let settled = async |tokens| {
            let reserved = reserve(&app.app, &caller, tokens).await.unwrap();
            reserved.settled(usage(tokens), Outcome::Completed).await;
        };
        settled(50).await;
        let open = reserve(&app.app, &caller, 10).await.unwrap();

        app.set_clock("2026-02-11T03:04:05Z");
        settled(90).await;
        let ahead = reserve(&app.app, &caller, 10).await.unwrap();
        let wrong = reserve(&app.app, &caller, 1).await.unwrap_err();
        assert_eq!(wrong.code, "quota_exhausted");
        app.set_clock("2026-01-02T04:00:00Z");
        reserve(&app.app, &caller, 1).await.unwrap_err();

        // What was reserved while the clock was wrong counts in the running period, too.
        assert_eq!(ledger::put_back(&app.app).await.unwrap(), 1);
        assert_eq!(counters(&app, &quota).await, (50, 20));
        settled(30).await;
        reserve(&app.app, &caller, 1).await.unwrap_err();
        open.settled(usage(8), Outcome::Completed).await;
        ahead.settled(usage(9), Outcome::Completed).await;
        assert_eq!(counters(&app, &quota).await, (97, 0));

        // The next day is begun a little early by a node whose clock is ahead, and stays.
        app.set_clock("2026-01-03T00:00:01Z");
        settled(100).await;
        app.set_clock("2026-01-02T23:30:00Z");
        assert_eq!(ledger::put_back(&app.app).await.unwrap(), 0);
        assert_eq!(counters(&app, &quota).await, (100, 0));
    }
);

on_both_databases!(
    usage_counts_for_the_day_of_its_reservation,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let body = json!({"kinds": ["text"], "limits": {"tokens": 100}, "period": "day"});
        let quota = app.quota(&acme, body).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let before = reserve(&app.app, &caller, 100).await.unwrap();
        app.advance(DAY);
        assert_eq!(counters(&app, &quota).await, (0, 0));
        let after = reserve(&app.app, &caller, 70).await.unwrap();
        before.settled(usage(90), Outcome::Completed).await;
        assert_eq!(counters(&app, &quota).await, (0, 70));
        after.settled(usage(10), Outcome::Completed).await;
        assert_eq!(counters(&app, &quota).await, (10, 0));
        let path = format!("{}/usage", quota.path);
        let report = app.get(&acme.key, &path).await.expect(200);
        let rows = report["rows"].as_array().unwrap().iter();
        let rows: Vec<_> = rows
            .map(|row| (row["day"].clone(), row["tokens"].clone()))
            .collect();
        assert_eq!(
            rows,
            [
                (json!("2026-01-02"), json!(90)),
                (json!("2026-01-03"), json!(10))
            ]
        );
    }
);

on_both_databases!(whoever_is_gone_leaves_what_fits, |app| {
    let quota = quota(&app, 10_000).await;
    let caller = quota.caller(&app.app).await.unwrap();
    // Dropped without a settlement: nobody knows what was used.
    drop(reserve(&app.app, &caller, 100).await.unwrap());
    eventually("the bound is settled", async || {
        counters(&app, &quota).await == (100, 0)
    })
    .await;
    // Dropped before it was answered, at any moment: nothing was used, and it is no request.
    let mut answered = 0;
    for patience_us in (0..2_000).step_by(50) {
        let asking = reserve(&app.app, &caller, 100);
        let patience = Duration::from_micros(patience_us);
        if let Ok(reservation) = tokio::time::timeout(patience, asking).await {
            reservation.unwrap().settle(usage(1), Outcome::Cancelled);
            answered += 1;
        }
    }
    // The writer takes one after the other: once the last is there, nothing waits that is not counted as open.
    let last = reserve(&app.app, &caller, 100).await.unwrap();
    last.settle(usage(1), Outcome::Cancelled);
    answered += 1;
    eventually("the rest is given back", async || {
        app.app.ledger.open() == 0
    })
    .await;
    assert_eq!(counters(&app, &quota).await, (100 + answered as u64, 0));
    let mut expected = vec![record("cancelled", 1); answered];
    expected.insert(0, record("bound", 100));
    assert_eq!(records(&app.app).await, expected);
});

/// A row of `usage_records`.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct UsageRecord {
    quota: String,
    endpoint: String,
    model: String,
    character_ref: Option<String>,
    request_id: String,
    outcome: String,
    amounts: String,
}

on_both_databases!(what_is_recorded_says_who_answered_and_for_whom, |app| {
    let quota = quota(&app, 1_000).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let mut reservation = reserve(&app.app, &caller, 100).await.unwrap();
    // Metrics are the process's; the other database's test has its own name.
    let model = format!("{:?}", app.app.store.db().dialect());
    reservation.set_model(&format!("{model}\0"));
    let used = Amounts::tokens(7, 5)
        .with(Measure::CachedTokens, 3)
        .with(Measure::ReasoningTokens, 2)
        .with(Measure::Characters, 11)
        .with(Measure::Seconds, 13)
        .with(Measure::Cost, 17);
    reservation.settled(used, Outcome::Incomplete).await;
    let db = app.app.store.db();
    let sql = "SELECT * FROM usage_records";
    let mut row: UsageRecord = db.fetch_one(sql).await.unwrap().unwrap();
    let amounts: Value = serde_json::from_str(&std::mem::take(&mut row.amounts)).unwrap();
    assert_eq!(
        amounts,
        json!({
            "tokens": 12, "input_tokens": 7, "cached_tokens": 3, "output_tokens": 5, "reasoning_tokens": 2,
            "characters": 11, "seconds": 13, "cost": 17,
        })
    );
    let expected = UsageRecord {
        quota: caller.id.clone(),
        endpoint: "chat.completions".to_owned(),
        model: model.clone(),
        character_ref: Some("acme/ada".to_owned()),
        request_id: "request".to_owned(),
        outcome: "incomplete".to_owned(),
        amounts: String::new(),
    };
    assert_eq!(row, expected);
    let metrics = harness::app::send(app.request(reqwest::Method::GET, "/metrics"))
        .await
        .text;
    for line in [
        &format!("colloquy_tokens_total{{model=\"{model}\",kind=\"input\"}} 7"),
        &format!("colloquy_tokens_total{{model=\"{model}\",kind=\"output\"}} 5"),
        &format!("colloquy_cost_nanodollars_total{{model=\"{model}\"}} 170"),
        "\ncolloquy_ledger_queue_depth ",
        "\ncolloquy_reservations_open ",
        "\ncolloquy_ledger_batch_operations_bucket{le=\"1\"} ",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
});

on_both_databases!(nonsense_from_a_model_does_not_overflow, |app| {
    let quota = quota(&app, 1_000).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let nonsense = Amounts::tokens(u64::MAX, u64::MAX).with(Measure::Cost, u64::MAX);
    for tokens in [10, 10] {
        let reservation = reserve(&app.app, &caller, tokens).await;
        if let Ok(reservation) = reservation {
            reservation.settled(nonsense, Outcome::Completed).await;
        }
    }
    assert_eq!(counters(&app, &quota).await, (2_000_000_000_000, 0));
});
