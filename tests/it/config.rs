//! Settings: defaults, a TOML file, the environment, bad values. Each case is a process of its own, since the
//! environment belongs to a process.

use std::process::Output;

use harness::{TestDatabase, process};

fn migrate(toml: Option<&str>, environment: &[(&str, &str)]) -> Output {
    let database = TestDatabase::sqlite();
    let mut command = process::command(&database, &["migrate"]);
    let file = database.config().dir.join("colloquy.toml");
    if let Some(toml) = toml {
        std::fs::write(&file, toml).unwrap();
        command.arg("--config").arg(&file);
    }
    command.envs(environment.iter().copied()).output().unwrap()
}

#[track_caller]
fn refused(output: &Output, names: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted");
    assert!(errors.contains(names), "{errors}");
}

#[test]
fn good_settings_are_taken() {
    let output = migrate(
        Some("[http]\nlisten = \"127.0.0.1:0\"\n"),
        &[("COLLOQUY_LIMITS_REQUEST_BURST", "7")],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn voices_and_prices_are_written_in_more_than_one_way() {
    let toml = r#"
        [speech]
        usd_per_1m_characters = 15
        [synthesizer]
        base_url = "http://127.0.0.1:1/v1"
        model = "kokoro"
        [synthesizer.voices]
        anna = "af_bella"
    "#;
    for (name, value) in [
        ("COLLOQUY_LOG_FORMAT", "text"),
        ("COLLOQUY_SPEECH_USD_PER_1M_CHARACTERS", "0.5"),
        ("COLLOQUY_SPEECH_USD_PER_1M_CHARACTERS", "30"),
        ("COLLOQUY_SYNTHESIZER_VOICES", "{anna=af_bella,ben=am_adam}"),
    ] {
        let output = migrate(Some(toml), &[(name, value)]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}={value}: {errors}");
    }
}

#[test]
fn the_settings_of_the_readme_are_taken() {
    let readme = include_str!("../../README.md");
    let blocks = readme.split("```toml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let blocks = blocks.collect::<Vec<_>>();
    assert!(!blocks.is_empty());
    for block in blocks {
        let output = migrate(Some(block), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let output = migrate(
        Some("[limits]\nrequest_burst = 5\n"),
        &[("COLLOQUY_LIMITS_REQUEST_BURST", "0")],
    );
    refused(&output, "limits.request_burst");
    let output = migrate(
        Some("[limits]\nrequest_burst = 0\n"),
        &[("COLLOQUY_LIMITS_REQUEST_BURST", "5")],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn bad_settings_are_named() {
    refused(
        &migrate(Some("[http]\nlisten = \"nowhere\"\n"), &[]),
        "listen",
    );
    refused(
        &migrate(Some("[htpp]\nlisten = \"127.0.0.1:0\"\n"), &[]),
        "htpp",
    );
    refused(&migrate(Some("[http]\nlistn = 1\n"), &[]), "listn");
    refused(
        &migrate(None, &[("COLLOQUY_HTTP_PUBLIC_URL", "ftp://example.com")]),
        "http.public_url",
    );
    refused(
        &migrate(None, &[("COLLOQUY_STORE_DATABASE_URL", "mysql://x")]),
        "store.database_url",
    );
    refused(
        &migrate(None, &[("COLLOQUY_SIGNING_KEYS", "a:short")]),
        "signing_keys",
    );
    refused(
        &migrate(None, &[("COLLOQUY_LOG_FILTER", "colloquy=loud")]),
        "log.filter",
    );
    refused(
        &migrate(None, &[("COLLOQUY_CHAT_BASE_URL", "http://127.0.0.1:1/v1")]),
        "chat.model",
    );
    refused(
        &migrate(None, &[("COLLOQUY_SYNTHESIZER_VOICES", "{anna=af_bella}")]),
        "synthesizer.voices",
    );
    refused(
        &migrate(None, &[("COLLOQUY_SPEECH_MODEL", "\"\"")]),
        "speech.model",
    );
    refused(
        &migrate(None, &[("COLLOQUY_LIMITS_COMPLETION_MINUTES", "0")]),
        "limits.completion_minutes",
    );
    refused(
        &migrate(None, &[("COLLOQUY_SPEECH_USD_PER_1M_CHARACTERS", "-1")]),
        "USD_PER_1M_CHARACTERS",
    );
    refused(
        &migrate(None, &[("COLLOQUY_CONFIG", "/nowhere/colloquy.toml")]),
        "colloquy.toml",
    );
}

#[test]
fn secrets_are_hidden() {
    let config = colloquy::Config {
        admin_key: Some(colloquy::config::Secret::new("very-secret")),
        ..colloquy::Config::default()
    };
    assert!(!format!("{config:?}").contains("very-secret"));
    assert!(
        !serde_json::to_string(&config)
            .unwrap()
            .contains("very-secret")
    );
    let output = migrate(None, &[("COLLOQUY_SIGNING_KEYS", "kid:long-enough-secret")]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
