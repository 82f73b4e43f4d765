//! Speech or not, frame by frame.

use earshot::Detector;

/// Tells speech from other sounds. It remembers the sound before a frame, so each call has one of its own.
pub trait VoiceDetector: Send {
    /// The samples of a frame, at 16,000 Hz; always the same.
    fn frame_samples(&self) -> usize;

    /// The probability, 0 to 1, that somebody speaks in a frame, which follows those before it.
    fn score(&mut self, frame: &[i16]) -> f32;

    /// Forgets the sound before.
    fn reset(&mut self);
}

/// The detector `earshot`: frames of 16 ms.
pub struct Earshot(Box<Detector>);

impl Default for Earshot {
    fn default() -> Self {
        Self(Detector::default_boxed())
    }
}

impl std::fmt::Debug for Earshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Earshot").finish_non_exhaustive()
    }
}

impl VoiceDetector for Earshot {
    fn frame_samples(&self) -> usize {
        256
    }

    fn score(&mut self, frame: &[i16]) -> f32 {
        self.0.predict_i16(frame)
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}
