//! Lists of analyses.

use std::time::Duration;

use serde_json::Value;
use test_routes::{TestClient, analyses::PATH};

use super::*;

/// The analyses that a list shows, and the path of its next page.
async fn listed(client: &TestClient, key: &str, path: &str) -> (Vec<Value>, Option<String>) {
    let answer = client.get(key, path).await;
    let body = answer.expect(200);
    let next = body["next_cursor"].as_str().map(|cursor| {
        let link = answer.header("link");
        let target = link.strip_prefix('<').unwrap();
        let target = target.strip_suffix(">; rel=\"next\"").unwrap();
        assert!(target.ends_with(&format!("cursor={cursor}")), "{target}");
        target.to_owned()
    });
    (body["data"].as_array().unwrap().clone(), next)
}

async fn ids(client: &TestClient, key: &str, path: &str) -> Vec<String> {
    let (listed, _) = listed(client, key, path).await;
    listed.iter().map(id).collect()
}

fn id(analysis: &Value) -> String {
    analysis["id"].as_str().unwrap().to_owned()
}

async fn create(client: &TestClient, key: &str) -> String {
    id(&client.post(key, PATH, conversation()).await.expect(200))
}

on_each_database!(analyses_are_listed_newest_first_page_by_page, |database| {
    let app = start_by(builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let key = acme.key.as_str();
    let mut made = Vec::new();
    for _ in 0..5 {
        made.insert(0, create(&app, key).await);
        app.advance(Duration::from_secs(60));
    }
    let foreign = create(&app, &other.key).await;
    let set = async |id: &str, change: &str| {
        let id = id.rsplit('/').next().unwrap();
        let sql = format!("UPDATE dialog_analyses SET {change} WHERE id = '{id}'");
        app.state.store.db().execute(sql).await.unwrap();
    };
    let output = r#"{"profile": {"name": "Ada"}, "feedback": {}}"#;
    let completed = format!(
        "state = 'completed', output = '{output}', input = NULL, ended_at = created_at + 2500"
    );
    set(&made[1], &completed).await;
    let error = r#"{"code": "model_failed", "message": "x"}"#;
    set(
        &made[3],
        &format!("state = 'failed', error = '{error}', ended_at = created_at"),
    )
    .await;

    let mut seen = Vec::new();
    let mut path = Some(format!("{PATH}?limit=2"));
    while let Some(next) = path {
        let (page, following) = listed(&app, key, &next).await;
        assert!((1..=2).contains(&page.len()));
        seen.extend(page);
        path = following;
    }
    assert_eq!(seen.iter().map(id).collect::<Vec<_>>(), made);
    // Entries are as their own address shows them, but for the output.
    for (entry, path) in seen.iter().zip(&made) {
        let mut read = app.get(key, path).await.expect(200);
        read.as_object_mut().unwrap().remove("output");
        assert_eq!(*entry, read);
    }
    assert_eq!(seen[1]["server_runtime"], 3);
    assert_eq!(seen[3]["error"]["code"], "model_failed");
    assert_eq!(seen[3]["retryable"], true);

    let of = async |query: &str| ids(&app, key, &format!("{PATH}?{query}")).await;
    assert_eq!(of("state=completed").await, made[1..2]);
    assert_eq!(
        of("state=failed,completed").await,
        [made[1].clone(), made[3].clone()]
    );
    assert_eq!(of("state=in-progress&limit=1").await, made[..1]);
    let created = |index: usize| seen[index]["created_at"].as_str().unwrap().to_owned();
    assert_eq!(of(&format!("created_from={}", created(2))).await, made[..3]);
    assert_eq!(
        of(&format!("created_before={}", created(2))).await,
        made[3..]
    );

    assert_eq!(ids(&app, &other.key, PATH).await, [foreign]);
    assert_eq!(
        ids(&app, ADMIN_KEY, &format!("{PATH}?partner=acme")).await,
        made
    );
    assert_eq!(ids(&app, ADMIN_KEY, PATH).await.len(), 6);
    app.get(&other.key, &format!("{PATH}?partner=acme"))
        .await
        .expect(403);
    for (query, field) in [
        ("limit=0", "limit"),
        ("state=sleeping", "state"),
        ("status=failed", "status"),
        ("created_before=tomorrow", "created_before"),
        ("partner=A%2FB", "partner"),
    ] {
        let refused = app.get(key, &format!("{PATH}?{query}")).await.expect(422);
        assert!(refused["errors"][field].is_array(), "{query}: {refused}");
    }
    // An analysis that is too old is not there, in lists as at its address.
    set(&made[1], "ended_at = 1").await;
    assert_eq!(of("state=completed").await, [""; 0]);
});

on_each_database!(a_quota_lists_its_own_analyses, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let other = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let calls = app.quota(&acme, json!({"kinds": ["call"]})).await;
    let of_key = create(&app, &acme.key).await;
    let own = create(&app, &quota.key).await;
    assert_eq!(ids(&app, &quota.key, PATH).await, [own.as_str()]);
    assert_eq!(ids(&app, &other.key, PATH).await, [""; 0]);
    assert_eq!(
        ids(&app, &acme.key, PATH).await,
        [own.as_str(), of_key.as_str()]
    );
    app.get(&calls.key, PATH).await.expect(403);
    app.get("", PATH).await.expect(401);
    app.get(&quota.key, &format!("{own}/input"))
        .await
        .expect(200);
    app.get(&other.key, &format!("{own}/input"))
        .await
        .expect(404);
});

// Administrators reach the analyses of all partners, and name the one that a new analysis is for.
on_each_database!(administrators_work_for_a_partner, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let post = async |path: &str| app.post(ADMIN_KEY, path, conversation()).await;
    post(PATH).await.expect(403);
    post(&format!("{PATH}?partner=nobody")).await.expect(404);
    let made = post(&format!("{PATH}?partner=acme")).await.expect(200);
    let path = id(&made);
    for key in [ADMIN_KEY, acme.key.as_str()] {
        app.get(key, &path).await.expect(200);
        let input = app.get(key, &format!("{path}/input")).await.expect(200);
        assert_eq!(input["messages"], conversation()["input"]["messages"]);
        app.post(key, &format!("{path}/retry"), json!({}))
            .await
            .expect(409);
    }
});
