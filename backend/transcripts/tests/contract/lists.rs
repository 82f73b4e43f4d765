//! Lists of transcripts.

use serde_json::Value;
use test_routes::TestClient;

use super::*;

/// The transcripts that a list shows, and the path of its next page.
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

fn id(transcript: &Value) -> String {
    transcript["id"].as_str().unwrap().to_owned()
}

async fn create(client: &TestClient, key: &str) -> String {
    let body = json!({"audio_url": "https://example.com/a.mp3"});
    id(&client.post(key, PATH, body).await.expect(200))
}

on_each_database!(
    transcripts_are_listed_newest_first_page_by_page,
    |database| {
        let app = start(&database).await;
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
            let sql = format!("UPDATE transcripts SET {change} WHERE id = '{id}'");
            app.state.store.db().execute(sql).await.unwrap();
        };
        let completed = "status = 'completed', text = 'Yes.', audio_seconds = 7, language = 'de', ended_at = created_at";
        set(&made[1], completed).await;
        set(
            &made[3],
            "status = 'error', error = 'x', audio_url = NULL, ended_at = created_at",
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
        // Entries are as their own address shows them, but for the text.
        for (entry, path) in seen.iter().zip(&made) {
            let mut read = app.get(key, path).await.expect(200);
            read.as_object_mut().unwrap().remove("text");
            assert_eq!(*entry, read);
        }
        assert_eq!(seen[1]["audio_duration"], 7);
        assert_eq!(seen[1]["language_code"], "de");
        assert_eq!(
            (&seen[3]["error"], &seen[3]["retryable"]),
            (&json!("x"), &json!(false))
        );

        let of = async |query: &str| ids(&app, key, &format!("{PATH}?{query}")).await;
        assert_eq!(of("status=completed").await, made[1..2]);
        assert_eq!(
            of("status=error,completed").await,
            [made[1].clone(), made[3].clone()]
        );
        assert_eq!(of("status=queued&limit=1").await, made[..1]);
        assert_eq!(of("status=processing").await, [""; 0]);
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
            ("status=sleeping", "status"),
            ("status=", "status"),
            ("state=error", "state"),
            ("created_from=yesterday", "created_from"),
            ("partner=A%2FB", "partner"),
        ] {
            let refused = app.get(key, &format!("{PATH}?{query}")).await.expect(422);
            assert!(refused["errors"][field].is_array(), "{query}: {refused}");
        }
        // A transcript that is too old is not there, in lists as at its address.
        set(&made[1], "ended_at = 1").await;
        assert_eq!(of("status=completed").await, [""; 0]);
    }
);

on_each_database!(a_quota_lists_its_own_transcripts, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["transcript"]})).await;
    let other = app.quota(&acme, json!({"kinds": ["transcript"]})).await;
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
});

// Administrators reach the transcripts of all partners, and name the one that a new transcript is for.
on_each_database!(administrators_work_for_a_partner, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let body = json!({"audio_url": "https://example.com/a.mp3"});
    let post = async |path: &str| app.post(ADMIN_KEY, path, body.clone()).await;
    post(PATH).await.expect(403);
    post(&format!("{PATH}?partner=nobody")).await.expect(404);
    let made = post(&format!("{PATH}?partner=acme")).await.expect(200);
    let path = id(&made);
    app.get(&acme.key, &path).await.expect(200);
    app.get(ADMIN_KEY, &path).await.expect(200);
    app.delete(ADMIN_KEY, &path).await.expect(409);
    app.post(ADMIN_KEY, &format!("{path}/retry"), json!({}))
        .await
        .expect(409);
    let end = "UPDATE transcripts SET status = 'completed', text = 'x', ended_at = created_at";
    app.state.store.db().execute(end).await.unwrap();
    recount_texts(&app, TEXTS).await.unwrap();
    app.delete(ADMIN_KEY, &path).await.expect(204);
    app.get(&acme.key, &path).await.expect(404);
    counted(&app).await;
});
