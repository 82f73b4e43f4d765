//! Calls that a quota pays for.

use colloquy_accounts::ledger;

use super::*;

fn setting(builder: TestRoutesBuilder) -> TestRoutesBuilder {
    builder.config(|config| config.calls.usd_per_hour = "3.60".parse().unwrap())
}

/// A quota for calls with so many seconds, in a lifetime.
async fn seconds(app: &TestRoutes<Place>, partner: &TestPartner, seconds: u64) -> TestQuota {
    let body = json!({"kinds": ["call"], "period": "lifetime", "limits": {"seconds": seconds}});
    app.quota(partner, body).await
}

fn call(seconds: u32) -> Value {
    json!({"character": "repo:acme/ada", "call_time_limit_seconds": seconds})
}

/// Places a call; its bare id.
async fn placed(app: &TestRoutes<Place>, key: &str, limit: u32) -> String {
    bare_id(&app.post(key, CALLS, call(limit)).await.expect(200))
}

async fn taken(calls: &Calls, id: &str) {
    calls::take(calls, id, None).await.unwrap().unwrap();
}

/// Seconds that are used and reserved.
async fn counters(app: &TestRoutes<Place>, quota: &TestQuota) -> (u64, u64) {
    let read = app.get(ADMIN_KEY, &quota.path).await.expect(200);
    let seconds = |field: &str| read[field]["seconds"].as_u64().unwrap();
    (seconds("used"), seconds("reserved"))
}

fn ended(call_time: Duration, error: Option<&'static str>) -> Outcome {
    Outcome {
        error: error.map(Into::into),
        call_time,
        server_time: call_time,
        visitor: serde_json::Map::new(),
        transcript: Vec::new(),
    }
}

on_each_database!(
    a_call_is_reserved_at_its_limit_and_settled_at_its_time,
    |database| {
        let app = start_by(setting(builder(&database))).await;
        let (acme, _) = app.acme_and_other().await;
        let quota = seconds(&app, &acme, 100).await;
        let answer = app.post(&quota.key, CALLS, call(60)).await;
        let first = answer.expect(200)["data"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(answer.header("x-ratelimit-limit-seconds"), "100");
        assert_eq!(answer.header("x-ratelimit-remaining-seconds"), "40");
        assert_eq!(counters(&app, &quota).await, (0, 60));
        let refused = app.post(&quota.key, CALLS, call(60)).await;
        assert_eq!(refused.expect(429)["error"]["code"], "QUOTA_EXHAUSTED");
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.header("x-ratelimit-remaining-seconds"), "40");

        let id = first.strip_prefix("/v2/calls/").unwrap();
        taken(&app.state, id).await;
        let time = Duration::from_millis(4_200);
        for _ in 0..2 {
            // The second end is none.
            calls::finish(&app.state, id, ended(time, None))
                .await
                .unwrap();
        }
        assert_eq!(counters(&app, &quota).await, (5, 0));
        let failed = placed(&app, &quota.key, 60).await;
        taken(&app.state, &failed).await;
        let outcome = ended(Duration::from_secs(2), Some("MEDIA"));
        calls::finish(&app.state, &failed, outcome).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (7, 0));

        // What it lasted beyond its limit is not paid for.
        let long = placed(&app, &quota.key, 60).await;
        taken(&app.state, &long).await;
        let outcome = ended(Duration::from_millis(60_400), None);
        calls::finish(&app.state, &long, outcome).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (67, 0));

        let path = format!("{}/usage?group_by=model,character", quota.path);
        let report = app.get(ADMIN_KEY, &path).await.expect(200);
        let row = &report["rows"][0];
        assert_eq!(
            (&row["model"], &row["character"]),
            (&json!("builtin/extractive"), &json!("acme/ada"))
        );
        assert_eq!(
            (&row["seconds"], &row["dollars"]),
            (&json!(67), &json!("0.067"))
        );
        assert_eq!(row["requests"], 3);
    }
);

on_each_database!(who_may_place_a_call_and_read_it, |database| {
    let app = start_by(setting(builder(&database))).await;
    let (acme, other) = app.acme_and_other().await;
    let quota = seconds(&app, &acme, 1_000).await;
    let id = placed(&app, &quota.key, 60).await;
    let path = format!("{CALLS}/{id}");
    for key in [&quota.key, &acme.key] {
        let read = app.get(key, &path).await.expect(200);
        assert_eq!(read["data"]["state"], "starting");
    }
    app.get(&seconds(&app, &acme, 10).await.key, &path)
        .await
        .expect(404);
    app.get(&other.key, &path).await.expect(404);
    let own = app.post(&acme.key, CALLS, call(60)).await.expect(200);
    let own = own["data"]["id"].as_str().unwrap();
    app.get(&quota.key, own).await.expect(404);

    for (settings, code) in [
        (
            json!({"kinds": ["text", "speech"]}),
            "QUOTA_KIND_NOT_ALLOWED",
        ),
        (
            json!({"kinds": ["call"], "allowed_models": ["gpt"]}),
            "MODEL_NOT_ALLOWED",
        ),
        (
            json!({"kinds": ["call"], "allowed_characters": ["repo:acme/bob"]}),
            "CHARACTER_NOT_ALLOWED",
        ),
    ] {
        let quota = app.quota(&acme, settings).await;
        let refused = app.post(&quota.key, CALLS, call(60)).await.expect(403);
        assert_eq!(refused["error"]["code"], code);
    }
    // What is refused for another reason has reserved nothing.
    app.post(
        &quota.key,
        CALLS,
        json!({"character": "repo:acme/nobody", "call_time_limit_seconds": 9}),
    )
    .await
    .expect(400);
    assert_eq!(counters(&app, &quota).await, (0, 60));
});

on_each_database!(
    a_call_that_nobody_joins_costs_nothing_and_a_lost_one_what_it_used,
    |database| {
        let clock = manual();
        let node_of = |name: &str| {
            let builder = builder(&database).node(name).shared_clock(&clock);
            start_by(setting(builder))
        };
        let app = node_of("alive").await;
        let silent = node_of("silent").await;
        let (acme, _) = app.acme_and_other().await;
        let quota = seconds(&app, &acme, 1_000).await;
        placed(&app, &quota.key, 100).await;
        // One whose media never connected, one within its limit, and one beyond it.
        for (limit, connects) in [(20, false), (30, true), (5, true)] {
            let lost = placed(&app, &quota.key, limit).await;
            taken(&silent.state, &lost).await;
            if connects {
                calls::mark_ongoing(&silent.state, &lost).await.unwrap();
            }
        }
        clock.advance(Duration::from_millis(6_500));
        node::heartbeat(&silent.state.kernel).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (0, 155));

        // Whoever created them is gone; that alone ends no call.
        let another = node_of("another").await;
        another.advance(Duration::from_secs(31));
        ledger::sweep(&another.state).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (0, 155));
        calls::sweep(&another.state).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (7 + 5, 100));
        another.advance(Duration::from_secs(300));
        calls::sweep(&another.state).await.unwrap();
        assert_eq!(counters(&app, &quota).await, (7 + 5, 0));
    }
);
