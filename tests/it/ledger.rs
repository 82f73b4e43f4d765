//! The ledger of a server that stops.

use std::sync::Arc;

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
use harness::{TestApp, TestDatabase, app::ADMIN_KEY, elsewhere::eventually};
use serde_json::json;

/// A reservation that has not begun: it is taken back when it is dropped.
async fn ask(app: &App, quota: &Arc<Quota>, tokens: u64) -> Result<Reservation, ApiError> {
    let about = UsageContext {
        endpoint: "chat.completions",
        model: "gpt".to_owned(),
        character: None,
        request_id: "request".to_owned(),
    };
    let bound = Amounts::default().with(Measure::Tokens, tokens);
    Ok(app.ledger.reserve(quota, bound, about).await?)
}

async fn reserve(app: &App, quota: &Arc<Quota>, tokens: u64) -> Result<Reservation, ApiError> {
    let mut reservation = ask(app, quota, tokens).await?;
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
    let parts = app.app.clone();
    let stop = async {
        app.stop().await;
        parts.ledger.open()
    };
    let settle = async {
        parts.kernel.shutdown.cancelled().await;
        let is_closed = async || ask(&parts, &caller, 1).await.is_err();
        eventually("the ledger is closed", is_closed).await;
        last.settle(Amounts::tokens(1, 0), Outcome::Cancelled);
    };
    let (left, ()) = tokio::join!(stop, settle);
    assert_eq!(left, 0);
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
