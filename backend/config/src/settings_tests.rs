//! No secret is shown, whatever settings there will be.

use serde_json::json;

use super::*;

/// Parts of values that nobody may see.
const MARKS: [&str; 3] = [
    "hunter-of-secrets",
    "hunter-of-queries",
    "hunter-of-fragments",
];

/// Returns the settings of a JSON value that is merged into the default configuration; `None` if it is not taken.
fn with(path: &[&str], value: &Value) -> Option<Config> {
    let mut tree = serde_json::to_value(Config::default()).unwrap();
    let mut place = &mut tree;
    for part in path {
        place = &mut place[*part];
    }
    *place = value.clone();
    serde_json::from_value(tree).ok()
}

/// Returns the paths of all settings, those of a model among them.
fn all_paths() -> Vec<Vec<String>> {
    let mut config = Config::default();
    config.models.insert("m".to_owned(), ModelConfig::default());
    let tree = table(serde_json::to_value(config).unwrap());
    let mut paths = Vec::new();
    leaves(&tree, &mut Vec::new(), &mut |path, _| {
        paths.push(path.iter().map(|part| (*part).to_owned()).collect());
    });
    paths
}

fn told(config: &Config) -> String {
    let settings = config.settings().unwrap();
    format!("{settings:?}")
}

#[test]
fn all_keys_of_the_default_configuration_are_there_and_unchanged() {
    let config = Config::default();
    let settings = config.settings().unwrap();
    let keys: BTreeSet<&str> = settings.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys.len(), settings.len(), "a key is there twice");
    assert!(settings.len() > 150, "{}", settings.len());
    for key in [
        "admin_key",
        "http.listen",
        "store.database_url",
        "models",
        "voice_worker.base_url",
    ] {
        assert!(keys.contains(key), "{key}");
    }
    for setting in &settings {
        assert!(!setting.is_changed, "{setting:?}");
        assert_eq!(setting.origin, Origin::Default, "{setting:?}");
        assert_eq!(setting.is_set, !setting.value.is_null(), "{setting:?}");
    }
    let listen = settings.iter().find(|it| it.key == "http.listen").unwrap();
    assert_eq!(listen.value, json!("127.0.0.1:8080"));
}

/// Gives each setting a text with a mark in it. Settings that hide it have to be known as secrets without it, too; in settings that do not, what
/// sounds like a secret is none.
#[test]
fn no_setting_shows_a_secret() {
    let [mark, query, fragment] = MARKS;
    let texts = [
        format!("kid:{mark}-0123456789"),
        format!("name={mark}"),
        format!("https://user:{mark}@host.example/v1?token={query}#{fragment}"),
    ];
    let sounds_secret = [
        "key",
        "secret",
        "password",
        "token_",
        "credential",
        "headers",
    ];
    let (mut secrets, mut urls) = (0, 0);
    for path in all_paths() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut path = path.as_slice();
        // The default configuration has no model to put the setting into.
        let base = match path {
            ["models", "m", setting @ ..] => {
                path = setting;
                true
            }
            _ => false,
        };
        let key = path.join(".");
        for text in &texts {
            let config = if base {
                let mut model = serde_json::to_value(ModelConfig::default()).unwrap();
                model[path[0]] = json!(text);
                with(&["models"], &json!({"m": model}))
            } else {
                with(path, &json!(text)).or_else(|| with(path, &json!([text])))
            };
            let Some(config) = config else { continue };
            let name = match base {
                true => format!("models.m.{key}"),
                false => key.clone(),
            };
            let settings = config.settings().unwrap();
            let setting = settings.iter().find(|it| it.key == name).unwrap();
            assert!(setting.is_set, "{setting:?}");
            let debug = told(&config);
            if text.starts_with("https://") {
                for mark in MARKS {
                    assert!(!debug.contains(mark), "{name} shows {mark}");
                }
                urls += 1;
            }
            let is_typed_secret = {
                let tree = serde_json::to_value(&config).unwrap();
                let path: Vec<&str> = name.split('.').collect();
                at(&table(tree), &path) == Some(&json!(HIDDEN))
            };
            if is_typed_secret {
                assert!(!debug.contains(mark), "{name} is a secret that is shown");
                let path: Vec<&str> = name.split('.').collect();
                assert!(
                    is_secret_path(&path),
                    "{name} is a secret that is not known as one"
                );
                assert!(setting.is_secret && setting.value.is_null(), "{setting:?}");
                secrets += 1;
            } else {
                let sounds_secret = sounds_secret.iter().find(|part| key.contains(**part));
                assert_eq!(
                    sounds_secret, None,
                    "{name} sounds like a secret and is shown"
                );
            }
        }
    }
    assert!(secrets >= 15, "{secrets}");
    assert!(urls >= 15, "{urls}");
}

#[test]
fn a_model_is_compared_with_the_defaults_of_models() {
    let mut config = Config::default();
    let model = ModelConfig {
        api_key: Some(crate::Secret::new(MARKS[0])),
        base_url: Some("https://models.example/v1".parse().unwrap()),
        total_ms: 1_000,
        ..ModelConfig::default()
    };
    config.models.insert("gpt-4.1".to_owned(), model);
    let settings = config.settings().unwrap();
    let of = |name: &str| {
        let key = format!("models.\"gpt-4.1\".{name}");
        settings.iter().find(|it| it.key == key).unwrap()
    };
    assert_eq!(of("total_ms").default, json!(600_000));
    assert!(of("total_ms").is_changed && !of("connect_ms").is_changed);
    assert!(of("api_key").is_secret && of("api_key").is_set && of("api_key").is_changed);
    assert_eq!(of("base_url").value, json!("https://models.example/v1"));
    assert!(!told(&config).contains(MARKS[0]));
}

#[test]
fn the_nearest_source_is_the_origin() {
    let mut config = Config::default();
    config.origins.file = ["http.listen", "synthesizer.voices.anna", "chat.model"]
        .map(str::to_owned)
        .into();
    let variables = [
        ("http.listen", "COLLOQUY_HTTP_LISTEN"),
        ("inference.models_dir", "COLLOQUY_MODELS_DIR"),
        ("synthesizer.voices", "COLLOQUY_SYNTHESIZER_VOICES"),
    ];
    config.origins.environment = variables
        .map(|(key, name)| (key.to_owned(), name.to_owned()))
        .into();
    config
        .synthesizer
        .voices
        .insert("anna".to_owned(), "af".to_owned());
    let settings = config.settings().unwrap();
    let origin = |key: &str| {
        settings
            .iter()
            .find(|it| it.key == key)
            .unwrap()
            .origin
            .clone()
    };
    let variable = |name: &str| Origin::Environment(name.to_owned());
    assert_eq!(origin("http.listen"), variable("COLLOQUY_HTTP_LISTEN"));
    assert_eq!(
        origin("inference.models_dir"),
        variable("COLLOQUY_MODELS_DIR")
    );
    assert_eq!(
        origin("synthesizer.voices.anna"),
        variable("COLLOQUY_SYNTHESIZER_VOICES")
    );
    assert_eq!(origin("chat.model"), Origin::File);
    assert_eq!(origin("chat.base_url"), Origin::Default);
}

#[test]
fn addresses_lose_their_credentials_and_other_texts_stay() {
    for (text, expected) in [
        ("plain", "plain"),
        ("kid:text", "kid:text"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://localhost:4318", "http://localhost:4318"),
        ("file:///srv/files", "file:///srv/files"),
        ("https://a:b@h.example/v1", "https://hidden@h.example/v1"),
        (
            "https://h.example/v1?key=b&x=y",
            "https://h.example/v1?key=hidden&x=hidden",
        ),
        (
            "asking https://a@h.example/, \"https://h.example/?b#c\" failed",
            "asking https://hidden@h.example/, \"https://h.example/?hidden=hidden\" failed",
        ),
        ("https://u:a,b@h.example/v1", "https://hidden@h.example/v1"),
        ("https://u:a(b)'c@h.example", "https://hidden@h.example/"),
        (
            "https://h.example/?key=a,b",
            "https://h.example/?key=hidden",
        ),
        (
            "url=https://u:p@h.example/",
            "url=https://hidden@h.example/",
        ),
        (
            "error:[https://u:p@h.example/]",
            "error:[https://hidden@h.example/]",
        ),
        ("https://u:p/q@h.example", "https://hidden"),
        ("https://h.example/,https://u:p@h.example", "https://hidden"),
        ("(https://h.example/v1)", "(https://h.example/v1)"),
    ] {
        assert_eq!(without_credentials(text), expected);
    }
}
