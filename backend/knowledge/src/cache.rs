//! What was made of the documents of saved characters, so that not every request makes it again.
//!
//! It is found by the character's reference and used for these very documents alone, so another version of the character gets its own. What
//! nobody has asked for in a while goes, and what was asked for least recently goes when there is too much. Documents that a call or a
//! request holds stay: to forget them would free nothing, and the next call would make a second index of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use colloquy_base::clock::Clock;

use super::{CharacterDocument, CharacterDocuments};

/// How long something is kept that nobody asks for.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// The most memory that all documents may take with their indexes, in bytes ([`CharacterDocuments::index_bytes`]): those of 6 MB of English text.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The documents of saved characters that were asked for a while ago.
#[derive(Debug)]
pub struct DocumentCache {
    clock: Arc<dyn Clock>,
    most_bytes: u64,
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    documents: CharacterDocuments,
    bytes: u64,
    used_at: Instant,
}

impl DocumentCache {
    /// An empty cache.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            most_bytes: MAX_BYTES,
            entries: Mutex::default(),
        }
    }

    /// These documents of the character of this reference, with their index if somebody has made it.
    pub fn documents(
        &self,
        reference: &str,
        documents: &[CharacterDocument],
    ) -> CharacterDocuments {
        let now = self.clock.instant();
        let known = self.lock().get_mut(reference).map(|entry| {
            entry.used_at = now;
            entry.documents.clone()
        });
        // Compared without holding others up.
        if let Some(known) = known.filter(|known| known.are(documents)) {
            return known;
        }
        let fresh = CharacterDocuments::new(documents);
        let bytes = CharacterDocuments::index_bytes(documents);
        if bytes > self.most_bytes {
            return fresh;
        }
        let entry = Entry {
            documents: fresh.clone(),
            bytes,
            used_at: now,
        };
        let mut entries = self.lock();
        entries.retain(|_, entry| {
            entry.documents.is_shared() || now.saturating_duration_since(entry.used_at) <= MAX_IDLE
        });
        entries.insert(reference.to_owned(), entry);
        while entries.values().map(|entry| entry.bytes).sum::<u64>() > self.most_bytes {
            let unused = entries
                .iter()
                .filter(|(_, entry)| !entry.documents.is_shared());
            let oldest = unused.min_by_key(|(_, entry)| entry.used_at);
            let Some(oldest) = oldest.map(|(reference, _)| reference.clone()) else {
                break;
            };
            entries.remove(&oldest);
        }
        fresh
    }

    /// Forgets the characters whose references `forget` picks.
    pub fn forget(&self, forget: impl Fn(&str) -> bool) {
        self.lock().retain(|reference, _| !forget(reference));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnowledgeSource as _;
    use colloquy_base::clock::ManualClock;

    /// A cache of the documents of so much text.
    fn cache(text_bytes: u64) -> (Arc<ManualClock>, DocumentCache) {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let cache = DocumentCache {
            most_bytes: text_bytes * BYTES_OF_INDEX,
            ..DocumentCache::new(clock.clone())
        };
        (clock, cache)
    }

    /// What a byte of these texts takes.
    const BYTES_OF_INDEX: u64 = 40;

    fn document(text: &str) -> Vec<CharacterDocument> {
        vec![CharacterDocument {
            title: "T".to_owned(),
            text: text.to_owned(),
        }]
    }

    #[tokio::test]
    async fn two_requests_make_one_index() {
        let (clock, cache) = cache(100);
        let lions = document("The lions eat meat.");
        let first = cache.documents("acme/ada", &lions);
        assert!(!first.is_indexed());
        first.prepare().await.unwrap();
        clock.advance(MAX_IDLE);
        assert!(cache.documents("acme/ada", &lions).is_indexed());
        // Neither another character nor another version has that index.
        assert!(!cache.documents("acme/bob", &lions).is_indexed());
        assert!(
            !cache
                .documents("acme/ada", &document("They sleep."))
                .is_indexed()
        );
    }

    /// The references of what is kept.
    fn kept(cache: &DocumentCache) -> Vec<String> {
        let mut kept = cache.lock().keys().cloned().collect::<Vec<_>>();
        kept.sort();
        kept
    }

    #[tokio::test]
    async fn what_a_call_holds_is_not_made_twice() {
        let (clock, cache) = cache(25);
        let tens = document("0123456789");
        let of_call = cache.documents("a/1", &tens);
        of_call.prepare().await.unwrap();
        clock.advance(MAX_IDLE + Duration::from_secs(1));
        for name in ["a/2", "a/3", "a/4"] {
            clock.advance(Duration::from_secs(1));
            cache.documents(name, &tens);
        }
        assert_eq!(kept(&cache), ["a/1", "a/4"]);
        assert!(cache.documents("a/1", &tens).is_indexed());
        // Once the call has ended, it is one of those that nobody holds.
        drop(of_call);
        clock.advance(MAX_IDLE + Duration::from_secs(1));
        cache.documents("a/5", &tens);
        assert_eq!(kept(&cache), ["a/5"]);
    }

    #[test]
    fn what_it_holds_is_bounded() {
        let (clock, cache) = cache(25);
        for name in ["a/1", "a/2"] {
            cache.documents(name, &document("0123456789"));
            clock.advance(Duration::from_secs(1));
        }
        cache.documents("a/1", &document("0123456789"));
        cache.documents("b/1", &document("01234"));
        assert_eq!(kept(&cache), ["a/1", "b/1"]);
        // What is larger than all of it is not kept, and takes no place.
        clock.advance(Duration::from_secs(1));
        cache.documents("c/1", &document(&"x".repeat(25)));
        assert_eq!(kept(&cache), ["a/1", "b/1"]);
        clock.advance(MAX_IDLE + Duration::from_secs(1));
        cache.documents("b/1", &document("0"));
        assert_eq!(kept(&cache), ["b/1"]);
        cache.forget(|reference| reference.starts_with("b/"));
        assert_eq!(kept(&cache), Vec::<String>::new());
    }
}
