//! The files of others, decoded in a process of their own.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use colloquy_audio::ogg_reader::{OggError, decode_ogg};
use colloquy_base::fair_queue::Claim;
use colloquy_sandbox::{Limits, SandboxError};

use crate::Speech;

/// Bytes of a second of samples.
const BYTES_A_SECOND: u64 = 2 * 16_000;
/// The address space of a decoder without its input and output. Most of it is what the allocator sets aside for a thread, and
/// never touched.
const DECODER_BYTES: u64 = 256 * 1024 * 1024;
/// The processor time that the shortest file may take, and what a minute of sound adds to it, in seconds.
const DECODER_SECONDS: u64 = 10;
const SECONDS_A_MINUTE: u64 = 3;
/// How much longer than its processor time a decoder may take, beside others.
const OTHERS: u32 = 4;

/// Samples of a file of partners, mono at 16,000 Hz, as [`decode_ogg`] makes them, by a process of its own.
///
/// # Errors
/// When the file is refused, or takes more than a file that lasts `longest` may.
pub async fn decode(
    speech: &Speech,
    claim: &Claim,
    file: Bytes,
    longest: Duration,
) -> Result<Vec<i16>, SandboxError<OggError>> {
    let output = longest.as_secs().saturating_add(1) * BYTES_A_SECOND;
    let cpu_seconds = DECODER_SECONDS + longest.as_secs() * SECONDS_A_MINUTE / 60;
    let limits = Limits {
        // The samples while they grow, their bytes, and the file with its copies.
        memory_bytes: DECODER_BYTES + 5 * output + 4 * file.len() as u64,
        cpu_seconds,
        time: Duration::from_secs(cpu_seconds) * OTHERS,
        output_bytes: usize::try_from(output).unwrap_or(usize::MAX),
    };
    let longest_ms = longest.as_millis().to_string();
    let what = ["audio", "--longest-ms", &longest_ms];
    let bytes = speech.sandbox.decode(claim, &what, limits, file).await?;
    let (samples, _) = bytes.as_chunks::<2>();
    Ok(samples.iter().copied().map(i16::from_le_bytes).collect())
}

/// What the child is told.
#[derive(Debug, Clone, Args)]
pub struct AudioDecoder {
    /// How long the sound may last.
    #[arg(long)]
    longest_ms: u64,
}

impl AudioDecoder {
    /// Does the child's work: samples of a file, as bytes, little endian.
    ///
    /// # Errors
    /// When the file is refused.
    pub fn decode(&self, file: &[u8]) -> Result<Vec<u8>, OggError> {
        let samples = decode_ogg(file, Duration::from_millis(self.longest_ms))?;
        Ok(samples.into_iter().flat_map(i16::to_le_bytes).collect())
    }
}
