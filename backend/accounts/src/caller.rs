//! Who asks, by an API key, and whose data it is about.

use std::{fmt, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use axum::{
    extract::{FromRef, FromRequestParts, RawPathParams},
    http::{HeaderMap, header::ORIGIN, request::Parts},
};
use colloquy_http::{
    ApiError, Interface,
    extract::{client_address, client_network, key_text},
    limits::RateLimited,
    memory::Share,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    KeyRefused, PartnerId, Principal, Tenant,
    keys::{self, KnownKey},
};
use crate::Accounts;

/// Whoever made the request. The key is in `X-Api-Key`, in `Authorization: Bearer` or, for the voice library, in the query
/// (`api_key`), looked for in this order; a request without any of them has the key of its [session](SessionKey). A publishable key passes on the call
/// routes only, and from its origins only. Each request counts against the key's rate limit, of a publishable key also against the share of
/// it that the client's network has.
#[derive(Debug, Clone)]
pub struct Caller(pub Principal);

/// Looks up the session of a request, which stands for the key that it was begun with.
#[async_trait]
pub trait SessionLookup: fmt::Debug + Send + Sync {
    /// Returns the key for a request, which may prolong the session.
    ///
    /// # Errors
    /// Says why the session gives no access.
    async fn key(&self) -> Result<KnownKey, ApiError>;

    /// Returns the key while a response lasts, which does not prolong the session.
    ///
    /// # Errors
    /// Says why the session gives no access any more.
    async fn key_again(&self) -> Result<KnownKey, ApiError>;
}

/// The session of a request that has one: an extension of requests.
#[derive(Debug, Clone)]
pub struct SessionKey(pub Arc<dyn SessionLookup>);

/// The kind of credential that authenticated a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// An API key.
    Key,
    /// A session of the console, begun with an API key.
    Session,
    /// The key of a quota.
    Quota,
}

colloquy_store::stored!(pub Credential: Key = "key", Session = "session", Quota = "quota");

/// Records the change that a request makes.
#[async_trait]
pub trait ChangeRecorder: fmt::Debug + Send + Sync {
    /// Records that a principal makes the change, before it is made. Further calls for the same request are no-ops.
    ///
    /// # Errors
    /// The database's failure: the change must not be made then.
    async fn record(&self, principal: &Principal, credential: Credential) -> Result<(), ApiError>;
}

/// The change that a request makes, if it is one that is recorded: an extension of requests.
#[derive(Debug, Clone)]
pub struct RecordedChange(pub Arc<dyn ChangeRecorder>);

/// Records the change that a request makes, if it is one that is recorded, once its principal is known. [`Caller`] and the extractors of quotas do so
/// by themselves; handlers that find the principal another way call this before they change anything.
///
/// # Errors
/// The database's failure: the change must not be made then.
pub async fn record_change(
    parts: &Parts,
    principal: &Principal,
    credential: Credential,
) -> Result<(), ApiError> {
    match parts.extensions.get::<RecordedChange>() {
        // Publishable keys change nothing that is recorded, and anybody may use them.
        Some(RecordedChange(recorder)) if !principal.is_publishable() => {
            recorder.record(principal, credential).await
        }
        _ => Ok(()),
    }
}

/// The key of a request whose response lasts, authenticated again while it does.
#[derive(Debug, Clone)]
pub enum LastingKey {
    /// A key that the request showed.
    Shown(KnownKey),
    /// The key of a session.
    Session(SessionKey),
}

impl LastingKey {
    /// Remembers the key of a request that `principal` made.
    ///
    /// # Errors
    /// 401 if its session has ended; the database's failure.
    pub async fn of(
        parts: &Parts,
        accounts: &Accounts,
        principal: &Principal,
    ) -> Result<Self, ApiError> {
        let session = parts.extensions.get::<SessionKey>();
        match (key_text(parts), session) {
            (Some(text), _) => {
                let known = keys::remember(accounts, principal, &text).await?;
                Ok(Self::Shown(known))
            }
            (None, Some(session)) => {
                // Tells that the session lasts before its first check.
                session.0.key_again().await?;
                Ok(Self::Session(session.clone()))
            }
            (None, None) => Err(ApiError::unauthorized()),
        }
    }

    /// Authenticates the key again. The check counts against no rate.
    ///
    /// # Errors
    /// 401 if the key or its session has ended; the database's failure.
    pub async fn check(&self, accounts: &Accounts) -> Result<Principal, ApiError> {
        let principal = match self {
            Self::Shown(key) => keys::authenticate_known(accounts, key).await?,
            Self::Session(SessionKey(session)) => {
                let key = session.key_again().await?;
                keys::authenticate_known(accounts, &key).await?
            }
        };
        Ok(principal)
    }
}

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
    /// 401 without a valid key, 403 when it may not be used from here, 429 beyond its rate, 503 if the change that the request makes cannot be
    /// recorded.
    pub async fn with_key(
        parts: &Parts,
        accounts: &Accounts,
        key: Option<&str>,
    ) -> Result<Self, ApiError> {
        let session = parts.extensions.get::<SessionKey>();
        let (principal, credential) = match (key, session) {
            (Some(text), _) => {
                let found = keys::authenticate(accounts, text, client_address(parts)).await;
                let principal = found.map_err(|error| refused(parts, accounts, error))?;
                (principal, Credential::Key)
            }
            // Nobody guessed the key of a session, so that it ended counts as no attempt.
            (None, Some(SessionKey(session))) => {
                let key = session.key().await?;
                let principal = keys::authenticate_known(accounts, &key).await?;
                (principal, Credential::Session)
            }
            (None, None) => return Err(refused(parts, accounts, KeyRefused::Invalid)),
        };
        tracing::Span::current().record("key_id", principal.key_id.as_str());
        hold_for(parts, principal.own_tenant().as_ref());
        check_page(parts, &principal)?;
        count(parts, accounts, &principal)?;
        record_change(parts, &principal, credential).await?;
        Ok(Self(principal))
    }
}

/// Counts a request against the rates of its key and of the partner. With a publishable key, the share of its network is asked first, and
/// counts the request only if the other two let it pass.
fn count(parts: &Parts, accounts: &Accounts, principal: &Principal) -> Result<(), ApiError> {
    let limits = &accounts.limits;
    let tenant = principal.own_tenant();
    let partner = tenant.as_ref().map(|tenant| tenant.partner().as_str());
    let key_rate = accounts.config.limits.requests_per_minute;
    let owner = share_owner(
        &principal.key_id,
        key_rate,
        partner.zip(principal.partner_rate),
    );
    let has_shares = principal.is_publishable() && accounts.config.limits.networks_per_key > 1;
    let network = client_network(parts).filter(|_| has_shares);
    let share = network.map(|network| limits.hold_share(owner, network, principal.partner_rate));
    let trusted_proxies = accounts.config.http.trusted_proxies;
    let share = share.transpose().map_err(|limited| {
        let may_warn = || limits.may_warn("the share of a network is used up");
        let is_known = network.is_some_and(|network| !network.is_unspecified());
        share_used_up(&parts.headers, trusted_proxies, is_known, limited, may_warn)
    })?;
    limits.check_key(&principal.key_id)?;
    if let (Some(partner), Some(rate)) = (partner, principal.partner_rate) {
        limits.check_partner(partner, rate)?;
    }
    if let Some(share) = share {
        share.keep();
    }
    Ok(())
}

/// Returns the owner of the rate that networks have shares of: the key, or its partner if the partner's rate is less.
fn share_owner<'a>(
    key_id: &'a str,
    key_rate: u32,
    partner: Option<(&'a str, NonZeroU32)>,
) -> &'a str {
    match partner {
        Some((partner, rate)) if rate.get() < key_rate => partner,
        _ => key_id,
    }
}

/// Answers 429. All visitors behind a proxy that the settings do not count are one network, and all whose proxy appends no address, so the
/// log says what to set if there seems to be one: more entries than the settings count, or a network that is not known. Anybody can send
/// the header, so `may_warn` bounds how often.
fn share_used_up(
    headers: &HeaderMap,
    trusted_proxies: usize,
    is_known: bool,
    limited: RateLimited,
    may_warn: impl FnOnce() -> bool,
) -> ApiError {
    let error = ApiError::from(limited);
    let has_more = forwarded_entries(headers) > trusted_proxies;
    if is_known && !has_more || !may_warn() {
        return error;
    }
    let told = match trusted_proxies {
        _ if !is_known => {
            "the clients without an address have used up their share of a publishable key's rate: the entry of X-Forwarded-For that \
             http.trusted_proxies counts is no address; let the proxy append that of its client"
        }
        0 => {
            "a network has used up its share of a publishable key's rate; if a reverse proxy of yours sent X-Forwarded-For, \
             set http.trusted_proxies, so that its visitors are told apart, and leave it at 0 without one"
        }
        _ => {
            "a network has used up its share of a publishable key's rate, and X-Forwarded-For had more entries than http.trusted_proxies \
             counts; if proxies of yours append more, raise it, so that their visitors are told apart; if the client sent them, leave it"
        }
    };
    let source: Box<dyn std::error::Error + Send + Sync> = told.into();
    ApiError {
        source: Some(source.into()),
        ..error
    }
}

/// Returns the number of entries of `X-Forwarded-For`, those that the client made up among them.
fn forwarded_entries(headers: &HeaderMap) -> usize {
    let values = headers.get_all("x-forwarded-for").iter();
    let entries = values.map(|value| value.as_bytes().split(|&byte| byte == b',').count());
    entries.sum()
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
        // The document of the voice library has one message for every 403.
        let message = match interface == Some(&Interface::VOICES) {
            true => "Access denied",
            false => "A publishable key is for calls only",
        };
        return Err(ApiError::forbidden(message));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn networks_share_the_rate_of_their_key_unless_that_of_the_partner_is_less() {
        let owner = |rate: Option<u32>| {
            let partner = rate.and_then(NonZeroU32::new).map(|rate| ("acme", rate));
            share_owner("key", 60, partner)
        };
        assert_eq!(owner(None), "key");
        assert_eq!(owner(Some(59)), "acme");
        assert_eq!(owner(Some(60)), "key");
    }

    #[test]
    fn the_log_names_the_setting_that_a_proxy_needs() {
        let told_of = |headers: &HeaderMap, trusted_proxies, is_known| {
            let wait = Duration::from_secs(4);
            let limited = RateLimited { wait };
            let error = share_used_up(headers, trusted_proxies, is_known, limited, || true);
            assert_eq!(error.retry_after, Some(wait));
            assert_eq!((error.status.as_u16(), error.code), (429, "rate_limited"));
            assert!(!error.message.contains("proxies"), "{}", error.message);
            error.source.map(|source| source.to_string())
        };
        let told = |headers: &HeaderMap, trusted_proxies| told_of(headers, trusted_proxies, true);
        let mut headers = HeaderMap::new();
        assert_eq!(told(&headers, 0), None);
        let unknown = told_of(&headers, 1, false).unwrap();
        assert!(unknown.contains("is no address"), "{unknown}");
        headers.insert("x-forwarded-for", "192.0.2.1".parse().unwrap());
        assert!(
            told(&headers, 0)
                .unwrap()
                .contains("set http.trusted_proxies")
        );
        // The one entry is that of the proxy which is counted.
        assert_eq!(told(&headers, 1), None);
        headers.append("x-forwarded-for", "10.0.0.7".parse().unwrap());
        let more = "more entries than http.trusted_proxies counts";
        assert!(told(&headers, 1).unwrap().contains(more));
        assert_eq!(told(&headers, 2), None);
        headers.insert("x-forwarded-for", "192.0.2.1, 10.0.0.7".parse().unwrap());
        assert!(told(&headers, 1).unwrap().contains(more));
        assert_eq!(told(&headers, 2), None);
        let seldom = share_used_up(
            &headers,
            0,
            true,
            RateLimited {
                wait: Duration::ZERO,
            },
            || false,
        );
        assert!(seldom.source.is_none());
    }
}
