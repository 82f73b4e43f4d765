//! `/console`: the files of the console, which are part of the binary.
//!
//! `js/console` builds them. A server that was built without them runs as well, and says at `/console` how to build them. Each file is there as
//! it is, and compressed beforehand. The names of all but the pages have a hash of their content, so that browsers ask for them once.
//!
//! The two pages are the console, and the page that calls a character, which may run WebAssembly and use the microphone.

use axum::{
    extract::{self, Path},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
            CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{Html, IntoResponse as _, Redirect, Response},
    routing::get,
};
use colloquy_http::ApiError;
use colloquy_kernel::{Kernel, State, node, router::DescribedRouter};
use rust_embed::{Embed, EmbeddedFile};

/// The files. A debug build reads them when they are asked for.
#[derive(Embed)]
#[folder = "../../js/console/dist"]
#[allow_missing = true]
struct Files;

/// A page with its policies.
struct Page {
    file: &'static str,
    /// The Content-Security-Policy.
    policy: &'static str,
    /// The Permissions-Policy, which bounds its use of the machine.
    permissions: &'static str,
    /// The page that is shown if the server was built without this one.
    missing: &'static str,
}

/// The console. It loads its own files, asks its own server, and shows pictures and recordings that it has read from there.
const CONSOLE: Page = Page {
    file: "index.html",
    policy: POLICY,
    permissions: PERMISSIONS,
    missing: NOT_BUILT,
};

/// The page of calls: the SDK in a page of its own, so that the console needs neither WebAssembly nor the microphone.
const TALK: Page = Page {
    file: "talk.html",
    // `connect-src` is the last directive, so that the nodes can be appended to its sources.
    policy: "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src 'self'; \
        require-trusted-types-for 'script'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; trusted-types 'none'; connect-src 'self'",
    permissions: "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    missing: TALK_NOT_BUILT,
};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The folder of the files whose names have a hash.
const HASHED: &str = "assets/";
/// How browsers ask for a compressed file, and what its name ends with: the smallest first.
const ENCODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

/// The Content-Security-Policy of the console: the page loads its own files, requests its own server, and shows pictures and recordings that it has read
/// from there. One policy of Trusted Types makes addresses of scripts, of the page's own workers alone (`js/console/src/worker.ts`).
const POLICY: &str = "default-src 'none'; base-uri 'none'; connect-src 'self'; font-src 'self'; form-action 'none'; frame-ancestors 'none'; \
    img-src 'self' blob:; media-src 'self' blob:; require-trusted-types-for 'script'; script-src 'self'; style-src 'self'; \
    trusted-types colloquy-console; worker-src 'self'";
/// The Permissions-Policy of the console: nothing of the machine.
const PERMISSIONS: &str = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";

/// The page of a server that was built without the SDK.
const TALK_NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Colloquy</title>\n\
    <h1>The page for calls is not part of this server</h1>\n\
    <p>The console was built without the SDK. Build the SDK (<code>npm --prefix js run build</code>), then the console and the server again; \
    the guide of the repository for contributors lists what that needs.</p>\n</html>\n";

/// The page of a server that was built without the console.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Colloquy</title>\n\
    <h1>The console is not part of this server</h1>\n\
    <p>The server was built without it. With Node.js 20.12 or later, build the console and then the server again:</p>\n\
    <pre>npm --prefix js/console ci\nnpm --prefix js/console run build\ncargo build --release -p colloquy-backend</pre>\n\
    <p>All interfaces work without it; <a href=\"/openapi.json\">/openapi.json</a> describes them.</p>\n</html>\n";

/// Returns the routes of the files.
pub(super) fn routes<S: State>() -> DescribedRouter<S> {
    DescribedRouter::new()
        .route("/console", get(async || Redirect::temporary("/console/")))
        .route("/console/", get(page))
        .route("/console/talk", get(talk::<S>))
        .route("/console/{*path}", get(file))
}

async fn page(headers: HeaderMap) -> Response {
    CONSOLE.answer(&headers)
}

async fn talk<S: State>(extract::State(state): extract::State<S>, headers: HeaderMap) -> Response {
    let mut answer = TALK.answer(&headers);
    // The SDK goes on with a call at the node that holds it, which has another origin then.
    if let Some(policy) = policy_with_nodes(state.as_ref()).await {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// Returns the policy of the page of calls where nodes have origins of their own: the page may connect to these as well.
async fn policy_with_nodes(kernel: &Kernel) -> Option<HeaderValue> {
    kernel.config.http.node_url.as_ref()?;
    let origins = node::origins(kernel).await;
    HeaderValue::try_from(connecting_to(origins.iter().map(AsRef::as_ref))).ok()
}

/// Returns the policy of the page of calls, with the sockets of these origins among the sources of `connect-src`.
fn connecting_to<'a>(origins: impl Iterator<Item = &'a str>) -> String {
    // http -> ws, https -> wss.
    let sockets = origins.filter_map(|origin| origin.strip_prefix("http"));
    sockets.fold(TALK.policy.to_owned(), |policy, rest| {
        format!("{policy} ws{rest}")
    })
}

/// Answers with a file, or with the console for any path that the console itself understands.
async fn file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    if !path.starts_with(HASHED) {
        return page(headers).await;
    }
    // The next version of the server may have it, and so may another node now.
    let missing = || ([(CACHE_CONTROL, NO_STORE)], ApiError::not_found("File"));
    served(&path, CONSOLE.protection(), &headers).unwrap_or_else(|| missing().into_response())
}

/// Returns the answer with a file and the headers that protect it, in the smallest form that the browser takes.
fn served(path: &str, mut answer: HeaderMap, headers: &HeaderMap) -> Option<Response> {
    let (file, encoding) = smallest(path, headers)?;
    let tag = tag(&file, encoding);
    answer.insert(VARY, HeaderValue::from_static("accept-encoding"));
    answer.insert(ETAG, HeaderValue::from_str(&tag).ok()?);
    answer.insert(CACHE_CONTROL, cached(path));
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let known = known.filter_map(|value| value.to_str().ok());
    if known
        .flat_map(|value| value.split(','))
        .any(|one| is_tag(one, &tag))
    {
        return Some((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    if let Some(encoding) = encoding {
        answer.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Some((answer, file.data).into_response())
}

/// Returns true if a tag that a browser names is this one, or any. Proxies that compress make tags weak.
fn is_tag(named: &str, tag: &str) -> bool {
    let named = named.trim();
    named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag
}

fn smallest(path: &str, headers: &HeaderMap) -> Option<(EmbeddedFile, Option<&'static str>)> {
    let compressed = ENCODINGS.iter().find_map(|&(encoding, suffix)| {
        let file = accepts(headers, encoding).then(|| Files::get(&format!("{path}.{suffix}")));
        Some((file.flatten()?, Some(encoding)))
    });
    compressed.or_else(|| Some((Files::get(path)?, None)))
}

/// Returns true if a browser takes an encoding: if it is named, other than with a weight of zero.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let named = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    named
        .map(|one| one.split_once(';').unwrap_or((one, "")))
        .any(|(name, weight)| {
            let weight = weight.trim().strip_prefix("q=").map(str::parse::<f32>);
            name.trim().eq_ignore_ascii_case(encoding) && weight != Some(Ok(0.0))
        })
}

fn tag(file: &EmbeddedFile, encoding: Option<&str>) -> String {
    let hash = file.metadata.sha256_hash();
    let hash: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match encoding {
        Some(encoding) => format!("\"{hash}-{encoding}\""),
        None => format!("\"{hash}\""),
    }
}

fn cached(path: &str) -> HeaderValue {
    HeaderValue::from_static(match path.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

impl Page {
    /// Returns the answer with the page.
    fn answer(&self, headers: &HeaderMap) -> Response {
        served(self.file, self.protection(), headers).unwrap_or_else(|| {
            let not_kept = [(CACHE_CONTROL, NO_STORE)];
            (self.protection(), not_kept, Html(self.missing)).into_response()
        })
    }

    /// Returns the headers that keep other pages from this one, and this one from all that it does not need.
    fn protection(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let policy = HeaderValue::from_static(self.policy);
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        for (name, value) in [
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", self.permissions),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_taken_as_browsers_name_them() {
        let accepts = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            [accepts(&headers, "br"), accepts(&headers, "gzip")]
        };
        assert_eq!(accepts("gzip, deflate, br, zstd"), [true, true]);
        assert_eq!(accepts("GZIP;q=0.5"), [false, true]);
        assert_eq!(accepts("br;q=0, gzip; q=0.0"), [false, false]);
        assert_eq!(accepts("identity"), [false, false]);
        assert_eq!(accepts("brotli, gzipped"), [false, false]);
    }

    #[test]
    fn the_page_of_calls_connects_to_nodes() {
        let origins = ["http://a.example:8080", "https://b.example"];
        let policy = connecting_to(origins.into_iter());
        let (own, with_nodes): (Vec<_>, Vec<_>) = (
            TALK.policy.split("; ").collect(),
            policy.split("; ").collect(),
        );
        let sources = "connect-src 'self' ws://a.example:8080 wss://b.example";
        assert_eq!(with_nodes.last(), Some(&sources));
        assert_eq!(own.last(), Some(&"connect-src 'self'"));
        assert_eq!(with_nodes[..with_nodes.len() - 1], own[..own.len() - 1]);
    }

    #[test]
    fn tags_are_compared_weakly() {
        for named in ["\"a-br\"", " W/\"a-br\"", "*"] {
            assert!(is_tag(named, "\"a-br\""), "{named}");
        }
        assert!(!is_tag("\"a\"", "\"a-br\""));
    }
}
