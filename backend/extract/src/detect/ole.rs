//! The directory of an OLE2 compound file: the container of Office 97 to 2003, of encrypted documents of today, and of much
//! else. Only the names at its top are read, in bounded memory, whatever it claims.
//!
//! Source: [MS-CFB], sections 2.2, 2.3, 2.5 and 2.6.

use std::io::{self, Read, Seek, SeekFrom};

use super::directory::{read_all, u16_at, u32_at};

pub(super) const SIGNATURE: [u8; 8] = [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
const HEADER_BYTES: usize = 512;
const ENTRY_BYTES: usize = 128;
/// Sector numbers from here on mean something else.
const LAST_SECTOR: u64 = 0xFFFF_FFFA;
/// Where the header lists the first sectors of the allocation table, and how many.
const TABLE_AT: usize = 76;
const TABLE_SECTORS: u64 = 109;
/// How much of a directory is read: 16,384 entries.
const MOST_DIRECTORY_BYTES: usize = 2 * 1024 * 1024;
/// How many sectors with the places of the allocation table are followed: those of a file of 2 GB have fewer.
const MOST_TABLE_STEPS: u64 = 512;

/// What a compound file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compound {
    Doc,
    Ppt,
    Xls,
    /// A document of today's Office behind a password.
    EncryptedPackage,
    /// Something else, such as a message of Outlook.
    Other,
}

/// What the file is, by the streams at its top; none where its directory cannot be read.
pub(super) fn compound(file: &mut (impl Read + Seek)) -> io::Result<Option<Compound>> {
    let mut header = [0; HEADER_BYTES];
    file.rewind()?;
    if read_all(file, &mut header)? < HEADER_BYTES || !header.starts_with(&SIGNATURE) {
        return Ok(None);
    }
    let sectors = match u16_at(&header, 30) {
        9 => Sectors { header, shift: 9 },
        12 => Sectors { header, shift: 12 },
        _ => return Ok(None),
    };
    let directory = sectors.directory(file)?;
    let mut found = Compound::Other;
    for name in names_at_top(&directory) {
        found = match name.as_str() {
            "EncryptedPackage" => return Ok(Some(Compound::EncryptedPackage)),
            "WordDocument" => Compound::Doc,
            "PowerPoint Document" => Compound::Ppt,
            "Workbook" | "Book" => Compound::Xls,
            _ => continue,
        };
    }
    Ok((!directory.is_empty()).then_some(found))
}

struct Sectors {
    header: [u8; HEADER_BYTES],
    shift: u32,
}

impl Sectors {
    fn bytes(&self) -> usize {
        1 << self.shift
    }

    /// Where a sector begins: the header takes the place of one.
    fn place(&self, sector: u64) -> u64 {
        (sector + 1) << self.shift
    }

    fn u32(&self, file: &mut (impl Read + Seek), sector: u64, index: u64) -> io::Result<u64> {
        let mut bytes = [0; 4];
        file.seek(SeekFrom::Start(self.place(sector) + 4 * index))?;
        let read = read_all(file, &mut bytes)?;
        Ok(if read == 4 {
            u32_at(&bytes, 0)
        } else {
            u64::MAX
        })
    }

    /// The sector after this one in its chain.
    fn next(&self, file: &mut (impl Read + Seek), sector: u64) -> io::Result<u64> {
        let of_sector = 1 << (self.shift - 2);
        let (table, index) = (sector / of_sector, sector % of_sector);
        let table = if table < TABLE_SECTORS {
            let at = TABLE_AT + 4 * usize::try_from(table).unwrap_or_default();
            u32_at(&self.header, at)
        } else {
            // The last number of a sector of the list leads to the next one.
            let listed = of_sector - 1;
            let (steps, place) = (
                (table - TABLE_SECTORS) / listed,
                (table - TABLE_SECTORS) % listed,
            );
            if steps > MOST_TABLE_STEPS {
                return Ok(u64::MAX);
            }
            let mut list = u32_at(&self.header, 68);
            for _ in 0..steps {
                if list >= LAST_SECTOR {
                    break;
                }
                list = self.u32(file, list, listed)?;
            }
            if list >= LAST_SECTOR {
                return Ok(u64::MAX);
            }
            self.u32(file, list, place)?
        };
        if table >= LAST_SECTOR {
            return Ok(u64::MAX);
        }
        self.u32(file, table, index)
    }

    fn directory(&self, file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
        let mut directory = Vec::new();
        let mut sector = u32_at(&self.header, 48);
        while sector < LAST_SECTOR && directory.len() < MOST_DIRECTORY_BYTES {
            let begin = directory.len();
            directory.resize(begin + self.bytes(), 0);
            file.seek(SeekFrom::Start(self.place(sector)))?;
            let read = read_all(file, &mut directory[begin..])?;
            if read < self.bytes() {
                directory.truncate(begin + read / ENTRY_BYTES * ENTRY_BYTES);
                break;
            }
            sector = self.next(file, sector)?;
        }
        Ok(directory)
    }
}

/// The names of what is in the root, which is the first entry: its children are a tree.
fn names_at_top(directory: &[u8]) -> Vec<String> {
    let (entries, _) = directory.as_chunks::<ENTRY_BYTES>();
    let mut names = Vec::new();
    let mut waiting: Vec<u64> = entries
        .first()
        .map(|root| u32_at(root, 76))
        .into_iter()
        .collect();
    let mut seen = vec![false; entries.len()];
    while let Some(index) = waiting.pop() {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(entry) = entries.get(index) else {
            continue;
        };
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let length = u16_at(entry, 64).min(64).saturating_sub(2);
        let (units, _) = entry[..length].as_chunks::<2>();
        let units: Vec<u16> = units.iter().copied().map(u16::from_le_bytes).collect();
        names.push(String::from_utf16_lossy(&units));
        waiting.extend([u32_at(entry, 68), u32_at(entry, 72)]);
    }
    names
}
