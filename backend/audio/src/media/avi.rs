//! The sound of an AVI file (RIFF), as a file of its own: the chunks of its first sound, one after another.

use super::{Container, MediaError};

/// Lists inside of lists.
const MOST_DEPTH: usize = 4;
/// The most streams of a file, which two digits number.
const MOST_STREAMS: usize = 100;

/// What the format of a sound says it is (`WAVEFORMATEX.wFormatTag`).
const PCM: u16 = 1;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const MS_ADPCM: u16 = 2;
const IMA_ADPCM: u16 = 0x11;
const MP3: u16 = 0x55;
const EXTENSIBLE: u16 = 0xFFFE;
/// Names of those that are not decoded.
const NAMES: [(u16, &str); 8] = [
    (0x31, "GSM 6.10"),
    (0x50, "MPEG layer 1 or 2"),
    (0xFF, "AAC"),
    (0x160, "Windows Media Audio 1"),
    (0x161, "Windows Media Audio 2"),
    (0x162, "Windows Media Audio Professional"),
    (0x2000, "AC-3"),
    (0x2001, "DTS"),
];

/// The chunks of a list; one that is cut short has what there is of it.
struct Chunks<'a>(&'a [u8]);

impl<'a> Iterator for Chunks<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        let [a, b, c, d, length @ ..] = *head;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let content = &rest[..length.min(rest.len())];
        // Chunks begin at even places.
        let padded = length.saturating_add(length % 2).min(rest.len());
        self.0 = &rest[padded..];
        Some(([a, b, c, d], content))
    }
}

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
    match tag(format) {
        Some(MP3) => Ok((Container::Mp3, sound.data)),
        Some(PCM | FLOAT | A_LAW | MU_LAW | MS_ADPCM | IMA_ADPCM) => {
            Ok((Container::Wav, wav(format, &sound.data)))
        }
        Some(tag) => {
            let known = NAMES.iter().find(|(known, _)| *known == tag);
            let name = known.map_or("an unknown kind", |(_, name)| *name);
            Err(MediaError::Unsupported(format!(
                "{name} (0x{tag:04X}) in AVI"
            )))
        }
        None => Err(MediaError::Malformed("its sound has no format".to_owned())),
    }
}

fn tag(format: &[u8]) -> Option<u16> {
    let tag = |at: usize| {
        let bytes = format.get(at..at + 2)?.first_chunk::<2>()?;
        Some(u16::from_le_bytes(*bytes))
    };
    match tag(0)? {
        // The first part of the name of the kind is its number.
        EXTENSIBLE => tag(24),
        tag => Some(tag),
    }
}

/// The longest format, in bytes: one that is extensible, and one with the coefficients of Microsoft's ADPCM.
const LONGEST: usize = 40;
const LONGEST_ADPCM: usize = 50;

fn wav(format: &[u8], data: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let longest = match tag(format) {
        Some(MS_ADPCM) => LONGEST_ADPCM,
        _ => LONGEST,
    };
    let format = &format[..format.len().min(longest) / 2 * 2];
    let mut wav = Vec::with_capacity(28 + format.len() + data.len());
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&length(20 + format.len() + data.len()));
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&length(format.len()));
    wav.extend_from_slice(format);
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&length(data.len()));
    wav.extend_from_slice(data);
    wav
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
