//! The sound of an AVI file (RIFF), as a file of its own: the chunks of its first sound, one after another.

use super::{
    Container, MediaError,
    riff::{self, Chunks},
};

/// Lists inside of lists.
const MOST_DEPTH: usize = 4;
/// The most streams of a file, which two digits number.
const MOST_STREAMS: usize = 100;

/// What is known of the sound while its chunks are gathered.
#[derive(Default)]
struct Sound<'a> {
    streams: usize,
    /// The number of the stream, and its format.
    found: Option<(usize, &'a [u8])>,
    data: Vec<u8>,
}

/// The sound of a file.
pub(super) fn sound_of(file: &[u8]) -> Result<(Container, Vec<u8>), MediaError> {
    let mut sound = Sound::default();
    for (id, content) in Chunks(file) {
        // A long file goes on in further ones (OpenDML).
        match content.split_first_chunk::<4>() {
            Some((b"AVI " | b"AVIX", list)) if &id == b"RIFF" => sound.take(list, 0),
            _ => break,
        }
    }
    if sound.streams == 0 {
        return Err(MediaError::Malformed("it is no AVI file".to_owned()));
    }
    let (_, format) = sound.found.ok_or(MediaError::NoSound)?;
    if sound.data.is_empty() {
        return Err(MediaError::NoSound);
    }
    riff::file_of(format, sound.data, "AVI")
}

impl<'a> Sound<'a> {
    fn take(&mut self, list: &'a [u8], depth: usize) {
        for (id, content) in Chunks(list) {
            match (&id, content.split_first_chunk::<4>()) {
                (b"LIST", Some((b"strl", list))) => self.stream(list),
                (b"LIST", Some((b"hdrl" | b"movi" | b"rec ", list))) if depth < MOST_DEPTH => {
                    self.take(list, depth + 1);
                }
                _ => {
                    if self.found.is_some_and(|(number, _)| id == name(number)) {
                        self.data.extend_from_slice(content);
                    }
                }
            }
        }
    }

    fn stream(&mut self, list: &'a [u8]) {
        let mut is_sound = false;
        for (id, content) in Chunks(list) {
            match &id {
                b"strh" => is_sound = content.starts_with(b"auds"),
                b"strf" if is_sound && self.found.is_none() && self.streams < MOST_STREAMS => {
                    self.found = Some((self.streams, content));
                }
                _ => {}
            }
        }
        self.streams += 1;
    }
}

/// What the chunks of a stream of sound are called.
fn name(number: usize) -> [u8; 4] {
    let digit = |number: usize| b'0' + (number % 10) as u8;
    [digit(number / 10), digit(number), b'w', b'b']
}
