use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{FormatErrorKind, Reasoning, request};

fn abilities(api: ModelApi) -> Capabilities {
    Capabilities {
        api,
        reasoning: ReasoningStyle::Effort,
        limit_field: LimitField::MaxCompletionTokens,
        stream_usage: true,
        ..Capabilities::default()
    }
}

fn parse(api: ModelApi, body: &Value) -> Request {
    Request::read(api, body.clone()).unwrap()
}

fn translate(from: ModelApi, to: ModelApi, body: &Value) -> Value {
    Value::Object(upstream_body(&parse(from, body), &abilities(to), "up").unwrap())
}

fn chat_to_responses(body: &Value) -> Value {
    translate(ModelApi::Chat, ModelApi::Responses, body)
}

fn responses_to_chat(body: &Value) -> Value {
    translate(ModelApi::Responses, ModelApi::Chat, body)
}

#[test]
fn the_same_api_passes_untouched() {
    let body = json!({
        "model": "m", "messages": [{"role": "user", "name": "Bo", "content": [{"type": "text", "text": "Hi"}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto", "seed": 4, "stop": ["x"],
        "logit_bias": {"1": 2}, "response_format": {"type": "json_object"}, "logprobs": true, "top_logprobs": 2,
        "metadata": {"run": "7"}, "user": "u", "made_up": {"deep": [1, null]}, "temperature": 0.25,
    });
    let mut expected = body.clone();
    expected["model"] = json!("up");
    assert_eq!(translate(ModelApi::Chat, ModelApi::Chat, &body), expected);
    let body = json!({
        "model": "m", "input": [{"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "x"}],
        "tools": [{"type": "web_search"}], "include": ["reasoning.encrypted_content"], "truncation": "auto",
        "made_up": 1,
    });
    let mut expected = body.clone();
    expected["model"] = json!("up");
    expected["store"] = json!(false);
    let same = translate(ModelApi::Responses, ModelApi::Responses, &body);
    assert_eq!(same, expected);
}

#[test]
fn what_is_put_in_front_comes_first() {
    let mut chat = parse(
        ModelApi::Chat,
        &json!({"model": "m", "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]}),
    );
    chat.prepend_system("Knowledge.");
    chat.prepend_system("You are Max.");
    let body = upstream_body(&chat, &abilities(ModelApi::Chat), "up").unwrap();
    let system = json!({"role": "system", "content": "You are Max.\n\nKnowledge."});
    assert_eq!(body["messages"][0], system);
    assert_eq!(body["messages"][1]["content"], "Be kind.");
    let body = upstream_body(&chat, &abilities(ModelApi::Responses), "up").unwrap();
    assert_eq!(body["instructions"], "You are Max.\n\nKnowledge.");
    assert_eq!(body["input"][0]["role"], "system");

    let mut response = parse(
        ModelApi::Responses,
        &json!({"model": "m", "input": "Hi", "instructions": "Be kind.", "previous_response_id": "resp_1"}),
    );
    response.prepend_system("You are Max.");
    response.prepend_items(vec![
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Before"}]}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"}),
        json!({"type": "web_search_call", "id": "ws_1"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}),
    ]);
    let body = upstream_body(&response, &abilities(ModelApi::Responses), "up").unwrap();
    assert_eq!(body["instructions"], "You are Max.\n\nBe kind.");
    assert!(!body.contains_key("previous_response_id"));
    let ids = body["input"].as_array().unwrap().iter();
    let ids = ids.map(|item| item["id"].as_str().or(item["role"].as_str()));
    assert_eq!(
        ids.flatten().collect::<Vec<_>>(),
        ["user", "rs_2", "ws_1", "assistant", "user"]
    );
    let body = upstream_body(&response, &abilities(ModelApi::Chat), "up").unwrap();
    let messages = json!([
        {"role": "system", "content": "You are Max.\n\nBe kind."},
        {"role": "user", "content": "Before"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": "Hi"},
    ]);
    assert_eq!(body["messages"], messages);
}

#[test]
fn limits_and_stream_options_are_the_server_s_own() {
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9, "stream": true, "n": 2,
        "stream_options": {"include_obfuscation": false},
    });
    let request = parse(ModelApi::Chat, &body);
    let old = Capabilities {
        limit_field: LimitField::MaxTokens,
        ..abilities(ModelApi::Chat)
    };
    let sent = upstream_body(&request, &old, "up").unwrap();
    assert_eq!((&sent["max_tokens"], &sent["n"]), (&json!(9), &json!(2)));
    assert!(!sent.contains_key("max_completion_tokens"));
    let options = json!({"include_obfuscation": false, "include_usage": true});
    assert_eq!(sent["stream_options"], options);
    let silent = Capabilities {
        stream_usage: false,
        ..abilities(ModelApi::Chat)
    };
    let sent = upstream_body(&request, &silent, "up").unwrap();
    assert_eq!(sent["max_completion_tokens"], 9);
    let options = json!({"include_obfuscation": false});
    assert_eq!(sent["stream_options"], options);
    let body = json!({"model": "m", "input": "Hi", "max_output_tokens": 9});
    assert_eq!(responses_to_chat(&body)["max_completion_tokens"], 9);
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9});
    assert_eq!(chat_to_responses(&body)["max_output_tokens"], 9);
}

#[test]
fn each_style_of_reasoning_is_told_in_its_words() {
    use ReasoningStyle::{Effort, EnableThinking, None as Never, Object as Whole, Thinking};
    let effort = |word: &str| json!({ "effort": word });
    let budget = |tokens: u64| json!({ "max_tokens": tokens });
    let cases = [
        (Effort, effort("none"), json!({"reasoning_effort": "none"})),
        (
            Effort,
            effort("xhigh"),
            json!({"reasoning_effort": "xhigh"}),
        ),
        (Effort, budget(1_000), json!({"reasoning_effort": "low"})),
        (Effort, budget(8_000), json!({"reasoning_effort": "medium"})),
        (Effort, budget(9_000), json!({"reasoning_effort": "high"})),
        (
            Whole,
            effort("high"),
            json!({"reasoning": {"effort": "high"}}),
        ),
        (Whole, budget(77), json!({"reasoning": {"max_tokens": 77}})),
        (
            Thinking,
            effort("none"),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            Thinking,
            effort("high"),
            json!({"thinking": {"type": "enabled", "budget_tokens": 2_500}}),
        ),
        (
            Thinking,
            budget(77),
            json!({"thinking": {"type": "enabled", "budget_tokens": 77}}),
        ),
        (
            EnableThinking,
            effort("none"),
            json!({"chat_template_kwargs": {"enable_thinking": false, "a": 1}}),
        ),
        (
            EnableThinking,
            effort("low"),
            json!({"chat_template_kwargs": {"enable_thinking": true, "a": 1}}),
        ),
        (
            EnableThinking,
            budget(77),
            json!({"chat_template_kwargs": {"enable_thinking": true, "thinking_budget": 77, "a": 1}}),
        ),
        (Never, effort("high"), json!({})),
        (Never, budget(77), json!({})),
    ];
    for (style, reasoning, expected) in cases {
        let body = json!({
            "model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5_000, "reasoning": reasoning,
            "chat_template_kwargs": {"a": 1},
        });
        let abilities = Capabilities {
            reasoning: style,
            ..abilities(ModelApi::Chat)
        };
        let mut sent = upstream_body(&parse(ModelApi::Chat, &body), &abilities, "up").unwrap();
        sent.retain(|field, value| {
            field.contains("reasoning")
                || field == "thinking"
                || (field == "chat_template_kwargs" && value.get("enable_thinking").is_some())
        });
        assert_eq!(Value::Object(sent), expected, "{style:?} {reasoning}");
    }
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "reasoning": effort("extreme")});
    let request = parse(ModelApi::Chat, &body);
    let thinking = Capabilities {
        reasoning: Thinking,
        ..abilities(ModelApi::Chat)
    };
    let error = upstream_body(&request, &thinking, "up").unwrap_err();
    assert_eq!(error.field, "reasoning.effort");
}

#[test]
fn responses_keep_what_else_they_say_of_reasoning() {
    let body =
        json!({"model": "m", "input": "Hi", "reasoning": {"effort": "low", "summary": "auto"}});
    let request = parse(ModelApi::Responses, &body);
    assert_eq!(request.reasoning, Some(Reasoning::Effort("low".to_owned())));
    let sent = upstream_body(&request, &abilities(ModelApi::Responses), "up").unwrap();
    assert_eq!(sent["reasoning"], body["reasoning"]);
    let sent = responses_to_chat(&body);
    assert_eq!(sent["reasoning_effort"], "low");
    assert_eq!(sent.get("reasoning"), None);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "low"});
    assert_eq!(
        chat_to_responses(&body)["reasoning"],
        json!({"effort": "low"})
    );
    // Nothing said, nothing told.
    let body = json!({"model": "m", "input": "Hi"});
    assert_eq!(responses_to_chat(&body).get("reasoning_effort"), None);
}

/// A conversation with everything that both APIs can say, in the words of each.
fn both() -> (Value, Value) {
    let schema = json!({"type": "object", "properties": {}});
    let chat = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/i", "detail": "low"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,"}},
            ]},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "A lion."},
            {"role": "tool", "tool_call_id": "c2", "content": "b"},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "d", "parameters": schema, "strict": true}},
            {"type": "custom", "custom": {"name": "run", "format": {
                "type": "grammar", "grammar": {"syntax": "lark", "definition": "x"},
            }}},
        ],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}],
        }},
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": true}},
        "verbosity": "low", "logprobs": true, "top_logprobs": 2, "temperature": 0.5, "parallel_tool_calls": false,
        "metadata": {"run": "7"}, "made_up": 1,
    });
    let responses = json!({
        "model": "m",
        "input": [
            {"type": "message", "role": "system", "content": "Be kind."},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "https://example.org/i", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:,"},
            ]},
            {"type": "message", "role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"a\":1}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "run", "input": "ls"},
            {"type": "function_call_output", "call_id": "c1", "output": "A lion."},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "b"},
            {"type": "message", "role": "user", "content": "Thanks"},
        ],
        "tools": [
            {"type": "function", "name": "look", "description": "d", "parameters": schema, "strict": true},
            {"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
        "text": {
            "format": {"type": "json_schema", "name": "s", "schema": schema, "strict": true}, "verbosity": "low",
        },
        "include": ["message.output_text.logprobs"], "top_logprobs": 2, "temperature": 0.5,
        "parallel_tool_calls": false, "metadata": {"run": "7"}, "made_up": 1,
    });
    (chat, responses)
}

#[test]
fn both_apis_say_the_same() {
    let (chat, responses) = both();
    let mut expected = responses.clone();
    expected["model"] = json!("up");
    expected["store"] = json!(false);
    assert_eq!(chat_to_responses(&chat), expected);
    let mut expected = chat;
    expected["model"] = json!("up");
    assert_eq!(responses_to_chat(&responses), expected);
}

#[test]
fn small_differences_are_evened_out() {
    let items = json!([
        {"role": "developer", "content": [{"type": "input_text", "text": "Be "}, {"type": "input_text", "text": "kind."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "7"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Se"}, {"type": "output_text", "text": "ven"}]},
    ]);
    let body = json!({
        "model": "m", "input": items, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true,
        "text": {"format": {"type": "text"}}, "truncation": "disabled", "max_tool_calls": 3, "top_logprobs": 0,
    });
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let expected = json!({
        "model": "up",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "7"},
            {"role": "assistant", "content": "Seven"},
        ],
    });
    assert_eq!(responses_to_chat(&body), expected);
    // A function of a chat completion is not strict unless it says so, one of a response is.
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "Hi"}], "modalities": ["text"], "stop": null, "seed": null,
        "tools": [{"type": "function", "function": {"name": "f"}}], "logprobs": false, "response_format": {"type": "text"},
    });
    let expected = json!({
        "model": "up", "store": false, "input": [{"type": "message", "role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "name": "f", "strict": false}],
    });
    assert_eq!(chat_to_responses(&body), expected);
}

#[test]
fn what_has_no_counterpart_is_named() {
    let from_responses = [
        (
            json!({"tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]}),
            "tools[1].type",
        ),
        (
            json!({"tool_choice": {"type": "file_search"}}),
            "tool_choice.type",
        ),
        (json!({"truncation": "auto"}), "truncation"),
        (json!({"prompt": {"id": "p"}}), "prompt"),
        (json!({"n": 2}), "n"),
        (json!({"max_tokens": 2}), "max_tokens"),
        (
            json!({"text": {"format": {"type": "grammar"}}}),
            "text.format.type",
        ),
        (
            json!({"input": [{"type": "item_reference", "id": "x"}]}),
            "input[0].type",
        ),
        (
            json!({"input": [{"type": "computer_call", "id": "x"}]}),
            "input[0].type",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}]}),
            "input[0].content[0].file_id",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "x"}]}]}),
            "input[0].content[0].file_url",
        ),
    ];
    let message = |message: Value| json!({"messages": [message]});
    let from_chat = [
        (json!({"n": 2}), "n"),
        (json!({"seed": 0}), "seed"),
        (json!({"logit_bias": {"1": 1}}), "logit_bias"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"functions": [{"name": "f"}]}), "functions"),
        (json!({"previous_response_id": "x"}), "previous_response_id"),
        (json!({"tools": [{"type": "retrieval"}]}), "tools[0].type"),
        (
            json!({"response_format": {"type": "x"}}),
            "response_format.type",
        ),
        (
            message(json!({"role": "user", "name": "Bo", "content": "Hi"})),
            "messages[0].name",
        ),
        (
            message(json!({"role": "function", "content": "Hi"})),
            "messages[0].role",
        ),
        (
            message(json!({"role": "tool", "content": "Hi"})),
            "messages[0].tool_call_id",
        ),
        (
            message(json!({"role": "user", "content": [{"type": "video_url"}]})),
            "messages[0].content[0].type",
        ),
    ];
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let responses = json!({"model": "m", "input": "Hi"});
    let cases = from_chat
        .into_iter()
        .map(|case| (ModelApi::Chat, ModelApi::Responses, &chat, case))
        .chain(
            from_responses
                .into_iter()
                .map(|case| (ModelApi::Responses, ModelApi::Chat, &responses, case)),
        );
    for (from, to, base, (more, field)) in cases {
        let mut body = base.clone();
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let error = upstream_body(&parse(from, &body), &abilities(to), "up").unwrap_err();
        assert_eq!(error.field, field, "{more}");
        let kind = match field.ends_with("tool_call_id") {
            true => FormatErrorKind::Invalid,
            false => FormatErrorKind::Unsupported,
        };
        assert_eq!(error.kind, kind, "{more}");
    }
}

proptest! {
    #[test]
    fn no_request_breaks_the_translation(more in request::tests::any_json()) {
        for api in [ModelApi::Chat, ModelApi::Responses] {
            for field in ["messages", "input", "tools", "tool_choice", "text", "response_format", "reasoning"] {
                let mut body = json!({
                    "model": "m", "messages": [{"role": "user", "content": "Hi"}], "input": "Hi",
                });
                body[field] = more.clone();
                let Ok(request) = Request::read(api, body) else { continue };
                for to in [ModelApi::Chat, ModelApi::Responses] {
                    let body = upstream_body(&request, &abilities(to), "up");
                    prop_assert_eq!(check_upstream(&request, &abilities(to)), body.map(|_| ()));
                }
            }
        }
    }
}

#[test]
fn what_only_steers_the_answer_may_be_dropped() {
    let body = json!({
        "model": "m", "messages": [{"role": "user", "name": "Bo", "content": "Hi"}],
        "seed": 4, "logit_bias": {"1": 2}, "prediction": {"type": "content", "content": "x"}, "stop": "END",
    });
    let request = parse(ModelApi::Chat, &body);
    let strict = abilities(ModelApi::Responses);
    assert!(upstream_body(&request, &strict, "up").is_err());
    let lenient = Capabilities {
        drop_unsupported: true,
        ..strict
    };
    let sent = upstream_body(&request, &lenient, "up").unwrap();
    let expected = json!({
        "model": "up", "store": false, "input": [{"type": "message", "role": "user", "content": "Hi"}],
    });
    assert_eq!(Value::Object(sent), expected);
    let several = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "n": 2});
    let several = parse(ModelApi::Chat, &several);
    let error = upstream_body(&several, &strict, "up").unwrap_err();
    assert_eq!(error.field, "n");
    let sent = upstream_body(&several, &lenient, "up").unwrap();
    assert_eq!(Value::Object(sent), expected);
    // What the answer would have to be is never dropped.
    let json = json!({
        "model": "m", "messages": [{"role": "user", "content": "Hi"}], "modalities": ["text", "audio"],
    });
    let error = upstream_body(&parse(ModelApi::Chat, &json), &lenient, "up").unwrap_err();
    assert_eq!(error.field, "modalities");
}

#[test]
fn a_model_of_plain_text_refuses_what_it_cannot_do() {
    let schema = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {}}});
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    let picture = json!([
        {"role": "system", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    ]);
    let sound = json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]);
    let chat = [
        (json!({"n": 2}), Some("n")),
        (
            json!({"tools": tool, "tool_choice": "required"}),
            Some("tool_choice"),
        ),
        (
            json!({"tools": tool, "tool_choice": {"type": "function", "function": {"name": "f"}}}),
            Some("tool_choice"),
        ),
        (json!({"tools": tool, "tool_choice": "auto"}), None),
        (json!({"tools": tool}), None),
        (json!({"response_format": schema}), Some("response_format")),
        (
            json!({"response_format": {"type": "json_object"}}),
            Some("response_format"),
        ),
        (json!({"response_format": {"type": "text"}}), None),
        (
            json!({"messages": picture}),
            Some("messages[1].content[1].type"),
        ),
        (
            json!({"messages": sound}),
            Some("messages[0].content[0].type"),
        ),
        (json!({"modalities": ["text", "audio"]}), Some("modalities")),
        (json!({"logprobs": true}), Some("logprobs")),
        (json!({"stop": ["x"], "seed": 1, "temperature": 0}), None),
    ];
    let responses = [
        (
            json!({"text": {"format": {"type": "json_schema", "name": "s", "schema": {}}}}),
            Some("text.format"),
        ),
        (json!({"text": {"format": {"type": "text"}}}), None),
        (
            json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": "required"}),
            Some("tool_choice"),
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}]}),
            Some("input[0].content[0].type"),
        ),
        (
            json!({"include": ["message.output_text.logprobs"]}),
            Some("include[0]"),
        ),
    ];
    let chat = chat.map(|case| (ModelApi::Chat, case));
    let responses = responses.map(|case| (ModelApi::Responses, case));
    for (api, (more, field)) in chat.into_iter().chain(responses) {
        let mut body = match api {
            ModelApi::Chat => {
                json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
            }
            ModelApi::Responses => json!({"model": "m", "input": "Hi"}),
        };
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let plain = Capabilities {
            plain_text: true,
            ..abilities(ModelApi::Chat)
        };
        let refused = upstream_body(&parse(api, &body), &plain, "up").err();
        let refused = refused.map(|error| error.field);
        assert_eq!(refused.as_deref(), field, "{more}");
    }
}
