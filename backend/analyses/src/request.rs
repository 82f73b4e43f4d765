//! The body of an analysis: read, and checked before anything is stored. All wrong fields are told at once, by their paths, such as
//! `input.profile_schema.age.type`.

use std::collections::BTreeMap;

use colloquy_base::{invalid::InvalidField, json};
use colloquy_characters::{ProfileField, ProfileType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The most characters of an input, as compact JSON.
pub(super) const MAX_CHARS: usize = 100_000;
/// The most fields of a schema.
const MAX_FIELDS: usize = 200;
/// The longest name of a field, in characters.
const MAX_NAME_CHARS: usize = 100;
/// The most that is told of what is wrong.
const MAX_TOLD: usize = 50;

/// An analysis to make.
#[derive(ToSchema)]
#[schema(as = CreateDialogAnalysis)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct AnalysisBody {
    /// What is asked; 100,000 characters at most.
    input: AnalysisInput,
}

/// A conversation, and what is wanted to be known of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DialogAnalysisInput)]
pub(crate) struct AnalysisInput {
    /// The conversation, oldest first; at least one message.
    #[schema(min_items = 1)]
    messages: Vec<Message>,
    /// The language of the conversation, by its name.
    #[schema(example = "English")]
    language: String,
    /// What is known of the user, by the fields of `profile_schema`; null for what is not.
    #[schema(value_type = BTreeMap<String, Option<String>>)]
    current_profile: BTreeMap<String, Option<String>>,
    /// The fields of the profile.
    profile_schema: BTreeMap<String, ProfileField>,
    /// What is wanted to be known of the conversation.
    feedback_schema: BTreeMap<String, FeedbackField>,
    /// What else the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_extra_text: Option<String>,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DialogMessage)]
pub(super) struct Message {
    /// Who said it.
    pub(super) originator: Originator,
    /// The words.
    pub(super) text: String,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DialogOriginator)]
pub(super) enum Originator {
    /// The character.
    Bot,
    /// The user.
    User,
}

/// A field of the feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(super) struct FeedbackField {
    /// What its values are.
    #[serde(rename = "type")]
    pub(super) kind: FeedbackType,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

/// What values of feedback are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FeedbackType {
    /// Text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

impl FeedbackType {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// Its name, which is the one that JSON schemas have.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
        }
    }
}

/// An input that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) messages: Vec<Message>,
    pub(super) language: String,
    /// For each field of the profile what is known.
    pub(super) profile: BTreeMap<String, Option<String>>,
    /// For each field of the profile what it means.
    pub(super) descriptions: BTreeMap<String, String>,
    pub(super) feedback: BTreeMap<String, FeedbackField>,
    pub(super) extra: Option<String>,
}

impl From<Input> for AnalysisInput {
    fn from(input: Input) -> Self {
        let profile_schema = input.descriptions.into_iter().map(|(name, description)| {
            let field = ProfileField {
                r#type: ProfileType::String,
                description: Some(description).filter(|text| !text.is_empty()),
            };
            (name, field)
        });
        Self {
            messages: input.messages,
            language: input.language,
            current_profile: input.profile,
            profile_schema: profile_schema.collect(),
            feedback_schema: input.feedback,
            prompt_extra_text: input.extra,
        }
    }
}

/// What is found wrong while a body is looked through.
#[derive(Default)]
struct Wrong(Vec<InvalidField>);

impl Wrong {
    fn tell(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MAX_TOLD {
            self.0.push(InvalidField::new(path.into(), message.into()));
        }
    }
}

impl Input {
    /// Reads a body.
    ///
    /// # Errors
    /// All fields that are wrong.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Vec<InvalidField>> {
        let body: Map<String, Value> = json::read(body).map_err(|wrong| vec![wrong])?;
        let Some(input) = body.get("input") else {
            return Err(vec![InvalidField::new("input", "is required")]);
        };
        let Value::Object(fields) = input else {
            return Err(vec![InvalidField::new("input", "must be an object")]);
        };
        let compact = serde_json::to_string(input).unwrap_or_default();
        if compact.chars().count() > MAX_CHARS {
            return Err(vec![too_large()]);
        }
        let mut wrong = Wrong::default();
        let messages = messages(fields, &mut wrong);
        let language = text(fields, "language", &mut wrong);
        let descriptions = profile_schema(fields, &mut wrong);
        let feedback = feedback_schema(fields, &mut wrong);
        let profile = current_profile(fields, &descriptions, &mut wrong);
        let extra = match fields.get("prompt_extra_text") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Some(_) => {
                wrong.tell("input.prompt_extra_text", "must be a string");
                None
            }
        };
        match wrong.0.is_empty() {
            false => Err(wrong.0),
            true => Ok(Self {
                messages,
                language: language.unwrap_or_default(),
                profile,
                descriptions,
                feedback,
                extra,
            }),
        }
    }
}

/// The input has too many characters.
pub(super) fn too_large() -> InvalidField {
    InvalidField::new("input", "must have at most 100,000 characters")
}

fn messages(fields: &Map<String, Value>, wrong: &mut Wrong) -> Vec<Message> {
    let list = match fields.get("messages") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => {
            wrong.tell("input.messages", "must have at least one message");
            return Vec::new();
        }
        given => {
            let message = match given {
                None | Some(Value::Null) => "is required",
                Some(_) => "must be an array",
            };
            wrong.tell("input.messages", message);
            return Vec::new();
        }
    };
    let mut messages = Vec::with_capacity(list.len());
    for (index, message) in list.iter().enumerate() {
        let path = format!("input.messages.{index}");
        let Value::Object(message) = message else {
            wrong.tell(path, "must be an object with text and originator");
            continue;
        };
        let originator = match message.get("originator").and_then(Value::as_str) {
            Some("bot") => Some(Originator::Bot),
            Some("user") => Some(Originator::User),
            _ => {
                wrong.tell(format!("{path}.originator"), "must be bot or user");
                None
            }
        };
        let Some(text) = message.get("text").and_then(Value::as_str) else {
            wrong.tell(format!("{path}.text"), "must be a string");
            continue;
        };
        messages.extend(originator.map(|originator| Message {
            originator,
            text: text.to_owned(),
        }));
    }
    messages
}

fn text(fields: &Map<String, Value>, name: &str, wrong: &mut Wrong) -> Option<String> {
    match fields.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        given => {
            let message = match given {
                None | Some(Value::Null) => "is required",
                Some(_) => "must be a string that is not empty",
            };
            wrong.tell(format!("input.{name}"), message);
            None
        }
    }
}

/// The fields of a schema; none where it is no schema.
fn schema<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
    wrong: &mut Wrong,
) -> Vec<(&'a String, &'a Map<String, Value>)> {
    let path = format!("input.{name}");
    let all = match fields.get(name) {
        Some(Value::Object(all)) => all,
        given => {
            let message = match given {
                None | Some(Value::Null) => "is required",
                Some(_) => "must be an object",
            };
            wrong.tell(path, message);
            return Vec::new();
        }
    };
    if all.len() > MAX_FIELDS {
        wrong.tell(path, format!("must have at most {MAX_FIELDS} fields"));
        return Vec::new();
    }
    let mut found = Vec::new();
    for (field, described) in all {
        let path = format!("{path}.{field}");
        if !(1..=MAX_NAME_CHARS).contains(&field.chars().count()) {
            let message = format!("must have names of 1 to {MAX_NAME_CHARS} characters");
            wrong.tell(format!("input.{name}"), message);
            continue;
        }
        let Value::Object(described) = described else {
            wrong.tell(path, "must be an object with a type");
            continue;
        };
        if !matches!(
            described.get("description"),
            None | Some(Value::Null | Value::String(_))
        ) {
            wrong.tell(format!("{path}.description"), "must be a string");
        }
        for (key, value) in described {
            if !matches!(key.as_str(), "type" | "description") && json::is_nested(value) {
                wrong.tell(format!("{path}.{key}"), "must not be nested");
            }
        }
        found.push((field, described));
    }
    found
}

fn description(described: &Map<String, Value>) -> Option<String> {
    let text = described.get("description")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn profile_schema(fields: &Map<String, Value>, wrong: &mut Wrong) -> BTreeMap<String, String> {
    let mut descriptions = BTreeMap::new();
    for (field, described) in schema(fields, "profile_schema", wrong) {
        if described.get("type").and_then(Value::as_str) != Some("string") {
            let message = r#"must be "string""#;
            wrong.tell(format!("input.profile_schema.{field}.type"), message);
        }
        descriptions.insert(field.clone(), description(described).unwrap_or_default());
    }
    descriptions
}

fn feedback_schema(
    fields: &Map<String, Value>,
    wrong: &mut Wrong,
) -> BTreeMap<String, FeedbackField> {
    let mut feedback = BTreeMap::new();
    for (field, described) in schema(fields, "feedback_schema", wrong) {
        let kind = described.get("type").and_then(Value::as_str);
        let Some(kind) = kind.and_then(FeedbackType::of_name) else {
            let message = "must be string, number, integer or boolean";
            wrong.tell(format!("input.feedback_schema.{field}.type"), message);
            continue;
        };
        let description = description(described);
        feedback.insert(field.clone(), FeedbackField { kind, description });
    }
    feedback
}

fn current_profile(
    fields: &Map<String, Value>,
    descriptions: &BTreeMap<String, String>,
    wrong: &mut Wrong,
) -> BTreeMap<String, Option<String>> {
    let unknown = descriptions.keys().map(|field| (field.clone(), None));
    let mut profile: BTreeMap<_, _> = unknown.collect();
    let known = match fields.get("current_profile") {
        Some(Value::Object(known)) => known,
        given => {
            let message = match given {
                None | Some(Value::Null) => "is required",
                Some(_) => "must be an object",
            };
            wrong.tell("input.current_profile", message);
            return profile;
        }
    };
    for (field, value) in known {
        let path = format!("input.current_profile.{field}");
        match (profile.get_mut(field), value) {
            (None, _) => wrong.tell(path, "must be a field of profile_schema"),
            (Some(place), Value::String(text)) => *place = Some(text.clone()),
            (Some(place), Value::Null) => *place = None,
            (Some(_), _) => wrong.tell(path, "must be a string or null"),
        }
    }
    profile
}

#[cfg(test)]
mod tests {
    use colloquy_fuzz::fuzz;
    use serde_json::json;

    use super::*;

    fn body() -> Value {
        json!({"input": {
            "messages": [
                {"text": "Hello, who are you?", "originator": "bot"},
                {"text": "I am Ada.", "originator": "user"},
            ],
            "language": "English",
            "current_profile": {"name": null, "city": "Paris"},
            "profile_schema": {
                "name": {"type": "string", "description": "What the user is called"},
                "city": {"type": "string"},
                "age": {"type": "string", "description": null},
            },
            "feedback_schema": {"mood": {"type": "integer", "description": "1 to 5"}},
            "prompt_extra_text": "Be brief.",
        }})
    }

    fn told(body: &Value) -> Vec<String> {
        let told = Input::parse(body.to_string().as_bytes()).unwrap_err();
        told.iter().map(|wrong| wrong.field.to_string()).collect()
    }

    #[test]
    fn every_field_of_the_schema_has_a_place() {
        let input = Input::parse(body().to_string().as_bytes()).unwrap();
        let profile: Vec<_> = input.profile.iter().collect();
        let expected = [("age", None), ("city", Some("Paris")), ("name", None)];
        assert_eq!(profile.len(), 3);
        for ((field, value), (name, known)) in profile.into_iter().zip(expected) {
            assert_eq!((field.as_str(), value.as_deref()), (name, known));
        }
        assert_eq!(input.descriptions["name"], "What the user is called");
        assert_eq!(input.feedback["mood"].kind, FeedbackType::Integer);
        assert_eq!(input.extra.as_deref(), Some("Be brief."));
    }

    #[test]
    fn what_was_asked_is_shown_as_it_was_sent() {
        let mut sent = body();
        let input = Input::parse(sent.to_string().as_bytes()).unwrap();
        let shown = serde_json::to_value(AnalysisInput::from(input)).unwrap();
        // Every field of the profile has a place, and descriptions that say nothing are left out.
        sent["input"]["current_profile"]["age"] = Value::Null;
        sent["input"]["profile_schema"]["age"] = json!({"type": "string"});
        assert_eq!(shown, sent["input"]);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_path() {
        let mut wrong = body();
        let input = &mut wrong["input"];
        input["messages"][1] = json!({"text": 5, "originator": "me"});
        input["profile_schema"]["age"]["type"] = json!("integer");
        input["profile_schema"]["city"] = json!({"type": "string", "description": 7});
        input["profile_schema"]["name"]["properties"] = json!({"first": {"type": "string"}});
        input["feedback_schema"]["mood"]["type"] = json!("object");
        input["feedback_schema"]["mood"]["anyOf"] = json!([{"type": "string"}]);
        input["current_profile"]["height"] = json!("1.80");
        input["current_profile"]["name"] = json!(7);
        input["language"] = json!("");
        input["prompt_extra_text"] = json!([]);
        let mut fields = told(&wrong);
        fields.sort_unstable();
        let expected = [
            "input.current_profile.height",
            "input.current_profile.name",
            "input.feedback_schema.mood.anyOf",
            "input.feedback_schema.mood.type",
            "input.language",
            "input.messages.1.originator",
            "input.messages.1.text",
            "input.profile_schema.age.type",
            "input.profile_schema.city.description",
            "input.profile_schema.name.properties",
            "input.prompt_extra_text",
        ];
        assert_eq!(fields, expected);
        let messages = Input::parse(wrong.to_string().as_bytes()).unwrap_err();
        let message = |field: &str| {
            let mut of_field = messages.iter().filter(|wrong| wrong.field == field);
            of_field.next().map(|wrong| &*wrong.message)
        };
        for (field, expected) in [
            ("input.messages.1.originator", "must be bot or user"),
            ("input.messages.1.text", "must be a string"),
            ("input.prompt_extra_text", "must be a string"),
            ("input.profile_schema.age.type", r#"must be "string""#),
            ("input.profile_schema.name.properties", "must not be nested"),
            (
                "input.feedback_schema.mood.type",
                "must be string, number, integer or boolean",
            ),
            ("input.current_profile.name", "must be a string or null"),
            (
                "input.current_profile.height",
                "must be a field of profile_schema",
            ),
            ("input.language", "must be a string that is not empty"),
        ] {
            assert_eq!(message(field), Some(expected), "{field}");
        }
        assert_eq!(told(&json!({})), ["input"]);
        assert_eq!(told(&json!({"input": []})), ["input"]);
        let required = [
            "input.messages",
            "input.language",
            "input.profile_schema",
            "input.feedback_schema",
            "input.current_profile",
        ];
        assert_eq!(told(&json!({"input": {}})), required);
    }

    #[test]
    fn an_input_has_so_many_characters_at_most() {
        let with = |length: usize| {
            let mut body = body();
            body["input"]["prompt_extra_text"] = json!("ä".repeat(length));
            body
        };
        let rest = with(0)["input"].to_string().chars().count();
        Input::parse(with(MAX_CHARS - rest).to_string().as_bytes()).unwrap();
        assert_eq!(told(&with(MAX_CHARS - rest + 1)), ["input"]);
    }

    #[test]
    fn fuzzed_bodies_are_taken_or_refused_with_their_paths() {
        fuzz(
            &[body().to_string().into_bytes()],
            |bytes| match Input::parse(bytes) {
                Ok(input) => {
                    assert!(input.profile.keys().eq(input.descriptions.keys()));
                    assert!(!input.messages.is_empty() && !input.language.is_empty());
                    format!("{} {}", input.profile.len(), input.feedback.len())
                }
                Err(wrong) => {
                    assert!((1..=MAX_TOLD).contains(&wrong.len()));
                    let fields = wrong
                        .iter()
                        .map(|wrong| wrong.field.chars().take(20).collect::<String>());
                    fields.take(3).collect()
                }
            },
        );
    }
}
