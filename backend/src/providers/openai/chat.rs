//! Chat completions and responses: `POST {base}/chat/completions` and `POST {base}/responses`.

use std::collections::VecDeque;

use async_trait::async_trait;
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
    failure::failure,
    sse,
};
use crate::config::ModelConfig;

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
            ModelApi::Responses => "responses",
        };
        let body = Named {
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
    async fn whole(&self, response: Response) -> Result<Value, ProviderError> {
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        let answer = serde_json::from_slice::<Value>(&body)
            .ok()
            .filter(|answer| is_answer(self.api, answer));
        let answer = answer.ok_or_else(|| {
            self.server.error(
                ProviderErrorKind::Malformed,
                "an answer that is not of the API",
            )
        })?;
        match failure(&answer) {
            Some(failure) => Err(self.server.failed(failure)),
            None => Ok(answer),
        }
    }

    fn events(&self, response: Response, choices: u64) -> EventStream {
        let reading = Reading {
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
struct Reading {
    server: Server,
    api: ModelApi,
    response: Response,
    parser: sse::Parser,
    events: VecDeque<sse::Event>,
    /// The choices of which the model has not said that they are done. Without any, a server without `[DONE]` is not taken
    /// for a cut one.
    unfinished: u64,
}

impl Reading {
    /// The next event, `None` at the end of the answer.
    async fn next(&mut self) -> Result<Option<Value>, ProviderError> {
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

    fn read(&mut self, event: &sse::Event) -> Result<Option<Value>, ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(None);
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            return Err(self
                .server
                .error(ProviderErrorKind::Malformed, "an event that is not JSON"));
        };
        if let Some(failure) = failure(&value) {
            return Err(self.server.failed(failure));
        }
        if event.name == "error" || !is_event(self.api, &value) {
            return Err(self.server.error(
                ProviderErrorKind::Malformed,
                "an event that is not of the API",
            ));
        }
        self.unfinished = self.unfinished.saturating_sub(finished(self.api, &value));
        Ok(Some(value))
    }
}

/// A body under the name that the server knows the model by.
struct Named<'a> {
    body: &'a Map<String, Value>,
    model: &'a str,
}

impl Serialize for Named<'_> {
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

/// Whether this is a whole answer of the API, or a failure.
fn is_answer(api: ModelApi, answer: &Value) -> bool {
    let list = match api {
        ModelApi::Chat => "choices",
        ModelApi::Responses => "output",
    };
    answer.get(list).is_some_and(Value::is_array) || failure(answer).is_some()
}

/// Whether this is an event of the API. A last chunk may have no choices, only the usage.
fn is_event(api: ModelApi, event: &Value) -> bool {
    match api {
        ModelApi::Chat => {
            event.is_object()
                && event
                    .get("choices")
                    .is_none_or(|choices| choices.is_array() || choices.is_null())
        }
        ModelApi::Responses => event.get("type").is_some_and(Value::is_string),
    }
}

/// Of how many choices the model says with this event that they are done. A response has one.
fn finished(api: ModelApi, event: &Value) -> u64 {
    match api {
        ModelApi::Chat => {
            let choices = event.get("choices").and_then(Value::as_array);
            let reasons = choices.into_iter().flatten();
            let reasons = reasons.filter_map(|choice| choice.get("finish_reason"));
            reasons.filter(|reason| !reason.is_null()).count() as u64
        }
        ModelApi::Responses => matches!(
            event.get("type").and_then(Value::as_str),
            Some("response.completed" | "response.incomplete")
        )
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_servers() {
        let chat = [
            (
                json!({"choices": [{"delta": {"role": "assistant"}, "finish_reason": null}]}),
                0,
            ),
            (
                json!({"choices": [{"delta": {"content": null}, "finish_reason": "stop"}]}),
                1,
            ),
            (
                json!({"choices": [{"index": 1, "finish_reason": "length"}, {"index": 0, "finish_reason": "stop"}]}),
                2,
            ),
            (json!({"choices": [], "usage": {"total_tokens": 3}}), 0),
            (json!({"usage": {"total_tokens": 3}}), 0),
        ];
        for (event, done) in chat {
            assert!(is_event(ModelApi::Chat, &event), "{event}");
            assert_eq!(finished(ModelApi::Chat, &event), done, "{event}");
        }
        assert!(!is_event(ModelApi::Chat, &json!({"choices": "many"})));
        assert!(!is_event(ModelApi::Chat, &json!([1])));
        for (kind, done) in [("incomplete", 1), ("output_text.done", 0)] {
            let event = json!({"type": format!("response.{kind}")});
            assert_eq!(finished(ModelApi::Responses, &event), done, "{kind}");
        }
        assert!(!is_event(ModelApi::Responses, &json!({"choices": []})));
    }

    #[test]
    fn the_body_goes_out_under_the_servers_name_for_the_model() {
        let body = json!({"model": "public", "stream": true});
        let named = Named {
            body: body.as_object().unwrap(),
            model: "private",
        };
        assert_eq!(
            serde_json::to_value(named).unwrap(),
            json!({"model": "private", "stream": true})
        );
    }
}
