//! The outside services: one trait each, adapters for the APIs that people already run, and embedded defaults.
//!
//! Dropping a stream or a future cancels the request behind it. Adapters know nothing of time-outs and retries: those
//! belong to [`Resilient`], which [`from_config`] puts around each of them.

mod chat;
pub mod embedded;
mod models;
pub mod openai;
mod resilient;
mod traced;
mod usage;
pub(crate) mod wav;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    chat::{
        ChatMessage, ChatModel, ChatRequest, ChatRole, EventStream, Grounding, ModelAnswer,
        ModelApi, ModelRequest, Passage, TextStream,
    },
    models::{Admission, Model, Models, TokenUsage, approximate_tokens},
    resilient::{Patience, Resilient},
};
use crate::{clock::SystemClock, config::Config};

/// A service that turns speech into text.
#[async_trait]
pub trait Transcriber: Send + Sync + 'static {
    /// The model's public name.
    fn name(&self) -> &str;

    /// Gets ready for the first utterance, so that it does not wait for a model to load. Returns at once.
    fn warm(&self) {}

    /// The words of an utterance; empty when there are none.
    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError>;

    /// Whether the service answers; for the deep health check.
    async fn check(&self) -> Result<(), ProviderError>;
}

/// A service that turns text into speech.
#[async_trait]
pub trait Synthesizer: Send + Sync + 'static {
    /// The model's public name.
    fn name(&self) -> &str;

    /// Starts to speak; the stream ends with the speech.
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError>;

    /// The voices that it has.
    async fn voices(&self) -> Result<VoiceList, ProviderError>;

    /// Whether the service answers; for the deep health check.
    async fn check(&self) -> Result<(), ProviderError>;
}

/// Pieces of speech.
pub type SpeechStream = BoxStream<'static, Result<Pcm, ProviderError>>;

/// Speech of one person: mono samples at 16,000 Hz.
#[derive(Debug, Clone)]
pub struct Utterance {
    /// The samples.
    pub samples: Arc<[i16]>,
    /// The expected language, as a BCP 47 tag.
    pub language: Option<String>,
}

/// Text to speak.
#[derive(Debug, Clone)]
pub struct SpeechRequest {
    /// The words.
    pub text: String,
    /// The provider's voice; `None` for its default.
    pub voice: Option<String>,
    /// The language, as a BCP 47 tag; `None` for the provider's default.
    pub language: Option<String>,
    /// The speed, 1 is normal.
    pub speed: f32,
}

/// The voices of a synthesizer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoiceList {
    /// Those that are known.
    pub voices: Vec<VoiceInfo>,
    /// Whether there may be others, which only the service itself knows.
    pub may_have_others: bool,
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceInfo {
    /// What [`SpeechRequest::voice`] calls it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its language, as a BCP 47 tag; `None` where it is not known, or where it speaks several.
    pub language: Option<String>,
    /// How it sounds, where that is known.
    pub gender: Option<Gender>,
    /// The id to ask for when the text is in another language than the voice's own.
    pub abroad: String,
}

/// How a voice sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gender {
    /// Like a woman's.
    Female,
    /// Like a man's.
    Male,
}

/// A piece of speech: mono samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcm {
    /// The samples.
    pub samples: Vec<i16>,
    /// The rate, the same for all pieces of one stream.
    pub sample_rate_hz: u32,
}

/// Why a provider gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {kind:?}: {message}")]
pub struct ProviderError {
    /// The provider's public name.
    pub provider: String,
    /// What kind of failure it is, for those who decide about a retry.
    pub kind: ProviderErrorKind,
    /// What happened, without message text or keys.
    pub message: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// What the provider itself said, for the client whose request it was.
    pub told: Option<Box<Told>>,
}

/// What a provider said about its failure. It may repeat the request, so it is never logged.
#[derive(Clone, PartialEq)]
pub struct Told {
    /// The HTTP status, when it was the answer to the request.
    pub status: Option<u16>,
    /// The error object, null when there was none.
    pub error: serde_json::Value,
    /// What was used all the same.
    pub used: Option<TokenUsage>,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// No connection.
    Connect,
    /// No first result, or no further one, in time.
    Timeout,
    /// 429.
    RateLimited,
    /// The request was refused (another 4xx).
    Rejected,
    /// This server is not set up to ask: its key is not taken (401, 403), or a program is not installed.
    Misconfigured,
    /// 5xx, or an error frame.
    Failed,
    /// An answer that the adapter does not understand.
    Malformed,
    /// The answer stopped before its end.
    Cut,
}

impl ProviderError {
    /// What was used all the same, if the provider said so.
    #[must_use]
    pub fn used(&self) -> Option<TokenUsage> {
        self.told.as_ref()?.used
    }

    /// A failure of this kind.
    pub fn new(
        provider: impl Into<String>,
        kind: ProviderErrorKind,
        message: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            kind,
            message: message.into(),
            retry_after: None,
            told: None,
        }
    }

    /// Whether the request itself was refused. A model that the service does not have is the operator's fault.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        let status = self.told.as_ref().and_then(|told| told.status);
        self.kind == ProviderErrorKind::Rejected && !matches!(status, None | Some(404))
    }
}

impl ProviderErrorKind {
    /// Whether asking again may help.
    #[must_use]
    pub fn is_transient(self) -> bool {
        !matches!(self, Self::Rejected | Self::Misconfigured)
    }

    /// The kind as metrics name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::Misconfigured => "misconfigured",
            Self::Failed => "failed",
            Self::Malformed => "malformed",
            Self::Cut => "cut",
        }
    }
}

/// The providers of this server.
#[derive(Clone)]
pub struct Providers {
    /// The models of the text interfaces.
    pub models: Models,
    /// Answers in calls.
    pub chat: Arc<dyn ChatModel>,
    /// Turns speech into text.
    pub transcriber: Arc<dyn Transcriber>,
    /// Turns text into speech.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// The services of calls for those who are not on the line.
    pub unhurried: Unhurried,
}

/// Services that may take longer to answer before they count as failed: somebody looks for the answer later.
#[derive(Clone)]
pub struct Unhurried {
    /// Answers.
    pub chat: Arc<dyn ChatModel>,
    /// Turns speech into text.
    pub transcriber: Arc<dyn Transcriber>,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Providers")
            .field("chat", &self.chat.name())
            .field("transcriber", &self.transcriber.name())
            .field("synthesizer", &self.synthesizer.name())
            .finish()
    }
}

/// The providers that the settings name: an OpenAI-compatible server where there is a base URL, else the embedded
/// default; each with the time-outs and the retry of [`Resilient`].
///
/// # Errors
/// When the HTTP client cannot be made. No provider is asked anything.
pub fn from_config(config: &Config) -> anyhow::Result<Providers> {
    let on_the_line = Duration::from_millis(config.calls.provider_timeout_ms.into());
    let unhurried = Duration::from_secs(config.limits.completion_provider_seconds.into());
    let models = Models::from_config(config)?;
    let of_calls = models.of_calls();
    let chat_distance = Distance::of(of_calls.settings.base_url.is_some());
    let chat = &of_calls.chat;
    let (transcriber, transcriber_distance): (Arc<dyn Transcriber>, _) =
        match openai::Transcription::from_config(&config.transcriber)? {
            Some(transcription) => (Arc::new(transcription), Distance::Remote),
            None => (Arc::new(embedded::PocketSphinx::default()), Distance::Local),
        };
    let (synthesizer, synthesizer_distance): (Arc<dyn Synthesizer>, _) =
        match openai::Speech::from_config(&config.synthesizer)? {
            Some(speech) => (Arc::new(speech), Distance::Remote),
            None => (Arc::new(embedded::Espeak::default()), Distance::Local),
        };
    Ok(Providers {
        chat: chat_distance.resilient(chat, on_the_line),
        transcriber: transcriber_distance.resilient(&transcriber, on_the_line),
        synthesizer: synthesizer_distance.resilient(&synthesizer, on_the_line),
        unhurried: Unhurried {
            chat: chat_distance.resilient(chat, unhurried),
            transcriber: transcriber_distance.resilient(&transcriber, unhurried),
        },
        models,
    })
}

/// Where a service is.
#[derive(Clone, Copy)]
enum Distance {
    Local,
    Remote,
}

impl Distance {
    fn of(is_remote: bool) -> Self {
        if is_remote { Self::Remote } else { Self::Local }
    }

    /// The service with its time-outs and its retry.
    fn resilient<P: ?Sized>(self, service: &Arc<P>, silence: Duration) -> Arc<Resilient<P>> {
        let patience = match self {
            Self::Local => Patience::local(silence),
            Self::Remote => Patience::remote(silence),
        };
        let service = Arc::clone(service);
        Arc::new(Resilient::new(service, patience, Arc::new(SystemClock)))
    }
}
