//! Who asks, by a quota's key.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header::AUTHORIZATION, request::Parts},
};

use super::{PREFIX, Quota, store};
use crate::{
    accounts::{PartnerId, keys},
    app::App,
    cache::ShortCache,
    clock::Clock,
    http::{ApiError, extract::refused},
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
    pub(in crate::accounts) fn forget_partner(&self, partner: &PartnerId) {
        self.0.forget(|_, quota| quota.tenant.partner() == partner);
    }
}

/// Whoever made the request, by a quota's key in `Authorization: Bearer` or in `X-API-Key`, looked for in this order.
/// Each request counts against the key's rate limit, and each wrong key against the address's.
///
/// What the quota is for, and which models and characters it may use, is for the handler to ask.
#[derive(Debug, Clone)]
pub struct QuotaCaller(pub Arc<Quota>);

impl FromRequestParts<App> for QuotaCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Self::with_key(parts, app, key_text(&parts.headers)).await
    }
}

impl QuotaCaller {
    /// Whoever made a request whose key was looked for already, for interfaces with an order of their own.
    ///
    /// # Errors
    /// 401 without a valid key, 403 when the quota is switched off, 429 beyond its rate.
    pub(crate) async fn with_key(
        parts: &Parts,
        app: &App,
        key: Option<&str>,
    ) -> Result<Self, ApiError> {
        let quota = match key {
            Some(text) => authenticate(app, text).await,
            None => Err(ApiError::unauthorized()),
        };
        let quota = quota.map_err(|error| refused(parts, app, error))?;
        tracing::Span::current().record("key_id", quota.id.as_str());
        app.limits.check_key(&quota.id)?;
        Ok(Self(quota))
    }
}

/// The key that a request for what costs something carries.
pub(crate) fn key_text(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key);
    let header = || headers.get("x-api-key")?.to_str().ok();
    bearer.or_else(header).map(str::trim)
}

/// Whether this is a quota's key, by its form.
pub(crate) fn is_quota_key(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Finds out whose key this is.
async fn authenticate(app: &App, text: &str) -> Result<Arc<Quota>, ApiError> {
    let id = keys::id_of(PREFIX, text).ok_or_else(ApiError::unauthorized)?;
    let quota = find(app, id).await?.ok_or_else(ApiError::unauthorized)?;
    if !keys::verify(app, text, &quota.mac).await? {
        return Err(ApiError::unauthorized());
    }
    quota.force().check(app.clock.now_ms())?;
    Ok(quota)
}

async fn find(app: &App, id: &str) -> Result<Option<Arc<Quota>>, ApiError> {
    let cache = &app.quotas.0;
    let id = id.to_owned();
    if let Some(quota) = cache.get(&id) {
        return Ok(Some(quota));
    }
    let generation = cache.generation();
    let quota = store::find_by_id(app.store.db(), &id).await?.map(Arc::new);
    if let Some(quota) = &quota {
        cache.insert(generation, id, Arc::clone(quota));
    }
    Ok(quota)
}
