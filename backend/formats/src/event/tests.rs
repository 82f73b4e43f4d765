use serde_json::json;

use super::*;

fn read(api: ModelApi, value: Value) -> ModelEvent {
    ModelEvent::read(api, value).unwrap()
}

#[test]
fn events_of_servers() {
    let chat = [
        (
            json!({"choices": [{"delta": {"role": "assistant"}, "finish_reason": null}]}),
            0,
        ),
        (
            json!({"choices": [{"delta": {"content": null}, "finish_reason": "stop"}]}),
            1,
        ),
        (
            json!({"choices": [{"index": 1, "finish_reason": "length"}, {"index": 0, "finish_reason": "stop"}]}),
            2,
        ),
        (json!({"choices": [], "usage": {"total_tokens": 3}}), 0),
        (json!({"usage": {"total_tokens": 3}}), 0),
        // A server that fills the field in before the end has not come to it.
        (
            json!({"choices": [{"delta": {"content": "x"}, "finish_reason": ""}]}),
            0,
        ),
    ];
    for (event, done) in chat {
        let read = read(ModelApi::Chat, event.clone());
        assert_eq!(read.finished(), done, "{event}");
        assert_eq!(read.finish_reasons().count() as u64, done, "{event}");
    }
    for wrong in [
        json!({"choices": "many"}),
        json!([1]),
        json!("x"),
        Value::Null,
    ] {
        assert_eq!(ModelEvent::read(ModelApi::Chat, wrong), Err(NotAnEvent));
    }
    for (kind, done) in [("incomplete", 1), ("output_text.done", 0)] {
        let event = json!({"type": format!("response.{kind}")});
        assert_eq!(read(ModelApi::Responses, event).finished(), done, "{kind}");
    }
    for wrong in [json!({"choices": []}), json!([]), json!({"type": 7})] {
        assert_eq!(
            ModelEvent::read(ModelApi::Responses, wrong),
            Err(NotAnEvent)
        );
    }
}

#[test]
fn text_and_who_says_it() {
    let chunk =
        json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}}]});
    let chunk = read(ModelApi::Chat, chunk);
    assert_eq!(chunk.text().as_deref(), Some("Hi"));
    assert_eq!(chunk.answerer(), Some(("m", Some("c"))));
    let event = json!({"type": "response.output_text.delta", "delta": "Hi"});
    let event = read(ModelApi::Responses, event);
    assert_eq!(
        (event.text().as_deref(), event.answerer()),
        (Some("Hi"), None)
    );
    let thought = json!({"type": "response.reasoning_text.delta", "delta": "hm"});
    assert_eq!(read(ModelApi::Responses, thought).text(), None);
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    let said = json!({
        "object": "response", "model": "m", "status": "incomplete", "output": [{"type": "reasoning"}, message],
        "incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 3, "output_tokens": 1},
    });
    let whole = read(ModelApi::Responses, said.clone());
    assert!(whole.is_answer());
    assert_eq!(whole.text().as_deref(), Some("Hi"));
    // The last event repeats the response, and its text was told before.
    let last = read(
        ModelApi::Responses,
        json!({"type": "response.incomplete", "response": said}),
    );
    assert!(!last.is_answer() && last.text().is_none());
    for event in [whole, last] {
        assert_eq!(
            event.finish_reasons().collect::<Vec<_>>(),
            ["max_output_tokens"]
        );
        assert_eq!(event.answerer(), Some(("m", None)));
        assert_eq!(
            event.usage().map(|used| (used.input, used.output)),
            Some((3, 1))
        );
    }
}

#[test]
fn failures_are_read_once() {
    let event = read(ModelApi::Chat, json!({"error": {"code": "overloaded"}}));
    assert_eq!(event.failure().unwrap().code.as_deref(), Some("overloaded"));
    assert!(!event.has_content() && event.into_failure().is_ok());
    let fine = read(ModelApi::Chat, json!({"error": false, "choices": []}));
    assert_eq!(fine.clone().into_failure(), Err(fine));
    let told = read(
        ModelApi::Responses,
        json!({"error": {"code": "overloaded"}}),
    );
    assert_eq!(told.failure().unwrap().code.as_deref(), Some("overloaded"));
}
