//! Whisper: speech to text.
//!
//! It hears an utterance in the time that the utterance has, not in the thirty seconds that it was trained with (see
//! [`network`]), and is kept from inventing words where nobody speaks: what it thinks of a sound without speech is asked
//! first, and a second of sound has few tokens at most. A text that repeats itself is marked: the sound tells whether it was said.
//!
//! Where each word was said is known to the decoder, which looks at the sound of a word when it says it. Those who ask for
//! words get that (see [`alignment`]); for others nothing is computed.

mod alignment;
mod decoding;
mod dimensions;
mod network;
mod pauses;
mod silence;
mod tokens;
mod vocabulary;
mod weights;
mod words;

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use half::{f16, vec::HalfFloatVecExt as _};

use self::{
    alignment::AlignmentHeads,
    decoding::{Decoded, Heard, State},
    dimensions::Dimensions,
    silence::Silence,
    tokens::Tokens,
    vocabulary::Vocabulary,
    weights::WeightsFile,
};
pub use self::{
    silence::{SILENCE_VERSION, SilenceCache},
    words::Word,
};
use crate::{
    InferenceError,
    mel::{HOP, MelFilter, SAMPLE_RATE},
    runtime::{Network, Runtime},
};

/// The longest utterance, in seconds.
pub const MAX_SECONDS: usize = 30;

/// Silence that is added to an utterance, in samples: a word that ends with it is heard as a whole.
const PADDING: usize = SAMPLE_RATE / 2;

/// Samples of a position: of two frames.
const POSITION: usize = 2 * HOP;

/// The loudest value of a spectrogram, in powers of ten. All utterances have the same, so that they have the same silence.
const LOUDEST: f32 = 1.5;

/// The most tokens of a text.
const MAX_TOKENS: usize = 220;

/// From here on, the probability that nobody speaks is believed. Human speech was at 0.21 at most, and at 0.58 in noise; other
/// sounds were at 0.69 and above.
const NO_SPEECH: f32 = 0.65;

/// A text that zlib makes smaller than by this much repeats itself.
const REPEATS: f32 = 2.4;

/// A model that was loaded. Any number of threads may ask it at a time.
#[derive(Debug)]
pub struct Whisper {
    encoder: Box<dyn Network>,
    decoder: Box<dyn Network>,
    dimensions: Dimensions,
    tokens: Tokens,
    vocabulary: Vocabulary,
    filter: MelFilter,
    /// What each token is to the decoder, [tokens, width].
    embeddings: Vec<f16>,
    /// What each position is to the decoder, [positions, width].
    positions: Vec<f32>,
    silence: Silence,
    alignment_heads: AlignmentHeads,
    names: Names,
}

/// The names of the networks' inputs and outputs: for each layer keys and values, and for each layer queries.
#[derive(Debug)]
struct Names {
    cross: Vec<String>,
    past: Vec<String>,
    kept: Vec<String>,
    queries: Vec<String>,
}

/// What was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The words.
    pub text: String,
    /// The probability of each token of the text.
    pub probabilities: Vec<f32>,
    /// The probability that nobody speaks.
    pub no_speech: f32,
    /// How much smaller zlib makes the text.
    pub compression: f32,
    /// Whether there were more words than can be said in the time.
    pub is_cut: bool,
}

/// What was heard, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedTranscript {
    /// What was heard.
    pub transcript: Transcript,
    /// Its words, one after the other: together they are the text, with blanks between them in languages that have these.
    pub words: Vec<Word>,
}

impl Transcript {
    /// Whether somebody spoke. Otherwise the words were invented. Those of a text that repeats itself may be.
    #[must_use]
    pub fn is_speech(&self) -> bool {
        self.no_speech <= NO_SPEECH && !self.text.trim().is_empty()
    }

    /// True if the text repeats itself: somebody said the same words many times, or the decoder did not stop saying them.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.compression > REPEATS
    }

    /// How sure the words are: the mean probability of a token, 0 to 1.
    #[must_use]
    pub fn confidence(&self) -> f32 {
        words::mean(&self.probabilities)
    }
}

impl Whisper {
    /// Loads a model and its vocabulary. Of the model, this is `model.bin` of CTranslate2 or `model.safetensors` of Hugging
    /// Face; of the vocabulary, `vocabulary.txt` or `vocab.json`. Which of them a file is, its content says.
    ///
    /// # Errors
    /// When one of them is malformed.
    pub fn load(
        runtime: &dyn Runtime,
        model: &[u8],
        vocabulary: &[u8],
    ) -> Result<Self, InferenceError> {
        Self::load_cached(runtime, model, vocabulary, None)
    }

    /// Loads a model as [`Self::load`] does. What it hears of silence comes from the cache, or goes there.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn load_cached(
        runtime: &dyn Runtime,
        model: &[u8],
        vocabulary: &[u8],
        cache: Option<&dyn SilenceCache>,
    ) -> Result<Self, InferenceError> {
        let weights = WeightsFile::parse(model)?;
        let dimensions = Dimensions::of(&weights)?;
        let tokens = Tokens::of(dimensions.vocabulary)?;
        let encoder = runtime.load(network::encoder(&weights, dimensions)?)?;
        let decoder = runtime.load(network::decoder(&weights, dimensions)?)?;
        let embeddings = Vec::from_f32_slice(&weights.get("decoder/embeddings/weight")?.values);
        let layers = |names: [&str; 2]| {
            let of_layer = |layer: usize| names.map(|name| format!("{name}_{layer}"));
            (0..dimensions.decoder).flat_map(of_layer).collect()
        };
        Ok(Self {
            silence: Silence::cached_or_heard(encoder.as_ref(), dimensions, LOUDEST, cache)?,
            encoder,
            decoder,
            dimensions,
            tokens,
            vocabulary: Vocabulary::parse(vocabulary, tokens.end)?,
            filter: MelFilter::new(dimensions.bands),
            embeddings,
            positions: weights.get("decoder/position_encodings/encodings")?.values,
            names: Names {
                cross: layers(["cross_keys", "cross_values"]),
                past: layers(["past_keys", "past_values"]),
                kept: layers(["keys", "values"]),
                queries: (0..dimensions.decoder)
                    .map(|layer| format!("queries_{layer}"))
                    .collect(),
            },
            alignment_heads: AlignmentHeads::of(dimensions, tokens.is_multilingual()),
        })
    }

    /// How many bytes its weights have, with what it keeps of silence.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let networks = self.encoder.bytes() + self.decoder.bytes();
        let tables = size_of_val(&*self.embeddings) + size_of_val(&*self.positions);
        networks + tables + self.silence.resident_bytes()
    }

    /// The languages that the model tells apart; none when it knows one only.
    pub fn languages(&self) -> impl Iterator<Item = &'static str> {
        self.tokens.languages().map(|(code, _)| code)
    }

    /// Hears an utterance of 16,000 samples a second, from -1 to 1, in this language; without one, in the most likely.
    /// `is_wanted` is asked again and again; once it says no, this ends.
    ///
    /// # Errors
    /// [`InferenceError::TooLong`] beyond [`MAX_SECONDS`]; [`InferenceError::Cancelled`]; when the model fails, or does not know the
    /// language.
    pub fn transcribe(
        &self,
        samples: &[f32],
        language: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Transcript, InferenceError> {
        self.transcribe_expecting(samples, language, "", is_wanted)
    }

    /// Hears an utterance as [`Self::transcribe`] does, in which these words are likelier than they would be.
    ///
    /// # Errors
    /// Those of [`Self::transcribe`].
    pub fn transcribe_expecting(
        &self,
        samples: &[f32],
        language: Option<&str>,
        expected: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Transcript, InferenceError> {
        let heard = self.hear(samples, is_wanted)?;
        let language = self.language_or(language, &heard)?;
        let mut state = self.begin();
        let most = decoding::most_tokens(samples);
        let decoded = self.say(&heard, &mut state, language, expected, most, is_wanted)?;
        Ok(self.transcript(decoded))
    }

    /// Hears an utterance as [`Self::transcribe`] does, and when each of its words was said.
    ///
    /// # Errors
    /// Those of [`Self::transcribe`].
    pub fn transcribe_words(
        &self,
        samples: &[f32],
        language: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<TimedTranscript, InferenceError> {
        let heard = self.hear(samples, is_wanted)?;
        let language = self.language_or(language, &heard)?;
        let mut state = self.begin_with_queries();
        let most = decoding::most_tokens(samples);
        let decoded = self.say(&heard, &mut state, language, "", most, is_wanted)?;
        if !is_wanted() {
            return Err(InferenceError::Cancelled);
        }
        let words = self.words(samples, language, &heard, &state, &decoded)?;
        Ok(TimedTranscript {
            transcript: self.transcript(decoded),
            words,
        })
    }

    fn transcript(&self, decoded: Decoded) -> Transcript {
        let text = self.vocabulary.text(decoded.tokens.iter().copied());
        Transcript {
            compression: compression(text.as_bytes()),
            is_cut: decoded.is_cut,
            text: text.trim().to_owned(),
            probabilities: decoded.probabilities,
            no_speech: decoded.no_speech,
        }
    }

    fn words(
        &self,
        samples: &[f32],
        language: &str,
        heard: &Heard,
        state: &State,
        decoded: &Decoded,
    ) -> Result<Vec<Word>, InferenceError> {
        let positions = samples.len().div_ceil(POSITION);
        let tokens = decoded.tokens.len();
        let begins = match &state.queries {
            Some(queries) => {
                self.alignment_heads
                    .begins(queries, &heard.cross, positions, tokens)?
            }
            None => vec![0; tokens + 1],
        };
        let spans = words::split(
            &self.vocabulary,
            &decoded.tokens,
            tokens::has_blanks(language),
        );
        let pauses = pauses::Pauses::of(samples);
        Ok(words::timed(
            spans,
            &begins,
            &decoded.probabilities,
            &pauses,
        ))
    }

    /// Does what it takes to hear an utterance with so many tokens, whatever is in it; to find out how long that is.
    ///
    /// # Errors
    /// Those of [`Self::transcribe`].
    pub fn rehearse(&self, samples: &[f32], tokens: usize) -> Result<(), InferenceError> {
        let heard = self.hear(samples, &|| true)?;
        let mut state = self.begin();
        for _ in 0..tokens.min(MAX_TOKENS) {
            self.step(&heard, &mut state, &[self.tokens.start()])?;
        }
        Ok(())
    }

    /// The language of an utterance, one of these; nothing when the model knows one only, or none of these.
    ///
    /// # Errors
    /// Those of [`Self::transcribe`].
    pub fn language(
        &self,
        samples: &[f32],
        among: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<&'static str>, InferenceError> {
        let heard = self.hear(samples, is_wanted)?;
        self.most_likely(&heard, among)
    }

    fn language_or<'a>(
        &self,
        language: Option<&'a str>,
        heard: &Heard,
    ) -> Result<&'a str, InferenceError> {
        match language {
            Some(language) => Ok(language),
            None => Ok(self.most_likely(heard, &|_| true)?.unwrap_or("en")),
        }
    }

    fn most_likely(
        &self,
        heard: &Heard,
        among: &dyn Fn(&str) -> bool,
    ) -> Result<Option<&'static str>, InferenceError> {
        if self.tokens.languages().next().is_none() {
            return Ok(None);
        }
        let scores = self.step(heard, &mut self.begin(), &[self.tokens.start()])?;
        let languages = self.tokens.languages().filter(|(code, _)| among(code));
        let likeliest =
            languages.max_by(|(_, one), (_, other)| scores[*one].total_cmp(&scores[*other]));
        Ok(likeliest.map(|(code, _)| code))
    }
}

/// How many times smaller zlib makes a text.
fn compression(text: &[u8]) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(text).and_then(|()| encoder.finish());
    compressed.map_or(1.0, |compressed| {
        text.len() as f32 / compressed.len().max(1) as f32
    })
}
