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

fn find(id: &str, _: &Before<'_>) -> Found<'static> {
    let item = STORED.iter().find(|item| item["id"] == id);
    item.map_or(Found::Nothing, Found::One)
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
    let found = Found::One(&call);
    request.resolve_references(|_, _| found).unwrap();
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
fn an_unknown_id_is_told() {
    let input = json!([refer("rs_1"), refer("rs_1"), refer("rs_9")]);
    let mut request = request(&input);
    let long = "x".repeat(MAX_ID_CHARS + 1);
    let odd = self::request(&json!(["rs_1", long.as_str()].map(refer)));
    let wrong = odd.check_references(|id| id.len() < 9).unwrap_err();
    assert_eq!(wrong, UnresolvedItem::unknown(1, &long[1..]));
    request.check_references(|_| true).unwrap();
    let unknown = request.resolve_references(find).unwrap_err();
    assert_eq!(unknown, UnresolvedItem::unknown(2, "rs_9"));
    assert_eq!(unknown.to_string(), "Item with id 'rs_9' not found.");
    // What a client sends itself is held to the model's API.
    let mut chat = self::request(&json!([stored("ws_1").unwrap()]));
    chat.resolve_references(find).unwrap();
    let error = upstream_body(&chat, &Capabilities::default(), "up").unwrap_err();
    assert_eq!(error.field, "input[0].type");
}

fn asks(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A response: its input, and its output, all of whose ids others have, too.
struct Response(Vec<Value>, [Value; 2]);

impl Response {
    fn new(asked: &str, thought: &str, text: &str) -> Self {
        let content = json!([{"type": "input_text", "text": asked}]);
        let asked = json!({"type": "message", "role": "user", "content": content});
        let thought =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": thought});
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let message =
            json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content});
        Self(vec![asked], [thought, message])
    }

    fn output(&self, id: &str) -> Option<&Value> {
        self.1.iter().find(|item| item["id"] == id)
    }
}

/// Finds an item of these responses, the newest of which is the first.
fn find_in<'a>(newest_first: &'a [Response], id: &str, before: &Before<'_>) -> Found<'a> {
    let fitting = newest_first.iter().filter_map(|it| {
        let fit = before.fit(&it.0, |id| it.output(id))?;
        Some((fit, it.output(id)?))
    });
    Found::several(&fitting.collect::<Vec<_>>())
}

#[test]
fn an_id_of_several_items_is_that_of_the_conversation_before() {
    let two = [
        Response::new("3 + 3?", "y", "Six."),
        Response::new("2 + 2?", "x", "Four."),
    ];
    let [six, four] = &two;
    let [thought, message] = &four.1;
    let mut request = request(&json!([
        asks("2 + 2?"),
        refer("rs_1"),
        refer("msg_1"),
        refer("msg_1"),
        asks("3 + 3?"),
        refer("rs_1"),
        refer("msg_1"),
        asks("Sure?"),
    ]));
    let find = |id: &str, before: &Before<'_>| find_in(&two, id, before);
    request.resolve_references(find).unwrap();
    let expected = [
        &asks("2 + 2?"),
        thought,
        message,
        &asks("3 + 3?"),
        &six.1[0],
        &six.1[1],
        &asks("Sure?"),
    ];
    assert_eq!(request.input_items().iter().collect::<Vec<_>>(), expected);

    // Parts of the answer that are sent as they are, and one that is there already.
    let mut request = self::request(&json!([
        asks("3 + 3?"),
        six.1[0].clone(),
        refer("msg_1"),
        six.1[1].clone()
    ]));
    request.resolve_references(find).unwrap();
    let expected = [asks("3 + 3?"), six.1[0].clone(), six.1[1].clone()];
    assert_eq!(request.input_items(), expected);

    // The conversation before may be stored.
    let mut request = self::request(&json!([refer("msg_1"), asks("Sure?")]));
    request.prepend_items(vec![four.0[0].clone(), thought.clone()]);
    request.resolve_references(find).unwrap();
    assert_eq!(request.input_items(), [message.clone(), asks("Sure?")]);
}

#[test]
fn several_items_of_one_conversation_have_to_say_the_same() {
    let response = |before: &str, text: &str| {
        let mut response = Response::new("Yes", "x", text);
        response.0.insert(0, asks(before));
        response
    };
    let input = |before: &[&str]| {
        let mut input: Vec<Value> = before.iter().map(|text| asks(text)).collect();
        input.extend([asks("Yes"), refer("rs_1"), refer("msg_1")]);
        json!(input)
    };
    let resolved = |responses: &[Response], before: &[&str]| {
        let mut request = request(&input(before));
        let find = |id: &str, before: &Before<'_>| find_in(responses, id, before);
        let resolved = request.resolve_references(find);
        resolved.map(|()| request.input_items().last().cloned().unwrap())
    };
    let two = [response("I am Bob", "Bob."), response("I am Ann", "Ann.")];
    let [bob, ann] = &two;
    assert_eq!(resolved(&two, &["I am Ann"]).unwrap(), ann.1[1]);
    assert_eq!(resolved(&two, &["I am Bob"]).unwrap(), bob.1[1]);
    // More may stand before it.
    assert_eq!(resolved(&two, &["Hi", "I am Ann"]).unwrap(), ann.1[1]);
    let refused = resolved(&two, &["I am Eve"]).unwrap_err();
    assert_eq!(refused, UnresolvedItem::ambiguous(2, "rs_1"));
    // The beginning may be left out where the items say the same.
    assert_eq!(resolved(&two[1..], &[]).unwrap(), ann.1[1]);
    let mut bob = response("I am Bob", "Bob.");
    bob.1[0]["encrypted_content"] = json!("y");
    let refused = resolved(&[bob, response("I am Ann", "Ann.")], &[]).unwrap_err();
    assert_eq!(refused, UnresolvedItem::ambiguous(1, "rs_1"));
    let same = [response("I am Bob", "Ann."), response("I am Ann", "Ann.")];
    assert_eq!(resolved(&same, &[]).unwrap(), ann.1[1]);
    // Of equal conversations, the newest.
    let again = [response("I am Ann", "Anna."), response("I am Ann", "Ann.")];
    assert_eq!(resolved(&again, &["I am Ann"]).unwrap(), again[0].1[1]);
}

#[test]
fn an_id_of_several_items_of_other_conversations_is_refused() {
    let one = [Response::new("3 + 3?", "y", "Six.")];
    let find = |id: &str, before: &Before<'_>| find_in(&one, id, before);
    for (input, place) in [
        (json!([asks("2 + 2?"), refer("msg_1")]), 1),
        (json!([refer("msg_1"), asks("3 + 3?")]), 0),
        (
            json!([
                asks("3 + 3?"),
                asks("2 + 2?"),
                refer("rs_1"),
                refer("msg_1")
            ]),
            2,
        ),
    ] {
        let refused = request(&input).resolve_references(find).unwrap_err();
        let id = input[place]["id"].as_str().unwrap();
        assert_eq!(refused, UnresolvedItem::ambiguous(place, id));
    }
    // What the conversation has already is not looked for.
    let mut request = request(&json!([refer("msg_1"), asks("Sure?")]));
    request.prepend_items(vec![asks("2 + 2?"), stored("msg_1").unwrap()]);
    request.resolve_references(find).unwrap();
    assert_eq!(request.input_items(), [asks("Sure?")]);
}

#[test]
fn items_are_compared_without_ids_and_states() {
    let output =
        |text: &str| json!({"type": "function_call_output", "call_id": "c", "output": text});
    let mut told = output("7");
    told["id"] = json!("fco_1");
    told["status"] = json!("completed");
    assert!(is_same(&told, &output("7")) && is_same(&output("7"), &told));
    assert!(!is_same(&output("7"), &output("8")));
    let parts = |parts: Value| json!({"type": "message", "role": "user", "content": parts});
    let text = json!({"type": "input_text", "text": "Hi"});
    let picture = json!({"type": "input_image", "image_url": "data:,"});
    assert!(is_same(&asks("Hi"), &parts(json!([text]))));
    assert!(!is_same(&asks("Hi"), &parts(json!([text, picture]))));
    assert!(!is_same(
        &asks("Hi"),
        &json!({"role": "system", "content": "Hi"})
    ));
    let two = parts(json!([text, picture]));
    assert!(is_same(&two, &two.clone()));
}
