//! Budgets: quotas without a key, reserved from and settled in the transactions of others.

use colloquy_accounts::ledger::{DetachedUsage, LedgerError, Standing, budget, reserve_kept};
use colloquy_store::StoreError;
use proptest::prelude::*;
use support::by_length;

use super::*;

const BUDGET: &str = "a-budget";

async fn open(node: &Accounts, limit: Option<u64>) {
    make_acme(node).await;
    let transaction = node.store.begin().await.unwrap();
    budget::open(&transaction, &acme(), BUDGET, &tokens(limit), 1)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

async fn reserve_from(node: &Accounts, id: &str, tokens: u64) -> Result<bool, StoreError> {
    let transaction = node.store.begin().await?;
    let about = UsageContext {
        character: None,
        ..about("document")
    };
    let reserved = reserve_kept(&transaction, BUDGET, id, bound(tokens), about, 1).await?;
    match reserved {
        Ok(_) => transaction.commit().await.map(|()| true),
        Err(LedgerError::Refused(_)) => Ok(false),
        Err(other) => panic!("{other}"),
    }
}

async fn settle(node: &Accounts, id: &str, spent: DetachedUsage) {
    let transaction = node.store.begin().await.unwrap();
    ledger::settle_kept(node, &transaction, id, spent)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

async fn standing(node: &Accounts) -> Standing {
    let standing = budget::standing(node.store.db(), BUDGET).await;
    standing.unwrap().unwrap()
}

on_each_database!(fifty_at_once_against_a_budget_for_seven, |database| {
    let node = start(&database).await;
    open(&node, Some(749)).await;
    let mut asking = JoinSet::new();
    for number in 0..50 {
        let accounts = node.accounts.clone();
        asking.spawn(async move {
            let asked = reserve_from(&accounts, &format!("r{number}"), 100).await;
            asked.unwrap().then_some(number)
        });
    }
    let asked = asking.join_all().await;
    let admitted: Vec<_> = asked.into_iter().flatten().collect();
    assert_eq!(admitted.len(), 7);
    let (used, reserved) = (standing(&node).await.used, standing(&node).await.reserved);
    assert_eq!(used.of(Measure::Tokens), 0);
    assert_eq!(reserved.of(Measure::Tokens), 700);
    // No process has them, so none is swept, whichever dies.
    assert_eq!(ledger::sweep(&node).await.unwrap(), 0);
    for number in admitted {
        let spent = DetachedUsage::Used(usage(30), Outcome::Completed);
        settle(&node, &format!("r{number}"), spent).await;
        // Once is enough.
        settle(&node, &format!("r{number}"), spent).await;
    }
    let standing = standing(&node).await;
    assert_eq!(standing.used.of(Measure::Tokens), 210);
    assert_eq!(standing.used.of(Measure::Cost), 21_000);
    assert_eq!(standing.reserved.of(Measure::Tokens), 0);
});

/// What happens to a budget.
#[derive(Debug, Clone)]
enum Event {
    Reserve(u64),
    /// One that is open uses so many hundredths of its bound.
    Settle(usize, u64),
    Withdraw(usize),
    Limit(Option<u64>),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..200_u64).prop_map(Event::Reserve),
        2 => (any::<usize>(), 0..=100_u64).prop_map(|(which, part)| Event::Settle(which, part)),
        1 => any::<usize>().prop_map(Event::Withdraw),
        1 => proptest::option::of(0..600_u64).prop_map(Event::Limit),
    ]
}

async fn happen(database: TestDatabase, events: Vec<Event>) {
    let node = start(&database).await;
    open(&node, Some(300)).await;
    let (mut limit, mut used, mut held) = (Some(300), 0, Vec::<(String, u64)>::new());
    for (number, event) in events.into_iter().enumerate() {
        let sum = |held: &[(String, u64)]| held.iter().map(|(_, bound)| bound).sum::<u64>();
        let of =
            |held: &[(String, u64)], which: usize| (!held.is_empty()).then(|| which % held.len());
        match event {
            Event::Reserve(tokens) => {
                let id = format!("r{number}");
                let fits = limit.is_none_or(|limit| used + sum(&held) + tokens <= limit);
                let admitted = reserve_from(&node, &id, tokens).await.unwrap();
                assert_eq!(admitted, fits, "{tokens} of {limit:?}, {used}, {held:?}");
                if admitted {
                    held.push((id, tokens));
                }
            }
            Event::Settle(which, part) => {
                let Some(at) = of(&held, which) else { continue };
                let (id, bound) = held.swap_remove(at);
                let spent = bound * part / 100;
                let spent_as = DetachedUsage::Used(usage(spent), Outcome::Completed);
                settle(&node, &id, spent_as).await;
                used += spent;
            }
            Event::Withdraw(which) => {
                let Some(at) = of(&held, which) else { continue };
                let (id, _) = held.swap_remove(at);
                settle(&node, &id, DetachedUsage::Nothing).await;
            }
            Event::Limit(other) => {
                let transaction = node.store.begin().await.unwrap();
                budget::lock(&transaction, BUDGET).await.unwrap();
                budget::set_limits(&transaction, BUDGET, &tokens(other))
                    .await
                    .unwrap();
                transaction.commit().await.unwrap();
                limit = other;
            }
        }
        let standing = standing(&node).await;
        assert_eq!(standing.used.of(Measure::Tokens), used);
        assert_eq!(standing.reserved.of(Measure::Tokens), sum(&held));
        let left = limit.map(|limit| limit.saturating_sub(used + sum(&held)));
        assert_eq!(standing.remaining(Measure::Tokens), left);
    }
}

#[test]
fn no_order_of_events_loses_a_token_or_exceeds_a_limit() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let events = proptest::collection::vec(event(), 1..40);
    proptest!(ProptestConfig::with_cases(by_length(8, 80)), |(events in events)| {
        runtime.block_on(async {
            happen(TestDatabase::sqlite(), events.clone()).await;
            happen(TestDatabase::postgres().await, events).await;
        });
    });
}
