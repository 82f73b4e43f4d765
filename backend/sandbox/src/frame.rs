//! The answer of a child: pieces of output, then their end or an error. Each frame is a tag, a length in four bytes, little
//! endian, and so many bytes.

use std::io::{self, Write};

use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};

const OUTPUT: u8 = 0;
const END: u8 = 1;
const ERROR: u8 = 2;

/// The longest piece of output.
const MAX_PIECE: usize = 64 * 1024;
/// The longest error.
const MAX_ERROR: usize = 4 * 1024;

/// What a child answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All of its output.
    Output(Vec<u8>),
    /// The decoder's own error, JSON.
    Error(Vec<u8>),
    /// More than it may give.
    TooLong,
    /// It stopped before the end, or does not follow the form.
    Broken,
}

/// Writes the whole output.
pub(super) fn write_output(mut to: impl Write, output: &[u8]) -> io::Result<()> {
    for piece in output.chunks(MAX_PIECE) {
        write_frame(&mut to, OUTPUT, piece)?;
    }
    write_frame(&mut to, END, &[])?;
    to.flush()
}

/// Writes an error instead.
pub(super) fn write_error(mut to: impl Write, error: &[u8]) -> io::Result<()> {
    write_frame(&mut to, ERROR, error)?;
    to.flush()
}

fn write_frame(to: &mut impl Write, tag: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&[tag])?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)
}

/// Reads an answer of at most so many bytes of output.
pub(super) async fn read(from: impl AsyncRead + Unpin, most: usize) -> io::Result<Answer> {
    let mut from = BufReader::new(from);
    let mut output = Vec::new();
    loop {
        let mut head = [0; 5];
        from.read_exact(&mut head).await?;
        let [tag, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        match tag {
            OUTPUT if length <= MAX_PIECE => {
                let begin = output.len();
                if begin + length > most {
                    return Ok(Answer::TooLong);
                }
                output.resize(begin + length, 0);
                from.read_exact(&mut output[begin..]).await?;
            }
            END if length == 0 => return Ok(Answer::Output(output)),
            ERROR if length <= MAX_ERROR => {
                let mut error = vec![0; length];
                from.read_exact(&mut error).await?;
                return Ok(Answer::Error(error));
            }
            _ => return Ok(Answer::Broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(bytes: &[u8], most: usize) -> Option<Answer> {
        read(bytes, most).await.ok()
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        for length in [0, 1, MAX_PIECE, 3 * MAX_PIECE + 7] {
            let output = vec![9; length];
            let mut bytes = Vec::new();
            write_output(&mut bytes, &output).unwrap();
            assert_eq!(
                answer(&bytes, length).await,
                Some(Answer::Output(output)),
                "{length}"
            );
            for cut in [0, 1, 4, bytes.len() - 1] {
                assert_eq!(answer(&bytes[..cut], length).await, None, "cut at {cut}");
            }
            if let Some(less) = length.checked_sub(1) {
                assert_eq!(answer(&bytes, less).await, Some(Answer::TooLong));
            }
        }
        let mut bytes = Vec::new();
        write_error(&mut bytes, b"\"no\"").unwrap();
        assert_eq!(
            answer(&bytes, 0).await,
            Some(Answer::Error(b"\"no\"".to_vec()))
        );
    }

    #[tokio::test]
    async fn what_claims_too_much_is_not_believed() {
        let huge = u32::MAX.to_le_bytes();
        for tag in [OUTPUT, END, ERROR, 7] {
            let bytes = [&[tag][..], &huge, b"little"].concat();
            let answer = answer(&bytes, usize::MAX).await;
            assert_eq!(answer, Some(Answer::Broken), "{tag}");
        }
    }
}
