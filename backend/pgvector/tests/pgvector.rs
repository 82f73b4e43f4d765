//! The index in PostgreSQL: what every index does, and what several nodes do with one. `COLLOQUY_TEST_PGVECTOR_URL` names a server with
//! pgvector (`tests/run unit`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

#[path = "../../index/tests/contract/mod.rs"]
mod contract;

use std::sync::Arc;

use colloquy_base::clock::{Clock as _, SystemClock};
use colloquy_index::search::{Change, IndexError, SearchIndex as _};
use colloquy_pgvector::{PgIndex, PgOptions};
use contract::{ask, document, space};

/// An index that nobody else uses.
async fn open(options: PgOptions) -> PgIndex {
    let installation = SystemClock.new_id().to_string();
    named(&installation, options).await
}

async fn named(installation: &str, options: PgOptions) -> PgIndex {
    let url = std::env::var("COLLOQUY_TEST_PGVECTOR_URL");
    let url = url.expect("COLLOQUY_TEST_PGVECTOR_URL names a server with pgvector");
    let index = PgIndex::open(&url, installation, options, Arc::new(SystemClock));
    index.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_what_every_index_does() {
    let index = open(PgOptions::default()).await;
    contract::run(&index).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_takes_as_many_chunks_as_it_may() {
    let options = PgOptions {
        max_chunks: 3,
        ..PgOptions::default()
    };
    let index = open(options).await;
    let put = |id| index.apply(vec![Change::Put(space(id, 0), document(1, "A text."))]);
    for id in 0..3 {
        put(id).await.unwrap();
    }
    assert!(matches!(put(3).await, Err(IndexError::Full)));
    // One in the place of another takes no more room.
    put(2).await.unwrap();
    let removed = vec![Change::RemoveBase(space(0, 0).base)];
    index.apply(removed).await.unwrap();
    put(3).await.unwrap();
    let usage = index.usage().await.unwrap();
    assert_eq!((usage.chunks, usage.spaces), (3, 3));
    assert!(usage.disk_bytes > 0);
    index.clear().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installations_find_nothing_of_each_other() {
    let (one, other) = (
        open(PgOptions::default()).await,
        open(PgOptions::default()).await,
    );
    let here = space(1, 0);
    let put = vec![Change::Put(here, document(1, "The price is nine."))];
    one.apply(put).await.unwrap();
    assert!(ask(&other, here, "price").await.unwrap().is_empty());
    assert_eq!(ask(&one, here, "price").await.unwrap().len(), 1);
    one.note(7).await.unwrap();
    assert_eq!(one.position().await.unwrap(), Some(7));
    assert_eq!(other.position().await.unwrap(), None);
    other.clear().await.unwrap();
    assert_eq!(ask(&one, here, "price").await.unwrap().len(), 1);
    one.clear().await.unwrap();
    assert_eq!(one.position().await.unwrap(), None);
    assert!(ask(&one, here, "price").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_writes_at_a_time_and_the_next_follows_its_end() {
    let installation = SystemClock.new_id().to_string();
    let one = named(&installation, PgOptions::default()).await;
    let other = named(&installation, PgOptions::default()).await;
    let mut writer = one.writer().await.unwrap().unwrap();
    assert!(writer.is_alive().await);
    assert!(other.writer().await.unwrap().is_none());
    // As when its process ends: the connection goes, and the lock with it.
    drop(writer);
    let mut tries = 0;
    while other.writer().await.unwrap().is_none() {
        tries += 1;
        assert!(tries < 500, "the lock goes with the connection");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_search_finds_all_of_a_change_or_nothing() {
    let index = open(PgOptions::default()).await;
    let here = space(1, 0);
    let version = |number: usize| {
        let part = |part| {
            format!(
                "# Part {part}\n\nThe tiger of version{number} says nothing but its name, again and again and again.\n\n"
            )
        };
        vec![Change::Put(
            here,
            document(1, &(0..6).map(part).collect::<String>()),
        )]
    };
    index.apply(version(0)).await.unwrap();
    let writing = async {
        for number in 1..12 {
            index.apply(version(number)).await.unwrap();
        }
    };
    let reading = async {
        for _ in 0..40 {
            let found = ask(&index, here, "tiger").await.unwrap();
            assert_eq!(found.len(), 6);
            let mut versions: Vec<_> = found
                .iter()
                .filter_map(|passage| passage.text.split("version").nth(1)?.split(' ').next())
                .collect();
            versions.dedup();
            assert_eq!(versions.len(), 1, "{versions:?}");
        }
    };
    tokio::join!(writing, reading);
    index.clear().await.unwrap();
}
