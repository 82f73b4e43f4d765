//! From packets to utterances: order and loss ([`jitter`]), Opus to samples ([`decode`]), speech or not
//! ([`detector`]), utterances and pauses ([`activity`]). What an utterance means for the conversation is the engine's business.

pub(crate) mod activity;
pub(crate) mod decode;
pub(crate) mod detector;
pub(crate) mod jitter;

/// The rate of everything inbound. libopus decodes at it directly and the voice detector wants it.
pub(crate) const RATE_HZ: usize = 16_000;

/// Samples in so many milliseconds.
pub(crate) const fn samples_of_ms(ms: u32) -> usize {
    ms as usize * (RATE_HZ / 1000)
}

/// How long so many samples last.
pub(crate) fn duration_of(samples: usize) -> std::time::Duration {
    std::time::Duration::from_micros(samples as u64 * 1_000_000 / RATE_HZ as u64)
}

/// Takes the visitor's audio in order and without holes.
pub(crate) trait Sink {
    /// Decoded samples.
    fn audio(&mut self, samples: &[i16]);
    /// So many samples of silence: DTX, or a loss too long to conceal.
    fn silence(&mut self, samples: usize);
}
