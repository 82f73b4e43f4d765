//! The two ends of the measurement: an upstream that answers at once, and a client that keeps its connection. Both are
//! as plain as HTTP allows, since they share the processor with the server.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use futures_util::stream;
use harness::client::now;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    client::conn::http1::SendRequest,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// How many pieces a streamed answer has.
const PIECES: usize = 16;

/// Starts the upstream: chat completions of a fixed answer, streamed when the request says so.
pub(super) async fn upstream() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service_fn(answer));
                let _ = connection.await;
            });
        }
    });
    Ok(address)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark has no server whose tasks these would be"
)]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let streamed = contains(&body, br#""stream":true"#);
    let (kind, body) = if streamed {
        (
            "text/event-stream",
            StreamBody::new(stream::iter(frames())).boxed_unsync(),
        )
    } else {
        (
            "application/json",
            Full::new(Bytes::from_static(WHOLE)).boxed_unsync(),
        )
    };
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

const WHOLE: &[u8] = br#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"fast","choices":[{"index":0,"message":{"role":"assistant","content":"The library opens at nine. You can borrow ten books there."},"finish_reason":"stop"}],"usage":{"prompt_tokens":42,"completion_tokens":14,"total_tokens":56}}"#;

fn frames() -> impl Iterator<Item = Result<Frame<Bytes>, Infallible>> {
    let chunk = |rest: &str| {
        format!(
            r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast",{rest}}}"#
        ) + "\n\n"
    };
    let piece = move |_| {
        chunk(r#""choices":[{"index":0,"delta":{"content":"nine books "},"finish_reason":null}]"#)
    };
    let end = [
        chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#),
        chunk(
            r#""choices":[],"usage":{"prompt_tokens":42,"completion_tokens":16,"total_tokens":58}"#,
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    (0..PIECES)
        .map(piece)
        .chain(end)
        .map(|text| Ok(Frame::data(text.into())))
}

/// Whom a client asks.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// `host:port`.
    pub(super) address: String,
    /// The path of chat completions.
    pub(super) path: &'static str,
    /// The key, of which the upstream knows nothing.
    pub(super) key: String,
}

/// A client with one connection, kept alive.
pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    target: Target,
    whole: Bytes,
    streamed: Bytes,
}

impl Client {
    pub(super) async fn connect(target: &Target) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(&target.address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        spawn(async move {
            let _ = connection.await;
        });
        let body = |stream| {
            Bytes::from(format!(
                r#"{{"model":"fast","messages":[{{"role":"system","content":"You are a friendly guide of a library."}},{{"role":"user","content":"When does the library open, and how many books can I borrow?"}}],"stream":{stream},"max_completion_tokens":64}}"#
            ))
        };
        Ok(Self {
            sender,
            target: target.clone(),
            whole: body(false),
            streamed: body(true),
        })
    }

    /// A whole answer: how long it took.
    pub(super) async fn ask(&mut self) -> anyhow::Result<Duration> {
        let begun = now();
        let mut answer = self.send(self.whole.clone()).await?;
        while answer.frame().await.transpose()?.is_some() {}
        Ok(begun.elapsed())
    }

    /// A streamed answer, to its end: how long the first piece of content took.
    pub(super) async fn listen(&mut self) -> anyhow::Result<Duration> {
        let begun = now();
        let mut answer = self.send(self.streamed.clone()).await?;
        let mut first = None;
        let mut last = Bytes::new();
        while let Some(frame) = answer.frame().await.transpose()? {
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if first.is_none() && contains(&data, br#""content":"nine"#) {
                first = Some(begun.elapsed());
            }
            last = data;
        }
        ensure!(last.ends_with(b"data: [DONE]\n\n"), "a stream was cut");
        first.context("a stream had no content")
    }

    async fn send(&mut self, body: Bytes) -> anyhow::Result<Incoming> {
        let request = Request::post(self.target.path)
            .header(HOST, &self.target.address)
            .header(AUTHORIZATION, format!("Bearer {}", self.target.key))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        if !status.is_success() {
            let body = response.into_body().collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body);
            bail!("{}: {status} {body}", self.target.path);
        }
        Ok(response.into_body())
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}
