//! What a client sees when a model fails, and what counts as content before that.

use serde_json::{Value, json};

use super::{
    ModelApi, NOW, chunk, finish, has_content, head,
    reading::{Chat, Response, check_object},
    request, rich_chunks, rich_events, tell, upstream_response, usage_wanted,
};
use crate::{Encoder, Ending, ErrorBody, Frame, failure};

/// A stream of these events that breaks off then.
fn broken(
    client: ModelApi,
    upstream: ModelApi,
    events: &[Value],
    error: Option<&ErrorBody>,
) -> (Vec<Frame>, Encoder) {
    let request = match client {
        ModelApi::Chat => usage_wanted(),
        ModelApi::Responses => request(client, &json!({})),
    };
    let mut encoder = Encoder::new(&request, upstream, &head(client));
    let mut frames = encoder.begin();
    for event in events {
        frames.extend(tell(&mut encoder, upstream, event.clone()));
    }
    if let Some(error) = error {
        frames.extend(encoder.fail(error));
    }
    assert_eq!(tell(&mut encoder, upstream, finish("stop")), []);
    assert_eq!(encoder.end(NOW), []);
    assert_eq!(encoder.tally().ending, Some(Ending::Failed));
    (frames, encoder)
}

#[test]
fn a_cut_stream_never_looks_complete() {
    let cut = ErrorBody::server("upstream_cut", "The model's answer was cut off");
    for upstream in [ModelApi::Chat, ModelApi::Responses] {
        let events = match upstream {
            ModelApi::Chat => rich_chunks(),
            ModelApi::Responses => rich_events(),
        };
        for length in 0..events.len() - 2 {
            let (frames, encoder) =
                broken(ModelApi::Responses, upstream, &events[..length], Some(&cut));
            let response = Response::read(&frames);
            assert_eq!(response.ended_as(), "error");
            let error = response.last();
            assert_eq!(
                (&error["code"], &error["param"]),
                (&json!("upstream_cut"), &Value::Null)
            );
            assert_eq!(error["message"], error["error"]["message"]);
            assert_eq!(error["error"]["code"], "upstream_cut");
            let stored = encoder.response().unwrap();
            check_object(&stored);
            assert_eq!(stored["status"], "failed");
            assert_eq!(stored["error"]["code"], "upstream_cut");
            let (frames, encoder) = broken(ModelApi::Chat, upstream, &events[..length], Some(&cut));
            let chat = Chat::read(&frames, true);
            assert_eq!(chat.error.unwrap()["code"], "upstream_cut");
            assert_eq!(encoder.response(), None);
        }
    }
}

#[test]
fn what_was_said_before_the_cut_is_kept() {
    let cut = ErrorBody::server("upstream_cut", "cut");
    let (_, encoder) = broken(
        ModelApi::Responses,
        ModelApi::Chat,
        &rich_chunks()[..9],
        Some(&cut),
    );
    assert_eq!(encoder.tally().text_bytes, 33);
    let stored = encoder.response().unwrap();
    let statuses = stored["output"].as_array().unwrap().iter();
    let statuses = statuses.map(|item| item["status"].as_str().unwrap());
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        ["completed", "completed", "incomplete", "incomplete"]
    );
    assert_eq!(stored["output"][1]["content"][0]["text"], "It is.");
}

#[test]
fn an_end_without_an_answer_is_a_cut() {
    for client in [ModelApi::Chat, ModelApi::Responses] {
        for (upstream, events) in [
            (ModelApi::Chat, vec![]),
            (ModelApi::Chat, vec![json!({"choices": []})]),
            (ModelApi::Chat, vec![json!([]), json!("x"), json!({})]),
            (ModelApi::Responses, vec![]),
            (ModelApi::Responses, rich_events()[..10].to_vec()),
        ] {
            let request = request(client, &json!({}));
            let mut encoder = Encoder::new(&request, upstream, &head(client));
            let mut frames = encoder.begin();
            for event in events {
                frames.extend(tell(&mut encoder, upstream, event));
            }
            frames.extend(encoder.end(NOW));
            assert_eq!(encoder.tally().ending, Some(Ending::Failed));
            // Streams of responses end with a line that is no event.
            let last = frames.iter().rfind(|frame| frame.data != "[DONE]");
            let last = serde_json::from_str::<Value>(&last.unwrap().data).unwrap();
            assert_eq!(last["error"]["code"], "upstream_cut");
        }
    }
}

#[test]
fn errors_inside_of_a_stream() {
    let overloaded =
        json!({"error": {"type": "overloaded_error", "code": "overloaded", "message": "Too much"}});
    let failed = |error: Value| {
        let mut response = upstream_response("failed", json!([]));
        response["error"] = error;
        json!({"type": "response.failed", "response": response})
    };
    let cases = [
        (
            ModelApi::Chat,
            overloaded.clone(),
            Some("overloaded"),
            Some("Too much"),
            None,
        ),
        (
            ModelApi::Chat,
            json!({"error": "Too much"}),
            None,
            Some("Too much"),
            None,
        ),
        (
            ModelApi::Chat,
            json!({"error": {"code": 503, "message": "m"}}),
            Some("503"),
            Some("m"),
            Some(503),
        ),
        (
            ModelApi::Chat,
            json!({"object": "error", "code": 400, "message": "m"}),
            Some("400"),
            Some("m"),
            Some(400),
        ),
        (ModelApi::Chat, finish("error"), Some("error"), None, None),
        (ModelApi::Chat, finish("abort"), Some("abort"), None, None),
        (
            ModelApi::Chat,
            json!({"choices": [{"index": 0, "delta": {}, "error": {"code": "x", "message": "m"}}]}),
            Some("x"),
            Some("m"),
            None,
        ),
        (
            ModelApi::Responses,
            overloaded,
            Some("overloaded"),
            Some("Too much"),
            None,
        ),
        (
            ModelApi::Responses,
            json!({"type": "error", "code": "c", "message": "m", "param": null}),
            Some("c"),
            Some("m"),
            None,
        ),
        (
            ModelApi::Responses,
            json!({"type": "error", "message": "out", "error": {"code": "c", "message": "in"}}),
            Some("c"),
            Some("in"),
            None,
        ),
        (
            ModelApi::Responses,
            failed(json!({"code": "c", "message": "m"})),
            Some("c"),
            Some("m"),
            None,
        ),
        (
            ModelApi::Responses,
            failed(Value::Null),
            Some("server_error"),
            None,
            None,
        ),
        (
            ModelApi::Responses,
            upstream_response("cancelled", json!([])),
            Some("server_error"),
            None,
            None,
        ),
    ];
    for (upstream, event, code, message, status) in cases {
        let told = failure(upstream, &event).unwrap();
        assert_eq!(told.code.as_deref(), code, "{event}");
        assert_eq!(told.message.as_deref(), message, "{event}");
        assert_eq!(told.status, status, "{event}");
        assert!(!has_content(upstream, &event), "{event}");
        let mut events = match upstream {
            ModelApi::Chat => vec![chunk(json!({"content": "Hi"}))],
            ModelApi::Responses => rich_events()[..9].to_vec(),
        };
        events.push(event.clone());
        let (frames, _) = broken(ModelApi::Chat, upstream, &events, None);
        let error = Chat::read(&frames, true).error.unwrap();
        assert_eq!(
            error["code"].as_str(),
            Some(code.unwrap_or("upstream_error"))
        );
        let (frames, encoder) = broken(ModelApi::Responses, upstream, &events, None);
        let response = Response::read(&frames);
        if event["type"] == "response.failed" {
            assert_eq!(response.ended_as(), "response.failed");
            assert_eq!(response.last()["response"]["error"]["code"].as_str(), code);
        } else {
            assert_eq!(response.ended_as(), "error");
            assert_eq!(
                response.last()["code"].as_str(),
                Some(code.unwrap_or("upstream_error"))
            );
        }
        assert_eq!(encoder.response().unwrap()["status"], "failed");
    }
}

#[test]
fn a_normal_event_is_no_failure() {
    for (api, events) in [
        (ModelApi::Chat, rich_chunks()),
        (ModelApi::Responses, rich_events()),
    ] {
        for event in events {
            assert_eq!(failure(api, &event), None, "{event}");
        }
    }
    for error in [json!(null), json!(false), json!("")] {
        assert_eq!(
            failure(ModelApi::Chat, &json!({"error": error, "choices": []})),
            None
        );
    }
    for value in [json!(null), json!([]), json!("error")] {
        assert_eq!(failure(ModelApi::Chat, &value), None);
        assert!(!has_content(ModelApi::Responses, &value));
    }
}

#[test]
fn content_is_what_a_client_would_see() {
    let chat = [
        (chunk(json!({"role": "assistant", "content": ""})), false),
        (json!({"choices": [], "usage": null}), false),
        (chunk(json!({"content": "x"})), true),
        (chunk(json!({"content": " "})), true),
        (
            chunk(json!({"content": null, "tool_calls": [], "refusal": ""})),
            false,
        ),
        (chunk(json!({"annotations": [{}]})), true),
        (chunk(json!({"reasoning": "x"})), true),
        (chunk(json!({"reasoning_content": "x"})), true),
        (chunk(json!({"refusal": "x"})), true),
        (
            chunk(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]})),
            true,
        ),
        (finish("stop"), true),
        (json!({"choices": [{"message": {"content": "x"}}]}), true),
    ];
    for (event, expected) in chat {
        assert_eq!(has_content(ModelApi::Chat, &event), expected, "{event}");
    }
    let kinds = [
        ("response.created", false),
        ("response.queued", false),
        ("response.in_progress", false),
        ("response.output_item.added", false),
        ("response.content_part.added", false),
        ("keepalive", false),
        ("response.output_text.delta", true),
        ("response.reasoning_text.delta", true),
        ("response.web_search_call.searching", true),
        ("response.completed", true),
        ("response.incomplete", true),
    ];
    for (kind, expected) in kinds {
        let event = json!({"type": kind, "delta": "x"});
        let event = if kind.ends_with("delta") {
            event
        } else {
            json!({"type": kind})
        };
        assert_eq!(has_content(ModelApi::Responses, &event), expected, "{kind}");
    }
    assert!(!has_content(
        ModelApi::Responses,
        &json!({"type": "response.output_text.delta", "delta": ""})
    ));
    assert!(has_content(
        ModelApi::Responses,
        &upstream_response("completed", json!([]))
    ));
}
