//! Transcription by Whisper models of the models folder, on the threads of the pool.
//!
//! Each model hears the languages that it knows. English that none of them knows goes to PocketSphinx, as it does without any model, and
//! any other language is refused. An utterance that is longer than a model takes is cut where it is most quiet.

mod hearing;

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use colloquy_audio::pauses::joined;
use colloquy_base::{
    fair_queue::{Claim, Priority},
    language::primary,
};
use colloquy_inference::{
    InferenceError,
    runtime::Rten,
    silero::Silero,
    whisper::{self, MAX_SECONDS, SILENCE_VERSION, SilenceCache},
};
use colloquy_models::{
    computed::{Computed, ComputedFolder},
    folder::{ModelsFolder, Presence},
    manifest::{self, Languages, Purpose},
};

use self::hearing::Hearing;
use super::{
    super::{ProviderError, ProviderErrorKind, Transcriber, Understood, Utterance},
    PocketSphinx, Pool,
    pool::Wanted,
};

/// Samples of a second.
const SAMPLE_RATE: usize = 16_000;

/// The language of an utterance of which nothing is said.
const DEFAULT_LANGUAGE: &str = "en";

/// The code of Javanese, and the one that Whisper has for it.
const JAVANESE: (&str, &str) = ("jv", "jw");

/// The longest part of an utterance that is heard at once, and how much of its end may be left to the next one.
const LONGEST: usize = MAX_SECONDS * SAMPLE_RATE;
const CUT_WITHIN: usize = 10 * SAMPLE_RATE;

/// How much of a call a visitor speaks, and how often what they say is heard: for interim transcripts, in pauses, at the end.
const SPEECH_PART: f64 = 0.5;
const TIMES_HEARD: f64 = 3.0;

/// An utterance to measure with: people say about three tokens a second.
const REHEARSED_SECONDS: usize = 5;
const TOKENS_A_SECOND: usize = 3;

/// The model of voice activity.
const ACTIVITY: &str = "silero-vad";

/// Sound that is compared when a quiet place is looked for: 100 ms.
const QUIET_SAMPLES: usize = SAMPLE_RATE / 10;

/// Whisper models, each for its languages.
#[derive(Debug)]
pub struct Whisper {
    pool: Pool,
    models: Vec<Model>,
    /// Looks once more whether somebody speaks, where the words alone do not tell.
    activity: Option<Arc<Silero>>,
    /// Of the slowest of them.
    threads_a_call: f64,
    rest: PocketSphinx,
}

#[derive(Debug, Clone)]
struct Model {
    name: &'static str,
    languages: Languages,
    whisper: Arc<whisper::Whisper>,
}

/// What a model heard of silence, in a file.
struct SilenceFile(Computed);

impl SilenceCache for SilenceFile {
    fn read(&self, bytes: usize) -> Option<Vec<u8>> {
        self.0.read(bytes)
    }

    /// Without it the next start takes longer, and that is all.
    fn write(&self, contents: &[u8]) {
        if let Err(error) = self.0.write(contents) {
            let path = self.0.path();
            tracing::debug!(path = %path.display(), "what was computed is not kept: {error}");
        }
    }
}

impl Model {
    fn knows(&self, language: &str) -> bool {
        match self.languages {
            Languages::Only(codes) => codes.contains(&language),
            Languages::All | Languages::Any => true,
        }
    }
}

impl Whisper {
    /// The names of the transcription models that are in the folder, the largest first.
    #[must_use]
    pub fn present(folder: &ModelsFolder) -> Vec<&'static str> {
        let models = manifest::MODELS.iter();
        let mut present: Vec<_> = models
            .filter(|model| model.purpose == Purpose::Transcription)
            .filter(|model| folder.presence(model) == Presence::Present)
            .collect();
        present.sort_by_key(|model| Reverse(model.bytes()));
        present.into_iter().map(|model| model.name).collect()
    }

    /// Loads a model. It takes a second or so, on the thread that asks, and less when what it hears of silence is among what was
    /// computed before.
    ///
    /// # Errors
    /// When it is no transcription model, or one of its files is missing, damaged or malformed.
    pub fn load(
        &mut self,
        folder: &ModelsFolder,
        computed: &ComputedFolder,
        name: &str,
    ) -> anyhow::Result<()> {
        let model = manifest::model(name)
            .filter(|model| model.purpose == Purpose::Transcription)
            .ok_or_else(|| anyhow::anyhow!("it is no transcription model"))?;
        let file = |name| {
            let file = model.file(name);
            file.ok_or_else(|| anyhow::anyhow!("it has no {name}"))
        };
        let (weights, vocabulary) = (file("model.bin")?, file("vocabulary.txt")?);
        let silence = SilenceFile(computed.of(weights, "silence", SILENCE_VERSION));
        let whisper = whisper::Whisper::load_cached(
            &Rten::new(),
            &folder.read(model, weights)?,
            &folder.read(model, vocabulary)?,
            Some(&silence),
        )?;
        let bytes = whisper.bytes();
        // The heaviest one is the slowest.
        if self
            .models
            .iter()
            .all(|other| other.whisper.bytes() < bytes)
        {
            let busy = SPEECH_PART * TIMES_HEARD * real_time_factor(&whisper, &self.pool)?;
            self.threads_a_call = self.threads_a_call.max(busy);
            tracing::debug!(model = model.name, threads_a_call = busy, "transcription");
        }
        self.pool.keeps(model.name, bytes);
        self.models.push(Model {
            name: model.name,
            languages: model.languages,
            whisper: Arc::new(whisper),
        });
        // Those of few languages hear these better.
        self.models
            .sort_by_key(|model| !matches!(model.languages, Languages::Only(_)));
        Ok(())
    }

    /// Loads the model of voice activity, if it is there.
    ///
    /// # Errors
    /// When its file is damaged or malformed.
    pub fn load_activity(&mut self, folder: &ModelsFolder) -> anyhow::Result<()> {
        let model =
            manifest::model(ACTIVITY).filter(|model| folder.presence(model) == Presence::Present);
        if let Some(model) = model {
            for file in model.files {
                let silero = Silero::load(&Rten::new(), folder.read(model, file)?)?;
                self.pool.keeps(model.name, silero.bytes());
                self.activity = Some(Arc::new(silero));
            }
        }
        Ok(())
    }

    /// No models yet.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            models: Vec::new(),
            activity: None,
            threads_a_call: 0.0,
            rest: PocketSphinx::default(),
        }
    }

    /// Whether it has a model.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    fn model(&self, language: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.knows(language))
    }

    async fn hear(
        &self,
        model: &Model,
        language: &str,
        expected: &str,
        samples: Vec<f32>,
        claim: &Claim,
    ) -> Result<String, ProviderError> {
        let (whisper, language) = (Arc::clone(&model.whisper), language.to_owned());
        let expected = expected.to_owned();
        let activity = self.activity.clone();
        let compute = move |wanted: &Wanted| {
            let hearing = Hearing {
                whisper: &whisper,
                activity: activity.as_deref(),
                language: &language,
                expected: &expected,
                wanted,
            };
            hearing.words(&samples)
        };
        let words = self.pool.run(model.name, claim, compute).await?;
        words.map_err(|error| failed(model.name, &error))
    }
}

/// The code of the language of an utterance.
fn spoken_language(language: Option<&str>) -> String {
    let code = primary(language.unwrap_or(DEFAULT_LANGUAGE)).to_lowercase();
    match code == JAVANESE.0 {
        true => JAVANESE.1.to_owned(),
        false => code,
    }
}

/// The ISO 639-1 code of one of Whisper's languages.
fn iso_code(language: &'static str) -> &'static str {
    match language == JAVANESE.1 {
        true => JAVANESE.0,
        false => language,
    }
}

/// How many seconds the model takes for a second of speech while all threads hear something.
fn real_time_factor(whisper: &whisper::Whisper, pool: &Pool) -> anyhow::Result<f64> {
    let sound = vec![0.0; REHEARSED_SECONDS * SAMPLE_RATE];
    let tokens = REHEARSED_SECONDS * TOKENS_A_SECOND;
    let seconds = pool.fastest(|| whisper.rehearse(&sound, tokens))?;
    Ok(seconds / REHEARSED_SECONDS as f64)
}

#[async_trait]
impl Transcriber for Whisper {
    fn name(&self) -> &str {
        self.models.first().map_or("whisper", |model| model.name)
    }

    /// A process of PocketSphinx that is left in the middle of an utterance has to be started anew.
    fn starts_early(&self, language: Option<&str>) -> bool {
        self.model(&spoken_language(language)).is_some()
    }

    fn threads_a_call(&self) -> f64 {
        self.threads_a_call
    }

    /// Those of its models; a model of every language also tells languages apart. PocketSphinx is there for English.
    fn understands(&self) -> Understood {
        let mut known = BTreeSet::<&'static str>::new();
        let mut detects = false;
        for model in &self.models {
            match model.languages {
                Languages::Only(codes) => known.extend(codes),
                Languages::All | Languages::Any => {
                    detects = true;
                    known.extend(model.whisper.languages().map(iso_code));
                }
            }
        }
        if let Understood::Only(codes) = self.rest.understands() {
            known.extend(codes);
        }
        match detects {
            true => Understood::Detected(known),
            false => Understood::Only(known),
        }
    }

    async fn language(
        &self,
        utterance: Utterance,
        among: Option<&[&str]>,
    ) -> Result<Option<String>, ProviderError> {
        let tells = |model: &&Model| model.whisper.languages().next().is_some();
        let Some(model) = self.models.iter().find(tells) else {
            return Ok(None);
        };
        let part = parts(&utterance.samples)[0];
        let (whisper, samples) = (Arc::clone(&model.whisper), floats(part));
        let owned = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
        let among: Option<Vec<String>> = among.map(owned);
        let compute = move |wanted: &Wanted| {
            let is_among = |code: &str| match &among {
                Some(among) => among.iter().any(|known| known == code),
                None => true,
            };
            whisper.language(&samples, &is_among, &|| wanted.is_wanted())
        };
        let told = self.pool.run(model.name, &utterance.claim, compute).await?;
        let told = told.map_err(|error| failed(model.name, &error))?;
        Ok(told.map(str::to_owned))
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        let language = spoken_language(utterance.language.as_deref());
        let Some(model) = self.model(&language) else {
            return self.rest.transcribe(utterance).await;
        };
        let mut heard = Vec::new();
        let expected = utterance.expected.join(", ");
        for part in parts(&utterance.samples) {
            let (samples, claim) = (floats(part), &utterance.claim);
            let words = self.hear(model, &language, &expected, samples, claim);
            heard.push(words.await?);
        }
        Ok(joined(&heard))
    }

    async fn check(&self) -> Result<(), ProviderError> {
        let silence = Utterance::new([0_i16; 1_600], None, Claim::own(Priority::Request));
        self.transcribe(silence).await.map(|_| ())
    }
}

/// Samples as a model takes them.
fn floats(samples: &[i16]) -> Vec<f32> {
    let samples = samples.iter();
    samples
        .map(|sample| f32::from(*sample) / 32_768.0)
        .collect()
}

/// An utterance in parts that a model takes.
fn parts(samples: &[i16]) -> Vec<&[i16]> {
    let mut parts = Vec::new();
    let mut rest = samples;
    while rest.len() > LONGEST {
        let (part, next) = rest.split_at(quietest(rest));
        parts.push(part);
        rest = next;
    }
    parts.push(rest);
    parts
}

/// Where an utterance that is too long is most quiet, in the last part that fits.
fn quietest(samples: &[i16]) -> usize {
    let first = LONGEST - CUT_WITHIN;
    let energy = |window: &[i16; QUIET_SAMPLES]| -> f64 {
        window.iter().map(|sample| f64::from(*sample).powi(2)).sum()
    };
    let (windows, _) = samples[first..LONGEST].as_chunks::<QUIET_SAMPLES>();
    let windows = windows.iter().enumerate();
    let quiet = windows.min_by(|(_, one), (_, other)| energy(one).total_cmp(&energy(other)));
    quiet.map_or(LONGEST, |(index, _)| {
        first + index * QUIET_SAMPLES + QUIET_SAMPLES / 2
    })
}

fn failed(provider: &str, error: &InferenceError) -> ProviderError {
    let kind = match error {
        InferenceError::TooLong(_) => ProviderErrorKind::Rejected,
        InferenceError::Malformed(_) | InferenceError::Failed(_) | InferenceError::Cancelled => {
            ProviderErrorKind::Failed
        }
    };
    ProviderError::new(provider, kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_utterances_are_cut_where_they_are_quiet() {
        let second = [900, -900].repeat(SAMPLE_RATE / 2);
        let mut sound = second.repeat(70);
        for (from, seconds) in [(25, 1), (49, 1)] {
            sound[from * SAMPLE_RATE..(from + seconds) * SAMPLE_RATE].fill(0);
        }
        let parts = parts(&sound);
        let lengths: Vec<_> = parts.iter().map(|part| part.len() / SAMPLE_RATE).collect();
        assert_eq!(lengths, [25, 24, 20]);
        assert_eq!(parts.concat(), sound);
        for short in [0, 1, LONGEST] {
            assert_eq!(super::parts(&sound[..short]), [&sound[..short]]);
        }
        // Without any pause it is cut somewhere all the same.
        let loud = second.repeat(61);
        let parts = super::parts(&loud);
        assert!(parts.iter().all(|part| (1..=LONGEST).contains(&part.len())));
        assert_eq!(parts.concat(), loud);
    }
}
