//! Measures what a call costs: `cargo run --release -p colloquy-voice --example cpu`.

#![expect(
    clippy::print_stdout,
    reason = "this is a program that prints a measurement"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it measures the time that passes outside"
)]

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use colloquy_voice::{Engine, EngineConfig, Input, Output, RtpPacket, TurnSettings};

const FRAMES: u32 = 50 * 120;
const FRAME: Duration = Duration::from_millis(20);

fn engine() -> Result<Engine, Box<dyn Error>> {
    let config = EngineConfig {
        turns: TurnSettings {
            stop_ms: 200,
            ..TurnSettings::default()
        },
        greetings: Vec::new(),
        interruption_message: None,
        apology: String::new(),
        patience_message: None,
        patience_after: Duration::from_secs(3),
        time_limit: Duration::from_secs(3600),
        provider_timeout: Duration::from_secs(3600),
        bitrate_bps: 32_000,
        seed: 1,
    };
    let mut engine = Engine::new(config)?;
    engine.handle(Duration::ZERO, Input::Connected);
    Ok(engine)
}

fn recording() -> Vec<i16> {
    let bytes = include_bytes!("../tests/data/goforward.raw");
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| i16::from_le_bytes(*pair))
        .collect()
}

/// The recording at another rate, by straight lines: good enough for a measurement, not for ears.
fn recording_at(sample_rate_hz: u32) -> Vec<i16> {
    let audio = recording();
    let step = 16_000.0 / f64::from(sample_rate_hz);
    let samples = ((audio.len() - 1) as f64 / step) as usize;
    let sample = |index: usize| {
        let place = index as f64 * step;
        let (before, share) = (place as usize, place.fract());
        (f64::from(audio[before]) * (1.0 - share) + f64::from(audio[before + 1]) * share) as i16
    };
    (0..samples).map(sample).collect()
}

/// The time to take in one packet: order, decoding, voice activity.
fn inbound() -> Result<Duration, Box<dyn Error>> {
    let mut encoder = opus::Encoder::new(16_000, opus::Channels::Mono, opus::Application::Voip)?;
    encoder.set_inband_fec(true)?;
    encoder.set_packet_loss_perc(10)?;
    let audio = recording();
    let payloads = audio
        .as_chunks::<320>()
        .0
        .iter()
        .map(|frame| encoder.encode_vec(frame, 1275));
    let payloads: Vec<Bytes> = payloads
        .map(|payload| payload.map(Bytes::from))
        .collect::<Result<_, _>>()?;
    let mut engine = engine()?;
    let started = Instant::now();
    for (index, payload) in (0..FRAMES).zip(payloads.iter().cycle()) {
        let packet = RtpPacket {
            sequence: index as u16,
            timestamp: index * 960,
            payload: payload.clone(),
        };
        engine.handle(FRAME * index, Input::Packet(packet));
        while let Some(output) = engine.poll() {
            if let Output::Transcribe { transcription, .. } = output {
                engine.handle(
                    FRAME * index,
                    Input::Transcribed {
                        transcription,
                        text: String::new(),
                    },
                );
            }
        }
    }
    Ok(started.elapsed() / FRAMES)
}

/// The time to send one frame: resampling, encoding, pacing.
fn outbound(sample_rate_hz: u32) -> Result<Duration, Box<dyn Error>> {
    let audio = recording_at(sample_rate_hz);
    let mut engine = engine()?;
    engine.handle(
        Duration::ZERO,
        Input::TypedTurn {
            text: "talk".to_owned(),
        },
    );
    let mut frames = 0;
    let mut now = Duration::ZERO;
    let started = Instant::now();
    while frames < FRAMES {
        engine.handle(now, Input::Timeout);
        while let Some(output) = engine.poll() {
            match output {
                Output::Reply(reply) => {
                    let delta = "This is what it says. ".repeat(2000);
                    engine.handle(now, Input::ReplyText { reply, delta });
                }
                Output::Speak { sentence, .. } => {
                    engine.handle(
                        now,
                        Input::Speech {
                            sentence,
                            samples: audio.clone(),
                            sample_rate_hz,
                        },
                    );
                    engine.handle(now, Input::SpeechEnded { sentence });
                }
                Output::Send(_) => frames += 1,
                _ => {}
            }
        }
        now = engine.next_timeout().ok_or("the call is over")?;
    }
    Ok(started.elapsed() / FRAMES)
}

fn main() -> Result<(), Box<dyn Error>> {
    let share = |cost: Duration| cost.as_secs_f64() / FRAME.as_secs_f64();
    let heard = inbound()?;
    println!("inbound packet: {heard:?}, {:.4} of a core", share(heard));
    for sample_rate_hz in [16_000, 22_050, 24_000, 48_000] {
        let said = outbound(sample_rate_hz)?;
        println!(
            "outbound frame from {sample_rate_hz} Hz: {said:?}, {:.4} of a core",
            share(said)
        );
    }
    Ok(())
}
