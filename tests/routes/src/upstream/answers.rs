//! The bytes of the answers, and how a fault changes them.

use std::{
    collections::VecDeque,
    convert::Infallible,
    f64::consts::TAU,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use serde_json::json;
use tokio::time::sleep;

use super::{Fault, Script, Watch};

/// The rate of the speech.
pub const SPEECH_RATE_HZ: u32 = 24_000;
/// Speech a character of text takes, in seconds; about what people need.
const SECONDS_PER_CHARACTER: f64 = 0.06;

/// How long pieces take to leave before a cut.
const FLUSH: Duration = Duration::from_millis(30);

/// What is sent, piece by piece.
#[derive(Debug)]
enum Piece {
    Bytes(Bytes),
    Stall,
    Cut,
}

/// An answer: its pieces, and what an ending without a fault adds.
#[derive(Debug, Default)]
pub(super) struct Answer(VecDeque<Piece>);

/// The body of a transcription.
pub(super) fn transcription(script: &Script) -> Answer {
    let body = match &script.fault {
        Some(Fault::Empty) => json!({"text": ""}).to_string(),
        Some(Fault::ErrorFrame { .. }) => json!({"error": {"message": "scripted"}}).to_string(),
        Some(Fault::Malformed { .. }) => "{\"text\": ".to_owned(),
        Some(Fault::Huge { bytes }) => json!({"text": "x".repeat(*bytes)}).to_string(),
        _ => json!({"text": format!(" {} ", script.text)}).to_string(),
    };
    let middle = body.len() / 2;
    let body = Bytes::from(body);
    let halves = vec![body.slice(..middle), body.slice(middle..)];
    finished(script, halves, Vec::new(), 0)
}

/// Samples of speech, a tenth of a second a piece.
pub(super) fn speech(script: &Script, input: &str) -> Answer {
    let samples = match &script.fault {
        Some(Fault::Empty) => Vec::new(),
        Some(Fault::Huge { bytes }) => vec![0; bytes / 2],
        _ => voice_like(input.chars().count() as f64 * SECONDS_PER_CHARACTER),
    };
    let mut bytes = Vec::new();
    if script.wav {
        bytes.extend_from_slice(b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0");
        bytes.extend_from_slice(&SPEECH_RATE_HZ.to_le_bytes());
        bytes.extend_from_slice(&(SPEECH_RATE_HZ * 2).to_le_bytes());
        bytes.extend_from_slice(b"\x02\0\x10\0data\xff\xff\xff\xff");
    }
    if let Some(Fault::ErrorFrame { .. } | Fault::Malformed { .. }) = script.fault {
        bytes.clear();
        bytes.extend_from_slice(b"RIFF\x08\0\0\0NOT WAVE");
    } else {
        bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    }
    let bytes = Bytes::from(bytes);
    // An odd size, so that samples are split between pieces.
    let size = SPEECH_RATE_HZ as usize / 10 * 2 + 1;
    let pieces = (0..bytes.len())
        .step_by(size)
        .map(|at| bytes.slice(at..(at + size).min(bytes.len())));
    finished(script, pieces.collect(), Vec::new(), 0)
}

/// Puts the end behind the pieces, or the fault in its place.
pub(super) fn finished(
    script: &Script,
    mut pieces: Vec<Bytes>,
    end: Vec<Bytes>,
    uncounted: usize,
) -> Answer {
    let fault = match script.fault {
        Some(Fault::Stall { after }) => Some((after, Some(Piece::Stall))),
        Some(Fault::Cut { after }) => Some((after, Some(Piece::Cut))),
        Some(Fault::Unfinished { after }) => Some((after, None)),
        _ => None,
    };
    if let Some((after, last)) = fault {
        pieces.truncate(after + uncounted);
        return Answer(pieces.into_iter().map(Piece::Bytes).chain(last).collect());
    }
    let all = pieces.into_iter().chain(end);
    if script.fault == Some(Fault::Drip) {
        let bytes = all.flat_map(|piece| (0..piece.len()).map(move |at| piece.slice(at..=at)));
        return Answer(bytes.map(Piece::Bytes).collect());
    }
    Answer(all.map(Piece::Bytes).collect())
}

/// Sends an answer as its script says.
pub(super) async fn send(
    script: Script,
    kind: &'static str,
    answer: Answer,
    mut watch: Watch,
) -> Response {
    if script.fault == Some(Fault::Stall { after: 0 }) {
        let never: Infallible = std::future::pending().await;
        match never {}
    }
    watch.released().await;
    if !script.first_delay.is_zero() {
        sleep(script.first_delay).await;
    }
    let refusal = match script.fault {
        Some(Fault::RateLimited { retry_after }) => Some((429, retry_after)),
        Some(Fault::Status(status)) => Some((status, None)),
        _ => None,
    };
    if let Some((status, retry_after)) = refusal {
        watch.answered();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = json!({"error": {"message": "scripted refusal", "type": "scripted"}});
        let mut response = (status, Json(body)).into_response();
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        return response;
    }
    let between = script.between_delay;
    let state = Some((answer.0, watch, true));
    let body = stream::unfold(state, move |state| async move {
        let (mut pieces, mut watch, first) = state?;
        let Some(piece) = pieces.pop_front() else {
            watch.answered();
            return None;
        };
        if !first && !between.is_zero() {
            sleep(between).await;
        }
        match piece {
            Piece::Bytes(bytes) => {
                watch.handed_out();
                if pieces.is_empty() {
                    // The server may drop the body once it has the last piece, without asking for one more.
                    watch.answered();
                }
                Some((Ok(bytes), Some((pieces, watch, false))))
            }
            Piece::Cut => {
                watch.answered();
                // The server throws away what it has not sent yet, so the pieces before get the time to leave.
                sleep(FLUSH).await;
                Some((Err(io::Error::other("cut")), None))
            }
            Piece::Stall => {
                let never: Infallible = std::future::pending().await;
                match never {}
            }
        }
    });
    ([(CONTENT_TYPE, kind)], Body::from_stream(body)).into_response()
}

/// Sound that a voice detector may take for speech: a voiced tone whose pitch and loudness move as in syllables.
#[must_use]
pub fn voice_like(seconds: f64) -> Vec<i16> {
    let count = (seconds.max(0.1) * f64::from(SPEECH_RATE_HZ)) as usize;
    let mut tone = TONE.lock().unwrap_or_else(PoisonError::into_inner);
    tone.extend_to(count);
    tone.samples[..count].to_vec()
}

/// What was computed of the sound so far. It begins in the same way each time, so that each sample is computed once: in a benchmark it would
/// otherwise take more of the machine than all calls together.
static TONE: Mutex<Tone> = Mutex::new(Tone {
    samples: Vec::new(),
    phase: 0.0,
});

struct Tone {
    samples: Vec<i16>,
    phase: f64,
}

impl Tone {
    fn extend_to(&mut self, count: usize) {
        let rate = f64::from(SPEECH_RATE_HZ);
        for at in self.samples.len()..count {
            let time = at as f64 / rate;
            let pitch_hz = 130.0 + 25.0 * (TAU * 0.7 * time).sin();
            self.phase += TAU * pitch_hz / rate;
            // Harmonics, strongest near 500 and 1,500 Hz as in an open vowel.
            let voiced: f64 = (1..=16)
                .map(|harmonic| {
                    let hz = pitch_hz * f64::from(harmonic);
                    let formant = |centre: f64| 1.0 / (1.0 + ((hz - centre) / 180.0).powi(2));
                    let strength = formant(500.0) + 0.6 * formant(1_500.0);
                    strength * (self.phase * f64::from(harmonic)).sin()
                })
                .sum();
            let syllable = 0.55 + 0.45 * (TAU * 4.0 * time).cos();
            let sample = (voiced * syllable * 6_000.0).clamp(-32_000.0, 32_000.0);
            self.samples.push(sample as i16);
        }
    }
}
