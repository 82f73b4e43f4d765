//! Nodes by their heartbeats and folders.

use std::{path::Path, sync::Arc};

use colloquy_base::clock::{Clock, ManualClock, SystemClock};
use colloquy_config::{Config, Secret, StoreConfig};
use colloquy_store::statement;
use support::clock::WrongClock;

use super::*;
use crate::CLOCKS_OFF;

fn manual() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()))
}

/// Settings of a node with this data folder; the database is a file above it.
fn config(dir: &Path, node: &str) -> StoreConfig {
    StoreConfig {
        dir: dir.join(node),
        database_url: Some(Secret::new(format!(
            "sqlite://{}",
            dir.join("shared.db").display()
        ))),
        max_connections: 2,
        ..StoreConfig::default()
    }
}

/// What a node starts with: its database, migrated, and its folder.
async fn base(store: StoreConfig, clock: Arc<dyn Clock>) -> anyhow::Result<(Base, DataFolder)> {
    let folder = DataFolder::claim(&store, &*clock).await?;
    let opened = store.open().await?;
    opened.migrate().await?;
    let config = Config {
        store,
        ..Config::default()
    };
    Ok((Base::new(config, opened, clock), folder))
}

async fn kernel(store: StoreConfig, clock: Arc<dyn Clock>) -> anyhow::Result<Kernel> {
    let (base, folder) = base(store, clock).await?;
    Kernel::open(base, folder).await
}

/// What a start is refused with while this goes on: `beat` stores a heartbeat.
async fn refused(
    start: impl Future<Output = anyhow::Result<Kernel>>,
    clock: &ManualClock,
    beat: impl AsyncFn(),
) -> String {
    let beating = async {
        for _ in 0..10_000 {
            sleep(Duration::from_millis(5)).await;
            clock.advance(Duration::from_millis(5));
            beat().await;
        }
    };
    tokio::select! {
        started = start => started.unwrap_err().to_string(),
        () = beating => panic!("it waits"),
    }
}

/// Whether this node counts as living for that one.
async fn lives(node: &Kernel, judge: &Kernel) -> bool {
    let before = lost_before(judge).await.unwrap();
    let sql = format!("SELECT COUNT(*) FROM ({LIVING} AND id = $2)");
    let values = [before.into(), node.node.id.as_str().into()];
    let found = judge.store.db();
    let found = found.fetch_count(statement(sql, values));
    found.await.unwrap() == 1
}

#[tokio::test]
async fn a_node_whose_clock_is_behind_lives() {
    let dir = tempfile::tempdir().unwrap();
    let right = kernel(config(dir.path(), "right"), Arc::new(SystemClock));
    let right = right.await.unwrap();
    let behind = Arc::new(WrongClock::by_seconds(-45));
    let wrong = kernel(config(dir.path(), "wrong"), behind);
    let wrong = wrong.await.unwrap();
    heartbeat(&wrong).await.unwrap();
    assert!(lives(&wrong, &right).await);
    assert!(lives(&right, &wrong).await);
}

#[tokio::test]
async fn a_copy_of_a_living_nodes_folder_is_refused_and_a_killed_process_starts_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = manual();
    let start = |node: &str| kernel(config(dir.path(), node), clock.clone());
    let original = start("original").await.unwrap();
    std::fs::create_dir(dir.path().join("copy")).unwrap();
    let file = |node: &str| dir.path().join(node).join("node-id");
    std::fs::copy(file("original"), file("copy")).unwrap();

    let beat = async || heartbeat(&original).await.unwrap();
    let refused = refused(start("copy"), &clock, beat).await;
    let copy = dir.path().join("copy");
    assert!(
        refused.contains(&format!("{} is a copy", copy.display())),
        "{refused}"
    );
    assert!(lives(&original, &original).await);

    // As after kill -9: nothing is said, the system lets go of the lock.
    let killed = original.node.id.clone();
    drop(original);
    let begun = SystemClock.instant();
    let next = start("original").await.unwrap();
    assert!(begun.elapsed() < LOST_AFTER / 2);
    assert_ne!(next.node.id, killed);
    let ended = "SELECT COUNT(*) FROM nodes WHERE ended_at IS NOT NULL";
    let ended = next.store.db().fetch_count(ended);
    assert_eq!(ended.await.unwrap(), 1);
}

#[tokio::test]
async fn a_copy_starts_once_the_node_is_silent() {
    let dir = tempfile::tempdir().unwrap();
    let clock = manual();
    let start = |node: &str| kernel(config(dir.path(), node), clock.clone());
    let original = start("original").await.unwrap();
    std::fs::create_dir(dir.path().join("copy")).unwrap();
    let file = |node: &str| dir.path().join(node).join("node-id");
    std::fs::copy(file("original"), file("copy")).unwrap();
    clock.advance(LOST_AFTER + Duration::from_secs(1));
    let copy = start("copy").await.unwrap();
    assert_eq!(copy.node.name, original.node.name);
    assert!(!lives(&original, &copy).await);
    // It was cut off, and is not dead: it lives again, and with it what it runs.
    heartbeat(&original).await.unwrap();
    assert!(lives(&original, &copy).await);
}

#[tokio::test]
async fn a_copy_of_the_folder_of_a_living_node_of_an_earlier_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let clock = manual();
    let start = |node: &str| kernel(config(dir.path(), node), clock.clone());
    let other = start("other").await.unwrap();
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("node-id"), "known\n").unwrap();
    // It stored no place, and its own clock, which is behind.
    let run = async |sql: &'static str| {
        let values = [(clock.now_ms() - 45_000).into()];
        let done = other.store.db().execute(statement(sql, values));
        assert_eq!(done.await.unwrap(), 1);
    };
    run("INSERT INTO nodes (id, name, started_at, heartbeat_at) VALUES ('earlier', 'known', $1, $1)")
        .await;
    let beat = async || run("UPDATE nodes SET heartbeat_at = $1 WHERE id = 'earlier'").await;
    let refused = refused(start("copy"), &clock, beat).await;
    let expected = format!("{} is a copy", copy.display());
    assert!(refused.contains(&expected), "{refused}");
    let ended = "SELECT COUNT(*) FROM nodes WHERE ended_at IS NOT NULL";
    let ended = other.store.db().fetch_count(ended);
    assert_eq!(ended.await.unwrap(), 0);

    clock.advance(LOST_AFTER + CLOCKS_OFF);
    assert_eq!(start("copy").await.unwrap().node.name, "known");
}

#[tokio::test]
async fn of_a_folder_and_a_copy_that_was_made_while_its_node_was_down_the_second_is_refused() {
    for (first, second) in [("original", "copy"), ("copy", "original")] {
        let dir = tempfile::tempdir().unwrap();
        let clock = manual();
        let start = |node: &str| kernel(config(dir.path(), node), clock.clone());
        drop(start("original").await.unwrap());
        std::fs::create_dir(dir.path().join("copy")).unwrap();
        let file = |node: &str| dir.path().join(node).join("node-id");
        std::fs::copy(file("original"), file("copy")).unwrap();
        clock.advance(LOST_AFTER + Duration::from_secs(1));
        let running = start(first).await.unwrap();
        let beat = async || heartbeat(&running).await.unwrap();
        let refused = refused(start(second), &clock, beat).await;
        let folder = dir.path().join(second);
        let expected = format!("store.dir: {} is a copy", folder.display());
        assert!(refused.starts_with(&expected), "{refused}");
        assert!(refused.contains("or the original"), "{refused}");
        assert!(lives(&running, &running).await);
    }
}

#[tokio::test]
async fn of_a_folder_and_a_copy_that_start_together_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let clock = manual();
    let prepare = async |node: &str| {
        let store = config(dir.path(), node);
        std::fs::create_dir(&store.dir).unwrap();
        std::fs::write(store.dir.join("node-id"), "known\n").unwrap();
        base(store, clock.clone()).await.unwrap()
    };
    let (one, folder_of_one) = prepare("one").await;
    let (two, folder_of_two) = prepare("two").await;
    // Neither has joined when the other looks.
    let silent_for_one = wait_for_silence(&one, &folder_of_one).await.unwrap();
    let silent_for_two = wait_for_silence(&two, &folder_of_two).await.unwrap();
    let joined = enter(&one, folder_of_one, &silent_for_one).await.unwrap();
    assert_eq!(joined.name, "known");
    let refused = enter(&two, folder_of_two, &silent_for_two).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("two is a copy"), "{refused}");
    let living = "SELECT COUNT(*) FROM nodes WHERE ended_at IS NULL";
    let living = one.store.db().fetch_count(living);
    assert_eq!(living.await.unwrap(), 1);
}

#[test]
fn only_a_later_heartbeat_is_a_sign_of_life() {
    let beat = |id: &str, heartbeat_at| Beat {
        id: id.to_owned(),
        heartbeat_at,
    };
    let before = [beat("a", 10), beat("b", 20)];
    assert!(!has_beaten(&before, &before));
    assert!(!has_beaten(&before, &[]));
    assert!(!has_beaten(&before, &[beat("b", 19)]));
    assert!(has_beaten(&before, &[beat("b", 21)]));
    assert!(has_beaten(&before, &[beat("b", 20), beat("c", 1)]));
    assert!(has_beaten(&[], &[beat("c", 1)]));
}

#[tokio::test]
async fn a_node_whose_row_is_gone_stores_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let node = kernel(config(dir.path(), "a"), manual()).await.unwrap();
    let db = node.store.db();
    db.execute("DELETE FROM nodes").await.unwrap();
    heartbeat(&node).await.unwrap();
    assert!(lives(&node, &node).await);
}

#[tokio::test]
async fn a_second_server_on_a_folder_with_sqlite_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreConfig {
        dir: dir.path().join("data"),
        ..StoreConfig::default()
    };
    let claim = || DataFolder::claim_within(&store, &SystemClock, Duration::ZERO);
    let first = claim().await.unwrap();
    let refused = claim().await.unwrap_err().to_string();
    let path = store.dir.display().to_string();
    assert!(refused.contains("another server runs on"), "{refused}");
    assert!(refused.contains(&path), "{refused}");
    drop(first);
    claim().await.unwrap();
    // With PostgreSQL it is a node of another name.
    let shared = StoreConfig {
        database_url: Some(Secret::new("postgres://localhost/colloquy")),
        ..store.clone()
    };
    let first = DataFolder::claim(&shared, &SystemClock).await.unwrap();
    let second = DataFolder::claim(&shared, &SystemClock).await.unwrap();
    assert_ne!(first.name, second.name);
}

#[tokio::test]
async fn a_second_server_on_an_sqlite_file_is_refused_whatever_its_folder_and_the_files_name() {
    let dir = tempfile::tempdir().unwrap();
    let claim = async |store: &StoreConfig| DatabaseLock::claim_within(store, Duration::ZERO).await;
    let (one, other) = (config(dir.path(), "one"), config(dir.path(), "other"));
    // The file is not made yet.
    let first = claim(&one).await.unwrap();
    let refused = claim(&other).await.unwrap_err().to_string();
    let file = dir.path().join("shared.db");
    let expected = format!(
        "store.database_url: another server runs on the database {}",
        file.display()
    );
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(refused.contains("stop that one"), "{refused}");

    std::fs::write(&file, "").unwrap();
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(dir.path(), &linked).unwrap();
    std::os::unix::fs::symlink(&file, dir.path().join("link.db")).unwrap();
    for link in [linked.join("shared.db"), linked.join("link.db")] {
        let named = StoreConfig {
            database_url: Some(Secret::new(format!("sqlite://{}", link.display()))),
            ..other.clone()
        };
        claim(&named).await.unwrap_err();
    }
    drop(first);
    let next = claim(&other).await.unwrap();
    claim(&one).await.unwrap_err();
    drop(next);

    let in_folder = StoreConfig {
        dir: dir.path().to_path_buf(),
        ..StoreConfig::default()
    };
    let named = StoreConfig {
        database_url: Some(in_folder.url()),
        ..one
    };
    let _named = claim(&named).await.unwrap();
    let refused = claim(&in_folder).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("store.dir: another server"),
        "{refused}"
    );
}

#[tokio::test]
async fn the_file_that_is_locked_is_the_one_that_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let named = StoreConfig {
        dir: dir.join("data"),
        database_url: Some(Secret::new(format!(
            "sqlite://{}/a%20b%3F.db",
            dir.display()
        ))),
        max_connections: 2,
        ..StoreConfig::default()
    };
    // Its URL is made of the folder's name.
    let unnamed = StoreConfig {
        dir: dir.join("100%25 of it?"),
        database_url: None,
        ..named.clone()
    };
    let files = [dir.join("a b?.db"), unnamed.dir.join("colloquy.db")];
    for (store, file) in [named, unnamed].into_iter().zip(files) {
        std::fs::create_dir_all(&store.dir).unwrap();
        let _lock = DatabaseLock::claim(&store).await.unwrap();
        let opened = store.open().await.unwrap();
        opened.migrate().await.unwrap();
        let mut lock = file.clone().into_os_string();
        lock.push(".lock");
        for path in [file.as_os_str(), lock.as_os_str()] {
            assert!(Path::new(path).exists(), "{}", path.display());
        }
        assert_eq!(store.place(), file.display().to_string());
    }
}

#[tokio::test]
async fn nodes_are_listed_with_their_state_and_what_they_said_last() {
    let dir = tempfile::tempdir().unwrap();
    let clock = manual();
    let start = |node: &str| kernel(config(dir.path(), node), clock.clone());
    let judge = start("judge").await.unwrap();
    let other = start("other").await.unwrap();
    let state = async |node: &Kernel| {
        let listed = list(&judge).await.unwrap();
        assert!(!listed.has_more);
        let found = listed.nodes.into_iter().find(|it| it.id == node.node.id);
        found.unwrap()
    };
    let joined = state(&other).await;
    assert_eq!(joined.state, NodeState::Running);
    assert_eq!(joined.version.as_deref(), Some(version().as_str()));
    assert_eq!((joined.calls, joined.max_calls), (None, None));

    clock.advance(Duration::from_secs(5));
    other.node.set_load(Load {
        calls: 3,
        max_calls: 8,
    });
    heartbeat(&other).await.unwrap();
    let beaten = state(&other).await;
    assert_eq!(beaten.heartbeat_at - joined.heartbeat_at, 5_000);
    assert_eq!(beaten.started_at, joined.started_at);
    assert_eq!((beaten.calls, beaten.max_calls), (Some(3), Some(8)));

    clock.advance(LOST_AFTER + Duration::from_secs(1));
    heartbeat(&judge).await.unwrap();
    assert_eq!(state(&other).await.state, NodeState::Lost);
    assert_eq!(state(&judge).await.state, NodeState::Running);

    other.leaving.cancel();
    heartbeat(&other).await.unwrap();
    assert_eq!(state(&other).await.state, NodeState::Stopping);
    clock.advance(LOST_AFTER + Duration::from_secs(1));
    heartbeat(&judge).await.unwrap();
    assert_eq!(state(&other).await.state, NodeState::Stopped);

    let earlier = other.node.id.clone();
    drop(other);
    let next = start("other").await.unwrap();
    let listed = list(&judge).await.unwrap();
    let replaced = listed.nodes.iter().find(|it| it.id == earlier).unwrap();
    assert_eq!(replaced.state, NodeState::Replaced);
    assert_eq!(replaced.name, next.node.name);
    assert_eq!(listed.nodes.last().unwrap().id, earlier);
}
