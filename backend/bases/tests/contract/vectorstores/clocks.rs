//! A clock that was ahead for a while and came back.

use colloquy_base::clock::{Clock as _, ManualClock, SystemClock};

use super::*;

const AHEAD: Duration = Duration::from_secs(40 * 24 * 3_600);

/// Routes whose clock is ahead, and the right time, which the service has.
async fn ahead(database: &TestDatabase) -> (Synced, String) {
    let now = SystemClock.now();
    let clock = Arc::new(ManualClock::new(now));
    let synced = Synced::with(builder(database).shared_clock(&clock)).await;
    let now = now.to_string();
    synced.app.advance(AHEAD);
    (synced, now)
}

/// Waits until so many rows are as a query has it.
async fn counted(synced: &Synced, sql: &'static str, rows: u64) {
    let db = synced.app.state.store.db();
    eventually(sql, async || db.fetch_count(sql).await.unwrap() == rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_indexed_does_not_wait_for_the_day_of_the_clock() {
    for database in TestDatabase::both().await {
        let (synced, now) = ahead(&database).await;
        synced.service.files_become("in_progress");
        synced.add("1.md", "The first.").await;
        let indexing = "SELECT COUNT(*) FROM vectorstore_files WHERE state = 'indexing'";
        counted(&synced, indexing, 1).await;
        synced.service.files_become("completed");
        synced.app.set_clock(&now);
        // It wakes the job.
        synced.add("2.md", "The second.").await;
        assert_eq!(synced.searched().await.len(), 2);
        assert_eq!(synced.count(Operation::Upload), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_held_does_not_wait_for_the_day_of_the_clock() {
    for database in TestDatabase::both().await {
        let (synced, now) = ahead(&database).await;
        synced
            .service
            .fail(Operation::Upload, [Failure::Status(401)]);
        synced.add("1.md", "The first.").await;
        let held = "SELECT COUNT(*) FROM vectorstores WHERE held_until IS NOT NULL";
        counted(&synced, held, 1).await;
        synced.app.set_clock(&now);
        synced.add("2.md", "The second.").await;
        assert_eq!(synced.searched().await.len(), 2);
    }
}

/// The answer to an upload was lost. What it made is found, and not made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_service_was_asked_for_by_the_clock_is_found() {
    for database in TestDatabase::both().await {
        let (synced, now) = ahead(&database).await;
        synced.service.fail(Operation::Upload, [Failure::Lost]);
        synced.add("1.md", "The first.").await;
        let open =
            "SELECT COUNT(*) FROM vectorstore_files WHERE asked_at IS NOT NULL AND attempts = 1";
        counted(&synced, open, 1).await;
        synced.app.set_clock(&now);
        synced.add("2.md", "The second.").await;
        // It may not show yet.
        let latest = synced.app.state.clock.now_ms();
        let db = synced.app.state.store.db();
        let waits = format!(
            "SELECT COUNT(*) FROM vectorstore_files WHERE asked_at < {latest} AND next_at > {latest}"
        );
        let waits = async || db.fetch_count(waits.clone()).await.unwrap() == 1;
        eventually("it waits until the file shows", waits).await;
        synced.app.advance(Duration::from_secs(5));
        assert_eq!(synced.searched().await.len(), 2);
        assert_eq!(synced.service.files().len(), 2);
    }
}
