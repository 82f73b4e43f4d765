//! The guarded client as a proxy, for a program that is not ours and fetches by itself.
//!
//! One proxy serves one run of a program: it listens on a loopback port that the system chooses, asks for credentials that nobody else has, and ends
//! with the run, and all of its connections with it. `CONNECT` opens a tunnel; a request with an absolute `http` address is passed on, one for
//! each connection. A connection that carries nothing for a while, or lasts too long, is closed. Names are resolved here, and the connection
//! goes to the very address that was checked: public, and port 80 or 443. An address that is refused is answered in the same way whatever the
//! port, so that no answer tells what listens there.

use std::{
    convert::Infallible,
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use httparse::{EMPTY_HEADER, Request, Status};
use subtle::ConstantTimeEq as _;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::{sleep, timeout},
};
use url::{Host, Url};

use super::{Fetcher, is_public, resolve};

/// The largest head of a request, with its first line.
const MOST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;
/// How long a head may take to come, and a connection to be made.
const HEAD_TIME: Duration = Duration::from_secs(10);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long nothing is accepted after that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// What a tunnel reads at once.
const PIECE: usize = 16 * 1024;
const USER: &str = "colloquy";
/// The ports of the web.
const PORTS: [u16; 2] = [80, 443];

/// What the requests of one run may cost.
#[derive(Debug, Clone, Copy)]
pub struct ProxyBounds {
    /// How many connections there are at once; further ones wait.
    pub connections: usize,
    /// What all of them may carry, both ways together.
    pub bytes: u64,
    /// How long a connection stays open that carries nothing, either way.
    pub idle: Duration,
    /// How long a connection lasts at most, from when its origin is connected.
    pub time: Duration,
}

/// A proxy that listens, and serves while [`Proxy::serve`] is polled.
#[derive(Debug)]
pub struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    password: String,
    allow_private: bool,
    bounds: ProxyBounds,
    /// What may still be carried.
    left: AtomicU64,
}

/// Why a request is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Malformed,
    TooLarge,
    TooSlow,
    NoCredentials,
    /// The address, or the port.
    NotAllowed,
    NoConnection,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::TooSlow => "408 Request Timeout",
            Self::NoCredentials => "407 Proxy Authentication Required",
            Self::NotAllowed => "403 Forbidden",
            Self::NoConnection => "502 Bad Gateway",
        }
    }

    fn response(self) -> String {
        let challenge = match self {
            Self::NoCredentials => "Proxy-Authenticate: Basic realm=\"colloquy\"\r\n",
            _ => "",
        };
        let status = self.status();
        format!("HTTP/1.1 {status}\r\n{challenge}Content-Length: 0\r\nConnection: close\r\n\r\n")
    }
}

/// What a head asks for.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: Host,
    port: u16,
    /// The head as the origin gets it; `None` for a tunnel.
    head: Option<String>,
}

impl Fetcher {
    /// A proxy with the rules of this client. With `fetch.allow_private`, it allows every address and port.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn proxy(&self, bounds: ProxyBounds) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Proxy {
            address: listener.local_addr()?,
            listener,
            password: URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()),
            allow_private: self.allow_private,
            bounds,
            left: AtomicU64::new(bounds.bytes),
        })
    }
}

impl Proxy {
    /// Its address with the credentials, as programs are told it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{USER}:{}@{}", self.password, self.address)
    }

    /// The loopback port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Serves requests until it is dropped, which closes all connections.
    pub async fn serve(&self) -> Infallible {
        let mut open = FuturesUnordered::new();
        let mut has_failed = false;
        loop {
            let has_place = open.len() < self.bounds.connections;
            tokio::select! {
                accepted = self.listener.accept(), if has_place => match accepted {
                    Ok((client, _)) => open.push(self.connection(client)),
                    Err(error) => {
                        // Once: it lasts for as long as the server has no files left.
                        if !std::mem::replace(&mut has_failed, true) {
                            tracing::warn!(%error, "the proxy of a program accepts no connection");
                        }
                        sleep(AFTER_FAILURE).await;
                    }
                },
                Some(()) = open.next() => {}
            }
        }
    }

    /// Serves a connection to its end.
    async fn connection(&self, mut client: TcpStream) {
        let (mut origin, beginning) = match self.open(&mut client).await {
            Ok(opened) => opened,
            Err(refusal) => {
                tracing::debug!(status = refusal.status(), "the proxy of a program refuses");
                // Who does not wait for the answer needs none.
                let _ = client.write_all(refusal.response().as_bytes()).await;
                let _ = client.shutdown().await;
                return;
            }
        };
        let relayed = self.relay(&mut client, &mut origin, &beginning).await;
        // What breaks is seen by both ends.
        if let Err(error) = relayed {
            tracing::debug!(%error, "a connection of a program is cut off");
        }
    }

    /// Carries both ways until both have ended.
    ///
    /// # Errors
    /// When one of them breaks, or the connection goes beyond a bound.
    async fn relay(
        &self,
        client: &mut TcpStream,
        origin: &mut TcpStream,
        beginning: &[u8],
    ) -> io::Result<()> {
        let moved = Notify::new();
        let both = async {
            origin.write_all(beginning).await?;
            moved.notify_one();
            let (from_client, to_client) = client.split();
            let (from_origin, to_origin) = origin.split();
            let up = self.carry(from_client, to_origin, &moved);
            let down = self.carry(from_origin, to_client, &moved);
            tokio::try_join!(up, down).map(|_| ())
        };
        let idle = silence(&moved, || sleep(self.bounds.idle));
        let too_long = |what: &str| io::Error::new(io::ErrorKind::TimedOut, what);
        tokio::select! {
            // What has come is carried before the time is looked at: a server that was held up does not take its own pause for silence.
            biased;
            ended = both => ended,
            () = idle => Err(too_long("it carries nothing")),
            () = sleep(self.bounds.time) => Err(too_long("it lasts too long")),
        }
    }

    /// Reads a request and connects to its origin. Returns what the origin gets first.
    async fn open(&self, client: &mut TcpStream) -> Result<(TcpStream, Vec<u8>), Refusal> {
        let read = timeout(HEAD_TIME, read_head(client)).await;
        let (head, rest) = read.unwrap_or(Err(Refusal::TooSlow))?;
        let target = self.target(&head)?;
        let origin = self.connect(&target).await?;
        let beginning = match target.head {
            Some(head) => [head.into_bytes(), rest].concat(),
            None => {
                let established = client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await;
                established.map_err(|_| Refusal::NoConnection)?;
                rest
            }
        };
        Ok((origin, beginning))
    }

    /// Reads a head, which is whole, and checks its credentials.
    fn target(&self, head: &[u8]) -> Result<Target, Refusal> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut request = Request::new(&mut headers);
        match request.parse(head) {
            Ok(Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
            Ok(Status::Partial) | Err(_) => return Err(Refusal::Malformed),
        }
        if !self.knows(&request) {
            return Err(Refusal::NoCredentials);
        }
        let (Some(method), Some(path)) = (request.method, request.path) else {
            return Err(Refusal::Malformed);
        };
        let is_tunnel = method == "CONNECT";
        let url = match is_tunnel {
            true => Url::parse(&format!("https://{path}/")),
            false => Url::parse(path),
        };
        let url = url.map_err(|_| Refusal::Malformed)?;
        let is_whole = match is_tunnel {
            // Nothing but a host and a port.
            true => url.path() == "/" && url.query().is_none() && path.contains(':'),
            false => url.scheme() == "http",
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Refusal::Malformed);
        };
        if !is_whole || has_user || url.fragment().is_some() {
            return Err(Refusal::Malformed);
        }
        let head = match is_tunnel {
            true => None,
            false => Some(forwarded(method, &url, &request)?),
        };
        let host = host.to_owned();
        Ok(Target { host, port, head })
    }

    fn knows(&self, request: &Request<'_, '_>) -> bool {
        let pair = STANDARD.encode(format!("{USER}:{}", self.password));
        let expected = format!("Basic {pair}");
        let mut headers = request.headers.iter();
        let given = headers.find(|it| it.name.eq_ignore_ascii_case("proxy-authorization"));
        given.is_some_and(|given| given.value.ct_eq(expected.as_bytes()).into())
    }

    /// Connects to an address that is allowed.
    async fn connect(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let connected = timeout(CONNECT_TIME, async {
            let addresses = self.allowed(target).await?;
            let connected = TcpStream::connect(&*addresses).await;
            connected.map_err(|_| Refusal::NoConnection)
        });
        connected.await.unwrap_or(Err(Refusal::NoConnection))
    }

    /// Returns the addresses of a target, all of which are allowed.
    async fn allowed(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        if !self.allow_private && !PORTS.contains(&target.port) {
            return Err(Refusal::NotAllowed);
        }
        let literal = |ip: IpAddr| match self.allow_private || is_public(ip) {
            true => vec![SocketAddr::new(ip, target.port)],
            false => Vec::new(),
        };
        let addresses = match &target.host {
            Host::Ipv4(ip) => literal((*ip).into()),
            Host::Ipv6(ip) => literal((*ip).into()),
            Host::Domain(name) => {
                let resolved = resolve(name, target.port, self.allow_private).await;
                resolved.map_err(|_| Refusal::NoConnection)?
            }
        };
        match addresses.is_empty() {
            true => Err(Refusal::NotAllowed),
            false => Ok(addresses),
        }
    }

    /// Carries what comes, as far as the bounds allow, and then the end. Notifies `moved` of all that is read and written.
    async fn carry(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        moved: &Notify,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).await?;
            moved.notify_one();
            if read == 0 {
                return to.shutdown().await;
            }
            self.charge(read as u64)?;
            to.write_all(&piece[..read]).await?;
            moved.notify_one();
        }
    }

    fn charge(&self, bytes: u64) -> io::Result<()> {
        let charged = self
            .left
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        charged.map(|_| ()).map_err(|left| {
            tracing::debug!(left, "a program fetches more than it may");
            io::ErrorKind::QuotaExceeded.into()
        })
    }
}

/// Ends with a pause in which `moved` is not notified. Each notification begins another one.
async fn silence<P: Future<Output = ()>>(moved: &Notify, pause: impl Fn() -> P) {
    loop {
        tokio::select! {
            biased;
            () = moved.notified() => {}
            () = pause() => return,
        }
    }
}

/// Reads up to the end of a head. Returns it, and what came behind it.
async fn read_head(client: &mut TcpStream) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let before = head.len();
        let mut room = (&mut *client).take((MOST_HEAD - before) as u64);
        let read = room.read_buf(&mut head).await;
        if read.map_err(|_| Refusal::Malformed)? == 0 {
            let is_full = head.len() == MOST_HEAD;
            return Err(if is_full {
                Refusal::TooLarge
            } else {
                Refusal::Malformed
            });
        }
        // Its end may have begun in what came before.
        let begin = before.saturating_sub(3);
        let mut windows = head[begin..].windows(4);
        if let Some(at) = windows.position(|window| window == b"\r\n\r\n") {
            let rest = head.split_off(begin + at + 4);
            return Ok((head, rest));
        }
    }
}

/// The head of a request as its origin gets it: without what is between the program and this proxy, and for one request alone.
fn forwarded(method: &str, url: &Url, request: &Request<'_, '_>) -> Result<String, Refusal> {
    const OWN: [&str; 7] = [
        "host",
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "upgrade",
    ];
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for header in request.headers.iter() {
        if OWN.iter().any(|own| header.name.eq_ignore_ascii_case(own)) {
            continue;
        }
        let value = str::from_utf8(header.value).map_err(|_| Refusal::Malformed)?;
        write!(head, "{}: {value}\r\n", header.name).map_err(|_| Refusal::Malformed)?;
    }
    head.push_str("\r\n");
    Ok(head)
}

#[cfg(test)]
mod tests;
