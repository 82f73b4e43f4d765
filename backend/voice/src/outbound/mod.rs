//! From reply text to packets: sentences out of text ([`sentences`]), speech of a sentence at 48 kHz ([`speech`],
//! [`resample`]), Opus ([`encode`]), and when each packet goes out under which RTP time ([`pacer`]).

pub(crate) mod encode;
pub(crate) mod pacer;
pub(crate) mod resample;
pub(crate) mod sentences;
pub(crate) mod speech;

use std::time::Duration;

/// The rate of everything outbound, and of the RTP clock.
pub(crate) const RATE_HZ: u32 = 48_000;
/// Samples of an outgoing frame.
pub(crate) const FRAME_SAMPLES: usize = 960;
/// Duration of an outgoing frame.
pub(crate) const FRAME: Duration = Duration::from_millis(20);
