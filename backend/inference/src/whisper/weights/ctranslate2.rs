//! The weights of a Whisper model in the format of CTranslate2: little-endian, nothing aligned, every part with its length
//! before it.

use std::collections::HashMap;

use super::{Kind, MAX_RANK, Weights, malformed};
use crate::InferenceError;

/// The versions of the file format that are read.
const VERSIONS: std::ops::RangeInclusive<u32> = 4..=6;

/// What the file says that it holds.
const WHISPER: &str = "WhisperSpec";

#[derive(Debug)]
struct Variable<'file> {
    shape: Vec<usize>,
    kind: Kind,
    bytes: &'file [u8],
}

/// The variables of a file, by name.
#[derive(Debug)]
pub(super) struct Variables<'file> {
    variables: HashMap<&'file str, Variable<'file>>,
    aliases: HashMap<&'file str, &'file str>,
}

impl<'file> Variables<'file> {
    /// Reads a file.
    pub(super) fn parse(file: &'file [u8]) -> Result<Self, InferenceError> {
        let mut reader = Reader { rest: file };
        let version = reader.u32()?;
        if !VERSIONS.contains(&version) {
            return Err(malformed(format!("its version is {version}")));
        }
        let holds = reader.text()?;
        if holds != WHISPER {
            return Err(malformed(format!("it holds {holds}")));
        }
        let _revision = reader.u32()?;
        let mut variables = HashMap::new();
        for _ in 0..reader.u32()? {
            let name = reader.text()?;
            variables.insert(name, reader.variable(name)?);
        }
        let mut aliases = HashMap::new();
        for _ in 0..reader.u32()? {
            aliases.insert(reader.text()?, reader.text()?);
        }
        if !reader.rest.is_empty() {
            return Err(malformed("something follows its end"));
        }
        Ok(Self { variables, aliases })
    }

    fn variable(&self, name: &str) -> Result<&Variable<'file>, InferenceError> {
        let name = self.aliases.get(name).copied().unwrap_or(name);
        let variable = self.variables.get(name);
        variable.ok_or_else(|| malformed(format!("it has no {name}")))
    }

    /// The shape of a variable.
    pub(super) fn shape(&self, name: &str) -> Result<&[usize], InferenceError> {
        Ok(&self.variable(name)?.shape)
    }

    /// A whole number.
    pub(super) fn int(&self, name: &str) -> Result<usize, InferenceError> {
        let variable = self.variable(name)?;
        let number = match (variable.kind, variable.bytes) {
            (Kind::I8, [byte]) => Some(i64::from(byte.cast_signed())),
            (Kind::I16, [a, b]) => Some(i64::from(i16::from_le_bytes([*a, *b]))),
            (Kind::I32, [a, b, c, d]) => Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
            _ => None,
        };
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| malformed(format!("{name} is no number")))
    }

    /// Numbers with a point, whatever they are stored as.
    pub(super) fn get(&self, name: &str) -> Result<Weights, InferenceError> {
        let variable = self.variable(name)?;
        let bytes = variable.bytes;
        let values = match variable.kind {
            // A row times its scale was rounded.
            Kind::I8 => {
                let scales = self.variable(&format!("{name}_scale"))?;
                let scales = scales.kind.floats(scales.bytes).unwrap_or_default();
                let row = variable.shape.iter().skip(1).product::<usize>().max(1);
                if scales.len() != bytes.len() / row {
                    return Err(malformed(format!("{name} has another number of scales")));
                }
                let rows = bytes.chunks_exact(row).zip(scales);
                rows.flat_map(|(row, scale)| {
                    row.iter()
                        .map(move |byte| f32::from(byte.cast_signed()) / scale)
                })
                .collect()
            }
            kind => kind
                .floats(bytes)
                .ok_or_else(|| malformed(format!("{name} is of whole numbers")))?,
        };
        Ok(Weights {
            shape: variable.shape.clone(),
            values,
        })
    }
}

/// How numbers are stored, by its code.
fn kind(code: u8) -> Option<Kind> {
    Some(match code {
        0 => Kind::F32,
        1 => Kind::I8,
        2 => Kind::I16,
        3 => Kind::I32,
        4 => Kind::F16,
        5 => Kind::Bf16,
        _ => return None,
    })
}

struct Reader<'file> {
    rest: &'file [u8],
}

impl<'file> Reader<'file> {
    fn take(&mut self, bytes: usize) -> Result<&'file [u8], InferenceError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or_else(|| malformed("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InferenceError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| malformed("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, InferenceError> {
        self.array().map(u32::from_le_bytes)
    }

    fn size(&mut self) -> Result<usize, InferenceError> {
        let size = self.u32()?;
        usize::try_from(size).map_err(|_| malformed("it is too large"))
    }

    /// A text with its length, which counts a zero at its end.
    fn text(&mut self) -> Result<&'file str, InferenceError> {
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(length.into())?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(bytes).map_err(|_| malformed("a name is not UTF-8"))
    }

    fn variable(&mut self, name: &str) -> Result<Variable<'file>, InferenceError> {
        let [rank] = self.array()?;
        if usize::from(rank) > MAX_RANK {
            return Err(malformed(format!("{name} has {rank} dimensions")));
        }
        let shape = (0..rank)
            .map(|_| self.size())
            .collect::<Result<Vec<_>, _>>()?;
        let [code] = self.array()?;
        let kind = kind(code);
        let kind = kind.ok_or_else(|| malformed(format!("{name} is of the kind {code}")))?;
        let length = self.size()?;
        let bytes = self.take(length)?;
        if kind.bytes_of(&shape) != Some(length) {
            return Err(malformed(format!("{name} has another size than its shape")));
        }
        Ok(Variable { shape, kind, bytes })
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let mut bytes = u16::try_from(text.len() + 1)
            .unwrap()
            .to_le_bytes()
            .to_vec();
        bytes.extend(text.as_bytes());
        bytes.push(0);
        bytes
    }

    fn variable(name: &str, shape: &[u32], kind: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = text(name);
        bytes.push(u8::try_from(shape.len()).unwrap());
        bytes.extend(shape.iter().flat_map(|size| size.to_le_bytes()));
        bytes.push(kind);
        bytes.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
        bytes.extend(data);
        bytes
    }

    fn file() -> Vec<u8> {
        let halves: Vec<u8> = [1.0, -0.5]
            .into_iter()
            .flat_map(|value| f16::from_f32(value).to_le_bytes())
            .collect();
        let scales: Vec<u8> = [2.0_f32, 4.0]
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let variables = [
            variable("heads", &[], 2, &6_i16.to_le_bytes()),
            variable("halves", &[2], 4, &halves),
            variable("matrix", &[2, 2], 1, &[2, 4, 4, 0xfc]),
            variable("matrix_scale", &[2], 0, &scales),
        ];
        let mut bytes = 6_u32.to_le_bytes().to_vec();
        bytes.extend(text(WHISPER));
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(u32::try_from(variables.len()).unwrap().to_le_bytes());
        bytes.extend(variables.concat());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([text("same"), text("halves")].concat());
        bytes
    }

    #[test]
    fn numbers_are_read_whatever_they_are_stored_as() {
        let file = file();
        let weights = Variables::parse(&file).unwrap();
        assert_eq!(weights.int("heads").unwrap(), 6);
        assert_eq!(weights.get("same").unwrap().values, [1.0, -0.5]);
        let matrix = weights.get("matrix").unwrap();
        assert_eq!(
            (matrix.shape, matrix.values),
            (vec![2, 2], vec![1.0, 2.0, 1.0, -1.0])
        );
        assert!(weights.get("none").is_err() && weights.int("halves").is_err());
    }

    #[test]
    fn what_is_cut_or_changed_is_an_error_or_read_and_never_a_panic() {
        let whole = file();
        for length in 0..whole.len() {
            assert!(Variables::parse(&whole[..length]).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(file) = Variables::parse(&changed) {
                    for name in ["heads", "halves", "matrix", "same"] {
                        let _ = (file.get(name), file.int(name), file.shape(name));
                    }
                }
            }
        }
    }

    #[test]
    fn no_fuzzed_file_makes_it_panic() {
        let outcome = |bytes: &[u8]| match Variables::parse(bytes) {
            Ok(file) => {
                let names = ["heads", "halves", "matrix", "same"];
                let read = names.map(|name| {
                    let values = file.get(name).map(|values| values.values.len().min(3));
                    (values.ok(), file.int(name).is_ok())
                });
                format!("{read:?}")
            }
            Err(error) => {
                let kind = error.to_string();
                let kind = kind.chars().filter(char::is_ascii_lowercase);
                kind.take(60).collect()
            }
        };
        colloquy_fuzz::fuzz(&[file()], outcome);
    }
}
