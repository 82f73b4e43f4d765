//! The index of the nodes: made of the manifests of all documents, as the database lists them, and following their changes.
//!
//! The database and the files are the truth; the index is a copy of them: of each node in a folder of its own, or of all of them in PostgreSQL
//! with pgvector (`store.search_url`). Each change of manifests has a number. It is remembered up to which one an index has come; what came
//! after is applied in order. So any number of nodes find the same, and an index that is lost, or has missed too much, is made again without
//! anything being embedded again. An index that nodes share is changed by one of them at a time, and the others look how far it has come.
//!
//! While the disk is low, additions to the index of a node wait, and removals are made ([`held`]).
//!
//! An index whose files are damaged is made again in the same way. Until it is complete it is not searched, since it would find too little.
//!
//! A server without documents opens no index.

mod condition;
mod held;
mod open;

use std::{
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use colloquy_blobs::ObjectError;
use colloquy_index::search::{Change, IndexError, IndexedDocument, SearchIndex, Space};
use colloquy_store::{Dialect, Executor as _, StoreError};
use tokio::{
    sync::{Mutex, Notify, OnceCell, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
};
use uuid::Uuid;

pub(crate) use self::condition::IndexAway;
use self::{
    condition::Condition,
    held::{Additions, Reached},
    open::OpenIndex,
};
use super::{
    Bases,
    embedding::Manifest,
    store::{self, ChangedManifest, Removal},
};

/// When it is looked again what others have changed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The same on SQLite, where there are no others.
const LOOK_AGAIN_ALONE: Duration = Duration::from_secs(30);
/// After a failure.
const WAIT: Duration = Duration::from_secs(2);
/// Manifests that are applied at once.
const AT_ONCE: i64 = 16;
/// The chunks of these, which are in memory with their vectors: 1 to 2 KB each. A manifest that has more comes alone.
const CHUNKS_AT_ONCE: i64 = 8_192;
/// Removals are remembered for so long: a node that was away for longer makes its index again.
const REMEMBERED: Duration = Duration::from_secs(14 * 24 * 3_600);
/// How often it is looked how far another node has brought the index.
const WATCH: Duration = Duration::from_millis(50);
/// How often it is looked before this node tries to be the one that makes changes.
const WATCHES: u32 = 20;

/// The index of this node; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct NodeIndex(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// Opened when there is something to be found.
    open: OnceCell<OpenIndex>,
    /// Held while changes are applied.
    applying: Mutex<()>,
    changed: Notify,
    reached: watch::Sender<Reached>,
    condition: StdMutex<Condition>,
}

impl Default for NodeIndex {
    fn default() -> Self {
        Self(Arc::new(Parts {
            open: OnceCell::new(),
            applying: Mutex::default(),
            changed: Notify::new(),
            reached: watch::Sender::default(),
            condition: StdMutex::default(),
        }))
    }
}

impl NodeIndex {
    /// Says that something has changed.
    pub(crate) fn wake(&self) {
        self.0.changed.notify_one();
    }

    /// Follows the changes until the server stops.
    pub(crate) async fn follow(self, bases: Bases) {
        let alone = bases.store.db().dialect() == Dialect::Sqlite;
        let look_again = if alone { LOOK_AGAIN_ALONE } else { LOOK_AGAIN };
        loop {
            let advanced = self.advance(&bases).await;
            let failure = advanced.as_ref().err().map(|error| format!("{error:#}"));
            self.condition().follow(failure);
            let pause = match advanced {
                // It is looked for space.
                Ok(()) if self.condition().is_held() => WAIT,
                Ok(()) => look_again,
                Err(error) => {
                    tracing::warn!("the index does not follow: {error:#}");
                    WAIT
                }
            };
            tokio::select! {
                () = bases.kernel.shutdown.cancelled() => return,
                () = self.0.changed.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// The index with all that was changed until now, or, when that takes longer than `patience`, with what it has. Additions that wait for space
    /// on the disk are not waited for. `None`: nothing was ever embedded.
    ///
    /// # Errors
    /// [`IndexAway`] when the index cannot be opened, or is being made again and not complete yet.
    pub(crate) async fn current(
        &self,
        bases: &Bases,
        patience: Duration,
    ) -> anyhow::Result<Option<&dyn SearchIndex>> {
        let last = store::sequence(bases.store.db()).await?.last;
        if last == 0 {
            return Ok(None);
        }
        let mut reached = self.0.reached.subscribe();
        if reached.borrow().removals < last {
            self.wake();
            let has_all = |reached: &Reached| reached.removals >= last;
            let _ = timeout(patience, reached.wait_for(has_all)).await;
        }
        match self.0.open.get() {
            Some(open) if self.condition().is_searchable() => Ok(Some(open.index())),
            _ => Err(IndexAway(None).into()),
        }
    }

    /// Notes that a search failed for no reason of its own: a damaged index is made again, after other failures the files are verified.
    pub(crate) fn suspect(&self, error: &IndexError) {
        let mut condition = self.condition();
        match error {
            // A search that began before the damaged files were removed finds nothing new.
            IndexError::Damaged(reason) if condition.is_searchable() => {
                tracing::error!(reason, "the search index is damaged; it is made again");
                condition.damage();
            }
            IndexError::Damaged(_) => {}
            _ => condition.suspect(),
        }
        drop(condition);
        self.wake();
    }

    /// Why the index is not as it should be, if it is not.
    pub(crate) fn degraded(&self) -> Option<String> {
        self.condition().reason()
    }

    fn condition(&self) -> MutexGuard<'_, Condition> {
        let condition = self.0.condition.lock();
        condition.unwrap_or_else(PoisonError::into_inner)
    }

    async fn advance(&self, bases: &Bases) -> anyhow::Result<()> {
        self.repair(bases).await?;
        self.catch_up(bases).await
    }

    /// Verifies the files when it is time to, compares their lengths and times otherwise, and empties an index that is damaged.
    async fn repair(&self, bases: &Bases) -> anyhow::Result<()> {
        let Some(open) = self.0.open.get() else {
            return Ok(());
        };
        let _applying = self.0.applying.lock().await;
        if !self.condition().is_damaged() {
            let verifies = self.condition().begin_verifying(bases.clock.instant());
            let found = match verifies {
                true => open.verify().await,
                false => open.look().await,
            };
            match found {
                Err(IndexError::Damaged(reason)) => {
                    tracing::error!(reason, "the search index is damaged; it is made again");
                    self.condition().damage();
                }
                found => found?,
            }
        }
        if self.condition().is_damaged() {
            let last = store::sequence(bases.store.db()).await?.last;
            open.clear().await?;
            self.0.reached.send_replace(Reached::default());
            self.condition().begin_making(last);
        }
        Ok(())
    }

    /// Says that the index has come to this change.
    fn reach(&self, position: i64) {
        // Before what searches wait for.
        if self.condition().reach(position) {
            tracing::info!("the search index is complete");
        }
        self.0.reached.send_replace(Reached::all(position));
    }

    /// Applies the changes that are not in the index yet.
    async fn catch_up(&self, bases: &Bases) -> anyhow::Result<()> {
        let _applying = self.0.applying.lock().await;
        let db = bases.store.db();
        let last = store::sequence(db).await?.last;
        if last == 0 {
            return Ok(());
        }
        let open = self.open(bases, last).await?;
        let mut reached = *self.0.reached.borrow();
        if let Some(position) = open.position().await? {
            if position < reached.position {
                // Another node makes it again.
                self.condition().begin_making(last);
            }
            reached = Reached::all(position);
            self.reach(position);
        }
        // Read after the position, so that an index that is ahead is one of another past, such as before a backup was put back.
        let sequence = store::sequence(db).await?;
        if reached.position == sequence.last {
            self.condition().hold(false);
            return Ok(());
        }
        let Some((mut turn, after)) = open.turn(bases, reached.position).await? else {
            return self.watch(open, sequence.last).await;
        };
        if after != reached.position {
            reached = Reached::all(after);
        }
        let (mut additions, mut from) = Additions::begin(bases, open, reached).await;
        while from < sequence.last {
            anyhow::ensure!(turn.holds().await, "another node may make the changes now");
            let mut manifests = store::changed_manifests(db, from, sequence.last, AT_ONCE).await?;
            let next = round(&mut manifests, sequence.last);
            additions.hold(bases, open, &mut manifests).await;
            let removals = store::removals(db, from, next).await?;
            apply(bases, open.index(), &steps(manifests, removals)).await?;
            from = next;
            if additions.is_held() {
                self.0
                    .reached
                    .send_modify(|reached| reached.removals = from);
            } else {
                open.note(from).await?;
                self.reach(from);
            }
        }
        let is_held = additions.end(bases);
        self.condition().hold(is_held);
        Ok(())
    }

    /// Looks for a while how far another node brings the index.
    async fn watch(&self, open: &OpenIndex, last: i64) -> anyhow::Result<()> {
        for _ in 0..WATCHES {
            sleep(WATCH).await;
            let position = open.position().await?.unwrap_or(last);
            self.reach(position);
            if position >= last {
                break;
            }
        }
        // When there is more, somebody may have ended in the middle.
        self.wake();
        Ok(())
    }

    /// Opens the index; `last` is the last change that there is.
    async fn open(&self, bases: &Bases, last: i64) -> anyhow::Result<&OpenIndex> {
        let opened = self.0.open.get_or_try_init(|| async {
            let (opened, position) = OpenIndex::open(bases).await?;
            let mut condition = self.condition();
            condition.open(bases.clock.instant());
            if position == 0 {
                condition.begin_making(last);
            }
            drop(condition);
            self.reach(position);
            anyhow::Ok(opened)
        });
        opened.await
    }
}

/// Leaves the manifests that are applied in one round, which are bounded in number and in chunks, and gives the change up to which they go.
/// The manifests of a change are not parted.
fn round(manifests: &mut Vec<ChangedManifest>, last: i64) -> i64 {
    let mut reached = last;
    if manifests.len() as i64 == AT_ONCE
        && let [first, .., end] = manifests.as_slice()
        && first.sequence < end.sequence
    {
        // There may be others with the number of the last one.
        reached = end.sequence - 1;
    }
    let mut chunks = 0;
    let mut before = None;
    for manifest in manifests.iter() {
        if manifest.sequence > reached {
            break;
        }
        if !manifest.stale {
            chunks += manifest.chunk_count;
        }
        match before {
            Some(before) if chunks > CHUNKS_AT_ONCE && before < manifest.sequence => {
                reached = before;
                break;
            }
            _ => before = Some(manifest.sequence),
        }
    }
    manifests.retain(|manifest| manifest.sequence <= reached);
    reached
}

/// A change of the database that an index follows.
enum Step {
    Manifest(ChangedManifest),
    Removal(Removal),
}

impl Step {
    fn sequence(&self) -> i64 {
        match self {
            Self::Manifest(manifest) => manifest.sequence,
            Self::Removal(removal) => removal.sequence,
        }
    }
}

/// The changes in their order.
fn steps(manifests: Vec<ChangedManifest>, removals: Vec<Removal>) -> Vec<Step> {
    let manifests = manifests.into_iter().map(Step::Manifest);
    let mut steps: Vec<_> = manifests
        .chain(removals.into_iter().map(Step::Removal))
        .collect();
    steps.sort_by_key(Step::sequence);
    steps
}

/// Why a document cannot be searched with the manifest that it has.
struct Refusal(&'static str);

const LOST: Refusal = Refusal("the file with its vectors is lost");
const DAMAGED: Refusal = Refusal("the file with its vectors is damaged; they can be made anew");

impl Refusal {
    fn of(error: &IndexError) -> Option<Self> {
        match error {
            IndexError::Full => Some(Self("the search index is full")),
            IndexError::TooLarge(_) => {
                Some(Self("the search index does not take parts of this size"))
            }
            IndexError::Vector => Some(Self(
                "its vectors have another length than those of the other documents; they can be made anew by force",
            )),
            IndexError::Failed(_) | IndexError::Damaged(_) => None,
        }
    }
}

/// Makes changes: all of them at once, or, when one is refused, one after the other. Changes come in their order, so a document that cannot be
/// searched is told so and passed over: whatever comes after it, of whomever, would wait for it.
async fn apply(bases: &Bases, index: &dyn SearchIndex, steps: &[Step]) -> anyhow::Result<()> {
    let mut changes = Vec::new();
    for step in steps {
        match change(bases, step).await? {
            Ok(change) => changes.extend(change),
            Err(refusal) => changes.extend(refuse(bases, step, &refusal).await?),
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    match index.apply(changes).await {
        Err(error) if Refusal::of(&error).is_some() => {}
        applied => return Ok(applied?),
    }
    for step in steps {
        let change = match change(bases, step).await? {
            Ok(change) => change,
            Err(refusal) => refuse(bases, step, &refusal).await?,
        };
        let Some(change) = change else {
            continue;
        };
        if let Err(error) = index.apply(vec![change]).await {
            let Some(refusal) = Refusal::of(&error) else {
                return Err(error.into());
            };
            if let Some(change) = refuse(bases, step, &refusal).await? {
                index.apply(vec![change]).await?;
            }
        }
    }
    Ok(())
}

/// What an index has to do, if anything.
async fn change(bases: &Bases, step: &Step) -> anyhow::Result<Result<Option<Change>, Refusal>> {
    let manifest = match step {
        Step::Removal(removal) => return Ok(Ok(Some(removed(removal)?))),
        Step::Manifest(manifest) => manifest,
    };
    let read = match manifest.stale {
        true => Manifest::default(),
        false => match file(bases, manifest).await? {
            Ok(Some(bytes)) => match spawn_blocking(move || Manifest::read(bytes)).await? {
                Ok(read) => read,
                Err(_) => return Ok(Err(DAMAGED)),
            },
            Ok(None) => return Ok(Ok(None)),
            Err(refusal) => return Ok(Err(refusal)),
        },
    };
    Ok(Ok(Some(put(manifest, read)?)))
}

fn put(manifest: &ChangedManifest, read: Manifest) -> anyhow::Result<Change> {
    let space = space(uuid(&manifest.base_id)?, manifest.profile_id);
    let document = IndexedDocument {
        id: uuid(&manifest.document_id)?,
        language: read.language,
        chunks: read.chunks,
    };
    Ok(Change::Put(space, document))
}

fn removed(removal: &Removal) -> anyhow::Result<Change> {
    let base = uuid(&removal.base_id)?;
    Ok(match (&removal.document_id, removal.profile_id) {
        (Some(document), _) => Change::RemoveDocument {
            base,
            document: uuid(document)?,
        },
        (None, Some(profile)) => Change::RemoveSpace(space(base, profile)),
        (None, None) => Change::RemoveBase(base),
    })
}

/// Tells a document that it cannot be searched. What is left to do is to find nothing of what it had.
async fn refuse(bases: &Bases, step: &Step, refusal: &Refusal) -> anyhow::Result<Option<Change>> {
    let Step::Manifest(manifest) = step else {
        anyhow::bail!("the index does not remove what went: {}", refusal.0);
    };
    let Refusal(reason) = refusal;
    tracing::warn!(document = %manifest.document_id, "a document cannot be searched: {reason}");
    let transaction = bases.store.begin_patient().await?;
    let now = bases.clock.now_ms();
    store::refuse_manifest(&transaction, manifest, reason, now).await?;
    transaction.commit().await?;
    Ok(Some(put(manifest, Manifest::default())?))
}

/// The file of a manifest; `None` when another one has taken its place, which is a later change.
async fn file(
    bases: &Bases,
    manifest: &ChangedManifest,
) -> anyhow::Result<Result<Option<bytes::Bytes>, Refusal>> {
    match bases.blobs.read_whole(&manifest.blob, u64::MAX).await {
        Ok(bytes) => Ok(Ok(Some(bytes))),
        // It was given up in the transaction that put another one, or none, in its place.
        Err(ObjectError::Missing) => Ok(Ok(None)),
        Err(ObjectError::Lost) => {
            // A place without any file is the wrong one, such as a disk that is not mounted.
            for other in store::other_manifests(bases.store.db(), &manifest.blob).await? {
                if bases.blobs.read(&other).await.is_ok() {
                    return Ok(Err(LOST));
                }
            }
            anyhow::bail!(
                "the manifest of {} is not there, nor any other",
                manifest.document_id
            )
        }
        Err(ObjectError::Damaged) => Ok(Err(DAMAGED)),
        Err(error) => Err(error.into()),
    }
}

/// The space of a base in indexes.
pub(crate) fn space(base: Uuid, profile: i64) -> Space {
    Space {
        base,
        generation: u32::try_from(profile).unwrap_or(u32::MAX),
    }
}

fn uuid(id: &str) -> anyhow::Result<Uuid> {
    Uuid::parse_str(id).with_context(|| format!("{id} is no id"))
}

/// Forgets removals that all nodes have heard of.
pub(crate) async fn forget(bases: &Bases) -> Result<(), StoreError> {
    let remembered = i64::try_from(REMEMBERED.as_millis()).unwrap_or(i64::MAX);
    let before = bases.clock.now_ms() - remembered;
    let transaction = bases.store.begin_patient().await?;
    store::forget_removals(&transaction, before).await?;
    transaction.commit().await
}

#[cfg(test)]
mod tests {
    use colloquy_blobs::BlobKey;

    use super::*;

    fn manifest(sequence: i64, chunk_count: i64, stale: bool) -> ChangedManifest {
        ChangedManifest {
            document_id: sequence.to_string(),
            base_id: String::new(),
            profile_id: 1,
            blob: BlobKey::of_row(String::new()),
            stale,
            chunk_count,
            sequence,
        }
    }

    /// The rounds in which these manifests are applied: the last change of each, and its chunks.
    fn rounds(all: &[(i64, i64, bool)]) -> Vec<(i64, i64)> {
        let last = all.last().map_or(0, |(sequence, ..)| *sequence);
        let (mut position, mut rounds) = (0, Vec::new());
        while position < last {
            let next = all.iter().filter(|(sequence, ..)| *sequence > position);
            let next = next.take(AT_ONCE as usize);
            let mut next: Vec<_> = next.map(|it| manifest(it.0, it.1, it.2)).collect();
            position = round(&mut next, last);
            let chunks = next.iter().filter(|it| !it.stale).map(|it| it.chunk_count);
            rounds.push((position, chunks.sum()));
        }
        rounds
    }

    #[test]
    fn a_round_is_bounded_by_chunks_too() {
        let long: Vec<_> = (1..=6).map(|at| (at, 5_000, false)).collect();
        let each: Vec<_> = (1..=6).map(|at| (at, 5_000)).collect();
        assert_eq!(rounds(&long), each);
        let short: Vec<_> = (1..=40).map(|at| (at, 10, false)).collect();
        let counts: Vec<i64> = rounds(&short).iter().map(|(_, chunks)| *chunks).collect();
        assert_eq!(counts.iter().sum::<i64>(), 400);
        assert!(counts.len() <= 3, "{counts:?}");
        // One that is longer than a round comes alone; what is stale costs nothing, and the manifests of a change stay together.
        let mixed = [
            (1, 100_000, false),
            (2, 100_000, true),
            (2, 100_000, true),
            (3, 8_000, false),
            (4, 500, false),
        ];
        assert_eq!(rounds(&mixed), [(1, 100_000), (3, 8_000), (4, 500)]);
    }
}
