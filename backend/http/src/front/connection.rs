//! One connection: its requests one after another, and its end.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::ConnectInfo,
    http::{HeaderValue, Request, Response, StatusCode, header::CONNECTION},
};
use colloquy_base::clock::runtime_now;
use futures_util::future::BoxFuture;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::TokioIo;
use tokio::time::sleep_until;

use super::{
    Shared,
    io::Io,
    watch::{Verdict, Watch},
};
use crate::{guarded::Guarded, intake::Intake};

/// Serves a connection to its end.
pub(super) async fn serve(
    shared: Arc<Shared>,
    http: http1::Builder,
    router: Router,
    io: Io,
    peer: SocketAddr,
    watch: Arc<Watch>,
    intake: Intake,
) {
    let requests = Requests {
        shared: Arc::clone(&shared),
        router,
        peer,
        watch: Arc::clone(&watch),
        intake,
    };
    let served = http
        .serve_connection(TokioIo::new(io), requests)
        .with_upgrades();
    let mut served = pin!(served);
    let mut leaving = None;
    let mut look = pin!(sleep_until(runtime_now()));
    loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::trace!(%error, "a connection failed");
                }
                break;
            }
            () = look.as_mut() => match watch.look(&shared.limits, runtime_now(), leaving) {
                Verdict::Until(at) => look.as_mut().reset(at),
                Verdict::Over(reason) => {
                    metrics::counter!("colloquy_http_connections_cut_total", "reason" => reason)
                        .increment(1);
                    watch.cut();
                    break;
                }
            },
            () = shared.leaving.cancelled(), if leaving.is_none() => {
                leaving = Some(runtime_now());
                // One that answers ends with that. One that is idle may have a request on its way, which would be lost; its
                // answer ends the connection.
                if watch.is_working() {
                    served.as_mut().graceful_shutdown();
                }
                look.as_mut().reset(runtime_now());
            }
            () = shared.stop.cancelled() => {
                watch.cut();
                break;
            }
        }
    }
    watch.ended();
}

/// The requests of a connection.
struct Requests {
    shared: Arc<Shared>,
    router: Router,
    peer: SocketAddr,
    watch: Arc<Watch>,
    intake: Intake,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Answer>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let token = self.shared.requests.token();
        self.watch.request(token, !request.body().is_end_stream());
        self.intake.note_request();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        request.extensions_mut().insert(self.intake.clone());
        let answering = tower::Service::call(&mut self.router.clone(), request);
        let (shared, watch) = (Arc::clone(&self.shared), Arc::clone(&self.watch));
        Box::pin(async move {
            let mut response = answering.await?;
            if shared.leaving.is_cancelled() && response.status() != StatusCode::SWITCHING_PROTOCOLS
            {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok(response.map(|body| Guarded::new(body, AnswerSent(watch))))
        })
    }
}

/// The body of an answer, which tells the watch when it has left.
type Answer = Guarded<AnswerSent>;

struct AnswerSent(Arc<Watch>);

impl Drop for AnswerSent {
    fn drop(&mut self) {
        self.0.answered();
    }
}
