//! A voice worker elsewhere, over HTTP. Its protocol, below `voice_worker.base_url`, with the key as `Authorization: Bearer`:
//!
//! | request | body | answer |
//! |---|---|---|
//! | `PUT jobs/{id}` | `{"type", "sentences": [..], "callback_url"}` | any 2xx; what the worker has under this id goes |
//! | `PUT jobs/{id}/samples/{index}` | Opus in Ogg (`audio/ogg`) | any 2xx |
//! | `POST jobs/{id}/start` | | any 2xx; the job has all of its samples |
//! | `GET jobs/{id}` | | the state, below; 404 for a job that it does not have |
//! | `GET jobs/{id}/files/{name}` | | `embedding.zip`, or `test_<sample_index>_<sentence_index>.opus` |
//! | `DELETE jobs/{id}` | | any 2xx, or 404; nothing of the job is needed any more |
//! | `GET health` | | any 2xx, or 404 |
//!
//! A state is `{"state": "waiting"}` before the start; `{"state": "running", "progress": 0.4}`; `{"state": "failed", "reason": ".."}`; or
//! `{"state": "completed", "voice": "..", "scores": [{"sample_index", "score", "voice"}], "test_samples": [{"sample_index",
//! "sentence_index"}], "has_embedding": true}`, where `voice` is what the synthesizer calls the voice, or null; that of a sample, which may be left
//! out, speaks while the sample is the preferred one. When a job has ended, the worker may say so with an empty `POST` to
//! `callback_url`; the state is asked for then, and now and then anyway. Every request may come again, also after its answer was given. Errors
//! of 408, 425, 429 and 5xx are tried again, others are not.

use std::time::Duration;

use async_trait::async_trait;
use colloquy_base::json;
use colloquy_config::VoiceWorkerConfig;
use futures_util::{StreamExt as _, stream};
use reqwest::{Method, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};

use super::{
    FileStream, MadeVoice, ProviderError, ProviderErrorKind, VoiceFile, VoiceJob, VoiceProgress,
    VoiceSample, VoiceWorker,
    openai::{CONNECT_TIMEOUT, MAX_ANSWER_BYTES, Refusal, Server},
};

/// The longest that an answer takes, and a file.
const ANSWER: Duration = Duration::from_secs(60);
const FILE: Duration = Duration::from_secs(600);
/// What errors and metrics call it.
const NAME: &str = "voice_worker";

/// A worker behind an address.
#[derive(Debug)]
pub struct RemoteVoices {
    server: Server,
    default_type: String,
}

#[derive(Serialize)]
struct JobBody<'a> {
    r#type: &'a str,
    sentences: &'a [String],
    callback_url: Option<&'a str>,
}

/// The state of a job.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum StateBody {
    Waiting,
    Running {
        #[serde(default)]
        progress: f64,
    },
    Failed {
        #[serde(default)]
        reason: String,
    },
    Completed {
        voice: Option<String>,
        #[serde(default)]
        scores: Vec<ScoreBody>,
        #[serde(default)]
        test_samples: Vec<TestSampleBody>,
        #[serde(default)]
        has_embedding: bool,
    },
}

#[derive(Debug, Deserialize)]
struct ScoreBody {
    sample_index: u32,
    score: f64,
    voice: Option<String>,
}

#[derive(Debug, Deserialize)]
struct TestSampleBody {
    sample_index: u32,
    sentence_index: u32,
}

impl From<StateBody> for VoiceProgress {
    fn from(body: StateBody) -> Self {
        match body {
            StateBody::Waiting => Self::Unknown,
            StateBody::Running { progress } => Self::Running(progress.clamp(0.0, 1.0)),
            StateBody::Failed { reason } => Self::Failed(reason),
            StateBody::Completed {
                voice,
                scores,
                test_samples,
                has_embedding,
            } => {
                let voice_of = |it: &ScoreBody| Some((it.sample_index, it.voice.clone()?));
                let score = |it: ScoreBody| (it.sample_index, it.score);
                let test_sample = |it: TestSampleBody| (it.sample_index, it.sentence_index);
                Self::Done(MadeVoice {
                    synthesizer_voice: voice,
                    sample_voices: scores.iter().filter_map(voice_of).collect(),
                    scores: scores.into_iter().map(score).collect(),
                    test_samples: test_samples.into_iter().map(test_sample).collect(),
                    has_embedding,
                })
            }
        }
    }
}

impl RemoteVoices {
    /// The worker of these settings; `None` without an address.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &VoiceWorkerConfig) -> anyhow::Result<Option<Self>> {
        let name = NAME.to_owned();
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            Some(&name),
            CONNECT_TIMEOUT,
        )?;
        Ok(server.map(|server| Self {
            server,
            default_type: config.default_type.clone(),
        }))
    }

    /// A request about a job.
    fn request(
        &self,
        method: Method,
        path: &str,
        longest: Duration,
    ) -> Result<RequestBuilder, ProviderError> {
        Ok(self.server.request(method, path)?.timeout(longest))
    }

    /// Sends a request about a job that the worker has. One that it has lost is no refusal: it is given again.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ProviderError> {
        self.server
            .send(request)
            .await
            .map_err(|refusal| match refusal.status {
                Some(StatusCode::NOT_FOUND) => self
                    .server
                    .error(ProviderErrorKind::Failed, "it does not have the job"),
                _ => refusal.error,
            })
    }
}

#[async_trait]
impl VoiceWorker for RemoteVoices {
    fn name(&self) -> &str {
        NAME
    }

    fn default_type(&self) -> &str {
        &self.default_type
    }

    /// It says itself what it does not make.
    fn makes(&self, _voice_type: &str) -> bool {
        true
    }

    async fn begin(&self, job: &VoiceJob) -> Result<(), ProviderError> {
        let body = JobBody {
            r#type: &job.voice_type,
            sentences: &job.sentences,
            callback_url: job.callback_url.as_deref(),
        };
        let path = format!("jobs/{}", job.id);
        let request = self.request(Method::PUT, &path, ANSWER)?;
        self.send(request.json(&body)).await.map(|_| ())
    }

    async fn add(&self, job: &VoiceJob, sample: VoiceSample) -> Result<(), ProviderError> {
        let path = format!("jobs/{}/samples/{}", job.id, sample.index);
        let request = self.request(Method::PUT, &path, ANSWER)?;
        let request = request.header(CONTENT_TYPE, "audio/ogg");
        self.send(request.body(sample.audio)).await.map(|_| ())
    }

    async fn start(&self, job: &VoiceJob) -> Result<(), ProviderError> {
        let path = format!("jobs/{}/start", job.id);
        let request = self.request(Method::POST, &path, ANSWER)?;
        self.send(request).await.map(|_| ())
    }

    async fn progress(&self, id: &str) -> Result<VoiceProgress, ProviderError> {
        let path = format!("jobs/{id}");
        let request = self.request(Method::GET, &path, ANSWER)?;
        let response = match self.server.send(request).await {
            Err(Refusal {
                status: Some(StatusCode::NOT_FOUND),
                ..
            }) => return Ok(VoiceProgress::Unknown),
            response => response?,
        };
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        let state: Result<StateBody, _> = json::read(&body);
        let state = state.map_err(|error| {
            let message = format!("the state of a job: {error}");
            self.server.error(ProviderErrorKind::Malformed, message)
        })?;
        Ok(state.into())
    }

    async fn file(&self, id: &str, file: VoiceFile) -> Result<FileStream, ProviderError> {
        let path = format!("jobs/{id}/files/{}", file.name());
        let request = self.request(Method::GET, &path, FILE)?;
        let response = self.send(request).await?;
        let cut = self
            .server
            .error(ProviderErrorKind::Cut, "a file was cut off");
        let pieces = stream::try_unfold(response, move |mut response| {
            let cut = cut.clone();
            async move {
                let piece = response.chunk().await.map_err(|_| cut)?;
                Ok(piece.map(|piece| (piece, response)))
            }
        });
        Ok(pieces.boxed())
    }

    async fn forget(&self, id: &str) -> Result<(), ProviderError> {
        let path = format!("jobs/{id}");
        let request = self.request(Method::DELETE, &path, ANSWER)?;
        match self.server.send(request).await {
            Err(Refusal {
                status: Some(StatusCode::NOT_FOUND),
                ..
            }) => Ok(()),
            outcome => outcome.map(|_| ()).map_err(ProviderError::from),
        }
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.answers("health").await
    }
}
