//! What goes into the engine and what comes out of it.

use std::time::Duration;

use bytes::Bytes;

/// Identifies a question for the words of an utterance, within the session. An utterance may be asked for several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TranscriptionId(pub u64);

/// Identifies a pause of the visitor, within the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PauseId(pub u64);

/// Identifies a reply of the character within the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyId(pub u64);

/// Identifies a sentence that is to be spoken, within the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SentenceId(pub u64);

/// Identifies a line of the transcript within the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u64);

/// An Opus packet as it came from the network, in any order and possibly twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpPacket {
    /// The RTP sequence number.
    pub sequence: u16,
    /// The RTP timestamp, in units of 1/48,000 s.
    pub timestamp: u32,
    /// The Opus payload; empty or of one or two bytes for DTX.
    pub payload: Bytes,
}

/// An Opus packet to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingFrame {
    /// The RTP sequence number.
    pub sequence: u16,
    /// The RTP timestamp, in units of 1/48,000 s.
    pub timestamp: u32,
    /// Whether the packet starts a talk spurt.
    pub marker: bool,
    /// The Opus payload: one frame of 20 ms.
    pub payload: Bytes,
}

/// When a turn begins and ends.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSettings {
    /// Voice probability from 0 to 1 above which a frame counts as speech.
    pub speech_threshold: f32,
    /// Speech shorter than this starts no turn and interrupts nobody.
    pub start_ms: u32,
    /// Silence after speech that ends the visitor's turn ("voice-activity hold").
    pub stop_ms: u32,
    /// Utterances with less speech than this are dropped without being transcribed.
    pub min_speech_ms: u32,
    /// Audio kept from before the detected start, so that the first sound is not cut.
    pub pre_roll_ms: u32,
    /// Audio kept from after the last speech, so that the last sound is not cut. The rest of the hold is not handed on:
    /// it holds no words, and recognizers that normalize over the utterance hear worse with it.
    pub post_roll_ms: u32,
    /// The longest utterance; after it the turn is ended by force.
    pub max_utterance_ms: u32,
    /// How often a running utterance is transcribed for interim results; `None` for final results only.
    pub interim_ms: Option<u32>,
    /// Silence within an utterance that counts as a pause; `None`: none does.
    pub pause_ms: Option<u32>,
    /// Whether an utterance is transcribed in its pauses: if it ends there, its words are there when the hold is over.
    pub early_transcripts: bool,
    /// Whether it is asked in each pause if the turn is over, and how long the pause may then last; `None` for `stop_ms` always.
    pub predicted_hold: Option<PredictedHold>,
    /// Whether speech of the visitor interrupts the character.
    pub barge_in: bool,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            speech_threshold: 0.5,
            start_ms: 96,
            stop_ms: 500,
            min_speech_ms: 160,
            pre_roll_ms: 300,
            post_roll_ms: 100,
            max_utterance_ms: 60_000,
            interim_ms: None,
            pause_ms: None,
            early_transcripts: false,
            predicted_hold: None,
            barge_in: true,
        }
    }
}

/// How long a pause may last, as soon as it is known whether the turn seems to be over. Until then, and without an answer, it is
/// [`TurnSettings::stop_ms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictedHold {
    /// When it seems to be over.
    pub complete_ms: u32,
    /// When the visitor seems to go on.
    pub incomplete_ms: u32,
}

/// Everything the engine needs to know about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Turn taking.
    pub turns: TurnSettings,
    /// What the character says first, one of them chosen by `seed`; empty to wait for the visitor.
    pub greetings: Vec<String>,
    /// What the character says when it was interrupted by a sound without words.
    pub interruption_message: Option<String>,
    /// What the character says when a provider failed.
    pub apology: String,
    /// What the character says while the model lets the visitor wait; `None` for nothing.
    pub patience_message: Option<String>,
    /// How long the visitor waits for the first words of a reply before that is said.
    pub patience_after: Duration,
    /// The longest the call may last, counted from [`Input::Connected`].
    pub time_limit: Duration,
    /// How long a provider may take to its first result, and between results, before it counts as failed.
    pub provider_timeout: Duration,
    /// Opus bit rate of the character's voice, in bits per second.
    pub bitrate_bps: i32,
    /// Chooses the greeting and the first RTP sequence number and timestamp.
    pub seed: u64,
}

/// What happens to the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The media path is up. The first one starts the clock of the call and the greeting; later ones mean that a lost
    /// path is back.
    Connected,
    /// The media path is lost and may come back.
    Disconnected,
    /// A packet came.
    Packet(RtpPacket),
    /// The words of an utterance.
    Transcribed {
        /// That of [`Output::Transcribe`].
        transcription: TranscriptionId,
        /// The words; empty when there were none.
        text: String,
    },
    /// The transcriber failed, after its own retries.
    TranscriptionFailed {
        /// That of [`Output::Transcribe`].
        transcription: TranscriptionId,
    },
    /// Whether the turn seems to be over.
    EndOfTurnPredicted {
        /// That of [`Output::PredictEndOfTurn`].
        pause: PauseId,
        /// Whether it does.
        is_complete: bool,
    },
    /// A piece of a reply.
    ReplyText {
        /// The reply of [`Output::Reply`].
        reply: ReplyId,
        /// The piece; sentences are cut by the engine.
        delta: String,
    },
    /// The pieces of a reply so far were a thought of the model: what was not heard of them is not said, and no line keeps what was.
    ReplyRetracted {
        /// The reply of [`Output::Reply`].
        reply: ReplyId,
    },
    /// A reply is complete.
    ReplyEnded {
        /// The reply of [`Output::Reply`].
        reply: ReplyId,
    },
    /// The model failed, after its own retries. What came before is kept.
    ReplyFailed {
        /// The reply of [`Output::Reply`].
        reply: ReplyId,
    },
    /// A piece of speech.
    Speech {
        /// The sentence of [`Output::Speak`].
        sentence: SentenceId,
        /// Mono samples.
        samples: Vec<i16>,
        /// Their rate, the same for all pieces of a sentence.
        sample_rate_hz: u32,
    },
    /// The speech of a sentence is complete.
    SpeechEnded {
        /// The sentence of [`Output::Speak`].
        sentence: SentenceId,
    },
    /// The synthesizer failed, after its own retries.
    SpeechFailed {
        /// The sentence of [`Output::Speak`].
        sentence: SentenceId,
    },
    /// The visitor typed a turn.
    TypedTurn {
        /// The words.
        text: String,
    },
    /// The visitor muted or unmuted the microphone.
    Mute(bool),
    /// The visitor, or the backend on their behalf, ends the call.
    HangUp,
    /// The time of [`Engine::next_timeout`](crate::Engine::next_timeout) has come.
    Timeout,
}

/// What the caller must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Transcribe this audio and answer with [`Input::Transcribed`] or [`Input::TranscriptionFailed`].
    Transcribe {
        /// Identifies the question.
        transcription: TranscriptionId,
        /// The utterance from its start: mono samples at 16,000 Hz.
        samples: Vec<i16>,
        /// How far the utterance is.
        stage: UtteranceStage,
    },
    /// The answer to this question is not wanted any more.
    CancelTranscription(TranscriptionId),
    /// Say whether the turn seems to be over, with [`Input::EndOfTurnPredicted`]. No answer is one, too.
    PredictEndOfTurn {
        /// Identifies the question.
        pause: PauseId,
        /// The end of the utterance, eight seconds of it at most: mono samples at 16,000 Hz.
        samples: Vec<i16>,
    },
    /// The answer to this question is not wanted any more.
    CancelPrediction(PauseId),
    /// Ask the model for a reply to the transcript as it stands ([`Engine::transcript`](crate::Engine::transcript)).
    Reply(ReplyId),
    /// This reply is not wanted any more.
    CancelReply(ReplyId),
    /// Make speech of this sentence and answer with [`Input::Speech`] pieces.
    Speak {
        /// The sentence.
        sentence: SentenceId,
        /// Its words.
        text: String,
    },
    /// This speech is not wanted any more.
    CancelSpeech(SentenceId),
    /// Send this frame now.
    Send(OutgoingFrame),
    /// Tell the client.
    Event(Event),
    /// The call is over; nothing follows.
    End(EndReason),
}

/// How far an utterance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UtteranceStage {
    /// The visitor speaks; the words are shown meanwhile.
    Running,
    /// The visitor is silent, and may go on.
    Paused,
    /// It is over.
    Over,
}

/// What the client is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The character does something else now.
    Agent(AgentState),
    /// A line of the transcript is new or has changed.
    Transcript {
        /// The line as it is now.
        line: Line,
        /// Whether it may still change.
        is_final: bool,
    },
    /// A provider failed; the call goes on.
    ProviderFailed(FailedProvider),
}

/// Which outside service failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedProvider {
    /// The transcriber.
    Transcriber,
    /// The chat model.
    Model,
    /// The synthesizer.
    Synthesizer,
}

/// What the character is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// It waits for the visitor or hears the visitor speak.
    Listening,
    /// The visitor's turn is over and the reply is not audible yet.
    Thinking,
    /// Its voice is audible.
    Speaking,
}

/// A line of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Identifies the line.
    pub id: LineId,
    /// Who said it.
    pub originator: Originator,
    /// The words; those of the character only as far as they were played.
    pub text: String,
    /// When it began, since the call's media connected.
    pub at: Duration,
    /// Whether the visitor spoke over it, so that it is shorter than the model meant it.
    pub interrupted: bool,
    /// Whether it is an apology or a word of patience: it was said, but it is no part of the conversation that a model replies to.
    pub is_aside: bool,
}

/// Who said a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Originator {
    /// The visitor.
    User,
    /// The character.
    Bot,
}

/// Why a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// [`Input::HangUp`].
    HangUp,
    /// The time limit.
    TimeLimit,
}
