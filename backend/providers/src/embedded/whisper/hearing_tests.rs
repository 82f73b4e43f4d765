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

/// Whisper makes sentences of noises, and is sure of them.
#[test]
fn a_sound_without_speech_has_no_words() {
    let sure = "That is the only thing that you can do.";
    let ears = Startled {
        first: "",
        shifted: sure,
    };
    let heard = |frames: usize| {
        let mut sound = vec![0.0; SAMPLE_RATE];
        sound[SAMPLE_RATE / 2..][..frames * FRAME].fill(0.1);
        words(&ears, &sound, CUTS).unwrap().text
    };
    assert_eq!(heard(SPOKEN_FRAMES - 2), "");
    assert_eq!(heard(SPOKEN_FRAMES + 1), sure);
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
    let heard = |first: &'static str, shifted: &'static str, sound: &[f32]| {
        let ears = Unaided { first, shifted };
        words_or_shifted(&ears, sound).unwrap().text
    };
    let speech = speech();
    let all = "Go forward ten meters. Go forward ten meters, I said.";
    assert_eq!(heard("No.", all, &speech), all);
    // As many words as there is time for, the last of them twice.
    let repeated = "Please go forward ten meters and then turn left at the next corner. \
                    Please go forward ten meters and then turn left at the next corner.";
    let all = "Please go forward ten meters and then turn left at the next corner. \
               Wait there until somebody opens the door and asks you to come in.";
    assert_eq!(heard(repeated, all, &speech), all);
    // A short word stays, also where nobody is found to speak.
    let quiet = vec![0.000_2; 4 * SAMPLE_RATE];
    assert_eq!(heard("No.", all, &quiet), "No.");
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
    let words_of = |first: &'static str, shifted: &'static str, spoken: usize, frames: usize| {
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
    // The sound itself is as short, or long enough, where a detector that misses soft speech finds none.
    for (frames, kept) in [(28, once), (94, twice)] {
        let ears = Unaided {
            first: twice,
            shifted: twice,
        };
        let heard = words_or_shifted(&ears, &vec![0.0; frames * FRAME]).unwrap();
        assert_eq!(heard.text, kept);
    }
}

#[test]
fn words_are_few_where_more_can_be_said() {
    let words = |tokens| Words {
        tokens,
        ..Words::default()
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
    assert_eq!(longest_pause(&sound, PAUSE_FRAMES), Some(40 + 9 + 4));
    let sound = frames(&[
        (speech, 5),
        (pause, 7),
        (speech, 1),
        (pause, 12),
        (speech, 3),
    ]);
    assert_eq!(longest_pause(&sound, PAUSE_FRAMES), Some(5 + 7 + 1 + 6));
    for without in [
        frames(&[(speech, 50)]),
        frames(&[(pause, 50)]),
        frames(&[(speech, 9), (pause, PAUSE_FRAMES - 1), (speech, 9)]),
        Vec::new(),
    ] {
        assert_eq!(longest_pause(&without, PAUSE_FRAMES), None);
    }
}

/// Hears a text that depends on the number of runs of speech in the sound.
struct Looping {
    text: fn(usize) -> String,
    finds_speech: bool,
}

impl Looping {
    /// The number of runs of speech.
    fn runs(samples: &[f32]) -> usize {
        let frames = samples.as_chunks::<FRAME>().0;
        let spoken = frames.iter().map(|frame| frame[0] != 0.0);
        let mut before = false;
        let begins = spoken.filter(|spoken| {
            let begins = *spoken && !before;
            before = *spoken;
            begins
        });
        begins.count()
    }
}

impl Ears for Looping {
    fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
        let text = (self.text)(Self::runs(samples));
        let words = text.split_whitespace().count();
        // As long as all that the decoder may write.
        let is_loop = words >= 40;
        Ok(Transcript {
            text,
            probabilities: vec![0.9; words],
            no_speech: 0.0,
            compression: if is_loop { 8.0 } else { 1.5 },
            is_cut: is_loop,
        })
    }

    fn spoken(&self, samples: &[f32]) -> Result<Vec<bool>, InferenceError> {
        let frames = samples.as_chunks::<FRAME>().0.iter();
        Ok(frames
            .map(|frame| self.finds_speech && frame[0] != 0.0)
            .collect())
    }

    fn finds_soft_speech(&self) -> bool {
        true
    }
}

/// Speech in runs of so many frames, with pauses of ten frames, about 0.3 s, between them.
fn runs(frames: &[usize]) -> Vec<f32> {
    let mut sound = Vec::new();
    for run in frames {
        sound.extend(vec![0.1; run * FRAME]);
        sound.extend(vec![0.0; 10 * FRAME]);
    }
    sound
}

fn heard_of(text: fn(usize) -> String, sound: &[f32], finds_speech: bool) -> String {
    let ears = Looping { text, finds_speech };
    words_or_shifted(&ears, sound).unwrap().text
}

#[test]
fn words_behind_those_that_the_decoder_repeats_for_ever_are_heard() {
    let text = |runs: usize| match runs {
        1 => "No no no no no no no no.".to_owned(),
        _ => ["No,"; 60].join(" "),
    };
    // The two sides of the pause, each of which is heard rightly.
    let both = "No no no no no no no no. No no no no no no no no.";
    assert_eq!(heard_of(text, &runs(&[70, 60]), true), both);
}

#[test]
fn repetitions_that_nobody_has_time_for_are_dropped_and_never_all() {
    let text = |_: usize| ["Go"; 60].join(" ");
    // 2 s of speech without a pause, however often it is heard.
    let heard = heard_of(text, &runs(&[63]), true);
    assert_eq!(heard, ["Go"; 10].join(" "));
    // Less than a second, or none, is no time for any of it.
    assert_eq!(heard_of(text, &runs(&[COUNTED_FRAMES - 1]), true), "");
    assert_eq!(heard_of(text, &runs(&[63]), false), "");
}

#[test]
fn a_text_that_repeats_itself_stays_where_the_speech_has_time_for_it() {
    let fives = Words {
        text: ["Five."; 30].join(" "),
        tokens: 60,
        is_loop: false,
    };
    // 7 s.
    let kept = fives.without_loop(219, false);
    assert!(!kept.is_loop && kept.tokens == 60, "{kept:?}");
    // 3 s.
    let kept = kept.without_loop(94, false);
    assert!(kept.is_loop, "{kept:?}");
    assert_eq!(kept.text, ["Five."; 15].join(" "));
}

#[test]
fn a_sentence_said_twice_stays_where_both_sides_of_the_pause_have_it() {
    // Behind a moment of silence it is heard once.
    struct Twice;

    impl Ears for Twice {
        fn transcript(&self, samples: &[f32]) -> Result<Transcript, InferenceError> {
            let is_shifted = samples.first() == Some(&0.0);
            let text = match (is_shifted, Looping::runs(samples)) {
                (false, 2) => "I need help. I need help.",
                _ => "I need help.",
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

    // 0.5 s each: as fast as a machine says it.
    let heard = words_or_shifted(&Twice, &runs(&[16, 16])).unwrap();
    assert_eq!(heard.text, "I need help. I need help.");
}
