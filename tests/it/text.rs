//! Text generation: both public APIs over models of both, with the scripted upstream behind them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod bounds;
mod builtin;
mod characters;
mod compaction;
mod drafts;
mod failures;
mod memory;
mod requests;
mod socket_bounds;
mod sockets;
mod stored;
mod streams;

use std::time::Duration;

use futures_util::StreamExt as _;
use harness::{
    TestApp, TestAppBuilder, TestDatabase,
    app::Answer,
    patience, until,
    upstream::{Api, Recorded, Upstream},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A server with the models of an upstream, and a quota key without limits.
struct Text {
    app: TestApp,
    upstream: Upstream,
    /// The partner's own key.
    partner: String,
    /// The quota's key.
    key: String,
}

pub(crate) const CHAT: &str = "/v3/chat/completions";
pub(crate) const RESPONSES: &str = "/v3/responses";

impl Text {
    async fn start() -> Self {
        Self::with(|_, builder| builder).await
    }

    /// Nothing but a client ends a request: nothing is written that finds that it is gone, and no model is too slow.
    async fn patient() -> Self {
        Self::with(|_, builder| {
            builder.config(|config| {
                config.http.keep_alive_seconds = 3_600;
                for model in config.models.values_mut() {
                    (model.between_tokens_ms, model.total_ms) = (600_000, 600_000);
                }
            })
        })
        .await
    }

    /// With other settings.
    async fn with(change: impl FnOnce(&Upstream, TestAppBuilder) -> TestAppBuilder) -> Self {
        let database = TestDatabase::sqlite();
        let upstream = Upstream::start().await;
        let builder = TestApp::builder(&database).config(|config| upstream.offer(config));
        let app = change(&upstream, builder).start().await;
        let partner = app.partner("acme").await.key;
        let mut text = Self {
            app,
            upstream,
            partner,
            key: String::new(),
        };
        text.key = text.quota(json!({})).await.0;
        text
    }

    /// Makes a quota key: the key and its id.
    async fn quota(&self, settings: Value) -> (String, String) {
        let mut body = json!({"kinds": ["text"], "period": "lifetime"});
        for (name, value) in settings.as_object().unwrap() {
            body[name] = value.clone();
        }
        let made = self
            .app
            .post(&self.partner, "/api/quotas/acme", body)
            .await
            .expect(201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("api_key"), text("id"))
    }

    /// Sends a request that is answered in one piece.
    async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(&self.key, path, body).await
    }

    /// Sends a request whose answer is streamed.
    async fn open(&self, path: &str, body: &Value) -> Response {
        let request = self.app.request(Method::POST, path).bearer_auth(&self.key);
        request.json(body).send().await.unwrap()
    }

    /// The events of a streamed answer.
    async fn stream(&self, path: &str, mut body: Value) -> Vec<Event> {
        body["stream"] = json!(true);
        let response = self.open(path, &body).await;
        let status = response.status();
        if status != 200 {
            panic!("{status}: {}", response.text().await.unwrap());
        }
        assert_eq!(
            response.headers()["content-type"],
            "text/event-stream; charset=utf-8"
        );
        let body = response.text().await.unwrap();
        if path == RESPONSES {
            assert!(body.ends_with("\ndata: [DONE]\n\n"), "{body}");
        }
        events(&body)
    }

    /// What the upstream was asked.
    fn asked(&self, api: Api) -> Vec<Recorded> {
        self.upstream.requests(api)
    }

    /// The usage of a quota, once this many requests were settled.
    async fn usage(&self, quota: &str, requests: u64) -> Value {
        let path = format!("/api/quotas/acme/{quota}/usage?group_by=model");
        let settled = |report: &Value| report["total"]["requests"] == requests;
        until("the usage is settled", settled, async || {
            self.app.get(&self.partner, &path).await.expect(200)
        })
        .await
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {}", self.data))
    }
}

/// The events of a stream, read strictly: nothing but `event`, `data` and comments.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut event = Event {
        name: String::new(),
        data: String::new(),
    };
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("event", name)) => name.clone_into(&mut event.name),
            Some(("data", data)) => data.clone_into(&mut event.data),
            Some(("", _)) => {}
            _ => {
                assert_eq!(line, "", "a line of a stream");
                assert_ne!(event.data, "", "an empty event");
                events.push(event.clone());
                event.name.clear();
                event.data.clear();
            }
        }
    }
    assert_eq!(event.data, "", "the stream ends within an event");
    // What ends the stream of a response is no event of it.
    if let [.., last, done] = &events[..]
        && !last.name.is_empty()
        && done.data == "[DONE]"
    {
        events.pop();
    }
    events
}

/// Reads a stream until `enough` holds of what came, and goes away.
async fn read_until(response: Response, enough: impl Fn(&str) -> bool) -> String {
    let mut pieces = response.bytes_stream();
    let mut text = String::new();
    while !enough(&text) {
        let piece = pieces.next().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    text
}

fn hello() -> Value {
    json!({"model": "scripted-chat", "messages": [{"role": "user", "content": "Hello"}]})
}

fn hello_response() -> Value {
    json!({"model": "scripted-responses", "input": "Hello"})
}

/// The text that a stream of chat completions brought.
pub(crate) fn chat_text(events: &[Event]) -> String {
    let deltas = events
        .iter()
        .filter(|event| event.data != "[DONE]")
        .map(Event::json);
    deltas
        .filter_map(|chunk| {
            chunk
                .pointer("/choices/0/delta/content")?
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

/// The text that a stream of a response brought.
pub(crate) fn response_text(events: &[Event]) -> String {
    let deltas = events
        .iter()
        .filter(|event| event.name == "response.output_text.delta");
    deltas
        .map(|event| event.json()["delta"].as_str().unwrap().to_owned())
        .collect()
}
