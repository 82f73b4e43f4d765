//! What is kept of a call beside its transcript: the quality of the connection, what became known of the visitor, the cost, and when it began and ended.

use calls::quality::{MAX_POINTS, POINT_EVERY, QualityLog, QualityPoint};

use super::*;

/// The quality of the call.
async fn quality(app: &TestRoutes<Place>, key: &str, id: &str) -> Value {
    let answer = app.get(key, &format!("{CALLS}/{id}/quality")).await;
    answer.expect(200)["data"].clone()
}

/// The status of the call.
async fn status(app: &TestRoutes<Place>, key: &str, id: &str) -> Value {
    let answer = app.get(key, &format!("{CALLS}/{id}")).await;
    answer.expect(200)["data"].clone()
}

fn point(number: u64) -> QualityPoint {
    let every = u64::try_from(POINT_EVERY.as_millis()).unwrap();
    QualityPoint {
        at_ms: number * every,
        round_trip_ms: Some(40),
        jitter_ms: Some(20),
        loss_received: Some(0.25),
        loss_sent: None,
    }
}

on_each_database!(the_quality_of_a_call_is_followed_and_kept, |database| {
    let app = start(&database).await;
    let (acme, other) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    let none = json!({"is_open": true, "points": []});
    assert_eq!(quality(&app, &acme.key, &id).await, none);
    let path = format!("{CALLS}/{id}/quality");
    app.get(&other.key, &path).await.expect(404);

    let _setup = calls::take(&app.state, &id, None).await.unwrap().unwrap();
    let mut log = QualityLog::start(&app.state, &id);
    log.add(point(1));
    let shown = json!({"at_ms": 10_000, "round_trip_ms": 40, "jitter_ms": 20, "loss_received": 0.25, "loss_sent": null});
    let first = json!({"is_open": true, "points": [shown]});
    eventually("the first point is there", async || {
        quality(&app, &acme.key, &id).await == first
    })
    .await;

    // Of the longest call there are a few, also after its end.
    for number in 2..=1_440 {
        log.add(point(number));
    }
    calls::finish(&app.state, &id, outcome()).await.unwrap();
    drop(log);
    eventually("the last point is there", async || {
        let found = quality(&app, &acme.key, &id).await;
        let points = found["points"].as_array().unwrap();
        assert!(points.len() <= MAX_POINTS, "{}", points.len());
        points.last().unwrap()["at_ms"] == 14_400_000 && found["is_open"] == false
    })
    .await;

    // It goes with the call, and comes never back.
    let mut late = QualityLog::start(&app.state, &id);
    let deleted = app.delete(&acme.key, &format!("{CALLS}/{id}")).await;
    deleted.expect(204);
    late.add(point(1));
    drop(late);
    app.get(&acme.key, &path).await.expect(404);
    app.stop().await;
    let app = start(&database).await;
    let db = app.state.store.db();
    let left = db.fetch_count("SELECT COUNT(*) FROM call_quality").await;
    assert_eq!(left.unwrap(), 0);
});

on_each_database!(
    what_became_known_of_a_visitor_is_kept_and_counts,
    |database| {
        let app = start(&database).await;
        let (acme, other) = app.acme_and_other().await;
        let id = create(&app, &acme, call()).await;
        let path = format!("{CALLS}/{id}/visitor");
        let facts = async || app.get(&acme.key, &path).await.expect(200)["data"]["facts"].clone();
        assert_eq!(facts().await, json!({}));
        let known = json!({"name": "Ada", "city": "Zürich"});
        let said = Outcome {
            visitor: known.as_object().unwrap().clone(),
            ..outcome()
        };
        calls::finish(&app.state, &id, said.clone()).await.unwrap();
        assert_eq!(facts().await, known);
        app.get(&other.key, &path).await.expect(404);
        expect_exact_sums(&app).await;

        // One that failed leaves none, as it leaves no transcript.
        let id = create(&app, &acme, call()).await;
        let failed = Outcome {
            error: Some("INTERNAL".into()),
            ..said
        };
        calls::finish(&app.state, &id, failed).await.unwrap();
        let path = format!("{CALLS}/{id}/visitor");
        let none = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(none["data"]["facts"], json!({}));
        expect_exact_sums(&app).await;
    }
);

on_each_database!(a_call_tells_its_times_and_its_cost, |database| {
    let clock = manual();
    let priced = builder(&database)
        .shared_clock(&clock)
        .config(|config| config.calls.usd_per_hour = "1.80".parse().unwrap());
    let app = start_by(priced).await;
    let (acme, _) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    let created = status(&app, &acme.key, &id).await;
    for field in ["joined_at", "ended_at", "cost"] {
        assert_eq!(created[field], Value::Null, "{field}");
    }
    clock.advance(Duration::from_secs(5));
    let _setup = calls::take(&app.state, &id, None).await.unwrap().unwrap();
    let joined = status(&app, &acme.key, &id).await;
    assert_eq!(joined["joined_at"], joined["updated_at"]);
    assert_ne!(joined["joined_at"], joined["created_at"]);
    assert_eq!(joined["ended_at"], Value::Null);
    clock.advance(Duration::from_secs(62));
    calls::finish(&app.state, &id, outcome()).await.unwrap();
    let ended = status(&app, &acme.key, &id).await;
    assert_eq!(ended["joined_at"], joined["joined_at"]);
    assert_eq!(ended["ended_at"], ended["updated_at"]);
    // 61.4 seconds are 62 that were begun, at half a tenth of a cent.
    let cost = json!({"dollars": "0.031", "is_lower_bound": false});
    assert_eq!(ended["cost"], cost);
    let listed = app.get(&acme.key, CALLS).await.expect(200);
    assert_eq!(listed["data"][0]["cost"], cost);
});

on_each_database!(a_cost_that_is_not_known_is_a_lower_bound, |database| {
    for (name, service, is_lower_bound) in [
        ("local", None, false),
        ("outside", Some("http://ears.example/v1"), true),
    ] {
        let with = builder(&database).config(move |config| {
            config.transcriber.base_url = service.map(|url| url.parse().unwrap());
        });
        let app = start_by(with).await;
        let partner = app.partner(name).await;
        let id = create(
            &app,
            &partner,
            json!({"character": {"personality": "Be kind."}, "call_time_limit_seconds": 60}),
        )
        .await;
        calls::finish(&app.state, &id, outcome()).await.unwrap();
        let cost = status(&app, &partner.key, &id).await["cost"].clone();
        assert_eq!(
            cost,
            json!({"dollars": "0", "is_lower_bound": is_lower_bound})
        );
    }
});
