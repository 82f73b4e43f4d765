//! A span around every question to a model elsewhere, with the attributes of OpenTelemetry's conventions for generative AI:
//! what was asked for, who answered, the tokens, how it ended. It lasts until the answer has ended or is given up.

use async_trait::async_trait;
use colloquy_config::ModelConfig;
use colloquy_formats::ModelEvent;
use colloquy_observability::Span;
use futures_util::{StreamExt as _, stream};
use opentelemetry::{Array, StringValue, Value as Attribute, trace::SpanKind};
use serde_json::Value;

use super::{
    ChatModel, EventStream, ModelAnswer, ModelApi, ModelRequest, ProviderError, TokenUsage,
    UnopenedThoughts,
};

/// The numbers of a request that the conventions have names for.
const PARAMETERS: [(&str, &str); 8] = [
    ("frequency_penalty", "gen_ai.request.frequency_penalty"),
    ("max_completion_tokens", "gen_ai.request.max_tokens"),
    ("max_output_tokens", "gen_ai.request.max_tokens"),
    ("max_tokens", "gen_ai.request.max_tokens"),
    ("presence_penalty", "gen_ai.request.presence_penalty"),
    ("seed", "gen_ai.request.seed"),
    ("temperature", "gen_ai.request.temperature"),
    ("top_p", "gen_ai.request.top_p"),
];

/// A model whose questions are traced.
#[derive(Debug)]
pub(super) struct Traced<M> {
    model: M,
    /// The name where it is served.
    upstream_name: String,
    /// Where it is served: host and port.
    server: Option<(String, u16)>,
    unopened_thoughts: UnopenedThoughts,
}

impl<M: ChatModel> Traced<M> {
    pub(super) fn new(model: M, settings: &ModelConfig) -> Self {
        let served = settings.model.as_deref().unwrap_or_else(|| model.name());
        let server = settings
            .base_url
            .as_ref()
            .and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
        Self {
            upstream_name: served.to_owned(),
            server,
            model,
            unopened_thoughts: UnopenedThoughts::default(),
        }
    }

    fn span(&self, request: &ModelRequest) -> Span {
        let span = Span::begin(SpanKind::Client, || format!("chat {}", self.upstream_name));
        if !span.is_recording() {
            return span;
        }
        span.set("gen_ai.operation.name", "chat");
        // Whose format it speaks; the server's address tells who it is.
        span.set("gen_ai.provider.name", "openai");
        span.set("gen_ai.request.model", self.upstream_name.clone());
        span.set("colloquy.model", self.model.name().to_owned());
        if let Some((host, port)) = &self.server {
            span.set("server.address", host.clone());
            span.set("server.port", i64::from(*port));
        }
        for (field, key) in PARAMETERS {
            match request.body.get(field) {
                Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
                    span.set(key, number.as_i64().unwrap_or(i64::MAX));
                }
                Some(Value::Number(number)) => span.set(key, number.as_f64().unwrap_or_default()),
                _ => {}
            }
        }
        span
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for Traced<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn api(&self) -> ModelApi {
        self.model.api()
    }

    fn unopened_thoughts(&self) -> UnopenedThoughts {
        self.unopened_thoughts.clone()
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        let mut answering = AnswerSpan::new(self.span(request));
        // Whoever does not wait any longer drops it here.
        let asked = answering.span.around(self.model.ask(request));
        let answer = asked.await;
        if !answering.span.is_recording() {
            return answer;
        }
        match answer {
            Ok(ModelAnswer::Whole(answer)) => {
                answering.read(&answer);
                answering.end(None);
                Ok(ModelAnswer::Whole(answer))
            }
            Ok(ModelAnswer::Events(events)) => Ok(ModelAnswer::Events(answering.watch(events))),
            Err(error) => {
                answering.end(Some(&error));
                Err(error)
            }
        }
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.model.check().await
    }
}

/// What an answer tells of itself until it ends.
struct AnswerSpan {
    span: Span,
    heard: bool,
    named: bool,
    finish_reasons: Vec<String>,
    usage: Option<TokenUsage>,
    ended: bool,
}

impl AnswerSpan {
    fn new(span: Span) -> Self {
        Self {
            span,
            heard: false,
            named: false,
            finish_reasons: Vec::new(),
            usage: None,
            ended: false,
        }
    }

    /// Reads along.
    fn watch(self, events: EventStream) -> EventStream {
        let watched = stream::unfold((events, self), |(mut events, mut answering)| async move {
            let event = events.next().await;
            match &event {
                Some(Ok(event)) => {
                    if !std::mem::replace(&mut answering.heard, true) {
                        answering.span.note("first event");
                    }
                    answering.read(event);
                }
                Some(Err(error)) => answering.end(Some(error)),
                None => answering.end(None),
            }
            Some((event?, (events, answering)))
        });
        watched.boxed()
    }

    /// Takes what an answer, or an event of one, says about it.
    fn read(&mut self, said: &ModelEvent) {
        if !self.named
            && let Some((model, id)) = said.answerer()
        {
            self.named = true;
            self.span.set("gen_ai.response.model", model.to_owned());
            if let Some(id) = id {
                self.span.set("gen_ai.response.id", id.to_owned());
            }
        }
        self.usage = said.usage().or(self.usage);
        let reasons = said.finish_reasons().map(str::to_owned);
        self.finish_reasons.extend(reasons);
    }

    fn end(&mut self, failure: Option<&ProviderError>) {
        self.ended = true;
        if let Some(usage) = self.usage {
            let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
            let span = &self.span;
            span.set("gen_ai.usage.input_tokens", count(usage.input));
            span.set("gen_ai.usage.output_tokens", count(usage.output));
            span.set("gen_ai.usage.cache_read.input_tokens", count(usage.cached));
        }
        if !self.finish_reasons.is_empty() {
            let reasons = self.finish_reasons.drain(..).map(StringValue::from);
            let reasons = Attribute::Array(Array::String(reasons.collect()));
            self.span.set("gen_ai.response.finish_reasons", reasons);
        }
        if let Some(failure) = failure {
            self.span.fail(failure.kind.as_str());
        }
    }
}

impl Drop for AnswerSpan {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Nobody waits for what comes behind the last word of an answer.
        let complete = !self.finish_reasons.is_empty();
        self.end(None);
        if !complete {
            self.span.note("given up");
        }
    }
}
