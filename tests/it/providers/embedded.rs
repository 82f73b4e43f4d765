//! The embedded programs, as they are installed.

use std::{fs, time::Duration};

use colloquy::{
    Config,
    providers::{
        self, ProviderErrorKind, SpeechRequest, Synthesizer as _, Transcriber as _, Utterance,
        embedded::{Espeak, Models, PocketSphinx},
    },
};
use futures_util::{StreamExt as _, future::join_all};
use harness::patience;
use tokio::time::Instant;

use super::{Claim, Priority, collect, samples, say};

pub(super) fn recording(name: &str) -> Vec<i16> {
    let bytes = fs::read(format!("/usr/share/pocketsphinx/test/data/{name}")).unwrap();
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}

async fn words(transcriber: &PocketSphinx, samples: Vec<i16>) -> String {
    let utterance = Utterance::new(samples, None, Claim::own(Priority::Call));
    transcriber.transcribe(utterance).await.unwrap()
}

/// Noise of a quiet room, the same each time.
fn quiet(samples: usize) -> Vec<i16> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 26) as i16 - 32
    };
    (0..samples).map(|_| next()).collect()
}

#[tokio::test]
async fn pocketsphinx_hears_what_was_said() {
    let transcriber = PocketSphinx::default();
    transcriber.warm();
    let speech = recording("goforward.raw");
    let began = Instant::now();
    assert_eq!(
        words(&transcriber, speech.clone()).await,
        "go forward ten meters"
    );
    println!("first utterance, with the model: {:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(
        words(&transcriber, speech.clone()).await,
        "go forward ten meters"
    );
    println!(
        "second utterance of {} samples: {:?}",
        speech.len(),
        began.elapsed()
    );
    let padded = [vec![0; 8_000], speech.clone(), vec![0; 8_000]].concat();
    assert_eq!(words(&transcriber, padded).await, "go forward ten meters");
    let in_a_room = [quiet(8_000), speech, quiet(8_000)].concat();
    assert_eq!(
        words(&transcriber, in_a_room).await,
        "go forward ten meters"
    );
    for silence in [vec![], vec![0; 100], vec![0; 16_000], quiet(16_000)] {
        assert_eq!(words(&transcriber, silence).await, "");
    }
    let other = recording("something.raw");
    assert_eq!(
        words(&transcriber, other).await,
        "go somewhere and do something"
    );
}

#[tokio::test]
async fn more_utterances_than_processes_wait_for_each_other() {
    let transcriber = PocketSphinx::new(Models::default(), 2);
    let jobs = (0..4).map(|_| words(&transcriber, recording("goforward.raw")));
    for heard in join_all(jobs).await {
        assert_eq!(heard, "go forward ten meters");
    }
}

#[tokio::test]
async fn an_abandoned_utterance_does_not_answer_the_next() {
    let transcriber = PocketSphinx::new(Models::default(), 1);
    transcriber.check().await.unwrap();
    let abandoned = words(&transcriber, recording("numbers.raw"));
    assert!(
        tokio::time::timeout(Duration::from_millis(20), abandoned)
            .await
            .is_err()
    );
    let heard = words(&transcriber, recording("goforward.raw")).await;
    assert_eq!(heard, "go forward ten meters");
}

#[tokio::test]
async fn espeak_refuses_the_script_of_a_language_that_it_has_no_voice_of() {
    let espeak = Espeak::default();
    for (text, expected) in [
        ("ᠮᠣᠩᠭᠣᠯ", Some(ProviderErrorKind::Rejected)),
        ("Ulaanbaatar, 12", None),
    ] {
        let request = SpeechRequest {
            language: Some("mn".to_owned()),
            ..say(text)
        };
        let (pieces, failure) = collect(espeak.speak(request).await).await;
        assert_eq!(failure, expected, "{text}");
        assert_eq!(pieces.is_empty(), expected.is_some(), "{text}");
    }
}

#[tokio::test]
async fn espeak_speaks_every_language() {
    let espeak = Espeak::default();
    espeak.check().await.unwrap();
    let texts = [
        ("en", "Hello there, how are you?"),
        ("es", "Hola, ¿cómo estás?"),
        ("fr", "Bonjour, comment allez-vous ?"),
        ("de", "Guten Tag, wie geht es Ihnen?"),
        ("it", "Buongiorno, come sta?"),
        ("pt", "Olá, como está?"),
        ("pl", "Dzień dobry, jak się masz?"),
        ("ru", "Здравствуйте, как дела?"),
        ("nl", "Goedendag, hoe gaat het?"),
        ("ar", "مرحبا، كيف حالك؟"),
        ("zh-cn", "你好，你好吗？"),
        ("ja", "こんにちは、おげんきですか。"),
        ("ko", "안녕하세요?"),
        ("hi", "नमस्ते, आप कैसे हैं?"),
        ("he", "שלום, מה שלומך?"),
    ];
    for (language, text) in texts {
        let request = SpeechRequest {
            language: Some(language.to_owned()),
            ..say(text)
        };
        let (pieces, failure) = collect(espeak.speak(request).await).await;
        assert_eq!(failure, None, "{language}");
        let loud = pieces
            .iter()
            .flat_map(|p| &p.samples)
            .any(|s| s.unsigned_abs() > 1_000);
        assert!(loud && samples(&pieces) > 10_000, "{language}");
        assert!(pieces.iter().all(|piece| piece.sample_rate_hz == 22_050));
    }
}

#[tokio::test]
async fn what_espeak_says_has_one_gain_from_its_beginning_to_its_end() {
    let text = "This is a sentence that is long enough for several pieces, and it has one gain.";
    let request = SpeechRequest {
        language: Some("de".to_owned()),
        ..say(text)
    };
    let (pieces, failure) = collect(Espeak::default().speak(request).await).await;
    assert!(failure.is_none() && pieces.len() > 3);
    let heard: Vec<i16> = pieces.into_iter().flat_map(|piece| piece.samples).collect();
    let program = std::process::Command::new("espeak-ng")
        .args(["--stdout", "-b", "1", "-v", "de", "-s", "175", text])
        .output()
        .unwrap();
    let (said, _) = program.stdout[44..].as_chunks::<2>();
    let said: Vec<f64> = said
        .iter()
        .map(|sample| f64::from(i16::from_le_bytes(*sample)))
        .collect();
    assert_eq!(heard.len(), said.len());
    let energy = |sound: &mut dyn Iterator<Item = f64>| sound.map(|one| one * one).sum::<f64>();
    let gain =
        energy(&mut heard.iter().copied().map(f64::from)) / energy(&mut said.iter().copied());
    let gain = gain.sqrt();
    assert!((0.3..1.5).contains(&gain), "{gain}");
    for (heard, said) in heard.iter().zip(&said) {
        assert!(
            (f64::from(*heard) - said * gain).abs() < 1.0,
            "{heard} {said} {gain}"
        );
    }
}

#[tokio::test]
async fn espeak_begins_at_once_and_takes_speed_and_length() {
    let espeak = Espeak::default();
    espeak.check().await.unwrap();
    let long = "This is one sentence of a long text. ".repeat(200);
    for text in ["Hello there.", &long] {
        drop(espeak.speak(say("warm")).await);
        let began = Instant::now();
        let mut speech = espeak.speak(say(text)).await.unwrap();
        speech.next().await.unwrap().unwrap();
        println!(
            "first sound of {} characters: {:?}",
            text.len(),
            began.elapsed()
        );
        assert!(began.elapsed() < patience(Duration::from_secs(2)));
    }
    let (whole, failure) = collect(espeak.speak(say(&long)).await).await;
    assert!(failure.is_none() && samples(&whole) > 200 * 22_050);
    let normal = samples(
        &collect(espeak.speak(say("A sentence to be spoken.")).await)
            .await
            .0,
    );
    let mut fast = say("A sentence to be spoken.");
    fast.speed = 1.5;
    let fast = samples(&collect(espeak.speak(fast).await).await.0);
    assert!(fast * 10 < normal * 9, "{fast} {normal}");
    // Neither an option nor a phoneme command nor a voice of another provider breaks it.
    let mut odd = say("--version [[h@l'oU]] $(id)");
    odd.voice = Some("--path=/etc".to_owned());
    assert!(samples(&collect(espeak.speak(odd).await).await.0) > 10_000);
}

#[tokio::test]
async fn without_settings_the_embedded_defaults_answer() {
    let mut config = Config::default();
    config.calls.provider_timeout_ms = 120_000;
    let providers = providers::from_config(&config).unwrap();
    assert_eq!(providers.chat.name(), "builtin/extractive");
    assert_eq!(providers.transcriber.name(), "pocketsphinx");
    assert_eq!(providers.synthesizer.name(), "espeak-ng");
    providers.chat.check().await.unwrap();
    providers.transcriber.check().await.unwrap();
    providers.synthesizer.check().await.unwrap();
}

#[tokio::test]
async fn a_slow_transcriber_is_bounded() {
    let mut config = Config::default();
    config.calls.provider_timeout_ms = 100;
    let providers = providers::from_config(&config).unwrap();
    let samples = recording("numbers.raw").repeat(10);
    let began = Instant::now();
    let utterance = Utterance::new(samples, None, Claim::own(Priority::Call));
    let error = providers
        .transcriber
        .transcribe(utterance)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Timeout);
    assert!(began.elapsed() < patience(Duration::from_secs(2)));
}
