//! Usage: periods, days and records.

use colloquy_accounts::ledger::{UsageFilter, UsageRow, UsageScope};
use colloquy_observability::Metrics;
use jiff::civil::date;
use serde_json::json;

use super::*;

/// What was used of a quota, by day: the rows, and all together.
async fn usage_by_day(node: &Accounts, quota: &Quota) -> (Vec<UsageRow>, UsageRow) {
    let filter = UsageFilter {
        from: date(2026, 1, 1),
        to: date(2026, 1, 31),
        by_day: true,
        by_model: false,
        by_character: false,
        by_quota: false,
    };
    let scope = UsageScope::Quota(quota.id.clone());
    ledger::usage(node, &scope, &filter).await.unwrap().unwrap()
}

on_each_database!(a_refusal_says_when_to_come_back, |database| {
    let clock = manual();
    let node = start_by(config(&database, "node"), clock.clone()).await;
    // A dollar.
    let limits = tokens(Some(100)).with(Measure::Cost, Some(100_000_000));
    let quota = quota_of(&node, limits, Period::Day).await;
    let refused = async |tokens| {
        let error = reserve(&node, &quota, tokens).await.unwrap_err();
        assert_eq!(
            (error.status.as_u16(), error.code),
            (429, "quota_exhausted")
        );
        error.retry_after.map(|wait| wait.as_secs())
    };
    let running = reserve(&node, &quota, 60).await.unwrap();
    let standing = running.standing();
    assert_eq!(standing.reserved, bound(60));
    assert_eq!(standing.remaining(Measure::Tokens), Some(40));
    assert_eq!(refused(41).await, Some(1));
    assert_eq!(refused(101).await, None);
    running.settled(usage(60), Outcome::Completed).await;
    // At 03:04:05 the day has 75,355 seconds left.
    assert_eq!(refused(41).await, Some(75_355));
    clock.advance(Duration::from_secs(75_355));
    let tomorrow = reserve(&node, &quota, 100).await.unwrap();
    assert_eq!(tomorrow.standing().used, Amounts::default());
    tomorrow.settled(usage(100), Outcome::Completed).await;
    let change = QuotaChange {
        period: Some(Period::Lifetime),
        ..QuotaChange::default()
    };
    let changed = quotas::update(&node, &acme(), &quota.id, change, None).await;
    changed.unwrap();
    assert_eq!(refused(1).await, None);
});

on_each_database!(
    a_clock_that_went_forward_and_back_leaves_no_quota_exhausted,
    |database| {
        let clock = manual();
        let node = start_by(config(&database, "node"), clock.clone()).await;
        let quota = quota_of(&node, tokens(Some(100)), Period::Day).await;
        let settled = async |tokens| {
            let reserved = reserve(&node, &quota, tokens).await.unwrap();
            reserved.settled(usage(tokens), Outcome::Completed).await;
        };
        settled(50).await;
        let open = reserve(&node, &quota, 10).await.unwrap();

        clock.set("2026-02-11T03:04:05Z".parse().unwrap());
        settled(90).await;
        let ahead = reserve(&node, &quota, 10).await.unwrap();
        let wrong = reserve(&node, &quota, 1).await.unwrap_err();
        assert_eq!(wrong.code, "quota_exhausted");
        clock.set("2026-01-02T04:00:00Z".parse().unwrap());
        reserve(&node, &quota, 1).await.unwrap_err();

        // What was reserved while the clock was wrong counts in the running period, too.
        assert_eq!(ledger::put_back(&node).await.unwrap(), 1);
        assert_eq!(counters(&node, &quota).await, (50, 20));
        settled(30).await;
        reserve(&node, &quota, 1).await.unwrap_err();
        open.settled(usage(8), Outcome::Completed).await;
        ahead.settled(usage(9), Outcome::Completed).await;
        assert_eq!(counters(&node, &quota).await, (97, 0));

        // The next day is begun a little early by a node whose clock is ahead, and stays.
        clock.set("2026-01-03T00:00:01Z".parse().unwrap());
        settled(100).await;
        clock.set("2026-01-02T23:30:00Z".parse().unwrap());
        assert_eq!(ledger::put_back(&node).await.unwrap(), 0);
        assert_eq!(counters(&node, &quota).await, (100, 0));
    }
);

on_each_database!(usage_counts_for_the_day_of_its_reservation, |database| {
    let clock = manual();
    let node = start_by(config(&database, "node"), clock.clone()).await;
    let quota = quota_of(&node, tokens(Some(100)), Period::Day).await;
    let before = reserve(&node, &quota, 100).await.unwrap();
    clock.advance(DAY);
    assert_eq!(counters(&node, &quota).await, (0, 0));
    let after = reserve(&node, &quota, 70).await.unwrap();
    before.settled(usage(90), Outcome::Completed).await;
    assert_eq!(counters(&node, &quota).await, (0, 70));
    after.settled(usage(10), Outcome::Completed).await;
    assert_eq!(counters(&node, &quota).await, (10, 0));
    let (rows, _) = usage_by_day(&node, &quota).await;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.day.as_deref(), row.usage.of(Measure::Tokens)))
        .collect();
    assert_eq!(rows, [(Some("2026-01-02"), 90), (Some("2026-01-03"), 10)]);
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

on_each_database!(
    what_is_recorded_says_who_answered_and_for_whom,
    |database| {
        let metrics = Metrics::get();
        let node = start(&database).await;
        let quota = quota(&node, 1_000).await;
        let mut reservation = reserve(&node, &quota, 100).await.unwrap();
        // Metrics are the process's; the other database's test has its own name.
        let model = format!("{:?}", node.store.db().dialect());
        reservation.set_model(&format!("{model}\0"));
        let used = Amounts::tokens(7, 5)
            .with(Measure::CachedTokens, 3)
            .with(Measure::ReasoningTokens, 2)
            .with(Measure::Characters, 11)
            .with(Measure::Seconds, 13)
            .with(Measure::Cost, 17);
        reservation.settled(used, Outcome::Incomplete).await;
        let db = node.store.db();
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
            quota: quota.id.clone(),
            endpoint: "chat.completions".to_owned(),
            model: model.clone(),
            character_ref: Some("acme/ada".to_owned()),
            request_id: "request".to_owned(),
            outcome: "incomplete".to_owned(),
            amounts: String::new(),
        };
        assert_eq!(row, expected);
        let metrics = metrics.render();
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
    }
);

on_each_database!(nonsense_from_a_model_does_not_overflow, |database| {
    let node = start(&database).await;
    let quota = quota(&node, 1_000).await;
    let nonsense = Amounts::tokens(u64::MAX, u64::MAX).with(Measure::Cost, u64::MAX);
    for tokens in [10, 10] {
        let reservation = reserve(&node, &quota, tokens).await;
        if let Ok(reservation) = reservation {
            reservation.settled(nonsense, Outcome::Completed).await;
        }
    }
    assert_eq!(counters(&node, &quota).await, (2_000_000_000_000, 0));
});

on_each_database!(
    old_records_are_removed_and_the_sums_of_days_stay,
    |database| {
        let clock = manual();
        let mut config = config(&database, "node");
        config.limits.usage_record_days = 3;
        let node = start_by(config, clock.clone()).await;
        let quota = quota(&node, 1_000).await;
        for _ in 0..3 {
            let reservation = reserve(&node, &quota, 10).await.unwrap();
            reservation.settled(usage(10), Outcome::Completed).await;
            clock.advance(DAY);
        }
        assert_eq!(ledger::prune(&node).await.unwrap(), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(ledger::prune(&node).await.unwrap(), 1);
        clock.advance(DAY * 2);
        assert_eq!(ledger::prune(&node).await.unwrap(), 2);
        assert_eq!(records(&node).await, []);
        let (rows, total) = usage_by_day(&node, &quota).await;
        assert_eq!(total.usage.of(Measure::Requests), 3);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].model, None);
    }
);
