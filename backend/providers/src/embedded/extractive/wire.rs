//! Chat completions in and out.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    super::super::{
        ChatMessage, ChatRequest, ChatRole, Grounding, ModelRequest, approximate_tokens,
    },
    Extractive,
};

/// The conversation of a request. Without a character, the system messages say who answers.
pub(super) fn conversation(request: &ModelRequest) -> ChatRequest {
    let mut system = Vec::new();
    let mut messages = Vec::new();
    let list = request.body.get("messages").and_then(Value::as_array);
    for message in list.into_iter().flatten() {
        let content = message.get("content").map(text).unwrap_or_default();
        let role = match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => {
                system.push(content);
                continue;
            }
            Some("assistant") => ChatRole::Assistant,
            // What a tool found is as good as what somebody said.
            _ => ChatRole::User,
        };
        messages.push(ChatMessage { role, content });
    }
    let system = system.join("\n\n");
    let grounding = request.grounding.clone().unwrap_or_else(|| {
        Arc::new(Grounding {
            personality: system.clone(),
            ..Grounding::default()
        })
    });
    ChatRequest {
        system,
        messages,
        grounding,
    }
}

/// The text of a content: a string, or the texts of its parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// The pieces that a reply is streamed in.
pub(super) fn words(reply: &str) -> impl Iterator<Item = &str> {
    reply.split_inclusive([' ', '。', '，', '、'])
}

/// A reply, word by word.
pub(super) struct Reply {
    id: String,
    words: Vec<String>,
    finish_reason: &'static str,
    usage: Value,
    wants_usage: bool,
}

impl Reply {
    /// The reply, as far as the request's limit lets it go.
    pub(super) fn new(body: &Map<String, Value>, reply: &str) -> Self {
        let limit = ["max_completion_tokens", "max_tokens"]
            .iter()
            .find_map(|field| body.get(*field)?.as_u64())
            .unwrap_or(u64::MAX);
        let stop = match body.get("stop") {
            Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).collect(),
            stop => stop.and_then(Value::as_str).into_iter().collect::<Vec<_>>(),
        };
        let stop = stop.into_iter().filter(|stop| !stop.is_empty());
        // The one that is complete first ends the reply, where it begins.
        let ends = stop.filter_map(|stop| Some((reply.find(stop)? + stop.len(), stop.len())));
        let end = ends.min().map_or(reply.len(), |(end, length)| end - length);
        let reply = &reply[..end];
        let mut said = Vec::new();
        let mut output = 0;
        let mut finish_reason = "stop";
        for word in words(reply) {
            let tokens = approximate_tokens(word);
            if output + tokens > limit {
                finish_reason = "length";
                break;
            }
            output += tokens;
            said.push(word.to_owned());
        }
        let messages = body.get("messages").and_then(Value::as_array);
        let input = messages.into_iter().flatten().map(|message| {
            approximate_tokens(&message.get("content").map(text).unwrap_or_default())
        });
        let input = input.sum::<u64>();
        Self {
            id: format!("chatcmpl-{:016x}", rand::random::<u64>()),
            words: said,
            finish_reason,
            usage: json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}),
            wants_usage: body
                .get("stream_options")
                .and_then(|options| options.get("include_usage"))
                == Some(&Value::Bool(true)),
        }
    }

    /// As one answer.
    pub(super) fn whole(&self) -> Value {
        let message = json!({"role": "assistant", "content": self.words.concat(), "refusal": null});
        json!({
            "id": self.id, "object": "chat.completion", "created": 0, "model": Extractive::NAME,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason, "logprobs": null}],
            "usage": self.usage,
        })
    }

    /// As events.
    pub(super) fn events(&self) -> Vec<Value> {
        let mut events = vec![self.chunk(&json!({"role": "assistant", "content": ""}), None)];
        events.extend(
            self.words
                .iter()
                .map(|word| self.chunk(&json!({"content": word}), None)),
        );
        events.push(self.chunk(&json!({}), Some(self.finish_reason)));
        if self.wants_usage {
            let mut last = self.chunk(&Value::Null, None);
            last["choices"] = json!([]);
            last["usage"] = self.usage.clone();
            events.push(last);
        }
        events
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 0, "model": Extractive::NAME,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}],
        })
    }
}
