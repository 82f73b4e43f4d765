//! Databases whose measures were columns: what was counted goes on.

use colloquy_accounts::ledger::{self, Amounts, DetachedUsage, Measure, Outcome, UsageContext};
use colloquy_store::Store;
use support::earlier::{migrate_as_before, migrations, run};

use super::*;

const QUOTAS: &str = "/api/quotas/acme";
const BUSY: &str = "00000000000000000000000000000001";
const IDLE: &str = "00000000000000000000000000000002";

/// `2026-01-01` and `2026-01-02T03:00`, in milliseconds since 1970.
const JANUARY: i64 = 1_767_225_600_000;
const IN_JANUARY: i64 = JANUARY + 97_200_000;

/// Two quotas of a month: one with limits in tokens and seconds that is in use, one without anything. Of the first, one
/// reservation is of a node that is gone, one of a call.
async fn fill(store: &Store) {
    let run = async |sql: String| run(store, sql).await;
    run("INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1)".to_owned()).await;
    let columns = "id, partner, name, mac, kinds, disabled, period, limit_tokens, limit_cost, limit_characters, limit_seconds, \
                   period_start, used_tokens, used_cost, used_characters, used_seconds, reserved_tokens, reserved_cost, \
                   reserved_characters, reserved_seconds, created_at, updated_at";
    for (id, amounts) in [
        (
            BUSY,
            format!("1000, NULL, NULL, 90, {JANUARY}, 300, 4000, 0, 7, 120, 500, 0, 60"),
        ),
        (
            IDLE,
            format!("NULL, NULL, NULL, NULL, {JANUARY}, 0, 0, 0, 0, 0, 0, 0, 0"),
        ),
    ] {
        run(format!(
            "INSERT INTO quotas ({columns}) \
             VALUES ('{id}', 'acme', 'Name', 'mac', '[\"text\", \"call\"]', FALSE, 'month', {amounts}, 1, 1)"
        ))
        .await;
    }
    for (id, node, amounts) in [
        ("lost", "gone", "100, 500, 0, 0"),
        ("call", "", "20, 0, 0, 60"),
    ] {
        run(format!(
            "INSERT INTO reservations VALUES ('{id}', '{BUSY}', '{node}', {JANUARY}, 'calls', 'gpt', 'acme/ada', 'r', {amounts}, {IN_JANUARY})"
        ))
        .await;
    }
    for (id, amounts) in [
        ("all", "200, 30, 90, 40, 5, 7, 4000"),
        ("none", "0, 0, 0, 0, 0, 0, 0"),
    ] {
        run(format!(
            "INSERT INTO usage_records VALUES ('{id}', '{BUSY}', 'calls', 'gpt', NULL, 'r', 'failed', {amounts}, 8, {IN_JANUARY})"
        ))
        .await;
    }
    for (day, model, sums) in [
        ("2025-12-31", "gpt", "1, 30, 0, 20, 0, 0, 0, 6"),
        ("2026-01-01", "gpt", "2, 210, 30, 90, 40, 0, 0, 4000"),
        ("2026-01-01", "tts", "3, 0, 0, 0, 0, 5, 7, 0"),
    ] {
        run(format!(
            "INSERT INTO usage_days VALUES ('{BUSY}', '{day}', '{model}', '', {sums})"
        ))
        .await;
    }
}

#[derive(sqlx::FromRow)]
struct Record {
    id: String,
    quota: String,
    endpoint: String,
    outcome: String,
    amounts: String,
    created_at: i64,
    settled_at: i64,
}

async fn records(store: &Store) -> Vec<(String, Value)> {
    let sql = "SELECT * FROM usage_records WHERE request_id = 'r' AND created_at = 8 ORDER BY id";
    let rows: Vec<Record> = store.db().fetch_all(sql).await.unwrap();
    let read = |row: Record| {
        let unchanged = (
            row.quota.as_str(),
            row.endpoint.as_str(),
            row.outcome.as_str(),
            row.created_at,
            row.settled_at,
        );
        assert_eq!(unchanged, (BUSY, "calls", "failed", 8, IN_JANUARY));
        (row.id, serde_json::from_str(&row.amounts).unwrap())
    };
    rows.into_iter().map(read).collect()
}

fn picked(value: &Value, fields: &[&str]) -> Vec<Value> {
    fields.iter().map(|field| value[field].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_counted_in_columns_goes_on_in_rows() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        migrate_as_before(&store, &migrations()[..15]).await;
        fill(&store).await;
        store.migrate().await.unwrap();
        store.db().close().await;
        let app = start_by(builder(&database)).await;
        let store = &app.state.store;

        // What the node left that is gone was settled at its bound when this one started; the call goes on.
        let path = format!("{QUOTAS}/{BUSY}");
        let measures = ["tokens", "dollars", "characters", "seconds"];
        let busy = app.get(ADMIN_KEY, &path).await.expect(200);
        assert_eq!(busy["period_start"], "2026-01-01T00:00:00Z");
        let stands = ["limits", "used", "reserved", "remaining"]
            .map(|field| picked(&busy[field], &measures));
        assert_eq!(
            stands,
            [
                [json!(1000), json!(null), json!(null), json!(90)],
                [json!(400), json!("0.000045"), json!(0), json!(7)],
                [json!(20), json!("0"), json!(0), json!(60)],
                [json!(580), json!(null), json!(null), json!(23)],
            ]
        );
        let idle = app
            .get(ADMIN_KEY, &format!("{QUOTAS}/{IDLE}"))
            .await
            .expect(200);
        assert_eq!(picked(&idle["limits"], &measures), vec![Value::Null; 4]);
        assert_eq!(
            picked(&idle["used"], &measures),
            [json!(0), json!("0"), json!(0), json!(0)]
        );
        let rows = |table: &str| {
            store
                .db()
                .fetch_count(format!("SELECT COUNT(*) FROM {table}"))
        };
        assert_eq!(
            rows(&format!("quota_amounts WHERE quota = '{IDLE}'"))
                .await
                .unwrap(),
            0
        );
        assert_eq!(rows("usage_days WHERE requests = 0").await.unwrap(), 0);
        rows("quotas WHERE limit_tokens > 0").await.unwrap_err();

        assert_eq!(
            records(store).await,
            [
                (
                    "all".to_owned(),
                    json!({
                        "tokens": 290, "cost": 4000, "characters": 5, "seconds": 7, "input_tokens": 200,
                        "cached_tokens": 30, "output_tokens": 90, "reasoning_tokens": 40,
                    })
                ),
                ("none".to_owned(), json!({})),
            ]
        );

        // The call ends.
        let transaction = store.begin().await.unwrap();
        let used = Amounts::default().with(Measure::Seconds, 42);
        let used = DetachedUsage::Used(used, Outcome::Completed);
        ledger::settle_kept(&app.state, &transaction, "call", used)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        let busy = app.get(ADMIN_KEY, &path).await.expect(200);
        assert_eq!(
            picked(&busy["reserved"], &measures),
            [json!(0), json!("0"), json!(0), json!(0)]
        );
        assert_eq!(
            (&busy["used"]["tokens"], &busy["used"]["seconds"]),
            (&json!(400), &json!(49))
        );
        assert_eq!(rows("reservations").await.unwrap(), 0);

        let report = app
            .get(ADMIN_KEY, &format!("{path}/usage?group_by=day,model"))
            .await
            .expect(200);
        let fields = [
            "day",
            "model",
            "requests",
            "tokens",
            "input_tokens",
            "cached_tokens",
            "output_tokens",
            "reasoning_tokens",
            "characters",
            "seconds",
            "dollars",
        ];
        let report: Vec<Value> = report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| json!(picked(row, &fields)))
            .collect();
        assert_eq!(
            report,
            [
                json!(["2025-12-31", "gpt", 1, 50, 30, 0, 20, 0, 0, 0, "0.00000006"]),
                json!([
                    "2026-01-01",
                    "gpt",
                    2,
                    300,
                    210,
                    30,
                    90,
                    40,
                    0,
                    0,
                    "0.00004"
                ]),
                json!(["2026-01-01", "tts", 3, 0, 0, 0, 0, 0, 5, 7, "0"]),
                json!(["2026-01-02", "gpt", 2, 100, 0, 0, 100, 0, 0, 42, "0.000005"]),
            ]
        );

        // The limit holds with what was used before.
        let rotated = app
            .post(ADMIN_KEY, &format!("{path}/rotate"), json!({}))
            .await
            .expect(200);
        let key = rotated["api_key"].as_str().unwrap().to_owned();
        let quota = TestQuota {
            path: path.clone(),
            key,
        };
        let caller = quota.caller(&app.state).await.unwrap();
        let reserve = async |tokens: u64| {
            let about = UsageContext {
                endpoint: "calls",
                model: "gpt".to_owned(),
                character: None,
                request_id: "r".to_owned(),
            };
            let bound = Amounts::default().with(Measure::Tokens, tokens);
            app.state.ledger.reserve(&caller, bound, about).await
        };
        reserve(601).await.unwrap_err();
        drop(reserve(600).await.unwrap());

        // All days count in a lifetime.
        let lifetime = app
            .put(ADMIN_KEY, &path, json!({"period": "lifetime"}))
            .await
            .expect(200);
        assert_eq!(
            picked(&lifetime["used"], &measures),
            [json!(450), json!("0.00004506"), json!(5), json!(49)]
        );
        app.delete(ADMIN_KEY, "/api/partners/acme")
            .await
            .expect(204);
        for table in ["quota_amounts", "usage_days"] {
            assert_eq!(rows(table).await.unwrap(), 0, "{table}");
        }
    }
}
