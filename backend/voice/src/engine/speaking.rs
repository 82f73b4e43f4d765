//! The character's side: replies to sentences, sentences to frames, and what is said when something fails.

use super::Engine;
use super::turn::{Source, Turn};
use crate::interface::{
    AgentState, Event, FailedProvider, Line, Originator, Output, ReplyId, SentenceId,
};
use crate::outbound::FRAME_SAMPLES;
use crate::outbound::pacer::MAX_BURST;

/// Text of a reply that waits to be spoken; about an hour of speech. A model that writes more does not stop by
/// itself.
const MAX_PENDING_TEXT_BYTES: usize = 64 * 1024;

impl Engine {
    pub(super) fn reply_text(&mut self, reply: ReplyId, delta: &str) {
        let now = self.now;
        let Some(turn) = self.open_turn(reply) else {
            return;
        };
        turn.push_text(now, delta);
        if turn.pending_text_bytes() > MAX_PENDING_TEXT_BYTES {
            turn.close_text();
            self.outputs.push_back(Output::CancelReply(reply));
        }
        self.ask_speech();
    }

    pub(super) fn reply_retracted(&mut self, reply: ReplyId) {
        let now = self.now;
        let Some(turn) = self.open_turn(reply) else {
            return;
        };
        let unheard = turn.retract(now);
        self.outputs
            .extend(unheard.into_iter().map(Output::CancelSpeech));
        if let Some(mut turn) = self.turn.take() {
            if turn.audible_at.is_some() {
                self.pacer.cut();
                // Without words, the line goes.
                self.tell_line(&mut turn, true, false);
                turn.audible_at = None;
                turn.line = self.transcript.reserve();
            }
            self.turn = Some(turn);
        }
    }

    pub(super) fn reply_ended(&mut self, reply: ReplyId) {
        let Some(turn) = self.open_turn(reply) else {
            return;
        };
        turn.close_text();
        self.ask_speech();
    }

    pub(super) fn reply_failed(&mut self, reply: ReplyId) {
        let Some(turn) = self.open_turn(reply) else {
            return;
        };
        turn.failed = true;
        turn.close_text();
        self.tell(Event::ProviderFailed(FailedProvider::Model));
        self.ask_speech();
    }

    pub(super) fn speech(&mut self, sentence: SentenceId, samples: Vec<i16>, sample_rate_hz: u32) {
        let Some(turn) = &mut self.turn else { return };
        let Some(speech) = turn.speech_mut(self.now, sentence) else {
            return;
        };
        if let Err(error) = speech.push(samples, sample_rate_hz, &mut self.spare_resampler) {
            tracing::warn!(%error, "speech cannot be played");
            self.outputs.push_back(Output::CancelSpeech(sentence));
            self.speech_failed(sentence);
        }
    }

    pub(super) fn speech_ended(&mut self, sentence: SentenceId) {
        if let Some(turn) = &mut self.turn
            && let Some(speech) = turn.speech_mut(self.now, sentence)
        {
            speech.end();
        }
    }

    pub(super) fn speech_failed(&mut self, sentence: SentenceId) {
        let Some(turn) = &mut self.turn else { return };
        if turn.fail_speech(self.now, sentence) {
            self.tell(Event::ProviderFailed(FailedProvider::Synthesizer));
        }
    }

    pub(super) fn typed_turn(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.stop_turn(true);
        let line = self.transcript.reserve();
        self.record_user(line, self.at(), text);
        // At once, even if the microphone hears something: whoever types in a noisy room wants an answer as well.
        self.start_reply();
    }

    /// Gives up on providers that are overdue.
    pub(super) fn check_providers(&mut self) {
        self.check_transcriber();
        let timeout = self.config.provider_timeout;
        let Some(turn) = &self.turn else { return };
        if turn
            .text_deadline(timeout)
            .is_some_and(|deadline| deadline <= self.now)
            && let Some(reply) = turn.open_reply()
        {
            self.outputs.push_back(Output::CancelReply(reply));
            self.reply_failed(reply);
        }
        let Some(turn) = &self.turn else { return };
        let stalled = turn.unfinished_speech().next();
        if turn
            .speech_deadline(timeout)
            .is_some_and(|deadline| deadline <= self.now)
            && let Some(sentence) = stalled
        {
            self.outputs.push_back(Output::CancelSpeech(sentence));
            self.speech_failed(sentence);
        }
    }

    /// Does something about a silence in which a model writes: after a while the visitor gets a clause instead of a sentence, and before the
    /// first words a word of patience.
    pub(super) fn bridge_silence(&mut self) {
        let now = self.now;
        let Some(turn) = &mut self.turn else { return };
        turn.note_silence(now);
        if turn.clause_deadline().is_some_and(|at| at <= now) {
            turn.hurry();
            self.ask_speech();
        }
        let Some(turn) = &mut self.turn else { return };
        let is_due = turn
            .patience_deadline(&self.config)
            .is_some_and(|at| at <= now);
        if let Some(text) = self.config.patience_message.clone().filter(|_| is_due) {
            let (sentence, line) = (self.ids.sentence(), self.transcript.reserve());
            turn.speak_aside(now, sentence, text.clone(), line);
            self.outputs.push_back(Output::Speak { sentence, text });
        }
    }

    /// Lets the character speak if it has something to say and nobody else speaks. Says whether it begins.
    pub(super) fn take_floor(&mut self) -> bool {
        if self.turn.is_some() || self.visitor_has_floor() {
            return false;
        }
        let pending = std::mem::take(&mut self.pending);
        if pending.reply {
            self.start_reply();
        } else if pending.apology {
            let apology = self.config.apology.clone();
            self.start_script(Source::Apology, &apology);
        } else if pending.interruption_message
            && let Some(message) = self.config.interruption_message.clone()
        {
            self.start_script(Source::Script, &message);
        } else {
            return false;
        }
        true
    }

    pub(super) fn start_script(&mut self, source: Source, text: &str) {
        let line = self.transcript.reserve();
        self.turn = Some(Turn::script(self.now, source, text, line));
        self.ask_speech();
    }

    /// Breaks off what the character says or is about to say. The line keeps the words that were played.
    pub(super) fn stop_turn(&mut self, interrupted: bool) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        self.pacer.cut();
        if let Some(reply) = turn.open_reply() {
            self.outputs.push_back(Output::CancelReply(reply));
        }
        self.outputs
            .extend(turn.unfinished_speech().map(Output::CancelSpeech));
        self.tell_line(&mut turn, true, interrupted);
    }

    /// Sends the frames that are due, and silence where it is due.
    pub(super) fn play(&mut self) {
        self.prepare_frame();
        for _ in 0..MAX_BURST {
            if !self.frame_ready || !self.pacer.may_send(self.now) {
                break;
            }
            self.send_frame();
            self.prepare_frame();
        }
        if self.frame_ready {
            // Still due after a burst: the timer was very late.
            if self.pacer.may_send(self.now) {
                self.pacer.forgive_delay(self.now);
            }
            return;
        }
        if !self.pacer.is_played_out(self.now) {
            return;
        }
        self.pacer.pause();
        match &self.turn {
            Some(turn) if turn.is_over() => self.finish_turn(),
            // Only a word of patience was heard.
            Some(turn) if turn.is_idle() && turn.audible_at.is_none() => self.patience_ended(),
            _ => {}
        }
        self.outputs
            .extend(self.pacer.send_silence(self.now).map(Output::Send));
    }

    /// A word of patience was heard, and the reply is still awaited.
    fn patience_ended(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            self.tell_aside(&mut turn, true, false);
            self.turn = Some(turn);
        }
        self.set_agent(AgentState::Thinking);
    }

    fn start_reply(&mut self) {
        self.pending = super::PendingSpeech::default();
        let reply = self.ids.reply();
        let line = self.transcript.reserve();
        self.turn = Some(Turn::reply(self.now, reply, line));
        self.outputs.push_back(Output::Reply(reply));
        self.set_agent(AgentState::Thinking);
    }

    fn open_turn(&mut self, reply: ReplyId) -> Option<&mut Turn> {
        self.turn
            .as_mut()
            .filter(|turn| turn.open_reply() == Some(reply))
    }

    /// Asks for speech of the sentences that are next.
    fn ask_speech(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        while let Some(text) = turn.next_to_speak() {
            let sentence = self.ids.sentence();
            self.outputs.push_back(Output::Speak {
                sentence,
                text: text.trim().to_owned(),
            });
            turn.speak(self.now, sentence, text);
        }
    }

    fn prepare_frame(&mut self) {
        let Some(turn) = &mut self.turn else {
            self.frame_ready = false;
            return;
        };
        self.frame_ready = turn.prepare_frame(&mut self.spare_resampler);
        self.ask_speech();
    }

    fn send_frame(&mut self) {
        let at = self.at();
        let Some(turn) = &mut self.turn else { return };
        let mut samples = [0; FRAME_SAMPLES];
        let began = turn.fill_frame(&mut samples, &mut self.spare_resampler);
        if began.sentence {
            turn.audible_at.get_or_insert(at);
        }
        if let Some(aside) = turn.aside.as_mut().filter(|_| began.aside) {
            aside.at = Some(at);
        }
        let aside_is_over = turn.has_untold_aside();
        let frame = self
            .pacer
            .send_speech(self.now, self.encoder.encode(&samples));
        self.frames_sent += 1;
        self.outputs.push_back(Output::Send(frame));
        self.set_agent(AgentState::Speaking);
        if let Some(mut turn) = self.turn.take() {
            if began.aside || aside_is_over {
                self.tell_aside(&mut turn, aside_is_over, false);
            }
            if began.sentence {
                self.tell_line(&mut turn, false, false);
            }
            self.turn = Some(turn);
        }
    }

    fn finish_turn(&mut self) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        // A reply without a word that can be spoken is none.
        let is_silent = turn.audible_at.is_none() && !turn.failed;
        if is_silent && matches!(turn.source, Source::Reply(_)) {
            turn.failed = true;
            self.tell(Event::ProviderFailed(FailedProvider::Model));
        }
        self.tell_line(&mut turn, true, false);
        self.pending.apology |= turn.failed && turn.source != Source::Apology;
    }

    /// Records what the character said by now. Nothing of a turn that was not heard is recorded or told.
    fn tell_line(&mut self, turn: &mut Turn, is_final: bool, interrupted: bool) {
        if is_final {
            self.tell_aside(turn, true, interrupted);
        }
        let Some(at) = turn.audible_at else { return };
        let line = Line {
            id: turn.line,
            originator: Originator::Bot,
            text: turn.text(is_final),
            at,
            interrupted,
            is_aside: turn.source == Source::Apology,
        };
        self.transcript.set_bot(line.clone());
        self.tell(Event::Transcript { line, is_final });
    }

    /// Records the word of patience, as far as it was heard.
    fn tell_aside(&mut self, turn: &mut Turn, is_final: bool, interrupted: bool) {
        let text = turn.aside_text(is_final);
        let Some(aside) = turn.aside.as_mut().filter(|aside| !aside.is_told) else {
            return;
        };
        let Some(at) = aside.at else { return };
        aside.is_told = is_final;
        let line = Line {
            id: aside.line,
            originator: Originator::Bot,
            text,
            at,
            // What was over was not cut.
            interrupted: interrupted && turn.audible_at.is_none(),
            is_aside: true,
        };
        self.transcript.set_bot(line.clone());
        self.tell(Event::Transcript { line, is_final });
    }
}
