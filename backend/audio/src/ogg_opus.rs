//! Opus in Ogg (RFC 7845): mono, 20 ms a packet.

use ogg::{PacketWriteEndInfo, PacketWriter};
use opus::{Application, Bitrate, Channels, Encoder, Signal};

use crate::encode::{EncodeError, RATE_HZ};

/// Samples of a packet.
const FRAME_SAMPLES: usize = 480;
/// Granule positions count at 48,000 Hz.
const GRANULES_PER_SAMPLE: u64 = 2;
/// More than speech in this band gains from.
const BITRATE_BPS: i32 = 40_000;
/// RFC 6716, 3.2.1: no frame is longer.
const MAX_FRAME_BYTES: usize = 1275;
/// Packets of a page: a tenth of a second waits, and a page's own bytes weigh little.
const PAGE_PACKETS: u64 = 5;

/// An Ogg Opus file in the making.
pub(super) struct OggOpus {
    opus: Encoder,
    writer: PacketWriter<'static, Vec<u8>>,
    serial: u32,
    /// The delay of the encoder, which players cut off in front.
    lookahead: usize,
    /// Samples that fill no packet yet.
    pending: Vec<i16>,
    /// Held back, since the last packet has to say that it is the last one.
    last: Option<Vec<u8>>,
    /// Packets that were encoded, with the one held back.
    packets: u64,
    samples: u64,
}

impl OggOpus {
    pub(super) fn new(serial: u32) -> Result<Self, EncodeError> {
        let mut opus = Encoder::new(RATE_HZ, Channels::Mono, Application::Audio)?;
        opus.set_bitrate(Bitrate::Bits(BITRATE_BPS))?;
        opus.set_signal(Signal::Voice)?;
        let lookahead = usize::try_from(opus.get_lookahead()?).unwrap_or_default();
        let mut writer = PacketWriter::new(Vec::new());
        let whole_page = PacketWriteEndInfo::EndPage;
        writer.write_packet(head(lookahead), serial, whole_page, 0)?;
        writer.write_packet(tags(), serial, whole_page, 0)?;
        Ok(Self {
            opus,
            writer,
            serial,
            lookahead,
            pending: Vec::with_capacity(FRAME_SAMPLES),
            last: None,
            packets: 0,
            samples: 0,
        })
    }

    pub(super) fn push(&mut self, samples: &[i16]) -> Result<Vec<u8>, EncodeError> {
        self.samples += samples.len() as u64;
        self.encode(samples)?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        // The encoder's delay holds back that much of the sound.
        let due = (self.samples + self.lookahead as u64).div_ceil(FRAME_SAMPLES as u64);
        let filled = self.packets * FRAME_SAMPLES as u64 + self.pending.len() as u64;
        let missing = (due * FRAME_SAMPLES as u64).saturating_sub(filled);
        self.encode(&vec![0; usize::try_from(missing).unwrap_or_default()])?;
        if let Some(packet) = self.last.take() {
            // This cuts the silence at the end off again.
            let end = (self.samples + self.lookahead as u64) * GRANULES_PER_SAMPLE;
            self.writer
                .write_packet(packet, self.serial, PacketWriteEndInfo::EndStream, end)?;
        }
        Ok(self.writer.into_inner())
    }

    fn encode(&mut self, mut samples: &[i16]) -> Result<(), EncodeError> {
        while self.pending.len() + samples.len() >= FRAME_SAMPLES {
            let (now, later) = samples.split_at(FRAME_SAMPLES - self.pending.len());
            samples = later;
            self.pending.extend_from_slice(now);
            let packet = self.opus.encode_vec(&self.pending, MAX_FRAME_BYTES)?;
            self.pending.clear();
            if let Some(packet) = self.last.replace(packet) {
                let ends_page = self.packets.is_multiple_of(PAGE_PACKETS);
                let end = if ends_page {
                    PacketWriteEndInfo::EndPage
                } else {
                    PacketWriteEndInfo::NormalPacket
                };
                let granules = self.packets * FRAME_SAMPLES as u64 * GRANULES_PER_SAMPLE;
                self.writer
                    .write_packet(packet, self.serial, end, granules)?;
            }
            self.packets += 1;
        }
        self.pending.extend_from_slice(samples);
        Ok(())
    }
}

/// The identification header (5.1).
fn head(lookahead: usize) -> Vec<u8> {
    let pre_skip = u16::try_from(lookahead as u64 * GRANULES_PER_SAMPLE).unwrap_or(u16::MAX);
    let mut head = b"OpusHead".to_vec();
    head.extend_from_slice(&[1, 1]); // version 1, one channel
    head.extend_from_slice(&pre_skip.to_le_bytes());
    head.extend_from_slice(&RATE_HZ.to_le_bytes());
    head.extend_from_slice(&[0, 0, 0]); // no gain, channel mapping family 0
    head
}

/// The comment header (5.2), without comments.
fn tags() -> Vec<u8> {
    let vendor = opus::version().as_bytes();
    let mut tags = b"OpusTags".to_vec();
    tags.extend_from_slice(
        &u32::try_from(vendor.len())
            .unwrap_or_default()
            .to_le_bytes(),
    );
    tags.extend_from_slice(vendor);
    tags.extend_from_slice(&0_u32.to_le_bytes());
    tags
}
