//! The sizes of a Whisper model, and whether all of its weights have the shapes that follow from them.

use crate::InferenceError;

use super::{MAX_TOKENS, silence::POSITIONS, tokens::LONGEST_PROMPT, weights::WeightsFile};

/// The most layers, heads, tokens or numbers of a position: more than the largest Whisper has.
const LARGEST: usize = 60_000;

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimensions {
    /// Numbers of a position.
    pub(super) width: usize,
    /// Heads of attention.
    pub(super) heads: usize,
    /// Layers of the encoder.
    pub(super) encoder: usize,
    /// Layers of the decoder.
    pub(super) decoder: usize,
    /// Tokens.
    pub(super) vocabulary: usize,
    /// Bands of the spectrogram.
    pub(super) bands: usize,
}

impl Dimensions {
    /// Those of a file, all of whose weights fit.
    pub(super) fn of(weights: &WeightsFile<'_>) -> Result<Self, InferenceError> {
        let layers = |part: &str| {
            (0..LARGEST)
                .take_while(|layer| {
                    weights.has(&format!("{part}/layer_{layer}/ffn/linear_0/weight"))
                })
                .count()
        };
        let embeddings = weights.shape("decoder/embeddings/weight")?;
        let filter = weights.shape("encoder/conv1/weight")?;
        let (&[vocabulary, width], &[_, bands, _]) = (embeddings.as_slice(), filter.as_slice())
        else {
            let message = "the embeddings or the first filter have other dimensions";
            return Err(InferenceError::Malformed(message.to_owned()));
        };
        let dimensions = Self {
            width,
            heads: weights.heads(width)?,
            encoder: layers("encoder"),
            decoder: layers("decoder"),
            vocabulary,
            bands,
        };
        let Self {
            heads,
            encoder,
            decoder,
            ..
        } = dimensions;
        let sizes = [width, heads, encoder, decoder, vocabulary, bands];
        let fits = sizes.iter().all(|size| (1..=LARGEST).contains(size));
        if !fits || !width.is_multiple_of(heads) {
            let message = format!("its sizes do not fit together: {dimensions:?}");
            return Err(InferenceError::Malformed(message));
        }
        dimensions.check(weights)?;
        Ok(dimensions)
    }

    /// Numbers of a position for each head.
    pub(super) fn head_width(&self) -> usize {
        self.width / self.heads
    }

    fn check(&self, weights: &WeightsFile<'_>) -> Result<(), InferenceError> {
        let mut shapes = Shapes {
            weights,
            numbers: 0,
        };
        let Self { width, bands, .. } = *self;
        shapes.layer("encoder/conv1", &[width, bands, 3])?;
        shapes.layer("encoder/conv2", &[width, width, 3])?;
        shapes.is("encoder/position_encodings/encodings", &[POSITIONS, width])?;
        let positions = shapes.rows("decoder/position_encodings/encodings", width)?;
        if positions < LONGEST_PROMPT + MAX_TOKENS {
            let message = format!("its texts have {positions} tokens at most");
            return Err(InferenceError::Malformed(message));
        }
        shapes.is("decoder/embeddings/weight", &[self.vocabulary, width])?;
        for (part, layers) in [("encoder", self.encoder), ("decoder", self.decoder)] {
            shapes.norm(&format!("{part}/layer_norm"), width)?;
            for layer in 0..layers {
                let name = |what: &str| format!("{part}/layer_{layer}/{what}");
                shapes.norm(&name("self_attention/layer_norm"), width)?;
                shapes.layer(&name("self_attention/linear_0"), &[3 * width, width])?;
                shapes.layer(&name("self_attention/linear_1"), &[width, width])?;
                if part == "decoder" {
                    shapes.norm(&name("attention/layer_norm"), width)?;
                    shapes.layer(&name("attention/linear_0"), &[width, width])?;
                    shapes.layer(&name("attention/linear_1"), &[2 * width, width])?;
                    shapes.layer(&name("attention/linear_2"), &[width, width])?;
                }
                shapes.norm(&name("ffn/layer_norm"), width)?;
                let inner = shapes.rows(&name("ffn/linear_0/weight"), width)?;
                shapes.layer(&name("ffn/linear_0"), &[inner, width])?;
                shapes.layer(&name("ffn/linear_1"), &[width, inner])?;
            }
        }
        Ok(())
    }
}

/// Asks for shapes, and counts the numbers: with other names for the same weights, a small file could be a large network.
struct Shapes<'a> {
    weights: &'a WeightsFile<'a>,
    numbers: usize,
}

impl Shapes<'_> {
    fn is(&mut self, name: &str, shape: &[usize]) -> Result<(), InferenceError> {
        let found = self.weights.shape(name)?;
        if found != shape {
            let message = format!("{name} is {found:?} instead of {shape:?}");
            return Err(InferenceError::Malformed(message));
        }
        self.numbers += shape.iter().product::<usize>();
        if self.numbers > self.weights.bytes() {
            let message = "it has more weights than bytes".to_owned();
            return Err(InferenceError::Malformed(message));
        }
        Ok(())
    }

    /// A layer: weights of this shape, and a bias for each of its rows.
    fn layer(&mut self, name: &str, shape: &[usize]) -> Result<(), InferenceError> {
        self.is(&format!("{name}/weight"), shape)?;
        self.is(&format!("{name}/bias"), &shape[..1])
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<(), InferenceError> {
        self.is(&format!("{name}/gamma"), &[width])?;
        self.is(&format!("{name}/beta"), &[width])
    }

    /// How many rows of this width it has.
    fn rows(&self, name: &str, width: usize) -> Result<usize, InferenceError> {
        match self.weights.shape(name)?.as_slice() {
            &[rows, columns] if columns == width && (1..=LARGEST).contains(&rows) => Ok(rows),
            other => Err(InferenceError::Malformed(format!(
                "{name} is {other:?} instead of rows of {width}"
            ))),
        }
    }
}

#[cfg(test)]
#[path = "dimensions_tests.rs"]
mod tests;
