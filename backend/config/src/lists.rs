//! Settings that are lists, in the forms that a file and the environment give them.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

use super::Secret;

/// Reads a list of texts, or one text with the entries separated by commas, as the environment has it.
///
/// # Errors
/// When it is neither.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Text(String),
        List(Vec<String>),
    }
    match Given::deserialize(deserializer) {
        Ok(Given::Text(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Ok(Given::Text(text)) => Ok(text
            .split(',')
            .map(|entry| entry.trim().to_owned())
            .collect()),
        Ok(Given::List(list)) => Ok(list),
        Err(_) => Err(D::Error::custom(
            "a list of texts, or a text with the entries separated by commas",
        )),
    }
}

/// Reads ICE servers: a text, or a list of URLs or of tables, which becomes the text that stands for it. The error does not tell the value.
///
/// # Errors
/// When it is neither.
pub(super) fn ice_servers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Text(Secret),
        Urls(Vec<String>),
        Mixed(Vec<Value>),
    }
    match Option::<Given>::deserialize(deserializer) {
        Ok(None) => Ok(None),
        Ok(Some(Given::Text(text))) => Ok(Some(text)),
        Ok(Some(Given::Urls(urls))) => Ok(Some(Secret::new(urls.join(",")))),
        Ok(Some(Given::Mixed(entries))) => {
            let server = |entry| match entry {
                url @ Value::String(_) => json!({ "urls": url }),
                table => table,
            };
            let servers = entries.into_iter().map(server).collect();
            Ok(Some(Secret::new(Value::Array(servers).to_string())))
        }
        Err(_) => Err(D::Error::custom(
            "URLs separated by commas, or a list of {urls, username, credential}",
        )),
    }
}

#[cfg(test)]
mod tests {
    use figment::{
        Figment,
        providers::{Format as _, Serialized, Toml},
    };

    use crate::{Config, MediaConfig};

    fn read(toml: &str) -> Result<Config, String> {
        let defaults = Figment::from(Serialized::defaults(Config::default()));
        let config = defaults.merge(Toml::string(toml)).extract();
        config.map_err(|error| crate::readable(error).to_string())
    }

    #[test]
    fn ice_servers_are_text_urls_or_tables() {
        let servers = |value: &str| -> Result<Option<String>, String> {
            let MediaConfig { ice_servers, .. } =
                read(&format!("[media]\nice_servers = {value}"))?.media;
            Ok(ice_servers.map(|servers| servers.reveal().to_owned()))
        };
        assert_eq!(read("").unwrap().media.ice_servers, None);
        let text = servers("\"stun:a,stun:b\"").unwrap();
        assert_eq!(text.as_deref(), Some("stun:a,stun:b"));
        assert_eq!(servers("[\"stun:a\", \"stun:b\"]").unwrap(), text);
        let tables =
            servers("[\"stun:a\", {urls = [\"turn:b\"], username = \"u\", credential = \"c\"}]");
        let expected = serde_json::json!([
            {"urls": "stun:a"}, {"urls": ["turn:b"], "username": "u", "credential": "c"},
        ]);
        let tables: serde_json::Value = serde_json::from_str(&tables.unwrap().unwrap()).unwrap();
        assert_eq!(tables, expected);
        let error = servers("{hidden = 1}").unwrap_err();
        assert!(
            error.starts_with("media.ice_servers: URLs separated by commas"),
            "{error}"
        );
        assert!(!error.contains("hidden"), "{error}");
    }

    #[test]
    fn lists_of_texts_may_be_one_text() {
        let hosts = |value: &str| -> Result<Vec<String>, String> {
            let read = read(&format!("[knowledge]\nvideo_hosts = {value}"))?;
            read.knowledge
                .validate()
                .map_err(|error| error.to_string())?;
            Ok(read.knowledge.video_hosts)
        };
        assert_eq!(
            hosts("\"a.example, b.example\"").unwrap(),
            ["a.example", "b.example"]
        );
        assert_eq!(hosts("[\"a.example\"]").unwrap(), ["a.example"]);
        assert_eq!(hosts("\"\"").unwrap(), Vec::<String>::new());
        for wrong in ["7", "[7]"] {
            let error = hosts(wrong).unwrap_err();
            assert!(
                error.starts_with("knowledge.video_hosts: a list of texts"),
                "{error}"
            );
        }
        for wrong in [
            "https://a.example",
            "*.a.example",
            "a.example/x",
            "a.example:443",
            "A.example",
            ".a.example",
            "a b",
            "a,,b",
        ] {
            let error = hosts(&format!("{wrong:?}")).unwrap_err();
            assert!(
                error.starts_with("knowledge.video_hosts: \""),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn a_model_that_is_no_table_is_told_without_the_types_of_the_server() {
        let error = read("[models]\ndir = \"/srv/models\"").unwrap_err();
        assert!(error.starts_with("models.dir: "), "{error}");
        assert!(error.contains("expected a table"), "{error}");
        assert!(error.contains("inference.models_dir"), "{error}");
        assert!(!error.contains("struct"), "{error}");
    }
}
