//! What a client is told of JSON that is not what it has to be: the field, and why, in words that say nothing of the parser.

use std::fmt::Display;

use serde_path_to_error::{Path, Segment};

/// Why a text is not JSON.
pub(super) fn malformed(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.is_eof() {
        return match (line, column) {
            (0 | 1, 0) => "it is empty".to_owned(),
            _ => "it breaks off".to_owned(),
        };
    }
    if error.to_string().starts_with("recursion limit exceeded") {
        return "it is nested too deeply".to_owned();
    }
    format!("it is malformed from line {line}, column {column} on")
}

/// The field that an error is about, `None` for the whole, and the message, which does not repeat the field. A missing, unknown or
/// repeated field is known to serde's message only.
pub fn locate<E: Display>(error: &serde_path_to_error::Error<E>) -> (Option<String>, String) {
    let message = error.inner().to_string();
    let message = without_place(&message);
    let path = path_of(error.path());
    let named = ["missing field `", "unknown field `", "duplicate field `"]
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
    (field, plain(message))
}

/// A path such as `parameters.greetings[0]`; `None` where it is empty. Variants of enums count as fields, as they do in JSON.
fn path_of(path: &Path) -> Option<String> {
    let mut told = String::new();
    for segment in path {
        let name = match segment {
            Segment::Seq { index } => {
                told.push_str(&format!("[{index}]"));
                continue;
            }
            Segment::Map { key } => key,
            Segment::Enum { variant } => variant,
            Segment::Unknown => continue,
        };
        if !told.is_empty() {
            told.push('.');
        }
        told.push_str(name);
    }
    (!told.is_empty()).then_some(told)
}

/// A message without ` at line 1 column 2`, which `serde_json` adds.
fn without_place(message: &str) -> &str {
    let Some((text, place)) = message.rsplit_once(" at line ") else {
        return message;
    };
    let is_place = place.split_once(" column ").is_some_and(|(line, column)| {
        [line, column]
            .iter()
            .all(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    });
    if is_place { text } else { message }
}

/// Words serde's message for clients of an API; other messages pass.
#[must_use]
pub fn plain(message: &str) -> String {
    if message.starts_with("missing field `") {
        return "is required".to_owned();
    }
    if message.starts_with("duplicate field `") {
        return "is given twice".to_owned();
    }
    if message.starts_with("UUID parsing failed: ") {
        return "must be a UUID".to_owned();
    }
    let parted = |start: &str| message.strip_prefix(start)?.rsplit_once(", expected ");
    if message.starts_with("unknown field `") {
        return match message.split_once("`, expected ") {
            Some((_, known)) => format!("is unknown: expected {known}"),
            None => "is unknown".to_owned(),
        };
    }
    if let Some(rest) = message.strip_prefix("unknown variant ")
        && let Some((given, known)) = rest.split_once("`, expected ")
    {
        return format!("must be {known}, not {given}`");
    }
    if let Some((given, expected)) = parted("invalid type: ") {
        return format!("must be {}, not {}", kind(expected), kind(given));
    }
    if let Some((given, expected)) = parted("invalid value: ") {
        let expected = match kind(expected) {
            "an integer" => "an integer in range",
            POSITIVE if !is_below_one(given) => "an integer in range",
            expected => expected,
        };
        return format!("must be {expected}, not {}", kind(given));
    }
    if let Some((_, expected)) = parted("invalid length ") {
        let length = expected
            .rsplit(' ')
            .find_map(|word| word.parse::<u64>().ok());
        if let Some(length) = length {
            return format!("must have {length} entries");
        }
    }
    message.to_owned()
}

/// The name of an unsigned integer that is not 0.
const POSITIVE: &str = "an integer of at least 1";

/// True for an integer below 1, as serde names it.
fn is_below_one(given: &str) -> bool {
    given == "integer `0`" || given.starts_with("integer `-")
}

/// The name of a type of JSON for what serde and Rust call it.
fn kind(name: &str) -> &str {
    let first = name.split(' ').next().unwrap_or_default();
    match first {
        "struct" | "map" => "an object",
        "sequence" | "tuple" => "an array",
        "enum" => "a known value",
        "i8" | "i16" | "i32" | "i64" | "i128" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize"
        | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "unit" => "null",
        "bool" => "a boolean",
        "char" => "a character",
        _ => match name {
            "a map" => "an object",
            "a sequence" => "an array",
            name if name.starts_with("a nonzero u") => POSITIVE,
            name if name.starts_with("a tuple of size ") => "an array",
            name => name,
        },
    }
}
