//! The call resource.

use std::collections::BTreeMap;

use anyhow::ensure;
use colloquy_base::money::Usd;
use serde::{Deserialize, Serialize};

/// The call resource.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallsConfig {
    /// How long a signed URL may wait for its client, in seconds.
    pub connect_seconds: u32,
    /// How long the client may then wait for its visitor, who is asked for the microphone, in seconds. The call has its place
    /// meanwhile.
    pub visitor_seconds: u32,
    /// How long media may take to connect from the client's first offer on, in seconds.
    pub media_connect_seconds: u32,
    /// How long a lost client may take to come back, in seconds.
    pub reconnect_seconds: u32,
    /// How often the client sends a heartbeat, in seconds.
    pub heartbeat_seconds: u32,
    /// Silence that ends the visitor's turn, in milliseconds.
    pub turn_stop_ms: u32,
    /// What tells speech from other sounds: a model of the models folder, which has to be there, or `earshot`, which is part of the
    /// server; unset: the model of the folder, else `earshot`.
    pub voice_activity: Option<String>,
    /// The model of the models folder that tells in a pause whether the visitor has finished, such as `smart-turn-v3.2`; unset:
    /// none, and every turn ends after `turn_stop_ms`. It is asked after `pause_ms` of silence.
    pub end_of_turn: Option<String>,
    /// Silence that ends a turn that seems to be over, in milliseconds.
    pub complete_stop_ms: u32,
    /// Silence that ends a turn of a visitor who seems to go on, in milliseconds.
    pub incomplete_stop_ms: u32,
    /// Speech that begins a turn or interrupts the character, in milliseconds.
    pub turn_start_ms: u32,
    /// Utterances with less speech than this are dropped, in milliseconds.
    pub min_speech_ms: u32,
    /// How often a running utterance is transcribed for interim results, in milliseconds; 0: never; unset: once a second where
    /// the transcriber may start early, else never.
    pub interim_ms: Option<u32>,
    /// Silence that is a pause, in milliseconds; 0: none is. In a pause an utterance is transcribed although it may go on, where the
    /// transcriber may start early: where it ends there, its words are known when `turn_stop_ms` are over.
    pub pause_ms: u32,
    /// How long a provider may be silent before it counts as failed, in milliseconds.
    pub provider_timeout_ms: u32,
    /// If true, sends a second request to a remote service that has been silent for half of `provider_timeout_ms`. Disable it for a
    /// model that serves one request at a time.
    pub second_request: bool,
    /// What the character says when a provider failed.
    pub apology: String,
    /// Default `patience_message` of characters. Unset: "One moment, please." in the language of the call; empty: no message.
    pub patience_message: Option<String>,
    /// Default `patience_ms` of characters: the delay before `patience_message` is spoken, in milliseconds, 500 to 60000.
    pub patience_ms: u32,
    /// What calls find out of their visitors and tell the page (`onUserInfo`), where the character has no `profile_schema`: names of fields,
    /// and what they mean. Empty: nothing; unset: `name`, `age`, `city`, `occupation` and `interests`.
    pub user_info: Option<BTreeMap<String, String>>,
    /// What an hour costs the quota that pays for a call, in US dollars, such as `"1.80"`.
    pub usd_per_hour: Usd,
    /// How long a call is kept once it ended, with its transcript, in days, 1 to 36500. One in which media never flowed, such as one that
    /// nobody joined, is kept for 7 days at most. Transcripts and metadata count in the storage of the partner meanwhile.
    pub kept_days: u32,
}

impl Default for CallsConfig {
    fn default() -> Self {
        Self {
            connect_seconds: 300,
            visitor_seconds: 60,
            media_connect_seconds: 30,
            reconnect_seconds: 30,
            heartbeat_seconds: 10,
            turn_stop_ms: 550,
            voice_activity: None,
            end_of_turn: None,
            complete_stop_ms: 200,
            incomplete_stop_ms: 800,
            turn_start_ms: 96,
            min_speech_ms: 160,
            interim_ms: None,
            pause_ms: 80,
            provider_timeout_ms: 10_000,
            second_request: true,
            apology: "Sorry, I can't answer right now. Please try again in a moment.".to_owned(),
            patience_message: None,
            patience_ms: 3_000,
            user_info: None,
            usd_per_hour: Usd(0),
            kept_days: 365,
        }
    }
}

impl CallsConfig {
    /// What calls find out of their visitors where the character does not say.
    #[must_use]
    pub fn user_info(&self) -> BTreeMap<String, String> {
        let known = || {
            [
                ("name", "What the visitor is called"),
                ("age", "How old the visitor is, in years"),
                ("city", "Where the visitor lives"),
                ("occupation", "What the visitor does for a living"),
                ("interests", "What the visitor likes, separated by commas"),
            ]
            .map(|(field, meaning)| (field.to_owned(), meaning.to_owned()))
            .into()
        };
        self.user_info.clone().unwrap_or_else(known)
    }

    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.connect_seconds >= 1,
            "calls.connect_seconds: at least 1"
        );
        ensure!(
            self.visitor_seconds >= 1,
            "calls.visitor_seconds: at least 1"
        );
        ensure!(
            self.media_connect_seconds >= 1,
            "calls.media_connect_seconds: at least 1"
        );
        ensure!(
            self.reconnect_seconds >= 1,
            "calls.reconnect_seconds: at least 1"
        );
        ensure!(
            self.heartbeat_seconds >= 1,
            "calls.heartbeat_seconds: at least 1"
        );
        ensure!(
            (40..=10_000).contains(&self.turn_stop_ms),
            "calls.turn_stop_ms: 40 to 10000"
        );
        for (setting, ms) in [
            ("complete_stop_ms", self.complete_stop_ms),
            ("incomplete_stop_ms", self.incomplete_stop_ms),
        ] {
            ensure!((40..=10_000).contains(&ms), "calls.{setting}: 40 to 10000");
        }
        ensure!(
            self.end_of_turn.is_none() || self.pause_ms > 0,
            "calls.pause_ms: more than 0 with calls.end_of_turn"
        );
        ensure!(
            (16..=2_000).contains(&self.turn_start_ms),
            "calls.turn_start_ms: 16 to 2000"
        );
        for (field, meaning) in self.user_info.iter().flatten() {
            ensure!(
                (1..=100).contains(&field.chars().count()) && meaning.chars().count() <= 4_000,
                "calls.user_info: names of 1 to 100 characters, meanings of at most 4000"
            );
        }
        ensure!(
            self.user_info.iter().flatten().count() <= 50,
            "calls.user_info: at most 50 fields"
        );
        ensure!(
            self.min_speech_ms <= 5_000,
            "calls.min_speech_ms: at most 5000"
        );
        ensure!(
            self.interim_ms
                .is_none_or(|interim| interim == 0 || interim >= 100),
            "calls.interim_ms: 0, or at least 100"
        );
        ensure!(self.pause_ms <= 10_000, "calls.pause_ms: at most 10000");
        ensure!(
            (500..=60_000).contains(&self.patience_ms),
            "calls.patience_ms: 500 to 60000"
        );
        let patience = self.patience_message.as_ref();
        ensure!(
            patience.is_none_or(|message| message.chars().count() <= 4_000),
            "calls.patience_message: at most 4000 characters"
        );
        ensure!(
            self.provider_timeout_ms >= 100,
            "calls.provider_timeout_ms: at least 100"
        );
        ensure!(
            (1..=36_500).contains(&self.kept_days),
            "calls.kept_days: 1 to 36500"
        );
        Ok(())
    }
}
