//! What changes of a quota leave as it was.

use futures_util::future::join_all;

use super::*;

on_each_database!(changes_at_once_do_not_undo_each_other, |database| {
    let node = start(&database).await;
    let (quota, tenant) = (quota(&node, 100).await, acme());
    for round in 0..20 {
        let limits = tokens(Some(round)).with(Measure::Cost, Some(round));
        let changes = [
            QuotaChange {
                limits: Some(limits),
                ..QuotaChange::default()
            },
            QuotaChange {
                name: Some(round.to_string()),
                ..QuotaChange::default()
            },
        ];
        let changing =
            changes.map(|change| quotas::update(&node, &tenant, &quota.id, change, None));
        for changed in join_all(changing).await {
            changed.unwrap();
        }
        let read = quotas::read(&node, &tenant, &quota.id).await.unwrap();
        assert_eq!(read.standing.limits, limits);
        assert_eq!(read.quota.name, round.to_string());
    }
    let change = QuotaChange {
        limits: Some(Limits::default()),
        ..QuotaChange::default()
    };
    let none = quotas::update(&node, &tenant, &quota.id, change, None).await;
    assert_eq!(none.unwrap().standing.limits, Limits::default());
});

on_each_database!(
    another_sort_of_period_counts_what_was_used_since_it_began,
    |database| {
        let clock = manual();
        let node = start_by(config(&database, "node"), clock.clone()).await;
        let quota = quota(&node, 100).await;
        let settled = async |tokens| {
            let reserved = reserve(&node, &quota, tokens).await.unwrap();
            reserved.settled(usage(tokens), Outcome::Completed).await;
        };
        // On 2026-01-02, 2026-02-02 and 2026-02-03; the open one is of the last day but one.
        settled(1).await;
        clock.advance(DAY * 31);
        settled(10).await;
        let open = reserve(&node, &quota, 20).await.unwrap();
        clock.advance(DAY);
        settled(5).await;

        for (period, used, reserved) in [
            (Period::Lifetime, 16, 20),
            (Period::Month, 15, 20),
            (Period::Day, 5, 0),
            (Period::Month, 15, 20),
            (Period::Lifetime, 16, 20),
            (Period::Day, 5, 0),
            (Period::Month, 15, 20),
        ] {
            let change = QuotaChange {
                period: Some(period),
                ..QuotaChange::default()
            };
            let changed = quotas::update(&node, &acme(), &quota.id, change, None).await;
            let standing = changed.unwrap().standing;
            let of = |amounts: Amounts| amounts.of(Measure::Tokens);
            let counted = (of(standing.used), of(standing.reserved));
            assert_eq!(counted, (used, reserved), "{period:?}");
            let left = standing.remaining(Measure::Tokens);
            assert_eq!(left, Some(100 - used - reserved), "{period:?}");
        }
        open.settled(usage(2), Outcome::Completed).await;
        assert_eq!(counters(&node, &quota).await, (17, 0));
        clock.advance(DAY * 31);
        let read = quotas::read(&node, &acme(), &quota.id).await.unwrap();
        assert_eq!(read.standing.used, Amounts::default());
        // 2026-03-01.
        assert_eq!(read.standing.period_start, 1_772_323_200_000);
    }
);
