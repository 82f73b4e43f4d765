//! Live calls: native clients against a server in this process that asks a scripted upstream.
//!
//! - [`addresses`]: the address that clients are told
//! - [`check`]: the check before a call
//! - [`talk`]: what a visitor hears and reads
//! - [`neural`]: turns that models listen to
//! - [`session`]: admission, loss and return, ends
//! - [`trouble`]: providers that fail, bad networks, strangers on the media port
//! - [`visitor`]: what becomes known of the visitor
//! - [`webrtc`]: calls with a client that is not made as the server is

mod addresses;
mod check;
mod neural;
mod session;
mod talk;
mod trouble;
mod visitor;
mod webrtc;

use std::time::Duration;

use colloquy::{Config, providers};
use colloquy_protocol::{Originator, ServerMessage};
use harness::{
    TestApp, TestDatabase,
    app::TestPartner,
    client::{ClientOptions, NativeClient, Speech, Stack, now},
    patience, until,
    upstream::{Api, Script, Upstream},
};
use serde_json::{Value, json};

/// More than anything here takes unless it is broken.
fn soon() -> Duration {
    patience(Duration::from_secs(8))
}

/// What the transcriber hears, whatever is said.
const HEARD: &str = "go forward ten meters";

/// What the character answers: 3.4 seconds of speech.
const REPLY: &str = "The library opens at nine. You can borrow ten books here.";

/// What a client was told so far, of the messages that are meant.
fn told<T>(client: &NativeClient, meant: impl Fn(&ServerMessage) -> Option<T>) -> Vec<T> {
    let log = client.log();
    let messages = log.messages.iter();
    messages.filter_map(|(_, message)| meant(message)).collect()
}

/// A server, the upstream behind it, and a partner with a character.
struct Stage {
    app: TestApp,
    upstream: Upstream,
    partner: TestPartner,
}

/// A call that was made and has no client yet.
struct Made {
    id: String,
    url: String,
}

impl Stage {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let upstream = Upstream::start().await;
        upstream.set_default(Api::Chat, Script::text(REPLY));
        upstream.set_default(Api::Transcription, Script::text(HEARD));
        let mut scripted = Config::default();
        scripted.http.listen = ([127, 0, 0, 1], 0).into();
        scripted.calls.turn_stop_ms = 200;
        upstream.configure(&mut scripted);
        upstream.offer(&mut scripted);
        change(&mut scripted);
        let scripted_providers = providers::from_config(&scripted).unwrap();
        // Media runs in real time.
        let builder = TestApp::builder(&TestDatabase::sqlite())
            .real_time()
            .providers(scripted_providers)
            .config(|config| {
                config.calls = scripted.calls;
                config.models = scripted.models;
                config.analyses = scripted.analyses;
                config.media = scripted.media;
                config.limits.attempts_per_minute = scripted.limits.attempts_per_minute;
                config.http.listen = scripted.http.listen;
                config.http.drain_seconds = scripted.http.drain_seconds.min(5);
                config.http.trusted_proxies = scripted.http.trusted_proxies;
            });
        let app = builder.start().await;
        let partner = app.partner("acme").await;
        app.character(&partner, "guide", "You are a guide.", json!({}))
            .await;
        Self {
            app,
            upstream,
            partner,
        }
    }

    async fn call(&self) -> Made {
        self.call_with("repo:acme/guide", 60).await
    }

    async fn call_with(&self, character: &str, limit_seconds: u32) -> Made {
        let body =
            json!({"character": character, "call_time_limit_seconds": limit_seconds.to_string()});
        let made = self
            .app
            .post(&self.partner.key, "/v2/calls", body)
            .await
            .expect(200);
        let text = |field: &str| made["data"][field].as_str().unwrap().to_owned();
        Made {
            id: text("id"),
            url: text("signedUrl"),
        }
    }

    async fn join(&self) -> (Made, NativeClient) {
        self.join_on(Stack::default()).await
    }

    /// How long after a visitor's last sound the reply to it is heard.
    async fn answered_after(&self) -> Duration {
        let (_, client) = self.join().await;
        let speech = Speech::go_forward_trimmed().unwrap();
        let spoken = client.speak(&speech).await.unwrap();
        let reply = client.reply_audio(spoken.ended, soon()).await.unwrap();
        client
            .line(Originator::User, soon(), |text| text == HEARD)
            .await
            .unwrap();
        reply.at.duration_since(spoken.ended)
    }

    /// Makes a call and joins it with a client on this WebRTC stack.
    async fn join_on(&self, stack: Stack) -> (Made, NativeClient) {
        let made = self.call().await;
        let options = ClientOptions {
            stack,
            ..ClientOptions::default()
        };
        let client = NativeClient::connect_with(&made.url, options).await;
        (made, client.unwrap())
    }

    async fn status(&self, call: &Made) -> Value {
        self.app.get(&self.partner.key, &call.id).await.expect(200)["data"].clone()
    }

    /// Waits until the call is in this state.
    async fn reaches(&self, call: &Made, state: &str) -> Value {
        let what = format!("the call is {state}");
        until(
            &what,
            |status: &Value| status["state"] == state,
            async || self.status(call).await,
        )
        .await
    }

    /// The stored transcript: who and what.
    async fn transcript(&self, call: &Made) -> Vec<(String, String)> {
        let answer = self
            .app
            .get(&self.partner.key, &format!("{}/transcript", call.id))
            .await
            .expect(200);
        let lines = answer["data"]["transcript"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
        lines
            .iter()
            .map(|line| (text(line, "originator"), text(line, "text")))
            .collect()
    }
}

/// Speaks a turn and waits for the line and the voice that answer it.
async fn converse(client: &NativeClient) {
    let spoken = client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    client
        .line(Originator::User, soon(), |text| text == HEARD)
        .await
        .unwrap();
    assert!(
        client.reply_audio(spoken.ended, soon()).await.is_some(),
        "no reply was audible"
    );
}

/// The code of an `error` that is not fatal.
fn mild_error(message: &ServerMessage) -> Option<String> {
    match message {
        ServerMessage::Error {
            code, fatal: false, ..
        } => Some(code.clone()),
        _ => None,
    }
}
