//! What Opus alone takes of this machine: the least that any server with a call's two directions has to pay.

use std::time::Duration;

use harness::client::{go_forward, now};
use opus::{Application, Bitrate, Channels, Decoder, Encoder};

/// The time that a frame plays.
const FRAME: Duration = Duration::from_millis(20);

/// How many frames are measured: two minutes of a call.
const FRAMES: u32 = 50 * 120;

/// Samples of a frame at 48,000 Hz, which the server sends.
const SENT_SAMPLES: usize = 960;

/// The share of a core that decoding one stream to 16,000 Hz and encoding another from 48,000 Hz takes, with the server's
/// settings, on the thread that asks.
///
/// # Errors
/// When libopus refuses.
pub(super) fn core_per_call() -> anyhow::Result<f64> {
    let mut encoder = Encoder::new(48_000, Channels::Mono, Application::Voip)?;
    encoder.set_bitrate(Bitrate::Bits(colloquy::Config::default().media.bitrate_bps))?;
    encoder.set_complexity(1)?;
    encoder.set_inband_fec(true)?;
    encoder.set_packet_loss_perc(10)?;
    let mut decoder = Decoder::new(16_000, Channels::Mono)?;
    let recording = go_forward();
    // Straight lines between the samples: good enough for a measurement, not for ears.
    let between = recording.windows(2).flat_map(|pair| {
        let [from, to] = [pair[0], pair[1]].map(i32::from);
        [0, 1, 2].map(|third| (from + (to - from) * third / 3) as i16)
    });
    let samples: Vec<i16> = between.collect();
    let (frames, _) = samples.as_chunks::<SENT_SAMPLES>();
    let mut heard = [0; 16_000 / 50];
    let mut packet = [0; 1_275];
    let began = now();
    for frame in frames.iter().cycle().take(FRAMES as usize) {
        let length = encoder.encode(frame, &mut packet)?;
        decoder.decode(&packet[..length], &mut heard, false)?;
    }
    Ok((now().duration_since(began) / FRAMES).as_secs_f64() / FRAME.as_secs_f64())
}
