//! The visitor: a recorded sentence, Opus-encoded as a browser would.

use std::time::Duration;

use bytes::Bytes;
use colloquy_voice::{Input, RtpPacket};
use opus::{Application, Bitrate, Channels, Encoder};

use super::Harness;
use super::network::Network;

const FRAME: usize = 320;

/// "Go forward ten meters" at 16 kHz. Speech lasts from [`SPEECH_BEGINS`] to [`SPEECH_ENDS`].
pub(crate) fn recording() -> Vec<i16> {
    let bytes = include_bytes!("../../data/goforward.raw");
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| i16::from_le_bytes(*pair))
        .collect()
}

/// Where the loudness leaves and reaches that of the room.
pub(crate) const SPEECH_BEGINS: Duration = Duration::from_millis(480);
pub(crate) const SPEECH_ENDS: Duration = Duration::from_millis(2220);

/// What comes after the words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterSpeech {
    /// Packets with the noise of the room, for two seconds.
    Noise,
    /// Packets with digital silence, for two seconds: the microphone is switched off.
    DigitalSilence,
    /// Nothing: the browser stops sending when nobody speaks.
    Nothing,
}

pub(crate) struct Visitor {
    encoder: Encoder,
    pub(crate) sequence: u16,
    pub(crate) timestamp_offset: u32,
    pub(crate) network: Network,
}

impl Visitor {
    pub(crate) fn new(network: Network) -> Self {
        let mut encoder = Encoder::new(16_000, Channels::Mono, Application::Voip).unwrap();
        encoder.set_bitrate(Bitrate::Bits(28_000)).unwrap();
        encoder.set_inband_fec(true).unwrap();
        encoder.set_packet_loss_perc(20).unwrap();
        // Both wrap within the first sentence.
        Self {
            encoder,
            sequence: 65_500,
            timestamp_offset: u32::MAX - 48_000,
            network,
        }
    }

    /// Says the sentence from `at` on; speech begins [`SPEECH_BEGINS`] later. Gives back the number of packets sent.
    pub(crate) fn speak(
        &mut self,
        harness: &mut Harness,
        at: Duration,
        afterwards: AfterSpeech,
    ) -> usize {
        let mut audio = recording();
        match afterwards {
            AfterSpeech::Nothing => audio.truncate(16 * SPEECH_ENDS.as_millis() as usize),
            AfterSpeech::DigitalSilence => {
                audio.truncate(16 * SPEECH_ENDS.as_millis() as usize);
                audio.extend([0; 32_000]);
            }
            AfterSpeech::Noise => {
                let room = audio[..4800].to_vec();
                audio.extend(room.iter().cycle().take(32_000));
            }
        }
        self.say(harness, at, &audio)
    }

    /// Sends this audio from `at` on. A packet is sent when its last sample has been spoken.
    pub(crate) fn say(&mut self, harness: &mut Harness, at: Duration, audio: &[i16]) -> usize {
        let frames = audio.len() / FRAME;
        let delays = self.network.delays(frames);
        let begin = self
            .timestamp_offset
            .wrapping_add((at.as_millis() * 48) as u32);
        for (index, (frame, delays)) in audio.as_chunks::<FRAME>().0.iter().zip(delays).enumerate()
        {
            let payload = Bytes::from(self.encoder.encode_vec(frame, 1275).unwrap());
            let packet = RtpPacket {
                sequence: self.sequence,
                timestamp: begin.wrapping_add(index as u32 * 960),
                payload,
            };
            self.sequence = self.sequence.wrapping_add(1);
            let sent = at + Duration::from_millis(20) * (index as u32 + 1);
            for delay in delays {
                harness.schedule(sent + delay, Input::Packet(packet.clone()));
            }
        }
        frames
    }
}
