//! The client's stream or answer, whatever API the model behind it speaks.
//!
//! Two outs know how a client is spoken to ([`ChatOut`], [`ResponseOut`]); four readers know how a model's events become
//! that. Whole answers go the same ways.

mod assemble;
mod calls;
mod chat_out;
mod chat_to_chat;
mod chat_to_responses;
mod finish;
mod items;
mod message;
mod object;
mod response_out;
mod responses_to_chat;
mod responses_to_responses;
mod unfold;
mod whole;

use serde_json::Value;

use self::{chat_out::ChatOut, response_out::ResponseOut};
use super::{
    Ending, ErrorBody, Frame, Head, ModelApi, ModelEvent, Request, Tally, TokenUsage,
    VisibleRetrieval,
    event::{ApiEvent, ResponseEvent, ResponseEventKind},
    stop::Stops,
};

pub use self::{
    assemble::{AnswerTooLarge, Assembler},
    whole::whole,
};

/// Turns a model's events into the client's stream. One terminal event ends it: after that every call gives nothing.
pub struct Encoder {
    client: Client,
    stops: Stops,
    tally: Tally,
    /// The request, which an error names.
    request_id: Option<String>,
}

/// The stream that tells a stored response once more. Its texts are in one piece each, so that events have other numbers
/// than those of the stream in which it was made.
pub fn replay(stored: &Value) -> Vec<Frame> {
    let Value::Object(stored) = stored else {
        return Vec::new();
    };
    let mut out = ResponseOut::again(stored);
    out.begin();
    let usage = stored.get("usage").cloned();
    let completed_at = stored.get("completed_at").and_then(Value::as_i64);
    let mut reader = responses_to_responses::Reader::default();
    let stored = ResponseEvent::whole(stored.clone());
    reader.event(&mut out, stored, usage, completed_at.unwrap_or(0));
    out.take()
}

/// Who is spoken to, and how the model's events become that.
enum Client {
    Chat(ChatOut, ChatReader),
    Responses(Box<ResponseOut>, ResponseReader),
}

enum ChatReader {
    Chat(chat_to_chat::Reader),
    Responses(responses_to_chat::Reader),
}

enum ResponseReader {
    Chat(chat_to_responses::Reader),
    Responses(responses_to_responses::Reader),
}

impl ChatReader {
    /// A model that speaks the client's API keeps to its `stop` itself.
    fn new(upstream: ModelApi, stops: &Stops) -> Self {
        match upstream {
            ModelApi::Chat => Self::Chat(chat_to_chat::Reader::default()),
            ModelApi::Responses => Self::Responses(responses_to_chat::Reader::new(stops.clone())),
        }
    }
}

impl ResponseReader {
    fn new(upstream: ModelApi) -> Self {
        match upstream {
            ModelApi::Chat => Self::Chat(chat_to_responses::Reader::default()),
            ModelApi::Responses => Self::Responses(responses_to_responses::Reader::default()),
        }
    }
}

impl Encoder {
    /// The stream of a request that a model behind `upstream` answers.
    pub fn new(request: &Request, upstream: ModelApi, head: &Head) -> Self {
        // Those of a request that cannot be asked this way were refused.
        let stops = Stops::of(&request.body).unwrap_or_default();
        let client = match request.api {
            ModelApi::Chat => Client::Chat(
                ChatOut::new(request, head),
                ChatReader::new(upstream, &stops),
            ),
            ModelApi::Responses => Client::Responses(
                Box::new(ResponseOut::new(request, head)),
                ResponseReader::new(upstream),
            ),
        };
        Self {
            client,
            stops,
            tally: Tally::default(),
            request_id: None,
        }
    }

    /// Has errors name the request.
    #[must_use]
    pub fn of_request(self, id: &str) -> Self {
        Self {
            request_id: Some(id.to_owned()),
            ..self
        }
    }

    /// Another model answers, under this public name; only before content (see [`ModelEvent::has_content`]).
    pub fn set_answering(&mut self, upstream: ModelApi, model: &str) {
        if self.finished() {
            return;
        }
        self.tally = Tally::default();
        match &mut self.client {
            Client::Chat(out, reader) => {
                out.set_model(model);
                *reader = ChatReader::new(upstream, &self.stops);
            }
            Client::Responses(out, reader) => {
                out.set_model(model);
                *reader = ResponseReader::new(upstream);
            }
        }
    }

    /// How the stream begins; a stream of chat completions begins with the model's first event.
    pub fn begin(&mut self) -> Vec<Frame> {
        match &mut self.client {
            Client::Chat(..) => Vec::new(),
            Client::Responses(out, _) => {
                out.begin();
                out.take()
            }
        }
    }

    /// Returns true if the client is shown what was looked up (see [`Self::retrieval`]).
    #[must_use]
    pub fn shows_retrieval(&self) -> bool {
        matches!(self.client, Client::Responses(..))
    }

    /// Tells what was looked up, between the beginning and the model's events; chat completions never tell.
    pub fn retrieval(&mut self, visible: &VisibleRetrieval) -> Vec<Frame> {
        match &mut self.client {
            Client::Chat(..) => Vec::new(),
            Client::Responses(out, _) => {
                out.retrieval(visible);
                out.take()
            }
        }
    }

    /// An event of the model that answers, or a whole answer where a server does not stream. `now` is in seconds since 1970.
    /// A failure ends the stream.
    pub fn event(&mut self, now: i64, event: ModelEvent) -> Vec<Frame> {
        if self.finished() {
            return Vec::new();
        }
        self.tally.observe(&event);
        let failed = event.failure().map(ErrorBody::from);
        if let (Some(failed), false) = (failed, self.passes_failure(&event)) {
            return self.fail(&failed);
        }
        match (&mut self.client, event.0) {
            (Client::Chat(out, ChatReader::Chat(reader)), ApiEvent::Chat(chunk)) => {
                reader.event(out, chunk);
            }
            (Client::Chat(out, ChatReader::Responses(reader)), ApiEvent::Response(event)) => {
                reader.event(out, &event);
            }
            (Client::Responses(out, ResponseReader::Chat(reader)), ApiEvent::Chat(chunk)) => {
                reader.event(out, &chunk);
            }
            (
                Client::Responses(out, ResponseReader::Responses(reader)),
                ApiEvent::Response(event),
            ) => {
                let usage = self.tally.usage_for(ModelApi::Responses);
                self.tally.ending = reader.event(out, event, usage, now);
            }
            // An event of another API than that of the model that answers is none of its answer.
            _ => {}
        }
        self.take()
    }

    /// Whether the client is told of a failure in the model's own words: a response that failed.
    fn passes_failure(&self, event: &ModelEvent) -> bool {
        let passes = matches!(
            self.client,
            Client::Responses(_, ResponseReader::Responses(_))
        );
        passes
            && matches!(&event.0, ApiEvent::Response(event) if event.kind == ResponseEventKind::Failed)
    }

    /// The usage, unless the model has told it in an event.
    pub fn set_usage(&mut self, usage: TokenUsage) {
        self.tally.usage.get_or_insert(usage);
    }

    /// The model's stream ended well. What is missing is closed, and the terminal event follows. A stream that said
    /// nothing, or a response without its terminal event, has not ended well whatever the caller thinks, and becomes an
    /// error.
    pub fn end(&mut self, now: i64) -> Vec<Frame> {
        if self.finished() {
            return Vec::new();
        }
        let usage = self.tally.usage_for(match self.client {
            Client::Chat(..) => ModelApi::Chat,
            Client::Responses(..) => ModelApi::Responses,
        });
        let ending = match &mut self.client {
            Client::Chat(out, reader) => {
                let ending = match reader {
                    ChatReader::Chat(reader) => reader.end(out),
                    ChatReader::Responses(reader) => reader.end(),
                };
                if ending.is_some() {
                    out.end(usage);
                }
                ending
            }
            Client::Responses(out, ResponseReader::Chat(reader)) => reader.end(out, usage, now),
            Client::Responses(_, ResponseReader::Responses(_)) => None,
        };
        match ending {
            Some(_) => {
                self.tally.ending = ending;
                self.take()
            }
            None => self.fail(&ErrorBody::server(
                "upstream_cut",
                "The model's answer ended before it was complete",
            )),
        }
    }

    /// Ends the stream with an error.
    pub fn fail(&mut self, error: &ErrorBody) -> Vec<Frame> {
        if self.finished() {
            return Vec::new();
        }
        self.tally.ending = Some(Ending::Failed);
        let error = &ErrorBody {
            request_id: self.request_id.clone(),
            ..error.clone()
        };
        match &mut self.client {
            Client::Chat(out, _) => out.fail(error),
            Client::Responses(out, reader) => {
                if let ResponseReader::Chat(reader) = reader {
                    out.quietly(|out| reader.close(out, "incomplete"));
                }
                out.fail(error);
            }
        }
        self.take()
    }

    /// Whether the answer has come to the client's `stop`: it can be ended, and the model need not be read further.
    pub fn stopped(&self) -> bool {
        matches!(&self.client, Client::Chat(_, ChatReader::Responses(reader)) if reader.stopped())
    }

    /// Whether the terminal event was given.
    pub fn finished(&self) -> bool {
        self.tally.ending.is_some()
    }

    /// What the answer has told so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Fails in the place of the end that these frames hold as their last.
    pub fn fail_instead(&mut self, mut frames: Vec<Frame>, error: &ErrorBody) -> Vec<Frame> {
        if frames.pop().is_some()
            && let Client::Responses(out, _) = &mut self.client
        {
            out.take_back();
        }
        self.tally.ending = None;
        frames.extend(self.fail(error));
        frames
    }

    /// The response as it stands, for storing; `None` of a chat completion.
    pub fn response(&self) -> Option<Value> {
        match &self.client {
            Client::Chat(..) => None,
            Client::Responses(out, _) => Some(out.response()),
        }
    }

    fn take(&mut self) -> Vec<Frame> {
        match &mut self.client {
            Client::Chat(out, _) => out.take(),
            Client::Responses(out, _) => out.take(),
        }
    }
}

#[cfg(test)]
mod tests;
