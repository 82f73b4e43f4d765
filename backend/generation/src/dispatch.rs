//! From a request to a model's answer: which model is asked, how long it may take, and which one comes next.
//!
//! A second model is asked only while nothing of the answer is there: after a failed connection, a 429, a 5xx, a silence
//! or a broken answer. What the client's own request is to blame for, no other model is asked. It stops at the events of
//! the model's API: what the client gets of them is the encoder's.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use colloquy_accounts::Tenant;
use colloquy_base::clock::runtime_now;
use colloquy_formats::{
    Assembler, Capabilities, FormatError, ModelEvent, Request, check_upstream, upstream_body,
};
use colloquy_providers::{
    Admission, Deadline, EventStream, Grounding, Model, ModelAnswer, ModelApi, ModelRequest,
    Patience, ProviderError, ProviderErrorKind,
};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use tokio::time::timeout_at;

use crate::Generation;

/// The models that serve a request, one after the other. Dropping it cancels the one that is being asked.
pub(super) struct Dispatch {
    generation: Generation,
    /// Whose request it is.
    partner: String,
    waiting: VecDeque<Attempt>,
    running: Option<Running>,
    /// Why the last model did not serve.
    last: Option<ProviderError>,
}

/// A model and what it will be asked. The body is made when it is its turn.
struct Attempt {
    model: Arc<Model>,
    /// The limit of an answer for which the client has set none.
    limit: Option<u64>,
    request: Arc<Request>,
    grounding: Option<Arc<Grounding>>,
}

impl Attempt {
    /// Whether an answer in one piece can be put together of the model's events without losing anything: where the events
    /// tell the usage, and the answer has no sound, whose formats differ.
    fn can_be_assembled(&self) -> bool {
        let request = &self.request;
        let tells_all = match self.model.chat.api() {
            ModelApi::Chat => self.model.settings.stream_usage && !request.wants_sound(),
            ModelApi::Responses => true,
        };
        tells_all && !request.compacts
    }

    /// The answer in one piece.
    async fn whole(self, patience: Duration) -> Result<ModelEvent, ProviderError> {
        let model = Arc::clone(&self.model);
        match timeout_at(runtime_now() + patience, self.ask(false)).await {
            Ok(Ok(ModelAnswer::Whole(answer))) => Ok(answer),
            Ok(Ok(ModelAnswer::Events(_))) => {
                let what = "events that nobody asked for";
                Err(error(&model, ProviderErrorKind::Malformed, what))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(error(
                &model,
                ProviderErrorKind::Timeout,
                "no answer in time",
            )),
        }
    }

    /// Asks, for events in any case or for what the client wants.
    async fn ask(self, events: bool) -> Result<ModelAnswer, ProviderError> {
        let model = self.model;
        let abilities = Capabilities {
            events,
            ..abilities(&model, self.limit)
        };
        let body = upstream_body(&self.request, &abilities, model.name());
        // It was found able before.
        let body =
            body.map_err(|wrong| error(&model, ProviderErrorKind::Rejected, &wrong.to_string()))?;
        let compacts = self.request.compacts && model.chat.api() == ModelApi::Responses;
        drop(self.request);
        let request = ModelRequest {
            body,
            compacts,
            grounding: self.grounding,
        };
        model.chat.ask(&request).await
    }
}

/// Those of the models that can be asked this, the first of which must be able to.
///
/// # Errors
/// When the first model's API has no counterpart for a field.
pub(super) fn able(
    request: &Request,
    models: Vec<Arc<Model>>,
) -> Result<Vec<Arc<Model>>, FormatError> {
    let mut able = Vec::with_capacity(models.len());
    for model in models {
        match check_upstream(request, &abilities(&model, None)) {
            Ok(()) => able.push(model),
            Err(error) if able.is_empty() => return Err(error),
            Err(error) => {
                tracing::info!(model = model.name(), %error, "the fallback cannot take this request");
            }
        }
    }
    Ok(able)
}

struct Running {
    model: Arc<Model>,
    admission: Admission,
    stage: Stage,
    deadline: Deadline,
    /// A part of the answer is there, so that no other model can take over.
    has_content: bool,
    /// An event is there, so that the client can be told that the model answers.
    announced: bool,
    /// Events before the content. They are forgotten when another model takes over.
    held: VecDeque<ModelEvent>,
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
    Event(ModelEvent),
    /// The answer is complete.
    End,
    /// Nothing follows.
    Failed(ProviderError),
}

impl Dispatch {
    /// A request for these models, the first one first, which [`able`] gave. `limit` is the one of an answer for which the
    /// client has set none.
    pub(super) fn new(
        generation: &Generation,
        tenant: &Tenant,
        request: &Arc<Request>,
        models: &[Arc<Model>],
        grounding: Option<&Arc<Grounding>>,
        limit: impl Fn(&Model) -> Option<u64>,
    ) -> Self {
        let waiting = models.iter().map(|model| Attempt {
            model: Arc::clone(model),
            limit: limit(model),
            request: Arc::clone(request),
            grounding: grounding.map(Arc::clone),
        });
        Self {
            generation: generation.clone(),
            partner: tenant.partner().as_str().to_owned(),
            waiting: waiting.collect(),
            running: None,
            last: None,
        }
    }

    /// The whole answer, and who gave it.
    pub(super) async fn whole(&mut self) -> Result<(Arc<Model>, ModelEvent), ProviderError> {
        loop {
            let Some((attempt, admission)) = self.next_attempt() else {
                return Err(self.exhausted());
            };
            let model = Arc::clone(&attempt.model);
            let settings = &model.settings;
            let answered = if self.waiting.is_empty() {
                attempt.whole(millis(settings.total_ms)).await
            } else if attempt.can_be_assembled() {
                // There is no first sign of an answer in one piece: most servers send nothing before it is there. Events
                // show early whether the model answers, so that the next one need not wait.
                let running = Running::start(attempt, admission.clone());
                running.assembled().await
            } else {
                let patience = settings.whole_ms.min(settings.total_ms);
                attempt.whole(millis(patience)).await
            };
            match answered {
                Ok(answer) => {
                    let now = self.generation.clock.instant();
                    model.health.answered(&admission, now);
                    return Ok((model, answer));
                }
                Err(failure) => self.failed(&model, &admission, failure)?,
            }
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
                Ok(step) => {
                    if running.has_content {
                        self.waiting.clear();
                    }
                    return step;
                }
                Err(error) => {
                    let Some(Running {
                        model, admission, ..
                    }) = self.running.take()
                    else {
                        return Step::Failed(error);
                    };
                    if let Err(error) = self.failed(&model, &admission, error) {
                        return Step::Failed(error);
                    }
                }
            }
        }
    }

    /// The next model that does not rest.
    fn next_attempt(&mut self) -> Option<(Attempt, Admission)> {
        while let Some(attempt) = self.waiting.pop_front() {
            let now = self.generation.clock.instant();
            match attempt.model.health.admit(now, Some(&self.partner)) {
                Ok(admission) => return Some((attempt, admission)),
                Err(wait) => self.last = Some(ProviderError::resting(attempt.model.name(), wait)),
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
        admission: &Admission,
        error: ProviderError,
    ) -> Result<(), ProviderError> {
        let now = self.generation.clock.instant();
        model.health.failed(admission, now, &error);
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
            let now = self.generation.clock.instant();
            running.model.health.answered(&running.admission, now);
        }
    }
}

impl Running {
    fn start(attempt: Attempt, admission: Admission) -> Self {
        let model = Arc::clone(&attempt.model);
        let settings = &model.settings;
        Self {
            deadline: Deadline::begin(Patience {
                first: millis(settings.first_token_ms),
                second_attempt: None,
                between: millis(settings.between_tokens_ms),
                total: Some(millis(settings.total_ms)),
            }),
            stage: Stage::Asking(attempt.ask(true).boxed()),
            has_content: false,
            announced: false,
            held: VecDeque::new(),
            admission,
            model,
        }
    }

    /// The whole answer, put together of its events.
    async fn assembled(mut self) -> Result<ModelEvent, ProviderError> {
        let mut assembler = Assembler::new(self.model.chat.api());
        let malformed =
            |model: &Model, what: &str| error(model, ProviderErrorKind::Malformed, what);
        loop {
            match self.next().await? {
                Step::Answers(_) => {}
                Step::Event(event) => {
                    let added = assembler.add(event);
                    added.map_err(|wrong| malformed(&self.model, &wrong.to_string()))?;
                }
                Step::Failed(error) => return Err(error),
                Step::End => break,
            }
        }
        let answer = assembler.finish();
        answer.ok_or_else(|| malformed(&self.model, "a stream that is no whole answer"))
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        loop {
            if self.has_content
                && let Some(event) = self.held.pop_front()
            {
                return Ok(Step::Event(event));
            }
            let deadline = self.deadline.at();
            match &mut self.stage {
                Stage::Asking(asking) => {
                    let answer = timeout_at(deadline, asking)
                        .await
                        .map_err(|_| self.late())??;
                    self.stage = Stage::Answering(match answer {
                        ModelAnswer::Events(events) => events,
                        ModelAnswer::Whole(answer) => {
                            self.has_content = true;
                            self.deadline.result();
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
                    if self.has_content {
                        self.deadline.result();
                        return Ok(Step::Event(event));
                    }
                    // What comes before the content gives it no more time.
                    self.has_content = event.has_content();
                    if self.has_content {
                        self.deadline.result();
                    }
                    self.held.push_back(event);
                    if !self.announced {
                        self.announced = true;
                        return Ok(Step::Answers(Arc::clone(&self.model)));
                    }
                }
            }
        }
    }

    fn late(&self) -> ProviderError {
        self.deadline.missed(self.model.name())
    }
}

/// What a model understands, and what it may give.
fn abilities(model: &Model, limit: Option<u64>) -> Capabilities {
    let settings = &model.settings;
    Capabilities {
        api: model.chat.api(),
        reasoning: settings.reasoning,
        limit_field: settings.limit_field,
        stream_usage: settings.stream_usage,
        max_output_tokens: limit,
        drop_unsupported: settings.drop_unsupported,
        plain_text: model.chat.is_plain_text(),
        events: false,
    }
}

fn error(model: &Model, kind: ProviderErrorKind, message: &str) -> ProviderError {
    ProviderError::new(model.name(), kind, message)
}

fn millis(value: u32) -> Duration {
    Duration::from_millis(value.into())
}
