use serde_json::json;

use super::*;

fn parse(api: ModelApi, body: Value) -> Request {
    Request::read(api, body).unwrap()
}

fn turn(role: ChatRole, content: &str) -> ChatMessage {
    ChatMessage {
        role,
        content: content.to_owned(),
    }
}

#[test]
fn an_output_has_its_call_in_the_conversation() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "7"});
    let request = |input: Value| {
        Request::read(ModelApi::Responses, json!({"model": "m", "input": input})).unwrap()
    };
    let mut going_on = request(json!([output("a"), output("b")]));
    assert_eq!(
        going_on.check_calls().unwrap_err().field,
        "input[0].call_id"
    );
    assert!(going_on.has_calls() && !request(json!("Hi")).has_calls());
    going_on.prepend_items(vec![call("a")]);
    assert_eq!(
        going_on.check_calls().unwrap_err().field,
        "input[1].call_id"
    );
    request(json!([call("a"), output("a")]))
        .check_calls()
        .unwrap();
    request(json!("Hi")).check_calls().unwrap();
    let early = request(json!([call("a"), output("b"), output("a"), call("b")]));
    let refused = early.check_calls().unwrap_err();
    assert_eq!(
        (refused.field.as_str(), &*refused.message),
        ("input[1].call_id", "must stand behind its call")
    );
    // What a compaction stands for is not known.
    let compaction = json!({"type": "compaction", "encrypted_content": "x"});
    request(json!([compaction, output("a")]))
        .check_calls()
        .unwrap();
}

#[test]
fn each_answer_of_the_client_has_a_call_of_its_type() {
    let check = |items: &[Value]| {
        let body = json!({"model": "m", "input": items});
        parse(ModelApi::Responses, body).check_calls()
    };
    let none = "has no call in the conversation";
    for (kind, answer, named, naming) in [
        (
            "function_call",
            "function_call_output",
            "call_id",
            "call_id",
        ),
        (
            "custom_tool_call",
            "custom_tool_call_output",
            "call_id",
            "call_id",
        ),
        (
            "computer_call",
            "computer_call_output",
            "call_id",
            "call_id",
        ),
        ("shell_call", "shell_call_output", "call_id", "call_id"),
        (
            "apply_patch_call",
            "apply_patch_call_output",
            "call_id",
            "call_id",
        ),
        (
            "local_shell_call",
            "local_shell_call_output",
            "call_id",
            "call_id",
        ),
        ("local_shell_call", "local_shell_call_output", "id", "id"),
        (
            "mcp_approval_request",
            "mcp_approval_response",
            "id",
            "approval_request_id",
        ),
    ] {
        let item = |kind: &str, field: &str, id: &str| {
            let mut item =
                json!({"type": kind, "name": "f", "arguments": "{}", "input": "", "output": "7"});
            item[field] = json!(id);
            item
        };
        let call = |id: &str| item(kind, named, id);
        let output = |id: &str| item(answer, naming, id);
        for right in [
            vec![call("a"), call("b"), output("b"), output("a")],
            // Servers whose ids count from 0 in each answer.
            vec![call("a"), output("a"), call("a"), output("a")],
        ] {
            check(&right).unwrap();
        }
        let twice = "is that of a call which has an output already";
        for (wrong, place, message) in [
            (vec![output("a")], 0, none),
            (vec![call("b"), output("a")], 1, none),
            (
                vec![output("a"), call("a")],
                0,
                "must stand behind its call",
            ),
            (vec![call("a"), output("a"), output("a")], 2, twice),
        ] {
            let error = check(&wrong).unwrap_err();
            let field = format!("input[{place}].{naming}");
            assert_eq!((error.field, &*error.message), (field, message), "{kind}");
        }
    }
}

#[test]
fn an_output_answers_a_call_of_its_own_type_once() {
    let function = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let custom = json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": ""});
    let output = |kind: &str| json!({"type": kind, "call_id": "a", "output": "7"});
    let (of_function, of_custom) = (
        output("function_call_output"),
        output("custom_tool_call_output"),
    );
    let request = |input: Value| parse(ModelApi::Responses, json!({"model": "m", "input": input}));
    for (call, output, message) in [
        (
            &function,
            &of_custom,
            "is that of a function_call, which takes a function_call_output",
        ),
        (
            &custom,
            &of_function,
            "is that of a custom_tool_call, which takes a custom_tool_call_output",
        ),
    ] {
        let error = request(json!([call, output])).check_calls().unwrap_err();
        assert_eq!(
            (error.field.as_str(), &*error.message),
            ("input[1].call_id", message)
        );
    }
    // A client may repeat what is stored.
    let mut again = request(json!([of_function]));
    again.prepend_items(vec![function.clone(), of_function.clone()]);
    again.check_calls().unwrap();
    // A call of two ids has one output.
    let shell = json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "a"});
    let by_id = json!({"type": "local_shell_call_output", "id": "lsh_1", "output": "7"});
    let by_call_id =
        json!({"type": "local_shell_call_output", "id": "lsho_1", "call_id": "a", "output": "7"});
    for (first, second, field) in [
        (&by_id, &by_call_id, "input[2].call_id"),
        (&by_call_id, &by_id, "input[2].id"),
    ] {
        request(json!([shell, first])).check_calls().unwrap();
        let error = request(json!([shell, first, second])).check_calls();
        assert_eq!(error.unwrap_err().field, field);
    }
    let nameless = json!([{"type": "computer_call_output", "output": {}}]);
    let error = request(nameless).check_calls().unwrap_err();
    assert_eq!(error.to_string(), "input[0].call_id is required");
}

#[test]
fn a_tool_message_has_its_call_before_it() {
    let calls = |ids: &[&str]| {
        let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    };
    let output = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "7"});
    let user = || json!({"role": "user", "content": "Hi"});
    let system = || json!({"role": "system", "content": "Be brief."});
    let check = |messages: &[Value]| {
        let body = json!({"model": "m", "messages": messages});
        parse(ModelApi::Chat, body).check_calls()
    };
    for right in [
        vec![user()],
        vec![calls(&["a", "b"]), output("b"), output("a"), user()],
        // Servers whose ids count from 0 in each answer.
        vec![calls(&["a"]), output("a"), calls(&["a"]), output("a")],
        vec![calls(&["a"]), system(), output("a"), output("a"), user()],
        // What follows is the model's business, as long as the user says nothing.
        vec![user(), calls(&["a"])],
    ] {
        check(&right).unwrap();
    }
    let untold = json!({"role": "tool", "content": "7"});
    let none = "has no call in the conversation";
    let wrong = [
        (vec![output("a")], "messages[0].tool_call_id", none),
        (vec![untold], "messages[0].tool_call_id", "is required"),
        (
            vec![calls(&["a"]), output("b")],
            "messages[1].tool_call_id",
            none,
        ),
        (
            vec![output("a"), calls(&["a"])],
            "messages[0].tool_call_id",
            "must stand behind its call",
        ),
        (
            vec![
                user(),
                calls(&["a", "b", "c"]),
                output("a"),
                user(),
                output("b"),
            ],
            "messages[1].tool_calls[1].id",
            "has no tool message before messages[3]",
        ),
    ];
    for (messages, field, message) in wrong {
        let error = check(&messages).unwrap_err();
        assert_eq!((error.field.as_str(), &*error.message), (field, message));
    }
}

#[test]
fn a_conversation_with_tools_is_known() {
    let mut request = parse(
        ModelApi::Responses,
        json!({"model": "m", "input": "And you?"}),
    );
    // What was looked up for a character calls no tool.
    request.prepend_items(vec![
        json!({"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": []}),
        json!({"type": "message", "role": "user", "content": "Hi"}),
    ]);
    assert!(!request.has_calls());
    request.prepend_items(vec![
        json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": ""}),
    ]);
    assert!(request.has_calls());
}

#[test]
fn turns_are_what_was_said() {
    let said = json!([
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [
            {"type": "text", "text": "What"}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "is it?"},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [{}]},
        {"role": "tool", "tool_call_id": "c", "content": "7"},
        {"role": "assistant", "content": "Seven."},
        {"role": "user", "content": " "},
    ]);
    let request = parse(ModelApi::Chat, json!({"model": "m", "messages": said}));
    let turns = [
        turn(ChatRole::User, "What\nis it?"),
        turn(ChatRole::Assistant, "Seven."),
    ];
    assert_eq!(request.turns(|_| true), turns);
}

#[test]
fn stored_items_come_before_the_input() {
    let mut request = parse(
        ModelApi::Responses,
        json!({"model": "m", "input": "And you?", "instructions": "Be kind."}),
    );
    request.prepend_items(vec![
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}),
    ]);
    let turns = [
        turn(ChatRole::User, "Hi"),
        turn(ChatRole::Assistant, "Hello"),
        turn(ChatRole::User, "And you?"),
    ];
    assert_eq!(request.turns(|_| true), turns);
    let mut asked = 0;
    let last = request.turns(|turn| {
        asked += 1;
        turn.content != "Hi"
    });
    assert_eq!((last.as_slice(), asked), (&turns[1..], 3));
    let stored = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And you?"}]}]);
    assert_eq!(Value::Array(request.input_items()), stored);
    request.prepend_items(vec![json!({"role": "user", "content": "First"})]);
    assert_eq!(request.turns(|_| true)[0], turn(ChatRole::User, "First"));
}

#[test]
fn the_bound_counts_bytes_and_whole_files() {
    let bound = |content: Value| {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
        parse(ModelApi::Chat, body).bound_bytes()
    };
    let text = bound(json!("äöü"));
    assert_eq!(bound(json!("äöüabc")), text + 3);
    assert_eq!(bound(json!("abcdef")), text);
    let part = |part: Value| bound(json!([part]));
    let small = part(json!({"type": "image_url", "image_url": {"url": "data:,"}}));
    let large = part(json!({"type": "image_url", "image_url": {"url": "x".repeat(100_000)}}));
    assert_eq!(small, large);
    assert!(small > IMAGE_TOKENS && part(json!({"type": "file", "file": {}})) > FILE_TOKENS);
}

#[test]
fn the_bound_counts_everything_that_the_model_reads() {
    let base = json!({"model": "m", "input": "Hi"});
    let mut request = parse(ModelApi::Responses, base.clone());
    let alone = request.bound_bytes();
    let text = "x".repeat(1_000);
    for field in ["instructions", "tools", "text", "documents"] {
        let mut body = base.clone();
        body[field] = match field {
            "tools" => json!([{"type": "function", "name": "f", "description": text}]),
            "text" => json!({"format": {"type": "x", "schema": {"enum": [text]}}}),
            _ => json!(text),
        };
        assert!(
            parse(ModelApi::Responses, body).bound_bytes() >= alone + 1_000,
            "{field}"
        );
    }
    request.prepend_system(&text);
    request.prepend_items(vec![json!({"role": "user", "content": text})]);
    assert!(request.bound_bytes() >= alone + 2_000);
}
