//! What a client is told of JSON that is not what it has to be: the field, and why, in words that say nothing of the parser.

use std::fmt::Display;

use serde_path_to_error::{Path, Segment};

use super::whole;

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
        return match is_huge(given) {
            true => out_of_range(given, expected),
            false => format!("must be {}, not {}", kind(expected), value(given)),
        };
    }
    if let Some((given, expected)) = parted("invalid value: ") {
        return out_of_range(given, expected);
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

/// The message about a value that the expected type does not hold.
fn out_of_range(given: &str, expected: &str) -> String {
    let given = value(given);
    let given = given.strip_suffix(".0").unwrap_or(given);
    match (integers(expected), kind(expected)) {
        (Some((least, most)), _) => format!("must be an integer of {least} to {most}, not {given}"),
        (None, "an integer") => format!("must be an integer in range, not {given}"),
        (None, expected) => format!("must be {expected}, not {given}"),
    }
}

/// The least and the greatest integer of a type, as serde and Rust call it; `None` for other types.
fn integers(of: &str) -> Option<(i128, i128)> {
    let positive = of.strip_prefix("a nonzero ");
    if let Some(unsigned) = positive.filter(|of| of.starts_with('u')) {
        return integers(unsigned).map(|(_, most)| (1, most));
    }
    Some(match of {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// The number or boolean that serde names with its type, as JSON has it.
fn plain_value(name: &str) -> Option<&str> {
    ["integer `", "floating point `", "boolean `"]
        .iter()
        .find_map(|start| name.strip_prefix(start)?.strip_suffix('`'))
}

/// A value as JSON has it, for what serde calls it.
fn value(name: &str) -> &str {
    plain_value(name).unwrap_or_else(|| kind(name))
}

/// True for a whole number beyond those that are read as integers.
fn is_huge(given: &str) -> bool {
    let number = plain_value(given).and_then(|number| number.parse::<f64>().ok());
    number.is_some_and(|number| number.fract() == 0.0 && whole(number).is_none())
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
