//! Why a session was refused or ended.

use serde::{Deserialize, Serialize};

/// The close codes of the session's WebSocket.
///
/// A browser cannot read the status of a refused upgrade, so the server accepts the socket, sends one fatal `error` and
/// closes with one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseCode {
    /// The session ended as it should.
    Normal,
    /// A message was malformed, too large, too frequent or out of order.
    Protocol,
    /// The signature or the resume token does not match.
    InvalidSignature,
    /// No such call, or it is over.
    CallNotFound,
    /// Another client is in the call, or the signed URL is spent.
    CallInUse,
    /// The signed URL expired before a client connected.
    UrlExpired,
    /// Another node holds the call: not an end. The client comes back, to the URL of a `redirect` if there was one.
    CallElsewhere,
    /// Too many attempts came from the client's address.
    RateLimited,
    /// The node has no room for another call, or takes none any more because it is stopping.
    Capacity,
}

impl CloseCode {
    const ALL: [Self; 9] = [
        Self::Normal,
        Self::Protocol,
        Self::InvalidSignature,
        Self::CallNotFound,
        Self::CallInUse,
        Self::UrlExpired,
        Self::CallElsewhere,
        Self::RateLimited,
        Self::Capacity,
    ];

    /// The number in the WebSocket close frame.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Normal => 1000,
            Self::Protocol => 4400,
            Self::InvalidSignature => 4401,
            Self::CallNotFound => 4404,
            Self::CallInUse => 4409,
            Self::UrlExpired => 4410,
            Self::CallElsewhere => 4421,
            Self::RateLimited => 4429,
            Self::Capacity => 4503,
        }
    }

    /// The stable code in the `error` message and in the SDK's error object.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Protocol => "PROTOCOL",
            Self::InvalidSignature => "INVALID_SIGNATURE",
            Self::CallNotFound => "CALL_NOT_FOUND",
            Self::CallInUse => "CALL_IN_USE",
            Self::UrlExpired => "URL_EXPIRED",
            Self::CallElsewhere => "CALL_ELSEWHERE",
            Self::RateLimited => "RATE_LIMITED",
            Self::Capacity => "CAPACITY",
        }
    }

    /// The close code behind a number, `None` for numbers that this protocol does not define.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

/// Why the server says `bye`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByeReason {
    /// Either side hung up.
    HangUp,
    /// The call reached its time limit.
    TimeLimit,
    /// Another connection of the same client took the session over.
    Replaced,
    /// The node is shutting down.
    Shutdown,
    /// The call failed.
    Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_close_code_is_found_by_its_number() {
        for code in CloseCode::ALL {
            assert_eq!(CloseCode::from_number(code.number()), Some(code));
        }
        assert_eq!(CloseCode::from_number(1006), None);
    }
}
