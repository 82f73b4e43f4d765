//! Quotas and their keys: what a partner's applications may use, of which models and characters, and how much of it.
//!
//! A quota's key reads `cqq_<id>_<secret>` and is kept like an API key. It opens the interfaces that cost something and
//! nothing else; the routes under `/api/quotas` are for API keys with the scope `keys`. How much of a quota is left, the
//! [`ledger`] knows: the limits stand beside the
//! counters, a row for each measure, and it alone changes these.

mod caller;
mod change;
mod csv;
mod pattern;
mod payer;
pub mod routes;
mod store;
mod usage;
mod view;

use colloquy_base::{
    identifiers::{CharacterName, PartnerId},
    invalid::InvalidField,
};
use colloquy_http::DiskLow;
use colloquy_store::{Keyset, Slice, StoreError, Transaction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::caller::is_quota_key;
pub(crate) use self::store::for_update;
pub(super) use self::store::lock_all;
pub use self::{
    caller::{QuotaCache, QuotaCaller, key_text},
    change::QuotaChange,
    pattern::{CharacterPattern, MalformedPattern},
    payer::Payer,
};
use super::{
    AccountError, DataScope, PartnerSettings, Principal, Tenant, keys,
    ledger::{self, LedgerError, Limits, Period, Standing},
    storage,
};
use crate::Directory;

/// What quota keys begin with.
const PREFIX: &str = "cqq_";

/// What a quota is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum QuotaKind {
    /// Text generation.
    Text,
    /// Speech synthesis.
    Speech,
    /// Calls.
    Call,
    /// Transcripts of recordings.
    Transcript,
}

/// A stored quota, without its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The id, which is also part of the key.
    pub id: String,
    /// Whose quota it is.
    pub tenant: Tenant,
    /// What people call it.
    pub name: String,
    /// The HMAC of the key, hexadecimal.
    mac: String,
    /// What it is for.
    pub kinds: Vec<QuotaKind>,
    /// The models it may use, by their public names; `None` for all.
    pub allowed_models: Option<Vec<String>>,
    /// The characters it may use; `None` for all of the partner and inline ones.
    pub allowed_characters: Option<Vec<CharacterPattern>>,
    /// Whether it is switched off.
    pub disabled: bool,
    /// When it was made, in milliseconds since 1970, as all times here.
    pub created_at: i64,
    /// When it was changed last.
    pub updated_at: i64,
    /// When it ends.
    pub expires_at: Option<i64>,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
    /// What is switched for its partner.
    partner: PartnerSettings,
}

/// A quota and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaState {
    /// The quota.
    pub quota: Quota,
    /// Its limits and counters, in the period that runs now.
    pub standing: Standing,
    /// When something was reserved last.
    pub last_used_at: Option<i64>,
}

impl Quota {
    /// Checks that the quota is for this.
    ///
    /// # Errors
    /// When it is not.
    pub fn require_kind(&self, kind: QuotaKind) -> Result<(), NotAllowed> {
        match self.kinds.contains(&kind) {
            true => Ok(()),
            false => Err(NotAllowed::Kind),
        }
    }

    /// Checks that the quota may use a model, by its public name.
    ///
    /// # Errors
    /// When it may not.
    pub fn require_model(&self, model: &str) -> Result<(), NotAllowed> {
        match &self.allowed_models {
            Some(allowed) if !allowed.iter().any(|allowed| allowed == model) => {
                Err(NotAllowed::Model)
            }
            _ if !self.partner.allows_model(model) => Err(NotAllowed::PartnerModel),
            _ => Ok(()),
        }
    }

    /// Checks that the quota may use a character: a saved one, or, without a name, one that a request brings along. Another
    /// partner's is never allowed.
    ///
    /// # Errors
    /// When it may not.
    pub fn require_character(
        &self,
        saved: Option<(&PartnerId, &CharacterName)>,
    ) -> Result<(), NotAllowed> {
        let own = saved.is_none_or(|(partner, _)| partner == self.tenant.partner());
        let allowed = match &self.allowed_characters {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(saved)),
            None => true,
        };
        match own && allowed {
            true => Ok(()),
            false => Err(NotAllowed::Character),
        }
    }

    fn validity(&self) -> Validity {
        Validity {
            revoked: self.revoked_at.is_some(),
            expires_at: self.expires_at,
            disabled: self.disabled,
        }
    }

    /// The quota as whoever looks characters up: it reaches its partner, and has no scope.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal {
            key_id: self.id.clone(),
            reach: DataScope::Partner(self.tenant.partner().clone()),
            scopes: Some(Vec::new()),
            allowed_origins: None,
            partner_rate: None,
        }
    }
}

/// A quota is not for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// It is for other interfaces.
    #[error("The quota is not for this interface")]
    Kind,
    /// It may not use the model.
    #[error("The quota does not allow this model")]
    Model,
    /// Its partner may not use the model.
    #[error("The partner may not use this model")]
    PartnerModel,
    /// It may not use the character.
    #[error("The quota does not allow this character")]
    Character,
}

/// Whether a quota can be used at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    /// Whether it was revoked, whenever that was: clocks differ.
    pub(super) revoked: bool,
    /// When it ends.
    pub(super) expires_at: Option<i64>,
    /// Whether it is switched off.
    pub(super) disabled: bool,
}

/// Why a quota cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuotaUnusable {
    /// It was revoked, it expired, or it is not there any more.
    #[error("the quota has ended")]
    Ended,
    /// It is switched off.
    #[error("the quota is switched off")]
    Disabled,
}

impl Validity {
    /// Passes while the quota can be used.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn check(self, now_ms: i64) -> Result<(), QuotaUnusable> {
        if self.revoked || self.expires_at.is_some_and(|at| at <= now_ms) {
            return Err(QuotaUnusable::Ended);
        }
        if self.disabled {
            return Err(QuotaUnusable::Disabled);
        }
        Ok(())
    }
}

/// Makes a quota and its key, whose text is the only copy.
///
/// # Errors
/// A bad setting, a partner that is gone or would store more than it may, the database's failure.
pub async fn create(
    directory: &Directory,
    tenant: &Tenant,
    change: QuotaChange,
) -> Result<(QuotaState, String), AccountError> {
    let now = directory.clock.now_ms();
    let id = directory.clock.new_id().simple().to_string();
    let (text, mac) = keys::mint(directory, PREFIX, &id).await?;
    let mut state = QuotaState {
        quota: Quota {
            id,
            tenant: tenant.clone(),
            name: String::new(),
            mac,
            kinds: Vec::new(),
            allowed_models: None,
            allowed_characters: None,
            disabled: false,
            created_at: now,
            updated_at: now,
            expires_at: None,
            revoked_at: None,
            partner: PartnerSettings::default(),
        },
        standing: Standing::fresh(Period::Month, Limits::default(), now),
        last_used_at: None,
    };
    change.apply(&mut state)?;
    if state.quota.kinds.is_empty() {
        return Err(InvalidField::new("kinds", "name at least one kind").into());
    }
    state.standing = Standing::fresh(state.standing.period, state.standing.limits, now);
    let transaction = directory.store.begin().await?;
    if !super::partner_exists(&transaction, tenant).await? {
        return Err(AccountError::NotFound("Partner"));
    }
    store::insert(&transaction, &state).await?;
    let quota = &state.quota.id;
    storage::charge_quota(directory, &transaction, tenant.partner(), quota, 0).await?;
    transaction.commit().await?;
    Ok((state, text))
}

/// A part of the quotas of a partner, newest first; revoked ones too.
///
/// # Errors
/// The database's failure.
pub async fn list(
    directory: &Directory,
    tenant: &Tenant,
    slice: &Slice,
) -> Result<Vec<QuotaState>, StoreError> {
    let mut quotas = store::list(directory.store.db(), tenant, slice).await?;
    for state in &mut quotas {
        state.standing.roll_over(directory.clock.now_ms());
    }
    Ok(quotas)
}

/// A part of the quotas of a partner, those first of whose limits most is used or reserved; revoked ones and those without limits come last. Each comes
/// with the key that the list is sorted by.
///
/// # Errors
/// The database's failure.
pub(crate) async fn list_by_limit(
    directory: &Directory,
    tenant: &Tenant,
    keyset: &Keyset,
) -> Result<Vec<(QuotaState, i64)>, StoreError> {
    let now = directory.clock.now_ms();
    let mut quotas = store::list_by_limit(directory.store.db(), tenant, now, keyset).await?;
    for (state, _) in &mut quotas {
        state.standing.roll_over(now);
    }
    Ok(quotas)
}

/// A quota of a partner.
///
/// # Errors
/// There is none, or the database's failure.
pub async fn read(
    directory: &Directory,
    tenant: &Tenant,
    id: &str,
) -> Result<QuotaState, AccountError> {
    let state = store::find(directory.store.db(), tenant, id).await?;
    let mut state = state.ok_or_else(not_found)?;
    state.standing.roll_over(directory.clock.now_ms());
    Ok(state)
}

/// Checks that a quota may use a model now, for work that was accepted before. Whether the quota still pays is the ledger's question.
///
/// # Errors
/// When it may not, or the database fails.
pub async fn check_model(
    directory: &Directory,
    tenant: &Tenant,
    id: &str,
    model: &str,
) -> Result<(), LedgerError> {
    let found = store::find(directory.store.db(), tenant, id).await;
    let found = found.map_err(|error| {
        directory.store.complain("reading a quota", &error);
        LedgerError::Unavailable
    })?;
    match found {
        Some(state) => Ok(state.quota.require_model(model)?),
        None => Ok(()),
    }
}

/// Changes a quota. What was used since the beginning of the period keeps counting, also when another sort of period
/// takes the place of the old one. While the disk is low, the lists may not become longer: the changes of many quotas would use up what is left
/// for deletion.
///
/// # Errors
/// There is none, or it is revoked; a bad setting; longer lists than the partner may store, or longer ones while the disk is low; the
/// database's failure.
pub async fn update(
    directory: &Directory,
    tenant: &Tenant,
    id: &str,
    change: QuotaChange,
    disk_low: Option<DiskLow>,
) -> Result<QuotaState, AccountError> {
    let now = directory.clock.now_ms();
    let transaction = directory.store.begin().await?;
    // Whoever deletes the partner locks it before its quotas, and the sum of its storage refers to it.
    super::share_partner(&transaction, tenant).await?;
    let mut state = find_to_change(&transaction, tenant, id).await?;
    let before = storage::bytes_of_quota(&transaction, id).await?;
    let period = state.standing.period;
    change.apply(&mut state)?;
    state.quota.updated_at = now;
    store::update(&transaction, &state).await?;
    if state.standing.period != period {
        ledger::store::recount(&transaction, id, state.standing.period, now).await?;
        let counted = store::find(&transaction, tenant, id).await?;
        state = counted.ok_or_else(not_found)?;
    }
    if let Some(low) = disk_low
        && storage::bytes_of_quota(&transaction, id).await? > before
    {
        return Err(low.into());
    }
    storage::charge_quota(directory, &transaction, tenant.partner(), id, before).await?;
    transaction.commit().await?;
    directory.quotas.forget(id);
    state.standing.roll_over(now);
    Ok(state)
}

/// Revokes a quota. Doing it twice is harmless.
///
/// # Errors
/// There is none, or the database's failure.
pub async fn revoke(directory: &Directory, tenant: &Tenant, id: &str) -> Result<(), AccountError> {
    let found = store::revoke(directory.store.db(), tenant, id, directory.clock.now_ms()).await?;
    directory.quotas.forget(id);
    match found {
        true => Ok(()),
        false => Err(not_found()),
    }
}

/// Gives a quota another key, whose text is the only copy; the old one ends.
///
/// # Errors
/// There is none, or it is revoked; the database's failure.
pub async fn rotate(
    directory: &Directory,
    tenant: &Tenant,
    id: &str,
) -> Result<(QuotaState, String), AccountError> {
    let now = directory.clock.now_ms();
    let (text, mac) = keys::mint(directory, PREFIX, id).await?;
    let transaction = directory.store.begin().await?;
    let mut state = find_to_change(&transaction, tenant, id).await?;
    state.quota.mac = mac;
    state.quota.updated_at = now;
    store::update(&transaction, &state).await?;
    transaction.commit().await?;
    directory.quotas.forget(id);
    state.standing.roll_over(now);
    Ok((state, text))
}

/// A quota that is not revoked, locked.
async fn find_to_change(
    transaction: &Transaction,
    tenant: &Tenant,
    id: &str,
) -> Result<QuotaState, AccountError> {
    store::lock(transaction, tenant, id).await?;
    let state = store::find(transaction, tenant, id).await?;
    let state = state.ok_or_else(not_found)?;
    match state.quota.revoked_at {
        None => Ok(state),
        Some(_) => Err(AccountError::Conflict("The quota is revoked")),
    }
}

fn not_found() -> AccountError {
    AccountError::NotFound("Quota")
}
