//! From a request to a model's answer: which model is asked, how long it may take, and which one comes next.
//!
//! A second model is asked only while nothing of the answer is there: after a failed connection, a 429, a 5xx, a silence
//! or a broken answer. What the client's own request is to blame for, no other model is asked. It stops at the events of
//! the model's API: what the client gets of them is `wire`'s.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::wire::{self, Abilities, Request};
use crate::{
    app::App,
    http::ApiError,
    providers::{
        Admission, EventStream, Grounding, Model, ModelAnswer, ModelRequest, ProviderError,
        ProviderErrorKind,
    },
};

/// The models that serve a request, one after the other. Dropping it cancels the one that is being asked.
pub(super) struct Dispatch {
    app: App,
    waiting: VecDeque<Attempt>,
    running: Option<Running>,
    /// Why the last model did not serve.
    last: Option<ProviderError>,
}

/// A model and what it will be asked.
struct Attempt {
    model: Arc<Model>,
    request: ModelRequest,
}

struct Running {
    model: Arc<Model>,
    admission: Admission,
    stage: Stage,
    /// The answer has to begin before.
    first_by: Instant,
    /// It has to end before.
    end_by: Instant,
    heard_at: Instant,
    /// A part of the answer is there, so that no other model can take over.
    has_content: bool,
    /// An event is there, so that the client can be told that the model answers.
    announced: bool,
    /// Events before the content. They are forgotten when another model takes over.
    held: VecDeque<Value>,
}

enum Stage {
    Asking(BoxFuture<'static, Result<ModelAnswer, ProviderError>>),
    Answering(EventStream),
}

/// What happens next in a streamed answer.
pub(super) enum Step {
    /// This model answers; after an earlier one, that one is out.
    Answers(Arc<Model>),
    /// An event of the answer.
    Event(Value),
    /// The answer is complete.
    End,
    /// Nothing follows.
    Failed(ProviderError),
}

impl Dispatch {
    /// A request for these models, the first one first; a later one that cannot be asked this way is left out. `bounded`
    /// answers keep within the bound of their model, also those that the client has set no limit.
    ///
    /// # Errors
    /// 400 that names a field for which the first model's API has no counterpart.
    pub(super) fn new(
        app: &App,
        request: &Request,
        models: &[Arc<Model>],
        grounding: Option<&Arc<Grounding>>,
        bounded: bool,
    ) -> Result<Self, ApiError> {
        let mut waiting = VecDeque::with_capacity(models.len());
        for model in models {
            match wire::upstream_body(request, &abilities(model, bounded), model.name()) {
                Ok(body) => waiting.push_back(Attempt {
                    model: Arc::clone(model),
                    request: ModelRequest {
                        body,
                        grounding: grounding.map(Arc::clone),
                    },
                }),
                Err(error) if waiting.is_empty() => return Err(error),
                Err(error) => {
                    tracing::info!(model = model.name(), %error, "the fallback cannot take this request");
                }
            }
        }
        Ok(Self {
            app: app.clone(),
            waiting,
            running: None,
            last: None,
        })
    }

    /// The whole answer, and who gave it.
    pub(super) async fn whole(&mut self) -> Result<(Arc<Model>, Value), ProviderError> {
        loop {
            let Some((attempt, admission)) = self.next_attempt() else {
                return Err(self.exhausted());
            };
            let total = millis(attempt.model.settings.total_ms);
            let outcome = timeout_at(
                Instant::now() + total,
                attempt.model.chat.ask(&attempt.request),
            )
            .await;
            let model = attempt.model;
            let failure = match outcome {
                Ok(Ok(ModelAnswer::Whole(answer))) => {
                    model.rest.answered(admission);
                    return Ok((model, answer));
                }
                Ok(Ok(ModelAnswer::Events(_))) => error(
                    &model,
                    ProviderErrorKind::Malformed,
                    "events that nobody asked for",
                ),
                Ok(Err(error)) => error,
                Err(_) => error(&model, ProviderErrorKind::Timeout, "no answer in time"),
            };
            self.failed(&model, admission, failure)?;
        }
    }

    /// The next step of a streamed answer. Nothing is lost when this future is dropped.
    pub(super) async fn next(&mut self) -> Step {
        loop {
            let Some(running) = &mut self.running else {
                match self.next_attempt() {
                    Some((attempt, admission)) => {
                        self.running = Some(Running::start(attempt, admission));
                    }
                    None => return Step::Failed(self.exhausted()),
                }
                continue;
            };
            match running.next().await {
                Ok(step) => return step,
                Err(error) => {
                    let (model, admission) = (Arc::clone(&running.model), running.admission);
                    if running.has_content {
                        self.waiting.clear();
                    }
                    self.running = None;
                    if let Err(error) = self.failed(&model, admission, error) {
                        return Step::Failed(error);
                    }
                }
            }
        }
    }

    /// The next model that does not rest.
    fn next_attempt(&mut self) -> Option<(Attempt, Admission)> {
        while let Some(attempt) = self.waiting.pop_front() {
            match attempt.model.rest.admit(self.app.clock.instant()) {
                Ok(admission) => return Some((attempt, admission)),
                Err(wait) => {
                    let mut error = error(
                        &attempt.model,
                        ProviderErrorKind::Failed,
                        "it rests after failures",
                    );
                    error.retry_after = Some(wait);
                    self.last = Some(error);
                }
            }
        }
        None
    }

    fn exhausted(&mut self) -> ProviderError {
        self.last.take().unwrap_or_else(|| {
            ProviderError::new("", ProviderErrorKind::Failed, "there is no model left")
        })
    }

    /// Whether there is another model to ask; the failure itself when there is none.
    fn failed(
        &mut self,
        model: &Model,
        admission: Admission,
        error: ProviderError,
    ) -> Result<(), ProviderError> {
        let now = self.app.clock.instant();
        model
            .rest
            .failed(admission, now, error.kind, error.retry_after);
        metrics::counter!(
            "colloquy_generation_failures_total",
            "model" => model.name().to_owned(), "reason" => error.kind.as_str()
        )
        .increment(1);
        if self.waiting.is_empty() || error.is_of_request() {
            tracing::warn!(model = model.name(), reason = %error, "a model failed");
            return Err(error);
        }
        metrics::counter!("colloquy_generation_fallbacks_total", "model" => model.name().to_owned())
            .increment(1);
        tracing::info!(model = model.name(), reason = %error, "falling back to another model");
        self.last = Some(error);
        Ok(())
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        // Whoever has read enough of an answer does not wait for its end.
        if let Some(running) = self.running.take_if(|running| running.has_content) {
            running.model.rest.answered(running.admission);
        }
    }
}

impl Running {
    fn start(attempt: Attempt, admission: Admission) -> Self {
        let Attempt { model, request } = attempt;
        let now = Instant::now();
        let settings = &model.settings;
        let chat = Arc::clone(&model.chat);
        Self {
            first_by: now + millis(settings.first_token_ms),
            end_by: now + millis(settings.total_ms),
            heard_at: now,
            stage: Stage::Asking(async move { chat.ask(&request).await }.boxed()),
            has_content: false,
            announced: false,
            held: VecDeque::new(),
            admission,
            model,
        }
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        loop {
            if self.has_content
                && let Some(event) = self.held.pop_front()
            {
                return Ok(Step::Event(event));
            }
            let deadline = self.deadline();
            match &mut self.stage {
                Stage::Asking(asking) => {
                    let answer = timeout_at(deadline, asking)
                        .await
                        .map_err(|_| self.late())??;
                    self.stage = Stage::Answering(match answer {
                        ModelAnswer::Events(events) => events,
                        ModelAnswer::Whole(answer) => {
                            self.has_content = true;
                            stream::iter([Ok(answer)]).boxed()
                        }
                    });
                    if self.has_content {
                        self.announced = true;
                        return Ok(Step::Answers(Arc::clone(&self.model)));
                    }
                }
                Stage::Answering(events) => {
                    let event = timeout_at(deadline, events.next())
                        .await
                        .map_err(|_| self.late())?;
                    let Some(event) = event.transpose()? else {
                        // An answer without content is an answer.
                        self.has_content = true;
                        self.stage = Stage::Answering(stream::empty().boxed());
                        match self.held.pop_front() {
                            Some(event) => return Ok(Step::Event(event)),
                            None => return Ok(Step::End),
                        }
                    };
                    self.heard_at = Instant::now();
                    if self.has_content {
                        return Ok(Step::Event(event));
                    }
                    self.has_content = wire::has_content(self.model.chat.api(), &event);
                    self.held.push_back(event);
                    if !self.announced {
                        self.announced = true;
                        return Ok(Step::Answers(Arc::clone(&self.model)));
                    }
                }
            }
        }
    }

    fn deadline(&self) -> Instant {
        let silence = if self.has_content {
            self.heard_at + millis(self.model.settings.between_tokens_ms)
        } else {
            self.first_by
        };
        silence.min(self.end_by)
    }

    fn late(&self) -> ProviderError {
        let message = if self.has_content {
            "no further event in time"
        } else {
            "no content in time"
        };
        error(&self.model, ProviderErrorKind::Timeout, message)
    }
}

/// What a model understands, and what it may give.
fn abilities(model: &Model, bounded: bool) -> Abilities {
    let settings = &model.settings;
    Abilities {
        api: model.chat.api(),
        reasoning: settings.reasoning,
        limit_field: settings.limit_field,
        stream_usage: settings.stream_usage,
        max_output_tokens: bounded.then_some(settings.max_output_tokens),
    }
}

fn error(model: &Model, kind: ProviderErrorKind, message: &str) -> ProviderError {
    ProviderError::new(model.name(), kind, message)
}

fn millis(value: u32) -> Duration {
    Duration::from_millis(value.into())
}
