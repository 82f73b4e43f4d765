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

/// The version of [`Silence::bytes`]. Another one is due whenever the same model gives other numbers, too: when the network, the
/// loudness of utterances or the positions that are kept change.
pub const SILENCE_VERSION: u32 = 1;

/// Bytes of a number.
const NUMBER_BYTES: usize = size_of::<f32>();

/// Keeps what a model heard of silence, which takes more memory to compute than all else, from one load to the next. Where it
/// is kept has to tell models and the values of [`SILENCE_VERSION`] apart.
pub trait SilenceCache {
    /// What was written, if it has exactly so many bytes and is undamaged.
    fn read(&self, bytes: usize) -> Option<Vec<u8>>;

    /// Keeps it. Whether that goes well is not the model's business.
    fn write(&self, contents: &[u8]);
}

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
    /// How many bytes of memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| size_of_val(&*part.values.data)).sum()
    }

    /// That of the cache if it is there, else what the encoder hears.
    pub(super) fn cached_or_heard(
        encoder: &dyn Network,
        dimensions: Dimensions,
        loudest: f32,
        cache: Option<&dyn SilenceCache>,
    ) -> Result<Self, InferenceError> {
        let cached = cache.and_then(|cache| cache.read(bytes(dimensions)));
        if let Some(silence) = cached.and_then(|bytes| Self::from_bytes(dimensions, &bytes)) {
            return Ok(silence);
        }
        let heard = Self::listen(encoder, dimensions, loudest)?;
        if let Some(cache) = cache {
            cache.write(&heard.bytes());
        }
        Ok(heard)
    }

    /// All numbers of all parts.
    fn bytes(&self) -> Vec<u8> {
        let numbers = self.parts.iter().flat_map(|part| &part.values.data);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// What [`Self::bytes`] gave for a model of these dimensions; `None` when it is anything else.
    fn from_bytes(dimensions: Dimensions, contents: &[u8]) -> Option<Self> {
        let part = numbers_of_part(dimensions);
        let (numbers, rest) = contents.as_chunks::<NUMBER_BYTES>();
        let names: Vec<_> = names(dimensions).collect();
        if !rest.is_empty() || numbers.len() != part * names.len() {
            return None;
        }
        let parts = names.into_iter().zip(numbers.chunks_exact(part));
        let parts = parts.map(|((_, name, is_transposed), numbers)| {
            let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
            let data: Vec<_> = numbers.collect();
            let values = Floats {
                shape: kept_shape(dimensions.heads, dimensions.head_width(), is_transposed),
                data,
            };
            let is_sound = values.data.iter().all(|number| number.is_finite());
            is_sound.then_some(Part {
                name,
                is_transposed,
                values,
            })
        });
        Some(Self {
            parts: parts.collect::<Option<_>>()?,
        })
    }

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
        let names: Vec<_> = names(dimensions).collect();
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

/// What the encoder gives, which of its inputs takes that, and whether it is transposed.
fn names(dimensions: Dimensions) -> impl Iterator<Item = (String, String, bool)> {
    let own = layers(dimensions.encoder, "own", "silence");
    own.chain(layers(dimensions.decoder, "cross", "silence_cross"))
}

/// How many numbers the keys or the values of a layer have.
fn numbers_of_part(dimensions: Dimensions) -> usize {
    dimensions.width * KEPT
}

/// How many bytes [`Silence::bytes`] gives: 28 MB for the largest model whose time stamps are known, 4.6 MB for `tiny`.
fn bytes(dimensions: Dimensions) -> usize {
    let parts = 2 * (dimensions.encoder + dimensions.decoder);
    numbers_of_part(dimensions) * parts * NUMBER_BYTES
}

/// The shape of keys or values of a layer at the positions that are kept.
fn kept_shape(heads: usize, width: usize, is_transposed: bool) -> Vec<usize> {
    match is_transposed {
        true => vec![1, heads, width, KEPT],
        false => vec![1, heads, KEPT, width],
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
    Ok(Floats {
        shape: kept_shape(heads, width, is_transposed),
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
