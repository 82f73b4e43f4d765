//! The directory of a ZIP container, read name by name in constant memory, however many entries it claims.

use std::io::{self, Read, Seek, SeekFrom};

const END: &[u8; 4] = b"PK\x05\x06";
const END_64: &[u8; 4] = b"PK\x06\x06";
const LOCATOR_64: &[u8; 4] = b"PK\x06\x07";
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
/// The end record without its comment, and the longest comment.
const END_BYTES: usize = 22;
const LONGEST_COMMENT: usize = 65_535;
/// The part of an entry that is always there.
const ENTRY_BYTES: usize = 46;
/// How many entries are looked at before a container is taken for something else: more than any document has.
const MOST_ENTRIES: u64 = 65_536;

/// What a container holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Docx,
    Pptx,
    Xlsx,
    /// Excel's binary workbook, which is another format.
    Xlsb,
    Epub,
    OpenDocument,
    /// None of these: somebody's files.
    Archive,
}

/// What the container is, by the names in its directory; none where it has no directory that can be read.
pub(super) fn container(file: &mut (impl Read + Seek)) -> io::Result<Option<Container>> {
    if let Some(container) = by_media_type(file)? {
        return Ok(Some(container));
    }
    let Some((begin, count)) = directory(file)? else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(begin))?;
    let mut is_package = false;
    let mut found = None;
    let mut name = Vec::new();
    for _ in 0..count.min(MOST_ENTRIES) {
        let mut head = [0; ENTRY_BYTES];
        if read_all(file, &mut head)? < head.len() || !head.starts_with(ENTRY) {
            break;
        }
        let (length, skipped) = (u16_at(&head, 28), u16_at(&head, 30) + u16_at(&head, 32));
        name.resize(length, 0);
        if read_all(file, &mut name)? < length {
            break;
        }
        file.seek(SeekFrom::Current(
            i64::try_from(skipped).unwrap_or_default(),
        ))?;
        // Some programs write the separators of their system.
        name.iter_mut()
            .filter(|byte| **byte == b'\\')
            .for_each(|byte| *byte = b'/');
        let name = name.strip_prefix(b"/").unwrap_or(&name);
        is_package |= name == b"[Content_Types].xml";
        let is = |begin: &[u8], end: &[u8]| name.starts_with(begin) && name.ends_with(end);
        let new = if is(b"word/document", b".xml") {
            Some(Container::Docx)
        } else if is(b"ppt/presentation", b".xml") {
            Some(Container::Pptx)
        } else if is(b"xl/workbook", b".xml") {
            Some(Container::Xlsx)
        } else if is(b"xl/workbook", b".bin") {
            Some(Container::Xlsb)
        } else if name == b"META-INF/container.xml" {
            Some(Container::Epub)
        } else {
            None
        };
        found = found.or(new);
        match found {
            Some(Container::Epub) => break,
            Some(_) if is_package => break,
            _ => {}
        }
    }
    Ok(Some(match found {
        Some(Container::Epub) => Container::Epub,
        Some(office) if is_package => office,
        _ => Container::Archive,
    }))
}

/// Formats that begin with an entry that names them, not compressed.
fn by_media_type(file: &mut (impl Read + Seek)) -> io::Result<Option<Container>> {
    let mut head = [0; 128];
    file.rewind()?;
    let length = read_all(file, &mut head)?;
    let head = &head[..length];
    if head.len() < 30 || !head.starts_with(LOCAL) || u16_at(head, 26) != b"mimetype".len() {
        return Ok(None);
    }
    let rest = head[30..].strip_prefix(b"mimetype").unwrap_or_default();
    let skipped = u16_at(head, 28);
    let value = rest.get(skipped..).unwrap_or_default();
    Ok(if value.starts_with(b"application/epub+zip") {
        Some(Container::Epub)
    } else if value.starts_with(b"application/vnd.oasis.opendocument.") {
        Some(Container::OpenDocument)
    } else {
        None
    })
}

/// Where the directory begins and how many entries it has.
pub(super) fn directory(file: &mut (impl Read + Seek)) -> io::Result<Option<(u64, u64)>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_begin = length.saturating_sub((END_BYTES + LONGEST_COMMENT) as u64);
    file.seek(SeekFrom::Start(tail_begin))?;
    let mut tail = Vec::new();
    file.by_ref()
        .take((END_BYTES + LONGEST_COMMENT) as u64)
        .read_to_end(&mut tail)?;
    let is_end = |at: &usize| {
        tail[*at..].starts_with(END) && at + END_BYTES + u16_at(&tail, at + 20) <= tail.len()
    };
    let last = tail.len().checked_sub(END_BYTES);
    let Some(at) = last.and_then(|last| (0..=last).rev().find(is_end)) else {
        return Ok(None);
    };
    let end = tail_begin + at as u64;
    let (mut count, mut size) = (u16_at(&tail, at + 10) as u64, u32_at(&tail, at + 12));
    let mut begin = u32_at(&tail, at + 16);
    let mut directory_end = end;
    if count == 0xFFFF || size == 0xFFFF_FFFF || begin == 0xFFFF_FFFF {
        let locator = at.checked_sub(20).map(|at| &tail[at..at + 20]);
        if let Some(locator) = locator.filter(|locator| locator.starts_with(LOCATOR_64)) {
            let record_at = u64_at(locator, 8);
            let mut record = [0; 56];
            file.seek(SeekFrom::Start(record_at.min(length)))?;
            if read_all(file, &mut record)? == record.len() && record.starts_with(END_64) {
                (count, size, begin) = (
                    u64_at(&record, 32),
                    u64_at(&record, 40),
                    u64_at(&record, 48),
                );
                directory_end = record_at;
            }
        }
    }
    // Where something was put before the container, the offset is short by its length.
    let by_size = directory_end.saturating_sub(size);
    for candidate in [begin, by_size] {
        let mut signature = [0; 4];
        file.seek(SeekFrom::Start(candidate.min(length)))?;
        if read_all(file, &mut signature)? == 4 && signature == *ENTRY {
            return Ok(Some((candidate, count)));
        }
    }
    Ok(Some((end, 0)))
}

/// Fills as much as there is, and says how much that was.
pub(super) fn read_all(file: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let bytes = bytes.get(at..at + length).unwrap_or_default();
    let fold = |value, byte: &u8| value << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, fold)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::try_from(number(bytes, at, 2)).unwrap_or_default()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u64 {
    number(bytes, at, 4)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    number(bytes, at, 8)
}
