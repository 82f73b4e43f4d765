//! Settings: defaults, a TOML file, the environment, bad values. Each case is a process of its own, since the
//! environment belongs to a process.

use std::process::Output;

use harness::{TestDatabase, process};
use serde_json::json;

fn migrate(toml: Option<&str>, environment: &[(&str, &str)]) -> Output {
    run(&["migrate"], toml, environment)
}

fn run(command: &[&str], toml: Option<&str>, environment: &[(&str, &str)]) -> Output {
    let database = TestDatabase::sqlite();
    let mut command = process::command(&database, command);
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
        ("COLLOQUY_KNOWLEDGE_VIDEO_HOSTS", "youtu.be,vimeo.com"),
        ("COLLOQUY_KNOWLEDGE_VIDEO_HOSTS", "[youtu.be]"),
        ("COLLOQUY_KNOWLEDGE_OCR_LANGUAGES", "deu,eng"),
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
        &migrate(None, &[("COLLOQUY_LOG_FILTER", "colloquy=loud")]),
        "log.filter",
    );
    refused(
        &migrate(None, &[("COLLOQUY_CHAT_BASE_URL", "http://127.0.0.1:1/v1")]),
        "chat.model",
    );
    let long = format!("[calls.user_info]\n{} = \"\"\n", "n".repeat(101));
    refused(&migrate(Some(&long), &[]), "calls.user_info");
    let fields = (0..51).map(|it| format!("f{it} = \"\"\n"));
    let many = format!("[calls.user_info]\n{}", fields.collect::<String>());
    refused(&migrate(Some(&many), &[]), "calls.user_info");
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
    for value in ["0", "1001"] {
        refused(
            &migrate(None, &[("COLLOQUY_LIMITS_NETWORKS_PER_KEY", value)]),
            "limits.networks_per_key: 1 to 1000",
        );
    }
    refused(
        &migrate(None, &[("COLLOQUY_SPEECH_USD_PER_1M_CHARACTERS", "-1")]),
        "speech.usd_per_1m_characters",
    );
    refused(
        &migrate(None, &[("COLLOQUY_CONFIG", "/nowhere/colloquy.toml")]),
        "colloquy.toml",
    );
    for (name, value, told) in [
        (
            "COLLOQUY_KNOWLEDGE_VIDEO_HOSTS",
            "youtu.be,https://www.youtube.com",
            "knowledge.video_hosts: \"https://www.youtube.com\" is no host name",
        ),
        (
            "COLLOQUY_MODELS_DIR",
            "/etc/passwd",
            "inference.models_dir: /etc/passwd is no folder",
        ),
        (
            "COLLOQUY_HTTP_LAME_DUCK_SECONDS",
            "99999",
            "http.lame_duck_seconds: at most 3600",
        ),
        (
            "COLLOQUY_CHAT_BASE_URL",
            "127.0.0.1:18110/v1",
            "chat.base_url: use an http or https URL",
        ),
        (
            "COLLOQUY_HTTP_PUBLIC_URL",
            "example.com",
            "http.public_url: use an http or https URL",
        ),
        (
            "COLLOQUY_HTTP_NODE_URL",
            "localhost:8080",
            "http.node_url: use an http or https URL",
        ),
        (
            "COLLOQUY_STORE_BLOB_URL",
            "/srv/files",
            "store.blob_url: use file:///PATH or s3://BUCKET/PREFIX",
        ),
    ] {
        refused(&migrate(None, &[(name, value)]), told);
    }
    let dir = "[models]\ndir = \"/srv/models\"\n";
    refused(&migrate(Some(dir), &[]), "inference.models_dir");
    let model = "[models.gpt]\nbase_url = \"127.0.0.1:18110/v1\"\n";
    refused(
        &migrate(Some(model), &[]),
        "models.gpt.base_url: use an http or https URL",
    );
}

/// What is refused names its setting, and never shows the value.
#[test]
fn blank_and_short_secrets_are_refused() {
    let told = |name: &str, value: &str, names: &str| {
        let output = migrate(None, &[(name, value)]);
        refused(&output, names);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            value.trim().len() < 4 || !errors.contains(value.trim()),
            "{errors}"
        );
    };
    let keys = [
        ("COLLOQUY_ADMIN_KEY", "admin_key"),
        ("COLLOQUY_HTTP_METRICS_KEY", "http.metrics_key"),
        ("COLLOQUY_HTTP_HEALTH_KEY", "http.health_key"),
        ("COLLOQUY_WEBHOOKS_SECRET", "webhooks.secret"),
    ];
    let others = [
        ("COLLOQUY_CHAT_API_KEY", "chat.api_key"),
        ("COLLOQUY_EMBEDDER_API_KEY", "embedder.api_key"),
        ("COLLOQUY_TRANSCRIBER_API_KEY", "transcriber.api_key"),
        ("COLLOQUY_SYNTHESIZER_API_KEY", "synthesizer.api_key"),
        ("COLLOQUY_TRACES_HEADERS", "traces.headers"),
        ("COLLOQUY_STORE_DATABASE_URL", "store.database_url"),
    ];
    for (name, setting) in keys {
        told(name, "x", setting);
        told(name, "fifteen-letters", setting);
        // Sixteen characters that nobody sees.
        told(name, &"\u{200b}".repeat(16), setting);
    }
    for (name, setting) in keys.into_iter().chain(others) {
        for value in ["", "  ", "\t\n"] {
            told(name, value, setting);
        }
        told(name, "long-enough-but-with-a-line-end\n", setting);
    }
    for value in [
        "",
        "a:short",
        "a:                ",
        "12345678901234567",
        "[secret,secret]",
    ] {
        told("COLLOQUY_SIGNING_KEYS", value, "signing_keys");
    }
    for toml in [
        "admin_key = \"\"",
        "admin_key = \"                  \"",
        "admin_key = 12345",
        "admin_key = 123456789012345.5",
        "[models.m]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"\"",
    ] {
        let output = migrate(Some(toml), &[]);
        refused(&output, "_key");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("12345"));
    }
    // Digits are a text like any other: none is lost.
    let output = migrate(None, &[("COLLOQUY_ADMIN_KEY", "0000000000000000")]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
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

#[test]
fn the_settings_are_printed_with_their_origin_and_without_secrets() {
    let toml = "[limits]\nrequest_burst = 5\nrequests_per_minute = 50\n[chat]\napi_key = \"hunter-of-files\"\n";
    let environment = [
        ("COLLOQUY_LIMITS_REQUEST_BURST", "7"),
        ("COLLOQUY_WEBHOOKS_SECRET", "whsec_aHVudGVyLW9mLXNlY3JldHM="),
        ("COLLOQUY_TRACES_ENDPOINT", "http://user:hunter@127.0.0.1:9"),
    ];
    let output = run(&["settings", "--json"], Some(toml), &environment);
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!printed.contains("hunter") && !printed.contains("aHVudGVy"));
    let settings: Vec<serde_json::Value> = serde_json::from_str(&printed).unwrap();
    let of = |key: &str| settings.iter().find(|it| it["key"] == key).unwrap();
    let origin = |key: &str| (of(key)["origin"].clone(), of(key)["variable"].clone());
    let variable = |name: &str| (json!("environment"), json!(name));
    let burst = "limits.request_burst";
    assert_eq!(origin(burst), variable("COLLOQUY_LIMITS_REQUEST_BURST"));
    assert_eq!(of(burst)["value"], 7);
    let file = (json!("file"), json!(null));
    assert_eq!(origin("limits.requests_per_minute"), file);
    assert_eq!(origin("chat.api_key"), file);
    assert_eq!(of("chat.api_key")["is_set"], true);
    assert_eq!(
        origin("webhooks.secret"),
        variable("COLLOQUY_WEBHOOKS_SECRET")
    );
    assert_eq!(of("traces.endpoint")["value"], "http://hidden@127.0.0.1:9/");
    assert_eq!(origin("http.idle_ms"), (json!("default"), json!(null)));

    let changed = run(&["settings", "--changed"], Some(toml), &environment);
    let printed = String::from_utf8(changed.stdout).unwrap();
    let line = "limits.request_burst\t7\t100\tCOLLOQUY_LIMITS_REQUEST_BURST";
    assert!(printed.lines().any(|it| it == line), "{printed}");
    assert!(!printed.contains("http.idle_ms"), "{printed}");
}
