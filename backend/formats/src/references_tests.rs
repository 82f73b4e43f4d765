use std::sync::LazyLock;

use serde_json::json;

use super::*;
use crate::{Capabilities, upstream_body};

fn request(input: &Value) -> Request {
    Request::read(ModelApi::Responses, json!({"model": "m", "input": input})).unwrap()
}

fn refer(id: &str) -> Value {
    json!({"type": "item_reference", "id": id})
}

static STORED: LazyLock<[Value; 3]> = LazyLock::new(|| {
    [
        json!({"type": "reasoning", "id": "rs_1", "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant",
            "content": [{"type": "output_text", "text": "Four."}]}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    ]
});

fn stored(id: &str) -> Option<Value> {
    STORED.iter().find(|item| item["id"] == id).cloned()
}

fn find(id: &str) -> Referred<'static> {
    let item = STORED.iter().find(|item| item["id"] == id);
    item.map_or(Referred::Nothing, Referred::Item)
}

#[test]
fn a_reference_is_replaced_by_the_item_for_models_of_both_apis() {
    let input = json!([
        asks("2 + 2?"),
        refer("rs_1"),
        refer("ws_1"),
        refer("msg_1"),
        refer("msg_1"),
        asks("Sure?"),
    ]);
    let mut request = request(&input);
    assert_eq!(request.references(), ["rs_1", "ws_1", "msg_1"]);
    request.resolve_references(find).unwrap();
    assert!(request.references().is_empty());
    let body = |api| {
        let abilities = Capabilities {
            api,
            ..Capabilities::default()
        };
        upstream_body(&request, &abilities, "up").unwrap()
    };
    let items = ["rs_1", "ws_1", "msg_1"].map(|id| stored(id).unwrap());
    let [thought, search, message] = items;
    assert_eq!(
        body(ModelApi::Responses)["input"],
        json!([asks("2 + 2?"), thought, search, message, asks("Sure?")])
    );
    assert_eq!(
        body(ModelApi::Chat)["messages"],
        json!([
            asks("2 + 2?"),
            {"role": "assistant", "content": "Four."},
            asks("Sure?"),
        ])
    );
    assert_eq!(request.turns(|_| true).len(), 3);
}

#[test]
fn a_reference_may_leave_out_its_type() {
    let input = json!([{"id": "rs_1"}, {"id": "msg_1", "type": null}]);
    let mut request = request(&input);
    assert_eq!(request.references(), ["rs_1", "msg_1"]);
    request.resolve_references(find).unwrap();
    let items = ["rs_1", "msg_1"].map(|id| stored(id).unwrap());
    assert_eq!(request.input_items(), items);
    for item in [json!({"id": 5}), json!({"id": "rs_1", "name": "f"})] {
        let body = json!({"model": "m", "input": [item]});
        let error = Request::read(ModelApi::Responses, body).unwrap_err();
        assert_eq!(error.field, "input[0].type");
    }
}

#[test]
fn an_item_is_sent_once() {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"});
    let mut request = request(&json!([refer("fc_1"), call]));
    let found = Referred::Item(&call);
    request.resolve_references(|_| found).unwrap();
    assert_eq!(request.input_items(), [call]);
}

#[test]
fn an_item_of_the_conversation_before_is_not_repeated() {
    let asked = json!({"role": "user", "content": "Sure?"});
    let input = json!([refer("rs_1"), refer("msg_1"), refer("msg_9"), asked]);
    let mut request = request(&input);
    // One of them was never stored.
    let unstored =
        json!({"type": "message", "id": "msg_9", "role": "assistant", "content": "Four."});
    request.prepend_items(vec![stored("msg_1").unwrap(), unstored]);
    request.resolve_references(find).unwrap();
    assert_eq!(request.input_items(), [stored("rs_1").unwrap(), asked]);
}

#[test]
fn errors_name_the_index_that_the_client_sent() {
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "7"});
    let picture = json!({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]});
    // What tells of retrieval is taken out, and so are references to what is there already.
    let shown = json!({"type": "file_search_call", "id": "fs_svc_1", "queries": []});
    let input = json!([shown, refer("rs_1"), refer("rs_1"), output, picture]);
    let mut request = request(&input);
    request.resolve_references(find).unwrap();
    assert_eq!(request.input_items().len(), 3);
    let error = request.check_calls().unwrap_err();
    assert_eq!(error.field, "input[3].call_id");
    let error = upstream_body(&request, &Capabilities::default(), "up").unwrap_err();
    assert_eq!(error.field, "input[4].content[0].file_id");
    let plain = Capabilities {
        plain_text: true,
        ..Capabilities::default()
    };
    let error = upstream_body(&request, &plain, "up").unwrap_err();
    assert_eq!(error.field, "input[4].content[0].type");
}

#[test]
fn a_call_is_sent_beside_its_output_that_has_its_id() {
    let call = json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {}});
    let output = json!({"type": "local_shell_call_output", "id": "lsh_1", "output": "files"});
    let mut request = request(&json!([refer("lsh_1"), output]));
    request
        .resolve_references(|_| Referred::Item(&call))
        .unwrap();
    assert_eq!(request.input_items(), [call.clone(), output]);
    request.check_calls().unwrap();
}

#[test]
fn an_item_that_the_conversation_before_has_without_an_id_is_not_repeated() {
    let mut request = request(&json!([refer("item_7_0"), asks("Sure?")]));
    request.prepend_items(vec![asks("2 + 2?")]);
    request.resolve_references(|_| Referred::Before).unwrap();
    assert_eq!(request.input_items(), [asks("Sure?")]);
}

#[test]
fn an_unknown_id_is_told() {
    let input = json!([refer("rs_1"), refer("rs_1"), refer("rs_9")]);
    let unknown = request(&input).resolve_references(find).unwrap_err();
    assert_eq!(unknown.field, "input[2].id");
    assert_eq!(unknown.to_string(), "Item with id 'rs_9' not found.");
    let long = "x".repeat(MAX_ID_CHARS + 1);
    let unknown = request(&json!([refer(&long)])).resolve_references(find);
    assert_eq!(unknown.unwrap_err().id, long[1..]);
    // What a client sends itself is held to the model's API.
    let mut chat = request(&json!([stored("ws_1").unwrap()]));
    chat.resolve_references(find).unwrap();
    let error = upstream_body(&chat, &Capabilities::default(), "up").unwrap_err();
    assert_eq!(error.field, "input[0].type");
}

fn asks(text: &str) -> Value {
    json!({"role": "user", "content": text})
}
