//! The signalling connection: handshake, heartbeat and reconnection.

use std::collections::VecDeque;

/// How long a lost WebSocket or lost media may take to come back.
pub const RECONNECT_WINDOW_MS: u64 = 30_000;

/// How long a WebSocket may take from opening to `welcome`.
pub(super) const WELCOME_TIMEOUT_MS: u64 = 10_000;

/// How many heartbeats may go by without any traffic.
const MAX_UNANSWERED_PINGS: u32 = 3;

const FIRST_BACKOFF_MS: u64 = 250;
const LONGEST_BACKOFF_MS: u64 = 5_000;

/// How many messages wait for a connection that is away; more than that are of no use to the other side.
const OUTBOX_MESSAGES: usize = 64;

#[derive(Debug)]
pub(super) enum LinkState {
    /// Never opened, or closed for good.
    Closed,
    /// The WebSocket is being opened.
    Opening { until_ms: u64 },
    /// `hello` was sent.
    AwaitingWelcome { until_ms: u64 },
    /// `welcome` was received.
    Open { ping_at_ms: u64 },
    /// Lost; the next attempt comes later.
    Waiting { until_ms: u64 },
}

/// What the passing of time means for the link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTick {
    Nothing,
    Ping,
    /// The connection is dead although the browser has not noticed.
    Lost,
    /// The back-off is over.
    Retry,
    /// The window for coming back is over.
    GiveUp,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) state: LinkState,
    pub(super) url: String,
    /// Where the node is reached that holds the call, until an attempt there fails.
    moved_to: Option<String>,
    /// The token of the last `welcome`.
    pub(super) resume: Option<String>,
    /// The frames that wait for `welcome`.
    pub(super) outbox: VecDeque<String>,
    lost_at_ms: Option<u64>,
    attempts: u32,
    heartbeat_ms: u64,
    unanswered: u32,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            state: LinkState::Closed,
            url: String::new(),
            moved_to: None,
            resume: None,
            outbox: VecDeque::new(),
            lost_at_ms: None,
            attempts: 0,
            heartbeat_ms: 0,
            unanswered: 0,
        }
    }

    pub(super) fn opening(&mut self, now_ms: u64) {
        let until_ms = now_ms + WELCOME_TIMEOUT_MS;
        self.state = LinkState::Opening { until_ms };
    }

    pub(super) fn greeting(&mut self, now_ms: u64) {
        let until_ms = now_ms + WELCOME_TIMEOUT_MS;
        self.state = LinkState::AwaitingWelcome { until_ms };
    }

    pub(super) fn welcomed(&mut self, now_ms: u64, resume: String, heartbeat_seconds: u32) {
        self.resume = Some(resume);
        self.heartbeat_ms = u64::from(heartbeat_seconds.max(1)) * 1000;
        self.unanswered = 0;
        self.lost_at_ms = None;
        self.attempts = 0;
        self.state = LinkState::Open {
            ping_at_ms: now_ms + self.heartbeat_ms,
        };
    }

    /// Where the next attempt goes, or the one that is made.
    pub(super) fn target(&self) -> &str {
        self.moved_to.as_ref().unwrap_or(&self.url)
    }

    /// Whether the next attempt goes to the node itself that holds the call.
    pub(super) fn is_redirected(&self) -> bool {
        self.moved_to.is_some()
    }

    /// The server named the node that holds the call.
    pub(super) fn moved(&mut self, now_ms: u64, url: String) {
        self.lost(now_ms);
        self.moved_to = Some(url);
    }

    /// The socket is gone: waits before the next attempt, longer after each that failed.
    pub(super) fn lost(&mut self, now_ms: u64) {
        if !self.is_open() {
            self.moved_to = None;
        }
        let since_ms = *self.lost_at_ms.get_or_insert(now_ms);
        let backoff_ms = (FIRST_BACKOFF_MS << self.attempts.min(8)).min(LONGEST_BACKOFF_MS);
        self.attempts += 1;
        let until_ms = (now_ms + backoff_ms).min(since_ms + RECONNECT_WINDOW_MS);
        self.state = LinkState::Waiting { until_ms };
    }

    /// Whether a connection that was up is away, or the node that holds the call is looked for.
    pub(super) fn is_lost(&self) -> bool {
        self.lost_at_ms.is_some()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, LinkState::Open { .. })
    }

    /// Whether a frame can be sent and will be read.
    pub(super) fn can_send(&self) -> bool {
        matches!(
            self.state,
            LinkState::Open { .. } | LinkState::AwaitingWelcome { .. }
        )
    }

    /// Whether the browser has a socket of this link.
    pub(super) fn has_socket(&self) -> bool {
        self.can_send() || matches!(self.state, LinkState::Opening { .. })
    }

    /// Any frame shows that the connection lives.
    pub(super) fn heard(&mut self) {
        self.unanswered = 0;
    }

    /// Whether a frame would be kept.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() < OUTBOX_MESSAGES
    }

    pub(super) fn keep(&mut self, frame: String) {
        if self.has_room() {
            self.outbox.push_back(frame);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        let at_ms = match self.state {
            LinkState::Closed => return None,
            LinkState::Opening { until_ms }
            | LinkState::AwaitingWelcome { until_ms }
            | LinkState::Waiting { until_ms } => until_ms,
            LinkState::Open { ping_at_ms } => ping_at_ms,
        };
        Some(at_ms)
    }

    pub(super) fn tick(&mut self, now_ms: u64) -> LinkTick {
        if self.next_timeout().is_none_or(|at_ms| now_ms < at_ms) {
            return LinkTick::Nothing;
        }
        match self.state {
            LinkState::Closed => LinkTick::Nothing,
            LinkState::Opening { .. } | LinkState::AwaitingWelcome { .. } => LinkTick::Lost,
            // Pings are counted rather than time, because browsers slow the timers of hidden pages.
            LinkState::Open { .. } if self.unanswered >= MAX_UNANSWERED_PINGS => LinkTick::Lost,
            LinkState::Open { .. } => {
                self.unanswered += 1;
                self.state = LinkState::Open {
                    ping_at_ms: now_ms + self.heartbeat_ms,
                };
                LinkTick::Ping
            }
            LinkState::Waiting { .. } => match self.lost_at_ms {
                Some(since_ms) if now_ms < since_ms + RECONNECT_WINDOW_MS => LinkTick::Retry,
                _ => LinkTick::GiveUp,
            },
        }
    }
}
