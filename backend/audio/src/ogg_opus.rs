//! Opus in Ogg (RFC 7845): mono, 20 ms a packet.

use ogg::{PacketWriteEndInfo, PacketWriter};
use opus::{Application, Bitrate, Channels, Encoder, Signal};

use crate::encode::EncodeError;

/// Granule positions count at 48,000 Hz.
const GRANULES_PER_SECOND: u32 = 48_000;
/// Packets of a second.
const PACKETS_PER_SECOND: u32 = 50;
/// RFC 6716, 3.2.1: no frame is longer.
const MAX_FRAME_BYTES: usize = 1275;
/// Packets of a page: a tenth of a second waits, and a page's own bytes weigh little.
const PAGE_PACKETS: u64 = 5;

/// An Ogg Opus file in the making.
pub(super) struct OggOpus {
    opus: Encoder,
    writer: PacketWriter<'static, Vec<u8>>,
    serial: u32,
    /// Samples of a packet.
    frame: usize,
    /// What a sample counts in granule positions.
    granules: u64,
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
    /// A file of sound at this rate, one that Opus has, with so many bits a second.
    pub(super) fn new(serial: u32, rate_hz: u32, bitrate_bps: i32) -> Result<Self, EncodeError> {
        let mut opus = Encoder::new(rate_hz, Channels::Mono, Application::Audio)?;
        opus.set_bitrate(Bitrate::Bits(bitrate_bps))?;
        opus.set_signal(Signal::Voice)?;
        let lookahead = usize::try_from(opus.get_lookahead()?).unwrap_or_default();
        let mut writer = PacketWriter::new(Vec::new());
        let whole_page = PacketWriteEndInfo::EndPage;
        let granules = u64::from(GRANULES_PER_SECOND / rate_hz);
        writer.write_packet(head(lookahead, granules, rate_hz), serial, whole_page, 0)?;
        writer.write_packet(tags(), serial, whole_page, 0)?;
        Ok(Self {
            opus,
            writer,
            serial,
            frame: (rate_hz / PACKETS_PER_SECOND) as usize,
            granules,
            lookahead,
            pending: Vec::new(),
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
        let frame = self.frame as u64;
        let due = (self.samples + self.lookahead as u64).div_ceil(frame);
        let filled = self.packets * frame + self.pending.len() as u64;
        let missing = (due * frame).saturating_sub(filled);
        self.encode(&vec![0; usize::try_from(missing).unwrap_or_default()])?;
        if let Some(packet) = self.last.take() {
            // This cuts the silence at the end off again.
            let end = (self.samples + self.lookahead as u64) * self.granules;
            self.writer
                .write_packet(packet, self.serial, PacketWriteEndInfo::EndStream, end)?;
        }
        Ok(self.writer.into_inner())
    }

    fn encode(&mut self, mut samples: &[i16]) -> Result<(), EncodeError> {
        while self.pending.len() + samples.len() >= self.frame {
            let (now, later) = samples.split_at(self.frame - self.pending.len());
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
                let granules = self.packets * self.frame as u64 * self.granules;
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
fn head(lookahead: usize, granules: u64, rate_hz: u32) -> Vec<u8> {
    let pre_skip = u16::try_from(lookahead as u64 * granules).unwrap_or(u16::MAX);
    let mut head = b"OpusHead".to_vec();
    head.extend_from_slice(&[1, 1]); // version 1, one channel
    head.extend_from_slice(&pre_skip.to_le_bytes());
    head.extend_from_slice(&rate_hz.to_le_bytes());
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
