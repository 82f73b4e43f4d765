//! When a job runs, how often, and what follows from how it ended.

use colloquy_base::clock::ManualClock;

use super::*;

/// Returns once the worker has looked for work after this was called: it has done two jobs, the second of which was queued when the
/// first was done.
async fn looks(node: &TestNode, name: &str) {
    for number in 1..=2 {
        let name = format!("{name}-looks-{number}");
        enqueue(node, &Scripted::new(&name, Script::Work(0))).await;
        reaches(node, &name, JobState::Done).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_were_queued_by_a_clock_ahead_do_not_wait_for_its_day() {
    for database in TestDatabase::both().await {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(now));
        let node = join_by(&database, "a", clock.clone()).await;
        let names = ["due", "later"].map(|name| format!("{}-{name}", database.kind()));
        clock.advance(Duration::from_secs(40 * 24 * 3_600));
        enqueue(&node, &Scripted::new(&names[0], Script::Work(0))).await;
        let transaction = node.store.begin().await.unwrap();
        let later = Scripted::new(&names[1], Script::Work(0));
        let at = node.clock.now_ms() + 60_000;
        let queued = jobs::enqueue_at(&node, &transaction, None, &later, at).await;
        queued.unwrap();
        transaction.commit().await.unwrap();
        clock.set(now);
        start(&node, quick()).await;
        reaches(&node, &names[0], JobState::Done).await;
        // Only as much later as it was to be.
        let waiting = row(&node, &names[1]).await;
        assert_eq!(waiting.run_at, node.clock.now_ms() + 60_000);
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_tried_again_and_then_count_as_failed() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        start(&node, quick()).await;
        let [fails, panics, thrice, put_off] = ["fails", "panics", "thrice", "put-off"]
            .map(|name| format!("{}-{name}", database.kind()));
        enqueue(&node, &Scripted::new(&fails, Script::Fail)).await;
        enqueue(&node, &Scripted::new(&panics, Script::PanicOnce)).await;
        enqueue(&node, &Scripted::new(&thrice, Script::Thrice)).await;
        enqueue(&node, &Scripted::new(&put_off, Script::PutOff)).await;
        let failed = reaches(&node, &fails, JobState::Failed).await;
        assert_eq!(
            (runs(&fails), failed.last_error.as_deref()),
            (3, Some("as told"))
        );
        let given_up = record(&fails).given_up.lock().unwrap().clone();
        assert_eq!(given_up, [GivenUp::Failed]);
        reaches(&node, &panics, JobState::Done).await;
        assert_eq!(runs(&panics), 2);
        reaches(&node, &thrice, JobState::Done).await;
        assert_eq!(runs(&thrice), 3);
        assert_eq!(counts(&thrice), [(1, 0), (1, 1), (1, 2)]);
        // Those that are put off are no attempts, however many there are, and leave the others as they were.
        reaches(&node, &put_off, JobState::Done).await;
        let expected = [(1, 0), (1, 1), (2, 1), (2, 2), (2, 3), (2, 4)];
        assert_eq!(counts(&put_off), expected);
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_a_job_the_only_one_and_loses_no_request() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let name = format!("{}-key", database.kind());
        let job = Scripted::new(&name, Script::Wait);
        for _ in 0..3 {
            enqueue(&node, &job).await;
        }
        start(&node, quick()).await;
        eventually("it runs", || async { runs(&name) == 1 }).await;
        // Asked for in the middle of a run: there is one more run, not none and not two.
        enqueue(&node, &job).await;
        enqueue(&node, &job).await;
        record(&name).go_on.notify_one();
        eventually("it runs again", || async { runs(&name) == 2 }).await;
        record(&name).go_on.notify_one();
        reaches(&node, &name, JobState::Done).await;
        let db = node.store.db();
        assert!(!jobs::is_unfinished::<Scripted>(db, &name).await.unwrap());
        assert_eq!(runs(&name), 2);
        assert_eq!(record(&name).most_at_once.load(Ordering::SeqCst), 1);
        // A finished one does not stand in the way.
        enqueue(&node, &job).await;
        eventually("it runs anew", || async { runs(&name) == 3 }).await;
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_rolled_back_with_its_cause_never_runs() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let name = format!("{}-rollback", database.kind());
        let transaction = node.store.begin().await.unwrap();
        let job = Scripted::new(&name, Script::Work(0));
        jobs::enqueue(&node, &transaction, None, &job)
            .await
            .unwrap();
        drop(transaction);
        let found = jobs::find::<Scripted>(node.store.db(), &name)
            .await
            .unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_work_waits_until_it_is_let_go() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        start(&node, quick()).await;
        let name = format!("{}-block", database.kind());
        let job = Scripted::new(&name, Script::BlockOnce);
        enqueue(&node, &job).await;
        let blocked = reaches(&node, &name, JobState::Blocked).await;
        assert_eq!(blocked.last_error.as_deref(), Some("a reason"));
        enqueue(&node, &job).await;
        looks(&node, &name).await;
        let waiting = row(&node, &name).await;
        assert_eq!((waiting.state.as_str(), waiting.fence), ("blocked", 1));
        assert_eq!(runs(&name), 1);
        let db = node.store.db();
        assert!(jobs::unblock::<Scripted>(&node, db, &name).await.unwrap());
        assert!(
            !jobs::unblock::<Scripted>(&node, db, "nobody")
                .await
                .unwrap()
        );
        reaches(&node, &name, JobState::Done).await;
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_time_and_finished_rows_go_after_theirs() {
    for database in TestDatabase::both().await {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(now));
        let a = join_by(&database, "a", clock.clone()).await;
        start(&a, quick()).await;
        let name = format!("{}-later", database.kind());
        let transaction = a.store.begin().await.unwrap();
        let at = a.clock.now_ms() + 250;
        let job = Scripted::new(&name, Script::Work(0));
        jobs::enqueue_at(&a, &transaction, None, &job, at)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        clock.advance(Duration::from_millis(249));
        looks(&a, &format!("{name}-a")).await;
        let waiting = row(&a, &name).await;
        assert_eq!((waiting.state.as_str(), waiting.fence), ("queued", 0));
        clock.advance(Duration::from_millis(1));
        a.kernel.jobs.wake();
        reaches(&a, &name, JobState::Done).await;
        stop(a).await;

        // The worker removes old rows when it starts, before it looks for work.
        clock.advance(Duration::from_millis(1));
        let b = join_by(&database, "b", clock.clone()).await;
        start(&b, quick()).await;
        looks(&b, &format!("{name}-b")).await;
        row(&b, &name).await;
        stop(b).await;
        let c = join_by(&database, "c", clock.clone()).await;
        let none = Settings {
            keep: Duration::ZERO,
            ..quick()
        };
        start(&c, none).await;
        looks(&c, &format!("{name}-c")).await;
        let found = jobs::find::<Scripted>(c.store.db(), &name).await.unwrap();
        assert_eq!(found, None);
        stop(c).await;
    }
}
