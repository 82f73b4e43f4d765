//! Creating a call: admission, the character as it is now, the stored row.

use std::net::IpAddr;

use axum::http::HeaderMap;
use colloquy_accounts::{
    PartnerId, Principal, Tenant, ledger::Reservation, quotas::Payer, storage,
};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{CharacterInput, ConversationLanguage};
use colloquy_store::Transaction;

use super::{
    bill,
    error::CreateError,
    request::CreateCall,
    room::{Bound, CallOrigin, refused},
    store::{self, CallRow, NewCall, UnbegunBytes},
};
use crate::Calls;

/// The most bytes that the characters and parameters of the calls of a publishable key have until the calls begin. They count in the storage
/// of the partner, which a stranger could fill otherwise.
const MAX_UNBEGUN_BYTES: i64 = 32 * 1024 * 1024;

/// The most of them that the calls have that were created from one network, so that one stranger does not shut out all other visitors.
const MAX_UNBEGUN_BYTES_OF_NETWORK: i64 = 8 * 1024 * 1024;

/// Creates a call. Returns it with `x-ratelimit-*` of the quota that pays for it, and `X-Colloquy-Warning` when the knowledge
/// base of its character is not found.
pub(super) async fn create(
    calls: &Calls,
    payer: &Payer,
    request: CreateCall,
    request_id: &str,
    address: IpAddr,
) -> Result<(CallRow, HeaderMap), CreateError> {
    let principal = &*payer.principal();
    check_publishable(principal, &request)?;
    let tenant = tenant(principal, &request)?;
    let page_key = principal.is_publishable().then(|| principal.key_id.clone());
    let origin = CallOrigin::new(tenant.partner().as_str().to_owned(), page_key, address);
    calls.room.check(&origin)?;
    if !colloquy_accounts::partner_exists(calls.store.db(), &tenant).await? {
        return Err(InvalidField::new("partner", "there is no such partner").into());
    }
    if let Some(quota) = payer.quota() {
        quota.require_character(request.character.saved())?;
    }
    let character = colloquy_characters::resolve(calls, principal, request.character).await?;
    // The memory itself is held with the call's place: this node may not be the one that its client comes to, and a call that nobody
    // joins holds none.
    drop(calls.documents(&tenant, &character)?);
    // A template that cannot be filled in is an error of this request, not of the call later on.
    colloquy_characters::rendered(calls, &tenant, &character, &request.character_params).await?;
    let spoken = character.parameters.conversation_language();
    // A saved character may be older than this rule.
    let spoken = spoken.map_err(|invalid| InvalidField {
        field: format!("character.{}", invalid.field).into(),
        ..invalid
    })?;
    if let Some(ConversationLanguage { named, field }) = &spoken {
        let checked = calls.providers.transcriber.understands().check_named(named);
        let field = format!("character.{field}");
        checked.map_err(|error| InvalidField::new(field, error.to_string()))?;
    }
    let language = character.parameters.spoken_language();
    let default = calls.config.synthesizer.voice.as_deref();
    let voice = character.parameters.voice_id().or(default);
    let synthesizer = &calls.providers.synthesizer;
    let checked = synthesizer.check_language(voice, language.as_deref(), None);
    checked.map_err(|error| InvalidField::new("character", error.to_string()))?;
    let unknown_base =
        colloquy_characters::unknown_base(calls, &tenant, &character.parameters).await?;
    let now = calls.clock.now_ms();
    let limit = request.time_limit_seconds;
    let reservation = match payer.quota() {
        Some(quota) => {
            let of = character.reference.clone();
            Some(bill::reserve(calls, quota, of, limit, request_id).await?)
        }
        None => None,
    };
    let id = reservation.as_ref().and_then(Reservation::id);
    let new = NewCall {
        id: id.map_or_else(|| calls.clock.new_id().to_string(), str::to_owned),
        tenant,
        page: origin.page.clone(),
        quota: payer.quota().map(|quota| quota.id.clone()),
        character,
        character_params: request.character_params,
        time_limit_seconds: request.time_limit_seconds,
        webhook_url: request.webhook.map(String::from),
        expires_s: (now + 999) / 1000 + i64::from(calls.config.calls.connect_seconds),
        now,
    };
    let partner = new.tenant.partner().clone();
    let transaction = calls.store.begin().await?;
    let (row, bytes) = store::insert(&transaction, new).await?;
    let mut headers = HeaderMap::new();
    if let Some(reservation) = &reservation {
        reservation.keep_in(&transaction).await?;
        headers = reservation.standing().headers(now);
    }
    storage::charge_text(calls, &transaction, &partner, bytes).await?;
    // The sum of the partner is locked, so calls that are placed together see each other.
    if let Some((key, network)) = &origin.page {
        check_unbegun(&transaction, key, *network).await?;
    }
    transaction.commit().await?;
    if let Some(reservation) = reservation {
        reservation.leave();
    }
    metrics::counter!("colloquy_calls_created_total").increment(1);
    if let Some(error) = &unknown_base {
        tracing::warn!(%error, call = row.id, "the replies go on without a source of knowledge");
    }
    headers.extend(unknown_base.as_ref().map(colloquy_characters::base_warning));
    Ok((row, headers))
}

/// Checks what the calls of a publishable key have that have not begun, the one that the transaction has inserted among them.
async fn check_unbegun(
    transaction: &Transaction,
    page_key: &str,
    network: IpAddr,
) -> Result<(), CreateError> {
    let UnbegunBytes { of_key, of_network } =
        store::unbegun_bytes(transaction, page_key, network).await?;
    if of_network > MAX_UNBEGUN_BYTES_OF_NETWORK {
        return Err(refused(Bound::UnbegunOfNetwork).into());
    }
    if of_key > MAX_UNBEGUN_BYTES {
        return Err(refused(Bound::Unbegun).into());
    }
    Ok(())
}

/// A publishable key stands in a page, so anyone can use it: it places calls to saved characters and nothing else.
fn check_publishable(principal: &Principal, request: &CreateCall) -> Result<(), CreateError> {
    if principal.allowed_origins.is_none() {
        return Ok(());
    }
    let refuse = |field: &'static str, message: &'static str| {
        CreateError::NotForPages(InvalidField::new(field, message))
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
fn tenant(principal: &Principal, request: &CreateCall) -> Result<Tenant, CreateError> {
    if let Some(own) = principal.own_tenant() {
        return Ok(own);
    }
    let partner = match (&request.partner, &request.character) {
        (Some(partner), _) => PartnerId::parse(partner)?,
        (None, CharacterInput::Saved { partner, .. }) => partner.clone(),
        (None, _) => {
            let message = "an admin key names the partner, or a saved character";
            return Err(InvalidField::new("partner", message).into());
        }
    };
    Ok(principal.tenant(&partner)?)
}
