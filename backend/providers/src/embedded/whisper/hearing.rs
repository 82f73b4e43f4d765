//! The words of one part of an utterance, looked at once more where they may be wrong: what nobody said, and what was left out.
//!
//! Whisper was made for one speaker without long pauses. It may end with what was said before a pause; there are fewer words then than the time
//! in which somebody speaks lets expect, and both sides of the longest pause are heard by themselves. It may also miss nearly everything, or say
//! the last sentence twice, depending on the moment at which the sound begins: that sound is heard again, a little later. A sentence that is
//! there twice then, too, loses its repetition where there is too little speech to have said it twice.
//!
//! Silero tells when somebody speaks, where it is in the models folder. Elsewhere the detector of the engine does, which may miss soft speech:
//! no words are dropped because it finds none.

use colloquy_audio::pauses::joined;
use colloquy_inference::{
    InferenceError,
    silero::{FRAME, Listener, Silero},
    whisper::{MAX_SECONDS, Transcript, Whisper},
};
use colloquy_voice::{Earshot, VoiceDetector as _};

use super::{super::pool::Wanted, SAMPLE_RATE};

/// From here on a transcript is looked at once more: it has few words, or the model doubts that somebody spoke.
const DOUBTFUL_WORDS: usize = 2;
const DOUBTFUL_NO_SPEECH: f32 = 0.3;

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
/// Speech from which on few of them are, and the pause that it is cut in, in frames: 0.8 and 0.2 s.
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
}

/// The words of a sound, which is heard again behind a moment of silence where there are few of them for the time in which somebody speaks, or
/// where they end with a sentence said twice. Where they do then, too, or no silence fits in front, repetitions are dropped for which the time
/// is too short.
fn words_or_shifted(ears: &impl Ears, samples: &[f32]) -> Result<Words, InferenceError> {
    let first = words(ears, samples, CUTS)?;
    let repeats = without_repetition(&first.text).is_some();
    let all = samples.len().div_ceil(FRAME);
    if !repeats && !first.are_few(all) {
        return Ok(first);
    }
    let spoken = spoken_frames(ears, samples)?;
    if !repeats && !first.are_few(spoken) {
        return Ok(first);
    }
    // All of the sound may be speech where none is found.
    let speech = if spoken > 0 { spoken } else { all };
    if samples.len() + SHIFT_SAMPLES <= MAX_SECONDS * SAMPLE_RATE {
        let mut shifted = vec![0.0; SHIFT_SAMPLES];
        shifted.extend_from_slice(samples);
        let again = words(ears, &shifted, 0)?.said_within(speech);
        let has_enough = match repeats {
            true => again.tokens > 0,
            false => again.tokens > first.tokens,
        };
        if has_enough && without_repetition(&again.text).is_none() {
            return Ok(again);
        }
    }
    Ok(first.said_within(speech))
}

/// The number of frames in which somebody speaks.
fn spoken_frames(ears: &impl Ears, samples: &[f32]) -> Result<usize, InferenceError> {
    let spoken = ears.spoken(samples)?;
    Ok(spoken.into_iter().filter(|spoken| *spoken).count())
}

/// Returns the text without its last sentence if that is the one before it once more.
fn without_repetition(text: &str) -> Option<&str> {
    let words = |sentence: &str| -> Vec<String> {
        let words = sentence.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        let words = words.filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let sentences = text.split_inclusive(['.', '?', '!', '。', '？', '！']);
    let mut start = text.len();
    let backwards = sentences.rev().map(|sentence| {
        start -= sentence.len();
        (start, words(sentence))
    });
    let mut said = backwards.filter(|(_, words)| !words.is_empty());
    let ((start, last), (_, before)) = (said.next()?, said.next()?);
    let repeats = last.len() >= DOUBTED_SENTENCE_WORDS && last == before;
    repeats.then(|| text[..start].trim_end())
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
    let spoken = ears.spoken(samples)?;
    let frames = spoken.iter().filter(|spoken| **spoken).count();
    if is_doubtful && frames < SPOKEN_FRAMES && ears.finds_soft_speech() {
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
            self.tokens = (self.tokens * kept).div_ceil(self.text.len());
            self.text.truncate(kept);
        }
        self
    }
}

fn seconds(frames: usize) -> f64 {
    (frames * FRAME) as f64 / SAMPLE_RATE as f64
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

        fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError> {
            let frames = 0..samples.len() / FRAME;
            Ok(frames.map(|frame| frame % 16 < 8).collect())
        }

        fn finds_soft_speech(&self) -> bool {
            true
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

    /// Hears nearly nothing, or a sentence twice, of a sound that begins with speech, and something else behind a moment of silence.
    struct Startled {
        first: &'static str,
        shifted: &'static str,
    }

    impl Ears for Startled {
        fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
            let text = match samples.first() {
                Some(0.0) => self.shifted,
                _ => self.first,
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

        fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError> {
            let frames = samples.as_chunks::<FRAME>().0.iter();
            Ok(frames.map(|frame| frame[0] != 0.0).collect())
        }

        fn finds_soft_speech(&self) -> bool {
            true
        }
    }

    /// Hears a sound so, and one that begins with a moment of silence otherwise; there is no model of voice activity.
    struct Unaided {
        first: &'static str,
        shifted: &'static str,
    }

    impl Ears for Unaided {
        fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
            let (first, shifted) = match samples.starts_with(&[0.0; SHIFT_SAMPLES]) {
                true => (self.shifted, self.shifted),
                false => (self.first, self.first),
            };
            Startled { first, shifted }.transcript(samples)
        }

        fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError> {
            Ok(spoken_by_engine(samples))
        }

        fn finds_soft_speech(&self) -> bool {
            false
        }
    }

    /// "Go forward ten meters", said three times.
    fn speech() -> Vec<f32> {
        let bytes = include_bytes!("../../../../../tests/recordings/goforward.raw");
        let samples = bytes.as_chunks::<2>().0.iter();
        let samples = samples.map(|bytes| f32::from(i16::from_le_bytes(*bytes)) / 32_768.0);
        samples.collect::<Vec<_>>().repeat(3)
    }

    #[test]
    fn a_sound_is_heard_again_without_a_model_of_voice_activity() {
        let all = "Go forward ten meters. Go forward ten meters, I said.";
        let heard = |first: &'static str, sound: &[f32]| {
            let ears = Unaided {
                first,
                shifted: all,
            };
            words_or_shifted(&ears, sound).unwrap().text
        };
        let speech = speech();
        assert_eq!(heard("No.", &speech), all);
        assert_eq!(
            heard("Go forward now. Go forward now.", &speech),
            all,
            "a repetition"
        );
        // A short word stays, also where nobody is found to speak.
        let quiet = vec![0.000_2; 4 * SAMPLE_RATE];
        assert_eq!(heard("No.", &quiet), "No.");
    }

    #[test]
    fn the_engine_tells_speech_from_silence_in_frames() {
        let speech = speech();
        let spoken = spoken_by_engine(&speech);
        assert_eq!(spoken.len(), speech.len() / FRAME);
        let frames = spoken.iter().filter(|spoken| **spoken).count();
        assert!(frames >= COUNTED_FRAMES, "{frames}");
        let quiet = vec![0.000_2; 4 * SAMPLE_RATE];
        assert!(!spoken_by_engine(&quiet).contains(&true));
        assert!(spoken_by_engine(&[0.5; FRAME - 1]).is_empty());
    }

    #[test]
    fn a_sound_of_few_words_or_a_repetition_is_heard_again_a_little_later() {
        let all = "I have been here before. We left at ten o'clock.";
        let heard = |first: &'static str, seconds: usize| {
            let sound = vec![0.1; seconds * SAMPLE_RATE];
            let ears = Startled {
                first,
                shifted: all,
            };
            words_or_shifted(&ears, &sound).unwrap().text
        };
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
    fn a_repetition_for_which_there_is_no_time_is_dropped() {
        let words_of =
            |first: &'static str, shifted: &'static str, spoken: usize, frames: usize| {
                let mut sound = vec![0.1; spoken * FRAME];
                sound.resize(frames * FRAME, 0.0);
                let ears = Startled { first, shifted };
                words_or_shifted(&ears, &sound).unwrap().text
            };
        let heard = |text, spoken, frames| words_of(text, text, spoken, frames);
        let once = "See you tomorrow.";
        let twice = "See you tomorrow. See you tomorrow.";
        let thrice = "See you tomorrow. See you tomorrow. See you tomorrow.";
        // The shifted sound repeats, too, or is too long. Somebody speaks for 0.9 s, 1.3 s or 1.8 s.
        let longest = MAX_SECONDS * SAMPLE_RATE / FRAME;
        assert!(longest * FRAME + SHIFT_SAMPLES > MAX_SECONDS * SAMPLE_RATE);
        for frames in [94, longest] {
            assert_eq!(heard(twice, 28, frames), once);
            assert_eq!(heard(twice, 56, frames), twice);
            assert_eq!(heard(thrice, 28, frames), once);
            assert_eq!(heard(thrice, 40, frames), twice);
            assert_eq!(heard(thrice, 56, frames), thrice);
        }
        let others = "We met. See you tomorrow! see you, tomorrow";
        assert_eq!(heard(others, 28, 94), "We met. See you tomorrow!");
        // Many words without a repetition, or with one that is not doubted, stay.
        for kept in ["We met at nine, and saw nobody there.", "No, no. No, no."] {
            assert_eq!(heard(kept, 8, 94), kept);
        }
        // The shifted sound alone repeats, and has more words.
        assert_eq!(words_of("No.", twice, 28, 94), once);
        // The sound itself is as short, or long enough, where no frame of it is speech.
        assert_eq!(heard(twice, 0, 28), once);
        assert_eq!(heard(twice, 0, 94), twice);
    }

    #[test]
    fn a_repetition_is_the_last_sentence_said_twice() {
        for (text, without) in [
            (
                "See you tomorrow. See you tomorrow.",
                Some("See you tomorrow."),
            ),
            (
                "We met. See you tomorrow! see you, tomorrow ...",
                Some("We met. See you tomorrow!"),
            ),
            ("See you tomorrow. See you tomorrow. Bye.", None),
            ("No. No.", None),
            ("See you tomorrow.", None),
            ("", None),
        ] {
            assert_eq!(without_repetition(text), without, "{text}");
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
