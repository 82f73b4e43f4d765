//! What the log is told of work in the background that fails again and again.

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use colloquy_base::clock::runtime_now;
use tokio::time::Instant;

/// How often the log says that a sort of work fails.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// What the log was told of work in the background that fails.
#[derive(Debug, Default)]
pub(super) struct RepeatedFailures(Mutex<HashMap<&'static str, Suppressed>>);

#[derive(Debug, Default)]
struct Suppressed {
    at: Option<Instant>,
    /// Failures since then.
    failures: u64,
}

impl RepeatedFailures {
    pub(super) fn note(&self, what: &'static str, error: &impl Display) {
        let now = runtime_now();
        let failures = {
            let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let told = told.entry(what).or_default();
            told.failures += 1;
            if told
                .at
                .is_some_and(|at| now.duration_since(at) < REPEAT_AFTER)
            {
                return;
            }
            told.at = Some(now);
            std::mem::take(&mut told.failures)
        };
        tracing::error!(%error, failures, "{what}");
    }
}
