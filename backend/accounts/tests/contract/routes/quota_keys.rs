//! The keys of quotas: where they are looked for, when they end, how often they may be wrong.

use super::*;

/// The status of a request that a quota's key opens, with these headers.
async fn status(app: &TestRoutes<Accounts>, headers: &[(&str, &str)]) -> u16 {
    let mut request = app.request(Method::GET, "/v3/whoami");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    send(request).await.status.as_u16()
}

fn id(quota: &TestQuota) -> &str {
    quota.path.rsplit('/').next().unwrap()
}

on_each_database!(
    a_quota_s_key_is_looked_for_in_authorization_first,
    |database| {
        let app = start(&database).await;
        let acme = app.partner("acme").await;
        let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
        let bearer = format!("Bearer {}", quota.key);
        let basic = format!("Basic {}", quota.key);
        let mut flipped = quota.key.clone();
        flipped.pop();
        flipped.push(if quota.key.ends_with('A') { 'B' } else { 'A' });
        for (headers, expected) in [
            (vec![("authorization", bearer.as_str())], 200),
            (
                vec![("authorization", &bearer.replace("Bearer", "bearer"))],
                200,
            ),
            (vec![("X-API-Key", &quota.key)], 200),
            (vec![("X-Api-Key", &quota.key)], 200),
            (
                vec![("authorization", &bearer), ("x-api-key", "wrong")],
                200,
            ),
            (
                vec![("authorization", "Bearer wrong"), ("x-api-key", &quota.key)],
                401,
            ),
            (
                vec![("authorization", "Basic dTpw"), ("x-api-key", &quota.key)],
                200,
            ),
            (vec![("authorization", &basic)], 401),
            (vec![("x-api-key", &flipped)], 401),
            (
                vec![("x-api-key", &quota.key.replacen("cqq_", "cqk_", 1))],
                401,
            ),
            (vec![("x-api-key", &acme.key)], 401),
            (
                vec![("x-api-key", &acme.key.replacen("cqk_", "cqq_", 1))],
                401,
            ),
            (vec![("x-api-key", ADMIN_KEY)], 401),
            (vec![], 401),
        ] {
            assert_eq!(status(&app, &headers).await, expected, "{headers:?}");
        }
    }
);

on_each_database!(
    a_quota_s_key_ends_by_rotation_revocation_and_expiry,
    |database| {
        let app = start_by(builder(&database)).await;
        let acme = app.partner("acme").await;
        let make = async || {
            app.quota(&acme, json!({"kinds": ["text"], "expires_in_days": 2}))
                .await
        };
        let passes = async |key: &str| status(&app, &[("x-api-key", key)]).await;

        let quota = make().await;
        assert_eq!(passes(&quota.key).await, 200);
        let rotate = format!("{}/rotate", quota.path);
        let rotated = app.post(&acme.key, &rotate, Value::Null).await.expect(200);
        let new = rotated["api_key"].as_str().unwrap();
        assert_eq!(rotated["id"], id(&quota));
        assert_eq!((passes(&quota.key).await, passes(new).await), (401, 200));

        app.put(&acme.key, &quota.path, json!({"disabled": true}))
            .await
            .expect(200);
        assert_eq!(passes(new).await, 403);
        app.put(&acme.key, &quota.path, json!({"disabled": false}))
            .await
            .expect(200);
        assert_eq!(passes(new).await, 200);

        app.delete(&acme.key, &quota.path).await.expect(204);
        assert_eq!(passes(new).await, 401);
        app.delete(&acme.key, &quota.path).await.expect(204);
        let read = app.get(&acme.key, &quota.path).await.expect(200);
        assert_eq!(read["revoked_at"], "2026-01-02T03:04:05Z");
        for (method, path) in [(Method::PUT, &quota.path), (Method::POST, &rotate)] {
            let refused = app.call(&acme.key, method, path, json!({})).await;
            assert_eq!(refused.expect(409)["code"], "conflict");
        }
        app.delete(&acme.key, "/api/quotas/acme/nothing")
            .await
            .expect(404);

        let quota = make().await;
        app.advance(DAY * 2 - Duration::from_millis(1));
        assert_eq!(passes(&quota.key).await, 200);
        app.advance(Duration::from_millis(1));
        assert_eq!(passes(&quota.key).await, 401);
    }
);

// Two nodes on one database: what one changes, the other knows within five seconds.
on_each_database!(changes_reach_the_other_node, |database| {
    let first = start_by(builder(&database).node("first")).await;
    let second = builder(&database).node("second");
    let second = start_by(second).await;
    let acme = first.partner("acme").await;
    for change in ["revoke", "rotate", "disable"] {
        let quota = first.quota(&acme, json!({"kinds": ["text"]})).await;
        let key = [("x-api-key", quota.key.as_str())];
        assert_eq!(status(&second, &key).await, 200);
        let expected = match change {
            "revoke" => {
                first.delete(&acme.key, &quota.path).await.expect(204);
                401
            }
            "rotate" => {
                let path = format!("{}/rotate", quota.path);
                first.post(&acme.key, &path, Value::Null).await.expect(200);
                401
            }
            _ => {
                let body = json!({"disabled": true});
                first.put(&acme.key, &quota.path, body).await.expect(200);
                403
            }
        };
        second.advance(Duration::from_millis(5_001));
        assert_eq!(status(&second, &key).await, expected, "{change}");
    }
});

on_each_database!(
    quota_keys_and_wrong_ones_are_limited_in_their_rate,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 3;
            config.limits.attempts_per_minute = 2;
        });
        let app = start_by(builder).await;
        let acme = app.partner("acme").await;
        app.advance(Duration::from_secs(60));
        let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(status(&app, &[("x-api-key", &quota.key)]).await);
        }
        for _ in 0..3 {
            statuses.push(status(&app, &[("x-api-key", "wrong")]).await);
        }
        assert_eq!(statuses, [200, 200, 200, 429, 401, 401, 429]);
        app.advance(Duration::from_secs(1));
        assert_eq!(status(&app, &[("x-api-key", &quota.key)]).await, 200);
    }
);
