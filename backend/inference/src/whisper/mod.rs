//! Whisper: speech to text.
//!
//! It hears an utterance in the time that the utterance has, not in the thirty seconds that it was trained with (see
//! [`network`]), and is kept from inventing words where nobody speaks: what it thinks of a sound without speech is asked
//! first, a second of sound has few tokens at most, and a text that repeats itself is none.

mod dimensions;
mod network;
mod silence;
mod tokens;
mod vocabulary;
mod weights;

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use half::f16;

use self::{
    dimensions::Dimensions, silence::Silence, tokens::Tokens, vocabulary::Vocabulary,
    weights::WeightsFile,
};
use crate::{
    InferenceError,
    mel::{HOP, MelFilter, SAMPLE_RATE},
    runtime::{Floats, Input, Network, Runtime},
};

/// The longest utterance, in seconds.
pub const MAX_SECONDS: usize = 30;

/// Silence that is added to an utterance, in samples: a word that ends with it is heard as a whole.
const PADDING: usize = SAMPLE_RATE / 2;

/// Samples of a position: of two frames.
const POSITION: usize = 2 * HOP;

/// The loudest value of a spectrogram, in powers of ten. All utterances have the same, so that they have the same silence.
const LOUDEST: f32 = 1.5;

/// The most tokens of a second, and those that any utterance may have beside.
const TOKENS_A_SECOND: usize = 8;
const TOKENS: usize = 8;

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
    names: Names,
}

/// The names of the networks' inputs and outputs, for each layer keys and values.
#[derive(Debug)]
struct Names {
    cross: Vec<String>,
    past: Vec<String>,
    kept: Vec<String>,
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

impl Transcript {
    /// Whether somebody spoke. Otherwise the words were invented.
    #[must_use]
    pub fn is_speech(&self) -> bool {
        self.no_speech <= NO_SPEECH && self.compression <= REPEATS && !self.text.trim().is_empty()
    }

    /// How sure the words are: the mean probability of a token, 0 to 1.
    #[must_use]
    pub fn confidence(&self) -> f32 {
        let logarithms: f32 = self
            .probabilities
            .iter()
            .map(|one| one.max(1e-10).ln())
            .sum();
        match self.probabilities.len() {
            0 => 0.0,
            count => (logarithms / count as f32).exp(),
        }
    }
}

/// An utterance that the encoder has heard: for each layer of the decoder, keys and values.
struct Heard {
    cross: Vec<Floats>,
    bias: Floats,
}

/// What a text has so far.
struct State {
    past: Vec<Floats>,
    length: usize,
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
        let weights = WeightsFile::parse(model)?;
        let dimensions = Dimensions::of(&weights)?;
        let tokens = Tokens::of(dimensions.vocabulary)?;
        let encoder = runtime.load(network::encoder(&weights, dimensions)?)?;
        let decoder = runtime.load(network::decoder(&weights, dimensions)?)?;
        let embeddings = weights.get("decoder/embeddings/weight")?.values;
        let layers = |names: [&str; 2]| {
            let of_layer = |layer: usize| names.map(|name| format!("{name}_{layer}"));
            (0..dimensions.decoder).flat_map(of_layer).collect()
        };
        Ok(Self {
            silence: Silence::listen(encoder.as_ref(), dimensions, LOUDEST)?,
            encoder,
            decoder,
            dimensions,
            tokens,
            vocabulary: Vocabulary::parse(vocabulary, tokens.end)?,
            filter: MelFilter::new(dimensions.bands),
            embeddings: embeddings.into_iter().map(f16::from_f32).collect(),
            positions: weights.get("decoder/position_encodings/encodings")?.values,
            names: Names {
                cross: layers(["cross_keys", "cross_values"]),
                past: layers(["past_keys", "past_values"]),
                kept: layers(["keys", "values"]),
            },
        })
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
        let heard = self.hear(samples, is_wanted)?;
        let language = match language {
            Some(language) => language,
            None => self.most_likely(&heard)?.unwrap_or("en"),
        };
        let prompt = self.tokens.prompt(language).ok_or_else(|| {
            InferenceError::Failed(format!("the model does not know the language {language}"))
        })?;
        let mut state = self.begin();
        let scores = self.step(&heard, &mut state, &prompt)?;
        // The first of the tokens is asked what it thinks of a sound without speech, and the last one what follows.
        let vocabulary = self.dimensions.vocabulary;
        let no_speech = probability(&scores[..vocabulary], self.tokens.no_speech());
        let mut next = scores[scores.len() - vocabulary..].to_vec();
        let most = samples.len() * TOKENS_A_SECOND / SAMPLE_RATE + TOKENS;
        let most = most.min(MAX_TOKENS);
        let (mut said, mut probabilities) = (Vec::new(), Vec::new());
        while said.len() < most {
            if !is_wanted() {
                return Err(InferenceError::Cancelled);
            }
            self.tokens.suppress(&mut next, said.is_empty());
            let token = likeliest(&next);
            if token == self.tokens.end {
                break;
            }
            probabilities.push(probability(&next, token));
            said.push(token);
            next = self.step(&heard, &mut state, &[token])?;
        }
        let text = self.vocabulary.text(said.iter().copied());
        Ok(Transcript {
            compression: compression(text.as_bytes()),
            is_cut: said.len() == most,
            text: text.trim().to_owned(),
            probabilities,
            no_speech,
        })
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

    /// The language of an utterance, and how likely each is; nothing when the model knows one only.
    ///
    /// # Errors
    /// Those of [`Self::transcribe`].
    pub fn language(
        &self,
        samples: &[f32],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<&'static str>, InferenceError> {
        let heard = self.hear(samples, is_wanted)?;
        self.most_likely(&heard)
    }

    fn most_likely(&self, heard: &Heard) -> Result<Option<&'static str>, InferenceError> {
        if self.tokens.languages().next().is_none() {
            return Ok(None);
        }
        let scores = self.step(heard, &mut self.begin(), &[self.tokens.start()])?;
        let languages = self.tokens.languages();
        let likeliest =
            languages.max_by(|(_, one), (_, other)| scores[*one].total_cmp(&scores[*other]));
        Ok(likeliest.map(|(code, _)| code))
    }

    fn hear(&self, samples: &[f32], is_wanted: &dyn Fn() -> bool) -> Result<Heard, InferenceError> {
        if samples.len() > MAX_SECONDS * SAMPLE_RATE {
            let message = format!("an utterance has {MAX_SECONDS} seconds at most");
            return Err(InferenceError::TooLong(message));
        }
        if !is_wanted() {
            return Err(InferenceError::Cancelled);
        }
        let length = (samples.len() + PADDING).next_multiple_of(POSITION);
        let length = length.min(MAX_SECONDS * SAMPLE_RATE);
        let mut padded = samples.to_vec();
        padded.resize(length, 0.0);
        let mel = self.filter.spectrogram(&padded, Some(LOUDEST))?;
        let positions = mel.frames / 2;
        let (silence, bias) = self.silence.after(positions);
        let shape = [1, mel.bands, mel.frames];
        let mut inputs = vec![
            ("mel", Input::Floats(&shape, &mel.data)),
            ("bias", bias.input()),
        ];
        inputs.extend(silence.iter().map(|(name, values)| (*name, values.input())));
        let outputs: Vec<&str> = self.names.cross.iter().map(String::as_str).collect();
        let cross = self.encoder.run(&inputs, &outputs)?;
        Ok(Heard { cross, bias })
    }

    fn begin(&self) -> State {
        let Dimensions { heads, decoder, .. } = self.dimensions;
        let none = Floats::zeros(&[1, heads, 0, self.dimensions.head_width()]);
        State {
            past: vec![none; 2 * decoder],
            length: 0,
        }
    }

    /// Says these tokens; gives, for each of them, the scores of what follows.
    fn step(
        &self,
        heard: &Heard,
        state: &mut State,
        tokens: &[usize],
    ) -> Result<Vec<f32>, InferenceError> {
        let (new, said) = (tokens.len(), state.length + tokens.len());
        let width = self.dimensions.width;
        let mut embedded = Vec::with_capacity(new * width);
        for (position, token) in (state.length..).zip(tokens) {
            let token = self.embeddings.get(token * width..(token + 1) * width);
            let position = self.positions.get(position * width..(position + 1) * width);
            let (Some(token), Some(position)) = (token, position) else {
                return Err(InferenceError::Failed(
                    "no such token or position".to_owned(),
                ));
            };
            embedded.extend(token.iter().zip(position).map(|(a, b)| a.to_f32() + b));
        }
        // A token knows of those before it.
        let mut mask = vec![0.0; new * said];
        for row in 0..new {
            mask[row * said + state.length + row + 1..(row + 1) * said].fill(f32::MIN);
        }
        let (shape, mask_shape) = ([1, new, width], [new, said]);
        let mut inputs = vec![
            ("tokens", Input::Floats(&shape, &embedded)),
            ("mask", Input::Floats(&mask_shape, &mask)),
            ("bias", heard.bias.input()),
        ];
        inputs.extend(pairs(&self.names.cross, &heard.cross));
        inputs.extend(pairs(&self.names.past, &state.past));
        let outputs: Vec<&str> = std::iter::once("scores")
            .chain(self.names.kept.iter().map(String::as_str))
            .collect();
        let mut values = self.decoder.run(&inputs, &outputs)?;
        let past = values.split_off(1);
        let scores = values.pop().map(|scores| scores.data).unwrap_or_default();
        if scores.len() != new * self.dimensions.vocabulary {
            return Err(InferenceError::Failed("scores are missing".to_owned()));
        }
        *state = State { past, length: said };
        Ok(scores)
    }
}

fn pairs<'a>(
    names: &'a [String],
    values: &'a [Floats],
) -> impl Iterator<Item = (&'a str, Input<'a>)> {
    names
        .iter()
        .map(String::as_str)
        .zip(values.iter().map(Floats::input))
}

fn likeliest(scores: &[f32]) -> usize {
    let scores = scores.iter().enumerate();
    scores
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(0, |(token, _)| token)
}

/// The probability of a token among all.
fn probability(scores: &[f32], token: usize) -> f32 {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let all: f32 = scores.iter().map(|score| (score - most).exp()).sum();
    scores
        .get(token)
        .map_or(0.0, |score| (score - most).exp() / all)
}

/// How many times smaller zlib makes a text.
fn compression(text: &[u8]) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(text).and_then(|()| encoder.finish());
    compressed.map_or(1.0, |compressed| {
        text.len() as f32 / compressed.len().max(1) as f32
    })
}
