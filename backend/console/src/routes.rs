//! `/api/console`: signing in and out.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{FromRef, FromRequestParts, Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{InvalidHeaderValue, SET_COOKIE},
        request::Parts,
    },
};
use colloquy_accounts::{
    Accounts, Caller, Credential, DataScope, KeyRefused, PartnerId, Principal, Scope, keys,
    record_change,
};
use colloquy_base::{clock::rfc3339, json};
use colloquy_http::{
    ApiError, ApiJson,
    extract::{body_up_to, client_address, is_json, key_text, unsupported_media_type},
};
use colloquy_kernel::{router::DescribedRouter, routes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Console,
    origin::{self, Own},
    presented::{Presented, cookie_name},
    sessions::{self, Beginning, Session},
    token::Token,
};

/// Signing in and out.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Console: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(sign_in, read_session, sign_out))
        .routes(routes!(sign_out_everywhere))
        .routes(routes!(make_link))
}

/// How long a link lasts, in minutes, unless it is said.
const LINK_MINUTES: u64 = 15;
/// How long it may last.
const MOST_LINK_MINUTES: u64 = sessions::LONGEST_LINK.as_secs() / 60;
/// What a request to sign in may take, in bytes: somebody without a key sends it.
const SIGN_IN_BYTES: usize = 4_096;

/// Credentials: a key or a link.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// An API key: that of an administrator, or a secret key of a partner.
    api_key: Option<String>,
    /// The token of a link: the text after `#sign-in=`.
    link: Option<String>,
}

/// A session of the console.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConsoleSession {
    /// The partner that the key reaches; null for an administrator key, which reaches all.
    partner: Option<PartnerId>,
    /// True for an administrator key.
    #[serde(rename = "isAdmin")]
    is_admin: bool,
    /// What the key may be used for; null for everything.
    scopes: Option<Vec<Scope>>,
    /// The id of the key that the session was begun with.
    key_id: String,
    /// RFC 3339.
    created_at: String,
    /// When the session ends if it is not used any more, or with its key. RFC 3339.
    expires_at: String,
}

impl ConsoleSession {
    /// Describes a session whose key expires at a time, if it does.
    fn new(session: &Session, principal: Principal, key_expires_at: Option<i64>) -> Self {
        let expires_at = session.expires_at();
        let expires_at = key_expires_at.map_or(expires_at, |end| end.min(expires_at));
        let (partner, is_admin) = match principal.reach {
            DataScope::Admin => (None, true),
            DataScope::Partner(partner) => (Some(partner), false),
        };
        Self {
            partner,
            is_admin,
            scopes: principal.scopes,
            key_id: principal.key_id,
            created_at: rfc3339(session.created_at),
            expires_at: rfc3339(expires_at),
        }
    }
}

/// Options of a sign-in link.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkBody {
    /// How long it can be used, in minutes, 1 to 1440; 15 when it is left out.
    expires_in_minutes: Option<u64>,
}

/// A link that signs in whoever uses it first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInLink {
    /// The link, below `http.public_url`, or below the address that the server listens on without it. It is shown this once.
    url: String,
    /// Expiry of the link, RFC 3339.
    expires_at: String,
}

/// A request that the console made.
pub(crate) struct FromConsole(Own);

impl<S: Send + Sync> FromRequestParts<S> for FromConsole
where
    Console: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let console = Console::from_ref(state);
        let public_url = console.config.http.public_url.as_ref();
        origin::require_own(&parts.method, &parts.headers, public_url).map(Self)
    }
}

/// The session of a request that shows no key itself.
pub(crate) struct CurrentSession(Arc<Session>);

impl<S: Send + Sync> FromRequestParts<S> for CurrentSession
where
    Accounts: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let presented = parts.extensions.get::<Presented>();
        match (key_text(parts), presented) {
            (Some(_), _) => {
                Caller::from_request_parts(parts, state).await?;
                Err(ApiError::not_found("Session"))
            }
            (None, Some(presented)) => presented.session().await.map(Self),
            (None, None) => Err(ApiError::unauthorized()),
        }
    }
}

/// Signs in.
///
/// Begins a session, whose id is set as a cookie, and needs the header `X-Colloquy-Console`. A session ends 12 hours after it was used
/// last, after 7 days, with its key, or by signing out. A session that the request had already is ended. Requests with the cookie and the header,
/// made by a page of the server's own origin, are requests with the key; the header is a list with `https` if the page was loaded with TLS, and `background` if nobody asked for the request, which then does not prolong the session.
#[utoipa::path(
    post, path = "/api/console/session", tag = "console", request_body = SignIn, security(()),
    params(("X-Colloquy-Console" = String, Header, description = "`https` if the page was loaded with TLS; any value otherwise")),
    responses(
        (status = 200, body = ConsoleSession, headers(("set-cookie" = String, description = "The session"))),
        (status = 401, description = "The key is not valid, or the link was used or has expired"),
        (status = 403, description = "The request comes from another origin or lacks the header, or the key is one for pages"),
        (status = 429, description = "Too many wrong keys or links from this address; Retry-After says when to try again"),
    ),
)]
pub(crate) async fn sign_in(
    State(console): State<Console>,
    FromConsole(own): FromConsole,
    parts: Parts,
    request: Request,
) -> Result<(HeaderMap, Json<ConsoleSession>), ApiError> {
    if !is_json(&parts.headers) {
        return Err(unsupported_media_type());
    }
    let body: SignIn = json::read(&body_up_to(request, SIGN_IN_BYTES).await?)?;
    let presented = parts.extensions.get::<Presented>();
    let (key, principal, link) = match (&body.api_key, &body.link) {
        (Some(text), None) => {
            let Caller(principal) = Caller::with_key(&parts, &console, Some(text)).await?;
            let key = keys::remember(&console, &principal, text).await?;
            (key, principal, None)
        }
        (None, Some(link)) => {
            let token = Token::parse(link);
            let token = token.ok_or_else(|| ApiError::invalid("link", "is no link to sign in"))?;
            let from = client_address(&parts);
            let (key, principal) = sessions::find_link(&console, &token, from).await?;
            record_change(&parts, &principal, Credential::Key).await?;
            (key, principal, Some(token))
        }
        _ => return Err(ApiError::invalid("api_key", "give either api_key or link")),
    };
    let key_expires_at = keys::expires_at(&console, &key).await?;
    let beginning = Beginning {
        key,
        link: link.as_ref(),
        replaced: presented.map(Presented::ids).unwrap_or_default(),
    };
    // The link is used up from here on, so nothing may fail.
    let begun = sessions::begin(&console, beginning).await?;
    let (id, session) = begun.ok_or_else(ApiError::unauthorized)?;
    let headers = set_cookie(&parts.headers, own, id.reveal(), sessions::LONGEST)
        .map_err(ApiError::internal)?;
    let session = ConsoleSession::new(&session, principal, key_expires_at);
    Ok((headers, Json(session)))
}

/// Reads the session of the request.
#[utoipa::path(
    get, path = "/api/console/session", tag = "console",
    responses(
        (status = 200, body = ConsoleSession),
        (status = 404, description = "The request has a key and no session"),
    ),
)]
pub(crate) async fn read_session(
    State(console): State<Console>,
    Caller(principal): Caller,
    CurrentSession(session): CurrentSession,
) -> Result<Json<ConsoleSession>, ApiError> {
    let key_expires_at = keys::expires_at(&console, &session.key).await?;
    let session = ConsoleSession::new(&session, principal, key_expires_at);
    Ok(Json(session))
}

/// Signs out.
///
/// Ends the session of the cookie. One that has ended already is no error.
#[utoipa::path(
    delete, path = "/api/console/session", tag = "console", security(()),
    params(("X-Colloquy-Console" = String, Header, description = "`https` if the page was loaded with TLS; any value otherwise")),
    responses(
        (status = 204, description = "The session has ended; its cookie is removed"),
        (status = 403, description = "The request comes from another origin or lacks the header"),
        (status = 429, description = "Too many wrong cookies from this address; Retry-After says when to try again"),
        (status = 503, description = "The database is unavailable; the session goes on"),
    ),
)]
pub(crate) async fn sign_out(
    State(console): State<Console>,
    FromConsole(own): FromConsole,
    parts: Parts,
) -> Result<(StatusCode, HeaderMap), ApiError> {
    if let Some(presented) = parts.extensions.get::<Presented>() {
        for id in presented.ids() {
            match presented.find(id).await {
                Ok(session) => {
                    record_end(&console, &parts, &session).await?;
                    sessions::end(&console, &session).await?;
                }
                Err(error) if error.status == StatusCode::UNAUTHORIZED => {}
                Err(error) => return Err(error),
            }
        }
    }
    signed_out(&parts.headers, own)
}

/// Signs out everywhere.
///
/// Ends all sessions that were begun with the key of this one, and takes back the links that were made with it. Other nodes notice within 5 seconds.
#[utoipa::path(
    delete, path = "/api/console/sessions", tag = "console",
    params(("X-Colloquy-Console" = String, Header, description = "`https` if the page was loaded with TLS; any value otherwise")),
    responses(
        (status = 204, description = "They have ended; the cookie of this one is removed"),
        (status = 404, description = "The request has a key and no session"),
    ),
)]
pub(crate) async fn sign_out_everywhere(
    State(console): State<Console>,
    CurrentSession(session): CurrentSession,
    FromConsole(own): FromConsole,
    parts: Parts,
) -> Result<(StatusCode, HeaderMap), ApiError> {
    record_end(&console, &parts, &session).await?;
    sessions::end_all(&console, &session.key).await?;
    signed_out(&parts.headers, own)
}

/// Records that whoever has a session ends it. If its key has ended before, so has the session, and nothing is recorded.
async fn record_end(console: &Console, parts: &Parts, session: &Session) -> Result<(), ApiError> {
    match keys::authenticate_known(console, &session.key).await {
        Ok(principal) => record_change(parts, &principal, Credential::Session).await,
        Err(KeyRefused::Store(error)) => Err(error.into()),
        Err(_) => Ok(()),
    }
}

/// Makes a link that signs in whoever uses it first, with the key of the request.
#[utoipa::path(
    post, path = "/api/console/links", tag = "console", request_body = LinkBody,
    responses((status = 201, body = SignInLink)),
)]
pub(crate) async fn make_link(
    State(console): State<Console>,
    Caller(principal): Caller,
    parts: Parts,
    ApiJson(body): ApiJson<LinkBody>,
) -> Result<(StatusCode, Json<SignInLink>), ApiError> {
    let minutes = body.expires_in_minutes.unwrap_or(LINK_MINUTES);
    if !(1..=MOST_LINK_MINUTES).contains(&minutes) {
        return Err(ApiError::invalid(
            "expires_in_minutes",
            format!("1 to {MOST_LINK_MINUTES}"),
        ));
    }
    // Whoever has a session and not its key could make itself another one with a link, and stay signed in for ever.
    let key = key_text(&parts);
    let key = key.ok_or_else(|| ApiError::forbidden("A link is made with an API key"))?;
    let key = keys::remember(&console, &principal, &key).await?;
    let lasts = Duration::from_secs(minutes * 60);
    let (token, expires_at) = sessions::make_link(&console, &key, lasts).await?;
    let origin = console.config.http.origin();
    let link = SignInLink {
        url: format!("{origin}/console/#sign-in={}", token.reveal()),
        expires_at: rfc3339(expires_at),
    };
    Ok((StatusCode::CREATED, Json(link)))
}

fn signed_out(headers: &HeaderMap, own: Own) -> Result<(StatusCode, HeaderMap), ApiError> {
    let headers = set_cookie(headers, own, "", Duration::ZERO).map_err(ApiError::internal)?;
    Ok((StatusCode::NO_CONTENT, headers))
}

/// Returns the header that sets the cookie of the session of a request, for so long.
fn set_cookie(
    request: &HeaderMap,
    own: Own,
    value: &str,
    lasts: Duration,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let (name, seconds) = (cookie_name(request, own.is_secure), lasts.as_secs());
    let secure = if own.is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut headers = HeaderMap::new();
    headers.insert(SET_COOKIE, HeaderValue::from_str(&cookie)?);
    Ok(headers)
}
