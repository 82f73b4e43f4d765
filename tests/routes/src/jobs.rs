//! Workers of jobs.

use std::time::Duration;

use colloquy_kernel::jobs::Settings;
use colloquy_store::{Executor as _, Store};
use support::eventually;

/// Settings of the worker that make tests quick.
pub fn quick() -> Settings {
    Settings {
        poll: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        ..Settings::default()
    }
}

/// Waits until no job of this kind is queued or runs: nothing more comes of what was asked for.
pub async fn works_off(store: &Store, kind: &str) {
    let db = store.db();
    let open = format!(
        "SELECT COUNT(*) FROM work WHERE kind = '{kind}' AND state IN ('queued', 'running')"
    );
    eventually("no job is left", async || {
        db.fetch_count(open.clone()).await.expect("a number") == 0
    })
    .await;
}
