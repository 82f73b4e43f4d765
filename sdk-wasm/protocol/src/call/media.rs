//! The audio connection: offer and answer, candidates in both directions, ICE restarts, and a second try with a new peer
//! connection when the first one does not come up.

use super::{MediaState, RECONNECT_WINDOW_MS, frames};

/// How long the first peer connection may take. Paths are found within a few seconds, and a DTLS handshake repeats what
/// was lost after 1, 2 and 4 seconds.
pub(super) const FIRST_TRY_MS: u64 = 8_000;

/// How long the second peer connection may take.
pub(super) const SECOND_TRY_MS: u64 = 12_000;

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
    /// Never up yet. `found` when ICE has a path and the DTLS handshake is under way.
    First {
        until_ms: u64,
        is_second: bool,
        found: bool,
    },
    /// Up.
    Up,
    /// Gone; may come back by itself until the time.
    Disconnected { until_ms: u64 },
    /// Gone; an ICE restart is wanted at the time.
    Lost { since_ms: u64, restart_at_ms: u64 },
}

/// What the passing of time means for the media.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MediaTick {
    Nothing,
    /// The first peer connection did not come up.
    Again,
    /// The path is lost, or still lost.
    Restart,
    /// The window for connecting or coming back is over.
    GiveUp(Failure),
}

/// Why there is no audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// No path was found.
    NoPath,
    /// A path was found, and the DTLS handshake over it did not finish.
    NoHandshake,
    /// Audio that was up did not come back.
    Lost,
}

/// What is done about media that is not up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// ICE is restarted, which finds another path for the same DTLS association.
    Restart,
    /// A new peer connection, which begins the DTLS handshake anew, too.
    Replace,
}

#[derive(Debug)]
pub(super) struct Media {
    pub(super) negotiation: Negotiation,
    path: Path,
    /// What waits for the link or for the running negotiation.
    wanted: Option<Renewal>,
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
            wanted: None,
            restarting: false,
            stale_answers: 0,
            early_local: Vec::new(),
            early_remote: Vec::new(),
        }
    }

    pub(super) fn peer_created(&mut self, now_ms: u64) {
        self.negotiation = Negotiation::Offering;
        self.path = Path::First {
            until_ms: now_ms + FIRST_TRY_MS,
            is_second: false,
            found: false,
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
            self.wanted.get_or_insert(Renewal::Restart);
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
                self.wanted = None;
                true
            }
            (
                MediaState::PathFound,
                Path::First {
                    until_ms,
                    is_second,
                    ..
                },
            ) => {
                self.path = Path::First {
                    until_ms,
                    is_second,
                    found: true,
                };
                false
            }
            (MediaState::Disconnected, Path::Up) => {
                self.path = Path::Disconnected {
                    until_ms: now_ms + DISCONNECT_GRACE_MS,
                };
                false
            }
            (MediaState::Failed, Path::Up | Path::Disconnected { .. }) => {
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
            (
                MediaState::Failed,
                Path::First {
                    is_second, found, ..
                },
            ) => {
                self.path = Path::First {
                    until_ms: now_ms,
                    is_second,
                    found,
                };
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
            self.wanted.get_or_insert(Renewal::Restart);
        }
    }

    /// What to do now about media that is not up; counts it as begun.
    pub(super) fn take_renewal(&mut self, now_ms: u64, link_is_open: bool) -> Option<Renewal> {
        let possible = match self.wanted? {
            Renewal::Restart => matches!(
                self.negotiation,
                Negotiation::Offered | Negotiation::Settled
            ),
            // What the old peer connection was about to do counts no more.
            Renewal::Replace => true,
        };
        if !(link_is_open && possible) {
            return None;
        }
        if self.negotiation == Negotiation::Offered {
            self.stale_answers += 1;
        }
        let renewal = self.wanted.take();
        self.restarting = renewal == Some(Renewal::Restart);
        self.negotiation = Negotiation::Offering;
        self.early_local.clear();
        self.early_remote.clear();
        if renewal == Some(Renewal::Replace) {
            self.path = Path::First {
                until_ms: now_ms + SECOND_TRY_MS,
                is_second: true,
                found: false,
            };
        }
        renewal
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        match self.path {
            Path::Absent | Path::Up => None,
            // The second try begins when the link is back; the link itself gives up.
            Path::First { .. } if self.wanted == Some(Renewal::Replace) => None,
            Path::First { until_ms, .. } | Path::Disconnected { until_ms } => Some(until_ms),
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
        if matches!(self.path, Path::Disconnected { .. }) {
            self.lose(now_ms);
        }
        match self.path {
            Path::Lost { since_ms, .. } if now_ms < since_ms + RECONNECT_WINDOW_MS => {
                self.path = Path::Lost {
                    since_ms,
                    restart_at_ms: now_ms + RESTART_TIMEOUT_MS,
                };
                self.wanted = Some(Renewal::Restart);
                MediaTick::Restart
            }
            Path::First {
                is_second: false, ..
            } => {
                self.wanted = Some(Renewal::Replace);
                MediaTick::Again
            }
            Path::First { found: true, .. } => MediaTick::GiveUp(Failure::NoHandshake),
            Path::First { .. } => MediaTick::GiveUp(Failure::NoPath),
            Path::Lost { .. } => MediaTick::GiveUp(Failure::Lost),
            Path::Absent | Path::Up | Path::Disconnected { .. } => MediaTick::Nothing,
        }
    }
}
