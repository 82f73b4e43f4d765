//! What is taken, what reaches the model, and what it costs. Which fields are refused, `backend/generation/tests/contract` says.

use harness::upstream::{INPUT_TOKENS, Script, output_tokens};

use super::*;

#[tokio::test]
async fn a_request_reaches_the_model_untouched() {
    let text = Text::start().await;
    let body = json!({
        "model": "scripted-chat",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "Ann", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            ]},
        ],
        "temperature": 0.3, "top_p": 0.9, "seed": 7, "stop": ["\n"], "logprobs": true, "top_logprobs": 2, "n": 2,
        "presence_penalty": 0.1, "logit_bias": {"50256": -100}, "parallel_tool_calls": false, "user": "ann",
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
        "something_new": {"deep": [1, null]},
        "metadata": {"trace": "t-1", "svc": {}},
        "max_completion_tokens": 50,
    });
    text.post(CHAT, body.clone()).await.expect(200);
    let asked = text.asked(Api::Chat);
    assert_eq!(
        asked[0].authorization.as_deref(),
        Some("Bearer upstream-key")
    );
    let mut sent = asked[0].body.clone();
    let mut expected = body;
    expected["metadata"] = json!({"trace": "t-1"});
    // Whether it is said that nothing is streamed is all the same.
    sent.as_object_mut().unwrap().remove("stream");
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn an_answer_and_what_it_costs() {
    let text = Text::start().await;
    let (key, quota) = text
        .quota(json!({"limits": {"tokens": 100_000, "dollars": "5"}}))
        .await;
    let answer = text.app.post(&key, CHAT, hello()).await;
    let body = answer.expect(200);
    assert_eq!(body["model"], "scripted-chat");
    assert_eq!(
        body["choices"][0]["message"]["content"],
        Script::default().text
    );
    let output = output_tokens(&Script::default());
    assert_eq!(body["usage"]["total_tokens"], INPUT_TOKENS + output);
    assert_eq!(answer.header("x-ratelimit-limit-tokens"), "100000");
    let remaining: u64 = answer
        .header("x-ratelimit-remaining-tokens")
        .parse()
        .unwrap();
    assert!(remaining < 100_000);
    assert_eq!(answer.header("x-ratelimit-limit-dollars"), "5");

    let report = text.usage(&quota, 1).await;
    let row = &report["rows"][0];
    assert_eq!(row["model"], "scripted-chat");
    assert_eq!(
        (
            &row["input_tokens"],
            &row["cached_tokens"],
            &row["output_tokens"]
        ),
        (&json!(INPUT_TOKENS), &json!(4), &json!(output))
    );
    // The key itself is told the same.
    let own = text
        .app
        .get(&key, "/v3/usage?group_by=model")
        .await
        .expect(200);
    assert_eq!(own["usage"], report);
    assert_eq!(own["quota"]["limits"]["tokens"], 100_000);
    assert!(!own.to_string().contains("cqq_"));

    // 8 at 2.50, 4 at 1.25, the answer at 10 USD for a million.
    let units = 8 * 250 + 4 * 125 + output * 1_000;
    assert_eq!(
        row["dollars"],
        format!("0.{units:08}").trim_end_matches('0')
    );
}

#[tokio::test]
async fn both_apis_over_both_models() {
    let text = Text::start().await;
    text.upstream.set_default(
        Api::Chat,
        Script::text("Good day. How are you?").thinking("They greet me."),
    );
    text.upstream.set_default(
        Api::Responses,
        Script::text("Good day. How are you?").thinking("They greet me."),
    );
    for model in ["scripted-chat", "scripted-responses"] {
        let chat = json!({"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 99});
        let whole = text.post(CHAT, chat.clone()).await.expect(200);
        assert_eq!(whole["object"], "chat.completion");
        assert_eq!(whole["model"], model);
        assert_eq!(
            whole["choices"][0]["message"]["content"], "Good day. How are you?",
            "{model}"
        );
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(whole["usage"]["prompt_tokens"], INPUT_TOKENS);
        assert_eq!(
            chat_text(&text.stream(CHAT, chat).await),
            "Good day. How are you?",
            "{model}"
        );

        let response = json!({"model": model, "input": "Hello", "max_output_tokens": 99});
        let whole = text.post(RESPONSES, response.clone()).await.expect(200);
        assert_eq!(
            (&whole["object"], &whole["status"]),
            (&json!("response"), &json!("completed"))
        );
        assert_eq!(whole["model"], model);
        let output = whole["output"].as_array().unwrap();
        let kinds = output
            .iter()
            .map(|item| item["type"].as_str().unwrap())
            .collect::<Vec<_>>();
        assert_eq!(kinds, ["reasoning", "message"], "{model}");
        assert_eq!(output[1]["content"][0]["text"], "Good day. How are you?");
        assert_eq!(whole["usage"]["input_tokens"], INPUT_TOKENS);
        assert_eq!(
            response_text(&text.stream(RESPONSES, response).await),
            "Good day. How are you?"
        );
    }
    let limits = text
        .asked(Api::Chat)
        .into_iter()
        .map(|asked| asked.body["max_completion_tokens"].clone());
    assert!(limits.eq(vec![json!(99); 4]));
    let limits = text
        .asked(Api::Responses)
        .into_iter()
        .map(|asked| asked.body["max_output_tokens"].clone());
    assert!(limits.eq(vec![json!(99); 4]));
}

#[tokio::test]
async fn tools_and_structured_output_over_both_models() {
    let text = Text::start().await;
    let arguments = r#"{"city": "Paris"}"#;
    for model in ["scripted-chat", "scripted-responses"] {
        let api = if model == "scripted-chat" {
            Api::Chat
        } else {
            Api::Responses
        };
        text.upstream
            .set_default(api, Script::tool("weather", arguments));
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let chat = json!({
            "model": model, "messages": [{"role": "user", "content": "Weather in Paris?"}],
            "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": parameters, "strict": true}}],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "w", "schema": parameters, "strict": true}},
        });
        let whole = text.post(CHAT, chat.clone()).await.expect(200);
        let call = &whole["choices"][0]["message"]["tool_calls"][0];
        assert_eq!(
            (&call["id"], &call["function"]["arguments"]),
            (&json!("call_1"), &json!(arguments)),
            "{model}"
        );
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
        let response = json!({
            "model": model, "input": "Weather in Paris?",
            "tools": [{"type": "function", "name": "weather", "description": "d", "parameters": parameters, "strict": true}],
            "tool_choice": {"type": "function", "name": "weather"},
            "text": {"format": {"type": "json_schema", "name": "w", "schema": parameters, "strict": true}},
        });
        let whole = text.post(RESPONSES, response.clone()).await.expect(200);
        let call = &whole["output"][0];
        assert_eq!(
            (&call["type"], &call["arguments"]),
            (&json!("function_call"), &json!(arguments)),
            "{model}"
        );
        let events = text.stream(RESPONSES, response.clone()).await;
        let done = events
            .iter()
            .find(|event| event.name == "response.function_call_arguments.done")
            .unwrap()
            .json();
        assert_eq!(
            (&done["name"], &done["arguments"]),
            (&json!("weather"), &json!(arguments))
        );

        // Whatever the client spoke, the model was asked the same.
        let asked = text.asked(api);
        let asked = asked.iter().map(|asked| {
            let body = &asked.body;
            json!([
                body["tools"],
                body["tool_choice"],
                body["response_format"],
                body["text"]
            ])
        });
        let asked = asked.collect::<Vec<_>>();
        assert_eq!(asked[0], asked[1], "{model}");

        // The result goes back.
        let chat = json!({"model": model, "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"},
        ]});
        text.post(CHAT, chat).await.expect(200);
        let response = json!({"model": model, "input": [
            {"role": "user", "content": "Weather?"},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": arguments},
            {"type": "function_call_output", "call_id": "call_1", "output": "Sunny"},
        ]});
        text.post(RESPONSES, response).await.expect(200);
        let last = text
            .asked(api)
            .into_iter()
            .rev()
            .take(2)
            .map(|asked| asked.body)
            .collect::<Vec<_>>();
        let said = if api == Api::Chat {
            "messages"
        } else {
            "input"
        };
        assert!(
            last.iter()
                .all(|body| body[said].to_string().contains("Sunny")),
            "{model}: {last:?}"
        );
    }
}

#[tokio::test]
async fn keys_and_what_they_allow() {
    let text = Text::start().await;
    let none = text
        .app
        .request(Method::POST, CHAT)
        .json(&hello())
        .send()
        .await
        .unwrap();
    assert_eq!(none.status(), 401);
    let wrong = text.app.post("cqq_wrong", CHAT, hello()).await.expect(401);
    assert_eq!(wrong["detail"]["code"], "invalid_api_key");
    // A partner's own key is no quota key.
    text.app
        .post(&text.partner, CHAT, hello())
        .await
        .expect(401);

    let (speech, _) = text.quota(json!({"kinds": ["speech"]})).await;
    text.app.post(&speech, CHAT, hello()).await.expect(403);
    let (other, _) = text
        .quota(json!({"allowed_models": ["builtin/extractive"]}))
        .await;
    text.app.post(&other, CHAT, hello()).await.expect(403);
    let mut fallback = json!({"model": "builtin/extractive", "fallback_model": "scripted-chat"});
    fallback["messages"] = hello()["messages"].clone();
    text.app.post(&other, CHAT, fallback).await.expect(403);
    let models = text.app.get(&other, "/v3/models").await.expect(200);
    assert_eq!(models["data"].as_array().unwrap().len(), 1);
    assert_eq!(models["data"][0]["id"], "builtin/extractive");

    let limited = json!({"limits": {"tokens": 10, "dollars": "2"}, "period": "day"});
    let (spent, _) = text.quota(limited).await;
    let answer = text.app.post(&spent, CHAT, hello()).await;
    assert_eq!(answer.expect(429)["detail"]["code"], "quota_exhausted");
    for (header, value) in [
        ("limit-tokens", "10"),
        ("remaining-tokens", "10"),
        ("limit-dollars", "2"),
        ("remaining-dollars", "2"),
    ] {
        assert_eq!(answer.header(&format!("x-ratelimit-{header}")), value);
    }
    let reset = answer.header("x-ratelimit-reset-tokens").strip_suffix('s');
    assert!((1..=86_400).contains(&reset.unwrap().parse::<u32>().unwrap()));
    assert!(
        text.asked(Api::Chat).is_empty(),
        "nothing reached the model"
    );
}

#[tokio::test]
async fn a_model_of_responses_is_not_read_beyond_stop() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            let model = config.models.get_mut("scripted-responses").unwrap();
            model.drop_unsupported = true;
        })
    })
    .await;
    let (key, quota) = text.quota(json!({})).await;
    let words = Script::text("word ".repeat(500) + "END");
    let words = words.delayed(Duration::ZERO, Duration::from_millis(10));
    text.upstream.script(
        Api::Responses,
        Script {
            text: "One two END. ".to_owned() + &words.text,
            ..words
        },
    );
    let body = json!({
        "model": "scripted-responses", "messages": [{"role": "user", "content": "Hello"}], "seed": 7, "n": 3,
        "stop": ["END"], "stream": true, "stream_options": {"include_usage": true},
    });
    let answer = text.app.post(&key, CHAT, body).await;
    let events = events(&answer.text);
    assert_eq!(chat_text(&events), "One two ");
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let told = &events[events.len() - 2].json()["usage"];
    let (end, _) = text
        .upstream
        .ended(Api::Responses, 0, patience(Duration::from_secs(10)))
        .await
        .unwrap();
    assert_eq!(end, harness::upstream::End::Disconnected);
    let asked = text.asked(Api::Responses).pop().unwrap().body;
    for dropped in ["seed", "stop", "n"] {
        assert!(asked.get(dropped).is_none(), "{asked}");
    }
    let usage = text.usage(&quota, 1).await;
    assert_eq!(usage["total"]["output_tokens"], told["completion_tokens"]);
    assert!(usage["total"]["output_tokens"].as_u64() < Some(10));
}

#[tokio::test]
async fn a_model_by_its_name() {
    let text = Text::start().await;
    for (path, name) in [
        ("scripted-chat", "scripted-chat"),
        ("builtin/extractive", "builtin/extractive"),
        ("builtin%2Fextractive", "builtin/extractive"),
    ] {
        let path = format!("/v3/models/{path}");
        let model = text.app.get(&text.key, &path).await.expect(200);
        assert_eq!(
            model,
            json!({"id": name, "object": "model", "created": 0, "owned_by": "colloquy"})
        );
    }
    let (few, _) = text
        .quota(json!({"allowed_models": ["scripted-chat"]}))
        .await;
    for (key, path) in [
        (&text.key, "nobody"),
        (&text.key, "no/body"),
        (&few, "scripted-responses"),
    ] {
        let error = text
            .app
            .get(key, &format!("/v3/models/{path}"))
            .await
            .expect(404);
        assert_eq!(error["error"]["code"], "model_not_found");
    }
}

#[tokio::test]
async fn the_tokens_of_an_input_are_counted_without_asking_a_model() {
    let text = Text::start().await;
    let count = async |body: Value| {
        let answer = text
            .post("/v3/responses/input_tokens", body)
            .await
            .expect(200);
        assert_eq!(answer["object"], "response.input_tokens");
        answer["input_tokens"].as_u64().unwrap()
    };
    let short = count(hello_response()).await;
    assert!((1..40).contains(&short), "{short}");
    let words = "word ".repeat(400);
    let long = json!({"model": "scripted-responses", "input": words});
    let long = count(long).await;
    assert!((500..600).contains(&long), "{long}");
    // Instructions, characters and what was said before are input, too.
    let mut more = hello_response();
    more["instructions"] = json!(words);
    assert!(count(more).await > 500);
    let mut character = hello_response();
    character["metadata"] = json!({"svc": {"character": {"personality": words}}});
    assert!(count(character).await > 480);
    let first = json!({"model": "builtin/extractive", "input": words});
    let first = text.post(RESPONSES, first).await.expect(200);
    let mut on = hello_response();
    on["previous_response_id"] = first["id"].clone();
    assert!(count(on).await > 500);
    assert_eq!(text.upstream.all_requests(), 0);
    let nobody = json!({"model": "nobody", "input": "Hello"});
    let error = text
        .post("/v3/responses/input_tokens", nobody)
        .await
        .expect(400);
    assert_eq!(error["error"]["param"], "model");
    // A response of the same body would be refused.
    let output = json!([{"type": "function_call_output", "call_id": "call_9", "output": "7"}]);
    let lost = json!({"model": "scripted-responses", "input": output});
    for path in [RESPONSES, "/v3/responses/input_tokens"] {
        let error = text.post(path, lost.clone()).await.expect(400);
        assert_eq!(error["error"]["param"], "input[0].call_id", "{path}");
    }
}
