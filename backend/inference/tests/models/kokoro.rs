//! Kokoro speaks, and Whisper understands it. The model is in the folder `COLLOQUY_TEST_KOKORO_DIR`, where `tests/run unit` puts it;
//! without that it is looked for among the others, and not tested where it is not there.

use colloquy_inference::{
    InferenceError,
    kokoro::{Kokoro, MAX_SYMBOLS, SAMPLE_RATE_HZ, Style},
    runtime::Rten,
};
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest,
};
use colloquy_word_errors::{errors, words};

use super::{TINY, at_16_khz};

/// Sentences, and their phonemes by espeak-ng.
const SENTENCES: [(&str, &str); 2] = [
    (
        "your appointment is booked for thursday at half past three and i will send you a reminder the day before",
        "jʊɹ ɐpˈɔɪntmənt ɪz bˈʊkt fɔːɹ θˈɜːzdeɪ æt hˈæf pˈæst θɹˈiː, ænd aɪ wɪl sˈɛnd juː ɐ ɹᵻmˈaɪndɚ ðə dˈeɪ bᵻfˈoːɹ.",
    ),
    (
        "the weather in london is cold and rainy today",
        "ðə wˈɛðɚɹ ɪn lˈʌndən ɪz kˈoʊld ænd ɹˈeɪni tədˈeɪ.",
    ),
];

/// The folder with the model, if it is there.
fn folder() -> Option<ModelsFolder> {
    let own = std::env::var_os("COLLOQUY_TEST_KOKORO_DIR");
    let is_promised = own.is_some();
    let path = own.or_else(|| std::env::var_os("COLLOQUY_TEST_MODELS_DIR"))?;
    let folder = ModelsFolder::new(path);
    let is_there = folder.presence(manifest::model("kokoro-82m")?) == Presence::Present;
    assert!(
        is_there || !is_promised,
        "{} has no kokoro-82m",
        folder.path().display()
    );
    is_there.then_some(folder)
}

#[test]
fn kokoro_is_understood_and_keeps_to_its_bounds() {
    let Some(folder) = folder() else {
        println!("kokoro-82m: not tested, since it is not there");
        return;
    };
    let model = manifest::model("kokoro-82m").unwrap();
    let file = |name| folder.read(model, model.file(name).unwrap()).unwrap();
    let network = file("model.onnx");
    // Not all of it is no network.
    let half = network[..network.len() / 2].to_vec();
    let error = Kokoro::load(&Rten::new(), half).unwrap_err();
    assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    let kokoro = Kokoro::load(&Rten::new(), network).unwrap();
    let heart = Style::read(&file("af_heart.bin")).unwrap();
    let speak = |phonemes: &str, speed| kokoro.speak(&heart, phonemes, speed).unwrap();

    let (mut wrong, mut all) = (0, 0);
    for (said, phonemes) in SENTENCES {
        let sound = speak(phonemes, 1.0);
        assert!(sound.iter().all(|sample| sample.abs() <= 1.0));
        let loudest = sound
            .iter()
            .fold(0.0_f32, |most, sample| most.max(sample.abs()));
        assert!(loudest > 0.1, "{loudest}");
        // Its own pauses at both ends are longer.
        let begins = sound.iter().position(|sample| sample.abs() > 0.01).unwrap();
        assert!(begins < SAMPLE_RATE_HZ as usize / 5, "{begins}");
        let heard = TINY.transcribe(&at_16_khz(&sound, SAMPLE_RATE_HZ), None, &|| true);
        let heard = heard.unwrap().text;
        println!(
            "{:.2} s: {heard}",
            sound.len() as f64 / f64::from(SAMPLE_RATE_HZ)
        );
        let said = words(said);
        wrong += errors(&said, &words(&heard));
        all += said.len();
    }
    println!("{wrong} of {all} words wrong");
    assert!(
        all == 29 && wrong * 10 <= all,
        "{wrong} of {all} words wrong"
    );

    let hello = "həlˈoʊ ðˈɛɹ.";
    let ratio = speak(hello, 0.5).len() as f64 / speak(hello, 2.0).len() as f64;
    assert!((2.0..6.0).contains(&ratio), "{ratio}");
    assert!(speak("😀", 1.0).is_empty());
    let error = kokoro
        .speak(&heart, &"ə".repeat(MAX_SYMBOLS + 1), 1.0)
        .unwrap_err();
    assert!(matches!(error, InferenceError::TooLong(_)), "{error}");
}
