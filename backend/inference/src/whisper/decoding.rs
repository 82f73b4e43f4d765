//! Hearing an utterance, and saying what was heard, token by token.

use super::{
    LOUDEST, MAX_SECONDS, MAX_TOKENS, PADDING, POSITION, Whisper, alignment::Queries,
    dimensions::Dimensions, tokens::LONGEST_PROMPT,
};
use crate::{
    InferenceError,
    mel::SAMPLE_RATE,
    runtime::{Floats, Input},
};

/// The most tokens of a second, and those that any utterance may have beside.
const TOKENS_A_SECOND: usize = 8;
const TOKENS: usize = 8;

/// The most tokens of words that are expected.
const MOST_EXPECTED: usize = 200;

/// An utterance that the encoder has heard: for each layer of the decoder, keys and values.
pub(super) struct Heard {
    pub(super) cross: Vec<Floats>,
    bias: Floats,
}

/// The most tokens that an utterance may have.
pub(super) fn most_tokens(samples: &[f32]) -> usize {
    let most = samples.len() * TOKENS_A_SECOND / SAMPLE_RATE + TOKENS;
    most.min(MAX_TOKENS)
}

/// What a text has so far.
pub(super) struct State {
    past: Vec<Floats>,
    length: usize,
    /// What its tokens ask of the utterance, where somebody wants to know.
    pub(super) queries: Option<Queries>,
}

/// The tokens of an utterance.
pub(super) struct Decoded {
    pub(super) tokens: Vec<usize>,
    pub(super) probabilities: Vec<f32>,
    pub(super) no_speech: f32,
    pub(super) is_cut: bool,
}

impl Whisper {
    /// Lets the encoder hear an utterance.
    pub(super) fn hear(
        &self,
        samples: &[f32],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Heard, InferenceError> {
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

    /// A text without tokens.
    pub(super) fn begin(&self) -> State {
        let Dimensions { heads, decoder, .. } = self.dimensions;
        let none = Floats::zeros(&[1, heads, 0, self.dimensions.head_width()]);
        State {
            past: vec![none; 2 * decoder],
            length: 0,
            queries: None,
        }
    }

    /// A text without tokens, of which it is kept what they ask of the utterance.
    pub(super) fn begin_with_queries(&self) -> State {
        State {
            queries: Some(vec![Vec::new(); self.dimensions.decoder]),
            ..self.begin()
        }
    }

    /// Says what was heard in this language, in so many tokens at most. Words that are `expected` become likelier.
    pub(super) fn say(
        &self,
        heard: &Heard,
        state: &mut State,
        language: &str,
        expected: &str,
        most: usize,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Decoded, InferenceError> {
        let begin = self.tokens.prompt(language).ok_or_else(|| {
            InferenceError::Failed(format!("the model does not know the language {language}"))
        })?;
        let mut prompt = self.expected(expected);
        let first = prompt.len();
        prompt.extend(begin);
        let scores = self.step(heard, state, &prompt)?;
        // The first of the tokens of the text is asked what it thinks of a sound without speech, and the last one what follows.
        let vocabulary = self.dimensions.vocabulary;
        let first = &scores[first * vocabulary..(first + 1) * vocabulary];
        let no_speech = probability(first, self.tokens.no_speech());
        let mut next = scores[scores.len() - vocabulary..].to_vec();
        let (mut tokens, mut probabilities) = (Vec::new(), Vec::new());
        while tokens.len() < most {
            if !is_wanted() {
                return Err(InferenceError::Cancelled);
            }
            self.tokens.suppress(&mut next, tokens.is_empty());
            let token = likeliest(&next);
            if token == self.tokens.end {
                break;
            }
            probabilities.push(probability(&next, token));
            tokens.push(token);
            next = self.step(heard, state, &[token])?;
        }
        Ok(Decoded {
            is_cut: tokens.len() == most,
            tokens,
            probabilities,
            no_speech,
        })
    }

    /// The tokens of words that are expected, as if they had been said before; none for no words.
    fn expected(&self, words: &str) -> Vec<usize> {
        let words = words.trim();
        if words.is_empty() {
            return Vec::new();
        }
        let mut tokens = vec![self.tokens.previous()];
        tokens.extend(self.vocabulary.tokens(&format!(" {words}")));
        // The text itself has its positions after them.
        let positions = self.positions.len() / self.dimensions.width.max(1);
        let room = positions.saturating_sub(LONGEST_PROMPT + MAX_TOKENS);
        tokens.truncate(room.min(MOST_EXPECTED));
        tokens
    }

    /// Says these tokens; gives, for each of them, the scores of what follows.
    pub(super) fn step(
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
        let asked = match state.queries {
            Some(_) => self.names.queries.as_slice(),
            None => &[],
        };
        let outputs: Vec<&str> = std::iter::once("scores")
            .chain(self.names.kept.iter().map(String::as_str))
            .chain(asked.iter().map(String::as_str))
            .collect();
        let mut values = self.decoder.run(&inputs, &outputs)?;
        let queries = values.split_off(1 + self.names.kept.len());
        let past = values.split_off(1);
        let scores = values.pop().map(|scores| scores.data).unwrap_or_default();
        if scores.len() != new * self.dimensions.vocabulary {
            return Err(InferenceError::Failed("scores are missing".to_owned()));
        }
        (state.past, state.length) = (past, said);
        let layers = state.queries.iter_mut().flatten();
        for (layer, queries) in layers.zip(queries) {
            layer.extend(queries.data);
        }
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
