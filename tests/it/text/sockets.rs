//! Responses over a WebSocket: what is told and what is remembered. What a client cannot do to the server with it stands in
//! `socket_bounds`.

use std::net::SocketAddr;

use futures_util::SinkExt as _;
use harness::upstream::{End, Fault, Script};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use super::*;

/// How long a test waits for what a socket tells, and for what a server does to others.
pub(super) fn soon() -> Duration {
    patience(Duration::from_secs(10))
}

/// A client's side.
pub(super) struct Socket(pub(super) WebSocketStream<TcpStream>);

/// What came.
#[derive(Debug, PartialEq)]
pub(super) enum SocketEvent {
    Event(Value),
    Ping,
    Closed(Option<u16>),
}

impl Socket {
    pub(super) async fn open(text: &Text) -> Self {
        Self::with_key(text, &text.key).await.unwrap()
    }

    /// The refusal is the status.
    pub(super) async fn with_key(text: &Text, key: &str) -> Result<Self, u16> {
        let mut request = text
            .app
            .url(RESPONSES)
            .replace("http", "ws")
            .into_client_request()
            .unwrap();
        if !key.is_empty() {
            let key = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().insert("authorization", key);
        }
        let address: SocketAddr = request.uri().authority().unwrap().as_str().parse().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) async fn create(&mut self, mut body: Value) {
        body["type"] = json!("response.create");
        self.send(Message::text(body.to_string())).await;
    }

    pub(super) async fn send(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    pub(super) async fn next(&mut self) -> SocketEvent {
        let next = timeout(soon(), self.0.next());
        match next.await.unwrap() {
            Some(Ok(Message::Text(text))) => {
                SocketEvent::Event(serde_json::from_str(&text).unwrap())
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => SocketEvent::Ping,
            Some(Ok(Message::Close(frame))) => {
                SocketEvent::Closed(frame.map(|frame| frame.code.into()))
            }
            Some(Ok(other)) => panic!("{other:?}"),
            None | Some(Err(_)) => SocketEvent::Closed(None),
        }
    }

    /// The next event.
    pub(super) async fn event(&mut self) -> Value {
        loop {
            match self.next().await {
                SocketEvent::Event(event) => return event,
                SocketEvent::Ping => {}
                SocketEvent::Closed(code) => panic!("closed with {code:?}"),
            }
        }
    }

    /// The events up to the one that ends a response.
    pub(super) async fn response(&mut self) -> Vec<Value> {
        let ends = [
            "response.completed",
            "response.incomplete",
            "response.failed",
            "error",
        ];
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            let kind = event["type"].as_str().unwrap().to_owned();
            events.push(event);
            if ends.contains(&kind.as_str()) {
                return events;
            }
        }
    }

    /// Makes a response: the object.
    pub(super) async fn made(&mut self, body: Value) -> Value {
        self.create(body).await;
        let events = self.response().await;
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// The error that a message gets.
    pub(super) async fn refused(&mut self, body: Value) -> Value {
        self.create(body).await;
        let event = self.event().await;
        assert_eq!(event["type"], "error", "{event}");
        event
    }

    /// How it was closed.
    pub(super) async fn closed(&mut self) -> Option<u16> {
        loop {
            match self.next().await {
                SocketEvent::Closed(code) => return code,
                SocketEvent::Ping => {}
                SocketEvent::Event(event) => panic!("{event}"),
            }
        }
    }
}

pub(super) fn body() -> Value {
    hello_response()
}

#[tokio::test]
async fn the_events_are_those_of_the_stream() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        text.upstream.set_default(api, Script::text("One two."));
        let body = json!({"model": model, "input": "Count."});
        let streamed = text.stream(RESPONSES, body.clone()).await;
        socket.create(body).await;
        let events = socket.response().await;
        let kinds = |event: &Value| event["type"].as_str().unwrap().to_owned();
        let expected: Vec<_> = streamed.iter().map(|event| event.name.clone()).collect();
        assert_eq!(events.iter().map(kinds).collect::<Vec<_>>(), expected);
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
        }
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["output"][0]["content"][0]["text"], "One two.");
        // It is stored like any other.
        let path = format!("{RESPONSES}/{}", response["id"].as_str().unwrap());
        assert_eq!(&text.app.get(&text.key, &path).await.expect(200), response);
        let asked = text.asked(api).pop().unwrap().body;
        assert_eq!(asked.get("type"), None, "{asked}");
    }
}

#[tokio::test]
async fn who_asks_is_found_out_before_the_socket_opens() {
    let text = Text::start().await;
    let (speech, _) = text.quota(json!({"kinds": ["speech"]})).await;
    for (key, status) in [
        ("", 401),
        ("sk-unknown", 401),
        (&text.partner, 401),
        (&speech, 403),
    ] {
        assert_eq!(
            Socket::with_key(&text, key).await.err(),
            Some(status),
            "{key}"
        );
    }
    let plain = text.app.get(&text.key, RESPONSES).await;
    assert_eq!(plain.header("upgrade"), "websocket");
    assert_eq!(plain.header("sec-websocket-version"), "13");
    assert_eq!(plain.expect(426)["detail"]["code"], "upgrade_required");
}

#[tokio::test]
async fn each_message_is_a_request_of_its_own() {
    let text = Text::start().await;
    let (key, quota) = text.quota(json!({"limits": {"tokens": 200_000}})).await;
    let mut socket = Socket::with_key(&text, &key).await.unwrap();
    socket.made(body()).await;
    socket.made(body()).await;
    let report = text.usage(&quota, 2).await;
    assert_eq!(report["rows"][0]["model"], "scripted-responses");

    let path = format!("/api/quotas/acme/{quota}");
    let change = json!({"limits": {"tokens": 1}});
    let changed = text
        .app
        .call(&text.partner, Method::PUT, &path, change)
        .await;
    changed.expect(200);
    let error = socket.refused(body()).await;
    assert_eq!(
        (&error["status"], &error["error"]["code"]),
        (&json!(429), &json!("quota_exhausted"))
    );
    assert!(
        error["error"]["headers"]["x-ratelimit-limit-tokens"].is_string(),
        "{error}"
    );
    text.app.delete(&text.partner, &path).await;
    let error = socket.refused(body()).await;
    assert_eq!(
        (&error["status"], &error["error"]["type"]),
        (&json!(401), &json!("authentication_error"))
    );
}

#[tokio::test]
async fn mistakes_are_told_and_the_connection_goes_on() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    for (change, field) in [
        (json!({"model": "nobody"}), "model"),
        (json!({"input": 7}), "input"),
        (json!({"background": true}), "background"),
        (json!({"generate": false}), "generate"),
        (json!({"stream_id": "a"}), "stream_id"),
        (
            json!({"previous_response_id": "resp_0"}),
            "previous_response_id",
        ),
    ] {
        let mut body = body();
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let error = socket.refused(body).await;
        assert_eq!(
            (&error["status"], &error["error"]["param"]),
            (&json!(400), &json!(field))
        );
        assert_eq!(error["error"]["type"], "invalid_request_error");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let wide = format!(
        "{{\"type\":\"response.create\",\"input\":[{}0]}}",
        "0,".repeat(9_000_000)
    );
    for junk in [
        "",
        "{",
        "7",
        "[]",
        "{\"type\":\"response.steer\"}",
        &deep,
        &wide,
    ] {
        socket.send(Message::text(junk.to_owned())).await;
        let error = socket.event().await;
        assert_eq!(error["status"], 400, "{error}");
    }
    // What a model refuses has its status, too.
    text.upstream.script(
        Api::Responses,
        Script::fault(Fault::RateLimited {
            retry_after: Some(7),
        }),
    );
    let error = socket.refused(body()).await;
    assert_eq!(
        (&error["status"], &error["error"]["headers"]["retry-after"]),
        (&json!(429), &json!("7"))
    );
    socket.made(body()).await;
}

#[tokio::test]
async fn one_response_is_made_at_a_time() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    let words = Script::text("one two three four");
    text.upstream.script(Api::Responses, words);
    let mut held = Some(text.upstream.hold(Api::Responses));
    socket.create(body()).await;
    socket.create(body()).await;
    let (mut refused, mut words) = (0, String::new());
    loop {
        let event = socket.event().await;
        match event["type"].as_str().unwrap() {
            "error" => {
                assert_eq!(event["error"]["code"], "response_already_in_flight");
                assert_eq!(event["status"], 400);
                refused += 1;
                drop(held.take());
            }
            "response.output_text.delta" => words.push_str(event["delta"].as_str().unwrap()),
            "response.completed" => break,
            _ => {}
        }
    }
    assert_eq!((refused, words.trim()), (1, "one two three four"));
    assert_eq!(text.asked(Api::Responses).len(), 1);
    socket.made(body()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_message_may_follow_the_last_event_at_once() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    // As many as may come within a second.
    for _ in 0..90 {
        socket.made(body()).await;
    }
}

#[tokio::test]
async fn the_connection_remembers_its_last_response() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    let turn = |input: &str, previous: &Value, store: bool| json!({"model": "scripted-responses", "input": input, "previous_response_id": previous, "store": store});
    let first = socket.made(turn("one", &Value::Null, false)).await["id"].clone();
    let second = socket.made(turn("two", &first, false)).await["id"].clone();
    // What is stored holds all of what was not.
    let stored = socket.made(turn("three", &second, true)).await;
    let words = |asked: &Recorded| -> Vec<String> {
        let items = asked.body["input"].as_array().unwrap().iter();
        let users = items.filter(|item| item["role"] == "user");
        users
            .map(|item| match &item["content"] {
                Value::String(text) => text.clone(),
                parts => parts[0]["text"].as_str().unwrap().to_owned(),
            })
            .collect()
    };
    assert_eq!(
        words(&text.asked(Api::Responses)[2]),
        ["one", "two", "three"]
    );
    let answer = text
        .post(RESPONSES, turn("four", &stored["id"], false))
        .await;
    answer.expect(200);
    assert_eq!(
        words(&text.asked(Api::Responses)[3]),
        ["one", "two", "three", "four"]
    );
    // Only the last one, only here, and once; stored ones always.
    let last = socket.made(turn("five", &stored["id"], false)).await["id"].clone();
    assert_eq!(
        words(&text.asked(Api::Responses)[4]),
        ["one", "two", "three", "five"]
    );
    let elsewhere = text
        .post(RESPONSES, turn("six", &last, false))
        .await
        .expect(400);
    assert_eq!(elsewhere["error"]["code"], "previous_response_not_found");
    let mut other = Socket::open(&text).await;
    for (socket, id) in [(&mut other, &last), (&mut socket, &first)] {
        let error = socket.refused(turn("six", id, false)).await;
        assert_eq!(error["error"]["code"], "previous_response_not_found");
    }
    socket.made(turn("six", &last, false)).await;
    let error = socket.refused(turn("seven", &last, false)).await;
    assert_eq!(error["error"]["code"], "previous_response_not_found");
}

#[tokio::test]
async fn what_is_too_long_is_not_remembered() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.limits.text_body_bytes = 4_000))
            .await;
    let mut socket = Socket::open(&text).await;
    text.upstream
        .script(Api::Responses, Script::text("w".repeat(3_000)));
    let long = json!({"model": "scripted-responses", "input": "x".repeat(2_000), "store": false});
    let id = socket.made(long).await["id"].clone();
    let next = json!({"model": "scripted-responses", "input": "x", "previous_response_id": id});
    assert_eq!(
        socket.refused(next).await["error"]["code"],
        "previous_response_not_found"
    );
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_the_model_and_pays_for_what_was_made() {
    let text = Text::patient().await;
    let (key, quota) = text.quota(json!({})).await;
    // The model says no more, so nothing but the client ends it.
    let words = Script {
        text: "word ".repeat(40),
        ..Script::fault(Fault::Stall { after: 10 })
    };
    text.upstream.script(Api::Responses, words);
    let mut socket = Socket::with_key(&text, &key).await.unwrap();
    socket.create(body()).await;
    let mut seen = 0;
    while seen < 5 {
        seen += usize::from(socket.event().await["type"] == "response.output_text.delta");
    }
    drop(socket);
    let ended = text.upstream.ended(Api::Responses, 0, soon()).await;
    assert_eq!(ended.unwrap().0, End::Disconnected);
    let report = text.usage(&quota, 1).await;
    let output = report["total"]["output_tokens"].as_u64().unwrap();
    assert!((5..=20).contains(&output), "{output} tokens");
}
