//! What is wrong with something that was given.

use std::borrow::Cow;

/// A field is not what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct InvalidField {
    /// The field, as requests name it.
    pub field: Cow<'static, str>,
    /// What it has to be.
    pub message: Cow<'static, str>,
}

impl InvalidField {
    /// This field is not what the message says.
    pub fn new(field: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}
