//! How a session ends.

use colloquy_calls::ending::CANCELLED;
use colloquy_protocol::{ByeReason, CloseCode};

/// How a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) bye: ByeReason,
    /// `None` when the call completed.
    pub(super) failure: Option<Failure>,
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The client's offer cannot be used.
    BadOffer,
    /// The client did not follow the session's protocol.
    Protocol,
    /// No media came up.
    NotConnected,
    /// Somebody asked for the end before media came up.
    Cancelled,
    /// The server's own fault.
    Internal,
}

impl Failure {
    /// The stable code, for clients and in the call's record.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::BadOffer => "BAD_OFFER",
            Self::Protocol => CloseCode::Protocol.code(),
            Self::NotConnected => "NOT_CONNECTED",
            Self::Cancelled => CANCELLED,
            Self::Internal => "INTERNAL",
        }
    }

    /// How the client's connection is closed.
    pub(super) fn close(self) -> CloseCode {
        match self {
            Self::Protocol => CloseCode::Protocol,
            Self::BadOffer | Self::NotConnected | Self::Cancelled | Self::Internal => {
                CloseCode::Normal
            }
        }
    }
}

impl End {
    pub(super) fn completed(bye: ByeReason) -> Self {
        Self { bye, failure: None }
    }

    pub(super) fn failed(failure: Failure) -> Self {
        Self {
            bye: ByeReason::Error,
            failure: Some(failure),
        }
    }
}
