//! What placeholders stand for, bounded in size, and metered: whatever walks through a list or a map, or works through a
//! text, counts against one allowance of the whole character.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use colloquy_base::invalid::InvalidField;
use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters, tests,
    value::{Enumerator, Object, ObjectRepr, StringInput, ValueKind},
};
use serde_json::{Map, Value as Json};

use super::PREFIX;
use crate::Character;

/// What is done with values while a character's templates are filled in, in visits of one entry or 32 bytes of text.
const MAX_WORK: u64 = 300_000;
/// How much text is one visit, in bytes.
const TEXT_BYTES: usize = 32;
/// Values in a character's parameters and the request's, counting those inside of others.
const MAX_VALUES: usize = 4_000;
/// Lists and objects inside each other.
const MAX_DEPTH: usize = 16;
/// All text of the values, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The longest text, in bytes.
const MAX_STRING_BYTES: usize = 32 * 1024;
/// The most characters that `trim` may be told to remove.
const MAX_TRIMMED: usize = 32;

/// The allowance.
#[derive(Debug, Default)]
pub(super) struct Meter(AtomicU64);

impl Meter {
    /// Whether there is still work allowed after this much of it.
    fn charge(&self, work: usize) -> bool {
        self.0.fetch_add(work as u64, Ordering::Relaxed) + (work as u64) < MAX_WORK
    }

    /// Whether more was asked for than is allowed. What came out then is not the template's result.
    pub(super) fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MAX_WORK
    }

    fn spend(&self, work: usize) -> Result<(), Error> {
        match self.charge(work) {
            true => Ok(()),
            false => Err(Error::from(ErrorKind::OutOfFuel)),
        }
    }

    fn charge_text(&self, text: &str) -> Result<(), Error> {
        self.spend(text_cost(text))
    }
}

/// What a character's placeholders stand for: its parameters, and those of the request, which win. The character's own prefix of the
/// conversation is no parameter of the request.
pub(super) fn known(
    character: &Character,
    params: &Map<String, Json>,
) -> Result<Map<String, Json>, InvalidField> {
    let mut known = match serde_json::to_value(&character.parameters) {
        Ok(Json::Object(parameters)) => parameters,
        // They are an object, and nothing in them cannot be JSON.
        _ => Map::new(),
    };
    // Lists that are empty are left out of what is stored; a loop over them is no mistake.
    for list in ["greetings", "easy_questions", "difficult_questions"] {
        known.entry(list).or_insert_with(|| Json::Array(Vec::new()));
    }
    // Documents reach the model as passages, not through the template.
    known.remove("documents");
    let mut size = Size::default();
    for (name, value) in &known {
        size.add("parameters", name, value)?;
    }
    for (name, value) in params {
        size.add("character_params", name, value)?;
    }
    for (name, value) in params {
        let is_own_prefix = name == PREFIX && character.parameters.conversation_prefix.is_some();
        if !is_own_prefix {
            known.insert(name.clone(), value.clone());
        }
    }
    Ok(known)
}

/// How much the values are.
#[derive(Debug, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, field: &str, name: &str, value: &Json) -> Result<(), InvalidField> {
        self.bytes += name.len();
        self.measure(value, 0).map_err(|message| {
            let name: String = name.chars().take(100).collect();
            InvalidField::new(format!("{field}.{name}"), message)
        })
    }

    fn measure(&mut self, value: &Json, depth: usize) -> Result<(), String> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(format!("the parameters have at most {MAX_VALUES} values"));
        }
        if depth > MAX_DEPTH {
            return Err(format!(
                "at most {MAX_DEPTH} lists and objects inside each other"
            ));
        }
        match value {
            Json::String(text) => {
                if text.len() > MAX_STRING_BYTES {
                    return Err(format!(
                        "a text has at most {} KiB",
                        MAX_STRING_BYTES / 1024
                    ));
                }
                self.bytes += text.len();
            }
            Json::Array(entries) => {
                for entry in entries {
                    self.measure(entry, depth + 1)?;
                }
            }
            Json::Object(entries) => {
                for (key, value) in entries {
                    self.bytes += key.len();
                    self.measure(value, depth + 1)?;
                }
            }
            _ => {}
        }
        match self.bytes > MAX_TEXT_BYTES {
            true => Err("the parameters have at most 1 MiB of text together".to_owned()),
            false => Ok(()),
        }
    }
}

/// The values, as the engine has them.
pub(super) fn root(known: &Map<String, Json>, meter: &Arc<Meter>) -> Value {
    let pairs = known
        .iter()
        .map(|(key, value)| (key.clone(), convert(value, meter).0));
    Value::from_pairs(pairs)
}

/// A value and what it costs to look through it.
fn convert(value: &Json, meter: &Arc<Meter>) -> (Value, usize) {
    let mut cost = 1;
    let mut inside = |value: &Json| {
        let (value, more) = convert(value, meter);
        cost += more;
        value
    };
    let (inner, repr) = match value {
        Json::Array(entries) => {
            let entries: Vec<Value> = entries.iter().map(inside).collect();
            (Value::from(entries), ObjectRepr::Seq)
        }
        Json::Object(entries) => {
            let pairs = entries
                .iter()
                .map(|(key, value)| (key.as_str(), inside(value)));
            (Value::from_pairs(pairs), ObjectRepr::Map)
        }
        Json::Null => return (Value::from(()), cost),
        Json::Bool(flag) => return (Value::from(*flag), cost),
        Json::Number(number) => {
            let number = match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Value::from(integer),
                (None, Some(float)) => Value::from(float),
                (None, None) => Value::from(number.to_string()),
            };
            return (number, cost);
        }
        Json::String(text) => return (Value::from(text.as_str()), text_cost(text)),
    };
    let meter = Arc::clone(meter);
    let object = Metered {
        inner,
        repr,
        cost,
        meter,
    };
    (Value::from_object(object), cost)
}

fn text_cost(text: &str) -> usize {
    1 + text.len() / TEXT_BYTES
}

/// A list or a map. Once the allowance is used up it is empty, so that whatever goes through it ends at once; the
/// render fails in the end.
#[derive(Debug)]
struct Metered {
    inner: Value,
    repr: ObjectRepr,
    /// What it costs to look through all of it.
    cost: usize,
    meter: Arc<Meter>,
}

impl Object for Metered {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.repr
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = self.inner.get_item(key).ok()?;
        // Whoever asks for a text may go through it.
        let cost = value.as_str().map_or(1, text_cost);
        (self.meter.charge(cost) && !value.is_undefined()).then_some(value)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let length = self.inner.len().unwrap_or(0);
        if self.repr == ObjectRepr::Seq {
            return match self.meter.charge(1) {
                true => Enumerator::Seq(length),
                false => Enumerator::Empty,
            };
        }
        match (self.meter.charge(length), self.inner.try_iter()) {
            (true, Ok(keys)) => Enumerator::Values(keys.collect()),
            _ => Enumerator::Empty,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.inner.len()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A formatter that fails would make the engine panic.
        match self.meter.charge(self.cost) {
            true => fmt::Display::fmt(&self.inner, f),
            false => Ok(()),
        }
    }
}

/// Adds the filters and tests of the language. A filter that works through a text counts against the allowance.
pub(super) fn add_functions(environment: &mut Environment<'_>, meter: &Arc<Meter>) {
    for (name, filter) in [
        ("lower", filters::lower as fn(StringInput<'_>) -> Value),
        ("upper", filters::upper),
        ("capitalize", filters::capitalize),
        ("title", title),
    ] {
        let meter = Arc::clone(meter);
        environment.add_filter(name, move |state: &State, value: &Value| {
            text_of(state, value, &meter).map(filter)
        });
    }
    let of_trim = Arc::clone(meter);
    environment.add_filter(
        "trim",
        move |state: &State, value: &Value, removed: Option<Cow<'_, str>>| {
            let text = text_of(state, value, &of_trim)?;
            let count = removed
                .as_ref()
                .map_or(0, |removed| removed.chars().count());
            if count > MAX_TRIMMED {
                let message = format!("trim removes at most {MAX_TRIMMED} characters");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
            of_trim.spend(count * text_cost(text.as_str()))?;
            Ok(filters::trim(text, removed))
        },
    );
    let of_length = Arc::clone(meter);
    environment.add_filter("length", move |value: &Value| {
        of_length.charge_text(value.as_str().unwrap_or_default())?;
        filters::length(value)
    });
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
}

fn title(text: StringInput<'_>) -> Value {
    Value::from(filters::title(Cow::Borrowed(text.as_str())))
}

/// The text that a filter works on.
fn text_of<'v>(
    state: &State<'_, '_>,
    value: &'v Value,
    meter: &Meter,
) -> Result<StringInput<'v>, Error> {
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Map) {
        let message = format!("the filter is for text, not for a {}", value.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let text = StringInput::new(state, value)?;
    meter.charge_text(text.as_str())?;
    Ok(text)
}
