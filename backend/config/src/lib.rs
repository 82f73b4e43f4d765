//! Settings: defaults, then a TOML file, then `COLLOQUY_*` variables of the environment.
//!
//! Every setting has a TOML key (`[http] listen`) and an environment name made of the section and the key
//! (`COLLOQUY_HTTP_LISTEN`). Lists of names are separated by commas in the environment, where other lists stand in
//! brackets. Everything is validated at start, and secrets never show in `Debug`.

mod analyses;
mod calls;
mod http;
mod inference;
mod knowledge;
mod limits;
mod lists;
mod log;
mod media;
mod models;
mod providers;
mod rewriting;
mod sandbox;
mod secret;
mod settings;
mod speech;
mod store;
mod traces;
mod transcripts;
mod vectorstore;
mod voices;
mod webhooks;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use figment::{
    Figment,
    providers::{Env, Format, Serialized, Toml},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::ParseError;

pub use self::{
    analyses::AnalysesConfig,
    calls::CallsConfig,
    http::HttpConfig,
    inference::InferenceConfig,
    knowledge::KnowledgeConfig,
    limits::LimitsConfig,
    log::{LogConfig, LogFormat},
    media::MediaConfig,
    models::{LimitField, ModelConfig, ModelsConfig, ReasoningStyle},
    providers::{ChatConfig, EMBEDDED_MODEL, EmbedderConfig, SynthesizerConfig, TranscriberConfig},
    rewriting::RewritingConfig,
    sandbox::SandboxConfig,
    secret::{Secret, SigningKey, SigningKeys, check_secret},
    settings::{Origin, Origins, Setting, without_credentials},
    speech::SpeechConfig,
    store::StoreConfig,
    traces::TracesConfig,
    transcripts::TranscriptsConfig,
    vectorstore::VectorstoreConfig,
    voices::{VoiceWorkerConfig, VoicesConfig, is_voice_type},
    webhooks::{FetchConfig, WebhooksConfig},
};
use self::{
    providers::SERVICE_URL,
    secret::{HIDDEN, check_key},
    store::BLOB_URL,
};

/// All settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// An admin key given by configuration.
    pub admin_key: Option<Secret>,
    /// The keys that sign call URLs, the first one for new URLs; unset: made at the first start and kept in the
    /// database.
    pub signing_keys: Option<SigningKeys>,
    /// The HTTP server.
    pub http: HttpConfig,
    /// Database and files.
    pub store: StoreConfig,
    /// Rate limits and size limits.
    pub limits: LimitsConfig,
    /// The call resource.
    pub calls: CallsConfig,
    /// WebRTC.
    pub media: MediaConfig,
    /// The model of calls.
    pub chat: ChatConfig,
    /// The models of the text interfaces, besides that of calls.
    pub models: ModelsConfig,
    /// Neural models that run in this process.
    pub inference: InferenceConfig,
    /// Texts as vectors.
    pub embedder: EmbedderConfig,
    /// Speech to text.
    pub transcriber: TranscriberConfig,
    /// Text to speech.
    pub synthesizer: SynthesizerConfig,
    /// The speech interface.
    pub speech: SpeechConfig,
    /// Knowledge bases.
    pub knowledge: KnowledgeConfig,
    /// `[analyses]`
    pub analyses: AnalysesConfig,
    /// `[transcripts]`
    pub transcripts: TranscriptsConfig,
    /// The voice library.
    pub voices: VoicesConfig,
    /// What makes voices of recordings.
    pub voice_worker: VoiceWorkerConfig,
    /// Rewriting of documents.
    pub rewriting: RewritingConfig,
    /// The vector store that final content of documents is brought to.
    pub vectorstore: VectorstoreConfig,
    /// The processes that decode what is not trusted.
    pub sandbox: SandboxConfig,
    /// Webhook delivery.
    pub webhooks: WebhooksConfig,
    /// Outbound requests to addresses that partners name.
    pub fetch: FetchConfig,
    /// Logs.
    pub log: LogConfig,
    /// Traces.
    pub traces: TracesConfig,
    /// The TOML file that the settings were read from; `None` without one.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// The origins of the settings.
    #[serde(skip)]
    pub origins: Origins,
}

/// The settings that are secrets, by the names that the environment may give.
fn is_secret(name: &str) -> bool {
    matches!(
        name,
        "admin_key"
            | "signing_keys"
            | "http.metrics_key"
            | "http.health_key"
            | "store.database_url"
            | "store.search_url"
            | "chat.api_key"
            | "embedder.api_key"
            | "transcriber.api_key"
            | "synthesizer.api_key"
            | "vectorstore.api_key"
            | "voice_worker.api_key"
            | "media.ice_servers"
            | "webhooks.secret"
            | "traces.headers"
    )
}

/// The prefix of environment variables.
const PREFIX: &str = "COLLOQUY_";

/// Returns the key of a variable, named without its prefix.
fn key_of_variable(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "admin_key" | "signing_keys" => name,
        // `[models]` holds models by name, none of which is called `dir`.
        "models_dir" => "inference.models_dir".to_owned(),
        // The section with two words.
        name if name.starts_with("voice_worker_") => {
            name.replacen("voice_worker_", "voice_worker.", 1)
        }
        _ => name.replacen('_', ".", 1),
    }
}

/// Returns the keys that a settings file names; none if it cannot be read, which reading the settings tells.
fn keys_of_file(file: &Path) -> BTreeSet<String> {
    let read = Figment::from(Toml::file_exact(file)).extract();
    let table: Map<String, Value> = read.unwrap_or_default();
    let mut keys = BTreeSet::new();
    settings::leaves(&table, &mut Vec::new(), &mut |path, _| {
        keys.insert(settings::joined(path));
    });
    keys
}

/// The message about a setting, without the names of this program's types. A URL without a scheme, such as `127.0.0.1:8000/v1`, is told its form.
fn plain(name: &str, message: &str) -> String {
    if message.starts_with(&ParseError::RelativeUrlWithoutBase.to_string()) {
        let form = match name {
            "store.blob_url" => BLOB_URL,
            _ => SERVICE_URL,
        };
        return form.to_owned();
    }
    match message.split_once("expected struct ") {
        // It holds models by name.
        Some((before, _)) if name.starts_with("models.") => format!(
            "{before}expected a table, [models.NAME]; the folder with the files of neural models is inference.models_dir"
        ),
        Some((before, _)) => format!("{before}expected a table"),
        None => message.to_owned(),
    }
}

/// The first thing that is wrong, by the name of its setting and where that was given.
fn readable(error: figment::Error) -> anyhow::Error {
    let name = error.path.join(".").to_ascii_lowercase();
    let what = plain(&name, &error.kind.to_string());
    let place = match error.metadata.as_ref().and_then(|it| it.source.as_ref()) {
        Some(source) => format!(" (in {source})"),
        None => String::new(),
    };
    match name.is_empty() || what.starts_with(&name) {
        true => anyhow::anyhow!("{what}{place}"),
        false => anyhow::anyhow!("{name}: {what}{place}"),
    }
}

impl Config {
    /// Reads the settings and validates them.
    ///
    /// # Errors
    /// Names the setting that is unknown, malformed or out of range.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        let mut origins = Origins::default();
        if let Some(file) = file {
            // Figment passes over a file that is missing.
            std::fs::metadata(file)
                .with_context(|| format!("the settings file {}", file.display()))?;
            figment = figment.merge(Toml::file_exact(file));
            origins.file = keys_of_file(file);
        }
        let mut environment = Env::prefixed(PREFIX)
            .ignore(&["CONFIG", "LOG"])
            // What only the test harness reads (`COLLOQUY_TEST_POSTGRES_URL`).
            .filter(|name| !name.starts_with("TEST_"))
            .map(|name| key_of_variable(name.as_str()).into());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if let Some(rest) = name.strip_prefix(PREFIX) {
                let key = key_of_variable(rest);
                origins.environment.insert(key, name.into_owned());
            }
        }
        // A secret is taken as it stands; of everything else the environment knows numbers and lists.
        for (name, value) in environment
            .clone()
            .filter(|name| is_secret(name.as_str()))
            .iter()
        {
            figment = figment.merge((name.as_str(), value));
        }
        environment = environment.filter(|name| !is_secret(name.as_str()));
        let mut config: Self = figment.merge(environment).extract().map_err(readable)?;
        config.file = file.map(Path::to_owned);
        config.origins = origins;
        config.validate()?;
        Ok(config)
    }

    /// Returns the files and folders that are for the server alone: data, database, files of partners, models and these settings. Not all of
    /// them need to exist.
    #[must_use]
    pub fn private_paths(&self) -> Vec<PathBuf> {
        let store = &self.store;
        let mut paths = vec![store.dir.clone(), self.inference.models_folder(&store.dir)];
        paths.extend(self.file.clone());
        if let Some(database) = store.file() {
            // SQLite writes beside its file.
            paths.extend(["", "-wal", "-shm", "-journal"].map(|suffix| {
                let mut path = database.clone().into_os_string();
                path.push(suffix);
                PathBuf::from(path)
            }));
        }
        let blobs = store.blob_url.as_ref();
        let folder = blobs.filter(|url| url.scheme() == "file");
        paths.extend(folder.and_then(|url| url.to_file_path().ok()));
        paths
    }

    fn validate(&self) -> anyhow::Result<()> {
        check_key("admin_key", self.admin_key.as_ref())?;
        self.http.validate()?;
        self.store.validate()?;
        self.limits.validate()?;
        self.calls.validate()?;
        self.media.validate()?;
        self.chat.validate(&self.models)?;
        for (name, model) in &self.models {
            model.validate(name)?;
        }
        self.embedder.validate()?;
        self.transcriber.validate()?;
        self.synthesizer.validate()?;
        self.speech.validate()?;
        self.inference.validate()?;
        self.knowledge.validate()?;
        self.transcripts.validate()?;
        self.analyses.validate(&self.models, &self.chat)?;
        self.rewriting.validate(&self.models, &self.chat)?;
        self.vectorstore.validate()?;
        self.voices.validate()?;
        self.voice_worker.validate()?;
        self.sandbox.validate()?;
        self.traces.validate()?;
        self.webhooks.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_server_alone_is_named() {
        let mut config = Config::default();
        config.store.dir = "/srv/data".into();
        config.file = Some("/etc/colloquy.toml".into());
        let paths = |config: &Config| -> Vec<String> {
            let paths = config.private_paths().into_iter();
            paths.map(|path| path.display().to_string()).collect()
        };
        let database =
            ["", "-wal", "-shm", "-journal"].map(|suffix| format!("/srv/data/colloquy.db{suffix}"));
        let own = ["/srv/data", "/srv/colloquy-models", "/etc/colloquy.toml"].map(str::to_owned);
        assert_eq!(paths(&config), [&own[..], &database].concat());
        config.store.database_url = Some(Secret::new("postgres://localhost/colloquy"));
        config.store.blob_url = Some("file:///mnt/files".parse().unwrap());
        config.inference.models_dir = Some("/opt/models".into());
        let elsewhere = [
            "/srv/data",
            "/opt/models",
            "/etc/colloquy.toml",
            "/mnt/files",
        ];
        assert_eq!(paths(&config), elsewhere);
        config.store.blob_url = Some("s3://bucket/files".parse().unwrap());
        assert_eq!(paths(&config), elsewhere[..3]);
    }
}
