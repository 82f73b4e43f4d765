//! Items of stored responses that a request refers to by their ids in place of sending them again.

use std::collections::HashSet;

use serde_json::Value;

use super::{ModelApi, Object, Request, fields::str_of, items::Places};

/// The longest id that an error repeats, in characters.
const MAX_ID_CHARS: usize = 100;

/// A reference to an item that is not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Item with id '{id}' not found.")]
pub struct UnknownItem {
    /// The path of the id, such as `input[3].id`.
    pub field: String,
    /// The id; the beginning of one of more than 100 characters.
    pub id: String,
}

impl UnknownItem {
    fn new(place: usize, id: &str) -> Self {
        Self {
            field: format!("input[{place}].id"),
            id: id.chars().take(MAX_ID_CHARS).collect(),
        }
    }
}

impl Request {
    /// The ids that the input refers to, each once.
    #[must_use]
    pub fn references(&self) -> Vec<&str> {
        let mut known = HashSet::new();
        let ids = self.refers().map(|(_, id)| id);
        ids.filter(|id| known.insert(*id)).collect()
    }

    /// Checks the ids that the input refers to.
    ///
    /// # Errors
    /// The first reference to an id that is none.
    pub fn check_references(&self, is_id: impl Fn(&str) -> bool) -> Result<(), UnknownItem> {
        match self.refers().find(|(_, id)| !is_id(id)) {
            Some((index, id)) => Err(UnknownItem::new(self.places.of(index), id)),
            None => Ok(()),
        }
    }

    /// The references in the input, with their indices there.
    fn refers(&self) -> impl Iterator<Item = (usize, &str)> {
        let input = match self.api {
            ModelApi::Responses => self.body.get("input").and_then(Value::as_array),
            ModelApi::Chat => None,
        };
        let items = input.into_iter().flatten().enumerate();
        items.filter_map(|(index, item)| Some((index, reference(item)?)))
    }

    /// Replaces each reference by the item of its id. An item that the input, or the conversation before it, has already is not repeated.
    ///
    /// # Errors
    /// The first reference to an item that is not found.
    pub fn resolve_references(
        &mut self,
        item: impl Fn(&str) -> Option<Value>,
    ) -> Result<(), UnknownItem> {
        let Some(Value::Array(input)) = self.body.get_mut("input") else {
            return Ok(());
        };
        let sent = input.iter().filter(|item| reference(item).is_none());
        let sent = sent.chain(&self.history);
        let sent = sent.filter_map(|item| str_of(item.as_object()?, "id"));
        let mut known: HashSet<String> = sent.map(str::to_owned).collect();
        let mut items = Vec::with_capacity(input.len());
        let mut places = Places::default();
        for (index, entry) in std::mem::take(input).into_iter().enumerate() {
            let place = self.places.of(index);
            let Some(id) = reference(&entry) else {
                places.push(place);
                items.push(entry);
                continue;
            };
            // What stands in the conversation need not be stored.
            if known.contains(id) {
                continue;
            }
            let found = item(id).ok_or_else(|| UnknownItem::new(place, id))?;
            known.insert(id.to_owned());
            self.resolved.insert(items.len());
            places.push(place);
            items.push(found);
        }
        *input = items;
        self.places = places;
        Ok(())
    }
}

/// The id in an item that is a reference.
fn reference(item: &Value) -> Option<&str> {
    let item: &Object = item.as_object()?;
    let id = str_of(item, "id")?;
    (str_of(item, "type") == Some("item_reference")).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Capabilities, upstream_body};

    fn request(input: &Value) -> Request {
        Request::read(ModelApi::Responses, json!({"model": "m", "input": input})).unwrap()
    }

    fn refer(id: &str) -> Value {
        json!({"type": "item_reference", "id": id})
    }

    fn stored(id: &str) -> Option<Value> {
        match id {
            "rs_1" => Some(json!({"type": "reasoning", "id": id, "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm."}]})),
            "msg_1" => Some(json!({"type": "message", "id": id, "role": "assistant",
                "content": [{"type": "output_text", "text": "Four."}]})),
            "ws_1" => Some(json!({"type": "web_search_call", "id": id, "status": "completed"})),
            _ => None,
        }
    }

    #[test]
    fn a_reference_is_replaced_by_the_item_for_models_of_both_apis() {
        let asks = |text: &str| json!({"role": "user", "content": text});
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
        request.resolve_references(stored).unwrap();
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
        request.resolve_references(stored).unwrap();
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
        let found = |_: &str| Some(call.clone());
        request.resolve_references(found).unwrap();
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
        request.resolve_references(stored).unwrap();
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
        request.resolve_references(stored).unwrap();
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
        assert_eq!(wrong, UnknownItem::new(1, &long[1..]));
        request.check_references(|_| true).unwrap();
        let unknown = request.resolve_references(stored).unwrap_err();
        assert_eq!(unknown.field, "input[2].id");
        assert_eq!(unknown.to_string(), "Item with id 'rs_9' not found.");
        // What a client sends itself is held to the model's API.
        let mut chat = self::request(&json!([stored("ws_1").unwrap()]));
        chat.resolve_references(stored).unwrap();
        let error = upstream_body(&chat, &Capabilities::default(), "up").unwrap_err();
        assert_eq!(error.field, "input[0].type");
    }
}
