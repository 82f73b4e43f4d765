//! What the log holds: every request under its id, and nothing that anybody said or that is secret.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy_protocol::{ClientMessage, Originator};
use harness::{
    TestDatabase,
    app::{ADMIN_KEY, send},
    client::NativeClient,
    elsewhere::eventually,
    patience,
    process::Server,
    sounds::generated,
    upstream::{Api, Fault, Script, Upstream},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::text::{CHAT, RESPONSES};

/// Stands in everything that is said, in every request and every answer.
const SAID: &str = "zanzibar";

struct World {
    server: Server,
    _database: TestDatabase,
    key: String,
}

impl World {
    /// The status and the text of an answer, which may break off.
    async fn ask(&self, id: &str, path: &str, body: &str) -> (u16, String) {
        let request = self.server.request(&self.key, Method::POST, path);
        let request = request
            .header("x-request-id", id)
            .header("content-type", "application/json");
        let answer = request.body(body.to_owned()).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap_or_default())
    }
}

/// A server that logs all that it can say itself.
async fn start(upstream: &Upstream) -> World {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        upstream.configure(config);
        upstream.offer(config);
        (config.chat.base_url, config.chat.api_key) = (None, None);
        config.log.filter = "info,colloquy=trace".to_owned();
        let silence = patience(Duration::from_millis(300));
        for model in config.models.values_mut() {
            model.between_tokens_ms = silence.as_millis() as u32;
        }
    })
    .await;
    let partner = server.partner("acme").await;
    let quota = json!({"kinds": ["text", "speech"], "period": "lifetime"});
    let key = server.quota(&partner, &quota).await.key;
    World {
        server,
        _database: database,
        key,
    }
}

fn character() -> Value {
    json!({
        "personality": format!("You are {SAID}."),
        "parameters": {
            "name": SAID, "greetings": [SAID], "rag_enabled": true,
            "documents": [{"title": SAID, "text": format!("All about {SAID}.")}],
        },
    })
}

/// Bodies that are taken, refused and malformed.
fn bodies() -> Vec<(&'static str, String)> {
    let messages = json!([{"role": "user", "content": format!("Tell me about {SAID}.")}]);
    let svc = json!({"svc": {"character": character()}, "trace": SAID});
    let mut bodies = Vec::new();
    for model in ["scripted-chat", "scripted-responses", "builtin/extractive"] {
        for stream in [false, true] {
            let chat = json!({"model": model, "messages": messages, "stream": stream, "metadata": svc, "user": SAID});
            let response =
                json!({"model": model, "input": messages, "stream": stream, "metadata": svc});
            bodies.push((CHAT, chat.to_string()));
            bodies.push((RESPONSES, response.to_string()));
        }
    }
    bodies.extend([
        (
            CHAT,
            json!({"model": SAID, "messages": messages}).to_string(),
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": SAID}).to_string(),
        ),
        (
            CHAT,
            json!({"model": "scripted-chat", "messages": messages, SAID: {"a": 1}}).to_string(),
        ),
        (CHAT, format!("{{\"model\": \"{SAID}")),
        (
            RESPONSES,
            json!({"model": "scripted-chat", "input": "Hi", "previous_response_id": SAID})
                .to_string(),
        ),
        (
            "/v2/audio/speech",
            json!({"model": "colloquy-tts", "voice": "en", "input": SAID}).to_string(),
        ),
        (
            "/v2/audio/speech",
            json!({"model": "colloquy-tts", "voice": SAID, "input": SAID, "speed": SAID})
                .to_string(),
        ),
    ]);
    bodies
}

#[tokio::test]
async fn every_request_is_logged_and_nothing_that_was_said() {
    let upstream = Upstream::start().await;
    let world = start(&upstream).await;
    begun_answer(&world).await;
    let said = |fault: Option<Fault>| Script {
        fault,
        ..Script::text(format!("It is {SAID}, {SAID} and {SAID}."))
    };
    let faults = [
        None,
        Some(Fault::Status(400)),
        Some(Fault::ErrorFrame { after: 3 }),
        Some(Fault::Malformed { after: 3 }),
        Some(Fault::Cut { after: 3 }),
    ];
    let mut ids = Vec::new();
    for (round, fault) in faults.into_iter().enumerate() {
        for api in [Api::Chat, Api::Responses, Api::Speech] {
            upstream.set_default(api, said(fault.clone()));
        }
        for (nth, (path, body)) in bodies().into_iter().enumerate() {
            let id = format!("logged-{round}-{nth}");
            let (status, text) = world.ask(&id, path, &body).await;
            let mut is_known = fault.is_some() || nth >= 12;
            is_known |= status == 200 && text.contains(SAID);
            assert!(is_known, "{path} {body}: {text}");
            ids.push(id);
        }
    }
    message(&world, &upstream).await;

    let log = world.server.log();
    for id in &ids {
        assert!(log.contains(id.as_str()), "{id} is not in the log");
    }
    assert!(log.contains("a model failed"));
    for (base, told) in [
        (
            "acme/none",
            "the reply goes on without a source of knowledge",
        ),
        (
            "other/none",
            "the replies go on without a source of knowledge",
        ),
    ] {
        let mut lines = log.lines().filter(|line| line.contains(told));
        assert!(lines.any(|line| line.contains(base)), "{base}");
    }
    // The secret part may hold the sign that it follows.
    let secret = world.key.splitn(3, '_').nth(2).unwrap();
    for unwanted in [SAID, secret, ADMIN_KEY] {
        let line = log.lines().find(|line| line.contains(unwanted));
        assert_eq!(line, None, "{unwanted}");
    }
}

/// An answer that the client has begun, of a character whose knowledge base is not found.
async fn begun_answer(world: &World) {
    let mut character = character();
    character["parameters"]["rag_index_required"] = json!("acme/none");
    let messages =
        json!([{"role": "user", "content": SAID}, {"role": "assistant", "content": SAID}]);
    let svc = json!({"svc": {"character": character}});
    let body = json!({"model": "scripted-chat", "messages": messages, "metadata": svc});
    let (status, text) = world.ask("begun", CHAT, &body.to_string()).await;
    assert_eq!(status, 200, "{text}");
}

/// A message of text and sound, to its end.
async fn message(world: &World, upstream: &Upstream) {
    for api in [Api::Chat, Api::Transcription, Api::Speech] {
        upstream.set_default(api, Script::text(SAID));
    }
    let tone = "sine=frequency=440:duration=0.5";
    let sound = generated(tone, "a.ogg", &["-c:a", "libopus"]);
    let messages = json!([
        {"id": "1", "type": "text", "text": SAID, "is_processed": false},
        {"id": "2", "type": "audio", "audio_file_id": SAID, "is_processed": false},
    ]);
    let parameters = json!({"name": SAID, "rag_enabled": true, "rag_index_required": "other/none"});
    let character = json!({"description": parameters.to_string(), "personality": SAID});
    let mut input =
        json!({"messages": messages, "character": character, "audio_files": {}, "partner": "acme"});
    input["audio_files"][SAID] = json!(STANDARD.encode(sound));
    let key = world.server.partner("other").await.key;
    completed(world, &key, input).await;
}

/// Asks for a completion, and waits for its end.
async fn completed(world: &World, key: &str, input: Value) {
    let path = "/v2/completions";
    let request = world.server.request(key, Method::POST, path);
    let made = send(request.json(&json!({"input": input})))
        .await
        .expect(200);
    let path = made["id"].as_str().unwrap();
    eventually("the completion ends", async || {
        let state = world.server.get(key, path).await;
        assert_ne!(state["state"], "failed", "{state}");
        state["state"] == "completed"
    })
    .await;
}

#[tokio::test]
async fn a_voice_that_cannot_speak_is_named_once_a_minute() {
    let upstream = Upstream::start().await;
    let world = start(&upstream).await;
    for api in [Api::Chat, Api::Speech] {
        upstream.set_default(api, Script::text("Hello."));
    }
    let key = world.server.partner("other").await.key;
    let parameters = json!({"voice": "repo:other/nobody"});
    let ada = json!({"name": "ada", "personality": "You are Ada.", "parameters": parameters});
    let request = world
        .server
        .request(&key, Method::POST, "/api/characters/other");
    send(request.json(&ada)).await.expect(201);
    for _ in 0..2 {
        let messages = json!([{"id": "1", "type": "text", "text": "Hi", "is_processed": false}]);
        let input = json!({"messages": messages, "character": "repo:other/ada"});
        completed(&world, &key, input).await;
    }
    world.ask("afterwards", CHAT, "{}").await;
    eventually("the log is written", async || {
        world.server.log().contains("afterwards")
    })
    .await;
    let log = world.server.log();
    let told = "a character names a voice of the library that cannot speak";
    let lines: Vec<_> = log.lines().filter(|line| line.contains(told)).collect();
    let [line] = lines[..] else {
        panic!("{lines:?}");
    };
    assert!(
        line.contains("other/ada") && line.contains("repo:other/nobody"),
        "{line}"
    );
}

/// Other crates write out what they carry at their lowest level: whoever asks for it does not get it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_level_shows_what_a_call_says_or_its_tokens() {
    let upstream = Upstream::start().await;
    for api in [Api::Chat, Api::Transcription, Api::Speech] {
        upstream.set_default(api, Script::text(format!("It is {SAID}.")));
    }
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        upstream.configure(config);
        config.log.filter = "trace,tungstenite=trace,rtc=trace,sqlx=trace".to_owned();
    })
    .await;
    let partner = server.partner("acme").await;
    let character = json!({"name": "ada", "personality": SAID});
    let made = server.request(&partner.key, Method::POST, "/api/characters/acme");
    send(made.json(&character)).await.expect(201);
    let call = json!({"character": "repo:acme/ada", "call_time_limit_seconds": "60"});
    let made = server.request(&partner.key, Method::POST, "/v2/calls");
    let made = send(made.json(&call)).await.expect(200);
    let url = made["data"]["signedUrl"].as_str().unwrap();
    let client = NativeClient::connect(url).await.unwrap();
    let text = SAID.to_owned();
    client.say(&ClientMessage::Text { text }).await.unwrap();
    client
        .line(Originator::Bot, patience(Duration::from_secs(10)), |text| {
            text.contains(SAID)
        })
        .await
        .unwrap();
    let token = client.resume_token().unwrap();
    client.drop_socket().await.unwrap();
    client.resume().await.unwrap();
    // An offer that is refused is not written down either.
    let sdp = format!("v=0\r\no={SAID}\r\nm={SAID}\r\n");
    let offer = ClientMessage::Offer {
        sdp: sdp.clone(),
        ice_restart: false,
    };
    client.say(&offer).await.unwrap();
    client.bye(patience(Duration::from_secs(10))).await.unwrap();
    let check = server.request(&partner.key, Method::POST, "/v2/calls/check");
    send(check.json(&json!({"sdp": sdp}))).await.expect(400);
    // The voice library takes a key in the address, too.
    for (path, status) in [("acme", 200), (SAID, 403)] {
        let path = format!("/api/voices/{path}?api_key={}", partner.key);
        let read = server.request("", Method::GET, &path);
        send(read).await.expect(status);
    }

    let log = server.log();
    assert!(log.contains("an offer was refused"), "{log}");
    assert!(
        log.contains("TRACE") || log.contains("DEBUG"),
        "nothing was asked for"
    );
    let secret = partner.key.splitn(3, '_').nth(2).unwrap();
    let signature = url.rsplit("sig=").next().unwrap();
    for unwanted in [SAID, secret, signature, &token, "ice-pwd", ADMIN_KEY] {
        let line = log.lines().find(|line| line.contains(unwanted));
        assert_eq!(line, None, "{unwanted}");
    }
}

#[tokio::test]
async fn what_is_logged_while_a_stream_runs_names_its_request() {
    let upstream = Upstream::start().await;
    let world = start(&upstream).await;
    upstream.script(Api::Chat, Script::fault(Fault::Stall { after: 3 }));
    let body = json!({"model": "scripted-chat", "messages": [{"role": "user", "content": "Hi"}], "stream": true});
    let (status, _) = world.ask("of-a-stream", CHAT, &body.to_string()).await;
    assert_eq!(status, 200);
    let failed = |log: &str| {
        log.lines()
            .find(|line| line.contains("a model failed"))
            .map(str::to_owned)
    };
    eventually("the failure is logged", async || {
        failed(&world.server.log()).is_some()
    })
    .await;
    let line = failed(&world.server.log()).unwrap();
    assert!(line.contains("of-a-stream"), "{line}");
}

/// Anybody can send such requests at will, with the names of any proxies, so the log warns of one a minute.
#[tokio::test]
async fn requests_for_a_session_without_an_upgrade_do_not_fill_the_log() {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        config.log.filter = "info,colloquy=debug".to_owned();
    })
    .await;
    for hop in 0..5 {
        let mut request = server.request("", Method::GET, "/v2/calls/x/session");
        // A header that anybody can set.
        if hop > 0 {
            request = request.header("via", format!("1.1 hop-{hop}.example"));
        }
        let error = send(request).await.expect(426);
        assert_eq!(error["error"]["code"], "UPGRADE_REQUIRED", "{error}");
    }
    let lines = || -> Vec<String> {
        let log = server.log();
        let told = log.lines().filter(|line| line.contains("did not pass"));
        told.map(str::to_owned).collect()
    };
    eventually("the requests are logged", async || lines().len() == 5).await;
    let lines = lines();
    let count = |level: &str| lines.iter().filter(|line| line.contains(level)).count();
    assert_eq!((count("WARN"), count("DEBUG")), (1, 4), "{lines:?}");
}
