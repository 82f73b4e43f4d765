//! The engine's words in those of the signalling protocol and of the stored transcript.

use std::time::Duration;

use colloquy_calls::{ReplyRecord, TranscriptLine};
use colloquy_generation::Retrieval;
use colloquy_protocol::{AgentState, Originator, RagDocument, ServerMessage};
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

pub(super) fn stored_line(line: &Line, reply: Option<ReplyRecord>) -> TranscriptLine {
    TranscriptLine {
        text: line.text.clone(),
        originator: originator(line.originator),
        at_ms: millis(line.at),
        interrupted: line.interrupted,
        reply,
    }
}

/// The lines that models are told: an apology or a word of patience is nothing that the character has to say.
pub(super) fn conversation(transcript: &[Line]) -> Vec<Line> {
    let said = transcript.iter().filter(|line| !line.is_aside);
    said.cloned().collect()
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The documents that a reply rests on.
pub(super) fn rag_info(retrieval: Retrieval) -> ServerMessage {
    let documents: Vec<RagDocument> = retrieval
        .documents
        .into_iter()
        .map(|document| RagDocument {
            title: document.title,
            fusion_score: document.fusion_score,
            token_count: u32::try_from(document.token_count).unwrap_or(u32::MAX),
        })
        .collect();
    ServerMessage::RagInfo {
        count: u32::try_from(documents.len()).ok(),
        total_tokens: documents.iter().map(|document| document.token_count).sum(),
        documents,
    }
}

/// The beginning of an error about what a client sent, which may repeat all of it.
pub(crate) fn excerpt(error: &anyhow::Error) -> String {
    const LONGEST: usize = 120;
    let shown = error.to_string();
    let mut cut: String = shown
        .chars()
        .take(LONGEST)
        .flat_map(char::escape_debug)
        .collect();
    if shown.chars().nth(LONGEST).is_some() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_voice::LineId;

    #[test]
    fn models_are_told_of_no_asides() {
        let line = |id, text: &str, is_aside| Line {
            id: LineId(id),
            originator: colloquy_voice::Originator::Bot,
            text: text.to_owned(),
            at: Duration::ZERO,
            interrupted: false,
            is_aside,
        };
        let transcript = [
            line(0, "Hello.", false),
            line(1, "One moment.", true),
            line(2, "Sorry.", true),
            line(3, "We open at nine.", false),
        ];
        let told: Vec<_> = conversation(&transcript)
            .into_iter()
            .map(|line| line.id.0)
            .collect();
        assert_eq!(told, [0, 3]);
        assert_eq!(
            stored_line(&transcript[2], None).text,
            "Sorry.",
            "it was said"
        );
    }
}
