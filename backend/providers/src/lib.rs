//! The outside services: one trait each, adapters for the APIs that people already run, and embedded defaults.
//!
//! Dropping a stream or a future cancels the request behind it. Adapters know nothing of time-outs and retries: those
//! belong to [`Resilient`], which [`from_config`] puts around each of them.

mod chat;
mod contact;
pub mod embedded;
mod embedder;
mod failure;
mod models;
pub mod openai;
mod patience;
mod policy;
mod reason;
mod recording;
mod remote_voices;
mod resilient;
mod traced;
mod understood;
mod voice_worker;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use colloquy_audio::Pcm;
pub use colloquy_formats::{
    ChatMessage, ChatRole, ModelApi, TokenUsage, UpstreamFailure, without_thought,
};

pub use self::{
    chat::{
        ChatModel, ChatRequest, EventStream, Grounding, ModelAnswer, ModelRequest, TextStream,
        UnopenedThoughts,
    },
    contact::{Contact, LastContact},
    embedder::{Embedder, EmbeddingRequest, Embeddings},
    models::{Model, Models, approximate_tokens},
    patience::{Deadline, Patience},
    policy::{Admission, Health, Rests},
    reason::Unreachable,
    recording::spoken_language,
    remote_voices::RemoteVoices,
    resilient::Resilient,
    understood::{NotSpoken, NotUnderstood, Understood},
    voice_worker::{
        FileStream, MadeVoice, VoiceFile, VoiceJob, VoiceProgress, VoiceSample, VoiceWorker,
    },
};
use colloquy_base::{
    clock::SystemClock,
    fair_queue::{Claim, FairQueue},
};
use colloquy_config::Config;
pub use embedded::SpeechScores;

/// A service that turns speech into text.
#[async_trait]
pub trait Transcriber: Send + Sync + 'static {
    /// The model's public name.
    fn name(&self) -> &str;

    /// Gets ready for the first utterance, so that it does not wait for a model to load. Returns at once.
    fn warm(&self) {}

    /// Whether it may be asked for the words of an utterance in this language that may go on: a question that is dropped costs it
    /// little.
    fn starts_early(&self, _language: Option<&str>) -> bool {
        false
    }

    /// How many threads for models a call keeps busy, on average; 0 where it takes none of them.
    fn threads_a_call(&self) -> f64 {
        0.0
    }

    /// The languages it understands. A service elsewhere counts as understanding any, and refuses when it is asked.
    fn understands(&self) -> Understood {
        Understood::Any
    }

    /// The language of an utterance, a BCP 47 tag that begins with one of `among`, or any; `None` where the transcriber hears utterances of any
    /// language by itself, or only of one.
    async fn language(
        &self,
        _utterance: Utterance,
        _among: Option<&[&str]>,
    ) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }

    /// Returns the last answer and the last failure; `None` if they are not noted.
    fn last_contact(&self) -> Option<LastContact> {
        None
    }

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

    /// How many threads for models a call keeps busy, on average; 0 where it takes none of them.
    fn threads_a_call(&self) -> f64 {
        0.0
    }

    /// How fast the voices of this machine are that were measured, and whether they are used.
    fn speeds(&self) -> Vec<VoiceSpeed> {
        Vec::new()
    }

    /// Checks that a voice can speak a language, a BCP 47 tag: this text, or whatever may come. A text without a language is in the voice's own. A
    /// service elsewhere refuses when it is asked.
    ///
    /// # Errors
    /// When its texts would be read out wrong.
    fn check_language(
        &self,
        _voice: Option<&str>,
        _language: Option<&str>,
        _text: Option<&str>,
    ) -> Result<(), NotSpoken> {
        Ok(())
    }

    /// The language to speak a text in, a BCP 47 tag, where none is named; `None` for the voice's own. A service elsewhere gets languages of the
    /// interface alone.
    fn detect_language(&self, _voice: Option<&str>, text: &str) -> Option<&'static str> {
        colloquy_language::detect_to_speak(text)
    }

    /// The text without what a voice would name letter by letter instead of reading it, in a language, a BCP 47 tag. Nothing may be left of
    /// it. A service elsewhere is given all of it.
    fn readable(&self, _voice: Option<&str>, _language: Option<&str>, text: String) -> String {
        text
    }

    /// Returns the last answer and the last failure; `None` if they are not noted.
    fn last_contact(&self) -> Option<LastContact> {
        None
    }

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
    /// Words that are likelier than they would be.
    pub expected: Arc<[String]>,
    /// Who asks, for services that have to share.
    pub claim: Claim,
}

impl Utterance {
    /// An utterance of which no words are expected.
    #[must_use]
    pub fn new(samples: impl Into<Arc<[i16]>>, language: Option<String>, claim: Claim) -> Self {
        Self {
            samples: samples.into(),
            language,
            expected: Arc::default(),
            claim,
        }
    }
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
    /// Who asks, for services that have to share.
    pub claim: Claim,
}

/// The voices of a synthesizer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoiceList {
    /// Those that are known.
    pub voices: Vec<VoiceInfo>,
    /// Whether there may be others, which only the service itself knows.
    pub may_have_others: bool,
}

/// How fast the voices of a model of this machine are.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VoiceSpeed {
    /// The model.
    pub model: String,
    /// How many seconds they take for a second of speech, on one thread.
    pub real_time_factor: f64,
    /// Whether they are used; where not, the machine is too slow for them.
    pub is_used: bool,
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
    /// True for a neural network of this server, which sounds more like a person than a program does.
    pub is_neural: bool,
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
    /// Why there is no connection, where that is the failure and known.
    pub unreachable: Option<Unreachable>,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// What the provider itself said, for the client whose request it was.
    pub told: Option<Box<UpstreamFailure>>,
}

/// Whether a failure is that too many wait for a provider of this server.
#[must_use]
pub fn is_busy(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    let mut errors = causes
        .by_ref()
        .filter_map(|cause| cause.downcast_ref::<ProviderError>());
    errors.any(|error| error.kind == ProviderErrorKind::Busy)
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
    /// Too many wait for it already, on this server.
    Busy,
    /// The request was refused (another 4xx).
    Rejected,
    /// This server is not set up to ask: its key is not taken (401, 403), or a program is not installed.
    Misconfigured,
    /// 5xx, or an error frame.
    Failed,
    /// An answer that the adapter does not understand.
    Malformed,
    /// An answer without content: no text, such as thoughts alone, or no sound.
    Empty,
    /// The answer stopped before its end.
    Cut,
    /// It was not asked: it rests after failures.
    Resting,
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
            unreachable: None,
            retry_after: None,
            told: None,
        }
    }
}

impl ProviderErrorKind {
    /// The kind as metrics name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::Busy => "busy",
            Self::Rejected => "rejected",
            Self::Misconfigured => "misconfigured",
            Self::Failed => "failed",
            Self::Malformed => "malformed",
            Self::Empty => "empty",
            Self::Cut => "cut",
            Self::Resting => "resting",
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
    pub batch: BatchProviders,
    /// Turns texts into vectors; `None`: texts are found by their words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Makes voices of recordings; `None`: nobody does.
    pub voice_worker: Option<Arc<dyn VoiceWorker>>,
    /// What listens to the turns of calls beside the transcriber.
    pub turns: embedded::TurnModels,
    /// How many calls at once the models of this machine keep up with; `None` where calls take none.
    pub max_calls: Option<u32>,
    /// What waits for the threads that neural models of this machine compute on. A call keeps room there: it needs it for itself,
    /// and a core that is not computed on carries its packets at once.
    pub inference: FairQueue,
    /// How many bytes of weights each model has that was loaded.
    pub model_bytes: BTreeMap<&'static str, u64>,
}

/// Services that may take longer to answer before they count as failed: somebody looks for the answer later.
#[derive(Clone)]
pub struct BatchProviders {
    /// Answers.
    pub chat: Arc<dyn ChatModel>,
    /// Turns speech into text.
    pub transcriber: Arc<dyn Transcriber>,
    /// Turns text into speech.
    pub synthesizer: Arc<dyn Synthesizer>,
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
/// default; each with the time-outs and the retry of [`Resilient`]. Neural models are loaded, which takes a second or so each.
///
/// # Errors
/// When the HTTP client cannot be made, or a model of this machine that the settings name cannot be loaded. No service is asked
/// anything.
pub fn from_config(config: &Config) -> anyhow::Result<Providers> {
    let pool = embedded::Pool::from_config(&config.inference)?;
    embedded::load_aside(|| load(config, &pool))?
}

fn load(config: &Config, pool: &embedded::Pool) -> anyhow::Result<Providers> {
    let on_the_line = Duration::from_millis(config.calls.provider_timeout_ms.into());
    let batch = Duration::from_secs(config.limits.completion_provider_seconds.into());
    let models = Models::from_config(config)?;
    let of_calls = models.of_calls();
    let remote = Locality::Remote {
        second_request: config.calls.second_request,
    };
    let chat_distance = match of_calls.settings.base_url {
        Some(_) => remote,
        None => Locality::Local,
    };
    let chat = |silence| {
        let chat = chat_distance.resilient(&of_calls.chat, silence);
        Arc::new(chat.with_health(&of_calls.health))
    };
    let (transcriber, transcriber_distance): (Arc<dyn Transcriber>, _) =
        match openai::Transcription::from_config(&config.transcriber)? {
            Some(transcription) => (Arc::new(transcription), remote),
            None => (embedded::transcriber(config, pool)?, Locality::Local),
        };
    let (synthesizer, synthesizer_distance): (Arc<dyn Synthesizer>, _) =
        match openai::Speech::from_config(&config.synthesizer)? {
            Some(speech) => (Arc::new(speech), remote),
            None => (embedded::synthesizer(config, pool)?, Locality::Local),
        };
    let embedder = match openai::Embeddings::from_config(&config.embedder)? {
        Some(embeddings) => {
            let embeddings = Arc::new(embeddings) as Arc<dyn Embedder>;
            Some((embeddings, remote))
        }
        None => embedded::embedder(config, pool)?.map(|model| (model, Locality::Local)),
    };
    let turns = embedded::TurnModels::from_config(config, pool)?;
    // Calls and others ask the same services.
    let (hearing, speaking) = (Arc::<Contact>::default(), Arc::<Contact>::default());
    let hears = |silence| {
        let hears = transcriber_distance.resilient(&transcriber, silence);
        Arc::new(hears.with_contact(&hearing))
    };
    let speaks = |silence| {
        let speaks = synthesizer_distance.resilient(&synthesizer, silence);
        Arc::new(speaks.with_contact(&speaking))
    };
    let voice_worker: Option<Arc<dyn VoiceWorker>> =
        match RemoteVoices::from_config(&config.voice_worker)? {
            Some(worker) => Some(Arc::new(worker)),
            None => {
                let speaks = speaks(synthesizer_distance.patience(batch));
                embedded::voice_worker(config, pool, &(speaks as Arc<dyn Synthesizer>))
            }
        };
    Ok(Providers {
        voice_worker,
        chat: chat(on_the_line),
        transcriber: hears(on_the_line),
        synthesizer: speaks(on_the_line),
        batch: BatchProviders {
            chat: chat(batch),
            transcriber: hears(transcriber_distance.patience(batch)),
            // A client waits, but not on the line: it is not refused because others are served before it.
            synthesizer: speaks(synthesizer_distance.patience(on_the_line)),
        },
        embedder: embedder.map(|(embedder, distance)| {
            Arc::new(distance.resilient(&embedder, distance.patience(batch))) as Arc<dyn Embedder>
        }),
        max_calls: max_calls(
            pool.threads(),
            transcriber.threads_a_call() + synthesizer.threads_a_call() + turns.threads_a_call(),
        ),
        turns,
        models,
        inference: pool.queue(),
        model_bytes: pool.model_bytes(),
    })
}

/// How many calls at once so many threads keep up with: most of their time is for calls, the rest for what comes in bursts and for what calls do
/// on threads of their own. What a call takes was measured while all threads compute, so they count in full, more than there are cores as well.
fn max_calls(threads: usize, threads_a_call: f64) -> Option<u32> {
    const FOR_CALLS: f64 = 0.75;
    let calls = threads as f64 * FOR_CALLS / threads_a_call;
    (threads_a_call > 0.0).then_some((calls as u32).max(1))
}

/// Where a service is.
#[derive(Clone, Copy)]
enum Locality {
    Local,
    Remote {
        /// Whether it is asked once more when it says nothing.
        second_request: bool,
    },
}

impl Locality {
    /// How long what nobody waits for on the line may take, whose services elsewhere have this long. What computes here waits for its turn
    /// behind all calls, which is no failure; how long it computes is bounded where it does.
    fn patience(self, elsewhere: Duration) -> Duration {
        const TURN: Duration = Duration::from_secs(900);
        match self {
            Self::Local => elsewhere.max(TURN),
            Self::Remote { .. } => elsewhere,
        }
    }

    /// The service with its time-outs and its retry.
    fn resilient<P: ?Sized>(self, service: &Arc<P>, silence: Duration) -> Resilient<P> {
        let patience = match self {
            Self::Remote {
                second_request: true,
            } => Patience::remote(silence),
            Self::Local | Self::Remote { .. } => Patience::patient(silence),
        };
        Resilient::new(Arc::clone(service), patience, Arc::new(SystemClock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_speech_of_this_machine_outlast_the_time_of_calls() {
        let of_calls = Duration::from_secs(10);
        let remote = Locality::Remote {
            second_request: true,
        };
        assert!(Locality::Local.patience(of_calls) >= Duration::from_secs(900));
        assert_eq!(remote.patience(of_calls), of_calls);
    }

    #[test]
    fn the_second_request_is_a_choice() {
        let silence = Duration::from_secs(10);
        let service: Arc<dyn ChatModel> = Arc::new(embedded::Extractive);
        let second = |second_request| {
            let locality = Locality::Remote { second_request };
            locality.resilient(&service, silence).patience()
        };
        assert_eq!(second(true).second_attempt, Some(silence / 2));
        assert_eq!(second(false).second_attempt, None);
        assert_eq!(second(false).first, silence);
    }

    #[test]
    fn calls_are_as_many_as_threads_keep_up_with() {
        assert_eq!(max_calls(2, 0.15), Some(10));
        assert_eq!(max_calls(8, 0.15), Some(40));
        assert_eq!(max_calls(1, 3.0), Some(1), "one is better than none");
        assert_eq!(max_calls(2, 0.0), None);
    }
}
