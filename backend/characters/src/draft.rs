//! Drafts: characters that are checked and filled in without being saved.

use std::sync::Arc;

use colloquy_accounts::Tenant;
use serde_json::{Map, Value};

use super::{
    Character, CharacterError, CharacterName, CharacterParameters, RenderError, RenderedCharacter,
    problem::Problem, saved::check_base, template::filled, validate,
};
use crate::Characters;

/// The most problems that a check names.
const MAX_PROBLEMS: usize = 20;

/// A character that may not be saved yet.
#[derive(Debug)]
pub(super) struct Draft {
    /// The name; a draft may have none yet.
    pub(super) name: Option<String>,
    /// The prompt template.
    pub(super) personality: String,
    /// The parameters, not read yet.
    pub(super) parameters: Option<Value>,
    /// The template parameters of a request; they win over those of the character.
    pub(super) character_params: Map<String, Value>,
}

/// The result of a check.
#[derive(Debug)]
pub(super) struct DraftCheck {
    /// What saving refuses, in the order in which it does: at most [`MAX_PROBLEMS`] and an unknown knowledge base.
    pub(super) problems: Vec<Problem>,
    /// The texts with their placeholders filled in; `None` if a problem or `unfilled` is in the way.
    pub(super) rendered: Option<RenderedCharacter>,
    /// Why the templates cannot be filled in, although they can be saved.
    pub(super) unfilled: Option<Problem>,
}

/// A check was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckError {
    /// The knowledge bases could not be asked.
    #[error(transparent)]
    Base(#[from] CharacterError),
    /// Too many templates are being filled in, or a fault of the server.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl From<CheckError> for colloquy_http::ApiError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Base(error) => error.into(),
            CheckError::Render(error) => error.into(),
        }
    }
}

/// Checks a draft as saving does, and fills its templates in. Nothing is stored.
///
/// # Errors
/// When the knowledge bases cannot be asked, or no template can be filled in now.
pub(super) async fn check(
    characters: &Characters,
    tenant: &Tenant,
    draft: Draft,
) -> Result<DraftCheck, CheckError> {
    let name = draft.name.as_deref().map(CharacterName::parse);
    let mut problems: Vec<Problem> = name
        .and_then(|parsed| Some(parsed.err()?.into()))
        .into_iter()
        .collect();
    let read = draft.parameters.map_or_else(
        || Ok(CharacterParameters::default()),
        |value| validate::parameters("parameters", value),
    );
    let is_read = read.is_ok();
    let parameters = read.unwrap_or_else(|unread| {
        problems.push(unread.into());
        CharacterParameters::default()
    });
    let character = Arc::new(Character {
        reference: None,
        personality: draft.personality,
        parameters,
    });
    let before = problems.len();
    problems.extend(validate::problems(&character).take(MAX_PROBLEMS - before));
    let is_sound = is_read && problems.len() == before;
    match check_base(characters, tenant, &character.parameters).await {
        Ok(()) => {}
        // An index of another form is among the problems.
        Err(CharacterError::Invalid(unknown)) => {
            if problems
                .iter()
                .all(|problem| problem.field != unknown.field)
            {
                problems.push(unknown.into());
            }
        }
        Err(error) => return Err(error.into()),
    }
    let filled = match is_sound {
        true => Some(filled(characters, tenant, &character, &draft.character_params).await?),
        false => None,
    };
    let (rendered, unfilled) = match filled {
        Some(Ok(rendered)) => (Some(rendered), None),
        Some(Err(problem)) => (None, Some(problem)),
        None => (None, None),
    };
    Ok(DraftCheck {
        problems,
        rendered,
        unfilled,
    })
}
