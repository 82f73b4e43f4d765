//! What was used of a quota: sums, and what a period forgets.

use colloquy_accounts::ledger::{Amounts, Measure, Outcome, UsageContext};

use super::*;

/// Reserves and settles, and waits until it is stored.
pub(super) async fn use_up(
    app: &TestRoutes<Accounts>,
    quota: &TestQuota,
    model: &str,
    character: Option<&str>,
    usage: Amounts,
) {
    let caller = quota.caller(&app.state).await.unwrap();
    let about = UsageContext {
        endpoint: "chat.completions",
        model: model.to_owned(),
        character: character.map(str::to_owned),
        request_id: "request-1".to_owned(),
    };
    let reservation = app.state.ledger.reserve(&caller, usage, about);
    reservation
        .await
        .unwrap()
        .settled(usage, Outcome::Completed)
        .await;
}

on_each_database!(usage_is_summed_by_day_model_and_character, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text", "speech"]})).await;
    let text = Amounts::tokens(10, 5)
        .with(Measure::CachedTokens, 4)
        .with(Measure::ReasoningTokens, 2)
        .with(Measure::Cost, 1_234);
    let speech = Amounts::default()
        .with(Measure::Characters, 7)
        .with(Measure::Seconds, 3)
        .with(Measure::Cost, 100_000_000);
    use_up(&app, &quota, "gpt", Some("acme/ada"), text).await;
    use_up(&app, &quota, "gpt", Some("acme/ada"), text).await;
    use_up(&app, &quota, "gpt", None, text).await;
    app.advance(DAY);
    use_up(&app, &quota, "gpt", None, text).await;
    use_up(&app, &quota, "tts", None, speech).await;
    // Another quota's usage is its own.
    let other = app.quota(&acme, json!({"kinds": ["text"]})).await;
    use_up(&app, &other, "gpt", None, text).await;

    let usage = async |query: &str| {
        let path = format!("{}/usage{query}", quota.path);
        app.get(&acme.key, &path).await.expect(200)
    };
    let by_day = usage("").await;
    assert_eq!(by_day["from"], "2025-12-05");
    assert_eq!(by_day["to"], "2026-01-03");
    assert_eq!(
        by_day["rows"],
        json!([
            {
                "day": "2026-01-02", "requests": 3, "tokens": 45, "input_tokens": 30, "cached_tokens": 12,
                "output_tokens": 15, "reasoning_tokens": 6, "characters": 0, "seconds": 0, "dollars": "0.00003702",
            },
            {
                "day": "2026-01-03", "requests": 2, "tokens": 15, "input_tokens": 10, "cached_tokens": 4,
                "output_tokens": 5, "reasoning_tokens": 2, "characters": 7, "seconds": 3, "dollars": "1.00001234",
            },
        ])
    );
    assert_eq!(by_day["total"]["requests"], 5);
    assert_eq!(by_day["total"]["dollars"], "1.00004936");
    assert_eq!(by_day["total"].get("day"), None);

    let pick = |report: &Value, fields: [&str; 4]| -> Vec<Value> {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| json!(fields.map(|field| row.get(field))))
            .collect()
    };
    let groups = ["day", "model", "character", "requests"];
    let one_day = usage("?from=2026-01-02&to=2026-01-02&group_by=character,model").await;
    assert_eq!(
        pick(&one_day, groups),
        [
            json!([null, "gpt", null, 1]),
            json!([null, "gpt", "acme/ada", 2])
        ]
    );
    // Null means that there is no character, not that there is no such column.
    assert_eq!(one_day["rows"][0].get("character"), Some(&Value::Null));
    let all = usage("?group_by=day,model,character").await;
    assert_eq!(
        pick(&all, groups),
        [
            json!(["2026-01-02", "gpt", null, 1]),
            json!(["2026-01-02", "gpt", "acme/ada", 2]),
            json!(["2026-01-03", "gpt", null, 1]),
            json!(["2026-01-03", "tts", null, 1]),
        ]
    );
    let nothing = usage("?from=2026-02-01&to=2026-02-01").await;
    assert_eq!(nothing["rows"], json!([]));
    assert_eq!(nothing["total"]["dollars"], "0");
    usage("?from=2025-01-03&to=2026-01-03").await;
    for (query, field) in [
        ("?from=2026-1-2", "from"),
        ("?to=2026-01-02T00:00:00", "to"),
        ("?to=yesterday", "to"),
        ("?from=2026-01-03&to=2026-01-02", "from"),
        ("?from=2025-01-02&to=2026-01-03", "from"),
        ("?group_by=hour", "group_by"),
        ("?group_by=", "group_by"),
        ("?group=day", "group"),
    ] {
        let path = format!("{}/usage{query}", quota.path);
        let refused = app.get(&acme.key, &path).await.expect(400);
        assert_eq!(refused["field"], field, "{query}");
    }
});
