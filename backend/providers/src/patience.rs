//! How long a service may be silent, for text and calls alike.

use std::time::Duration;

use colloquy_base::clock::runtime_now;
use tokio::time::Instant;

use super::{ProviderError, ProviderErrorKind};

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Before the first result, with the retry.
    pub first: Duration,
    /// Before a second attempt is made beside the first; `None` where that would only take the first one's place.
    pub second_attempt: Option<Duration>,
    /// Between two results.
    pub between: Duration,
    /// In all; `None` for as long as results come.
    pub total: Option<Duration>,
}

impl Patience {
    /// With a service elsewhere: the same patience before the first result and between two, and a second attempt after
    /// half of it.
    #[must_use]
    pub fn remote(silence: Duration) -> Self {
        Self {
            first: silence,
            second_attempt: Some(silence / 2),
            between: silence,
            total: None,
        }
    }

    /// With a program on this machine, which is silent because it works, or with a service that is not to be asked twice.
    #[must_use]
    pub fn patient(silence: Duration) -> Self {
        Self {
            second_attempt: None,
            ..Self::remote(silence)
        }
    }
}

/// When the next result of an answer is overdue.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    between: Duration,
    /// Of the next result.
    next: Instant,
    /// Of the last one.
    end: Option<Instant>,
    has_begun: bool,
}

impl Deadline {
    /// Of an answer that is asked for now.
    #[must_use]
    pub fn begin(patience: Patience) -> Self {
        let now = runtime_now();
        Self {
            between: patience.between,
            next: now + patience.first,
            end: patience.total.map(|total| now + total),
            has_begun: false,
        }
    }

    /// Of what follows a result, from now on, with as much time in all.
    #[must_use]
    pub fn after_a_result(patience: Patience) -> Self {
        let mut deadline = Self::begin(patience);
        deadline.result();
        deadline
    }

    /// A result is there now.
    pub fn result(&mut self) {
        self.has_begun = true;
        self.next = runtime_now() + self.between;
    }

    /// When it is.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.end.map_or(self.next, |end| end.min(self.next))
    }

    /// The failure of a provider that missed it.
    #[must_use]
    pub fn missed(&self, provider: &str) -> ProviderError {
        let message = match self.has_begun {
            true => "no further result in time",
            false => "no first result in time",
        };
        ProviderError::new(provider, ProviderErrorKind::Timeout, message)
    }
}
