use serde_json::json;

use super::*;
use crate::{FormatErrorKind, ModelApi, Request};

fn parsed(api: ModelApi, field: &str, value: &Value) -> Result<Request, FormatError> {
    let mut body = match api {
        ModelApi::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}),
        ModelApi::Responses => json!({"model": "m", "input": "Hi"}),
    };
    body[field] = value.clone();
    Request::read(api, body)
}

/// For each field: values that are right, and wrong ones with the path that the error names.
type Row = (&'static str, Vec<Value>, Vec<(Value, &'static str)>);

fn sampling() -> Vec<Row> {
    vec![
        (
            "temperature",
            vec![json!(0), json!(1.3), json!(2), json!(null)],
            vec![
                (json!("hot"), "temperature"),
                (json!(-0.1), "temperature"),
                (json!(2.1), "temperature"),
                (json!([1]), "temperature"),
            ],
        ),
        (
            "top_p",
            vec![json!(0), json!(1)],
            vec![(json!(1.01), "top_p"), (json!(true), "top_p")],
        ),
        (
            "top_logprobs",
            vec![json!(0), json!(20)],
            vec![
                (json!(21), "top_logprobs"),
                (json!(1.5), "top_logprobs"),
                (json!("5"), "top_logprobs"),
            ],
        ),
        (
            "tool_choice",
            vec![json!("auto"), json!("none"), json!("required")],
            vec![
                (json!(5), "tool_choice"),
                (json!("maybe"), "tool_choice"),
                (json!({}), "tool_choice.type"),
                (json!({"type": 1}), "tool_choice.type"),
                (json!([]), "tool_choice"),
            ],
        ),
        (
            "parallel_tool_calls",
            vec![json!(true)],
            vec![(json!("yes"), "parallel_tool_calls")],
        ),
        ("user", vec![json!("u")], vec![(json!(7), "user")]),
        (
            "service_tier",
            vec![json!("auto")],
            vec![(json!({}), "service_tier")],
        ),
        (
            "safety_identifier",
            vec![json!("x")],
            vec![(json!(1), "safety_identifier")],
        ),
        (
            "prompt_cache_key",
            vec![json!("x")],
            vec![(json!(1), "prompt_cache_key")],
        ),
        (
            "metadata",
            vec![json!({"a": "b"})],
            vec![(json!("x"), "metadata"), (json!([]), "metadata")],
        ),
        ("store", vec![json!(true)], vec![(json!("yes"), "store")]),
        ("stream", vec![json!(false)], vec![(json!(1), "stream")]),
        ("unheard_of", vec![json!({"a": [1]}), json!(7)], vec![]),
    ]
}

fn chat() -> Vec<Row> {
    let tool = |function: Value| json!([{"type": "function", "function": function}]);
    let messages = |message: Value| json!([{"role": "user", "content": "Hi"}, message]);
    let part = |part: Value| json!([{"role": "user", "content": [part]}]);
    vec![
        (
            "n",
            vec![json!(1), json!(128)],
            vec![(json!("2"), "n"), (json!(1.5), "n")],
        ),
        (
            "seed",
            vec![json!(-5), json!(0)],
            vec![(json!("x"), "seed"), (json!(0.5), "seed")],
        ),
        (
            "stop",
            vec![json!("a"), json!(["a", "b", "c", "d"]), json!([])],
            vec![
                (json!(5), "stop"),
                (json!(["a", 5]), "stop[1]"),
                (json!(["a", "b", "c", "d", "e"]), "stop"),
            ],
        ),
        (
            "logit_bias",
            vec![json!({"50256": -100}), json!({})],
            vec![
                (json!([]), "logit_bias"),
                (json!({"1": "x"}), "logit_bias.1"),
                (json!({"1": 101}), "logit_bias.1"),
            ],
        ),
        ("logprobs", vec![json!(true)], vec![(json!(5), "logprobs")]),
        (
            "tool_choice",
            vec![
                json!({"type": "function", "function": {"name": "f"}}),
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function"}]}}),
                json!({"type": "unheard_of"}),
            ],
            vec![
                (json!({"type": "function"}), "tool_choice.function"),
                (
                    json!({"type": "function", "function": 5}),
                    "tool_choice.function",
                ),
                (
                    json!({"type": "function", "function": {}}),
                    "tool_choice.function.name",
                ),
                (
                    json!({"type": "custom", "custom": {"name": 5}}),
                    "tool_choice.custom.name",
                ),
                (
                    json!({"type": "allowed_tools", "allowed_tools": 5}),
                    "tool_choice.allowed_tools",
                ),
            ],
        ),
        (
            "frequency_penalty",
            vec![json!(-2), json!(2)],
            vec![
                (json!(-2.5), "frequency_penalty"),
                (json!("x"), "frequency_penalty"),
            ],
        ),
        (
            "presence_penalty",
            vec![json!(0.5)],
            vec![(json!(3), "presence_penalty")],
        ),
        (
            "tools",
            vec![
                json!([]),
                tool(json!({"name": "f"})),
                tool(json!({"name": "f", "parameters": {}, "strict": null})),
                json!([{"type": "custom", "custom": {"name": "c"}}]),
                json!([{"type": "web_search"}]),
            ],
            vec![
                (json!({}), "tools"),
                (json!(["x"]), "tools[0]"),
                (json!([{}]), "tools[0].type"),
                (json!([{"type": "function"}]), "tools[0].function"),
                (tool(json!({})), "tools[0].function.name"),
                (tool(json!({"name": 5})), "tools[0].function.name"),
                (
                    tool(json!({"name": "f", "parameters": "x"})),
                    "tools[0].function.parameters",
                ),
                (
                    tool(json!({"name": "f", "strict": 1})),
                    "tools[0].function.strict",
                ),
            ],
        ),
        (
            "tool_choice",
            vec![json!({"type": "function", "function": {"name": "f"}})],
            vec![],
        ),
        (
            "functions",
            vec![json!([{"name": "f"}])],
            vec![(json!([{}]), "functions[0].name")],
        ),
        (
            "function_call",
            vec![json!("auto"), json!({"name": "f"})],
            vec![
                (json!({}), "function_call.name"),
                (json!(1), "function_call"),
            ],
        ),
        (
            "response_format",
            vec![
                json!({"type": "text"}),
                json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}),
            ],
            vec![
                (json!("json"), "response_format"),
                (json!({}), "response_format.type"),
                (
                    json!({"type": "json_schema"}),
                    "response_format.json_schema",
                ),
                (
                    json!({"type": "json_schema", "json_schema": {"name": "a", "schema": 5}}),
                    "response_format.json_schema.schema",
                ),
            ],
        ),
        (
            "modalities",
            vec![json!(["text"])],
            vec![
                (json!("text"), "modalities"),
                (json!(["film"]), "modalities[0]"),
            ],
        ),
        (
            "audio",
            vec![json!({"voice": "a", "format": "wav"})],
            vec![
                (json!({"voice": "a"}), "audio.format"),
                (json!("a"), "audio"),
            ],
        ),
        (
            "prediction",
            vec![json!({"type": "content", "content": "x"})],
            vec![
                (json!("x"), "prediction"),
                (json!({"type": "content"}), "prediction.content"),
            ],
        ),
        (
            "stream_options",
            vec![json!({"include_usage": true})],
            vec![(
                json!({"include_obfuscation": 1}),
                "stream_options.include_obfuscation",
            )],
        ),
        (
            "verbosity",
            vec![json!("low")],
            vec![(json!("loud"), "verbosity")],
        ),
        (
            "reasoning_effort",
            vec![json!("low")],
            vec![(json!(5), "reasoning_effort")],
        ),
        (
            "web_search_options",
            vec![json!({})],
            vec![(json!(true), "web_search_options")],
        ),
        (
            "messages",
            vec![messages(
                json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
            )],
            vec![
                (
                    messages(json!({"role": 5, "content": "x"})),
                    "messages[1].role",
                ),
                (
                    messages(json!({"role": "user", "name": 5, "content": "x"})),
                    "messages[1].name",
                ),
                (
                    messages(json!({"role": "tool", "tool_call_id": 5, "content": "x"})),
                    "messages[1].tool_call_id",
                ),
                (
                    messages(json!({"role": "assistant", "tool_calls": ["x"]})),
                    "messages[1].tool_calls[0]",
                ),
                (
                    messages(
                        json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}),
                    ),
                    "messages[1].tool_calls[0].function.arguments",
                ),
                (
                    messages(
                        json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}),
                    ),
                    "messages[1].tool_calls[0].function.arguments",
                ),
                (
                    messages(json!({"role": "assistant", "function_call": {}})),
                    "messages[1].function_call.name",
                ),
                (
                    part(json!({"type": "image_url", "image_url": {"url": "x", "detail": 5}})),
                    "messages[0].content[0].image_url.detail",
                ),
                (
                    part(json!({"type": "file", "file": {"file_id": 5}})),
                    "messages[0].content[0].file.file_id",
                ),
                (part(json!({"type": 5})), "messages[0].content[0].type"),
            ],
        ),
    ]
}

fn responses() -> Vec<Row> {
    let item = |item: Value| json!([item]);
    let part = |part: Value| json!([{"role": "user", "content": [part]}]);
    vec![
        (
            "tool_choice",
            vec![
                json!({"type": "function", "name": "f"}),
                json!({"type": "mcp", "server_label": "s"}),
                json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}),
                json!({"type": "file_search"}),
            ],
            vec![
                (json!({"type": "function"}), "tool_choice.name"),
                (json!({"type": "function", "name": 5}), "tool_choice.name"),
                (json!({"type": "mcp"}), "tool_choice.server_label"),
                (
                    json!({"type": "allowed_tools", "mode": "auto", "tools": 5}),
                    "tool_choice.tools",
                ),
            ],
        ),
        (
            "input",
            vec![
                item(
                    json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
                ),
                item(
                    json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]}),
                ),
                item(json!({"type": "unheard_of", "x": 1})),
                part(json!({"type": "input_image", "image_url": null, "file_id": "f"})),
            ],
            vec![
                (json!([]), "input"),
                (json!(5), "input"),
                (item(json!("x")), "input[0]"),
                (item(json!({"type": 5})), "input[0].type"),
                (item(json!({"type": "function_call"})), "input[0].call_id"),
                (
                    item(json!({"type": "function_call", "call_id": "c"})),
                    "input[0].name",
                ),
                (
                    item(
                        json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}),
                    ),
                    "input[0].arguments",
                ),
                (
                    item(json!({"type": "function_call_output", "call_id": "c"})),
                    "input[0].output",
                ),
                (
                    item(json!({"type": "function_call_output", "call_id": "c", "output": 5})),
                    "input[0].output",
                ),
                (
                    item(json!({"type": "reasoning", "summary": "x"})),
                    "input[0].summary",
                ),
                (item(json!({"type": "item_reference"})), "input[0].id"),
                (
                    item(json!({"role": "tool", "content": "x"})),
                    "input[0].role",
                ),
                (
                    part(json!({"type": "input_text", "text": 5})),
                    "input[0].content[0].text",
                ),
                (
                    part(json!({"type": "input_image", "image_url": {"url": "x"}})),
                    "input[0].content[0].image_url",
                ),
                (
                    part(json!({"type": "input_file", "file_id": 5})),
                    "input[0].content[0].file_id",
                ),
            ],
        ),
        (
            "instructions",
            vec![json!("x")],
            vec![(json!(["x"]), "instructions")],
        ),
        (
            "include",
            vec![json!(["message.output_text.logprobs"])],
            vec![(json!("x"), "include"), (json!([5]), "include[0]")],
        ),
        (
            "truncation",
            vec![json!("auto")],
            vec![(json!("some"), "truncation"), (json!(true), "truncation")],
        ),
        (
            "max_tool_calls",
            vec![json!(1)],
            vec![(json!(0), "max_tool_calls"), (json!("1"), "max_tool_calls")],
        ),
        (
            "max_output_tokens",
            vec![json!(1)],
            vec![
                (json!(0), "max_output_tokens"),
                (json!("1"), "max_output_tokens"),
            ],
        ),
        (
            "previous_response_id",
            vec![json!("resp_1")],
            vec![(json!(5), "previous_response_id")],
        ),
        (
            "reasoning",
            vec![json!({"effort": "low", "summary": "auto"})],
            vec![(json!({"summary": 5}), "reasoning.summary")],
        ),
        (
            "text",
            vec![
                json!({"format": {"type": "text"}, "verbosity": "high"}),
                json!({"format": {"type": "json_schema", "name": "a", "schema": {}}}),
            ],
            vec![
                (json!("x"), "text"),
                (json!({"format": "x"}), "text.format"),
                (
                    json!({"format": {"type": "json_schema"}}),
                    "text.format.name",
                ),
                (
                    json!({"format": {"type": "json_schema", "name": "a"}}),
                    "text.format.schema",
                ),
                (json!({"verbosity": 5}), "text.verbosity"),
            ],
        ),
        (
            "tools",
            vec![json!([{"type": "function", "name": "f"}, {"type": "web_search"}])],
            vec![
                (json!([{"type": "function"}]), "tools[0].name"),
                (
                    json!([{"type": "function", "name": "f", "parameters": []}]),
                    "tools[0].parameters",
                ),
                (json!([{"name": "f"}]), "tools[0].type"),
            ],
        ),
        (
            "prompt",
            vec![json!({"id": "p"})],
            vec![(json!("p"), "prompt"), (json!({}), "prompt.id")],
        ),
        (
            "background",
            vec![json!(false)],
            vec![(json!("x"), "background")],
        ),
    ]
}

#[test]
fn every_field_has_its_type_and_range() {
    for (api, rows) in [
        (ModelApi::Chat, chat()),
        (ModelApi::Responses, responses()),
        (ModelApi::Chat, sampling()),
        (ModelApi::Responses, sampling()),
    ] {
        for (field, right, wrong) in rows {
            for value in right {
                if let Err(error) = parsed(api, field, &value) {
                    panic!("{api:?} {field}: {value} was refused: {error}");
                }
            }
            for (value, path) in wrong {
                let error = parsed(api, field, &value)
                    .expect_err(&format!("{api:?} {field}: {value} was taken"));
                assert_eq!(error.kind, FormatErrorKind::Invalid);
                assert_eq!(error.field, path, "{api:?} {field}: {value}");
            }
        }
    }
}
