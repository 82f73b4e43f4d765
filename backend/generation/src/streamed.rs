//! What the client gets event by event, as the model answers.
//!
//! A stream is pulled by its reader: nothing is read from the model that the client does not take, so a slow reader makes
//! nothing grow. A reader that goes away drops the stream, which cancels the model and settles what was produced.

use std::{convert::Infallible, mem, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use colloquy_accounts::ledger::Outcome;
use colloquy_base::clock::runtime_now;
use colloquy_formats::{Encoder, Ending, Frame, VisibleRetrieval};
use colloquy_http::event_stream;
use colloquy_providers::Model;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use tokio::time::{Instant, sleep_until};

use super::{
    answer::{count_added, outcome, seconds},
    bill::Bill,
    dispatch::{Dispatch, Step},
    error::AnswerError,
    failure,
    generate::StartedRequest,
    prepare::Prepared,
    stored::Storing,
};
use crate::Generation;

/// What keeps a connection open: a comment between events. A blank line after it would be an event to some clients.
const PING: &[u8] = b": ping\n";
/// Events that are there already are written together, up to about this size.
const TOGETHER_BYTES: usize = 16 * 1024;

/// What a client gets of a streamed answer.
#[derive(Debug)]
pub(super) enum StreamItem {
    /// An event.
    Event(Frame),
    /// Nothing happened; the connection has to be kept open.
    Silence,
}

/// Answers event by event, in the body of a response. The head is sent once the model's first event is there, or once the
/// connection has to be kept open; before that, a failure has a status of its own. An answer that begins with the items of a
/// retrieval does not wait for the model.
///
/// # Errors
/// The failure before the head.
pub(super) async fn streamed(
    generation: &Generation,
    begun: StartedRequest,
) -> Result<Response, AnswerError> {
    let pieces = events(generation, begun).await?.map(|together| {
        let mut out = BytesMut::new();
        for item in &together {
            match item {
                StreamItem::Event(frame) => frame.write(&mut out),
                StreamItem::Silence => out.put_slice(PING),
            }
        }
        Ok::<Bytes, Infallible>(out.freeze())
    });
    Ok(event_stream(Body::from_stream(pieces)))
}

/// The events of an answer, those together that were there together. Dropping the stream cancels the model and settles.
///
/// # Errors
/// The failure before the first event.
pub(super) async fn events(
    generation: &Generation,
    begun: StartedRequest,
) -> Result<impl Stream<Item = Vec<StreamItem>> + Send + use<>, AnswerError> {
    let StartedRequest {
        prepared,
        head,
        storing,
    } = begun;
    let Prepared {
        came_at,
        request_id,
        request,
        dispatch,
        model,
        mut bill,
        retrieval,
        ..
    } = prepared;
    bill.begin();
    let mut answer = StreamedAnswer {
        generation: generation.clone(),
        id: head.id.clone(),
        dispatch,
        ping_every: Duration::from_secs(generation.config.http.keep_alive_seconds.into()),
        came_at,
        waited: Duration::ZERO,
        state: State::BeforeHead(
            Box::new(Unfinished {
                encoder: Encoder::new(&request, model.chat.api(), &head).of_request(&request_id),
                bill,
                storing,
            }),
            Beginning { model, retrieval },
        ),
    };
    drop(request);
    answer.open().await?;
    Ok(stream::unfold(answer, |mut answer| async move {
        let piece = answer.piece().await?;
        Some((piece, answer))
    }))
}

/// What a client gets together.
#[derive(Debug, Default)]
struct Piece {
    items: Vec<StreamItem>,
    bytes: usize,
}

impl Piece {
    fn events(&mut self, frames: Vec<Frame>) {
        self.bytes += frames.iter().map(|frame| frame.data.len()).sum::<usize>();
        self.items.extend(frames.into_iter().map(StreamItem::Event));
    }

    fn silence(&mut self) {
        self.items.push(StreamItem::Silence);
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// What a streamed answer waits for.
enum StreamEvent {
    /// The model.
    Step(Step),
    /// The connection has to be kept open.
    Silence,
    /// The server stops, and its time to drain is over.
    Stopping,
}

/// A streamed answer.
struct StreamedAnswer {
    generation: Generation,
    id: String,
    dispatch: Dispatch,
    ping_every: Duration,
    /// When the request came.
    came_at: Instant,
    /// The time that the model took until now.
    waited: Duration,
    state: State,
}

/// How far a streamed answer is.
enum State {
    /// The head of the response is not sent, so that a failure has a status of its own.
    BeforeHead(Box<Unfinished>, Beginning),
    /// The head is sent, and nothing behind it.
    Opened(Box<Unfinished>, Beginning, First),
    /// The beginning is written, and there is no content of the model's yet, which answers.
    AwaitingContent(Box<Unfinished>, Arc<Model>),
    /// There is content.
    Streaming(Box<Unfinished>),
    /// It has ended and is settled.
    Over,
}

/// What opened a streamed answer.
enum First {
    /// A step of the model's.
    Step(Step),
    /// The connection had to be kept open.
    Silence,
    /// The items of a retrieval, which are shown before the model answers.
    Retrieval,
}

/// What a streamed answer has until it ends.
struct Unfinished {
    encoder: Encoder,
    bill: Bill,
    storing: Option<Storing>,
}

/// What a streamed answer begins with.
struct Beginning {
    /// Who answers.
    model: Arc<Model>,
    retrieval: Option<VisibleRetrieval>,
}

impl StreamedAnswer {
    /// Waits for the first event, or until the connection has to be kept open; not at all when there are items to show. A
    /// failure that is known by then still has a status of its own.
    async fn open(&mut self) -> Result<(), AnswerError> {
        let first = match self.shows_retrieval() {
            true => self.wait().now_or_never(),
            false => Some(self.wait().await),
        };
        let first = match first {
            Some(StreamEvent::Step(Step::Failed(error))) => {
                self.settle(Outcome::Failed);
                return Err(error.into());
            }
            Some(StreamEvent::Stopping) => {
                self.settle(Outcome::Failed);
                return Err(AnswerError::Stopping);
            }
            Some(StreamEvent::Step(step)) => First::Step(step),
            Some(StreamEvent::Silence) => First::Silence,
            None => First::Retrieval,
        };
        self.state = match mem::replace(&mut self.state, State::Over) {
            State::BeforeHead(answer, beginning) => State::Opened(answer, beginning, first),
            state => state,
        };
        Ok(())
    }

    /// Returns true if the answer begins with items that the client is shown.
    fn shows_retrieval(&self) -> bool {
        match &self.state {
            State::BeforeHead(answer, Beginning { retrieval, .. }) => {
                retrieval.is_some() && answer.encoder.shows_retrieval()
            }
            _ => false,
        }
    }

    /// What comes next; `None` at the end.
    async fn piece(&mut self) -> Option<Vec<StreamItem>> {
        let mut out = Piece::default();
        if let Some(first) = self.begin(&mut out) {
            self.take(first, &mut out).await;
        }
        while out.bytes < TOGETHER_BYTES && !self.is_over() {
            if out.is_empty() {
                self.hear(&mut out).await;
            } else if let Some(step) = self.dispatch.next().now_or_never() {
                self.take(step, &mut out).await;
            } else {
                break;
            }
        }
        (!out.is_empty()).then_some(out.items)
    }

    /// Writes the beginning, once. The step that was taken before it.
    fn begin(&mut self, out: &mut Piece) -> Option<Step> {
        match mem::replace(&mut self.state, State::Over) {
            State::Opened(mut answer, Beginning { model, retrieval }, first) => {
                out.events(answer.encoder.begin());
                if let Some(retrieval) = retrieval {
                    out.events(answer.encoder.retrieval(&retrieval));
                }
                self.state = State::AwaitingContent(answer, model);
                match first {
                    First::Step(step) => return Some(step),
                    First::Silence => out.silence(),
                    First::Retrieval => {}
                }
                None
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Waits for what comes next, and writes what the client gets of it.
    async fn hear(&mut self, out: &mut Piece) {
        match self.wait().await {
            StreamEvent::Step(step) => self.take(step, out).await,
            StreamEvent::Silence => out.silence(),
            StreamEvent::Stopping => {
                if let Some(answer) = self.unfinished() {
                    let frames = answer.encoder.fail(&failure::stopped());
                    self.over(frames, out).await;
                }
            }
        }
    }

    async fn wait(&mut self) -> StreamEvent {
        let asked = runtime_now();
        let wake = tokio::select! {
            biased;
            () = self.generation.kernel.drain_over.cancelled() => StreamEvent::Stopping,
            step = self.dispatch.next() => StreamEvent::Step(step),
            () = sleep_until(asked + self.ping_every) => StreamEvent::Silence,
        };
        self.waited += asked.elapsed();
        wake
    }

    async fn take(&mut self, step: Step, out: &mut Piece) {
        let now = seconds(&self.generation);
        let Some(answer) = self.unfinished() else {
            return;
        };
        match step {
            Step::Answers(model) => {
                answer.encoder.set_answering(model.chat.api(), model.name());
                answer.bill.answers(&model);
                if let State::AwaitingContent(_, answering) = &mut self.state {
                    *answering = model;
                }
            }
            Step::Event(event) => {
                let frames = answer.encoder.event(now, event);
                let (finished, stopped) = (answer.encoder.finished(), answer.encoder.stopped());
                self.content_came();
                if finished {
                    self.over(frames, out).await;
                } else {
                    out.events(frames);
                    if stopped {
                        self.end(out).await;
                    }
                }
            }
            Step::End => self.end(out).await,
            Step::Failed(error) => {
                if let Some(used) = error.used() {
                    answer.encoder.set_usage(used);
                }
                let frames = answer.encoder.fail(&failure::body(&error));
                self.over(frames, out).await;
            }
        }
    }

    /// Counts how long the first content took, once.
    fn content_came(&mut self) {
        self.state = match mem::replace(&mut self.state, State::Over) {
            State::AwaitingContent(answer, model) => {
                let first = self.came_at.elapsed();
                count_first_token(&model, first);
                count_added(&model, first, self.waited);
                State::Streaming(answer)
            }
            state => state,
        };
    }

    /// The answer is complete.
    async fn end(&mut self, out: &mut Piece) {
        let now = seconds(&self.generation);
        if let Some(answer) = self.unfinished() {
            let used = answer.bill.estimate(answer.encoder.tally());
            answer.encoder.set_usage(used);
            let frames = answer.encoder.end(now);
            self.over(frames, out).await;
        }
    }

    /// The answer has ended: its settlement is queued and the response stored before the client learns of it.
    async fn over(&mut self, mut frames: Vec<Frame>, out: &mut Piece) {
        let ending = self
            .unfinished()
            .and_then(|answer| answer.encoder.tally().ending);
        let ended = self.settle(outcome(ending));
        if let Some((mut encoder, Some(storing))) = ended
            && ending != Some(Ending::Failed)
            && let Some(response) = encoder.response()
            && let Err(error) = storing.keep(&self.generation, &self.id, response).await
        {
            tracing::warn!(%error, "a response was not stored");
            frames = encoder.fail_instead(frames, &failure::not_stored());
        }
        out.events(frames);
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn unfinished(&mut self) -> Option<&mut Unfinished> {
        match &mut self.state {
            State::BeforeHead(answer, _)
            | State::Opened(answer, ..)
            | State::AwaitingContent(answer, _)
            | State::Streaming(answer) => Some(answer),
            State::Over => None,
        }
    }

    /// Ends and settles the answer, once; what is left of it.
    fn settle(&mut self, outcome: Outcome) -> Option<(Encoder, Option<Storing>)> {
        let (State::BeforeHead(answer, _)
        | State::Opened(answer, ..)
        | State::AwaitingContent(answer, _)
        | State::Streaming(answer)) = mem::replace(&mut self.state, State::Over)
        else {
            return None;
        };
        let Unfinished {
            encoder,
            bill,
            storing,
        } = *answer;
        let tally = encoder.tally();
        if outcome == Outcome::Failed && tally.usage.is_none() && tally.text_bytes == 0 {
            bill.settle_unused(outcome);
        } else {
            bill.settle(tally, outcome);
        }
        Some((encoder, storing))
    }
}

impl Drop for StreamedAnswer {
    fn drop(&mut self) {
        // Only a client that went away leaves something to settle.
        self.settle(Outcome::Cancelled);
    }
}

/// How long the client of a stream waited for its first content.
fn count_first_token(model: &Model, first: Duration) {
    let name = model.name().to_owned();
    metrics::histogram!("colloquy_generation_first_token_seconds", "model" => name).record(first);
}
