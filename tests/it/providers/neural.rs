//! The neural models of the models folder, as a server has them by default. They are in the folder `COLLOQUY_TEST_MODELS_DIR`,
//! where `tests/run` puts them.

use std::{fs, path::PathBuf, process::Command};

use colloquy::{
    Config,
    fair_queue::{Claim, Priority},
    providers::{self, Pcm, ProviderErrorKind, Providers, SpeechRequest, Utterance},
};
use futures_util::future::join_all;
use harness::{
    neural::{ears, folder, folder_with, settings, talk, voice},
    patience, sounds,
};
use tempfile::TempDir;
use tokio::time::{Duration, Instant, timeout};

use super::{collect, embedded::recording, samples, say};

mod languages;
mod memory;
mod threads;

fn with_models(folder: PathBuf, change: impl FnOnce(&mut Config)) -> anyhow::Result<Providers> {
    let mut config = settings(folder);
    // Six at once, beside other tests.
    config.calls.provider_timeout_ms = 480_000;
    change(&mut config);
    providers::from_config(&config)
}

fn utterance(samples: Vec<i16>, language: Option<&str>) -> Utterance {
    Utterance::new(
        samples,
        language.map(str::to_owned),
        Claim::new(Priority::Call, "acme"),
    )
}

fn words(text: &str) -> Vec<String> {
    let text = text
        .to_lowercase()
        .replace("10", "ten")
        .replace("nine", "9");
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What is spoken, to its end.
pub(super) async fn speak(providers: &Providers, request: SpeechRequest) -> Vec<Pcm> {
    let (pieces, failure) = collect(providers.synthesizer.speak(request).await).await;
    assert_eq!(failure, None);
    pieces
}

/// The sound at 16,000 samples a second, by linear interpolation: good enough to be understood.
pub(super) fn at_16_khz(pieces: &[Pcm]) -> Vec<i16> {
    let step = f64::from(pieces[0].sample_rate_hz) / 16_000.0;
    let sound: Vec<f64> = pieces
        .iter()
        .flat_map(|piece| piece.samples.iter().copied().map(f64::from))
        .collect();
    let at = |index: usize| sound.get(index).copied().unwrap_or(0.0);
    let positions = (0..(sound.len() as f64 / step) as usize).map(|index| index as f64 * step);
    positions
        .map(|position| {
            let (index, part) = (position as usize, position.fract());
            (at(index) * (1.0 - part) + at(index + 1) * part) as i16
        })
        .collect()
}

/// What a transcriber hears of English speech.
pub(super) async fn hear(providers: &Providers, speech: Vec<i16>) -> String {
    let heard = providers
        .transcriber
        .transcribe(utterance(speech, Some("en")));
    heard.await.unwrap()
}

/// What a transcriber hears of what a synthesizer says.
async fn read_back(providers: &Providers, request: SpeechRequest) -> Vec<String> {
    let speech = at_16_khz(&speak(providers, request).await);
    words(&hear(providers, speech).await)
}

#[tokio::test]
async fn models_that_are_there_are_the_default() {
    let providers = with_models(folder(), |_| {}).unwrap();
    assert_eq!(providers.transcriber.name(), "whisper-tiny.en");
    assert_eq!(providers.synthesizer.name(), "piper-en_US-joe-medium");
    assert_eq!(providers.turns.voice_activity(), "silero-vad");
    assert_eq!(providers.turns.end_of_turn(), None);
    let starts_early = |language| providers.transcriber.starts_early(language);
    assert!(starts_early(None) && starts_early(Some("en-GB")));
    assert!(!starts_early(Some("de")), "PocketSphinx does not");
    providers.transcriber.check().await.unwrap();
    providers.synthesizer.check().await.unwrap();
    let forward = utterance(recording("goforward.raw"), None);
    let heard = providers.transcriber.transcribe(forward).await.unwrap();
    assert_eq!(words(&heard), ["go", "forward", "ten", "meters"]);
    // A language that neither model nor program understands is refused, not heard as English.
    let german = utterance(recording("goforward.raw"), Some("de"));
    let refused = providers.transcriber.transcribe(german).await.unwrap_err();
    assert_eq!(refused.kind, ProviderErrorKind::Misconfigured);
    assert!(
        refused.message.contains("colloquy models pull"),
        "{refused}"
    );
}

/// Checks that share loaded models, of which none changes them.
#[tokio::test]
async fn ears_hear_all_that_is_said_and_nothing_else() {
    let providers = &with_models(ears(), |_| {}).unwrap();
    nothing_is_heard_where_nobody_speaks(providers).await;
    what_is_said_before_and_behind_a_pause_is_heard(providers).await;
}

async fn nothing_is_heard_where_nobody_speaks(providers: &Providers) {
    let mut sounds = sounds::without_speech();
    assert_eq!(sounds.len(), 20);
    sounds.extend([vec![], vec![0; 70 * 16_000]]);
    for (number, silence) in sounds.into_iter().enumerate() {
        let silence = utterance(silence, Some("en-US"));
        let heard = providers.transcriber.transcribe(silence).await.unwrap();
        assert_eq!(heard, "", "sound {number}");
    }
}

async fn what_is_said_before_and_behind_a_pause_is_heard(providers: &Providers) {
    // The header is no sound.
    let card = |name: &str| recording(&format!("cards/{name}.wav")).split_off(22);
    let (forward, somewhere) = (recording("goforward.raw"), recording("something.raw"));
    // Of each of these Whisper alone hears one side.
    for (before, pause_ms, behind, said) in [
        (&forward, 500, &card("004"), "go forward ten meters 5 5"),
        (&card("004"), 500, &forward, "5 5 go forward ten meters"),
        (&card("004"), 700, &forward, "5 5 go forward ten meters"),
        (
            &somewhere,
            700,
            &card("004"),
            "go somewhere and do something 5 5",
        ),
    ] {
        let pause = vec![0; 16 * pause_ms];
        let heard = hear(providers, [before.as_slice(), &pause, behind].concat()).await;
        let heard = words(&heard.to_lowercase().replace("five", "5"));
        assert_eq!(heard.join(" "), said, "a pause of {pause_ms} ms");
    }
}

/// Checks that share loaded models, of which none changes them.
#[tokio::test]
async fn ears_understand_what_the_voice_says() {
    let providers = &with_models(talk(), |_| {}).unwrap();
    words_said_many_times_are_heard_with_those_that_follow(providers).await;
    what_is_spoken_is_understood(providers).await;
    many_are_heard_and_spoken_to_at_once(providers).await;
}

async fn words_said_many_times_are_heard_with_those_that_follow(providers: &Providers) {
    let five = "The train leaves at nine. Five. Five. Five. Five. Five. Five. Five.";
    let no = "No no no no no no no no. I do not want that. Please cancel my order.";
    let expected: [(&str, &[&str], usize); 3] = [
        (no, &["no", "want", "order"], 3),
        ("Go go go go go go go go!", &["go"], 1),
        // The voice speaks otherwise each time: "train leaves" may be heard as "training leaves" and as "turing leaves".
        (five, &["train", "leaves", "9"], 2),
    ];
    for (said, expected, least) in expected {
        let heard = read_back(providers, say(said)).await;
        let is_heard = |word: &&&str| heard.iter().any(|heard| heard.starts_with(**word));
        let count = expected.iter().filter(is_heard).count();
        assert!(count >= least, "{said}: {heard:?}");
    }
    // A sentence said twice, with 0.3 s between.
    let help = at_16_khz(&speak(providers, say("I need help.")).await);
    let pause = vec![0; 16 * 300];
    let heard = hear(providers, [help.as_slice(), &pause, &help].concat()).await;
    let times = words(&heard).iter().filter(|word| *word == "help").count();
    assert_eq!(times, 2, "{heard}");
}

/// How loud a sound is in LUFS, and its peak in dBFS, as ffmpeg measures them: not by what the voices were levelled with.
fn loudness(pieces: &[Pcm]) -> (f64, f64) {
    let folder = TempDir::new().unwrap();
    let raw = folder.path().join("sound.raw");
    let samples = pieces.iter().flat_map(|piece| &piece.samples);
    let bytes: Vec<u8> = samples.flat_map(|sample| sample.to_le_bytes()).collect();
    fs::write(&raw, bytes).unwrap();
    let rate = pieces[0].sample_rate_hz.to_string();
    let measured = Command::new("ffmpeg")
        .args([
            "-hide_banner",
            "-nostats",
            "-f",
            "s16le",
            "-ac",
            "1",
            "-ar",
            &rate,
        ])
        .arg("-i")
        .arg(&raw)
        .args(["-af", "ebur128=peak=sample", "-f", "null", "-"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&measured.stderr).into_owned();
    let summary = said.rsplit("Summary:").next().unwrap().to_owned();
    let figure = |name: &str| {
        let after = summary.split(name).nth(1).unwrap();
        after
            .split_whitespace()
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    (figure("I:"), figure("Peak:"))
}

/// Checks that share loaded models, of which none changes them.
#[tokio::test]
async fn voices_speak_beside_each_other() {
    let providers = &with_models(voice(), |_| {}).unwrap();
    all_voices_are_as_loud_and_none_clips(providers).await;
    what_a_voice_does_not_speak_is_left_to_espeak(providers).await;
}

async fn all_voices_are_as_loud_and_none_clips(providers: &Providers) {
    let english = "The library opens at nine. You can borrow ten books here, and keep them as long as you like.";
    let german = "Die Bibliothek öffnet um neun Uhr. Sie können hier zehn Bücher ausleihen und lange behalten.";
    let french = "La bibliothèque ouvre à neuf heures. Vous pouvez emprunter dix livres et les garder longtemps.";
    let kana = "としょかんは くじに あきます。ここで ほんを じゅっさつまで かりられます。";
    let mut measured = Vec::new();
    for (voice, language, text) in [
        (None, "en", english),
        (Some("en"), "en", english),
        (Some("en+f3"), "en", english),
        (None, "de", german),
        (Some("de+f3"), "de", german),
        (None, "fr", french),
        (Some("fr+f3"), "fr", french),
        (Some("ja"), "ja", kana),
        (Some("ja+f3"), "ja", kana),
        (Some("ja"), "ja", "1234、567。"),
    ] {
        let request = SpeechRequest {
            voice: voice.map(str::to_owned),
            language: Some(language.to_owned()),
            ..say(text)
        };
        let (loudness, peak) = loudness(&speak(providers, request).await);
        println!("{voice:?} {language}: {loudness} LUFS, peak {peak} dBFS");
        assert!(peak < -0.1, "{voice:?} {language}: {peak}");
        measured.push(loudness);
    }
    let loudest = measured.iter().copied().fold(f64::MIN, f64::max);
    let softest = measured.iter().copied().fold(f64::MAX, f64::min);
    assert!(loudest - softest <= 4.0, "{measured:?}");
    assert!((-26.0..-22.0).contains(&softest) && (-26.0..-22.0).contains(&loudest));
}

async fn what_is_spoken_is_understood(providers: &Providers) {
    let cases = [
        (
            "The library opens at nine. You can borrow ten books here.",
            "the library opens at nine you can borrow ten books here",
        ),
        (
            "Dr. Smith's appointment costs $25, and it is on May 3rd at 3:30pm.",
            "dr smith s appointment costs 25 and it is on may 3rd at 3 30 pm",
        ),
    ];
    let (mut missed, mut all) = (0, 0);
    // It says a thing a little differently each time.
    for (written, said) in cases.into_iter().chain(cases) {
        let heard = read_back(providers, say(written)).await;
        // "3:30pm" is written so or with a space.
        let heard = heard.concat();
        println!("{heard}");
        let said = words(said);
        all += said.len();
        missed += said
            .iter()
            .filter(|word| !heard.contains(word.as_str()))
            .count();
    }
    assert!(missed * 18 <= all, "{missed} of {all} words");
}

async fn what_a_voice_does_not_speak_is_left_to_espeak(providers: &Providers) {
    let rate = async |voice: Option<&str>, language: Option<&str>| {
        let request = SpeechRequest {
            voice: voice.map(str::to_owned),
            language: language.map(str::to_owned),
            ..say("Hello.")
        };
        let speech = speak(providers, request).await;
        let lengths: Vec<_> = speech.iter().map(|piece| piece.samples.len()).collect();
        assert!(samples(&speech) > 5_000, "{lengths:?}");
        // What piper makes comes in its own sizes, multiples of a frame of 256 samples.
        lengths[0] % 256 == 0 && lengths[0] <= 40 * 256
    };
    assert!(rate(None, None).await);
    assert!(rate(None, Some("en-GB")).await);
    assert!(rate(Some("en_US-joe-medium"), Some("en")).await);
    assert!(rate(Some("alloy"), Some("en")).await, "a voice of others");
    assert!(
        !rate(Some("en+f3"), Some("en")).await,
        "a voice of espeak-ng"
    );
    assert!(!rate(None, Some("de")).await);
    assert!(!rate(Some("en_US-joe-medium"), Some("de")).await);
    let voices = providers.synthesizer.voices().await.unwrap().voices;
    assert_eq!(voices[0].id, "en_US-joe-medium");
    assert_eq!(voices[0].language.as_deref(), Some("en-us"));
    assert!(voices.iter().any(|voice| voice.id == "de+f3"));
}

/// A folder with the voice, the lengths of whose phonemes do not vary by chance.
fn steady_voice() -> TempDir {
    const NAME: &str = "piper-en_US-joe-medium";
    let folder = TempDir::new().unwrap();
    let (from, to) = (voice().join(NAME), folder.path().join(NAME));
    fs::create_dir(&to).unwrap();
    std::os::unix::fs::symlink(from.join("voice.onnx"), to.join("voice.onnx")).unwrap();
    let settings = fs::read_to_string(from.join("voice.json")).unwrap();
    let steady = settings.replace("\"noise_w\": 0.8", "\"noise_w\": 0");
    assert_ne!(steady, settings);
    fs::write(to.join("voice.json"), steady).unwrap();
    folder
}

#[tokio::test]
async fn speech_keeps_to_its_speed_and_stops_when_nobody_listens() {
    let steady = steady_voice();
    let one = |config: &mut Config| config.inference.threads = Some(1);
    let providers = with_models(steady.path().to_owned(), one).unwrap();
    let text = "This sentence is spoken slowly and fast, and takes its time.";
    let other = "The library opens at nine, and closes at half past six in the evening.";
    let length = async |speed| {
        let mut all = 0.0;
        for text in [text, other] {
            let request = SpeechRequest { speed, ..say(text) };
            all += samples(&speak(&providers, request).await) as f64;
        }
        all
    };
    let normal = length(1.0).await;
    // Where lengths are only divided by the speed, it is 1.3 instead of 1.5.
    for speed in [0.5, 1.25, 1.5] {
        let kept = normal / length(speed).await;
        assert!(
            (kept / f64::from(speed) - 1.0).abs() < 0.03,
            "{kept} instead of {speed}"
        );
    }
    // A long text keeps no thread once it is dropped.
    let long = say(&text.repeat(50));
    let mut speech = providers.synthesizer.speak(long).await.unwrap();
    futures_util::StreamExt::next(&mut speech)
        .await
        .unwrap()
        .unwrap();
    drop(speech);
    let forward = utterance(recording("goforward.raw"), None);
    let heard = providers.transcriber.transcribe(forward);
    timeout(patience(Duration::from_secs(10)), heard)
        .await
        .unwrap()
        .unwrap();
}

async fn many_are_heard_and_spoken_to_at_once(providers: &Providers) {
    let began = Instant::now();
    let all = (0..6).map(|_| async {
        let forward = utterance(recording("goforward.raw"), None);
        let heard = providers.transcriber.transcribe(forward).await.unwrap();
        assert!(speak(providers, say(&heard)).await.len() > 1);
        heard
    });
    let heard = join_all(all).await;
    assert!(heard.iter().all(|one| *one == heard[0]), "{heard:?}");
    println!("six at once: {:?}", began.elapsed());
}

#[tokio::test]
async fn without_models_the_programs_are_used() {
    let empty = TempDir::new().unwrap();
    for folder in [empty.path().to_owned(), empty.path().join("none")] {
        let providers = with_models(folder, |_| {}).unwrap();
        assert_eq!(providers.transcriber.name(), "pocketsphinx");
        assert_eq!(providers.synthesizer.name(), "espeak-ng");
        assert!(!providers.transcriber.starts_early(None));
        assert_eq!(providers.turns.voice_activity(), "earshot");
    }
    let providers = with_models(folder(), |config| {
        config.transcriber.model = Some("pocketsphinx".to_owned());
        config.synthesizer.model = Some("espeak-ng".to_owned());
        config.calls.voice_activity = Some("earshot".to_owned());
    });
    let providers = providers.unwrap();
    assert_eq!(providers.transcriber.name(), "pocketsphinx");
    assert_eq!(providers.synthesizer.name(), "espeak-ng");
    assert_eq!(providers.turns.voice_activity(), "earshot");
}

#[tokio::test]
async fn a_damaged_model_is_not_used_and_a_missing_one_is_named() {
    let damaged = TempDir::new().unwrap();
    for (model, file, bytes) in [
        ("whisper-tiny.en", "model.bin", 75_537_502),
        ("whisper-tiny.en", "vocabulary.txt", 422_309),
        ("piper-en_US-joe-medium", "voice.onnx", 63_201_294),
        ("piper-en_US-joe-medium", "voice.json", 4_794),
    ] {
        fs::create_dir_all(damaged.path().join(model)).unwrap();
        let file = fs::File::create(damaged.path().join(model).join(file)).unwrap();
        file.set_len(bytes).unwrap();
    }
    let providers = with_models(damaged.path().to_owned(), |_| {}).unwrap();
    assert_eq!(providers.transcriber.name(), "pocketsphinx");
    assert_eq!(providers.synthesizer.name(), "espeak-ng");
    let name = |setting: &str, model: &str, folder: PathBuf| {
        let result = with_models(folder, |config| match setting {
            "transcriber" => config.transcriber.model = Some(model.to_owned()),
            _ => config.synthesizer.model = Some(model.to_owned()),
        });
        format!("{:#}", result.unwrap_err())
    };
    let error = name("transcriber", "whisper-tiny.en", damaged.path().to_owned());
    assert!(
        error.contains("transcriber.model") && error.contains("damaged"),
        "{error}"
    );
    let error = name(
        "synthesizer",
        "piper-en_US-joe-medium",
        "/nonexistent".into(),
    );
    assert!(
        error.contains("synthesizer.model") && error.contains("models pull"),
        "{error}"
    );
    let error = name("transcriber", "whisper-9000", folder());
    assert!(error.contains("no transcription model"), "{error}");
    let error = name("synthesizer", "silero-vad", folder());
    assert!(error.contains("no voice"), "{error}");
}
