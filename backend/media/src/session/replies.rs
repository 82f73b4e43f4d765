//! How the replies of the character come about: where their time goes, and which documents they rest on.

use std::{collections::HashMap, time::Instant};

use colloquy_calls::ReplyRecord;
use colloquy_generation::Retrieval;
use colloquy_voice::{
    AgentState, Event, Input, Line, LineId, Originator, Output, ReplyId, SentenceId,
    TranscriptionId, UtteranceStage,
};

use super::words::millis;

/// Watches what the engine asks for and what it gets.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The words that were asked for last, of an utterance that is or may be over.
    transcribing: Option<(TranscriptionId, Instant)>,
    /// How long the words took that were heard last.
    transcription_ms: Option<u64>,
    /// The end of the visitor's turn.
    thinking_since: Option<Instant>,
    reply: Option<Reply>,
    /// The last line of the character.
    last_line: Option<LineId>,
    made: HashMap<LineId, ReplyRecord>,
}

/// The reply that was asked for last.
#[derive(Debug)]
struct Reply {
    id: ReplyId,
    asked_at: Instant,
    /// Its first sentence.
    speaking: Option<(SentenceId, Instant)>,
    /// The last line before it.
    after: Option<LineId>,
    record: ReplyRecord,
}

impl Replies {
    /// Notes what the engine asks for.
    pub(super) fn asked(&mut self, output: &Output, now: Instant) {
        match output {
            Output::Transcribe {
                transcription,
                stage: UtteranceStage::Paused | UtteranceStage::Over,
                ..
            } => self.transcribing = Some((*transcription, now)),
            Output::Reply(id) => {
                self.reply = Some(Reply {
                    id: *id,
                    asked_at: now,
                    speaking: None,
                    after: self.last_line,
                    record: ReplyRecord {
                        transcription_ms: self.transcription_ms,
                        ..ReplyRecord::default()
                    },
                });
            }
            Output::CancelReply(id) => {
                self.reply.take_if(|reply| reply.id == *id);
            }
            Output::Speak { sentence, .. } => {
                if let Some(reply) = &mut self.reply {
                    reply.speaking.get_or_insert((*sentence, now));
                }
            }
            Output::Event(Event::Agent(AgentState::Thinking)) => self.thinking_since = Some(now),
            Output::Event(Event::Agent(AgentState::Speaking)) => {
                if let (Some(since), Some(reply)) = (self.thinking_since.take(), &mut self.reply) {
                    let waited = now.saturating_duration_since(since);
                    reply.record.waited_ms.get_or_insert(millis(waited));
                }
            }
            Output::Event(Event::Transcript { line, is_final }) => self.told(line, *is_final),
            _ => {}
        }
    }

    /// Notes what the engine is told.
    pub(super) fn answered(&mut self, input: &Input, now: Instant) {
        let since = |begun: Instant| millis(now.saturating_duration_since(begun));
        match input {
            Input::Transcribed { transcription, .. } => {
                if let Some((asked, at)) = self.transcribing
                    && asked == *transcription
                {
                    self.transcription_ms = Some(since(at));
                }
            }
            // Typed words need no transcriber.
            Input::TypedTurn { .. } => self.transcription_ms = None,
            Input::ReplyText { reply: id, .. } => {
                if let Some(reply) = self.reply.as_mut().filter(|reply| reply.id == *id) {
                    let took = since(reply.asked_at);
                    reply.record.model_ms.get_or_insert(took);
                }
            }
            Input::Speech { sentence, .. } => {
                if let Some(reply) = &mut self.reply
                    && let Some((first, at)) = reply.speaking
                    && first == *sentence
                {
                    reply.record.synthesis_ms.get_or_insert(since(at));
                }
            }
            _ => {}
        }
    }

    /// Notes what was found for the reply that was asked for last.
    pub(super) fn retrieved(&mut self, found: &Retrieval) {
        if let Some(reply) = &mut self.reply {
            let titles = &mut reply.record.documents;
            titles.clear();
            for document in &found.documents {
                if !titles.contains(&document.title) {
                    titles.push(document.title.clone());
                }
            }
        }
    }

    /// The next line of the character after the reply was asked for is the reply's.
    fn told(&mut self, line: &Line, is_final: bool) {
        if line.originator != Originator::Bot || line.is_aside {
            return;
        }
        if let Some(reply) = &self.reply
            && reply.after.is_none_or(|after| line.id.0 > after.0)
        {
            self.made.insert(line.id, reply.record.clone());
            // Further lines, as after an interruption, are none of it.
            if is_final {
                self.reply = None;
            }
        }
        if self.last_line.is_none_or(|last| line.id.0 > last.0) {
            self.last_line = Some(line.id);
        }
    }

    /// Returns how a line came about; `None` for what is no reply, such as a greeting.
    pub(super) fn of(&self, line: LineId) -> Option<ReplyRecord> {
        self.made.get(&line).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use colloquy_base::clock::{Clock as _, SystemClock};
    use colloquy_generation::RetrievedDocument;

    use super::*;

    fn line(id: u64, originator: Originator, is_aside: bool) -> Output {
        let line = Line {
            id: LineId(id),
            originator,
            text: "x".to_owned(),
            at: Duration::ZERO,
            interrupted: false,
            is_aside,
        };
        let is_final = true;
        Output::Event(Event::Transcript { line, is_final })
    }

    fn speak(sentence: u64) -> Output {
        Output::Speak {
            sentence: SentenceId(sentence),
            text: "x".to_owned(),
        }
    }

    fn speech(sentence: u64) -> Input {
        Input::Speech {
            sentence: SentenceId(sentence),
            samples: vec![0],
            sample_rate_hz: 16_000,
        }
    }

    fn transcribe(id: u64) -> Output {
        Output::Transcribe {
            transcription: TranscriptionId(id),
            samples: Vec::new(),
            stage: UtteranceStage::Over,
        }
    }

    #[test]
    fn the_time_of_a_reply_is_told_by_its_stages() {
        let begun = SystemClock.instant();
        let at = |ms| begun + Duration::from_millis(ms);
        let agent = |state| Output::Event(Event::Agent(state));
        let text = |reply| Input::ReplyText {
            reply: ReplyId(reply),
            delta: "We".to_owned(),
        };
        let mut replies = Replies::default();

        // A greeting is none, and is told of again when it is interrupted.
        replies.asked(&speak(0), at(0));
        replies.answered(&speech(0), at(50));
        replies.asked(&line(0, Originator::Bot, false), at(60));

        replies.asked(&transcribe(7), at(1_000));
        let transcribed = Input::Transcribed {
            transcription: TranscriptionId(7),
            text: "When?".to_owned(),
        };
        replies.answered(&transcribed, at(1_200));
        // A reply that was begun early and given up.
        replies.asked(&Output::Reply(ReplyId(1)), at(1_200));
        replies.answered(&text(1), at(1_250));
        replies.asked(&Output::CancelReply(ReplyId(1)), at(1_300));
        replies.asked(&agent(AgentState::Thinking), at(1_500));
        replies.asked(&Output::Reply(ReplyId(2)), at(1_500));
        let document = |title: &str| RetrievedDocument {
            title: title.to_owned(),
            fusion_score: 1.0,
            token_count: 1,
        };
        replies.retrieved(&Retrieval {
            documents: vec![document("Hours"), document("Prices"), document("Hours")],
            total_tokens: 3,
        });
        replies.asked(&line(0, Originator::Bot, false), at(1_550));
        replies.answered(&text(1), at(1_560));
        replies.answered(&text(2), at(1_900));
        replies.answered(&text(2), at(1_950));
        replies.asked(&speak(1), at(2_000));
        replies.asked(&speak(2), at(2_010));
        replies.answered(&speech(2), at(2_050));
        replies.answered(&speech(1), at(2_100));
        replies.asked(&line(1, Originator::User, false), at(2_150));
        replies.asked(&line(2, Originator::Bot, true), at(2_160));
        replies.asked(&agent(AgentState::Speaking), at(2_200));
        replies.asked(&line(3, Originator::Bot, false), at(2_300));

        let expected = ReplyRecord {
            waited_ms: Some(700),
            transcription_ms: Some(200),
            model_ms: Some(400),
            synthesis_ms: Some(100),
            documents: vec!["Hours".to_owned(), "Prices".to_owned()],
        };
        assert_eq!(replies.of(LineId(3)), Some(expected));
        replies.asked(&line(4, Originator::Bot, false), at(3_000));
        for other in [0, 1, 2, 4] {
            assert_eq!(replies.of(LineId(other)), None, "line {other}");
        }

        // Typed words need no transcriber, and a model that says nothing leaves no line.
        let typed = Input::TypedTurn {
            text: "And on Sundays?".to_owned(),
        };
        replies.answered(&typed, at(5_000));
        replies.asked(&Output::Reply(ReplyId(3)), at(5_000));
        replies.asked(&line(5, Originator::Bot, false), at(5_400));
        assert_eq!(replies.of(LineId(5)), Some(ReplyRecord::default()));
    }
}
