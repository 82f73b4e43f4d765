//! Voices of recordings on this machine: the GE2E encoder tells who speaks in each sample.
//!
//! The synthesizers of this machine speak with voices of their own only. So a voice that is made here is described, and each of its
//! samples scored, by how much it is like the others and how clean it is; what speaks the test sentences is the voice of the synthesizer
//! that suits the sample best: it is as high, sounds like a person, and is like the speaker. The vectors alone do not tell: those of programs are
//! about as far from all people, and those of short recordings are vague.

use std::{
    collections::{BTreeMap, HashMap},
    io::{Cursor, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use colloquy_audio::{
    encode::{Encoder, Format},
    ogg_reader::decode_ogg,
    pitch::median_pitch_hz,
};
use colloquy_base::{
    clock::{Clock as _, SystemClock},
    fair_queue::{Claim, Priority},
};
use colloquy_inference::{
    ge2e::{Ge2e, MAX_SAMPLES, SpeakerVector},
    runtime::Rten,
};
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest::{self, Purpose},
};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::{sync::OnceCell, task::spawn_blocking};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{
    super::{
        FileStream, MadeVoice, ProviderError, ProviderErrorKind, SpeechRequest, Synthesizer,
        VoiceFile, VoiceJob, VoiceProgress, VoiceSample, VoiceWorker,
    },
    Pool, Wanted,
    turns::only_file,
};

/// The type of the voices that are made here.
const TYPE: &str = "builtin";
/// The rate of what the model hears.
const RATE_HZ: usize = 16_000;
/// How many voices of the synthesizer are compared with samples.
const MOST_VOICES: usize = 16;
/// What they say for that.
const SENTENCE: &str =
    "The ship was due at seven, but it was nearly nine before anybody saw its lights.";
/// How long a job is kept that nobody asks for.
const KEPT: Duration = Duration::from_secs(3_600);
/// The moments of a sample whose loudness is compared: 20 ms.
const MOMENT: usize = RATE_HZ / 50;
/// How far speech is above the noise in a poor sample, and in a clean one, in dB.
const NOISY_DB: f64 = 5.0;
const CLEAN_DB: f64 = 35.0;

/// How much more a voice suits that is a neural network, as a difference of likenesses.
const NEURAL: f32 = 0.25;
/// How much less a voice suits for each semitone that it is higher or lower than the speaker, beyond the first ones, within which one person's
/// pitch varies. A man's voice is about ten semitones below a woman's.
const SEMITONE: f32 = 0.06;
const FREE_SEMITONES: f32 = 2.0;

/// The worker of this machine.
#[derive(Clone)]
pub struct VoiceMaker(Arc<Parts>);

struct Parts {
    name: &'static str,
    model: Ge2e,
    pool: Pool,
    synthesizer: Arc<dyn Synthesizer>,
    jobs: Mutex<HashMap<String, Job>>,
    tasks: TaskTracker,
    /// The voices of the synthesizer, by how they sound.
    voices: OnceCell<Vec<KnownVoice>>,
}

/// A voice of the synthesizer.
#[derive(Debug)]
struct KnownVoice {
    id: String,
    is_neural: bool,
    heard: Heard,
}

impl KnownVoice {
    /// How well it stands for a speaker; more is better.
    fn suits(&self, speaker: &SpeakerVector, pitch_hz: Option<f32>) -> f32 {
        let likeness = self.heard.vector.similarity(speaker);
        let bonus = if self.is_neural { NEURAL } else { 0.0 };
        let apart = match (self.heard.pitch_hz, pitch_hz) {
            (Some(own), Some(other)) => (12.0 * (own / other).log2()).abs(),
            _ => 0.0,
        };
        likeness + bonus - SEMITONE * (apart - FREE_SEMITONES).max(0.0)
    }
}

impl std::fmt::Debug for VoiceMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VoiceMaker")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

/// What was heard of a sample.
#[derive(Debug, Clone)]
struct Heard {
    vector: SpeakerVector,
    /// How far speech is above the noise, in dB.
    clean_db: f64,
    /// How high it is, where that is told.
    pitch_hz: Option<f32>,
}

/// A job, as far as it is.
struct Job {
    touched: std::time::Instant,
    samples: BTreeMap<u32, Option<Heard>>,
    stage: Stage,
}

enum Stage {
    Given,
    Running {
        task: AbortOnDropHandle<()>,
        progress: f64,
    },
    Done(MadeVoice, HashMap<VoiceFile, Bytes>),
    Failed(String),
}

impl VoiceMaker {
    /// The worker, where its model is in the folder; test sentences are spoken by this synthesizer.
    pub(crate) fn present(
        folder: &ModelsFolder,
        pool: &Pool,
        synthesizer: Arc<dyn Synthesizer>,
    ) -> Option<Self> {
        let mut models = manifest::MODELS.iter();
        let model = models.find(|model| {
            model.purpose == Purpose::SpeakerEmbedding
                && folder.presence(model) == Presence::Present
        })?;
        Self::load(folder, model.name, pool, synthesizer)
            .inspect_err(|error| {
                tracing::error!(model = model.name, "the model cannot be used: {error:#}");
            })
            .ok()
    }

    fn load(
        folder: &ModelsFolder,
        name: &str,
        pool: &Pool,
        synthesizer: Arc<dyn Synthesizer>,
    ) -> anyhow::Result<Self> {
        let (name, file) = only_file(folder, name, Purpose::SpeakerEmbedding)?;
        let model = Ge2e::load(&Rten::new(), &file)?;
        pool.keeps(name, model.bytes());
        Ok(Self(Arc::new(Parts {
            name,
            model,
            pool: pool.clone(),
            synthesizer,
            jobs: Mutex::default(),
            tasks: TaskTracker::new(),
            voices: OnceCell::new(),
        })))
    }

    fn error(&self, kind: ProviderErrorKind, message: impl Into<String>) -> ProviderError {
        ProviderError::new(self.0.name, kind, message)
    }

    fn with_job<T>(&self, id: &str, then: impl FnOnce(Option<&mut Job>) -> T) -> T {
        let now = SystemClock.instant();
        let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|_, job| now.saturating_duration_since(job.touched) < KEPT);
        let mut job = jobs.get_mut(id);
        if let Some(job) = &mut job {
            job.touched = now;
        }
        then(job)
    }

    /// Who speaks in samples at 16,000 Hz, and how clean they are; `None` where nothing is to be heard.
    async fn hear(&self, samples: Vec<i16>, claim: &Claim) -> Result<Option<Heard>, ProviderError> {
        let maker = self.clone();
        let compute = move |wanted: &Wanted| {
            let mut sound: Vec<f32> = samples
                .iter()
                .map(|sample| f32::from(*sample) / 32_768.0)
                .collect();
            sound.truncate(MAX_SAMPLES);
            let (clean_db, pitch_hz) = (clean_db(&sound), median_pitch_hz(&sound, RATE_HZ as u32));
            let vector = maker.0.model.embed(&sound, &|| wanted.is_wanted());
            vector.map(|vector| {
                vector.map(|vector| Heard {
                    vector,
                    clean_db,
                    pitch_hz,
                })
            })
        };
        let heard = self.0.pool.run(self.0.name, claim, compute).await?;
        heard.map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))
    }

    /// What a voice of the synthesizer says: samples, and their rate.
    async fn speak(
        &self,
        text: &str,
        voice: &str,
        claim: &Claim,
    ) -> Result<(Vec<i16>, u32), ProviderError> {
        let request = SpeechRequest {
            text: text.to_owned(),
            voice: Some(voice.to_owned()),
            language: None,
            speed: 1.0,
            claim: claim.clone(),
        };
        let mut speech = self.0.synthesizer.speak(request).await?;
        let (mut samples, mut rate_hz) = (Vec::new(), RATE_HZ as u32);
        while let Some(piece) = speech.next().await.transpose()? {
            rate_hz = piece.sample_rate_hz;
            samples.extend(piece.samples);
        }
        Ok((samples, rate_hz))
    }

    /// The voices of the synthesizer, by how they sound.
    async fn voices(&self) -> Result<&[KnownVoice], ProviderError> {
        let heard = self.0.voices.get_or_try_init(|| async {
            let claim = Claim::new(Priority::Background, "");
            let list = self.0.synthesizer.voices().await?;
            let mut heard = Vec::new();
            let mut voices = list.voices;
            voices.sort_by_key(|voice| !voice.is_neural);
            for voice in voices.into_iter().take(MOST_VOICES) {
                let (samples, rate_hz) = self.speak(SENTENCE, &voice.id, &claim).await?;
                let samples = self.at_16_khz(&samples, rate_hz)?;
                if let Some(sound) = self.hear(samples, &claim).await? {
                    heard.push(KnownVoice {
                        id: voice.id,
                        is_neural: voice.is_neural,
                        heard: sound,
                    });
                }
            }
            Ok::<_, ProviderError>(heard)
        });
        heard.await.map(Vec::as_slice)
    }

    fn at_16_khz(&self, samples: &[i16], rate_hz: u32) -> Result<Vec<i16>, ProviderError> {
        let resampler = colloquy_audio::Resampler::new(rate_hz, RATE_HZ as u32);
        let mut resampler =
            resampler.map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))?;
        let mut converted = Vec::new();
        resampler.push(samples.iter().copied(), &mut converted);
        resampler.finish(&mut converted);
        Ok(converted)
    }

    /// Does a job whose samples were heard.
    async fn make(
        &self,
        job: &VoiceJob,
        samples: &BTreeMap<u32, Option<Heard>>,
    ) -> Result<(MadeVoice, HashMap<VoiceFile, Bytes>), ProviderError> {
        let heard = samples.values().flatten().map(|heard| &heard.vector);
        let Some(mean) = SpeakerVector::mean(heard) else {
            return Err(self.error(
                ProviderErrorKind::Rejected,
                "nothing is to be heard in the samples",
            ));
        };
        let voices = self.voices().await?;
        let best = |vector: &SpeakerVector, pitch_hz: Option<f32>| {
            let suits = |voice: &KnownVoice| voice.suits(vector, pitch_hz);
            let best = voices.iter().max_by(|a, b| suits(a).total_cmp(&suits(b)));
            best.map(|voice| voice.id.clone())
        };
        let pitches = samples.values().flatten();
        let pitch_hz = median(pitches.filter_map(|heard| heard.pitch_hz).collect());
        let mut made = MadeVoice {
            synthesizer_voice: best(&mean, pitch_hz),
            has_embedding: true,
            ..MadeVoice::default()
        };
        let (mut files, mut described) = (HashMap::new(), Vec::new());
        let mut spoken: HashMap<(String, usize), Bytes> = HashMap::new();
        for (done, (index, heard)) in samples.iter().enumerate() {
            let score = heard.as_ref().map_or(0.0, |heard| score(&mean, heard));
            made.scores.push((*index, score));
            let Some(heard) = heard else { continue };
            described.push(json!({
                "index": index,
                "score": score,
                "similarity": rounded(f64::from(mean.similarity(&heard.vector))),
                "signal_to_noise_db": rounded(heard.clean_db),
                "pitch_hz": heard.pitch_hz,
                "embedding": heard.vector.numbers(),
            }));
            let Some(voice) = best(&heard.vector, heard.pitch_hz.or(pitch_hz)) else {
                continue;
            };
            made.sample_voices.push((*index, voice.clone()));
            for (number, sentence) in job.sentences.iter().enumerate() {
                let said = match spoken.get(&(voice.clone(), number)) {
                    Some(said) => said.clone(),
                    None => self.said(sentence, &voice, &job.claim).await?,
                };
                spoken.insert((voice.clone(), number), said.clone());
                let sentence = u32::try_from(number).unwrap_or(u32::MAX);
                made.test_samples.push((*index, sentence));
                let file = VoiceFile::TestSample {
                    sample: *index,
                    sentence,
                };
                files.insert(file, said);
            }
            let part = (done + 1) as f64 / samples.len() as f64;
            self.with_job(&job.id, |job| {
                if let Some(Job {
                    stage: Stage::Running { progress, .. },
                    ..
                }) = job
                {
                    *progress = part;
                }
            });
        }
        let description = json!({
            "model": self.0.name,
            "type": job.voice_type,
            "embedding": mean.numbers(),
            "synthesizer_voice": made.synthesizer_voice,
            "samples": described,
        });
        let zip = zipped(&description.to_string());
        let zip = zip.map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))?;
        files.insert(VoiceFile::Embedding, zip);
        Ok((made, files))
    }

    /// A sentence as a file.
    async fn said(&self, text: &str, voice: &str, claim: &Claim) -> Result<Bytes, ProviderError> {
        let (samples, rate_hz) = self.speak(text, voice, claim).await?;
        let encode = move || {
            let mut encoder = Encoder::new(Format::Opus, rate_hz, rand::random())?;
            let mut bytes = encoder.push(&samples)?;
            bytes.extend(encoder.finish()?);
            Ok::<_, colloquy_audio::encode::EncodeError>(bytes)
        };
        let bytes = spawn_blocking(encode).await;
        let bytes =
            bytes.map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))?;
        let bytes =
            bytes.map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))?;
        Ok(bytes.into())
    }
}

/// What a sample is worth: how much it is like the voice, less as it is noisier, down to half of it.
fn score(mean: &SpeakerVector, heard: &Heard) -> f64 {
    let likeness = f64::from(mean.similarity(&heard.vector)).clamp(0.0, 1.0);
    let clean = ((heard.clean_db - NOISY_DB) / (CLEAN_DB - NOISY_DB)).clamp(0.0, 1.0);
    rounded(likeness * (0.5 + clean / 2.0))
}

/// The number in the middle; `None` of none.
fn median(mut numbers: Vec<f32>) -> Option<f32> {
    numbers.sort_by(f32::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

/// How far speech is above what is to be heard in pauses, in dB: the loudest fifth of moments above the softest twentieth.
fn clean_db(sound: &[f32]) -> f64 {
    let (moments, _) = sound.as_chunks::<MOMENT>();
    let power = |moment: &[f32; MOMENT]| -> f64 {
        let squares = moment.iter().map(|sample| f64::from(*sample).powi(2));
        squares.sum::<f64>() / MOMENT as f64
    };
    // Opus makes no sound of silence; what is below the last bit is not heard.
    let mut powers: Vec<f64> = moments.iter().map(|it| power(it).max(1e-10)).collect();
    powers.sort_by(f64::total_cmp);
    let among = |part: f64| powers.get((part * powers.len() as f64) as usize);
    match (among(0.05), among(0.8)) {
        (Some(softest), Some(loudest)) => 10.0 * (loudest / softest).log10(),
        _ => 0.0,
    }
}

/// A ZIP file with a description.
fn zipped(description: &str) -> zip::result::ZipResult<Bytes> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("embedding.json", zip::write::SimpleFileOptions::default())?;
    zip.write_all(description.as_bytes())?;
    Ok(zip.finish()?.into_inner().into())
}

#[async_trait]
impl VoiceWorker for VoiceMaker {
    fn name(&self) -> &str {
        self.0.name
    }

    fn default_type(&self) -> &str {
        TYPE
    }

    fn makes(&self, voice_type: &str) -> bool {
        voice_type == TYPE
    }

    async fn begin(&self, job: &VoiceJob) -> Result<(), ProviderError> {
        self.with_job(&job.id, |_| ());
        let new = Job {
            touched: SystemClock.instant(),
            samples: BTreeMap::new(),
            stage: Stage::Given,
        };
        let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.insert(job.id.clone(), new);
        Ok(())
    }

    async fn add(&self, job: &VoiceJob, sample: VoiceSample) -> Result<(), ProviderError> {
        let longest = Duration::from_secs((MAX_SAMPLES / RATE_HZ) as u64 + 1);
        let decoded = spawn_blocking(move || decode_ogg(&sample.audio, longest)).await;
        let samples = decoded
            .map_err(|error| self.error(ProviderErrorKind::Failed, error.to_string()))?
            .map_err(|error| self.error(ProviderErrorKind::Rejected, error.to_string()))?;
        let heard = self.hear(samples, &job.claim).await?;
        self.with_job(&job.id, |job| {
            if let Some(job) = job {
                job.samples.insert(sample.index, heard);
            }
        });
        Ok(())
    }

    async fn start(&self, job: &VoiceJob) -> Result<(), ProviderError> {
        let (maker, about) = (self.clone(), job.clone());
        self.with_job(&job.id, |job| {
            let Some(job) = job else { return };
            let samples = job.samples.clone();
            let work = async move {
                let made = maker.make(&about, &samples).await;
                maker.with_job(&about.id, |job| {
                    let Some(job) = job else { return };
                    job.stage = match made {
                        Ok((made, files)) => Stage::Done(made, files),
                        Err(error) if error.kind == ProviderErrorKind::Rejected => {
                            Stage::Failed(error.message)
                        }
                        Err(error) => {
                            tracing::warn!("a voice was not made: {error}");
                            // It may be given again.
                            Stage::Given
                        }
                    };
                });
            };
            job.stage = Stage::Running {
                task: AbortOnDropHandle::new(self.0.tasks.spawn(work)),
                progress: 0.0,
            };
        });
        Ok(())
    }

    async fn progress(&self, id: &str) -> Result<VoiceProgress, ProviderError> {
        Ok(self.with_job(id, |job| match job.map(|job| &job.stage) {
            None | Some(Stage::Given) => VoiceProgress::Unknown,
            Some(Stage::Running { task, .. }) if task.is_finished() => {
                VoiceProgress::Failed("it stopped in the middle".to_owned())
            }
            Some(Stage::Running { progress, .. }) => VoiceProgress::Running(*progress),
            Some(Stage::Done(made, _)) => VoiceProgress::Done(made.clone()),
            Some(Stage::Failed(reason)) => VoiceProgress::Failed(reason.clone()),
        }))
    }

    async fn file(&self, id: &str, file: VoiceFile) -> Result<FileStream, ProviderError> {
        let bytes = self.with_job(id, |job| match job.map(|job| &job.stage) {
            Some(Stage::Done(_, files)) => files.get(&file).cloned(),
            _ => None,
        });
        let missing = || self.error(ProviderErrorKind::Malformed, "it has no such file");
        let bytes = bytes.ok_or_else(missing)?;
        Ok(stream::iter([Ok(bytes)]).boxed())
    }

    async fn forget(&self, id: &str) -> Result<(), ProviderError> {
        let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.remove(id);
        Ok(())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A voice whose vector points so far away from that of the speaker, in the direction of the first number.
    fn voice(id: &str, is_neural: bool, likeness: f32, pitch_hz: f32) -> KnownVoice {
        let mut numbers = vec![0.0; 256];
        numbers[0] = likeness;
        numbers[1] = (1.0 - likeness * likeness).sqrt();
        KnownVoice {
            id: id.to_owned(),
            is_neural,
            heard: Heard {
                vector: SpeakerVector::of(&numbers).unwrap(),
                clean_db: 40.0,
                pitch_hz: Some(pitch_hz),
            },
        }
    }

    #[test]
    fn the_voice_that_suits_is_as_high_and_like_a_person() {
        let speaker = voice("", false, 1.0, 0.0).heard.vector;
        let man = voice("joe", true, 0.5, 105.0);
        let robot = voice("en", false, 0.6, 100.0);
        let robot_woman = voice("en+f3", false, 0.4, 190.0);
        let best = |pitch_hz: Option<f32>| {
            let voices = [&man, &robot, &robot_woman];
            let suits = |voice: &&KnownVoice| voice.suits(&speaker, pitch_hz);
            let best = voices
                .into_iter()
                .max_by(|a, b| suits(a).total_cmp(&suits(b)));
            best.unwrap().id.clone()
        };
        assert_eq!(best(Some(110.0)), "joe", "a robot is more like the speaker");
        assert_eq!(best(Some(85.0)), "joe");
        assert_eq!(
            best(Some(200.0)),
            "en+f3",
            "a woman, whatever the vectors say"
        );
        assert_eq!(best(None), "joe", "whispered");
        let woman = voice("anna", true, 0.3, 210.0);
        assert!(woman.suits(&speaker, Some(200.0)) > robot_woman.suits(&speaker, Some(200.0)));
    }

    #[test]
    fn noise_is_told_from_speech() {
        let tone = |at: usize| (at as f32 * 0.3).sin() * 0.3;
        let noise = |at: usize, loud: f32| ((at * 7_919) % 1_000) as f32 / 1_000.0 * loud;
        let sound = |loud: f32| -> Vec<f32> {
            let spoken = |at: usize| at % RATE_HZ < RATE_HZ / 2;
            let at = 0..3 * RATE_HZ;
            at.map(|at| noise(at, loud) + if spoken(at) { tone(at) } else { 0.0 })
                .collect()
        };
        let (clean, noisy) = (clean_db(&sound(0.000_1)), clean_db(&sound(0.1)));
        assert!(clean > CLEAN_DB && noisy < 20.0, "{clean} {noisy}");
        assert_eq!(clean_db(&[]), 0.0);
    }
}
