//! A text as a file of sound: read, and encoded while it is read.

use colloquy_audio::encode::{EncodeError, Encoder, Format};
use colloquy_http::memory::{NoRoom, Share};
use colloquy_providers::{NotSpoken, Pcm, ProviderError};

use super::text_reader::TextReader;

/// What is encoded at a time. In between other tasks get their turn, and the connection sends what it has.
const STEPS_A_SECOND: u32 = 5;
/// A synthesizer that goes on for ever is cut off when a text has taken a second a character, and a minute. So the longest text of a
/// request is 99 MB of WAV at most.
const SPARE_SECONDS: u64 = 60;
/// About what a character of most languages takes: a fifteenth of a second at 22,050 Hz.
const WAV_BYTES_A_CHARACTER: usize = 3_000;

/// Why there is no sound, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum SoundError {
    /// The synthesizer failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The voice cannot speak the text.
    #[error(transparent)]
    NotSpoken(#[from] NotSpoken),
    /// The sound cannot be brought into the format.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The synthesizer gave none.
    #[error("no sound came")]
    Silent,
    /// Its pieces do not belong together.
    #[error("the sample rate changed between two pieces")]
    RateChanged,
    /// The server stops, and its time to drain is over.
    #[error("the server is stopping")]
    Stopped,
    /// It goes on for ever.
    #[error("the speech does not end")]
    Endless,
    /// There is no memory for a sound that is held until all of it is there.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// A file of sound in the making.
pub(super) struct Recording {
    reading: TextReader,
    format: Format,
    /// The length of the text, in characters.
    characters: u64,
    serial: u32,
    /// There from the first piece of sound on.
    encoder: Option<Encoder>,
    /// A piece of sound, and how much of it is encoded.
    piece: Vec<i16>,
    encoded: usize,
    /// How many samples came.
    samples: u64,
    /// What counts the bytes that are held until the file is complete, and how many it counts.
    memory: Option<Share>,
    counted_bytes: usize,
}

impl Recording {
    /// A file of this reading, of a text with so many characters. `serial` tells an Ogg stream from others that it may be
    /// joined to.
    pub(super) fn new(reading: TextReader, format: Format, characters: u64, serial: u32) -> Self {
        Self {
            reading,
            format,
            characters,
            serial,
            encoder: None,
            piece: Vec::new(),
            encoded: 0,
            samples: 0,
            memory: None,
            counted_bytes: 0,
        }
    }

    /// Counts the bytes that are held until the file is complete, in the memory of a request.
    pub(super) fn counted_in(self, memory: Option<Share>) -> Self {
        Self { memory, ..self }
    }

    /// Makes some more of the file, and says whether that was the end.
    pub(super) async fn next(&mut self) -> Result<(Vec<u8>, bool), SoundError> {
        if self.format == Format::Wav && self.counted_bytes == 0 {
            // Before anybody is asked for sound that is refused later. The loop counts what is more.
            let characters = usize::try_from(self.characters).unwrap_or(usize::MAX);
            self.count(characters.saturating_mul(WAV_BYTES_A_CHARACTER))?;
        }
        loop {
            if let Some(encoder) = &mut self.encoder
                && self.encoded < self.piece.len()
            {
                let step = (encoder.rate_hz() / STEPS_A_SECOND) as usize;
                let end = self.piece.len().min(self.encoded + step);
                let bytes = encoder.push(&self.piece[self.encoded..end])?;
                let held = encoder.held_bytes();
                self.encoded = end;
                self.count(held)?;
                tokio::task::yield_now().await;
                if !bytes.is_empty() {
                    return Ok((bytes, false));
                }
            } else if let Some(pcm) = self.reading.next().await {
                self.take(pcm?)?;
            } else {
                let encoder = self.encoder.take().ok_or(SoundError::Silent)?;
                let holds = encoder.held_bytes() > 0;
                let bytes = encoder.finish()?;
                if holds {
                    self.count(bytes.len())?;
                }
                return Ok((bytes, true));
            }
        }
    }

    /// The whole file.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, SoundError> {
        let mut file = Vec::new();
        loop {
            let (bytes, is_last) = self.next().await?;
            file.extend_from_slice(&bytes);
            if is_last {
                return Ok(file);
            }
        }
    }

    /// The characters that the synthesizer got so far.
    pub(super) fn sent_characters(&self) -> u64 {
        self.reading.sent_characters()
    }

    /// Counts what is held now, which never becomes less.
    fn count(&mut self, held_bytes: usize) -> Result<(), NoRoom> {
        if let Some(memory) = &self.memory
            && held_bytes > self.counted_bytes
        {
            memory.grow(held_bytes - self.counted_bytes)?;
            self.counted_bytes = held_bytes;
        }
        Ok(())
    }

    fn take(&mut self, pcm: Pcm) -> Result<(), SoundError> {
        match &self.encoder {
            Some(encoder) if encoder.rate_hz() != pcm.sample_rate_hz => {
                return Err(SoundError::RateChanged);
            }
            Some(_) => {}
            None => {
                let encoder = Encoder::new(self.format, pcm.sample_rate_hz, self.serial)?;
                self.encoder = Some(encoder);
            }
        }
        self.samples += pcm.samples.len() as u64;
        let most = (self.characters + SPARE_SECONDS) * u64::from(pcm.sample_rate_hz);
        if self.samples > most {
            return Err(SoundError::Endless);
        }
        self.piece = pcm.samples;
        self.encoded = 0;
        Ok(())
    }
}
