//! Opus to 16 kHz mono without holes: lost frames come from the redundancy in the next packet or from concealment,
//! and time in which nothing was sent (DTX) is silence.

use opus::{Channels, packet};

use super::jitter::Ready;
use super::{RATE_HZ, Sink};

/// Opus allows packets of 120 ms.
const MAX_PACKET_SAMPLES: usize = RATE_HZ * 120 / 1000;
const FRAME_SAMPLES: usize = RATE_HZ / 50;
/// Concealed frames in a row; what libopus makes up after that is a fading hum.
const MAX_CONCEALED: usize = 4;
/// Silence after which more of it changes nothing: no utterance survives it.
const MAX_SILENCE_SAMPLES: usize = RATE_HZ * 4;
/// RTP runs at 48 kHz for Opus, whatever is decoded.
const RTP_UNITS_PER_SAMPLE: usize = 48_000 / RATE_HZ;

pub(crate) struct Decoder {
    opus: opus::Decoder,
    /// The timestamp right after the audio that was handed on.
    expected: Option<u32>,
    /// The length of the last frame: what a lost one is taken for.
    frame_samples: usize,
    /// Whether silence was handed on last, so that there is no sound to go on with.
    silent: bool,
    buffer: Vec<i16>,
    pub(crate) concealed: u64,
    pub(crate) recovered: u64,
}

impl Decoder {
    pub(crate) fn new() -> Result<Self, opus::Error> {
        Ok(Self {
            opus: opus::Decoder::new(RATE_HZ as u32, Channels::Mono)?,
            expected: None,
            frame_samples: FRAME_SAMPLES,
            silent: true,
            buffer: vec![0; MAX_PACKET_SAMPLES],
            concealed: 0,
            recovered: 0,
        })
    }

    /// Decodes a packet, after what is missing before it.
    pub(crate) fn decode(&mut self, ready: &Ready, sink: &mut impl Sink) {
        let Ready {
            packet,
            lost,
            restarted,
        } = ready;
        if *restarted {
            self.restart();
        }
        if let Some(expected) = self.expected {
            // Negative when silence was handed on for a packet that was only late: then there is nothing to fill.
            let ahead = packet.timestamp.wrapping_sub(expected) as i32;
            let missing = usize::try_from(ahead).unwrap_or(0) / RTP_UNITS_PER_SAMPLE;
            self.fill(missing, *lost as usize, &packet.payload, sink);
        }
        let samples = self.decode_payload(&packet.payload, sink);
        self.expected = Some(
            packet
                .timestamp
                .wrapping_add((samples * RTP_UNITS_PER_SAMPLE) as u32),
        );
    }

    /// So much silence was handed on because nothing came.
    pub(crate) fn skip(&mut self, samples: usize) {
        self.silent = true;
        self.expected = self
            .expected
            .map(|at| at.wrapping_add((samples * RTP_UNITS_PER_SAMPLE) as u32));
    }

    /// Forgets the stream: what comes next follows on nothing.
    pub(crate) fn restart(&mut self) {
        self.expected = None;
        self.silent = true;
        if let Err(error) = self.opus.reset_state() {
            tracing::warn!(%error, "the Opus decoder could not be reset");
        }
    }

    fn fill(&mut self, missing: usize, lost: usize, next: &[u8], sink: &mut impl Sink) {
        if missing == 0 {
            return;
        }
        let lost_frames = lost.min(missing / self.frame_samples);
        let recovered = usize::from(lost_frames > 0 && has_redundancy(next));
        let concealed = match self.silent {
            true => 0,
            false => (lost_frames - recovered).min(MAX_CONCEALED),
        };
        for _ in 0..concealed {
            self.concealed += 1;
            self.decode_frame(&[], self.frame_samples, false, sink);
        }
        let silence = missing - (concealed + recovered) * self.frame_samples;
        if silence > 0 {
            self.silent = true;
            sink.silence(silence.min(MAX_SILENCE_SAMPLES));
        }
        if recovered > 0 {
            self.recovered += 1;
            self.decode_frame(next, self.frame_samples, true, sink);
        }
    }

    fn decode_payload(&mut self, payload: &[u8], sink: &mut impl Sink) -> usize {
        let samples = packet::get_nb_samples(payload, RATE_HZ as u32)
            .ok()
            .filter(|samples| (1..=MAX_PACKET_SAMPLES).contains(samples))
            .unwrap_or(self.frame_samples);
        // RFC 6716, 3.2.1: a frame of no bytes is DTX. Decoding it would cost time to make up silence.
        if payload.len() <= 2 {
            self.silent = true;
            sink.silence(samples);
            return samples;
        }
        if let Ok(frame) = packet::get_samples_per_frame(payload, RATE_HZ as u32) {
            self.frame_samples = frame.max(1);
        }
        self.decode_frame(payload, samples, false, sink);
        samples
    }

    /// Decodes into exactly `samples` samples; what cannot be decoded is silence.
    fn decode_frame(&mut self, payload: &[u8], samples: usize, fec: bool, sink: &mut impl Sink) {
        match self.opus.decode(payload, &mut self.buffer[..samples], fec) {
            Ok(decoded) => {
                self.silent = false;
                sink.audio(&self.buffer[..decoded]);
            }
            Err(error) => {
                tracing::debug!(%error, "a packet could not be decoded");
                self.silent = true;
                sink.silence(samples);
            }
        }
    }
}

/// Whether the packet carries a copy of the frame before it (RFC 6716, 4.2.4: the LBRR flag after the VAD flags).
/// libopus would fall back to concealment by itself; we ask so that the two are counted apart.
fn has_redundancy(payload: &[u8]) -> bool {
    const CELT_ONLY: u8 = 0x80;
    if payload.first().is_none_or(|toc| toc & CELT_ONLY != 0) {
        return false;
    }
    let Ok(per_frame) = packet::get_samples_per_frame(payload, 48_000) else {
        return false;
    };
    let silk_frames = (per_frame / 960).max(1);
    let Ok(parsed) = packet::parse(payload) else {
        return false;
    };
    let Some(&first) = parsed.frames.first().and_then(|frame| frame.first()) else {
        return false;
    };
    // One VAD flag for each 20 ms, then the LBRR flag; the side channel of stereo has its own.
    let mid = (first >> (7 - silk_frames)) & 1 == 1;
    let stereo = matches!(packet::get_nb_channels(payload), Ok(Channels::Stereo));
    mid || (stereo && (first >> (6 - 2 * silk_frames)) & 1 == 1)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
