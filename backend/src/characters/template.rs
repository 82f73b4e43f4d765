//! Templates: placeholders in double braces, `if` and `for`, filled in with the character's parameters and the call's.
//!
//! Templates come from customers, so everything that costs is bounded: instructions (fuel), the size of the result, and
//! the tags. Variables, string operators, loops that call themselves and filters that grow text are left out, since a
//! few of them in a row make gigabytes without costing fuel.

use std::io;

use minijinja::{
    AutoEscape, Environment, ErrorKind, Template, UndefinedBehavior, Value,
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
    value::ValueKind,
};
use serde_json::{Map, Value as Json};

use super::{Character, RenderedCharacter, validate};
use crate::http::ApiError;

/// Instructions of one template.
const FUEL: u64 = 10_000;
/// The largest result of one template.
const MAX_OUTPUT_BYTES: usize = 512 * 1024;
/// Nested blocks and expressions.
const RECURSION_LIMIT: usize = 50;
/// The tags that a template may use.
const TAGS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Fills in everything that a character says or is told.
pub(super) fn render(
    character: &Character,
    params: &Map<String, Json>,
) -> Result<RenderedCharacter, ApiError> {
    validate::check_params(params)?;
    let values = Values::new(character, params)?;
    let parameters = &character.parameters;
    let mut system = values.fill("personality", &character.personality)?;
    if let Some(prefix) = &parameters.conversation_prefix {
        let prefix = values.fill("parameters.conversation_prefix", prefix)?;
        if !prefix.is_empty() {
            if !system.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str(&prefix);
        }
    }
    let greetings = parameters.greetings.iter().enumerate();
    let greetings = greetings
        .map(|(index, text)| values.fill(&format!("parameters.greetings[{index}]"), text))
        .collect::<Result<_, _>>()?;
    let interruption_message = parameters.interruption_message.as_deref();
    Ok(RenderedCharacter {
        system,
        greetings,
        interruption_message: interruption_message
            .map(|text| values.fill("parameters.interruption_message", text))
            .transpose()?,
    })
}

/// Checks the templates of a character without filling them in.
///
/// # Errors
/// 400 that names the field with the malformed template.
pub(super) fn check_syntax(character: &Character) -> Result<(), ApiError> {
    let parameters = &character.parameters;
    let environment = environment();
    parse(&environment, "personality", &character.personality)?;
    for (field, text) in [
        (
            "parameters.conversation_prefix",
            &parameters.conversation_prefix,
        ),
        (
            "parameters.interruption_message",
            &parameters.interruption_message,
        ),
    ] {
        if let Some(text) = text {
            parse(&environment, field, text)?;
        }
    }
    for (index, text) in parameters.greetings.iter().enumerate() {
        parse(
            &environment,
            &format!("parameters.greetings[{index}]"),
            text,
        )?;
    }
    Ok(())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_LIMIT);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(|output, state, value| {
        // A parameter that is null says nothing.
        if value.is_none() {
            return Ok(());
        }
        // The engine writes booleans as Python does; parameters are JSON.
        if value.kind() == ValueKind::Bool {
            return Ok(output.write_str(if value.is_true() { "true" } else { "false" })?);
        }
        minijinja::escape_formatter(output, state, value)
    });
    environment.add_filter("default", minijinja::filters::default);
    environment.add_filter("lower", minijinja::filters::lower);
    environment.add_filter("upper", minijinja::filters::upper);
    environment.add_filter("title", minijinja::filters::title);
    environment.add_filter("capitalize", minijinja::filters::capitalize);
    environment.add_filter("trim", minijinja::filters::trim);
    environment.add_filter("length", minijinja::filters::length);
    environment.add_filter("first", minijinja::filters::first);
    environment.add_filter("last", minijinja::filters::last);
    environment.add_test("defined", minijinja::tests::is_defined);
    environment.add_test("undefined", minijinja::tests::is_undefined);
    environment.add_test("none", minijinja::tests::is_none);
    environment
}

/// Refuses what the module's documentation leaves out, then compiles.
fn parse<'e, 's>(
    environment: &'e Environment<'s>,
    field: &str,
    text: &'s str,
) -> Result<Template<'e, 's>, ApiError> {
    let mut after_block_start = false;
    for token in tokenize(text, false, SyntaxConfig::default()) {
        let (token, _) = token.map_err(|error| malformed(field, &error))?;
        match token {
            Token::Ident(tag) if after_block_start && !TAGS.contains(&tag) => {
                return Err(ApiError::invalid(
                    field,
                    format!("unknown tag {tag}; use if and for"),
                ));
            }
            Token::Ident("recursive") => {
                return Err(ApiError::invalid(field, "a loop cannot be recursive"));
            }
            Token::Tilde | Token::Plus | Token::Mul | Token::Pow => {
                return Err(ApiError::invalid(
                    field,
                    format!("the operator {token} is not available in templates"),
                ));
            }
            _ => {}
        }
        after_block_start = matches!(token, Token::BlockStart);
    }
    environment
        .template_from_named_str("template", text)
        .map_err(|error| malformed(field, &error))
}

fn malformed(field: &str, error: &minijinja::Error) -> ApiError {
    ApiError::invalid(field, describe(error))
}

/// The engine's own words, without its name for the template.
fn describe(error: &minijinja::Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// What placeholders stand for.
struct Values {
    known: Map<String, Json>,
    root: Value,
}

impl Values {
    fn new(character: &Character, params: &Map<String, Json>) -> Result<Self, ApiError> {
        let parameters = serde_json::to_value(&character.parameters).map_err(ApiError::internal)?;
        let Json::Object(mut known) = parameters else {
            return Err(ApiError::internal("character parameters are an object"));
        };
        // Lists that are empty are left out of what is stored; a loop over them is no mistake.
        for list in ["greetings", "easy_questions", "difficult_questions"] {
            known.entry(list).or_insert_with(|| Json::Array(Vec::new()));
        }
        // Documents reach the model as passages, not through the template.
        known.remove("documents");
        known.extend(
            params
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        let pairs = known
            .iter()
            .map(|(key, value)| (key.clone(), convert(value)));
        let root = Value::from_pairs(pairs);
        Ok(Self { known, root })
    }

    fn fill(&self, field: &str, text: &str) -> Result<String, ApiError> {
        let environment = environment();
        let template = parse(&environment, field, text)?;
        let mut output = Bounded(Vec::new());
        match template.render_captured_to(self.root.clone(), &mut output) {
            Ok(_) => String::from_utf8(output.0).map_err(ApiError::internal),
            Err(error) => Err(self.explain(field, &template, &error)),
        }
    }

    fn explain(
        &self,
        field: &str,
        template: &Template<'_, '_>,
        error: &minijinja::Error,
    ) -> ApiError {
        match error.kind() {
            ErrorKind::UndefinedError => {
                let unknown = template.undeclared_variables(false).into_iter();
                let unknown = unknown.filter(|name| !self.known.contains_key(name)).min();
                match unknown {
                    Some(name) => ApiError::invalid(
                        format!("character_params.{name}"),
                        format!("{field} has the placeholder {name}, for which there is no value"),
                    ),
                    None => ApiError::invalid(
                        field,
                        format!("{}: a placeholder without a value", describe(error)),
                    ),
                }
            }
            ErrorKind::OutOfFuel => ApiError::invalid(field, "the template takes too long"),
            ErrorKind::WriteFailure => {
                ApiError::invalid(field, "the template's result is too large")
            }
            _ => malformed(field, error),
        }
    }
}

fn convert(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(float)) => Value::from(float),
            (None, None) => Value::from(number.to_string()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(entries) => Value::from(entries.iter().map(convert).collect::<Vec<_>>()),
        Json::Object(entries) => Value::from_pairs(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), convert(value))),
        ),
    }
}

/// Takes no more than the largest result.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
