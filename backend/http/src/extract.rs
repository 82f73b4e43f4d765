//! What handlers take out of a request: validated bodies, parameters, the client's address, the text of a key. Each rejection
//! is an [`ApiError`].

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use axum::{
    body::Bytes,
    extract::{
        FromRequest, FromRequestParts, Path, RawPathParams, Request, rejection::PathRejection,
    },
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE},
        request::Parts,
    },
};
use colloquy_base::json;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{
    ApiError, Arrival, Interface,
    memory::{self, Share},
    parameters,
};

/// The key that a request carries: `X-Api-Key`, `Authorization: Bearer` or, where the interface takes it, `api_key` in the query.
/// An empty one is none.
pub fn key_text(parts: &Parts) -> Option<String> {
    let header = parts.headers.get("x-api-key");
    let header = header.and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(key) = header.filter(|key| !key.is_empty()) {
        return Some(key.to_owned());
    }
    if let Some(key) = bearer(&parts.headers) {
        return Some(key.to_owned());
    }
    let interface = parts.extensions.get::<Interface>();
    if !interface.is_some_and(|interface| interface.takes_query_key()) {
        return None;
    }
    url::form_urlencoded::parse(parts.uri.query()?.as_bytes())
        .find_map(|(name, value)| (name == "api_key").then(|| value.trim().to_owned()))
        .filter(|key| !key.is_empty())
}

/// The key in `Authorization: Bearer`, unless it is empty.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .trim()
        .split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then_some(key)
}

/// A JSON body. An error names the field, such as `parameters.greetings[0]`.
#[derive(Debug, Clone)]
pub struct ApiJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(unsupported_media_type());
        }
        Ok(Self(json::read(&body_bytes(request).await?)?))
    }
}

/// The whole body, up to the size limit of the route.
///
/// # Errors
/// 413 when it is larger, 503 when there is no room for it, 400 when it does not arrive.
pub async fn body_bytes(request: Request) -> Result<Bytes, ApiError> {
    let share = request.extensions().get::<Share>();
    let limit = share.map(Share::body_bytes);
    let limit = limit.ok_or_else(|| ApiError::internal("the route belongs to no interface"))?;
    body_up_to(request, limit).await
}

/// The whole body, up to a limit of its own.
///
/// # Errors
/// 413 when it is larger, 503 when there is no room for it, 400 when it does not arrive.
pub async fn body_up_to(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let length = request.headers().get(CONTENT_LENGTH);
    let announced = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|announced| announced > limit) {
        return Err(too_large());
    }
    memory::read(request, limit, announced).await
}

/// 400: the body broke off.
pub(super) fn cut_off() -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "invalid_body",
        "The body did not arrive in full",
    )
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

/// Parameters of the path. An error names the parameter.
#[derive(Debug, Clone)]
pub struct ApiPath<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // PostgreSQL stores no text with a NUL, so nothing is called so.
        if parts.uri.path().contains("%00") {
            return Err(ApiError::invalid("path", "has a NUL character"));
        }
        match Path::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(failure)) => {
                let given = RawPathParams::from_request_parts(parts, state).await.ok();
                Err(parameters::invalid_path(
                    failure.into_kind(),
                    given.as_ref(),
                ))
            }
            // The route has no parameters.
            Err(rejection) => Err(ApiError::internal(rejection)),
        }
    }
}

/// Parameters of the query. An error names the parameter.
#[derive(Debug, Clone)]
pub struct ApiQuery<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        for parameter in query.split('&') {
            if parameter.contains("%00") {
                let name = parameter.split('=').next().unwrap_or_default();
                return Err(ApiError::invalid(name, "has a NUL character"));
            }
        }
        Ok(Self(parameters::read_query(query)?))
    }
}

/// The id in a path, which the answers of these interfaces write as a path of its own: that is understood, too, when it is
/// percent-encoded. `None` for what is no id.
#[must_use]
pub fn id_in_path(given: &str, prefix: &str) -> Option<String> {
    let bare = given.strip_prefix(prefix).unwrap_or(given);
    Some(Uuid::parse_str(bare).ok()?.to_string())
}

/// The address of the client: of the connection, or what the outermost trusted proxy saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(client_address(parts)))
    }
}

/// The address of the client, as the layers around the routes found it.
pub fn client_address(parts: &Parts) -> IpAddr {
    let arrival = parts.extensions.get::<Arrival>();
    arrival.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |arrival| arrival.address)
}

/// The network of the client, as [`network`](super::limits::network) has it, if the server can tell its clients apart; `None` if the
/// address may be that of a proxy that `http.trusted_proxies` does not count. Bounds of one network do not apply to such clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientNetwork(pub Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for ClientNetwork {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(client_network(parts)))
    }
}

/// The network of the client, as the layers around the routes found it.
pub fn client_network(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ClientNetwork>()?.0
}

/// Returns the entry of `X-Forwarded-For` that the outermost trusted proxy appended. Each proxy appends the address that it saw, so that entry
/// stands that many from the end; what stands before it is the client's own claim.
pub(super) fn forwarded_entry(headers: &HeaderMap, trusted_proxies: usize) -> Option<&[u8]> {
    headers
        .get_all("x-forwarded-for")
        .iter()
        .rev()
        .flat_map(|value| value.as_bytes().rsplit(|&byte| byte == b','))
        .nth(trusted_proxies.checked_sub(1)?)
}

/// Returns the address of an entry of `X-Forwarded-For`, which may have a port, and stand in quotes or brackets.
pub(super) fn forwarded_address(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let quoted = entry.strip_prefix('"');
    let entry = quoted
        .and_then(|entry| entry.strip_suffix('"'))
        .unwrap_or(entry);
    if let Ok(address) = entry.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    let bracketed = entry.strip_prefix('[');
    let bracketed = bracketed.and_then(|entry| entry.strip_suffix(']'));
    match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => entry.parse().ok(),
    }
}

/// Returns the address that the outermost trusted proxy saw, if it tells one.
pub(super) fn forwarded_for(headers: &HeaderMap, trusted_proxies: usize) -> Option<IpAddr> {
    forwarded_entry(headers, trusted_proxies).and_then(forwarded_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_in_the_query_of_the_voice_library_alone() {
        let key = |interface: Interface, query: &str| {
            let request = Request::get(format!("/x?{query}")).extension(interface);
            key_text(
                &request
                    .body(axum::body::Body::empty())
                    .unwrap()
                    .into_parts()
                    .0,
            )
        };
        for interface in Interface::ALL {
            let expected = (interface == Interface::VOICES).then(|| "k 1".to_owned());
            assert_eq!(key(interface, "a=b&api_key=%20k+1"), expected);
        }
        assert_eq!(key(Interface::VOICES, "api_key=%20"), None);
        let of = |path: &str| Interface::ALL.into_iter().find(|one| one.has(path));
        assert_eq!(of("/api/voices/acme"), Some(Interface::VOICES));
        assert_eq!(of("/api/voice-worker/jobs/1"), Some(Interface::MANAGEMENT));
    }

    #[test]
    fn only_what_trusted_proxies_wrote_counts() {
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "6.6.6.6, 1.2.3.4".parse().unwrap());
        headers.append("x-forwarded-for", "[2001:db8::1]:4711".parse().unwrap());
        assert_eq!(forwarded_for(&headers, 0), None);
        assert_eq!(forwarded_for(&headers, 1), "2001:db8::1".parse().ok());
        assert_eq!(forwarded_for(&headers, 2), "1.2.3.4".parse().ok());
        assert_eq!(forwarded_for(&headers, 4), None);
        // A client's bytes that are no text do not hide what the proxy appended to them.
        let bytes = b"\xff, 1.2.3.4";
        let value = axum::http::HeaderValue::from_bytes(bytes).unwrap();
        headers.insert("x-forwarded-for", value);
        assert_eq!(forwarded_for(&headers, 1), "1.2.3.4".parse().ok());
        assert_eq!(forwarded_for(&headers, 2), None);
    }

    #[test]
    fn a_forwarded_address_may_have_a_port_quotes_and_brackets() {
        for (entry, address) in [
            (" 192.0.2.1 ", "192.0.2.1"),
            ("192.0.2.1:1234", "192.0.2.1"),
            ("\"192.0.2.1\"", "192.0.2.1"),
            ("\"192.0.2.1:1234\"", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            (" \"[2001:db8::1]:443\"", "2001:db8::1"),
            ("\"2001:db8::1\"", "2001:db8::1"),
        ] {
            let expected: IpAddr = address.parse().unwrap();
            assert_eq!(
                forwarded_address(entry.as_bytes()),
                Some(expected),
                "{entry}"
            );
        }
        for entry in [
            "",
            " ",
            "junk",
            "unknown",
            "unix:",
            "\"",
            "\"192.0.2.1",
            "[192.0.2.1]",
            "[2001:db8::1",
            "192.0.2.1:99999",
            "192.0.2.1.5",
        ] {
            assert_eq!(forwarded_address(entry.as_bytes()), None, "{entry}");
        }
        assert_eq!(forwarded_address(b"\xff192.0.2.1"), None);
    }
}
