//! `POST /v3/embeddings`, with the embedder of an upstream.

use harness::{
    TestDatabase, eventually,
    upstream::{Api, Fault, Script, Upstream},
};

use super::*;

#[tokio::test]
async fn embeddings_are_those_of_the_public_api_and_cost_what_they_use() {
    let upstream = Upstream::start().await;
    let app = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        upstream.embed(config, "all-embedder");
        config.embedder.input_usd = Some("0.10".parse().unwrap());
        config.embedder.max_texts = 2;
    });
    let app = app.start().await;
    let acme = app.partner("acme").await;
    let quota = json!({"kinds": ["text"], "limits": {"tokens": 1_000}});
    let quota = app.quota(&acme, quota).await;
    let ask = async |body: Value| {
        let request = app.request(Method::POST, "/v3/embeddings");
        send(request.bearer_auth(&quota.key).json(&body)).await
    };
    let model = "all-embedder";
    let models = app.get(&quota.key, "/v3/models").await.expect(200);
    let listed = models["data"].as_array().unwrap().iter();
    let listed: Vec<_> = listed.map(|model| model["id"].as_str().unwrap()).collect();
    // Whoever takes the first one can ask it.
    let (embedder, others) = listed.split_last().unwrap();
    assert_eq!(*embedder, model, "{models}");
    assert!(!others.is_empty() && others.is_sorted(), "{models}");
    let one = format!("/v3/models/{model}");
    assert_eq!(app.get(&quota.key, &one).await.expect(200)["id"], model);
    let texts = ["a cat", "a feline", "the open door"];
    let list = ask(json!({"model": model, "input": texts}))
        .await
        .expect(200);
    assert_eq!(
        list["usage"],
        json!({"prompt_tokens": 7, "total_tokens": 7})
    );
    let vector = |at: usize| -> Vec<f64> {
        assert_eq!(list["data"][at]["index"], at);
        serde_json::from_value(list["data"][at]["embedding"].clone()).unwrap()
    };
    assert_eq!(vector(0), vector(1));
    assert_ne!(vector(0), vector(2));
    assert_eq!(upstream.requests(Api::Embeddings).len(), 2, "two at a time");
    let text = json!({"model": model, "input": "a cat", "encoding_format": "base64"});
    let text = ask(text).await.expect(200);
    assert!(text["data"][0]["embedding"].is_string());
    eventually("the usage is settled", async || {
        let usage = app.get(&quota.key, "/v3/usage").await.expect(200);
        usage["usage"]["total"]["tokens"] == 9
    })
    .await;

    for (body, status, field) in [
        (json!({"model": "none", "input": "a"}), 400, "model"),
        (
            json!({"model": model, "input": "a", "dimensions": 3}),
            400,
            "dimensions",
        ),
        (json!({"model": model, "input": "a".repeat(2_000)}), 429, ""),
    ] {
        let refused = ask(body).await.expect(status);
        if !field.is_empty() {
            assert_eq!(refused["error"]["param"], field, "{refused}");
        }
    }
    upstream.set_default(
        Api::Embeddings,
        Script::fault(Fault::Malformed { after: 0 }),
    );
    ask(json!({"model": model, "input": "a"})).await.expect(502);
    let key = app.request(Method::POST, "/v3/embeddings");
    send(key.json(&json!({"model": model, "input": "a"})))
        .await
        .expect(401);
}

#[tokio::test]
async fn a_model_that_is_asked_for_something_else_is_not_unknown() {
    let upstream = Upstream::start().await;
    let model = "all-embedder";
    let app =
        TestApp::builder(&TestDatabase::sqlite()).config(|config| upstream.embed(config, model));
    let app = app.start().await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let body = json!({"model": "builtin/extractive", "input": "a"});
    let refused = app
        .post(&quota.key, "/v3/embeddings", body)
        .await
        .expect(400);
    assert_eq!(refused["error"]["code"], "unsupported_model", "{refused}");
    assert_eq!(refused["error"]["param"], "model");
    for (path, field, body) in [
        (
            "/v3/chat/completions",
            "model",
            json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]}),
        ),
        (
            "/v3/responses",
            "fallback_model",
            json!({"model": "builtin/extractive", "fallback_model": model, "input": "Hi"}),
        ),
    ] {
        let refused = app.post(&quota.key, path, body).await.expect(400);
        assert_eq!(refused["error"]["code"], "unsupported_model", "{refused}");
        assert_eq!(refused["error"]["param"], field);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("all-embedder makes embeddings"),
            "{message}"
        );
    }
}
