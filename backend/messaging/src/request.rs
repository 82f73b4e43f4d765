//! The body of a completion: read, and checked before anything is stored. An error names the field, such as
//! `input.messages[2].audio_file_id`.
//!
//! Fields that the interface does not have are ignored; optional ones may be null.

use std::collections::{BTreeMap, HashSet};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use colloquy_accounts::Tenant;
use colloquy_base::{invalid::InvalidField, json};
use colloquy_characters::{CharacterInput, CharacterName, parse_character_params};
use colloquy_providers::ChatRole;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::AcceptError;

/// The most messages of a conversation.
const MAX_MESSAGES: usize = 1_000;
/// The longest id, of a message or an audio file, in characters.
const MAX_ID_CHARS: usize = 200;
/// The longest text of a message, in characters.
const MAX_TEXT_CHARS: usize = 20_000;
/// The most variants.
const MAX_OPTIONS: u64 = 12;

/// Base64 as [RFC 4648](https://www.rfc-editor.org/rfc/rfc4648) has it, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What every page of an Ogg file begins with (RFC 3533, 6).
const OGG: &[u8] = b"OggS";

/// A completion to make.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CreateCompletion)]
pub(super) struct CompletionBody {
    /// What is asked.
    input: CompletionInput,
}

/// A conversation that wants an answer.
#[derive(Debug, Deserialize, ToSchema)]
struct CompletionInput {
    /// The conversation, oldest first: past messages, then one or more new ones; at most 1,000.
    messages: Vec<Message>,
    /// Opus or Vorbis in Ogg, base64, by the ids that messages name. Those of a request may last ten minutes together,
    /// unless that is configured otherwise.
    audio_files: Option<BTreeMap<String, String>>,
    /// `repo:<partner>/<character>`, or a custom object `{description, personality}`, where `description` is a JSON string
    /// with the character's parameters and `personality` the system prompt.
    character: Option<Value>,
    /// The name of a saved character of the partner.
    #[schema(deprecated)]
    character_name: Option<String>,
    /// Template parameters: strings, numbers, booleans, null. The name `context` is reserved.
    #[schema(value_type = Option<Object>)]
    character_params: Option<Value>,
    /// Whether the answer is spoken, too.
    #[schema(default = true)]
    generate_audio: Option<bool>,
    /// How many variants of the answer are made; more than one only without audio.
    #[schema(default = 1, minimum = 1, maximum = 12)]
    num_options: Option<u64>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CompletionMessage)]
struct Message {
    /// Unique among the messages.
    id: String,
    /// Who said a past message; new ones are the user's.
    originator: Option<Originator>,
    /// What sort a new message is of; past ones are text.
    #[serde(rename = "type")]
    kind: Option<MessageKind>,
    /// The words; 1 to 20,000 characters. A new audio message has none.
    text: Option<String>,
    /// Where a new audio message's sound is in `audio_files`.
    audio_file_id: Option<String>,
    /// Whether the message is past.
    is_processed: bool,
}

impl Message {
    /// The audio file that it names; empty is none.
    fn file(&self) -> Option<&str> {
        self.audio_file_id.as_deref().filter(|id| !id.is_empty())
    }
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MessageOriginator)]
enum Originator {
    /// The character.
    Bot,
    /// The user.
    User,
}

/// What sort of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageKind {
    /// Written.
    Text,
    /// Spoken.
    Audio,
}

/// A body that was checked.
#[derive(Debug, PartialEq)]
pub(super) struct Checked {
    /// The conversation.
    pub(super) question: Question,
    /// Who answers.
    pub(super) character: NamedCharacter,
    /// The template parameters; flat.
    pub(super) character_params: Map<String, Value>,
}

/// A character as the request names it.
#[derive(Debug, PartialEq)]
pub(super) struct NamedCharacter {
    /// The field that names it.
    pub(super) field: &'static str,
    named: NamedBody,
}

#[derive(Debug, PartialEq)]
enum NamedBody {
    /// With its partner, or inline.
    Fully(CharacterInput),
    /// By its name alone: one of the key's partner.
    OfPartner(CharacterName),
}

/// What a completion is to answer, as it is stored.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Question {
    /// Past messages, oldest first.
    pub(super) past: Vec<PastMessage>,
    /// New messages, oldest first; at least one.
    pub(super) new: Vec<NewMessage>,
    /// The audio files that new messages name, base64.
    pub(super) audio_files: BTreeMap<String, String>,
    /// Whether the answer is spoken, too.
    pub(super) generate_audio: bool,
    /// How many variants are wanted.
    pub(super) num_options: usize,
}

/// What was said before.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PastMessage {
    originator: Originator,
    /// The words.
    pub(super) text: String,
}

impl PastMessage {
    /// Who said it.
    pub(super) fn role(&self) -> ChatRole {
        match self.originator {
            Originator::Bot => ChatRole::Assistant,
            Originator::User => ChatRole::User,
        }
    }
}

/// A message that is to be answered.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NewMessage {
    /// The client's id.
    pub(super) id: String,
    /// What it holds.
    pub(super) content: Content,
}

/// What a new message holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    /// Words.
    Text(String),
    /// The id of an audio file.
    Audio(String),
}

impl Checked {
    /// Reads a body.
    ///
    /// # Errors
    /// When a field is wrong, or what stands for the character is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, AcceptError> {
        let CompletionBody { input } = json::read(bytes)?;
        let mut files = input.audio_files.unwrap_or_default();
        for (id, file) in &files {
            check_file(id, file)?;
        }
        let (past, new) = conversation(input.messages, &files)?;
        let used = new.iter().filter_map(|message| match &message.content {
            Content::Audio(id) => Some(id.as_str()),
            Content::Text(_) => None,
        });
        let used = used.collect::<HashSet<_>>();
        files.retain(|id, _| used.contains(id.as_str()));

        let num_options = input.num_options.unwrap_or(1);
        if !(1..=MAX_OPTIONS).contains(&num_options) {
            let message = format!("a whole number of 1 to {MAX_OPTIONS}");
            return Err(InvalidField::new("input.num_options", message).into());
        }
        let generate_audio = input.generate_audio.unwrap_or(true);
        if generate_audio && num_options > 1 {
            let message = "must be false when num_options is more than 1";
            return Err(InvalidField::new("input.generate_audio", message).into());
        }
        let given = |value: &Value| !value.is_null();
        let character = character(input.character.filter(given), input.character_name)?;
        let params =
            parse_character_params(input.character_params.as_ref()).map_err(AcceptError::Params)?;
        Ok(Self {
            question: Question {
                past,
                new,
                audio_files: files,
                generate_audio,
                num_options: num_options as usize,
            },
            character,
            character_params: params,
        })
    }
}

impl NamedCharacter {
    /// The character for a key of this tenant, `None` for an admin key.
    ///
    /// # Errors
    /// When an admin key names a character without its partner.
    pub(super) fn of_key(self, own: Option<&Tenant>) -> Result<CharacterInput, InvalidField> {
        match (self.named, own) {
            (NamedBody::Fully(input), _) => Ok(input),
            (NamedBody::OfPartner(name), Some(tenant)) => Ok(CharacterInput::Saved {
                partner: tenant.partner().clone(),
                name,
                force: false,
            }),
            (NamedBody::OfPartner(_), None) => Err(InvalidField::new(
                self.field,
                "an admin key names a character as repo:<partner>/<character>",
            )),
        }
    }
}

/// The character of either field.
fn character(given: Option<Value>, name: Option<String>) -> Result<NamedCharacter, AcceptError> {
    let field = "input.character_name";
    let wrong = |message: String| InvalidField::new(field, message);
    let name = match (given, name) {
        (Some(character), None) => {
            return Ok(NamedCharacter {
                field: "input.character",
                named: NamedBody::Fully(CharacterInput::parse(&character)?),
            });
        }
        (None, Some(name)) => name,
        (Some(_), Some(_)) => {
            return Err(wrong("give either character or character_name".to_owned()).into());
        }
        (None, None) => return Err(InvalidField::new("input.character", "is required").into()),
    };
    let schemes = ["repo:", "repo-force:"];
    let named = if schemes.iter().any(|scheme| name.starts_with(scheme)) {
        let character = CharacterInput::parse(&Value::String(name));
        NamedBody::Fully(character.map_err(|invalid| wrong(invalid.message.to_string()))?)
    } else {
        let name = CharacterName::parse(&name);
        NamedBody::OfPartner(name.map_err(|invalid| wrong(invalid.message.to_string()))?)
    };
    Ok(NamedCharacter { field, named })
}

/// The past messages and the new ones.
fn conversation(
    messages: Vec<Message>,
    files: &BTreeMap<String, String>,
) -> Result<(Vec<PastMessage>, Vec<NewMessage>), InvalidField> {
    if messages.len() > MAX_MESSAGES {
        let message = format!("at most {MAX_MESSAGES} messages");
        return Err(InvalidField::new("input.messages", message));
    }
    let (mut past, mut new) = (Vec::new(), Vec::<NewMessage>::new());
    let mut ids = HashSet::new();
    for (index, message) in messages.into_iter().enumerate() {
        let wrong = |field: &str, message: &'static str| {
            InvalidField::new(format!("input.messages[{index}].{field}"), message)
        };
        if !is_id(&message.id) {
            return Err(wrong("id", "1 to 200 characters"));
        }
        if !ids.insert(message.id.clone()) {
            return Err(wrong("id", "another message has this id"));
        }
        if !message.is_processed {
            let content = new_content(&message, files, wrong)?;
            let id = message.id;
            new.push(NewMessage { id, content });
        } else if new.is_empty() {
            past.push(past_message(message, wrong)?);
        } else {
            return Err(wrong("is_processed", "past messages stand before new ones"));
        }
    }
    if new.is_empty() {
        let message = "there has to be a new message, with is_processed false";
        return Err(InvalidField::new("input.messages", message));
    }
    Ok((past, new))
}

fn past_message(
    message: Message,
    wrong: impl Fn(&str, &'static str) -> InvalidField,
) -> Result<PastMessage, InvalidField> {
    if message.file().is_some() {
        return Err(wrong("audio_file_id", "past messages carry text only"));
    }
    let originator = message
        .originator
        .ok_or_else(|| wrong("originator", "is required in a past message"))?;
    Ok(PastMessage {
        originator,
        text: text(message.text, wrong)?,
    })
}

fn new_content(
    message: &Message,
    files: &BTreeMap<String, String>,
    wrong: impl Fn(&str, &'static str) -> InvalidField,
) -> Result<Content, InvalidField> {
    if message.originator == Some(Originator::Bot) {
        return Err(wrong("originator", "new messages are the user's"));
    }
    let file = message.file();
    match message.kind {
        None => Err(wrong("type", "is required in a new message")),
        Some(MessageKind::Text) if file.is_some() => {
            Err(wrong("audio_file_id", "a text message has no audio"))
        }
        Some(MessageKind::Text) => text(message.text.clone(), wrong).map(Content::Text),
        Some(MessageKind::Audio) if message.text.as_ref().is_some_and(|text| !text.is_empty()) => {
            Err(wrong(
                "text",
                "an audio message has no text before it is transcribed",
            ))
        }
        Some(MessageKind::Audio) => match file {
            None => Err(wrong("audio_file_id", "is required in an audio message")),
            Some(id) if !files.contains_key(id) => {
                Err(wrong("audio_file_id", "audio_files has no such file"))
            }
            Some(id) => Ok(Content::Audio(id.to_owned())),
        },
    }
}

fn text(
    text: Option<String>,
    wrong: impl Fn(&str, &'static str) -> InvalidField,
) -> Result<String, InvalidField> {
    text.filter(|text| !text.trim().is_empty() && text.chars().count() <= MAX_TEXT_CHARS)
        .ok_or_else(|| wrong("text", "1 to 20,000 characters"))
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID_CHARS).contains(&id.chars().count())
}

/// Checks what can be told without decoding the sound.
fn check_file(id: &str, file: &str) -> Result<(), InvalidField> {
    if !is_id(id) {
        return Err(InvalidField::new(
            "input.audio_files",
            "an id has 1 to 200 characters",
        ));
    }
    let wrong =
        |message: &'static str| InvalidField::new(format!("input.audio_files.{id}"), message);
    let bytes = decode_file(file).map_err(|_| wrong("is not base64"))?;
    match bytes.starts_with(OGG) {
        true => Ok(()),
        false => Err(wrong("is not an Ogg file")),
    }
}

/// The bytes of an audio file.
///
/// # Errors
/// When it is not base64.
pub(super) fn decode_file(file: &str) -> Result<Vec<u8>, base64::DecodeError> {
    BASE64.decode(file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use colloquy_fuzz::fuzz;

    #[test]
    fn fuzzed_bodies_are_taken_within_the_limits_or_refused_with_a_field() {
        let messages = json!([
            {"id": "p", "originator": "bot", "text": "Grüße 👋🏽", "is_processed": true},
            {"id": "t", "type": "text", "text": "Hello", "is_processed": false},
            {"id": "a", "type": "audio", "audio_file_id": "f", "is_processed": false},
        ]);
        let custom =
            json!({"description": "{\"name\": \"Max\"}", "personality": "You are {{ name }}."});
        let seeds = [
            json!({"input": {"messages": [messages[1]], "character": "repo:acme/ada", "generate_audio": false, "num_options": 2}}),
            json!({"input": {"messages": [messages[1]], "character_name": "ada", "character_params": {"a": 1, "b": null}}}),
            json!({"input": {"messages": messages, "character": custom, "audio_files": {"f": BASE64.encode(b"OggS\0")}}}),
        ];
        for seed in &seeds {
            assert!(
                Checked::parse(seed.to_string().as_bytes()).is_ok(),
                "{seed}"
            );
        }
        let seeds = seeds.map(|seed| seed.to_string().into_bytes());
        fuzz(&seeds, |bytes| match Checked::parse(bytes) {
            Ok(Checked { question, .. }) => {
                assert!((1..=MAX_OPTIONS as usize).contains(&question.num_options));
                assert!(question.num_options == 1 || !question.generate_audio);
                assert!(!question.new.is_empty());
                for message in &question.new {
                    if let Content::Audio(id) = &message.content {
                        assert!(decode_file(&question.audio_files[id]).is_ok());
                    }
                }
                let (past, new) = (question.past.len(), question.new.len());
                format!("{past} {new} {}", question.audio_files.len())
            }
            Err(error) => {
                let error = colloquy_http::ApiError::from(error);
                assert_eq!(error.status.as_u16(), 400, "{error}");
                let field = error.field.unwrap_or_default();
                assert!(!field.is_empty());
                let kind = field.chars().filter(|c| !c.is_ascii_digit());
                kind.take(40).collect()
            }
        });
    }
}
