//! The thread that writes.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, SegmentMeta, TantivyDocument,
    indexer::{IndexWriterOptions, LogMergePolicy, MergeCandidate, MergePolicy},
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    EmbeddedOptions, Shared, State, UNREADABLE,
    damage::{self, Signs},
    dense::{Codes, Partition, Row},
    failed,
    lexical::{self, Fields, Key, Lexical},
    record::{self, Shown},
};
use crate::{
    indexing,
    search::{Change, IndexError, IndexedDocument, Place, Space},
};

/// The most changes of one commit, beyond the first call's.
const MAX_COMMIT: usize = 64;
/// Segments are merged when so many are of about the same size.
const MERGED: usize = 6;
/// Segments of which more than this part was removed are written again.
const MOST_REMOVED: f32 = 0.3;

/// What the thread is asked for.
pub(super) enum Job {
    Changes(Changes),
    /// Begin with an empty index.
    Clear(oneshot::Sender<Result<(), IndexError>>),
}

/// Changes, and who waits for them.
pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) done: oneshot::Sender<Result<(), IndexError>>,
}

/// What the vectors of a space become.
enum Step {
    Remove(Space, Uuid),
    RemoveSpace(Space),
    Push(Space, Row, Codes),
}

/// Merges segments unless that is held back.
#[derive(Debug)]
struct Merging {
    policy: LogMergePolicy,
    is_held: Arc<AtomicBool>,
}

impl MergePolicy for Merging {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        match self.is_held.load(Ordering::Relaxed) {
            true => Vec::new(),
            false => self.policy.compute_merge_candidates(segments),
        }
    }
}

/// What writes an index.
pub(super) struct Writing {
    folder: PathBuf,
    index: Index,
    fields: Fields,
    reader: IndexReader,
    /// `None` after a failure, until there is another.
    writer: Option<IndexWriter>,
    options: EmbeddedOptions,
    /// True while segments are not merged.
    merges_held: Arc<AtomicBool>,
    next_number: u64,
    chunks: usize,
    dimensions: HashMap<Space, (usize, usize)>,
}

/// Opens an index, or makes one, whose files are those that were written.
fn open_files(folder: &Path) -> Result<(Index, Fields, IndexReader), IndexError> {
    let (index, fields) = lexical::open(folder).map_err(damage::failure)?;
    damage::verify(folder)?;
    let reader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into();
    Ok((index, fields, reader.map_err(damage::failure)?))
}

impl Writing {
    pub(super) fn open(
        folder: &Path,
        options: EmbeddedOptions,
        merges_held: Arc<AtomicBool>,
    ) -> Result<(Self, State), IndexError> {
        let (index, fields, reader) = open_files(folder)?;
        let mut writing = Self {
            folder: folder.to_owned(),
            reader,
            writer: None,
            index,
            fields,
            options,
            merges_held,
            next_number: 0,
            chunks: 0,
            dimensions: HashMap::new(),
        };
        writing.begin()?;
        let state = writing.read()?;
        Ok((writing, state))
    }

    /// Begins with an empty index.
    fn clear(&mut self, shared: &Shared) -> Result<(), IndexError> {
        if let Some(writer) = self.writer.take() {
            // Nothing writes in the folder after this, not even a merge.
            if let Err(error) = writer.wait_merging_threads() {
                tracing::debug!(%error, "a merge of an index that is cleared failed");
            }
        }
        match std::fs::remove_dir_all(&shared.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => std::fs::create_dir_all(&shared.folder).map_err(failed)?,
        }
        (self.index, self.fields, self.reader) = open_files(&shared.folder)?;
        self.begin()?;
        let state = self.read()?;
        *shared.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        Ok(())
    }

    /// Takes the folder for writing. What was not committed is forgotten.
    fn begin(&mut self) -> Result<(), IndexError> {
        self.writer = None;
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(self.options.buffer_bytes.max(15_000_000))
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options).map_err(failed)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(MERGED);
        policy.set_del_docs_ratio_before_merge(MOST_REMOVED);
        writer.set_merge_policy(Box::new(Merging {
            policy,
            is_held: Arc::clone(&self.merges_held),
        }));
        self.writer = Some(writer);
        Ok(())
    }

    /// Reads the last commit.
    fn read(&mut self) -> Result<State, IndexError> {
        self.reader.reload().map_err(damage::failure)?;
        let searcher = self.reader.searcher();
        let mut spaces: HashMap<Space, Partition> = HashMap::new();
        let mut chunks = 0;
        for segment in searcher.segment_readers() {
            let store = segment
                .get_store_reader(0)
                .map_err(|error| damage::failure(error.into()))?;
            for document in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                let document = document.map_err(damage::failure)?;
                let bytes = self.fields.record(&document);
                let read = bytes.and_then(record::read);
                let read = read.ok_or_else(|| IndexError::Damaged(UNREADABLE.to_owned()))?;
                self.next_number = self.next_number.max(read.row.number + 1);
                spaces
                    .entry(read.space)
                    .or_default()
                    .push(read.row, &read.codes);
                chunks += 1;
            }
        }
        let state = State {
            lexical: Lexical::new(searcher, self.fields).map_err(damage::failure)?,
            spaces,
            chunks,
            signs: Mutex::new(Signs::take(&self.index, &self.folder, &Signs::default())?),
        };
        self.note(&state);
        Ok(state)
    }

    /// Remembers what the next changes have to fit.
    fn note(&mut self, state: &State) {
        self.chunks = state.chunks;
        self.dimensions = state
            .spaces
            .iter()
            .map(|(space, partition)| (*space, (partition.dimensions(), partition.len())))
            .collect();
    }

    /// Writes what comes until nobody is left who could send something.
    pub(super) fn run(mut self, waiting: &mpsc::Receiver<Job>, shared: &Shared) {
        while let Ok(first) = waiting.recv() {
            let (mut gathered, mut cleared) = (Vec::new(), None);
            let mut changes = 0;
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Changes(job) => {
                        // The first call is taken whatever it brings.
                        if !gathered.is_empty() {
                            changes += job.changes.len();
                        }
                        gathered.push(job);
                    }
                    Job::Clear(done) => {
                        cleared = Some(done);
                        break;
                    }
                }
                if changes < MAX_COMMIT {
                    next = waiting.try_recv().ok();
                }
            }
            self.commit(gathered, shared);
            if let Some(done) = cleared {
                let _ = done.send(self.clear(shared));
            }
        }
        if let Some(writer) = self.writer.take() {
            // Merges that are under way may end, or be lost; nothing depends on them.
            drop(writer);
        }
    }

    /// Makes these changes, those of a job that does not fit excepted.
    fn commit(&mut self, jobs: Vec<Changes>, shared: &Shared) {
        let mut steps = Vec::new();
        let mut waiting = Vec::new();
        let mut failure = None;
        for job in jobs {
            if let Err(error) = self.check(&job.changes, shared) {
                let _ = job.done.send(Err(error));
                continue;
            }
            waiting.push(job.done);
            if failure.is_none() {
                failure = self.write(job.changes, &mut steps).err();
            }
        }
        if waiting.is_empty() {
            return;
        }
        let committed = match failure {
            Some(error) => Err(error),
            None => self.finish(steps, shared),
        };
        if let Err(error) = &committed {
            // Whether a commit that failed was made is for the disk to say.
            let again = self.begin().and_then(|()| self.read());
            match again {
                Ok(state) => *shared.state.write().unwrap_or_else(PoisonError::into_inner) = state,
                Err(other) => {
                    tracing::error!(%error, %other, "the index cannot be written any more")
                }
            }
        }
        for done in waiting {
            let answer = committed.as_ref().copied().map_err(failed);
            let _ = done.send(answer);
        }
    }

    /// Whether all changes of a job can be made. What only takes something away always can.
    fn check(&self, changes: &[Change], shared: &Shared) -> Result<(), IndexError> {
        let state = shared.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut replaced = HashSet::new();
        let (mut added, mut removed) = (0, 0);
        let mut dimensions: HashMap<Space, usize> = HashMap::new();
        for change in changes {
            let Change::Put(space, document) = change else {
                continue;
            };
            added += document.chunks.len();
            if replaced.insert((*space, document.id)) {
                let partition = state.spaces.get(space);
                removed += partition.map_or(0, |partition| partition.document_len(document.id));
            }
            let held = self.dimensions.get(space).filter(|(_, chunks)| *chunks > 0);
            let held = held.map(|(dimensions, _)| *dimensions);
            let expected = dimensions.get(space).copied().or(held);
            if let Some(expected) = indexing::check(document, expected)? {
                dimensions.insert(*space, expected);
            }
        }
        let is_full = (self.chunks + added).saturating_sub(removed) > self.options.max_chunks;
        match is_full && added > removed {
            true => Err(IndexError::Full),
            false => Ok(()),
        }
    }

    fn write(&mut self, changes: Vec<Change>, steps: &mut Vec<Step>) -> Result<(), IndexError> {
        for change in changes {
            let writer = self
                .writer
                .as_ref()
                .ok_or_else(|| failed("it cannot be written"))?;
            let spaces = |base: Uuid| {
                let known = self
                    .dimensions
                    .keys()
                    .filter(move |space| space.base == base);
                known.copied().collect::<Vec<_>>()
            };
            match change {
                Change::Put(space, document) => self.put(space, document, steps)?,
                Change::RemoveDocument { base, document } => {
                    writer.delete_term(self.fields.key(Key::Document(base, document)));
                    steps.extend(
                        spaces(base)
                            .into_iter()
                            .map(|space| Step::Remove(space, document)),
                    );
                }
                Change::RemoveSpace(space) => {
                    writer.delete_term(self.fields.key(Key::Space(space)));
                    steps.push(Step::RemoveSpace(space));
                }
                Change::RemoveBase(base) => {
                    writer.delete_term(self.fields.key(Key::Base(base)));
                    steps.extend(spaces(base).into_iter().map(Step::RemoveSpace));
                }
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        space: Space,
        document: IndexedDocument,
        steps: &mut Vec<Step>,
    ) -> Result<(), IndexError> {
        let writer = self
            .writer
            .as_ref()
            .ok_or_else(|| failed("it cannot be written"))?;
        writer.delete_term(self.fields.key(Key::DocumentIn(space, document.id)));
        steps.push(Step::Remove(space, document.id));
        // What else is in this commit has to fit, and may remove the whole base again.
        if let Some((_, vector)) = document.chunks.first() {
            let held = self.dimensions.entry(space).or_default();
            if held.1 == 0 {
                held.0 = vector.codes().len();
            }
            held.1 += document.chunks.len();
            self.chunks += document.chunks.len();
        }
        let language = indexing::language(&document);
        for (chunk, vector) in document.chunks {
            let codes = Codes::of(&vector.numbers()).ok_or(IndexError::Vector)?;
            let terms = indexing::terms(&chunk, language);
            let row = Row {
                number: self.next_number,
                id: chunk.id,
                place: Place {
                    document: document.id,
                    index: chunk.index,
                },
                terms: u32::try_from(terms.len()).unwrap_or(u32::MAX),
                language,
            };
            let record = record::write(space, &row, &codes, &Shown::of(&chunk));
            let record = record.ok_or(IndexError::TooLarge("a chunk"))?;
            let indexed = self
                .fields
                .document(space, document.id, row.number, &terms, &record);
            writer.add_document(indexed).map_err(failed)?;
            self.next_number += 1;
            steps.push(Step::Push(space, row, codes));
        }
        Ok(())
    }

    /// Commits what was written, and lets it be found.
    fn finish(&mut self, steps: Vec<Step>, shared: &Shared) -> Result<(), IndexError> {
        let writer = self
            .writer
            .as_mut()
            .ok_or_else(|| failed("it cannot be written"))?;
        writer.commit().map_err(failed)?;
        self.reader.reload().map_err(failed)?;
        let lexical = Lexical::new(self.reader.searcher(), self.fields).map_err(failed)?;
        // Searches look at the signs, too, and do not wait until files are read.
        let known = shared.signs(|signs| signs.clone());
        let signs = Signs::take(&self.index, &self.folder, &known)?;
        let mut state = shared.state.write().unwrap_or_else(PoisonError::into_inner);
        let known = state.signs.get_mut();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        known.replace(signs);
        state.lexical = lexical;
        for step in steps {
            match step {
                Step::Remove(space, document) => {
                    if let Some(partition) = state.spaces.get_mut(&space) {
                        let removed = partition.document_len(document);
                        partition.remove(document);
                        state.chunks -= removed;
                    }
                }
                Step::RemoveSpace(space) => {
                    let removed = state.spaces.remove(&space);
                    state.chunks -= removed.map_or(0, |partition| partition.len());
                }
                Step::Push(space, row, codes) => {
                    state.spaces.entry(space).or_default().push(row, &codes);
                    state.chunks += 1;
                }
            }
        }
        state.spaces.retain(|_, partition| partition.len() > 0);
        self.note(&state);
        Ok(())
    }
}
