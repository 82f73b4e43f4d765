//! What the client gets: a stream that is written as the model answers, or one body.
//!
//! A stream is pulled by its reader: nothing is read from the model that the client does not take, so a slow reader makes
//! nothing grow. A reader that goes away drops the stream, which cancels the model and settles what was produced.

use std::{mem, time::Duration};

use axum::{
    Json,
    body::Body,
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{FutureExt as _, stream};
use tokio::time::{Instant, sleep_until};

use super::{
    bill::Bill,
    dispatch::{Dispatch, Step},
    failure,
    prepare::Prepared,
    stored::Storing,
    wire::{self, Encoder, Ending, Frame, Head, Tally, VisibleRetrieval},
};
use crate::{
    accounts::ledger::Outcome,
    app::App,
    http::ApiError,
    providers::{Model, ProviderError},
};

/// What keeps a connection open: a comment between events. A blank line after it would be an event to some clients.
const PING: &[u8] = b": ping\n";
/// Events that are there already are written together, up to about this size.
const TOGETHER_BYTES: usize = 16 * 1024;

/// Answers in one piece.
///
/// # Errors
/// 503 when the server stops before it is there.
pub(super) async fn whole(
    app: &App,
    prepared: Prepared,
    mut head: Head,
    storing: Option<Storing>,
) -> Result<Response, ApiError> {
    let Prepared {
        came_at,
        request,
        mut dispatch,
        mut bill,
        retrieval,
        ..
    } = prepared;
    let asked = Instant::now();
    bill.begin();
    // A client that hangs up drops all of this; nobody knows then what was produced, so the bound is settled. The same goes
    // for a server that stops.
    let answered = tokio::select! {
        biased;
        answered = dispatch.whole() => answered,
        () = app.drain_over.cancelled() => return Err(failure::stopping()),
    };
    let (model, answer) = match answered {
        Ok(answered) => answered,
        Err(error) => {
            settle_failed(app, bill, &error);
            return Ok(failure::response(&error));
        }
    };
    let waited = asked.elapsed();
    bill.answers(&model);
    model.name().clone_into(&mut head.model);
    let (answer, tally) = match wire::whole(
        &request,
        model.chat.api(),
        &head,
        retrieval.as_ref(),
        answer,
        seconds(app),
    ) {
        Ok(answer) => answer,
        Err(error) => {
            bill.settle_unused(Outcome::Failed);
            return Ok(failure::told(error));
        }
    };
    bill.settle(&tally, outcome(tally.ending));
    if let Some(storing) = storing {
        storing.keep(app, &head.id, &answer).await;
    }
    count_added(&model, came_at.elapsed(), waited);
    Ok(Json(answer).into_response())
}

/// Answers event by event. The head of the response is sent once the model's first event is there, or once the connection
/// has to be kept open; before that, a failure has a status of its own.
pub(super) async fn streamed(
    app: &App,
    prepared: Prepared,
    head: Head,
    storing: Option<Storing>,
) -> Response {
    let Prepared {
        came_at,
        request,
        dispatch,
        model,
        mut bill,
        retrieval,
        ..
    } = prepared;
    bill.begin();
    let mut talk = Talk {
        app: app.clone(),
        encoder: Some(Encoder::new(&request, model.chat.api(), &head)),
        id: head.id,
        dispatch,
        bill: Some(bill),
        storing,
        retrieval,
        model,
        ping_every: Duration::from_secs(app.config.http.keep_alive_seconds.into()),
        came_at,
        waited: Duration::ZERO,
        measured: false,
        opened: false,
        next: None,
    };
    if let Some(refusal) = talk.first().await {
        talk.settle(Outcome::Failed);
        return refusal;
    }
    let pieces = stream::unfold(talk, |mut talk| async move {
        let piece = talk.piece().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), talk))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A proxy that collects a stream would show it at its end.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What a streamed answer waits for.
enum Wake {
    /// The model.
    Step(Step),
    /// The connection has to be kept open.
    Silence,
    /// The server stops, and its time to drain is over.
    Stopping,
}

/// A streamed answer.
struct Talk {
    app: App,
    id: String,
    dispatch: Dispatch,
    /// Gone when the answer is over.
    encoder: Option<Encoder>,
    /// Gone when it is settled.
    bill: Option<Bill>,
    storing: Option<Storing>,
    retrieval: Option<VisibleRetrieval>,
    /// Who answers.
    model: std::sync::Arc<Model>,
    ping_every: Duration,
    /// When the request came.
    came_at: Instant,
    /// The time that the model took until the first content.
    waited: Duration,
    measured: bool,
    /// The beginning was written.
    opened: bool,
    /// A step that was taken before the head of the response was sent.
    next: Option<Step>,
}

impl Talk {
    /// Waits for the first event, or until the connection has to be kept open. What is answered instead of a stream, when
    /// there is a failure before.
    async fn first(&mut self) -> Option<Response> {
        match self.wait().await {
            Wake::Step(Step::Failed(error)) => Some(failure::response(&error)),
            Wake::Step(step) => {
                self.next = Some(step);
                None
            }
            Wake::Silence => None,
            Wake::Stopping => Some(failure::stopping().into_response()),
        }
    }

    /// The next bytes; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        let encoder = self.encoder.as_mut()?;
        if !mem::replace(&mut self.opened, true) {
            write(&encoder.begin(), &mut out);
            if let Some(retrieval) = self.retrieval.take() {
                write(&encoder.retrieval(&retrieval), &mut out);
            }
            if self.next.is_none() {
                out.put_slice(PING);
            }
        }
        while out.len() < TOGETHER_BYTES && self.encoder.is_some() {
            let step = match self.next.take() {
                Some(step) => Some(step),
                None if out.is_empty() => {
                    self.hear(&mut out).await;
                    continue;
                }
                None => self.dispatch.next().now_or_never(),
            };
            match step {
                Some(step) => self.take(step, &mut out).await,
                None => break,
            }
        }
        (!out.is_empty()).then(|| out.freeze())
    }

    /// Waits for what comes next, and writes what the client gets of it.
    async fn hear(&mut self, out: &mut BytesMut) {
        match self.wait().await {
            Wake::Step(step) => self.take(step, out).await,
            Wake::Silence => out.put_slice(PING),
            Wake::Stopping => {
                let frames = match &mut self.encoder {
                    Some(encoder) => encoder.fail(&failure::stopped()),
                    None => Vec::new(),
                };
                self.over(frames, out).await;
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        if let Some(step) = self.next.take() {
            return Wake::Step(step);
        }
        let asked = Instant::now();
        let wake = tokio::select! {
            biased;
            () = self.app.drain_over.cancelled() => Wake::Stopping,
            step = self.dispatch.next() => Wake::Step(step),
            () = sleep_until(asked + self.ping_every) => Wake::Silence,
        };
        self.waited += asked.elapsed();
        wake
    }

    async fn take(&mut self, step: Step, out: &mut BytesMut) {
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        match step {
            Step::Answers(model) => {
                encoder.set_answering(model.chat.api(), model.name());
                if let Some(bill) = &mut self.bill {
                    bill.answers(&model);
                }
                self.model = model;
            }
            Step::Event(event) => {
                let frames = encoder.event(seconds(&self.app), event);
                let finished = encoder.finished();
                if !mem::replace(&mut self.measured, true) {
                    let first = self.came_at.elapsed();
                    count_first_token(&self.model, first);
                    count_added(&self.model, first, self.waited);
                }
                if finished {
                    self.over(frames, out).await;
                } else {
                    write(&frames, out);
                }
            }
            Step::End => {
                if let Some(bill) = &self.bill {
                    encoder.set_usage(bill.estimate(encoder.tally()));
                }
                let frames = encoder.end(seconds(&self.app));
                self.over(frames, out).await;
            }
            Step::Failed(error) => {
                if let Some(used) = error.used() {
                    encoder.set_usage(used);
                }
                let frames = encoder.fail(&failure::body(&error));
                self.over(frames, out).await;
            }
        }
    }

    /// The answer has ended: its settlement is queued and the response stored before the client learns of it.
    async fn over(&mut self, frames: Vec<Frame>, out: &mut BytesMut) {
        let ending = self
            .encoder
            .as_ref()
            .and_then(|encoder| encoder.tally().ending);
        self.settle(outcome(ending));
        let response = self.encoder.take().and_then(Encoder::into_response);
        let kept = self
            .storing
            .take()
            .filter(|_| ending != Some(Ending::Failed));
        if let (Some(storing), Some(response)) = (kept, response) {
            storing.keep(&self.app, &self.id, &response).await;
        }
        write(&frames, out);
    }

    fn settle(&mut self, outcome: Outcome) {
        let (Some(bill), Some(encoder)) = (self.bill.take(), &self.encoder) else {
            return;
        };
        let tally = encoder.tally();
        if outcome == Outcome::Failed && tally.usage.is_none() && tally.text_bytes == 0 {
            bill.settle_unused(outcome);
        } else {
            bill.settle(tally, outcome);
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Only a client that went away leaves something to settle.
        self.settle(Outcome::Cancelled);
    }
}

/// Settles what no model answered: with what the last one says it took all the same.
fn settle_failed(app: &App, mut bill: Bill, error: &ProviderError) {
    let Some(used) = error.used() else {
        return bill.settle_unused(Outcome::Failed);
    };
    if let Some(model) = app.providers.models.get(&error.provider) {
        bill.answers(model);
    }
    bill.settle(&Tally::of(used), Outcome::Failed);
}

fn write(frames: &[Frame], out: &mut BytesMut) {
    for frame in frames {
        frame.write(out);
    }
}

fn outcome(ending: Option<Ending>) -> Outcome {
    match ending {
        Some(Ending::Completed) => Outcome::Completed,
        Some(Ending::Incomplete) => Outcome::Incomplete,
        Some(Ending::Failed) | None => Outcome::Failed,
    }
}

/// The time as the public APIs write it.
fn seconds(app: &App) -> i64 {
    app.clock.now_ms() / 1_000
}

/// How long the client of a stream waited for its first content.
fn count_first_token(model: &Model, first: Duration) {
    let name = model.name().to_owned();
    metrics::histogram!("colloquy_generation_first_token_seconds", "model" => name).record(first);
}

/// How much of the time until the first content, or until a whole answer, was ours.
fn count_added(model: &Model, total: Duration, waited: Duration) {
    let name = model.name().to_owned();
    metrics::histogram!("colloquy_generation_added_seconds", "model" => name)
        .record(total.saturating_sub(waited));
}
