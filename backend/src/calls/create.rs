//! Creating a call: admission, the character as it is now, the stored row.

use axum::http::HeaderMap;

use super::{
    bill,
    request::CreateCall,
    store::{self, CallRow, NewCall},
};
use crate::{
    accounts::{self, PartnerId, Principal, Tenant, ledger::Reservation, quotas::Payer},
    app::App,
    characters::{self, CharacterInput},
    http::ApiError,
};

/// How long a client that found no room should wait.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(10);

/// The call, and `x-ratelimit-*` of the quota that pays for it.
pub(super) async fn create(
    app: &App,
    payer: &Payer,
    request: CreateCall,
    request_id: &str,
) -> Result<(CallRow, HeaderMap), ApiError> {
    admit(app)?;
    let principal = &*payer.principal();
    check_publishable(principal, &request)?;
    let tenant = tenant(principal, &request)?;
    if !accounts::partner_exists(app.store.db(), &tenant).await? {
        return Err(ApiError::invalid("partner", "there is no such partner"));
    }
    if let Some(quota) = payer.quota() {
        quota.require_character(&request.character)?;
    }
    let character = characters::resolve(app, principal, request.character).await?;
    // A template that cannot be filled in is an error of this request, not of the call later on.
    character.render(&request.character_params)?;
    let now = app.clock.now_ms();
    let limit = request.time_limit_seconds;
    let reservation = match payer.quota() {
        Some(quota) => {
            let of = character.reference.clone();
            Some(bill::reserve(app, quota, of, limit, request_id).await?)
        }
        None => None,
    };
    let id = reservation.as_ref().and_then(Reservation::id);
    let new = NewCall {
        id: id.map_or_else(|| app.clock.new_id().to_string(), str::to_owned),
        tenant,
        quota: payer.quota().map(|quota| quota.id.clone()),
        character,
        character_params: request.character_params,
        time_limit_seconds: request.time_limit_seconds,
        webhook_url: request.webhook.map(String::from),
        expires_s: (now + 999) / 1000 + i64::from(app.config.calls.connect_seconds),
        now,
    };
    let transaction = app.store.begin().await?;
    let row = store::insert(&transaction, new).await?;
    let mut limits = HeaderMap::new();
    if let Some(reservation) = &reservation {
        reservation.keep_in(&transaction).await?;
        limits = reservation.standing().headers(now);
    }
    transaction.commit().await?;
    if let Some(reservation) = reservation {
        reservation.leave();
    }
    metrics::counter!("colloquy_calls_created_total").increment(1);
    Ok((row, limits))
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
