//! Transcriptions: `POST {base}/audio/transcriptions`.

use async_trait::async_trait;
use colloquy_audio::wav;
use colloquy_base::language;
use colloquy_config::TranscriberConfig;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;

use super::{
    super::{ProviderError, ProviderErrorKind, Transcriber, Utterance},
    CONNECT_TIMEOUT, MAX_ANSWER_BYTES, Server,
};

/// The rate of utterances.
const SAMPLE_RATE_HZ: u32 = 16_000;

/// A transcriber behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct Transcription {
    server: Server,
    starts_early: bool,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

impl Transcription {
    /// The transcriber of these settings; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &TranscriberConfig) -> anyhow::Result<Option<Self>> {
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            config.model.as_ref(),
            CONNECT_TIMEOUT,
        )?;
        Ok(server.map(|server| Self {
            server,
            starts_early: config.starts_early,
        }))
    }
}

#[async_trait]
impl Transcriber for Transcription {
    fn name(&self) -> &str {
        &self.server.model
    }

    fn starts_early(&self, _language: Option<&str>) -> bool {
        self.starts_early
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        let malformed = |message| self.server.error(ProviderErrorKind::Malformed, message);
        let file = Part::bytes(wav::encode(&utterance.samples, SAMPLE_RATE_HZ))
            .file_name("utterance.wav")
            .mime_str("audio/wav")
            .map_err(|_| malformed("the request cannot be written"))?;
        let mut form = Form::new()
            .text("model", self.server.model.clone())
            .text("response_format", "json")
            .part("file", file);
        if let Some(tag) = &utterance.language {
            // The interface wants ISO 639-1: the part before any region.
            let language = language::primary(tag).to_ascii_lowercase();
            form = form.text("language", language);
        }
        if !utterance.expected.is_empty() {
            form = form.text("prompt", utterance.expected.join(", "));
        }
        let request = self.server.post("audio/transcriptions")?.multipart(form);
        let response = self.server.send(request).await?;
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| malformed("an answer that is not a transcription"))?;
        Ok(answer.text.trim().to_owned())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.check().await
    }
}
