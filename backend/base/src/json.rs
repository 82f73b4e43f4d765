//! JSON from outside, with a bound on the memory that it becomes.
//!
//! Seven bytes such as `{"":0},` become an object of some 700, so that a body of many small values takes a hundred times
//! its size. What a text will become is estimated in one pass before anything is parsed, at a small part of what parsing
//! costs, and a text that would become too much for its size is refused. Depth is bounded by `serde_json`, at 128.

use std::fmt::{self, Display};

use memchr::memchr2;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::invalid::InvalidField;

/// Any text may become this much, in bytes: what ordinary requests full of small values need.
const FREE_BYTES: usize = 16 * 1024 * 1024;
/// And this many times its size besides.
const TIMES: usize = 4;

/// An entry of an array, with what is over while the array grows.
const ENTRY_BYTES: usize = 48;
/// What the first entry of an array makes room for.
const FIRST_ENTRIES: usize = 4;
/// A node of an object's tree, with what an allocator adds.
const NODE_BYTES: usize = 704;
/// The entries of an object's first node.
const FIRST_NODE: usize = 11;
/// The fewest entries of every further one.
const FURTHER_NODE: usize = 5;
/// What a text takes besides its bytes.
const TEXT_BYTES: usize = 16;

/// Why a text was not parsed.
#[derive(Debug)]
pub enum JsonError {
    /// It would become too much for its size.
    TooHeavy {
        /// The field of the outermost object with the largest part in it.
        field: Option<String>,
    },
    /// It is not JSON.
    Malformed(serde_json::Error),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooHeavy { .. } => f.write_str("too many small values for its size"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JsonError {}

impl From<JsonError> for InvalidField {
    /// Names `body`, or the field that takes too much.
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Malformed(error) => Self::new("body", format!("body is not JSON: {error}")),
            JsonError::TooHeavy { ref field } => {
                let field = field.clone().unwrap_or_else(|| "body".to_owned());
                let message = format!("{field} is not taken: {error}");
                Self::new(field, message)
            }
        }
    }
}

/// Parses a text from outside as what it has to be.
///
/// # Errors
/// When it is not JSON, is not what it has to be, or would become too much for its size. Names the field, such as
/// `parameters.greetings[0]`, or `body`.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, InvalidField> {
    check(text)?;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (field, message) = locate(&error);
        InvalidField::new(field.unwrap_or_else(|| "body".to_owned()), message)
    })?;
    deserializer
        .end()
        .map_err(|error| InvalidField::new("body", error.to_string()))?;
    Ok(value)
}

/// The field that an error is about, `None` for the whole, and the message. A missing or unknown field is known to
/// serde's message only.
pub fn locate<E: Display>(error: &serde_path_to_error::Error<E>) -> (Option<String>, String) {
    let message = error.inner().to_string();
    let path = error.path().to_string();
    // A key may be empty, too.
    let path = (path != "." && !path.is_empty()).then_some(path);
    let named = ["missing field `", "unknown field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split_once('`'))
        .map(|(name, _)| name);
    let field = match (path, named) {
        (Some(path), Some(name)) if path == name || path.ends_with(&format!(".{name}")) => {
            Some(path)
        }
        (Some(path), Some(name)) => Some(format!("{path}.{name}")),
        (path, name) => path.or(name.map(str::to_owned)),
    };
    (field, message)
}

/// Parses a text from outside.
///
/// # Errors
/// When it is not JSON, or would become too much for its size.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    check(text)?;
    serde_json::from_slice(text).map_err(JsonError::Malformed)
}

/// Refuses a text that would become too much for its size.
///
/// # Errors
/// [`JsonError::TooHeavy`].
pub fn check(text: &[u8]) -> Result<(), JsonError> {
    let weight = weigh(text);
    if weight.bytes <= most(text) {
        return Ok(());
    }
    let field = weight.field.and_then(|(from, to)| text.get(from..to));
    Err(JsonError::TooHeavy {
        field: field.map(|name| String::from_utf8_lossy(&name[..name.len().min(100)]).into_owned()),
    })
}

/// The most that a text may become.
fn most(text: &[u8]) -> usize {
    FREE_BYTES.saturating_add(TIMES.saturating_mul(text.len()))
}

/// What a text becomes, or nothing when it will be refused.
pub fn taken(text: &[u8]) -> usize {
    let Weight { bytes, .. } = weigh(text);
    if bytes <= most(text) { bytes } else { 0 }
}

/// What a text becomes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// The most memory, in bytes, that it takes as a [`Value`].
    pub bytes: usize,
    /// Where the name of the outermost object's heaviest field stands.
    field: Option<(usize, usize)>,
}

/// How deep arrays and objects go: the parser refuses what is deeper, so nothing beyond becomes anything.
const DEPTH: usize = 128;

/// An array or object that is open.
struct Level {
    is_array: bool,
    entries: usize,
}

/// Estimates what a text becomes, up to where that is too much or too deep. A text that is not JSON is estimated, too.
pub fn weigh(text: &[u8]) -> Weight {
    let most = most(text);
    let mut bytes = 0_usize;
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    let mut last_text = (0, 0);
    // The outermost field that is being read, and what there was before it; the heaviest one before.
    let mut field: Option<((usize, usize), usize)> = None;
    let mut heaviest: Option<((usize, usize), usize)> = None;
    let close_field = |field: &mut Option<((usize, usize), usize)>,
                       heaviest: &mut Option<((usize, usize), usize)>,
                       bytes: usize| {
        if let Some((name, before)) = field.take() {
            let weight = bytes - before;
            if heaviest.is_none_or(|(_, most)| weight > most) {
                *heaviest = Some((name, weight));
            }
        }
    };
    while let Some(&byte) = text
        .get(at)
        .filter(|_| bytes <= most && levels.len() <= DEPTH)
    {
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | b',' => {}
            b'}' | b']' => {
                levels.pop();
                if levels.is_empty() {
                    close_field(&mut field, &mut heaviest, bytes);
                }
            }
            b':' => {
                let outermost = levels.len() == 1;
                if let Some(object) = levels.last_mut() {
                    object.entries += 1;
                    bytes += grown_object(object.entries);
                }
                if outermost {
                    close_field(&mut field, &mut heaviest, bytes);
                    field = Some((last_text, bytes));
                }
            }
            b'"' => {
                bytes += entry(levels.last_mut());
                let begin = at;
                at = end_of_text(text, at);
                last_text = (begin, at.saturating_sub(1).max(begin));
                let length = last_text.1 - begin;
                if length > 0 {
                    bytes += length + length / 8 + TEXT_BYTES;
                }
            }
            b'[' | b'{' => {
                bytes += entry(levels.last_mut());
                levels.push(Level {
                    is_array: byte == b'[',
                    entries: 0,
                });
            }
            _ => {
                bytes += entry(levels.last_mut());
                let rest = &text[at..];
                let ends = |byte: &u8| {
                    matches!(
                        byte,
                        b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t' | b':' | b'"'
                    )
                };
                at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
    }
    close_field(&mut field, &mut heaviest, bytes);
    Weight {
        bytes,
        field: heaviest.map(|(name, _)| name),
    }
}

/// What one more value takes where it stands; in an object it is part of a node.
fn entry(level: Option<&mut Level>) -> usize {
    let Some(array) = level.filter(|level| level.is_array) else {
        return 0;
    };
    array.entries += 1;
    match array.entries {
        1 => FIRST_ENTRIES * ENTRY_BYTES,
        // An array that is full becomes twice as long.
        more if more > FIRST_ENTRIES && (more - 1).is_power_of_two() => (more - 1) * ENTRY_BYTES,
        _ => 0,
    }
}

/// What the entry of this number adds to an object.
fn grown_object(entries: usize) -> usize {
    let nodes = match entries.checked_sub(FIRST_NODE + 1) {
        None => usize::from(entries == 1),
        // The first node that is full gets one beside it and one above.
        Some(0) => 2,
        Some(further) => usize::from(further % FURTHER_NODE == 0),
    };
    nodes * NODE_BYTES
}

/// The place behind the quote that ends a text.
fn end_of_text(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            None => return text.len(),
            Some(found) if rest[found] == b'"' => return at + found + 1,
            Some(found) => at += found + 2,
        }
    }
}

/// Tells null from what is left out, as the `deserialize_with` of a field that has a default.
///
/// # Errors
/// When the value is neither null nor what is expected.
pub fn given<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What a value takes, by what is known of its parts.
    fn taken(value: &Value) -> usize {
        match value {
            Value::String(text) => text.capacity(),
            Value::Array(entries) => {
                entries.capacity() * size_of::<Value>() + entries.iter().map(taken).sum::<usize>()
            }
            Value::Object(entries) => {
                // A node of the tree has room for 11 entries, and all but the outermost have 5 or more; one is above them.
                let nodes = match entries.len() {
                    0 => 0,
                    1..=11 => 1,
                    count => (count + 1) / 6 + 1,
                };
                let inside = entries
                    .iter()
                    .map(|(key, value)| key.capacity() + taken(value));
                nodes * 11 * (size_of::<Value>() + size_of::<String>()) + inside.sum::<usize>()
            }
            _ => 0,
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
            "[\"\\\\\n]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 200, 40, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"]{0,3}", inner, 0..40)
                    .prop_map(|entries| entries.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_value_takes_more_than_was_estimated(value in values()) {
            for text in [value.to_string(), format!("{value:#}")] {
                let parsed = parse(text.as_bytes()).unwrap();
                let estimated = weigh(text.as_bytes()).bytes;
                let taken = taken(&parsed);
                prop_assert!(estimated >= taken, "{estimated} < {taken}: {text}");
                prop_assert!(estimated <= 3 * taken + 20 * text.len() + 1_000, "{estimated} > {taken}: {text}");
            }
        }

        #[test]
        fn any_bytes_are_estimated(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            weigh(&text);
            prop_assert!(check(&text).is_ok());
        }
    }

    #[test]
    fn the_heaviest_field_is_named() {
        let many = |piece: &str| format!("[{}1]", piece.repeat(200_000));
        for piece in [r#"{"":0},"#, "[0],", r#"{"a":{}},"#] {
            let body = format!(r#"{{"model": "m", "input": {}, "x": "y"}}"#, many(piece));
            match parse(body.as_bytes()) {
                Err(JsonError::TooHeavy { field }) => assert_eq!(field.as_deref(), Some("input")),
                other => panic!("{piece}: {:?}", other.map(|_| ())),
            }
        }
        let bare = many(r#"{"":0},"#);
        assert!(matches!(
            parse(bare.as_bytes()),
            Err(JsonError::TooHeavy { field: None })
        ));
    }

    #[test]
    fn ordinary_texts_are_not_refused() {
        let message = json!({"role": "user", "content": "How is the weather in Delft today, and will it rain?"});
        let messages = json!({"messages": vec![message; 20_000]}).to_string();
        parse(messages.as_bytes()).unwrap();
        let picture = json!({"image_url": "A".repeat(8 << 20)}).to_string();
        assert!(weigh(picture.as_bytes()).bytes < 2 * picture.len());
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
        let tools = json!({"tools": vec![json!({"type": "function", "function": {"name": "f", "parameters": parameters}}); 1_000]});
        parse(tools.to_string().as_bytes()).unwrap();
    }

    #[test]
    fn a_malformed_body_names_the_field() {
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[expect(dead_code, reason = "only parsed")]
            inner: Vec<u8>,
        }
        let error = read::<Outer>(br#"{"inner": [1, "x"]}"#).unwrap_err();
        assert_eq!(error.field, "inner[1]");
        let error = read::<Outer>(br#"{"inner": []} x"#).unwrap_err();
        assert_eq!(error.field, "body");
        let error = read::<Outer>(b"{}").unwrap_err();
        assert_eq!(error.field, "inner");
        let error = read::<Vec<Outer>>(b"[{}]").unwrap_err();
        assert_eq!(error.field, "[0].inner");
    }
}
