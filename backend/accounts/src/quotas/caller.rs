//! Who asks, by a quota's key.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, request::Parts},
};
use colloquy_base::{cache::ShortCache, clock::Clock};
use colloquy_http::{
    ApiError,
    extract::{bearer, client_address},
};
use colloquy_store::StoreError;

use super::{PREFIX, Quota, store};
use crate::{
    Accounts, Credential, KeyRefused, PartnerId,
    caller::{hold_for, record_change, refused},
    keys,
};

/// How long another node may miss a change.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Quotas that were read a moment ago, by id.
#[derive(Debug)]
pub struct QuotaCache(ShortCache<String, Arc<Quota>>);

impl QuotaCache {
    /// An empty cache.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(ShortCache::new(clock, MAX_AGE, 10_000))
    }

    pub(super) fn forget(&self, id: &str) {
        self.0.forget(|known, _| known == id);
    }

    /// Forgets all quotas of a partner.
    pub(crate) fn forget_partner(&self, partner: &PartnerId) {
        self.0.forget(|_, quota| quota.tenant.partner() == partner);
    }
}

/// Whoever made the request, by a quota's key in `Authorization: Bearer` or in `X-API-Key`, looked for in this order.
/// Each request counts against the key's rate limit, and each wrong key against the address's.
///
/// What the quota is for, and which models and characters it may use, is for the handler to ask.
#[derive(Debug, Clone)]
pub struct QuotaCaller(pub Arc<Quota>);

impl<S: Send + Sync> FromRequestParts<S> for QuotaCaller
where
    Accounts: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Self::with_key(parts, &Accounts::from_ref(state), key_text(&parts.headers)).await
    }
}

impl QuotaCaller {
    /// Whoever made a request whose key was looked for already, for interfaces with an order of their own.
    ///
    /// # Errors
    /// 401 without a valid key, 403 when the quota is switched off, 429 beyond its rate, 503 if the change that the request makes cannot be
    /// recorded.
    pub(crate) async fn with_key(
        parts: &Parts,
        accounts: &Accounts,
        key: Option<&str>,
    ) -> Result<Self, ApiError> {
        let quota = match key {
            Some(text) => authenticate(accounts, text, client_address(parts)).await,
            None => Err(KeyRefused::Invalid),
        };
        let quota = quota.map_err(|error| refused(parts, accounts, error))?;
        tracing::Span::current().record("key_id", quota.id.as_str());
        hold_for(parts, Some(&quota.tenant));
        accounts.limits.check_key(&quota.id)?;
        if let Some(rate) = quota.partner.requests_per_minute {
            accounts
                .limits
                .check_partner(quota.tenant.partner().as_str(), rate)?;
        }
        record_change(parts, &quota.principal(), Credential::Quota).await?;
        Ok(Self(quota))
    }
}

/// The key that a request for what costs something carries.
#[must_use]
pub fn key_text(headers: &HeaderMap) -> Option<&str> {
    let header = || {
        let value = headers.get("x-api-key")?.to_str().ok()?;
        Some(value.trim()).filter(|key| !key.is_empty())
    };
    bearer(headers).or_else(header)
}

/// Whether this is a quota's key, by its form.
pub(super) fn is_quota_key(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Finds out whose key this is.
async fn authenticate(
    accounts: &Accounts,
    text: &str,
    from: IpAddr,
) -> Result<Arc<Quota>, KeyRefused> {
    let id = keys::id_of(PREFIX, text).ok_or(KeyRefused::Invalid)?;
    let quota = match accounts.quotas.0.get(id) {
        Some(quota) => quota,
        None => {
            let known = accounts.quotas.0.get_old(id);
            let mac = known.as_ref().map(|quota| quota.mac.as_str());
            let attempt = keys::hold_attempt(accounts, text, mac, from).await?;
            // Others may have found it while this one waited.
            match accounts.quotas.0.get(id) {
                Some(quota) => quota,
                None => match read(accounts, id).await? {
                    Some(quota) => quota,
                    None => return Err(keys::unknown(attempt)),
                },
            }
        }
    };
    if !keys::verify(accounts, text, &quota.mac).await? {
        return Err(KeyRefused::Invalid);
    }
    quota.validity().check(accounts.clock.now_ms())?;
    Ok(quota)
}

async fn read(accounts: &Accounts, id: &str) -> Result<Option<Arc<Quota>>, StoreError> {
    let cache = &accounts.quotas.0;
    let generation = cache.generation();
    let quota = store::find_by_id(accounts.store.db(), id)
        .await?
        .map(Arc::new);
    if let Some(quota) = &quota {
        cache.insert(generation, id.to_owned(), Arc::clone(quota));
    }
    Ok(quota)
}
