//! The embedded defaults: they need no account and no network.
//!
//! Neural models run in this process, on threads of their own, where their files are in the models folder. Without them, and
//! for the languages that they do not know, there are programs:
//!
//! The programs run as child processes, because their licence forbids linking (espeak-ng) and because a process can be
//! killed when it hangs.

mod espeak;
mod extractive;
mod minilm;
mod normalize;
mod phonemes;
mod piper;
mod pocketsphinx;
mod pool;
mod programs;
mod sounds;
mod speaker;
mod turns;
mod voice_maker;
mod whisper;

pub(crate) use self::pool::load_aside;
pub use self::{
    espeak::Espeak,
    extractive::Extractive,
    minilm::MiniLm,
    piper::Voices,
    pocketsphinx::{Models, PocketSphinx},
    pool::{Pool, Wanted},
    sounds::{remove_abandoned_sounds, remove_own_sounds},
    turns::{EndOfTurnModel, SpeechListener, SpeechModel, SpeechScores, TurnModels},
    voice_maker::VoiceMaker,
    whisper::Whisper,
};
use std::sync::Arc;

use anyhow::Context as _;
use colloquy_base::fair_queue::{Bounds, FairQueue, Full};
use colloquy_config::{Config, InferenceConfig};
use colloquy_models::{computed::ComputedFolder, folder::ModelsFolder};

use super::{
    Embedder, NotUnderstood, ProviderError, ProviderErrorKind, Synthesizer, Transcriber,
    VoiceWorker,
};

/// What `transcriber.model` calls PocketSphinx.
pub const POCKETSPHINX: &str = "pocketsphinx";

/// The transcriber of this machine that the settings name; where they name none, Whisper with each of its models that is there, else
/// PocketSphinx.
///
/// # Errors
/// When the one that the settings name cannot be loaded.
pub fn transcriber(config: &Config, pool: &Pool) -> anyhow::Result<Arc<dyn Transcriber>> {
    let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
    let computed = ComputedFolder::new(InferenceConfig::computed_folder(&config.store.dir));
    let mut whisper = Whisper::new(pool.clone());
    match config.transcriber.model.as_deref() {
        Some(POCKETSPHINX) => {}
        Some(name) => whisper
            .load(&folder, &computed, name)
            .with_context(|| format!("transcriber.model: {name}"))?,
        None => {
            for name in Whisper::present(&folder) {
                // A server without it still answers, and says which one it has.
                if let Err(error) = whisper.load(&folder, &computed, name) {
                    tracing::error!(model = name, "the model cannot be used: {error:#}");
                }
            }
        }
    }
    if !whisper.is_empty()
        && let Err(error) = whisper.load_activity(&folder)
    {
        tracing::error!("the model of voice activity cannot be used: {error:#}");
    }
    Ok(match whisper.is_empty() {
        true => Arc::new(PocketSphinx::default()),
        false => Arc::new(whisper),
    })
}

/// What `synthesizer.model` calls espeak-ng, and the name of its program.
pub const ESPEAK: &str = "espeak-ng";

/// The synthesizer of this machine that the settings name; where they name none, each voice that is there and that the machine is fast
/// enough for, else espeak-ng.
///
/// # Errors
/// When the one that the settings name cannot be loaded.
pub fn synthesizer(config: &Config, pool: &Pool) -> anyhow::Result<Arc<dyn Synthesizer>> {
    let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
    let mut voices = Voices::new(pool.clone());
    match config.synthesizer.model.as_deref() {
        Some(ESPEAK) => {}
        Some(name) => voices
            .load(&folder, name)
            .with_context(|| format!("synthesizer.model: {name}"))?,
        None => {
            for name in Voices::present(&folder) {
                if let Err(error) = voices.load_by_default(&folder, name) {
                    tracing::error!(model = name, "the voice cannot be used: {error:#}");
                }
            }
        }
    }
    Ok(match voices.knows_any() {
        true => Arc::new(voices),
        false => Arc::new(Espeak::default()),
    })
}

/// What `embedder.model` calls search without vectors.
const NO_EMBEDDER: &str = "none";

/// The embedder of this machine that the settings name; where they name none, the model that is there. `None`: texts are found by
/// their words alone.
///
/// # Errors
/// When the one that the settings name cannot be loaded.
pub fn embedder(config: &Config, pool: &Pool) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
    let model = match config.embedder.model.as_deref() {
        Some(NO_EMBEDDER) => None,
        Some(name) => {
            let model = MiniLm::named(&folder, name, pool);
            Some(model.with_context(|| format!("embedder.model: {name}"))?)
        }
        None => MiniLm::present(&folder, pool),
    };
    Ok(model.map(|model| Arc::new(model) as Arc<dyn Embedder>))
}

/// What makes voices on this machine, where its model is there; test sentences are spoken by this synthesizer.
pub(super) fn voice_worker(
    config: &Config,
    pool: &Pool,
    synthesizer: &Arc<dyn Synthesizer>,
) -> Option<Arc<dyn VoiceWorker>> {
    let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
    let maker = VoiceMaker::present(&folder, pool, Arc::clone(synthesizer))?;
    Some(Arc::new(maker))
}

/// How many may wait for a process with one priority, for each that there is at once.
const WAITING_FOR_EACH: usize = 32;

/// The queue before so many processes. Half of the places are for one partner.
fn queue(name: &'static str, processes: usize) -> FairQueue {
    let slots = processes.max(1);
    let waiting = slots * WAITING_FOR_EACH;
    FairQueue::new(
        name,
        Bounds {
            slots,
            waiting,
            waiting_of_owner: waiting / 2,
        },
    )
}

/// Too many wait for a process.
fn busy(provider: &str, full: Full) -> ProviderError {
    ProviderError {
        retry_after: Some(full.retry_after),
        ..ProviderError::new(provider, ProviderErrorKind::Busy, full.to_string())
    }
}

/// No model here understands the language.
fn not_understood(provider: &str, unknown: &NotUnderstood) -> ProviderError {
    ProviderError::new(
        provider,
        ProviderErrorKind::Misconfigured,
        unknown.to_string(),
    )
}
