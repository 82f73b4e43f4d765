use super::*;
use crate::{Capabilities, check_upstream, upstream_body as body_for};

fn head() -> Head {
    Head {
        id: "resp_7".to_owned(),
        created_at: 5,
        model: "m".to_owned(),
    }
}

fn request() -> Request {
    let body = json!({
        "model": "m", "instructions": "Be brief.", "stream": true, "tools": [], "max_output_tokens": 9,
        "input": [
            {"role": "user", "content": "One"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "Three"}]},
        ],
    });
    Request::read_compaction(body).unwrap()
}

fn abilities(api: ModelApi) -> Capabilities {
    Capabilities {
        api,
        max_output_tokens: Some(50),
        ..Capabilities::default()
    }
}

fn sealed(text: &str) -> Option<Result<String, &'static str>> {
    let rest = text.strip_prefix("ours:")?;
    Some(match rest {
        "broken" => Err("cannot be opened"),
        text => Ok(text.to_owned()),
    })
}

#[test]
fn a_model_with_responses_gets_what_its_endpoint_takes() {
    let body = body_for(&request(), &abilities(ModelApi::Responses), "up").unwrap();
    let fields: Vec<_> = body.keys().map(String::as_str).collect();
    assert_eq!(fields, ["input", "instructions", "model"]);
}

#[test]
fn another_model_is_asked_for_a_summary() {
    let body = body_for(&request(), &abilities(ModelApi::Chat), "up").unwrap();
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "user"]);
    assert_eq!(messages[4]["content"], INSTRUCTION);
    assert_eq!(body["max_completion_tokens"], 50);
    assert_eq!(body.get("stream"), None);
}

#[test]
fn the_users_messages_stay_and_the_rest_is_sealed() {
    let answer = json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": " Short. "}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    });
    let answer = ModelEvent::read(ModelApi::Chat, answer).unwrap();
    let seal = |summary: &str| Some(format!("ours:{summary}"));
    let (mut told, tally) = compaction(&request(), &head(), answer, seal).unwrap();
    put_compaction_usage(&mut told, &tally);
    assert_eq!(told["usage"]["total_tokens"], 5);
    let user = |id: &str, text: &str| {
        json!({
            "id": id, "type": "message", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": text}],
        })
    };
    let expected = json!([
        user("msg_7_0", "One"),
        user("msg_7_1", "Three"),
        {"id": "cmp_7", "type": "compaction", "encrypted_content": "ours:Short."},
    ]);
    assert_eq!(told["output"], expected);
    assert_eq!(
        (&told["object"], &told["id"]),
        (&json!("response.compaction"), &json!("resp_7"))
    );

    // What comes back is opened for whoever goes on.
    let body = json!({"model": "m", "input": told["output"]});
    let mut next = Request::read(ModelApi::Responses, body).unwrap();
    next.open_compactions(sealed).unwrap();
    let body = body_for(&next, &abilities(ModelApi::Chat), "up").unwrap();
    let last = &body["messages"][2];
    assert_eq!(last["role"], "system");
    assert_eq!(last["content"], format!("{SUMMARY}\n\nShort."));
}

#[test]
fn items_of_others_go_where_they_are_understood() {
    let item = |content: &str| json!({"type": "compaction", "encrypted_content": content});
    let body = |content: &str| json!({"model": "m", "input": [item("x"), item(content)]});
    let read = |content: &str| Request::read(ModelApi::Responses, body(content)).unwrap();
    let mut foreign = read("theirs");
    foreign.open_compactions(sealed).unwrap();
    let sent = body_for(&foreign, &abilities(ModelApi::Responses), "up").unwrap();
    assert_eq!(sent["input"], body("theirs")["input"]);
    let error = check_upstream(&foreign, &abilities(ModelApi::Chat)).unwrap_err();
    assert_eq!(error.field, "input[0].type");
    foreign.history = vec![item("x")];
    let error = check_upstream(&foreign, &abilities(ModelApi::Chat)).unwrap_err();
    assert_eq!(error.field, "previous_response_id");
    let error = read("ours:broken").open_compactions(sealed).unwrap_err();
    assert_eq!(error.field, "input[1].encrypted_content");
    let error = Request::read(
        ModelApi::Responses,
        json!({"model": "m", "input": [{"type": "compaction"}]}),
    );
    assert_eq!(error.unwrap_err().field, "input[0].encrypted_content");
}

#[test]
fn mistakes_name_their_field() {
    for (body, field) in [
        (json!([]), "body"),
        (json!({"input": "x"}), "model"),
        (json!({"model": "m"}), "input"),
        (json!({"model": "m", "input": []}), "input"),
        (
            json!({"model": "m", "input": 7, "previous_response_id": "r"}),
            "input",
        ),
        (
            json!({"model": "m", "input": "x", "instructions": 7}),
            "instructions",
        ),
        (
            json!({"model": "m", "input": "x", "previous_response_id": 7}),
            "previous_response_id",
        ),
    ] {
        assert_eq!(Request::read_compaction(body).unwrap_err().field, field);
    }
    let body = json!({"model": "m", "previous_response_id": "r"});
    assert!(Request::read_compaction(body).is_ok());
}

#[test]
fn what_is_no_compaction_is_a_failure() {
    let seal = |summary: &str| Some(summary.to_owned());
    for (api, answer) in [
        (ModelApi::Responses, json!({"output": []})),
        (
            ModelApi::Responses,
            json!({"output": [{"type": "message"}]}),
        ),
        (
            ModelApi::Responses,
            json!({"output": [{"type": "compaction"}]}),
        ),
        (
            ModelApi::Chat,
            json!({"choices": [{"message": {"content": " "}}]}),
        ),
    ] {
        let answer = ModelEvent::read(api, answer).unwrap();
        assert!(compaction(&request(), &head(), answer, seal).is_err());
    }
}
