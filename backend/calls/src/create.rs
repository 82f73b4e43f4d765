//! Creating a call: admission, the character as it is now, the stored row.

use std::net::IpAddr;

use axum::http::HeaderMap;
use colloquy_accounts::{
    PartnerId, Principal, Tenant, ledger::Reservation, quotas::Payer, storage,
};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{CharacterInput, ConversationLanguage};

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
const MAX_UNBEGUN_BYTES: u64 = 32 * 1024 * 1024;

/// The most of them that the calls have that were created from one network, so that one stranger does not shut out all other visitors.
const MAX_UNBEGUN_BYTES_OF_NETWORK: u64 = 8 * 1024 * 1024;

/// The storage of a partner divided by this bounds the calls of all its publishable keys that have not begun, so that they leave room to the
/// partner however little it may store.
const UNBEGUN_PART: u64 = 2;

/// The storage of a partner divided by this bounds those of them that were created from one network.
const UNBEGUN_PART_OF_NETWORK: u64 = 8;

/// The minimum of both parts, beside the bytes of the call's character, which the partner chose: room for an ordinary call.
const LEAST_UNBEGUN_BYTES: u64 = 64 * 1024;

/// Creates a call. Returns it with `x-ratelimit-*` of the quota that pays for it, and `X-Colloquy-Warning` when the knowledge
/// base of its character is not found.
pub(super) async fn create(
    calls: &Calls,
    payer: &Payer,
    request: CreateCall,
    request_id: &str,
    network: Option<IpAddr>,
) -> Result<(CallRow, HeaderMap), CreateError> {
    let principal = &*payer.principal();
    check_publishable(principal, &request)?;
    let tenant = tenant(principal, &request)?;
    let page_key = principal.is_publishable().then(|| principal.key_id.clone());
    let origin = CallOrigin::new(tenant.partner().as_str().to_owned(), page_key, network);
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
    let created_at = calls.kernel.database_now_ms().await?;
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
        expires_s: (created_at + 999) / 1000 + i64::from(calls.config.calls.connect_seconds),
        created_at,
    };
    let partner = new.tenant.partner().clone();
    let transaction = calls.store.begin().await?;
    let (row, bytes) = store::insert(&transaction, new).await?;
    let mut headers = HeaderMap::new();
    if let Some(reservation) = &reservation {
        reservation.keep_in(&transaction).await?;
        headers = reservation.standing().headers(calls.clock.now_ms());
    }
    storage::charge_text(calls, &transaction, &partner, bytes).await?;
    // The sum of the partner is locked, so calls that are placed together see each other.
    if let Some(page) = &origin.page {
        let unbegun = store::unbegun_bytes(&transaction, partner.as_str(), page).await?;
        let storage = storage::limit(calls, &transaction, &partner).await?;
        check_unbegun(&unbegun, storage, row.bytes_of_character())?;
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

/// Checks the bytes of the calls of publishable keys that have not begun, a new one among them, against their bounds. `storage` is how many
/// bytes the partner may store, and `bytes_of_character` belongs to the new call.
fn check_unbegun(
    unbegun: &UnbegunBytes,
    storage: u64,
    bytes_of_character: usize,
) -> Result<(), Bound> {
    let least = LEAST_UNBEGUN_BYTES + bytes_of_character as u64;
    let part = |divisor: u64| (storage / divisor).max(least);
    let UnbegunBytes {
        of_key,
        of_network,
        of_partner,
        of_partner_network,
    } = *unbegun;
    let bounds = [
        (
            of_network,
            MAX_UNBEGUN_BYTES_OF_NETWORK,
            Bound::UnbegunOfNetwork,
        ),
        (
            of_partner_network,
            part(UNBEGUN_PART_OF_NETWORK),
            Bound::UnbegunStorageOfNetwork,
        ),
        (of_key, MAX_UNBEGUN_BYTES, Bound::Unbegun),
        (of_partner, part(UNBEGUN_PART), Bound::UnbegunStorage),
    ];
    for (bytes, most, bound) in bounds {
        if bytes.max(0).unsigned_abs() > most {
            return Err(refused(bound));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// Checks calls of so many bytes, of the network, of the key and of the partner.
    fn check(
        of_network: u64,
        of_key: u64,
        of_partner: u64,
        storage: u64,
        character: usize,
    ) -> Result<(), Bound> {
        let unbegun = UnbegunBytes {
            of_key: storage::counted(of_key),
            of_network: storage::counted(of_network),
            of_partner: storage::counted(of_partner),
            of_partner_network: storage::counted(of_network),
        };
        check_unbegun(&unbegun, storage, character)
    }

    #[test]
    fn calls_that_have_not_begun_have_constants_and_parts_of_the_storage() {
        let check_in = |storage: u64| {
            move |of_network: u64, of_key: u64, of_partner: u64| {
                check(of_network, of_key, of_partner, storage, 0)
            }
        };
        let large = check_in(100 * 1024 * MIB);
        assert_eq!(large(8 * MIB, 32 * MIB, 900 * MIB), Ok(()));
        let refused = Err(Bound::UnbegunOfNetwork);
        assert_eq!(large(8 * MIB + 1, 8 * MIB + 1, 8 * MIB + 1), refused);
        let refused = Err(Bound::Unbegun);
        assert_eq!(large(MIB, 32 * MIB + 1, 32 * MIB + 1), refused);

        let small = check_in(8 * MIB);
        assert_eq!(small(MIB, 4 * MIB, 4 * MIB), Ok(()));
        let refused = Err(Bound::UnbegunStorageOfNetwork);
        assert_eq!(small(MIB + 1, MIB + 1, MIB + 1), refused);
        let refused = Err(Bound::UnbegunStorage);
        assert_eq!(small(MIB, 2 * MIB, 4 * MIB + 1), refused);
    }

    #[test]
    fn an_ordinary_call_has_room_in_any_storage() {
        let check = |bytes: u64, character: usize| check(bytes, bytes, bytes, 1_000, character);
        assert_eq!(check(65_536, 0), Ok(()));
        assert_eq!(check(65_537, 0), Err(Bound::UnbegunStorageOfNetwork));
        // Whatever character the partner has chosen.
        assert_eq!(check(965_536, 900_000), Ok(()));
        assert!(check(965_537, 900_000).is_err());
    }
}
