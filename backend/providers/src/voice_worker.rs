//! Making a voice of samples: what each is worth, how the voice sounds, and what a synthesizer needs of it.

use async_trait::async_trait;
use bytes::Bytes;
use colloquy_base::fair_queue::Claim;
use futures_util::stream::BoxStream;

use super::ProviderError;

/// A service that makes voices. A job is given to it in steps, each of which may be repeated; what it has of a job it may forget at any time, and
/// then it is given again.
#[async_trait]
pub trait VoiceWorker: Send + Sync + 'static {
    /// The worker's public name.
    fn name(&self) -> &str;

    /// The type of voices that it makes where none is asked for.
    fn default_type(&self) -> &str;

    /// Whether it makes voices of this type.
    fn makes(&self, voice_type: &str) -> bool;

    /// Begins a job. What it has under this id goes.
    async fn begin(&self, job: &VoiceJob) -> Result<(), ProviderError>;

    /// Gives a sample of a job.
    async fn add(&self, job: &VoiceJob, sample: VoiceSample) -> Result<(), ProviderError>;

    /// Says that a job has all of its samples, and starts it.
    async fn start(&self, job: &VoiceJob) -> Result<(), ProviderError>;

    /// How far a job is.
    async fn progress(&self, id: &str) -> Result<VoiceProgress, ProviderError>;

    /// A file that a job made.
    async fn file(&self, id: &str, file: VoiceFile) -> Result<FileStream, ProviderError>;

    /// Says that nothing of a job is needed any more.
    async fn forget(&self, id: &str) -> Result<(), ProviderError>;

    /// Whether the service answers; for the deep health check.
    async fn check(&self) -> Result<(), ProviderError>;
}

/// Pieces of a file.
pub type FileStream = BoxStream<'static, Result<Bytes, ProviderError>>;

/// A voice to make.
#[derive(Debug, Clone)]
pub struct VoiceJob {
    /// Its id, a UUID.
    pub id: String,
    /// The type of the voice: what it is for.
    pub voice_type: String,
    /// Sentences to be spoken with each sample, so that somebody can hear what it is worth.
    pub sentences: Vec<String>,
    /// Where to say that the job ended; whoever does not is asked now and then.
    pub callback_url: Option<String>,
    /// Who asks, for services that have to share.
    pub claim: Claim,
}

/// A sample of a voice.
#[derive(Debug, Clone)]
pub struct VoiceSample {
    /// Its number in the voice.
    pub index: u32,
    /// The sound: Opus in Ogg, mono.
    pub audio: Bytes,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub enum VoiceProgress {
    /// The worker does not have it, or not all of it.
    Unknown,
    /// It goes on; the part that is done, 0 to 1.
    Running(f64),
    /// It is done.
    Done(MadeVoice),
    /// There will be no voice, for this reason.
    Failed(String),
}

/// A voice that was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MadeVoice {
    /// What the synthesizer calls the voice; `None` where it cannot speak with it.
    pub synthesizer_voice: Option<String>,
    /// What each sample is worth, 0 to 1, by its number.
    pub scores: Vec<(u32, f64)>,
    /// What the synthesizer calls the voice that suits each sample, by its number, where that is told.
    pub sample_voices: Vec<(u32, String)>,
    /// The sentences that were spoken: the numbers of the sample and of the sentence.
    pub test_samples: Vec<(u32, u32)>,
    /// Whether there is a file of embeddings.
    pub has_embedding: bool,
}

/// A file of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VoiceFile {
    /// What a synthesizer needs of the voice: a ZIP file.
    Embedding,
    /// A sentence, spoken with a sample: Opus in Ogg.
    TestSample {
        /// The number of the sample.
        sample: u32,
        /// The number of the sentence.
        sentence: u32,
    },
}

impl VoiceFile {
    /// What the file is called.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Embedding => "embedding.zip".to_owned(),
            Self::TestSample { sample, sentence } => format!("test_{sample}_{sentence}.opus"),
        }
    }
}
