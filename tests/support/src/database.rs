//! A fresh database for each test, on SQLite or PostgreSQL. It has the schema: that is made once for each program, and copied from then on, which
//! takes a tenth of the time.
//!
//! PostgreSQL runs once: `tests/run` starts it and names it in `COLLOQUY_TEST_POSTGRES_URL`; without that, each test
//! process starts one of its own from Debian's programs. A test that needs it fails when it cannot be had.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use colloquy_config::{Secret, StoreConfig};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;
use tempfile::TempDir;
use url::Url;

/// The file of a SQLite database, in its folder.
const SQLITE_FILE: &str = "colloquy.db";

/// Where a test's data is; its folder goes with the last clone. A process that is told of it in JSON uses it, but does
/// not keep it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TestDatabase {
    dir: PathBuf,
    postgres_url: Option<String>,
    #[serde(skip)]
    _kept: Option<Arc<TempDir>>,
}

/// The lock of a SQLite database.
#[derive(Debug)]
pub struct HeldDatabase(SqliteConnection);

impl HeldDatabase {
    /// Lets others write again.
    pub async fn release(mut self) {
        self.0.execute("ROLLBACK").await.expect("it is open");
        self.0.close().await.expect("it is closed");
    }
}

impl TestDatabase {
    fn fresh(postgres_url: Option<String>) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        Self {
            dir: dir.path().to_owned(),
            postgres_url,
            _kept: Some(Arc::new(dir)),
        }
    }

    /// A SQLite file in a fresh folder.
    pub fn sqlite() -> Self {
        let database = Self::empty_sqlite();
        std::fs::copy(sqlite_schema(), database.dir.join(SQLITE_FILE)).expect("a copy");
        database
    }

    /// The same without the schema, and without the file.
    pub fn empty_sqlite() -> Self {
        Self::fresh(None)
    }

    /// A SQLite file in this folder.
    pub fn sqlite_in(dir: PathBuf) -> Self {
        Self {
            dir,
            postgres_url: None,
            _kept: None,
        }
    }

    /// Holds the lock of a SQLite database, so that nobody else writes until this is released.
    pub async fn hold(&self) -> HeldDatabase {
        let url = format!("sqlite://{}", self.dir.join(SQLITE_FILE).display());
        let mut connection = SqliteConnection::connect(&url).await.expect("a database");
        while connection.execute("BEGIN IMMEDIATE").await.is_err() {}
        HeldDatabase(connection)
    }

    /// A fresh database on the PostgreSQL server.
    pub async fn postgres() -> Self {
        let server = server_url();
        let template = postgres_schema(server).await;
        Self::on(server, template).await
    }

    /// The same without the schema.
    pub async fn empty_postgres() -> Self {
        Self::on(server_url(), "template1").await
    }

    /// A fresh database on this PostgreSQL server, a copy of another one.
    async fn on(server: &str, template: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "colloquy_{}_{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut connection = PgConnection::connect(server)
            .await
            .expect("the PostgreSQL server of the tests answers");
        // A number may come round again on a server that outlives the processes.
        for statement in [
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("CREATE DATABASE {name} TEMPLATE {template}"),
        ] {
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut connection)
                .await
                .expect("a fresh PostgreSQL database");
        }
        connection.close().await.expect("the connection closes");
        Self::fresh(Some(database_url(server, &name)))
    }

    /// One of each.
    pub async fn both() -> [Self; 2] {
        [Self::sqlite(), Self::postgres().await]
    }

    /// One of each without the schema.
    pub async fn both_empty() -> [Self; 2] {
        [Self::empty_sqlite(), Self::empty_postgres().await]
    }

    /// Settings that lead to it. Several servers may use it at once.
    pub fn config(&self) -> StoreConfig {
        StoreConfig {
            dir: self.dir.clone(),
            database_url: self.postgres_url.as_deref().map(Secret::new),
            // Disks of tests are smaller than those that a database is to have.
            disk_reserve_bytes: 2 * 1024 * 1024,
            max_connections: 4,
            ..StoreConfig::default()
        }
    }

    /// The same for a node with a data folder of its own.
    pub fn node_config(&self, node: &str) -> StoreConfig {
        let mut config = self.config();
        let file = config.dir.join(SQLITE_FILE);
        config
            .database_url
            .get_or_insert_with(|| Secret::new(format!("sqlite://{}", file.display())));
        config.dir.push(node);
        config
    }

    /// Where it is, if that is a PostgreSQL server.
    pub fn postgres_url(&self) -> Option<Url> {
        let url = self.postgres_url.as_deref()?;
        Some(Url::parse(url).expect("the URL of the PostgreSQL server"))
    }

    /// The same database, by way of this URL.
    pub fn by_way_of(&self, url: &Url) -> Self {
        Self {
            postgres_url: Some(url.to_string()),
            ..self.clone()
        }
    }

    /// Its kind, for messages and names.
    pub fn kind(&self) -> &'static str {
        if self.postgres_url.is_some() {
            "postgres"
        } else {
            "sqlite"
        }
    }
}

/// The database with the schema has this name, which is another one once the program is another one.
fn schema_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let program = std::env::current_exe().expect("a program");
        let changed = std::fs::metadata(&program).and_then(|program| program.modified());
        let mut hasher = DefaultHasher::new();
        (program, changed.expect("the time of its change")).hash(&mut hasher);
        format!("colloquy_schema_{:016x}", hasher.finish())
    })
}

/// A SQLite file with the schema, which is there for all processes of this program: beside it, and made anew once the program is a newer one.
fn sqlite_schema() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let program = std::env::current_exe().expect("a program");
        let file = program.with_extension("schema.db");
        let changed = |file: &Path| {
            std::fs::metadata(file)
                .and_then(|file| file.modified())
                .ok()
        };
        if changed(&file) <= changed(&program) {
            let folder = program.parent().expect("a folder");
            let made = tempfile::tempdir_in(folder).expect("a temporary folder");
            let database = TestDatabase::sqlite_in(made.path().to_owned());
            // Whoever asks may be in a runtime already.
            let migrated = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.expect("a runtime").block_on(migrate(&database));
            });
            migrated.join().expect("it migrates");
            // Several may have made it at once. Each of them is good.
            std::fs::rename(made.path().join(SQLITE_FILE), &file).expect("it is moved");
        }
        file
    })
}

/// The name of a database of this server with the schema, which is there for all processes of this program.
async fn postgres_schema(server: &str) -> &'static str {
    static MADE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let name = schema_name();
    let make = async || {
        let mut connection = PgConnection::connect(server)
            .await
            .expect("the PostgreSQL server of the tests answers");
        // Of all who come, one makes it. The lock ends with the connection.
        let lock = "SELECT pg_advisory_lock(hashtext('colloquy_schema'))";
        connection.execute(lock).await.expect("a lock");
        let is_there = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(name)
            .fetch_optional(&mut connection)
            .await
            .expect("the names of databases");
        if is_there.is_none() {
            let unfinished = TestDatabase::empty_postgres().await;
            migrate(&unfinished).await;
            let url = unfinished.postgres_url().expect("its URL");
            let unfinished = url.path().trim_start_matches('/');
            let rename = format!("ALTER DATABASE {unfinished} RENAME TO {name}");
            let renamed = sqlx::query(AssertSqlSafe(rename)).execute(&mut connection);
            renamed.await.expect("it gets its name");
        }
        connection.close().await.expect("the connection closes");
    };
    MADE.get_or_init(make).await;
    name
}

/// Gives an empty database the schema, and leaves it.
async fn migrate(database: &TestDatabase) {
    let store = database.config().open().await.expect("a database");
    store.migrate().await.expect("the migrations run");
    store.db().close().await;
}

/// The URL of another database on a server.
fn database_url(server: &str, name: &str) -> String {
    let mut url = Url::parse(server).expect("the URL of the PostgreSQL server");
    url.set_path(name);
    url.into()
}

/// The URL of the server's `postgres` database.
fn server_url() -> &'static String {
    // The child holds the pipe that keeps the server alive.
    static URL: OnceLock<(String, Option<Child>)> = OnceLock::new();
    let (url, _alive) = URL.get_or_init(|| match std::env::var("COLLOQUY_TEST_POSTGRES_URL") {
        Ok(url) => (url, None),
        Err(_) => {
            let (url, alive) = start_server();
            (url, Some(alive))
        }
    });
    url
}

/// Starts a server on a socket in a fresh folder. It ends when the pipe closes, that is with this process, however that
/// ends.
const START: &str = r#"
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || { echo "no /usr/lib/postgresql/*/bin: install Debian's postgresql package" >&2; exit 1; }
dir=$(mktemp -d /tmp/colloquy-pg.XXXXXX)
server=
stop() {
  [ -z "$server" ] || { kill -INT "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' INT TERM HUP
"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
"$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c synchronous_commit=off \
  -c full_page_writes=off -c max_connections=500 -c shared_buffers=64MB </dev/null >>"$dir/log" 2>&1 &
server=$!
for _ in $(seq 100); do
  "$bin/pg_isready" -q -h "$dir" -U postgres && break
  kill -0 "$server" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.1
done
"$bin/pg_isready" -q -h "$dir" -U postgres || { cat "$dir/log" >&2; exit 1; }
echo "$dir"
read -r _ || true
"#;

fn start_server() -> (String, Child) {
    // PostgreSQL refuses to run as root.
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    let mut command = if root {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh", "-c", START]);
        command
    } else {
        let mut command = Command::new("sh");
        command.args(["-c", START]);
        command
    };
    let mut child = command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("PostgreSQL is needed for the tests: cannot start its script");
    let mut dir = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut dir)
        .expect("the script of PostgreSQL says where it is");
    let dir = dir.trim();
    assert!(
        !dir.is_empty(),
        "PostgreSQL is needed for the tests and did not start; its reason is above. Install Debian's postgresql package."
    );
    (
        format!("postgres://postgres@localhost/postgres?host={dir}"),
        child,
    )
}

/// A PostgreSQL server of a test's own, which it may kill and start again. It keeps what it has said it stored.
#[derive(Debug)]
pub struct OwnPostgres {
    dir: PathBuf,
}

impl OwnPostgres {
    /// Makes a server and starts it.
    pub fn start() -> Self {
        let dir = own(
            r#"dir=$(mktemp -d /tmp/colloquy-pg.XXXXXX)
            "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$dir/log" 2>&1
            echo "$dir""#,
            "",
        );
        let server = Self {
            dir: dir.trim().into(),
        };
        server.run();
        server
    }

    fn shell(&self, script: &str) -> String {
        own(script, self.dir.to_str().expect("a path"))
    }

    /// A fresh database on it.
    pub async fn database(&self) -> TestDatabase {
        let dir = self.dir.display();
        let server = format!("postgres://postgres@localhost/postgres?host={dir}");
        TestDatabase::on(&server, "template1").await
    }

    /// Starts it again, and returns when it answers.
    pub fn run(&self) {
        self.shell(
            r#""$bin/pg_ctl" -D "$1/data" -w -l "$1/log" -o "-k $1 -c listen_addresses= -c max_connections=100 \
            -c shared_buffers=32MB" start >/dev/null"#,
        );
    }

    /// Kills it.
    pub fn kill(&self) {
        self.shell(r#""$bin/pg_ctl" -D "$1/data" -m immediate -w stop >/dev/null"#);
    }

    /// Sends a signal to each of its processes.
    pub fn signal(&self, name: &str) {
        let script = r#"main=$(head -n 1 "$1/data/postmaster.pid"); kill -NAME "$main" $(ps -o pid= --ppid "$main")"#;
        self.shell(&script.replace("NAME", name));
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.shell(
            r#"{ "$bin/pg_ctl" -D "$1/data" -m immediate -w stop || true; } >/dev/null 2>&1; rm -rf "$1""#,
        );
    }
}

/// Runs a script as one who may run PostgreSQL, with its programs in `$bin`.
fn own(script: &str, argument: &str) -> String {
    let root = Command::new("id").arg("-u").output();
    let mut command = match root.is_ok_and(|output| output.stdout.starts_with(b"0\n")) {
        true => {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "sh"]);
            command
        }
        false => Command::new("sh"),
    };
    let script = format!(
        "set -eu; bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)\n{script}"
    );
    let done = command
        .args(["-c", &script, "sh", argument])
        .current_dir("/")
        .output()
        .expect("a shell");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "PostgreSQL: {errors}");
    String::from_utf8(done.stdout).expect("UTF-8")
}
