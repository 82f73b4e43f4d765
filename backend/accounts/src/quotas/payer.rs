//! Who asks for something that costs, and who pays for it.

use std::{borrow::Cow, sync::Arc};

use axum::http::request::Parts;
use colloquy_base::identifiers::PartnerId;
use colloquy_http::ApiError;

use super::{Quota, QuotaCaller, QuotaKind, is_quota_key, key_text};
use crate::{Accounts, Caller, Principal, Scope, Tenant};

/// Whoever asks: an application with the key of a quota, or a partner's server with an API key, which has no quota.
#[derive(Debug)]
pub enum Payer {
    /// The quota pays.
    Quota(Arc<Quota>),
    /// Nothing is limited; what it costs is noted.
    Key(Principal),
}

impl Payer {
    /// Whoever has this key.
    ///
    /// # Errors
    /// 401 without a valid key; 403 when the quota is not of this kind or the key lacks the scope; 429 beyond the key's rate.
    pub async fn with_key(
        parts: &Parts,
        accounts: &Accounts,
        key: Option<&str>,
        kind: QuotaKind,
        scope: Scope,
    ) -> Result<Self, ApiError> {
        if key.is_some_and(is_quota_key) {
            let QuotaCaller(quota) = QuotaCaller::with_key(parts, accounts, key).await?;
            quota.require_kind(kind)?;
            Ok(Self::Quota(quota))
        } else {
            let Caller(principal) = Caller::with_key(parts, accounts, key).await?;
            principal.require(scope)?;
            Ok(Self::Key(principal))
        }
    }

    /// Whoever has the key of a request: `Authorization: Bearer`, else `X-Api-Key`.
    ///
    /// # Errors
    /// As of [`Self::with_key`].
    pub async fn of_request(
        parts: &Parts,
        accounts: &Accounts,
        kind: QuotaKind,
        scope: Scope,
    ) -> Result<Self, ApiError> {
        Self::with_key(parts, accounts, key_text(&parts.headers), kind, scope).await
    }

    /// Returns the partner whose work a request reaches: the one that it names, else that of the key. `None` for an administrator who names
    /// none, whom all partners are open to.
    ///
    /// # Errors
    /// 400 for a malformed name, 403 if the key does not reach the partner.
    pub fn reach(&self, named: Option<&str>) -> Result<Option<Tenant>, ApiError> {
        let principal = self.principal();
        match named {
            Some(name) => Ok(Some(principal.tenant(&PartnerId::parse(name)?)?)),
            None => Ok(principal.own_tenant()),
        }
    }

    /// Returns the partner that new work is for.
    ///
    /// # Errors
    /// As of [`Self::reach`]; 403 for an administrator who names none, too.
    pub fn tenant(&self, named: Option<&str>) -> Result<Tenant, ApiError> {
        self.reach(named)?.ok_or_else(|| {
            let message = "An admin key belongs to no partner; name one with the parameter partner, or use a key of the partner";
            ApiError::forbidden(message)
        })
    }

    /// What it reaches.
    #[must_use]
    pub fn principal(&self) -> Cow<'_, Principal> {
        match self {
            Self::Quota(quota) => Cow::Owned(quota.principal()),
            Self::Key(principal) => Cow::Borrowed(principal),
        }
    }

    /// The quota that pays.
    #[must_use]
    pub fn quota(&self) -> Option<&Arc<Quota>> {
        match self {
            Self::Quota(quota) => Some(quota),
            Self::Key(_) => None,
        }
    }
}
