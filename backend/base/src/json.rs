//! JSON from outside, with a bound on the memory that it becomes.
//!
//! Seven bytes such as `{"":0},` become an object of some 700, so that a body of many small values takes a hundred times
//! its size. What a text will become is estimated in one pass before anything is parsed, at a small part of what parsing
//! costs, and a text that would become too much for its size is refused. Depth is bounded by `serde_json`, at 128.

use std::fmt;

use memchr::memchr2;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::invalid::InvalidField;

mod objects;
mod told;

use objects::ObjectsOnly;
use told::malformed;
pub use told::{locate, plain};

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
            Self::Malformed(error) => f.write_str(&malformed(error)),
        }
    }
}

impl std::error::Error for JsonError {}

impl From<JsonError> for InvalidField {
    /// Names `body`, or the field that takes too much.
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Malformed(error) => not_json(&error),
            JsonError::TooHeavy { ref field } => {
                let field = field.clone().unwrap_or_else(|| "body".to_owned());
                let message = format!("is not taken: {error}");
                Self::new(field, message)
            }
        }
    }
}

/// Parses a text from outside as what it has to be. Structs are objects, never arrays of their fields.
///
/// # Errors
/// When it is not JSON, is not what it has to be, or would become too much for its size. Names the field, such as
/// `parameters.greetings[0]`, or `body`.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, InvalidField> {
    check(text)?;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(ObjectsOnly(&mut deserializer));
    let value = value.map_err(|error| {
        if !error.inner().is_data() {
            return not_json(error.inner());
        }
        match locate(&error) {
            (Some(field), message) => InvalidField::new(field, message),
            (None, message) if message.starts_with("must be an object") => not_an_object(),
            (None, message) => InvalidField::new("body", format!("The body {message}")),
        }
    })?;
    deserializer.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

/// The body is not JSON.
fn not_json(error: &serde_json::Error) -> InvalidField {
    InvalidField::new(
        "body",
        format!("The body is not JSON: {}", malformed(error)),
    )
}

/// The body is JSON, but no object.
fn not_an_object() -> InvalidField {
    InvalidField::new("body", "The body must be a JSON object")
}

/// Parses a body that has to be an object.
///
/// # Errors
/// Names `body` when it is not JSON or no object, or the field that would become too much for its size.
pub fn object(text: &[u8]) -> Result<Map<String, Value>, InvalidField> {
    match parse(text)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(not_an_object()),
    }
}

/// Reads a value that was parsed as what it has to be, as [`read`] does.
///
/// # Errors
/// The path of what is wrong inside of it, `None` for the value itself, and the message.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, (Option<String>, String)> {
    serde_path_to_error::deserialize(ObjectsOnly(value)).map_err(|error| locate(&error))
}

/// Returns true if a value is an object, or an array with more than plain values in it.
#[must_use]
pub fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(entries) => entries
            .iter()
            .any(|entry| entry.is_object() || entry.is_array()),
        _ => false,
    }
}

/// The integer that a number is, however it is written: `1e3` and `1000.0` are integers in JSON. `None` for other values, and for
/// those beyond what a double holds exactly or an `i64` holds.
#[must_use]
pub fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| whole(value.as_f64()?))
}

/// The integer that a number with a fraction or an exponent is; `None` where it is none, or is beyond what a double holds exactly.
fn whole(number: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_991.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number is whole and within the range"
    )]
    (number.fract() == 0.0 && number.abs() <= MOST).then_some(number as i64)
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

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limits {
        #[serde(default)]
        tokens: Option<u8>,
        #[serde(default)]
        inner: Option<Box<Limits>>,
        #[serde(default)]
        pair: Option<(u8, u8)>,
        #[serde(default)]
        mode: Option<Mode>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Off,
        On { tokens: u8 },
        Like(Box<Limits>),
    }

    #[test]
    fn an_array_is_no_object() {
        for (text, field) in [
            ("[7]", "body"),
            (r#"{"inner": [7]}"#, "inner"),
            (r#"{"inner": {"inner": [7]}}"#, "inner.inner"),
            (r#"{"mode": {"on": [7]}}"#, "mode.on"),
            (r#"{"mode": {"like": [7]}}"#, "mode.like"),
        ] {
            let error = read::<Limits>(text.as_bytes()).unwrap_err();
            assert_eq!(error.field, field, "{text}");
            let told = match field {
                "body" => "The body must be a JSON object",
                _ => "must be an object, not an array",
            };
            assert_eq!(error.message, told, "{text}");
            let value = serde_json::from_str(text).unwrap();
            let (path, message) = read_value::<Limits>(value).unwrap_err();
            assert_eq!(path.as_deref().unwrap_or("body"), field, "{text}");
            assert_eq!(message, "must be an object, not an array", "{text}");
        }
        let error = read::<Vec<Limits>>(b"[{}, [7]]").unwrap_err();
        assert_eq!(error.field, "[1]");
        let text = r#"{"tokens": 7, "pair": [1, 2], "inner": {"mode": {"on": {"tokens": 1}}}}"#;
        let expected = Limits {
            tokens: Some(7),
            pair: Some((1, 2)),
            inner: Some(Box::new(Limits {
                mode: Some(Mode::On { tokens: 1 }),
                ..Limits::default()
            })),
            ..Limits::default()
        };
        assert_eq!(read::<Limits>(text.as_bytes()).unwrap(), expected);
        let value = serde_json::from_str(text).unwrap();
        assert_eq!(read_value::<Limits>(value).unwrap(), expected);
        let exponent = read::<Limits>(br#"{"tokens": 1e2, "pair": [1.0, 20e-1]}"#).unwrap();
        assert_eq!((exponent.tokens, exponent.pair), (Some(100), Some((1, 2))));
        let text = br#"{"mode": "off"}"#;
        assert_eq!(read::<Limits>(text).unwrap().mode, Some(Mode::Off));
    }

    #[test]
    fn messages_tell_what_is_wrong_and_nothing_of_the_parser() {
        for (text, field, message) in [
            (
                r#"{"tokens": "x"}"#,
                "tokens",
                r#"must be an integer, not string "x""#,
            ),
            (
                r#"{"tokens": 300}"#,
                "tokens",
                "must be an integer of 0 to 255, not 300",
            ),
            (
                r#"{"tokens": -1}"#,
                "tokens",
                "must be an integer of 0 to 255, not -1",
            ),
            (
                r#"{"tokens": 1e20}"#,
                "tokens",
                "must be an integer of 0 to 255, not 1e+20",
            ),
            (
                r#"{"tokens": 1.5}"#,
                "tokens",
                "must be an integer, not 1.5",
            ),
            (
                r#"{"tokens": true}"#,
                "tokens",
                "must be an integer, not true",
            ),
            (r#"{"pair": 1}"#, "pair", "must be an array, not 1"),
            (r#"{"pair": [1]}"#, "pair", "must have 2 entries"),
            (
                r#"{"inner": null, "mode": {"on": {}}}"#,
                "mode.on.tokens",
                "is required",
            ),
            (
                r#"{"mode": "of"}"#,
                "mode",
                "must be one of `off`, `on`, `like`, not `of`",
            ),
            (
                r#"{"more": 1}"#,
                "more",
                "is unknown: expected one of `tokens`, `inner`, `pair`, `mode`",
            ),
            (r#"{"tokens": 1, "tokens": 2}"#, "tokens", "is given twice"),
            ("7", "body", "The body must be a JSON object"),
            (
                r#"{"tokens": 1"#,
                "body",
                "The body is not JSON: it breaks off",
            ),
            ("{\n", "body", "The body is not JSON: it breaks off"),
            ("", "body", "The body is not JSON: it is empty"),
            (
                r#"{"tokens": 1} x"#,
                "body",
                "The body is not JSON: it is malformed from line 1, column 15 on",
            ),
            (
                "{\n\"tokens\" 1}",
                "body",
                "The body is not JSON: it is malformed from line 2, column 10 on",
            ),
            ("", "body", "The body is not JSON: it is empty"),
        ] {
            let error = read::<Limits>(text.as_bytes()).unwrap_err();
            assert_eq!((&*error.field, &*error.message), (field, message), "{text}");
        }
    }
}
