//! Whether an ONNX file is a well-formed message of Protocol Buffers. What reads such files further on trusts their lengths and
//! how their numbers end: in some that are malformed it would read forever, or run out of stack.

use crate::InferenceError;

/// Messages inside of each other; a network that branches, inside of another, is ten deep.
const MAX_DEPTH: usize = 40;

/// What a field of variable length holds.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// A message.
    Message(Kind),
    /// Numbers of variable length.
    Numbers,
    /// Text, numbers of fixed length, or what nobody reads.
    Bytes,
}

/// The messages that are read of a file, with the names of ONNX.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    SequenceType,
    Shape,
    /// Any that has no others inside.
    Leaf,
}

impl Kind {
    /// What a field of this number holds.
    fn content(self, field: u64) -> Content {
        Content::Message(match (self, field) {
            (Self::Model, 7) | (Self::Attribute, 6) => Self::Graph,
            (Self::Model, 8 | 14) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Leaf,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::ValueInfo,
            (Self::Node, 5) => Self::Attribute,
            (Self::ValueInfo, 2) | (Self::SequenceType, 1) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::Type, 4) => Self::SequenceType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Tensor, 5 | 7) => return Content::Numbers,
            _ => return Content::Bytes,
        })
    }
}

/// Checks a file.
///
/// # Errors
/// [`InferenceError::Malformed`].
pub(crate) fn check(file: &[u8]) -> Result<(), InferenceError> {
    message(file, Kind::Model, 0)
        .ok_or_else(|| InferenceError::Malformed("it is no ONNX file, or not all of it".to_owned()))
}

fn message(mut rest: &[u8], kind: Kind, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    while !rest.is_empty() {
        let tag = number(&mut rest)?;
        match tag & 7 {
            0 => drop(number(&mut rest)?),
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(number(&mut rest)?).ok()?;
                let (mut inner, after) = rest.split_at_checked(length)?;
                rest = after;
                match kind.content(tag >> 3) {
                    Content::Message(kind) => message(inner, kind, depth + 1)?,
                    Content::Numbers => {
                        while !inner.is_empty() {
                            number(&mut inner)?;
                        }
                    }
                    Content::Bytes => (),
                }
            }
            5 => rest = rest.get(4..)?,
            // Groups were given up before ONNX began.
            _ => return None,
        }
    }
    Some(())
}

/// Takes a number of 64 bits: seven in a byte, whose eighth says that another follows.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..10 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << (index * 7);
        if byte < 0x80 {
            let fits = index < 9 || byte < 2;
            return fits.then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_within_64_bits() {
        let whole = |bytes: &[u8]| {
            let mut rest = bytes;
            number(&mut rest).filter(|_| rest.is_empty())
        };
        assert_eq!(whole(&[0x96, 0x01]), Some(150));
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(whole(&most), Some(u64::MAX));
        most[9] = 2;
        assert_eq!(whole(&most), None);
        for unfinished in [&[] as &[u8], &[0x80], &[0xff; 9], &[0xff; 10], &[0xff; 11]] {
            assert_eq!(whole(unfinished), None);
        }
    }

    #[test]
    fn what_would_be_read_forever_is_refused() {
        assert!(check(&[]).is_ok());
        assert!(check(&[0x08, 0x09]).is_ok());
        // A number that does not end, in a field that nobody knows, and in a graph.
        let endless = [[0x78].as_slice(), &[0xff; 16]].concat();
        assert!(check(&endless).is_err());
        assert!(check(&[[0x3a, 17].as_slice(), &endless].concat()).is_err());
        // Lengths beyond the end, and beyond all bounds.
        assert!(check(&[0x3a, 2, 0x08]).is_err());
        let long = [
            0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
        ];
        assert!(check(&long).is_err());
        // A graph in an attribute of a node of a graph, and so on.
        let nested = |count: usize| {
            (0..count).fold(Vec::new(), |inner, index| {
                let tag = [0x32, 0x2a, 0x0a][index % 3];
                let tag = if index + 1 == count { 0x3a } else { tag };
                let length = inner.len();
                let length = [(length & 0x7f | 0x80) as u8, (length >> 7) as u8];
                [[tag].as_slice(), &length, &inner].concat()
            })
        };
        assert!(check(&nested(10)).is_ok() && check(&nested(40)).is_ok());
        assert!(check(&nested(1_000)).is_err());
    }
}
