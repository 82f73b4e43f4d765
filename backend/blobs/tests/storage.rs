//! The limit of what a partner stores, and the reserve of the disk.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::{sync::Arc, task::Poll, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use colloquy_accounts::storage::StorageLimitReached;
use colloquy_base::{
    clock::{Clock as _, ManualClock, SystemClock},
    identifiers::PartnerId,
};
use colloquy_blobs::{Blobs, NoRoom, WriteError, Written};
use colloquy_config::Config;
use colloquy_http::ApiError;
use colloquy_kernel::Base;
use colloquy_store::{Executor as _, statement};
use futures_util::{Stream, StreamExt as _, future::join_all, stream};
use tempfile::TempDir;
use tokio::sync::oneshot;

const LIMIT: u64 = 1_000_000;

/// Files of the partner `acme`, which may have [`LIMIT`] bytes.
struct Place {
    _folder: TempDir,
    base: Base,
    clock: Arc<ManualClock>,
    blobs: Blobs,
    acme: PartnerId,
}

impl Place {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.dir = folder.path().to_owned();
        config.limits.storage_bytes_per_partner = LIMIT;
        let store = config.store.open().await.unwrap();
        store.migrate().await.unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let base = Base::new(config, store, clock.clone());
        let sql = "INSERT INTO partners (id, display_name, settings, created_at, updated_at) VALUES ('acme', '', '{}', 0, 0)";
        base.store.db().execute(sql).await.unwrap();
        Self {
            blobs: Blobs::open(base.clone()).unwrap(),
            acme: PartnerId::parse("acme").unwrap(),
            _folder: folder,
            base,
            clock,
        }
    }

    /// Writes a file in pieces of 50,000 bytes, between which others come.
    async fn write(&self, pieces: usize) -> Result<Written, WriteError<&'static str>> {
        self.blobs.write(&self.acme, large(pieces), u64::MAX).await
    }

    async fn keep(&self, written: &Written) {
        let transaction = self.base.store.begin().await.unwrap();
        self.blobs.keep(&transaction, written).await.unwrap();
        transaction.commit().await.unwrap();
    }

    async fn doom(&self, written: &Written) {
        let transaction = self.base.store.begin().await.unwrap();
        let keys = [written.key.clone()];
        self.blobs.doom(&transaction, &keys).await.unwrap();
        transaction.commit().await.unwrap();
    }

    /// What the partner stores, and the sum over its files, which it always is.
    async fn stored(&self) -> u64 {
        let db = self.base.store.db();
        let sql = "SELECT bytes FROM partner_storage WHERE partner = 'acme'";
        let stored = db.fetch_count(sql).await.unwrap();
        let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM blobs WHERE owner = 'acme'";
        assert_eq!(db.fetch_count(sql).await.unwrap(), stored);
        stored
    }

    async fn set(&self, settings: &str) {
        let sql = "UPDATE partners SET settings = $1 WHERE id = 'acme'";
        let statement = statement(sql, [settings.into()]);
        self.base.store.db().execute(statement).await.unwrap();
    }
}

fn large(pieces: usize) -> impl Stream<Item = Result<Bytes, &'static str>> {
    stream::unfold(0, move |number| async move {
        tokio::task::yield_now().await;
        let piece = Bytes::from(vec![7; 50_000]);
        (number < pieces).then_some((Ok(piece), number + 1))
    })
}

fn is_over_limit<T, E>(written: &Result<T, WriteError<E>>) -> bool {
    matches!(
        written,
        Err(WriteError::NoRoom(NoRoom::Partner(StorageLimitReached {
            limit: LIMIT,
            ..
        })))
    )
}

#[tokio::test]
async fn files_that_arrive_together_do_not_pass_the_limit() {
    let place = Place::open().await;
    let written = join_all((0..4).map(|_| place.write(8))).await;
    let refused = written.iter().filter(|file| is_over_limit(file)).count();
    let stored = written.iter().filter(|file| file.is_ok()).count();
    // Two fit, where the others do not come between with what they began.
    assert!(stored <= 2, "{written:?}");
    assert_eq!(stored + refused, 4, "{written:?}");
    place.blobs.sweep().await.unwrap();
    assert_eq!(place.stored().await, stored as u64 * 400_000);
}

#[tokio::test]
async fn a_file_counts_with_its_bytes_until_it_is_deleted() {
    let place = Place::open().await;
    let first = place.write(12).await.unwrap();
    assert_eq!(
        place.stored().await,
        600_000,
        "what was reserved is given back"
    );
    place.keep(&first).await;
    assert_eq!(place.stored().await, 600_000);
    assert!(is_over_limit(&place.write(9).await));
    let second = place.write(8).await.unwrap();
    assert_eq!(
        second.bytes, 400_000,
        "the last byte of the limit can be used"
    );
    assert!(is_over_limit(&place.write(1).await));
    // Deleting makes room at once, before the file is removed.
    place.doom(&first).await;
    let third = place.write(12).await.unwrap();
    place.keep(&third).await;
    place.blobs.discard(&second).await;
    place.blobs.sweep().await.unwrap();
    assert_eq!(place.stored().await, 600_000);
}

#[tokio::test]
async fn a_file_that_was_left_while_a_clock_was_ahead_gives_its_room_back() {
    let place = Place::open().await;
    let now = place.clock.now();
    place.clock.advance(Duration::from_secs(40 * 24 * 3_600));
    place.write(4).await.unwrap();
    place.clock.set(now);
    // The clocks of other nodes may be a little ahead.
    place.clock.advance(Duration::from_secs(600));
    place.write(2).await.unwrap();
    place.clock.set(now);
    // It may be written still, as the other one, by a node whose clock is ahead.
    assert_eq!(place.blobs.sweep().await.unwrap(), 0);
    place.clock.advance(Duration::from_secs(2 * 3_600));
    assert_eq!(place.blobs.sweep().await.unwrap(), 1);
    assert_eq!(place.stored().await, 100_000);
}

#[tokio::test]
async fn a_file_that_is_not_stored_does_not_count() {
    let place = Place::open().await;
    let broken = stream::iter([Ok(Bytes::from(vec![7; 300_000])), Err("gone")]);
    let written = place.blobs.write(&place.acme, broken, u64::MAX).await;
    assert!(matches!(written, Err(WriteError::Source("gone"))));
    let written = place.blobs.write(&place.acme, large(8), 120_000).await;
    assert!(matches!(written, Err(WriteError::TooLarge(120_000))));
    assert!(
        place.write(20).await.is_ok(),
        "nothing of them is in the way"
    );
    place.blobs.sweep().await.unwrap();
    assert_eq!(place.stored().await, LIMIT);
}

#[tokio::test]
async fn a_file_whose_writing_is_given_up_gives_its_room_back() {
    let place = Place::open().await;
    let (waits, is_waiting) = oneshot::channel();
    let mut waits = Some(waits);
    let silence = stream::poll_fn(move |_| {
        waits.take().map(|waits| waits.send(()));
        Poll::Pending
    });
    let pieces = large(10).chain(silence);
    tokio::select! {
        written = place.blobs.write(&place.acme, pieces, u64::MAX) => panic!("{written:?}"),
        // As when a client goes away in the midst of an upload.
        waiting = is_waiting => waiting.unwrap(),
    }
    assert!(place.stored().await >= 500_000);
    assert_eq!(place.blobs.sweep().await.unwrap(), 1);
    assert_eq!(place.stored().await, 0);
}

#[tokio::test]
async fn a_partner_may_have_a_limit_of_its_own() {
    let place = Place::open().await;
    place.set(r#"{"storage_bytes": 2000000}"#).await;
    place.write(40).await.unwrap();
    let refused = place.write(1).await.unwrap_err();
    let WriteError::NoRoom(why) = refused else {
        panic!("{refused:?}");
    };
    let used = 2_000_000;
    let limit = used;
    assert_eq!(why, NoRoom::Partner(StorageLimitReached { used, limit }));
    let told = ApiError::from(why);
    assert_eq!(told.status, StatusCode::PAYLOAD_TOO_LARGE);
    for named in ["2000000", "delete", "limits.storage_bytes_per_partner"] {
        assert!(told.message.contains(named), "{}", told.message);
    }
    place.set(r#"{"storage_bytes": 0}"#).await;
    assert!(place.write(1).await.is_err());
}

#[tokio::test]
async fn what_was_paid_for_counts_and_is_stored() {
    let place = Place::open().await;
    place.write(20).await.unwrap();
    let room = place.blobs.check_room(&place.acme, 1).await;
    assert!(is_over_limit(&room));
    let paid = Bytes::from_static(b"paid for");
    place.blobs.write_paid(&place.acme, paid).await.unwrap();
    assert_eq!(place.stored().await, LIMIT + 8);
    place.set(r#"{"storage_bytes": 1000009}"#).await;
    place.blobs.check_room(&place.acme, 1).await.unwrap();
    assert_eq!(place.stored().await, LIMIT + 8, "asking stores nothing");
}

#[tokio::test]
async fn the_reserve_of_the_disk_is_kept() {
    let place = Place::open().await;
    place.set(r#"{"storage_bytes": 9007199254740991}"#).await;
    let free = place.blobs.disk().space().await.unwrap();
    assert!(free.reserve > 0);
    let room = place.blobs.check_room(&place.acme, free.free).await;
    let Err(WriteError::NoRoom(why @ NoRoom::Disk(_))) = room else {
        panic!("{room:?}");
    };
    assert!(colloquy_blobs::is_away(&why.into()), "work waits for it");
    let told = ApiError::from(why);
    assert_eq!(told.status, StatusCode::INSUFFICIENT_STORAGE);
    assert!(told.message.contains("store.disk_reserve_bytes"));
    // What is below the limit of the partner is stored all the same.
    place.write(1).await.unwrap();
}
