//! The state machine. This file owns the life of the call and its clock; [`hearing`] turns packets into the visitor's
//! lines, [`speaking`] turns replies into frames, [`turn`] keeps the account of one turn of the character.

mod hearing;
mod speaking;
mod turn;

use std::collections::VecDeque;
use std::time::Duration;

use self::hearing::{Awaiting, Utterance};
use self::turn::Turn;
use crate::inbound::activity::Endpointer;
use crate::inbound::decode::Decoder;
use crate::inbound::detector::{Earshot, VoiceDetector};
use crate::inbound::jitter::JitterBuffer;
use crate::interface::{
    AgentState, EndReason, EngineConfig, Event, Input, Line, LineId, Originator, Output, PauseId,
    PredictedHold, ReplyId, SentenceId, TranscriptionId, TurnSettings,
};
use crate::outbound::encode::VoiceEncoder;
use crate::outbound::pacer::Pacer;
use crate::outbound::resample::Resampler;
use crate::stats::Stats;
use crate::transcript::Transcript;

/// An engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// libopus refused its settings.
    #[error("the Opus codec could not be set up")]
    Opus(#[from] opus::Error),
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(&'static str),
}

/// One call. See the [crate] for the rules of the game.
pub struct Engine {
    config: EngineConfig,
    now: Duration,
    life: CallPhase,
    outputs: VecDeque<Output>,
    transcript: Transcript,
    agent: AgentState,
    ids: Ids,

    jitter: JitterBuffer,
    decoder: Decoder,
    endpointer: Endpointer,
    muted: bool,
    /// Until when the visitor's audio has been heard, by the clock.
    heard_until: Duration,
    /// The utterance that is being spoken.
    running: Option<Utterance>,
    /// When it was last asked whether the visitor has finished.
    predicted_at: Option<Duration>,
    /// Utterances that are over and whose words have not come.
    awaiting: VecDeque<Awaiting>,

    /// What the character says or is about to say.
    turn: Option<Turn>,
    pending: PendingSpeech,
    encoder: VoiceEncoder,
    pacer: Pacer,
    frame_ready: bool,
    frames_sent: u64,
    spare_resampler: Option<Resampler>,
}

/// How far the call is; times are those of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPhase {
    /// The media path was never up.
    Waiting,
    Running {
        since: Duration,
    },
    Ended {
        lasted: Duration,
    },
}

/// What the character is to say when the floor is free.
#[derive(Debug, Default, Clone, Copy)]
struct PendingSpeech {
    reply: bool,
    apology: bool,
    interruption_message: bool,
}

/// The ids given out so far.
#[derive(Debug, Default)]
struct Ids {
    transcriptions: u64,
    pauses: u64,
    replies: u64,
    sentences: u64,
}

impl Ids {
    fn transcription(&mut self) -> TranscriptionId {
        self.transcriptions += 1;
        TranscriptionId(self.transcriptions)
    }

    fn pause(&mut self) -> PauseId {
        self.pauses += 1;
        PauseId(self.pauses)
    }

    fn reply(&mut self) -> ReplyId {
        self.replies += 1;
        ReplyId(self.replies)
    }

    fn sentence(&mut self) -> SentenceId {
        self.sentences += 1;
        SentenceId(self.sentences)
    }
}

impl Engine {
    /// Makes an engine for one call, which tells speech by [`Earshot`].
    ///
    /// # Errors
    ///
    /// When the configuration contradicts itself or libopus refuses it.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        Self::with_detector(config, Box::<Earshot>::default())
    }

    /// Makes an engine for one call, which tells speech by this detector.
    ///
    /// # Errors
    ///
    /// When the configuration contradicts itself or libopus refuses it.
    pub fn with_detector(
        config: EngineConfig,
        detector: Box<dyn VoiceDetector>,
    ) -> Result<Self, EngineError> {
        validate(&config)?;
        let random = scramble(config.seed);
        Ok(Self {
            now: Duration::ZERO,
            life: CallPhase::Waiting,
            outputs: VecDeque::new(),
            transcript: Transcript::default(),
            agent: AgentState::Listening,
            ids: Ids::default(),
            jitter: JitterBuffer::default(),
            decoder: Decoder::new()?,
            endpointer: Endpointer::new(&config.turns, detector),
            muted: false,
            heard_until: Duration::ZERO,
            running: None,
            predicted_at: None,
            awaiting: VecDeque::new(),
            turn: None,
            pending: PendingSpeech::default(),
            encoder: VoiceEncoder::new(config.bitrate_bps)?,
            pacer: Pacer::new(random as u16, (random >> 16) as u32),
            frame_ready: false,
            frames_sent: 0,
            spare_resampler: None,
            config,
        })
    }

    /// Takes in what happened. `now` is the time since the session began and never goes back.
    pub fn handle(&mut self, now: Duration, input: Input) {
        if matches!(self.life, CallPhase::Ended { .. }) {
            return;
        }
        self.now = self.now.max(now);
        if self.limit().is_some_and(|limit| limit <= self.now) {
            self.end(EndReason::TimeLimit);
            return;
        }
        // What happened comes before what is due: a result that comes with the timer is not late, and a frame is not
        // sent over a visitor who speaks.
        match input {
            Input::Connected => self.connect(),
            Input::Disconnected => self.pacer.disconnect(),
            Input::Packet(packet) => self.jitter.push(self.now, packet),
            Input::Transcribed {
                transcription,
                text,
            } => self.transcribed(transcription, &text),
            Input::TranscriptionFailed { transcription } => {
                self.transcription_failed(transcription);
            }
            Input::EndOfTurnPredicted { pause, is_complete } => {
                self.end_of_turn_predicted(pause, is_complete);
            }
            Input::ReplyText { reply, delta } => self.reply_text(reply, &delta),
            Input::ReplyRetracted { reply } => self.reply_retracted(reply),
            Input::ReplyEnded { reply } => self.reply_ended(reply),
            Input::ReplyFailed { reply } => self.reply_failed(reply),
            Input::Speech {
                sentence,
                samples,
                sample_rate_hz,
            } => {
                self.speech(sentence, samples, sample_rate_hz);
            }
            Input::SpeechEnded { sentence } => self.speech_ended(sentence),
            Input::SpeechFailed { sentence } => self.speech_failed(sentence),
            Input::TypedTurn { text } => self.typed_turn(&text),
            Input::Mute(muted) => self.mute(muted),
            Input::HangUp => return self.end(EndReason::HangUp),
            Input::Timeout => {}
        }
        self.advance();
    }

    /// What to do next; `None` until something happens.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Engine::handle`] with [`Input::Timeout`] if nothing else happens before; `None` when only an
    /// input changes anything.
    pub fn next_timeout(&self) -> Option<Duration> {
        if matches!(self.life, CallPhase::Ended { .. }) {
            return None;
        }
        let timeout = self.config.provider_timeout;
        let turn = self.turn.as_ref();
        [
            self.limit(),
            self.jitter.deadline(),
            self.silence_deadline(),
            self.awaiting.iter().map(|awaiting| awaiting.deadline).min(),
            turn.and_then(|turn| turn.text_deadline(timeout)),
            turn.and_then(|turn| turn.speech_deadline(timeout)),
            turn.and_then(Turn::clause_deadline),
            turn.and_then(|turn| turn.patience_deadline(&self.config)),
            self.pacer.deadline(self.frame_ready),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// What was really heard and said so far, in the order in which it began. The line that the character is saying
    /// has the words of the sentences that began; when it ends, by itself or not, those that were played.
    pub fn transcript(&self) -> &[Line] {
        self.transcript.lines()
    }

    /// How long the call has lasted since the first [`Input::Connected`]. Stands still when the call is over.
    pub fn call_time(&self, now: Duration) -> Duration {
        match self.life {
            CallPhase::Waiting => Duration::ZERO,
            CallPhase::Running { since } => now.saturating_sub(since),
            CallPhase::Ended { lasted } => lasted,
        }
    }

    /// Counters of the media path.
    pub fn stats(&self) -> Stats {
        let inbound = self.jitter.counters();
        Stats {
            packets_received: inbound.received,
            packets_lost: inbound.lost,
            packets_late: inbound.late,
            packets_duplicate: inbound.duplicate,
            frames_concealed: self.decoder.concealed,
            frames_recovered: self.decoder.recovered,
            frames_sent: self.frames_sent,
            jitter_delay_ms: self.jitter.delay().as_millis() as u32,
            jitter_ms: self.jitter.spread().map(|spread| spread.as_millis() as u32),
        }
    }

    fn connect(&mut self) {
        self.pacer.connect(self.now);
        if self.life != CallPhase::Waiting {
            return;
        }
        self.life = CallPhase::Running { since: self.now };
        let count = self.config.greetings.len() as u64;
        if count == 0 || self.turn.is_some() {
            return;
        }
        let chosen = scramble(self.config.seed.wrapping_add(1)) % count;
        let greeting = self.config.greetings[chosen as usize].clone();
        self.start_script(turn::Source::Script, &greeting);
    }

    /// Does all that is due.
    fn advance(&mut self) {
        self.hear();
        self.check_providers();
        self.bridge_silence();
        self.play();
        // Each round pays a debt, and paying makes none, so this ends.
        while self.take_floor() {
            self.play();
        }
        match &mut self.turn {
            Some(turn) => turn.note_silence(self.now),
            None => self.set_agent(AgentState::Listening),
        }
    }

    fn limit(&self) -> Option<Duration> {
        match self.life {
            CallPhase::Running { since } => Some(since.saturating_add(self.config.time_limit)),
            _ => None,
        }
    }

    fn end(&mut self, reason: EndReason) {
        // The timer may be late; the call is not longer for that.
        let at = self.limit().map_or(self.now, |limit| limit.min(self.now));
        self.stop_turn(false);
        self.stop_hearing();
        self.life = CallPhase::Ended {
            lasted: self.call_time(at),
        };
        self.outputs.push_back(Output::End(reason));
    }

    /// The time of the call, for a line that begins now.
    fn at(&self) -> Duration {
        self.call_time(self.now)
    }

    fn set_agent(&mut self, agent: AgentState) {
        if self.agent != agent {
            self.agent = agent;
            self.tell(Event::Agent(agent));
        }
    }

    fn tell(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn record_user(&mut self, id: LineId, at: Duration, text: &str) {
        let text = text.to_owned();
        let line = Line {
            id,
            originator: Originator::User,
            text,
            at,
            interrupted: false,
            is_aside: false,
        };
        self.transcript.insert(line.clone());
        self.tell(Event::Transcript {
            line,
            is_final: true,
        });
    }
}

fn validate(config: &EngineConfig) -> Result<(), EngineError> {
    let TurnSettings {
        speech_threshold,
        start_ms,
        stop_ms,
        pre_roll_ms,
        post_roll_ms,
        max_utterance_ms,
        predicted_hold,
        ..
    } = config.turns;
    let predicted_hold = predicted_hold.unwrap_or(PredictedHold {
        complete_ms: stop_ms,
        incomplete_ms: stop_ms,
    });
    let rules = [
        (
            (0.0..=1.0).contains(&speech_threshold),
            "the speech threshold is not between 0 and 1",
        ),
        (
            start_ms <= 10_000
                && stop_ms <= 60_000
                && predicted_hold.complete_ms <= 60_000
                && predicted_hold.incomplete_ms <= 60_000
                && pre_roll_ms <= 10_000
                && post_roll_ms <= 10_000,
            "a turn setting is out of range",
        ),
        (
            max_utterance_ms <= 600_000,
            "the longest utterance is longer than ten minutes",
        ),
        (
            u64::from(max_utterance_ms) >= 1000 + u64::from(pre_roll_ms) + 2 * u64::from(start_ms),
            "the longest utterance is too short for its own beginning",
        ),
        (
            (6_000..=510_000).contains(&config.bitrate_bps),
            "the bit rate is not one of Opus",
        ),
        (!config.time_limit.is_zero(), "the time limit is zero"),
        (
            !config.provider_timeout.is_zero(),
            "the provider timeout is zero",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, broken)) => Err(EngineError::Config(broken)),
        None => Ok(()),
    }
}

/// SplitMix64: spreads a seed that may be a small number over all bits.
fn scramble(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
