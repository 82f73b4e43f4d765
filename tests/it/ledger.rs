//! The ledger of a server that stops.

use std::{sync::Arc, time::Duration};

use colloquy::{
    App,
    accounts::{
        ledger::{Amounts, Measure, Outcome, Reservation, UsageContext},
        quotas::Quota,
    },
    http::ApiError,
    store::Executor as _,
};
use futures_util::future::join_all;
use harness::{TestApp, TestDatabase, app::ADMIN_KEY};
use serde_json::json;

async fn reserve(app: &App, quota: &Arc<Quota>, tokens: u64) -> Result<Reservation, ApiError> {
    let about = UsageContext {
        endpoint: "chat.completions",
        model: "gpt".to_owned(),
        character: None,
        request_id: "request".to_owned(),
    };
    let bound = Amounts::default().with(Measure::Tokens, tokens);
    let mut reservation = app.ledger.reserve(quota, bound, about).await?;
    reservation.begin();
    Ok(reservation)
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_stores_what_was_settled_and_waits_for_what_is_open() {
    let database = TestDatabase::sqlite();
    let app = TestApp::builder(&database).start().await;
    let acme = app.partner("acme").await;
    let body = json!({"kinds": ["text"], "limits": {"tokens": 1_000_000}, "period": "lifetime"});
    let quota = app.quota(&acme, body).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let mut open = join_all((0..300).map(|_| reserve(&app.app, &caller, 100))).await;
    let last = open.pop().unwrap().unwrap();
    for reservation in open {
        let used = Amounts::tokens(5, 5);
        reservation.unwrap().settle(used, Outcome::Completed);
    }
    app.app.kernel.tasks.spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        last.settle(Amounts::tokens(1, 0), Outcome::Cancelled);
    });
    let parts = app.app.clone();
    app.stop().await;
    assert_eq!(parts.ledger.open(), 0);
    let error = reserve(&parts, &caller, 1).await.unwrap_err();
    assert_eq!(error.status.as_u16(), 503);
    // It holds the data folder.
    drop(parts);

    let next = TestApp::builder(&database).start().await;
    let read = next.get(ADMIN_KEY, &quota.path).await.expect(200);
    assert_eq!(read["used"]["tokens"], 2_991);
    assert_eq!(read["reserved"]["tokens"], 0);
    let records = "SELECT COUNT(*) FROM usage_records";
    let records = next.app.store.db().fetch_count(records).await;
    assert_eq!(records.unwrap(), 300);
}
