//! The visitor's side: packets to utterances, utterances to lines, and who has the floor when they speak.

use std::time::Duration;

use super::turn::Source;
use super::{CallPhase, Engine};
use crate::inbound::activity::Change;
use crate::inbound::{Sink as _, duration_of, samples_of_ms};
use crate::interface::{Event, FailedProvider, Line, LineId, Originator, Output, UtteranceId};

/// How much of the character's voice a browser's echo canceller hears in a call before it is trusted, in frames: 2 s.
/// Until it has found the way from the loudspeaker to the microphone, it lets a piece of the first words pass.
const ECHO_WARM_UP_FRAMES: u64 = 100;
/// Speech over the character's first words that is shorter than this may be such a piece. Those of Chromium have 100 to
/// 250 ms.
const ECHO_SAMPLES: usize = samples_of_ms(400);

/// An utterance of the visitor.
#[derive(Debug)]
pub(super) struct Utterance {
    id: UtteranceId,
    /// The line it becomes if there are words in it.
    line: LineId,
    at: Duration,
    /// Whether the character stopped speaking for it.
    interrupted: bool,
    /// Whether it may be the echo of the character's first words. Then it interrupts nobody.
    may_be_echo: bool,
    /// Whether an interim transcript is under way; one at a time is enough.
    interim_asked: bool,
    /// The words of the last interim transcript.
    interim: String,
}

/// An utterance that is over.
#[derive(Debug)]
pub(super) struct Awaiting {
    utterance: Utterance,
    /// When the transcriber counts as failed.
    pub(super) deadline: Duration,
}

impl Engine {
    /// Hears all that can be heard by now.
    pub(super) fn hear(&mut self) {
        while let Some(ready) = self.jitter.pop(self.now) {
            if self.muted {
                continue;
            }
            self.decoder.decode(&ready, &mut self.endpointer);
            self.heard_until = self.now;
            self.meet_changes();
        }
        while let Some(deadline) = self.silence_deadline()
            && deadline <= self.now
            && let Some(hold) = self.endpointer.remaining_hold()
        {
            self.endpointer.silence(hold);
            self.decoder.skip(hold);
            self.heard_until += duration_of(hold);
            self.meet_changes();
        }
    }

    /// When silence has ended the running utterance if no packet comes: with DTX, or without a path, nothing says so
    /// but the clock.
    pub(super) fn silence_deadline(&self) -> Option<Duration> {
        if self.jitter.is_waiting() {
            return None;
        }
        let hold = self.endpointer.remaining_hold()?;
        Some(self.heard_until + self.jitter.delay() + duration_of(hold))
    }

    pub(super) fn mute(&mut self, muted: bool) {
        if self.muted == muted {
            return;
        }
        self.muted = muted;
        // Whoever mutes has finished speaking; there is no hold to wait for.
        self.endpointer.end();
        self.meet_changes();
        self.decoder.restart();
    }

    pub(super) fn transcribed(&mut self, id: UtteranceId, text: &str, is_final: bool) {
        let text = text.trim();
        if !is_final {
            self.interim(id, text);
            return;
        }
        let Some(utterance) = self.take_awaiting(id) else {
            return;
        };
        if text.is_empty() {
            self.heard_nothing(utterance);
            return;
        }
        self.record_user(utterance.line, utterance.at, text);
        self.give_way();
        self.pending.reply = true;
    }

    pub(super) fn transcription_failed(&mut self, id: UtteranceId) {
        if let Some(running) = self.running.as_mut().filter(|running| running.id == id) {
            // An interim result is a courtesy; the final one is still to come.
            running.interim_asked = false;
            return;
        }
        let Some(utterance) = self.take_awaiting(id) else {
            return;
        };
        self.tell(Event::ProviderFailed(FailedProvider::Transcriber));
        self.withdraw(&utterance);
        self.pending.apology = true;
    }

    /// Gives up on transcripts that are overdue.
    pub(super) fn check_transcriber(&mut self) {
        while let Some(overdue) = self
            .awaiting
            .iter()
            .find(|awaiting| awaiting.deadline <= self.now)
        {
            let id = overdue.utterance.id;
            self.outputs.push_back(Output::CancelTranscription(id));
            self.transcription_failed(id);
        }
    }

    /// The call is over: keeps the words that were heard so far and wants no more.
    pub(super) fn stop_hearing(&mut self) {
        let awaiting = std::mem::take(&mut self.awaiting)
            .into_iter()
            .map(|awaiting| (awaiting.utterance, true));
        let running = self.running.take().map(|running| {
            let asked = running.interim_asked;
            (running, asked)
        });
        for (utterance, asked) in awaiting.chain(running) {
            if asked {
                self.outputs
                    .push_back(Output::CancelTranscription(utterance.id));
            }
            if !utterance.interim.is_empty() {
                self.record_user(utterance.line, utterance.at, &utterance.interim);
            }
        }
    }

    fn meet_changes(&mut self) {
        while let Some(change) = self.endpointer.poll() {
            match change {
                Change::Started { ago } => self.utterance_started(ago),
                Change::InterimDue => self.ask_interim(),
                Change::Ended { samples } => self.utterance_ended(samples),
                Change::Dropped => self.utterance_dropped(),
            }
        }
        self.rule_out_echo();
    }

    fn utterance_started(&mut self, ago: Duration) {
        let may_be_echo = self.echo_is_likely();
        let interrupted = !may_be_echo && self.give_way();
        self.running = Some(Utterance {
            id: self.ids.utterance(),
            line: self.transcript.reserve(),
            at: self.at().saturating_sub(ago),
            interrupted,
            may_be_echo,
            interim_asked: false,
            interim: String::new(),
        });
    }

    /// Whether what is heard may be the character's own voice.
    fn echo_is_likely(&self) -> bool {
        let audible = self
            .turn
            .as_ref()
            .is_some_and(|turn| turn.audible_at.is_some());
        audible && self.frames_sent < ECHO_WARM_UP_FRAMES
    }

    /// Leaves the floor to the visitor once the running utterance is too long for an echo.
    fn rule_out_echo(&mut self) {
        let is_voice = self.endpointer.speech() >= ECHO_SAMPLES;
        if !is_voice
            || !self
                .running
                .as_ref()
                .is_some_and(|running| running.may_be_echo)
        {
            return;
        }
        let interrupted = self.give_way();
        if let Some(running) = &mut self.running {
            running.may_be_echo = false;
            running.interrupted = interrupted;
        }
    }

    fn utterance_dropped(&mut self) {
        let Some(utterance) = self.running.take() else {
            return;
        };
        if utterance.interim_asked {
            self.outputs
                .push_back(Output::CancelTranscription(utterance.id));
        }
        self.heard_nothing(utterance);
    }

    fn utterance_ended(&mut self, samples: Vec<i16>) {
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.may_be_echo)
        {
            self.utterance_dropped();
            return;
        }
        let Some(utterance) = self.running.take() else {
            return;
        };
        self.outputs.push_back(Output::Transcribe {
            utterance: utterance.id,
            samples,
            is_final: true,
        });
        let deadline = self.now.saturating_add(self.config.provider_timeout);
        self.awaiting.push_back(Awaiting {
            utterance,
            deadline,
        });
    }

    /// Leaves the floor to the visitor. Says whether the character was cut off in something that the visitor heard or
    /// that nobody asked for; a reply that is only being thought about is owed again, to all that was said by then.
    fn give_way(&mut self) -> bool {
        let Some(turn) = &self.turn else { return false };
        let is_reply = matches!(turn.source, Source::Reply(_));
        if turn.audible_at.is_none() && is_reply {
            self.stop_turn(false);
            self.pending.reply = true;
            return false;
        }
        if !self.config.turns.barge_in {
            return false;
        }
        self.stop_turn(true);
        true
    }

    fn ask_interim(&mut self) {
        let Some(running) = self
            .running
            .as_mut()
            .filter(|running| !running.interim_asked && !running.may_be_echo)
        else {
            return;
        };
        running.interim_asked = true;
        let (utterance, samples) = (running.id, self.endpointer.utterance());
        self.outputs.push_back(Output::Transcribe {
            utterance,
            samples,
            is_final: false,
        });
    }

    fn interim(&mut self, id: UtteranceId, text: &str) {
        let Some(running) = self.running.as_mut().filter(|running| running.id == id) else {
            return;
        };
        running.interim_asked = false;
        if text.is_empty() || running.interim == text {
            return;
        }
        running.interim = text.to_owned();
        let line = running.line_with(text);
        self.tell(Event::Transcript {
            line,
            is_final: false,
        });
    }

    fn heard_nothing(&mut self, utterance: Utterance) {
        self.withdraw(&utterance);
        self.pending.interruption_message |=
            utterance.interrupted && self.config.interruption_message.is_some();
    }

    /// Takes back the line that interim results showed.
    fn withdraw(&mut self, utterance: &Utterance) {
        if !utterance.interim.is_empty() {
            let line = utterance.line_with("");
            self.tell(Event::Transcript {
                line,
                is_final: true,
            });
        }
    }

    fn take_awaiting(&mut self, id: UtteranceId) -> Option<Utterance> {
        let place = self
            .awaiting
            .iter()
            .position(|awaiting| awaiting.utterance.id == id)?;
        self.awaiting
            .remove(place)
            .map(|awaiting| awaiting.utterance)
    }

    /// Whether the visitor speaks, or spoke and their words have not come.
    pub(super) fn visitor_has_floor(&self) -> bool {
        self.running.is_some()
            || !self.awaiting.is_empty()
            || matches!(self.life, CallPhase::Ended { .. })
    }
}

impl Utterance {
    fn line_with(&self, text: &str) -> Line {
        Line {
            id: self.line,
            originator: Originator::User,
            text: text.to_owned(),
            at: self.at,
            interrupted: false,
        }
    }
}
