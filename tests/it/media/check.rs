//! The check before a call: a path without a call, for anybody, within bounds.

use harness::client::Check;
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

const CHECK: &str = "/v2/calls/check";

async fn app(change: impl FnOnce(&mut Config) + Send + 'static) -> TestApp {
    // Its paths are of sockets.
    TestApp::builder(&TestDatabase::sqlite())
        .real_time()
        .config(change)
        .start()
        .await
}

/// Posts an offer without a key.
async fn post(app: &TestApp, body: Value) -> harness::app::Answer {
    harness::app::send(app.request(Method::POST, CHECK).json(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_is_found_without_a_call_and_without_a_key() {
    let app = app(|_| {}).await;
    let check = Check::new().await.unwrap();
    let answer = post(&app, json!({ "sdp": check.offer })).await.expect(200);
    let took = check.connect(&answer).await.unwrap();
    assert!(took < patience(Duration::from_secs(2)), "{took:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_in_an_offer_are_sent_nothing() {
    let app = app(|_| {}).await;
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let line =
        |number| format!("a=candidate:{number} 1 udp 2130706431 127.0.0.1 {port} typ host\r\n");
    let candidates: String = (0..200).map(line).collect();
    let check = Check::new().await.unwrap();
    let sdp = format!("{}{candidates}", check.offer);
    let answer = post(&app, json!({ "sdp": sdp })).await.expect(200);
    // Its path comes about, so whatever the server does about candidates, it has done.
    check.connect(&answer).await.unwrap();
    let mut buffer = [0; 64];
    let got = silent.try_recv_from(&mut buffer);
    assert!(got.is_err(), "{got:?}");
    // More than anybody has are refused before they are read.
    let candidates: String = (0..320).map(line).collect();
    let sdp = format!("{}{candidates}", Check::new().await.unwrap().offer);
    let error = post(&app, json!({ "sdp": sdp })).await.expect(400);
    assert_eq!(error["error"]["field"], "sdp");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.len() < 300, "{message}");
    app.stop().await;
}

#[tokio::test]
async fn what_is_no_offer_is_refused_by_its_field() {
    let app = app(|_| {}).await;
    let long = "v=0\r\n".repeat(4_000);
    for sdp in ["", "hello", "v=0\r\n", long.as_str()] {
        let error = post(&app, json!({ "sdp": sdp })).await.expect(400);
        assert_eq!(error["error"]["code"], "INVALID_PARAMETERS", "{error}");
        assert_eq!(error["error"]["field"], "sdp", "{error}");
    }
    post(&app, json!({})).await.expect(400);
    app.stop().await;
}

#[tokio::test]
async fn few_run_at_a_time_and_few_come_from_one_address() {
    let app = app(|config| {
        config.limits.attempts_per_minute = 20;
        config.http.trusted_proxies = 1;
    })
    .await;
    let offer = Check::new().await.unwrap().offer;
    let post_from = async |address: &str| {
        let request = app.request(Method::POST, CHECK);
        let request = request.header("x-forwarded-for", address);
        harness::app::send(request.json(&json!({ "sdp": offer }))).await
    };
    let refused = |answer: &harness::app::Answer, status: u16, words: &str| {
        let error = &answer.expect(status)["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    };
    // One network has a quarter of the places, and leaves the others to other visitors.
    for _ in 0..8 {
        post_from("192.0.2.1").await.expect(200);
    }
    let of_network = post_from("192.0.2.1").await;
    refused(&of_network, 429, "from this network at a time");
    assert_eq!(of_network.header("retry-after"), "2");
    for network in 1..=3 {
        for host in 1..=8 {
            let address = format!("2001:db8:0:{network}::{host}");
            post_from(&address).await.expect(200);
        }
    }
    let full = post_from("192.0.2.2").await;
    refused(&full, 503, "Too many checks at a time");
    assert_eq!(full.header("retry-after"), "2");
    // Those that are refused are attempts, too.
    let mut told = Vec::new();
    for _ in 0..40 {
        let error = post_from("192.0.2.1").await.json()["error"].clone();
        told.push(error["message"].as_str().unwrap_or_default().to_owned());
    }
    let is_rate = |message: &String| message.contains("Rate limit exceeded");
    assert!(told.iter().any(is_rate), "{told:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_opens_without_a_call_and_a_request_without_an_upgrade_is_told_what_dropped_it() {
    let app = app(|_| {}).await;
    let ws = app.url("/v2/calls/check/session").replacen("http", "ws", 1);
    let (mut socket, _) = tokio_tungstenite::connect_async(&ws).await.unwrap();
    let closed = futures_util::StreamExt::next(&mut socket).await;
    let closed = closed.unwrap().unwrap();
    assert!(closed.is_close(), "{closed:?}");
    for path in ["/v2/calls/check/session", "/v2/calls/0197/session"] {
        let through_a_proxy = app
            .request(Method::GET, path)
            .header("via", "1.1 edge.example")
            .header("origin", "https://a.example");
        let answer = harness::app::send(through_a_proxy).await;
        let error = answer.expect(426)["error"].clone();
        assert_eq!(error["code"], "UPGRADE_REQUIRED");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("(1.1 edge.example)"), "{message}");
        assert_eq!(answer.header("upgrade"), "websocket");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "https://a.example"
        );
    }
    app.stop().await;
}

/// Opens the socket of a check, sends these bytes, and reads to the end of the connection. Returns what came behind the head, and how long all of
/// it took.
async fn end_of_socket(app: &TestApp, bytes: &[u8]) -> (Vec<u8>, Duration) {
    let begun = now();
    let url = app.url("/v2/calls/check/session");
    let (address, path) = url.split_once("://").unwrap().1.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "));
    stream.write_all(bytes).await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(soon(), stream.read_to_end(&mut rest));
    read.await.unwrap().unwrap();
    (rest, now() - begun)
}

/// Whatever a client sends on it is not collected: no more than its close frame is waited for, and a few pings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_socket_of_a_check_takes_no_message() {
    let app = app(|_| {}).await;
    // Frames of a client have a mask, which changes nothing here.
    let header = |kind: u8, length: [u8; 9]| [&[kind][..], &length, &[0; 4]].concat();
    let mut sixteen_mib = [0; 9];
    sixteen_mib[0] = 0xff;
    sixteen_mib[5] = 1;
    let (binary, ping) = (0x82, 0x89);
    let short = |kind: u8, payload: &[u8]| {
        let length = 0x80 | u8::try_from(payload.len()).unwrap();
        [&[kind, length][..], &[0; 4], payload].concat()
    };
    let closed = [&[0x88_u8, 9, 0x03, 0xe8][..], b"CHECKED"].concat();
    // A client that sends nothing, or a few pings, has two seconds.
    let mut waited = Duration::MAX;
    for bytes in [Vec::new(), short(ping, b"x").repeat(10)] {
        let (answer, took) = end_of_socket(&app, &bytes).await;
        assert_eq!(answer, closed);
        assert!(took > Duration::from_millis(1_900), "{took:?}");
        waited = waited.min(took);
    }
    for (what, bytes) in [
        ("a large frame begins", header(binary, sixteen_mib)),
        ("a message", short(binary, b"x")),
        ("pings", short(ping, b"x").repeat(200)),
        ("a close frame", short(0x88, &[0x03, 0xe8])),
    ] {
        // A busy machine may be late with one of them, and a server that waits for its client is with each. A slow one is as late with those above.
        let mut times = Vec::<Duration>::new();
        let is_soon = |took: &Duration| *took + Duration::from_millis(500) < waited;
        while times.iter().filter(|took| is_soon(took)).count() < 3 {
            assert!(times.len() < 5, "{what}: {times:?}");
            let (answer, took) = end_of_socket(&app, &bytes).await;
            assert_eq!(answer, closed, "{what}");
            times.push(took);
        }
    }
    app.stop().await;
}
