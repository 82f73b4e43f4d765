//! Human recordings, written down by the models of this server.

use std::path::PathBuf;

use colloquy_word_errors::{errors, words};
use harness::sounds;

use super::*;
use harness::{app::TestPartner, neural};

/// Where Debian has them, with their words.
const FOLDER: &str = "/usr/share/pocketsphinx/test/data/librivox";

/// A server that hears with these models.
fn hearing(models: PathBuf) -> TestAppBuilder {
    let settings = neural::settings(models);
    let inference = settings.inference.clone();
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| config.inference = inference);
    let builder = builder.providers(providers::from_config(&settings).unwrap());
    builder.with_decoder().quick_worker()
}

/// Each recording with its words.
fn novel() -> Vec<(Vec<i16>, String)> {
    let lines = fs::read_to_string(format!("{FOLDER}/transcription")).unwrap();
    let read = |line: &str| {
        let (words, name) = line.rsplit_once('(').unwrap();
        let path = format!("{FOLDER}/{}.wav", name.trim_end_matches(')'));
        let bytes = fs::read(path).unwrap();
        // Behind a header of 44 bytes.
        let (samples, _) = bytes[44..].as_chunks::<2>();
        let samples = samples.iter().copied().map(i16::from_le_bytes).collect();
        let words = words.replace("<s>", "").replace("</s>", "");
        (samples, words)
    };
    lines.lines().map(read).collect()
}

/// Checks that share loaded models, of which none changes them.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_heard_by_the_models_of_the_server() {
    let app = hearing(neural::ears()).start().await;
    let acme = app.partner("acme").await;
    long_recordings_are_understood_as_short_ones_are(&app, &acme).await;
    terms_that_are_boosted_are_heard_as_they_are_written(&app, &acme).await;
    nothing_is_heard_where_nobody_speaks(&app, &acme).await;
}

/// A long recording is understood as well as the short ones that it is made of: no word is lost or doubled where it is cut.
#[expect(clippy::print_stdout, reason = "figures of what was understood")]
async fn long_recordings_are_understood_as_short_ones_are(app: &TestApp, acme: &TestPartner) {
    let (mut wrong, mut said) = (0, 0);
    let mut long = Vec::new();
    for (number, (samples, text)) in novel().iter().enumerate() {
        let read = transcribed(app, &acme.key, audio("a.wav", wav(samples))).await;
        let (expected, heard) = (words(text), words(read["text"].as_str().unwrap()));
        wrong += errors(&expected, &heard);
        said += expected.len();
        println!(
            "{number}: {} of {}: {}",
            errors(&expected, &heard),
            expected.len(),
            read["text"]
        );
        long.push((samples.clone(), text.clone()));
    }
    // Read over and over, in another order each time, with pauses of other lengths.
    let (mut sound, mut text) = (Vec::new(), String::new());
    for round in 0..6 {
        for index in 0..long.len() {
            let (samples, words) = &long[(index * 2 + round) % long.len()];
            sound.extend(samples);
            sound.extend(
                sounds::Noise::new(7)
                    .scaled(8.0)
                    .take((round * 3 + index) % 9 * RATE_HZ / 8)
                    .map(|it| it as i16),
            );
            text.push_str(words);
        }
    }
    let seconds = sound.len() / RATE_HZ;
    let began = std::time::Instant::now();
    let file = converted(&wav(&sound), "long.mp3", &["-b:a", "64k"]);
    let read = transcribed(app, &acme.key, audio("long.mp3", file)).await;
    let took = began.elapsed().as_secs_f64();
    let (expected, heard) = (words(&text), words(read["text"].as_str().unwrap()));
    println!("{}", read["text"]);
    let long_wrong = errors(&expected, &heard);
    let rate = |wrong: usize, said: usize| 100.0 * wrong as f64 / said as f64;
    let (short_rate, long_rate) = (rate(wrong, said), rate(long_wrong, expected.len()));
    println!(
        "short {short_rate:.1} %, long {long_rate:.1} % of {seconds} s, {:.1} times real time",
        seconds as f64 / took
    );
    assert!(short_rate <= 12.0, "{short_rate}");
    assert!(
        long_rate <= short_rate + 1.0,
        "{long_rate} % instead of {short_rate} %"
    );
    assert!(
        read["audio_duration"]
            .as_u64()
            .unwrap()
            .abs_diff(seconds as u64)
            <= 1
    );
    is_tidy(app).await;
}

async fn nothing_is_heard_where_nobody_speaks(app: &TestApp, acme: &TestPartner) {
    let sound: Vec<i16> = sounds::without_speech().concat();
    let seconds = sound.len() as u64 / RATE_HZ as u64;
    let read = transcribed(app, &acme.key, audio("a.wav", wav(&sound))).await;
    assert_eq!(
        (&read["status"], &read["text"]),
        (&json!("completed"), &json!("")),
        "{read}"
    );
    assert!(read["audio_duration"].as_u64().unwrap().abs_diff(seconds) <= 1);
}

async fn terms_that_are_boosted_are_heard_as_they_are_written(app: &TestApp, acme: &TestPartner) {
    let (samples, _) = &novel()[0];
    let plain = transcribed(app, &acme.key, audio("a.wav", wav(samples))).await;
    let form = audio("a.wav", wav(samples)).text("boosted_words[]", "Jon Dashwoode");
    let boosted = transcribed(app, &acme.key, form).await;
    let (plain, boosted) = (
        plain["text"].as_str().unwrap(),
        boosted["text"].as_str().unwrap(),
    );
    assert!(!plain.contains("Dashwoode"), "{plain}");
    assert!(boosted.contains("Dashwoode"), "{boosted}");
    // The rest is what it was.
    assert!(
        errors(&words(plain), &words(boosted)) <= 3,
        "{plain} / {boosted}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_is_detected() {
    let models = neural::folder_with("languages-of-transcripts", &["whisper-base", "silero-vad"]);
    let app = hearing(models).start().await;
    let acme = app.partner("acme").await;
    for (language, text, expected) in [
        (
            "de",
            "Guten Morgen. Der Zug nach Hamburg fährt heute von Gleis sieben.",
            "Hamburg",
        ),
        (
            "es",
            "Buenos días. El tren para Madrid sale hoy a las siete de la mañana.",
            "mañana",
        ),
        (
            "en",
            "Good morning. The train to London leaves from platform seven today.",
            "London",
        ),
    ] {
        let form = audio("a.wav", sounds::spoken(language, text)).text("language_auto", "true");
        let read = transcribed(&app, &acme.key, form).await;
        assert_eq!(read["language_code"], language, "{read}");
        assert!(read["text"].as_str().unwrap().contains(expected), "{read}");
    }
}
