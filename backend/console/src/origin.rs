//! Tells requests of the console from those that another page makes with the visitor's cookies.

use axum::http::{HeaderMap, HeaderName, Method, header, uri::Authority};
use colloquy_http::ApiError;
use url::Url;

/// The header that the console sends with each request: [`HTTPS`] and [`BACKGROUND`] where they apply, separated by commas. A page of another
/// origin could send it only if CORS allowed that, which it does nowhere for requests with cookies.
pub(crate) const CONSOLE: HeaderName = HeaderName::from_static("x-colloquy-console");
/// The page was loaded with TLS.
const HTTPS: &str = "https";
/// Nobody asked for the request, as for a view whose data changed. It does not prolong the session.
const BACKGROUND: &str = "background";
/// Where a request comes from, as browsers say it themselves, to servers with TLS or on the same machine.
const SITE: &str = "sec-fetch-site";

/// A request that the console made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own {
    /// True if the page was loaded with TLS.
    pub(crate) is_secure: bool,
    /// True if nobody asked for it.
    pub(crate) is_background: bool,
}

/// Passes requests of the console: those with its header, of its own origin as far as the browser says. Those that change something say
/// their origin in any browser.
///
/// # Errors
/// Answers any other request with 403 and what to do about it.
pub(crate) fn require_own(
    method: &Method,
    headers: &HeaderMap,
    public_url: Option<&Url>,
) -> Result<Own, ApiError> {
    let Some(value) = headers.get(&CONSOLE) else {
        return Err(ApiError::forbidden(format!(
            "A session of the console is for the console alone, which sends {CONSOLE}; use an API key"
        )));
    };
    let site = headers.get(SITE).map(|value| value.as_bytes());
    if site.is_some_and(|site| site != b"same-origin") {
        return Err(ApiError::forbidden("The request comes from another origin"));
    }
    let origin = headers.get(header::ORIGIN);
    let has_tls = match origin {
        Some(origin) => origin
            .to_str()
            .ok()
            .and_then(|origin| is_own(origin, headers, public_url))
            .ok_or_else(|| {
                ApiError::forbidden(
                    "The request comes from another origin; behind a proxy that changes the Host header, set http.public_url",
                )
            })?,
        None if method.is_safe() => false,
        None => return Err(ApiError::forbidden("The request does not say its origin")),
    };
    let says = |word: &str| {
        let words = value.to_str().unwrap_or_default().split(',');
        words.map(str::trim).any(|one| one == word)
    };
    Ok(Own {
        is_secure: has_tls || says(HTTPS),
        is_background: says(BACKGROUND),
    })
}

/// Returns whether an origin is reached with TLS; `None` if it is not that of this server.
fn is_own(origin: &str, headers: &HeaderMap, public_url: Option<&Url>) -> Option<bool> {
    let (scheme, authority) = origin.split_once("://")?;
    let is_secure = match scheme {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    if public_url.is_some_and(|url| url.origin().ascii_serialization() == origin) {
        return Some(is_secure);
    }
    // Whoever is between a browser and the server could answer for the public host without TLS.
    let is_downgraded = !is_secure && is_public_host(authority, public_url);
    (host(headers) == Some(authority) && !is_downgraded).then_some(is_secure)
}

/// Returns true if this is the host of a public URL with TLS.
fn is_public_host(authority: &str, public_url: Option<&Url>) -> bool {
    let public_url = public_url.filter(|url| url.scheme() == "https");
    let authority = authority.parse::<Authority>();
    public_url.is_some_and(|url| authority.is_ok_and(|it| url.host_str() == Some(it.host())))
}

/// Returns the host that a request names, with its port.
pub(crate) fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|&(name, value)| {
            let value = value.parse().unwrap();
            (HeaderName::from_static(name), value)
        });
        pairs.collect()
    }

    #[test]
    fn requests_of_the_console_pass_and_others_do_not() {
        let public = Url::parse("https://talk.example/").unwrap();
        let passes = |method: &Method, pairs: &[(&'static str, &str)]| {
            let mut headers = headers(pairs);
            let without = require_own(method, &headers, Some(&public));
            assert!(without.is_err(), "{pairs:?}");
            headers.insert(CONSOLE, "1".parse().unwrap());
            require_own(method, &headers, Some(&public)).is_ok()
        };
        let (get, post) = (Method::GET, Method::POST);
        let host = ("host", "10.0.0.7:8080");
        assert!(passes(&get, &[host]));
        assert!(!passes(&post, &[host]));
        for method in [&get, &post] {
            for own in ["http://10.0.0.7:8080", "https://talk.example"] {
                assert!(passes(method, &[host, ("origin", own)]));
                let site = |site| passes(method, &[host, ("origin", own), (SITE, site)]);
                assert!(site("same-origin"));
                for other in ["same-site", "cross-site", "none"] {
                    assert!(!site(other));
                }
            }
            for other in [
                "null",
                "http://10.0.0.7",
                "http://10.0.0.7:8081",
                "https://evil.example",
                "https://talk.example:444",
                "http://talk.example",
                "ftp://10.0.0.7:8080",
                "10.0.0.7:8080",
                "",
            ] {
                assert!(!passes(method, &[host, ("origin", other)]), "{other}");
            }
        }
        // The public host without TLS, as somebody on the way would serve it.
        for authority in ["talk.example", "talk.example:8080"] {
            let origin = format!("http://{authority}");
            assert!(!passes(&get, &[("host", authority), ("origin", &origin)]));
        }
    }

    #[test]
    fn a_request_says_whether_it_is_secure_and_asked_for() {
        let own = |origin: &str, value: &str| {
            let pairs = [
                ("host", "a.example"),
                ("origin", origin),
                ("x-colloquy-console", value),
            ];
            let own = require_own(&Method::POST, &headers(&pairs), None).unwrap();
            (own.is_secure, own.is_background)
        };
        assert_eq!(own("https://a.example", "1"), (true, false));
        assert_eq!(own("http://a.example", "background"), (false, true));
        let headers = headers(&[("x-colloquy-console", "https, background")]);
        let own = require_own(&Method::GET, &headers, None).unwrap();
        assert_eq!((own.is_secure, own.is_background), (true, true));
    }
}
