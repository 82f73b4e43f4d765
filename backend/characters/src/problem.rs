//! What is wrong with a character, and where.

use colloquy_base::invalid::InvalidField;
use minijinja::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// A field of a character that is wrong; for a template also the place in its text, where that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CharacterProblem)]
pub struct Problem {
    /// The field, such as `personality` or `parameters.greetings[0]`.
    #[schema(example = "personality")]
    pub field: String,
    /// What is wrong with it.
    #[schema(example = "unknown filter uper; there are default, lower, upper")]
    pub message: String,
    /// The line of the template, counted from 1.
    #[schema(minimum = 1)]
    pub line: Option<usize>,
    /// The column in that line, in Unicode code points, counted from 1; null where the line alone is known.
    #[schema(minimum = 1)]
    pub column: Option<usize>,
}

impl Problem {
    /// A problem of a field as a whole.
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            line: None,
            column: None,
        }
    }

    /// A problem at a byte of a template.
    pub(super) fn at(self, text: &str, byte: usize) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: Some(before.matches('\n').count() + 1),
            column: Some(line.chars().count() + 1),
            ..self
        }
    }

    /// A problem that the template engine found, in the engine's own words without its name for the template. The engine tells lines alone.
    pub(super) fn of_engine(field: &str, error: &Error) -> Self {
        let message = error
            .detail()
            .map_or_else(|| error.kind().to_string(), str::to_owned);
        Self {
            line: error.line(),
            ..Self::new(field, message)
        }
    }
}

impl From<InvalidField> for Problem {
    fn from(invalid: InvalidField) -> Self {
        Self::new(invalid.field, invalid.message)
    }
}

impl From<Problem> for InvalidField {
    /// The line becomes a part of the message.
    fn from(problem: Problem) -> Self {
        let Problem {
            field,
            message,
            line,
            ..
        } = problem;
        match line {
            Some(line) => Self::new(field, format!("line {line}: {message}")),
            None => Self::new(field, message),
        }
    }
}
