//! What was made of the documents of saved characters, so that not every request makes it again, and the memory of all documents.
//!
//! A saved character's documents are found by its reference and used for these very documents alone, so another version of the character gets
//! its own. What nobody has asked for in a while goes. The memory of documents and their index ([`CharacterDocuments::index_bytes`]) is reserved
//! before they are made, once for all who hold them, and given back when the last of these, and this cache, has dropped them. Where it is not
//! free, what nobody holds goes first, least recently used first; documents that a call or a request holds stay, since to forget them would
//! free nothing.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use colloquy_base::{
    clock::Clock,
    counts::Counts,
    memory::{MemoryPool, NoRoom},
};

use super::{CharacterDocument, CharacterDocuments};

/// How long something is kept that nobody asks for.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// The documents of saved characters that were asked for a while ago, and the memory that all documents share.
#[derive(Debug)]
pub struct DocumentCache {
    clock: Arc<dyn Clock>,
    memory: Arc<MemoryPool>,
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    documents: CharacterDocuments,
    bytes: usize,
    used_at: Instant,
}

impl Entry {
    fn is_idle(&self) -> bool {
        !self.documents.is_shared()
    }
}

impl DocumentCache {
    /// An empty cache. All documents may take `most_bytes` with their indexes, those of one owner half of it.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, most_bytes: usize) -> Self {
        Self {
            clock,
            memory: Arc::new(MemoryPool::new(most_bytes)),
            entries: Mutex::default(),
        }
    }

    /// These documents of the saved character of this reference, with their index if somebody has made it. Documents that are not kept are
    /// copied, and their memory is reserved for the character's partner.
    ///
    /// # Errors
    /// [`NoRoom`] if the memory is not free.
    pub fn saved(
        &self,
        reference: &str,
        documents: &[CharacterDocument],
    ) -> Result<CharacterDocuments, NoRoom> {
        let now = self.clock.instant();
        let known = self.lock().get_mut(reference).map(|entry| {
            entry.used_at = now;
            entry.documents.clone()
        });
        // Compared without holding others up.
        if let Some(known) = known.filter(|known| known.are(documents)) {
            return Ok(known);
        }
        let (owner, bytes) = (partner_of(reference), bytes_of(documents));
        let documents = documents.to_vec();
        drop(self.take_expired(now));
        loop {
            let mut entries = self.lock();
            // Another request may have made them meanwhile: one entry has one reservation.
            let made = entries.get(reference).map(|entry| &entry.documents);
            if let Some(made) = made.filter(|made| made.are(&documents)) {
                return Ok(made.clone());
            }
            let evicted = match self.memory.reserve(owner, bytes) {
                Ok(memory) => {
                    let fresh = CharacterDocuments::reserved(documents, memory);
                    let entry = Entry {
                        documents: fresh.clone(),
                        bytes,
                        used_at: now,
                    };
                    let replaced = entries.insert(reference.to_owned(), entry);
                    drop(entries);
                    drop(replaced);
                    return Ok(fresh);
                }
                Err(why) => self.evict(&mut entries, owner, bytes).ok_or(why)?,
            };
            drop(entries);
            drop(evicted);
        }
    }

    /// The documents of an inline character, whose index nobody else uses. Their memory is reserved for `owner`.
    ///
    /// # Errors
    /// [`NoRoom`] if the memory is not free.
    pub fn inline(
        &self,
        owner: &str,
        documents: &[CharacterDocument],
    ) -> Result<CharacterDocuments, NoRoom> {
        let bytes = bytes_of(documents);
        let memory = loop {
            match self.memory.reserve(owner, bytes) {
                Ok(memory) => break memory,
                Err(why) => {
                    let evicted = self.evict(&mut self.lock(), owner, bytes);
                    drop(evicted.ok_or(why)?);
                }
            }
        };
        Ok(CharacterDocuments::reserved(documents.to_vec(), memory))
    }

    /// Forgets the characters whose references `forget` picks.
    pub fn forget(&self, forget: impl Fn(&str) -> bool) {
        self.lock().retain(|reference, _| !forget(reference));
    }

    /// Takes out what nobody holds and nobody has asked for in a while. An index is large, so the caller drops it without the lock.
    fn take_expired(&self, now: Instant) -> Vec<Entry> {
        let mut entries = self.lock();
        let expired = entries.extract_if(|_, entry| {
            entry.is_idle() && now.saturating_duration_since(entry.used_at) > MAX_IDLE
        });
        expired.map(|(_, entry)| entry).collect()
    }

    /// Takes out what nobody holds, least recently used first, until dropping it makes room for so many bytes of an owner. `None`, and
    /// everything stays, if all of it would not.
    fn evict(
        &self,
        entries: &mut HashMap<String, Entry>,
        owner: &str,
        bytes: usize,
    ) -> Option<Vec<Entry>> {
        let idle = entries.iter().filter(|(_, entry)| entry.is_idle());
        let mut idle = idle.collect::<Vec<_>>();
        // The least recently used one is last.
        idle.sort_by_key(|(_, entry)| Reverse(entry.used_at));
        let mut freed = Counts::<String>::default();
        let mut evicted = Vec::new();
        while !self.memory.fits_after(owner, bytes, &freed) {
            let (reference, entry) = idle.pop()?;
            freed.add(partner_of(reference), entry.bytes);
            evicted.push(reference.clone());
        }
        drop(idle);
        let evicted = evicted.iter();
        Some(evicted.filter_map(|it| entries.remove(it)).collect())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The partner of a reference, `<partner>/<name>`.
fn partner_of(reference: &str) -> &str {
    reference
        .split_once('/')
        .map_or(reference, |(partner, _)| partner)
}

fn bytes_of(documents: &[CharacterDocument]) -> usize {
    usize::try_from(CharacterDocuments::index_bytes(documents)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnowledgeSource as _;
    use colloquy_base::clock::ManualClock;

    /// What ten letters below a title of one letter take.
    const TEN: usize = 11 * 40;

    /// A cache in which one owner alone may have so much.
    fn cache(of_owner: usize) -> (Arc<ManualClock>, DocumentCache) {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let cache = DocumentCache::new(clock.clone(), 2 * of_owner);
        (clock, cache)
    }

    fn document(text: &str) -> Vec<CharacterDocument> {
        vec![CharacterDocument {
            title: "T".to_owned(),
            text: text.to_owned(),
        }]
    }

    fn ten() -> Vec<CharacterDocument> {
        document("0123456789")
    }

    /// The references of what is kept.
    fn kept(cache: &DocumentCache) -> Vec<String> {
        let mut kept = cache.lock().keys().cloned().collect::<Vec<_>>();
        kept.sort();
        kept
    }

    #[tokio::test]
    async fn two_requests_make_one_index() {
        let (clock, cache) = cache(100 * TEN);
        let lions = document("The lions eat meat.");
        let first = cache.saved("acme/ada", &lions).unwrap();
        assert!(!first.is_indexed());
        first.prepare().await.unwrap();
        clock.advance(MAX_IDLE);
        assert!(cache.saved("acme/ada", &lions).unwrap().is_indexed());
        // Neither another character nor another version has that index.
        assert!(!cache.saved("acme/bob", &lions).unwrap().is_indexed());
        let other = cache.saved("acme/ada", &document("They sleep."));
        assert!(!other.unwrap().is_indexed());
        cache.forget(|reference| reference == "acme/ada");
        assert_eq!(kept(&cache), ["acme/bob"]);
    }

    #[tokio::test]
    async fn requests_at_once_make_one_entry_with_one_reservation() {
        let (_, cache) = cache(TEN);
        let ten = ten();
        let held = std::thread::scope(|scope| {
            let saved = || cache.saved("a/1", &ten).unwrap();
            let threads = (0..8).map(|_| scope.spawn(saved)).collect::<Vec<_>>();
            let held = threads.into_iter().map(|thread| thread.join().unwrap());
            held.collect::<Vec<_>>()
        });
        held[0].prepare().await.unwrap();
        assert!(held.iter().all(CharacterDocuments::is_indexed));
        assert_eq!(cache.saved("a/2", &ten).unwrap_err(), NoRoom::Now);
        drop(held);
        cache.saved("a/2", &ten).unwrap();
        assert_eq!(kept(&cache), ["a/2"]);
    }

    #[tokio::test]
    async fn what_a_call_holds_is_not_made_twice() {
        let (clock, cache) = cache(2 * TEN);
        let of_call = cache.saved("a/1", &ten()).unwrap();
        of_call.prepare().await.unwrap();
        clock.advance(MAX_IDLE + Duration::from_secs(1));
        for name in ["a/2", "a/3", "a/4"] {
            clock.advance(Duration::from_secs(1));
            cache.saved(name, &ten()).unwrap();
        }
        assert_eq!(kept(&cache), ["a/1", "a/4"]);
        assert!(cache.saved("a/1", &ten()).unwrap().is_indexed());
        // Once the call has ended, it is one of those that nobody holds.
        drop(of_call);
        clock.advance(MAX_IDLE + Duration::from_secs(1));
        cache.saved("a/5", &ten()).unwrap();
        assert_eq!(kept(&cache), ["a/5"]);
    }

    #[test]
    fn what_calls_hold_is_bounded() {
        let (_, cache) = cache(2 * TEN);
        let first = cache.saved("a/1", &ten()).unwrap();
        let second = cache.saved("a/2", &ten()).unwrap();
        // What is there takes nothing more.
        cache.saved("a/1", &ten()).unwrap();
        assert_eq!(cache.saved("a/3", &ten()).unwrap_err(), NoRoom::Now);
        assert_eq!(cache.inline("a", &ten()).unwrap_err(), NoRoom::Now);
        let newer = document("9876543210");
        assert_eq!(cache.saved("a/1", &newer).unwrap_err(), NoRoom::Now);
        let large = document(&"x".repeat(22));
        assert_eq!(cache.saved("a/3", &large).unwrap_err(), NoRoom::Ever);
        // Another partner finds room.
        cache.saved("b/1", &ten()).unwrap();
        assert_eq!(kept(&cache), ["a/1", "a/2", "b/1"]);
        drop(first);
        let third = cache.saved("a/3", &ten()).unwrap();
        assert_eq!(kept(&cache), ["a/2", "a/3"]);
        // What the cache has forgotten counts for as long as a call holds it.
        cache.forget(|_| true);
        assert_eq!(cache.saved("a/4", &ten()).unwrap_err(), NoRoom::Now);
        drop((second, third));
        cache.saved("a/4", &ten()).unwrap();
    }

    #[test]
    fn what_nobody_holds_gives_way_oldest_first() {
        let (clock, cache) = cache(3 * TEN);
        for name in ["a/1", "a/2", "a/3", "a/1"] {
            cache.saved(name, &ten()).unwrap();
            clock.advance(Duration::from_secs(1));
        }
        // Nothing is forgotten for what finds no room all the same.
        let large = document(&"x".repeat(33));
        assert_eq!(cache.inline("a", &large).unwrap_err(), NoRoom::Ever);
        assert_eq!(kept(&cache), ["a/1", "a/2", "a/3"]);
        let inline = cache.inline("a", &ten()).unwrap();
        cache.inline("b", &ten()).unwrap();
        assert_eq!(kept(&cache), ["a/1", "a/3"]);
        drop(inline);
        cache.inline("a", &ten()).unwrap();
        assert_eq!(kept(&cache), ["a/1", "a/3"]);
    }
}
