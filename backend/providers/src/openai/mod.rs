//! Adapters for OpenAI-compatible servers: OpenAI itself, Ollama, vLLM, llama.cpp, LM Studio, and for speech Speaches,
//! Kokoro-FastAPI and their like.
//!
//! An adapter asks once and waits as long as it takes; dropping its future or stream closes the connection. Messages of
//! servers are for the client that sent the request, since some of them repeat it; logs get their short error codes.

mod chat;
mod embeddings;
mod speech;
mod transcription;
mod vectorstore;

use std::time::Duration;

use anyhow::Context as _;
use colloquy_formats::failure;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use url::{Host, Url};

pub use self::{
    chat::Chat,
    embeddings::Embeddings,
    speech::Speech,
    transcription::Transcription,
    vectorstore::{FileAttributes, Found, IndexState, NewFile, VectorStore},
};
use super::{
    ModelApi, ProviderError, ProviderErrorKind, UpstreamFailure,
    failure::{error_kind, kind_of},
    reason::{HostNames, Unreachable},
};
use colloquy_base::json;
use colloquy_config::Secret;
use colloquy_observability::hand_on;

/// The longest that connecting may take, unless it is to a model; everything else is bounded by the caller.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read as a whole, unless it is a model's.
pub(crate) const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A server, the model that is asked there, and the connections to it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    http: Client,
    base: Url,
    key: Option<Secret>,
    model: String,
}

impl Server {
    /// The server of these settings; `None` without a base URL.
    pub(crate) fn new(
        base: Option<&Url>,
        key: Option<&Secret>,
        model: Option<&String>,
        connect: Duration,
    ) -> anyhow::Result<Option<Self>> {
        let Some(base) = base else { return Ok(None) };
        let model = model.context("a base URL needs a model")?.clone();
        let mut base = base.clone();
        if !base.path().ends_with('/') {
            // Without the slash the last part of the path would be replaced when an address is joined to it.
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Some(Self {
            http: client(&base, connect)?,
            base,
            key: key.cloned(),
            model,
        }))
    }

    /// A request to `path` below the base URL.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
    ) -> Result<RequestBuilder, ProviderError> {
        let url = self.address(path)?;
        Ok(self.authorized(self.http.request(method, url)))
    }

    fn post(&self, path: &str) -> Result<RequestBuilder, ProviderError> {
        self.request(Method::POST, path)
    }

    /// Whether the server answers and takes the key. A server without a list of models still answers.
    async fn check(&self) -> Result<(), ProviderError> {
        self.answers("models").await
    }

    /// The same by another path, which need not be there.
    pub(crate) async fn answers(&self, path: &str) -> Result<(), ProviderError> {
        match self.send(self.request(Method::GET, path)?).await {
            Err(Refusal {
                status: Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED),
                ..
            }) => Ok(()),
            outcome => outcome.map(|_| ()).map_err(|refusal| refusal.error),
        }
    }

    /// Sends a request and gives the response when it is a success.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Refusal> {
        let mut trace = HeaderMap::new();
        hand_on(&mut trace);
        let request = request.headers(trace);
        let response = request.send().await.map_err(|error| Refusal {
            status: None,
            error: self.transport(&error),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let body = self
            .read(response, MAX_ANSWER_BYTES)
            .await
            .unwrap_or_default();
        let told = json::parse(&body)
            .ok()
            .and_then(|body| failure(ModelApi::default(), &body))
            .unwrap_or_default();
        let message = match told.log_code() {
            Some(code) => format!("status {status}, {code}"),
            None => format!("status {status}"),
        };
        let mut error = self.error(kind_of(status), message);
        error.retry_after = retry_after;
        error.told = Some(Box::new(UpstreamFailure {
            status: Some(status.as_u16()),
            ..told
        }));
        Err(Refusal {
            status: Some(status),
            error,
        })
    }

    /// Reads an answer as a whole, up to a bound.
    pub(crate) async fn read(
        &self,
        mut response: Response,
        most: usize,
    ) -> Result<Vec<u8>, ProviderError> {
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|_| self.error(ProviderErrorKind::Cut, "the answer was cut off"))?
        {
            if body.len() + piece.len() > most {
                return Err(self.error(ProviderErrorKind::Malformed, "the answer is too large"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn address(&self, path: &str) -> Result<Url, ProviderError> {
        self.base.join(path).map_err(|_| {
            self.error(
                ProviderErrorKind::Misconfigured,
                "the base URL takes no path behind it",
            )
        })
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    fn transport(&self, error: &reqwest::Error) -> ProviderError {
        if error.is_connect() {
            ProviderError {
                unreachable: Unreachable::of(error),
                ..self.error(ProviderErrorKind::Connect, "no connection")
            }
        } else if error.is_timeout() {
            self.error(ProviderErrorKind::Timeout, "no answer in time")
        } else if error.is_builder() {
            self.error(
                ProviderErrorKind::Misconfigured,
                "the request cannot be written; is the key free of line breaks?",
            )
        } else {
            self.error(ProviderErrorKind::Cut, "the connection was cut")
        }
    }

    /// A failure that the server reported after it had answered 200.
    fn failed(&self, told: Box<UpstreamFailure>) -> ProviderError {
        let message = match told.log_code() {
            Some(code) => format!("the server reports {code}"),
            None => "the server reports a failure".to_owned(),
        };
        let mut error = self.error(error_kind(&told), message);
        error.told = Some(told);
        error
    }

    pub(crate) fn error(
        &self,
        kind: ProviderErrorKind,
        message: impl Into<String>,
    ) -> ProviderError {
        ProviderError::new(&self.model, kind, message)
    }
}

/// A request that got no success.
pub(crate) struct Refusal {
    /// The status, when there was an answer.
    pub(crate) status: Option<StatusCode>,
    pub(crate) error: ProviderError,
}

impl From<Refusal> for ProviderError {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}

/// The connections to one server. A proxy of the environment is used, except to a server on this machine.
fn client(base: &Url, connect: Duration) -> anyhow::Result<Client> {
    // Another part of the process may have chosen its cryptography already; either choice will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let local = match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let builder = Client::builder()
        .connect_timeout(connect)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(60))
        // A redirect would carry the conversation to a server that nobody configured.
        .redirect(Policy::none())
        .dns_resolver(HostNames)
        .user_agent(concat!("colloquy/", env!("CARGO_PKG_VERSION")));
    let builder = if local { builder.no_proxy() } else { builder };
    builder.build().context("making the HTTP client")
}

/// The wait that a server asks for, in seconds. The form with a date is not used by these servers.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(|wait| wait.min(MAX_RETRY_AFTER))
}
