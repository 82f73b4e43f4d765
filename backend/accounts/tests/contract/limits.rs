//! Limits: under concurrency, over nodes, in any order of events.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use support::by_length;

use super::*;

on_each_database!(what_never_began_is_taken_back, |database| {
    let node = start(&database).await;
    let quota = quota(&node, 100).await;
    let unused = node.ledger.reserve(&quota, bound(60), about("request"));
    drop(unused.await.unwrap());
    drop(reserve(&node, &quota, 70).await.unwrap());
    eventually("both are settled", async || node.ledger.open() == 0).await;
    assert_eq!(counters(&node, &quota).await, (70, 0));
    assert_eq!(records(&node).await, [record("bound", 70)]);
});

on_each_database!(sixty_four_at_once_against_a_limit_for_ten, |database| {
    let node = start(&database).await;
    let quota = quota(&node, 1_009).await;
    let admitted = rush(&[&node], &quota, 64, 100).await;
    assert_eq!(admitted.len(), 10);
    assert_eq!(counters(&node, &quota).await, (0, 1_000));
    assert_eq!(node.ledger.open(), 10);
    let settling = admitted
        .into_iter()
        .map(|reservation| reservation.settled(usage(30), Outcome::Completed));
    futures_util::future::join_all(settling).await;
    assert_eq!(counters(&node, &quota).await, (300, 0));
    assert_eq!(records(&node).await, vec![record("completed", 30); 10]);
    assert_eq!(node.ledger.open(), 0);
    // What was not used can be reserved again.
    assert_eq!(rush(&[&node], &quota, 64, 100).await.len(), 7);
});

on_each_database!(
    a_request_is_not_refused_for_what_an_ended_one_has_not_used,
    |database| {
        let node = start(&database).await;
        let quota = quota(&node, 100).await;
        // Each bound is all that is left; what was used of it is stored a moment later, and then it is really gone.
        for used in 0..10 {
            let left = 100 - 10 * used;
            let reservation = reserve(&node, &quota, left).await.unwrap();
            reservation.settle(usage(10), Outcome::Completed);
        }
        let refused = reserve(&node, &quota, 1).await.unwrap_err();
        assert_eq!(refused.code, "quota_exhausted");
        assert_eq!(counters(&node, &quota).await, (100, 0));
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_too_much_of_a_busy_quota_hears_so() {
    let database = TestDatabase::sqlite();
    let node = start(&database).await;
    let quota = quota(&node, 1_000_000).await;
    // Each answer takes a few transactions, of which each has one reservation of everybody: no time, which a slow machine would exceed.
    let most = 10_000;
    let made = AtomicUsize::new(0);
    let busy = (0..16).map(async |_| {
        while made.fetch_add(1, Ordering::Relaxed) < most {
            let reservation = reserve(&node, &quota, 1).await.unwrap();
            reservation.settle(usage(1), Outcome::Completed);
        }
    });
    let asked = async {
        for _ in 0..20 {
            let refused = reserve(&node, &quota, 1_000_001).await.unwrap_err();
            assert_eq!(refused.code, "quota_exhausted");
        }
    };
    tokio::select! {
        _ = futures_util::future::join_all(busy) => panic!("no answer while others made {most} reservations"),
        () = asked => {}
    }
}

on_each_database!(whoever_is_gone_leaves_what_fits, |database| {
    let node = start(&database).await;
    let quota = quota(&node, 10_000).await;
    // Dropped without a settlement: nobody knows what was used.
    drop(reserve(&node, &quota, 100).await.unwrap());
    eventually("the bound is settled", async || {
        counters(&node, &quota).await == (100, 0)
    })
    .await;
    // Dropped before it was answered, at any moment: nothing was used, and it is no request.
    let mut answered = 0;
    for patience_us in (0..2_000).step_by(50) {
        let asking = reserve(&node, &quota, 100);
        let patience = Duration::from_micros(patience_us);
        if let Ok(reservation) = tokio::time::timeout(patience, asking).await {
            reservation.unwrap().settle(usage(1), Outcome::Cancelled);
            answered += 1;
        }
    }
    // The writer takes one after the other: once the last is there, nothing waits that is not counted as open.
    let last = reserve(&node, &quota, 100).await.unwrap();
    last.settle(usage(1), Outcome::Cancelled);
    answered += 1;
    eventually("the rest is given back", async || node.ledger.open() == 0).await;
    assert_eq!(counters(&node, &quota).await, (100 + answered as u64, 0));
    let mut expected = vec![record("cancelled", 1); answered];
    expected.insert(0, record("bound", 100));
    assert_eq!(records(&node).await, expected);
});

on_each_database!(two_nodes_never_exceed_together, |database| {
    let first = start_as(&database, "first").await;
    let second = start_as(&database, "second").await;
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
    let change = QuotaChange {
        limits: Some(tokens(Some(used + 5))),
        ..QuotaChange::default()
    };
    let changed = quotas::update(&first, &acme(), &quota.id, change, None).await;
    changed.unwrap();
    assert!(reserve(&second, &quota, 6).await.is_err());
    let _last = reserve(&second, &quota, 5).await.unwrap();
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
    let next = async |nth: usize| start_as(&database, &format!("node-{nth}")).await;
    let mut nodes = vec![next(0).await];
    let quota = quota(&nodes[0], LIMIT).await;
    let (mut used, mut open) = (0, Vec::<(Reservation, u64)>::new());
    for step in steps {
        let node = nodes.last().unwrap();
        match step {
            Step::Reserve(tokens) => {
                let reserved = open.iter().map(|(_, bound)| bound).sum::<u64>();
                match reserve(node, &quota, tokens).await {
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
                    node.ledger.open() == open.len()
                })
                .await;
                // Nobody drops what a killed process held.
                used += open.iter().map(|(_, bound)| bound).sum::<u64>();
                open.drain(..)
                    .for_each(|(reservation, _)| std::mem::forget(reservation));
                execute(node, "UPDATE nodes SET ended_at = 1 WHERE ended_at IS NULL").await;
                let next = next(nodes.len()).await;
                nodes.push(next);
            }
            Step::Settle(..) | Step::Drop(_) => {}
        }
    }
    let node = nodes.last().unwrap();
    let reserved = open.iter().map(|(_, bound)| bound).sum::<u64>();
    eventually("the books say what was done", async || {
        counters(node, &quota).await == (used, reserved)
    })
    .await;
    let recorded = records(node)
        .await
        .iter()
        .map(|(_, tokens, _)| tokens)
        .sum::<i64>();
    assert_eq!(recorded.unsigned_abs(), used);
}

#[test]
fn any_order_of_events_leaves_the_books_right() {
    let steps = proptest::collection::vec(step(), 1..40);
    proptest!(ProptestConfig::with_cases(by_length(12, 120)), |(steps in steps)| {
        // One for each case: the nodes of a case, and their connections, end with it.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            play(TestDatabase::sqlite(), steps.clone()).await;
            play(TestDatabase::postgres().await, steps).await;
        });
    });
}
