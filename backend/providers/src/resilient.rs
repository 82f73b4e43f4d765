//! Time-outs, one retry and measurements around a provider.
//!
//! There is one budget for the time to the first result, and the retry has to fit into it: whoever waits for the answer
//! waits no longer because of it. A failure that may pass is followed by a second attempt. So is a silence: a service
//! elsewhere that has said nothing for half of the budget is asked once more, while the first attempt goes on, since it
//! may only be slow; the first result of the two counts, and the other attempt is given up. After that result nothing is
//! repeated, since the visitor may have heard it already; from there on the silence between two results is bounded.
//! Waiting is only counted while the caller waits too.

use std::{
    future::{self, Future},
    pin::pin,
    sync::Arc,
    time::Duration,
    time::Instant,
};

use async_trait::async_trait;
use colloquy_base::clock::{Clock, runtime_now};
use futures_util::{
    StreamExt as _,
    future::select_ok,
    stream::{self, BoxStream},
};
use tokio::{
    select,
    time::{sleep, timeout, timeout_at},
};

use super::{
    Admission, ChatModel, ChatRequest, Contact, Deadline, Embedder, EmbeddingRequest, Embeddings,
    Health, LastContact, ModelAnswer, ModelApi, ModelRequest, NotSpoken, Patience, ProviderError,
    ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer, TextStream, Transcriber,
    Understood, Utterance, VoiceList, VoiceSpeed,
};

/// The pause before the retry, where the provider names none.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A provider with time-outs, one retry and measurements.
#[derive(Debug)]
pub struct Resilient<P: ?Sized> {
    inner: Arc<P>,
    patience: Patience,
    clock: Arc<dyn Clock>,
    /// Of a model that may rest.
    health: Option<Arc<Health>>,
    /// Of a service that does not rest.
    contact: Arc<Contact>,
}

impl<P: ?Sized> Resilient<P> {
    /// Puts the wrapper around a provider.
    pub fn new(inner: Arc<P>, patience: Patience, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            patience,
            clock,
            health: None,
            contact: Arc::default(),
        }
    }

    /// How long the provider may be silent.
    #[cfg(test)]
    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// Keeps to the rests of a model, and finds out for others how it is.
    #[must_use]
    pub fn with_health(self, health: &Arc<Health>) -> Self {
        Self {
            health: Some(Arc::clone(health)),
            ..self
        }
    }

    /// Notes when the service answers and fails where others do, too, that ask the same one.
    #[must_use]
    pub fn with_contact(self, contact: &Arc<Contact>) -> Self {
        Self {
            contact: Arc::clone(contact),
            ..self
        }
    }

    /// Asks, and asks a second time when the first attempt fails in a way that may pass, or is silent for too long.
    async fn ask<T, F>(&self, meter: &Meter, attempt: impl Fn() -> F) -> Result<T, ProviderError>
    where
        F: Future<Output = Result<T, ProviderError>>,
    {
        let deadline = Deadline::begin(self.patience);
        let patience = deadline.at();
        timeout_at(patience, async {
            let mut first = pin!(attempt());
            let error = select! {
                outcome = &mut first => match outcome {
                    Ok(result) => return Ok(result),
                    Err(error) => error,
                },
                () = self.silence() => {
                    meter.retry(&deadline.missed(&meter.provider));
                    let second = pin!(attempt());
                    return select_ok([first, second]).await.map(|(result, _)| result);
                }
            };
            let pause = error.retry_after.unwrap_or(RETRY_PAUSE);
            let room = runtime_now() + pause < patience;
            // Whoever is sent away from a full queue is not to stand in it twice.
            let is_busy = error.kind == ProviderErrorKind::Busy;
            if !room || is_busy || !error.kind.is_transient() {
                return Err(error);
            }
            meter.retry(&error);
            sleep(pause).await;
            attempt().await
        })
        .await
        .unwrap_or_else(|_| Err(deadline.missed(&meter.provider)))
    }

    /// Ends when a second attempt is due beside the first.
    async fn silence(&self) {
        match self.patience.second_attempt {
            Some(patience) => sleep(patience).await,
            None => future::pending().await,
        }
    }

    /// Like [`Self::ask`], for a stream: its first result belongs to the attempt.
    async fn ask_stream<T, F>(
        &self,
        meter: Meter,
        open: impl Fn() -> F,
    ) -> Result<BoxStream<'static, Result<T, ProviderError>>, ProviderError>
    where
        T: Send + 'static,
        F: Future<Output = Result<BoxStream<'static, Result<T, ProviderError>>, ProviderError>>,
    {
        let mut meter = meter;
        if let Some(health) = &self.health {
            match health.admit(self.clock.instant(), None) {
                Ok(admission) => meter.watched = Some((Arc::clone(health), admission)),
                Err(wait) => {
                    let error = ProviderError::resting(&meter.provider, wait);
                    return Err(meter.failed(error));
                }
            }
        }
        let provider = meter.provider.clone();
        let outcome = self
            .ask(&meter, || async {
                let mut stream = open().await?;
                match stream.next().await {
                    Some(Ok(first)) => Ok((first, stream)),
                    Some(Err(error)) => Err(error),
                    None => Err(ProviderError::new(
                        &provider,
                        ProviderErrorKind::Empty,
                        "an empty answer",
                    )),
                }
            })
            .await;
        match outcome {
            Ok((first, rest)) => {
                meter.first_result();
                Ok(bounded(first, rest, self.patience, meter))
            }
            Err(error) => Err(meter.failed(error)),
        }
    }

    fn meter(&self, provider: &str, kind: &'static str) -> Meter {
        Meter {
            provider: provider.to_owned(),
            kind,
            started: self.clock.instant(),
            clock: Arc::clone(&self.clock),
            contact: Arc::clone(&self.contact),
            watched: None,
            closed: false,
        }
    }
}

/// The first result and then the others, with a bound on the silence before each. A failure ends the stream.
fn bounded<T: Send + 'static>(
    first: T,
    rest: BoxStream<'static, Result<T, ProviderError>>,
    patience: Patience,
    meter: Meter,
) -> BoxStream<'static, Result<T, ProviderError>> {
    let following = stream::unfold(Some((rest, meter)), move |state| async move {
        let (mut rest, meter) = state?;
        let deadline = Deadline::after_a_result(patience);
        let result = match timeout_at(deadline.at(), rest.next()).await {
            Ok(Some(result)) => result,
            Ok(None) => {
                meter.succeeded();
                return None;
            }
            Err(_) => Err(deadline.missed(&meter.provider)),
        };
        match result {
            Ok(result) => Some((Ok(result), Some((rest, meter)))),
            Err(error) => Some((Err(meter.failed(error)), None)),
        }
    });
    stream::once(async { Ok(first) }).chain(following).boxed()
}

/// Counts one request; a request that is dropped before its end counts as cancelled.
struct Meter {
    provider: String,
    kind: &'static str,
    started: Instant,
    clock: Arc<dyn Clock>,
    contact: Arc<Contact>,
    /// The model whose health this tells of.
    watched: Option<(Arc<Health>, Admission)>,
    closed: bool,
}

impl Meter {
    fn first_result(&self) {
        let now = self.clock.instant();
        self.contact.answered(now);
        if let Some((health, admission)) = &self.watched {
            health.answered(admission, now);
        }
        let waited = now.duration_since(self.started);
        metrics::histogram!(
            "colloquy_provider_first_result_seconds",
            "provider" => self.provider.clone(), "kind" => self.kind
        )
        .record(waited);
        tracing::debug!(
            provider = self.provider,
            kind = self.kind,
            waited_ms = waited.as_millis(),
            "first result"
        );
    }

    fn retry(&self, error: &ProviderError) {
        metrics::counter!(
            "colloquy_provider_retries_total",
            "provider" => self.provider.clone(), "kind" => self.kind, "reason" => error.kind.as_str()
        )
        .increment(1);
        tracing::info!(provider = self.provider, kind = self.kind, reason = %error, "asking again");
    }

    fn succeeded(mut self) {
        self.close("ok");
    }

    fn failed(mut self, error: ProviderError) -> ProviderError {
        tracing::warn!(provider = self.provider, kind = self.kind, reason = %error, "provider failed");
        let now = self.clock.instant();
        self.contact.failed(now, &error);
        if let Some((health, admission)) = &self.watched {
            health.failed(admission, now, &error);
        }
        self.close(error.kind.as_str());
        error
    }

    fn close(&mut self, outcome: &'static str) {
        self.closed = true;
        metrics::counter!(
            "colloquy_provider_requests_total",
            "provider" => self.provider.clone(), "kind" => self.kind, "outcome" => outcome
        )
        .increment(1);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if !self.closed {
            self.close("cancelled");
        }
    }
}

/// Bounds a question beside the service's work.
async fn bounded_question<T>(
    provider: &str,
    patience: Patience,
    question: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    timeout(patience.first, question).await.unwrap_or_else(|_| {
        Err(ProviderError::new(
            provider,
            ProviderErrorKind::Timeout,
            "no answer in time",
        ))
    })
}

#[async_trait]
impl ChatModel for Resilient<dyn ChatModel> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn api(&self) -> ModelApi {
        self.inner.api()
    }

    fn working_bytes(&self, request_bytes: u64) -> u64 {
        self.inner.working_bytes(request_bytes)
    }

    fn tells_passages(&self) -> bool {
        self.inner.tells_passages()
    }

    fn passages_of(&self, request: &ChatRequest) -> Option<Vec<usize>> {
        self.inner.passages_of(request)
    }

    /// As it is: whoever asks in a model's own words decides about time-outs and other models.
    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        self.inner.ask(request).await
    }

    async fn text(&self, request: &ChatRequest) -> Result<TextStream, ProviderError> {
        let meter = self.meter(self.name(), "chat");
        self.ask_stream(meter, || self.inner.text(request)).await
    }

    async fn check(&self) -> Result<(), ProviderError> {
        bounded_question(self.name(), self.patience, self.inner.check()).await
    }
}

#[async_trait]
impl Transcriber for Resilient<dyn Transcriber> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn warm(&self) {
        self.inner.warm();
    }

    fn starts_early(&self, language: Option<&str>) -> bool {
        self.inner.starts_early(language)
    }

    fn threads_a_call(&self) -> f64 {
        self.inner.threads_a_call()
    }

    fn understands(&self) -> Understood {
        self.inner.understands()
    }

    fn last_contact(&self) -> Option<LastContact> {
        Some(self.contact.last())
    }

    async fn language(
        &self,
        utterance: Utterance,
        among: Option<&[&str]>,
    ) -> Result<Option<String>, ProviderError> {
        let meter = self.meter(self.name(), "language");
        let outcome = self
            .ask(&meter, || self.inner.language(utterance.clone(), among))
            .await;
        match outcome {
            Ok(language) => {
                meter.first_result();
                meter.succeeded();
                Ok(language)
            }
            Err(error) => Err(meter.failed(error)),
        }
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        let meter = self.meter(self.name(), "transcription");
        let outcome = self
            .ask(&meter, || self.inner.transcribe(utterance.clone()))
            .await;
        match outcome {
            Ok(text) => {
                meter.first_result();
                meter.succeeded();
                Ok(text)
            }
            Err(error) => Err(meter.failed(error)),
        }
    }

    async fn check(&self) -> Result<(), ProviderError> {
        bounded_question(self.name(), self.patience, self.inner.check()).await
    }
}

#[async_trait]
impl Synthesizer for Resilient<dyn Synthesizer> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn threads_a_call(&self) -> f64 {
        self.inner.threads_a_call()
    }

    fn check_language(
        &self,
        voice: Option<&str>,
        language: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), NotSpoken> {
        self.inner.check_language(voice, language, text)
    }

    fn detect_language(&self, voice: Option<&str>, text: &str) -> Option<&'static str> {
        self.inner.detect_language(voice, text)
    }

    fn readable(&self, voice: Option<&str>, language: Option<&str>, text: String) -> String {
        self.inner.readable(voice, language, text)
    }

    fn speeds(&self) -> Vec<VoiceSpeed> {
        self.inner.speeds()
    }

    fn last_contact(&self) -> Option<LastContact> {
        Some(self.contact.last())
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let meter = self.meter(self.name(), "speech");
        self.ask_stream(meter, || self.inner.speak(request.clone()))
            .await
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        bounded_question(self.name(), self.patience, self.inner.voices()).await
    }

    async fn check(&self) -> Result<(), ProviderError> {
        bounded_question(self.name(), self.patience, self.inner.check()).await
    }
}

#[async_trait]
impl Embedder for Resilient<dyn Embedder> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn max_tokens(&self) -> usize {
        self.inner.max_tokens()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.inner.count_tokens(text)
    }

    fn counts_exactly(&self) -> bool {
        self.inner.counts_exactly()
    }

    fn max_texts(&self) -> usize {
        self.inner.max_texts()
    }

    fn last_contact(&self) -> Option<LastContact> {
        Some(self.contact.last())
    }

    /// Asked once: what a service was asked to embed may have been paid for, and whoever asks is a job that is tried again.
    async fn embed(&self, request: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
        let meter = self.meter(self.name(), "embedding");
        let outcome = bounded_question(self.name(), self.patience, self.inner.embed(request)).await;
        match outcome {
            Ok(embeddings) => {
                meter.first_result();
                meter.succeeded();
                Ok(embeddings)
            }
            Err(error) => Err(meter.failed(error)),
        }
    }

    async fn check(&self) -> Result<(), ProviderError> {
        bounded_question(self.name(), self.patience, self.inner.check()).await
    }
}
