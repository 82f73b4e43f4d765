//! Requests with the cookie of a session, and the key that it stands for.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue,
        header::{CACHE_CONTROL, COOKIE, Entry, VARY},
        uri::Authority,
    },
    middleware::Next,
    response::Response,
};
use colloquy_accounts::{SessionKey, SessionLookup, keys::KnownKey};
use colloquy_http::{ApiError, extract::client_address};

use crate::{
    Console,
    origin::{self, Own},
    sessions::{self, Session},
    token::Token,
};

/// What the name of a session's cookie begins with. Cookies of a host are for all of its ports, so the name ends with the port.
const COOKIE_NAME: &str = "colloquy-session";
/// What it begins with where the console is reached with TLS: browsers take it from this host alone, with TLS alone.
const SECURE_PREFIX: &str = "__Host-";

/// Differing cookies of a session's name that are looked at.
const MOST_COOKIES: usize = 4;

/// The cookie of a session that a request carries: an extension of requests.
#[derive(Debug, Clone)]
pub(crate) struct Presented(Arc<Cookie>);

#[derive(Debug)]
struct Cookie {
    console: Console,
    /// The ids in cookies of its name, of which another host of the domain may have set all but one.
    ids: Vec<Token>,
    /// How the console made the request, or why it did not.
    own: Result<Own, ApiError>,
    from: IpAddr,
}

/// Gives a request with the cookie of a session what it stands for. Whoever asks for a key looks the session up.
pub(crate) async fn recognize(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Response {
    if !has_session(request.headers()) {
        return next.run(request).await;
    }
    let public_url = console.config.http.public_url.as_ref();
    let own = origin::require_own(request.method(), request.headers(), public_url);
    let (mut parts, body) = request.into_parts();
    let presented = Presented(Arc::new(Cookie {
        ids: match &own {
            Ok(own) => session_ids(&parts.headers, own.is_secure),
            Err(_) => Vec::new(),
        },
        from: client_address(&parts),
        own,
        console,
    }));
    let key = SessionKey(Arc::new(presented.clone()));
    parts.extensions.insert(key);
    parts.extensions.insert(presented);
    keep_private(next.run(Request::from_parts(parts, body)).await)
}

impl Presented {
    /// Returns the session.
    ///
    /// # Errors
    /// 403 if something other than the console made the request, 401 if the session has ended or never was, 429 if the address has tried too
    /// many, 503 if the database is unavailable.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, ApiError> {
        self.find(self.id()?).await
    }

    /// Returns the id, if the console made the request.
    fn id(&self) -> Result<&Token, ApiError> {
        if let Err(error) = &self.0.own {
            return Err(error.clone());
        }
        match self.ids() {
            [id] => Ok(id),
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// Returns the session of one of the ids.
    ///
    /// # Errors
    /// Those of [`Self::session`].
    pub(crate) async fn find(&self, id: &Token) -> Result<Arc<Session>, ApiError> {
        sessions::find(&self.0.console, id, self.0.from).await
    }

    /// Returns the ids: more than one if cookies of the same name differ.
    pub(crate) fn ids(&self) -> &[Token] {
        &self.0.ids
    }
}

#[async_trait]
impl SessionLookup for Presented {
    async fn key(&self) -> Result<KnownKey, ApiError> {
        let session = self.session().await?;
        if self.0.own.as_ref().is_ok_and(|own| !own.is_background) {
            sessions::note_use(&self.0.console, &session);
        }
        Ok(session.key.clone())
    }

    async fn key_again(&self) -> Result<KnownKey, ApiError> {
        let session = sessions::find_again(&self.0.console, self.id()?).await?;
        Ok(session.key.clone())
    }
}

/// Returns true if a request has the cookie of a session, of a page with or without TLS.
fn has_session(headers: &HeaderMap) -> bool {
    let has = |is_secure| {
        let name = cookie_name(headers, is_secure);
        cookies(headers, &name).next().is_some()
    };
    has(true) || has(false)
}

/// Returns the ids in the cookies of a session.
fn session_ids(headers: &HeaderMap, is_secure: bool) -> Vec<Token> {
    let name = cookie_name(headers, is_secure);
    let mut values: Vec<&[u8]> = Vec::new();
    for value in cookies(headers, &name) {
        if values.len() < MOST_COOKIES && !values.contains(&value) {
            values.push(value);
        }
    }
    let texts = values.iter().filter_map(|value| str::from_utf8(value).ok());
    texts.filter_map(Token::parse).collect()
}

/// Returns the values of the cookies of a name. Other cookies may have bytes that are no text.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b';'))
        .filter_map(|pair| {
            let pair = pair.trim_ascii();
            pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
        })
}

/// Returns the name of the cookie of a session.
pub(crate) fn cookie_name(headers: &HeaderMap, is_secure: bool) -> String {
    let prefix = if is_secure { SECURE_PREFIX } else { "" };
    let host = origin::host(headers).and_then(|host| host.parse::<Authority>().ok());
    match host.and_then(|host| host.port_u16()) {
        Some(port) => format!("{prefix}{COOKIE_NAME}-{port}"),
        None => format!("{prefix}{COOKIE_NAME}"),
    }
}

/// Keeps answers to whoever has signed in out of caches, unless they say themselves who may keep them.
fn keep_private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if let Entry::Vacant(entry) = headers.entry(CACHE_CONTROL) {
        entry.insert(HeaderValue::from_static("no-store"));
        headers.append(VARY, HeaderValue::from_static("cookie"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_in_the_cookies_of_their_port() {
        let (one, two) = ("A".repeat(43), "B".repeat(43));
        let found = |host: &str, is_secure: bool, cookies: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            for cookie in cookies {
                headers.append(COOKIE, HeaderValue::from_bytes(cookie).unwrap());
            }
            let ids = session_ids(&headers, is_secure);
            let ids = ids.iter().map(|id| id.reveal().to_owned());
            ids.collect::<Vec<_>>()
        };
        let plain = |port: &str, id: &str| format!("colloquy-session{port}={id}").into_bytes();
        let secure = |id: &str| format!("__Host-colloquy-session={id}").into_bytes();
        let (first, second) = (plain("", &one), plain("", &two));
        let none: [String; 0] = [];
        assert_eq!(found("a", false, &[]), none);
        assert_eq!(found("a:80", false, &[&first]), none);
        assert_eq!(found("a:80", false, &[&plain("-81", &one)]), none);
        let with_port = plain("-80", &one);
        assert_eq!(found("[::1]:80", false, &[&with_port]), [one.as_str()]);
        assert_eq!(found("a", false, &[&plain("", "short")]), none);
        assert_eq!(found("a", false, &[&first, &first]), [one.as_str()]);
        assert_eq!(found("a", false, &[&first, &second]), [&*one, &*two]);
        // Cookies of others, with bytes that are no text.
        let among = [b"name=\xe9; ".as_slice(), &first, b"; x=1"].concat();
        assert_eq!(found("a", false, &[&among]), [one.as_str()]);
        // Another host of the domain may have set the one without the prefix.
        assert_eq!(found("a", true, &[&first, &secure(&two)]), [two.as_str()]);
        assert_eq!(found("a", true, &[&first]), none);
        assert_eq!(
            found("a", true, &["\u{2000}__Host-colloquy-session=x".as_bytes()]),
            none
        );
        let many: Vec<Vec<u8>> = (0..9)
            .map(|n| plain("", &n.to_string().repeat(43)))
            .collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        assert_eq!(found("a", false, &many).len(), MOST_COOKIES);
    }
}
