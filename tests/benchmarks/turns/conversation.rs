//! A conversation through the engine, in the engine's own time. The character answers each turn with a word.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use colloquy::{
    fair_queue::{Claim, Priority},
    providers::embedded::TurnModels,
};
use colloquy_voice::{Engine, EngineConfig, Input, Output, PredictedHold, RtpPacket, TurnSettings};
use harness::client::now;
use opus::{Application, Channels, Encoder};

use super::set::{AFTER, Conversation, Turn};
use crate::recordings::RATE;

/// Samples of a packet: 20 ms.
const PACKET: usize = RATE / 50;

/// Silence that is a pause.
const PAUSE_MS: u32 = 80;

/// How late the engine may notice that the visitor goes on.
const LATE: Duration = Duration::from_millis(100);

/// From the question for a reply until its first sound, as calls with the server's own models have it beside the hold.
const REPLY: Duration = Duration::from_millis(280);

/// How long the character speaks, in samples.
const SPOKEN: usize = RATE;

/// How it is told that a turn is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    stop_ms: u32,
    /// How long the silence is when it seems to be over, and when it does not.
    pub(super) predicted: Option<(u32, u32)>,
}

impl Rule {
    /// After so much silence.
    pub(super) fn fixed(stop_ms: u32) -> Self {
        Self {
            stop_ms,
            predicted: None,
        }
    }

    /// After this much silence or that, as a model says, or after so much if it says nothing.
    pub(super) fn predicted(stop_ms: u32, complete_ms: u32, incomplete_ms: u32) -> Self {
        Self {
            stop_ms,
            predicted: Some((complete_ms, incomplete_ms)),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.predicted {
            None => write!(f, "{} ms", self.stop_ms),
            Some((complete, incomplete)) => write!(f, "model, {complete} or {incomplete} ms"),
        }
    }
}

/// What became of a conversation.
#[derive(Debug)]
pub(super) struct ConversationOutcome {
    /// Pauses in which a turn was taken for over.
    pub(super) cut_ins: usize,
    /// From the end of each turn until it was taken for over; `None` when it was not.
    pub(super) waited: Vec<Option<Duration>>,
    /// How often a turn was taken for over in all.
    pub(super) replies: usize,
    /// What the engine took for each second of sound, in milliseconds.
    pub(super) engine_ms: f64,
}

/// Plays a conversation to an engine. The words of utterances come at once, so a reply is asked for when a turn is taken for over.
pub(super) async fn hear(
    conversation: &Conversation,
    models: &TurnModels,
    rule: &Rule,
) -> anyhow::Result<ConversationOutcome> {
    let config = EngineConfig {
        turns: TurnSettings {
            stop_ms: rule.stop_ms,
            pause_ms: Some(PAUSE_MS),
            predicted_hold: rule
                .predicted
                .map(|(complete_ms, incomplete_ms)| PredictedHold {
                    complete_ms,
                    incomplete_ms,
                }),
            ..TurnSettings::default()
        },
        greetings: Vec::new(),
        interruption_message: None,
        apology: String::new(),
        patience_message: None,
        patience_after: Duration::from_secs(3),
        time_limit: Duration::from_secs(600),
        provider_timeout: Duration::from_secs(60),
        bitrate_bps: 32_000,
        seed: 1,
    };
    let mut engine = Engine::with_detector(config, models.detector())?;
    let mut inputs = packets(&conversation.samples)?;
    inputs.insert((Duration::ZERO, 0), Input::Connected);
    let mut number = inputs.len() as u64;
    let mut replies = Vec::new();
    let mut at = Duration::ZERO;
    let mut busy = Duration::ZERO;
    loop {
        let due = inputs.keys().next().copied();
        let timer = engine.next_timeout();
        let next = match (due, timer) {
            (Some((due, _)), Some(timer)) => due.min(timer),
            (Some((due, _)), None) => due,
            // With the last packet the sound is over.
            (None, _) => break,
        };
        at = at.max(next);
        let input = due
            .filter(|(due, _)| *due <= at)
            .and_then(|due| inputs.remove(&due))
            .unwrap_or(Input::Timeout);
        let began = now();
        engine.handle(at, input);
        busy += now() - began;
        while let Some(output) = engine.poll() {
            let answers = match output {
                Output::Reply(reply) => {
                    replies.push(at);
                    let delta = "Yes.".to_owned();
                    vec![
                        (at + REPLY, Input::ReplyText { reply, delta }),
                        (at + REPLY, Input::ReplyEnded { reply }),
                    ]
                }
                Output::Speak { sentence, .. } => {
                    let spoken = Input::Speech {
                        sentence,
                        samples: voice(),
                        sample_rate_hz: RATE as u32,
                    };
                    vec![(at, spoken), (at, Input::SpeechEnded { sentence })]
                }
                Output::Transcribe { transcription, .. } => {
                    let text = "words".to_owned();
                    vec![(
                        at,
                        Input::Transcribed {
                            transcription,
                            text,
                        },
                    )]
                }
                Output::PredictEndOfTurn { pause, samples } => {
                    let Some(model) = &models.end_of_turn else {
                        continue;
                    };
                    let began = now();
                    let claim = Claim::own(Priority::Call);
                    let is_complete = model.is_complete(samples, &claim).await?;
                    let took = now() - began;
                    vec![(at + took, Input::EndOfTurnPredicted { pause, is_complete })]
                }
                _ => Vec::new(),
            };
            for (at, answer) in answers {
                number += 1;
                inputs.insert((at, number), answer);
            }
        }
    }
    let seconds = conversation.samples.len() as f64 / RATE as f64;
    Ok(ConversationOutcome {
        engine_ms: busy.as_secs_f64() * 1_000.0 / seconds,
        ..judge(&conversation.turns, &replies)
    })
}

/// What the character says: a tone.
fn voice() -> Vec<i16> {
    let wave = |at: usize| (at as f64 * 0.1).sin() * 3_000.0;
    (0..SPOKEN).map(|at| wave(at) as i16).collect()
}

/// The packets of a sound, at the times at which they are sent.
fn packets(samples: &[i16]) -> anyhow::Result<BTreeMap<(Duration, u64), Input>> {
    let mut encoder = Encoder::new(RATE as u32, Channels::Mono, Application::Voip)?;
    let mut packets = BTreeMap::new();
    for (index, frame) in samples.as_chunks::<PACKET>().0.iter().enumerate() {
        let index = index as u64 + 1;
        let packet = RtpPacket {
            sequence: index as u16,
            timestamp: index as u32 * 960,
            payload: Bytes::from(encoder.encode_vec(frame, 1_275)?),
        };
        packets.insert(
            (Duration::from_millis(20) * index as u32, index),
            Input::Packet(packet),
        );
    }
    Ok(packets)
}

fn judge(turns: &[Turn], replies: &[Duration]) -> ConversationOutcome {
    let time = |samples: usize| Duration::from_secs_f64(samples as f64 / RATE as f64);
    let pauses = turns.iter().flat_map(|turn| &turn.pauses);
    let cut_ins = pauses.filter(|(from, to)| {
        let mut replies = replies.iter();
        replies.any(|reply| (time(*from)..time(*to) + LATE).contains(reply))
    });
    let waited = |turn: &Turn| {
        let (end, missed) = (time(turn.end), time(turn.end + AFTER));
        let mut replies = replies
            .iter()
            .filter(|reply| (end..missed).contains(*reply));
        replies.next().map(|reply| *reply - end)
    };
    ConversationOutcome {
        cut_ins: cut_ins.count(),
        replies: replies.len(),
        engine_ms: 0.0,
        waited: turns.iter().map(waited).collect(),
    }
}
