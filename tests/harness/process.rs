//! The real binary, as an operator runs it.

use std::{
    fs::Permissions,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::{Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use colloquy::Config;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
pub use test_routes::binary;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
    time::timeout,
};

use crate::{
    TestDatabase,
    app::{ADMIN_KEY, TestPartner, TestQuota, client, send},
    patience,
};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;
/// What a command is put behind that is to run as that user.
pub const BECOME_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// How long a server may take to start, and to stop once its time to drain is over, on a machine of ordinary speed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command on this database, without the settings of the environment.
pub fn command(database: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COLLOQUY_") {
            command.env_remove(name);
        }
    }
    let config = database.config();
    command.env("COLLOQUY_STORE_DIR", &config.dir);
    if let Some(url) = &config.database_url {
        command.env("COLLOQUY_STORE_DATABASE_URL", url.reveal());
    }
    command
}

/// Runs a command to its end.
pub fn run(database: &TestDatabase, arguments: &[&str]) -> Output {
    command(database, arguments)
        .output()
        .expect("the binary runs")
}

/// Runs a command that must succeed, and gives what it printed.
#[track_caller]
pub fn run_ok(database: &TestDatabase, arguments: &[&str]) -> String {
    let output = run(database, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The binary, serving in a process of its own; it is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    base: String,
    http: reqwest::Client,
    log: Arc<Mutex<String>>,
    _settings: NamedTempFile,
    /// Its files stay for as long as the process may open another connection to them.
    _database: TestDatabase,
    /// A copy of the binary.
    programs: Option<TempDir>,
}

impl Server {
    /// Starts it on this database with changed settings. Their secrets do not go along: a service gets `[redacted]` for its
    /// key.
    pub async fn start(database: &TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        Self::start_logging_to(database, change, Stdio::piped()).await
    }

    /// Starts it behind another command that becomes it, such as a shell with `exec "$@"`.
    pub async fn start_behind(
        database: &TestDatabase,
        change: impl FnOnce(&mut Config),
        behind: &[&str],
    ) -> Self {
        Self::launch(database, change, Stdio::piped(), behind, binary()).await
    }

    /// Starts one whose memory is measured ([`Self::peak_bytes`]). Its allocator gives back at once what is freed. By default it keeps that for a
    /// second, so that what one thread freed counts beside what another one takes.
    pub async fn start_measured(database: &TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        Self::start_behind(database, change, &["env", "MIMALLOC_PURGE_DELAY=0"]).await
    }

    /// Starts it as somebody whom the permissions of files bind: they do not bind the administrator. The folder of the database
    /// becomes theirs.
    pub async fn start_unprivileged(
        database: &TestDatabase,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let dir = &database.config().dir;
        std::fs::create_dir_all(dir).expect("a folder");
        let is_administrator = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
        if !is_administrator {
            return Self::start(database, change).await;
        }
        // The folders above the binary may be closed to others.
        let programs = tempfile::tempdir().expect("a folder");
        let everybody = Permissions::from_mode(0o755);
        std::fs::set_permissions(&programs, everybody).expect("its owner changes it");
        let program = programs.path().join("colloquy");
        std::fs::copy(binary(), &program).expect("a copy");
        std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).expect("the administrator");
        let mut server =
            Self::launch(database, change, Stdio::piped(), &BECOME_NOBODY, &program).await;
        server.programs = Some(programs);
        server
    }

    /// Starts it with a standard error of the test's own. Only a pipe is kept for [`Server::log`].
    pub async fn start_logging_to(
        database: &TestDatabase,
        change: impl FnOnce(&mut Config),
        log_to: Stdio,
    ) -> Self {
        Self::launch(database, change, log_to, &[], binary()).await
    }

    /// Starts a program, behind another one that becomes it.
    #[expect(clippy::print_stderr, reason = "a test that fails shows the log")]
    async fn launch(
        database: &TestDatabase,
        change: impl FnOnce(&mut Config),
        log_to: Stdio,
        behind: &[&str],
        program: &Path,
    ) -> Self {
        let mut config = Config::default();
        config.http.listen = ([127, 0, 0, 1], 0).into();
        config.http.lame_duck_seconds = 0;
        config.store.disk_reserve_bytes = database.config().disk_reserve_bytes;
        // A server looks for its programs when it starts, and this one takes a second of a processor to say that it is there.
        config.knowledge.yt_dlp = Some("/no/such/program".into());
        change(&mut config);
        let settings = tempfile::Builder::new().suffix(".toml").tempfile();
        let settings = settings.expect("a file");
        let json = serde_json::to_value(&config).expect("settings");
        std::fs::write(&settings, toml(&json)).expect("the settings are written");
        let readable = Permissions::from_mode(0o644);
        std::fs::set_permissions(&settings, readable).expect("its owner changes it");
        let file = settings.path().to_str().expect("a path");
        // A write beyond a limit of file sizes is an error, and does not end the process.
        let served = command(database, &["serve", "--config", file]);
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .args(behind)
            .arg(program)
            .args(served.get_args());
        for (name, value) in served.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .env("COLLOQUY_ADMIN_KEY", ADMIN_KEY)
            // Tests ask for a state far more often than a partner would.
            .env("COLLOQUY_LIMITS_REQUEST_BURST", "100000")
            .stdout(Stdio::piped())
            .stderr(log_to);
        let mut child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(pipe) = child.stderr.take() {
            let mut logged = BufReader::new(pipe).lines();
            let kept = Arc::clone(&log);
            tokio::spawn(async move {
                while let Ok(Some(line)) = logged.next_line().await {
                    eprintln!("{line}");
                    let mut log = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    log.push_str(&line);
                    log.push('\n');
                }
            });
        }
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let base = async {
            while let Some(line) = lines.next_line().await.expect("its output") {
                if let Some((_, base)) = line.split_once(" listening on ") {
                    return base.to_owned();
                }
            }
            panic!("the server ended before it was ready");
        };
        let base = timeout(patience(PATIENCE), base)
            .await
            .expect("the server is ready");
        // Whatever else it prints has a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            child,
            base,
            http: client(),
            log,
            _settings: settings,
            _database: database.clone(),
            programs: None,
        }
    }

    /// A command of whoever the server runs as.
    pub fn command(&self, program: &str) -> Command {
        match self.programs {
            None => Command::new(program),
            Some(_) => {
                let mut command = Command::new(BECOME_NOBODY[0]);
                command.args(&BECOME_NOBODY[1..]).arg(program);
                command
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.clone()
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A request with a key.
    pub fn request(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path)).bearer_auth(key)
    }

    /// `GET` with a key.
    pub async fn get(&self, key: &str, path: &str) -> Value {
        send(self.request(key, Method::GET, path)).await.expect(200)
    }

    /// Makes a partner.
    pub async fn partner(&self, id: &str) -> TestPartner {
        let path = format!("/api/partners/{id}");
        let made = self.made(ADMIN_KEY, &path, &json!({})).await;
        TestPartner {
            id: id.to_owned(),
            key: text(&made, "api_key"),
        }
    }

    /// Makes a quota of a partner; `body` as the interface takes it.
    pub async fn quota(&self, partner: &TestPartner, body: &Value) -> TestQuota {
        let path = format!("/api/quotas/{}", partner.id);
        let made = self.made(&partner.key, &path, body).await;
        TestQuota {
            path: format!("{path}/{}", text(&made, "id")),
            key: text(&made, "api_key"),
        }
    }

    async fn made(&self, key: &str, path: &str, body: &Value) -> Value {
        let request = self.request(key, Method::POST, path).json(body);
        send(request).await.expect(201)
    }

    /// The most memory that it has taken so far, in bytes, as Linux counts it.
    pub fn peak_bytes(&self) -> u64 {
        let pid = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        peak.expect("a number of kB") * 1024
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal by its name, without `SIG`.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Sends SIGKILL, and waits until the process is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it is killed");
    }

    /// Waits until it has ended by itself.
    pub async fn ended(mut self) -> ExitStatus {
        let ended = timeout(patience(PATIENCE), self.child.wait()).await;
        ended.expect("the server ends").expect("its status")
    }
}

fn text(made: &Value, field: &str) -> String {
    made[field].as_str().expect("a text").to_owned()
}

/// An object as TOML, which writes the same strings, numbers, booleans and arrays as JSON, and leaves null out.
fn toml(value: &Value) -> String {
    let entries = value.as_object().into_iter().flatten();
    let entries = entries.filter(|(_, value)| !value.is_null());
    let lines = entries.map(|(key, value)| format!("{key:?} = {}\n", inline(value)));
    lines.collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            let entries = entries.map(|(key, value)| format!("{key:?} = {}", inline(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            let values = values.iter().map(inline).collect::<Vec<_>>();
            format!("[{}]", values.join(", "))
        }
        value => value.to_string(),
    }
}
