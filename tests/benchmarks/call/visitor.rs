//! One visitor: joins a call, says the same again and again, waits for replies and speaks over every second one.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use harness::client::{ClientOptions, NativeClient, Speech, Spoken, Stack, now};

/// A turn without a reply for so long is missed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nothing audible for so long means that a reply is over, whatever pauses it has.
const OVER: Duration = Duration::from_millis(600);

/// A packet is 20 ms of sound.
const PACKET: Duration = Duration::from_millis(20);

/// Who visits.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The visitor's number, from which pauses follow.
    pub(super) index: usize,
    /// What the client is built on.
    pub(super) stack: Stack,
    pub(super) speech: Speech,
    /// Shows every turn.
    pub(super) debug: bool,
}

/// What a visit measured.
#[derive(Debug, Default)]
pub(super) struct Visit {
    pub(super) connect: Duration,
    pub(super) v2v: Vec<Duration>,
    pub(super) barge_in: Vec<Duration>,
    /// How far packets were from their pace.
    pub(super) pacing: Vec<Duration>,
    pub(super) missed: usize,
    pub(super) early: usize,
    pub(super) failed_barge_ins: usize,
}

impl Visitor {
    /// Makes a visit with this many turns.
    pub(super) async fn visit(
        &self,
        url: &str,
        turns: usize,
        connected: impl FnOnce(),
    ) -> anyhow::Result<Visit> {
        let options = ClientOptions {
            stack: self.stack,
            ..ClientOptions::default()
        };
        let client = NativeClient::connect_with(url, options).await?;
        connected();
        let mut visit = Visit {
            connect: client.connect_time().context("no connect time")?,
            ..Visit::default()
        };
        tokio::time::sleep(Duration::from_millis(500)).await;
        for turn in 0..turns {
            let over_a_reply = turn % 2 == 1
                && client
                    .log()
                    .last_audible(now())
                    .is_some_and(|last| last.at + OVER > now());
            if over_a_reply {
                tokio::time::sleep(self.pause(turn, 600, 300)).await;
            } else {
                client.silence(OVER, 2 * PATIENCE).await?;
                tokio::time::sleep(self.pause(turn, 0, 200)).await;
            }
            let spoken = client.speak(&self.speech).await?;
            if over_a_reply && !self.judge_barge_in(&client, spoken, &mut visit) {
                continue;
            }
            self.judge_reply(&client, spoken, over_a_reply, &mut visit)
                .await;
        }
        client.silence(OVER, 2 * PATIENCE).await?;
        visit.pacing = client.log().pacing();
        client.hang_up().await?;
        Ok(visit)
    }

    /// A pause of `least` to `least + spread` milliseconds that differs from visitor to visitor and turn to turn.
    fn pause(&self, turn: usize, least: u64, spread: u64) -> Duration {
        let scattered = (self.index as u64 * 31 + turn as u64 * 17) * 97 % spread;
        Duration::from_millis(least + scattered)
    }

    /// Whether the reply fell silent in time.
    fn judge_barge_in(&self, client: &NativeClient, spoken: Spoken, visit: &mut Visit) -> bool {
        let last = client
            .log()
            .last_audible(spoken.ended)
            .map(|last| last.at + PACKET);
        match last {
            Some(end) if end >= spoken.began && end + OVER < spoken.ended => {
                visit.barge_in.push(end.duration_since(spoken.began));
                self.show("barge-in", end.duration_since(spoken.began));
                true
            }
            _ => {
                visit.failed_barge_ins += 1;
                false
            }
        }
    }

    async fn judge_reply(
        &self,
        client: &NativeClient,
        spoken: Spoken,
        over_a_reply: bool,
        visit: &mut Visit,
    ) {
        // The reply that is spoken over is audible for a while; half a second later it is not.
        let from = spoken.began + if over_a_reply { OVER } else { Duration::ZERO };
        let audible_before = |end: Instant| {
            client
                .log()
                .first_audible(from)
                .is_some_and(|first| first.at <= end)
        };
        if audible_before(spoken.ended) {
            visit.early += 1;
            return;
        }
        match client.reply_audio(spoken.ended, PATIENCE).await {
            Some(first) => {
                visit.v2v.push(first.at.duration_since(spoken.ended));
                self.show("voice to voice", first.at.duration_since(spoken.ended));
            }
            None => visit.missed += 1,
        }
    }

    #[expect(clippy::print_stderr, reason = "what --debug asks for")]
    fn show(&self, what: &str, took: Duration) {
        if self.debug {
            eprintln!("visitor {}: {what} {} ms", self.index, took.as_millis());
        }
    }
}
