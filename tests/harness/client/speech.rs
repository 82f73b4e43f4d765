//! What a client says: Opus frames of 20 ms, made once from a recording and shared by all clients.
//!
//! Where the voice begins and ends is found by energy, in what the codec leaves of the recording, since nobody on the
//! other side hears the rest. The frames are cut so that the last voiced sample is the last sample of its frame: the
//! moment that frame is sent is then the moment the visitor stopped speaking.

use std::{ops::Range, sync::Arc};

use anyhow::Context as _;
use bytes::Bytes;
use opus::{Application, Bitrate, Channels, Decoder, Encoder};
pub use test_routes::sounds::go_forward;

/// The rate of the recordings, in samples a second.
pub const SAMPLE_RATE_HZ: u32 = 16_000;

/// Samples in a frame of 20 ms.
pub(super) const FRAME_SAMPLES: usize = 320;

/// Voice is what is louder than this part of the loudest 10 ms (-20 dB).
const VOICED: f64 = 0.1;

/// How far the codec is behind: the look-ahead of the encoder, 6.5 ms.
const CODEC_DELAY_SAMPLES: usize = 104;

/// What is sent before the voice begins, from the recording.
const LEAD_SAMPLES: usize = 1_600;

/// The noise of a quiet room, as an RMS of 16-bit samples (about -66 dBFS).
const ROOM_TONE_RMS: f64 = 16.0;

/// A recording, ready to be sent.
#[derive(Debug, Clone)]
pub struct Speech {
    pub(super) frames: Arc<[Bytes]>,
    /// From the frame with the first voiced sample up to and including the one with the last.
    pub(super) voiced: Range<usize>,
}

impl Speech {
    /// "go forward ten meters", said by a man in 1.7 s, with the breath after it.
    ///
    /// # Errors
    /// When Opus fails.
    pub fn go_forward() -> anyhow::Result<Self> {
        Self::from_pcm(&go_forward())
    }

    /// The same, [trimmed](Self::trimmed).
    ///
    /// # Errors
    /// When Opus fails.
    pub fn go_forward_trimmed() -> anyhow::Result<Self> {
        Self::trimmed(&go_forward())
    }

    /// Mono samples at 16,000 Hz, but after the last voiced one there is nothing but room tone, so that the end of the speech is one
    /// moment and not a matter of opinion.
    ///
    /// # Errors
    /// When nothing in them is voiced, or Opus fails.
    pub fn trimmed(samples: &[i16]) -> anyhow::Result<Self> {
        let end = voiced_range(samples)?
            .context("the recording has no voice")?
            .end;
        let mut trimmed = samples.get(..end).unwrap_or_default().to_vec();
        trimmed.extend(room_tone(10 * FRAME_SAMPLES, 4));
        Self::from_pcm(&trimmed)
    }

    /// Encodes mono samples at 16,000 Hz.
    ///
    /// # Errors
    /// When nothing in them is voiced, or Opus fails.
    pub fn from_pcm(samples: &[i16]) -> anyhow::Result<Self> {
        let voiced = voiced_range(samples)?.context("the recording has no voice")?;
        let from = voiced.start.saturating_sub(LEAD_SAMPLES);
        let whole_frames = (voiced.end - from).next_multiple_of(FRAME_SAMPLES);
        let mut pcm = room_tone(whole_frames - (voiced.end - from), 1);
        pcm.extend_from_slice(samples.get(from..).unwrap_or_default());
        let last = whole_frames / FRAME_SAMPLES;
        let first = (whole_frames - voiced.len()) / FRAME_SAMPLES;
        let tail = pcm.len().next_multiple_of(FRAME_SAMPLES) - pcm.len();
        pcm.extend(room_tone(tail, 2));
        Ok(Self {
            frames: encode(&pcm, false)?.into_iter().collect(),
            voiced: first..last,
        })
    }

    /// How long the voice lasts, in milliseconds.
    #[must_use]
    pub fn voiced_ms(&self) -> u64 {
        20 * self.voiced.len() as u64
    }
}

/// From the first voiced sample up to the last, as a listener behind the codec hears them; `None` without any.
///
/// # Errors
/// When Opus fails.
pub fn voiced_range(samples: &[i16]) -> anyhow::Result<Option<Range<usize>>> {
    const WINDOW: usize = 160;
    let mut padded = samples.to_vec();
    padded.resize(
        samples.len().next_multiple_of(FRAME_SAMPLES) + FRAME_SAMPLES,
        0,
    );
    let heard = decode(&encode(&padded, false)?)?;
    let heard = heard.get(CODEC_DELAY_SAMPLES..).unwrap_or_default();
    let loudness: Vec<f64> = heard.chunks(WINDOW).map(rms).collect();
    let loudest = loudness.iter().copied().fold(0.0, f64::max);
    let voiced = |loudness: &f64| *loudness >= f64::max(VOICED * loudest, ROOM_TONE_RMS);
    let (first, last) = (
        loudness.iter().position(voiced),
        loudness.iter().rposition(voiced),
    );
    Ok(first
        .zip(last)
        .map(|(first, last)| first * WINDOW..((last + 1) * WINDOW).min(samples.len())))
}

/// The root mean square of samples.
#[must_use]
pub fn rms(samples: &[i16]) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    let energy: f64 = samples
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum();
    (energy / samples.len() as f64).sqrt()
}

/// What a client sends while nobody speaks.
#[derive(Debug, Clone)]
pub(super) struct Pause {
    /// Sent in a circle; an empty frame is one that DTX does not send.
    pub(super) frames: Arc<[Bytes]>,
}

impl Pause {
    /// The noise of a room, as a microphone hears it.
    pub(super) fn room_tone() -> anyhow::Result<Self> {
        Ok(Self {
            frames: encode(&room_tone(100 * FRAME_SAMPLES, 3), false)?.into(),
        })
    }

    /// Digital silence, as a browser sends it for a muted track.
    pub(super) fn silence() -> anyhow::Result<Self> {
        Ok(Self {
            frames: encode(&[0; 20 * FRAME_SAMPLES], false)?.into(),
        })
    }

    /// Discontinuous transmission: a frame every 400 ms and nothing between (RFC 6716 section 2.1.9).
    pub(super) fn dtx() -> anyhow::Result<Self> {
        let mut frames = encode(&[0; 100 * FRAME_SAMPLES], true)?;
        for frame in &mut frames {
            // "a packet of one or two bytes need not be transmitted"
            if frame.len() <= 2 {
                frame.clear();
            }
        }
        // The encoder takes some frames to notice the silence.
        let settled = frames
            .iter()
            .position(Bytes::is_empty)
            .context("DTX did not set in")?;
        Ok(Self {
            frames: frames.split_off(settled).into(),
        })
    }
}

fn encode(pcm: &[i16], dtx: bool) -> anyhow::Result<Vec<Bytes>> {
    let mut encoder = Encoder::new(SAMPLE_RATE_HZ, Channels::Mono, Application::Voip)?;
    encoder.set_bitrate(Bitrate::Bits(32_000))?;
    encoder.set_inband_fec(true)?;
    encoder.set_packet_loss_perc(10)?;
    encoder.set_dtx(dtx)?;
    pcm.as_chunks::<FRAME_SAMPLES>()
        .0
        .iter()
        .map(|frame| Ok(encoder.encode_vec(frame, 1_000)?.into()))
        .collect()
}

fn decode(frames: &[Bytes]) -> anyhow::Result<Vec<i16>> {
    let mut decoder = Decoder::new(SAMPLE_RATE_HZ, Channels::Mono)?;
    let mut pcm = Vec::with_capacity(frames.len() * FRAME_SAMPLES);
    for frame in frames {
        let mut decoded = [0; FRAME_SAMPLES];
        decoder.decode(frame, &mut decoded, false)?;
        pcm.extend(decoded);
    }
    Ok(pcm)
}

/// Noise that is the same every time (a linear congruential generator).
fn room_tone(samples: usize, seed: u32) -> Vec<i16> {
    let mut state = seed;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Uniform from -1 to 1; its RMS is 1 / sqrt(3).
        f64::from(state >> 8) / f64::from(1 << 23) - 1.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the noise is far inside the range"
    )]
    (0..samples)
        .map(|_| (noise() * ROOM_TONE_RMS * 3f64.sqrt()) as i16)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_voice_of_the_recording_is_found_by_energy() {
        let voiced = voiced_range(&go_forward()).unwrap().unwrap();
        assert_eq!(voiced, 500 * 16..2150 * 16);
        assert_eq!(voiced_range(&[0; 1_000]).unwrap(), None);
        assert_eq!(voiced_range(&[]).unwrap(), None);
    }

    #[test]
    fn the_last_voiced_sample_ends_its_frame() {
        let speech = Speech::go_forward_trimmed().unwrap();
        let loudness: Vec<f64> = decode(&speech.frames)
            .unwrap()
            .chunks(FRAME_SAMPLES)
            .map(rms)
            .collect();
        let (voice, rest) = loudness.split_at(speech.voiced.end);
        assert!(*voice.last().unwrap() > 300.0, "{voice:?}");
        // The codec is some milliseconds late, so the next frame may have a rest of the voice.
        assert!(
            rest[1..].iter().all(|loudness| *loudness < 40.0),
            "{rest:?}"
        );
        assert!(rest.len() > 5);
    }

    #[test]
    fn dtx_sends_a_frame_every_400_ms() {
        let pause = Pause::dtx().unwrap();
        let sent: Vec<usize> = (0..pause.frames.len())
            .filter(|frame| !pause.frames[*frame].is_empty())
            .collect();
        assert!(!sent.is_empty());
        assert!(
            sent.windows(2)
                .all(|pair| (20..=21).contains(&(pair[1] - pair[0]))),
            "{sent:?}"
        );
    }

    #[test]
    fn room_tone_is_quiet_but_not_silent() {
        let loudness = rms(&room_tone(16_000, 5));
        assert!((10.0..20.0).contains(&loudness), "{loudness}");
    }
}
