//! The input items of a response, checked, and what is done to items that come back from earlier answers.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    FormatError, Object,
    fields::{entries, required_str, str_of, text_of},
    retrieval, types,
};

/// The roles of the public API.
const ROLES: [&str; 4] = ["developer", "system", "user", "assistant"];

/// The index that each item of the input has in what the client sent, which errors name: some items are taken out.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Vec<usize>);

impl Places {
    /// Returns the client's index of the item that is at `index` now.
    pub(super) fn of(&self, index: usize) -> usize {
        self.0.get(index).copied().unwrap_or(index)
    }

    /// Returns the path of the item that is at `index` now, such as `input[3]`.
    pub(super) fn path(&self, index: usize) -> String {
        format!("input[{}]", self.of(index))
    }

    /// Adds the client's index of the next item.
    pub(super) fn push(&mut self, place: usize) {
        self.0.push(place);
    }
}

/// Checks the field `input`, gives references their type, and takes out the items that tell a client about retrieval, and references to
/// them, which have the same ids: they come back when a client sends an earlier output again, and are nothing for a model. Returns the
/// places of the items that are left.
pub(super) fn check(input: Option<&mut Value>) -> Result<Places, FormatError> {
    let items = match input {
        Some(Value::String(_)) => return Ok(Places::default()),
        Some(Value::Array(items)) => items,
        None | Some(Value::Null) => return Err(FormatError::new("input", "is required")),
        Some(_) => return Err(FormatError::new("input", "must be a string or an array")),
    };
    for (index, item) in items.iter_mut().enumerate() {
        name_reference(item);
        check_item(item).map_err(|error| error.within(format_args!("input[{index}]")))?;
    }
    let mut places = Places::default();
    let mut place = 0..;
    items.retain(|item| {
        let place = place.next().unwrap_or_default();
        let is_kept = !retrieval::is_visibility_item(item);
        if is_kept {
            places.push(place);
        }
        is_kept
    });
    match items.is_empty() {
        true => Err(FormatError::new("input", "must not be empty")),
        false => Ok(places),
    }
}

/// Writes the type of a reference that has an id alone: it may be left out.
fn name_reference(item: &mut Value) {
    let Value::Object(item) = item else {
        return;
    };
    let is_untyped = item.get("type").is_none_or(Value::is_null);
    let has_id = item.get("id").is_some_and(Value::is_string);
    if is_untyped && has_id && item.keys().all(|field| field == "id" || field == "type") {
        item.insert("type".to_owned(), json!("item_reference"));
    }
}

fn check_item(item: &Value) -> Result<(), FormatError> {
    let item = match item {
        Value::Object(message) if is_message(message) => message,
        item => return types::ITEM.check(item),
    };
    let role = required_str(item, "role")?;
    if !ROLES.contains(&role) {
        return Err(FormatError::new(
            "role",
            "must be developer, system, user or assistant",
        ));
    }
    match item.get("content") {
        None | Some(Value::Null) => Err(FormatError::new("content", "is required")),
        Some(content) => {
            let checked = types::ITEM_CONTENT.check(content);
            checked.map_err(|error| error.within("content"))
        }
    }
}

/// Whether an item is a message: it says so, or it has a role and no type.
pub(super) fn is_message(item: &Object) -> bool {
    match item.get("type") {
        None | Some(Value::Null) => item.contains_key("role"),
        Some(kind) => kind == "message",
    }
}

/// The field `input` as items.
pub(super) fn of_input(input: Option<&Value>) -> Cow<'_, [Value]> {
    match input {
        Some(Value::String(text)) => Cow::Owned(vec![json!({
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        })]),
        Some(Value::Array(items)) => Cow::Borrowed(items),
        _ => Cow::Owned(Vec::new()),
    }
}

/// Whether a model that keeps nothing can take this item. Thinking that is only a reference to what a model has kept is
/// none: with `store: false` it would be refused.
pub(super) fn stands_alone(item: &Value) -> bool {
    let Value::Object(item) = item else {
        return true;
    };
    str_of(item, "type") != Some("reasoning")
        || text_of(item, "encrypted_content").is_some()
        || !entries(item, "content").is_empty()
}
