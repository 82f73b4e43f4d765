//! Characters, saved and inline, and the templates of their personalities.
//!
//! Saved characters are versioned rows of a partner; inline ones arrive with a request. Both become a [`Character`],
//! whose templates [`rendered`] fills in. What a character then says belongs to `generation` and `speech`.

mod base;
mod draft;
mod error;
mod input;
mod memory;
mod problem;
mod resolve;
pub mod routes;
pub mod saved;
mod store;
mod template;
mod validate;

use std::{collections::BTreeMap, sync::Arc};

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, Tenant};
use colloquy_base::{
    invalid::InvalidField,
    language::{NamedLanguage, is_several, is_undetermined},
};
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State};
pub use colloquy_knowledge::CharacterDocuments;
use colloquy_knowledge::{CharacterDocument, KnowledgeBases};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::template::Renders;
pub use self::{
    base::{base_warning, unknown_base},
    error::{CharacterError, InvalidCharacter, RenderError, ResolveError},
    input::CharacterInput,
    memory::NoDocumentMemory,
    problem::Problem,
    resolve::{CharacterCache, resolve},
    store::TEXTS,
    template::rendered,
    validate::parse_character_params,
};
pub use colloquy_base::identifiers::CharacterName;

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Characters(Arc<Parts>);

/// What [`Characters`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    cache: Arc<CharacterCache>,
    /// What characters name to look things up in.
    bases: Arc<dyn KnowledgeBases>,
    renders: Renders,
}

impl Characters {
    /// Puts the parts together. The cache is one of the directory's dependents.
    #[must_use]
    pub fn new(
        accounts: Accounts,
        cache: Arc<CharacterCache>,
        bases: Arc<dyn KnowledgeBases>,
    ) -> Self {
        Self(Arc::new(Parts {
            accounts,
            cache,
            bases,
            renders: Renders::default(),
        }))
    }

    /// The documents that a character carries, `None` if it searches none. The memory that they take with their index is reserved until the
    /// last clone is dropped. Those of a saved character are the same for everybody, are reserved once, for its partner, and stay in a
    /// cache. Those of an inline character are this caller's alone, and are reserved for `tenant`.
    ///
    /// # Errors
    /// [`NoDocumentMemory`] if this node, or the partner's share of it, has less free.
    pub fn documents(
        &self,
        tenant: &Tenant,
        character: &Character,
    ) -> Result<Option<CharacterDocuments>, NoDocumentMemory> {
        self.0.cache.documents(tenant, character)
    }
}

colloquy_kernel::state!(Characters: Parts.accounts: Accounts);

/// Saved characters, as a part of a server.
#[derive(Debug)]
pub struct CharactersCapability;

impl<S: State> Capability<S> for CharactersCapability
where
    Accounts: FromRef<S>,
    Characters: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "characters"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }
}

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
    /// The language that it speaks and understands: a name (`German`, `Deutsch`), a code of two or three letters, a BCP 47 tag (`pt-BR`), or `auto`
    /// for the one that the visitor speaks. An unknown name is rejected, and `und` counts as none.
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
    /// Text set before the conversation; a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_prefix: Option<String>,
    /// What it says when it was interrupted by a sound without words; a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruption_message: Option<String>,
    /// Template of the sentence that the character says in a call when the model has not answered in time. Unset: the server's
    /// `calls.patience_message`; empty: no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_message: Option<String>,
    /// Delay before `patience_message` is spoken, in milliseconds, 500 to 60000. Unset: the server's `calls.patience_ms`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "validate::lenient_delay"
    )]
    #[schema(minimum = 500, maximum = 60_000)]
    pub patience_ms: Option<u32>,
    /// Questions it answers easily.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub easy_questions: Vec<Value>,
    /// Questions it finds difficult.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub difficult_questions: Vec<Value>,
    /// The voice: a provider's voice id, or an object with `id`, `speed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Value>,
    /// What it says first, one of them; templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub greetings: Vec<String>,
    /// Legacy; ignored for length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_tokens: Option<Value>,
    /// Whether it answers from knowledge.
    pub rag_enabled: bool,
    /// The knowledge base, `<partner>/<knowledge_base_name>`. The base must exist when a character with `rag_enabled` is saved. If it is
    /// deleted later, replies are made without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rag_index_required: Option<String>,
    /// Documents of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<CharacterDocument>,
    /// What calls find out of the visitor and tell the page (`onUserInfo`): at most 50 fields. Unset: the server's
    /// `calls.user_info`; empty: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_schema: Option<BTreeMap<String, ProfileField>>,
    /// Everything else, for the templates. All parameters have 4,000 values and 1 MiB of text together, no text above
    /// 32 KiB, and 16 lists and objects inside each other.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A field of a user's profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileField {
    /// What its values are.
    pub r#type: ProfileType,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What values of a profile are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileType {
    /// Text.
    String,
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
    /// What it says while the model lets the visitor wait; `None` where the character does not say.
    pub patience_message: Option<String>,
}

impl CharacterParameters {
    /// The language of its conversations: that of its voice, else its own; `auto` where neither names a language. `None` where both are empty
    /// or not known (`und`).
    ///
    /// # Errors
    /// Names the field whose language is unknown.
    pub fn conversation_language(&self) -> Result<Option<ConversationLanguage>, InvalidField> {
        let voice = self.voice.as_ref();
        let of_voice = voice.and_then(|voice| voice.get("language")?.as_str());
        let of_voice = named_language("parameters.voice.language", of_voice)?;
        let own = named_language("parameters.language", self.language.as_deref())?;
        let is_detected = of_voice
            .as_ref()
            .is_some_and(|of_voice| of_voice.named == NamedLanguage::Detected);
        Ok(match is_detected {
            true => own.or(of_voice),
            false => of_voice.or(own),
        })
    }

    /// The language of its conversations as a BCP 47 tag; `None` where none is named, or an unknown one.
    #[must_use]
    pub fn spoken_language(&self) -> Option<String> {
        match self.conversation_language().ok()??.named {
            NamedLanguage::Tag(tag) => Some(tag),
            NamedLanguage::Detected => None,
        }
    }

    /// True if its conversations are in the language that the visitor speaks.
    #[must_use]
    pub fn detects_language(&self) -> bool {
        let language = self.conversation_language().ok().flatten();
        language.is_some_and(|language| language.named == NamedLanguage::Detected)
    }

    /// The id of its voice: `voice` itself, or the `id`, else the `voice`, of that. `None` where it is empty or of another form.
    #[must_use]
    pub fn voice_id(&self) -> Option<&str> {
        let voice = self.voice.as_ref()?;
        let text = |key: &str| voice.get(key).and_then(Value::as_str);
        let id = voice.as_str().or(text("id")).or(text("voice"))?.trim();
        (!id.is_empty()).then_some(id)
    }
}

/// The language of a character's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLanguage {
    /// The language.
    pub named: NamedLanguage,
    /// The field of the character that names it: `parameters.language` or `parameters.voice.language`.
    pub field: &'static str,
}

/// Parses the language in a field; `None` where it is empty or not known (`und`).
fn named_language(
    field: &'static str,
    language: Option<&str>,
) -> Result<Option<ConversationLanguage>, InvalidField> {
    let is_named = |language: &&str| !language.trim().is_empty() && !is_undetermined(language);
    let Some(language) = language.filter(is_named) else {
        return Ok(None);
    };
    let named = NamedLanguage::parse(language).ok_or_else(|| {
        let message = match is_several(language) {
            true => "stands for several languages; give one of them, or auto",
            false => {
                "is not a known language; give a name (German), a code (de), a tag (pt-BR) or auto"
            }
        };
        InvalidField::new(field, message)
    })?;
    Ok(Some(ConversationLanguage { named, field }))
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
}
