//! Finds damaged files of an index: written half, cut off, or changed.
//!
//! Every file of a segment ends with a footer of `tantivy` that has the CRC-32 of what stands before it. The files are read here in small pieces,
//! not mapped to memory: a file that became shorter since it was mapped ends the process that reads beyond its end.
//!
//! Reading all files takes long, so searches compare lengths and times of modification now and then ([`Signs`]).

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, ErrorKind, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crc32fast::Hasher;
use serde::Deserialize;
use tantivy::{Index, TantivyError, directory::error::OpenReadError};

use super::META;
use crate::search::IndexError;

/// The last bytes of a file: the length of the footer's JSON and a number that every footer has, of 32 bits each.
const TAIL: usize = 8;
const MAGIC: u32 = 1_337;
/// The longest JSON of a footer.
const MAX_FOOTER: u32 = 50_000;
/// What is read at once.
const PIECE: usize = 64 * 1024;
/// How often at most the signs of files are compared.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Footer {
    crc: u32,
}

/// The failure of the library, or what it found damaged.
pub(super) fn failure(error: TantivyError) -> IndexError {
    let is_damage = match &error {
        TantivyError::DataCorruption(_)
        | TantivyError::DeserializeError(_)
        | TantivyError::IncompatibleIndex(_)
        | TantivyError::SchemaError(_)
        | TantivyError::OpenReadError(
            OpenReadError::FileDoesNotExist(_) | OpenReadError::IncompatibleIndex(_),
        ) => true,
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
        | TantivyError::IoError(io_error) => is_malformed(io_error),
        _ => false,
    };
    match is_damage {
        true => IndexError::Damaged(error.to_string()),
        false => IndexError::Failed(error.to_string()),
    }
}

fn is_malformed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::NotFound
    )
}

/// The lengths and times of modification of the files of a commit. The files of a segment are written once, so one that changes was changed
/// by somebody else.
///
/// Files are compared without a lock, as one with another time is read: [`Signs::begin`], or a clone, gives what [`Signs::compare`] compares,
/// and [`Signs::note`] takes what that found, but nothing of files that are others by then.
#[derive(Debug, Clone, Default)]
pub(super) struct Signs {
    files: HashMap<PathBuf, Sign>,
    /// Those of the file that names the others. Each commit writes it, and each merge.
    meta: Option<Sign>,
    looked: Option<Instant>,
    /// True while what [`Signs::begin`] gave is compared, which takes long where files are read.
    comparing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    length: u64,
    modified: Option<SystemTime>,
}

impl Sign {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

/// What became of files since their signs were taken.
#[derive(Debug)]
pub(super) struct Seen {
    before: Signs,
    /// Signs of files that were touched, or that a merge made; `None` of those that a merge removed.
    after: Vec<(PathBuf, Option<Sign>)>,
    /// Those of the file that names the others, as it was when it was read.
    meta: Option<Sign>,
    /// The first file that is damaged or cannot be read.
    failure: Option<(PathBuf, IndexError)>,
}

impl Signs {
    /// Takes the signs of the files of the last commit, for which it reads from the disk. Those of files that were known before stay as they
    /// were.
    pub(super) fn take(index: &Index, folder: &Path, known: &Self) -> Result<Self, IndexError> {
        // Before it is read: a merge that ends meanwhile is seen later.
        let meta = Sign::of(&folder.join(META)).ok();
        let metas = index.load_metas().map_err(failure)?;
        let sign = |name: PathBuf| {
            let sign = known.files.get(&name).copied();
            // A segment without removals names a file of removals that it does not have.
            let sign = sign.or_else(|| Sign::of(&folder.join(&name)).ok())?;
            Some((name, sign))
        };
        let names = metas.list_segment_files().into_iter();
        Ok(Self {
            files: names.filter_map(sign).collect(),
            meta,
            ..Self::default()
        })
    }

    /// Replaces these signs with those of a later commit. When files were compared, whether they are, and the signs that this renewed stay: all
    /// of that may be newer than what the later signs were taken from.
    pub(super) fn replace(&mut self, later: Self) {
        let before = std::mem::replace(&mut self.files, later.files);
        for (name, sign) in &mut self.files {
            if let Some(renewed) = before.get(name) {
                *sign = *renewed;
            }
        }
        self.meta = later.meta;
    }

    /// Returns the signs to compare, every [`LOOK_EVERY`] at most, or at once where damage was found: it is found again until the index is
    /// made again. Returns none until [`Signs::end`] says that the comparison before has ended.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Self> {
        let looked = self.looked;
        if self.comparing || looked.is_some_and(|at| now.saturating_duration_since(at) < LOOK_EVERY)
        {
            return None;
        }
        self.looked = Some(now);
        self.comparing = true;
        Some(self.clone())
    }

    /// Notes that what [`Signs::begin`] gave is compared no longer.
    pub(super) fn end(&mut self) {
        self.comparing = false;
    }

    /// Compares the files with these signs. Of one that has another time the checksum is compared, which reads it.
    pub(super) fn compare(self, folder: &Path) -> Seen {
        let mut seen = Seen {
            meta: self.meta,
            before: self,
            after: Vec::new(),
            failure: None,
        };
        seen.failure = seen.read(folder).err();
        seen
    }

    /// Takes what a comparison found of the files that still have the signs that were compared.
    ///
    /// # Errors
    /// The failure that was found, unless its file has another sign by now, or none.
    pub(super) fn note(&mut self, seen: Seen) -> Result<(), IndexError> {
        let is_same = |signs: &Self, name: &Path| signs.sign(name) == seen.before.sign(name);
        if let Some((name, error)) = seen.failure
            && is_same(self, &name)
        {
            self.looked = None;
            return Err(error);
        }
        for (name, sign) in seen.after {
            if is_same(self, &name) {
                match sign {
                    Some(sign) => self.files.insert(name, sign),
                    None => self.files.remove(&name),
                };
            }
        }
        if self.meta == seen.before.meta {
            self.meta = seen.meta;
        }
        Ok(())
    }

    fn sign(&self, name: &Path) -> Option<Sign> {
        match name == Path::new(META) {
            true => self.meta,
            false => self.files.get(name).copied(),
        }
    }
}

impl Seen {
    fn read(&mut self, folder: &Path) -> Result<(), (PathBuf, IndexError)> {
        let mut gone = Vec::new();
        for (name, sign) in &self.before.files {
            let path = folder.join(name);
            let damage = |why| Err((name.clone(), damaged(name, why)));
            let is_gone = |error: &io::Error| error.kind() == ErrorKind::NotFound;
            match Sign::of(&path) {
                Ok(now) if now == *sign => {}
                Ok(now) if now.length != sign.length => return damage("the length is another"),
                Ok(now) => match is_whole(&path) {
                    Ok(true) => self.after.push((name.clone(), Some(now))),
                    Ok(false) => return damage("the checksum is another"),
                    Err(error) if is_gone(&error) => gone.push(name.clone()),
                    Err(error) => return Err((name.clone(), unreadable(name, &error))),
                },
                Err(error) if is_gone(&error) => gone.push(name.clone()),
                Err(error) => return Err((name.clone(), IndexError::Failed(error.to_string()))),
            }
        }
        let meta = Sign::of(&folder.join(META)).ok();
        if gone.is_empty() && meta == self.before.meta {
            return Ok(());
        }
        // A merge makes files that have no signs yet, and removes those that the commit does not name any more.
        let named = segment_files(folder).map_err(|error| (PathBuf::from(META), error))?;
        for name in gone {
            if named.contains(&name) {
                let error = damaged(&name, "the file is gone");
                return Err((name, error));
            }
            self.after.push((name, None));
        }
        let known = &self.before.files;
        let made = named.into_iter().filter(|name| !known.contains_key(name));
        let made = made.filter_map(|name| {
            let sign = Sign::of(&folder.join(&name)).ok()?;
            Some((name, Some(sign)))
        });
        self.after.extend(made);
        self.meta = meta;
        Ok(())
    }
}

fn damaged(name: &Path, why: &str) -> IndexError {
    IndexError::Damaged(format!("{}: {why}", name.display()))
}

fn unreadable(name: &Path, error: &io::Error) -> IndexError {
    match is_malformed(error) {
        true => damaged(name, "the footer is malformed"),
        false => IndexError::Failed(error.to_string()),
    }
}

/// The files of the last commit.
fn segment_files(folder: &Path) -> Result<HashSet<PathBuf>, IndexError> {
    let metas = Index::open_in_dir(folder).and_then(|index| index.load_metas());
    Ok(metas.map_err(failure)?.list_segment_files())
}

/// Compares all files of the last commit with their checksums. A file that is not there is passed over: it may have been merged meanwhile, and
/// opening an index finds what is missing.
pub(super) fn verify(folder: &Path) -> Result<(), IndexError> {
    for name in segment_files(folder)? {
        match is_whole(&folder.join(&name)) {
            Ok(true) => {}
            Ok(false) => return Err(damaged(&name, "the checksum is another")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&name, &error)),
        }
    }
    Ok(())
}

/// True if a file has the checksum that its footer says.
fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let malformed = || io::Error::from(ErrorKind::InvalidData);
    let before_tail = length.checked_sub(TAIL as u64).ok_or_else(malformed)?;
    file.seek(SeekFrom::Start(before_tail))?;
    let (mut json_length, mut magic) = ([0; 4], [0; 4]);
    file.read_exact(&mut json_length)?;
    file.read_exact(&mut magic)?;
    let json_length = u32::from_le_bytes(json_length);
    if u32::from_le_bytes(magic) != MAGIC || json_length > MAX_FOOTER {
        return Err(malformed());
    }
    let content = before_tail
        .checked_sub(json_length.into())
        .ok_or_else(malformed)?;
    file.seek(SeekFrom::Start(content))?;
    let footer = file.by_ref().take(json_length.into());
    let footer: Footer = serde_json::from_reader(footer).map_err(|_| malformed())?;
    file.seek(SeekFrom::Start(0))?;
    let mut rest = file.take(content);
    let mut hasher = Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut hashed = 0;
    loop {
        let read = rest.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        hashed += read as u64;
    }
    Ok(hashed == content && hasher.finalize() == footer.crc)
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
        sync::Arc,
    };

    use colloquy_base::clock::{Clock as _, SystemClock};
    use tantivy::{
        IndexWriter, TantivyDocument,
        indexer::NoMergePolicy,
        schema::{STORED, Schema, TEXT},
    };

    use super::*;
    use crate::embedded::{Comparing, EmbeddedIndex, EmbeddedOptions};

    /// An index of two segments in a folder, and what writes it.
    fn two_segments(folder: &Path) -> (Index, IndexWriter) {
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TEXT | STORED);
        let index = Index::create_in_dir(folder, schema.build()).unwrap();
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for word in ["bear", "lion"] {
            let mut document = TantivyDocument::default();
            document.add_text(text, word);
            writer.add_document(document).unwrap();
            writer.commit().unwrap();
        }
        (index, writer)
    }

    fn merge(index: &Index, writer: &mut IndexWriter) {
        let segments = index.searchable_segment_ids().unwrap();
        writer.merge(&segments).wait().unwrap();
    }

    /// The files of the last commit whose names end like this.
    fn stores(folder: &Path) -> Vec<PathBuf> {
        let names = segment_files(folder).unwrap().into_iter();
        let is_store = |name: &PathBuf| name.extension().is_some_and(|kind| kind == "store");
        names.filter(is_store).collect()
    }

    fn compare(signs: &mut Signs, folder: &Path) -> Result<(), IndexError> {
        let seen = signs.clone().compare(folder);
        signs.note(seen)
    }

    /// Changes a byte of a file, and its time.
    fn garble(path: &Path) {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[0] ^= 0x55;
        std::fs::write(path, bytes).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn a_merge_is_no_damage_and_its_files_get_signs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (index, mut writer) = two_segments(folder);
        let mut signs = Signs::take(&index, folder, &Signs::default()).unwrap();
        let old = stores(folder);
        // It ends after signs were taken, and before they are compared.
        merge(&index, &mut writer);
        assert!(
            old.iter().all(|name| !folder.join(name).exists()),
            "{old:?}"
        );
        compare(&mut signs, folder).unwrap();
        assert!(old.iter().all(|name| !signs.files.contains_key(name)));
        let made = stores(folder);
        assert_eq!(made.len(), 1);
        assert!(signs.files.contains_key(&made[0]));
        // No commit came since.
        garble(&folder.join(&made[0]));
        let damaged = compare(&mut signs, folder);
        assert!(
            matches!(damaged, Err(IndexError::Damaged(_))),
            "{damaged:?}"
        );
    }

    #[test]
    fn a_file_that_was_replaced_while_it_was_read_is_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (index, _writer) = two_segments(folder);
        let now = SystemClock.instant();
        let mut signs = Signs::take(&index, folder, &Signs::default()).unwrap();
        let name = stores(folder).remove(0);
        garble(&folder.join(&name));
        let before = signs.begin(now).unwrap();
        assert!(signs.begin(now).is_none(), "another one compares them");
        let seen = before.clone().compare(folder);
        // A commit came meanwhile, without this file.
        let mut others = signs.clone();
        others.files.remove(&name);
        others.note(seen).unwrap();
        others.end();
        assert!(others.begin(now).is_none());
        let damaged = signs.note(before.compare(folder));
        assert!(
            matches!(damaged, Err(IndexError::Damaged(_))),
            "{damaged:?}"
        );
        signs.end();
        assert!(signs.begin(now).is_some(), "it is found again at once");
    }

    /// Gives a file another time, and leaves what it holds.
    fn touch(path: &Path) {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn a_file_that_was_touched_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (index, _writer) = two_segments(folder);
        let mut signs = Signs::take(&index, folder, &Signs::default()).unwrap();
        touch(&folder.join(stores(folder).remove(0)));
        let seen = signs.clone().compare(folder);
        assert_eq!(seen.after.len(), 1, "{seen:?}");
        signs.note(seen).unwrap();
        assert!(signs.clone().compare(folder).after.is_empty());
    }

    #[test]
    fn a_commit_keeps_what_a_comparison_found_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (index, _writer) = two_segments(folder);
        let now = SystemClock.instant();
        let mut signs = Signs::take(&index, folder, &Signs::default()).unwrap();
        touch(&folder.join(stores(folder).remove(0)));
        let later = |known: &Signs| Signs::take(&index, folder, known).unwrap();
        // One that goes on,
        let before = signs.begin(now).unwrap();
        let taken = later(&signs);
        signs.replace(taken);
        assert!(signs.begin(now + 2 * LOOK_EVERY).is_none());
        // and one that ends.
        let taken = later(&signs);
        signs.note(before.compare(folder)).unwrap();
        signs.end();
        signs.replace(taken);
        assert!(signs.begin(now).is_none(), "they were compared just now");
        let before = signs.begin(now + 2 * LOOK_EVERY).unwrap();
        assert!(before.compare(folder).after.is_empty(), "it is read again");
    }

    #[test]
    fn files_are_compared_by_one_search_however_long_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let (now, options) = (SystemClock.instant(), EmbeddedOptions::default());
        let index = EmbeddedIndex::open(folder.path(), options, Arc::new(SystemClock)).unwrap();
        let shared = &index.shared;
        let begin = |times: u32| {
            let later = now + times * LOOK_EVERY;
            shared.signs(|signs| signs.begin(later)).is_some()
        };
        assert!(begin(0));
        assert!(!begin(10), "the first one has not ended");
        drop(Comparing(shared));
        assert!(begin(10));
        // Likewise after one that unwinds.
        let unwound: std::thread::Result<()> = catch_unwind(AssertUnwindSafe(|| {
            let _comparing = Comparing(shared);
            resume_unwind(Box::new("a file that cannot be read"));
        }));
        assert!(unwound.is_err());
        assert!(begin(20));
        shared.signs(Signs::end);
        shared.look(now + 30 * LOOK_EVERY).unwrap();
        assert!(!begin(30), "they were compared just now");
        assert!(begin(40), "and are no longer");
    }
}
