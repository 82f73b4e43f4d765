//! The real models hear human speech: recordings of Debian's package `pocketsphinx-testdata`, whose words are known. The models
//! are in the folder `COLLOQUY_TEST_MODELS_DIR`, where `colloquy models pull` put them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

mod damaged;
mod kokoro;
mod memory;
mod own_files;
mod silence;
mod speakers;
mod words;

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use colloquy_inference::{
    InferenceError,
    piper::{MAX_PHONEMES, Piper},
    runtime::{Rten, Runtime as _},
    silero::{FRAME, Listener, Silero},
    smart_turn::SmartTurn,
    whisper::Whisper,
};
use colloquy_models::{folder::ModelsFolder, manifest};
use colloquy_word_errors::{errors, words};

const RECORDINGS: &str = "/usr/share/pocketsphinx/test/data";

fn file(model: &str, name: &str) -> Vec<u8> {
    let folder = std::env::var_os("COLLOQUY_TEST_MODELS_DIR");
    let folder = folder.expect("COLLOQUY_TEST_MODELS_DIR names a folder with models");
    let model = manifest::model(model).unwrap();
    let file = model.file(name).unwrap();
    ModelsFolder::new(folder).read(model, file).unwrap()
}

static TINY: LazyLock<Whisper> = LazyLock::new(|| {
    let model = file("whisper-tiny.en", "model.bin");
    let vocabulary = file("whisper-tiny.en", "vocabulary.txt");
    Whisper::load(&Rten::new(), &model, &vocabulary).unwrap()
});

/// Samples of 16,000 a second: what follows a header of 44 bytes, if there is one.
fn samples(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    let sound = bytes
        .strip_prefix(b"RIFF")
        .map_or(bytes.as_slice(), |_| &bytes[44..]);
    let (numbers, _) = sound.as_chunks::<2>();
    numbers
        .iter()
        .map(|bytes| f32::from(i16::from_le_bytes(*bytes)) / 32_768.0)
        .collect()
}

/// Recordings with their words.
fn spoken() -> Vec<(PathBuf, String)> {
    let list = fs::read_to_string(format!("{RECORDINGS}/librivox/transcription")).unwrap();
    let mut all: Vec<_> = list
        .lines()
        .map(|line| {
            let (words, name) = line.rsplit_once('(').unwrap();
            let words = words.replace("<s>", "").replace("</s>", "");
            let path = format!("{RECORDINGS}/librivox/{}.wav", name.trim_end_matches(')'));
            (path.into(), words)
        })
        .collect();
    let forward = format!("{RECORDINGS}/goforward.raw");
    all.push((forward.into(), "go forward ten meters".to_owned()));
    all
}

#[test]
fn human_speech_is_understood() {
    let (mut wrong, mut all) = (0, 0);
    for (path, said) in spoken() {
        let transcript = TINY.transcribe(&samples(&path), None, &|| true).unwrap();
        let (said, heard) = (words(&said), words(&transcript.text));
        println!(
            "{}: {:.2} sure: {}",
            path.display(),
            transcript.confidence(),
            transcript.text
        );
        assert!(
            transcript.is_speech() && !transcript.is_cut,
            "{transcript:?}"
        );
        assert!(transcript.confidence() > 0.5);
        wrong += errors(&said, &heard);
        all += said.len();
    }
    let rate = 100.0 * wrong as f64 / all as f64;
    println!("{wrong} of {all} words wrong: {rate:.1} %");
    assert!(all >= 70 && rate <= 6.0, "{rate:.1} %");
}

#[test]
fn nothing_is_heard_where_nobody_speaks() {
    let noise = |loudness: f32| {
        let mut state = 1_u32;
        (0..32_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 8) as f32 / 8_388_608.0 - 1.0) * loudness
            })
            .collect::<Vec<_>>()
    };
    let hum = (0..48_000)
        .map(|at| (at as f32 * 0.04).sin() * 0.1)
        .collect();
    for sound in [
        vec![],
        vec![0.0; 16_000],
        vec![0.0; 160_000],
        noise(0.001),
        noise(0.1),
        hum,
    ] {
        let transcript = TINY.transcribe(&sound, Some("en"), &|| true).unwrap();
        assert!(!transcript.is_speech(), "{transcript:?}");
    }
}

#[test]
fn thirty_seconds_are_heard_and_more_are_refused() {
    let mut sound = Vec::new();
    while sound.len() <= 480_000 {
        for (path, _) in spoken() {
            sound.extend(samples(&path));
        }
    }
    let transcript = TINY.transcribe(&sound[..480_000], None, &|| true).unwrap();
    assert!(words(&transcript.text).len() > 40, "{transcript:?}");
    let error = TINY
        .transcribe(&sound[..480_001], None, &|| true)
        .unwrap_err();
    assert!(matches!(error, InferenceError::TooLong(_)), "{error}");
}

#[test]
fn what_is_not_wanted_any_more_ends() {
    let sound = samples(&spoken()[0].0);
    let asked = Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 4
    };
    let error = TINY.transcribe(&sound, None, &wanted).unwrap_err();
    assert!(matches!(error, InferenceError::Cancelled), "{error}");
    assert_eq!(asked.get(), 4);
}

#[test]
fn several_threads_may_ask_at_a_time() {
    let sound = samples(&spoken().pop().unwrap().0);
    let alone = TINY.transcribe(&sound, None, &|| true).unwrap();
    assert_eq!(words(&alone.text), ["go", "forward", "ten", "meters"]);
    std::thread::scope(|scope| {
        let ask = || TINY.transcribe(&sound, None, &|| true).unwrap();
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        for answer in asking {
            assert_eq!(answer.join().unwrap(), alone);
        }
    });
}

#[test]
fn a_language_that_the_model_does_not_know_is_an_error() {
    assert_eq!(TINY.languages().count(), 0);
    assert_eq!(
        TINY.language(&[0.0; 1_600], &|_| true, &|| true).unwrap(),
        None
    );
    let error = TINY
        .transcribe(&[0.0; 1_600], Some("de"), &|| true)
        .unwrap_err();
    assert!(
        error.to_string().contains("does not know the language de"),
        "{error}"
    );
}

#[test]
fn files_that_are_malformed_are_errors() {
    let runtime = Rten::new();
    let model = file("whisper-tiny.en", "model.bin");
    let vocabulary = file("whisper-tiny.en", "vocabulary.txt");
    for (model, vocabulary) in [
        (&model[..model.len() / 2], vocabulary.as_slice()),
        (&model[1..], &vocabulary),
        (&[], &vocabulary),
        (&model, &vocabulary[..1_000]),
        (&model, &[]),
    ] {
        let error = Whisper::load(&runtime, model, vocabulary).unwrap_err();
        assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    }
    let silero = file("silero-vad", "model.onnx");
    for wrong in [vec![], vec![7; 1_000], silero[..silero.len() / 2].to_vec()] {
        let error = runtime.load(wrong).unwrap_err();
        assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    }
}

#[test]
fn speech_is_told_from_silence_and_noise() {
    let silero = Silero::load(&Rten::new(), file("silero-vad", "model.onnx")).unwrap();
    let share = |sound: &[f32]| {
        let mut listener = Listener::default();
        let (frames, _) = sound.as_chunks::<FRAME>();
        let heard = frames
            .iter()
            .filter(|frame| silero.hear(&mut listener, frame).unwrap() > 0.5);
        heard.count() as f64 / frames.len() as f64
    };
    for (path, _) in spoken() {
        let share = share(&samples(&path));
        assert!(share > 0.4, "{}: {share}", path.display());
    }
    assert!(share(&[0.0; 32_000]) < 0.01);
    let hum: Vec<f32> = (0..48_000)
        .map(|at| (at as f32 * 0.04).sin() * 0.1)
        .collect();
    assert!(share(&hum) < 0.1);
}

fn joe() -> Arc<Piper> {
    let model = file("piper-en_US-joe-medium", "voice.onnx");
    let settings = file("piper-en_US-joe-medium", "voice.json");
    Arc::new(Piper::load(&Rten::new(), model, &settings).unwrap())
}

/// Sound at 16,000 samples a second, by linear interpolation: good enough to be understood.
fn at_16_khz(sound: &[f32], rate: u32) -> Vec<f32> {
    let step = f64::from(rate) / 16_000.0;
    let at = |index: usize| sound.get(index).copied().unwrap_or(0.0);
    let count = (sound.len() as f64 / step) as usize;
    let position = (0..count).map(|index| index as f64 * step);
    position
        .map(|position| {
            let part = position.fract() as f32;
            at(position as usize) * (1.0 - part) + at(position as usize + 1) * part
        })
        .collect()
}

/// "The quick brown fox jumps over the lazy dog.", in the phonemes of espeak-ng.
const FOX: &str = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ. ";

#[test]
fn a_voice_is_understood_and_keeps_to_its_speed() {
    let joe = joe();
    let mut speaking = joe.speak(FOX, 1.0, &|| true).unwrap();
    let mut sound = Vec::new();
    while let Some(piece) = speaking.next_piece(&|| true).unwrap() {
        sound.extend(piece);
    }
    let seconds = sound.len() as f64 / f64::from(joe.sample_rate_hz());
    assert!((1.5..5.0).contains(&seconds), "{seconds}");
    assert!(sound.iter().all(|sample| sample.abs() <= 1.0));
    let sound = at_16_khz(&sound, joe.sample_rate_hz());
    let heard = TINY.transcribe(&sound, None, &|| true).unwrap();
    // It says a thing a little differently each time.
    let said = words("the quick brown fox jumps over the lazy dog");
    assert!(errors(&said, &words(&heard.text)) <= 1, "{}", heard.text);
    let length = |speed| {
        joe.speak(FOX, speed, &|| true)
            .unwrap()
            .whole()
            .unwrap()
            .len() as f64
    };
    // No sound is shorter than a frame, so what is fast is not that much shorter.
    let ratio = length(0.5) / length(2.0);
    assert!((2.0..5.0).contains(&ratio), "{ratio}");
}

#[test]
fn pieces_of_speech_are_the_whole_bit_for_bit() {
    let joe = joe();
    let mut speaking = joe.speak(&FOX.repeat(4), 1.0, &|| true).unwrap();
    let whole = speaking.whole().unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = speaking.next_piece(&|| true).unwrap() {
        pieces.push(piece);
    }
    assert!(pieces.len() > 3);
    assert!(pieces[0].len() < whole.len() / 4, "the first comes early");
    let pieces = pieces.concat();
    assert_eq!(pieces.len(), whole.len());
    let different = pieces
        .iter()
        .zip(&whole)
        .filter(|(one, other)| one != other);
    let most = pieces
        .iter()
        .zip(&whole)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert_eq!(different.count(), 0, "by up to {most}");
}

#[test]
fn phonemes_are_bounded_and_unknown_ones_passed_over() {
    let joe = joe();
    let error = joe
        .speak(&"a".repeat(MAX_PHONEMES + 1), 1.0, &|| true)
        .unwrap_err();
    assert!(matches!(error, InferenceError::TooLong(_)), "{error}");
    for nothing in ["", "😀", "你好"] {
        let sound = joe.speak(nothing, 1.0, &|| true).unwrap().whole().unwrap();
        assert!(sound.len() < 22_050, "{}", sound.len());
    }
}

#[test]
fn what_nobody_waits_for_is_not_spoken_and_not_judged() {
    let joe = joe();
    let unwanted = joe.speak(FOX, 1.0, &|| false);
    assert!(matches!(unwanted, Err(InferenceError::Cancelled)));
    // It is asked once for each time that the model would run, and what was begun can go on.
    let asked = Cell::new(0);
    let is_wanted = || asked.replace(asked.get() + 1) < 2;
    let mut speaking = joe.speak(FOX, 1.0, &is_wanted).unwrap();
    assert!(speaking.next_piece(&is_wanted).unwrap().is_some());
    let stopped = speaking.next_piece(&is_wanted);
    assert!(matches!(stopped, Err(InferenceError::Cancelled)));
    assert!(speaking.next_piece(&|| true).unwrap().is_some());

    let turns = SmartTurn::load(&Rten::new(), file("smart-turn-v3.2", "model.onnx")).unwrap();
    let unwanted = turns.complete(&[0.0; 16_000], &|| false);
    assert!(matches!(unwanted, Err(InferenceError::Cancelled)));
    assert!(turns.complete(&[0.0; 16_000], &|| true).is_ok());
}
