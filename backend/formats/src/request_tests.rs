use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(api: ModelApi, body: &Value) -> Result<Request, FormatError> {
    Request::read(api, body.clone())
}

fn with(base: &Value, more: &Value) -> Value {
    let mut body = base.clone();
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

fn chat(more: Value) -> Value {
    let base = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    with(&base, &more)
}

fn responses(more: Value) -> Value {
    with(&json!({"model": "m", "input": "Hi"}), &more)
}

#[test]
fn what_the_service_acts_on_is_taken_out() {
    let request = parse(
        ModelApi::Chat,
        &chat(json!({
            "fallback_model": "f", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 5,
            "max_completion_tokens": 7, "n": 3, "reasoning": {"effort": "low"}, "temperature": 0.5, "seed": 4,
            "metadata": {"svc": {"character": "repo:acme/ada", "character_params": {"a": 1}}, "run": "7"},
        })),
    )
    .unwrap();
    assert_eq!(request.model, "m");
    assert_eq!(request.fallback_model.as_deref(), Some("f"));
    assert!(request.stream && request.include_usage);
    assert_eq!((request.max_output_tokens, request.choices), (Some(7), 3));
    assert_eq!(request.reasoning, Some(Reasoning::Effort("low".to_owned())));
    let svc = request.svc.unwrap();
    let said = json!({"character": "repo:acme/ada", "character_params": {"a": 1}});
    assert_eq!(Value::Object(svc), said);
    let left = json!({
        "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5, "seed": 4, "metadata": {"run": "7"},
    });
    assert_eq!(Value::Object(request.body), left);
}

#[test]
fn responses_are_stored_unless_told_otherwise() {
    let request = parse(ModelApi::Responses, &responses(json!({}))).unwrap();
    assert!(request.store && request.previous_response_id.is_none() && request.svc.is_none());
    let body = responses(json!({
        "store": false, "previous_response_id": "resp_1", "max_output_tokens": 9, "metadata": {"svc": {}},
        "reasoning": {"max_tokens": 64, "summary": "auto"}, "background": false, "top_k": 3, "stream": null,
    }));
    let request = parse(ModelApi::Responses, &body).unwrap();
    assert!(!request.store && !request.stream);
    assert_eq!(request.previous_response_id.as_deref(), Some("resp_1"));
    assert_eq!(request.max_output_tokens, Some(9));
    assert_eq!(request.reasoning, Some(Reasoning::MaxTokens(64)));
    assert_eq!(request.svc, Some(Object::new()));
    let left = json!({"input": "Hi", "reasoning": {"summary": "auto"}, "top_k": 3});
    assert_eq!(Value::Object(request.body), left);
}

#[test]
fn an_integer_may_have_an_exponent() {
    let read = |text: &str| Request::read(ModelApi::Chat, serde_json::from_str(text).unwrap());
    let with = |more: &str| {
        read(&format!(
            r#"{{"model": "m", "messages": [{{"role": "user", "content": "Hi"}}], {more}}}"#
        ))
    };
    let request =
        with(r#""max_tokens": 1e3, "n": 20e-1, "seed": -1E1, "top_logprobs": 2.0"#).unwrap();
    assert_eq!(
        (request.max_output_tokens, request.choices),
        (Some(1_000), 2)
    );
    let body = Value::Object(request.body);
    assert_eq!(
        (&body["seed"], &body["top_logprobs"]),
        (&json!(-10), &json!(2))
    );
    let request =
        with(r#""logit_bias": {"5": 1e0, "6": 0.5}, "top_k": 4e1, "temperature": 1.0"#).unwrap();
    let body = Value::Object(request.body);
    assert_eq!(body["logit_bias"], json!({"5": 1, "6": 0.5}));
    assert_eq!(
        (&body["top_k"], &body["temperature"]),
        (&json!(40), &json!(1.0))
    );
    for (more, field) in [
        (r#""max_tokens": 1.5"#, "max_tokens"),
        (r#""max_tokens": 1e300"#, "max_tokens"),
        (r#""n": 1e3"#, "n"),
        (r#""top_logprobs": 2.5"#, "top_logprobs"),
    ] {
        assert_eq!(with(more).unwrap_err().field, field, "{more}");
    }
    let with = |more: &str| {
        let text = format!(r#"{{"model": "m", "input": "Hi", {more}}}"#);
        Request::read(ModelApi::Responses, serde_json::from_str(&text).unwrap())
    };
    let request = with(
        r#""max_output_tokens": 1e3, "reasoning": {"max_tokens": 2e3}, "max_tool_calls": 1e1, "top_logprobs": 2.0"#,
    );
    let request = request.unwrap();
    assert_eq!(
        (request.max_output_tokens, request.reasoning),
        (Some(1_000), Some(Reasoning::MaxTokens(2_000)))
    );
    let body = Value::Object(request.body);
    assert_eq!(
        (&body["max_tool_calls"], &body["top_logprobs"]),
        (&json!(10), &json!(2))
    );
    for (more, field) in [
        (r#""max_output_tokens": 15e-1"#, "max_output_tokens"),
        (r#""max_output_tokens": 1e300"#, "max_output_tokens"),
        (r#""max_tool_calls": 0e3"#, "max_tool_calls"),
        (r#""top_logprobs": 1e3"#, "top_logprobs"),
    ] {
        assert_eq!(with(more).unwrap_err().field, field, "{more}");
    }
}

#[test]
fn openai_s_own_words_for_reasoning_are_understood() {
    let effort = |body: Value, api| parse(api, &body).unwrap().reasoning;
    let minimal = Some(Reasoning::Effort("minimal".to_owned()));
    assert_eq!(
        effort(chat(json!({"reasoning_effort": "minimal"})), ModelApi::Chat),
        minimal
    );
    let body = responses(json!({"reasoning": {"effort": "minimal", "summary": "auto"}}));
    assert_eq!(effort(body, ModelApi::Responses), minimal);
    for nothing in [
        json!({}),
        json!({"effort": null}),
        json!({"max_tokens": null}),
        json!({"summary": null}),
    ] {
        let body = chat(json!({"reasoning": nothing}));
        let request = parse(ModelApi::Chat, &body).unwrap();
        assert_eq!(
            (&request.reasoning, request.body.get("reasoning")),
            (&None, None)
        );
        let body = chat(json!({"reasoning": nothing, "reasoning_effort": "low"}));
        let low = Some(Reasoning::Effort("low".to_owned()));
        assert_eq!(effort(body, ModelApi::Chat), low);
    }
    let body = responses(json!({"reasoning": {"effort": null, "summary": "auto"}}));
    assert_eq!(effort(body, ModelApi::Responses), None);
}

#[test]
fn everything_that_clients_send_passes() {
    for messages in [
        json!([{"role": "developer", "content": "d"}, {"role": "user", "name": "Bo", "content": "u"}]),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "video_url", "video_url": {"url": "https://example.org/v"}},
        ]}]),
        json!([
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "7"}]},
            {"role": "assistant", "content": null, "refusal": "No."},
            {"role": "function", "name": "f", "content": null},
        ]),
    ] {
        let request = parse(ModelApi::Chat, &chat(json!({"messages": messages}))).unwrap();
        assert_eq!(request.body["messages"], messages);
    }
    let input = json!([
        {"role": "user", "content": "u"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "https://example.org/i"},
        ]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "7"},
        {"type": "item_reference", "id": "msg_1"},
    ]);
    let request = parse(ModelApi::Responses, &responses(json!({"input": input}))).unwrap();
    assert_eq!(request.body["input"], input);
}

#[test]
fn visibility_items_do_not_come_back() {
    let input = json!([
        {"type": "reasoning", "id": "rs_svc_rag_loading_1", "summary": []},
        {"type": "file_search_call", "id": "fs_svc_1", "queries": [], "results": []},
        {"type": "reasoning", "id": "rs_svc_rag_found_1", "summary": []},
        {"type": "item_reference", "id": "rs_svc_rag_loading_2"},
        {"type": "item_reference", "id": "fs_svc_2"},
        {"id": "rs_svc_rag_found_2"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    ]);
    let request = parse(ModelApi::Responses, &responses(json!({"input": input}))).unwrap();
    let items = request.input_items();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["id"], "msg_1");
    assert!(request.references().is_empty());
}

/// `(body, the field that the error names)`.
fn wrong_chats() -> Vec<(Value, &'static str)> {
    let messages = |messages: Value| json!({ "messages": messages });
    let user = |part: Value| messages(json!([{"role": "user", "content": [part]}]));
    vec![
        (json!({"model": null}), "model"),
        (json!({"model": " "}), "model"),
        (json!({"model": 7}), "model"),
        (messages(json!(null)), "messages"),
        (messages(json!([])), "messages"),
        (messages(json!("Hi")), "messages"),
        (messages(json!(["Hi"])), "messages[0]"),
        (messages(json!([{"content": "Hi"}])), "messages[0].role"),
        (
            messages(json!([{"role": "bot", "content": "Hi"}])),
            "messages[0].role",
        ),
        (messages(json!([{"role": "user"}])), "messages[0].content"),
        (
            messages(json!([{"role": "assistant", "tool_calls": []}])),
            "messages[0].content",
        ),
        (
            messages(json!([{"role": "user", "content": 7}])),
            "messages[0].content",
        ),
        (
            messages(json!([{"role": "assistant", "content": "x", "tool_calls": {}}])),
            "messages[0].tool_calls",
        ),
        (user(json!("Hi")), "messages[0].content[0]"),
        (user(json!({"text": "Hi"})), "messages[0].content[0].type"),
        (
            user(json!({"type": "text", "text": 7})),
            "messages[0].content[0].text",
        ),
        (
            user(json!({"type": "image_url", "image_url": "x"})),
            "messages[0].content[0].image_url",
        ),
        (
            user(json!({"type": "image_url", "image_url": {}})),
            "messages[0].content[0].image_url.url",
        ),
        (
            user(json!({"type": "input_audio", "input_audio": {"data": "x"}})),
            "messages[0].content[0].input_audio.format",
        ),
        (json!({"stream": "yes"}), "stream"),
        (json!({"stream_options": true}), "stream_options"),
        (
            json!({"stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
        ),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (json!({"max_tokens": u64::MAX}), "max_tokens"),
        (
            json!({"max_completion_tokens": "9"}),
            "max_completion_tokens",
        ),
        (json!({"n": 0}), "n"),
        (json!({"n": 129}), "n"),
        (json!({"fallback_model": ""}), "fallback_model"),
        (json!({"reasoning": "low"}), "reasoning"),
        (json!({"reasoning": {"summary": "auto"}}), "reasoning"),
        (
            json!({"reasoning": {"effort": "low", "max_tokens": 5}}),
            "reasoning",
        ),
        (json!({"reasoning": {"effort": 5}}), "reasoning.effort"),
        (
            json!({"reasoning": {"max_tokens": 0}}),
            "reasoning.max_tokens",
        ),
        (
            json!({"reasoning": {"effort": "low"}, "reasoning_effort": "low"}),
            "reasoning",
        ),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": {"svc": "x"}}), "metadata.svc"),
    ]
}

#[test]
fn errors_name_the_field() {
    let input = |input: Value| json!({ "input": input });
    let wrong_responses = vec![
        (input(json!(null)), "input"),
        (input(json!(7)), "input"),
        (input(json!(["Hi"])), "input[0]"),
        (input(json!([{"content": "Hi"}])), "input[0].type"),
        (
            input(json!([{"role": "tool", "content": "Hi"}])),
            "input[0].role",
        ),
        (
            input(json!([{"type": "message", "content": "Hi"}])),
            "input[0].role",
        ),
        (input(json!([{"role": "user"}])), "input[0].content"),
        (
            input(json!([{"role": "user", "content": [{"type": "input_text"}]}])),
            "input[0].content[0].text",
        ),
        (json!({"instructions": []}), "instructions"),
        (json!({"max_output_tokens": 0}), "max_output_tokens"),
        (json!({"store": 1}), "store"),
        (json!({"previous_response_id": 1}), "previous_response_id"),
        (json!({"background": true}), "background"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"metadata": {"svc": []}}), "metadata.svc"),
    ];
    let chats = wrong_chats().into_iter().map(|(more, field)| {
        let error = parse(ModelApi::Chat, &chat(more.clone())).unwrap_err();
        (error, more, field)
    });
    let responses = wrong_responses.into_iter().map(|(more, field)| {
        let error = parse(ModelApi::Responses, &responses(more.clone())).unwrap_err();
        (error, more, field)
    });
    for (error, more, field) in chats.chain(responses) {
        assert_eq!(error.field, field, "{more}");
        assert!(error.to_string().starts_with(field), "{error}");
    }
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for body in [json!([]), json!(7), Value::Null] {
        let error = parse(ModelApi::Chat, &body).unwrap_err();
        assert_eq!(error.field, "body", "{body}");
    }
}

#[test]
fn a_request_shows_no_words() {
    let request = parse(
        ModelApi::Responses,
        &responses(json!({"input": "a secret"})),
    )
    .unwrap();
    assert!(!format!("{request:?}").contains("secret"));
}

/// JSON with the words of the APIs in places where they do not belong.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("type"),
        Just("role"),
        Just("content"),
        Just("messages"),
        Just("input"),
        Just("model"),
        Just("text"),
        Just("tools"),
        Just("function"),
        Just("user"),
        Just("assistant"),
        Just("tool_calls"),
        Just("id"),
        Just("name"),
        Just("reasoning"),
        Just("effort"),
        Just("metadata"),
        Just("svc"),
        Just("choices"),
        Just("delta"),
        Just("index"),
        Just("finish_reason"),
        Just("response"),
        Just("output"),
        Just("item"),
        Just("output_index"),
        Just("usage"),
        Just("error"),
        Just("arguments"),
        Just("summary"),
        Just("message"),
        Just("stop"),
        Just("input_text"),
        Just("response.completed"),
        Just("response.output_item.added"),
        Just("response.output_text.delta"),
        Just("response.output_item.done"),
        Just("function_call"),
        Just("output_text"),
        Just("part"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..9).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..7).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_breaks_the_parser(more in any_json()) {
        for api in [ModelApi::Chat, ModelApi::Responses] {
            let _ = parse(api, &more);
            for field in ["messages", "input", "reasoning", "metadata", "stream_options", "tools"] {
                let base = match api {
                    ModelApi::Chat => chat(json!({field: more})),
                    ModelApi::Responses => responses(json!({field: more})),
                };
                let Ok(request) = parse(api, &base) else { continue };
                request.turns(|_| true);
                prop_assert!(request.bound_bytes() > 0);
            }
        }
    }
}
