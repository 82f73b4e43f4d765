//! The visitor's side: packets to utterances, utterances to lines, and who has the floor when they speak.

use std::time::Duration;

use super::turn::{Source, Turn};
use super::{CallPhase, Engine};
use crate::inbound::activity::Change;
use crate::inbound::{RATE_HZ, Sink as _, duration_of, samples_of_ms};
use crate::interface::{
    Event, FailedProvider, Line, LineId, Originator, Output, PauseId, TranscriptionId,
    UtteranceStage,
};

/// How much of the character's voice a browser's echo canceller hears in a call before it is trusted, in frames: 2 s.
/// Until it has found the way from the loudspeaker to the microphone, it lets a piece of the first words pass.
const ECHO_WARM_UP_FRAMES: u64 = 100;
/// Speech over the character's first words that is shorter than this may be such a piece. Those of Chromium have 100 to
/// 250 ms.
const ECHO_SAMPLES: usize = samples_of_ms(400);

/// How much of an utterance tells whether the turn is over: its end.
const PREDICTION_SAMPLES: usize = 8 * RATE_HZ;
/// How often that is asked at most, however often the visitor pauses.
const PREDICTION_INTERVAL: Duration = Duration::from_millis(500);

/// An utterance of the visitor.
#[derive(Debug)]
pub(super) struct Utterance {
    /// The line it becomes if there are words in it.
    line: LineId,
    at: Duration,
    /// Whether the character stopped speaking for it.
    interrupted: bool,
    /// Whether it may be the echo of the character's first words. Then it interrupts nobody.
    may_be_echo: bool,
    /// What was asked while it ran.
    question: Question,
    /// The pause that it is in, while it is not known whether that is the end of the turn.
    pause: Option<PauseId>,
    /// The words that were shown meanwhile.
    interim: String,
}

/// What was asked for the words of a running utterance; one question at a time is enough.
#[derive(Debug)]
enum Question {
    None,
    /// For the words so far, to show them.
    Interim(TranscriptionId),
    /// For the words until a pause that may be the end.
    Early(TranscriptionId),
    /// That was answered, and the visitor has been silent since.
    Answered(String),
}

impl Question {
    /// The question that waits for its answer.
    fn open(&self) -> Option<TranscriptionId> {
        match self {
            Self::Interim(id) | Self::Early(id) => Some(*id),
            Self::None | Self::Answered(_) => None,
        }
    }
}

/// An utterance that is over.
#[derive(Debug)]
pub(super) struct Awaiting {
    utterance: Utterance,
    question: TranscriptionId,
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

    /// When silence makes a pause of the running utterance, or its end, if no packet comes: with DTX, or without a path, nothing says so
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

    pub(super) fn transcribed(&mut self, id: TranscriptionId, text: &str) {
        let text = text.trim();
        if let Some(utterance) = self.take_awaiting(id) {
            self.heard(utterance, text);
            return;
        }
        let Some(running) = self.running.as_mut() else {
            return;
        };
        running.question = match running.question {
            Question::Interim(asked) if asked == id => Question::None,
            Question::Early(asked) if asked == id => Question::Answered(text.to_owned()),
            _ => return,
        };
        self.show_interim(text);
    }

    /// These are all words of an utterance that is over.
    fn heard(&mut self, utterance: Utterance, text: &str) {
        if text.is_empty() {
            self.heard_nothing(utterance);
            return;
        }
        self.record_user(utterance.line, utterance.at, text);
        self.give_way();
        self.pending.reply = true;
    }

    pub(super) fn transcription_failed(&mut self, id: TranscriptionId) {
        let asked = |running: &&mut Utterance| running.question.open() == Some(id);
        if let Some(running) = self.running.as_mut().filter(asked) {
            // It is asked again at the end.
            running.question = Question::None;
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
            let id = overdue.question;
            self.outputs.push_back(Output::CancelTranscription(id));
            self.transcription_failed(id);
        }
    }

    /// The call is over: keeps the words that were heard so far and wants no more.
    pub(super) fn stop_hearing(&mut self) {
        let awaiting = std::mem::take(&mut self.awaiting)
            .into_iter()
            .map(|awaiting| (Some(awaiting.question), awaiting.utterance));
        let running = self
            .running
            .take()
            .map(|running| (running.question.open(), running));
        for (question, utterance) in awaiting.chain(running) {
            self.cancel(question);
            self.cancel_prediction(utterance.pause);
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
                Change::Paused { samples, has_grown } => {
                    self.predict_end_of_turn(&samples);
                    if has_grown && self.config.turns.early_transcripts {
                        self.ask_early(samples);
                    }
                }
                Change::Resumed => self.utterance_resumed(),
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
            line: self.transcript.reserve(),
            at: self.at().saturating_sub(ago),
            interrupted,
            may_be_echo,
            question: Question::None,
            pause: None,
            interim: String::new(),
        });
    }

    /// Whether what is heard may be the character's own voice.
    fn echo_is_likely(&self) -> bool {
        let audible = self.turn.as_ref().is_some_and(Turn::is_audible);
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
        self.cancel(utterance.question.open());
        self.cancel_prediction(utterance.pause);
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
        let Some(mut utterance) = self.running.take() else {
            return;
        };
        self.cancel_prediction(utterance.pause.take());
        let question = match std::mem::replace(&mut utterance.question, Question::None) {
            Question::Answered(text) => {
                self.heard(utterance, &text);
                return;
            }
            Question::Early(asked) => asked,
            Question::Interim(asked) => {
                self.cancel(Some(asked));
                self.transcribe(samples, UtteranceStage::Over)
            }
            Question::None => self.transcribe(samples, UtteranceStage::Over),
        };
        let deadline = self.now.saturating_add(self.config.provider_timeout);
        self.awaiting.push_back(Awaiting {
            utterance,
            question,
            deadline,
        });
    }

    fn transcribe(&mut self, samples: Vec<i16>, stage: UtteranceStage) -> TranscriptionId {
        let transcription = self.ids.transcription();
        self.outputs.push_back(Output::Transcribe {
            transcription,
            samples,
            stage,
        });
        transcription
    }

    fn cancel(&mut self, question: Option<TranscriptionId>) {
        let cancel = question.map(Output::CancelTranscription);
        self.outputs.extend(cancel);
    }

    fn cancel_prediction(&mut self, pause: Option<PauseId>) {
        let cancel = pause.map(Output::CancelPrediction);
        self.outputs.extend(cancel);
    }

    /// Leaves the floor to the visitor. Says whether the character was cut off in something that the visitor heard or
    /// that nobody asked for; a reply that is only being thought about is owed again, to all that was said by then.
    fn give_way(&mut self) -> bool {
        let Some(turn) = &self.turn else { return false };
        let is_reply = matches!(turn.source, Source::Reply(_));
        if turn.audible_at.is_none() && is_reply {
            // A word of patience may have been cut off.
            let is_heard = turn.is_audible();
            self.stop_turn(is_heard);
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
        let may_ask = |running: &&Utterance| {
            matches!(running.question, Question::None) && !running.may_be_echo
        };
        if self.running.as_ref().filter(may_ask).is_none() {
            return;
        }
        let asked = self.transcribe(self.endpointer.utterance(), UtteranceStage::Running);
        if let Some(running) = &mut self.running {
            running.question = Question::Interim(asked);
        }
    }

    /// Asks for the words in a pause, as if it was the end.
    fn ask_early(&mut self, samples: Vec<i16>) {
        let Some(running) = self.running.as_ref().filter(|running| !running.may_be_echo) else {
            return;
        };
        self.cancel(running.question.open());
        let asked = self.transcribe(samples, UtteranceStage::Paused);
        if let Some(running) = &mut self.running {
            running.question = Question::Early(asked);
        }
    }

    /// Asks whether the visitor has finished.
    fn predict_end_of_turn(&mut self, utterance: &[i16]) {
        let is_due = self
            .predicted_at
            .is_none_or(|at| self.now.saturating_sub(at) >= PREDICTION_INTERVAL);
        let Some(running) = self.running.as_mut().filter(|running| !running.may_be_echo) else {
            return;
        };
        if self.config.turns.predicted_hold.is_none() || !is_due {
            return;
        }
        let pause = self.ids.pause();
        running.pause = Some(pause);
        self.predicted_at = Some(self.now);
        let first = utterance.len().saturating_sub(PREDICTION_SAMPLES);
        self.outputs.push_back(Output::PredictEndOfTurn {
            pause,
            samples: utterance[first..].to_vec(),
        });
    }

    pub(super) fn end_of_turn_predicted(&mut self, pause: PauseId, is_complete: bool) {
        let asked = |running: &&mut Utterance| running.pause == Some(pause);
        let (Some(running), Some(hold)) = (
            self.running.as_mut().filter(asked),
            self.config.turns.predicted_hold,
        ) else {
            return;
        };
        running.pause = None;
        self.endpointer.hold_pause(match is_complete {
            true => hold.complete_ms,
            false => hold.incomplete_ms,
        });
    }

    /// The pause was none: what was asked in it misses the words that come.
    fn utterance_resumed(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let asked = std::mem::replace(&mut running.question, Question::None);
        let pause = running.pause.take();
        self.cancel(asked.open());
        self.cancel_prediction(pause);
    }

    /// Shows what was heard of the running utterance.
    fn show_interim(&mut self, text: &str) {
        let Some(running) = self.running.as_mut() else {
            return;
        };
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

    fn take_awaiting(&mut self, id: TranscriptionId) -> Option<Utterance> {
        let place = self
            .awaiting
            .iter()
            .position(|awaiting| awaiting.question == id)?;
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
            is_aside: false,
        }
    }
}
