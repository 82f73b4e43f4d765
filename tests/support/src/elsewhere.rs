//! Waiting for what nobody tells of: other processes, sockets, threads, memory. It is looked at again and again.

use std::{fmt::Debug, time::Duration};

use tokio::time::sleep;

use crate::waiting::{Patience, Pause};

/// The first and the longest pause between two looks.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(150)];

/// Waits until something holds, half a minute on a machine of ordinary speed.
///
/// # Panics
/// When it does not hold by then.
pub async fn eventually<F: Future<Output = bool>>(what: &str, check: impl FnMut() -> F) {
    Patience::of_check(what).check(check, Interval::new()).await;
}

/// Reads something until it is as wanted, and gives it: waits a minute and a half on a machine of ordinary speed.
///
/// # Panics
/// When it is not as wanted by then.
pub async fn until<T: Debug>(
    what: &str,
    wanted: impl Fn(&T) -> bool,
    read: impl AsyncFnMut() -> T,
) -> T {
    Patience::of_reading(what)
        .read(wanted, read, Interval::new())
        .await
}

/// A pause that grows.
struct Interval(Duration);

impl Interval {
    fn new() -> Self {
        Self(PAUSES[0])
    }
}

impl Pause for Interval {
    async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 3 / 2).min(PAUSES[1]);
    }
}
