//! What a file is: by its name and by what is in it, which have to agree.
//!
//! This is done where the file is, before any child process is started for it, so it reads little of the file at a time
//! and keeps less, whatever the file claims.

mod directory;
mod ebcdic;
mod ole;

#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek, SeekFrom};

use self::{directory::Container, ole::Compound};
use crate::{
    error::ExtractError,
    format::{ExtensionKind, Format, extension, extension_kind},
};

/// How much of the begin of a file is looked at for its signature.
const HEAD_BYTES: usize = 4_096;
/// A PDF may have other bytes before its mark, so many at most, and as many behind its end.
pub const PDF_WITHIN: usize = 1_024;
/// Of how many bytes of a text one may be of none: a stray null, or a mark of a terminal. One may be wherever it is.
const ONE_STRAY_IN: u64 = 1_000;
/// How much of a file is in memory while it is looked through.
const PIECE_BYTES: usize = 64 * 1024;

/// Why a file was not detected.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] ExtractError),
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// The format of a file, by its name and its bytes.
///
/// # Errors
/// When the name has no extension that is accepted, the file is an archive or empty, is not what its name says, or is an
/// Office document behind a password; when it cannot be read.
pub fn detect(name: &str, file: &mut (impl Read + Seek)) -> Result<Format, DetectError> {
    let expected = match extension_kind(name) {
        ExtensionKind::Format(format) => format,
        ExtensionKind::Archive => return Err(ExtractError::Archive(extension(name)).into()),
        ExtensionKind::Unknown => {
            let extension = extension(name).chars().take(16).collect();
            return Err(ExtractError::UnknownExtension(extension).into());
        }
    };
    agrees(expected, file)?;
    Ok(expected)
}

/// Whether a file is of a format.
///
/// # Errors
/// As [`detect`] has them, without those of the name.
pub fn agrees(expected: Format, file: &mut (impl Read + Seek)) -> Result<(), DetectError> {
    let found = found(file)?;
    let mismatch = |words: String| Err(ExtractError::mismatch(expected, words).into());
    match found {
        Found::Empty => Err(ExtractError::Empty.into()),
        Found::Archive(kind) => Err(ExtractError::Archive(kind.to_owned()).into()),
        Found::Characters(kind) if expected.is_characters() => match kind {
            // These are no text to those who made them, whatever their bytes are.
            Characters::Rtf => mismatch(kind.words().to_owned()),
            _ => Ok(()),
        },
        Found::Characters(Characters::Pdf) if expected == Format::Pdf => Ok(()),
        Found::Characters(kind) => mismatch(kind.words().to_owned()),
        Found::MpegFile => match expected {
            Format::Mp4 | Format::Mov | Format::M4v | Format::M4a => Ok(()),
            _ => mismatch("MPEG-4 or QuickTime".to_owned()),
        },
        Found::Encrypted => match expected {
            Format::Docx | Format::Pptx | Format::Xlsx => Err(ExtractError::Encrypted.into()),
            _ => mismatch("an encrypted Office document".to_owned()),
        },
        Found::Format(format) if format == expected => Ok(()),
        Found::Format(format) => mismatch(format.to_string()),
        Found::Damaged(kind) => {
            Err(ExtractError::damaged(format!("{kind} without a directory")).into())
        }
        Found::Other(words) => mismatch(words),
    }
}

/// How many entries a ZIP container claims; none where it has no directory.
pub(crate) fn entries(bytes: &[u8]) -> u64 {
    let mut file = io::Cursor::new(bytes);
    directory::directory(&mut file)
        .ok()
        .flatten()
        .map_or(0, |(_, count)| count)
}

/// What a file is, by its bytes.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Format(Format),
    /// MP4, MOV, M4V or M4A: one container, whose brands overlap.
    MpegFile,
    Characters(Characters),
    /// An Office document behind a password.
    Encrypted,
    Archive(&'static str),
    /// A container whose directory is not there.
    Damaged(&'static str),
    /// Something else, in words.
    Other(String),
}

/// What text looks like at its begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Characters {
    Html,
    Xml,
    Rtf,
    /// All of it is text, and it may be a PDF.
    Pdf,
    Plain,
}

impl Characters {
    fn words(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::Xml => "XML",
            Self::Rtf => "RTF",
            Self::Pdf | Self::Plain => "plain text",
        }
    }
}

fn found(file: &mut (impl Read + Seek)) -> io::Result<Found> {
    let mut head = [0; HEAD_BYTES];
    file.rewind()?;
    let length = directory::read_all(file, &mut head)?;
    let head = &head[..length];
    if head.is_empty() {
        return Ok(Found::Empty);
    }
    if let Some(archive) = archive(head) {
        return Ok(Found::Archive(archive));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(match directory::container(file)? {
            Some(Container::Docx) => Found::Format(Format::Docx),
            Some(Container::Pptx) => Found::Format(Format::Pptx),
            Some(Container::Xlsx) => Found::Format(Format::Xlsx),
            Some(Container::Epub) => Found::Format(Format::Epub),
            Some(Container::Xlsb) => Found::Other("a binary workbook (XLSB)".to_owned()),
            Some(Container::OpenDocument) => Found::Other("OpenDocument".to_owned()),
            Some(Container::Archive) => Found::Archive("zip"),
            None => Found::Damaged("a ZIP container"),
        });
    }
    if head.starts_with(&ole::SIGNATURE) {
        return Ok(match ole::compound(file)? {
            Some(Compound::Doc) => Found::Format(Format::Doc),
            Some(Compound::Ppt) => Found::Format(Format::Ppt),
            Some(Compound::Xls) => Found::Format(Format::Xls),
            Some(Compound::EncryptedPackage) => Found::Encrypted,
            Some(Compound::Other) => Found::Other("another OLE2 compound file".to_owned()),
            None => Found::Damaged("an OLE2 compound file"),
        });
    }
    if let Some(found) = by_signature(head) {
        return Ok(found);
    }
    if ebcdic::is_text(head) {
        return Ok(Found::Other("text in EBCDIC, which is not read".to_owned()));
    }
    if let Some(kind) = characters(file, head)? {
        return Ok(Found::Characters(kind));
    }
    if has_pdf_mark(head) {
        return Ok(Found::Format(Format::Pdf));
    }
    let known = infer::get(head).map(|kind| kind.mime_type().to_owned());
    Ok(Found::Other(
        known.unwrap_or_else(|| "of no known format".to_owned()),
    ))
}

/// Archives that are nothing else.
fn archive(head: &[u8]) -> Option<&'static str> {
    let signatures: [(&[u8], &str); 9] = [
        (b"\x1F\x8B", "gz"),
        (b"BZh", "bz2"),
        (b"\xFD7zXZ\0", "xz"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
        (b"Rar!\x1A\x07", "rar"),
        (b"\x28\xB5\x2F\xFD", "zst"),
        (b"\x04\x22\x4D\x18", "lz4"),
        (b"LZIP", "lz"),
        (b"MSCF\0\0\0\0", "cab"),
    ];
    let begins = signatures
        .iter()
        .find(|(signature, _)| head.starts_with(signature));
    let tar = || head.get(257..262) == Some(b"ustar");
    match begins {
        // Text may begin with these letters, an archive goes on with a digit and a mark.
        Some((_, "bz2")) if head.get(4..10) != Some(b"1AY&SY") => None,
        Some((_, "lz")) if head.get(4).is_none_or(|version| *version > 1) => None,
        Some((_, name)) => Some(name),
        None => tar().then_some("tar"),
    }
}

fn by_signature(head: &[u8]) -> Option<Found> {
    let riff = |kind: &[u8; 4]| {
        (head.starts_with(b"RIFF") || head.starts_with(b"RF64")) && head.get(8..12) == Some(kind)
    };
    // Words may be where an atom has its kind, but not without bytes that are in no text.
    let is_binary = head.iter().copied().any(is_control);
    let atom = || head.get(4..8).filter(|_| is_binary).unwrap_or_default();
    let brand = || head.get(8..12).unwrap_or_default();
    let format = match head {
        _ if head.starts_with(b"\xFF\xD8\xFF") => Format::Jpeg,
        _ if head.starts_with(b"\x89PNG\r\n\x1A\n") => Format::Png,
        _ if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") => Format::Gif,
        _ if head.starts_with(b"II*\0") || head.starts_with(b"MM\0*") => Format::Tiff,
        _ if riff(b"WEBP") => Format::WebP,
        _ if riff(b"WAVE") => Format::Wav,
        _ if riff(b"AVI ") => Format::Avi,
        _ if atom() == b"ftyp" => {
            // The same container holds pictures, which are another format.
            let is_picture = [
                b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis",
            ]
            .iter()
            .any(|picture| brand() == *picture);
            return Some(if is_picture {
                Found::Other("a picture (HEIF)".to_owned())
            } else {
                Found::MpegFile
            });
        }
        // QuickTime before there were brands.
        _ if [b"moov", b"mdat", b"wide", b"pnot"]
            .iter()
            .any(|kind| atom() == *kind) =>
        {
            return Some(Found::MpegFile);
        }
        _ if head.starts_with(b"ID3\x02")
            || head.starts_with(b"ID3\x03")
            || head.starts_with(b"ID3\x04") =>
        {
            Format::Mp3
        }
        // A frame of layer 3 with a bit rate and a sample rate that exist.
        [0xFF, second, third, ..]
            if second & 0xE6 == 0xE2
                && second & 0x18 != 0x08
                && third & 0xF0 != 0xF0
                && third & 0x0C != 0x0C =>
        {
            Format::Mp3
        }
        _ if without_blanks(head).starts_with(PDF_MARK) => Format::Pdf,
        _ => return None,
    };
    Some(Found::Format(format))
}

/// What a PDF begins with, and what it ends with.
const PDF_MARK: &[u8] = b"%PDF-";
const PDF_END: &[u8] = b"%%EOF";

/// Returns true if the mark of a PDF is within the first [`PDF_WITHIN`] bytes. Text may speak of it, but then all of it is text.
pub fn has_pdf_mark(head: &[u8]) -> bool {
    memchr::memmem::find(&head[..head.len().min(PDF_WITHIN)], PDF_MARK).is_some()
}

/// A PDF without the bytes that may stand before its mark: a byte order mark, blank lines, the header of an answer. Places in a PDF
/// count from its mark.
pub(crate) fn pdf_from_mark(bytes: &[u8]) -> &[u8] {
    let head = &bytes[..bytes.len().min(PDF_WITHIN)];
    let at = memchr::memmem::find(head, PDF_MARK).unwrap_or_default();
    &bytes[at..]
}

/// Whether text goes on as a PDF does, and does not merely speak of one: the mark has a version, an object follows, and the mark begins a
/// line or the text ends as a PDF does.
fn is_pdf_of_text(file: &mut (impl Read + Seek), head: &[u8]) -> io::Result<bool> {
    if !has_pdf_mark(head) {
        return Ok(false);
    }
    let pdf = pdf_from_mark(head);
    let version = pdf.get(PDF_MARK.len()..PDF_MARK.len() + 3);
    let has_version =
        matches!(version, Some([a, b'.', b]) if a.is_ascii_digit() && b.is_ascii_digit());
    if !has_version || memchr::memmem::find(pdf, b" obj").is_none() {
        return Ok(false);
    }
    let before = head.len().checked_sub(pdf.len() + 1).map(|at| head[at]);
    let begins_line = matches!(before, None | Some(b'\r' | b'\n'));
    Ok(begins_line || has_pdf_end(file)?)
}

/// Whether there is the end of a PDF where it may be.
fn has_pdf_end(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(PDF_WITHIN as u64)))?;
    let mut tail = [0; PDF_WITHIN];
    let read = directory::read_all(file, &mut tail)?;
    Ok(memchr::memmem::find(&tail[..read], PDF_END).is_some())
}

/// What follows a byte order mark and blanks.
fn without_blanks(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(head)
        .trim_ascii_start()
}

/// Whether the whole file is text, and what it looks like.
fn characters(file: &mut (impl Read + Seek), head: &[u8]) -> io::Result<Option<Characters>> {
    let wide = crate::characters::is_wide(head);
    if !wide {
        file.rewind()?;
        let mut piece = vec![0; PIECE_BYTES];
        let (mut strays, mut read) = (0_u64, 0_u64);
        loop {
            let length = directory::read_all(file, &mut piece)?;
            let controls = piece[..length].iter().filter(|byte| is_control(**byte));
            strays += controls.count() as u64;
            read += length as u64;
            if strays > 1 + read / ONE_STRAY_IN {
                return Ok(None);
            }
            if length < piece.len() {
                break;
            }
        }
    }
    let begin: String = head
        .iter()
        .filter(|byte| byte.is_ascii_graphic() || **byte == b' ')
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .take(256)
        .collect();
    let begin = begin.trim_start();
    Ok(Some(if begin.starts_with("{\\rtf") {
        Characters::Rtf
    } else if begin.starts_with("<!doctype html") || begin.starts_with("<html") {
        Characters::Html
    } else if begin.starts_with("<?xml") {
        Characters::Xml
    } else if is_pdf_of_text(file, head)? {
        Characters::Pdf
    } else {
        Characters::Plain
    }))
}

/// Bytes that no text has, in any encoding that ASCII is a part of.
fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0B | 0x0C | 0x1A | 0x1B)
        || byte == 0x7F
}
