//! The audio connection: offer and answer, candidates in both directions, and ICE restarts.

use super::{MediaState, RECONNECT_WINDOW_MS, frames};

/// How long the first connection may take from `welcome` on.
const CONNECT_TIMEOUT_MS: u64 = 20_000;

/// How long a disconnected path may take to come back by itself.
const DISCONNECT_GRACE_MS: u64 = 3_000;

/// How long an ICE restart may take before the next one.
const RESTART_TIMEOUT_MS: u64 = 8_000;

/// How far the exchange of session descriptions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Negotiation {
    /// No peer connection yet.
    Absent,
    /// The browser was asked for an offer.
    Offering,
    /// The offer was handed to the link; the answer is due.
    Offered,
    /// The answer was applied.
    Settled,
}

/// Whether audio gets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// No peer connection yet.
    Absent,
    /// Never up yet.
    First { until_ms: u64 },
    /// Up.
    Up,
    /// Gone; may come back by itself until the time.
    Shaky { until_ms: u64 },
    /// Gone; an ICE restart is wanted at the time.
    Lost { since_ms: u64, restart_at_ms: u64 },
}

/// What the passing of time means for the media.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MediaTick {
    Nothing,
    /// The path is lost, or still lost.
    Restart,
    /// The window for connecting or coming back is over.
    GiveUp,
}

#[derive(Debug)]
pub(super) struct Media {
    pub(super) negotiation: Negotiation,
    path: Path,
    /// Whether a restart waits for the link or for the running negotiation.
    restart_wanted: bool,
    /// Whether the offer being made restarts ICE.
    restarting: bool,
    /// How many answers are due to offers that a later one replaced.
    stale_answers: u32,
    /// Local candidates found before their offer was sent.
    early_local: Vec<String>,
    /// Remote candidates that came before the answer.
    early_remote: Vec<RemoteCandidate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteCandidate {
    pub(super) candidate: Option<String>,
    pub(super) sdp_mid: Option<String>,
    pub(super) sdp_m_line_index: Option<u16>,
}

impl Media {
    pub(super) fn new() -> Self {
        Self {
            negotiation: Negotiation::Absent,
            path: Path::Absent,
            restart_wanted: false,
            restarting: false,
            stale_answers: 0,
            early_local: Vec::new(),
            early_remote: Vec::new(),
        }
    }

    pub(super) fn peer_created(&mut self, now_ms: u64) {
        self.negotiation = Negotiation::Offering;
        self.path = Path::First {
            until_ms: now_ms + CONNECT_TIMEOUT_MS,
        };
    }

    /// The offer to send and the candidates found meanwhile; `None` when no offer was asked for, or when the link is
    /// away, in which case a new one is made later.
    pub(super) fn offered(&mut self, sdp: &str, link_is_open: bool) -> Option<Vec<String>> {
        if self.negotiation != Negotiation::Offering {
            return None;
        }
        if !link_is_open {
            self.negotiation = Negotiation::Settled;
            self.restart_wanted = true;
            return None;
        }
        self.negotiation = Negotiation::Offered;
        let mut sent = vec![frames::offer(sdp, self.restarting)];
        sent.append(&mut self.early_local);
        Some(sent)
    }

    /// The candidates that waited for the answer, `None` when no answer is due.
    pub(super) fn answered(&mut self) -> Option<Vec<RemoteCandidate>> {
        if self.stale_answers > 0 {
            self.stale_answers -= 1;
            return None;
        }
        if self.negotiation != Negotiation::Offered {
            return None;
        }
        self.negotiation = Negotiation::Settled;
        Some(std::mem::take(&mut self.early_remote))
    }

    /// A local candidate, given back when it can be sent now.
    pub(super) fn local_candidate(&mut self, frame: String) -> Option<String> {
        match self.negotiation {
            Negotiation::Absent | Negotiation::Offering => {
                self.early_local.push(frame);
                None
            }
            Negotiation::Offered | Negotiation::Settled => Some(frame),
        }
    }

    /// A remote candidate, given back when it can be added now.
    pub(super) fn remote_candidate(&mut self, remote: RemoteCandidate) -> Option<RemoteCandidate> {
        match self.negotiation {
            Negotiation::Absent | Negotiation::Offering | Negotiation::Offered => {
                self.early_remote.push(remote);
                None
            }
            Negotiation::Settled => Some(remote),
        }
    }

    /// Takes in the peer connection's state; true when the media is up and was not before.
    pub(super) fn changed(&mut self, now_ms: u64, state: MediaState) -> bool {
        match (state, self.path) {
            (MediaState::Connected, Path::Up | Path::Absent) => false,
            (MediaState::Connected, _) => {
                self.path = Path::Up;
                self.restart_wanted = false;
                true
            }
            (MediaState::Disconnected, Path::Up) => {
                self.path = Path::Shaky {
                    until_ms: now_ms + DISCONNECT_GRACE_MS,
                };
                false
            }
            (MediaState::Failed, Path::Up | Path::Shaky { .. }) => {
                self.lose(now_ms);
                false
            }
            (MediaState::Failed, Path::Lost { since_ms, .. }) => {
                self.path = Path::Lost {
                    since_ms,
                    restart_at_ms: now_ms + DISCONNECT_GRACE_MS,
                };
                false
            }
            (MediaState::Failed, Path::First { .. }) => {
                self.path = Path::First { until_ms: now_ms };
                false
            }
            _ => false,
        }
    }

    fn lose(&mut self, now_ms: u64) {
        self.path = Path::Lost {
            since_ms: now_ms,
            restart_at_ms: now_ms,
        };
    }

    /// Whether media that was up is lost.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.path, Path::Lost { .. })
    }

    /// The link is gone: an exchange that was under way may have lost a message and is done again.
    pub(super) fn link_lost(&mut self) {
        self.stale_answers = 0;
        if self.negotiation == Negotiation::Offered {
            self.negotiation = Negotiation::Settled;
            self.restart_wanted = true;
        }
    }

    /// Whether to restart ICE now; counts it as begun.
    pub(super) fn take_restart(&mut self, link_is_open: bool) -> bool {
        let possible = matches!(
            self.negotiation,
            Negotiation::Offered | Negotiation::Settled
        );
        if !(self.restart_wanted && link_is_open && possible) {
            return false;
        }
        if self.negotiation == Negotiation::Offered {
            self.stale_answers += 1;
        }
        self.restart_wanted = false;
        self.restarting = true;
        self.negotiation = Negotiation::Offering;
        self.early_local.clear();
        self.early_remote.clear();
        true
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        match self.path {
            Path::Absent | Path::Up => None,
            Path::First { until_ms } | Path::Shaky { until_ms } => Some(until_ms),
            Path::Lost {
                since_ms,
                restart_at_ms,
            } => Some(restart_at_ms.min(since_ms + RECONNECT_WINDOW_MS)),
        }
    }

    pub(super) fn tick(&mut self, now_ms: u64) -> MediaTick {
        if self.next_timeout().is_none_or(|at_ms| now_ms < at_ms) {
            return MediaTick::Nothing;
        }
        if matches!(self.path, Path::Shaky { .. }) {
            self.lose(now_ms);
        }
        match self.path {
            Path::Lost { since_ms, .. } if now_ms < since_ms + RECONNECT_WINDOW_MS => {
                self.path = Path::Lost {
                    since_ms,
                    restart_at_ms: now_ms + RESTART_TIMEOUT_MS,
                };
                self.restart_wanted = true;
                MediaTick::Restart
            }
            Path::Lost { .. } | Path::First { .. } => MediaTick::GiveUp,
            Path::Absent | Path::Up | Path::Shaky { .. } => MediaTick::Nothing,
        }
    }
}
