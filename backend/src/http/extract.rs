//! What handlers take out of a request: the caller, the tenant, validated bodies, the client's address. Each rejection
//! is an [`ApiError`].

use std::{
    convert::Infallible,
    fmt::Display,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use axum::{
    body::Bytes,
    extract::{
        ConnectInfo, FromRequest, FromRequestParts, OriginalUri, Path, Query, RawPathParams,
        Request, rejection::BytesRejection,
    },
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN},
        request::Parts,
    },
};
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;

use super::{ApiError, error::is_call_path};
use crate::{
    App,
    accounts::{PartnerId, Principal, Tenant, keys},
};

/// Whoever made the request. The key is in `X-Api-Key`, in `Authorization: Bearer` or in the query (`api_key`), looked
/// for in this order. A publishable key passes on the call routes only, and from its origins only. Each request counts
/// against the key's rate limit.
#[derive(Debug, Clone)]
pub struct Caller(pub Principal);

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let key = key_text(parts);
        Self::with_key(parts, app, key.as_deref()).await
    }
}

impl Caller {
    /// Whoever made a request whose key was looked for already, for interfaces with an order of their own.
    ///
    /// # Errors
    /// 401 without a valid key, 403 when it may not be used from here, 429 beyond its rate.
    pub(crate) async fn with_key(
        parts: &Parts,
        app: &App,
        key: Option<&str>,
    ) -> Result<Self, ApiError> {
        let principal = match key {
            Some(text) => keys::authenticate(app, text).await,
            None => Err(ApiError::unauthorized()),
        };
        let principal = principal.map_err(|error| refused(parts, app, error))?;
        tracing::Span::current().record("key_id", principal.key_id.as_str());
        check_page(parts, &principal)?;
        app.limits.check_key(&principal.key_id)?;
        Ok(Self(principal))
    }
}

/// Why a key was refused. A wrong one counts against the address that it came from, which may be the reason in the end.
pub(crate) fn refused(parts: &Parts, app: &App, error: ApiError) -> ApiError {
    if error.status != StatusCode::UNAUTHORIZED {
        return error;
    }
    let attempt = app.limits.check_attempt(client_address(parts, app));
    attempt.err().unwrap_or(error)
}

/// The key that a request carries.
pub(crate) fn key_text(parts: &Parts) -> Option<String> {
    let header = |name| parts.headers.get(name)?.to_str().ok();
    if let Some(key) = header("x-api-key") {
        return Some(key.trim().to_owned());
    }
    if let Some(value) = header(AUTHORIZATION.as_str()) {
        let (scheme, key) = value.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| key.trim().to_owned());
    }
    url::form_urlencoded::parse(parts.uri.query()?.as_bytes())
        .find_map(|(name, value)| (name == "api_key").then(|| value.into_owned()))
}

/// A publishable key stands in a page for everybody to read, so it is bound to the page's origin and to calls.
fn check_page(parts: &Parts, principal: &Principal) -> Result<(), ApiError> {
    let Some(allowed) = &principal.allowed_origins else {
        return Ok(());
    };
    let uri = parts.extensions.get::<OriginalUri>();
    let path = uri.map_or_else(|| parts.uri.path(), |uri| uri.path());
    if !is_call_path(path) {
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

impl FromRequestParts<App> for PartnerTenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Caller(principal) = Caller::from_request_parts(parts, app).await?;
        let params = RawPathParams::from_request_parts(parts, app)
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

/// A JSON body. An error names the field, such as `parameters.greetings[0]`.
#[derive(Debug, Clone)]
pub struct ApiJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(unsupported_media_type());
        }
        parse_json(&body_bytes(request, app).await?).map(Self)
    }
}

/// The whole body, up to the size limit of the route.
///
/// # Errors
/// 413 when it is larger, 400 when it does not arrive.
pub async fn body_bytes(request: Request, app: &App) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, app)
        .await
        .map_err(|rejection: BytesRejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            status => ApiError::new(status, "invalid_body", "The body did not arrive in full"),
        })
}

/// The whole body, up to a limit of its own.
///
/// # Errors
/// 413 when it is larger, 400 when it does not arrive.
pub async fn body_up_to(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let length = request.headers().get(CONTENT_LENGTH);
    let announced = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|announced| announced > limit) {
        return Err(too_large());
    }
    axum::body::to_bytes(request.into_body(), limit)
        .await
        .map_err(|error| {
            let source = std::error::Error::source(&error);
            match source.is_some_and(|source| source.is::<LengthLimitError>()) {
                true => too_large(),
                false => ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "invalid_body",
                    "The body did not arrive in full",
                ),
            }
        })
}

/// 415.
#[must_use]
pub fn unsupported_media_type() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "Send JSON with Content-Type: application/json",
    )
}

/// 413.
#[must_use]
pub fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        "The body is larger than this server takes",
    )
}

/// Parses JSON.
///
/// # Errors
/// 400 that names the field.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (field, message) = locate(&error);
        ApiError::invalid(field.unwrap_or_else(|| "body".to_owned()), message)
    })?;
    deserializer
        .end()
        .map_err(|error| ApiError::invalid("body", error.to_string()))?;
    Ok(value)
}

/// The field that an error is about, `None` for the whole, and the message. A missing or unknown field is known to
/// serde's message only.
pub(crate) fn locate<E: Display>(
    error: &serde_path_to_error::Error<E>,
) -> (Option<String>, String) {
    let message = error.inner().to_string();
    let path = error.path().to_string();
    // A key may be empty, too.
    let path = (path != "." && !path.is_empty()).then_some(path);
    let named = ["missing field `", "unknown field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split_once('`'))
        .map(|(name, _)| name);
    let field = match (path, named) {
        (Some(path), Some(name)) if path == name || path.ends_with(&format!(".{name}")) => {
            Some(path)
        }
        (Some(path), Some(name)) => Some(format!("{path}.{name}")),
        (path, name) => path.or(name.map(str::to_owned)),
    };
    (field, message)
}

/// Whether the body says that it is JSON.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Parameters of the path.
#[derive(Debug, Clone)]
pub struct ApiPath<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(ApiError::invalid("path", rejection.body_text())),
        }
    }
}

/// Parameters of the query.
#[derive(Debug, Clone)]
pub struct ApiQuery<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Query::from_request_parts(parts, app).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(ApiError::invalid("query", rejection.body_text())),
        }
    }
}

/// The address of the client: of the connection, or what the outermost trusted proxy saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl FromRequestParts<App> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self(client_address(parts, app)))
    }
}

fn client_address(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip());
    forwarded_for(&parts.headers, app.config.http.trusted_proxies).unwrap_or(peer)
}

/// Each proxy appends the address that it saw, so the entry of the outermost trusted one stands that many from the end.
/// What stands before it is the client's own claim.
fn forwarded_for(headers: &HeaderMap, trusted_proxies: usize) -> Option<IpAddr> {
    if trusted_proxies == 0 {
        return None;
    }
    let entries: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let entry = entries.get(entries.len().checked_sub(trusted_proxies)?)?;
    entry
        .parse()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_trusted_proxies_wrote_counts() {
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "6.6.6.6, 1.2.3.4".parse().unwrap());
        headers.append("x-forwarded-for", "[2001:db8::1]:4711".parse().unwrap());
        assert_eq!(forwarded_for(&headers, 0), None);
        assert_eq!(forwarded_for(&headers, 1), "2001:db8::1".parse().ok());
        assert_eq!(forwarded_for(&headers, 2), "1.2.3.4".parse().ok());
        assert_eq!(forwarded_for(&headers, 4), None);
    }

    #[test]
    fn a_malformed_body_names_the_field() {
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[expect(dead_code, reason = "only parsed")]
            inner: Vec<u8>,
        }
        let error = parse_json::<Outer>(br#"{"inner": [1, "x"]}"#).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("inner[1]"));
        assert_eq!(error.status, StatusCode::BAD_REQUEST);
        let error = parse_json::<Outer>(br#"{"inner": []} x"#).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("body"));
        let error = parse_json::<Outer>(b"{}").unwrap_err();
        assert_eq!(error.field.as_deref(), Some("inner"));
        let error = parse_json::<Vec<Outer>>(b"[{}]").unwrap_err();
        assert_eq!(error.field.as_deref(), Some("[0].inner"));
    }
}
