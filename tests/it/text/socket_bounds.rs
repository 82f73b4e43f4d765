//! What bounds the WebSockets of responses: messages, memory, places, time, and the end of the server.

use futures_util::SinkExt as _;
use harness::{
    eventually,
    upstream::{End, Script},
};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

use super::{
    sockets::{Socket, body, soon},
    *,
};

#[tokio::test]
async fn messages_have_bounds() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.limits.text_body_bytes = 10_000))
            .await;
    let padded = |bytes: usize| {
        let body = json!({"type": "response.create", "model": "scripted-responses", "input": "x", "user": ""});
        let pad = "x".repeat(bytes - body.to_string().len());
        body.to_string()
            .replace("\"user\":\"\"", &format!("\"user\":\"{pad}\""))
    };
    let mut socket = Socket::open(&text).await;
    socket.send(Message::text(padded(10_000))).await;
    assert_eq!(
        socket.response().await.last().unwrap()["type"],
        "response.completed"
    );
    // The same in fragments, with a ping between them.
    let whole = padded(10_000).into_bytes();
    let data = |piece: &[u8], kind, last| {
        Message::Frame(Frame::message(piece.to_vec(), OpCode::Data(kind), last))
    };
    socket.send(data(&whole[..4_000], Data::Text, false)).await;
    socket.send(Message::Ping(Default::default())).await;
    socket
        .send(data(&whole[4_000..], Data::Continue, true))
        .await;
    let pong = socket.0.next().await.unwrap().unwrap();
    assert!(pong.is_pong(), "{pong:?}");
    assert_eq!(
        socket.response().await.last().unwrap()["type"],
        "response.completed"
    );
    // One byte more, in one piece and in fragments.
    let large = padded(10_001).into_bytes();
    for pieces in [vec![&large[..]], vec![&large[..6_000], &large[6_000..]]] {
        let mut socket = Socket::open(&text).await;
        let last = pieces.len() - 1;
        for (nth, piece) in pieces.into_iter().enumerate() {
            let kind = [Data::Text, Data::Continue][nth.min(1)];
            socket.send(data(piece, kind, nth == last)).await;
        }
        let error = socket.event().await;
        assert_eq!(
            (&error["status"], &error["error"]["code"]),
            (&json!(400), &json!("body_too_large"))
        );
        assert_eq!(socket.closed().await, Some(1009));
    }
    let mut socket = Socket::open(&text).await;
    socket
        .send(Message::binary(body().to_string().into_bytes()))
        .await;
    assert_eq!(socket.event().await["error"]["param"], "body");
    assert_eq!(socket.closed().await, Some(1003));
    let mut socket = Socket::open(&text).await;
    for _ in 0..200 {
        if socket
            .0
            .send(Message::Ping(Default::default()))
            .await
            .is_err()
        {
            break;
        }
    }
    loop {
        match timeout(soon(), socket.0.next()).await.unwrap() {
            Some(Ok(Message::Pong(_))) => {}
            Some(Ok(Message::Text(told))) => {
                assert!(told.contains("rate_limited"), "{told}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(socket.closed().await, Some(1008));
}

#[tokio::test]
async fn what_is_on_its_way_counts_like_a_body() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            config.limits.text_body_bytes = 200_000;
            config.limits.body_bytes = 200_000;
            config.limits.body_memory_bytes = 2_000_000;
        })
    })
    .await;
    // A fragment takes its length, and as much in the string that collects the message: a partner's half of the memory has room for two.
    let fragment = || {
        let frame = Frame::message(vec![b' '; 190_000], OpCode::Data(Data::Text), false);
        Message::Frame(frame)
    };
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(&text).await;
        socket.send(fragment()).await;
        // The pong tells that the server has read the fragment.
        socket.send(Message::Ping(Default::default())).await;
        let pong = socket.0.next().await.unwrap().unwrap();
        assert!(pong.is_pong(), "{pong:?}");
        sockets.push(socket);
    }
    let mut socket = Socket::open(&text).await;
    let _ = socket.0.send(fragment()).await;
    let error = socket.event().await;
    assert_eq!(
        (&error["status"], &error["error"]["code"]),
        (&json!(503), &json!("unavailable"))
    );
    assert_eq!(socket.closed().await, Some(1013));
    drop((sockets, socket));
    let body = json!({"model": "scripted-responses", "input": "x".repeat(150_000)});
    there_is_room_again(&text, &body).await;
}

#[tokio::test]
async fn what_a_socket_keeps_for_its_largest_message_counts_too() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            config.limits.text_body_bytes = 200_000;
            config.limits.body_bytes = 200_000;
            config.limits.body_memory_bytes = 2_000_000;
        })
    })
    .await;
    let large =
        json!({"model": "scripted-responses", "input": "x".repeat(150_000), "store": false});
    let mut sockets = Vec::new();
    let error = loop {
        assert!(sockets.len() < 10, "idle sockets take no room");
        let mut socket = Socket::open(&text).await;
        socket.create(large.clone()).await;
        let last = socket.response().await.pop().unwrap();
        if last["type"] == "error" {
            break last;
        }
        sockets.push(socket);
    };
    assert!(!sockets.is_empty());
    assert_eq!(
        (&error["status"], &error["error"]["code"]),
        (&json!(503), &json!("unavailable"))
    );
    drop(sockets);
    there_is_room_again(&text, &large).await;
}

/// Waits until the server has noticed that clients are gone, and has room for this body again.
async fn there_is_room_again(text: &Text, body: &Value) {
    eventually("there is room again", async || {
        let mut socket = Socket::open(text).await;
        socket.create(body.clone()).await;
        let last = socket.response().await.pop().unwrap();
        last["type"] == "response.completed"
    })
    .await;
}

/// The first part of a message, of which the rest does not follow.
fn beginning() -> Message {
    let piece = b"{".to_vec();
    Message::Frame(Frame::message(piece, OpCode::Data(Data::Text), false))
}

async fn with_pause(milliseconds: u32) -> Text {
    Text::with(|_, builder| builder.config(move |config| config.http.body_pause_ms = milliseconds))
        .await
}

async fn is_asked(text: &Text, api: Api) {
    eventually("the model is asked", async || {
        !text.upstream.requests(api).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_message_that_does_not_arrive_ends_the_socket() {
    let text = with_pause(300).await;
    // Between responses, and while the model has said nothing of one, for longer than a test waits.
    for is_running in [false, true] {
        let mut socket = Socket::open(&text).await;
        if is_running {
            let slow = Script::text("one").delayed(Duration::from_secs(60), Duration::ZERO);
            text.upstream.script(Api::Responses, slow);
            socket.create(body()).await;
            is_asked(&text, Api::Responses).await;
        }
        socket.send(beginning()).await;
        let error = socket.response().await.pop().unwrap();
        assert_eq!(
            (&error["status"], &error["error"]["code"]),
            (&json!(408), &json!("body_timeout")),
            "running: {is_running}"
        );
        assert_eq!(socket.closed().await, Some(1008));
    }
    let ended = text.upstream.ended(Api::Responses, 0, soon()).await;
    assert_eq!(ended.unwrap().0, End::Disconnected);
}

/// Each piece puts the end of its message off, and a response goes on meanwhile.
#[tokio::test]
async fn a_message_that_goes_on_may_take_its_time() {
    let pause = patience(Duration::from_secs(2));
    let text = with_pause(u32::try_from(pause.as_millis()).unwrap()).await;
    let mut socket = Socket::open(&text).await;
    let words = Script::text("one two three four five six")
        .delayed(Duration::from_millis(200), Duration::from_millis(100));
    text.upstream.script(Api::Responses, words);
    socket.create(body()).await;
    is_asked(&text, Api::Responses).await;
    let next = json!({"type": "response.create", "model": "scripted-responses", "input": "Hi"});
    let next = next.to_string().into_bytes();
    let (pieces, last) = next.split_at(7);
    for (nth, piece) in pieces.chunks(1).enumerate() {
        let kind = [Data::Text, Data::Continue][nth.min(1)];
        let frame = Frame::message(piece.to_vec(), OpCode::Data(kind), false);
        socket.send(Message::Frame(frame)).await;
        tokio::time::sleep(pause / 5).await;
    }
    let first = socket.response().await;
    assert_eq!(first.last().unwrap()["type"], "response.completed");
    let frame = Frame::message(last.to_vec(), OpCode::Data(Data::Continue), true);
    socket.send(Message::Frame(frame)).await;
    let second = socket.response().await;
    assert_eq!(second.last().unwrap()["type"], "response.completed");
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_keep_a_message_waiting() {
    let text = with_pause(2_000).await;
    let words = ("y".repeat(1_000) + " ").repeat(30_000);
    text.upstream.script(Api::Chat, Script::text(words));
    let held = text.upstream.hold(Api::Chat);
    let mut socket = Socket::open(&text).await;
    socket
        .create(json!({"model": "scripted-chat", "input": "Hello"}))
        .await;
    is_asked(&text, Api::Chat).await;
    socket.send(beginning()).await;
    socket.send(Message::Ping(Default::default())).await;
    // The pong tells that the server has read the beginning; of the answer, nothing is read here.
    loop {
        let next = timeout(soon(), socket.0.next()).await.unwrap();
        if next.unwrap().unwrap().is_pong() {
            break;
        }
    }
    drop(held);
    let ended = text.upstream.ended(Api::Chat, 0, soon()).await;
    assert_eq!(ended.unwrap().0, End::Disconnected);
}

#[tokio::test]
async fn sockets_have_bounds() {
    let text = Text::with(|_, builder| {
        builder.config(|config| config.limits.text_sockets_per_partner = 2)
    })
    .await;
    let first = Socket::open(&text).await;
    let _second = Socket::open(&text).await;
    assert_eq!(Socket::with_key(&text, &text.key).await.err(), Some(429));
    drop(first);
    eventually("the place comes back", async || {
        Socket::with_key(&text, &text.key).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn sockets_end_in_time() {
    let with = async |idle: u32, seconds: u32| {
        Text::with(|_, builder| {
            builder.config(|config| {
                config.limits.text_socket_idle_seconds = idle;
                config.limits.text_socket_seconds = seconds;
                config.http.keep_alive_seconds = 1;
            })
        })
        .await
    };
    let text = with(2, 60).await;
    let mut socket = Socket::open(&text).await;
    let slow = Script::text("one two").delayed(Duration::from_millis(2_500), Duration::ZERO);
    text.upstream.script(Api::Responses, slow);
    // A response is no idleness, pings are.
    socket.made(body()).await;
    let began = tokio::time::Instant::now();
    let (mut sink, mut stream) = socket.0.split();
    let pings = async {
        while sink.send(Message::Ping(Default::default())).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let mut server_pings = 0;
    let closed = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Ping(_) => server_pings += 1,
                Message::Close(frame) => return frame.map(|frame| u16::from(frame.code)),
                _ => {}
            }
        }
        None
    };
    let code = tokio::select! {
        code = timeout(soon(), closed) => code.unwrap(),
        () = async { pings.await; std::future::pending().await } => unreachable!(),
    };
    assert_eq!(code, Some(1000));
    let waited = began.elapsed();
    // The server began to wait a moment earlier, with the end of its answer, and not with the request for it.
    assert!(waited > Duration::from_secs(1), "{waited:?}");
    let most = Duration::from_secs(2) + patience(Duration::from_secs(2));
    assert!(waited < most, "{waited:?}");

    // A response that runs when the time is over is made to its end.
    let text = with(60, 1).await;
    let mut socket = Socket::open(&text).await;
    let slow = Script::text("one two").delayed(Duration::from_millis(1_500), Duration::ZERO);
    text.upstream.script(Api::Responses, slow);
    socket.made(body()).await;
    let error = socket.event().await;
    assert_eq!(error["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(error["status"], 400);
    assert_eq!(socket.closed().await, Some(1001));
}

#[tokio::test]
async fn a_server_that_stops_lets_responses_end() {
    let text = Text::start().await;
    let mut idle = Socket::open(&text).await;
    let mut busy = Socket::open(&text).await;
    let words = Script::text("one two three")
        .delayed(Duration::from_millis(300), Duration::from_millis(100));
    text.upstream.script(Api::Responses, words);
    busy.create(body()).await;
    is_asked(&text, Api::Responses).await;
    let Text { app, .. } = text;
    let stopped = tokio::spawn(app.stop());
    assert_eq!(idle.closed().await, Some(1001));
    let events = busy.response().await;
    assert_eq!(events.last().unwrap()["type"], "response.completed");
    assert_eq!(busy.closed().await, Some(1001));
    timeout(patience(Duration::from_secs(5)), stopped)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_response_that_outlasts_the_time_to_drain_ends_with_an_error() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.http.drain_seconds = 1)).await;
    let mut socket = Socket::open(&text).await;
    let words =
        Script::text("word ".repeat(100)).delayed(Duration::ZERO, Duration::from_millis(100));
    text.upstream.script(Api::Responses, words);
    socket.create(body()).await;
    socket.event().await;
    let Text { app, .. } = text;
    let stopped = tokio::spawn(app.stop());
    let last = socket.response().await.pop().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["code"]),
        (&json!("error"), &json!("server_stopped"))
    );
    assert_eq!(socket.closed().await, Some(1001));
    timeout(patience(Duration::from_secs(5)), stopped)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_slow_reader_makes_nothing_grow() {
    let text = Text::start().await;
    text.upstream.script(Api::Chat, Script::default());
    let words = ("y".repeat(1_000) + " ").repeat(30_000);
    text.upstream.set_default(Api::Chat, Script::text(words));
    let body = json!({"model": "scripted-chat", "input": "Hello"});
    text.post(RESPONSES, body.clone()).await.expect(200);
    let before = streams::resident_bytes();
    let mut socket = Socket::open(&text).await;
    socket.create(body).await;
    streams::stands_still(&text, 1).await;
    let grown = streams::resident_bytes().saturating_sub(before);
    assert!(grown < 90_000_000, "{grown} bytes");
    let asked = &text.asked(Api::Chat)[1];
    assert!(asked.end.is_none(), "the model was not read to its end");
}

#[tokio::test]
async fn responses_are_refused_while_the_disk_is_low_as_over_http() {
    let text = Text::start().await;
    let mut socket = Socket::open(&text).await;
    // The server measures the disk of the test as well, which may come between.
    let mut attempts = 0..5;
    let over_http = loop {
        attempts.next().expect("the request was not refused");
        text.app.app.edge.set_disk_low(true);
        let answer = text.post(RESPONSES, body()).await;
        if answer.status != 200 {
            break answer;
        }
    };
    let expected = over_http.expect(507)["error"].clone();
    assert_eq!(expected["code"], "insufficient_storage");
    let told = loop {
        attempts.next().expect("the response was not refused");
        text.app.app.edge.set_disk_low(true);
        socket.create(body()).await;
        let told = socket.response().await.pop().unwrap();
        if told["type"] == "error" {
            break told;
        }
    };
    assert_eq!(told["status"], 507, "{told}");
    for field in ["type", "code", "message"] {
        assert_eq!(told["error"][field], expected[field], "{field}");
    }
    let retry_after = told["error"]["headers"]["retry-after"].as_str();
    assert_eq!(retry_after, Some(over_http.header("retry-after")));
    text.app.app.edge.set_disk_low(true);
    let mut unstored = body();
    unstored["store"] = json!(false);
    socket.made(unstored).await;
}
