//! Finds utterances in the visitor's audio: when one begins, when it is over, and its samples. All times are audio
//! times; the engine hands on silence when the clock says that nothing more comes.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Sink, detector::VoiceDetector, duration_of, samples_of_ms};
use crate::interface::TurnSettings;

/// A frame without a sample above this (-66 dBFS) has nothing in it but the rounding of the codec.
const AUDIBLE: u16 = 16;
/// After this much silence the detector's memory of the sound before it misleads more than it helps.
const RESET_SAMPLES: usize = samples_of_ms(1000);

/// What is transcribed before the end is the whole utterance, so a long one is at most as often as it grows by this part.
const INTERIM_SHARE: usize = 8;

/// What happened in the audio.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// An utterance began this long ago.
    Started { ago: Duration },
    /// It is time for an interim transcript of the running utterance.
    InterimDue,
    /// The visitor is silent; if that lasts, this was the utterance. It has grown if it is longer by an eighth than when it was
    /// last told, so that whoever hears all of it each time does not do so too often.
    Paused { samples: Vec<i16>, has_grown: bool },
    /// The visitor goes on after [`Self::Paused`].
    Resumed,
    /// The utterance is over.
    Ended { samples: Vec<i16> },
    /// The utterance is over and was too short to be one.
    Dropped,
}

pub(crate) struct Endpointer {
    detector: Box<dyn VoiceDetector>,
    /// What the detector judges at once.
    frame_samples: usize,
    threshold: f32,
    start_samples: usize,
    /// The silence that ends an utterance, and that which ends the running one: a pause may have one of its own.
    stop_samples: usize,
    hold_samples: usize,
    min_speech_samples: usize,
    pre_roll_samples: usize,
    post_roll_samples: usize,
    max_samples: usize,
    interim_samples: Option<usize>,
    pause_samples: Option<usize>,
    /// Samples that do not fill a frame yet.
    partial: Vec<i16>,
    /// How many of them were heard and not filled in.
    partial_heard: usize,
    /// Silence in a row, in samples.
    silence: usize,
    phase: Phase,
    /// The running utterance, or when idle what may become its beginning.
    samples: VecDeque<i16>,
    changes: VecDeque<Change>,
}

#[derive(Debug)]
enum Phase {
    Idle {
        /// Speech of late: grows with each speech frame and shrinks with each other one, so that one doubtful frame
        /// in a word does not start the count anew, and scattered clicks never add up.
        speech: usize,
        /// Samples since `speech` left zero.
        since: usize,
    },
    Active {
        /// Speech in the utterance.
        speech: usize,
        /// Samples since its last speech frame.
        quiet: usize,
        /// Whether these were told as a pause.
        is_paused: bool,
        since_interim: usize,
    },
}

const IDLE: Phase = Phase::Idle {
    speech: 0,
    since: 0,
};

impl Endpointer {
    pub(crate) fn new(turns: &TurnSettings, detector: Box<dyn VoiceDetector>) -> Self {
        let frame_samples = detector.frame_samples().max(1);
        let stop_samples = samples_of_ms(turns.stop_ms).max(1);
        Self {
            detector,
            frame_samples,
            threshold: turns.speech_threshold,
            start_samples: samples_of_ms(turns.start_ms).max(1),
            stop_samples,
            hold_samples: stop_samples,
            min_speech_samples: samples_of_ms(turns.min_speech_ms),
            pre_roll_samples: samples_of_ms(turns.pre_roll_ms),
            post_roll_samples: samples_of_ms(turns.post_roll_ms),
            max_samples: samples_of_ms(turns.max_utterance_ms),
            interim_samples: turns
                .interim_ms
                .map(|ms| samples_of_ms(ms).max(frame_samples)),
            pause_samples: turns
                .pause_ms
                .map(|ms| samples_of_ms(ms).max(frame_samples)),
            partial: Vec::with_capacity(frame_samples),
            partial_heard: 0,
            silence: 0,
            phase: IDLE,
            samples: VecDeque::new(),
            changes: VecDeque::new(),
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The running utterance so far.
    pub(crate) fn utterance(&self) -> Vec<i16> {
        self.samples.iter().copied().collect()
    }

    /// How much speech the running utterance has, in samples.
    pub(crate) fn speech(&self) -> usize {
        match self.phase {
            Phase::Idle { .. } => 0,
            Phase::Active { speech, .. } => speech,
        }
    }

    /// How much more silence makes a pause of the running utterance, or its end; `None` when there is none.
    pub(crate) fn remaining_hold(&self) -> Option<usize> {
        match self.phase {
            Phase::Idle { .. } => None,
            // Whole frames, since only they are judged.
            Phase::Active {
                speech,
                quiet,
                is_paused,
                ..
            } => {
                let pause = self.pause_after(speech).filter(|_| !is_paused);
                let wanted = pause.unwrap_or(self.hold_samples);
                let hold = wanted.saturating_sub(quiet).max(1);
                Some(hold.next_multiple_of(self.frame_samples))
            }
        }
    }

    /// How much silence is a pause of an utterance that has so much speech; `None` when none is told.
    fn pause_after(&self, speech: usize) -> Option<usize> {
        self.pause_samples
            .filter(|pause| *pause < self.hold_samples && speech >= self.min_speech_samples)
    }

    /// The silence that ends the utterance if the visitor does not go on from the pause that it is in.
    pub(crate) fn hold_pause(&mut self, ms: u32) {
        if matches!(
            self.phase,
            Phase::Active {
                is_paused: true,
                ..
            }
        ) {
            self.hold_samples = samples_of_ms(ms).max(1);
        }
    }

    /// Ends the running utterance now and forgets what may have become one.
    pub(crate) fn end(&mut self) {
        self.partial.clear();
        self.partial_heard = 0;
        if let Phase::Active { speech, quiet, .. } = self.phase {
            self.finish(speech, quiet);
        }
        self.phase = IDLE;
        self.samples.clear();
    }

    fn judge(&mut self, is_speech: bool) {
        let frame = self.frame_samples;
        match &mut self.phase {
            Phase::Idle { speech, since } => {
                *speech = match is_speech {
                    true => *speech + frame,
                    false => speech.saturating_sub(frame),
                };
                *since = if *speech == 0 { 0 } else { *since + frame };
                let (speech, since) = (*speech, *since);
                let keep = self.pre_roll_samples + since;
                let surplus = self.samples.len().saturating_sub(keep);
                self.samples.drain(..surplus);
                if speech >= self.start_samples {
                    self.phase = Phase::Active {
                        speech,
                        quiet: 0,
                        is_paused: false,
                        since_interim: 0,
                    };
                    self.changes.push_back(Change::Started {
                        ago: duration_of(since),
                    });
                }
            }
            Phase::Active {
                speech,
                quiet,
                is_paused,
                since_interim,
            } => {
                if is_speech {
                    *speech += frame;
                    *quiet = 0;
                    if std::mem::take(is_paused) {
                        self.hold_samples = self.stop_samples;
                        self.changes.push_back(Change::Resumed);
                    }
                } else {
                    *quiet += frame;
                }
                *since_interim += frame;
                // Each question is for the whole utterance, however the visitor speaks and pauses.
                let has_grown = *since_interim >= self.samples.len() / INTERIM_SHARE;
                let interim_is_due = has_grown
                    && self
                        .interim_samples
                        .is_some_and(|every| *since_interim >= every);
                let (speech, quiet, was_paused) = (*speech, *quiet, *is_paused);
                if quiet >= self.hold_samples {
                    self.finish(speech, quiet);
                    self.phase = IDLE;
                } else if self.samples.len() >= self.max_samples {
                    self.finish(speech, quiet);
                    // The visitor still speaks: the next utterance begins without a gap.
                    self.phase = Phase::Active {
                        speech: 0,
                        quiet,
                        is_paused: false,
                        since_interim: 0,
                    };
                    self.changes.push_back(Change::Started {
                        ago: Duration::ZERO,
                    });
                } else if !was_paused
                    && self.pause_after(speech).is_some_and(|pause| quiet >= pause)
                {
                    self.told_pause(has_grown);
                } else if !was_paused && interim_is_due {
                    self.told_interim();
                }
            }
        }
    }

    fn told_pause(&mut self, has_grown: bool) {
        if let Phase::Active {
            is_paused,
            since_interim,
            ..
        } = &mut self.phase
        {
            *is_paused = true;
            if has_grown {
                *since_interim = 0;
            }
        }
        let samples = self.utterance();
        self.changes
            .push_back(Change::Paused { samples, has_grown });
    }

    fn told_interim(&mut self) {
        if let Phase::Active { since_interim, .. } = &mut self.phase {
            *since_interim = 0;
        }
        self.changes.push_back(Change::InterimDue);
    }

    /// Hands on the utterance, which had so much speech and has been quiet for so long.
    fn finish(&mut self, speech: usize, quiet: usize) {
        self.hold_samples = self.stop_samples;
        let mut samples = Vec::from(std::mem::take(&mut self.samples));
        let surplus = quiet.saturating_sub(self.post_roll_samples);
        samples.truncate(samples.len().saturating_sub(surplus));
        self.changes
            .push_back(match speech >= self.min_speech_samples {
                true => Change::Ended { samples },
                false => Change::Dropped,
            });
    }

    fn silent_frame(&mut self) {
        self.samples
            .extend(std::iter::repeat_n(0, self.frame_samples));
        self.judge(false);
    }

    /// Judges the partial frame, which is full now.
    fn full_frame(&mut self) {
        // A detector that knows no loudness may find speech in digital silence, which a browser sends while its
        // microphone is switched off.
        let audible = self
            .partial
            .iter()
            .any(|sample| sample.unsigned_abs() > AUDIBLE);
        let score = match audible && self.partial_heard * 2 >= self.frame_samples {
            true => self.detector.score(&self.partial),
            false => 0.0,
        };
        self.samples.extend(&self.partial);
        self.partial.clear();
        self.partial_heard = 0;
        self.judge(score > self.threshold);
    }
}

impl Sink for Endpointer {
    fn audio(&mut self, mut samples: &[i16]) {
        if self.silence >= RESET_SAMPLES {
            self.detector.reset();
        }
        self.silence = 0;
        while !samples.is_empty() {
            let wanted = self.frame_samples - self.partial.len();
            let (head, rest) = samples.split_at(wanted.min(samples.len()));
            self.partial.extend_from_slice(head);
            self.partial_heard += head.len();
            samples = rest;
            if self.partial.len() == self.frame_samples {
                self.full_frame();
            }
        }
    }

    fn silence(&mut self, mut samples: usize) {
        self.silence = self.silence.saturating_add(samples);
        if !self.partial.is_empty() {
            let padding = (self.frame_samples - self.partial.len()).min(samples);
            samples -= padding;
            self.partial.extend(std::iter::repeat_n(0, padding));
            if self.partial.len() == self.frame_samples {
                self.full_frame();
            }
        }
        while samples >= self.frame_samples {
            samples -= self.frame_samples;
            self.silent_frame();
        }
        self.partial.extend(std::iter::repeat_n(0, samples));
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
