//! Sound as bytes, both ways: WAV or raw samples come in pieces of any size, whole WAV files go out.

use super::Pcm;

/// Headers larger than this are not sound.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The bytes in front of the samples of a file that is written here.
pub const HEADER_BYTES: usize = 44;

/// A WAV file of mono samples.
pub fn encode(samples: &[i16], sample_rate_hz: u32) -> Vec<u8> {
    let mut wav = Vec::with_capacity(HEADER_BYTES + samples.len() * 2);
    wav.extend_from_slice(&mono_header(samples.len() * 2, sample_rate_hz));
    wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    wav
}

/// The header of a WAV file of mono samples, of so many bytes.
pub fn mono_header(data_bytes: usize, sample_rate_hz: u32) -> [u8; HEADER_BYTES] {
    let data_bytes = u32::try_from(data_bytes).unwrap_or(u32::MAX);
    let fields: [&[u8]; 12] = [
        b"RIFF",
        &data_bytes.saturating_add(36).to_le_bytes(),
        b"WAVEfmt ",
        &16_u32.to_le_bytes(),
        &1_u16.to_le_bytes(), // PCM
        &1_u16.to_le_bytes(), // mono
        &sample_rate_hz.to_le_bytes(),
        &(sample_rate_hz * 2).to_le_bytes(), // bytes a second
        &2_u16.to_le_bytes(),                // bytes a sample
        &16_u16.to_le_bytes(),               // bits a sample
        b"data",
        &data_bytes.to_le_bytes(),
    ];
    let mut header = [0; HEADER_BYTES];
    let mut at = 0;
    for field in fields {
        header[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    header
}

/// The samples of a raw file: little-endian, 16 bits.
pub fn raw(samples: &[i16]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect()
}

/// Turns pieces of bytes into pieces of mono samples. A WAV header is found by itself; without one the bytes are raw
/// 16-bit little-endian samples.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// Bytes that are not a whole header, or not a whole frame, yet.
    pending: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Header { raw_rate_hz: Option<u32> },
    Samples(Format),
}

#[derive(Debug, Clone, Copy)]
struct Format {
    sample_rate_hz: u32,
    channels: usize,
    /// Bytes of sound that the header promises; `None` where it was written before the length was known.
    left: Option<usize>,
}

/// What a header says so far.
enum Header {
    Incomplete,
    Raw,
    Wav { format: Format, bytes: usize },
}

impl Decoder {
    /// A decoder; `raw_rate_hz` is the rate of sound without a header, `None` when a header is required.
    pub fn new(raw_rate_hz: Option<u32>) -> Self {
        Self {
            state: State::Header { raw_rate_hz },
            pending: Vec::new(),
        }
    }

    /// Takes bytes and gives the samples that are complete now, which may be none.
    ///
    /// # Errors
    /// When the header names sound that is not 16-bit PCM.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Pcm>, &'static str> {
        self.pending.extend_from_slice(bytes);
        if let State::Header { raw_rate_hz } = self.state {
            let format = match (header(&self.pending)?, raw_rate_hz) {
                (Header::Incomplete, _) => return Ok(None),
                (Header::Wav { format, bytes }, _) => {
                    self.pending.drain(..bytes);
                    format
                }
                (Header::Raw, Some(sample_rate_hz)) => Format {
                    sample_rate_hz,
                    channels: 1,
                    left: None,
                },
                (Header::Raw, None) => return Err("sound without a WAV header"),
            };
            self.state = State::Samples(format);
        }
        let State::Samples(format) = &mut self.state else {
            return Ok(None);
        };
        let frame_bytes = 2 * format.channels;
        let available = format
            .left
            .map_or(self.pending.len(), |left| left.min(self.pending.len()));
        let whole = available - available % frame_bytes;
        let samples = self.pending[..whole]
            .chunks_exact(frame_bytes)
            .map(|frame| mix(frame, format.channels))
            .collect::<Vec<_>>();
        match &mut format.left {
            Some(left) => {
                *left -= whole;
                if *left < frame_bytes {
                    // Whatever follows is another chunk of the file, not sound.
                    *left = 0;
                    self.pending.clear();
                } else {
                    self.pending.drain(..whole);
                }
            }
            None => drop(self.pending.drain(..whole)),
        }
        let sample_rate_hz = format.sample_rate_hz;
        Ok((!samples.is_empty()).then_some(Pcm {
            samples,
            sample_rate_hz,
        }))
    }

    /// Whether the header promised sound that has not come.
    pub fn is_short(&self) -> bool {
        matches!(self.state, State::Samples(Format { left: Some(left), .. }) if left > 0)
    }
}

/// One sample of all channels.
fn mix(frame: &[u8], channels: usize) -> i16 {
    let sum: i32 = frame
        .as_chunks::<2>()
        .0
        .iter()
        .map(|sample| i32::from(i16::from_le_bytes(*sample)))
        .sum();
    let channels = i32::try_from(channels).unwrap_or(1).max(1);
    i16::try_from(sum / channels).unwrap_or_default()
}

fn header(bytes: &[u8]) -> Result<Header, &'static str> {
    let beginning = &bytes[..bytes.len().min(4)];
    if !b"RIFF".starts_with(beginning) {
        return Ok(Header::Raw);
    }
    if bytes.len() < 12 {
        return Ok(Header::Incomplete);
    }
    if &bytes[8..12] != b"WAVE" {
        return Err("a RIFF file that is not WAVE");
    }
    let mut at = 12;
    let mut sound = None;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let length = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        let body = at + 8;
        if &chunk[..4] == b"data" {
            let Some((sample_rate_hz, channels)) = sound else {
                return Err("a WAV file whose sound comes before its format");
            };
            // Programs that write to a pipe do not know the length: they say nothing, or something enormous.
            let left = (length != 0 && length < 0x7000_0000).then_some(size);
            let format = Format {
                sample_rate_hz,
                channels,
                left,
            };
            return Ok(Header::Wav {
                format,
                bytes: body,
            });
        }
        if size > MAX_HEADER_BYTES {
            return Err("a WAV header that does not end");
        }
        if &chunk[..4] == b"fmt " {
            let Some(format) = bytes.get(body..body + 16) else {
                return Ok(Header::Incomplete);
            };
            sound = Some(pcm_format(format)?);
        }
        at = body + size + size % 2;
    }
    if at > MAX_HEADER_BYTES {
        return Err("a WAV header that does not end");
    }
    Ok(Header::Incomplete)
}

/// Rate and channels of the `fmt ` chunk.
fn pcm_format(format: &[u8]) -> Result<(u32, usize), &'static str> {
    let short = |at: usize| u16::from_le_bytes([format[at], format[at + 1]]);
    let encoding = short(0);
    let channels = short(2);
    let rate = u32::from_le_bytes([format[4], format[5], format[6], format[7]]);
    let known = matches!(encoding, 1 | 0xFFFE) && short(14) == 16;
    if known && (1..=8).contains(&channels) && (8_000..=192_000).contains(&rate) {
        Ok((rate, usize::from(channels)))
    } else {
        Err("a WAV file that is not 16-bit PCM")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(decoder: &mut Decoder, pieces: &[&[u8]]) -> (Vec<i16>, Option<u32>) {
        let mut samples = Vec::new();
        let mut rate = None;
        for piece in pieces {
            if let Some(pcm) = decoder.push(piece).unwrap() {
                samples.extend(pcm.samples);
                rate = Some(pcm.sample_rate_hz);
            }
        }
        (samples, rate)
    }

    #[test]
    fn a_header_of_unknown_length_plays_to_the_end() {
        let mut wav = encode(&[1, -2, 3], 22_050);
        wav[40..44].copy_from_slice(&0x7fff_f000_u32.to_le_bytes());
        let (samples, rate) = decode(&mut Decoder::new(None), &[&wav]);
        assert_eq!((samples, rate), (vec![1, -2, 3], Some(22_050)));
    }

    #[test]
    fn chunks_after_the_sound_are_not_sound() {
        let mut wav = encode(&[7; 5], 16_000);
        wav.extend_from_slice(b"LIST\x04\0\0\0abcd");
        let mut decoder = Decoder::new(None);
        assert_eq!(decode(&mut decoder, &[&wav]).0, vec![7; 5]);
        assert!(!decoder.is_short());
    }

    #[test]
    fn a_file_that_stops_early_is_short() {
        let wav = encode(&[7; 5], 16_000);
        let mut decoder = Decoder::new(None);
        assert_eq!(decode(&mut decoder, &[&wav[..wav.len() - 3]]).0, vec![7; 3]);
        assert!(decoder.is_short());
    }

    #[test]
    fn other_encodings_are_refused() {
        let mut wav = encode(&[0; 8], 16_000);
        wav[20] = 3; // floating point
        assert!(Decoder::new(None).push(&wav).is_err());
        assert!(Decoder::new(None).push(b"ID3\x04mp3").is_err());
    }

    #[test]
    fn stereo_is_mixed() {
        let mut wav = encode(&[10, 20, -4, -6], 48_000);
        wav[22] = 2;
        assert_eq!(decode(&mut Decoder::new(None), &[&wav]).0, vec![15, -5]);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_samples(
            samples in proptest::collection::vec(any::<i16>(), 1..200),
            cuts in proptest::collection::vec(1_usize..9, 1..40),
            with_header in any::<bool>(),
        ) {
            // Raw sound that happens to begin like a header would be taken for one; real sound does not.
            prop_assume!(with_header || samples[0].to_le_bytes()[0] != b'R');
            let bytes = if with_header { encode(&samples, 24_000) } else { raw(&samples) };
            let mut decoder = Decoder::new(Some(24_000));
            let (mut rest, mut decoded) = (bytes.as_slice(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                if let Some(pcm) = decoder.push(piece).unwrap() {
                    prop_assert_eq!(pcm.sample_rate_hz, 24_000);
                    decoded.extend(pcm.samples);
                }
                rest = after;
                if rest.is_empty() { break; }
            }
            prop_assert_eq!(decoded, samples);
        }
    }
}
