//! Which of two models hears a language; that the one for all languages is used where it is named, and tells them apart.

use colloquy_inference::{runtime::Rten, whisper};

use super::*;

/// What espeak-ng says.
const SAID: [(&str, &str); 2] = [
    ("de", "Guten Morgen. Die Bibliothek ist heute geschlossen."),
    ("es", "Buenos días. La biblioteca está cerrada hoy."),
];

async fn spoken(providers: &Providers, language: &str, text: &str) -> Vec<i16> {
    let request = SpeechRequest {
        language: Some(language.to_owned()),
        ..say(text)
    };
    at_16_khz(&speak(providers, request).await)
}

#[tokio::test]
async fn two_models_in_one_folder_are_chosen_by_language() {
    let both = folder_with("both", &["whisper-tiny.en", "whisper-base"]);
    let providers = with_models(both, |_| {}).unwrap();
    // The one that knows English alone hears it better.
    assert_eq!(providers.transcriber.name(), "whisper-tiny.en");
    for language in [None, Some("en-US"), Some("de"), Some("es-MX")] {
        let early = providers.transcriber.starts_early(language);
        assert!(early, "{language:?} is left to PocketSphinx");
    }
    let forward = utterance(recording("goforward.raw"), Some("en"));
    let heard = providers.transcriber.transcribe(forward).await.unwrap();
    assert_eq!(words(&heard), ["go", "forward", "ten", "meters"]);
    for (language, text) in SAID {
        let said = words(text);
        let speech = spoken(&providers, language, text).await;
        let heard = providers
            .transcriber
            .transcribe(utterance(speech, Some(language)));
        let heard = words(&heard.await.unwrap());
        println!("{language}: {heard:?}");
        let missed: Vec<_> = said
            .iter()
            .filter(|word| !heard.iter().any(|heard| heard == *word))
            .collect();
        // It is a voice that people misunderstand, too; a model that knows English alone hears none of these words.
        assert!(missed.len() * 2 < said.len(), "{language}: {heard:?}");
    }
    // Each model is one of those that the server says it keeps.
    let kept: Vec<_> = providers.model_bytes.keys().copied().collect();
    assert_eq!(kept, ["whisper-base", "whisper-tiny.en"]);
}

#[tokio::test]
async fn one_model_that_is_named_hears_all_that_it_knows() {
    let both = folder_with("both", &["whisper-tiny.en", "whisper-base"]);
    let named = |config: &mut Config| config.transcriber.model = Some("whisper-base".to_owned());
    let providers = with_models(both, named).unwrap();
    assert_eq!(providers.transcriber.name(), "whisper-base");
    assert!(!providers.model_bytes.contains_key("whisper-tiny.en"));
    let forward = utterance(recording("goforward.raw"), Some("en"));
    let heard = providers.transcriber.transcribe(forward).await.unwrap();
    assert_eq!(words(&heard), ["go", "forward", "ten", "meters"]);
}

#[tokio::test]
async fn the_language_of_an_utterance_is_told() {
    let only = folder_with("base", &["whisper-base"]);
    let file = |name: &str| fs::read(only.join("whisper-base").join(name)).unwrap();
    let (weights, vocabulary) = (file("model.bin"), file("vocabulary.txt"));
    let model = whisper::Whisper::load(&Rten::new(), &weights, &vocabulary).unwrap();
    let providers = with_models(folder_with("none", &[]), |_| {}).unwrap();
    let english = ("en", recording("goforward.raw"));
    let mut sounds = vec![english];
    for (language, text) in SAID {
        sounds.push((language, spoken(&providers, language, text).await));
    }
    for (language, sound) in sounds {
        let samples: Vec<f32> = sound
            .iter()
            .map(|sample| f32::from(*sample) / 32_768.0)
            .collect();
        let told = model.language(&samples, &|_| true, &|| true).unwrap();
        assert_eq!(told, Some(language));
    }
}
