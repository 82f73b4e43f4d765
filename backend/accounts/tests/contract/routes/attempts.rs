//! Wrong keys: how often they may be tried, and from where.

use tokio::task::JoinSet;

use super::*;

on_each_database!(
    who_guesses_keys_is_refused_before_the_database_is_asked,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.attempts_per_minute = 2;
            config.http.trusted_proxies = 1;
        });
        let app = start_by(builder).await;
        let acme = app.partner("acme").await;
        let new = app.key("acme", json!({})).await;
        let quota = app.quota(&acme, json!({"kinds": ["call"]})).await;
        let from = |key: &str, path: &str| {
            app.request(Method::GET, path)
                .header("x-api-key", key)
                .header("x-forwarded-for", "9.9.9.9")
        };
        let me = |key: &str| from(key, "/api/auth/me");
        send(me(&acme.key)).await.expect(200);
        // Keys of the right form, which the database is asked for.
        let invented = |prefix: &str, nth: usize| format!("{prefix}{nth:032x}_{}", "a".repeat(43));
        for nth in 0..2 {
            send(me(&invented("cqk_", nth))).await.expect(401);
        }
        app.advance(Duration::from_secs(6));
        send(me(&invented("cqk_", 3))).await.expect(429);
        send(from(&invented("cqq_", 3), "/v2/calls/none"))
            .await
            .expect(429);
        // One that has been used here passes, although its row is too old to be trusted, and so does the configured one.
        send(me(&acme.key)).await.expect(200);
        send(me(ADMIN_KEY)).await.expect(200);
        // One that nobody knows yet waits like everybody.
        let new = new["api_key"].as_str().unwrap();
        send(me(new)).await.expect(429);
        send(from(&quota.key, "/v2/calls/none")).await.expect(429);
        app.advance(Duration::from_secs(30));
        send(me(new)).await.expect(200);
        // That was no attempt.
        send(from(&quota.key, "/v2/calls/none")).await.expect(404);
        send(me(&invented("cqk_", 4))).await.expect(401);
    }
);

// Nobody knows any of the keys when all of them come, as after a restart.
on_each_database!(many_clients_behind_one_address_begin_at_once, |database| {
    let builder = builder(&database).config(|config| config.limits.attempts_per_minute = 2);
    let app = start_by(builder).await;
    let acme = app.partner("acme").await;
    let mut requests = Vec::new();
    for nth in 0..16 {
        let key = app.key("acme", json!({})).await;
        let quota = app.quota(&acme, json!({"kinds": ["call"]})).await;
        let me = app.request(Method::GET, "/api/auth/me");
        let call = app.request(Method::GET, "/v2/calls/none");
        let (request, key, status) = match nth % 2 {
            0 => (me, key["api_key"].as_str().unwrap(), 200),
            _ => (call, quota.key.as_str(), 404),
        };
        requests.push((request.header("x-api-key", key), status));
    }
    let mut asked = JoinSet::new();
    for (request, status) in requests {
        asked.spawn(async move { send(request).await.expect(status) });
    }
    asked.join_all().await;
});

// Who waits for a guess to be looked up does not get the guess's place.
on_each_database!(
    guesses_at_once_ask_the_database_no_more_often_than_allowed,
    |database| {
        let builder = builder(&database);
        let builder = builder.config(|config| config.limits.attempts_per_minute = 4);
        let app = start_by(builder).await;
        let mut guesses = JoinSet::new();
        for nth in 0..64 {
            let (prefix, path) = match nth % 2 {
                0 => ("cqk_", "/api/auth/me"),
                _ => ("cqq_", "/v2/calls/none"),
            };
            let key = format!("{prefix}{nth:032x}_{}", "a".repeat(43));
            let request = app.request(Method::GET, path).header("x-api-key", key);
            guesses.spawn(send(request));
        }
        let answers = guesses.join_all().await;
        let of = |status: u16| {
            answers
                .iter()
                .filter(|answer| answer.status == status)
                .count()
        };
        assert_eq!((of(401), of(429)), (4, 60));
    }
);
