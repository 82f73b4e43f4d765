//! Speech by Piper voices of the models folder, on the threads of the pool. What they do not speak goes to espeak-ng, as it does
//! without any voice.
//!
//! A piece of sound is a computation of its own: between two of them others have their turn, and nothing is made that nobody takes.

use std::sync::Arc;

use async_trait::async_trait;
use colloquy_base::{fair_queue::Claim, language};
use colloquy_inference::{
    InferenceError,
    piper::{self, MAX_PHONEMES, Speaking},
    runtime::Rten,
};
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest::{self, Languages, Purpose},
};
use futures_util::{StreamExt as _, stream};

use super::{
    super::{
        Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer, VoiceInfo,
        VoiceList,
    },
    Espeak, Pool,
    loudness::Gain,
    normalize,
    phonemes::Phonemes,
    pool::fastest,
};

/// What the names of voices in the manifest begin with, which the voice's own name does not.
const PREFIX: &str = "piper-";

/// The language of a text of which nothing is said.
const DEFAULT_LANGUAGE: &str = "en";

/// How much of a call the character speaks.
const SPEECH_PART: f64 = 0.5;

/// Phonemes to measure with, which most voices know.
const REHEARSED: &str = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ.";

/// The speeds at which it can still be understood.
const SPEED: std::ops::RangeInclusive<f32> = 0.4..=2.5;

/// Piper voices, each for its language.
#[derive(Debug)]
pub struct Piper {
    pool: Pool,
    voices: Vec<Arc<Voice>>,
    /// Of the slowest of them.
    threads_a_call: f64,
    rest: Espeak,
}

#[derive(Debug)]
struct Voice {
    /// The model, as the manifest has it.
    model: &'static str,
    /// Its language, as a BCP 47 tag.
    language: String,
    piper: Arc<piper::Piper>,
    phonemes: Phonemes,
    /// What makes it as loud as the others.
    gain: Gain,
}

impl Voice {
    /// What requests call it.
    fn id(&self) -> &'static str {
        self.model.strip_prefix(PREFIX).unwrap_or(self.model)
    }
}

/// A text that is being spoken.
struct Utterance {
    voice: Arc<Voice>,
    pool: Pool,
    claim: Claim,
    speed: f32,
    /// The sentences that are left, the next one last.
    sentences: Vec<String>,
    speaking: Option<Speaking>,
}

impl Piper {
    /// The names of the voices that are in the folder.
    #[must_use]
    pub fn present(folder: &ModelsFolder) -> Vec<&'static str> {
        let models = manifest::MODELS.iter();
        models
            .filter(|model| model.purpose == Purpose::Voice)
            .filter(|model| folder.presence(model) == Presence::Present)
            .map(|model| model.name)
            .collect()
    }

    /// No voices yet.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            voices: Vec::new(),
            threads_a_call: 0.0,
            rest: Espeak::default(),
        }
    }

    /// Loads a voice, on the thread that asks. The first of a language is the one that speaks it by default.
    ///
    /// # Errors
    /// When it is no voice, or one of its files is missing, damaged or malformed.
    pub fn load(&mut self, folder: &ModelsFolder, name: &str) -> anyhow::Result<()> {
        let model = manifest::model(name)
            .filter(|model| model.purpose == Purpose::Voice)
            .ok_or_else(|| anyhow::anyhow!("{name} is no voice"))?;
        let file = |name| {
            let file = model.file(name);
            let file = file.ok_or_else(|| anyhow::anyhow!("{} has no {name}", model.name))?;
            anyhow::Ok(folder.read(model, file)?)
        };
        let piper = piper::Piper::load(&Rten::new(), file("voice.onnx")?, &file("voice.json")?)?;
        let piper = Arc::new(piper);
        let rehearsal = rehearse(&piper)?;
        let busy = SPEECH_PART * rehearsal.real_time_factor;
        self.threads_a_call = self.threads_a_call.max(busy);
        tracing::debug!(model = model.name, threads_a_call = busy, "voice");
        let code = match model.languages {
            Languages::Only([code, ..]) => *code,
            Languages::Only([]) | Languages::All | Languages::Any => "en",
        };
        // Its phonemes are of one region: en-us.
        let phonemes = piper.phonemes_of().to_lowercase();
        let language = match code == language::primary(&phonemes) {
            true => phonemes,
            false => code.to_owned(),
        };
        self.voices.push(Arc::new(Voice {
            model: model.name,
            language,
            phonemes: Phonemes::new(piper.phonemes_of()),
            gain: rehearsal.gain,
            piper,
        }));
        Ok(())
    }

    /// Whether it has a voice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.voices.is_empty()
    }

    /// The voice for a request: the one that it names, if it speaks the language; that of the language, unless another voice is
    /// named that espeak-ng has.
    async fn voice(&self, request: &SpeechRequest) -> Result<Option<&Arc<Voice>>, ProviderError> {
        let spoken = request.language.as_deref().map(language::primary);
        let speaks = |voice: &&Arc<Voice>| {
            let own = language::primary(&voice.language);
            spoken.is_none_or(|spoken| spoken.eq_ignore_ascii_case(own))
        };
        if let Some(named) = request.voice.as_deref() {
            let of_name = |voice: &&Arc<Voice>| voice.id().eq_ignore_ascii_case(named);
            if let Some(voice) = self.voices.iter().find(of_name).filter(speaks) {
                return Ok(Some(voice));
            }
            if self.rest.knows(named).await? {
                return Ok(None);
            }
        }
        let spoken = spoken.unwrap_or(DEFAULT_LANGUAGE);
        Ok(self
            .voices
            .iter()
            .find(|voice| language::primary(&voice.language).eq_ignore_ascii_case(spoken)))
    }
}

#[async_trait]
impl Synthesizer for Piper {
    fn name(&self) -> &str {
        self.voices.first().map_or("piper", |voice| voice.model)
    }

    fn threads_a_call(&self) -> f64 {
        self.threads_a_call
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let Some(voice) = self.voice(&request).await? else {
            return self.rest.speak(request).await;
        };
        let text = match language::primary(&voice.language) {
            "en" => normalize::english(&request.text),
            _ => request.text,
        };
        let mut sentences = voice.phonemes.of(&text, MAX_PHONEMES).await?;
        sentences.reverse();
        let utterance = Utterance {
            voice: Arc::clone(voice),
            pool: self.pool.clone(),
            claim: request.claim,
            speed: request.speed.clamp(*SPEED.start(), *SPEED.end()),
            sentences,
            speaking: None,
        };
        let pieces = stream::unfold(Some(utterance), |utterance| async move {
            let mut utterance = utterance?;
            match utterance.next_piece().await.transpose()? {
                Ok(piece) => Some((Ok(piece), Some(utterance))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(pieces.boxed())
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        let rest = self.rest.voices().await?;
        let own = self.voices.iter().map(|voice| VoiceInfo {
            id: voice.id().to_owned(),
            name: voice.id().to_owned(),
            language: Some(voice.language.clone()),
            gender: None,
            // No name: the other language's own voice.
            abroad: String::new(),
        });
        Ok(VoiceList {
            voices: own.chain(rest.voices).collect(),
            ..rest
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        match self.voices.first() {
            Some(voice) => voice.phonemes.of("hello", MAX_PHONEMES).await.map(|_| ()),
            None => self.rest.check().await,
        }
    }
}

/// What is known of a voice once it has said a sentence.
struct Rehearsal {
    /// How many seconds it takes for a second of speech.
    real_time_factor: f64,
    gain: Gain,
}

fn rehearse(piper: &Arc<piper::Piper>) -> Result<Rehearsal, InferenceError> {
    let mut sound = Vec::new();
    let seconds = fastest(|| {
        let mut speaking = piper.speak(REHEARSED, 1.0)?;
        sound.clear();
        while let Some(piece) = speaking.next_piece()? {
            sound.extend(piece);
        }
        Ok(())
    })?;
    let rate = piper.sample_rate_hz();
    let lasted = sound.len().max(1) as f64 / f64::from(rate);
    Ok(Rehearsal {
        real_time_factor: seconds / lasted,
        gain: Gain::of(&sound, rate),
    })
}

impl Utterance {
    /// The next piece of sound; `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Pcm>, ProviderError> {
        loop {
            let speaking = self.speaking.take();
            let sentence = match &speaking {
                Some(_) => None,
                None => match self.sentences.pop() {
                    Some(sentence) => Some(sentence),
                    None => return Ok(None),
                },
            };
            let (voice, speed) = (Arc::clone(&self.voice), self.speed);
            let compute = move |_: &_| {
                let mut speaking = match (speaking, sentence) {
                    (Some(speaking), _) => speaking,
                    (None, sentence) => voice.piper.speak(&sentence.unwrap_or_default(), speed)?,
                };
                let piece = speaking.next_piece()?;
                Ok((speaking, piece))
            };
            let made = self
                .pool
                .run(self.voice.model, &self.claim, compute)
                .await?;
            let (speaking, piece) = made.map_err(|error| failed(self.voice.model, &error))?;
            // Whoever has heard the beginning is not sent away.
            self.claim.is_continued = true;
            let Some(piece) = piece else { continue };
            self.speaking = Some(speaking);
            return Ok(Some(Pcm {
                samples: piece
                    .into_iter()
                    .map(|value| self.voice.gain.sample(value))
                    .collect(),
                sample_rate_hz: self.voice.piper.sample_rate_hz(),
            }));
        }
    }
}

fn failed(provider: &str, error: &InferenceError) -> ProviderError {
    ProviderError::new(provider, ProviderErrorKind::Failed, error.to_string())
}
