//! Texts that a partner has the server keep count in its storage, whichever capability keeps them.

use colloquy_analyses as analyses;
use colloquy_generation::stored;
use test_routes::storage::counted;

use super::*;

const CHARACTERS: &str = "/api/characters/acme";
const ANALYSES: &str = "/v2/dialog_analyses";
const RESPONSES: &str = "/v3/responses";

/// What an API key without origins counts, and a quota without lists.
const KEY_BYTES: u64 = 1_024;
const QUOTA_BYTES: u64 = 2_048;

async fn text_quota(app: &TestRoutes<Place>, partner: &TestPartner) -> TestQuota {
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    app.quota(partner, quota).await
}

fn response(is_stored: bool) -> Value {
    json!({"model": "builtin/extractive", "input": "Hello!", "store": is_stored})
}

fn completion() -> Value {
    let message = json!({"id": "m", "type": "text", "text": "Hi", "is_processed": false});
    json!({"input": {"messages": [message], "character": "repo:acme/ada", "generate_audio": false}})
}

fn analysis() -> Value {
    json!({"input": {
        "messages": [{"text": "My name is Ada.", "originator": "user"}], "language": "English",
        "current_profile": {}, "profile_schema": {"name": {"type": "string"}}, "feedback_schema": {},
    }})
}

on_each_database!(every_text_counts_until_it_is_gone, |database| {
    let builder = builder(&database);
    let builder =
        builder.config(|config| config.analyses.model = Some("builtin/extractive".to_owned()));
    let app = start_by(builder).await;
    let (acme, _) = app.acme_and_other().await;
    let quota = text_quota(&app, &acme).await;
    let (key, text) = (acme.key.as_str(), quota.key.as_str());
    let before = counted(&app).await;
    assert!(before > KEY_BYTES + QUOTA_BYTES, "Ada counts");
    let listed = app.get(key, "/api/partners").await.expect(200);
    assert_eq!(listed[0]["storage"]["used_bytes"], before);

    let zoe = json!({"name": "zoe", "personality": "Zoë".repeat(100)});
    app.post(key, CHARACTERS, zoe.clone()).await.expect(201);
    let first = counted(&app).await;
    assert!(first >= before + 400, "{first}");
    let path = format!("{CHARACTERS}/zoe");
    let second = json!({"personality": "You are Zoë.", "version": 1});
    app.put(key, &path, second.clone()).await.expect(200);
    let both = counted(&app).await;
    assert!(both > first, "{both}");
    app.put(key, &path, second).await.expect(409);
    app.post(key, CHARACTERS, zoe).await.expect(409);
    assert_eq!(counted(&app).await, both);
    app.delete(key, &path).await.expect(204);
    assert_eq!(counted(&app).await, before);

    let made = app.post(text, RESPONSES, response(true)).await.expect(200);
    assert!(counted(&app).await > before);
    let path = format!("{RESPONSES}/{}", made["id"].as_str().unwrap());
    app.delete(text, &path).await.expect(200);
    assert_eq!(counted(&app).await, before);
    app.delete(text, &path).await.expect(404);
    app.post(text, RESPONSES, response(false)).await.expect(200);
    assert_eq!(counted(&app).await, before);
    app.post(text, RESPONSES, response(true)).await.expect(200);
    app.advance(31 * DAY);
    assert_eq!(stored::prune(&app.state).await.unwrap(), 1);
    assert_eq!(counted(&app).await, before);

    let completion = app.post(key, PATH, completion()).await.expect(200);
    let asked = counted(&app).await;
    assert!(asked > before, "{asked}");
    let analysis = app.post(key, ANALYSES, analysis()).await.expect(200);
    assert!(counted(&app).await > asked);
    app.start_worker(&CAPABILITIES, quick()).await;
    for made in [completion, analysis] {
        let path = made["id"].as_str().unwrap();
        eventually("it ends", || async {
            app.get(key, path).await.expect(200)["state"] != "in-progress"
        })
        .await;
    }
    assert!(counted(&app).await > before, "results count");
    app.advance(2 * DAY);
    assert_eq!(messaging::purge(&app.state).await.unwrap(), 1);
    assert_eq!(analyses::purge(&app.state).await.unwrap(), 1);
    assert_eq!(counted(&app).await, before);
});

on_each_database!(
    a_partner_at_its_limit_stores_no_text_and_deletes,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let quota = text_quota(&app, &acme).await;
        let (key, text) = (acme.key.as_str(), quota.key.as_str());
        let limit = counted(&app).await + 200;
        app.limit_storage("acme", limit).await;
        // The question fits; the answer was paid for, so it is stored, too.
        let made = app.post(text, RESPONSES, response(true)).await.expect(200);
        let used = counted(&app).await;
        assert!(used > limit, "{used}");

        let new = json!({"name": "zoe", "personality": "x"});
        for (key, method, path, body) in [
            (text, Method::POST, RESPONSES, response(true)),
            (key, Method::POST, CHARACTERS, new.clone()),
            (
                key,
                Method::PUT,
                "/api/characters/acme/ada",
                json!({"personality": "x"}),
            ),
            (key, Method::POST, PATH, completion()),
            (key, Method::POST, ANALYSES, analysis()),
        ] {
            let refused = app.call(key, method, path, body).await;
            assert_eq!(refused.status, 413, "{path}: {}", refused.text);
            let named = match path {
                // How much there is, is not for everybody who has a quota's key.
                RESPONSES => {
                    assert!(!refused.text.contains("bytes"), "{}", refused.text);
                    "send store: false".to_owned()
                }
                _ => format!("{limit} bytes together, and have {used}; delete documents"),
            };
            assert!(refused.text.contains(&named), "{path}: {}", refused.text);
        }
        assert_eq!(counted(&app).await, used);
        app.post(text, RESPONSES, response(false)).await.expect(200);

        let path = format!("{RESPONSES}/{}", made["id"].as_str().unwrap());
        app.get(text, &path).await.expect(200);
        app.delete(text, &path).await.expect(200);
        app.post(key, CHARACTERS, new).await.expect(201);
        counted(&app).await;

        app.limit_storage("acme", 0).await;
        for name in ["zoe", "ada"] {
            let path = format!("{CHARACTERS}/{name}");
            app.delete(key, &path).await.expect(204);
        }
        assert_eq!(counted(&app).await, KEY_BYTES + QUOTA_BYTES);
    }
);
