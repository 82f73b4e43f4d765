//! Kokoro as the voice of a server. It is in the folder `COLLOQUY_TEST_KOKORO_DIR`, where `tests/run unit` puts it; without that it
//! is looked for among the other models, and not tested where it is not there.

use std::path::PathBuf;

use colloquy::{
    Config,
    providers::{self, Pcm, Providers, SpeechRequest},
};
use colloquy_word_errors::{errors, words};
use harness::{
    TestApp, TestDatabase,
    neural::{self as models, settings},
};
use reqwest::Method;
use serde_json::json;

use super::{neural, samples, say};

const KOKORO: &str = "kokoro-82m";

/// The folder with the model, if it is there.
fn folder() -> Option<PathBuf> {
    let own = std::env::var_os("COLLOQUY_TEST_KOKORO_DIR").map(PathBuf::from);
    let is_promised = own.is_some();
    let folder = own.unwrap_or_else(models::folder);
    let is_there = folder.join(KOKORO).is_dir();
    assert!(
        is_there || !is_promised,
        "{} has no {KOKORO}",
        folder.display()
    );
    if !is_there {
        println!("{KOKORO}: not tested, since it is not there");
    }
    is_there.then_some(folder)
}

fn providers(folder: PathBuf, change: impl FnOnce(&mut Config)) -> Providers {
    let mut config = settings(folder);
    // However busy the machine is: what is tested is what is said, not when.
    config.calls.provider_timeout_ms = 240_000;
    change(&mut config);
    providers::from_config(&config).unwrap()
}

fn by_name(config: &mut Config) {
    config.synthesizer.model = Some(KOKORO.to_owned());
}

#[tokio::test]
async fn kokoro_speaks_where_it_is_named_however_slow_it_is() {
    let Some(folder) = folder() else { return };
    let ears = providers(models::ears(), |config| {
        config.synthesizer.model = Some("espeak-ng".to_owned());
    });
    let voice = providers(folder, by_name);
    assert_eq!(voice.synthesizer.name(), KOKORO);
    let speeds = voice.synthesizer.speeds();
    assert!(speeds.len() == 1 && speeds[0].is_used, "{speeds:?}");
    assert!(speeds[0].real_time_factor > 0.001);
    // The slower the voice, the fewer calls. The factor is rounded.
    let threads = std::thread::available_parallelism().unwrap().get() as f64;
    let most = threads * 0.75 / (0.5 * speeds[0].real_time_factor) * 1.01;
    let max_calls = voice.max_calls.unwrap();
    assert!(f64::from(max_calls) <= most.max(1.0), "{max_calls}, {most}");
    voice.synthesizer.check().await.unwrap();

    let (mut wrong, mut all) = (0, 0);
    for (written, said) in [
        (
            "Your appointment is booked for Thursday at half past three, and I will send you a reminder the day before.",
            "your appointment is booked for thursday at half past three and i will send you a reminder the day before",
        ),
        (
            "The library opens at nine. You can borrow ten books here.",
            "the library opens at nine you can borrow ten books here",
        ),
    ] {
        let spoken = neural::speak(&voice, say(written)).await;
        assert!(spoken.len() > 1, "it is heard before all of it is made");
        assert!(samples(&spoken[..1]) < samples(&spoken) * 3 / 4);
        assert!(spoken.iter().all(|piece| piece.sample_rate_hz == 24_000));
        let heard = neural::hear(&ears, neural::at_16_khz(&spoken)).await;
        println!("{heard}");
        let said = words(said);
        wrong += errors(&said, &words(&heard));
        all += said.len();
    }
    println!("{wrong} of {all} words wrong");
    assert!(wrong * 10 <= all, "{wrong} of {all} words wrong");

    let pieces = async |voice_of: Option<&str>, language: Option<&str>| {
        let request = SpeechRequest {
            voice: voice_of.map(str::to_owned),
            language: language.map(str::to_owned),
            ..say("Hello.")
        };
        neural::speak(&voice, request).await[0].sample_rate_hz
    };
    assert_eq!(pieces(Some("af_heart"), Some("en-US")).await, 24_000);
    assert_eq!(pieces(None, Some("en")).await, 24_000);
    assert_ne!(pieces(None, Some("de")).await, 24_000, "espeak-ng");
    assert_ne!(pieces(Some("af_heart"), Some("de")).await, 24_000);
    let voices = voice.synthesizer.voices().await.unwrap().voices;
    assert_eq!(voices[0].id, "af_heart");
    assert_eq!(voices[0].language.as_deref(), Some("en-us"));
    is_heard_over_http(voice, &ears).await;
}

/// The speech interface has the voice by its name, in its list and in what is asked of it.
async fn is_heard_over_http(voice: Providers, ears: &Providers) {
    let app = TestApp::builder(&TestDatabase::sqlite()).providers(voice);
    let app = app.start().await;
    let partner = app.partner("acme").await;
    let listed = app.get(&partner.key, "/v2/audio/voices").await.expect(200);
    assert!(listed.to_string().contains("af_heart"), "{listed}");
    let body = json!({
        "model": "colloquy-tts",
        "voice": "af_heart",
        "input": "The museum opens at ten.",
        "response_format": "pcm",
    });
    let request = app.request(Method::POST, "/v2/audio/speech");
    let answer = request.bearer_auth(&partner.key).json(&body).send().await;
    let answer = answer.unwrap().error_for_status().unwrap();
    let bytes = answer.bytes().await.unwrap();
    let (pairs, _) = bytes.as_chunks::<2>();
    let spoken = Pcm {
        samples: pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect(),
        sample_rate_hz: 24_000,
    };
    let heard = neural::hear(ears, neural::at_16_khz(&[spoken])).await;
    let heard = heard.to_lowercase().replace("10", "ten");
    assert!(heard.contains("museum opens at ten"), "{heard}");
}

#[tokio::test]
async fn kokoro_speaks_by_default_where_the_machine_is_fast_enough() {
    let Some(folder) = folder() else { return };
    let alone = tempfile::TempDir::new().unwrap();
    std::os::unix::fs::symlink(folder.join(KOKORO), alone.path().join(KOKORO)).unwrap();
    let providers = providers(alone.path().to_owned(), |_| {});
    let speeds = providers.synthesizer.speeds();
    let speed = &speeds[0];
    println!("{speed:?}");
    assert_eq!((speeds.len(), speed.model.as_str()), (1, KOKORO));
    // What is between is rounded.
    assert!(speed.is_used == (speed.real_time_factor < 0.4) || speed.real_time_factor == 0.4);
    let name = if speed.is_used { KOKORO } else { "espeak-ng" };
    assert_eq!(providers.synthesizer.name(), name);
    assert_eq!(providers.max_calls.is_some(), speed.is_used);
    assert!(samples(&neural::speak(&providers, say("Hello.")).await) > 5_000);
}
