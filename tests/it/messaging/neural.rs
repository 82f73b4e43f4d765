//! Messages with the models that are there by default: Whisper hears them, Piper speaks the answers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy::{Config, providers, speech::decode_ogg};
use harness::doubles::Doubles;

use super::{audio::recorded_file, *};
use harness::neural;

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_message_is_heard_by_whisper_and_answered_by_piper() {
    let own = providers::from_config(&neural::settings(neural::talk())).unwrap();
    let mut providers = Doubles::default().providers(&Config::default());
    assert_eq!(own.batch.transcriber.name(), "whisper-tiny.en");
    providers.transcriber = own.transcriber;
    providers.batch.transcriber = own.batch.transcriber;
    providers.synthesizer = own.synthesizer;
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.with_decoder().providers(providers).start().await;
    let (acme, _) = app.acme_and_other().await;

    let file = recorded_file("/usr/share/pocketsphinx/test/data/goforward.raw");
    let more = json!({"audio_files": {"a": file}, "generate_audio": true});
    let answer = output(&app, &acme.key, question(json!([voiced("m1", "a")]), more)).await;
    let heard = answer["messages"][0]["text"]
        .as_str()
        .unwrap()
        .to_lowercase();
    assert!(heard.starts_with("go forward"), "{answer}");
    assert!(
        heard.contains("10 meters") || heard.contains("ten meters"),
        "{answer}"
    );
    let spoken = answer["audio_files"]["response"].as_str().unwrap();
    let spoken = STANDARD.decode(spoken).unwrap();
    let said = decode_ogg(&spoken, Duration::from_secs(60)).unwrap();
    let loud = said
        .iter()
        .filter(|sample| sample.unsigned_abs() > 1_000)
        .count();
    assert!(loud > 4_000, "{loud} of {}", said.len());
}
