//! What a character may hold. An error names the field, such as `parameters.greetings[0]`.

use std::{borrow::Cow, fmt::Display, ops::RangeInclusive};

use colloquy_accounts::PartnerId;
use colloquy_base::{invalid::InvalidField, json};
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Value};

use super::{Character, CharacterParameters, problem::Problem, template};

/// The longest personality, in bytes.
const MAX_PERSONALITY_BYTES: usize = 128 * 1024;
/// The longest name, title or language, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The longest text that is spoken or set before a conversation, in characters.
const MAX_LINE_CHARS: usize = 4_000;
/// When `patience_message` may be spoken, in milliseconds; as for the server's `calls.patience_ms`.
const PATIENCE_MS: RangeInclusive<u32> = 500..=60_000;
/// The longest template parameter of a request, in bytes.
const MAX_PARAM_BYTES: usize = 32 * 1024;
/// The most greetings, questions or documents.
const MAX_ENTRIES: usize = 100;
/// The most fields of a profile.
const MAX_PROFILE_FIELDS: usize = 50;
/// The longest name of a field of a profile, in characters.
const MAX_FIELD_CHARS: usize = 100;

/// Reads parameters; `field` is what the request calls them.
pub(super) fn parameters(field: &str, value: Value) -> Result<CharacterParameters, InvalidField> {
    check_delay(field, value.get("patience_ms"))?;
    check_flat(field, value.get("profile_schema"))?;
    json::read_value(value).map_err(|(path, message)| {
        let field = match path {
            None => field.to_owned(),
            Some(path) => format!("{field}.{path}"),
        };
        InvalidField::new(field, message)
    })
}

/// Checks sizes, forms and the syntax of the templates.
pub(super) fn character(character: &Character) -> Result<(), InvalidField> {
    problems(character)
        .next()
        .map_or(Ok(()), |problem| Err(problem.into()))
}

/// Checks sizes, forms and the syntax of the templates while it is iterated over.
pub(super) fn problems(character: &Character) -> impl Iterator<Item = Problem> {
    let parameters = &character.parameters;
    let checks = [check_context, check_language, check_index, check_profile];
    let checks = checks
        .into_iter()
        .filter_map(move |check| check(parameters).err());
    personality_length(&character.personality)
        .into_iter()
        .chain(line_lengths(parameters))
        .chain(entry_counts(parameters))
        .chain(entry_lengths(parameters))
        .chain(checks)
        .map(Problem::from)
        .chain(template::problems(character))
}

fn personality_length(personality: &str) -> Option<InvalidField> {
    (personality.len() > MAX_PERSONALITY_BYTES)
        .then(|| InvalidField::new("personality", "at most 128 KiB"))
}

fn line_lengths(parameters: &CharacterParameters) -> impl Iterator<Item = InvalidField> {
    let lines = [
        ("name", &parameters.name, MAX_NAME_CHARS),
        ("language", &parameters.language, MAX_NAME_CHARS),
        ("person_name", &parameters.person_name, MAX_NAME_CHARS),
        ("robot_name", &parameters.robot_name, MAX_NAME_CHARS),
        ("name_colon", &parameters.name_colon, MAX_NAME_CHARS),
        (
            "conversation_prefix",
            &parameters.conversation_prefix,
            MAX_LINE_CHARS,
        ),
        (
            "interruption_message",
            &parameters.interruption_message,
            MAX_LINE_CHARS,
        ),
        (
            "patience_message",
            &parameters.patience_message,
            MAX_LINE_CHARS,
        ),
    ];
    let lines = lines.into_iter();
    lines.filter_map(|(field, text, most)| too_long(field, text.as_deref()?, most))
}

fn entry_counts(parameters: &CharacterParameters) -> impl Iterator<Item = InvalidField> {
    let counts = [
        ("greetings", parameters.greetings.len()),
        ("easy_questions", parameters.easy_questions.len()),
        ("difficult_questions", parameters.difficult_questions.len()),
        ("documents", parameters.documents.len()),
    ];
    let beyond = counts.into_iter().filter(|(_, count)| *count > MAX_ENTRIES);
    beyond.map(|(field, _)| invalid(field, format!("at most {MAX_ENTRIES} entries")))
}

fn entry_lengths(parameters: &CharacterParameters) -> impl Iterator<Item = InvalidField> {
    let greetings = parameters.greetings.iter().enumerate();
    let greetings = greetings.filter_map(|(index, greeting)| {
        too_long(&format!("greetings[{index}]"), greeting, MAX_LINE_CHARS)
    });
    let documents = parameters.documents.iter().enumerate();
    greetings.chain(documents.filter_map(|(index, document)| {
        let field = format!("documents[{index}].title");
        too_long(&field, &document.title, MAX_NAME_CHARS)
    }))
}

fn too_long(field: &str, text: &str, most: usize) -> Option<InvalidField> {
    (text.chars().count() > most).then(|| invalid(field, format!("at most {most} characters")))
}

fn check_context(parameters: &CharacterParameters) -> Result<(), InvalidField> {
    match parameters.other.contains_key("context") {
        true => Err(invalid("context", "the name context is reserved")),
        false => Ok(()),
    }
}

/// The voice is checked before its language.
fn check_language(parameters: &CharacterParameters) -> Result<(), InvalidField> {
    if let Some(voice) = &parameters.voice {
        check_voice(voice)?;
    }
    parameters.conversation_language().map(|_| ())
}

/// The delay that `patience_ms` gives; `None` where it is no integer within the bounds.
fn delay(value: &Value) -> Option<u32> {
    let delay = u32::try_from(json::integer(value)?).ok()?;
    PATIENCE_MS.contains(&delay).then_some(delay)
}

/// Reads `patience_ms`. What is no delay counts as not given: characters that were saved before the name had a meaning may hold anything
/// there.
///
/// # Errors
/// When it is not JSON.
pub(super) fn lenient_delay<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    Ok(delay(&Value::deserialize(deserializer)?))
}

/// Refuses what would count as no delay once it is read.
fn check_delay(parameters: &str, given: Option<&Value>) -> Result<(), InvalidField> {
    match given {
        Some(value) if !value.is_null() && delay(value).is_none() => {
            let (least, most) = (PATIENCE_MS.start(), PATIENCE_MS.end());
            let message = format!("must be an integer of {least} to {most}");
            let field = format!("{parameters}.patience_ms");
            Err(InvalidField::new(field, message))
        }
        _ => Ok(()),
    }
}

/// Refuses fields of a profile that have fields of their own, which would be passed over.
fn check_flat(parameters: &str, schema: Option<&Value>) -> Result<(), InvalidField> {
    let fields = schema.and_then(Value::as_object).into_iter().flatten();
    for (name, described) in fields {
        for (key, value) in described.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "type" | "description") && json::is_nested(value) {
                let field = format!("{parameters}.profile_schema.{name}.{key}");
                return Err(InvalidField::new(field, "is nested; fields are flat"));
            }
        }
    }
    Ok(())
}

fn check_profile(parameters: &CharacterParameters) -> Result<(), InvalidField> {
    let Some(schema) = &parameters.profile_schema else {
        return Ok(());
    };
    if schema.len() > MAX_PROFILE_FIELDS {
        let message = format!("at most {MAX_PROFILE_FIELDS} fields");
        return Err(invalid("profile_schema", message));
    }
    for (name, field) in schema {
        if !(1..=MAX_FIELD_CHARS).contains(&name.chars().count()) {
            let message = format!("names of 1 to {MAX_FIELD_CHARS} characters");
            return Err(invalid("profile_schema", message));
        }
        let description = field.description.as_ref();
        if description.is_some_and(|text| text.chars().count() > MAX_LINE_CHARS) {
            let message = format!("at most {MAX_LINE_CHARS} characters");
            return Err(invalid(
                &format!("profile_schema.{name}.description"),
                message,
            ));
        }
    }
    Ok(())
}

fn check_voice(voice: &Value) -> Result<(), InvalidField> {
    match voice {
        Value::Null | Value::String(_) => Ok(()),
        Value::Object(voice) => {
            if !voice
                .get("id")
                .is_none_or(|id| id.is_string() || id.is_null())
            {
                return Err(invalid("voice.id", "must be a string"));
            }
            let speed = voice.get("speed").filter(|speed| !speed.is_null());
            match speed.map(Value::as_f64) {
                None => Ok(()),
                Some(Some(speed)) if (0.5..=1.5).contains(&speed) => Ok(()),
                Some(_) => Err(invalid("voice.speed", "a number of 0.5 to 1.5")),
            }
        }
        _ => Err(invalid(
            "voice",
            "a voice id, or an object with id and speed",
        )),
    }
}

fn check_index(parameters: &CharacterParameters) -> Result<(), InvalidField> {
    let Some(index) = &parameters.rag_index_required else {
        return Ok(());
    };
    let known = index
        .split_once('/')
        .is_some_and(|(partner, base)| PartnerId::parse(partner).is_ok() && !base.is_empty());
    match known {
        true => Ok(()),
        false => Err(invalid(
            "rag_index_required",
            "write <partner>/<knowledge_base_name>",
        )),
    }
}

fn invalid(field: &str, message: impl Into<Cow<'static, str>>) -> InvalidField {
    InvalidField::new(format!("parameters.{field}"), message)
}

/// Checks the template parameters of a request: a flat object, or one as JSON text as forms send it; nothing, null and
/// the empty text are an empty object.
///
/// # Errors
/// 400 that names the entry: a list or object inside, or the reserved `context`.
pub fn parse_character_params(value: Option<&Value>) -> Result<Map<String, Value>, InvalidField> {
    let params = match value {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params.clone(),
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => {
            let wrong = |what: &dyn Display| {
                InvalidField::new("character_params", format!("not a JSON object: {what}"))
            };
            match json::parse(text.as_bytes()).map_err(|error| wrong(&error))? {
                Value::Object(params) => params,
                _ => return Err(wrong(&"it is another value")),
            }
        }
        Some(_) => return Err(InvalidField::new("character_params", "must be an object")),
    };
    check_params(&params)?;
    Ok(params)
}

/// The rules for template parameters.
pub(super) fn check_params(params: &Map<String, Value>) -> Result<(), InvalidField> {
    for (key, value) in params {
        let field = format!("character_params.{key}");
        if key == "context" {
            return Err(InvalidField::new(field, "the name context is reserved"));
        }
        if value.is_array() || value.is_object() {
            return Err(InvalidField::new(
                field,
                "must be a string, number, boolean or null",
            ));
        }
        if value
            .as_str()
            .is_some_and(|text| text.len() > MAX_PARAM_BYTES)
        {
            return Err(InvalidField::new(field, "at most 32 KiB"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use colloquy_base::language::NamedLanguage;
    use serde_json::json;

    use super::*;
    use crate::ConversationLanguage;

    #[test]
    fn unknown_languages_are_refused_with_their_field() {
        let check = |parameters: Value| {
            let parameters = super::parameters("parameters", parameters).unwrap();
            character(&Character {
                reference: None,
                personality: "You guide visitors.".to_owned(),
                parameters,
            })
        };
        for known in ["", "und", "auto", "Türkçe", "Swahili", "tur", "pt-BR"] {
            let both = json!({"language": known, "voice": {"language": known}});
            assert_eq!(check(both), Ok(()), "{known}");
        }
        for (parameters, field) in [
            (json!({"language": "Elvish"}), "parameters.language"),
            (
                json!({"language": "English", "voice": {"id": "f3", "language": "xx"}}),
                "parameters.voice.language",
            ),
        ] {
            let refused = check(parameters).unwrap_err();
            assert_eq!(refused.field, field);
            assert!(refused.message.starts_with("is not a known language"));
        }
        let refused = check(json!({"language": "mul"})).unwrap_err();
        assert!(refused.message.starts_with("stands for several languages"));
    }

    #[test]
    fn the_language_of_a_conversation_has_the_field_that_names_it() {
        let (own, of_voice) = ("parameters.language", "parameters.voice.language");
        for (language, voice, expected) in [
            ("German", "", Some(("de", own))),
            ("German", "auto", Some(("de", own))),
            ("auto", "fr", Some(("fr", of_voice))),
            ("German", "fr", Some(("fr", of_voice))),
            ("", "fr", Some(("fr", of_voice))),
            ("German", "und", Some(("de", own))),
            ("und", "", None),
            ("", "", None),
        ] {
            let named = json!({"language": language, "voice": {"language": voice}});
            let parameters = parameters("parameters", named).unwrap();
            let found = parameters.conversation_language().unwrap();
            let expected = expected.map(|(tag, field)| ConversationLanguage {
                named: NamedLanguage::Tag(tag.to_owned()),
                field,
            });
            assert_eq!(found, expected, "{language}, {voice}");
        }
    }

    #[test]
    fn what_is_no_delay_is_refused_and_counts_as_not_given_where_it_is_stored() {
        let stored = |given: &Value| {
            let text = json!({"patience_ms": given}).to_string();
            let parameters: CharacterParameters = serde_json::from_str(&text).unwrap();
            parameters.patience_ms
        };
        for wrong in [
            json!("3000"),
            json!(499),
            json!(60_001),
            json!(-3_000),
            json!(3_000.5),
            json!(true),
            json!([3_000]),
        ] {
            let refused = parameters("parameters", json!({"patience_ms": wrong})).unwrap_err();
            assert_eq!(refused.field, "parameters.patience_ms");
            assert_eq!(refused.message, "must be an integer of 500 to 60000");
            assert_eq!(stored(&wrong), None, "{wrong}");
        }
        for (given, expected) in [
            (json!(500), Some(500)),
            (json!(60_000), Some(60_000)),
            (json!(3e3), Some(3_000)),
            (Value::Null, None),
        ] {
            let read = parameters("parameters", json!({"patience_ms": given})).unwrap();
            assert_eq!(read.patience_ms, expected, "{given}");
            assert_eq!(stored(&given), expected, "{given}");
        }
    }

    #[test]
    fn fields_of_a_profile_are_flat() {
        for (described, place) in [
            (json!({"type": "string", "fields": {}}), ".pet.fields"),
            (
                json!({"type": "string", "one_of": [{"a": 1}]}),
                ".pet.one_of",
            ),
            (json!({"type": "string", "rows": [1, [2]]}), ".pet.rows"),
        ] {
            let value = json!({"profile_schema": {"pet": described}});
            let refused = parameters("parameters", value).unwrap_err();
            assert_eq!(refused.field, format!("parameters.profile_schema{place}"));
        }
        let flat =
            json!({"type": "string", "description": "A pet", "one_of": ["cat", "dog"], "most": 9});
        let parameters = parameters("parameters", json!({"profile_schema": {"pet": flat}}));
        let schema = parameters.unwrap().profile_schema.unwrap();
        assert_eq!(schema["pet"].description.as_deref(), Some("A pet"));
    }
}
