//! MiniLM: texts as vectors. Texts that mean the same have vectors in the same direction, so that passages which answer a
//! question are found in other words than its own.
//!
//! The model gives a vector for each token. That of a text is their mean, made one long, so that the cosine of two texts is the
//! product of their vectors. Texts are computed several at a time, those of about the same length together; what fills up the
//! shorter ones is masked, so that a text has the same vector in any company.

mod letters;
mod quantised;
mod wordpiece;

use wordpiece::WordPiece;

use crate::{
    InferenceError,
    runtime::{Floats, Input, Network, Runtime},
};

/// The numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// The most tokens of a text that count in its vector; what follows is not read.
pub const MAX_TOKENS: usize = SEQUENCE - 2;

/// The tokens that the network is given of a text, with both of its ends. It was trained with no more than that.
const SEQUENCE: usize = 256;

/// Tokens that are computed at a time, what fills up shorter texts included. It bounds the memory that the network takes; more are
/// not faster.
const BATCH_TOKENS: usize = 512;

/// The network's names of what it is given, and of what it gives.
const TOKENS: &str = "input_ids";
const MASK: &str = "attention_mask";
const KINDS: &str = "token_type_ids";
const STATES: &str = "last_hidden_state";

/// The vector of a text: its length is 1.
pub type Embedding = [f32; DIMENSIONS];

/// A model that was loaded. Any number of threads may ask it at a time.
#[derive(Debug)]
pub struct MiniLm {
    network: Box<dyn Network>,
    tokenizer: WordPiece,
}

impl MiniLm {
    /// Loads the model from its ONNX file and its `tokenizer.json`.
    ///
    /// # Errors
    /// When one of them is malformed, or they do not fit each other.
    pub fn load(
        runtime: &dyn Runtime,
        model: Vec<u8>,
        tokenizer: &[u8],
    ) -> Result<Self, InferenceError> {
        let loaded = Self {
            tokenizer: WordPiece::parse(tokenizer)?,
            network: runtime.load(quantised::quantised(model)?)?,
        };
        loaded.check()?;
        Ok(loaded)
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// Finds out whether the network knows all tokens, and gives vectors as it should.
    fn check(&self) -> Result<(), InferenceError> {
        let last = self.tokenizer.vocabulary().saturating_sub(1);
        let last = i32::try_from(last).unwrap_or(i32::MAX);
        let (long, short, shorter) = (vec![last; SEQUENCE], vec![last; 3], vec![last; 2]);
        let alone = self.batch(&[&long]);
        let checked = alone.and_then(|_| self.batch(&[&short, &shorter]));
        checked.map_err(|error| match error {
            InferenceError::Failed(message) => InferenceError::Malformed(message),
            other => other,
        })?;
        Ok(())
    }

    /// How many tokens a text has, of which [`MAX_TOKENS`] count.
    #[must_use]
    pub fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer.count(text)
    }

    /// The vectors of texts, in their order. A text without any token has a vector, too, which means nothing. `is_wanted` is asked
    /// again and again; once it says no, this ends.
    ///
    /// # Errors
    /// [`InferenceError::Cancelled`]; when the model fails.
    pub fn embed(
        &self,
        texts: &[&str],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<Embedding>, InferenceError> {
        let mut tokens = Vec::with_capacity(texts.len());
        for text in texts {
            wanted(is_wanted)?;
            tokens.push(self.tokenizer.tokens(text, MAX_TOKENS));
        }
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(tokens[*index].len()));
        let mut embeddings = vec![[0.0; DIMENSIONS]; texts.len()];
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            wanted(is_wanted)?;
            let (these, others) = rest.split_at(batch_size(rest, &tokens));
            let batch: Vec<_> = these
                .iter()
                .map(|index| tokens[*index].as_slice())
                .collect();
            for (index, embedding) in these.iter().zip(self.batch(&batch)?) {
                embeddings[*index] = embedding;
            }
            rest = others;
        }
        Ok(embeddings)
    }

    /// The vectors of tokens of texts, which are computed together.
    fn batch(&self, texts: &[&[i32]]) -> Result<Vec<Embedding>, InferenceError> {
        let longest = texts.iter().map(|tokens| tokens.len()).max().unwrap_or(0);
        let shape = [texts.len(), longest];
        let mut tokens = vec![self.tokenizer.padding(); texts.len() * longest];
        let mut mask = vec![0; tokens.len()];
        for (index, text) in texts.iter().enumerate() {
            let places = index * longest..index * longest + text.len();
            tokens[places.clone()].copy_from_slice(text);
            mask[places].fill(1);
        }
        let kinds = vec![0; tokens.len()];
        let inputs = [
            (TOKENS, Input::Ints(&shape, &tokens)),
            (MASK, Input::Ints(&shape, &mask)),
            (KINDS, Input::Ints(&shape, &kinds)),
        ];
        let states = self.network.run(&inputs, &[STATES])?.pop();
        let states = states.filter(|states| states.shape == [texts.len(), longest, DIMENSIONS]);
        let Some(Floats { data, .. }) = states else {
            return Err(InferenceError::Failed(
                "its vectors have another shape".to_owned(),
            ));
        };
        let (vectors, _) = data.as_chunks::<DIMENSIONS>();
        texts
            .iter()
            .zip(vectors.chunks(longest.max(1)))
            .map(|(text, vectors)| mean(&vectors[..text.len()]))
            .collect()
    }
}

/// How many of these texts, the longest of which is the first, are computed together.
fn batch_size(order: &[usize], tokens: &[Vec<i32>]) -> usize {
    let Some(first) = order.first() else {
        return 0;
    };
    let longest = tokens[*first].len();
    let most = (BATCH_TOKENS / longest.max(1)).clamp(1, order.len());
    // An eighth may be filled up.
    order[..most].partition_point(|index| tokens[*index].len() * 8 >= longest * 7)
}

/// The direction of the mean of vectors.
fn mean(vectors: &[[f32; DIMENSIONS]]) -> Result<Embedding, InferenceError> {
    let mut sum = [0.0; DIMENSIONS];
    for vector in vectors {
        for (sum, number) in sum.iter_mut().zip(vector) {
            *sum += number;
        }
    }
    let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_normal() {
        let message = "a vector has no direction".to_owned();
        return Err(InferenceError::Failed(message));
    }
    Ok(sum.map(|number| number / length))
}

fn wanted(is_wanted: &dyn Fn() -> bool) -> Result<(), InferenceError> {
    match is_wanted() {
        true => Ok(()),
        false => Err(InferenceError::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_about_the_same_length_are_computed_together() {
        let sizes = |lengths: &[usize]| {
            let tokens: Vec<_> = lengths.iter().map(|length| vec![0; *length]).collect();
            let order: Vec<_> = (0..lengths.len()).collect();
            let (mut rest, mut sizes) = (order.as_slice(), Vec::new());
            while !rest.is_empty() {
                sizes.push(batch_size(rest, &tokens));
                rest = &rest[batch_size(rest, &tokens)..];
            }
            sizes
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[256; 10]), [BATCH_TOKENS / 256; 5]);
        assert_eq!(sizes(&[256, 224, 223, 8, 7, 6, 2]), [2, 1, 2, 1, 1]);
        assert_eq!(sizes(&[BATCH_TOKENS + 1, 2]), [1, 1]);
    }

    #[test]
    fn means_have_the_length_of_one_and_those_without_direction_are_errors() {
        let vector = |number: f32| [number; DIMENSIONS];
        let found = mean(&[vector(1.0), vector(3.0)]).unwrap();
        assert!(
            found
                .iter()
                .all(|number| (number * number * 384.0 - 1.0).abs() < 1e-5)
        );
        for wrong in [
            vec![],
            vec![vector(0.0)],
            vec![vector(f32::NAN)],
            vec![vector(f32::MAX)],
        ] {
            assert!(mean(&wrong).is_err());
        }
    }
}
