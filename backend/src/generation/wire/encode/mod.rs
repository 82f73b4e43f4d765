//! The client's stream or answer, whatever API the model behind it speaks.
//!
//! Two outs know how a client is spoken to ([`ChatOut`], [`ResponseOut`]); four readers know how a model's events become
//! that. Whole answers go the same ways.

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
    Ending, ErrorBody, Frame, Head, ModelApi, Object, Request, Tally, TokenUsage, UpstreamFailure,
    VisibleRetrieval, failure, fields::str_of,
};

pub(crate) use self::whole::whole;

/// Turns a model's events into the client's stream. One terminal event ends it: after that every call gives nothing.
pub(crate) struct Encoder {
    upstream: ModelApi,
    client: Client,
    tally: Tally,
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
    fn new(upstream: ModelApi) -> Self {
        match upstream {
            ModelApi::Chat => Self::Chat(chat_to_chat::Reader::default()),
            ModelApi::Responses => Self::Responses(responses_to_chat::Reader::default()),
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
    pub(crate) fn new(request: &Request, upstream: ModelApi, head: &Head) -> Self {
        let client = match request.api {
            ModelApi::Chat => Client::Chat(ChatOut::new(request, head), ChatReader::new(upstream)),
            ModelApi::Responses => Client::Responses(
                Box::new(ResponseOut::new(request, head)),
                ResponseReader::new(upstream),
            ),
        };
        Self {
            upstream,
            client,
            tally: Tally::default(),
        }
    }

    /// Another model answers, under this public name; only before content (see [`super::has_content`]).
    pub(crate) fn set_answering(&mut self, upstream: ModelApi, model: &str) {
        if self.finished() {
            return;
        }
        self.upstream = upstream;
        self.tally = Tally::default();
        match &mut self.client {
            Client::Chat(out, reader) => {
                out.set_model(model);
                *reader = ChatReader::new(upstream);
            }
            Client::Responses(out, reader) => {
                out.set_model(model);
                *reader = ResponseReader::new(upstream);
            }
        }
    }

    /// How the stream begins; a stream of chat completions begins with the model's first event.
    pub(crate) fn begin(&mut self) -> Vec<Frame> {
        match &mut self.client {
            Client::Chat(..) => Vec::new(),
            Client::Responses(out, _) => {
                out.begin();
                out.take()
            }
        }
    }

    /// Tells what was looked up, between the beginning and the model's events; chat completions never tell.
    pub(crate) fn retrieval(&mut self, visible: &VisibleRetrieval) -> Vec<Frame> {
        match &mut self.client {
            Client::Chat(..) => Vec::new(),
            Client::Responses(out, _) => {
                out.retrieval(visible);
                out.take()
            }
        }
    }

    /// An event of the model, or a whole answer where a server does not stream. `now` is in seconds since 1970. A failure
    /// ends the stream.
    pub(crate) fn event(&mut self, now: i64, event: Value) -> Vec<Frame> {
        if self.finished() {
            return Vec::new();
        }
        let failed = failure(self.upstream, &event);
        let Value::Object(event) = event else {
            return Vec::new();
        };
        self.tally.observe(self.upstream, &event);
        if let Some(failed) = failed {
            return self.upstream_failed(failed, event);
        }
        match &mut self.client {
            Client::Chat(out, ChatReader::Chat(reader)) => reader.event(out, event),
            Client::Chat(out, ChatReader::Responses(reader)) => reader.event(out, &event),
            Client::Responses(out, ResponseReader::Chat(reader)) => reader.event(out, &event),
            Client::Responses(out, ResponseReader::Responses(reader)) => {
                let usage = self.tally.usage_for(ModelApi::Responses);
                self.tally.ending = reader.event(out, event, usage, now);
            }
        }
        self.take()
    }

    /// The usage, unless the model has told it in an event.
    pub(crate) fn set_usage(&mut self, usage: TokenUsage) {
        self.tally.usage.get_or_insert(usage);
    }

    /// The model's stream ended well. What is missing is closed, and the terminal event follows. A stream that said
    /// nothing, or a response without its terminal event, has not ended well whatever the caller thinks, and becomes an
    /// error.
    pub(crate) fn end(&mut self, now: i64) -> Vec<Frame> {
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
    pub(crate) fn fail(&mut self, error: &ErrorBody) -> Vec<Frame> {
        if self.finished() {
            return Vec::new();
        }
        self.tally.ending = Some(Ending::Failed);
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

    /// Whether the terminal event was given.
    pub(crate) fn finished(&self) -> bool {
        self.tally.ending.is_some()
    }

    /// What the answer has told so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The response as it stands, for storing; `None` of a chat completion.
    pub(crate) fn into_response(self) -> Option<Value> {
        match self.client {
            Client::Chat(..) => None,
            Client::Responses(out, _) => Some(out.into_response()),
        }
    }

    /// The model says that it failed. A response that failed is told as such, everything else as an error.
    fn upstream_failed(&mut self, failed: UpstreamFailure, event: Object) -> Vec<Frame> {
        match &mut self.client {
            Client::Responses(out, ResponseReader::Responses(reader))
                if str_of(&event, "type") == Some("response.failed") =>
            {
                let usage = self.tally.usage_for(ModelApi::Responses);
                self.tally.ending = reader.event(out, event, usage, 0);
                self.take()
            }
            _ => self.fail(&failed.into()),
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
