//! Quotas and their keys: what a partner's applications may use, of which models and characters, and how much of it.
//!
//! A quota's key reads `cqq_<id>_<secret>` and is kept like an API key. It opens the interfaces that cost something and
//! nothing else; the routes under `/api/quotas` are for API keys with the scope `keys`. How much of a quota is left, the
//! [`ledger`] knows: the limits stand in the quota's row, and it alone changes the counters beside them.

mod caller;
mod change;
mod pattern;
mod payer;
pub mod routes;
mod store;
mod view;

use axum::http::StatusCode;
use sea_orm::DatabaseTransaction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::store::Lock;

use super::{
    Principal, Reach, Tenant, keys,
    ledger::{self, Limits, Period, Standing},
};
use crate::{app::Base, characters::CharacterInput, http::ApiError};

pub(super) use self::store::lock_all;
pub use self::{
    caller::{QuotaCache, QuotaCaller},
    change::QuotaChange,
    pattern::CharacterPattern,
};
pub(crate) use self::{
    caller::{is_quota_key, key_text},
    payer::Payer,
};

/// What quota keys begin with.
const PREFIX: &str = "cqq_";

/// What a quota is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuotaKind {
    /// Text generation.
    Text,
    /// Speech synthesis.
    Speech,
    /// Calls.
    Call,
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
    /// 403 `quota_kind_not_allowed`.
    pub fn require_kind(&self, kind: QuotaKind) -> Result<(), ApiError> {
        match self.kinds.contains(&kind) {
            true => Ok(()),
            false => Err(refused(
                "quota_kind_not_allowed",
                "The quota is not for this interface",
            )),
        }
    }

    /// Checks that the quota may use a model, by its public name.
    ///
    /// # Errors
    /// 403 `model_not_allowed`.
    pub fn require_model(&self, model: &str) -> Result<(), ApiError> {
        match &self.allowed_models {
            Some(allowed) if !allowed.iter().any(|allowed| allowed == model) => Err(refused(
                "model_not_allowed",
                "The quota does not allow this model",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the quota may use a character. Another partner's is never allowed.
    ///
    /// # Errors
    /// 403 `character_not_allowed`.
    pub fn require_character(&self, character: &CharacterInput) -> Result<(), ApiError> {
        let own = match character.partner() {
            Some(partner) => partner == self.tenant.partner(),
            None => true,
        };
        let allowed = match &self.allowed_characters {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(character)),
            None => true,
        };
        match own && allowed {
            true => Ok(()),
            false => Err(refused(
                "character_not_allowed",
                "The quota does not allow this character",
            )),
        }
    }

    fn force(&self) -> Force {
        Force {
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
            reach: Reach::Partner(self.tenant.partner().clone()),
            scopes: Some(Vec::new()),
            allowed_origins: None,
        }
    }
}

fn refused(code: &'static str, message: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, code, message)
}

/// Whether a quota can be used at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Force {
    /// Whether it was revoked, whenever that was: clocks differ.
    pub(super) revoked: bool,
    /// When it ends.
    pub(super) expires_at: Option<i64>,
    /// Whether it is switched off.
    pub(super) disabled: bool,
}

impl Force {
    /// Passes while the quota can be used.
    ///
    /// # Errors
    /// 401 when it has ended, 403 `quota_disabled`.
    pub(super) fn check(self, now_ms: i64) -> Result<(), ApiError> {
        if self.revoked || self.expires_at.is_some_and(|at| at <= now_ms) {
            return Err(ApiError::unauthorized());
        }
        if self.disabled {
            return Err(refused("quota_disabled", "The quota is switched off"));
        }
        Ok(())
    }
}

/// Makes a quota and its key, whose text is the only copy.
///
/// # Errors
/// 400 for a bad setting, 404 when the partner is gone, the database's failure.
pub async fn create(
    base: &Base,
    tenant: &Tenant,
    change: QuotaChange,
) -> Result<(QuotaState, String), ApiError> {
    let now = base.clock.now_ms();
    let id = base.clock.new_id().simple().to_string();
    let (text, mac) = keys::mint(base, PREFIX, &id).await?;
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
        },
        standing: Standing::fresh(Period::Month, Limits::default(), now),
        last_used_at: None,
    };
    change.apply(&mut state)?;
    if state.quota.kinds.is_empty() {
        return Err(ApiError::invalid("kinds", "name at least one kind"));
    }
    state.standing = Standing::fresh(state.standing.period, state.standing.limits, now);
    let transaction = base.store.begin().await?;
    if !super::partner_exists(&transaction, tenant).await? {
        return Err(ApiError::not_found("Partner"));
    }
    store::insert(&transaction, &state).await?;
    transaction.commit().await?;
    Ok((state, text))
}

/// The quotas of a partner, newest first; revoked ones too.
///
/// # Errors
/// The database's failure.
pub async fn list(base: &Base, tenant: &Tenant) -> Result<Vec<QuotaState>, ApiError> {
    let mut quotas = store::list(base.store.db(), tenant).await?;
    for state in &mut quotas {
        state.standing.roll_over(base.clock.now_ms());
    }
    Ok(quotas)
}

/// A quota of a partner.
///
/// # Errors
/// 404, or the database's failure.
pub async fn read(base: &Base, tenant: &Tenant, id: &str) -> Result<QuotaState, ApiError> {
    let mut state = store::find(base.store.db(), tenant, id, Lock::No).await?;
    state.standing.roll_over(base.clock.now_ms());
    Ok(state)
}

/// Changes a quota. What was used since the beginning of the period keeps counting, also when another sort of period
/// takes the place of the old one.
///
/// # Errors
/// 404, 409 when it is revoked, 400 for a bad setting, the database's failure.
pub async fn update(
    base: &Base,
    tenant: &Tenant,
    id: &str,
    change: QuotaChange,
) -> Result<QuotaState, ApiError> {
    let now = base.clock.now_ms();
    let transaction = base.store.begin().await?;
    let mut state = find_to_change(&transaction, tenant, id).await?;
    let period = state.standing.period;
    change.apply(&mut state)?;
    state.quota.updated_at = now;
    store::update(&transaction, &state).await?;
    if state.standing.period != period {
        ledger::store::recount(&transaction, id, state.standing.period, now).await?;
        state = store::find(&transaction, tenant, id, Lock::No).await?;
    }
    transaction.commit().await?;
    base.quotas.forget(id);
    state.standing.roll_over(now);
    Ok(state)
}

/// Revokes a quota. Doing it twice is harmless.
///
/// # Errors
/// 404, or the database's failure.
pub async fn revoke(base: &Base, tenant: &Tenant, id: &str) -> Result<(), ApiError> {
    let found = store::revoke(base.store.db(), tenant, id, base.clock.now_ms()).await?;
    base.quotas.forget(id);
    match found {
        true => Ok(()),
        false => Err(not_found()),
    }
}

/// Gives a quota another key, whose text is the only copy; the old one ends.
///
/// # Errors
/// 404, 409 when it is revoked, or the database's failure.
pub async fn rotate(
    base: &Base,
    tenant: &Tenant,
    id: &str,
) -> Result<(QuotaState, String), ApiError> {
    let now = base.clock.now_ms();
    let (text, mac) = keys::mint(base, PREFIX, id).await?;
    let transaction = base.store.begin().await?;
    let mut state = find_to_change(&transaction, tenant, id).await?;
    state.quota.mac = mac;
    state.quota.updated_at = now;
    store::update(&transaction, &state).await?;
    transaction.commit().await?;
    base.quotas.forget(id);
    state.standing.roll_over(now);
    Ok((state, text))
}

/// A quota that is not revoked, locked.
async fn find_to_change(
    transaction: &DatabaseTransaction,
    tenant: &Tenant,
    id: &str,
) -> Result<QuotaState, ApiError> {
    let state = store::find(transaction, tenant, id, Lock::Yes).await?;
    match state.quota.revoked_at {
        None => Ok(state),
        Some(_) => Err(ApiError::conflict("The quota is revoked")),
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("Quota")
}
