//! The words of one part of an utterance, looked at once more where they may be wrong: what nobody said, and what was left out.
//!
//! Whisper was made for one speaker without long pauses. It may end with what was said before a pause; there are fewer words then than the time
//! in which somebody speaks lets expect, and both sides of the longest pause are heard by themselves. It may also miss nearly everything, or say
//! the last sentence twice, depending on the moment at which the sound begins: that sound is heard again, a little later.

use colloquy_audio::pauses::joined;
use colloquy_inference::{
    InferenceError,
    silero::{FRAME, Listener, Silero},
    whisper::{MAX_SECONDS, Transcript, Whisper},
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
/// How often a part is cut in two. With the whole sound, which may be heard again later, no sound is heard more than four times.
const CUTS: u32 = 2;
/// The silence before a sound that is heard again: 0.3 s.
const SHIFT_SAMPLES: usize = SAMPLE_RATE * 3 / 10;
/// The words of the shortest sentence whose repetition is doubted: people do say "no, no".
const DOUBTED_SENTENCE_WORDS: usize = 3;

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
        Ok(words_or_shifted(self, samples)?.text)
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

/// The words of a sound, which is heard again behind a moment of silence where there are few of them for the time in which somebody speaks, or
/// where they end with a sentence said twice.
fn words_or_shifted(ears: &impl Ears, samples: &[f32]) -> Result<Words, InferenceError> {
    let first = words(ears, samples, CUTS)?;
    let repeats = ends_with_repetition(&first.text);
    let has_few = first.are_few(samples.len().div_ceil(FRAME))
        && first.are_few(spoken_frames(ears, samples)?);
    let length = samples.len() + SHIFT_SAMPLES;
    if length > MAX_SECONDS * SAMPLE_RATE || !(repeats || has_few) {
        return Ok(first);
    }
    let mut shifted = vec![0.0; SHIFT_SAMPLES];
    shifted.extend_from_slice(samples);
    let again = words(ears, &shifted, 0)?;
    let is_better = match repeats {
        true => again.tokens > 0 && !ends_with_repetition(&again.text),
        false => again.tokens > first.tokens && !ends_with_repetition(&again.text),
    };
    Ok(if is_better { again } else { first })
}

/// The frames in which somebody speaks; none where no model tells.
fn spoken_frames(ears: &impl Ears, samples: &[f32]) -> Result<usize, InferenceError> {
    let spoken = ears.spoken(samples)?.unwrap_or_default();
    Ok(spoken.into_iter().filter(|spoken| *spoken).count())
}

/// True if the last sentence is the one before it once more.
fn ends_with_repetition(text: &str) -> bool {
    let words = |sentence: &str| -> Vec<String> {
        let words = sentence.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        let words = words.filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let sentences = text.split_inclusive(['.', '?', '!', '。', '？', '！']);
    let mut last = sentences.map(words).filter(|words| !words.is_empty()).rev();
    match (last.next(), last.next()) {
        (Some(last), Some(before)) => last.len() >= DOUBTED_SENTENCE_WORDS && last == before,
        _ => false,
    }
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

    /// Hears nearly nothing, or a sentence twice, of a sound that begins with speech, and all of it behind a moment of silence.
    struct Startled(&'static str);

    impl Ears for Startled {
        fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
            let text = match samples.first() {
                Some(0.0) => "I have been here before. We left at ten o'clock.",
                _ => self.0,
            };
            let words = text.split_whitespace().count();
            Ok(Transcript {
                text: text.to_owned(),
                probabilities: vec![0.9; words],
                no_speech: 0.0,
                compression: 1.0,
                is_cut: false,
            })
        }

        fn spoken(&self, samples: &[f32]) -> Result<Option<Vec<bool>>, InferenceError> {
            let frames = samples.as_chunks::<FRAME>().0.iter();
            Ok(Some(frames.map(|frame| frame[0] != 0.0).collect()))
        }
    }

    #[test]
    fn a_sound_of_few_words_or_a_repetition_is_heard_again_a_little_later() {
        let heard = |first: &'static str, seconds: usize| {
            let sound = vec![0.1; seconds * SAMPLE_RATE];
            words_or_shifted(&Startled(first), &sound).unwrap().text
        };
        let all = "I have been here before. We left at ten o'clock.";
        assert_eq!(heard("No.", 4), all);
        assert_eq!(
            heard("I have been here before. I have been here before.", 3),
            all
        );
        // Enough words, a short repetition, and a sound that leaves no room for silence stay as they are.
        let enough = "We came at nine. We left at ten, and saw nobody.";
        assert_eq!(heard(enough, 3), enough);
        let no = "No, no. No, no. We had to leave.";
        assert_eq!(heard(no, 2), no);
        assert_eq!(heard("No.", MAX_SECONDS), "No.");
    }

    #[test]
    fn a_repetition_is_the_last_sentence_said_twice() {
        for (text, repeats) in [
            ("See you tomorrow. See you tomorrow.", true),
            ("We met. See you tomorrow! see you, tomorrow", true),
            ("See you tomorrow. See you tomorrow. Bye.", false),
            ("No. No.", false),
            ("See you tomorrow.", false),
            ("", false),
        ] {
            assert_eq!(ends_with_repetition(text), repeats, "{text}");
        }
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
