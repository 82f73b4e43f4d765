//! When words were said, and how sure they are.

use std::{cell::Cell, path::Path, time::Duration};

use colloquy_inference::{
    InferenceError,
    whisper::{TimedTranscript, Word},
};

use colloquy_word_errors::{errors, words};

use super::{RECORDINGS, TINY, samples, spoken};

/// Samples of a second.
const SECOND: usize = 16_000;

/// As far as a word may be beside a silence: positions are of 20 ms.
const NEAR: Duration = Duration::from_millis(40);

/// A word, its beginning and its end.
type Aligned = (&'static str, u64, u64);

/// Words of some recordings with their beginnings and ends in milliseconds, as PocketSphinx aligns them when it is told what
/// was said.
const ALIGNED: [(&str, &[Aligned]); 3] = [
    (
        "librivox/sense_and_sensibility_01_austen_64kb-0870.wav",
        &[
            ("and", 200, 370),
            ("mister", 370, 630),
            ("john", 630, 980),
            ("dashwood", 980, 1_580),
            ("had", 1_580, 1_840),
            ("then", 1_840, 2_210),
            ("leisure", 2_250, 2_710),
            ("to", 2_710, 2_890),
            ("consider", 2_890, 3_440),
            ("how", 3_440, 3_950),
            ("much", 4_000, 4_330),
            ("there", 4_330, 4_520),
            ("might", 4_520, 4_790),
            ("be", 4_790, 4_940),
            ("prudently", 4_940, 5_460),
            ("in", 5_460, 5_560),
            ("his", 5_560, 5_750),
            ("power", 5_750, 6_040),
            ("to", 6_040, 6_140),
            ("do", 6_140, 6_350),
            ("for", 6_350, 6_610),
            ("them", 6_610, 6_790),
        ],
    ),
    (
        "librivox/sense_and_sensibility_01_austen_64kb-0930.wav",
        &[
            ("he", 210, 380),
            ("might", 380, 640),
            ("even", 640, 920),
            ("have", 920, 1_070),
            ("been", 1_070, 1_330),
            ("made", 1_330, 1_700),
            ("amiable", 1_700, 2_270),
            ("himself", 2_270, 3_020),
        ],
    ),
    (
        "goforward.raw",
        &[
            ("go", 460, 640),
            ("forward", 640, 1_170),
            ("ten", 1_170, 1_530),
            ("meters", 1_530, 2_120),
        ],
    ),
];

fn length(sound: &[f32]) -> Duration {
    Duration::from_secs_f64(sound.len() as f64 / SECOND as f64)
}

/// Hears words, and checks what has to be so of any.
fn hear(sound: &[f32]) -> TimedTranscript {
    let heard = TINY.transcribe_words(sound, None, &|| true).unwrap();
    let texts: Vec<_> = heard.words.iter().map(|word| word.text.as_str()).collect();
    assert_eq!(texts.join(" "), heard.transcript.text);
    let mut last = Duration::ZERO;
    for word in &heard.words {
        assert!(last <= word.start && word.start <= word.end, "{word:?}");
        assert!(word.end <= length(sound), "{word:?}");
        assert!((0.0..=1.0).contains(&word.probability), "{word:?}");
        last = word.end;
    }
    heard
}

/// The same noise each time, of so many times the power of the sound.
fn with_noise(sound: &[f32], times: f32) -> Vec<f32> {
    let power: f32 = sound.iter().map(|sample| sample * sample).sum();
    let loudness = (power / sound.len() as f32 * times * 3.0).sqrt();
    let mut state = 1_u32;
    let noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / 8_388_608.0 - 1.0) * loudness
    };
    let noise: Vec<f32> = std::iter::repeat_with(noise).take(sound.len()).collect();
    sound.iter().zip(noise).map(|(a, b)| a + b).collect()
}

#[test]
fn words_are_where_they_were_said() {
    let mut apart: Vec<u64> = Vec::new();
    for (name, aligned) in ALIGNED {
        let sound = samples(&Path::new(RECORDINGS).join(name));
        let heard = hear(&sound).words;
        assert_eq!(heard.len(), aligned.len());
        for (word, (said, start, end)) in heard.iter().zip(aligned) {
            assert_eq!(words(&word.text), [*said]);
            for (heard, aligned) in [(word.start, *start), (word.end, *end)] {
                apart.push(heard.abs_diff(Duration::from_millis(aligned)).as_millis() as u64);
            }
        }
    }
    apart.sort_unstable();
    let mean = apart.iter().sum::<u64>() / apart.len() as u64;
    let near = apart.iter().filter(|apart| **apart <= 100).count();
    println!(
        "{} ms in the mean, {} in the median, {near} of {} within 100, {:?} at most",
        mean,
        apart[apart.len() / 2],
        apart.len(),
        apart.last()
    );
    assert!(mean <= 70, "{apart:?}");
    assert!(near * 100 >= apart.len() * 85, "{apart:?}");
}

#[test]
fn no_word_is_in_the_silence_between_others() {
    let all = spoken();
    for pair in all.windows(2) {
        let [(first, said), (second, also_said)] = pair else {
            unreachable!("windows of two");
        };
        let (first, second) = (samples(first), samples(second));
        for (seconds, loudness) in [(1, 0.0), (3, 0.0), (2, 0.001)] {
            let gap = vec![loudness; seconds * SECOND];
            let gap = with_noise(&gap, 1.0);
            let heard = hear(&[&first[..], &gap, &second].concat()).words;
            let end = length(&first);
            let begin = end + length(&gap);
            let is_before = |word: &&Word| word.end <= end + NEAR;
            let (before, after): (Vec<_>, Vec<_>) = heard.iter().partition(is_before);
            for word in &after {
                assert!(word.start + NEAR >= begin, "{end:?} {begin:?} {heard:#?}");
            }
            for (heard, said) in [(before, said), (after, also_said)] {
                let text: Vec<_> = heard.iter().map(|word| word.text.as_str()).collect();
                let wrong = errors(&words(said), &words(&text.join(" ")));
                assert!(wrong <= 3, "{said} {text:?}");
            }
        }
    }
}

#[test]
fn silence_before_words_puts_them_off() {
    for (path, _) in spoken() {
        let sound = samples(&path);
        let alone = hear(&sound).words;
        let after = hear(&[&vec![0.0; SECOND][..], &sound].concat()).words;
        if alone.len() != after.len() {
            continue;
        }
        let mut apart: Vec<_> = alone
            .iter()
            .zip(&after)
            .map(|(one, other)| (one.start + Duration::from_secs(1)).abs_diff(other.start))
            .collect();
        apart.sort_unstable();
        assert!(
            apart[apart.len() / 2] <= Duration::from_millis(60),
            "{apart:?}"
        );
    }
}

#[test]
fn clear_words_are_surer_than_those_in_noise() {
    let mean = |words: &[f32]| words.iter().sum::<f32>() / words.len() as f32;
    let (mut clear, mut noisy) = (Vec::new(), Vec::new());
    for (path, _) in spoken() {
        let sound = samples(&path);
        let sure = |sound: &[f32]| -> Vec<f32> {
            let words = hear(sound).words;
            words.iter().map(|word| word.probability).collect()
        };
        clear.extend(sure(&sound));
        noisy.extend(sure(&with_noise(&sound, 1.0)));
    }
    let (clear, noisy) = (mean(&clear), mean(&noisy));
    println!("{clear:.2} and in noise {noisy:.2}");
    assert!(clear > 0.8 && noisy < clear - 0.1, "{clear} {noisy}");
}

#[test]
fn words_change_nothing_of_the_transcript() {
    for (path, _) in spoken() {
        let sound = samples(&path);
        let transcript = TINY.transcribe(&sound, None, &|| true).unwrap();
        assert_eq!(hear(&sound).transcript, transcript);
    }
}

#[test]
fn any_sound_has_words_within_it() {
    let noise = with_noise(&[0.1; 5 * SECOND], 1.0);
    for sound in [
        &[][..],
        &[0.0; 1],
        &[0.0; 3_000],
        &[0.0; 2 * SECOND],
        &noise,
    ] {
        hear(sound);
    }
    let all: Vec<f32> = spoken()
        .iter()
        .flat_map(|(path, _)| samples(path))
        .collect();
    hear(&all[..all.len().min(30 * SECOND)]);
    // Cut in the middle of words.
    for length in [5_000, 12_345, 20_001, 33_333] {
        hear(&all[..length]);
    }
    let (asked, last) = (Cell::new(0), Cell::new(usize::MAX));
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < last.get()
    };
    let sound = &all[..3 * SECOND];
    TINY.transcribe_words(sound, None, &wanted).unwrap();
    // It is asked before it looks when words were said, too.
    last.set(asked.replace(0));
    let error = TINY.transcribe_words(sound, None, &wanted).unwrap_err();
    assert!(matches!(error, InferenceError::Cancelled), "{error}");
}
