//! Items of stored responses that a request refers to by their ids in place of sending them again.

use std::collections::HashSet;

use serde_json::Value;

use super::{ModelApi, Object, Request, fields::str_of, items::Places};

/// The longest id that an error repeats, in characters.
const MAX_ID_CHARS: usize = 100;

/// A reference to an id that no item has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Item with id '{id}' not found.")]
pub struct UnknownItem {
    /// The path of the id, such as `input[3].id`.
    pub field: String,
    /// The id, up to its 100th character.
    pub id: String,
}

/// What an id refers to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Referred<'a> {
    /// No item.
    Nothing,
    /// An item of the conversation that the request goes on from.
    Before,
    /// This item.
    Item(&'a Value),
}

impl Request {
    /// The ids that the input refers to, each once.
    #[must_use]
    pub fn references(&self) -> Vec<&str> {
        let input = match self.api {
            ModelApi::Responses => self.body.get("input").and_then(Value::as_array),
            ModelApi::Chat => None,
        };
        let mut known = HashSet::new();
        let ids = input.into_iter().flatten().filter_map(reference);
        ids.filter(|id| known.insert(*id)).collect()
    }

    /// Replaces each reference by the item of its id. An item that the input, or the conversation before it, has already is not repeated.
    ///
    /// # Errors
    /// The first reference to an id that no item has.
    pub fn resolve_references<'a>(
        &mut self,
        find: impl Fn(&str) -> Referred<'a>,
    ) -> Result<(), UnknownItem> {
        let Some(Value::Array(input)) = self.body.get_mut("input") else {
            return Ok(());
        };
        let sent = input.iter().chain(&self.history);
        let sent = sent.filter(|item| reference(item).is_none());
        let mut known: HashSet<String> = sent.filter_map(id_of).map(str::to_owned).collect();
        let mut items = Vec::with_capacity(input.len());
        let mut places = Places::default();
        for (index, entry) in std::mem::take(input).into_iter().enumerate() {
            let place = self.places.of(index);
            let item = match reference(&entry) {
                None => entry,
                Some(id) if known.contains(id) => continue,
                Some(id) => match find(id) {
                    Referred::Before => continue,
                    Referred::Item(item) => {
                        known.insert(id.to_owned());
                        self.resolved.insert(items.len());
                        item.clone()
                    }
                    Referred::Nothing => {
                        return Err(UnknownItem {
                            field: format!("input[{place}].id"),
                            id: id.chars().take(MAX_ID_CHARS).collect(),
                        });
                    }
                },
            };
            places.push(place);
            items.push(item);
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

/// The item's own id.
fn id_of(item: &Value) -> Option<&str> {
    let item = item.as_object()?;
    // It has that of the call.
    let is_own = str_of(item, "type") != Some("local_shell_call_output");
    str_of(item, "id").filter(|_| is_own)
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
