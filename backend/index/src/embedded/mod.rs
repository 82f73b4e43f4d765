//! An index in a folder of this machine, for one process.
//!
//! Words and what passages show are in files of `tantivy`; vectors are in memory, and read from the same files when the index is opened. There
//! is one truth, the last commit: it is made of files that were written and synchronized before, and takes effect by renaming one. A process
//! that is killed leaves the last commit, and files that the next one removes.
//!
//! One thread writes. What waits for it when it is ready is one commit, so that many documents that come at once wait for the disk once. Searches
//! read a state of words and vectors that belong together; it is replaced after a commit.
//!
//! Files are compared with their checksums when the index is opened, and when [`EmbeddedIndex::verify`] is called. Files that were removed or
//! changed since are noticed by searches, every few seconds, and by [`EmbeddedIndex::look`]. An index that is damaged can be emptied
//! ([`EmbeddedIndex::clear`]); whoever owns it knows what belongs into it.

mod damage;
mod dense;
mod lexical;
mod record;
mod texts;
mod writing;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

use async_trait::async_trait;
use colloquy_base::clock::Clock;
use tokio::{sync::oneshot, task::spawn_blocking};

use self::{
    damage::Signs,
    dense::Partition,
    lexical::Lexical,
    writing::{Changes, Job, Writing},
};
use crate::{
    chunking::{ChunkId, passage},
    feedback,
    fusion::fuse,
    indexing::{has_direction, question_terms, rarity},
    search::{
        Change, ChunkText, Form, Hit, IndexError, Passage, Place, Question, Ranking, SearchIndex,
        SearchRequest, SearchResponse, Space, Stream, Usage,
    },
};

/// What is said of a chunk that is not there, or is none.
const UNREADABLE: &str = "a chunk cannot be read";
/// From so many chunks on, vectors and words are compared on two threads.
const PARALLEL: usize = 20_000;
/// The file that names the segments of the last commit.
const META: &str = "meta.json";
/// How many calls may wait for the writer with their documents in memory.
const QUEUE: usize = 16;

/// What an index may use.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// The most chunks of all spaces together. With vectors of 384 dimensions, a million takes 0.6 GB of memory.
    pub max_chunks: usize,
    /// The memory in which chunks are gathered before they are written, in bytes; at least 15 million.
    pub buffer_bytes: usize,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            max_chunks: 2_000_000,
            buffer_bytes: 64_000_000,
        }
    }
}

/// An index in a folder. It is cheap to clone; the folder is in use until the last clone is dropped.
#[derive(Clone)]
pub struct EmbeddedIndex {
    shared: Arc<Shared>,
    jobs: mpsc::SyncSender<Job>,
    merges_held: Arc<AtomicBool>,
    /// Joined when the last clone goes, so that the folder is free then.
    _writer: Arc<Writer>,
}

struct Shared {
    state: RwLock<State>,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

/// While it lives, files are compared, and by nobody else.
struct Comparing<'a>(&'a Shared);

impl Drop for Comparing<'_> {
    fn drop(&mut self) {
        self.0.signs(Signs::end);
    }
}

/// Words and vectors that belong together.
struct State {
    lexical: Lexical,
    spaces: HashMap<Space, Partition>,
    chunks: usize,
    signs: Mutex<Signs>,
}

struct Writer(Option<thread::JoinHandle<()>>);

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(writer) = self.0.take() {
            // The senders were dropped before, so it ends with what it is writing.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for EmbeddedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedIndex({})", self.shared.folder.display())
    }
}

impl EmbeddedIndex {
    /// Opens the index in a folder, or makes one there, and reads its vectors: some seconds for a million chunks.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] when its files are not those that were written; another error when the folder cannot be used, or another
    /// process uses it.
    pub fn open(
        folder: &Path,
        options: EmbeddedOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IndexError> {
        std::fs::create_dir_all(folder).map_err(failed)?;
        let merges_held = Arc::new(AtomicBool::new(false));
        let (writing, state) = Writing::open(folder, options, Arc::clone(&merges_held))?;
        let shared = Arc::new(Shared {
            state: RwLock::new(state),
            folder: folder.to_owned(),
            clock,
        });
        let (jobs, waiting) = mpsc::sync_channel(QUEUE);
        let run = {
            let shared = shared.clone();
            move || writing.run(&waiting, &shared)
        };
        let writer = thread::Builder::new()
            .name("index-writer".to_owned())
            .spawn(run);
        Ok(Self {
            shared,
            jobs,
            merges_held,
            _writer: Arc::new(Writer(Some(writer.map_err(failed)?))),
        })
    }

    /// True if there is an index in a folder.
    #[must_use]
    pub fn exists(folder: &Path) -> bool {
        folder.join(META).is_file()
    }

    /// Compares the files of the last commit with their checksums; it reads all of them.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] names the first file that is damaged.
    pub async fn verify(&self) -> Result<(), IndexError> {
        let shared = self.shared.clone();
        let verified = spawn_blocking(move || {
            damage::verify(&shared.folder)?;
            let signs = shared.signs(|signs| signs.clone());
            shared.compare(signs)
        });
        verified.await.map_err(failed)?
    }

    /// Compares lengths and times of the files with those that were written, every few seconds at most.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] names a file that is gone or was changed.
    pub async fn look(&self) -> Result<(), IndexError> {
        let shared = self.shared.clone();
        let looked = spawn_blocking(move || shared.look(shared.clock.instant()));
        looked.await.map_err(failed)?
    }

    /// Removes all files and begins with an empty index, also when the files are damaged. Searches that are under way end first.
    ///
    /// # Errors
    /// When the folder cannot be used. Then the index can still be cleared again.
    pub async fn clear(&self) -> Result<(), IndexError> {
        self.send(Job::Clear).await
    }

    /// Sets whether later commits leave segments as they are. Merging writes their chunks once more before the old files go, so it takes space on
    /// a disk that may have little. Segments that have no chunk left are removed in any case.
    pub fn hold_merges(&self, is_held: bool) {
        self.merges_held.store(is_held, Ordering::Relaxed);
    }

    async fn send(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<(), IndexError>>) -> Job,
    ) -> Result<(), IndexError> {
        let (done, acknowledged) = oneshot::channel();
        let (jobs, job) = (self.jobs.clone(), job(done));
        let sent = spawn_blocking(move || jobs.send(job).is_ok()).await;
        match sent {
            Ok(true) => acknowledged
                .await
                .unwrap_or_else(|_| Err(failed("the writer ended"))),
            _ => Err(failed("the writer ended")),
        }
    }
}

impl Shared {
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn signs<T>(&self, with: impl FnOnce(&mut Signs) -> T) -> T {
        let state = self.state();
        let mut signs = state.signs.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut signs)
    }

    /// Compares the signs of files when it is time to, and nobody else does.
    fn look(&self, now: Instant) -> Result<(), IndexError> {
        let Some(signs) = self.signs(|signs| signs.begin(now)) else {
            return Ok(());
        };
        let _comparing = Comparing(self);
        self.compare(signs)
    }

    /// Compares files with these signs. A commit does not wait for what is read.
    fn compare(&self, signs: Signs) -> Result<(), IndexError> {
        let seen = signs.compare(&self.folder);
        self.signs(|signs| signs.note(seen))
    }

    fn vectors(&self, space: Space, ids: &[ChunkId]) -> HashMap<ChunkId, Vec<f32>> {
        let wanted: HashSet<_> = ids.iter().copied().collect();
        let state = self.state();
        let Some(partition) = state.spaces.get(&space).filter(|_| !wanted.is_empty()) else {
            return HashMap::new();
        };
        let found = partition.rows().filter(|(row, _)| wanted.contains(&row.id));
        found.map(|(row, codes)| (row.id, codes.vector())).collect()
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResponse, IndexError> {
        let begin = self.clock.instant();
        self.look(begin)?;
        let state = self.state();
        let Some(partition) = state
            .spaces
            .get(&request.space)
            .filter(|space| space.len() > 0)
        else {
            return Ok(SearchResponse {
                passages: Vec::new(),
                rankings: Vec::new(),
                languages: Vec::new(),
                took: self.clock.instant().saturating_duration_since(begin),
            });
        };
        let languages = partition.languages();
        let search = Search {
            clock: &*self.clock,
            lexical: &state.lexical,
            space: request.space,
            partition,
            depth: request.fusion.depth(),
        };
        let replaced = request
            .replaced
            .as_ref()
            .map(|question| (Form::Replaced, question));
        let questions: Vec<Asked<'_>> = std::iter::once((Form::Original, &request.original))
            .chain(replaced)
            .map(|(form, question)| {
                if let Some(vector) = &question.vector
                    && (vector.len() != partition.dimensions() || !has_direction(vector))
                {
                    return Err(IndexError::Vector);
                }
                Ok(Asked {
                    form,
                    question,
                    terms: question_terms(&question.text, &languages),
                })
            })
            .collect::<Result<_, _>>()?;
        let mut rankings = search.both(&questions)?;
        for asked in &questions {
            let nearest = search.nearest(asked, &rankings, request);
            if request.fusion.weight(Stream::Sparse, asked.form) > 0.0 {
                rankings.push(search.sparse(asked, &nearest)?);
            }
            search.reorder(asked, &nearest, &mut rankings);
        }
        rankings.sort_by_key(|ranking| (ranking.form, ranking.stream));
        let mut passages = Vec::new();
        for fused in fuse(&rankings, &request.fusion) {
            let Some(shown) = search.shown(fused.place)? else {
                continue;
            };
            passages.push(Passage {
                place: fused.place,
                duplicates: fused.duplicates,
                id: fused.id,
                path: shown.path,
                headings: shown.headings,
                text: shown.text,
                range: shown.start..shown.end,
                score: fused.score,
                shares: fused.shares,
            });
        }
        Ok(SearchResponse {
            passages,
            rankings,
            languages,
            took: self.clock.instant().saturating_duration_since(begin),
        })
    }

    fn usage(&self) -> Result<Usage, IndexError> {
        let (chunks, spaces, memory_bytes) = {
            let state = self.state();
            let bytes = state.spaces.values().map(Partition::bytes).sum();
            (state.chunks, state.spaces.len(), bytes)
        };
        let mut disk_bytes = 0;
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            // A merge may have removed it since.
            if let Ok(metadata) = entry.and_then(|entry| entry.metadata()) {
                disk_bytes += metadata.len();
            }
        }
        Ok(Usage {
            chunks,
            spaces,
            memory_bytes,
            disk_bytes,
        })
    }
}

/// One form of the question.
struct Asked<'a> {
    form: Form,
    question: &'a Question,
    terms: Vec<String>,
}

/// A search in one state of a space.
struct Search<'a> {
    clock: &'a dyn Clock,
    lexical: &'a Lexical,
    space: Space,
    partition: &'a Partition,
    depth: usize,
}

impl Search<'_> {
    /// The rankings by vectors and by words, side by side where there is much to compare.
    fn both(&self, questions: &[Asked<'_>]) -> Result<Vec<Ranking>, IndexError> {
        let dense = || {
            questions
                .iter()
                .map(|asked| self.dense(asked))
                .collect::<Vec<_>>()
        };
        let bm25 = || {
            questions
                .iter()
                .map(|asked| self.bm25(asked))
                .collect::<Result<Vec<_>, _>>()
        };
        let has_vector = questions
            .iter()
            .any(|asked| asked.question.vector.is_some());
        let (dense, bm25) = match self.partition.len() >= PARALLEL && has_vector {
            true => thread::scope(|scope| {
                let words = scope.spawn(bm25);
                let dense = dense();
                let words = words.join();
                (
                    dense,
                    words.unwrap_or_else(|_| Err(failed("a thread that compares words ended"))),
                )
            }),
            false => (dense(), bm25()),
        };
        let mut rankings = dense;
        rankings.extend(bm25?);
        Ok(rankings)
    }

    fn ranking(
        &self,
        stream: Stream,
        asked: &Asked<'_>,
        hits: impl FnOnce() -> Result<Vec<Hit>, IndexError>,
    ) -> Result<Ranking, IndexError> {
        let begin = self.clock.instant();
        let hits = hits()?;
        Ok(Ranking {
            stream,
            form: asked.form,
            hits,
            took: self.clock.instant().saturating_duration_since(begin),
        })
    }

    fn dense(&self, asked: &Asked<'_>) -> Ranking {
        let begin = self.clock.instant();
        let vector = asked.question.vector.as_deref();
        let hits = vector.map(|vector| self.partition.nearest(vector, self.depth));
        Ranking {
            stream: Stream::Dense,
            form: asked.form,
            hits: hits.unwrap_or_default(),
            took: self.clock.instant().saturating_duration_since(begin),
        }
    }

    fn bm25(&self, asked: &Asked<'_>) -> Result<Ranking, IndexError> {
        let terms: Vec<_> = asked.terms.iter().map(|term| (term.clone(), 1.0)).collect();
        self.ranking(Stream::Bm25, asked, || self.words(&terms))
    }

    fn words(&self, terms: &[(String, f32)]) -> Result<Vec<Hit>, IndexError> {
        let found = self
            .lexical
            .best(self.space, self.partition, terms, self.depth);
        found.map_err(damage::failure)
    }

    /// The passages nearest to a question, by the rankings of vectors and words.
    fn nearest(
        &self,
        asked: &Asked<'_>,
        rankings: &[Ranking],
        request: &SearchRequest,
    ) -> Vec<Place> {
        let own: Vec<_> = rankings
            .iter()
            .filter(|ranking| ranking.form == asked.form)
            .cloned()
            .collect();
        let parameters = feedback::parameters(&request.fusion, self.partition.len());
        let nearest = fuse(&own, &parameters).into_iter();
        nearest.map(|fused| fused.place).collect()
    }

    /// Puts the hits of vectors in the order of a question that is moved towards these passages.
    fn reorder(&self, asked: &Asked<'_>, nearest: &[Place], rankings: &mut [Ranking]) {
        let own = rankings
            .iter_mut()
            .find(|ranking| (ranking.stream, ranking.form) == (Stream::Dense, asked.form));
        let (Some(ranking), Some(vector)) = (own, &asked.question.vector) else {
            return;
        };
        let begin = self.clock.instant();
        let passages = nearest.iter().map(|place| self.partition.vector(*place));
        let passages: Vec<Vec<f32>> = passages.flatten().collect();
        let moved = feedback::moved(vector, &passages);
        let places = ranking.hits.iter().map(|hit| hit.place);
        let cosines = self.partition.cosines(&moved, places);
        feedback::reorder(&mut ranking.hits, &cosines);
        ranking.took += self.clock.instant().saturating_duration_since(begin);
    }

    fn sparse(&self, asked: &Asked<'_>, nearest: &[Place]) -> Result<Ranking, IndexError> {
        self.ranking(Stream::Sparse, asked, || {
            let mut sources = Vec::new();
            for place in nearest {
                let row = self
                    .partition
                    .number(*place)
                    .and_then(|number| self.partition.row(number));
                if let (Some(row), Some(shown)) = (row, self.shown(*place)?) {
                    sources.push(feedback::Source {
                        text: passage(&shown.path, &shown.text),
                        language: row.language,
                    });
                }
            }
            let chunks = u64::try_from(self.partition.len()).unwrap_or(u64::MAX);
            let mut failure = None;
            let space = feedback::Terms {
                mean: self.partition.terms() as f64 / chunks.max(1) as f64,
                rarest: rarity(chunks, 1),
                rarity: &mut |term| match self.lexical.frequency(self.space, self.partition, term) {
                    Ok(with) => rarity(chunks, with),
                    Err(error) => {
                        failure = Some(error);
                        0.0
                    }
                },
            };
            let terms = feedback::expanded(&asked.terms, &sources, space);
            match failure {
                Some(error) => Err(damage::failure(error)),
                None => self.words(&terms),
            }
        })
    }

    fn shown(&self, place: Place) -> Result<Option<record::Shown>, IndexError> {
        texts::shown(self.lexical, self.partition, place)
    }
}

#[async_trait]
impl SearchIndex for EmbeddedIndex {
    async fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        self.send(|done| Job::Changes(Changes { changes, done }))
            .await
    }

    async fn vectors(
        &self,
        space: Space,
        ids: Vec<ChunkId>,
    ) -> Result<HashMap<ChunkId, Vec<f32>>, IndexError> {
        let shared = self.shared.clone();
        let read = spawn_blocking(move || shared.vectors(space, &ids));
        read.await.map_err(failed)
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResponse, IndexError> {
        let shared = self.shared.clone();
        let searched = spawn_blocking(move || shared.search(&request));
        searched.await.map_err(failed)?
    }

    async fn texts(
        &self,
        space: Space,
        places: Vec<Place>,
    ) -> Result<HashMap<Place, ChunkText>, IndexError> {
        let shared = self.shared.clone();
        let read = spawn_blocking(move || shared.texts(space, &places));
        read.await.map_err(failed)?
    }

    async fn usage(&self) -> Result<Usage, IndexError> {
        let shared = self.shared.clone();
        spawn_blocking(move || shared.usage())
            .await
            .map_err(failed)?
    }
}

fn failed(error: impl fmt::Display) -> IndexError {
    IndexError::Failed(error.to_string())
}
