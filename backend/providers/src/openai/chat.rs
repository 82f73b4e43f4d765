//! Chat completions and responses: `POST {base}/chat/completions`, `POST {base}/responses` and
//! `POST {base}/responses/compact`.

use std::collections::VecDeque;

use async_trait::async_trait;
use colloquy_base::json;
use colloquy_config::ModelConfig;
use colloquy_formats::{ModelEvent, sse};
use futures_util::{StreamExt as _, stream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};

use super::{
    super::{
        ChatModel, EventStream, ModelAnswer, ModelApi, ModelRequest, ProviderError,
        ProviderErrorKind,
    },
    Server,
};

/// The largest answer in one piece.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct Chat {
    server: Server,
    api: ModelApi,
    /// What the server calls the model.
    upstream_name: String,
}

impl Chat {
    /// The model of these settings, under its public name; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(name: &str, config: &ModelConfig) -> anyhow::Result<Option<Self>> {
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            Some(&name.to_owned()),
            config.connect(),
        )?;
        Ok(server.map(|server| Self {
            server,
            api: config.api,
            upstream_name: config.model.clone().unwrap_or_else(|| name.to_owned()),
        }))
    }
}

#[async_trait]
impl ChatModel for Chat {
    fn name(&self) -> &str {
        &self.server.model
    }

    fn api(&self) -> ModelApi {
        self.api
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        let path = match self.api {
            ModelApi::Chat => "chat/completions",
            ModelApi::Responses if request.compacts => "responses/compact",
            ModelApi::Responses => "responses",
        };
        let body = NamedBody {
            body: &request.body,
            model: &self.upstream_name,
        };
        let choices = request.body.get("n").and_then(Value::as_u64).unwrap_or(1);
        let request = self.server.post(path)?.json(&body);
        let response = self.server.send(request).await?;
        if is_json(&response) {
            return self.whole(response).await.map(ModelAnswer::Whole);
        }
        Ok(ModelAnswer::Events(self.events(response, choices)))
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.check().await
    }
}

impl Chat {
    /// An answer that is no stream.
    async fn whole(&self, response: Response) -> Result<ModelEvent, ProviderError> {
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        let answer = json::parse(&body).ok();
        let answer = answer.and_then(|answer| ModelEvent::read(self.api, answer).ok());
        let answer = match answer.map(ModelEvent::into_failure) {
            Some(Ok(told)) => return Err(self.server.failed(told)),
            Some(Err(answer)) => Some(answer).filter(ModelEvent::is_answer),
            None => None,
        };
        answer.ok_or_else(|| {
            self.server.error(
                ProviderErrorKind::Malformed,
                "an answer that is not of the API",
            )
        })
    }

    fn events(&self, response: Response, choices: u64) -> EventStream {
        let reading = EventReader {
            server: self.server.clone(),
            api: self.api,
            response,
            parser: sse::Parser::default(),
            events: VecDeque::new(),
            unfinished: choices,
        };
        stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

/// A stream that is being read.
struct EventReader {
    server: Server,
    api: ModelApi,
    response: Response,
    parser: sse::Parser,
    events: VecDeque<sse::Event>,
    /// The choices of which the model has not said that they are done. Without any, a server without `[DONE]` is not taken
    /// for a cut one.
    unfinished: u64,
}

impl EventReader {
    /// The next event, `None` at the end of the answer.
    async fn next(&mut self) -> Result<Option<ModelEvent>, ProviderError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return self.read(&event);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    let events = self.parser.push(&bytes).map_err(|error| {
                        self.server
                            .error(ProviderErrorKind::Malformed, error.to_string())
                    })?;
                    self.events.extend(events);
                }
                Ok(None) | Err(_) if self.unfinished == 0 => return Ok(None),
                Ok(None) | Err(_) => {
                    return Err(self
                        .server
                        .error(ProviderErrorKind::Cut, "the answer was cut off"));
                }
            }
        }
    }

    fn read(&mut self, event: &sse::Event) -> Result<Option<ModelEvent>, ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(None);
        }
        let malformed = |what: &str| self.server.error(ProviderErrorKind::Malformed, what);
        let value =
            json::parse(data.as_bytes()).map_err(|_| malformed("an event that is not JSON"))?;
        let foreign = || malformed("an event that is not of the API");
        let read = ModelEvent::read(self.api, value).map_err(|_| foreign())?;
        match read.into_failure() {
            Ok(told) => Err(self.server.failed(told)),
            Err(_) if event.name == "error" => Err(foreign()),
            Err(read) => {
                self.unfinished = self.unfinished.saturating_sub(read.finished());
                Ok(Some(read))
            }
        }
    }
}

/// A body under the name that the server knows the model by.
struct NamedBody<'a> {
    body: &'a Map<String, Value>,
    model: &'a str,
}

impl Serialize for NamedBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        for (name, value) in self.body.iter().filter(|(name, _)| *name != "model") {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn is_json(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_goes_out_under_the_servers_name_for_the_model() {
        let body = json!({"model": "public", "stream": true});
        let named = NamedBody {
            body: body.as_object().unwrap(),
            model: "private",
        };
        assert_eq!(
            serde_json::to_value(named).unwrap(),
            json!({"model": "private", "stream": true})
        );
    }
}
