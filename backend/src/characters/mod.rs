//! Characters, saved and inline, and the templates of their personalities.
//!
//! Saved characters are versioned rows of a partner; inline ones arrive with a request. Both become a [`Character`],
//! whose templates [`Character::render`] fills in. What a character then says belongs to `generation` and `speech`.

mod input;
mod resolve;
pub mod routes;
pub mod saved;
mod store;
mod template;
mod validate;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::ApiError;

pub use self::{
    input::{CharacterInput, CharacterName},
    resolve::{CharacterCache, resolve},
    validate::parse_character_params,
};

/// A character, resolved from a saved reference or given inline. What outlives its request is stored with it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Character {
    /// The saved reference without its scheme (`<partner>/<name>`); `None` for an inline character.
    pub reference: Option<String>,
    /// The prompt template.
    pub personality: String,
    /// The parameters.
    pub parameters: CharacterParameters,
}

/// The parameters of a character, all optional. Those not named here are kept for the template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CharacterParameters {
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The language that it speaks, as a language name or BCP 47 tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What it calls the visitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_name: Option<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot_name: Option<String>,
    /// What separates a name from a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_colon: Option<String>,
    /// Text set before the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_prefix: Option<String>,
    /// What it says when it was interrupted by a sound without words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruption_message: Option<String>,
    /// Questions it answers easily.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub easy_questions: Vec<Value>,
    /// Questions it finds difficult.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub difficult_questions: Vec<Value>,
    /// The voice: a provider's voice id, or an object with `id`, `speed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Value>,
    /// What it says first, one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub greetings: Vec<String>,
    /// Legacy; ignored for length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_tokens: Option<Value>,
    /// Whether it answers from knowledge.
    pub rag_enabled: bool,
    /// The knowledge base, `<partner>/<knowledge_base_name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rag_index_required: Option<String>,
    /// Documents of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<CharacterDocument>,
    /// Everything else, for the template.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A document that a character carries with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CharacterDocument {
    /// The title.
    pub title: String,
    /// The text.
    pub text: String,
}

/// A character after its templates are filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedCharacter {
    /// The system prompt.
    pub system: String,
    /// What it says first, one of them.
    pub greetings: Vec<String>,
    /// What it says when it was interrupted by a sound without words.
    pub interruption_message: Option<String>,
}

impl Character {
    /// The name to show: `name`, else `robot_name`, else the last part of the reference.
    #[must_use]
    pub fn display_name(&self) -> Option<&str> {
        let parameters = &self.parameters;
        let reference = self
            .reference
            .as_deref()
            .and_then(|reference| reference.rsplit('/').next());
        parameters
            .name
            .as_deref()
            .or(parameters.robot_name.as_deref())
            .or(reference)
    }

    /// Fills the templates in: the character's parameters, then `params`, which win.
    ///
    /// # Errors
    /// 400 that names an unknown placeholder, the reserved `context`, or a template that takes too long.
    pub fn render(&self, params: &Map<String, Value>) -> Result<RenderedCharacter, ApiError> {
        template::render(self, params)
    }
}
