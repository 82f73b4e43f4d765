//! The weights of a Whisper model in the format safetensors, as Hugging Face has them: the length of a header in eight bytes,
//! the header in JSON, which says of each tensor what it is of and where, and the numbers.
//!
//! What CTranslate2 has in one layer, queries, keys and values, is in several here, and keys have no bias.

use std::collections::HashMap;

use serde::{Deserialize, de::IgnoredAny};

use super::{Kind, MAX_RANK, Weights, malformed};
use crate::InferenceError;

/// Numbers of a head of attention, in every size of Whisper.
pub(super) const HEAD_WIDTH: usize = 64;

/// The longest header: several times that of the largest Whisper.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// What names begin with when the file holds more than the model alone.
const PREFIX: &str = "model.";

#[derive(Deserialize)]
struct Header<'file> {
    #[serde(rename = "__metadata__")]
    _metadata: Option<IgnoredAny>,
    #[serde(flatten, borrow)]
    tensors: HashMap<&'file str, Described<'file>>,
}

#[derive(Deserialize)]
struct Described<'file> {
    dtype: &'file str,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

#[derive(Debug)]
struct Tensor<'file> {
    shape: Vec<usize>,
    kind: Kind,
    bytes: &'file [u8],
}

/// The tensors of a file, by name.
#[derive(Debug)]
pub(super) struct Tensors<'file> {
    tensors: HashMap<&'file str, Tensor<'file>>,
}

/// Whether a file says that it is one of this format: its header is a JSON object.
pub(super) fn is_one(file: &[u8]) -> bool {
    file.get(8) == Some(&b'{')
}

impl<'file> Tensors<'file> {
    /// Reads a file. Tensors stand one after the other, and nothing is between them.
    pub(super) fn parse(file: &'file [u8]) -> Result<Self, InferenceError> {
        let (length, rest) = file
            .split_first_chunk()
            .ok_or_else(|| malformed("it ends too early"))?;
        let length = usize::try_from(u64::from_le_bytes(*length))
            .ok()
            .filter(|length| *length <= MAX_HEADER_BYTES)
            .ok_or_else(|| malformed("its header is too long"))?;
        let (header, data) = rest
            .split_at_checked(length)
            .ok_or_else(|| malformed("it ends too early"))?;
        let header: Header<'file> = serde_json::from_slice(header)
            .map_err(|error| malformed(format!("its header is not understood: {error}")))?;
        let mut ranges: Vec<_> = header
            .tensors
            .values()
            .map(|described| described.data_offsets)
            .collect();
        ranges.sort_unstable();
        let mut end = 0;
        for [from, to] in ranges {
            if from != end || to < from {
                return Err(malformed("its tensors overlap or leave something out"));
            }
            end = to;
        }
        if end != data.len() {
            return Err(malformed("its tensors are not all of it"));
        }
        let mut tensors = HashMap::new();
        for (name, described) in header.tensors {
            let [from, to] = described.data_offsets;
            let bytes = data.get(from..to);
            let bytes = bytes.ok_or_else(|| malformed("it ends too early"))?;
            if let Some(tensor) = described.tensor(name, bytes)? {
                tensors.insert(name, tensor);
            }
        }
        Ok(Self { tensors })
    }

    fn find(&self, name: &str) -> Option<&Tensor<'file>> {
        self.tensors
            .get(name)
            .or_else(|| self.tensors.get(name.strip_prefix(PREFIX)?))
    }

    fn tensor(&self, name: &str) -> Result<&Tensor<'file>, InferenceError> {
        self.find(name)
            .ok_or_else(|| malformed(format!("it has no {name}")))
    }

    /// The shape of weights with a name of CTranslate2.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, InferenceError> {
        let mut whole: Option<Vec<usize>> = None;
        for part in parts(name)? {
            let shape = match self.zeros(&part)? {
                Some(zeros) => vec![zeros],
                None => self.tensor(&part)?.shape.clone(),
            };
            match &mut whole {
                None => whole = Some(shape),
                Some(whole) => match (whole.split_first_mut(), shape.split_first()) {
                    (Some((rows, row)), Some((more, other))) if row == other => *rows += more,
                    _ => return Err(malformed(format!("{part} has another shape"))),
                },
            }
        }
        whole.ok_or_else(|| malformed(format!("it has no {name}")))
    }

    /// Weights with a name of CTranslate2.
    pub(super) fn get(&self, name: &str) -> Result<Weights, InferenceError> {
        let shape = self.shape(name)?;
        let mut values = Vec::new();
        for part in parts(name)? {
            match self.zeros(&part)? {
                Some(zeros) => values.resize(values.len() + zeros, 0.0),
                None => {
                    let Tensor { kind, bytes, .. } = self.tensor(&part)?;
                    let numbers = kind.floats(bytes);
                    let numbers =
                        numbers.ok_or_else(|| malformed(format!("{part} is of another kind")))?;
                    values.extend(numbers);
                }
            }
        }
        Ok(Weights { shape, values })
    }

    /// How many zeros stand for the bias of keys, which have none.
    fn zeros(&self, name: &str) -> Result<Option<usize>, InferenceError> {
        let keys = name
            .strip_suffix("k_proj.bias")
            .filter(|_| self.find(name).is_none());
        let Some(layer) = keys else {
            return Ok(None);
        };
        let weight = self.tensor(&format!("{layer}k_proj.weight"))?;
        Ok(Some(weight.shape.first().copied().unwrap_or(0)))
    }
}

impl Described<'_> {
    /// The tensor; none if it is of a kind that no weights of Whisper are.
    fn tensor<'file>(
        self,
        name: &str,
        bytes: &'file [u8],
    ) -> Result<Option<Tensor<'file>>, InferenceError> {
        if self.shape.len() > MAX_RANK {
            let rank = self.shape.len();
            return Err(malformed(format!("{name} has {rank} dimensions")));
        }
        let kind = match self.dtype {
            "F32" => Kind::F32,
            "F16" => Kind::F16,
            "BF16" => Kind::Bf16,
            _ => return Ok(None),
        };
        if kind.bytes_of(&self.shape) != Some(bytes.len()) {
            return Err(malformed(format!("{name} has another size than its shape")));
        }
        Ok(Some(Tensor {
            shape: self.shape,
            kind,
            bytes,
        }))
    }
}

/// The tensors that are, one after the other, what CTranslate2 calls by this name.
fn parts(name: &str) -> Result<Vec<String>, InferenceError> {
    let unknown = || malformed(format!("nothing is called {name}"));
    let (part, rest) = name.split_once('/').ok_or_else(unknown)?;
    let whole = match rest {
        "conv1/weight" | "conv1/bias" | "conv2/weight" | "conv2/bias" => {
            Some(rest.replace('/', "."))
        }
        "position_encodings/encodings" => Some("embed_positions.weight".to_owned()),
        "embeddings/weight" => Some("embed_tokens.weight".to_owned()),
        "layer_norm/gamma" => Some("layer_norm.weight".to_owned()),
        "layer_norm/beta" => Some("layer_norm.bias".to_owned()),
        _ => None,
    };
    if let Some(whole) = whole {
        return Ok(vec![format!("{PREFIX}{part}.{whole}")]);
    }
    let layer = rest.strip_prefix("layer_").ok_or_else(unknown)?;
    let (layer, rest) = layer.split_once('/').ok_or_else(unknown)?;
    let (rest, what) = rest.rsplit_once('/').ok_or_else(unknown)?;
    let what = match what {
        "gamma" => "weight",
        "beta" => "bias",
        other => other,
    };
    let names: &[&str] = match rest {
        "self_attention/layer_norm" => &["self_attn_layer_norm"],
        "self_attention/linear_0" => &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "self_attention/linear_1" => &["self_attn.out_proj"],
        "attention/layer_norm" => &["encoder_attn_layer_norm"],
        "attention/linear_0" => &["encoder_attn.q_proj"],
        "attention/linear_1" => &["encoder_attn.k_proj", "encoder_attn.v_proj"],
        "attention/linear_2" => &["encoder_attn.out_proj"],
        "ffn/layer_norm" => &["final_layer_norm"],
        "ffn/linear_0" => &["fc1"],
        "ffn/linear_1" => &["fc2"],
        _ => return Err(unknown()),
    };
    let names = names.iter();
    Ok(names
        .map(|name| format!("{PREFIX}{part}.layers.{layer}.{name}.{what}"))
        .collect())
}

#[cfg(test)]
#[path = "safetensors_tests.rs"]
mod tests;
