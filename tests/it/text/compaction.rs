//! Compaction: by models that have it, by a summary of those that do not, and what becomes of its items.

use harness::upstream::{CACHED_TOKENS, Fault, INPUT_TOKENS, Script};

use super::*;

const COMPACT: &str = "/v3/responses/compact";

fn conversation() -> Value {
    json!([
        {"role": "user", "content": "My name is Ada."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello Ada."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "I live in Zürich."}]},
    ])
}

fn body(model: &str) -> Value {
    json!({"model": model, "input": conversation(), "instructions": "Be brief."})
}

/// The words of the messages of a role.
fn words(items: &Value, role: &str) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    let said = items.filter(|item| item["role"] == role);
    said.map(|item| match &item["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    })
    .collect()
}

#[tokio::test]
async fn a_model_that_has_responses_compacts_by_itself() {
    let text = Text::start().await;
    let (key, quota) = text.quota(json!({"limits": {"tokens": 1_000_000}})).await;
    text.upstream.script(Api::Responses, Script::text("gAAAA"));
    let answer = text
        .app
        .post(&key, COMPACT, body("scripted-responses"))
        .await;
    assert!(!answer.header("x-ratelimit-remaining-tokens").is_empty());
    let told = answer.expect(200);
    assert_eq!(told["object"], "response.compaction");
    assert!(told["id"].as_str().unwrap().starts_with("resp_"));
    let output = told["output"].as_array().unwrap();
    assert_eq!(output[2]["encrypted_content"], "gAAAA");
    assert_eq!(told["usage"]["input_tokens"], INPUT_TOKENS);
    assert_eq!(
        told["usage"]["input_tokens_details"]["cached_tokens"],
        CACHED_TOKENS
    );
    let used = text.usage(&quota, 1).await;
    assert_eq!(used["total"]["tokens"], told["usage"]["total_tokens"]);
    let asked = text.asked(Api::Responses).pop().unwrap().body;
    let fields: Vec<_> = asked
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["compact", "input", "instructions", "model"]);
    assert_eq!(asked["input"], conversation());

    // Its item goes back to it as it is, and nowhere else.
    let next = json!({"model": "scripted-responses", "input": told["output"]});
    text.post(RESPONSES, next.clone()).await.expect(200);
    let asked = text.asked(Api::Responses).pop().unwrap().body;
    assert_eq!(asked["input"][2], output[2]);
    let mut elsewhere = next;
    elsewhere["model"] = json!("scripted-chat");
    let refused = text.post(RESPONSES, elsewhere).await.expect(400);
    assert_eq!(refused["error"]["param"], "input[2].type");
}

#[tokio::test]
async fn another_model_summarizes_and_only_this_server_reads_it() {
    let text = Text::start().await;
    let (key, quota) = text.quota(json!({})).await;
    text.upstream
        .script(Api::Chat, Script::text("Ada lives in Zurich."));
    let told = text
        .app
        .post(&key, COMPACT, body("scripted-chat"))
        .await
        .expect(200);
    assert_eq!(
        words(&told["output"], "user"),
        ["My name is Ada.", "I live in Zürich."]
    );
    let item = &told["output"][2];
    assert_eq!(item["type"], "compaction");
    assert!(!item.to_string().contains("Ada"));
    assert_eq!(told["usage"]["output_tokens"], 4);
    let used = text.usage(&quota, 1).await;
    assert_eq!(used["total"]["tokens"], told["usage"]["total_tokens"]);
    let asked = text.asked(Api::Chat).pop().unwrap().body;
    assert_eq!(words(&asked["messages"], "system"), ["Be brief."]);
    let last = asked["messages"].as_array().unwrap().last().unwrap();
    assert!(
        last["content"].as_str().unwrap().starts_with("Summarize"),
        "{last}"
    );

    // Whichever model goes on from it gets the summary, and it stands in what is stored as it came.
    let mut previous = Value::Null;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let next = json!({"model": model, "input": told["output"]});
        previous = text.post(RESPONSES, next).await.expect(200)["id"].clone();
        let asked = text.asked(api).pop().unwrap().body;
        let summaries = match api {
            Api::Chat => words(&asked["messages"], "system"),
            _ => words(&asked["input"], "developer"),
        };
        assert!(
            summaries[0].ends_with("\n\nAda lives in Zurich."),
            "{summaries:?}"
        );
    }
    let path = format!(
        "{RESPONSES}/{}/input_items?order=asc",
        previous.as_str().unwrap()
    );
    let items = text.app.get(&text.key, &path).await.expect(200);
    assert_eq!(
        items["data"][2]["encrypted_content"],
        item["encrypted_content"]
    );
    let next = json!({"model": "scripted-chat", "input": "And?", "previous_response_id": previous});
    text.post(RESPONSES, next).await.expect(200);
    let asked = text.asked(Api::Chat).pop().unwrap().body;
    assert!(words(&asked["messages"], "system")[0].ends_with("Ada lives in Zurich."));
}

#[tokio::test]
async fn a_stored_conversation_is_compacted() {
    let text = Text::start().await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let first = json!({"model": model, "input": "One"});
        let first = text.post(RESPONSES, first).await.expect(200)["id"].clone();
        text.upstream.script(api, Script::text("sealed"));
        let compact = json!({"model": model, "previous_response_id": first});
        let told = text.post(COMPACT, compact).await.expect(200);
        assert_eq!(words(&told["output"], "user"), ["One"]);
        assert_eq!(told["output"][1]["type"], "compaction");
        // What was compacted can be compacted again.
        let again = json!({"model": model, "input": told["output"]});
        text.post(COMPACT, again).await.expect(200);
    }
    let unknown = json!({"model": "scripted-chat", "previous_response_id": "resp_0"});
    let refused = text.post(COMPACT, unknown).await.expect(400);
    assert_eq!(refused["error"]["code"], "previous_response_not_found");
}

#[tokio::test]
async fn a_summary_belongs_to_its_partner() {
    let text = Text::start().await;
    text.upstream
        .script(Api::Chat, Script::text("Ada lives in Zurich."));
    let told = text.post(COMPACT, body("scripted-chat")).await.expect(200);
    let item = told["output"][2].clone();
    // Another key of the partner goes on from it.
    let next = |item: &Value| json!({"model": "scripted-chat", "input": [{"role": "user", "content": "Hi"}, item]});
    let (same, _) = text.quota(json!({})).await;
    text.app
        .post(&same, RESPONSES, next(&item))
        .await
        .expect(200);
    let other = text.app.partner("other").await;
    let quota = text
        .app
        .quota(&other, json!({"kinds": ["text"], "period": "lifetime"}))
        .await;
    let mut changed = item.clone();
    let content = changed["encrypted_content"].as_str().unwrap().to_owned();
    let sign = if content[20..].starts_with('A') {
        "B"
    } else {
        "A"
    };
    let (before, after) = (&content[..20], &content[21..]);
    changed["encrypted_content"] = json!([before, sign, after].concat());
    for path in [RESPONSES, COMPACT, "/v3/responses/input_tokens"] {
        for (key, item) in [(&quota.key, &item), (&text.key, &changed)] {
            let refused = text.app.post(key, path, next(item)).await.expect(400);
            assert_eq!(
                refused["error"]["param"], "input[1].encrypted_content",
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn failures_are_told_and_settled() {
    let text = Text::start().await;
    for (change, field) in [
        (json!({"model": null}), "model"),
        (json!({"model": "nobody"}), "model"),
        (json!({"input": null}), "input"),
        (
            json!({"input": [{"type": "compaction"}]}),
            "input[0].encrypted_content",
        ),
        (json!({"instructions": 7}), "instructions"),
    ] {
        let mut body = body("scripted-chat");
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let refused = text.post(COMPACT, body).await.expect(400);
        assert_eq!(refused["error"]["param"], field);
    }
    let (spent, _) = text.quota(json!({"limits": {"tokens": 1}})).await;
    let (speech, _) = text.quota(json!({"kinds": ["speech"]})).await;
    for (key, status) in [("nobody", 401), (&speech, 403), (&spent, 429)] {
        text.app
            .post(key, COMPACT, body("scripted-chat"))
            .await
            .expect(status);
    }
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let (key, quota) = text.quota(json!({})).await;
        let limited = Fault::RateLimited {
            retry_after: Some(3),
        };
        for (script, status) in [
            (Script::fault(limited), 429),
            (Script::fault(Fault::Status(500)), 502),
            (Script::fault(Fault::Status(400)), 400),
        ] {
            text.upstream.script(api, script);
            text.app
                .post(&key, COMPACT, body(model))
                .await
                .expect(status);
        }
        text.usage(&quota, 3).await;
        let state = text
            .app
            .get(&text.partner, &format!("/api/quotas/acme/{quota}"))
            .await;
        assert_eq!(state.expect(200)["reserved"]["tokens"], 0);
    }
    // An empty summary is none; another model may give one.
    text.upstream.script(Api::Chat, Script::text(" "));
    text.post(COMPACT, body("scripted-chat")).await.expect(502);
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Status(500)));
    text.upstream.script(Api::Responses, Script::text("gAAAA"));
    let mut with_fallback = body("scripted-chat");
    with_fallback["fallback_model"] = json!("scripted-responses");
    let told = text.post(COMPACT, with_fallback).await.expect(200);
    assert_eq!(told["output"][2]["encrypted_content"], "gAAAA");
}

#[tokio::test]
async fn the_embedded_model_compacts_too() {
    let text = Text::start().await;
    let told = text
        .post(COMPACT, body("builtin/extractive"))
        .await
        .expect(200);
    assert_eq!(told["output"][2]["type"], "compaction");
    assert!(told["usage"]["total_tokens"].as_u64() > Some(0));
    let next = json!({"model": "builtin/extractive", "input": told["output"]});
    text.post(RESPONSES, next).await.expect(200);
}
