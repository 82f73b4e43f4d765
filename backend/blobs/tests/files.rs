//! Files in a folder and in a bucket, with the database that knows of them. `COLLOQUY_TEST_S3_URL` names a bucket of an S3 server
//! (`tests/run unit`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use colloquy_base::{
    clock::{Clock as _, ManualClock, SystemClock},
    identifiers::PartnerId,
};
use colloquy_blobs::{Blobs, BundleError, ObjectError, WriteError, Written};
use colloquy_config::Config;
use colloquy_kernel::Base;
use colloquy_store::{Executor as _, StoreError, statement};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    ObjectStore as _, ObjectStoreExt as _,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path as ObjectPath,
};
use tempfile::TempDir;
use url::Url;

/// Files of the partner `acme` in a folder of their own, or below a prefix of their own in a bucket.
struct Place {
    folder: TempDir,
    /// `None` for a folder.
    bucket: Option<Url>,
    base: Base,
    clock: Arc<ManualClock>,
    blobs: Blobs,
    acme: PartnerId,
}

impl Place {
    async fn in_folder() -> Self {
        Self::open(None).await
    }

    async fn in_bucket() -> Self {
        let url = std::env::var("COLLOQUY_TEST_S3_URL");
        let url = url.expect("COLLOQUY_TEST_S3_URL names a bucket: tests/run unit");
        let prefix = format!("{url}/{}", SystemClock.new_id());
        Self::open(Some(Url::parse(&prefix).unwrap())).await
    }

    async fn open(bucket: Option<Url>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.dir = folder.path().to_owned();
        config.store.blob_url = bucket.clone();
        let store = config.store.open().await.unwrap();
        store.migrate().await.unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let base = Base::new(config, store, Arc::clone(&clock) as _);
        let sql = "INSERT INTO partners (id, display_name, settings, created_at, updated_at) VALUES ('acme', '', '{}', 0, 0)";
        base.store.db().execute(sql).await.unwrap();
        Self {
            blobs: Blobs::open(base.clone()).unwrap(),
            acme: PartnerId::parse("acme").unwrap(),
            folder,
            bucket,
            base,
            clock,
        }
    }

    async fn write(&self, bytes: &'static [u8]) -> Written {
        let written = self.blobs.write_bytes(&self.acme, bytes.into()).await;
        written.unwrap()
    }

    async fn keep(&self, written: &Written) -> Result<(), StoreError> {
        let transaction = self.base.store.begin().await?;
        self.blobs.keep(&transaction, written).await?;
        transaction.commit().await
    }

    async fn read(&self, written: &Written) -> Result<Bytes, ObjectError> {
        self.blobs.read_whole(&written.key, 100).await
    }

    async fn damaged(&self) -> u64 {
        self.blobs.damaged().await.unwrap()
    }

    async fn rows(&self) -> u64 {
        let count = self.base.store.db();
        count
            .fetch_count("SELECT COUNT(*) FROM blobs")
            .await
            .unwrap()
    }

    /// The names of what lies there.
    async fn files(&self) -> Vec<String> {
        if let Some(url) = &self.bucket {
            let bucket = AmazonS3Builder::from_env().with_bucket_name(url.host_str().unwrap());
            let prefix = ObjectPath::from_url_path(url.path()).unwrap();
            let bucket = bucket.build().unwrap();
            let files = bucket.list(Some(&prefix));
            return files
                .map(|file| file.unwrap().location.to_string())
                .collect()
                .await;
        }
        fn walk(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.folder.path().join("blobs"), &mut found);
        found
    }
}

/// The same in a folder and in a bucket.
macro_rules! in_both {
    ($name:ident, |$place:ident| $test:block) => {
        mod $name {
            use super::*;

            async fn test($place: Place) $test

            #[tokio::test]
            async fn in_a_folder() {
                test(Place::in_folder().await).await;
            }

            #[tokio::test]
            async fn in_a_bucket() {
                test(Place::in_bucket().await).await;
            }
        }
    };
}

in_both!(a_file_is_there_until_it_is_given_up, |place| {
    let written = place.write(b"hello").await;
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!((written.bytes, written.sha256.as_str()), (5, sha256));
    place.keep(&written).await.unwrap();
    assert_eq!(place.blobs.sweep().await.unwrap(), 0);
    place.clock.advance(Duration::from_secs(100_000));
    assert_eq!(place.blobs.sweep().await.unwrap(), 0);
    assert_eq!(place.read(&written).await.unwrap(), "hello");
    let reading = place.blobs.read(&written.key).await.unwrap();
    assert_eq!(reading.bytes, 5);
    let pieces: Vec<Bytes> = reading.pieces.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"hello");

    let transaction = place.base.store.begin().await.unwrap();
    let keys = [written.key.clone()];
    place.blobs.doom(&transaction, &keys).await.unwrap();
    drop(transaction);
    assert_eq!(place.blobs.sweep().await.unwrap(), 0, "it was rolled back");
    let transaction = place.base.store.begin().await.unwrap();
    place.blobs.doom(&transaction, &keys).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(place.blobs.sweep().await.unwrap(), 1);
    assert!(matches!(
        place.read(&written).await,
        Err(ObjectError::Missing)
    ));
    assert_eq!((place.rows().await, place.files().await.len()), (0, 0));
});

in_both!(
    what_nobody_keeps_goes_and_cannot_be_kept_afterwards,
    |place| {
        let written = place.write(b"hello").await;
        assert_eq!(
            place.blobs.sweep().await.unwrap(),
            0,
            "it may still be kept"
        );
        place.clock.advance(Duration::from_secs(2 * 3_600 + 1));
        assert_eq!(place.blobs.sweep().await.unwrap(), 1);
        // That is no outage: who tries until it works would never end.
        assert!(!place.keep(&written).await.unwrap_err().is_unavailable());
    }
);

in_both!(
    a_file_that_is_too_large_or_breaks_off_leaves_nothing,
    |place| {
        // In memory alone, in several parts of a folder, in several of a bucket.
        for pieces in [2, 40, 120] {
            let written: Vec<Bytes> = (0..pieces)
                .map(|number| Bytes::from(vec![number; 100_000]))
                .collect();
            let large = || stream::iter(written.clone()).map(Ok::<_, &str>);
            let most = u64::from(pieces) * 100_000;
            let fits = place.blobs.write(&place.acme, large(), most).await.unwrap();
            assert_eq!(fits.bytes, most);
            let read = place.blobs.read_whole(&fits.key, most).await.unwrap();
            assert!(read == written.concat(), "every byte is in its place");
            let small = place.blobs.read_whole(&fits.key, most - 1).await;
            assert!(matches!(small, Err(ObjectError::TooLarge(_))));

            let refused = place.blobs.write(&place.acme, large(), most - 1).await;
            assert!(matches!(refused, Err(WriteError::TooLarge(bound)) if bound == most - 1));
            let broken = large().take(usize::from(pieces) - 1);
            let broken = broken.chain(stream::iter([Err("gone")]));
            let refused = place.blobs.write(&place.acme, broken, most).await;
            assert!(matches!(refused, Err(WriteError::Source("gone"))));
            assert_eq!(place.blobs.sweep().await.unwrap(), 2);
            place.clock.advance(Duration::from_secs(3 * 3_600));
            assert_eq!(place.blobs.sweep().await.unwrap(), 1);
            assert_eq!((place.rows().await, place.files().await.len()), (0, 0));
        }
    }
);

/// A process that dies while it writes leaves the beginning of a file, and a row that is pending.
#[tokio::test]
async fn what_a_dead_process_left_goes_too() {
    let place = Place::in_folder().await;
    let written = place.write(b"hello").await;
    let file = place.folder.path().join("blobs").join(written.key.as_str());
    let begun = format!("{}#1", file.display());
    std::fs::rename(&file, begun).unwrap();
    place.clock.advance(Duration::from_secs(3 * 3_600));
    assert_eq!(place.blobs.sweep().await.unwrap(), 1);
    assert_eq!((place.rows().await, place.files().await.len()), (0, 0));
}

in_both!(files_go_with_their_partner, |place| {
    let written = place.write(b"hello").await;
    place.keep(&written).await.unwrap();
    let sql = statement("DELETE FROM partners WHERE id = $1", ["acme".into()]);
    place.base.store.db().execute(sql).await.unwrap();
    assert_eq!(place.blobs.sweep().await.unwrap(), 1);
    assert_eq!((place.rows().await, place.files().await.len()), (0, 0));
});

impl Place {
    /// Where a file is in a bucket; `None` for a folder.
    fn object(&self, written: &Written) -> Option<(AmazonS3, ObjectPath)> {
        let url = self.bucket.as_ref()?;
        let bucket = AmazonS3Builder::from_env().with_bucket_name(url.host_str().unwrap());
        let prefix = ObjectPath::from_url_path(url.path()).unwrap();
        let key = ObjectPath::from(written.key.as_str());
        let path: ObjectPath = prefix.parts().chain(key.parts()).collect();
        Some((bucket.build().unwrap(), path))
    }

    /// Where a file is in the folder.
    fn path(&self, written: &Written) -> PathBuf {
        self.folder.path().join("blobs").join(written.key.as_str())
    }

    /// Puts other bytes in the place of a file, as a disk or a bucket may do that fails.
    async fn damage(&self, written: &Written, bytes: &[u8]) {
        match self.object(written) {
            Some((bucket, path)) => {
                let payload = object_store::PutPayload::from(bytes.to_vec());
                bucket.put(&path, payload).await.unwrap();
            }
            None => std::fs::write(self.path(written), bytes).unwrap(),
        }
    }

    /// Takes a file away, as a disk or a bucket may do that fails.
    async fn lose(&self, written: &Written) {
        match self.object(written) {
            Some((bucket, path)) => bucket.delete(&path).await.unwrap(),
            None => std::fs::remove_file(self.path(written)).unwrap(),
        }
    }

    /// Gives a file up, and removes it.
    async fn give_up(&self, written: &Written) {
        let transaction = self.base.store.begin().await.unwrap();
        let keys = [written.key.clone()];
        self.blobs.doom(&transaction, &keys).await.unwrap();
        transaction.commit().await.unwrap();
        self.blobs.sweep().await.unwrap();
    }

    /// The bytes that a reader gets of a file until it breaks off.
    async fn served(&self, written: &Written) -> (usize, Result<(), ObjectError>) {
        let mut open = match self.blobs.read(&written.key).await {
            Ok(open) => open,
            Err(error) => return (0, Err(error)),
        };
        let mut served = 0;
        while let Some(piece) = open.pieces.next().await {
            match piece {
                Ok(piece) => served += piece.len(),
                Err(error) => return (served, Err(error)),
            }
        }
        (served, Ok(()))
    }
}

in_both!(a_damaged_file_is_never_served_as_complete, |place| {
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let pieces = content.chunks(50_000).map(Bytes::copy_from_slice);
    let pieces = stream::iter(pieces.map(Ok::<_, &str>).collect::<Vec<_>>());
    let written = place.blobs.write(&place.acme, pieces, 300_000).await;
    let written = written.unwrap();
    place.keep(&written).await.unwrap();
    assert!(place.served(&written).await.1.is_ok());

    let mut altered = content.clone();
    altered[150_000] ^= 1;
    let mut longer = content.clone();
    longer.push(0);
    for damaged in [&content[..299_999], &altered, &longer, &[]] {
        place.damage(&written, damaged).await;
        let (served, ended) = place.served(&written).await;
        assert!(served < content.len(), "{served} of {}", content.len());
        assert!(matches!(ended, Err(ObjectError::Damaged)), "{ended:?}");
        let whole = place.blobs.read_whole(&written.key, 300_000).await;
        assert!(matches!(whole, Err(ObjectError::Damaged)), "{whole:?}");
        let local = place.blobs.local(&written.key, 300_000).await;
        assert!(matches!(local, Err(ObjectError::Damaged)), "{local:?}");
        assert_eq!(place.damaged().await, 1);
    }

    // Somebody puts it back.
    place.damage(&written, &content).await;
    let (served, ended) = place.served(&written).await;
    assert!(served == content.len() && ended.is_ok());
    assert_eq!(place.damaged().await, 0);
    place.blobs.local(&written.key, 300_000).await.unwrap();

    // One that goes is no reason to complain any more.
    place.damage(&written, &altered).await;
    place.served(&written).await.1.unwrap_err();
    place.give_up(&written).await;
    assert_eq!(place.damaged().await, 0);
});

in_both!(a_kept_file_that_is_gone_is_lost_until_it_is_back, |place| {
    let written = place.write(b"hello").await;
    place.lose(&written).await;
    // Nobody has kept it yet.
    let pending = place.read(&written).await;
    assert!(matches!(pending, Err(ObjectError::Missing)), "{pending:?}");
    assert_eq!(place.damaged().await, 0);

    place.keep(&written).await.unwrap();
    for _ in 0..2 {
        let (served, ended) = place.served(&written).await;
        assert_eq!(served, 0);
        assert!(matches!(ended, Err(ObjectError::Lost)), "{ended:?}");
        let whole = place.read(&written).await;
        assert!(matches!(whole, Err(ObjectError::Lost)), "{whole:?}");
        let local = place.blobs.local(&written.key, 5).await;
        assert!(matches!(local, Err(ObjectError::Lost)), "{local:?}");
        let beginning = place.blobs.beginning(&written.key, 5, 5).await;
        let told = beginning.unwrap_err().to_string();
        assert!(told.contains("kept and not there"), "{told}");
        assert_eq!(place.damaged().await, 1);
        place.blobs.sweep().await.unwrap();
        assert_eq!(place.damaged().await, 1);
    }

    // A disk is mounted late: nobody has to read the file before that is known.
    place.damage(&written, b"hello").await;
    place.blobs.sweep().await.unwrap();
    assert_eq!(place.damaged().await, 0);
    assert_eq!(place.read(&written).await.unwrap(), "hello");

    // One that is given up is not missed.
    place.lose(&written).await;
    place.read(&written).await.unwrap_err();
    place.give_up(&written).await;
    assert_eq!(place.damaged().await, 0);
    let gone = place.read(&written).await;
    assert!(matches!(gone, Err(ObjectError::Missing)), "{gone:?}");
});

in_both!(damage_is_known_after_a_restart, |place| {
    let (altered, lost) = (place.write(b"hello").await, place.write(b"other").await);
    place.keep(&altered).await.unwrap();
    place.keep(&lost).await.unwrap();
    place.damage(&altered, b"hellO").await;
    place.lose(&lost).await;
    place.read(&altered).await.unwrap_err();
    place.read(&lost).await.unwrap_err();

    let restarted = Blobs::open(place.base.clone()).unwrap();
    assert_eq!(restarted.damaged().await.unwrap(), 2);
    // Nobody has to read a file before it is known to be there again.
    place.damage(&lost, b"other").await;
    restarted.sweep().await.unwrap();
    assert_eq!(restarted.damaged().await.unwrap(), 1);
    place.damage(&altered, b"hello").await;
    restarted.read_whole(&altered.key, 100).await.unwrap();
    assert_eq!(restarted.damaged().await.unwrap(), 0);

    // One that is given up counts no more, also before it is removed.
    place.damage(&altered, b"hell").await;
    place.read(&altered).await.unwrap_err();
    assert_eq!(restarted.damaged().await.unwrap(), 1);
    let transaction = place.base.store.begin().await.unwrap();
    let keys = [altered.key.clone()];
    restarted.doom(&transaction, &keys).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(restarted.damaged().await.unwrap(), 0);
    restarted.sweep().await.unwrap();
    let noted = "SELECT COUNT(*) FROM damaged_blobs";
    let noted = place.base.store.db().fetch_count(noted).await.unwrap();
    assert_eq!(noted, 0);
});

/// A bundle is sent while it is made, so it breaks off where a file in it is damaged or lost. It leaves out those that were given up.
#[tokio::test]
async fn a_bundle_breaks_off_at_a_damaged_file() {
    let place = Place::in_folder().await;
    let written = place.write(b"hello").await;
    place.keep(&written).await.unwrap();
    let bundle = || {
        let files = [("a.md".to_owned(), written.key.clone())].into();
        let info = ("info.json", "{}".to_owned());
        colloquy_blobs::bundle(place.blobs.clone(), info, files).try_collect::<Vec<_>>()
    };
    bundle().await.unwrap();
    place.damage(&written, b"hellO").await;
    let broken = bundle().await;
    assert!(matches!(
        broken,
        Err(BundleError::Object(ObjectError::Damaged))
    ));
    place.lose(&written).await;
    let broken = bundle().await;
    assert!(matches!(
        broken,
        Err(BundleError::Object(ObjectError::Lost))
    ));
    place.give_up(&written).await;
    bundle().await.unwrap();
}

/// Files from before hashes were kept have their length alone.
#[tokio::test]
async fn a_file_without_a_hash_has_its_length() {
    let place = Place::in_folder().await;
    let written = place.write(b"hello").await;
    place.keep(&written).await.unwrap();
    let sql = "UPDATE blobs SET sha256 = NULL";
    place.base.store.db().execute(sql).await.unwrap();
    assert_eq!(place.read(&written).await.unwrap(), "hello");
    place.damage(&written, b"hell").await;
    let short = place.read(&written).await;
    assert!(matches!(short, Err(ObjectError::Damaged)), "{short:?}");
    assert_eq!(place.damaged().await, 1);
    place.damage(&written, b"hello").await;
    assert_eq!(place.read(&written).await.unwrap(), "hello");
    assert_eq!(place.damaged().await, 0);
}

#[tokio::test]
async fn the_check_notices_a_folder_that_is_not_there() {
    let place = Place::in_folder().await;
    place.blobs.check().await.unwrap();
    assert_eq!(place.files().await.len(), 0);
    std::fs::remove_dir_all(place.folder.path().join("blobs")).unwrap();
    std::fs::write(place.folder.path().join("blobs"), "no folder").unwrap();
    place.blobs.check().await.unwrap_err();
}

in_both!(a_file_is_a_path_of_this_machine_for_a_while, |place| {
    let written = place.write(b"hello").await;
    let local = place.blobs.local(&written.key, 5).await.unwrap();
    assert_eq!(std::fs::read(local.path()).unwrap(), b"hello");
    let path = local.path().to_owned();
    drop(local);
    let again = place.blobs.local(&written.key, 5).await.unwrap();
    assert_eq!(again.path(), path, "a copy stays for a while");
    drop(again);
    place.clock.advance(Duration::from_secs(61));
    place.blobs.sweep().await.unwrap();
    assert_eq!(path.exists(), place.bucket.is_none(), "a copy goes");
    let large = place.blobs.local(&written.key, 4).await;
    assert!(matches!(large, Err(ObjectError::TooLarge(4))));
    let transaction = place.base.store.begin().await.unwrap();
    let keys = [written.key.clone()];
    place.blobs.doom(&transaction, &keys).await.unwrap();
    transaction.commit().await.unwrap();
    place.blobs.sweep().await.unwrap();
    let gone = place.blobs.local(&written.key, 5).await;
    assert!(matches!(gone, Err(ObjectError::Missing)));
    let copies = place.folder.path().join("copies");
    let left = std::fs::read_dir(copies).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left of what could not be copied");
});

/// What comes of a file is gathered on this machine's disk, in a folder that is none here.
#[tokio::test]
async fn a_disk_that_does_not_take_a_part_for_a_bucket_leaves_nothing() {
    let place = Place::in_bucket().await;
    std::fs::write(place.folder.path().join("copies"), "").unwrap();
    for pieces in [1, 120] {
        let piece = Bytes::from(vec![7; 100_000]);
        let large = stream::repeat(Ok::<_, &str>(piece)).take(pieces);
        let refused = place.blobs.write(&place.acme, large, u64::MAX).await;
        assert!(matches!(refused, Err(WriteError::Object(_))), "{refused:?}");
    }
    let small = place.write(b"hello").await;
    assert_eq!(place.read(&small).await.unwrap(), "hello", "from memory");
    assert_eq!(place.blobs.sweep().await.unwrap(), 2);
    assert_eq!((place.rows().await, place.files().await.len()), (1, 1));
}

#[tokio::test]
async fn the_check_notices_a_bucket_that_is_not_there() {
    let place = Place::in_bucket().await;
    place.blobs.check().await.unwrap();
    assert_eq!(place.files().await.len(), 0);
    let missing = Url::parse("s3://no-such-bucket/files").unwrap();
    let missing = Place::open(Some(missing)).await;
    missing.blobs.check().await.unwrap_err();
}

/// What a bundle tells of its files comes while it is sent, so it breaks off where that does, and asks for no file then.
#[tokio::test]
async fn a_bundle_breaks_off_where_its_text_does() {
    let place = Place::in_folder().await;
    let written = place.write(b"hello").await;
    place.keep(&written).await.unwrap();
    let bundle = |text: Vec<Result<Bytes, &'static str>>| {
        let files = stream::iter([Ok(("a.md".to_owned(), written.key.clone()))]);
        let text = ("info.json", stream::iter(text));
        colloquy_blobs::streamed_bundle(place.blobs.clone(), text, files)
    };
    let begun = || Ok(Bytes::from_static(b"{"));
    let whole: Vec<Bytes> = bundle(vec![begun(), Ok(Bytes::from_static(b"}"))])
        .try_collect()
        .await
        .unwrap();
    let whole = whole.concat();
    let has = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|it| it == text);
    assert!(has(&whole, b"info.json") && has(&whole, b"a.md"));
    let broken: Vec<_> = bundle(vec![begun(), Err("it is away")]).collect().await;
    let (last, sent) = broken.split_last().unwrap();
    assert!(matches!(last, Err(BundleError::List(_))), "{last:?}");
    let sent: Vec<Bytes> = sent.iter().flatten().cloned().collect();
    assert!(!has(&sent.concat(), b"a.md"));
}
