//! What is wrong with a request is named, and no model is asked.

use axum::http::Method;
use test_routes::{TestQuota, send, upstream::Upstream};

use super::*;

const CHAT: &str = "/v3/chat/completions";

/// Routes with the models of an upstream, and a quota without limits.
async fn start_with(upstream: &Upstream) -> (TestRoutes<Place>, TestQuota) {
    let builder = builder(&TestDatabase::sqlite()).config(|config| upstream.offer(config));
    let app = start_by(builder).await;
    let acme = app.partner("acme").await;
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    let quota = app.quota(&acme, quota).await;
    (app, quota)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let upstream = Upstream::start().await;
    let (app, quota) = start_with(&upstream).await;
    let message = json!([{"role": "user", "content": "Hi"}]);
    let cases = [
        (CHAT, json!({"messages": message}), "model"),
        (
            CHAT,
            json!({"model": "nobody", "messages": message}),
            "model",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "fallback_model": "nobody"}),
            "fallback_model",
        ),
        (CHAT, json!({"model": "scripted-chat"}), "messages"),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": []}),
            "messages",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": [{"content": "Hi"}]}),
            "messages[0].role",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "stream": "yes"}),
            "stream",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "max_tokens": -1}),
            "max_tokens",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "metadata": {"svc": {"routing": {}}}}),
            "metadata.svc.routing",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "metadata": {"svc": {"request_id": "1"}}}),
            "metadata.svc.request_id",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "metadata": {"svc": {"character": "repo:acme/nobody"}}}),
            "metadata.svc.character",
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": message, "metadata": {"svc": {"character_params": {"context": "x"}}}}),
            "metadata.svc.character_params.context",
        ),
        (RESPONSES, json!({"model": "scripted-responses"}), "input"),
        (
            RESPONSES,
            json!({"model": "scripted-responses", "input": "Hi", "max_output_tokens": "many"}),
            "max_output_tokens",
        ),
        (
            RESPONSES,
            json!({"model": "scripted-responses", "input": "Hi", "previous_response_id": "resp_nobody"}),
            "previous_response_id",
        ),
        (
            RESPONSES,
            json!({"model": "scripted-chat", "input": "Hi", "tools": [{"type": "web_search"}]}),
            "tools[0].type",
        ),
    ];
    for (path, body, field) in cases {
        let answer = app.post(&quota.key, path, body.clone()).await;
        let error = answer.expect(400);
        let context = &error["detail"]["context"];
        assert_eq!(context["field"], field, "{body}: {error}");
        assert_eq!(context["endpoint"], path);
        for told in [context, &error["error"]] {
            assert_eq!(told["request_id"], answer.header("x-request-id"));
        }
        assert!(error["detail"]["code"].is_string() && error["detail"]["message"].is_string());
    }
    let broken = app.request(Method::POST, CHAT).bearer_auth(&quota.key);
    let broken = broken
        .header("content-type", "application/json")
        .body("{\"model\":");
    send(broken).await.expect(400);
    assert_eq!(upstream.all_requests(), 0, "nothing reached the model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_completion_with_an_output_of_no_call_is_refused() {
    let upstream = Upstream::start().await;
    let (app, quota) = start_with(&upstream).await;
    let user = json!({"role": "user", "content": "Weather?"});
    let output = json!({"role": "tool", "tool_call_id": "call_9", "content": "Sunny"});
    for model in ["scripted-chat", "scripted-responses", "builtin/extractive"] {
        let body = json!({"model": model, "messages": [user, output]});
        let error = app.post(&quota.key, CHAT, body).await.expect(400);
        let param = "messages[1].tool_call_id";
        assert_eq!(error["error"]["param"], param, "{model}");
        assert_eq!(error["detail"]["context"]["field"], param, "{model}");
    }
    assert_eq!(upstream.all_requests(), 0);
}
