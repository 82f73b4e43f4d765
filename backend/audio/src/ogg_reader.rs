//! Sound in Ogg, Opus (RFC 7845) or Vorbis, to samples for a transcriber.
//!
//! The files are not trusted: how long they last is bounded while they are decoded, not by what they claim. What a decoder
//! may allocate is not, so the files of others are to be decoded in a process of their own.

use std::{
    io::{Cursor, ErrorKind},
    panic::catch_unwind,
    time::Duration,
};

use ogg::{OggReadError, Packet, PacketReader};
use opus::{Channels, Decoder};
use serde::{Deserialize, Serialize};

mod vorbis;

/// The rate of what comes out.
const RATE_HZ: u32 = 16_000;
/// Granule positions of Opus count at 48,000 Hz.
const GRANULES_PER_SAMPLE: u64 = 3;
/// RFC 6716, 3.2.5: no packet is longer than 120 ms.
const MAX_PACKET_SAMPLES: usize = 1_920;

/// Why a file gives no samples.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum OggError {
    /// It is no Ogg file, or a damaged one.
    #[error("not a sound Ogg file: {0}")]
    Malformed(String),
    /// It holds neither Opus nor Vorbis, or more channels than two.
    #[error("not Opus or Vorbis of one or two channels")]
    Unsupported,
    /// It lasts longer than it may.
    #[error("longer than {} s", .0.as_secs())]
    TooLong(Duration),
}

impl From<OggReadError> for OggError {
    fn from(error: OggReadError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<opus::Error> for OggError {
    fn from(error: opus::Error) -> Self {
        Self::Malformed(format!("Opus: {error}"))
    }
}

/// Mono samples at 16,000 Hz of an Ogg file. This takes processor time, milliseconds a second of sound.
///
/// # Errors
/// When the file is malformed, holds another codec, or lasts longer than `longest`.
pub fn decode_ogg(file: &[u8], longest: Duration) -> Result<Vec<i16>, OggError> {
    let mut packets = PacketReader::new(Cursor::new(file));
    let mut out = Samples {
        samples: Vec::new(),
        most: usize::try_from(longest.as_millis() * u128::from(RATE_HZ) / 1_000)
            .unwrap_or(usize::MAX),
        longest,
    };
    let mut stream: Option<OpusStream> = None;
    let mut any = false;
    loop {
        let packet = match packets.read_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            // What came of a recording that was cut off is better than nothing.
            Err(OggReadError::ReadError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                break;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(current) = &mut stream {
            // Streams beside the first one, such as pictures, are passed over.
            if packet.stream_serial() == current.serial && current.take(&packet, &mut out)? {
                stream = None;
            }
        } else if packet.first_in_stream() && packet.data.starts_with(b"OpusHead") {
            stream = Some(OpusStream::begin(&packet, out.samples.len())?);
            any = true;
        } else if packet.first_in_stream() && packet.data.starts_with(b"\x01vorbis") && !any {
            // The library asserts what a damaged file does not keep, and what it has made is gone with the panic.
            return catch_unwind(|| vorbis::decode(file, out)).unwrap_or_else(|_| {
                Err(OggError::Malformed("Vorbis: not to be decoded".to_owned()))
            });
        }
    }
    if any {
        Ok(out.samples)
    } else {
        Err(OggError::Unsupported)
    }
}

/// What was decoded, up to a bound.
struct Samples {
    samples: Vec<i16>,
    most: usize,
    longest: Duration,
}

impl Samples {
    fn extend(&mut self, samples: impl IntoIterator<Item = i16>) -> Result<(), OggError> {
        self.samples.extend(samples);
        if self.samples.len() > self.most {
            return Err(OggError::TooLong(self.longest));
        }
        Ok(())
    }
}

/// A logical stream of Opus.
struct OpusStream {
    serial: u32,
    opus: Decoder,
    /// Samples at the beginning that are the encoder's delay, which are not to be heard.
    skip: usize,
    pre_skip_granules: u64,
    has_tags: bool,
    /// Where in the output it begins.
    begin: usize,
    /// Samples of it so far, with those that were skipped.
    decoded: u64,
    /// The granule position of its first sample, known at the end of its first page: a recording may begin in the middle of
    /// a broadcast.
    origin: Option<u64>,
}

impl OpusStream {
    /// Reads the identification header (5.1).
    fn begin(packet: &Packet, begin: usize) -> Result<Self, OggError> {
        let Some(
            &[
                version,
                channels,
                skip_low,
                skip_high,
                ..,
                gain_low,
                gain_high,
                family,
            ],
        ) = packet.data.get(8..19)
        else {
            return Err(OggError::Malformed("the header is short".to_owned()));
        };
        // Family 0 is mono or stereo. A mono decoder mixes stereo by itself.
        if version > 15 || family != 0 || !(1..=2).contains(&channels) {
            return Err(OggError::Unsupported);
        }
        let pre_skip_granules = u64::from(u16::from_le_bytes([skip_low, skip_high]));
        let mut opus = Decoder::new(RATE_HZ, Channels::Mono)?;
        opus.set_gain(i16::from_le_bytes([gain_low, gain_high]).into())?;
        Ok(Self {
            serial: packet.stream_serial(),
            opus,
            skip: (pre_skip_granules / GRANULES_PER_SAMPLE) as usize,
            pre_skip_granules,
            has_tags: false,
            begin,
            decoded: 0,
            origin: None,
        })
    }

    /// Decodes a packet, and says whether it was the last one.
    fn take(&mut self, packet: &Packet, out: &mut Samples) -> Result<bool, OggError> {
        if !self.has_tags {
            self.has_tags = true;
            return Ok(packet.last_in_stream());
        }
        let mut samples = [0; MAX_PACKET_SAMPLES];
        let count = self.opus.decode(&packet.data, &mut samples, false)?;
        self.decoded += count as u64;
        let skipped = self.skip.min(count);
        self.skip -= skipped;
        out.extend(samples[skipped..count].iter().copied())?;
        let granules = packet.absgp_page();
        if packet.last_in_stream() {
            // The end may lie within the last packet (4.4), which on a page of its own says nothing of the origin.
            let end = granules
                .saturating_sub(self.origin.unwrap_or_default())
                .saturating_sub(self.pre_skip_granules);
            let length = usize::try_from(end.div_ceil(GRANULES_PER_SAMPLE)).unwrap_or(usize::MAX);
            out.samples.truncate(self.begin.saturating_add(length));
        } else if packet.last_in_page() {
            let decoded = self.decoded * GRANULES_PER_SAMPLE;
            self.origin
                .get_or_insert_with(|| granules.saturating_sub(decoded));
        }
        Ok(packet.last_in_stream())
    }
}

#[cfg(test)]
mod tests {
    use ogg::{PacketWriteEndInfo, PacketWriter};
    use proptest::{prelude::*, sample::Index};

    use super::*;

    /// A packet, the granule position of its page, and whether it is the page's last one.
    type Part = (Vec<u8>, u64, bool);

    /// The packets of half a second of a tone.
    fn recording(codec: &str) -> Vec<Part> {
        let sound = "sine=frequency=440:sample_rate=48000:duration=0.5";
        let file = test_sounds::generated(sound, "a.ogg", &["-c:a", codec]);
        let mut packets = PacketReader::new(Cursor::new(file));
        let mut recording = Vec::new();
        while let Some(packet) = packets.read_packet().unwrap() {
            let (granules, ends_page) = (packet.absgp_page(), packet.last_in_page());
            recording.push((packet.data, granules, ends_page));
        }
        recording
    }

    /// A file of these packets, whose checksums are right.
    fn file(packets: Vec<Part>) -> Vec<u8> {
        let mut writer = PacketWriter::new(Vec::new());
        let last = packets.len() - 1;
        for (index, (packet, granules, ends_page)) in packets.into_iter().enumerate() {
            let end = if index == last {
                PacketWriteEndInfo::EndStream
            } else if ends_page {
                PacketWriteEndInfo::EndPage
            } else {
                PacketWriteEndInfo::NormalPacket
            };
            writer.write_packet(packet, 7, end, granules).unwrap();
        }
        writer.into_inner()
    }

    #[test]
    fn whole_recordings_are_read() {
        for codec in ["libopus", "libvorbis"] {
            let samples = decode_ogg(&file(recording(codec)), Duration::from_secs(1)).unwrap();
            assert!(
                samples.len().abs_diff(8_000) < 3,
                "{codec}: {}",
                samples.len()
            );
            let short = decode_ogg(&file(recording(codec)), Duration::from_millis(400));
            assert!(matches!(short, Err(OggError::TooLong(_))), "{codec}");
        }
    }

    #[test]
    fn other_codecs_are_refused() {
        let packets = vec![(b"fishead\0".to_vec(), 0, true), (vec![1, 2, 3], 0, true)];
        let refused = decode_ogg(&file(packets), Duration::from_secs(1));
        assert!(matches!(refused, Err(OggError::Unsupported)));
        let refused = decode_ogg(b"RIFF....WAVE", Duration::from_secs(1));
        assert!(matches!(refused, Err(OggError::Malformed(_))));
    }

    #[test]
    fn what_the_library_panics_at_is_malformed() {
        let mut packets = recording("libvorbis");
        // A codebook of 33 dimensions with 3 entries, none of them used, and a lookup table: the library asserts that so many
        // dimensions are more than the entries have values for, and goes beyond 32 bits.
        packets[2].0 = [&b"\x05vorbis\0BCV\x21\0\x03\0\0\x22"[..], &[0; 16]].concat();
        let refused = decode_ogg(&file(packets), Duration::from_secs(1));
        assert!(
            matches!(refused, Err(OggError::Malformed(reason)) if reason.contains("not to be decoded"))
        );
    }

    #[test]
    fn damaged_recordings_end_without_a_panic() {
        for codec in ["libopus", "libvorbis"] {
            let recording = recording(codec);
            let damage = (any::<Index>(), any::<Index>(), any::<u8>());
            let damages = proptest::collection::vec(damage, 1..12);
            proptest!(ProptestConfig::with_cases(200), |(damages in damages, granules: u64)| {
                let mut packets = recording.clone();
                for (packet, byte, value) in damages {
                    let index = packet.index(packets.len());
                    let packet = &mut packets[index];
                    if !packet.0.is_empty() {
                        let at = byte.index(packet.0.len());
                        packet.0[at] = value;
                    }
                }
                if granules % 4 == 0 {
                    packets.last_mut().unwrap().1 = granules;
                }
                if let Ok(samples) = decode_ogg(&file(packets), Duration::from_secs(2)) {
                    prop_assert!(samples.len() <= 32_000);
                }
            });
        }
    }
}
