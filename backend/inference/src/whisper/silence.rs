//! The silence after an utterance, as Whisper's encoder hears it.
//!
//! It is heard once, over all thirty seconds. Of each layer, keys and values are kept at every eighth position; what stands
//! for eight positions has to weigh as much as eight, so ln 8 is added to its scores.

use super::dimensions::Dimensions;
use crate::{
    InferenceError, mel,
    runtime::{Floats, Input, Network},
};

/// Positions of thirty seconds.
pub(super) const POSITIONS: usize = 1_500;

/// Positions that one stands for.
const STRIDE: usize = 8;

/// Those that are kept: in the middle of those that they stand for.
const KEPT: usize = POSITIONS / STRIDE;

/// Keys or values of a layer at the positions that are kept.
#[derive(Debug)]
struct Part {
    /// The input that takes it.
    name: String,
    /// Whether positions are in the last dimension, as in keys, which are transposed.
    is_transposed: bool,
    values: Floats,
}

/// What is kept of silence.
#[derive(Debug)]
pub(super) struct Silence {
    parts: Vec<Part>,
}

impl Silence {
    /// Lets the encoder hear nothing.
    pub(super) fn listen(
        encoder: &dyn Network,
        dimensions: Dimensions,
        loudest: f32,
    ) -> Result<Self, InferenceError> {
        let Dimensions { heads, bands, .. } = dimensions;
        let width = dimensions.head_width();
        let frames = vec![mel::silence(loudest); bands * 2 * POSITIONS];
        let shape = [1, bands, 2 * POSITIONS];
        let bias = Floats::zeros(&[1, POSITIONS]);
        // Nothing follows it.
        let no_keys = Floats::zeros(&[1, heads, width, 0]);
        let no_values = Floats::zeros(&[1, heads, 0, width]);
        // What the encoder gives, and which of its inputs takes that.
        let own = layers(dimensions.encoder, "own", "silence");
        let cross = layers(dimensions.decoder, "cross", "silence_cross");
        let names: Vec<_> = own.chain(cross).collect();
        let mut inputs = vec![
            ("mel", Input::Floats(&shape, &frames)),
            ("bias", bias.input()),
        ];
        inputs.extend(names.iter().map(|(_, input, is_transposed)| {
            let nothing = if *is_transposed { &no_keys } else { &no_values };
            (input.as_str(), nothing.input())
        }));
        let outputs: Vec<_> = names.iter().map(|(output, ..)| output.as_str()).collect();
        let heard = encoder.run(&inputs, &outputs)?;
        let parts = names
            .into_iter()
            .zip(heard)
            .map(|((_, name, is_transposed), heard)| {
                Ok(Part {
                    values: thinned(&heard, is_transposed)?,
                    name,
                    is_transposed,
                })
            });
        Ok(Self {
            parts: parts.collect::<Result<_, InferenceError>>()?,
        })
    }

    /// The silence after so many positions, by the names of the encoder's inputs; and what is added to the scores of all
    /// positions.
    pub(super) fn after(&self, positions: usize) -> (Vec<(&str, Floats)>, Floats) {
        let first = positions.div_ceil(STRIDE).min(KEPT);
        let parts = self.parts.iter();
        let rest = parts
            .map(|part| (part.name.as_str(), part.from(first)))
            .collect();
        let mut bias = Floats::zeros(&[1, positions + KEPT - first]);
        bias.data[positions..].fill((STRIDE as f32).ln());
        (rest, bias)
    }
}

/// For each layer keys and values: the output, the input, and whether they are transposed.
fn layers(
    count: usize,
    output: &'static str,
    input: &'static str,
) -> impl Iterator<Item = (String, String, bool)> {
    (0..count).flat_map(move |layer| {
        [("keys", true), ("values", false)].map(|(what, is_transposed)| {
            (
                format!("{output}_{what}_{layer}"),
                format!("{input}_{what}_{layer}"),
                is_transposed,
            )
        })
    })
}

/// The positions that are kept.
fn thinned(all: &Floats, is_transposed: bool) -> Result<Floats, InferenceError> {
    let &[one, heads, second, third] = all.shape.as_slice() else {
        return Err(InferenceError::Failed(
            "silence has another shape".to_owned(),
        ));
    };
    let (positions, width) = if is_transposed {
        (third, second)
    } else {
        (second, third)
    };
    if (one, positions) != (1, POSITIONS) || all.data.len() != heads * positions * width {
        return Err(InferenceError::Failed(
            "silence has another length".to_owned(),
        ));
    }
    let kept = || (0..KEPT).map(|index| index * STRIDE + STRIDE / 2);
    let mut data = Vec::with_capacity(heads * KEPT * width);
    if is_transposed {
        for row in all.data.chunks_exact(positions) {
            data.extend(kept().map(|position| row[position]));
        }
    } else {
        for head in all.data.chunks_exact(positions * width) {
            for position in kept() {
                data.extend_from_slice(&head[position * width..(position + 1) * width]);
            }
        }
    }
    let shape = if is_transposed {
        [1, heads, width, KEPT]
    } else {
        [1, heads, KEPT, width]
    };
    Ok(Floats {
        shape: shape.to_vec(),
        data,
    })
}

impl Part {
    /// From this one of the kept positions on.
    fn from(&self, first: usize) -> Floats {
        let mut shape = self.values.shape.clone();
        let data = &self.values.data;
        let (rows, row, skipped) = if self.is_transposed {
            (shape[1] * shape[2], KEPT, first)
        } else {
            (shape[1], KEPT * shape[3], first * shape[3])
        };
        let mut rest = Vec::with_capacity(rows * (row - skipped));
        for row in data.chunks_exact(row) {
            rest.extend_from_slice(&row[skipped..]);
        }
        shape[if self.is_transposed { 3 } else { 2 }] = KEPT - first;
        Floats { shape, data: rest }
    }
}
