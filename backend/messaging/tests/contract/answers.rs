//! The shape of answers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy_observability::Metrics;
use colloquy_speech::decode_ogg;

use super::*;

/// What the chat model of the doubles says.
const SAID: &str = "Hello there. How can I help?";

on_each_database!(an_answer_has_the_shape_of_the_document, |database| {
    let metrics = Metrics::get();
    let app = start(&database).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    let (acme, _) = app.acme_and_other().await;
    let messages = json!([
        {"id": "p1", "originator": "user", "text": "Hello", "is_processed": true},
        {"id": "p2", "originator": "bot", "text": "Hi \u{0}.", "is_processed": true},
        {"id": "m1", "type": "text", "text": "Who are you?", "audio_file_id": null, "is_processed": false},
        {"id": "m2", "type": "text", "text": "Really.", "is_processed": false, "originator": "user"},
    ]);
    let asked = json!([
        {"id": "m1", "type": "text", "text": "Who are you?"},
        {"id": "m2", "type": "text", "text": "Really."},
    ]);
    let silent = output(&app, &acme.key, question(messages.clone(), json!({}))).await;
    let expected = json!({
        "messages": [asked[0], asked[1], {"type": "text", "text": SAID}],
        "audio_files": {},
    });
    assert_eq!(silent, expected);

    let options = json!({"num_options": 2});
    let several = output(&app, &acme.key, question(messages.clone(), options)).await;
    let option = json!({"text": SAID});
    let expected = json!({
        "messages": [asked[0], asked[1], {"type": "text", "text": SAID, "options": [option, option]}],
        "audio_files": {},
    });
    assert_eq!(several, expected);
    let metrics = metrics.render();
    for line in [
        r#"colloquy_messaging_completions_total{outcome="completed"} 2"#,
        "colloquy_messaging_completion_seconds_count 2",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }

    // Sound is what is made unless nobody wants it.
    for more in [
        json!({"generate_audio": null}),
        json!({"generate_audio": true, "num_options": 1}),
    ] {
        let mut spoken = output(&app, &acme.key, question(messages.clone(), more)).await;
        let file = spoken["audio_files"]["response"].take();
        let file = STANDARD.decode(file.as_str().unwrap()).unwrap();
        let samples = decode_ogg(&file, Duration::from_secs(10)).unwrap();
        // The double takes 50 ms for a character.
        let seconds = samples.len() as f64 / 16_000.0;
        let expected = SAID.len() as f64 * 0.05;
        assert!(
            (seconds - expected).abs() < 0.06,
            "{seconds} s instead of {expected} s"
        );
        let loud = samples
            .iter()
            .filter(|sample| sample.unsigned_abs() > 2_000)
            .count();
        assert!(loud * 2 > samples.len(), "{loud} loud samples");
        let expected = json!({
            "messages": [asked[0], asked[1], {"type": "audio", "text": SAID, "audio_file_id": "response"}],
            "audio_files": {"response": null},
        });
        assert_eq!(spoken, expected);
    }
});
