//! Documents inside of a Word document (`altChunk`), in another format, which Word reads when it opens the document. Source:
//! ECMA-376 part 1, sections 11.3.1 and 17.17.2.1; RFC 2045 and 2557 for web archives.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::rtf;
use crate::{
    characters,
    error::ExtractError,
    format::{Format, extension},
    html::{self, Part},
    limits::Bounds,
    markdown::escaped_lines,
    text,
};

/// How many documents inside of another are read. Each of them has this share of the bounds.
pub(super) const MOST: usize = 16;

/// The Markdown of a document inside of another. What is inside of that one is not read, and added to `unread`.
///
/// # Errors
/// When it cannot be read, or is of a format that is not read here.
pub(super) fn markdown(
    name: &str,
    bytes: &[u8],
    bounds: &Bounds,
    unread: &mut u32,
) -> Result<String, ExtractError> {
    let share = Bounds {
        unpacked_bytes: bounds.unpacked_bytes / MOST,
        elements: bounds.elements / MOST,
        cells: bounds.cells / MOST,
        markdown_bytes: bounds.markdown_bytes / MOST,
        ..*bounds
    };
    let page = |html: &str| Ok(html::page(html, Part::Whole, &share)?.markdown);
    match extension(name).as_str() {
        _ if bytes.trim_ascii_start().starts_with(b"{\\rtf") => {
            Ok(escaped_lines(&rtf::text(bytes)))
        }
        _ if bytes.starts_with(b"PK\x03\x04") => inner(bytes, &share, unread),
        "htm" | "html" | "xhtml" => page(&characters::decode(bytes, None)),
        "mht" | "mhtml" => page(
            &archived(bytes)
                .ok_or_else(|| ExtractError::damaged("a web archive without a page"))?,
        ),
        "txt" => Ok(text::plain(&characters::decode(bytes, None)).markdown),
        other => Err(ExtractError::failed(format!(
            "a document of the type {other:?} is embedded in it"
        ))),
    }
}

/// A Word document, the documents and pictures inside of which are not read, but counted.
fn inner(bytes: &[u8], bounds: &Bounds, unread: &mut u32) -> Result<String, ExtractError> {
    let (document, _) = super::read_open_xml(bytes, Format::Docx, bounds, false)?;
    *unread = unread.saturating_add(document.unread_objects);
    Ok(document.markdown)
}

/// The page of a web archive: its first part of HTML.
fn archived(bytes: &[u8]) -> Option<String> {
    let (head, body) = halves(bytes)?;
    let kind = header(&head, "content-type").unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("multipart/") {
        return page_of(&head, body);
    }
    let boundary = format!("--{}", parameter(&kind, "boundary")?);
    let mut starts = memchr::memmem::find_iter(body, boundary.as_bytes()).peekable();
    while let Some(start) = starts.next() {
        let end = starts.peek().copied().unwrap_or(body.len());
        let part = &body[start + boundary.len()..end.max(start + boundary.len())];
        let (head, body) = halves(part.trim_ascii_start()).unwrap_or_default();
        if let Some(page) = page_of(&head, body) {
            return Some(page);
        }
    }
    None
}

/// The HTML of a part; none where it is something else.
fn page_of(head: &str, body: &[u8]) -> Option<String> {
    let kind = header(head, "content-type")?;
    if !kind.to_ascii_lowercase().starts_with("text/html") {
        return None;
    }
    let encoding = header(head, "content-transfer-encoding").unwrap_or_default();
    let bytes = match encoding.to_ascii_lowercase().as_str() {
        "base64" => {
            let letters: Vec<u8> = body
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace())
                .collect();
            STANDARD.decode(letters).ok()?
        }
        "quoted-printable" => unquoted(body),
        _ => body.to_vec(),
    };
    Some(characters::decode(
        &bytes,
        parameter(&kind, "charset").as_deref(),
    ))
}

/// The headers and the body.
fn halves(bytes: &[u8]) -> Option<(String, &[u8])> {
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    let found = ends
        .iter()
        .filter_map(|end| Some((memchr::memmem::find(bytes, end)?, end.len())));
    let (at, length) = found.min()?;
    let head = String::from_utf8_lossy(&bytes[..at]);
    // A header goes on in lines that begin with a blank.
    let head = head
        .replace("\r\n", "\n")
        .replace("\n ", " ")
        .replace("\n\t", " ");
    Some((head, &bytes[at + length..]))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

fn parameter(header: &str, name: &str) -> Option<String> {
    header.split(';').skip(1).find_map(|one| {
        let (key, value) = one.split_once('=')?;
        let is_named = key.trim().eq_ignore_ascii_case(name);
        is_named
            .then(|| value.trim().trim_matches('"').to_owned())
            .filter(|value| !value.is_empty())
    })
}

/// Text that is quoted-printable. Source: RFC 2045, section 6.7.
fn unquoted(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = memchr::memchr(b'=', rest) {
        bytes.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = match (byte, after) {
            (Some(byte), _) => {
                bytes.push(byte);
                &after[2..]
            }
            // A line that goes on in the next one.
            (None, [b'\r', b'\n', ..]) => &after[2..],
            (None, [b'\n', ..]) => &after[1..],
            (None, _) => {
                bytes.push(b'=');
                after
            }
        };
    }
    bytes.extend_from_slice(rest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<String, ExtractError> {
        markdown(name, bytes, &Bounds::default(), &mut 0)
    }

    #[test]
    fn web_archives_have_a_page() {
        let archive = "MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n type=\"text/html\"; boundary=\"----=mhtDocumentPart\"\r\n\r\n------=mhtDocumentPart\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n------=mhtDocumentPart\r\nContent-Type: text/html; charset=\"utf-8\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p style=3D\"x\">Caf=C3=A9 is op=\r\nen</p>\r\n------=mhtDocumentPart--\r\n";
        assert_eq!(
            read("word/a.mht", archive.as_bytes()).unwrap(),
            "Café is open\n"
        );
        let plain = "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGI+SGk8L2I+\n";
        assert_eq!(read("a.mht", plain.as_bytes()).unwrap(), "**Hi**\n");
        assert!(read("a.mht", b"nothing").is_err());
        assert!(
            read(
                "a.mht",
                b"Content-Type: multipart/related; boundary=x\n\n--x"
            )
            .is_err()
        );
    }

    #[test]
    fn other_documents_are_read_by_their_format() {
        assert_eq!(read("a.html", b"<h1>A</h1><p>b</p>").unwrap(), "# A\n\nb\n");
        assert_eq!(
            read("a.rtf", br"{\rtf1 One *\par Two}").unwrap().trim(),
            "One \\*\n\nTwo"
        );
        assert_eq!(read("a.txt", b"plain").unwrap(), "plain\n");
        assert!(read("a.bin", b"\x00\x01").is_err());
        assert!(read("a.docx", b"PK\x03\x04").is_err());
    }
}
