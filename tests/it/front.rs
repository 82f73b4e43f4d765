//! Connections: how many there may be, how long each may be silent, how they end, and what a stopping server says.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, client, send},
    elsewhere::eventually,
    patience,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// More than anything here takes unless it is broken.
fn soon() -> Duration {
    patience(Duration::from_secs(10))
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n";

async fn start(change: impl FnOnce(&mut colloquy::config::HttpConfig)) -> TestApp {
    TestApp::builder(&TestDatabase::sqlite())
        .config(|config| change(&mut config.http))
        .start()
        .await
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Everything that comes until the server closes, and how long that takes.
async fn rest(stream: &mut TcpStream) -> (String, Duration) {
    let begun = Instant::now();
    let mut text = Vec::new();
    let read = timeout(soon(), stream.read_to_end(&mut text)).await;
    read.unwrap().unwrap();
    (String::from_utf8(text).unwrap(), begun.elapsed())
}

/// Sends this and reads until a JSON object is complete.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        let read = timeout(soon(), stream.read_buf(&mut text)).await;
        assert_ne!(read.unwrap().unwrap(), 0, "{text:?}");
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_its_connection() {
    let app = start(|http| http.header_ms = 200).await;
    for sent in [
        &b""[..],
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nhost: a\r\n",
    ] {
        let begun = Instant::now();
        let mut stream = connect(app.address).await;
        stream.write_all(sent).await.unwrap();
        let (text, _) = rest(&mut stream).await;
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(190), "{took:?}");
        assert!(text.is_empty(), "{text}");
    }
    // One byte now and then is no excuse.
    let mut stream = connect(app.address).await;
    let (mut read, mut write) = stream.split();
    let dripping = async {
        for byte in HEALTH.iter().cycle() {
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    };
    let mut nothing = Vec::new();
    tokio::select! {
        () = dripping => {}
        read = timeout(soon(), read.read_to_end(&mut nothing)) => {
            // The drip may meet a socket that is closed.
            let _ = read.unwrap();
        }
    }
    // The next head of a connection, too.
    let mut stream = connect(app.address).await;
    exchange(&mut stream, HEALTH).await;
    stream.write_all(b"GET /hea").await.unwrap();
    assert_eq!(rest(&mut stream).await.0, "");
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_in_use_is_not() {
    let idle = patience(Duration::from_millis(1_500));
    let idle_ms = u32::try_from(idle.as_millis()).unwrap();
    let app = start(|http| (http.idle_ms, http.header_ms) = (idle_ms, 600_000)).await;
    let mut stream = connect(app.address).await;
    for _ in 0..4 {
        let answer = exchange(&mut stream, HEALTH).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        tokio::time::sleep(patience(Duration::from_millis(600))).await;
    }
    let (text, took) = rest(&mut stream).await;
    assert_eq!(text, "");
    assert!(took < patience(Duration::from_secs(3)), "{took:?}");
}

#[tokio::test]
async fn a_body_that_pauses_or_takes_too_long_is_given_up() {
    let app = start(|http| (http.body_pause_ms, http.body_ms) = (1_000, 3_000)).await;
    app.partner("acme").await;
    let head = format!(
        "POST /api/characters/acme HTTP/1.1\r\nhost: a\r\nx-api-key: {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    let begun = Instant::now();
    let mut stream = connect(app.address).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let (text, _) = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!(
        text.contains("body_timeout") && text.contains("connection: close\r\n"),
        "{text}"
    );
    assert!(begun.elapsed() >= Duration::from_millis(990));

    // It never pauses that long.
    let begun = Instant::now();
    let mut stream = connect(app.address).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.split();
    let dripping = async {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut text = String::new();
    tokio::select! {
        () = dripping => {}
        read = timeout(soon(), read.read_to_string(&mut text)) => { read.unwrap().unwrap(); }
    }
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(2_990), "{took:?}");

    // What is slow but comes in time is taken.
    let body = r#"{"name": "ada", "personality": "You are Ada."}"#;
    let head = head.replace("1000", &body.len().to_string());
    let mut stream = connect(app.address).await;
    stream
        .write_all(&head.as_bytes()[..head.len() - 1])
        .await
        .unwrap();
    for piece in body.as_bytes().chunks(8) {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let answer = exchange(&mut stream, b"").await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

/// A folder with one large file.
fn large_file(bytes: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("large"), vec![b'x'; bytes]).unwrap();
    folder
}

const LARGE: &[u8] = b"GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// A connection whose system takes little on its behalf.
async fn connect_small(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    socket.connect(address).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_nobody_reads_is_given_up_and_one_that_is_read_slowly_is_not() {
    const BYTES: usize = 24 * 1024 * 1024;
    let folder = large_file(BYTES);
    let at = folder.path().to_owned();
    let app = start(|http| {
        http.static_dir = Some(at);
        (http.write_stall_ms, http.max_connections) = (2_000, 2);
    })
    .await;
    let mut silent = connect_small(app.address).await;
    silent.write_all(LARGE).await.unwrap();
    // Its pauses are shorter than the time, and what it takes between them is a small part of what waits for it.
    let mut slow = connect_small(app.address).await;
    slow.write_all(LARGE).await.unwrap();
    let mut read = 0;
    let mut buffer = vec![0; 64 * 1024];
    for _ in 0..12 {
        read += slow.read(&mut buffer).await.unwrap();
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    // The place of the silent one is free.
    eventually("there is room", async || {
        let answer = app.request(Method::GET, "/health").send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    loop {
        match timeout(soon(), slow.read(&mut buffer))
            .await
            .unwrap()
            .unwrap()
        {
            0 => break,
            bytes => read += bytes,
        }
    }
    assert!(read > BYTES, "{read}");
    // Whoever begins to read now finds that it broke off.
    let mut got = 0;
    while let Ok(bytes @ 1..) = timeout(soon(), silent.read(&mut buffer)).await.unwrap() {
        got += bytes;
    }
    assert!(got < BYTES, "{got}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_bounded_by_address_and_in_all() {
    let app = start(|http| http.max_connections_per_address = 3).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(app.address).await;
        exchange(&mut stream, HEALTH).await;
        held.push(stream);
    }
    let mut beyond = connect(app.address).await;
    beyond.write_all(HEALTH).await.unwrap();
    let (text, _) = rest(&mut beyond).await;
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(
        text.contains("retry-after: ") && text.contains("connection: close\r\n"),
        "{text}"
    );
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["code"], "unavailable");
    // The others go on, and a place that is left is free.
    exchange(&mut held[0], HEALTH).await;
    held.pop();
    let there_is_room = async || send(app.request(Method::GET, "/health")).await.status == 200;
    eventually("there is room", there_is_room).await;

    // A proxy's connections are not one client's.
    let app = start(|http| {
        (http.max_connections_per_address, http.trusted_proxies) = (3, 1);
        http.max_connections = 10;
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut stream = connect(app.address).await;
        exchange(&mut stream, HEALTH).await;
        held.push(stream);
    }
    // One that asks nothing is told after a while, and not at once: its client would not take that for an answer.
    let begun = Instant::now();
    let mut beyond = connect(app.address).await;
    let (text, _) = rest(&mut beyond).await;
    let took = begun.elapsed();
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(took >= Duration::from_millis(250), "{took:?}");
}

/// A flood beyond the bound is closed, and costs the clients that are there nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_silent_connections_leaves_the_others_alone() {
    let app = start(|http| {
        http.max_connections_per_address = 50;
        http.header_ms = 500;
    })
    .await;
    let mut known = connect(app.address).await;
    exchange(&mut known, HEALTH).await;
    let mut flood = Vec::new();
    for _ in 0..400 {
        flood.push(connect(app.address).await);
    }
    exchange(&mut known, HEALTH).await;
    let mut ending = JoinSet::new();
    for mut stream in flood {
        ending.spawn(async move {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
    }
    timeout(soon(), ending.join_all()).await.unwrap();
    exchange(&mut known, HEALTH).await;
    let metrics = send(app.request(Method::GET, "/metrics")).await.text;
    assert!(metrics.contains("colloquy_http_connections_refused_total"));
    assert!(metrics.contains(r#"colloquy_http_connections_cut_total{reason="header"}"#));
}

/// Bodies far above the limit, at full speed: the client reads its 413 after it has sent all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_gets_its_answer() {
    let app = start(|_| {}).await;
    app.partner("acme").await;
    let piece = vec![b' '; 256 * 1024];
    for megabytes in [4, 40] {
        for chunked in [false, true] {
            let length = match chunked {
                true => "transfer-encoding: chunked".to_owned(),
                false => format!("content-length: {}", megabytes * 1024 * 1024),
            };
            let head = format!(
                "POST /api/characters/acme HTTP/1.1\r\nhost: a\r\nx-api-key: {ADMIN_KEY}\r\n\
                 content-type: application/json\r\n{length}\r\n\r\n"
            );
            let mut stream = connect(app.address).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            for _ in 0..megabytes * 4 {
                if chunked {
                    stream.write_all(b"40000\r\n").await.unwrap();
                }
                stream.write_all(&piece).await.unwrap();
                if chunked {
                    stream.write_all(b"\r\n").await.unwrap();
                }
            }
            let (text, _) = rest(&mut stream).await;
            assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
            assert!(text.contains("body_too_large"), "{text}");
        }
    }
}

#[tokio::test]
async fn heads_are_bounded_in_size_and_number() {
    let app = start(|_| {}).await;
    let many: String = (0..200).map(|nth| format!("x-{nth}: y\r\n")).collect();
    let long = "y".repeat(200_000);
    let start = "GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx: ";
    let head_of = |bytes: usize| {
        let value = "y".repeat(bytes - start.len() - 4);
        format!("{start}{value}\r\n\r\n")
    };
    for (head, status) in [
        (head_of(64 * 1024), 200),
        (head_of(64 * 1024 + 1), 431),
        (head_of(100_000), 431),
        (
            format!("GET /health HTTP/1.1\r\nhost: a\r\n{many}\r\n"),
            431,
        ),
        (
            format!("GET /health HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
            431,
        ),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), 431),
    ] {
        let mut stream = connect(app.address).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let (text, _) = rest(&mut stream).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_answers_until_its_work_is_done() {
    let app = start(|_| {}).await;
    app.partner("acme").await;
    let url = app.url("/api/characters/acme");
    // A connection that has had an answer, one that is new, and a request that is in progress.
    let mut idle = connect(app.address).await;
    exchange(&mut idle, HEALTH).await;
    let mut silent = connect(app.address).await;
    exchange(&mut silent, HEALTH).await;
    let mut fresh = connect(app.address).await;
    let head = format!(
        "POST /api/characters/acme HTTP/1.1\r\nhost: a\r\nx-api-key: {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: 46\r\nexpect: 100-continue\r\n\r\n"
    );
    let mut running = connect(app.address).await;
    running.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request is in progress.
    let mut go_on = [0; 25];
    running.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    app.app.kernel.shutdown.cancel();

    // A request that is on its way when the server stops is answered, and ends its connection; one that does not come, too.
    idle.write_all(HEALTH).await.unwrap();
    assert!(rest(&mut idle).await.0.contains("connection: close\r\n"));
    fresh.write_all(HEALTH).await.unwrap();
    let (text, _) = rest(&mut fresh).await;
    assert!(
        text.starts_with("HTTP/1.1 503 ") && text.contains("draining"),
        "{text}"
    );
    assert!(text.contains("connection: close\r\n"), "{text}");
    assert_eq!(rest(&mut silent).await.0, "");
    // New connections are taken, and new work is not.
    let health = send(client().get(app.url("/health"))).await;
    assert_eq!(health.expect(503)["status"], "draining");
    let new = client().post(&url).header("x-api-key", ADMIN_KEY);
    let refused = send(new.json(&json!({"name": "x", "personality": "y"}))).await;
    assert_eq!(refused.expect(503)["code"], "unavailable");
    assert_eq!(refused.header("connection"), "close");
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    let page = client()
        .post(app.url("/v2/calls"))
        .header("origin", "https://a.example");
    let refused = send(page).await;
    assert_eq!(refused.expect(503)["error"]["code"], "UNAVAILABLE");
    assert_eq!(
        refused.header("access-control-allow-origin"),
        "https://a.example"
    );
    // What was in progress ends as it would have.
    let body = br#"{"name": "ada", "personality": "You are Ada."}"#;
    running.write_all(body).await.unwrap();
    let (text, _) = rest(&mut running).await;
    assert!(text.starts_with("HTTP/1.1 201 "), "{text}");
    assert!(text.contains("connection: close\r\n"), "{text}");
    let address = app.address;
    timeout(soon(), app.stop()).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Between SIGTERM and the end: `/health` says so, and everything is served, on connections from before and on new ones, of
/// which none outlives its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_stop_serves_until_its_time_is_over() {
    let app = start(|http| http.lame_duck_seconds = 60).await;
    app.partner("acme").await;
    let new = |name: &str| {
        let body = json!({"name": name, "personality": "y"}).to_string();
        format!(
            "POST /api/characters/acme HTTP/1.1\r\nhost: a\r\nx-api-key: {ADMIN_KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut kept = connect(app.address).await;
    exchange(&mut kept, HEALTH).await;
    app.app.kernel.leaving.cancel();
    let health = send(client().get(app.url("/health"))).await;
    assert_eq!(health.expect(503)["status"], "draining");
    let mut fresh = connect(app.address).await;
    for (stream, name) in [(&mut kept, "a"), (&mut fresh, "b")] {
        stream.write_all(new(name).as_bytes()).await.unwrap();
        let (text, _) = rest(stream).await;
        assert!(text.starts_with("HTTP/1.1 201 "), "{text}");
        assert!(text.contains("connection: close\r\n"), "{text}");
    }
    // The rest of the time is for whoever has not noticed; the test ends it.
    app.stop().await;
}

/// Clients with connections that they keep, behind what looks at `/health` as a load balancer does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request() {
    let database = TestDatabase::sqlite();
    let node = async |name: &str| {
        let builder = TestApp::builder(&database).node(name);
        let builder = builder.config(|config| config.http.lame_duck_seconds = 60);
        builder.start().await
    };
    let (old, new) = (node("old").await, node("new").await);
    old.partner("acme").await;
    let is_old_up = Arc::new(AtomicBool::new(true));
    let (under_way, answered) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let over = CancellationToken::new();
    let mut clients = JoinSet::new();
    for nth in 0..4 {
        let (is_old_up, under_way) = (Arc::clone(&is_old_up), Arc::clone(&under_way));
        let answered = Arc::clone(&answered);
        let (over, http) = (over.clone(), client());
        let urls = [&old, &new].map(|server| server.url("/api/characters/acme"));
        clients.spawn(async move {
            let mut statuses = Vec::new();
            while !over.is_cancelled() {
                under_way.fetch_add(1, Ordering::SeqCst);
                let to_old = is_old_up.load(Ordering::SeqCst);
                if !to_old {
                    under_way.fetch_sub(1, Ordering::SeqCst);
                }
                let name = format!("c{nth}-{}", statuses.len());
                let request = http.post(&urls[usize::from(!to_old)]);
                let request = request.header("x-api-key", ADMIN_KEY);
                let answer = request.json(&json!({"name": name, "personality": "y"}));
                statuses.push((to_old, answer.send().await.unwrap().status()));
                answered.fetch_add(1, Ordering::SeqCst);
                if to_old {
                    under_way.fetch_sub(1, Ordering::SeqCst);
                }
            }
            statuses
        });
    }
    eventually("each client is served", async || {
        answered.load(Ordering::SeqCst) >= 8
    })
    .await;
    old.app.kernel.leaving.cancel();
    let health = send(client().get(old.url("/health"))).await;
    health.expect(503);
    is_old_up.store(false, Ordering::SeqCst);
    eventually("the old server has no request any more", async || {
        under_way.load(Ordering::SeqCst) == 0
    })
    .await;
    old.stop().await;
    over.cancel();
    let statuses = clients.join_all().await.concat();
    assert!(
        statuses.iter().all(|(_, status)| status.as_u16() == 201),
        "{statuses:?}"
    );
    for to_old in [true, false] {
        assert!(statuses.iter().any(|(to, _)| *to == to_old), "{to_old}");
    }
    new.stop().await;
}
