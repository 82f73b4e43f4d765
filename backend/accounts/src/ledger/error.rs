//! Why nothing was reserved.

use std::{fmt, time::Duration};

use super::{
    Measure, Standing,
    books::{Refusal, Retry},
};
use crate::quotas::{NotAllowed, QuotaUnusable};

/// When those come back who have only running requests in their way.
const SOON: Duration = Duration::from_secs(1);

/// Why nothing was reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The quota has no room.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The quota cannot be used any more.
    #[error(transparent)]
    Unusable(#[from] QuotaUnusable),
    /// The quota is not for this.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The database fails.
    #[error("usage cannot be recorded at the moment")]
    Unavailable,
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopped,
}

/// A quota without room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What there is no room for, and for how long.
    pub(super) refusal: Refusal,
    /// How the quota stands.
    pub standing: Standing,
    /// When it was refused, in milliseconds since 1970.
    pub at: i64,
}

impl Refused {
    /// The measure that is the last to have room again.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.refusal.measure
    }

    /// When it may pass; `None` when it is no use to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.refusal.retry {
            Retry::Soon => Some(SOON),
            Retry::At(end) => Some(Duration::from_millis((end - self.at).max(0).unsigned_abs())),
            Retry::Never => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measure = self.measure().as_str();
        match self.refusal.retry {
            Retry::Soon => write!(f, "The quota's {measure} are reserved by running requests"),
            Retry::At(_) => write!(f, "The quota's {measure} are used up until its period ends"),
            Retry::Never => write!(f, "The request may need more {measure} than the quota has"),
        }
    }
}
