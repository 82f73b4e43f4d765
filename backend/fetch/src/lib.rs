//! The guarded HTTP client: every request to an address that a partner named goes through here (webhooks, audio and
//! document URLs).
//!
//! It connects to public addresses only, unless `fetch.allow_private` is set. A literal address is checked in the URL, a
//! name after its resolution (the connection uses the very addresses that were checked), and every redirect anew. It
//! uses no proxy, and time and size are bounded. What is requested and what the answer means is the caller's business.
//!
//! A program that is not ours and fetches by itself does so through a [`Proxy`], which resolves and connects by the same rules.

mod address;
mod proxy;

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use reqwest::{
    Certificate, Method, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderMap, LOCATION},
    redirect,
};
use tokio::time::{timeout, timeout_at};
use url::{Host, Url};

pub use address::is_public;
pub use proxy::{Proxy, ProxyBounds};

use colloquy_base::clock::runtime_now;
use colloquy_config::FetchConfig;

/// How long a connection may take to begin, so that a host that does not answer is told from a slow answer.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The guarded client; cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: reqwest::Client,
    allow_private: bool,
}

/// What is requested.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
}

/// What the answer may cost.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The time from the start to the last byte of the answer, over all redirects.
    pub time: Duration,
    /// The largest body; 0 leaves the body unread.
    pub bytes: u64,
    /// The redirects that are followed; 0 hands a redirect back as the answer. Only `GET` is ever redirected.
    pub redirects: u32,
    /// Whether `http` URLs are refused.
    pub https_only: bool,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The address that answered, after redirects.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as far as [`Bounds::bytes`] asked for it.
    pub body: Bytes,
}

/// An answer whose body is still to come.
pub struct OpenAnswer {
    /// The address that answers, after redirects.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it comes, within the bounds of the request; nothing comes after a failure.
    pub pieces: BoxStream<'static, Result<Bytes, FetchError>>,
}

impl fmt::Debug for OpenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAnswer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer. The texts name no internal address and may be shown to partners.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The scheme is not allowed, or there is no host.
    #[error("the URL is not allowed: {0}")]
    Url(&'static str),
    /// The host is, or resolves to, an address that is not public.
    #[error("the host has no public address")]
    NotPublic,
    /// The time was up.
    #[error("timeout: no complete answer in time")]
    Timeout,
    /// No connection: the name is unknown, the connection is refused or not answered, or there is no valid certificate.
    #[error("no connection: {0}")]
    Connect(String),
    /// The body is larger than allowed.
    #[error("the answer is too large")]
    TooLarge,
    /// More redirects than allowed, or one that leads nowhere.
    #[error("redirected too often, or to an invalid address")]
    Redirect,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}

impl FetchError {
    /// How often work is tried, at most, that fails like this: a host that is not there is seldom there a minute later.
    #[must_use]
    pub fn most_attempts(&self) -> u32 {
        match self {
            Self::Connect(_) => CONNECT_ATTEMPTS,
            _ => u32::MAX,
        }
    }
}

/// How often a host is asked that no connection can be made to.
pub const CONNECT_ATTEMPTS: u32 = 3;

impl Fetcher {
    /// A client with these settings.
    ///
    /// # Errors
    /// When the CA file cannot be read.
    pub fn new(config: &FetchConfig) -> anyhow::Result<Self> {
        // Fails when another part installed it before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("Colloquy/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIME)
            .dns_resolver(Arc::new(GuardedResolver {
                allow_private: config.allow_private,
            }));
        if let Some(file) = &config.ca_file {
            let name = file.display();
            let pem =
                std::fs::read(file).with_context(|| format!("fetch.ca_file: reading {name}"))?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .with_context(|| format!("fetch.ca_file: {name} is not PEM"))?;
            builder = builder.tls_certs_merge(certificates);
        }
        Ok(Self {
            client: builder.build().context("building the HTTP client")?,
            allow_private: config.allow_private,
        })
    }

    /// Checks what can be known of a URL without asking anyone: its scheme and a literal address.
    ///
    /// # Errors
    /// `Url` or `NotPublic`.
    pub fn check(&self, url: &Url, https_only: bool) -> Result<(), FetchError> {
        check(url, https_only, self.allow_private)
    }

    /// Sends a request and reads the answer within the bounds.
    ///
    /// # Errors
    /// When there is no answer, or one outside of the bounds. Every status is an answer.
    pub async fn send(&self, request: Request, bounds: Bounds) -> Result<Answer, FetchError> {
        timeout(bounds.time, self.answer(request, bounds))
            .await
            .unwrap_or(Err(FetchError::Timeout))
    }

    /// Sends a request and gives the answer before its body has come, a piece of which is in memory at a time. The bounds hold for
    /// all of it.
    ///
    /// # Errors
    /// When there is no answer, or one outside of the bounds. Every status is an answer.
    pub async fn open(&self, request: Request, bounds: Bounds) -> Result<OpenAnswer, FetchError> {
        let until = runtime_now() + bounds.time;
        let followed = timeout_at(until, self.follow(request, bounds)).await;
        let (url, response) = followed.unwrap_or(Err(FetchError::Timeout))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let length = response.content_length();
        if length.is_some_and(|length| length > bounds.bytes) {
            return Err(FetchError::TooLarge);
        }
        let pieces = stream::try_unfold(
            (response, 0_u64),
            move |(mut response, before)| async move {
                let piece = timeout_at(until, response.chunk()).await;
                let piece = piece.map_err(|_| FetchError::Timeout)?.map_err(failure)?;
                let Some(piece) = piece else { return Ok(None) };
                let read = before + piece.len() as u64;
                match read > bounds.bytes {
                    true => Err(FetchError::TooLarge),
                    false => Ok(Some((piece, (response, read)))),
                }
            },
        );
        Ok(OpenAnswer {
            url,
            status,
            headers,
            pieces: pieces.boxed(),
        })
    }

    async fn answer(&self, request: Request, bounds: Bounds) -> Result<Answer, FetchError> {
        let (url, response) = self.follow(request, bounds).await?;
        read(url, response, bounds.bytes).await
    }

    /// The response that is none of the redirects, and where it came from.
    async fn follow(
        &self,
        mut request: Request,
        bounds: Bounds,
    ) -> Result<(Url, reqwest::Response), FetchError> {
        let mut redirects = 0;
        loop {
            self.check(&request.url, bounds.https_only)?;
            let response = self
                .client
                .request(request.method.clone(), request.url.clone())
                .headers(request.headers.clone())
                .body(request.body.clone())
                .send()
                .await
                .map_err(failure)?;
            let redirected = response.status().is_redirection() && request.method == Method::GET;
            if bounds.redirects == 0 || !redirected {
                return Ok((request.url, response));
            }
            redirects += 1;
            if redirects > bounds.redirects {
                return Err(FetchError::Redirect);
            }
            let target = response
                .headers()
                .get(LOCATION)
                .and_then(|location| location.to_str().ok())
                .and_then(|location| request.url.join(location).ok())
                .ok_or(FetchError::Redirect)?;
            if target.origin() != request.url.origin() {
                // Headers may hold credentials for the first host.
                request.headers.clear();
            }
            request.url = target;
        }
    }
}

async fn read(url: Url, mut response: reqwest::Response, most: u64) -> Result<Answer, FetchError> {
    let mut body = BytesMut::new();
    if most > 0 {
        if response
            .content_length()
            .is_some_and(|length| length > most)
        {
            return Err(FetchError::TooLarge);
        }
        while let Some(chunk) = response.chunk().await.map_err(failure)? {
            if (body.len() + chunk.len()) as u64 > most {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
    }
    Ok(Answer {
        url,
        status: response.status(),
        headers: response.headers().clone(),
        body: body.freeze(),
    })
}

fn check(url: &Url, https_only: bool, allow_private: bool) -> Result<(), FetchError> {
    match url.scheme() {
        "https" => {}
        "http" if !https_only => {}
        _ if https_only => return Err(FetchError::Url("use https")),
        _ => return Err(FetchError::Url("use http or https")),
    }
    let literal = match url.host() {
        None => return Err(FetchError::Url("it has no host")),
        Some(Host::Domain(_)) => None,
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
    };
    match literal {
        Some(address) if !allow_private && !is_public(address) => Err(FetchError::NotPublic),
        _ => Ok(()),
    }
}

/// Resolves names and leaves out addresses that are not public, so that a connection can only use checked ones.
#[derive(Debug)]
struct GuardedResolver {
    allow_private: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let allowed = resolve(name.as_str(), 0, allow_private).await?;
            if allowed.is_empty() {
                return Err(NotPublic.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host that may be connected to; none where all of them are refused.
async fn resolve(name: &str, port: u16, allow_private: bool) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((name, port)).await?;
    let allowed = found.filter(|address| allow_private || is_public(address.ip()));
    Ok(allowed.collect())
}

/// The resolver's refusal, to be found again in reqwest's chain of causes.
#[derive(Debug, thiserror::Error)]
#[error("no public address")]
struct NotPublic;

fn failure(error: reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let mut last = String::new();
    while let Some(error) = cause {
        if error.is::<NotPublic>() {
            return FetchError::NotPublic;
        }
        last = error.to_string();
        cause = error.source();
    }
    if error.is_connect() {
        FetchError::Connect(last)
    } else if error.is_timeout() {
        FetchError::Timeout
    } else {
        FetchError::Broken(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str, https_only: bool) -> bool {
        check(&Url::parse(url).unwrap(), https_only, false).is_err()
    }

    #[test]
    fn schemes_and_literal_addresses_are_checked_before_anything_is_sent() {
        assert!(!refused("https://example.com/hook", true));
        assert!(!refused("http://example.com/a.wav", false));
        assert!(!refused("https://1.1.1.1/", true));
        assert!(refused("http://example.com/hook", true));
        assert!(refused("ftp://example.com/a", false));
        assert!(refused("file:///etc/passwd", false));
        // The URL standard turns all of these into 127.0.0.1 or ::1.
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "017700000001",
            "[::1]",
        ] {
            assert!(refused(&format!("https://{host}/"), true), "{host}");
        }
        assert!(refused("https://[::ffff:10.0.0.1]/", true));
    }

    /// The failure of a request to an address.
    async fn failure(fetcher: &Fetcher, url: &str) -> FetchError {
        let request = Request {
            method: Method::GET,
            url: Url::parse(url).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let bounds = Bounds {
            time: Duration::from_secs(60),
            bytes: 10,
            redirects: 0,
            https_only: false,
        };
        fetcher.send(request, bounds).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_refused() {
        let fetcher = Fetcher::new(&FetchConfig::default()).unwrap();
        let error = failure(&fetcher, "http://localhost:9/").await;
        assert!(matches!(error, FetchError::NotPublic), "{error:?}");
    }

    #[tokio::test]
    async fn a_host_that_is_not_there_is_given_up_after_three_attempts() {
        let config = FetchConfig {
            allow_private: true,
            ..FetchConfig::default()
        };
        let fetcher = Fetcher::new(&config).unwrap();
        // Nobody listens on a port that was given back.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        for url in [refused.as_str(), "http://no-such-host.invalid/"] {
            let error = failure(&fetcher, url).await;
            assert!(matches!(error, FetchError::Connect(_)), "{url}: {error:?}");
            assert_eq!(error.most_attempts(), 3);
        }
        assert_eq!(FetchError::Timeout.most_attempts(), u32::MAX);
    }
}
