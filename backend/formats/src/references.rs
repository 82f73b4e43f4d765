//! Items of stored responses that a request refers to by their ids in place of sending them again.
//!
//! Models of the responses API choose the ids of their items, and some choose one twice. Such a reference is to the item of the response
//! whose input ends where the reference stands.

use std::{
    collections::{HashMap, HashSet},
    ptr,
};

use serde_json::Value;

use super::{
    ModelApi, Object, Request,
    fields::str_of,
    items::{self, Places},
    messages, retrieval,
};

/// The longest id that an error repeats, in characters.
const MAX_ID_CHARS: usize = 100;

/// A reference that stands for no item. The id is told up to its 100th character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnresolvedItem {
    /// No item has the id.
    #[error("Item with id '{id}' not found.")]
    Unknown {
        /// The path of the id, such as `input[3].id`.
        field: String,
        /// The id.
        id: String,
    },
    /// Several items have the id, and none of them belongs to the conversation before the reference.
    #[error(
        "Several items have the id '{id}'; send the item itself, or go on with previous_response_id."
    )]
    Ambiguous {
        /// The path of the id, such as `input[3].id`.
        field: String,
        /// The id.
        id: String,
    },
}

impl UnresolvedItem {
    fn unknown(place: usize, id: &str) -> Self {
        Self::Unknown {
            field: path(place),
            id: shortened(id),
        }
    }

    fn ambiguous(place: usize, id: &str) -> Self {
        Self::Ambiguous {
            field: path(place),
            id: shortened(id),
        }
    }
}

fn path(place: usize) -> String {
    format!("input[{place}].id")
}

fn shortened(id: &str) -> String {
    id.chars().take(MAX_ID_CHARS).collect()
}

/// The stored items of an id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'a> {
    /// No item has the id.
    Nothing,
    /// One item has it.
    One(&'a Value),
    /// Items of several responses have it: the one that belongs to the conversation before the reference, if there is one.
    Several(Option<&'a Value>),
}

/// How much of the conversation before a reference is known to be that of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// All of it.
    Whole,
    /// Its end.
    Part,
}

impl<'a> Found<'a> {
    /// Items of several responses have the id, and these fit the conversation before the reference, newest first: the newest that fits all of it,
    /// or one of those that fit its end if they say the same.
    #[must_use]
    pub fn several(fitting: &[(Fit, &'a Value)]) -> Self {
        let whole = fitting.iter().find(|(fit, _)| *fit == Fit::Whole);
        let is_one = |first: &Value| fitting.iter().all(|(_, item)| is_same(first, item));
        let one = fitting.first().filter(|(_, first)| is_one(first));
        Self::Several(whole.or(one).map(|(_, item)| *item))
    }
}

/// The conversation before a reference.
#[derive(Debug, Clone, Copy)]
pub struct Before<'r> {
    history: &'r [Value],
    input: &'r [Value],
    steps: &'r [Step<'r>],
}

/// What becomes of an entry of the input.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Keep,
    Drop,
    Put(&'a Value),
}

impl Before<'_> {
    /// Returns how a response fits this conversation: an item of its output was put directly before the reference, or what stands before the
    /// response's output here and `asked`, its own input, end with the same items, as far as both reach. `output` returns the output item of
    /// an id.
    pub fn fit<'o>(
        &self,
        asked: &[Value],
        output: impl Fn(&str) -> Option<&'o Value>,
    ) -> Option<Fit> {
        let own = |item: &Value| id_of(item).and_then(&output);
        let was_put = |item: &Value| own(item).is_some_and(|own| ptr::eq(own, item));
        if self.backwards().next().is_some_and(was_put) {
            return Some(Fit::Whole);
        }
        let is_own = |item: &&Value| own(item).is_some_and(|own| is_same(own, item));
        let before = self.backwards().skip_while(is_own);
        let mut before = before.filter(|item| !retrieval::is_visibility_item(item));
        let mut asked = asked.iter().rev();
        let mut same = 0;
        loop {
            match (before.next(), asked.next()) {
                (Some(item), Some(asked)) if is_same(asked, item) => same += 1,
                (Some(_), Some(_)) => return None,
                (None, None) if same > 0 => return Some(Fit::Whole),
                _ => return (same > 0).then_some(Fit::Part),
            }
        }
    }

    /// The items, last first.
    fn backwards(&self) -> impl Iterator<Item = &Value> {
        let entries = self.input.iter().zip(self.steps).rev();
        let items = entries.filter_map(|(item, step)| match step {
            Step::Keep => Some(item),
            Step::Drop => None,
            Step::Put(item) => Some(*item),
        });
        items.chain(self.history.iter().rev())
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
    pub fn check_references(&self, is_id: impl Fn(&str) -> bool) -> Result<(), UnresolvedItem> {
        match self.refers().find(|(_, id)| !is_id(id)) {
            Some((index, id)) => Err(UnresolvedItem::unknown(self.places.of(index), id)),
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
    /// The first reference that stands for no item.
    pub fn resolve_references<'a>(
        &mut self,
        find: impl Fn(&str, &Before<'_>) -> Found<'a>,
    ) -> Result<(), UnresolvedItem> {
        let steps = self.steps(find)?;
        let Some(Value::Array(input)) = self.body.get_mut("input") else {
            return Ok(());
        };
        let mut items = Vec::with_capacity(input.len());
        let mut places = Places::default();
        let entries = std::mem::take(input).into_iter().zip(steps);
        for (index, (entry, step)) in entries.enumerate() {
            let item = match step {
                Step::Keep => entry,
                Step::Drop => continue,
                Step::Put(item) => {
                    self.resolved.insert(items.len());
                    item.clone()
                }
            };
            places.push(self.places.of(index));
            items.push(item);
        }
        *input = items;
        self.places = places;
        Ok(())
    }

    /// What becomes of each entry of the input.
    fn steps<'a>(
        &self,
        find: impl Fn(&str, &Before<'_>) -> Found<'a>,
    ) -> Result<Vec<Step<'a>>, UnresolvedItem> {
        let input = self.body.get("input").and_then(Value::as_array);
        let input = input.map_or(&[][..], Vec::as_slice);
        let mut sent: HashMap<&str, Vec<&Value>> = HashMap::new();
        for item in input.iter().chain(&self.history) {
            if let (None, Some(id)) = (reference(item), id_of(item)) {
                sent.entry(id).or_default().push(item);
            }
        }
        let mut put: HashMap<&str, Vec<&Value>> = HashMap::new();
        let mut steps: Vec<Step<'a>> = Vec::with_capacity(input.len());
        for (index, entry) in input.iter().enumerate() {
            let Some(id) = reference(entry) else {
                steps.push(Step::Keep);
                continue;
            };
            let before = Before {
                history: &self.history,
                input: &input[..index],
                steps: &steps,
            };
            let (sent, before_put) = (sent.get(id), put.get(id));
            let is_known = sent.is_some() || before_put.is_some();
            let stands = |item: &Value| {
                before_put.is_some_and(|items| items.iter().any(|it| ptr::eq(*it, item)))
                    || sent.is_some_and(|items| items.iter().any(|it| is_same(it, item)))
            };
            let step = match find(id, &before) {
                // The item of the same id that stands there may be another response's.
                Found::Several(Some(item)) if !stands(item) => Step::Put(item),
                // What stands in the conversation need not be stored.
                _ if is_known => Step::Drop,
                Found::One(item) | Found::Several(Some(item)) => Step::Put(item),
                Found::Nothing => return Err(UnresolvedItem::unknown(self.places.of(index), id)),
                Found::Several(None) => {
                    return Err(UnresolvedItem::ambiguous(self.places.of(index), id));
                }
            };
            if let Step::Put(item) = step {
                put.entry(id).or_default().push(item);
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

/// The id in an item that is a reference.
fn reference(item: &Value) -> Option<&str> {
    let item: &Object = item.as_object()?;
    let id = str_of(item, "id")?;
    (str_of(item, "type") == Some("item_reference")).then_some(id)
}

fn id_of(item: &Value) -> Option<&str> {
    str_of(item.as_object()?, "id")
}

/// Returns true if two items say the same, whatever their ids and states. A message need not tell its type, and may have its text as a
/// string.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            has_fields(one, other) && has_fields(other, one)
        }
        _ => one == other,
    }
}

/// Returns true if an item has the fields of another one.
fn has_fields(item: &Object, other: &Object) -> bool {
    let are_messages = items::is_message(item) && items::is_message(other);
    let mut told = other.iter().filter(|(_, value)| !value.is_null());
    told.all(|(name, value)| match name.as_str() {
        "id" | "status" => true,
        "type" if are_messages => true,
        "content" if are_messages => item
            .get(name)
            .is_some_and(|content| is_same_content(content, value)),
        _ => item.get(name) == Some(value),
    })
}

fn is_same_content(one: &Value, other: &Value) -> bool {
    one == other || text_alone(one).is_some_and(|text| text_alone(other) == Some(text))
}

/// The text of a content that is nothing else.
fn text_alone(content: &Value) -> Option<&str> {
    let is_alone = content.as_array().is_none_or(|parts| parts.len() == 1);
    let text = messages::texts(Some(content)).into_iter().next();
    text.filter(|_| is_alone)
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
