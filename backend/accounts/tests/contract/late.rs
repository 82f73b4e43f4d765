//! Nodes that were only silent: another one settles what they hold, and then they do.

use colloquy_kernel::node::heartbeat;
use colloquy_store::Dialect;

use super::*;

/// `(model, amount)` of the sums of days of a measure, by model.
async fn days_of(node: &Accounts, measure: &'static str) -> Vec<(String, i64)> {
    let sql = format!("SELECT model, {measure} AS amount FROM usage_days");
    let rows: Vec<DayRow> = node.store.db().fetch_all(sql).await.unwrap();
    let mut days: Vec<_> = rows
        .into_iter()
        .map(|row| (row.model, row.amount))
        .collect();
    days.sort();
    days
}

#[derive(sqlx::FromRow)]
struct DayRow {
    model: String,
    amount: i64,
}

fn day((model, amount): (&str, i64)) -> (String, i64) {
    (model.to_owned(), amount)
}

/// A node that lives, and one whose ledger works but that never says again that it lives.
async fn alive_and_silent(
    database: &TestDatabase,
    clock: &Arc<ManualClock>,
) -> (TestNode, TestNode) {
    let node = async |name: &str| start_by(config(database, name), clock.clone()).await;
    (node("alive").await, node("silent").await)
}

/// Moves the clock of both, and the one that lives says so.
async fn pass(seconds: u64, clock: &ManualClock, alive: &TestNode) {
    clock.advance(Duration::from_secs(seconds));
    heartbeat(&alive.kernel).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_of_a_silent_node_are_settled_at_their_bound_until_it_settles_them() {
    for database in TestDatabase::both().await {
        let clock = manual();
        let (alive, silent) = alive_and_silent(&database, &clock).await;
        let quota = quota(&alive, 1_000).await;
        let mut late = reserve(&silent, &quota, 100).await.unwrap();
        let own = reserve(&alive, &quota, 50).await.unwrap();
        let (unbegun, forgotten) = (bound(7), reserve(&silent, &quota, 20).await.unwrap());
        let unbegun = silent.ledger.reserve(&quota, unbegun, about("request"));
        let unbegun = unbegun.await.unwrap();
        // What a newer server measures holds nothing up.
        let strange = reserve(&silent, &quota, 0).await.unwrap();
        let newer = "UPDATE reservations SET amounts = '{\"pages\":3}' WHERE amounts = '{}'";
        let db = alive.store.db();
        assert_eq!(db.execute(newer).await.unwrap(), 1);
        std::mem::forget(strange);

        pass(30, &clock, &alive).await;
        assert_eq!(ledger::sweep(&alive).await.unwrap(), 0);
        pass(1, &clock, &alive).await;
        assert_eq!(ledger::sweep(&alive).await.unwrap(), 3);
        assert_eq!(counters(&alive, &quota).await, (127, 50));
        // It comes back: what it used counts in place of the bounds, under the model that answered.
        drop(unbegun);
        late.set_model("other");
        late.settled(usage(30), Outcome::Completed).await;
        assert_eq!(counters(&alive, &quota).await, (50, 50));
        own.settled(usage(5), Outcome::Completed).await;
        assert_eq!(ledger::sweep(&alive).await.unwrap(), 0);
        assert_eq!(counters(&alive, &quota).await, (55, 0));
        assert_eq!(
            records(&alive).await,
            [
                record("bound", 20),
                record("completed", 5),
                record("completed", 30)
            ]
        );
        let days = [("gpt", 25), ("other", 30)];
        assert_eq!(days_of(&alive, "tokens").await, days.map(day));
        let requests = [("gpt", 2), ("other", 1)];
        assert_eq!(days_of(&alive, "requests").await, requests.map(day));
        // Its record is gone.
        clock.advance(DAY * 91);
        ledger::prune(&alive).await.unwrap();
        forgotten.settled(usage(3), Outcome::Completed).await;
        assert_eq!(records(&alive).await, []);
        assert_eq!(counters(&alive, &quota).await, (55, 0));
        assert_eq!(days_of(&alive, "tokens").await, days.map(day));
    }
}

/// Keeps records from getting the model `bad`.
fn refuse_bad(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "ALTER TABLE usage_records ADD CONSTRAINT no_bad CHECK (model <> 'bad')"
        }
        Dialect::Sqlite => {
            "CREATE TRIGGER no_bad BEFORE UPDATE ON usage_records WHEN NEW.model = 'bad' \
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

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_that_fails_is_tried_again_and_counts_once() {
    for database in TestDatabase::both().await {
        let clock = manual();
        let (alive, silent) = alive_and_silent(&database, &clock).await;
        let quota = quota(&alive, 1_000).await;
        let mut bad = reserve(&silent, &quota, 100).await.unwrap();
        let good = reserve(&silent, &quota, 100).await.unwrap();
        pass(31, &clock, &alive).await;
        assert_eq!(ledger::sweep(&alive).await.unwrap(), 2);

        let dialect = alive.store.db().dialect();
        execute(&alive, refuse_bad(dialect)).await;
        bad.set_model("bad");
        bad.settle(usage(30), Outcome::Completed);
        good.settled(usage(40), Outcome::Completed).await;
        assert_eq!(silent.ledger.open(), 1);
        assert_eq!(counters(&alive, &quota).await, (140, 0));
        execute(&alive, allow_bad(dialect)).await;
        eventually("it is corrected as well", async || {
            silent.ledger.open() == 0
        })
        .await;
        assert_eq!(counters(&alive, &quota).await, (70, 0));
        assert_eq!(
            records(&alive).await,
            [record("completed", 30), record("completed", 40)]
        );
    }
}
