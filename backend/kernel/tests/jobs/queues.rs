//! The queues as operators see them.

use colloquy_kernel::jobs::{Queue, RunningJobs, queues};
use colloquy_store::{Executor as _, statement};

use super::*;

const OTHER: &str = "test.other";

async fn queue(node: &TestNode) -> Queue {
    let now = node.clock.now_ms();
    let found = queues(node.store.db(), &[OTHER, Scripted::KIND], now).await;
    let [other, queue] = <[Queue; 2]>::try_from(found.unwrap()).unwrap();
    assert_eq!((other.kind.as_str(), other.due, other.later), (OTHER, 0, 0));
    queue
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_counted_by_its_time_and_told_with_its_failures() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let name = |name: &str| format!("{}-queue-{name}", database.kind());
        let empty = queue(&node).await;
        assert_eq!((empty.oldest_due_at, empty.next_at), (None, None));
        let now = node.clock.now_ms();
        for (job, at) in [
            ("old", -60_000),
            ("due", -1_000),
            ("later", 60_000),
            ("last", 90_000),
        ] {
            let transaction = node.store.begin().await.unwrap();
            let job = Scripted::new(name(job), Script::Work(0));
            let queued = jobs::enqueue_at(&node, &transaction, None, &job, now + at).await;
            queued.unwrap();
            transaction.commit().await.unwrap();
        }
        let found = queue(&node).await;
        assert_eq!((found.due, found.later, found.failed), (2, 2, 0));
        assert_eq!(found.oldest_due_at, Some(now - 60_000));
        assert_eq!(found.next_at, Some(now + 60_000));
        assert_eq!((found.running, found.failures), (Vec::new(), Vec::new()));

        let long = "é".repeat(600);
        for (job, attempts, error) in [
            ("later", 2, "it broke"),
            ("last", 5, "it broke"),
            ("due", 1, long.as_str()),
        ] {
            let sql = "UPDATE work SET attempts = $2, last_error = $3 WHERE dedup_key = $1";
            let values = [name(job).into(), i64::from(attempts).into(), error.into()];
            node.store
                .db()
                .execute(statement(sql, values))
                .await
                .unwrap();
        }
        let failures = queue(&node).await.failures;
        assert_eq!(failures.len(), 2);
        assert_eq!(
            (
                failures[0].reason.as_str(),
                failures[0].jobs,
                failures[0].attempts
            ),
            ("it broke", 2, 5)
        );
        assert_eq!(failures[1].reason, format!("{}…", "é".repeat(500)));
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_are_told_with_their_node_and_failed_ones_are_counted() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        start(&node, quick()).await;
        let [waits, fails] =
            ["waits", "fails"].map(|name| format!("{}-queue-{name}", database.kind()));
        enqueue(&node, &Scripted::new(&waits, Script::Wait)).await;
        enqueue(&node, &Scripted::new(&fails, Script::Fail)).await;
        reaches(&node, &fails, JobState::Failed).await;
        reaches(&node, &waits, JobState::Running).await;
        let found = queue(&node).await;
        let here = RunningJobs {
            node: node.node.id.clone(),
            jobs: 1,
        };
        assert_eq!((found.running, found.failed, found.due), (vec![here], 1, 0));
        record(&waits).go_on.notify_one();
        reaches(&node, &waits, JobState::Done).await;
        assert_eq!(queue(&node).await.running, []);
        stop(node).await;
    }
}
