//! The words of one part of an utterance, looked at once more where they may be wrong: what nobody said, and what was left out.
//!
//! Whisper was made for one speaker without long pauses. It may end with what was said before a pause; there are fewer words then than the time
//! in which somebody speaks lets expect, and both sides of the longest pause are heard by themselves.

use colloquy_audio::pauses::joined;
use colloquy_inference::{
    InferenceError,
    silero::{FRAME, Listener, Silero},
    whisper::{Transcript, Whisper},
};

use super::{super::pool::Wanted, SAMPLE_RATE};

/// From here on a transcript is looked at once more: it has few words, or the model doubts that somebody spoke.
const DOUBTFUL_WORDS: usize = 2;
const DOUBTFUL_NO_SPEECH: f32 = 0.3;

/// The probability from which on a frame is speech, and the frames of the shortest word: about 100 ms.
const SPEECH: f32 = 0.5;
const SPOKEN_FRAMES: usize = 3;

/// Fewer tokens than this in a second of speech are few. Human recordings have 3.2 to 5 of them here, and 2.7 at most where Whisper left something out.
const FEW_TOKENS_A_SECOND: f64 = 3.0;
/// Speech from which on they are counted, and the pause that it is cut in, in frames: 0.8 and 0.2 s.
const COUNTED_FRAMES: usize = 25;
const PAUSE_FRAMES: usize = 6;
/// How often a part is cut in two: no sound is heard more than three times, whatever is in it.
const CUTS: u32 = 2;

/// What hears.
pub(super) struct Hearing<'a> {
    pub(super) whisper: &'a Whisper,
    /// Tells whether somebody speaks, where the words alone do not tell.
    pub(super) activity: Option<&'a Silero>,
    pub(super) language: &'a str,
    pub(super) expected: &'a str,
    pub(super) wanted: &'a Wanted,
}

impl Hearing<'_> {
    /// The words: none where nobody spoke.
    pub(super) fn words(&self, samples: &[f32]) -> Result<String, InferenceError> {
        Ok(words(self, samples, CUTS)?.text)
    }
}

/// What is asked of the models.
trait Ears {
    fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError>;

    /// For each frame, whether somebody speaks; `None` where no model tells.
    fn spoken(&self, samples: &[f32]) -> Result<Option<Vec<bool>>, InferenceError>;
}

impl Ears for Hearing<'_> {
    fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
        let is_wanted = || self.wanted.is_wanted();
        let (language, expected) = (Some(self.language), self.expected);
        self.whisper
            .transcribe_expecting(samples, language, expected, &is_wanted)
    }

    fn spoken(&self, samples: &[f32]) -> Result<Option<Vec<bool>>, InferenceError> {
        let Some(activity) = self.activity else {
            return Ok(None);
        };
        let mut listener = Listener::default();
        let frames = samples.as_chunks::<FRAME>().0.iter();
        let spoken = frames.map(|frame| Ok(activity.hear(&mut listener, frame)? > SPEECH));
        spoken.collect::<Result<_, _>>().map(Some)
    }
}

/// What was heard.
#[derive(Debug, Default)]
struct Words {
    text: String,
    tokens: usize,
}

/// The words of a sound, which is cut in two so often at most.
fn words(ears: &impl Ears, samples: &[f32], cuts: u32) -> Result<Words, InferenceError> {
    let transcript = ears.transcript(samples)?;
    if !transcript.is_speech() {
        return Ok(Words::default());
    }
    let is_doubtful = is_doubtful(&transcript);
    let whole = Words {
        tokens: transcript.probabilities.len(),
        text: transcript.text,
    };
    if !is_doubtful && !whole.are_few(samples.len().div_ceil(FRAME)) {
        return Ok(whole);
    }
    let Some(spoken) = ears.spoken(samples)? else {
        return Ok(whole);
    };
    let frames = spoken.iter().filter(|spoken| **spoken).count();
    if is_doubtful && frames < SPOKEN_FRAMES {
        return Ok(Words::default());
    }
    let pause = longest_pause(&spoken).filter(|_| cuts > 0 && whole.are_few(frames));
    let Some(pause) = pause else {
        return Ok(whole);
    };
    let (before, after) = samples.split_at(pause * FRAME);
    let before = words(ears, before, cuts - 1)?;
    let after = words(ears, after, cuts - 1)?;
    let both = Words {
        tokens: before.tokens + after.tokens,
        text: joined(&[before.text, after.text]),
    };
    Ok(match both.tokens > whole.tokens {
        true => both,
        false => whole,
    })
}

impl Words {
    /// Whether they are few for so many frames of speech.
    fn are_few(&self, frames: usize) -> bool {
        let seconds = (frames * FRAME) as f64 / SAMPLE_RATE as f64;
        frames >= COUNTED_FRAMES && (self.tokens as f64) < FEW_TOKENS_A_SECOND * seconds
    }
}

/// Whether a transcript may be of a sound in which nobody speaks: what is invented is short.
fn is_doubtful(transcript: &Transcript) -> bool {
    transcript.no_speech > DOUBTFUL_NO_SPEECH
        || transcript.text.split_whitespace().count() <= DOUBTFUL_WORDS
}

/// The frame in the middle of the longest pause between speech, if one is long enough.
fn longest_pause(spoken: &[bool]) -> Option<usize> {
    let mut ends = spoken.iter().enumerate().filter(|(_, spoken)| **spoken);
    let (mut last, _) = ends.next()?;
    let mut longest = 0..0;
    for (frame, _) in ends {
        if frame - last > longest.len() {
            longest = last + 1..frame;
        }
        last = frame;
    }
    (longest.len() >= PAUSE_FRAMES).then(|| longest.start + longest.len() / 2)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Hears so many words, of whatever sound, in which somebody speaks in eight frames and is silent in the next eight.
    struct Deaf {
        words: fn(usize) -> usize,
        heard: Cell<usize>,
    }

    impl Ears for Deaf {
        fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
            self.heard.set(self.heard.get() + samples.len());
            let words = (self.words)(samples.len());
            Ok(Transcript {
                text: ["word"].repeat(words).join(" "),
                probabilities: vec![0.9; words],
                no_speech: 0.0,
                compression: 1.0,
                is_cut: false,
            })
        }

        fn spoken(&self, samples: &[f32]) -> Result<Option<Vec<bool>>, InferenceError> {
            let frames = 0..samples.len() / FRAME;
            Ok(Some(frames.map(|frame| frame % 16 < 8).collect()))
        }
    }

    fn heard(words_of: fn(usize) -> usize, samples: &[f32]) -> (usize, usize) {
        let ears = Deaf {
            words: words_of,
            heard: Cell::default(),
        };
        let found = words(&ears, samples, CUTS).unwrap();
        assert_eq!(found.text.split_whitespace().count(), found.tokens);
        (found.tokens, ears.heard.get())
    }

    #[test]
    fn no_sound_is_heard_more_than_three_times() {
        let sound = vec![0.1; 30 * SAMPLE_RATE];
        // One word in whatever is heard: what is long enough is cut again, and together the parts have more.
        let (tokens, samples) = heard(|_| 1, &sound);
        assert_eq!(tokens, 3);
        assert!(
            (2 * sound.len()..=3 * sound.len()).contains(&samples),
            "{samples}"
        );
        // More in the whole than in its parts: those are heard, and do not count.
        let more_in_all = |samples| if samples == 30 * SAMPLE_RATE { 9 } else { 1 };
        let (tokens, samples) = heard(more_in_all, &sound);
        assert!(
            tokens == 9 && samples <= 3 * sound.len(),
            "{tokens} {samples}"
        );
        // As many as are said.
        let enough = |samples| 4 * samples / SAMPLE_RATE;
        assert_eq!(heard(enough, &sound), (120, sound.len()));
    }

    #[test]
    fn words_are_few_where_more_can_be_said() {
        let words = |tokens| Words {
            text: String::new(),
            tokens,
        };
        // Two seconds of speech.
        assert!(words(0).are_few(63) && words(6).are_few(63) && !words(7).are_few(63));
        assert!(!words(0).are_few(COUNTED_FRAMES - 1));
    }

    #[test]
    fn the_longest_pause_is_between_words() {
        let frames = |runs: &[(bool, usize)]| -> Vec<bool> {
            let runs = runs.iter();
            runs.flat_map(|(spoken, frames)| vec![*spoken; *frames])
                .collect()
        };
        let (speech, pause) = (true, false);
        let sound = frames(&[
            (pause, 40),
            (speech, 9),
            (pause, 8),
            (speech, 2),
            (pause, 60),
        ]);
        assert_eq!(longest_pause(&sound), Some(40 + 9 + 4));
        let sound = frames(&[
            (speech, 5),
            (pause, 7),
            (speech, 1),
            (pause, 12),
            (speech, 3),
        ]);
        assert_eq!(longest_pause(&sound), Some(5 + 7 + 1 + 6));
        for without in [
            frames(&[(speech, 50)]),
            frames(&[(pause, 50)]),
            frames(&[(speech, 9), (pause, PAUSE_FRAMES - 1), (speech, 9)]),
            Vec::new(),
        ] {
            assert_eq!(longest_pause(&without), None);
        }
    }
}
