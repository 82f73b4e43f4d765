//! Budgets: quotas without a key, reserved from and settled in the transactions of others.

use colloquy::{
    accounts::{
        PartnerId, Tenant,
        ledger::{DetachedUsage, LedgerError, Limits, Standing, budget, reserve_kept},
    },
    store::StoreError,
};

use super::*;

const BUDGET: &str = "a-budget";

fn tokens(limit: Option<u64>) -> Limits {
    Limits::default().with(Measure::Tokens, limit)
}

async fn open(app: &TestApp, limit: Option<u64>) {
    app.partner("acme").await;
    let tenant = Tenant::of_row(PartnerId::parse("acme").unwrap().as_str());
    let transaction = app.app.store.begin().await.unwrap();
    budget::open(&transaction, &tenant, BUDGET, &tokens(limit), 1)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

async fn reserve_from(app: &App, id: &str, tokens: u64) -> Result<bool, StoreError> {
    let transaction = app.store.begin().await?;
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

async fn settle(app: &App, id: &str, spent: DetachedUsage) {
    let transaction = app.store.begin().await.unwrap();
    ledger::settle_kept(app, &transaction, id, spent)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

async fn standing(app: &TestApp) -> Standing {
    let standing = budget::standing(app.app.store.db(), BUDGET).await;
    standing.unwrap().unwrap()
}

on_both_databases!(fifty_at_once_against_a_budget_for_seven, |app| {
    open(&app, Some(749)).await;
    let asking = (0..50).map(|number| {
        let app = app.app.clone();
        tokio::spawn(async move { reserve_from(&app, &format!("r{number}"), 100).await })
    });
    let mut admitted = Vec::new();
    for (number, asked) in futures_util::future::join_all(asking)
        .await
        .into_iter()
        .enumerate()
    {
        if asked.unwrap().unwrap() {
            admitted.push(number);
        }
    }
    assert_eq!(admitted.len(), 7);
    let (used, reserved) = (standing(&app).await.used, standing(&app).await.reserved);
    assert_eq!(used.of(Measure::Tokens), 0);
    assert_eq!(reserved.of(Measure::Tokens), 700);
    // No process has them, so none is swept, whichever dies.
    assert_eq!(ledger::sweep(&app.app).await.unwrap(), 0);
    for number in admitted {
        let spent = DetachedUsage::Used(usage(30), Outcome::Completed);
        settle(&app.app, &format!("r{number}"), spent).await;
        // Once is enough.
        settle(&app.app, &format!("r{number}"), spent).await;
    }
    let standing = standing(&app).await;
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
    let app = TestApp::builder(&database).start().await;
    open(&app, Some(300)).await;
    let (mut limit, mut used, mut held) = (Some(300), 0, Vec::<(String, u64)>::new());
    for (number, event) in events.into_iter().enumerate() {
        let sum = |held: &[(String, u64)]| held.iter().map(|(_, bound)| bound).sum::<u64>();
        let of =
            |held: &[(String, u64)], which: usize| (!held.is_empty()).then(|| which % held.len());
        match event {
            Event::Reserve(tokens) => {
                let id = format!("r{number}");
                let fits = limit.is_none_or(|limit| used + sum(&held) + tokens <= limit);
                let admitted = reserve_from(&app.app, &id, tokens).await.unwrap();
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
                settle(&app.app, &id, spent_as).await;
                used += spent;
            }
            Event::Withdraw(which) => {
                let Some(at) = of(&held, which) else { continue };
                let (id, _) = held.swap_remove(at);
                settle(&app.app, &id, DetachedUsage::Nothing).await;
            }
            Event::Limit(other) => {
                let transaction = app.app.store.begin().await.unwrap();
                budget::lock(&transaction, BUDGET).await.unwrap();
                budget::set_limits(&transaction, BUDGET, &tokens(other))
                    .await
                    .unwrap();
                transaction.commit().await.unwrap();
                limit = other;
            }
        }
        let standing = standing(&app).await;
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
    proptest!(ProptestConfig::with_cases(8), |(events in events)| {
        runtime.block_on(async {
            happen(TestDatabase::sqlite(), events.clone()).await;
            happen(TestDatabase::postgres().await, events).await;
        });
    });
}
