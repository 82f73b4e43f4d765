//! Templates: placeholders in double braces, `if` and `for`, filled in with the character's parameters and the request's.
//!
//! # The language
//!
//! - `{{ name }}`, `{{ shop.city }}`, `{{ questions[0] }}`: a parameter. One without a value is an error; null says nothing.
//! - `{{ name|upper }}`: the filters are `default`, `lower`, `upper`, `title`, `capitalize`, `trim`, `length`, `first` and
//!   `last`; only `default` and `trim` take arguments.
//! - `{% if .. %}`, `{% elif .. %}`, `{% else %}`, `{% endif %}`, with `==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`,
//!   `in`, and `is` with `defined`, `undefined` or `none`; also as `{{ a if b else c }}`.
//! - `{% for name in list %}`, `{% else %}`, `{% endfor %}`, over a parameter; `{% for name in list if .. %}`; inside, `loop`
//!   with its fields such as `loop.index`.
//! - `{# .. #}` and `{% raw %}`.
//!
//! Everything else is refused by its name: other tags, filters and tests, arithmetic, `~`, lists, maps, slices, calls.
//!
//! # What a template can cost
//!
//! Templates come from customers, and the one who writes a template also chooses the values. So everything is bounded for
//! all templates of a character together:
//!
//! - to check: 512 KiB of text, 20,000 tokens, of which 100 in one tag; blocks 50 deep, brackets 8 deep ([`language`]);
//! - to fill in: 4,000 values with 1 MiB of text, 16 deep, no text above 32 KiB ([`values`]);
//! - to run: 10,000 instructions, each of which looks at one text of at most 32 KiB or at a list or map, whose entries
//!   count against an allowance of 300,000 ([`values`]); no instruction makes a value larger than three times its
//!   operand, and none of them stays longer than the tag it stands in;
//! - to write: 512 KiB.
//!
//! Checking takes a few milliseconds at most and happens where a request is parsed. Filling in may take some hundred, so
//! it runs on threads of its own, one render of a partner at a time ([`threads`]).

mod language;
mod printed;
mod threads;
mod values;

use std::{io, sync::Arc};

use minijinja::{
    AutoEscape, Environment, ErrorKind, Output, State, Template, UndefinedBehavior, Value,
    value::ValueKind,
};
use serde_json::{Map, Value as Json};

pub(crate) use self::threads::Renders;
pub(super) use self::threads::TRY_AGAIN;
pub(super) use self::threads::filled;
pub use self::threads::rendered;
use self::{language::Language, printed::Printed, values::Meter};
use super::{Character, RenderedCharacter, problem::Problem, validate};

/// Instructions of a character's templates together.
const FUEL: u64 = 10_000;
/// The largest result of a character's templates together.
const MAX_OUTPUT_BYTES: usize = 512 * 1024;
/// The parameter that is set before the conversation, and its field.
const PREFIX: &str = "conversation_prefix";
const PREFIX_FIELD: &str = "parameters.conversation_prefix";
/// What no template brings about: the engine writes text alone.
const NOT_TEXT: &str = "the result is not text";
/// Frames of the engine: one a loop.
const RECURSION_LIMIT: usize = 60;

/// The templates of a character, and the fields that they stand in.
fn templates(character: &Character) -> impl Iterator<Item = (String, &str)> {
    let parameters = &character.parameters;
    let single = [
        ("personality", Some(&character.personality)),
        (PREFIX_FIELD, parameters.conversation_prefix.as_ref()),
        (
            "parameters.interruption_message",
            parameters.interruption_message.as_ref(),
        ),
        (
            "parameters.patience_message",
            parameters.patience_message.as_ref(),
        ),
    ];
    let single = single
        .into_iter()
        .filter_map(|(field, text)| Some((field.to_owned(), text?.as_str())));
    let greetings = parameters.greetings.iter().enumerate();
    single.chain(
        greetings.map(|(index, text)| (format!("parameters.greetings[{index}]"), text.as_str())),
    )
}

/// Checks the templates of a character without filling them in, one after the other: the first problem of each that has one. Behind the one
/// with which they become too much together, no other is checked.
pub(super) fn problems(character: &Character) -> impl Iterator<Item = Problem> {
    let mut language = Language::default();
    let environment = Environment::empty();
    templates(character).filter_map(move |(field, text)| {
        if language.is_exceeded() {
            return None;
        }
        let checked = language.check(&field, text);
        let checked = checked.and_then(|()| parse(&environment, &field, text).map(|_| ()));
        checked.err()
    })
}

/// Fills in everything that a character says or is told.
fn render(character: &Character, params: &Map<String, Json>) -> Result<RenderedCharacter, Problem> {
    validate::check_params(params)?;
    let known = values::known(character, params)?;
    let meter = Arc::new(Meter::default());
    let mut filling = Filling {
        root: values::root(&known, &meter),
        known,
        environment: environment(&meter),
        meter,
        language: Language::default(),
        fuel: FUEL,
        room: MAX_OUTPUT_BYTES,
        used_prefix: false,
    };
    let mut rendered = RenderedCharacter {
        system: String::new(),
        greetings: Vec::with_capacity(character.parameters.greetings.len()),
        interruption_message: None,
        patience_message: None,
    };
    // The prefix stands behind the personality, unless that prints it.
    let mut prefix = None;
    if let Some(template) = &character.parameters.conversation_prefix {
        let filled = filling.fill(PREFIX_FIELD, template)?;
        filling.set(PREFIX, filled.clone());
        prefix = Some(filled).filter(|text| !text.is_empty());
    }
    for (field, text) in templates(character) {
        if field == PREFIX_FIELD {
            continue;
        }
        let text = filling.fill(&field, text)?;
        match field.as_str() {
            "personality" => {
                let prefix = prefix.take().filter(|_| !filling.used_prefix);
                let parts = Some(text).filter(|text| !text.is_empty()).into_iter();
                rendered.system = parts.chain(prefix).collect::<Vec<_>>().join("\n\n");
            }
            "parameters.interruption_message" => rendered.interruption_message = Some(text),
            "parameters.patience_message" => rendered.patience_message = Some(text),
            _ => rendered.greetings.push(text),
        }
    }
    Ok(rendered)
}

fn environment(meter: &Arc<Meter>) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_recursion_limit(RECURSION_LIMIT);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(print);
    values::add_functions(&mut environment, meter);
    environment
}

/// Writes the value of a placeholder.
fn print(
    output: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    // A parameter that is null says nothing.
    if value.is_none() {
        return Ok(());
    }
    // The engine writes booleans as Python does; parameters are JSON.
    if value.kind() == ValueKind::Bool {
        return Ok(output.write_str(if value.is_true() { "true" } else { "false" })?);
    }
    minijinja::escape_formatter(output, state, value)
}

fn parse<'e, 's>(
    environment: &'e Environment<'s>,
    field: &str,
    text: &'s str,
) -> Result<Template<'e, 's>, Problem> {
    environment
        .template_from_named_str("template", text)
        .map_err(|error| Problem::of_engine(field, &error))
}

/// The templates of one character while they are filled in, and what is left to them.
struct Filling {
    known: Map<String, Json>,
    root: Value,
    environment: Environment<'static>,
    meter: Arc<Meter>,
    language: Language,
    fuel: u64,
    room: usize,
    /// True if the last template printed the parameter that is set before the conversation, or had nothing of it to print.
    used_prefix: bool,
}

impl Filling {
    /// Gives a parameter another value.
    fn set(&mut self, name: &str, text: String) {
        self.known.insert(name.to_owned(), Json::String(text));
        self.root = values::root(&self.known, &self.meter);
    }

    fn fill(&mut self, field: &str, text: &str) -> Result<String, Problem> {
        self.language.check(field, text)?;
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(self.fuel));
        let prefix = text.contains(PREFIX).then(|| {
            let value = self.root.get_attr(PREFIX).unwrap_or_default();
            Arc::new(Printed::new(&value))
        });
        if let Some(prefix) = &prefix {
            let prefix = Arc::clone(prefix);
            environment.set_formatter(move |output, state, value| {
                prefix.see(value);
                print(output, state, value)
            });
        }
        let template = parse(&environment, field, text)?;
        let mut output = Bounded {
            bytes: Vec::new(),
            room: self.room,
        };
        let rendered = template.render_captured_to(self.root.clone(), &mut output);
        if self.meter.is_exhausted() {
            return Err(too_long(field));
        }
        match rendered {
            Ok(captured) => {
                let (_, left) = captured.state().fuel_levels().unwrap_or_default();
                self.fuel = left;
            }
            Err(error) => return Err(self.explain(field, &template, &error)),
        }
        self.room = output.room;
        self.used_prefix = prefix.is_some_and(|prefix| {
            prefix.is_said() && template.undeclared_variables(false).contains(PREFIX)
        });
        String::from_utf8(output.bytes).map_err(|_| Problem::new(field, NOT_TEXT))
    }

    fn explain(
        &self,
        field: &str,
        template: &Template<'_, '_>,
        error: &minijinja::Error,
    ) -> Problem {
        match error.kind() {
            ErrorKind::UndefinedError => {
                let unknown = template.undeclared_variables(false).into_iter();
                let unknown = unknown.filter(|name| !self.known.contains_key(name)).min();
                match unknown {
                    Some(name) => Problem::new(
                        format!("character_params.{name}"),
                        format!("{field} has the placeholder {name}, for which there is no value"),
                    ),
                    None => {
                        let problem = Problem::of_engine(field, error);
                        let message = format!("{}: a placeholder without a value", problem.message);
                        Problem { message, ..problem }
                    }
                }
            }
            ErrorKind::OutOfFuel => too_long(field),
            ErrorKind::WriteFailure => Problem::new(field, "the template's result is too large"),
            _ => Problem::of_engine(field, error),
        }
    }
}

fn too_long(field: &str) -> Problem {
    Problem::new(field, "the template takes too long")
}

/// Takes no more than there is room for.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.room.checked_sub(bytes.len());
        self.room = left.ok_or_else(|| io::Error::other("too large"))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
