//! Containers of several files in a ZIP: Office documents and electronic books. What is read of them is counted while it is
//! unpacked, so a container may claim what it likes.
//!
//! The bounds are absolute. How far a part is compressed says nothing: a sheet with one value in every row is a hundredth of its
//! size, and valid.

use std::{
    collections::{BTreeMap, HashMap},
    io::{Cursor, Read as _, Write as _},
};

use quick_xml::{Reader, events::Event};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

use crate::{
    characters,
    error::{Bound, ExtractError},
    limits::Bounds,
};

/// How much is unpacked at once, before it is counted.
const PIECE_BYTES: u64 = 64 * 1024;
/// What pictures are called.
const PICTURES: [&str; 16] = [
    "png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "emf", "wmf", "emz", "wmz", "svg", "webp",
    "wdp", "jp2", "pcx",
];
/// Where Office documents keep their properties, and their preview.
const PROPERTIES: &str = "docProps/";

/// An open container.
pub(crate) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// Places in the archive, by names whose parts are separated by `/`.
    names: BTreeMap<String, usize>,
    /// Names of files that were renamed, by those that the archive has for them.
    renamed: HashMap<String, String>,
    left: Left,
    /// What is left for parts that are looked at before they are read.
    left_to_look_at: Left,
    bounds: Bounds,
}

/// What is left of the bounds.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// What may still be unpacked.
    room: usize,
    /// How many elements parts may still have.
    elements: usize,
}

impl<'a> Package<'a> {
    /// Opens a container.
    pub(crate) fn open(bytes: &'a [u8], bounds: &Bounds) -> Result<Self, ExtractError> {
        let claimed = crate::detect::entries(bytes);
        if claimed > bounds.entries as u64 {
            return Err(ExtractError::too_large(Bound::Entries, bounds.entries));
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(of_zip)?;
        if archive.len() > bounds.entries {
            return Err(ExtractError::too_large(Bound::Entries, bounds.entries));
        }
        let mut names = BTreeMap::new();
        for place in 0..archive.len() {
            let name = archive
                .name_for_index(place)
                .and_then(Result::ok)
                .map(|name| name.into_owned());
            if let Some(name) = name {
                let name = name.replace('\\', "/");
                names.insert(name.trim_start_matches('/').to_owned(), place);
            }
        }
        let left = Left {
            room: bounds.unpacked_bytes,
            elements: bounds.elements,
        };
        Ok(Self {
            archive,
            names,
            renamed: HashMap::new(),
            left,
            left_to_look_at: left,
            bounds: *bounds,
        })
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Gives a file another name. Returns false if it is not there, or another file has that name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> bool {
        if self.names.contains_key(to) {
            return false;
        }
        let Some(place) = self.names.remove(from) else {
            return false;
        };
        self.names.insert(to.to_owned(), place);
        self.renamed.insert(from.to_owned(), to.to_owned());
        true
    }

    /// The name of a file that was renamed, by the one that it has in the archive.
    pub(crate) fn renamed(&self, name: &str) -> Option<&str> {
        self.renamed.get(name).map(String::as_str)
    }

    /// Whether any of its files is a picture, other than the preview of an Office document that its program made.
    pub(crate) fn has_pictures(&self) -> bool {
        let mut names = self.names();
        names.any(|name| is_picture(name) && !name.starts_with(PROPERTIES))
    }

    /// How long a file says that it is.
    pub(crate) fn claimed_bytes(&mut self, name: &str) -> Option<u64> {
        let place = *self.names.get(name)?;
        self.archive
            .by_index_raw(place)
            .ok()
            .map(|file| file.size())
    }

    /// A file, unpacked.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        self.read_begin(name, u64::MAX)
    }

    /// The first bytes of a file, unpacked: `most` of them, or all where it has fewer.
    pub(crate) fn read_begin(
        &mut self,
        name: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, ExtractError> {
        let place = match self.names.get(name) {
            Some(place) => *place,
            None => return Ok(None),
        };
        let file = self.archive.by_index(place).map_err(of_zip)?;
        let mut file = file.take(most);
        let mut bytes = Vec::new();
        loop {
            let piece = (&mut file).take(PIECE_BYTES).read_to_end(&mut bytes);
            match piece {
                Ok(0) => break,
                Ok(more) if more <= self.left.room => self.left.room -= more,
                Ok(_) => {
                    let most = self.bounds.unpacked_bytes;
                    return Err(ExtractError::too_large(Bound::UnpackedBytes, most));
                }
                Err(error) => return Err(ExtractError::damaged(format!("{name}: {error}"))),
            }
        }
        Ok(Some(bytes))
    }

    /// The text of a file of XML, when it is within bounds: how deep it is, and how many elements it has.
    pub(crate) fn read_xml(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        let Some(bytes) = self.read(name)? else {
            return Ok(None);
        };
        let xml = match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => without_mark(text),
            Ok(text) => without_declaration(&characters::decode(text.as_bytes(), None)),
            Err(error) => without_declaration(&characters::decode(error.as_bytes(), None)),
        };
        self.count(name, &xml)?;
        Ok(Some(xml))
    }

    /// Likewise of a part that is read once more, as [`Package::counted`] does: it is charged there, and here within bounds of the same size
    /// for all parts that are looked at. So a document within the bounds may be looked at as a whole.
    pub(crate) fn look_at_xml(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        std::mem::swap(&mut self.left, &mut self.left_to_look_at);
        let xml = self.read_xml(name);
        std::mem::swap(&mut self.left, &mut self.left_to_look_at);
        xml
    }

    /// Counts what XML is made of, whether it is well-formed or not.
    fn count(&mut self, name: &str, xml: &str) -> Result<(), ExtractError> {
        let mut reader = Reader::from_str(xml);
        let settings = reader.config_mut();
        settings.check_end_names = false;
        settings.allow_unmatched_ends = true;
        let mut depth = 0_usize;
        let mut deepest = 0;
        loop {
            match reader.read_event() {
                Ok(Event::Start(_)) => {
                    depth += 1;
                    deepest = deepest.max(depth);
                    self.count_element()?;
                }
                Ok(Event::Empty(_)) => self.count_element()?,
                Ok(Event::End(_)) => depth = depth.saturating_sub(1),
                // No part of a document has them; what they stand for may have no end.
                Ok(Event::DocType(types)) if types.contains("<!ENTITY") => {
                    return Err(ExtractError::Entities);
                }
                Ok(Event::Eof) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(ExtractError::damaged(format!("{name}: {error}"))),
            }
            if deepest > self.bounds.depth {
                return Err(ExtractError::too_large(Bound::Depth, self.bounds.depth));
            }
        }
    }

    fn count_element(&mut self) -> Result<(), ExtractError> {
        match self.left.elements.checked_sub(1) {
            Some(left) => {
                self.left.elements = left;
                Ok(())
            }
            None => Err(ExtractError::too_large(
                Bound::Elements,
                self.bounds.elements,
            )),
        }
    }

    /// Another container with the parts of this one that have text, which were counted, and nothing compressed: what reads
    /// documents is given that, and cannot be made to unpack anything. `part` gets each part, and gives the name and the text that
    /// are written; none where the part is left out.
    pub(crate) fn counted(
        &mut self,
        mut part: impl FnMut(String, String) -> Result<Option<(String, String)>, ExtractError>,
    ) -> Result<Vec<u8>, ExtractError> {
        let names: Vec<String> = self
            .names()
            .filter(|name| is_text(name))
            .map(str::to_owned)
            .collect();
        let mut counted = Stored::new();
        for name in names {
            let Some(xml) = self.read_xml(&name)? else {
                continue;
            };
            if let Some((name, xml)) = part(name, xml)? {
                counted.add(&name, &xml)?;
            }
        }
        counted.finish()
    }
}

/// A container that is written, with nothing compressed.
pub(crate) struct Stored(ZipWriter<Cursor<Vec<u8>>>);

impl Stored {
    pub(crate) fn new() -> Self {
        Self(ZipWriter::new(Cursor::new(Vec::new())))
    }

    /// Adds a part.
    pub(crate) fn add(&mut self, name: &str, xml: &str) -> Result<(), ExtractError> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        self.0.start_file(name, options).map_err(of_zip)?;
        self.0
            .write_all(xml.as_bytes())
            .map_err(ExtractError::failed)
    }

    /// Its bytes.
    pub(crate) fn finish(self) -> Result<Vec<u8>, ExtractError> {
        Ok(self.0.finish().map_err(of_zip)?.into_inner())
    }
}

/// The name of a file that another one names.
pub(crate) fn resolve(from: &str, to: &str) -> String {
    let to = to.split(['#', '?']).next().unwrap_or_default();
    let to = percent_encoding::percent_decode_str(to).decode_utf8_lossy();
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if to.starts_with('/') {
        parts.clear();
    }
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a file is called as pictures are.
pub(crate) fn is_picture(name: &str) -> bool {
    PICTURES.contains(&crate::format::extension(name).as_str())
}

/// Whether a part of an Office document has text that is read.
fn is_text(name: &str) -> bool {
    let extension = crate::format::extension(name);
    let is_extension = matches!(extension.as_str(), "xml" | "rels");
    // `_rels/.rels` has a name that begins with its dot.
    (is_extension || name.ends_with("/.rels")) && !name.starts_with("customXml/")
}

fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{FEFF}') {
        text.remove(0);
    }
    text
}

/// The declaration names an encoding that the text has no longer.
fn without_declaration(text: &str) -> String {
    match text
        .strip_prefix("<?xml")
        .and_then(|rest| rest.split_once("?>"))
    {
        Some((_, rest)) => rest.to_owned(),
        None => text.to_owned(),
    }
}

/// What is wrong with a container.
fn of_zip(error: ZipError) -> ExtractError {
    match error {
        ZipError::InvalidPassword => ExtractError::Encrypted,
        ZipError::UnsupportedArchive(why) if why == ZipError::PASSWORD_REQUIRED => {
            ExtractError::Encrypted
        }
        other => ExtractError::damaged(other),
    }
}
