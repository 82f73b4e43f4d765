//! Looking at something until it is as wanted.

use std::{fmt::Debug, time::Duration};

use colloquy_base::clock::runtime_now;

use crate::patience;

/// What happens between two looks.
pub(crate) trait Pause {
    async fn pause(&mut self);
}

/// For how long something is waited for, and what that is.
pub(crate) struct Patience<'a> {
    what: &'a str,
    limit: Duration,
}

impl<'a> Patience<'a> {
    /// For what is checked.
    pub(crate) fn of_check(what: &'a str) -> Self {
        let limit = patience(Duration::from_secs(30));
        Self { what, limit }
    }

    /// For what is read.
    pub(crate) fn of_reading(what: &'a str) -> Self {
        let limit = patience(Duration::from_secs(90));
        Self { what, limit }
    }

    pub(crate) async fn check<F: Future<Output = bool>>(
        &self,
        mut check: impl FnMut() -> F,
        pause: impl Pause,
    ) {
        self.read(|holds| *holds, async || check().await, pause)
            .await;
    }

    pub(crate) async fn read<T: Debug>(
        &self,
        wanted: impl Fn(&T) -> bool,
        mut read: impl AsyncFnMut() -> T,
        mut pause: impl Pause,
    ) -> T {
        let begun = runtime_now();
        loop {
            let seen = read().await;
            if wanted(&seen) {
                return seen;
            }
            let Self { what, limit } = self;
            assert!(
                begun.elapsed() < *limit,
                "it did not come to pass: {what}: {seen:?}"
            );
            pause.pause().await;
        }
    }
}
