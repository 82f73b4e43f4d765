//! Models of the models folder that listen to the turns of a call: whether somebody speaks, and whether they have finished.

use std::sync::Arc;

use anyhow::Context as _;
use colloquy_base::fair_queue::Claim;
use colloquy_config::Config;
use colloquy_inference::{
    runtime::Rten,
    silero::{FRAME, Listener, Silero},
    smart_turn::{COMPLETE, MAX_SAMPLES, SmartTurn},
};
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest::{self, Purpose},
};
use colloquy_voice::{Earshot, VoiceDetector};
use tokio::task::spawn_blocking;

use super::{
    super::{ProviderError, ProviderErrorKind},
    Pool, Wanted,
};

/// What `calls.voice_activity` calls the detector that is part of the engine.
const EARSHOT: &str = "earshot";

/// How often a visitor pauses, a second: they speak half of the time.
const PAUSES_A_SECOND: f64 = 0.3;
/// How many frames of a recording are looked at before others have their turn: half a minute of them, which takes a fraction of a second.
const FRAMES_AT_ONCE: usize = 1_000;

/// What listens to the turns of calls beside the transcriber.
#[derive(Debug, Clone, Default)]
pub struct TurnModels {
    /// Tells speech from other sounds; `None`: what is part of the engine does.
    pub voice_activity: Option<SpeechModel>,
    /// Tells whether a visitor has finished; `None`: the length of the silence does.
    pub end_of_turn: Option<EndOfTurnModel>,
}

impl TurnModels {
    /// Those that the settings name; where they name none, speech is told by the model that is in the folder.
    ///
    /// # Errors
    /// When one of them cannot be loaded.
    pub fn from_config(config: &Config, pool: &Pool) -> anyhow::Result<Self> {
        let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
        let named = |setting: &str, name: &str| format!("{setting}: {name}");
        let mut models = Self::default();
        match config.calls.voice_activity.as_deref() {
            Some(EARSHOT) => {}
            Some(name) => {
                let model = SpeechModel::load(&folder, name, pool);
                let model = model.with_context(|| named("calls.voice_activity", name))?;
                models.voice_activity = Some(model);
            }
            None => models.voice_activity = SpeechModel::present(&folder, pool),
        }
        if let Some(name) = &config.calls.end_of_turn {
            let model = EndOfTurnModel::load(&folder, name, pool);
            models.end_of_turn = Some(model.with_context(|| named("calls.end_of_turn", name))?);
        }
        Ok(models)
    }

    /// The name of what tells speech from other sounds.
    #[must_use]
    pub fn voice_activity(&self) -> &'static str {
        self.voice_activity
            .as_ref()
            .map_or(EARSHOT, SpeechModel::name)
    }

    /// The name of what tells whether a visitor has finished, where something does.
    #[must_use]
    pub fn end_of_turn(&self) -> Option<&'static str> {
        self.end_of_turn.as_ref().map(EndOfTurnModel::name)
    }

    /// What tells speech from other sounds in a call.
    #[must_use]
    pub fn detector(&self) -> Box<dyn VoiceDetector> {
        match &self.voice_activity {
            Some(model) => Box::new(model.listener()),
            None => Box::<Earshot>::default(),
        }
    }

    /// The probability that somebody speaks in each frame of a sound, of samples at 16,000 Hz. Models compute it on the threads of their pool.
    ///
    /// # Errors
    /// When too many wait for a thread.
    pub async fn scores(
        &self,
        samples: Arc<Vec<i16>>,
        claim: &Claim,
    ) -> Result<SpeechScores, ProviderError> {
        let mut detector = self.detector();
        let frame_samples = detector.frame_samples();
        let mut scores = Vec::with_capacity(samples.len() / frame_samples + 1);
        // A thread is given back after each piece, so that no call waits for all of a long sound.
        let piece = FRAMES_AT_ONCE * frame_samples;
        for begin in (0..samples.len()).step_by(piece) {
            let samples = Arc::clone(&samples);
            let hear = move || {
                let end = samples.len().min(begin + piece);
                let mut padded = vec![0; frame_samples];
                let frames = samples[begin..end].chunks(frame_samples);
                let scores = frames.map(|frame| {
                    padded.fill(0);
                    padded[..frame.len()].copy_from_slice(frame);
                    detector.score(&padded)
                });
                let scores: Vec<f32> = scores.collect();
                (detector, scores)
            };
            let heard = match &self.voice_activity {
                Some(model) => {
                    let hear = move |_: &Wanted| hear();
                    model.pool.run(model.name, claim, hear).await?
                }
                None => spawn_blocking(hear).await.map_err(|error| {
                    ProviderError::new(EARSHOT, ProviderErrorKind::Failed, error.to_string())
                })?,
            };
            detector = heard.0;
            scores.extend(heard.1);
        }
        Ok(SpeechScores {
            scores,
            frame_samples,
        })
    }

    /// How many threads for models a call keeps busy with them, on average.
    pub(crate) fn threads_a_call(&self) -> f64 {
        self.end_of_turn
            .as_ref()
            .map_or(0.0, |model| PAUSES_A_SECOND * model.seconds)
    }
}

/// Where somebody speaks in a sound.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechScores {
    /// The probability for each frame.
    pub scores: Vec<f32>,
    /// The samples of a frame, at 16,000 a second.
    pub frame_samples: usize,
}

/// The name and the file of a model that has one.
pub(super) fn only_file(
    folder: &ModelsFolder,
    name: &str,
    purpose: Purpose,
) -> anyhow::Result<(&'static str, Vec<u8>)> {
    let model = manifest::model(name)
        .filter(|model| model.purpose == purpose)
        .ok_or_else(|| anyhow::anyhow!("it is no model for {purpose}"))?;
    let [file] = model.files else {
        anyhow::bail!("it has more than one file");
    };
    Ok((model.name, folder.read(model, file)?))
}

/// A model that tells speech from other sounds.
#[derive(Debug, Clone)]
pub struct SpeechModel {
    name: &'static str,
    silero: Arc<Silero>,
    pool: Pool,
}

impl SpeechModel {
    /// The model that is in the folder. A server without it still answers, and says which one it has.
    fn present(folder: &ModelsFolder, pool: &Pool) -> Option<Self> {
        let mut models = manifest::MODELS.iter();
        let model = models.find(|model| {
            model.purpose == Purpose::VoiceActivity && folder.presence(model) == Presence::Present
        })?;
        Self::load(folder, model.name, pool)
            .inspect_err(|error| {
                tracing::error!(model = model.name, "the model cannot be used: {error:#}");
            })
            .ok()
    }

    fn load(folder: &ModelsFolder, name: &str, pool: &Pool) -> anyhow::Result<Self> {
        let (name, file) = only_file(folder, name, Purpose::VoiceActivity)?;
        let silero = Silero::load(&Rten::new(), file)?;
        // What runs once runs always: every frame has the same shape.
        silero.hear(&mut Listener::default(), &[0.0; FRAME])?;
        pool.keeps(name, silero.bytes());
        Ok(Self {
            name,
            silero: Arc::new(silero),
            pool: pool.clone(),
        })
    }

    /// The model's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A listener for one call.
    #[must_use]
    pub fn listener(&self) -> SpeechListener {
        SpeechListener {
            model: self.clone(),
            heard: Listener::default(),
            has_failed: false,
        }
    }
}

/// What a model has heard of one call.
#[derive(Debug)]
pub struct SpeechListener {
    model: SpeechModel,
    heard: Listener,
    has_failed: bool,
}

impl VoiceDetector for SpeechListener {
    fn frame_samples(&self) -> usize {
        FRAME
    }

    fn score(&mut self, frame: &[i16]) -> f32 {
        let Some(frame) = frame.as_array::<FRAME>() else {
            return 0.0;
        };
        let frame = frame.map(|sample| f32::from(sample) / 32_768.0);
        let score = self.model.silero.hear(&mut self.heard, &frame);
        score.unwrap_or_else(|error| {
            // Once is enough, of thirty frames a second.
            if !std::mem::replace(&mut self.has_failed, true) {
                tracing::error!(model = self.model.name, "voice activity: {error}");
            }
            0.0
        })
    }

    fn reset(&mut self) {
        self.heard = Listener::default();
    }
}

/// A model that tells whether a speaker has finished.
#[derive(Debug, Clone)]
pub struct EndOfTurnModel {
    name: &'static str,
    pool: Pool,
    model: Arc<SmartTurn>,
    /// What an answer takes on one thread, while the others answer too.
    seconds: f64,
}

impl EndOfTurnModel {
    fn load(folder: &ModelsFolder, name: &str, pool: &Pool) -> anyhow::Result<Self> {
        let (name, file) = only_file(folder, name, Purpose::EndOfTurn)?;
        let model = SmartTurn::load(&Rten::new(), file)?;
        let sound = vec![0.0; MAX_SAMPLES];
        let seconds = pool.fastest(|| model.complete(&sound, &|| true).map(|_| ()))?;
        pool.keeps(name, model.bytes());
        Ok(Self {
            name,
            pool: pool.clone(),
            model: Arc::new(model),
            seconds,
        })
    }

    /// The model's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the speaker of these samples seems to have finished.
    ///
    /// # Errors
    /// When too many wait for a thread, or the model fails.
    pub async fn is_complete(
        &self,
        samples: Vec<i16>,
        claim: &Claim,
    ) -> Result<bool, ProviderError> {
        let model = Arc::clone(&self.model);
        let compute = move |wanted: &Wanted| {
            let samples: Vec<f32> = samples
                .iter()
                .map(|sample| f32::from(*sample) / 32_768.0)
                .collect();
            model.complete(&samples, &|| wanted.is_wanted())
        };
        let probability = self.pool.run(self.name, claim, compute).await?;
        let probability = probability.map_err(|error| {
            ProviderError::new(self.name, ProviderErrorKind::Failed, error.to_string())
        })?;
        Ok(probability >= COMPLETE)
    }
}
