//! Usage of all quotas of a partner, and usage as CSV.

use colloquy_accounts::{
    Tenant,
    ledger::{Amounts, Measure, Outcome, UsageContext, budget},
};
use colloquy_store::statement;
use test_routes::Answer;

use super::{usage::use_up, *};

const PATH: &str = "/api/usage/acme";

fn id_of(quota: &TestQuota) -> &str {
    quota.path.rsplit('/').next().unwrap()
}

/// `GET` with this `Accept`.
async fn accept(app: &TestRoutes<Accounts>, key: &str, path: &str, accept: &str) -> Answer {
    let request = app.request(Method::GET, path).bearer_auth(key);
    send(request.header("accept", accept)).await
}

on_each_database!(usage_of_a_partner_is_summed_over_its_quotas, |database| {
    let app = start_by(builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let site = app
        .quota(&acme, json!({"name": "site", "kinds": ["text"]}))
        .await;
    let phone = app
        .quota(&acme, json!({"name": "phone", "kinds": ["text"]}))
        .await;
    let foreign = app.quota(&other, json!({"kinds": ["text"]})).await;
    let text = Amounts::tokens(10, 5).with(Measure::Cost, 1_234);
    use_up(&app, &site, "gpt", Some("acme/ada"), text).await;
    use_up(&app, &phone, "gpt", None, text).await;
    use_up(&app, &foreign, "gpt", None, text).await;
    app.advance(DAY);
    use_up(&app, &phone, "mini", None, text).await;
    // Revoked quotas count, under the name that they have now.
    let renamed = json!({"name": "hotline"});
    app.put(&acme.key, &phone.path, renamed).await.expect(200);
    app.delete(&acme.key, &phone.path).await.expect(204);
    // Budgets do not.
    let budget = "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
                  VALUES ('budget', 'acme', 'budget', '', '', '[]', FALSE, 'lifetime', 0, 0, 0)";
    let days = "INSERT INTO usage_days (quota, day, model, character_ref, requests) VALUES ('budget', '2026-01-02', 'gpt', '', 9)";
    for sql in [budget, days] {
        app.state.store.db().execute(sql).await.unwrap();
    }

    let usage = async |query: &str| {
        let path = format!("{PATH}{query}");
        app.get(&acme.key, &path).await.expect(200)
    };
    let by_day = usage("").await;
    assert_eq!(
        (&by_day["from"], &by_day["to"]),
        (&json!("2025-12-05"), &json!("2026-01-03"))
    );
    let row = |day: &str, requests: u64, dollars: &str| {
        json!({
            "day": day, "requests": requests, "tokens": 15 * requests, "input_tokens": 10 * requests, "cached_tokens": 0,
            "output_tokens": 5 * requests, "reasoning_tokens": 0, "characters": 0, "seconds": 0, "dollars": dollars,
        })
    };
    assert_eq!(
        by_day["rows"],
        json!([
            row("2026-01-02", 2, "0.00002468"),
            row("2026-01-03", 1, "0.00001234")
        ])
    );
    assert_eq!(by_day["total"]["requests"], 3);
    assert_eq!(by_day["total"]["dollars"], "0.00003702");

    // An administrator reads that of all partners.
    let all = "/api/usage?group_by=day";
    let everything = app.get(ADMIN_KEY, all).await.expect(200);
    assert_eq!(everything["total"]["requests"], 4);
    assert_eq!(everything["rows"][0]["requests"], 3);
    assert_eq!(everything["total"]["dollars"], "0.00004936");
    app.get(&acme.key, all).await.expect(403);
    let refused = app.get(ADMIN_KEY, "/api/usage?group_by=colour").await;
    assert_eq!(refused.expect(400)["field"], "group_by");

    // Knowledge bases count where they are asked for. Replies of drafts are none of them.
    let drafts = "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
                  VALUES ('drafts:other', 'other', 'budget', '', '', '[]', FALSE, 'lifetime', 0, 0, 0)";
    let cost = "UPDATE usage_days SET cost = 1000 WHERE quota = 'budget'";
    let of_drafts = "INSERT INTO usage_days (quota, day, model, character_ref, cost) VALUES ('drafts:other', '2026-01-02', 'gpt', '', 5)";
    for sql in [drafts, cost, of_drafts] {
        app.state.store.db().execute(sql).await.unwrap();
    }
    let with_bases = usage("?include=knowledge_bases").await;
    assert_eq!(with_bases["total"], by_day["total"]);
    let bases = &with_bases["knowledge_bases"];
    assert_eq!(bases["total"]["requests"], 9);
    assert_eq!(bases["total"]["dollars"], "0.00001");
    assert_eq!(bases["models"][0]["model"], "gpt");
    assert_eq!(with_bases["all"]["requests"], 12);
    assert_eq!(with_bases["all"]["dollars"], "0.00004702");
    let path = "/api/usage?include=knowledge_bases";
    let everywhere = app.get(ADMIN_KEY, path).await.expect(200);
    assert_eq!(everywhere["knowledge_bases"], *bases);
    assert_eq!(everywhere["all"]["dollars"], "0.00005941");
    let path = "/api/usage/other?include=knowledge_bases";
    let none = app.get(&other.key, path).await.expect(200);
    assert_eq!(none["knowledge_bases"]["models"], json!([]));
    for path in [
        format!("{PATH}?include=everything"),
        format!("{}/usage?include=knowledge_bases", site.path),
    ] {
        let refused = app.get(&acme.key, &path).await.expect(400);
        assert_eq!(refused["field"], "include");
    }
    let csv = accept(
        &app,
        &acme.key,
        &format!("{PATH}?include=knowledge_bases"),
        "text/csv",
    )
    .await;
    assert_eq!(csv.expect(400)["field"], "include");

    let pick = |report: &Value, fields: [&str; 4]| -> Vec<Value> {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| json!(fields.map(|field| row.get(field))))
            .collect()
    };
    let by_key = usage("?group_by=key").await;
    assert_eq!(
        pick(&by_key, ["quota_id", "quota_name", "day", "requests"]),
        [
            json!([id_of(&site), "site", null, 1]),
            json!([id_of(&phone), "hotline", null, 2]),
        ]
    );
    assert_eq!(by_key["total"], by_day["total"]);
    let all = usage("?group_by=key,character,model,day").await;
    assert_eq!(
        pick(&all, ["day", "model", "character", "quota_name"]),
        [
            json!(["2026-01-02", "gpt", null, "hotline"]),
            json!(["2026-01-02", "gpt", "acme/ada", "site"]),
            json!(["2026-01-03", "mini", null, "hotline"]),
        ]
    );
    let by_model = usage("?group_by=model&from=2026-01-03&to=2026-01-03").await;
    assert_eq!(
        pick(&by_model, ["model", "requests", "day", "quota_id"]),
        [json!(["mini", 1, null, null])]
    );
    let nothing = usage("?from=2026-02-01&to=2026-02-01").await;
    assert_eq!(nothing["rows"], json!([]));
    assert_eq!(nothing["total"]["requests"], 0);

    for (query, field) in [
        ("?from=2025-01-02&to=2026-01-03", "from"),
        ("?group_by=quota", "group_by"),
        ("?by=day", "by"),
    ] {
        let refused = app
            .get(&acme.key, &format!("{PATH}{query}"))
            .await
            .expect(400);
        assert_eq!(refused["field"], field, "{query}");
    }
    app.get(&other.key, PATH).await.expect(403);
    app.get(&site.key, PATH).await.expect(401);
    app.get(ADMIN_KEY, "/api/usage/nobody").await.expect(404);
    let limited = json!({"name": "calls", "scopes": ["calls"]});
    let limited = app
        .post(&acme.key, "/api/keys/acme", limited)
        .await
        .expect(201);
    let limited = limited["api_key"].as_str().unwrap();
    app.get(limited, PATH).await.expect(403);
});

on_each_database!(usage_of_drafts_counts_for_their_partner, |database| {
    let app = start_by(builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let tenant = Tenant::of_row("acme");
    let opened = || budget::of_drafts(app.state.store.db(), &tenant, 1);
    let (first, second) = tokio::join!(opened(), opened());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.as_str(), &second), ("drafts:acme", &first));
    let about = UsageContext {
        endpoint: "character_drafts",
        model: "gpt".to_owned(),
        character: None,
        request_id: "request-1".to_owned(),
    };
    let used = Amounts::tokens(10, 5).with(Measure::Cost, 1_234);
    let reservation = app.state.ledger.reserve_of_budget(&first, used, about);
    let reservation = reservation.await.unwrap();
    reservation.settled(used, Outcome::Completed).await;
    let by_key = app.get(&acme.key, &format!("{PATH}?group_by=key")).await;
    let by_key = by_key.expect(200);
    let row = &by_key["rows"][0];
    assert_eq!(row["quota_id"], "drafts:acme", "{by_key}");
    assert_eq!(row["quota_name"], "Replies of drafts");
    assert_eq!((&row["requests"], &row["tokens"]), (&json!(1), &json!(15)));
    let theirs = app.get(&other.key, "/api/usage/other").await.expect(200);
    assert_eq!(theirs["total"]["requests"], 0);
    let listed = app.get(&acme.key, "/api/quotas/acme").await.expect(200);
    assert_eq!(listed, json!([]));
    app.get(&acme.key, "/api/quotas/acme/drafts:acme")
        .await
        .expect(404);
});

on_each_database!(usage_is_sent_as_csv_to_whoever_prefers_it, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let name = "=HYPERLINK(\"https://example.com\", 1)";
    let quota = app
        .quota(&acme, json!({"name": name, "kinds": ["text"]}))
        .await;
    let text = Amounts::tokens(10, 5)
        .with(Measure::CachedTokens, 4)
        .with(Measure::Cost, 1_234);
    use_up(&app, &quota, "gpt, large", Some("acme/ada"), text).await;
    use_up(&app, &quota, "@mini", None, text).await;

    let path = format!("{PATH}?group_by=day,model,character,key&from=2026-01-01&to=2026-01-31");
    let answer = accept(&app, &acme.key, &path, "text/csv").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.header("content-type"),
        "text/csv; charset=utf-8; header=present"
    );
    assert_eq!(
        answer.header("content-disposition"),
        "attachment; filename*=UTF-8''usage-acme-2026-01-01-2026-01-31.csv"
    );
    assert_eq!(answer.header("vary").to_ascii_lowercase(), "accept");
    let measures = "tokens,dollars,characters,seconds,input_tokens,cached_tokens,output_tokens,reasoning_tokens,requests";
    let id = id_of(&quota);
    let shown = "\"'=HYPERLINK(\"\"https://example.com\"\", 1)\"";
    let expected = format!(
        "day,model,character,quota_id,quota_name,{measures}\r\n\
         2026-01-02,'@mini,,{id},{shown},15,0.00001234,0,0,10,4,5,0,1\r\n\
         2026-01-02,\"gpt, large\",acme/ada,{id},{shown},15,0.00001234,0,0,10,4,5,0,1\r\n"
    );
    // Databases order punctuation differently.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.split("\r\n").map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(sorted(&answer.text), sorted(&expected));

    let own = format!("{}/usage?to=2026-01-31", quota.path);
    let answer = accept(&app, &acme.key, &own, "text/csv;q=1, */*;q=0.5").await;
    assert_eq!(
        answer.text,
        format!("day,{measures}\r\n2026-01-02,30,0.00002468,0,0,20,8,10,0,2\r\n")
    );
    let empty = format!("{PATH}?from=2026-03-01&to=2026-03-01");
    let answer = accept(&app, &acme.key, &empty, "text/csv").await;
    assert_eq!(answer.text, format!("day,{measures}\r\n"));
    // The end of the calendar.
    for from in ["9999-12-31", "9999-11-20", "9999-01-01"] {
        let last = format!("{PATH}?from={from}&to=9999-12-31");
        let answer = accept(&app, &acme.key, &last, "text/csv").await;
        assert_eq!(answer.text, format!("day,{measures}\r\n"));
    }
    let answer = accept(&app, &acme.key, PATH, "*/*").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["total"]["requests"], 2);
    let answer = accept(
        &app,
        &acme.key,
        &format!("{PATH}?group_by=hour"),
        "text/csv",
    )
    .await;
    assert_eq!(answer.expect(400)["field"], "group_by");
});

on_each_database!(json_has_a_limit_of_rows_and_csv_has_all, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    // More than two pages, and days of two months.
    let sql = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10001), \
               days (day) AS (SELECT '2026-01-01' UNION ALL SELECT '2026-02-28') \
               INSERT INTO usage_days (quota, day, model, character_ref, requests) \
               SELECT CAST($1 AS TEXT), day, 'model-' || CAST(n AS TEXT), '', n FROM numbers, days WHERE day = '2026-01-01' OR n > 1";
    let db = app.state.store.db();
    let inserted = db.execute(statement(sql, [id_of(&quota).into()])).await;
    assert_eq!(inserted.unwrap(), 20_001);

    let query = |query: &str| format!("{PATH}?from=2026-01-01&to=2026-03-31&group_by={query}");
    let refused = app.get(&acme.key, &query("model")).await.expect(400);
    assert_eq!(refused["field"], "group_by");
    assert!(refused.to_string().contains("10000 rows"), "{refused}");
    let one_day = format!("{PATH}?from=2026-02-28&to=2026-02-28&group_by=model");
    let most = app.get(&acme.key, &one_day).await.expect(200);
    assert_eq!(most["rows"].as_array().unwrap().len(), 10_000);
    // 1 to 10,001 on the first day, all but 1 on the second.
    let sum = 10_001 * 10_002 - 1;
    for (groups, rows) in [("day,model", 20_001), ("model,key", 10_001)] {
        let csv = accept(&app, &acme.key, &query(groups), "text/csv").await;
        assert_eq!(csv.status, StatusCode::OK, "{}", csv.text);
        let lines: Vec<_> = csv.text.split_terminator("\r\n").skip(1).collect();
        assert_eq!(lines.len(), rows, "{groups}");
        if groups == "day,model" {
            assert!(
                lines[10_000].starts_with("2026-01-01,"),
                "{}",
                lines[10_000]
            );
            assert!(
                lines[10_001].starts_with("2026-02-28,"),
                "{}",
                lines[10_001]
            );
        }
        let requests = |line: &&str| line.rsplit(',').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(lines.iter().map(requests).sum::<u64>(), sum, "{groups}");
    }
});
