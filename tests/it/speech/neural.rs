//! Speech by the voice that is there by default.

use super::*;
use harness::neural;

const TEXT: &str =
    "The museum opens at eleven. Come early, and bring a friend! On Sundays it is closed.";

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_spoken_by_piper() {
    let settings = neural::settings(neural::voice());
    let providers = providers::from_config(&settings).unwrap();
    assert_eq!(providers.synthesizer.name(), "piper-en_US-joe-medium");
    let builder = TestApp::builder(&TestDatabase::sqlite()).providers(providers);
    let app = builder.start().await;
    let partner = app.partner("acme").await;
    let listed = app.get(&partner.key, "/v2/audio/voices").await.expect(200);
    assert!(listed.to_string().contains("en_US-joe-medium"), "{listed}");

    let voice = json!("en_US-joe-medium");
    let espeak = sound(ask(
        &app,
        &partner.key,
        TEXT,
        json!({"voice": "en+f3", "response_format": "pcm"}),
    ))
    .await;
    let expected = samples(&espeak.bytes).len();
    for (format, kind) in [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        ("wav", "audio/wav"),
        ("pcm", "application/octet-stream"),
    ] {
        let more = json!({"voice": voice, "response_format": format});
        let answer = sound(ask(&app, &partner.key, TEXT, more)).await;
        assert_eq!(answer.header("content-type"), kind);
        let heard = match format {
            "pcm" => samples(&answer.bytes),
            _ => decoded(&answer.bytes),
        };
        // About as long as espeak-ng takes for it, and something else.
        let length = heard.len();
        assert!(
            (expected / 2..expected * 2).contains(&length),
            "{format}: {length} {expected}"
        );
        let loud = heard
            .iter()
            .filter(|sample| sample.unsigned_abs() > 1_000)
            .count();
        assert!(loud > length / 10, "{format}: {loud} of {length}");
        assert!(answer.bytes != espeak.bytes);
        // What it says is understood by whoever knows only that sound.
        let file = samples(&ffmpeg_of(format, &answer.bytes));
        assert_eq!(
            opening(file).await,
            "the museum opens at eleven",
            "{format}"
        );
    }

    // Its letters, one by one, would take 7 s.
    let more = json!({"voice": voice, "response_format": "pcm"});
    let thai = sound(ask(&app, &partner.key, "สวัสดี", more)).await;
    let seconds = samples(&thai.bytes).len() as f64 / 24_000.0;
    assert!((0.5..2.5).contains(&seconds), "{seconds} s");
}

/// The sound at 16,000 samples a second, whatever its format.
fn ffmpeg_of(format: &str, sound: &[u8]) -> Vec<u8> {
    let out = ["-f", "s16le", "-ar", "16000", "-ac", "1"];
    match format {
        "pcm" => {
            let (pairs, _) = sound.as_chunks::<2>();
            let mut wav = Vec::new();
            let length = u32::try_from(sound.len()).unwrap();
            wav.extend(b"RIFF");
            wav.extend((36 + length).to_le_bytes());
            wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
            wav.extend(24_000_u32.to_le_bytes());
            wav.extend(48_000_u32.to_le_bytes());
            wav.extend(b"\x02\0\x10\0data");
            wav.extend(length.to_le_bytes());
            wav.extend(pairs.as_flattened());
            ffmpeg(&wav, &out)
        }
        _ => ffmpeg(sound, &out),
    }
}

/// The first words of some speech.
async fn opening(samples: Vec<i16>) -> String {
    let settings = neural::settings(neural::ears());
    let providers = providers::from_config(&settings).unwrap();
    let utterance = providers::Utterance::new(
        samples,
        Some("en".to_owned()),
        colloquy::fair_queue::Claim::own(colloquy::fair_queue::Priority::Request),
    );
    let heard = providers.transcriber.transcribe(utterance).await.unwrap();
    let heard = heard.to_lowercase().replace("11", "eleven");
    let words = heard.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(5).collect();
    words.join(" ")
}
