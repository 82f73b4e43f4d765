//! Chat completions in and out.

use std::{iter, slice, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    super::super::{
        ChatMessage, ChatRequest, ChatRole, Grounding, ModelRequest, approximate_tokens,
    },
    Extractive,
    reading::{Room, SYSTEM_BYTES, TURN_BYTES_READ, beginning, part},
};

/// The conversation of a request, as far as it is read. Without a character, the system messages say who answers.
pub(super) fn conversation(request: &ModelRequest) -> ChatRequest {
    let list = messages(&request.body);
    let role = |message: &Value| match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => None,
        Some("assistant") => Some(ChatRole::Assistant),
        // What a tool found is as good as what somebody said.
        _ => Some(ChatRole::User),
    };
    let mut system = String::new();
    for message in list.iter().filter(|message| role(message).is_none()) {
        for (at, text) in texts(message).enumerate() {
            if !system.is_empty() {
                system.push_str(if at == 0 { "\n\n" } else { "\n" });
            }
            let left = SYSTEM_BYTES.saturating_sub(system.len());
            system.push_str(beginning(text, left));
            if left == 0 {
                break;
            }
        }
        if system.len() >= SYSTEM_BYTES {
            break;
        }
    }
    let mut room = Room::default();
    let turns = list.iter().rev().filter_map(|message| {
        let role = role(message)?;
        let content = content(role, message);
        Some(ChatMessage { role, content })
    });
    let mut messages: Vec<_> = turns.take_while(|turn| room.take(&turn.content)).collect();
    messages.reverse();
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

fn messages(body: &Map<String, Value>) -> &[Value] {
    let messages = body.get("messages").and_then(Value::as_array);
    messages.map_or(&[], Vec::as_slice)
}

/// The texts of a message: its content, or the texts of the parts of that.
fn texts(message: &Value) -> impl DoubleEndedIterator<Item = &str> {
    let parts = match message.get("content") {
        Some(Value::Array(parts)) => parts.as_slice(),
        Some(content) => slice::from_ref(content),
        None => &[],
    };
    parts
        .iter()
        .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
}

/// What is read of a message.
fn content<'a>(role: ChatRole, message: &'a Value) -> String {
    let mut left = TURN_BYTES_READ;
    let mut pieces = Vec::new();
    let mut take = |text: &'a str| {
        let piece = part(role, text, left);
        left -= piece.len();
        pieces.push(piece);
        // The line break between two pieces.
        left = left.saturating_sub(1);
        left > 0
    };
    match role {
        ChatRole::User => texts(message).rev().all(&mut take),
        ChatRole::Assistant => texts(message).all(&mut take),
    };
    if role == ChatRole::User {
        pieces.reverse();
    }
    pieces.join("\n")
}

/// About how many tokens the messages of a request have.
fn input_tokens(body: &Map<String, Value>) -> u64 {
    let tokens = |message| {
        let characters = texts(message).map(|text| text.chars().count() as u64 + 1);
        characters.sum::<u64>().saturating_sub(1).div_ceil(4)
    };
    messages(body).iter().map(tokens).sum()
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
        let input = input_tokens(body);
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

    /// As events, each made when it is asked for.
    pub(super) fn events(self) -> impl Iterator<Item = Value> {
        let beginning = self.chunk(&json!({"role": "assistant", "content": ""}), None);
        let end = self.chunk(&json!({}), Some(self.finish_reason));
        let usage = self.wants_usage.then(|| {
            let mut last = self.chunk(&Value::Null, None);
            last["choices"] = json!([]);
            last["usage"] = self.usage.clone();
            last
        });
        let words = (0..self.words.len())
            .map(move |at| self.chunk(&json!({"content": self.words[at]}), None));
        iter::once(beginning).chain(words).chain([end]).chain(usage)
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 0, "model": Extractive::NAME,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}],
        })
    }
}
