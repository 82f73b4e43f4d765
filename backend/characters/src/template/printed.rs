//! Tells if a template prints the value of a parameter: a condition that asks for it does not.

use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::Value;

/// A parameter while a template is filled in that names it.
pub(super) struct Printed {
    /// The value, a text as [`inner_text`] returns it; `None` for a value that prints nothing.
    value: Option<Value>,
    was_seen: AtomicBool,
}

impl Printed {
    /// Begins with the value of the parameter.
    pub(super) fn new(value: &Value) -> Self {
        let value = match value.as_str() {
            Some(text) => Some(inner_text(text))
                .filter(|it| !it.is_empty())
                .map(Value::from),
            None => Some(value.clone()).filter(|it| !it.is_none() && !it.is_undefined()),
        };
        Self {
            value,
            was_seen: AtomicBool::new(false),
        }
    }

    /// Compares the parameter with a value that is printed. Filters may have changed its case and trimmed it.
    pub(super) fn see(&self, printed: &Value) {
        let Some(value) = &self.value else { return };
        let is_it = match (value.as_str(), printed.as_str()) {
            (Some(text), Some(printed)) => folded(text).eq(folded(inner_text(printed))),
            _ => value == printed,
        };
        if is_it {
            self.was_seen.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if the value was printed, or is one that prints nothing.
    pub(super) fn is_said(&self) -> bool {
        self.value.is_none() || self.was_seen.load(Ordering::Relaxed)
    }
}

/// Returns the text without the signs and spaces at its ends; of a text of signs alone, those signs.
fn inner_text(text: &str) -> &str {
    let inner = text.trim_matches(|it: char| !it.is_alphanumeric());
    match inner.is_empty() {
        true => text.trim(),
        false => inner,
    }
}

/// Returns the characters in one case. Some have a lower case whose upper case differs from themselves, so both are applied.
fn folded(text: &str) -> impl Iterator<Item = char> {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_said(value: impl Into<Value>, printed: impl Into<Value>) -> bool {
        let parameter = Printed::new(&value.into());
        parameter.see(&printed.into());
        parameter.is_said()
    }

    #[test]
    fn a_value_is_known_after_filters() {
        let text = "\"Straße nach İzmir!\" ";
        let trimmed = "Straße nach İzmir";
        let (lower, upper) = (text.to_lowercase(), text.to_uppercase());
        for printed in [text, trimmed, lower.as_str(), upper.as_str()] {
            assert!(is_said(text, printed), "{printed}");
        }
        assert!(is_said(5, 5) && is_said("...", "...") && is_said(false, false));
        for printed in ["Straße", "", "Straße nach İzmir, heute"] {
            assert!(!is_said(text, printed), "{printed}");
        }
        assert!(!is_said("...", "!") && !is_said(5, 6) && !is_said(text, 5));
    }

    #[test]
    fn nothing_has_to_be_printed_of_an_empty_value() {
        for value in [
            Value::from(""),
            Value::from(" \n"),
            Value::from(()),
            Value::UNDEFINED,
        ] {
            assert!(is_said(value, "P"));
        }
    }
}
