//! A webhook receiver over TLS that answers as told and remembers what came.

use std::{
    collections::VecDeque,
    net::TcpListener,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header::LOCATION},
    response::{IntoResponse as _, Response},
};
use axum_server::{Handle, tls_rustls::RustlsConfig};
use colloquy_config::Config;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use support::{eventually, news};
use tempfile::TempDir;

/// How the receiver answers one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// With this status.
    Status(u16),
    /// With a redirect to this address.
    Redirect(String),
    /// Not at all.
    Stall,
    /// With 200 and a body that never ends.
    Endless,
    /// With 200 and a byte now and then, for ever.
    Drip,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

impl Received {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Debug, Clone, Default)]
struct Shared {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

/// Requests to paths that begin with this are never answered, whatever the script says.
pub const TAR_PIT: &str = "/tar-pit";

/// The receiver; it ends with this value.
#[derive(Debug)]
pub struct Receiver {
    /// Where it listens: `https://localhost:<port>`.
    pub base: String,
    /// The certificate authority that it needs.
    pub ca_file: PathBuf,
    shared: Shared,
    handle: Handle<std::net::SocketAddr>,
    _dir: TempDir,
}

impl Receiver {
    /// Starts a receiver with a certificate authority of its own. It answers 200 unless told otherwise.
    pub async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(params, ca_key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();

        let dir = TempDir::new().unwrap();
        let ca_file = dir.path().join("ca.pem");
        std::fs::write(&ca_file, ca.pem()).unwrap();
        let tls = RustlsConfig::from_pem(certificate.pem().into(), key.serialize_pem().into())
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Shared::default();
        let router = Router::new().fallback(receive).with_state(shared.clone());
        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, tls)
            .unwrap()
            .handle(handle.clone())
            .serve(router.into_make_service());
        #[expect(
            clippy::disallowed_methods,
            reason = "the receiver is no part of a server"
        )]
        tokio::spawn(server);
        Self {
            base: format!("https://localhost:{port}"),
            ca_file,
            shared,
            handle,
            _dir: dir,
        }
    }

    /// Lets servers of a configuration reach this receiver.
    pub fn configure(&self, config: &mut Config) {
        config.fetch.allow_private = true;
        config.fetch.ca_file = Some(self.ca_file.clone());
    }

    /// Sets the next answers; 200 follows after them.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.shared.replies.lock().unwrap() = replies.into_iter().collect();
    }

    /// What came so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Waits for this many requests.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        eventually(&format!("{count} requests at the receiver"), || async {
            self.received().len() >= count
        })
        .await;
        self.received()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

async fn receive(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let stalls = path.starts_with(TAR_PIT);
    shared.received.lock().unwrap().push(Received {
        method,
        path,
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    news::tell();
    if stalls {
        return std::future::pending().await;
    }
    let reply = shared.replies.lock().unwrap().pop_front();
    match reply.unwrap_or(Reply::Status(200)) {
        Reply::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Reply::Redirect(to) => (StatusCode::FOUND, [(LOCATION, to)]).into_response(),
        Reply::Stall => std::future::pending().await,
        Reply::Drip => {
            let chunks = futures_util::stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
            });
            axum::body::Body::from_stream(chunks).into_response()
        }
        Reply::Endless => {
            let chunks = futures_util::stream::repeat_with(|| {
                Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 8192]))
            });
            axum::body::Body::from_stream(chunks).into_response()
        }
    }
}
