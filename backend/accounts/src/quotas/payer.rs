//! Who asks for something that costs, and who pays for it.

use std::{borrow::Cow, sync::Arc};

use axum::http::request::Parts;
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

    /// Whoever has the key of a request for work of a partner: `Authorization: Bearer`, else `X-Api-Key`. And the partner.
    ///
    /// # Errors
    /// As of [`Self::with_key`]; 403 for an admin key, too, which belongs to no partner.
    pub async fn of_partner(
        parts: &Parts,
        accounts: &Accounts,
        kind: QuotaKind,
        scope: Scope,
    ) -> Result<(Self, Tenant), ApiError> {
        let payer = Self::with_key(parts, accounts, key_text(&parts.headers), kind, scope).await?;
        let tenant = payer.principal().own_tenant().ok_or_else(|| {
            ApiError::forbidden("An admin key belongs to no partner; use a key of the partner")
        })?;
        Ok((payer, tenant))
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
