//! Calls whose turns are listened to by the models of the models folder.

mod capacity;
mod pacing;

use super::*;
use harness::neural::{folder, settings};

/// How long after the visitor's last sound the reply is heard.
async fn answered_after(change: impl FnOnce(&mut Config)) -> Duration {
    let stage = Stage::with(|config| {
        config.inference.models_dir = Some(folder());
        config.transcriber.starts_early = true;
        change(config);
    })
    .await;
    stage.answered_after().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_sounds_complete_is_answered_sooner() {
    let fixed = answered_after(|config| config.calls.turn_stop_ms = 4_000);
    let predicted = answered_after(|config| {
        config.calls.turn_stop_ms = 10_000;
        config.calls.end_of_turn = Some("smart-turn-v3.2".to_owned());
        config.calls.complete_stop_ms = 200;
        config.calls.incomplete_stop_ms = 10_000;
    });
    let (predicted, fixed) = (predicted.await, fixed.await);
    assert!(fixed >= Duration::from_millis(4_000), "{fixed:?}");
    // A third of a second on a machine that has nothing else to do, and ten seconds unless the model says that the turn is over.
    let most = patience(Duration::from_millis(3_500)).min(Duration::from_secs(8));
    assert!(predicted < most, "{predicted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_may_tell_speech() {
    let answered = answered_after(|config| {
        config.calls.turn_stop_ms = 300;
        config.calls.voice_activity = Some("silero-vad".to_owned());
    });
    let answered = answered.await;
    assert!(
        (Duration::from_millis(250)..patience(Duration::from_secs(3))).contains(&answered),
        "{answered:?}"
    );
}

#[test]
fn a_model_for_something_else_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = settings(folder());
        change(&mut config);
        format!("{:#}", providers::from_config(&config).unwrap_err())
    };
    let silero = || Some("silero-vad".to_owned());
    let error = refused(|config| config.calls.end_of_turn = Some("whisper-tiny.en".to_owned()));
    assert_eq!(
        error,
        "calls.end_of_turn: whisper-tiny.en: it is no model for end of turn"
    );
    let error = refused(|config| config.calls.voice_activity = Some("unknown".to_owned()));
    assert_eq!(
        error,
        "calls.voice_activity: unknown: it is no model for voice activity"
    );
    let error = refused(|config| config.transcriber.model = Some("whisper-bse".to_owned()));
    assert_eq!(
        error,
        "transcriber.model: whisper-bse: it is no transcription model"
    );
    let error = refused(|config| config.synthesizer.model = Some("nope".to_owned()));
    assert_eq!(error, "synthesizer.model: nope: it is no voice");
    let mut elsewhere = settings("/nowhere".into());
    elsewhere.calls.voice_activity = silero();
    let error = providers::from_config(&elsewhere).unwrap_err();
    assert!(format!("{error:#}").starts_with("calls.voice_activity: silero-vad"));
}
