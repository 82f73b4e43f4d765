//! The words of one part of an utterance, looked at once more where they may be wrong: what nobody said, and what was left out.
//!
//! Whisper was made for one speaker without long pauses. It may end with what was said before a pause; there are fewer words then than the time
//! in which somebody speaks lets expect, and both sides of the longest pause are heard by themselves. It may also miss nearly everything, or say
//! the last sentence twice, depending on the moment at which the sound begins: that sound is heard again, a little later. A sentence that is
//! there twice then, too, loses its repetition where there is too little speech to have said it twice. It stays where both sides of the longest
//! pause have it.
//!
//! A decoder that meets words said many times may say them for ever, and nothing that follows them. Such a text has more words than the speech
//! has time for, or was cut off: both sides of its longest pause are heard by themselves, too, then the sound behind a moment of silence, and
//! only the repetitions for which there is no time are dropped.
//!
//! Silero tells when somebody speaks, where it is in the models folder. A sound in which it finds no speech has no words, however sure Whisper is,
//! which makes whole sentences of noises that are shaped like speech. Elsewhere the detector of the engine tells, which may miss soft speech: no
//! words are dropped because it finds none.

use std::ops::Range;

use colloquy_audio::pauses::joined;
use colloquy_inference::{
    InferenceError,
    silero::{FRAME, Listener, Silero},
    whisper::{MAX_SECONDS, Transcript, Whisper},
};
use colloquy_voice::{Earshot, VoiceDetector as _};

use self::repetitions::{longest_run, without_repetition};
use super::{super::pool::Wanted, SAMPLE_RATE};

mod repetitions;

/// The probability from which on a frame is speech, and the frames of the shortest word: about 100 ms.
const SPEECH: f32 = 0.5;
const SPOKEN_FRAMES: usize = 3;
/// A frame without a sample above this is not speech, as in the engine: its detector knows no loudness.
const AUDIBLE: u16 = 16;

/// Fewer tokens than this in a second of speech are few. Human recordings have 3.2 to 5 of them here, and 2.7 at most where Whisper left something out.
const FEW_TOKENS_A_SECOND: f64 = 3.0;
/// More tokens than this in a second of speech were not all said: a sentence that the slowest of those recordings has once, at 3.2 a second,
/// has so many when it is written twice.
const MANY_TOKENS_A_SECOND: f64 = 6.4;
/// More words than this in a second of speech were not all said where they repeat themselves: nobody says "ha ha ha" faster.
const MANY_WORDS_A_SECOND: f64 = 5.0;
/// Speech from which on few of them are, and the pause that it is cut in, in frames: 0.8 and 0.2 s.
const COUNTED_FRAMES: usize = 25;
const PAUSE_FRAMES: usize = 6;
/// How often a part is cut in two. With the whole sound, which may be heard again later, and the two sides of a repetition, no sound is heard more
/// than five times.
const CUTS: u32 = 2;
/// The silence before a sound that is heard again: 0.3 s.
const SHIFT_SAMPLES: usize = SAMPLE_RATE * 3 / 10;

/// What hears.
pub(super) struct Hearing<'a> {
    pub(super) whisper: &'a Whisper,
    /// Tells whether somebody speaks, where the words alone do not tell; `None`: the detector of the engine does.
    pub(super) activity: Option<&'a Silero>,
    pub(super) language: &'a str,
    pub(super) expected: &'a str,
    pub(super) wanted: &'a Wanted,
}

impl Hearing<'_> {
    /// The words: none where nobody spoke.
    pub(super) fn words(&self, samples: &[f32]) -> Result<String, InferenceError> {
        Ok(words_or_shifted(self, samples)?.text)
    }
}

/// What is asked of the models.
trait Ears {
    fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError>;

    /// For each frame, whether somebody speaks.
    fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError>;

    /// True if words are dropped where nobody is found to speak.
    fn finds_soft_speech(&self) -> bool;
}

impl Ears for Hearing<'_> {
    fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
        let is_wanted = || self.wanted.is_wanted();
        let (language, expected) = (Some(self.language), self.expected);
        self.whisper
            .transcribe_expecting(samples, language, expected, &is_wanted)
    }

    fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError> {
        let Some(activity) = self.activity else {
            return Ok(spoken_by_engine(samples));
        };
        let mut listener = Listener::default();
        let frames = samples.as_chunks::<FRAME>().0.iter();
        let spoken = frames.map(|frame| Ok(activity.hear(&mut listener, frame)? > SPEECH));
        spoken.collect()
    }

    fn finds_soft_speech(&self) -> bool {
        self.activity.is_some()
    }
}

/// For each frame, whether the detector of the engine finds that somebody speaks.
fn spoken_by_engine(samples: &[f32]) -> Vec<bool> {
    let mut detector = Earshot::default();
    let part = detector.frame_samples();
    let frames = samples.as_chunks::<FRAME>().0.iter();
    let spoken = frames.map(|frame| {
        let frame = frame.map(|sample| (sample * 32_768.0) as i16);
        let is_audible = frame.iter().any(|sample| sample.unsigned_abs() > AUDIBLE);
        // Its own frames are shorter.
        let scores = frame.chunks(part).map(|part| detector.score(part));
        is_audible && scores.fold(0.0, f32::max) > SPEECH
    });
    spoken.collect()
}

/// What was heard.
#[derive(Debug, Default)]
struct Words {
    text: String,
    tokens: usize,
    /// True if the decoder did not stop repeating itself, so that words may be missing.
    is_loop: bool,
}

/// The words of a sound, which is heard again behind a moment of silence where there are few of them for the time in which somebody speaks, where
/// the decoder did not stop repeating itself, or where they end with a sentence said twice that the sides of the longest pause do not both have.
/// Where they repeat themselves then, too, or no silence fits in front, repetitions are dropped for which the time is too short.
fn words_or_shifted(ears: &impl Ears, samples: &[f32]) -> Result<Words, InferenceError> {
    let first = words(ears, samples, CUTS)?;
    let repeats = without_repetition(&first.text).is_some();
    let is_doubted = repeats || first.is_loop;
    let all = samples.len().div_ceil(FRAME);
    if !is_doubted && !first.are_few(all) {
        return Ok(first);
    }
    let spoken = ears.spoken(samples)?;
    let frames = count(&spoken);
    if !is_doubted && !first.are_few(frames) {
        return Ok(first);
    }
    if repeats && !first.is_loop && is_said_twice(ears, samples, &spoken)? {
        return Ok(first);
    }
    // All of the sound may be speech where none is found.
    let speech = if frames > 0 { frames } else { all };
    if samples.len() + SHIFT_SAMPLES <= MAX_SECONDS * SAMPLE_RATE {
        let mut shifted = vec![0.0; SHIFT_SAMPLES];
        shifted.extend_from_slice(samples);
        let again = words(ears, &shifted, 0)?.said_within(speech);
        let has_more = again.tokens > first.tokens;
        let has_enough = has_more || is_doubted && again.tokens > 0 && !again.are_few(speech);
        let repeats_again = again.is_loop || without_repetition(&again.text).is_some();
        if has_enough && !repeats_again {
            return Ok(again);
        }
    }
    Ok(first.said_within(speech))
}

/// The number of frames in which somebody speaks.
fn count(spoken: &[bool]) -> usize {
    spoken.iter().filter(|spoken| **spoken).count()
}

/// True if the sides of the longest pause, each heard by itself, end with a sentence said twice.
fn is_said_twice(
    ears: &impl Ears,
    samples: &[f32],
    spoken: &[bool],
) -> Result<bool, InferenceError> {
    let Some(pause) = longest_pause(spoken, PAUSE_FRAMES) else {
        return Ok(false);
    };
    let (before, after) = samples.split_at(pause * FRAME);
    let before = words(ears, before, 0)?;
    let after = words(ears, after, 0)?;
    // A side that repeats itself is no witness.
    let repeats = |words: &Words| without_repetition(&words.text).is_some();
    if repeats(&before) || repeats(&after) {
        return Ok(false);
    }
    let both = joined(&[before.text, after.text]);
    Ok(without_repetition(&both).is_some())
}

/// The words of a sound, which is cut in two so often at most.
fn words(ears: &impl Ears, samples: &[f32], cuts: u32) -> Result<Words, InferenceError> {
    let transcript = ears.transcript(samples)?;
    if !transcript.is_speech() {
        return Ok(Words::default());
    }
    let (repeats, is_cut) = (transcript.repeats(), transcript.is_cut);
    let mut whole = Words {
        tokens: transcript.probabilities.len(),
        text: transcript.text,
        is_loop: false,
    };
    let is_wanting = repeats || whole.are_few(samples.len().div_ceil(FRAME));
    if !is_wanting && !ears.finds_soft_speech() {
        return Ok(whole);
    }
    let spoken = ears.spoken(samples)?;
    let frames = count(&spoken);
    if frames < SPOKEN_FRAMES && ears.finds_soft_speech() {
        return Ok(Words::default());
    }
    if repeats {
        // Nobody says so many words in so little time, and sounds without speech make decoders repeat themselves.
        if frames < COUNTED_FRAMES {
            return Ok(Words::default());
        }
        whole = whole.without_loop(frames, is_cut);
    }
    // Any pause will do where the words behind it may be missing.
    let least = if whole.is_loop { 1 } else { PAUSE_FRAMES };
    let is_wanting = whole.is_loop || whole.are_few(frames);
    let pause = longest_pause(&spoken, least).filter(|_| cuts > 0 && is_wanting);
    let Some(pause) = pause else {
        return Ok(whole);
    };
    let (before, after) = samples.split_at(pause * FRAME);
    let before = words(ears, before, cuts - 1)?;
    let after = words(ears, after, cuts - 1)?;
    let both = Words {
        tokens: before.tokens + after.tokens,
        text: joined(&[before.text, after.text]),
        is_loop: before.is_loop || after.is_loop,
    };
    let least = if whole.is_loop { 0 } else { whole.tokens };
    Ok(match both.tokens > least {
        true => both,
        false => whole,
    })
}

impl Words {
    /// Whether they are few for so many frames of speech.
    fn are_few(&self, frames: usize) -> bool {
        frames >= COUNTED_FRAMES && (self.tokens as f64) < FEW_TOKENS_A_SECOND * seconds(frames)
    }

    /// True if they are more than can be said in so many frames of speech.
    fn are_many(&self, frames: usize) -> bool {
        self.tokens as f64 > MANY_TOKENS_A_SECOND * seconds(frames)
    }

    /// Drops repetitions of the last sentence for as long as there are more words than can be said in so many frames of speech.
    fn said_within(mut self, frames: usize) -> Self {
        while self.are_many(frames) {
            let Some(kept) = without_repetition(&self.text).map(str::len) else {
                break;
            };
            self.drop_text(kept..self.text.len());
        }
        self
    }

    /// Drops repetitions of the longest run of the same words for as long as there are more words than can be said in so many frames of speech.
    /// The decoder did not stop if there were, or if its text was cut off.
    fn without_loop(mut self, frames: usize, is_cut: bool) -> Self {
        self.is_loop = is_cut;
        while let Some(run) = longest_run(&self.text)
            && run.all_words as f64 > MANY_WORDS_A_SECOND * seconds(frames)
        {
            self.is_loop = true;
            self.drop_text(run.last);
        }
        self
    }

    /// Drops a part of the text, and its share of the tokens.
    fn drop_text(&mut self, part: Range<usize>) {
        let all = self.text.len();
        self.text.replace_range(part, "");
        self.tokens = (self.tokens * self.text.len()).div_ceil(all);
    }
}

fn seconds(frames: usize) -> f64 {
    (frames * FRAME) as f64 / SAMPLE_RATE as f64
}

/// The frame in the middle of the longest pause between speech, if one has so many frames.
fn longest_pause(spoken: &[bool], least: usize) -> Option<usize> {
    let mut ends = spoken.iter().enumerate().filter(|(_, spoken)| **spoken);
    let (mut last, _) = ends.next()?;
    let mut longest = 0..0;
    for (frame, _) in ends {
        if frame - last > longest.len() {
            longest = last + 1..frame;
        }
        last = frame;
    }
    (longest.len() >= least).then(|| longest.start + longest.len() / 2)
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
