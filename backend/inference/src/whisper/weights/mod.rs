//! The weights of a Whisper model, out of a file of CTranslate2 or of one in the format safetensors with the names of Hugging
//! Face. Which of them a file is, its content says. Weights have the names of CTranslate2 for both.

mod ctranslate2;
mod safetensors;

use half::{bf16, f16, slice::HalfFloatSliceExt as _};

use self::{ctranslate2::Variables, safetensors::Tensors};
use crate::InferenceError;

/// The most dimensions of weights.
const MAX_RANK: usize = 4;
/// How many numbers of 16 bits are converted at once.
const AT_ONCE: usize = 4_096;

/// How numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    I8,
    I16,
    I32,
    F16,
    Bf16,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    /// The bytes of numbers of this shape; none when there are more than can be counted.
    fn bytes_of(self, shape: &[usize]) -> Option<usize> {
        let mut sizes = shape.iter();
        sizes.try_fold(self.bytes(), |bytes, size| bytes.checked_mul(*size))
    }

    /// Numbers with a point; none when they are whole numbers.
    fn floats(self, bytes: &[u8]) -> Option<Vec<f32>> {
        let pairs = bytes.as_chunks::<2>().0;
        match self {
            Self::F32 => {
                let (numbers, _) = bytes.as_chunks::<4>();
                let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
                Some(numbers.collect())
            }
            Self::F16 => {
                let mut floats = vec![0.0; pairs.len()];
                // Several at once, where the processor can.
                let mut numbers = [f16::ZERO; AT_ONCE];
                for (pairs, floats) in pairs.chunks(AT_ONCE).zip(floats.chunks_mut(AT_ONCE)) {
                    let numbers = &mut numbers[..pairs.len()];
                    for (number, bytes) in numbers.iter_mut().zip(pairs) {
                        *number = f16::from_le_bytes(*bytes);
                    }
                    numbers.convert_to_f32_slice(floats);
                }
                Some(floats)
            }
            Self::Bf16 => {
                let numbers = pairs
                    .iter()
                    .map(|bytes| bf16::from_le_bytes(*bytes).to_f32());
                Some(numbers.collect())
            }
            Self::I8 | Self::I16 | Self::I32 => None,
        }
    }
}

/// Numbers with a shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

/// A file with weights.
#[derive(Debug)]
pub(super) struct WeightsFile<'file> {
    format: Format<'file>,
    bytes: usize,
}

#[derive(Debug)]
enum Format<'file> {
    CTranslate2(Variables<'file>),
    Safetensors(Tensors<'file>),
}

impl<'file> WeightsFile<'file> {
    /// Reads a file.
    pub(super) fn parse(file: &'file [u8]) -> Result<Self, InferenceError> {
        let format = if safetensors::is_one(file) {
            Format::Safetensors(Tensors::parse(file)?)
        } else {
            Format::CTranslate2(Variables::parse(file)?)
        };
        Ok(Self {
            format,
            bytes: file.len(),
        })
    }

    /// The length of the file.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are such weights.
    pub(super) fn has(&self, name: &str) -> bool {
        self.shape(name).is_ok()
    }

    /// The shape of weights.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, InferenceError> {
        match &self.format {
            Format::CTranslate2(variables) => variables.shape(name).map(<[usize]>::to_vec),
            Format::Safetensors(tensors) => tensors.shape(name),
        }
    }

    /// Numbers with a point, whatever they are stored as.
    pub(super) fn get(&self, name: &str) -> Result<Weights, InferenceError> {
        match &self.format {
            Format::CTranslate2(variables) => variables.get(name),
            Format::Safetensors(tensors) => tensors.get(name),
        }
    }

    /// How many heads of attention the model has, with so many numbers of a position.
    pub(super) fn heads(&self, width: usize) -> Result<usize, InferenceError> {
        match &self.format {
            Format::CTranslate2(variables) => variables.int("encoder/num_heads"),
            // It is not in the file, but the same for every size of Whisper.
            Format::Safetensors(_) => Ok(width / safetensors::HEAD_WIDTH),
        }
    }
}

fn malformed(what: impl Into<String>) -> InferenceError {
    InferenceError::Malformed(what.into())
}
