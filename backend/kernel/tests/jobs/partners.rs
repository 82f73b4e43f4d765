//! A sort of jobs that partners share, and one job that takes its process down.

use colloquy_base::{clock::runtime_now, identifiers::PartnerId};
use colloquy_store::{Dialect, Executor as _, statement};
use support::patience;

use super::*;

/// A sort that partners share.
#[derive(Debug, Serialize, Deserialize)]
struct Shared(Scripted);

impl Job for Shared {
    type State = TestNode;

    const KIND: &'static str = "test.shared";
    const RETRY: RetryRule = Scripted::RETRY;
    const AT_ONCE: usize = 8;

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

async fn enqueue_of(node: &TestNode, partner: &str, job: &impl Job) {
    let transaction = node.store.begin().await.unwrap();
    let partner = PartnerId::of_row(partner);
    let queued = jobs::enqueue(node, &transaction, Some(&partner), job).await;
    queued.unwrap();
    transaction.commit().await.unwrap();
    node.kernel.jobs.wake();
}

#[tokio::test(flavor = "multi_thread")]
async fn partners_share_the_places_of_a_sort() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let names = |partner: &str| format!("{}-share-{partner}", database.kind());
        let job = |partner: &str| {
            let job = Scripted::new(names(partner), Script::Wait);
            Shared(Scripted {
                keyed: false,
                ..job
            })
        };
        for partner in ["a", "b", "c"] {
            for _ in 0..20 {
                enqueue_of(&node, partner, &job(partner)).await;
            }
        }
        let registry = Registry::default().with::<Shared>();
        jobs::start(&node, registry, quick()).await.unwrap();
        let running = |partner: &str| {
            let record = record(&names(partner));
            record.running.load(Ordering::SeqCst)
        };
        let all = || ["a", "b", "c"].map(running);
        eventually("those who come first have as many", || async {
            all().iter().sum::<u32>() >= 6
        })
        .await;
        assert!(all().iter().all(|running| *running <= 3), "{:?}", all());
        // However many want all of them, there is a place for one more.
        enqueue_of(&node, "few", &job("few")).await;
        eventually("another one has a place", || async { running("few") == 1 }).await;
        stop(node).await;
    }
}

/// Many rows, without their ids being made one by one.
async fn fill(node: &TestNode, rows: u32, job: &Shared) {
    let db = node.store.db();
    let numbers = match db.dialect() {
        Dialect::Postgres => format!("SELECT n FROM generate_series(1, {rows}) AS s(n)"),
        Dialect::Sqlite => format!(
            "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s"
        ),
    };
    let sql = format!(
        "INSERT INTO work (id, kind, payload, state, run_at, attempts, again, fence, created_at, updated_at, owner) \
         SELECT 'many-' || n, $1, $2, 'queued', n, 0, FALSE, 0, 0, 0, 'many' FROM ({numbers}) AS t"
    );
    let values = [
        Shared::KIND.into(),
        serde_json::to_string(job).unwrap().into(),
    ];
    db.execute(statement(sql, values)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_jobs_of_one_partner_hold_nobody_up() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let name = format!("{}-hundred-thousand", database.kind());
        let job = Scripted {
            keyed: false,
            ..Scripted::new(&name, Script::Work(0))
        };
        fill(&node, 100_000, &Shared(job)).await;
        let registry = Registry::default().with::<Shared>();
        jobs::start(&node, registry, quick()).await.unwrap();
        eventually("the worker works", || async { runs(&name) > 20 }).await;
        let other = Scripted::new(format!("{name}-other"), Script::Work(0));
        let (before, began) = (runs(&name), runtime_now());
        enqueue_of(&node, "few", &Shared(other.clone())).await;
        eventually("the other one ran", || async { runs(&other.name) == 1 }).await;
        let (beside, took) = (runs(&name) - before, began.elapsed());
        println!("{}: {took:?}, beside {beside} others", database.kind());
        // It is not the last of them, and none of them takes long to find.
        assert!(beside < 2_000, "{beside} others");
        assert!(took < patience(Duration::from_secs(5)), "{took:?}");
        let (before, began) = (runs(&name), runtime_now());
        eventually("a hundred more", || async { runs(&name) >= before + 100 }).await;
        let each = began.elapsed() / 100;
        println!("{}: {each:?} a job", database.kind());
        assert!(each < patience(Duration::from_millis(100)), "{each:?}");
        stop(node).await;
    }
}

/// Where [`the_process_of_a_poisonous_job`] finds its database.
const CHILD: &str = "COLLOQUY_TEST_CHILD";

/// Not a test: the process that the jobs of the test below run in.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that another test starts"]
async fn the_process_of_a_poisonous_job() {
    let Ok(database) = std::env::var(CHILD) else {
        return;
    };
    let database: TestDatabase = serde_json::from_str(&database).unwrap();
    let node = join(&database, "poisoned").await;
    let registry = Registry::default().with::<Shared>();
    jobs::start(&node, registry, quick()).await.unwrap();
    std::future::pending().await
}

fn process(database: &TestDatabase) -> tokio::process::Child {
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "partners::the_process_of_a_poisonous_job"])
        .args(["--ignored", "--nocapture"])
        .env(CHILD, serde_json::to_string(database).unwrap())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn shared_row(node: &TestNode, name: &str) -> WorkRow {
    let row = jobs::find::<Shared>(node.store.db(), name).await.unwrap();
    row.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_its_process_down_is_put_aside_and_takes_no_others_with_it() {
    for database in TestDatabase::both().await {
        let node = join(&database, "a").await;
        let [first, poison, last] =
            ["first", "poison", "last"].map(|name| format!("{}-{name}", database.kind()));
        for (name, script) in [
            (&first, Script::Work(1_000)),
            (&poison, Script::Kill(500)),
            (&last, Script::Work(1_000)),
        ] {
            enqueue_of(&node, "acme", &Shared(Scripted::new(name, script))).await;
        }
        // All of them run, and all of them are suspects.
        assert!(!process(&database).wait().await.unwrap().success());
        for name in [&first, &poison, &last] {
            assert_eq!(shared_row(&node, name).await.state, "running", "{name}");
        }
        // Now each has the process for itself.
        assert!(!process(&database).wait().await.unwrap().success());
        let rows = [&first, &poison, &last].map(|name| shared_row(&node, name));
        let rows = futures_util::future::join_all(rows).await;
        let states = rows.iter().map(|row| (row.state.as_str(), row.deaths));
        let states = states.collect::<Vec<_>>();
        assert_eq!(states, [("done", 0), ("running", 1), ("queued", 1)]);
        assert!(rows[1].alone);

        let mut survivor = process(&database);
        eventually("the others are done", || async {
            shared_row(&node, &last).await.state == "done"
        })
        .await;
        eventually("the cause is put aside", || async {
            shared_row(&node, &poison).await.state == "failed"
        })
        .await;
        let reason = shared_row(&node, &poison).await.last_error.unwrap();
        assert!(reason.contains("its process died"), "{reason}");
        assert_eq!(survivor.try_wait().unwrap(), None);
        survivor.kill().await.unwrap();
    }
}
