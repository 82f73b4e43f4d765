//! The ids of the items of responses.
//!
//! Each item of an answer has an id that no other item has, and that names its response. Models of the responses API give their items ids
//! of their own, which may repeat: `msg_0` in every answer. Such an id stands in front of the item's own: `msg_0_clq_7f_2` is item 2 of
//! `resp_7f`. A model that gets the item back gets its own id with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Object, fields::str_of};

/// Stands between a model's id and what makes it unique.
const MARK: &str = "_clq_";
/// The fields of an item that have the id of an item.
const FIELDS: [&str; 2] = ["id", "approval_request_id"];

/// Where the item of an id is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemPlace {
    /// The id of the response.
    pub response: String,
    /// True if it is an item of the response's input, false if it is one of its output.
    pub is_input: bool,
}

impl ItemPlace {
    /// Reads an id that this service gave. `None` for another one.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let (head, index) = id.rsplit_once('_')?;
        let (kind, seed) = head.rsplit_once('_')?;
        is_place(seed, index).then(|| Self {
            response: format!("resp_{seed}"),
            is_input: kind == "item",
        })
    }
}

/// The id of the item of this index in the input of a response, which clients give none.
#[must_use]
pub fn input_item_id(response: &str, index: usize) -> String {
    let seed = response.trim_start_matches("resp_");
    format!("item_{seed}_{index}")
}

fn is_place(seed: &str, index: &str) -> bool {
    let is_seed = !seed.is_empty() && seed.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_seed && !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())
}

/// Gives an item the ids that its model gave it.
pub(super) fn restore(item: &mut Value) {
    let Value::Object(item) = item else { return };
    for field in FIELDS {
        let Some(Value::String(id)) = item.get_mut(field) else {
            continue;
        };
        let theirs = id.rsplit_once(MARK).and_then(|(theirs, place)| {
            let (seed, index) = place.rsplit_once('_')?;
            is_place(seed, index).then_some(theirs.len())
        });
        if let Some(length) = theirs {
            id.truncate(length);
        }
    }
}

/// The ids of the items of an answer, by what its model calls them.
#[derive(Debug)]
pub(super) struct ItemIds {
    seed: String,
    told: BTreeMap<u64, Told>,
}

/// An item that the client was told of.
#[derive(Debug)]
struct Told {
    theirs: String,
    kind: String,
    id: String,
}

impl Told {
    fn is(&self, item: &Object) -> bool {
        Some(self.theirs.as_str()) == str_of(item, "id")
            && Some(self.kind.as_str()) == str_of(item, "type")
    }
}

impl ItemIds {
    pub(super) fn new(seed: &str) -> Self {
        Self {
            seed: seed.to_owned(),
            told: BTreeMap::new(),
        }
    }

    /// Puts the id of the item of this index into an event about it. The first event gives it.
    pub(super) fn name_event(&mut self, index: u64, event: &mut Object) {
        let item = event.get("item").and_then(Value::as_object);
        let theirs = item.and_then(|item| str_of(item, "id"));
        let theirs = theirs.or_else(|| str_of(event, "item_id"));
        let kind = item.and_then(|item| str_of(item, "type"));
        let (theirs, kind) = (theirs.unwrap_or_default(), kind.unwrap_or_default());
        if !self.told.contains_key(&index) {
            let told = self.told_as(theirs, kind, index);
            self.told.insert(index, told);
        }
        let Some(told) = self.told.get(&index) else {
            return;
        };
        if let Some(Value::Object(item)) = event.get_mut("item") {
            item.insert("id".to_owned(), json!(told.id));
        }
        if let Some(id) = event.get_mut("item_id") {
            *id = json!(told.id);
        }
    }

    /// Gives the items of a whole output, the first of which has the index `first`, the ids that they were told with.
    pub(super) fn name_output(&mut self, first: u64, items: &mut [Value]) {
        let mut told = std::mem::take(&mut self.told);
        let mut next = first + items.len() as u64;
        next = next.max(told.keys().next_back().map_or(0, |last| last + 1));
        let is_taken: Vec<u64> = told.keys().copied().collect();
        let known: Vec<Option<Told>> = (first..)
            .zip(items.iter())
            .map(|(index, item)| {
                let item = item.as_object()?;
                let place = match told.get(&index).is_some_and(|told| told.is(item)) {
                    true => Some(index),
                    false => told.iter().find(|(_, told)| told.is(item)).map(|it| *it.0),
                };
                told.remove(&place?)
            })
            .collect();
        for ((index, item), known) in (first..).zip(items).zip(known) {
            let Value::Object(item) = item else { continue };
            // A model may call an item otherwise at its end.
            let named = known.or_else(|| told.remove(&index)).unwrap_or_else(|| {
                let theirs = str_of(item, "id").unwrap_or_default();
                let kind = str_of(item, "type").unwrap_or_default();
                let number = match is_taken.binary_search(&index) {
                    Err(_) => index,
                    Ok(_) => {
                        next += 1;
                        next - 1
                    }
                };
                self.told_as(theirs, kind, number)
            });
            item.insert("id".to_owned(), json!(named.id));
        }
    }

    fn told_as(&self, theirs: &str, kind: &str, number: u64) -> Told {
        let seed = &self.seed;
        let id = match theirs {
            "" => format!("{}_{seed}_{number}", prefix(kind)),
            theirs => format!("{theirs}{MARK}{seed}_{number}"),
        };
        Told {
            theirs: theirs.to_owned(),
            kind: kind.to_owned(),
            id,
        }
    }
}

/// What the id of an item begins with that its model gave none.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        _ => "out",
    }
}

#[cfg(test)]
#[path = "item_ids_tests.rs"]
mod tests;
