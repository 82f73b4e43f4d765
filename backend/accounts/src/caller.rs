//! Who asks, by an API key, and whose data it is about.

use axum::{
    extract::{FromRef, FromRequestParts, RawPathParams},
    http::{header::ORIGIN, request::Parts},
};
use colloquy_http::{
    ApiError, Interface,
    extract::{client_address, key_text},
    memory::Share,
};

use super::{KeyRefused, PartnerId, Principal, Tenant, keys};
use crate::Accounts;

/// Whoever made the request. The key is in `X-Api-Key`, in `Authorization: Bearer` or, for the voice library, in the query
/// (`api_key`), looked for in this order. A publishable key passes on the call routes only, and from its origins only. Each request counts
/// against the key's rate limit.
#[derive(Debug, Clone)]
pub struct Caller(pub Principal);

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Accounts: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let key = key_text(parts);
        Self::with_key(parts, &Accounts::from_ref(state), key.as_deref()).await
    }
}

impl Caller {
    /// Whoever made a request whose key was looked for already, for interfaces with an order of their own.
    ///
    /// # Errors
    /// 401 without a valid key, 403 when it may not be used from here, 429 beyond its rate.
    pub async fn with_key(
        parts: &Parts,
        accounts: &Accounts,
        key: Option<&str>,
    ) -> Result<Self, ApiError> {
        let principal = match key {
            Some(text) => keys::authenticate(accounts, text, client_address(parts)).await,
            None => Err(KeyRefused::Invalid),
        };
        let principal = principal.map_err(|error| refused(parts, accounts, error))?;
        tracing::Span::current().record("key_id", principal.key_id.as_str());
        hold_for(parts, principal.own_tenant().as_ref());
        check_page(parts, &principal)?;
        accounts.limits.check_key(&principal.key_id)?;
        if let (Some(tenant), Some(rate)) = (principal.own_tenant(), principal.partner_rate) {
            accounts
                .limits
                .check_partner(tenant.partner().as_str(), rate)?;
        }
        Ok(Self(principal))
    }
}

/// Counts what the request holds against this partner; the administrators are one.
pub(crate) fn hold_for(parts: &Parts, tenant: Option<&Tenant>) {
    if let Some(share) = parts.extensions.get::<Share>() {
        share.belongs_to(tenant.map(|tenant| tenant.partner().as_str()));
    }
}

/// Why a key was refused. A wrong one counts against the address that it came from, which may be the reason in the end.
pub(crate) fn refused(parts: &Parts, accounts: &Accounts, refused: KeyRefused) -> ApiError {
    let attempt = match refused {
        KeyRefused::Invalid => accounts.limits.check_attempt(client_address(parts)),
        _ => Ok(()),
    };
    attempt.map_or_else(ApiError::from, |()| refused.into())
}

/// A publishable key stands in a page for everybody to read, so it is bound to the page's origin and to the interface that pages
/// reach.
fn check_page(parts: &Parts, principal: &Principal) -> Result<(), ApiError> {
    let Some(allowed) = &principal.allowed_origins else {
        return Ok(());
    };
    let interface = parts.extensions.get::<Interface>();
    if !interface.is_some_and(|interface| interface.is_for_pages()) {
        return Err(ApiError::forbidden("A publishable key is for calls only"));
    }
    let origin = parts
        .headers
        .get(ORIGIN)
        .and_then(|value| value.to_str().ok());
    if origin.is_some_and(|origin| allowed.iter().any(|allowed| allowed == origin)) {
        Ok(())
    } else {
        Err(ApiError::forbidden(
            "The publishable key is not for pages of this origin",
        ))
    }
}

/// The caller, and the tenant of the `{partner}` in the path.
#[derive(Debug, Clone)]
pub struct PartnerTenant {
    /// Who asks.
    pub principal: Principal,
    /// Whose data it is about.
    pub tenant: Tenant,
}

impl<S: Send + Sync> FromRequestParts<S> for PartnerTenant
where
    Accounts: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Caller(principal) = Caller::from_request_parts(parts, state).await?;
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::invalid("path", rejection.body_text()))?;
        let partner = params
            .iter()
            .find_map(|(name, value)| (name == "partner").then_some(value))
            .ok_or_else(|| ApiError::internal("the route has no {partner}"))?;
        let tenant = principal.tenant(&PartnerId::parse(partner)?)?;
        Ok(Self { principal, tenant })
    }
}
