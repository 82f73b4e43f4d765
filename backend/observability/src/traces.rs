//! Traces, as OpenTelemetry has them, for a collector: a span for every request, call and job, and inside of them one for
//! every question to a model. Without a collector nothing is made.
//!
//! A span says what was asked for, who answered, how long that took and how it ended. What was said is in none.

use std::{future::Future, sync::OnceLock, time::Duration};

use anyhow::Context as _;
use axum::http::HeaderMap;
use colloquy_config::TracesConfig;
use futures_util::future::Either;
use opentelemetry::{
    Context, ContextGuard, KeyValue, Value,
    propagation::TextMapPropagator as _,
    trace::{
        FutureExt as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};

/// How long the collector may take for a batch, and for the last ones when the server stops.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process's tracer, once there is a collector.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// What sends spans to the collector, in batches.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Begins to trace when the settings name a collector. It is not asked whether it is there.
    ///
    /// # Errors
    /// When the settings are malformed.
    pub fn open(config: &TracesConfig) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &config.endpoint else {
            return Ok(None);
        };
        let address = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
        let headers = config.headers().context("traces.headers")?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(address)
            .with_timeout(PATIENCE)
            .with_headers(headers.into_iter().collect())
            .build()
            .context("traces")?;
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let sampler = Sampler::TraceIdRatioBased(config.sample_ratio);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_resource(resource.build())
            .build();
        if TRACER.set(provider.tracer("colloquy")).is_err() {
            tracing::debug!("traces were set up before");
        }
        Ok(Some(Self(provider)))
    }

    /// Sends what is left.
    pub async fn close(self) {
        let closed = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(PATIENCE));
        if let Ok(Err(error)) = closed.await {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// A span, from its making to its `Drop`; nothing without a collector.
#[derive(Debug)]
pub struct Span(Option<Context>);

impl Span {
    /// Begins a span inside of the current one.
    pub fn begin(kind: SpanKind, name: impl FnOnce() -> String) -> Self {
        Self::below(kind, name, Context::current)
    }

    /// Begins the span of a request, inside of the client's when its headers name one.
    pub fn of_request(headers: &HeaderMap, name: impl FnOnce() -> String) -> Self {
        let propagator = TraceContextPropagator::new();
        let parent = || propagator.extract_with_context(&Context::new(), &HeaderExtractor(headers));
        Self::below(SpanKind::Server, name, parent)
    }

    fn below(
        kind: SpanKind,
        name: impl FnOnce() -> String,
        parent: impl FnOnce() -> Context,
    ) -> Self {
        Self(TRACER.get().map(|tracer| {
            let parent = parent();
            let builder = tracer.span_builder(name()).with_kind(kind);
            parent.with_span(builder.start_with_context(tracer, &parent))
        }))
    }

    /// Whether anybody will see it.
    pub fn is_recording(&self) -> bool {
        let context = self.0.as_ref();
        context.is_some_and(|context| context.span().is_recording())
    }

    /// Describes it.
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(context) = &self.0 {
            context.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// Notes that something happened now.
    pub fn note(&self, what: &'static str) {
        if let Some(context) = &self.0 {
            context.span().add_event(what, Vec::new());
        }
    }

    /// Says that it failed, with a stable name of the reason.
    pub fn fail(&self, reason: impl Into<Value>) {
        self.set("error.type", reason);
        if let Some(context) = &self.0 {
            context.span().set_status(Status::error(""));
        }
    }

    /// Makes it the current span until the guard is dropped.
    pub fn enter(&self) -> Option<ContextGuard> {
        self.0.clone().map(Context::attach)
    }

    /// Makes it the current span of a future.
    pub fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        carry(self.0.clone(), future)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // A future that was not dropped yet may hold the context for longer.
        if let Some(context) = &self.0 {
            context.span().end();
        }
    }
}

/// Keeps the current span the current one in a future that runs by itself.
pub fn carried<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    carry(TRACER.get().map(|_| Context::current()), future)
}

fn carry<F: Future>(
    context: Option<Context>,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    match context {
        Some(context) => Either::Left(future.with_context(context)),
        None => Either::Right(future),
    }
}

/// Tells the service that a request goes to of the current span.
pub fn hand_on(headers: &mut HeaderMap) {
    if TRACER.get().is_some() {
        let mut injector = HeaderInjector(headers);
        TraceContextPropagator::new().inject_context(&Context::current(), &mut injector);
    }
}
