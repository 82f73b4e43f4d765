//! Files of speech from samples: samples in, bytes out, piece by piece, without any input or output of their own.
//!
//! Every format is mono at [`RATE_HZ`] and lasts as long as the sound: exactly, but for MP3, which knows whole frames of
//! 24 ms only. How the sound was cut into pieces makes no difference to the bytes.

use colloquy_voice::{Resampler, UnsupportedRate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{mp3::Mp3, ogg_opus::OggOpus, wav};

/// The rate of the sound in all formats.
pub const RATE_HZ: u32 = 24_000;

/// The bits of a second of Opus: more than speech in this band gains from.
const OPUS_BPS: i32 = 40_000;

/// Sound as a file of Opus in Ogg: mono, at a rate that Opus has (8,000 to 48,000 Hz), with so many bits a second. `serial` tells its
/// stream from others that it may be joined to.
///
/// # Errors
/// When Opus does not have the rate.
pub fn opus_file(
    sound: &[i16],
    rate_hz: u32,
    bitrate_bps: i32,
    serial: u32,
) -> Result<Vec<u8>, EncodeError> {
    let mut opus = OggOpus::new(serial, rate_hz, bitrate_bps)?;
    let mut file = opus.push(sound)?;
    file.extend(opus.finish()?);
    Ok(file)
}

/// The formats of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpeechFormat)]
pub enum Format {
    /// MP3, 64 kb/s.
    #[default]
    Mp3,
    /// Opus in Ogg.
    Opus,
    /// WAV, 16 bits.
    Wav,
    /// Samples without a header: signed, 16 bits, little-endian.
    Pcm,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mp3, Self::Opus, Self::Wav, Self::Pcm];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Wav => "wav",
            Self::Pcm => "pcm",
        }
    }

    /// The `Content-Type`, as the interface document says.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mp3 => "audio/mpeg",
            Self::Opus => "audio/ogg",
            Self::Wav => "audio/wav",
            Self::Pcm => "application/octet-stream",
        }
    }

    /// Whether the bytes can be sent before the sound is complete; a WAV file begins with its length.
    pub fn is_streamed(self) -> bool {
        self != Self::Wav
    }
}

/// The sound cannot be brought into the format.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Its rate cannot be converted.
    #[error(transparent)]
    Rate(#[from] UnsupportedRate),
    /// Opus failed.
    #[error("Opus: {0}")]
    Opus(#[from] opus::Error),
    /// Ogg failed.
    #[error("Ogg: {0}")]
    Ogg(#[from] std::io::Error),
    /// MP3 failed.
    #[error("MP3: {0}")]
    Mp3(String),
}

/// A file in the making.
pub struct Encoder {
    resampler: Resampler,
    /// Samples at [`RATE_HZ`] that were not encoded yet; empty between two calls.
    samples: Vec<i16>,
    sink: Sink,
}

enum Sink {
    Mp3(Mp3),
    Opus(OggOpus),
    /// The whole file, since its header tells its length, which is written last.
    Wav(Vec<u8>),
    Pcm,
}

impl Encoder {
    /// A file of sound that comes at this rate. `serial` tells an Ogg stream from others that it may be joined to.
    pub fn new(format: Format, rate_hz: u32, serial: u32) -> Result<Self, EncodeError> {
        Ok(Self {
            resampler: Resampler::new(rate_hz, RATE_HZ)?,
            samples: Vec::new(),
            sink: match format {
                Format::Mp3 => Sink::Mp3(Mp3::new()?),
                Format::Opus => Sink::Opus(OggOpus::new(serial, RATE_HZ, OPUS_BPS)?),
                Format::Wav => Sink::Wav(vec![0; wav::HEADER_BYTES]),
                Format::Pcm => Sink::Pcm,
            },
        })
    }

    /// The rate of the sound that goes in.
    pub fn rate_hz(&self) -> u32 {
        self.resampler.from_hz()
    }

    /// The bytes of the file that were made and not given out: all of a WAV file, until its end.
    pub fn held_bytes(&self) -> usize {
        match &self.sink {
            Sink::Wav(file) => file.len(),
            Sink::Mp3(_) | Sink::Opus(_) | Sink::Pcm => 0,
        }
    }

    /// Takes samples and gives the bytes that are ready, which may be none.
    pub fn push(&mut self, samples: &[i16]) -> Result<Vec<u8>, EncodeError> {
        self.resampler
            .push(samples.iter().copied(), &mut self.samples);
        self.encode()
    }

    /// The rest of the file.
    pub fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        self.resampler.finish(&mut self.samples);
        let mut bytes = self.encode()?;
        match self.sink {
            Sink::Mp3(mp3) => bytes.extend(mp3.finish()?),
            Sink::Opus(opus) => bytes.extend(opus.finish()?),
            Sink::Wav(file) => bytes = with_header(file),
            Sink::Pcm => {}
        }
        Ok(bytes)
    }

    fn encode(&mut self) -> Result<Vec<u8>, EncodeError> {
        let bytes = match &mut self.sink {
            Sink::Mp3(mp3) => mp3.push(&self.samples)?,
            Sink::Opus(opus) => opus.push(&self.samples)?,
            Sink::Wav(file) => {
                file.extend(self.samples.iter().flat_map(|sample| sample.to_le_bytes()));
                Vec::new()
            }
            Sink::Pcm => wav::raw(&self.samples),
        };
        self.samples.clear();
        Ok(bytes)
    }
}

/// Writes the header of a file whose samples are there. The file takes no more memory than it has bytes.
fn with_header(mut file: Vec<u8>) -> Vec<u8> {
    let data_bytes = file.len().saturating_sub(wav::HEADER_BYTES);
    let header = wav::mono_header(data_bytes, RATE_HZ);
    if let Some(space) = file.first_chunk_mut() {
        *space = header;
    }
    file.shrink_to_fit();
    file
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
