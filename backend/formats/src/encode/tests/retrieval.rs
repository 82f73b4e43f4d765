//! What a client of responses sees of a search.

use serde_json::{Value, json};

use super::{
    ModelApi, NOW, head,
    reading::{Chat, Response},
    request, rich_chunks, rich_events, tell, tell_whole, usage_wanted,
};
use crate::{Encoder, VisibleResult, VisibleRetrieval};

pub(super) fn found() -> VisibleRetrieval {
    let attributes = json!({"chunk_index": 3, "retrievers": "dense,bm25"});
    VisibleRetrieval {
        queries: vec!["lions".to_owned()],
        results: vec![VisibleResult {
            file_id: "file_svc_1".to_owned(),
            filename: "The lions".to_owned(),
            score: Some(0.5),
            text: " They\n\n sleep\t a lot. ".to_owned(),
            attributes: attributes.as_object().unwrap().clone(),
        }],
    }
}

fn items(results: Value, found: &str) -> Value {
    json!([
        {"id": "rs_svc_rag_loading_7f", "type": "reasoning", "status": "completed",
            "summary": [{"type": "summary_text", "text": "Looking through the knowledge base..."}]},
        {"id": "fs_svc_7f", "type": "file_search_call", "status": "completed", "queries": ["lions"], "results": results},
        {"id": "rs_svc_rag_found_7f", "type": "reasoning", "status": "completed",
            "summary": [{"type": "summary_text", "text": found}]},
    ])
}

fn found_items() -> Value {
    let result = json!({
        "file_id": "file_svc_1", "filename": "The lions", "score": 0.5, "text": "They sleep a lot.",
        "attributes": {"chunk_index": 3, "retrievers": "dense,bm25"},
    });
    items(json!([result]), "Found 1 relevant documents, thinking...")
}

#[test]
fn the_items_stand_before_the_model_s_own() {
    for (upstream, events) in [
        (ModelApi::Chat, rich_chunks()),
        (ModelApi::Responses, rich_events()),
    ] {
        let plain = request(ModelApi::Responses, &json!({}));
        let mut encoder = Encoder::new(&plain, upstream, &head(ModelApi::Responses));
        let mut frames = encoder.begin();
        frames.extend(encoder.retrieval(&found()));
        for event in events {
            frames.extend(tell(&mut encoder, upstream, event));
        }
        frames.extend(encoder.end(NOW));
        let response = Response::read(&frames);
        assert_eq!(
            response.kinds()[..10],
            [
                "output_item.added",
                "output_item.done",
                "output_item.added",
                "file_search_call.in_progress",
                "file_search_call.searching",
                "file_search_call.completed",
                "output_item.done",
                "output_item.added",
                "output_item.done",
                "output_item.added",
            ]
        );
        assert_eq!(Value::Array(response.items[..3].to_vec()), found_items());
        assert_eq!(response.items.len(), 7);
        let completed = response.of_kind("response.file_search_call.completed")[0];
        assert_eq!(completed["item"], found_items()[1]);
        assert_eq!(completed["item_id"], "fs_svc_7f");
        let added = &response.of_kind("response.output_item.added")[1]["item"];
        assert_eq!(
            (&added["status"], &added["results"]),
            (&json!("in_progress"), &Value::Null)
        );
    }
}

#[test]
fn a_search_without_results_is_told_too() {
    let nothing = VisibleRetrieval {
        results: Vec::new(),
        ..found()
    };
    let plain = request(ModelApi::Responses, &json!({}));
    let answer = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    let (response, _) = tell_whole(&plain, ModelApi::Chat, Some(&nothing), answer).unwrap();
    let expected = items(json!([]), "Found 0 relevant documents, thinking...");
    let output = response["output"].as_array().unwrap();
    assert_eq!(Value::Array(output[..3].to_vec()), expected);
    assert_eq!(output[3]["content"][0]["text"], "Hi");
}

#[test]
fn chat_completions_never_tell() {
    let mut encoder = Encoder::new(&usage_wanted(), ModelApi::Chat, &head(ModelApi::Chat));
    assert_eq!(encoder.begin(), []);
    assert_eq!(encoder.retrieval(&found()), []);
    let mut frames = Vec::new();
    for event in rich_chunks() {
        frames.extend(tell(&mut encoder, ModelApi::Chat, event));
    }
    frames.extend(encoder.end(NOW));
    assert!(Chat::read(&frames, true).error.is_none());
}

#[test]
fn previews_are_short() {
    let preview = |text: &str| {
        let mut found = found();
        found.results[0].text = text.to_owned();
        let plain = request(ModelApi::Responses, &json!({}));
        let mut encoder = Encoder::new(&plain, ModelApi::Chat, &head(ModelApi::Responses));
        encoder.retrieval(&found);
        let response = encoder.response().unwrap();
        let text = &response["output"][1]["results"][0]["text"];
        text.as_str().unwrap().to_owned()
    };
    assert_eq!(preview("  \n"), "");
    assert_eq!(preview(&"ü".repeat(300)), "ü".repeat(200));
    // A space is no end: the text is cut where the next word would begin.
    assert_eq!(preview(&format!("{} b", "a".repeat(199))), "a".repeat(199));
    let words = preview(&"a\n b ".repeat(80));
    assert_eq!(words.chars().count(), 199);
    assert!(words.starts_with("a b a") && words.ends_with(" a b"));
}
