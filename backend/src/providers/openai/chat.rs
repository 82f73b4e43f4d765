//! Chat completions, streamed: `POST {base}/chat/completions`.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{
    super::{
        ChatMessage, ChatModel, ChatRequest, ChatRole, ProviderError, ProviderErrorKind, TextStream,
    },
    Server,
    chunk::Chunk,
    sse,
};
use crate::config::ChatConfig;

/// A chat model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct Chat {
    server: Server,
}

impl Chat {
    /// The model of these settings; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &ChatConfig) -> anyhow::Result<Option<Self>> {
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            config.model.as_ref(),
        )?;
        Ok(server.map(|server| Self { server }))
    }
}

#[async_trait]
impl ChatModel for Chat {
    fn name(&self) -> &str {
        &self.server.model
    }

    async fn stream(&self, request: ChatRequest) -> Result<TextStream, ProviderError> {
        let body = json!({
            "model": self.server.model,
            "messages": messages(&request),
            "stream": true,
        });
        let request = self.server.post("chat/completions")?.json(&body);
        let response = self.server.send(request).await?;
        if is_json(&response) {
            return self.whole(response).await;
        }
        let reading = Reading {
            server: self.server.clone(),
            response,
            parser: sse::Parser::default(),
            chunks: VecDeque::new(),
            ended: false,
        };
        let pieces = stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(text)) => Some((Ok(text), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(pieces.boxed())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.check().await
    }
}

impl Chat {
    /// The answer of a server that does not stream.
    async fn whole(&self, response: Response) -> Result<TextStream, ProviderError> {
        let body = self.server.read(response).await?;
        match Chunk::of_json(&body, false) {
            Chunk::Failed { kind, message } => Err(self.server.error(kind, message)),
            Chunk::Text { delta, .. } if !delta.is_empty() => Ok(stream::iter([Ok(delta)]).boxed()),
            Chunk::Text { .. } | Chunk::Done => Ok(stream::empty().boxed()),
        }
    }
}

/// A stream that is being read.
struct Reading {
    server: Server,
    response: Response,
    parser: sse::Parser,
    chunks: VecDeque<Chunk>,
    /// The model said that it is done, so that a server without `[DONE]` is not taken for a cut one.
    ended: bool,
}

impl Reading {
    /// The next piece of the answer that is not empty.
    async fn next(&mut self) -> Result<Option<String>, ProviderError> {
        loop {
            while let Some(chunk) = self.chunks.pop_front() {
                match chunk {
                    Chunk::Text { delta, ends } => {
                        self.ended |= ends;
                        if !delta.is_empty() {
                            return Ok(Some(delta));
                        }
                    }
                    Chunk::Done => return Ok(None),
                    Chunk::Failed { kind, message } => {
                        return Err(self.server.error(kind, message));
                    }
                }
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    let events = self.parser.push(&bytes).map_err(|error| {
                        self.server
                            .error(ProviderErrorKind::Malformed, error.to_string())
                    })?;
                    self.chunks.extend(events.iter().map(Chunk::of_event));
                }
                Ok(None) | Err(_) if self.ended => return Ok(None),
                Ok(None) | Err(_) => {
                    return Err(self
                        .server
                        .error(ProviderErrorKind::Cut, "the answer was cut off"));
                }
            }
        }
    }
}

fn is_json(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

/// The messages as the server gets them. Many templates of open models refuse a conversation that does not begin with
/// the user; so what the character said before the visitor's first word is told in the system prompt.
fn messages(request: &ChatRequest) -> Vec<Value> {
    let began = request
        .messages
        .iter()
        .position(|message| message.role == ChatRole::User)
        .unwrap_or(0);
    let (opening, turns) = request.messages.split_at(began);
    let mut system = request.system.clone();
    for ChatMessage { content, .. } in opening {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str("You have already opened the conversation by saying: ");
        system.push_str(content);
    }
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(turns.iter().map(|message| {
        let role = match message.role {
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
        };
        json!({"role": role, "content": message.content})
    }));
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: ChatRole, content: &str) -> ChatMessage {
        ChatMessage {
            role,
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_greeting_stands_in_the_system_prompt() {
        let request = ChatRequest {
            system: "You are Max.".to_owned(),
            messages: vec![
                message(ChatRole::Assistant, "Hello there."),
                message(ChatRole::User, "Hi."),
                message(ChatRole::Assistant, "How can I help?"),
                message(ChatRole::User, "Tell me the time."),
            ],
            ..ChatRequest::default()
        };
        let messages = messages(&request);
        let roles = messages.iter().map(|m| m["role"].as_str().unwrap());
        assert_eq!(
            roles.collect::<Vec<_>>(),
            ["system", "user", "assistant", "user"]
        );
        assert!(
            messages[0]["content"]
                .as_str()
                .unwrap()
                .ends_with("Hello there.")
        );
    }
}
