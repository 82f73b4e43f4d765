//! Who runs a job, and how many run at once.

use colloquy_observability::Metrics;
use colloquy_store::{Executor as _, statement};
use support::clock::WrongClock;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_never_run_a_job_twice_and_miss_none() {
    for database in TestDatabase::both().await {
        let nodes = [join(&database, "a").await, join(&database, "b").await];
        for node in &nodes {
            start(node, quick()).await;
        }
        let names: Vec<_> = (0..40)
            .map(|n| format!("{}-two-{n}", database.kind()))
            .collect();
        for (n, name) in names.iter().enumerate() {
            enqueue(&nodes[n % 2], &Scripted::new(name, Script::Work(15))).await;
        }
        for name in &names {
            reaches(&nodes[0], name, JobState::Done).await;
        }
        for name in &names {
            assert_eq!(runs(name), 1, "{name}");
            assert_eq!(record(name).most_at_once.load(Ordering::SeqCst), 1);
        }
        for node in nodes {
            stop(node).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_on_jobs_at_once_is_kept() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        start(&node, quick()).await;
        let name = format!("{}-bound", database.kind());
        let job = Scripted {
            keyed: false,
            ..Scripted::new(&name, Script::Work(30))
        };
        for _ in 0..8 {
            enqueue(&node, &job).await;
        }
        eventually("all ran", || async { runs(&name) == 8 }).await;
        assert_eq!(record(&name).most_at_once.load(Ordering::SeqCst), 2);
        stop(node).await;
    }
}

/// Another sort of job.
#[derive(Debug, Serialize, Deserialize)]
struct Other(Scripted);

impl Job for Other {
    type State = TestNode;

    const KIND: &'static str = "test.other";
    const RETRY: RetryRule = Scripted::RETRY;
    const AT_ONCE: usize = 1;

    fn dedup_key(&self) -> Option<String> {
        self.0.dedup_key()
    }

    async fn run(self, node: TestNode, run: Run) -> anyhow::Result<RunResult> {
        self.0.run(node, run).await
    }

    async fn give_up(self, node: TestNode, run: Run, why: GivenUp) -> anyhow::Result<()> {
        self.0.give_up(node, run, why).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_jobs_of_one_sort_leave_room_for_another() {
    for database in TestDatabase::both().await {
        let metrics = Metrics::get();
        let node = join(&database, "a").await;
        let registry = Registry::default().with::<Scripted>().with::<Other>();
        jobs::start(&node, registry, quick()).await.unwrap();
        let names = [1, 2, 3].map(|n| format!("{}-full-{n}", database.kind()));
        for name in &names {
            enqueue(&node, &Scripted::new(name, Script::Wait)).await;
        }
        reaches(&node, &names[1], JobState::Running).await;
        eventually("the depth of the queues is told", || async {
            let metrics = metrics.render();
            ["test.scripted", "test.other"]
                .map(|kind| format!("colloquy_job_queue_depth{{kind=\"{kind}\"}} "))
                .iter()
                .all(|depth| metrics.contains(depth))
        })
        .await;
        let other = Scripted::new(format!("{}-other", database.kind()), Script::Work(1));
        enqueue(&node, &Other(other.clone())).await;
        eventually("the other one is done", || async {
            let row = jobs::find::<Other>(node.store.db(), &other.name).await;
            row.unwrap().unwrap().state == JobState::Done.as_str()
        })
        .await;
        assert_eq!(row(&node, &names[2]).await.state, "queued");
        record(&names[0]).go_on.notify_one();
        reaches(&node, &names[2], JobState::Running).await;
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_job_keeps_its_lease_while_others_look_for_work() {
    for database in TestDatabase::both().await {
        let short = Settings {
            lease: Duration::from_secs(2),
            ..quick()
        };
        let a = join(&database, "a").await;
        let b = join(&database, "b").await;
        let name = format!("{}-long", database.kind());
        start(&a, short).await;
        enqueue(&a, &Scripted::new(&name, Script::Work(5_000))).await;
        reaches(&a, &name, JobState::Running).await;
        start(&b, short).await;
        let done = reaches(&a, &name, JobState::Done).await;
        assert_eq!((runs(&name), done.fence), (1, 1));
        stop(a).await;
        stop(b).await;
    }
}

/// Nodes compare leases by the database's clock, so a machine whose own is wrong neither loses its jobs nor takes those of others.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_wrong_clocks_keep_their_jobs() {
    for database in TestDatabase::both().await {
        let short = Settings {
            lease: Duration::from_secs(5),
            ..quick()
        };
        let wrong_by = |seconds| Arc::new(WrongClock::by_seconds(seconds));
        let behind = join_by(&database, "a", wrong_by(-45)).await;
        let ahead = join_by(&database, "b", wrong_by(45)).await;
        let names = ["behind", "ahead"].map(|name| format!("{}-{name}", database.kind()));
        for (node, name) in [&behind, &ahead].into_iter().zip(&names) {
            start(node, short).await;
            enqueue(node, &Scripted::new(name, Script::Work(2_500))).await;
            reaches(node, name, JobState::Running).await;
        }
        for name in &names {
            let done = reaches(&behind, name, JobState::Done).await;
            assert_eq!((runs(name), done.fence), (1, 1), "{name}");
        }
        stop(behind).await;
        stop(ahead).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_lease_cannot_write_and_the_job_runs_elsewhere() {
    for database in TestDatabase::both().await {
        let a = join(&database, "a").await;
        let name = format!("{}-fence", database.kind());
        start(&a, quick()).await;
        // What leaves it room for one: while the first run waits, it cannot claim the job itself.
        let other = format!("{name}-other");
        enqueue(&a, &Scripted::new(&other, Script::Wait)).await;
        reaches(&a, &other, JobState::Running).await;
        enqueue(&a, &Scripted::new(&name, Script::Wait)).await;
        reaches(&a, &name, JobState::Running).await;
        eventually("it waits", || async { runs(&name) == 1 }).await;
        // As if the process had been suspended for longer than its lease.
        let db = a.store.db();
        let sql = "UPDATE work SET lease_until = 0 WHERE dedup_key = $1";
        let expire = statement(sql, [name.clone().into()]);
        db.execute(expire).await.unwrap();
        // The other worker of this database takes it over.
        let b = join(&database, "b").await;
        start(&b, quick()).await;
        eventually("the second run waits", || async { runs(&name) == 2 }).await;
        // Waiters are woken in order: the first run finds that it holds nothing any more.
        record(&name).go_on.notify_one();
        eventually("the first asked", || async {
            record(&name).held.lock().unwrap().len() == 1
        })
        .await;
        assert_eq!(row(&b, &name).await.state, "running");
        record(&name).go_on.notify_one();
        let done = reaches(&b, &name, JobState::Done).await;
        assert_eq!(*record(&name).held.lock().unwrap(), [false, true]);
        assert_eq!(done.fence, 2);
        record(&other).go_on.notify_one();
        reaches(&a, &other, JobState::Done).await;
        stop(a).await;
        stop(b).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_gives_its_leases_back() {
    for database in TestDatabase::both().await {
        let a = join(&database, "a").await;
        let name = format!("{}-stop", database.kind());
        start(&a, quick()).await;
        enqueue(&a, &Scripted::new(&name, Script::Wait)).await;
        eventually("it runs", || async { runs(&name) == 1 }).await;
        stop(a.clone()).await;
        let given_back = row(&a, &name).await;
        assert_eq!(
            (given_back.state.as_str(), given_back.attempts),
            ("queued", 0)
        );
        assert_eq!(record(&name).running.load(Ordering::SeqCst), 0);

        let b = join(&database, "b").await;
        start(&b, quick()).await;
        eventually("it runs elsewhere", || async { runs(&name) == 2 }).await;
        record(&name).go_on.notify_one();
        reaches(&b, &name, JobState::Done).await;
        stop(b).await;
    }
}
