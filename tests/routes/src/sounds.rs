//! Sound, and sound as files.

/// Samples of a second.
const RATE: usize = 16_000;

/// The samples of "go forward ten meters", mono at 16,000 Hz.
#[must_use]
pub fn go_forward() -> Vec<i16> {
    let bytes = include_bytes!("../../recordings/goforward.raw");
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|sample| i16::from_le_bytes(*sample))
        .collect()
}

/// Samples as a WAV file.
#[must_use]
pub fn wav(samples: &[i16]) -> Vec<u8> {
    let bytes: Vec<u8> = samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    let mut wav = Vec::with_capacity(44 + bytes.len());
    wav.extend(b"RIFF");
    wav.extend((36 + bytes.len() as u32).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend((RATE as u32).to_le_bytes());
    wav.extend((2 * RATE as u32).to_le_bytes());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend((bytes.len() as u32).to_le_bytes());
    wav.extend(bytes);
    wav
}
