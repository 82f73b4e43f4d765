//! Taking a completion: the character as it is now, the stored row and its job.

use std::sync::Arc;

use axum::http::HeaderMap;
use colloquy_accounts::{Principal, Tenant, storage};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{Character, CharacterInput, ConversationLanguage};
use colloquy_kernel::jobs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    complete::Complete,
    error::AcceptError,
    request::{Checked, Content, Question},
    store,
};
use crate::Messaging;

/// Everything that the job needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Accepted {
    /// What is asked.
    pub(super) question: Question,
    /// Who answers: later edits of a saved character do not reach the completion.
    pub(super) character: Character,
    /// The template parameters.
    pub(super) character_params: Map<String, Value>,
}

/// Stores a completion and its job. Returns its id, with `X-Colloquy-Warning` when the knowledge base of its character is not found.
///
/// # Errors
/// When the character is unknown or its templates cannot be filled in, there is no memory for its documents, the partner has too many
/// completions in progress or would store more than it may, or the database fails.
pub(super) async fn accept(
    messaging: &Messaging,
    principal: &Principal,
    body: Checked,
) -> Result<(String, HeaderMap), AcceptError> {
    let Checked {
        question,
        character,
        character_params,
    } = body;
    let own = principal.own_tenant();
    let field = character.field;
    let character = character.of_key(own.as_ref())?;
    let tenant = match own {
        Some(tenant) => tenant,
        None => tenant_of(principal, &character)?,
    };
    let character = colloquy_characters::resolve(messaging, principal, character)
        .await
        .map_err(|error| AcceptError::Unresolved { field, error })?;
    check_language(messaging, &question, &character)?;
    // The job reserves the memory itself, on the node that it runs on.
    drop(messaging.documents(&tenant, &character)?);
    // A template that cannot be filled in is an error of this request, not of the job later on.
    colloquy_characters::rendered(messaging, &tenant, &character, &character_params).await?;
    let unknown_base =
        colloquy_characters::unknown_base(messaging, &tenant, &character.parameters).await?;
    let accepted = Accepted {
        question,
        character: Arc::unwrap_or_clone(character),
        character_params,
    };
    let id = messaging.clock.new_id().to_string();
    let job = Complete {
        completion: id.clone(),
    };
    let transaction = messaging.store.begin().await?;
    let open = store::count_open(&transaction, &tenant).await?;
    if open >= u64::from(messaging.config.limits.completions_in_progress) {
        return Err(AcceptError::TooMany);
    }
    let bytes = store::insert(
        &transaction,
        &tenant,
        &id,
        &accepted,
        messaging.clock.now_ms(),
    )
    .await?;
    jobs::enqueue(messaging, &transaction, Some(tenant.partner()), &job).await?;
    storage::charge_text(messaging, &transaction, tenant.partner(), bytes).await?;
    transaction.commit().await?;
    messaging.kernel.jobs.wake();
    if let Some(error) = &unknown_base {
        tracing::warn!(%error, completion = id, "the replies go on without a source of knowledge");
    }
    let warning = unknown_base.as_ref().map(colloquy_characters::base_warning);
    Ok((id, warning.into_iter().collect()))
}

/// Checks that voice messages in the character's language are understood.
///
/// # Errors
/// Names the character's language when it is unknown, or what is missing for it.
fn check_language(
    messaging: &Messaging,
    question: &Question,
    character: &Character,
) -> Result<(), InvalidField> {
    let mut new = question.new.iter();
    if !new.any(|message| matches!(message.content, Content::Audio(_))) {
        return Ok(());
    }
    let spoken = character.parameters.conversation_language();
    // A saved character may be older than this rule.
    let spoken = spoken.map_err(|invalid| InvalidField {
        field: format!("input.character.{}", invalid.field).into(),
        ..invalid
    })?;
    let Some(ConversationLanguage { named, field }) = spoken else {
        return Ok(());
    };
    let understood = messaging.providers.batch.transcriber.understands();
    let checked = understood.check_named(&named);
    let field = format!("input.character.{field}");
    checked.map_err(|error| InvalidField::new(field, error.to_string()))
}

/// Whose completion an admin key makes: the saved character's partner's.
fn tenant_of(principal: &Principal, character: &CharacterInput) -> Result<Tenant, AcceptError> {
    let partner = character.partner().ok_or_else(|| {
        InvalidField::new("input.character", "an admin key names a saved character")
    })?;
    Ok(principal.tenant(partner)?)
}
