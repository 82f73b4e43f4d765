//! Objects that are packed in streams (object streams): whether any of them may hold a word, which is told without parsing the
//! document. Source: ISO 32000-1, section 7.5.7.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use memchr::memmem;

/// How far before its type the dictionary of a stream may begin, and how far behind it the stream may.
const AROUND: usize = 1_024;
/// How much is unpacked at once, and in all.
const PIECE: usize = 64 * 1024;
const MOST: usize = 64 * 1024 * 1024;

/// Whether a word may stand in a packed object. It may as well where that cannot be told: in streams that are encrypted or packed in
/// another way, or where there is too much of them.
pub(super) fn may_hold(bytes: &[u8], word: &[u8]) -> bool {
    let is_encrypted = || memmem::find(bytes, b"/Encrypt").is_some();
    let mut left = MOST;
    let mut streams = memmem::find_iter(bytes, b"/ObjStm").peekable();
    if streams.peek().is_some() && is_encrypted() {
        return true;
    }
    streams.any(|at| {
        let Some((dictionary, content)) = stream(bytes, at) else {
            return true;
        };
        let is_plain = memmem::find(dictionary, b"/Filter").is_none();
        let other = [&b"/DecodeParms"[..], b"/ASCII", b"/LZW", b"/RunLength"];
        let is_other = other
            .iter()
            .any(|name| memmem::find(dictionary, name).is_some());
        if is_plain {
            let end = memmem::find(content, b"endstream").unwrap_or(content.len());
            return memmem::find(&content[..end], word).is_some();
        }
        let is_deflated = memmem::find(dictionary, b"/FlateDecode").is_some();
        is_other || !is_deflated || inflated_holds(content, word, &mut left)
    })
}

/// The dictionary of a stream, whose type stands here, and what follows it.
fn stream(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let before = &bytes[at.saturating_sub(AROUND)..at];
    let begin = memmem::rfind(before, b" obj")?;
    let behind = &bytes[at..bytes.len().min(at + AROUND)];
    let end = memmem::find(behind, b"stream")?;
    let content = &bytes[at + end + b"stream".len()..];
    let content = content
        .strip_prefix(b"\r\n")
        .or_else(|| content.strip_prefix(b"\n"));
    let dictionary = &bytes[at - (before.len() - begin)..at + end];
    Some((dictionary, content?))
}

/// Whether what is unpacked holds a word, or cannot be unpacked, or is more than is left.
fn inflated_holds(content: &[u8], word: &[u8], left: &mut usize) -> bool {
    let mut decoder = ZlibDecoder::new(content);
    let mut piece = Vec::with_capacity(PIECE + word.len());
    loop {
        // A word may stand across two pieces.
        let kept = piece.len().min(word.len().saturating_sub(1));
        piece.drain(..piece.len() - kept);
        let read = (&mut decoder).take(PIECE as u64).read_to_end(&mut piece);
        let (Ok(read), Some(rest)) = (read, left.checked_sub(PIECE)) else {
            return true;
        };
        *left = rest;
        if memmem::find(&piece, word).is_some() {
            return true;
        }
        if read == 0 {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    fn packed(text: &[u8], more: &str) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(vec![], Compression::fast());
        encoder.write_all(text).unwrap();
        let content = encoder.finish().unwrap();
        let head = format!(
            "%PDF-1.5\n7 0 obj\n<< /Type /ObjStm /Filter /FlateDecode {more} >>\nstream\r\n"
        );
        [head.as_bytes(), &content, b"\nendstream endobj"].concat()
    }

    #[test]
    fn words_are_found_in_packed_objects() {
        let holds = |file: &[u8]| may_hold(file, b"FreeText");
        let long = |at: usize| [&vec![b' '; at][..], b"/Subtype /FreeText"].concat();
        assert!(holds(&packed(b"1 0 << /Subtype /FreeText >>", "")));
        assert!(holds(&packed(&long(PIECE - 12), "")));
        assert!(holds(
            &[packed(b"1 0 << >>", ""), packed(&long(0), "")].concat()
        ));
        assert!(!holds(&packed(b"1 0 << /Subtype /Link >>", "")));
        assert!(!holds(&packed(&vec![b' '; 3 * PIECE], "")));
        assert!(!holds(b"%PDF-1.4 /FreeText"));
        assert!(!holds(
            b"1 0 obj << /Type /ObjStm >> stream\n1 0 << >>\nendstream FreeText"
        ));
    }

    #[test]
    fn what_cannot_be_told_may_be_there() {
        let holds = |file: &[u8]| may_hold(file, b"FreeText");
        assert!(holds(&packed(b"x", "/DecodeParms << /Predictor 12 >>")));
        assert!(holds(
            &[&packed(b"x", "")[..], b"trailer << /Encrypt 9 0 R >>"].concat()
        ));
        assert!(holds(&packed(&vec![b' '; MOST + PIECE], "")));
        assert!(holds(
            b"1 0 obj << /Type /ObjStm /Filter /FlateDecode >> stream\nnot deflated"
        ));
        assert!(holds(b"/ObjStm"));
    }
}
