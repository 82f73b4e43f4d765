//! Lists of calls.

use super::*;

/// The ids of the calls that a list shows, and the path of its next page.
async fn listed(app: &TestRoutes<Place>, key: &str, path: &str) -> (Vec<String>, Option<String>) {
    let answer = app.get(key, path).await;
    let body = answer.expect(200);
    let calls = body["data"].as_array().unwrap();
    let ids = calls.iter().map(|call| bare_id(&json!({"data": call})));
    let next = body["next_cursor"].as_str().map(|cursor| {
        let link = answer.header("link");
        let target = link.strip_prefix('<').unwrap();
        let target = target.strip_suffix(">; rel=\"next\"").unwrap();
        assert!(target.ends_with(&format!("cursor={cursor}")), "{target}");
        target.to_owned()
    });
    (ids.collect(), next)
}

on_each_database!(calls_are_listed_newest_first_page_by_page, |database| {
    let app = start(&database).await;
    let (acme, other) = app.acme_and_other().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, create(&app, &acme, call()).await);
    }
    let custom = json!({"character": {"personality": "Be kind."}, "call_time_limit_seconds": 60});
    let inline = create(&app, &acme, custom.clone()).await;
    let foreign = create(&app, &other, custom).await;
    calls::finish(&app.state, &ids[1], outcome()).await.unwrap();

    let mut seen = Vec::new();
    let mut path = Some("/v2/calls?limit=2&character=repo:acme/ada".to_owned());
    while let Some(next) = path {
        let (page, following) = listed(&app, &acme.key, &next).await;
        assert!((1..=2).contains(&page.len()));
        seen.extend(page);
        path = following;
    }
    assert_eq!(seen, ids);
    let all = listed(&app, &acme.key, "/v2/calls").await;
    assert_eq!(all.0, [[inline].as_slice(), &ids].concat());
    let ended = listed(&app, &acme.key, "/v2/calls?state=completed").await;
    assert_eq!(ended, (vec![ids[1].clone()], None));
    let none = listed(
        &app,
        &acme.key,
        "/v2/calls?created_before=2020-01-01T00:00:00Z",
    )
    .await;
    assert_eq!(none, (vec![], None));
    assert_eq!(listed(&app, &other.key, "/v2/calls").await.0, [foreign]);
    let admin = "/v2/calls?partner=acme&created_from=2020-01-01T00:00:00Z";
    assert_eq!(listed(&app, ADMIN_KEY, admin).await.0, all.0);
    assert_eq!(listed(&app, ADMIN_KEY, "/v2/calls").await.0.len(), 7);

    for (query, status, field) in [
        ("limit=0", 400, "limit"),
        ("limit=x", 400, "limit"),
        ("state=sleeping", 400, "state"),
        ("created_from=yesterday", 400, "created_from"),
    ] {
        let path = format!("/v2/calls?{query}");
        let refused = app.get(&acme.key, &path).await.expect(status);
        assert_eq!(refused["error"]["field"], field, "{query}: {refused}");
    }
    let foreign = "/v2/calls?partner=acme";
    app.get(&other.key, foreign).await.expect(403);
});

// The list of a quota's key is what the quota paid for; a page's key has none.
on_each_database!(a_quota_lists_its_own_calls_and_a_page_none, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["call"]})).await;
    let custom = json!({"character": {"personality": "Be kind."}, "call_time_limit_seconds": 60});
    create(&app, &acme, custom.clone()).await;
    let own = app.post(&quota.key, CALLS, custom).await.expect(200);
    let (ids, _) = listed(&app, &quota.key, "/v2/calls").await;
    assert_eq!(ids, [bare_id(&own)]);
    let origin = "https://shop.example";
    let page = json!({"kind": "publishable", "allowed_origins": [origin]});
    let page = app.key("acme", page).await;
    let request = app.request(Method::GET, "/v2/calls");
    let request = request.header("x-api-key", page["api_key"].as_str().unwrap());
    send(request.header("origin", origin)).await.expect(403);
});
