//! A content as JSON, made while it is sent: a text of 32 megabytes would take several times that in memory, and the thread of other requests.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
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
    let text = Text {
        removed: match is_draft {
            // The marks between its sections are nobody's words.
            true => BETWEEN,
            false => "",
        },
        ..Text::default()
    };
    json(open, Encoder::Text(text), format)
}

/// The JSON of a content that is no text, in base64.
pub(super) fn base64_json(
    open: OpenFile,
) -> impl Stream<Item = Result<Bytes, ObjectError>> + Send + use<> {
    json(open, Encoder::Base64(vec![]), "base64")
}

fn json(
    open: OpenFile,
    encoder: Encoder,
    format: &'static str,
) -> impl Stream<Item = Result<Bytes, ObjectError>> + Send + use<> {
    let writing = Writing {
        pieces: open.pieces,
        encoder,
        is_ended: false,
    };
    let begin = Bytes::from_static(br#"{"content":""#);
    let end = Bytes::from(format!(r#"","format":"{format}"}}"#));
    stream::once(async { Ok(begin) })
        .chain(stream::try_unfold(writing, Writing::next))
        .chain(stream::once(async { Ok(end) }))
}

/// Whether a file is text in UTF-8 from its beginning to its end.
pub(super) async fn is_text(open: OpenFile) -> Result<bool, ObjectError> {
    let (mut pieces, mut bytes) = (open.pieces, vec![]);
    while let Some(piece) = pieces.next().await.transpose()? {
        bytes.extend_from_slice(&piece);
        let whole = bytes.len() - unfinished(&bytes);
        if std::str::from_utf8(&bytes[..whole]).is_err() {
            return Ok(false);
        }
        bytes.drain(..whole);
    }
    Ok(bytes.is_empty())
}

/// A content that is being written.
struct Writing {
    pieces: BoxStream<'static, Result<Bytes, ObjectError>>,
    encoder: Encoder,
    is_ended: bool,
}

/// What makes JSON of bytes.
enum Encoder {
    Text(Text),
    /// Up to two bytes, with which the next piece begins.
    Base64(Vec<u8>),
}

impl Encoder {
    fn push(&mut self, piece: &[u8]) -> String {
        match self {
            Self::Text(text) => text.push(piece),
            Self::Base64(bytes) => {
                bytes.extend_from_slice(piece);
                let whole = bytes.len() / 3 * 3;
                let encoded = BASE64.encode(&bytes[..whole]);
                bytes.drain(..whole);
                encoded
            }
        }
    }

    fn end(&mut self) -> String {
        match self {
            Self::Text(text) => text.end(),
            Self::Base64(bytes) => BASE64.encode(std::mem::take(bytes)),
        }
    }
}

impl Writing {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, ObjectError> {
        while !self.is_ended {
            let json = match self.pieces.next().await.transpose()? {
                Some(piece) => self.encoder.push(&piece),
                None => {
                    self.is_ended = true;
                    self.encoder.end()
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

    /// A file of these bytes, which come in pieces of this size.
    fn open(bytes: &[u8], size: usize) -> OpenFile {
        let pieces = bytes
            .chunks(size)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)));
        OpenFile {
            bytes: bytes.len() as u64,
            pieces: stream::iter(pieces.collect::<Vec<_>>()).boxed(),
        }
    }

    /// The content that a client reads of these bytes.
    async fn read(bytes: &[u8], size: usize, is_draft: bool) -> String {
        let json = content_json(open(bytes, size), "raw", is_draft);
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
    async fn what_is_no_text_is_told_and_encoded_in_any_pieces() {
        let text = "Löwen 東京\u{1f600}".as_bytes();
        let bytes = [text, b"\xff\0\x9d"].concat();
        for size in [1, 2, 3, 4, 5, 1_000] {
            assert!(is_text(open(text, size)).await.unwrap(), "{size}");
            assert!(is_text(open(b"", size)).await.unwrap());
            assert!(!is_text(open(&bytes, size)).await.unwrap(), "{size}");
            let cut = &text[..text.len() - 1];
            assert!(!is_text(open(cut, size)).await.unwrap(), "{size}");
            let json = base64_json(open(&bytes, size)).map(Result::unwrap);
            let json: Vec<_> = json.collect().await;
            let json: serde_json::Value = serde_json::from_slice(&json.concat()).unwrap();
            let expected =
                serde_json::json!({"content": BASE64.encode(&bytes), "format": "base64"});
            assert_eq!(json, expected, "{size}");
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
