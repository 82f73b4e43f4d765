//! Answers that are kept to repeat them to identical requests. Off unless the settings give it room.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use colloquy_audio::encode::Format;
use colloquy_config::SpeechConfig;

use super::Voice;

/// What makes two requests identical. Keys do not share answers: how quick one comes would tell what others asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    owner: String,
    text: String,
    format: Format,
    voice: Option<String>,
    language: Option<String>,
    speed_bits: u32,
}

impl Key {
    pub(super) fn new(owner: String, voice: &Voice, text: String, format: Format) -> Self {
        Self {
            owner,
            text,
            format,
            voice: voice.id.clone(),
            language: voice.language.clone(),
            speed_bits: voice.speed.to_bits(),
        }
    }
}

/// The kept answers. The one that was not wanted for the longest time makes room for a new one.
#[derive(Debug)]
pub struct SpeechCache {
    max_entries: usize,
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    file: Bytes,
    used_at: u64,
}

impl SpeechCache {
    /// An empty cache of the size that the settings say.
    #[must_use]
    pub fn new(config: &SpeechConfig) -> Self {
        Self {
            max_entries: config.cache_entries,
            max_bytes: config.cache_bytes,
            state: Mutex::default(),
        }
    }

    /// The largest file that is kept; 0 when none is.
    pub(super) fn room(&self) -> usize {
        if self.max_entries == 0 {
            0
        } else {
            self.max_bytes
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Bytes> {
        if self.room() == 0 {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now += 1;
        let now = state.now;
        let entry = state.entries.get_mut(key)?;
        entry.used_at = now;
        Some(entry.file.clone())
    }

    pub(super) fn insert(&self, key: Key, file: Bytes) {
        if file.len() > self.room() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now += 1;
        let entry = Entry {
            used_at: state.now,
            file,
        };
        state.bytes += entry.file.len();
        if let Some(replaced) = state.entries.insert(key, entry) {
            state.bytes -= replaced.file.len();
        }
        while state.entries.len() > self.max_entries || state.bytes > self.max_bytes {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used_at);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(entry) = state.entries.remove(&key) {
                state.bytes -= entry.file.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(
            "acme".to_owned(),
            &Voice::default(),
            text.to_owned(),
            Format::Mp3,
        )
    }

    fn cache(cache_entries: usize, cache_bytes: usize) -> SpeechCache {
        SpeechCache::new(&SpeechConfig {
            cache_entries,
            cache_bytes,
            ..SpeechConfig::default()
        })
    }

    #[test]
    fn the_least_wanted_makes_room() {
        let cache = cache(2, 100);
        let file = Bytes::from_static(b"sound");
        cache.insert(key("a"), file.clone());
        cache.insert(key("b"), file.clone());
        assert_eq!(cache.get(&key("a")), Some(file.clone()));
        cache.insert(key("c"), file.clone());
        assert_eq!(cache.get(&key("b")), None);
        assert_eq!(cache.get(&key("a")), Some(file.clone()));
        assert_eq!(cache.get(&key("c")), Some(file));
    }

    #[test]
    fn bytes_are_bounded_and_counted() {
        let cache = cache(10, 10);
        cache.insert(key("large"), Bytes::from_static(&[0; 11]));
        assert_eq!(cache.get(&key("large")), None);
        for _ in 0..3 {
            cache.insert(key("a"), Bytes::from_static(&[0; 6]));
        }
        cache.insert(key("b"), Bytes::from_static(&[0; 4]));
        assert!(cache.get(&key("a")).is_some() && cache.get(&key("b")).is_some());
        cache.insert(key("c"), Bytes::from_static(&[0; 1]));
        assert_eq!(cache.get(&key("a")), None);
        assert_eq!(cache.state.lock().unwrap().bytes, 5);
    }

    #[test]
    fn what_differs_is_not_repeated() {
        let cache = cache(10, 100);
        cache.insert(key("a"), Bytes::from_static(b"sound"));
        let slow = Voice {
            speed: 0.5,
            ..Voice::default()
        };
        let others = [
            Key::new(
                "other".to_owned(),
                &Voice::default(),
                "a".to_owned(),
                Format::Mp3,
            ),
            Key::new("acme".to_owned(), &slow, "a".to_owned(), Format::Mp3),
            Key::new(
                "acme".to_owned(),
                &Voice::default(),
                "a".to_owned(),
                Format::Wav,
            ),
        ];
        for key in others {
            assert_eq!(cache.get(&key), None, "{key:?}");
        }
    }

    #[test]
    fn without_room_nothing_is_kept() {
        for cache in [cache(0, 100), cache(10, 0)] {
            cache.insert(key("a"), Bytes::from_static(b"sound"));
            assert_eq!(cache.get(&key("a")), None);
        }
    }
}
