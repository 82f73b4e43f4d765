//! One file of a package of npm: a tar archive (POSIX.1-1988 `ustar`), compressed by gzip. It is read from the beginning up to the
//! file, and nothing of the others is kept.

use std::io::{self, Read};

use flate2::read::GzDecoder;

/// The size of a header, and what contents are filled up to.
const BLOCK: usize = 512;

/// How much more than an archive is unpacked of it at most: so many times its size, and this. Models do not get that small.
const MAX_RATIO: u64 = 32;
const SPARE_BYTES: u64 = 1 << 20;

/// Where a header has its fields.
const NAME: std::ops::Range<usize> = 0..100;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..262;
const PREFIX: std::ops::Range<usize> = 345..500;

/// The contents of the file at this path of an archive that has so many bytes; `None` when the archive does not have it.
///
/// # Errors
/// When the archive is malformed, ends before its time, or unpacks to far more than it is.
pub(crate) fn member<R: Read>(archive: R, bytes: u64, path: &str) -> io::Result<Option<impl Read>> {
    let most = bytes.saturating_mul(MAX_RATIO).saturating_add(SPARE_BYTES);
    let mut unpacked = GzDecoder::new(archive).take(most);
    let mut header = [0; BLOCK];
    loop {
        unpacked.read_exact(&mut header)?;
        if header == [0; BLOCK] {
            return Ok(None);
        }
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "it is no tar archive");
        let entry = Entry::read(&header).ok_or_else(malformed)?;
        if entry.is_file && entry.path == path.as_bytes() {
            // What is shorter than it says is noticed by whoever compares the hash.
            return Ok(Some(unpacked.take(entry.bytes)));
        }
        let blocks = entry.bytes.div_ceil(BLOCK as u64);
        let skipped = blocks.checked_mul(BLOCK as u64).ok_or_else(malformed)?;
        let mut contents = unpacked.by_ref().take(skipped);
        if io::copy(&mut contents, &mut io::sink())? < skipped {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    path: Vec<u8>,
    bytes: u64,
    is_file: bool,
}

impl Entry {
    fn read(header: &[u8; BLOCK]) -> Option<Self> {
        if &header[MAGIC] != b"ustar" || octal(&header[CHECKSUM])? != checksum(header) {
            return None;
        }
        let text = |field: &[u8]| -> Vec<u8> {
            let end = field.iter().position(|byte| *byte == 0);
            field[..end.unwrap_or(field.len())].to_vec()
        };
        let (prefix, name) = (text(&header[PREFIX]), text(&header[NAME]));
        Some(Self {
            path: match prefix.is_empty() {
                true => name,
                false => [prefix, name].join(&b'/'),
            },
            bytes: octal(&header[SIZE])?,
            is_file: matches!(header[KIND], b'0' | 0),
        })
    }
}

/// The sum of a header's bytes, with spaces for the sum itself.
fn checksum(header: &[u8; BLOCK]) -> u64 {
    let bytes = header.iter().enumerate().map(|(at, byte)| {
        let is_sum = CHECKSUM.contains(&at);
        u64::from(if is_sum { b' ' } else { *byte })
    });
    bytes.sum()
}

/// A number in octal digits, which ends at a space, a zero byte or the field's end.
fn octal(field: &[u8]) -> Option<u64> {
    let field = field.trim_ascii_start();
    let is_end = |byte: &u8| matches!(byte, 0 | b' ');
    let digits = &field[..field.iter().position(is_end).unwrap_or(field.len())];
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `tar --format=ustar` writes for a file of 5 bytes that is called `a/b`.
    fn header() -> [u8; BLOCK] {
        let mut header = [0; BLOCK];
        for (at, text) in [
            (0, "a/b"),
            (100, "0000644\0"),
            (108, "0000000\0"),
            (116, "0000000\0"),
            (124, "00000000005\0"),
            (136, "14730134723\0"),
            (156, "0"),
            (257, "ustar\x0000"),
        ] {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let sum = format!("{:06o}\0 ", checksum(&header));
        header[CHECKSUM].copy_from_slice(sum.as_bytes());
        header
    }

    #[test]
    fn headers_are_read_and_malformed_ones_refused() {
        let entry = Entry::read(&header()).unwrap();
        assert_eq!((&*entry.path, entry.bytes), (&b"a/b"[..], 5));
        assert!(entry.is_file);
        for at in [0, 124, 130, 148, 257] {
            let mut wrong = header();
            wrong[at] ^= 1;
            assert_eq!(Entry::read(&wrong), None, "{at}");
        }
    }

    #[test]
    fn numbers_are_octal() {
        assert_eq!(octal(b"0000644\0"), Some(0o644));
        assert_eq!(octal(b"  17 "), Some(0o17));
        for wrong in [
            &b""[..],
            b"\0",
            b"  ",
            b"8",
            b"-1",
            b"\x80\0\0\0",
            &[b'7'; 30],
        ] {
            assert_eq!(octal(wrong), None, "{wrong:?}");
        }
    }
}
