//! Files of models with changed bytes: an error, or a model that answers something else; never a panic.

use std::{ops::Range, sync::Arc};

use colloquy_inference::{
    InferenceError,
    piper::Piper,
    runtime::Rten,
    silero::{FRAME, Listener, Silero},
    smart_turn::SmartTurn,
};

use super::{FOX, file};

/// How many changed files are tried of each model.
const TRIES: usize = 20;

/// Changed bytes of a file.
const CHANGES: usize = 8;

/// Files with some bytes changed where the operators are; the rest are mostly weights, which may be anything.
fn changed(original: &[u8], operators: Range<usize>) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 1_u32;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    (0..TRIES).map(move |_| {
        let mut changed = original.to_vec();
        for _ in 0..CHANGES {
            let at = operators.start + random(operators.len());
            changed[at] = random(256) as u8;
        }
        changed
    })
}

/// Asks changed files of a model, which has its operators there; some of them have to give no answer.
fn tried(
    model: &str,
    name: &str,
    operators: Range<usize>,
    ask: impl Fn(Vec<u8>) -> Result<(), InferenceError>,
) {
    let original = file(model, name);
    ask(original.clone()).unwrap();
    let mut answered = 0;
    for changed in changed(&original, operators) {
        match ask(changed) {
            Ok(()) => answered += 1,
            Err(error) => {
                let is_told = matches!(
                    error,
                    InferenceError::Malformed(_) | InferenceError::Failed(_)
                );
                assert!(is_told, "{model}: {error}");
            }
        }
    }
    assert!(answered < TRIES, "{model}: the changes changed nothing");
}

#[test]
fn no_model_of_voice_activity_with_changed_bytes_makes_it_panic() {
    let runtime = Rten::new();
    tried(
        "silero-vad",
        "model.onnx",
        1_242_000..1_288_000,
        |changed| {
            let silero = Silero::load(&runtime, changed)?;
            let mut listener = Listener::default();
            for _ in 0..3 {
                silero.hear(&mut listener, &[0.1; FRAME])?;
            }
            Ok(())
        },
    );
}

#[test]
fn no_model_of_turns_with_changed_bytes_makes_it_panic() {
    let runtime = Rten::new();
    tried("smart-turn-v3.2", "model.onnx", 0..60_000, |changed| {
        SmartTurn::load(&runtime, changed)?.complete(&[0.1; 8_000], &|| true)?;
        Ok(())
    });
}

#[test]
fn no_voice_with_changed_bytes_makes_it_panic() {
    let runtime = Rten::new();
    let voice = "piper-en_US-joe-medium";
    let settings = file(voice, "voice.json");
    let phonemes: String = FOX.chars().take(20).collect();
    tried(voice, "voice.onnx", 0..500_000, |changed| {
        let voice = Arc::new(Piper::load(&runtime, changed, &settings)?);
        voice
            .speak(&phonemes, 1.0, &|| true)?
            .next_piece(&|| true)?;
        Ok(())
    });
}
