//! Doubles of the outside services, for tests that are not about them: a chat model that answers with a fixed text, a
//! transcriber that hears a fixed text, a synthesizer that makes a tone. Each can be taken down.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use colloquy_base::fair_queue::{Bounds, FairQueue};
use colloquy_config::Config;
use colloquy_formats::ModelEvent;
use colloquy_providers::{
    BatchProviders, ChatModel, Embedder, ModelAnswer, ModelApi, ModelRequest, Models, Pcm,
    ProviderError, ProviderErrorKind, Providers, RemoteVoices, SpeechRequest, SpeechStream,
    Synthesizer, Transcriber, Utterance, VoiceInfo, VoiceList, VoiceWorker, embedded::TurnModels,
    openai::Embeddings,
};
use futures_util::stream;
use serde_json::json;

const RATE_HZ: u32 = 16_000;

/// A service that is up or down.
#[derive(Debug)]
pub struct Switch {
    name: &'static str,
    failure: Mutex<Option<ProviderErrorKind>>,
}

impl Switch {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            failure: Mutex::default(),
        })
    }

    /// Takes the service down, or up again.
    pub fn set_up(&self, up: bool) {
        self.fail((!up).then_some(ProviderErrorKind::Connect));
    }

    /// Lets the service fail in this way, or not any more.
    pub fn fail(&self, failure: Option<ProviderErrorKind>) {
        *self.failure.lock().expect("nobody panics with it") = failure;
    }

    fn check(&self) -> Result<(), ProviderError> {
        match *self.failure.lock().expect("nobody panics with it") {
            None => Ok(()),
            Some(kind) => Err(ProviderError::new(self.name, kind, "the double is down")),
        }
    }
}

/// The switches of the three doubles.
#[derive(Debug, Clone)]
pub struct Doubles {
    /// The chat model's.
    pub chat: Arc<Switch>,
    /// The transcriber's.
    pub transcriber: Arc<Switch>,
    /// The synthesizer's.
    pub synthesizer: Arc<Switch>,
}

impl Default for Doubles {
    fn default() -> Self {
        Self {
            chat: Switch::new("double/chat"),
            transcriber: Switch::new("double/transcriber"),
            synthesizer: Switch::new("double/synthesizer"),
        }
    }
}

impl Doubles {
    /// The providers behind the switches; the models of the text interfaces are those of the settings.
    pub fn providers(&self, config: &Config) -> Providers {
        let chat = Arc::new(Chat(self.chat.clone()));
        let transcriber = Arc::new(ScriptedTranscriber(self.transcriber.clone()));
        Providers {
            models: Models::from_config(config).expect("an HTTP client"),
            chat: chat.clone(),
            transcriber: transcriber.clone(),
            synthesizer: Arc::new(Voice(self.synthesizer.clone())),
            batch: BatchProviders {
                chat,
                transcriber,
                synthesizer: Arc::new(Voice(self.synthesizer.clone())),
            },
            embedder: Embeddings::from_config(&config.embedder)
                .expect("an HTTP client")
                .map(|embeddings| Arc::new(embeddings) as Arc<dyn Embedder>),
            voice_worker: RemoteVoices::from_config(&config.voice_worker)
                .expect("an HTTP client")
                .map(|worker| Arc::new(worker) as Arc<dyn VoiceWorker>),
            turns: TurnModels::default(),
            max_calls: None,
            // They compute nothing.
            inference: FairQueue::new(
                "inference",
                Bounds {
                    slots: 1,
                    waiting: 0,
                    waiting_of_owner: 0,
                },
            ),
            model_bytes: BTreeMap::default(),
        }
    }
}

struct Chat(Arc<Switch>);
struct ScriptedTranscriber(Arc<Switch>);
struct Voice(Arc<Switch>);

#[async_trait]
impl ChatModel for Chat {
    fn name(&self) -> &str {
        self.0.name
    }

    fn api(&self) -> ModelApi {
        ModelApi::Chat
    }

    async fn ask(&self, _request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        self.0.check()?;
        let pieces = ["Hello ", "there. ", "How can I help?"];
        let events = pieces.map(|piece| {
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
            Ok(ModelEvent::read(ModelApi::Chat, chunk).expect("a chunk"))
        });
        Ok(ModelAnswer::Events(Box::pin(stream::iter(events))))
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.0.check()
    }
}

#[async_trait]
impl Transcriber for ScriptedTranscriber {
    fn name(&self) -> &str {
        self.0.name
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        self.0.check()?;
        let silent = utterance.samples.iter().all(|sample| *sample == 0);
        Ok(if silent { "" } else { "what are your hours" }.to_owned())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.0.check()
    }
}

#[async_trait]
impl Synthesizer for Voice {
    fn name(&self) -> &str {
        self.0.name
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        self.0.check()?;
        // 50 ms a character, as a voice of normal speed takes.
        let count = request.text.chars().count() * RATE_HZ as usize / 20;
        let tone = |index: usize| {
            let turn = index as f32 * 440.0 / RATE_HZ as f32;
            ((turn * std::f32::consts::TAU).sin() * 8_000.0) as i16
        };
        let samples = (0..count).map(tone).collect();
        let pcm = Pcm {
            samples,
            sample_rate_hz: RATE_HZ,
        };
        Ok(Box::pin(stream::iter([Ok(pcm)])))
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        self.0.check()?;
        Ok(VoiceList {
            voices: vec![VoiceInfo {
                id: "tone".to_owned(),
                name: "Tone".to_owned(),
                language: None,
                gender: None,
                abroad: "tone".to_owned(),
                is_neural: false,
            }],
            may_have_others: false,
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.0.check()
    }
}
