//! A connection to PostgreSQL that breaks when a commit was made, before anybody is told: whoever made it does not know of it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use support::news;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    select,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use crate::TestDatabase;

/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";
/// How a commit is asked for.
const COMMIT: &[u8] = b"COMMIT\0";

/// What stands between servers and a database, for as long as this lives.
#[derive(Debug)]
pub struct LostCommits {
    /// The same database, by way of this.
    pub database: TestDatabase,
    counts: Arc<Counts>,
    _dir: TempDir,
    _relay: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Of so many commits one is lost; 0: none.
    one_of: AtomicUsize,
    seen: AtomicUsize,
    lost: AtomicUsize,
}

impl LostCommits {
    /// Stands before a database on PostgreSQL that has its socket in a folder. Nothing is lost yet.
    ///
    /// # Panics
    /// When that is not so, or there is no place for a socket.
    #[expect(
        clippy::disallowed_methods,
        reason = "it belongs to the test, not to a server"
    )]
    pub fn before(database: &TestDatabase) -> Self {
        let mut url = database.postgres_url().expect("a database on PostgreSQL");
        let host = url.query_pairs().find(|(name, _)| name == "host");
        let socket = PathBuf::from(host.expect("a folder").1.as_ref()).join(SOCKET);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(dir.path().join(SOCKET)).expect("a socket");
        let folder = dir.path().to_str().expect("a path").to_owned();
        url.query_pairs_mut().clear().append_pair("host", &folder);
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        let relay = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = UnixStream::connect(&socket).await else {
                    continue;
                };
                connections.spawn(relay(client, server, Arc::clone(&counted)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            database: database.by_way_of(&url),
            counts,
            _dir: dir,
            _relay: AbortOnDropHandle::new(relay),
        }
    }

    /// From now on, of so many commits one is lost; 0: none.
    pub fn lose_one_of(&self, commits: usize) {
        self.counts.one_of.store(commits, Ordering::Relaxed);
    }

    /// How many were lost so far.
    pub fn lost(&self) -> usize {
        self.counts.lost.load(Ordering::Relaxed)
    }
}

/// Passes on what comes from either side, until one of them is gone or a commit is lost.
async fn relay(mut client: UnixStream, mut server: UnixStream, counts: Arc<Counts>) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut is_lost = false;
    loop {
        let passed = select! {
            read = client.read(&mut asked) => match read {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let asked = &asked[..length];
                    if asked.windows(COMMIT.len()).any(|part| part == COMMIT) {
                        let seen = counts.seen.fetch_add(1, Ordering::Relaxed);
                        let one_of = counts.one_of.load(Ordering::Relaxed);
                        is_lost = one_of > 0 && seen.is_multiple_of(one_of);
                    }
                    server.write_all(asked).await
                }
            },
            read = server.read(&mut answered) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) if is_lost => {
                    counts.lost.fetch_add(1, Ordering::Relaxed);
                    news::tell();
                    return;
                }
                Ok(length) => client.write_all(&answered[..length]).await,
            },
        };
        if passed.is_err() {
            return;
        }
    }
}
