//! Taking fields out of a body, with errors that name them.

use colloquy_base::json::integer;
use serde_json::Value;

use super::{FormatError, Object};

/// The largest token limit that a request may name; larger than any model's, and safe to calculate with.
const MAX_TOKENS: u64 = i32::MAX as u64;

/// Takes a field out; null counts as not given.
pub(super) fn take(body: &mut Object, field: &str) -> Option<Value> {
    body.remove(field).filter(|value| !value.is_null())
}

/// Takes out a string that is not empty.
pub(super) fn take_string(body: &mut Object, field: &str) -> Result<Option<String>, FormatError> {
    match take(body, field) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(FormatError::new(
            field,
            "must be a string that is not empty",
        )),
    }
}

/// Takes out a boolean.
pub(super) fn take_bool(body: &mut Object, field: &str) -> Result<Option<bool>, FormatError> {
    match take(body, field) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(value)),
        Some(_) => Err(FormatError::new(field, "must be a boolean")),
    }
}

/// Takes out an object.
pub(super) fn take_object(body: &mut Object, field: &str) -> Result<Option<Object>, FormatError> {
    match take(body, field) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(FormatError::new(field, "must be an object")),
    }
}

/// Takes out a number of tokens, at least 1.
pub(super) fn take_tokens(body: &mut Object, field: &str) -> Result<Option<u64>, FormatError> {
    match take(body, field) {
        None => Ok(None),
        Some(value) => match integer(&value).and_then(|tokens| u64::try_from(tokens).ok()) {
            Some(tokens @ 1..=MAX_TOKENS) => Ok(Some(tokens)),
            _ => Err(FormatError::new(field, "must be a positive integer")),
        },
    }
}

/// The string of a field that has to be one.
pub(super) fn required_str<'a>(object: &'a Object, field: &str) -> Result<&'a str, FormatError> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Err(FormatError::new(field, "is required")),
        Some(_) => Err(FormatError::new(field, "must be a string")),
    }
}

/// A field's string, when it is one.
pub(super) fn str_of<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

/// A field's string, when it is one and not empty.
pub(super) fn text_of<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    str_of(object, field).filter(|text| !text.is_empty())
}

/// A field's entries; none when it is no array.
pub(super) fn entries<'a>(object: &'a Object, field: &str) -> &'a [Value] {
    object
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
