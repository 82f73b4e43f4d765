//! The ends of calls.

use harness::{
    app::{Answer, send},
    elsewhere::eventually,
};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_limit_ends_a_call_within_a_second() {
    let stage = Stage::new().await;
    let call = stage.call_with("repo:acme/guide", 2).await;
    let joined = now();
    let client = NativeClient::connect(&call.url).await.unwrap();
    let connected = now();
    let bye = client.bye(soon()).await.unwrap();
    let ended = now();
    assert_eq!(
        bye,
        ServerMessage::Bye {
            reason: ByeReason::TimeLimit,
            code: None
        }
    );
    let limit = Duration::from_secs(2);
    let (least, most) = (ended - connected, ended - joined);
    assert!(most >= limit, "{most:?}");
    assert!(
        least < limit + patience(Duration::from_secs(1)),
        "{least:?}"
    );
    let status = stage.reaches(&call, "completed").await;
    assert_eq!(status["duration"]["call_seconds"], 2, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absence_that_the_time_limit_ends_is_not_charged() {
    let stage = Stage::with(|config| config.calls.reconnect_seconds = 60).await;
    let call = stage.call_with("repo:acme/guide", 5).await;
    let joined = now();
    let client = NativeClient::connect(&call.url).await.unwrap();
    stage.reaches(&call, "ongoing").await;
    let there = now() - joined + Duration::from_millis(100);
    drop(client);
    let ended = stage.reaches(&call, "completed").await;
    let duration = |field: &str| ended["duration"][field].as_f64().unwrap();
    let (most, charged) = (there.as_secs_f64().round(), duration("call_seconds"));
    assert!(charged <= most, "{charged} of {most} s: {ended}");
    assert!(duration("server_runtime_seconds") > charged, "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_media_never_connects_is_a_failed_call() {
    let stage = Stage::with(|config| config.calls.media_connect_seconds = 1).await;
    let call = stage.call().await;
    let options = ClientOptions {
        conditions: Conditions {
            cut: true,
            ..Conditions::default()
        },
        ..ClientOptions::default()
    };
    let client = NativeClient::join(&call.url, options).await.unwrap();
    // The visitor takes a while to allow the microphone.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(stage.status(&call).await["state"], "starting");
    client.offer().await.unwrap();
    let bye = client.bye(soon()).await.unwrap();
    let code = Some("NOT_CONNECTED".to_owned());
    assert_eq!(
        bye,
        ServerMessage::Bye {
            reason: ByeReason::Error,
            code
        }
    );
    stage.reaches(&call, "error").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_visitor_allows_no_microphone_is_a_failed_call() {
    let stage = Stage::with(|config| {
        config.calls.visitor_seconds = 2;
        config.calls.media_connect_seconds = 60;
    })
    .await;
    let call = stage.call().await;
    let client = NativeClient::join(&call.url, ClientOptions::default())
        .await
        .unwrap();
    let bye = client.bye(soon()).await.unwrap();
    let code = Some("NOT_CONNECTED".to_owned());
    assert_eq!(
        bye,
        ServerMessage::Bye {
            reason: ByeReason::Error,
            code
        }
    );
    let log = client.log();
    let last = log.messages.iter().map(|(_, message)| message);
    let ends = last.filter(|message| {
        matches!(
            message,
            ServerMessage::Bye { .. }
                | ServerMessage::Status {
                    state: SessionState::Error
                }
        )
    });
    let first_is_bye = ends.take(1).all(|m| matches!(m, ServerMessage::Bye { .. }));
    assert!(first_is_bye, "the state came before its reason");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_so() {
    let stage = Stage::with(|config| config.http.drain_seconds = 1).await;
    let (_, client) = stage.join().await;
    converse(&client).await;
    let waiting = stage.call().await;
    let app = stage.app;
    let drains = app.app.kernel.shutdown.clone();
    let ((), bye, refused_later) = tokio::join!(app.stop(), client.bye(soon()), async {
        drains.cancelled().await;
        refusal(&waiting.url).await
    });
    assert_eq!(
        bye.unwrap(),
        ServerMessage::Bye {
            reason: ByeReason::Shutdown,
            code: None
        }
    );
    assert_eq!(refused_later, refused(CloseCode::Capacity));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_followed_and_ended_by_its_operator() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    converse(&client).await;
    let path = format!("{}/lines", call.id);
    let followed = until(
        "the reply is among the lines",
        |data: &Value| {
            let mut lines = data["lines"].as_array().unwrap().iter();
            lines.any(|line| line["text"] == REPLY)
        },
        async || {
            let read = stage.app.get(&stage.partner.key, &path).await;
            read.expect(200)["data"].clone()
        },
    )
    .await;
    assert_eq!(followed["is_open"], true, "{followed}");
    let mut lines = followed["lines"].as_array().unwrap().iter();
    let reply = lines.find(|line| line["text"] == REPLY).unwrap();
    for stage in ["waited_ms", "transcription_ms", "model_ms", "synthesis_ms"] {
        assert!(reply["reply"][stage].is_u64(), "{stage}: {reply}");
    }
    let who = |data: &Value| -> Vec<(String, String)> {
        let lines = data["lines"].as_array().unwrap().iter();
        let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
        lines
            .map(|line| (text(line, "originator"), text(line, "text")))
            .collect()
    };
    let end = format!("{}/end", call.id);
    let asked = stage.app.post(&stage.partner.key, &end, json!({})).await;
    asked.expect(200);
    let bye = client.bye(soon()).await.unwrap();
    let reason = ByeReason::HangUp;
    assert_eq!(bye, ServerMessage::Bye { reason, code: None });
    stage.reaches(&call, "completed").await;
    let said = stage.transcript(&call).await;
    assert!(said.starts_with(&who(&followed)), "{said:?} {followed}");
    let over = stage.app.get(&stage.partner.key, &path).await.expect(200);
    assert_eq!(over["data"]["is_open"], false);
    assert_eq!(who(&over["data"]), said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_connects_is_told_that_its_call_was_ended() {
    let stage = Stage::new().await;
    let call = stage.call().await;
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket.begin(false).await.unwrap();
    socket.welcome().await.unwrap();
    let end = format!("{}/end", call.id);
    let asked = stage.app.post(&stage.partner.key, &end, json!({})).await;
    asked.expect(200);
    let status = stage.reaches(&call, "error").await;
    assert_eq!(status["error_code"], "CANCELLED", "{status}");
}

/// A publishable key of `acme`.
async fn page_key(stage: &Stage) -> String {
    let key = json!({"kind": "publishable", "allowed_origins": ["https://page.example"]});
    let key = stage.app.key("acme", key).await;
    key["api_key"].as_str().unwrap().to_owned()
}

/// Places a call with a publishable key from this address, as a proxy tells it.
async fn place(stage: &Stage, key: &str, address: &str) -> Answer {
    let body = json!({"character": "repo:acme/guide", "call_time_limit_seconds": 60});
    let request = stage.app.request(reqwest::Method::POST, "/v2/calls");
    let request = request.header("origin", "https://page.example");
    let request = request.header("x-forwarded-for", address);
    send(request.header("x-api-key", key).json(&body)).await
}

fn signed_url(placed: &Answer) -> String {
    let placed = placed.expect(200);
    placed["data"]["signedUrl"].as_str().unwrap().to_owned()
}

/// Opens the session of a call from this address, as a proxy tells it, up to `hello`.
async fn begun_from(url: &str, address: &str) -> Socket {
    let mut socket = Socket::open_from(url, address).await.unwrap();
    socket.begin(false).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_page_that_never_connect_take_little_room_and_give_it_back() {
    let stage = Stage::with(|config| {
        config.calls.visitor_seconds = 2;
        config.media.max_calls_per_address = 3;
        config.http.trusted_proxies = 1;
    })
    .await;
    let key = page_key(&stage).await;
    let (visitor, other) = ("192.0.2.1", "192.0.2.2");
    let mut urls = Vec::new();
    for _ in 0..5 {
        urls.push(signed_url(&place(&stage, &key, visitor).await));
    }
    let mut sockets = Vec::new();
    for url in &urls[..3] {
        let mut socket = begun_from(url, visitor).await;
        socket.welcome().await.unwrap();
        sockets.push(socket);
    }
    let mut beyond = begun_from(&urls[3], visitor).await;
    assert_eq!(
        beyond.refusal().await.unwrap(),
        refused(CloseCode::Capacity)
    );
    let full = place(&stage, &key, visitor).await;
    assert_eq!(full.status, 429, "{}", full.text);
    assert!(full.header("retry-after").parse::<u32>().unwrap() >= 1);
    // Other visitors and the partner's own server are not held up, and the page is not for long; the refused URL was not spent.
    signed_url(&place(&stage, &key, other).await);
    stage.join().await;
    eventually("there is room again", || async {
        stage.app.app.calls.room.open() <= 1
    })
    .await;
    let mut socket = begun_from(&urls[3], visitor).await;
    socket.welcome().await.unwrap();
}

/// All of them have the address of a proxy that the settings do not count, which is private here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_that_are_not_told_apart_share_the_room_of_their_key() {
    let stage = Stage::with(|config| {
        config.media.max_calls_per_address = 1;
        config.media.max_calls_per_partner = Some(6);
    })
    .await;
    let key = page_key(&stage).await;
    let visitor = "192.0.2.1";
    let mut sockets = Vec::new();
    // Half of those of the partner.
    for _ in 0..3 {
        let url = signed_url(&place(&stage, &key, visitor).await);
        let mut socket = begun_from(&url, visitor).await;
        socket.welcome().await.unwrap();
        sockets.push(socket);
    }
    let full = place(&stage, &key, visitor).await;
    let message = full.expect(429)["error"]["message"].clone();
    assert_eq!(message, "The publishable key has too many calls at a time");
}

/// What the visitor and the character said is known to the session alone when the call ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ends_while_the_database_is_locked_is_stored_later() {
    let stage = Stage::new().await;
    let joined = now();
    let (made, client) = stage.join().await;
    converse(&client).await;
    stage.reaches(&made, "ongoing").await;

    let store = &stage.app.app.config.store;
    let file = format!("sqlite://{}", store.dir.join("colloquy.db").display());
    let mut lock = SqliteConnection::connect(&file).await.unwrap();
    while lock.execute("BEGIN IMMEDIATE").await.is_err() {}
    client.hang_up().await.unwrap();
    let most = (now() - joined).as_secs_f64().ceil();
    let journal = store.dir.join("journal");
    let files = || std::fs::read_dir(&journal).unwrap().count();
    eventually("the end is in the journal", async || files() == 1).await;
    // Longer than any statement waits for the lock: the first try fails.
    tokio::time::sleep(patience(Duration::from_secs(6))).await;
    assert_eq!(stage.status(&made).await["state"], "ongoing");
    lock.execute("ROLLBACK").await.unwrap();

    let ended = stage.reaches(&made, "completed").await;
    assert!(
        ended["duration"]["call_seconds"].as_f64().unwrap() <= most,
        "the wait is no part of the call, which took {most} s: {ended}"
    );
    assert!(!stage.transcript(&made).await.is_empty());
    eventually("the journal is empty", async || files() == 0).await;
}
