//! The neural models of tests, which are in the folder `COLLOQUY_TEST_MODELS_DIR`, where `tests/run` puts them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use colloquy::Config;

/// The models that most tests have: what is pulled by default, and what calls can have besides.
const MODELS: [&str; 5] = [
    "whisper-tiny.en",
    "piper-en_US-joe-medium",
    "silero-vad",
    "smart-turn-v3.2",
    "all-minilm-l6-v2",
];

/// Where the models are that most tests have.
pub fn folder() -> PathBuf {
    folder_with("default", &MODELS)
}

/// A voice alone.
pub fn voice() -> PathBuf {
    folder_with("voice", &["piper-en_US-joe-medium"])
}

/// Ears alone.
pub fn ears() -> PathBuf {
    folder_with("ears", &["whisper-tiny.en", "silero-vad"])
}

/// Ears and a voice.
pub fn talk() -> PathBuf {
    let models = ["whisper-tiny.en", "silero-vad", "piper-en_US-joe-medium"];
    folder_with("talk", &models)
}

/// A folder with these models; those of one name have the same.
pub fn folder_with(name: &str, models: &[&str]) -> PathBuf {
    let all = std::env::var_os("COLLOQUY_TEST_MODELS_DIR");
    let named = "COLLOQUY_TEST_MODELS_DIR names a folder with models: tests/run unit";
    let all = PathBuf::from(all.ok_or(named).unwrap());
    let folder = kept().join("models").join(name);
    fs::create_dir_all(&folder).unwrap();
    for model in models {
        // Another test makes the same at this moment.
        let made = std::os::unix::fs::symlink(all.join(model), folder.join(model));
        assert!(made.is_ok() || folder.join(model).is_symlink(), "{made:?}");
    }
    folder
}

/// The defaults, with the models of a folder. What is computed once of a model is kept for other tests.
pub fn settings(folder: PathBuf) -> Config {
    let mut config = Config::default();
    config.inference.models_dir = Some(folder);
    config.store.dir = kept().join("neural");
    config
}

/// What tests keep for each other lies beside what was built.
fn kept() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).map(Path::to_owned);
    built.unwrap().join("kept")
}
