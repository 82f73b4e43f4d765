//! Creating a call: admission, the character as it is now, the stored row.

use super::{
    request::CreateCall,
    store::{self, CallRow, NewCall},
};
use crate::{
    accounts::{self, PartnerId, Principal, Tenant},
    app::App,
    characters::{self, CharacterInput},
    http::ApiError,
};

/// How long a client that found no room should wait.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(10);

pub(super) async fn create(
    app: &App,
    principal: &Principal,
    request: CreateCall,
) -> Result<CallRow, ApiError> {
    admit(app)?;
    check_publishable(principal, &request)?;
    let tenant = tenant(principal, &request)?;
    if !accounts::partner_exists(app.store.db(), &tenant).await? {
        return Err(ApiError::invalid("partner", "there is no such partner"));
    }
    let character = characters::resolve(app, principal, request.character).await?;
    // A template that cannot be filled in is an error of this request, not of the call later on.
    character.render(&request.character_params)?;
    let now = app.clock.now_ms();
    let new = NewCall {
        id: app.clock.new_id().to_string(),
        tenant,
        character,
        character_params: request.character_params,
        time_limit_seconds: request.time_limit_seconds,
        webhook_url: request.webhook.map(String::from),
        expires_s: (now + 999) / 1000 + i64::from(app.config.calls.connect_seconds),
        now,
    };
    let row = store::insert(app.store.db(), new).await?;
    metrics::counter!("colloquy_calls_created_total").increment(1);
    Ok(row)
}

/// Whether this node takes calls at all.
fn admit(app: &App) -> Result<(), ApiError> {
    if app.shutdown.is_cancelled() {
        return Err(ApiError::unavailable(
            "The server is shutting down",
            RETRY_AFTER,
        ));
    }
    if app.call_slots.available_permits() == 0 {
        return Err(ApiError::unavailable(
            "No room for another call now",
            RETRY_AFTER,
        ));
    }
    Ok(())
}

/// A publishable key stands in a page, so anyone can use it: it places calls to saved characters and nothing else.
fn check_publishable(principal: &Principal, request: &CreateCall) -> Result<(), ApiError> {
    if principal.allowed_origins.is_none() {
        return Ok(());
    }
    let refuse = |field: &str, message: &str| ApiError {
        field: Some(field.to_owned()),
        ..ApiError::forbidden(message)
    };
    if !matches!(request.character, CharacterInput::Saved { .. }) {
        return Err(refuse(
            "character",
            "a publishable key calls saved characters only",
        ));
    }
    if request.webhook.is_some() {
        return Err(refuse(
            "on_completion_webhook",
            "a publishable key sets no webhook",
        ));
    }
    Ok(())
}

/// Whose call it will be: the key's partner; for an admin key the one named, else the one the saved character is of.
fn tenant(principal: &Principal, request: &CreateCall) -> Result<Tenant, ApiError> {
    if let Some(own) = principal.own_tenant() {
        return Ok(own);
    }
    let partner = match (&request.partner, &request.character) {
        (Some(partner), _) => PartnerId::parse(partner)?,
        (None, CharacterInput::Saved { partner, .. }) => partner.clone(),
        (None, _) => {
            return Err(ApiError::invalid(
                "partner",
                "an admin key names the partner, or a saved character",
            ));
        }
    };
    principal.tenant(&partner)
}
