//! The signalling WebSocket of a client, and of tests that speak the protocol by hand.

use std::{fmt, time::Duration};

use anyhow::{Context as _, bail};
use colloquy_protocol::{ClientMessage, PROTOCOL_VERSION, ServerMessage};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{Message, client::IntoClientRequest as _, handshake::client::Request},
};

use crate::patience;

/// How long the server may take for an answer that needs no provider, on a machine of ordinary speed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to the address of a signed URL.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// What came from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum FromServer {
    /// A message.
    Message(ServerMessage),
    /// The connection is closed, with the code of the close frame if there was one.
    Closed(Option<u16>),
}

/// A session that the server refused or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The number in the close frame.
    pub close: Option<u16>,
    /// The code of the fatal `error` before it.
    pub code: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server closed the session: {:?} {:?}",
            self.close, self.code
        )
    }
}

impl std::error::Error for Refused {}

impl Socket {
    /// Connects.
    ///
    /// # Errors
    /// When there is no WebSocket at the URL.
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        Self::open_with(url.into_client_request()?).await
    }

    /// Connects through a proxy that tells this address of the client.
    ///
    /// # Errors
    /// When there is no WebSocket at the URL.
    pub async fn open_from(url: &str, address: &str) -> anyhow::Result<Self> {
        let mut request = url.into_client_request()?;
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", address.parse()?);
        Self::open_with(request).await
    }

    async fn open_with(request: Request) -> anyhow::Result<Self> {
        let (stream, _) = connect_async_with_config(request, None, true)
            .await
            .context("opening the session socket")?;
        Ok(Self { stream })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn say(&mut self, message: &ClientMessage) -> anyhow::Result<()> {
        self.say_text(serde_json::to_string(message)?).await
    }

    /// Sends a text frame, whatever it holds.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn say_text(&mut self, text: impl Into<String>) -> anyhow::Result<()> {
        Ok(self.stream.send(Message::text(text.into())).await?)
    }

    /// Sends a binary frame.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn say_bytes(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        Ok(self.stream.send(Message::binary(bytes)).await?)
    }

    /// Sends a ping of the WebSocket, not of the session's protocol.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send_ping(&mut self) -> anyhow::Result<()> {
        Ok(self.stream.send(Message::Ping(Default::default())).await?)
    }

    /// Sends a pong of the WebSocket, not of the session's protocol.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send_pong(&mut self) -> anyhow::Result<()> {
        Ok(self.stream.send(Message::Pong(Default::default())).await?)
    }

    /// Says `hello` as a new client.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn begin(&mut self, user_info: bool) -> anyhow::Result<()> {
        self.hello(None, user_info).await
    }

    /// Says `hello` as a client that comes back with a token.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn resume(&mut self, token: &str) -> anyhow::Result<()> {
        self.hello(Some(token.to_owned()), true).await
    }

    async fn hello(&mut self, resume: Option<String>, user_info: bool) -> anyhow::Result<()> {
        self.say(&ClientMessage::Hello {
            protocol: PROTOCOL_VERSION,
            sdk_version: Some(concat!("harness/", env!("CARGO_PKG_VERSION")).to_owned()),
            metadata: None,
            resume,
            user_info,
        })
        .await
    }

    /// What comes next. Dropping the future loses nothing.
    pub async fn next(&mut self) -> FromServer {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(message) = serde_json::from_str(&text) {
                        return FromServer::Message(message);
                    }
                }
                Some(Ok(Message::Close(frame))) => {
                    return FromServer::Closed(frame.map(|frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return FromServer::Closed(None),
            }
        }
    }

    /// Waits for `welcome`, the message after `hello`.
    ///
    /// # Errors
    /// [`Refused`] when the server closes instead; another error when it says something else or nothing.
    pub async fn welcome(&mut self) -> anyhow::Result<ServerMessage> {
        let mut code = None;
        loop {
            match tokio::time::timeout(patience(PATIENCE), self.next())
                .await
                .context("no welcome came")?
            {
                FromServer::Message(welcome @ ServerMessage::Welcome { .. }) => return Ok(welcome),
                FromServer::Message(ServerMessage::Error {
                    code: why,
                    fatal: true,
                    ..
                }) => code = Some(why),
                FromServer::Message(other) => bail!("instead of welcome came {other:?}"),
                FromServer::Closed(close) => return Err(Refused { close, code }.into()),
            }
        }
    }

    /// Waits until the server closes the connection and says how; messages other than the fatal `error` are passed over.
    ///
    /// # Errors
    /// When the server keeps it open for twenty seconds on a machine of ordinary speed.
    pub async fn refusal(&mut self) -> anyhow::Result<Refused> {
        let mut code = None;
        let end = async {
            loop {
                match self.next().await {
                    FromServer::Message(ServerMessage::Error {
                        code: why,
                        fatal: true,
                        ..
                    }) => code = Some(why),
                    FromServer::Message(_) => {}
                    FromServer::Closed(close) => return close,
                }
            }
        };
        let close = tokio::time::timeout(patience(PATIENCE), end)
            .await
            .context("the server did not close the session")?;
        Ok(Refused { close, code })
    }
}
