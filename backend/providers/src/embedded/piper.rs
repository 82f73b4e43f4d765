//! Speech by the voices of the models folder, on the threads of the pool. What they do not speak goes to espeak-ng, as it does
//! without any voice.
//!
//! A piece of sound is a computation of its own: between two of them others have their turn, and nothing is made that nobody takes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use colloquy_audio::loudness::Gain;
use colloquy_base::{fair_queue::Claim, language};
use colloquy_inference::InferenceError;
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest::{self, Languages, Model, Purpose},
};
use futures_util::{StreamExt as _, stream};

use super::{
    super::{
        NotSpoken, Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer,
        VoiceInfo, VoiceList, VoiceSpeed, understood::detect_for_espeak,
    },
    Espeak, Pool, Wanted, normalize,
    phonemes::Phonemes,
    pool::seconds_of,
    speaker::{Speaker, Speaking, measured},
};

/// The language of a text of which nothing is said.
const DEFAULT_LANGUAGE: &str = "en";

/// How much of a call the character speaks.
const SPEECH_PART: f64 = 0.5;

/// Phonemes to measure with, which most voices know.
const REHEARSED: &str = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ.";

/// The speeds at which it can still be understood.
const SPEED: std::ops::RangeInclusive<f32> = 0.4..=2.5;

/// Neural voices, each for its language.
#[derive(Debug)]
pub struct Voices {
    pool: Pool,
    voices: Vec<Arc<Voice>>,
    /// What was measured, also of those that are too slow to be used.
    speeds: Vec<VoiceSpeed>,
    /// Of the slowest of them.
    threads_a_call: f64,
    rest: Espeak,
}

#[derive(Debug)]
struct Voice {
    /// The model, as the manifest has it.
    model: &'static str,
    /// What requests call it.
    id: &'static str,
    /// Its language, as a BCP 47 tag.
    language: String,
    speaker: Speaker,
    phonemes: Phonemes,
    /// What makes it as loud as the others.
    gain: Gain,
}

/// A text that is being spoken.
struct Utterance {
    voice: Arc<Voice>,
    pool: Pool,
    claim: Claim,
    speed: f32,
    /// The sentences, or parts of such, that are left, the next one last.
    sentences: Vec<String>,
    speaking: Option<Speaking>,
}

impl Voices {
    /// The names of the voices that are in the folder, those that not every machine is fast enough for first: where it is, they
    /// speak.
    #[must_use]
    pub fn present(folder: &ModelsFolder) -> Vec<&'static str> {
        let models = manifest::MODELS.iter();
        let mut present: Vec<_> = models
            .filter(|model| model.purpose == Purpose::Voice)
            .filter(|model| folder.presence(model) == Presence::Present)
            .collect();
        present.sort_by_key(|model| Speaker::by_default_below(model).is_none());
        present.into_iter().map(|model| model.name).collect()
    }

    /// No voices yet.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            voices: Vec::new(),
            speeds: Vec::new(),
            threads_a_call: 0.0,
            rest: Espeak::default(),
        }
    }

    /// Loads the voices of a model, on the thread that asks. The first of a language is the one that speaks it by default.
    ///
    /// # Errors
    /// When it is no voice, or one of its files is missing, damaged or malformed.
    pub fn load(&mut self, folder: &ModelsFolder, name: &str) -> anyhow::Result<()> {
        self.load_below(folder, name, |_| None)
    }

    /// The same, unless this machine is too slow for the model to speak by default.
    ///
    /// # Errors
    /// When it is no voice, or one of its files is missing, damaged or malformed.
    pub fn load_by_default(&mut self, folder: &ModelsFolder, name: &str) -> anyhow::Result<()> {
        self.load_below(folder, name, Speaker::by_default_below)
    }

    fn load_below(
        &mut self,
        folder: &ModelsFolder,
        name: &str,
        below: impl Fn(&Model) -> Option<f64>,
    ) -> anyhow::Result<()> {
        let model = manifest::model(name)
            .filter(|model| model.purpose == Purpose::Voice)
            .ok_or_else(|| anyhow::anyhow!("it is no voice"))?;
        let voices = Speaker::load(folder, model)?;
        // They differ in what the network is given, not in how long it takes.
        let (_, speaker) = voices
            .first()
            .ok_or_else(|| anyhow::anyhow!("it has no voices"))?;
        let below = below(model);
        let factor = measured(
            Speaker::by_default_below(model),
            || rehearse(speaker, |once| Ok(seconds_of(once)?)),
            || rehearse(speaker, |once| self.pool.fastest(once)),
        )?;
        self.pool.keeps(model.name, speaker.bytes());
        if !self.note(model.name, factor, below) {
            return Ok(());
        }
        let code = match model.languages {
            Languages::Only([code, ..]) => *code,
            Languages::Only([]) | Languages::All | Languages::Any => "en",
        };
        for (id, speaker) in voices {
            // Its phonemes are of one region: en-us.
            let phonemes = speaker.phonemes_of().to_lowercase();
            let language = match code == language::primary(&phonemes) {
                true => phonemes,
                false => code.to_owned(),
            };
            self.voices.push(Arc::new(Voice {
                model: model.name,
                id,
                language,
                phonemes: Phonemes::new(speaker.phonemes_of()),
                gain: Gain::of(&rehearsal(&speaker)?, speaker.sample_rate_hz()),
                speaker,
            }));
        }
        Ok(())
    }

    /// Notes how fast a model is, and tells whether it is used: if it is below the real-time factor that is asked for.
    fn note(&mut self, model: &'static str, factor: f64, below: Option<f64>) -> bool {
        let is_used = below.is_none_or(|below| factor < below);
        let busy = SPEECH_PART * factor;
        if is_used {
            self.threads_a_call = self.threads_a_call.max(busy);
        }
        let real_time_factor = (factor * 1_000.0).round() / 1_000.0;
        tracing::info!(model, real_time_factor, below, is_used, "voice");
        self.speeds.push(VoiceSpeed {
            model: model.to_owned(),
            real_time_factor,
            is_used,
        });
        is_used
    }

    /// Whether anything is known of a voice: it has one, or one that is too slow.
    #[must_use]
    pub fn knows_any(&self) -> bool {
        !self.speeds.is_empty()
    }

    /// What espeak-ng is told of the voice and the language of a text. A voice of these speaks its own language alone, and is none of its.
    fn for_rest<'a>(
        &'a self,
        voice: Option<&'a str>,
        language: Option<&'a str>,
    ) -> (Option<&'a str>, Option<&'a str>) {
        let of_name = |own: &&Arc<Voice>| voice.is_some_and(|it| own.id.eq_ignore_ascii_case(it));
        match self.voices.iter().find(of_name) {
            Some(own) => (None, Some(language.unwrap_or(&own.language))),
            None => (voice, language),
        }
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
            let of_name = |voice: &&Arc<Voice>| voice.id.eq_ignore_ascii_case(named);
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
impl Synthesizer for Voices {
    fn name(&self) -> &str {
        self.voices
            .first()
            .map_or(self.rest.name(), |voice| voice.model)
    }

    fn threads_a_call(&self) -> f64 {
        self.threads_a_call
    }

    fn speeds(&self) -> Vec<VoiceSpeed> {
        self.speeds.clone()
    }

    fn check_language(
        &self,
        voice: Option<&str>,
        language: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), NotSpoken> {
        let (voice, language) = self.for_rest(voice, language);
        self.rest.check_language(voice, language, text)
    }

    fn detect_language(&self, voice: Option<&str>, text: &str) -> Option<&'static str> {
        let (voice, own) = self.for_rest(voice, None);
        detect_for_espeak(voice, own, text)
    }

    fn readable(&self, voice: Option<&str>, language: Option<&str>, text: String) -> String {
        let (voice, language) = self.for_rest(voice, language);
        self.rest.readable(voice, language, text)
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let Some(voice) = self.voice(&request).await? else {
            return self.rest.speak(request).await;
        };
        let text = match language::primary(&voice.language) {
            "en" => normalize::english(&request.text),
            other => normalize::with_products(&request.text, other).into_owned(),
        };
        let sentences = voice.phonemes.of(&text, voice.speaker.most()).await?;
        let mut sentences = voice.speaker.parts(sentences);
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
            id: voice.id.to_owned(),
            name: voice.id.to_owned(),
            language: Some(voice.language.clone()),
            gender: None,
            // No name: the other language's own voice.
            abroad: String::new(),
            is_neural: true,
        });
        Ok(VoiceList {
            voices: own.chain(rest.voices).collect(),
            ..rest
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        match self.voices.first() {
            Some(voice) => {
                let most = voice.speaker.most();
                voice.phonemes.of("hello", most).await.map(|_| ())
            }
            None => self.rest.check().await,
        }
    }
}

/// What a voice says to be measured.
fn rehearsal(speaker: &Speaker) -> Result<Vec<f32>, InferenceError> {
    let mut speaking = speaker.speak(REHEARSED, 1.0, &|| true)?;
    let mut sound = Vec::new();
    while let Some(piece) = speaking.next_piece(&|| true)? {
        sound.extend(piece);
    }
    Ok(sound)
}

/// How many seconds the voice takes for a second of speech, of a sentence that is spoken as often as `timed` asks for it.
fn rehearse(
    speaker: &Speaker,
    timed: impl FnOnce(&(dyn Fn() -> Result<(), InferenceError> + Sync)) -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    // It says the same a little differently each time.
    let samples = AtomicUsize::new(1);
    let seconds = timed(&|| {
        samples.fetch_max(rehearsal(speaker)?.len(), Ordering::Relaxed);
        Ok(())
    })?;
    let samples = f64::from(samples.into_inner() as u32);
    Ok(seconds * f64::from(speaker.sample_rate_hz()) / samples)
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
            let compute = move |wanted: &Wanted| {
                let is_wanted = || wanted.is_wanted();
                let mut speaking = match (speaking, sentence) {
                    (Some(speaking), _) => speaking,
                    (None, sentence) => {
                        let sentence = sentence.unwrap_or_default();
                        voice.speaker.speak(&sentence, speed, &is_wanted)?
                    }
                };
                let piece = speaking.next_piece(&is_wanted)?;
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
                sample_rate_hz: self.voice.speaker.sample_rate_hz(),
            }));
        }
    }
}

fn failed(provider: &str, error: &InferenceError) -> ProviderError {
    ProviderError::new(provider, ProviderErrorKind::Failed, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_that_this_machine_is_too_slow_for_is_measured_and_not_used() {
        let mut voices = Voices::new(Pool::new(1).unwrap());
        assert!(!voices.knows_any());
        assert!(!voices.note("kokoro-82m", 0.4, Some(0.4)));
        assert_eq!(voices.threads_a_call(), 0.0, "calls do not pay for it");
        assert_eq!(voices.name(), "espeak-ng");
        assert!(voices.note("piper-en_US-joe-medium", 0.1, None));
        assert_eq!(voices.threads_a_call(), 0.05);
        // A fast machine, and one on which it was asked for.
        assert!(voices.note("kokoro-82m", 0.3999, Some(0.4)));
        assert!(voices.note("kokoro-82m", 1.2, None));
        assert_eq!(voices.threads_a_call(), 0.6, "the slowest counts");
        let speeds = voices.speeds();
        let used: Vec<_> = speeds.iter().map(|speed| speed.is_used).collect();
        assert_eq!(used, [false, true, true, true]);
        assert_eq!(speeds[0].real_time_factor, 0.4);
    }
}
