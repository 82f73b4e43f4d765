//! The engine's words in those of the signalling protocol and of the stored transcript.

use std::time::Duration;

use colloquy_calls::TranscriptLine;
use colloquy_protocol::{AgentState, Originator, ServerMessage};
use colloquy_voice::{Event, FailedProvider, Line};

pub(super) fn server_message(event: Event) -> ServerMessage {
    match event {
        Event::Agent(state) => ServerMessage::AgentState {
            state: match state {
                colloquy_voice::AgentState::Listening => AgentState::Listening,
                colloquy_voice::AgentState::Thinking => AgentState::Thinking,
                colloquy_voice::AgentState::Speaking => AgentState::Speaking,
            },
        },
        Event::Transcript { line, is_final } => ServerMessage::Transcript {
            id: format!("line-{}", line.id.0),
            originator: originator(line.originator),
            text: line.text,
            is_final,
            at_ms: millis(line.at),
        },
        Event::ProviderFailed(provider) => {
            let (code, who) = match provider {
                FailedProvider::Transcriber => ("TRANSCRIBER_FAILED", "the transcriber"),
                FailedProvider::Model => ("MODEL_FAILED", "the chat model"),
                FailedProvider::Synthesizer => ("SYNTHESIZER_FAILED", "the synthesizer"),
            };
            metrics::counter!("colloquy_call_provider_failures_total", "code" => code).increment(1);
            ServerMessage::Error {
                code: code.to_owned(),
                message: format!("{who} failed; the call goes on"),
                fatal: false,
            }
        }
    }
}

fn originator(originator: colloquy_voice::Originator) -> Originator {
    match originator {
        colloquy_voice::Originator::User => Originator::User,
        colloquy_voice::Originator::Bot => Originator::Bot,
    }
}

pub(super) fn stored_line(line: &Line) -> TranscriptLine {
    TranscriptLine {
        text: line.text.clone(),
        originator: originator(line.originator),
        at_ms: millis(line.at),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
