//! The sound of recordings and films, decoded by a child a window at a time.

use std::time::Duration;

use clap::Args;
pub use colloquy_audio::media::Span;
use colloquy_audio::media::{Container, MediaError, Window, read_window};
use colloquy_base::fair_queue::Claim;
use colloquy_extract::Format;
use colloquy_sandbox::{Input, Sandbox};

use crate::{DigitizeError, limits};

/// What transcribers are given of a recording at a time, from a sample on: ten minutes at 16,000 Hz.
#[must_use]
pub fn speech_from(from: u64) -> Span {
    Span {
        rate_hz: 16_000,
        from,
        most: 600 * 16_000,
    }
}

/// The address space of a child beside its file: the decoders, and their tables of packets.
const CHILD_BYTES: u64 = 384 * 1024 * 1024;
/// Processor time of a window, and what each megabyte adds that may have to be passed over to get there, in seconds.
const CHILD_SECONDS: u64 = 60;
const MEGABYTES_A_SECOND: u64 = 2;
const MEGABYTE: u64 = 1024 * 1024;
/// In front of the samples: how long the file says that it is, in milliseconds, and whether the window is the last.
const HEAD: usize = 9;
/// The length of a file that says none.
const UNKNOWN: u64 = u64::MAX;

/// What the child is told.
#[derive(Debug, Clone, Args)]
pub struct SoundDecoder {
    /// What it is, by its name.
    #[arg(long, value_parser = parse_container)]
    container: Container,
    /// How many samples a second has.
    #[arg(long)]
    rate: u32,
    /// The first sample.
    #[arg(long)]
    from: u64,
    /// How many there may be.
    #[arg(long)]
    most: usize,
}

fn parse_container(name: &str) -> Result<Container, String> {
    Container::of_name(name).ok_or_else(|| format!("{name} is no sound"))
}

/// What the sound of a document is in; `None` for one without any.
#[must_use]
pub fn container(format: Format) -> Option<Container> {
    Some(match format {
        Format::Mp3 => Container::Mp3,
        Format::Wav => Container::Wav,
        Format::Mp4 | Format::Mov | Format::M4v | Format::M4a => Container::Mp4,
        Format::Avi => Container::Avi,
        _ => return None,
    })
}

impl SoundDecoder {
    /// Does the child's work: a head, and samples as bytes, little endian.
    ///
    /// # Errors
    /// When the file is refused.
    pub fn decode(&self, file: &[u8]) -> Result<Vec<u8>, MediaError> {
        let span = Span {
            rate_hz: self.rate,
            from: self.from,
            most: self.most,
        };
        let window = read_window(file, self.container, span)?;
        let declared = window.declared.map(|declared| declared.as_millis());
        let declared = declared.and_then(|millis| u64::try_from(millis).ok());
        let mut output = Vec::with_capacity(HEAD + 2 * window.samples.len());
        output.extend(declared.unwrap_or(UNKNOWN).to_le_bytes());
        output.push(u8::from(window.is_last));
        output.extend(window.samples.into_iter().flat_map(i16::to_le_bytes));
        Ok(output)
    }
}

/// Some of the sound of a file, decoded by a child.
///
/// # Errors
/// When it is refused, takes too much, or cannot be decoded now.
pub async fn window(
    sandbox: &Sandbox,
    claim: &Claim,
    file: &Input,
    container: Container,
    span: Span,
) -> Result<Window, DigitizeError> {
    let Span {
        rate_hz,
        from,
        most,
    } = span;
    let [rate, from] = [format!("--rate={rate_hz}"), format!("--from={from}")];
    let at_most = format!("--most={most}");
    let what = [
        "sound",
        "--container",
        container.name(),
        &rate,
        &from,
        &at_most,
    ];
    let length = file.length().await;
    let length = length.map_err(|error| DigitizeError::Later(error.to_string()))?;
    let output = HEAD + 2 * most;
    let limits = limits(
        // An AVI's sound is gathered beside it; samples and output while they grow.
        CHILD_BYTES + 3 * length + 6 * output as u64,
        CHILD_SECONDS + length / MEGABYTE / MEGABYTES_A_SECOND,
        output,
    );
    let decoded = sandbox.decode::<MediaError>(claim, &what, limits, file.clone());
    let output = decoded.await?;
    let crashed = || DigitizeError::Crashed("no samples".to_owned());
    let (head, samples) = output.split_first_chunk::<HEAD>().ok_or_else(crashed)?;
    let [declared @ .., is_last] = *head;
    let declared = Some(u64::from_le_bytes(declared)).filter(|declared| *declared != UNKNOWN);
    let (samples, _) = samples.as_chunks::<2>();
    Ok(Window {
        samples: samples.iter().copied().map(i16::from_le_bytes).collect(),
        is_last: is_last != 0,
        declared: declared.map(Duration::from_millis),
    })
}
