//! Waiting for what happens in this process.
//!
//! Databases tell of what is written ([`follow`]), doubles of what they are asked for ([`tell`]). A test that waits looks again whenever one of them
//! told of something. Other processes tell nobody: [`elsewhere`](crate::elsewhere) waits for them.

use std::{fmt::Debug, sync::LazyLock, time::Duration};

use colloquy_store::Store;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::waiting::{Patience, Pause};

/// How many things were told of in this process.
static NEWS: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);

/// After the news, what follows from it in memory: the last look before the next news.
const AFTERWARDS: Duration = Duration::from_millis(5);

/// The pause before each look: one that writes makes news itself.
const BEFORE: Duration = Duration::from_millis(1);

/// When to look without any news.
const UNTOLD: Duration = Duration::from_millis(250);

/// Tells those who wait that something happened.
pub fn tell() {
    NEWS.send_modify(|count| *count += 1);
}

/// Tells of all that a process writes to this database, until that is closed. Returns the database.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "it ends with the store, and is no part of a server"
)]
pub fn follow(store: Store) -> Store {
    let mut writes = store.writes();
    tokio::spawn(async move {
        while writes.changed().await.is_ok() {
            tell();
        }
    });
    store
}

/// Waits until something holds, half a minute on a machine of ordinary speed.
///
/// # Panics
/// When it does not hold by then.
pub async fn eventually<F: Future<Output = bool>>(what: &str, check: impl FnMut() -> F) {
    Patience::of_check(what).check(check, News::new()).await;
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
        .read(wanted, read, News::new())
        .await
}

/// Reads something until it is there, and gives it.
pub async fn some<T>(read: impl Fn() -> Option<T>) -> T {
    let mut news = NEWS.subscribe();
    loop {
        news.mark_unchanged();
        if let Some(seen) = read() {
            return seen;
        }
        // The sender is a static.
        let _ = news.changed().await;
    }
}

/// Somebody who waits for news.
struct News {
    news: watch::Receiver<u64>,
    pause: Duration,
}

impl News {
    fn new() -> Self {
        Self {
            news: NEWS.subscribe(),
            pause: AFTERWARDS,
        }
    }
}

impl Pause for News {
    async fn pause(&mut self) {
        let is_told = timeout(self.pause, self.news.changed()).await.is_ok();
        self.pause = if is_told { AFTERWARDS } else { UNTOLD };
        sleep(BEFORE).await;
    }
}
