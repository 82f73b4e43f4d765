//! A content as JSON, made while it is sent: a text of 32 megabytes would take several times that in memory, and the thread of other requests.

use bytes::Bytes;
use colloquy_blobs::{ObjectError, OpenFile};
use futures_util::{Stream, StreamExt as _, stream, stream::BoxStream};

use crate::rewriting::BETWEEN;

/// The JSON of a content: `{"content": .., "format": ..}`. It breaks off when the file does.
pub(super) fn content_json(
    open: OpenFile,
    format: &'static str,
    is_draft: bool,
) -> impl Stream<Item = Result<Bytes, ObjectError>> + Send + use<> {
    let writing = Writing {
        pieces: open.pieces,
        text: Text {
            removed: match is_draft {
                // The marks between its sections are nobody's words.
                true => BETWEEN,
                false => "",
            },
            ..Text::default()
        },
        is_ended: false,
    };
    let begin = Bytes::from_static(br#"{"content":""#);
    let end = Bytes::from(format!(r#"","format":"{format}"}}"#));
    stream::once(async { Ok(begin) })
        .chain(stream::try_unfold(writing, Writing::next))
        .chain(stream::once(async { Ok(end) }))
}

/// A text that is being written.
struct Writing {
    pieces: BoxStream<'static, Result<Bytes, ObjectError>>,
    text: Text,
    is_ended: bool,
}

impl Writing {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, ObjectError> {
        while !self.is_ended {
            let json = match self.pieces.next().await.transpose()? {
                Some(piece) => self.text.push(&piece),
                None => {
                    self.is_ended = true;
                    self.text.end()
                }
            };
            if !json.is_empty() {
                return Ok(Some((json.into(), self)));
            }
        }
        Ok(None)
    }
}

/// Bytes as the inside of a JSON string; what is no UTF-8 is replaced.
#[derive(Debug, Default)]
struct Text {
    /// Bytes that may be the beginning of a character.
    bytes: Vec<u8>,
    /// Text that may be the beginning of what is removed.
    text: String,
    /// What becomes an empty line.
    removed: &'static str,
}

impl Text {
    fn push(&mut self, piece: &[u8]) -> String {
        self.bytes.extend_from_slice(piece);
        let whole = self.bytes.len() - unfinished(&self.bytes);
        let rest = self.bytes.split_off(whole);
        let bytes = std::mem::replace(&mut self.bytes, rest);
        self.text.push_str(&String::from_utf8_lossy(&bytes));
        self.take(true)
    }

    fn end(&mut self) -> String {
        let bytes = std::mem::take(&mut self.bytes);
        self.text.push_str(&String::from_utf8_lossy(&bytes));
        self.take(false)
    }

    /// Takes what is certain of the text: all of it, where nothing follows.
    fn take(&mut self, goes_on: bool) -> String {
        let text = std::mem::take(&mut self.text);
        if self.removed.is_empty() {
            return escaped(&text);
        }
        let (mut taken, mut rest) = (String::with_capacity(text.len()), text.as_str());
        while let Some((before, after)) = rest.split_once(self.removed) {
            taken.push_str(before);
            taken.push_str("\n\n");
            rest = after;
        }
        let is_begun = |length: &usize| rest.ends_with(&self.removed[..*length]);
        let begun = (1..self.removed.len()).rev().find(is_begun);
        let kept = begun.filter(|_| goes_on).unwrap_or(0);
        let (before, kept) = rest.split_at(rest.len() - kept);
        taken.push_str(before);
        self.text = kept.to_owned();
        escaped(&taken)
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(0, |chunk| chunk.invalid().len());
    let tail = &bytes[bytes.len() - invalid..];
    // Of what is no character at all nothing is missing.
    match std::str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => invalid,
        _ => 0,
    }
}

/// The text as the inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut json = serde_json::Value::from(text).to_string();
    json.pop();
    json.split_off(1.min(json.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content that a client reads of these bytes, which come in pieces of this size.
    async fn read(bytes: &[u8], size: usize, is_draft: bool) -> String {
        let pieces = bytes
            .chunks(size)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let open = OpenFile {
            bytes: bytes.len() as u64,
            pieces: stream::iter(pieces.collect::<Vec<_>>()).boxed(),
        };
        let json = content_json(open, "raw", is_draft);
        let json: Vec<_> = json.map(Result::unwrap).collect().await;
        let json: serde_json::Value = serde_json::from_slice(&json.concat()).unwrap();
        assert_eq!(json["format"], "raw");
        json["content"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_text_is_the_same_whatever_pieces_it_comes_in() {
        let text = "Löwen \"und\" 東京\\\n\u{1}\u{1f600}";
        let broken = [text.as_bytes(), b"\xff\xe6\x9d a \xf0\x9f\x98"].concat();
        for size in [1, 2, 3, 5, 1_000] {
            assert_eq!(read(text.as_bytes(), size, false).await, text);
            let lossy = String::from_utf8_lossy(&broken);
            assert_eq!(read(&broken, size, false).await, lossy, "{size}");
            assert_eq!(read(b"", size, true).await, "");
        }
    }

    #[tokio::test]
    async fn the_marks_of_a_draft_are_left_out() {
        let draft = format!("One.{BETWEEN}<!-- section -->\n\nTwo.{BETWEEN}Three.\n\n<!-- sec");
        for size in [1, 7, 1_000] {
            let read = read(draft.as_bytes(), size, true).await;
            assert_eq!(read, draft.replace(BETWEEN, "\n\n"), "{size}");
        }
    }
}
