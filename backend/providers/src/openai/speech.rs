//! Speech: `POST {base}/audio/speech`, as raw samples so that they can be played while they are made.

use std::collections::BTreeMap;

use async_trait::async_trait;
use colloquy_audio::wav;
use colloquy_config::SynthesizerConfig;
use futures_util::{StreamExt as _, stream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::json;

use super::{
    super::{
        Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer, VoiceInfo,
        VoiceList,
    },
    CONNECT_TIMEOUT, Server,
};

/// The rate of `response_format: pcm`, which has no header to say it.
const PCM_RATE_HZ: u32 = 24_000;
/// The interface requires a voice; this one is known to OpenAI and to those that follow it.
const DEFAULT_VOICE: &str = "alloy";

/// A synthesizer behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct Speech {
    server: Server,
    voice: String,
    /// What the server calls the voices that the settings name.
    voices: BTreeMap<String, String>,
    /// The field for the language, when the server has one.
    language_field: Option<String>,
}

impl Speech {
    /// The synthesizer of these settings; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &SynthesizerConfig) -> anyhow::Result<Option<Self>> {
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            config.model.as_ref(),
            CONNECT_TIMEOUT,
        )?;
        let voice = config.voice.as_deref().unwrap_or(DEFAULT_VOICE).to_owned();
        let voices = config.voices.clone();
        Ok(server.map(|server| Self {
            server,
            voice,
            voices,
            language_field: config.language_field.clone(),
        }))
    }
}

#[async_trait]
impl Synthesizer for Speech {
    fn name(&self) -> &str {
        &self.server.model
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let voice = request.voice.as_ref().unwrap_or(&self.voice);
        let mut body = json!({
            "model": self.server.model,
            "voice": self.voices.get(voice).unwrap_or(voice),
            "input": request.text,
            "response_format": "pcm",
        });
        if (request.speed - 1.0).abs() > f32::EPSILON {
            body["speed"] = json!(request.speed);
        }
        if let (Some(field), Some(language)) = (&self.language_field, &request.language) {
            body[field] = json!(language);
        }
        let request = self.server.post("audio/speech")?.json(&body);
        let response = self.server.send(request).await?;
        let rate = raw_rate(&response)
            .map_err(|message| self.server.error(ProviderErrorKind::Malformed, message))?;
        let reading = SpeechReader {
            server: self.server.clone(),
            response,
            decoder: wav::Decoder::new(Some(rate)),
        };
        let pieces = stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(pcm)) => Some((Ok(pcm), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(pieces.boxed())
    }

    /// The voices that the settings name, or else the default one: the interface has no list of voices.
    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        let known = |id: &String| VoiceInfo {
            id: id.clone(),
            name: id.clone(),
            language: None,
            gender: None,
            abroad: id.clone(),
            is_neural: false,
        };
        Ok(if self.voices.is_empty() {
            VoiceList {
                voices: vec![known(&self.voice)],
                may_have_others: true,
            }
        } else {
            VoiceList {
                voices: self.voices.keys().map(known).collect(),
                may_have_others: false,
            }
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.check().await
    }
}

/// Speech that is being read.
struct SpeechReader {
    server: Server,
    response: Response,
    decoder: wav::Decoder,
}

impl SpeechReader {
    async fn next(&mut self) -> Result<Option<Pcm>, ProviderError> {
        loop {
            match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    let pcm = self.decoder.push(&bytes).map_err(|message| {
                        self.server.error(ProviderErrorKind::Malformed, message)
                    })?;
                    if pcm.is_some() {
                        return Ok(pcm);
                    }
                }
                Ok(None) if !self.decoder.is_short() => return Ok(None),
                Ok(None) | Err(_) => {
                    return Err(self
                        .server
                        .error(ProviderErrorKind::Cut, "the speech was cut off"));
                }
            }
        }
    }
}

/// The rate of samples without a header. Servers that ignore the format asked for are found here, before noise is played.
fn raw_rate(response: &Response) -> Result<u32, &'static str> {
    let header = response.headers().get(CONTENT_TYPE);
    let kind = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is_compressed = matches!(
        essence,
        "audio/mpeg" | "audio/mp3" | "audio/ogg" | "audio/opus" | "audio/aac" | "audio/flac"
    );
    if is_compressed {
        return Err("the server ignores response_format pcm and sends compressed sound");
    }
    if essence.starts_with("text/") || essence == "application/json" {
        return Err("an answer that is not sound");
    }
    let named = kind
        .split(';')
        .filter_map(|parameter| parameter.trim().strip_prefix("rate="))
        .find_map(|rate| rate.parse().ok());
    Ok(named
        .filter(|rate| (8_000..=192_000).contains(rate))
        .unwrap_or(PCM_RATE_HZ))
}
