//! Sound as files and as samples: WAV that comes in pieces, the formats of speech, and what voice messages are in.
//!
//! - [`encode`]: speech to MP3, Opus in Ogg, WAV or raw samples, piece by piece
//! - [`ogg_reader`]: Opus and Vorbis in Ogg to samples
//! - [`wav`]: WAV and raw samples, both ways

pub mod encode;
mod mp3;
mod ogg_opus;
pub mod ogg_reader;
pub mod wav;

/// A piece of speech: mono samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcm {
    /// The samples.
    pub samples: Vec<i16>,
    /// The rate, the same for all pieces of one stream.
    pub sample_rate_hz: u32,
}
