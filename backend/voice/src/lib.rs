//! The conversation engine: one call between a visitor and an AI character, as a state machine without input or
//! output of its own.
//!
//! RTP packets, provider results and the time go in through [`Engine::handle`]; what the caller must do comes out of
//! [`Engine::poll`]; [`Engine::next_timeout`] says when to call again with [`Input::Timeout`]. The engine owns the
//! jitter buffer, Opus, voice activity, turn taking, barge-in, sentence splitting, the playout clock and the
//! transcript of what was really heard and said. It has no clock, no socket and no task: time is a
//! [`Duration`](std::time::Duration) since the session began, so a test can run an hour of conversation in a
//! millisecond.
//!
//! # What is not obvious from the types
//!
//! - Nothing inbound is paced: packets in order are decoded at once, and only a gap is waited for (20 to 120 ms, as
//!   jitter was measured). When packets stop, the clock ends the utterance.
//! - A pause in an utterance may be asked about: what was said up to it, and whether that was all. The first answer is used if the
//!   visitor does not go on, the second makes the hold of this pause shorter or longer.
//! - Muting ends a running utterance at once. While muted, packets are counted and thrown away.
//! - Speech goes out as one frame each 20 ms of call time. In silence a constant 3-byte frame goes out instead: five
//!   when the path comes up, one after each talk spurt or barge-in, and one each 400 ms. It never delays speech.
//! - A line that clients were told of and that is withdrawn (an interim transcript without words in the end, a
//!   sentence broken off before its first word) is told once more, final and with empty text, and is not in the
//!   transcript.
//! - A visitor who goes on before the reply is audible takes the question back: the reply is cancelled and asked for
//!   again when the visitor is done. One who speaks over an audible reply interrupts it, if barge-in is on.
//! - A failed provider is reported, what came before is played, and one apology follows. It never apologises for
//!   itself.
//!
//! The splitter of sentences, its abbreviations and the resampler are of use beside a call, too: [`Splitter`], [`ends_with_abbreviation`],
//! [`Resampler`].
//!
//! Every transcription, reply and sentence that is asked for has an id. A late answer to a cancelled question carries an id that is not
//! current any more and is dropped by comparison.

mod engine;
mod inbound;
mod interface;
mod outbound;
mod stats;
mod transcript;

pub use engine::{Engine, EngineError};
pub use inbound::detector::{Earshot, VoiceDetector};
pub use interface::{
    AgentState, EndReason, EngineConfig, Event, FailedProvider, Input, Line, LineId, Originator,
    OutgoingFrame, Output, PauseId, PredictedHold, ReplyId, RtpPacket, SentenceId, TranscriptionId,
    TurnSettings, UtteranceStage,
};
pub use outbound::{
    resample::{Resampler, UnsupportedRate},
    sentences::{Splitter, ends_with_abbreviation, never_ends_sentence},
};
pub use stats::Stats;
