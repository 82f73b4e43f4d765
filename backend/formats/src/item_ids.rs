//! The ids of the items of responses.
//!
//! Each item of an answer has an id that no other item has, and that names its response. Models of the responses API give their items ids
//! of their own, which may repeat: `msg_0` in every answer. Such an id stands in front of the item's own: `msg_0_clq_7f_2` is item 2 of
//! `resp_7f`. A model that gets the item back gets its own id with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};

use super::{Object, fields::str_of};

/// Stands between a model's id and what makes it unique.
const MARK: &str = "_clq_";
/// What the ids of input items begin with, and those of items of a kind that no client calls by it.
const GIVEN: &str = "item";
const OTHER: &str = "out";
/// The type of an item of which a client was told parts alone.
const UNKNOWN: &str = "";
/// The characters of what follows `resp_` in the id of a response.
const SEED_CHARS: usize = 32;
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
            is_input: kind == GIVEN,
        })
    }
}

/// The id of the item of this index in the input of a response, which clients give none.
#[must_use]
pub fn input_item_id(response: &str, index: usize) -> String {
    let seed = response.trim_start_matches("resp_");
    format!("{GIVEN}_{seed}_{index}")
}

fn is_place(seed: &str, index: &str) -> bool {
    let is_seed = seed.len() == SEED_CHARS && seed.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_seed && !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())
}

/// Gives an item the ids that its model gave it. An item that has none loses ours, whose beginning models refuse.
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
        } else if field == "id" && [GIVEN, OTHER].contains(&kind_of(id)) {
            item.remove(field);
        }
    }
}

/// What an id of ours begins with; empty for another one.
fn kind_of(id: &str) -> &str {
    let kind = id.split('_').next().filter(|_| ItemPlace::of(id).is_some());
    kind.unwrap_or_default()
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

impl ItemIds {
    pub(super) fn new(seed: &str) -> Self {
        Self {
            seed: seed.to_owned(),
            told: BTreeMap::new(),
        }
    }

    /// The index of the item that an event is about which tells none: servers leave it out. `first` is that of the first item.
    pub(super) fn place(&self, event: &Object, is_new: bool, first: u64) -> u64 {
        let last = self.told.keys().next_back().copied();
        if is_new {
            return last.map_or(first, |last| last.saturating_add(1));
        }
        let theirs = theirs_of(event).unwrap_or_default();
        let named = self
            .told
            .iter()
            .rev()
            .find(|(_, told)| told.theirs == theirs);
        named.map(|(index, _)| *index).or(last).unwrap_or(first)
    }

    /// Puts the id of the item of this index into an event about it. The first event gives it.
    pub(super) fn name_event(&mut self, index: u64, event: &mut Object) {
        if !self.told.contains_key(&index) {
            let item = event.get("item").and_then(Value::as_object);
            let kind = item.and_then(|item| str_of(item, "type"));
            let theirs = theirs_of(event).unwrap_or_default();
            let told = self.told_as(theirs, kind.unwrap_or_default(), index);
            self.told.insert(index, told);
        }
        let Some(told) = self.told.get_mut(&index) else {
            return;
        };
        if let Some(Value::Object(item)) = event.get_mut("item") {
            if let (true, Some(kind)) = (told.kind.is_empty(), str_of(item, "type")) {
                kind.clone_into(&mut told.kind);
            }
            item.insert("id".to_owned(), json!(told.id));
        }
        if let Some(id) = event.get_mut("item_id") {
            *id = json!(told.id);
        }
    }

    /// Gives the items of a whole output the indexes and ids that they were told with: by what the model calls them, and in their order where it
    /// calls them otherwise. Those that were not told get the lowest free indexes from `first` on. An item that was told with another type is another one.
    pub(super) fn name_output(&self, first: u64, items: Vec<Value>) -> Vec<(u64, Value)> {
        let mut unmatched = Unmatched::new(&self.told);
        let by_id: Vec<_> = items
            .iter()
            .map(|item| unmatched.take_named(item))
            .collect();
        let pairs = items.into_iter().zip(by_id);
        let pairs: Vec<_> = pairs
            .map(|(item, index)| {
                let index = index.or_else(|| unmatched.take_next(&item));
                (item, index)
            })
            .collect();
        let mut free = (first..).filter(|index| !self.told.contains_key(index));
        let named = pairs.into_iter().filter_map(|(mut item, index)| {
            let index = index.or_else(|| free.next())?;
            if let Value::Object(item) = &mut item {
                let id = match self.told.get(&index) {
                    Some(told) => told.id.clone(),
                    None => {
                        let theirs = str_of(item, "id").unwrap_or_default();
                        let kind = str_of(item, "type").unwrap_or_default();
                        self.told_as(theirs, kind, index).id
                    }
                };
                item.insert("id".to_owned(), json!(id));
            }
            Some((index, item))
        });
        named.collect()
    }

    /// Whether the client was told of the item of this index.
    pub(super) fn has(&self, index: u64) -> bool {
        self.told.contains_key(&index)
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

/// The items that were told, and of which no item of a whole output is known to be one yet.
struct Unmatched<'a> {
    left: BTreeSet<u64>,
    named: HashMap<&'a str, ByKind<'a>>,
    others: ByKind<'a>,
}

/// The indexes of items by their types, in their order.
type ByKind<'a> = HashMap<&'a str, VecDeque<u64>>;

impl<'a> Unmatched<'a> {
    fn new(told: &'a BTreeMap<u64, Told>) -> Self {
        let mut named = HashMap::<_, ByKind<'_>>::new();
        let mut others = ByKind::new();
        for (index, Told { theirs, kind, .. }) in told {
            if !theirs.is_empty() {
                let named = named.entry(theirs.as_str()).or_default();
                named.entry(kind).or_default().push_back(*index);
            }
            others.entry(kind).or_default().push_back(*index);
        }
        Self {
            left: told.keys().copied().collect(),
            named,
            others,
        }
    }

    /// The index of the item that the model called the same.
    fn take_named(&mut self, item: &Value) -> Option<u64> {
        let named = self.named.get_mut(text_of(item, "id"))?;
        first_of(named, item, &mut self.left)
    }

    /// The index of the next item of the same type.
    fn take_next(&mut self, item: &Value) -> Option<u64> {
        first_of(&mut self.others, item, &mut self.left)
    }
}

/// Takes the first index that is left of the item's type, or of an item whose type was not told.
fn first_of(indexes: &mut ByKind<'_>, item: &Value, left: &mut BTreeSet<u64>) -> Option<u64> {
    for kind in [text_of(item, "type"), UNKNOWN] {
        let Some(indexes) = indexes.get_mut(kind) else {
            continue;
        };
        while let Some(index) = indexes.pop_front() {
            if left.remove(&index) {
                return Some(index);
            }
        }
    }
    None
}

fn text_of<'a>(item: &'a Value, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What a model calls the item that an event is about.
fn theirs_of(event: &Object) -> Option<&str> {
    let item = event.get("item").and_then(Value::as_object);
    let id = item.and_then(|item| str_of(item, "id"));
    id.or_else(|| str_of(event, "item_id"))
}

/// What the id of an item begins with that its model gave none.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        _ => OTHER,
    }
}

#[cfg(test)]
#[path = "item_ids_tests.rs"]
mod tests;
