//! The server under measurement: a process of its own, with a partner and its key.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use harness::upstream::Upstream;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

const ADMIN_KEY: &str = "admin-key-of-the-benchmarks";

/// Clock ticks a second in `/proc`: `USER_HZ`, which is 100 on every Linux (proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// How long the server may take to start.
const START: Duration = Duration::from_secs(20);

/// How to start a server.
#[derive(Debug, Default)]
pub(crate) struct Start<'a> {
    /// The program to measure; the `colloquy` beside this program unless given.
    pub(crate) program: Option<&'a Path>,
    /// Whether its log and its process id are shown.
    pub(crate) debug: bool,
    /// Settings as in the environment, beside where it listens and stores.
    pub(crate) settings: Vec<(String, String)>,
    /// Its configuration file.
    pub(crate) config: String,
}

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    command: Command,
    debug: bool,
    process: Process,
    key: String,
    http: reqwest::Client,
    _data: TempDir,
}

/// A process that listens; it is killed when this is dropped.
#[derive(Debug)]
struct Process {
    child: Child,
    pid: u32,
    base: String,
}

impl Process {
    async fn start(command: &mut Command, debug: bool) -> anyhow::Result<Self> {
        let program = command.as_std().get_program().to_owned();
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let pid = child.id().context("the server ended at once")?;
        let output = child.stdout.take().context("the server has no output")?;
        let ready = tokio::time::timeout(START, ready_line(BufReader::new(output)));
        let base = ready
            .await
            .context("the server did not say that it is ready")??;
        show_process(debug, pid);
        Ok(Self { child, pid, base })
    }
}

impl Server {
    /// Starts a server and gives it the partner `bench`.
    pub(crate) async fn start(start: Start<'_>) -> anyhow::Result<Self> {
        let program = match start.program {
            Some(program) => program.to_owned(),
            None => beside_this_program()?,
        };
        let data = tempfile::tempdir()?;
        let config = data.path().join("colloquy.toml");
        fs::write(&config, start.config)?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COLLOQUY_") {
                command.env_remove(name);
            }
        }
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .env("COLLOQUY_STORE_DIR", data.path())
            .env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0")
            .env("COLLOQUY_HTTP_LAME_DUCK_SECONDS", "0")
            .env("COLLOQUY_ADMIN_KEY", ADMIN_KEY)
            .envs(start.settings)
            .stdout(Stdio::piped())
            .stderr(if start.debug {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .kill_on_drop(true);
        let process = Process::start(&mut command, start.debug).await?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(START)
            .build()?;
        let mut server = Self {
            command,
            debug: start.debug,
            process,
            key: ADMIN_KEY.to_owned(),
            http,
            _data: data,
        };
        let partner = server.post("/api/partners/bench", json!({})).await?;
        server.key = partner["api_key"]
            .as_str()
            .context("the partner has no key")?
            .to_owned();
        Ok(server)
    }

    /// Where it listens: `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.process.base.trim_start_matches("http://")
    }

    /// Gives the partner the character `guide`.
    pub(crate) async fn create_guide(&self) -> anyhow::Result<()> {
        let character =
            json!({"name": "guide", "personality": "You are a friendly guide.", "parameters": {}});
        self.post("/api/characters/bench", character).await?;
        Ok(())
    }

    /// Makes a call with `guide` and returns its signed URL.
    pub(crate) async fn create_call(&self) -> anyhow::Result<String> {
        let body = json!({"character": "repo:bench/guide", "call_time_limit_seconds": "600"});
        let call = self.post("/v2/calls", body).await?;
        let url = call["data"]["signedUrl"].as_str();
        Ok(url.context("the call has no signedUrl")?.to_owned())
    }

    /// Sends JSON as the partner.
    pub(crate) async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.http.post(self.url(path)).json(&body);
        self.ask(path, request).await
    }

    /// Sends JSON with a key.
    pub(crate) async fn post_with(
        &self,
        key: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let request = self.http.post(self.url(path)).json(body);
        answer(path, request.bearer_auth(key)).await
    }

    /// Sends a form as the partner.
    pub(crate) async fn post_form(
        &self,
        path: &str,
        form: reqwest::multipart::Form,
    ) -> anyhow::Result<Value> {
        let request = self.http.post(self.url(path));
        self.ask(path, request.multipart(form)).await
    }

    /// Reads JSON as the partner.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.ask(path, self.http.get(self.url(path))).await
    }

    /// Reads a body as the partner.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Bytes> {
        let request = self.http.get(self.url(path));
        body(path, request.header("x-api-key", &self.key)).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.process.base)
    }

    async fn ask(&self, path: &str, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        answer(path, request.header("x-api-key", &self.key)).await
    }

    /// The user and system time of the process so far.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.pid))?;
        // The name in parentheses may hold anything; the fields after it begin with the third.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat")?;
        let ticks = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse::<u64>)
            .sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
    }

    /// The resident set of the process.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.pid))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1_024)
    }

    /// Stops the server, waits for other work, and starts the server again.
    pub(crate) async fn while_stopped<T>(
        &mut self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.process.child.kill().await?;
        let done = work.await?;
        self.process = Process::start(&mut self.command, self.debug).await?;
        Ok(done)
    }

    /// Stops the server.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.process.child.kill().await?)
    }
}

async fn answer(path: &str, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
    Ok(serde_json::from_slice(&body(path, request).await?)?)
}

async fn body(path: &str, request: reqwest::RequestBuilder) -> anyhow::Result<Bytes> {
    let response = request.send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    let text = || String::from_utf8_lossy(&body);
    ensure!(status.is_success(), "{path}: {status} {}", text());
    Ok(body)
}

/// The settings of a server whose calls ask this upstream for everything.
pub(crate) fn call_settings(upstream: &Upstream) -> Vec<(String, String)> {
    let settings = ["CHAT", "TRANSCRIBER", "SYNTHESIZER"]
        .into_iter()
        .flat_map(|service| {
            let setting =
                |what, value: &str| (format!("COLLOQUY_{service}_{what}"), value.to_owned());
            let base_url = upstream.base_url();
            [
                setting("BASE_URL", base_url.as_str()),
                setting("MODEL", "scripted"),
            ]
        });
    settings.collect()
}

async fn ready_line(output: BufReader<tokio::process::ChildStdout>) -> anyhow::Result<String> {
    let mut lines = output.lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((_, base)) = line.split_once("listening on ") {
            return Ok(base.trim().to_owned());
        }
    }
    bail!("the server ended before it was ready; --debug shows its log")
}

fn beside_this_program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("colloquy");
    ensure!(
        program.exists(),
        "{} is not built; use tests/bench",
        program.display()
    );
    Ok(program)
}

#[expect(clippy::print_stderr, reason = "what --debug asks for")]
fn show_process(debug: bool, pid: u32) {
    if debug {
        eprintln!("the server is process {pid}");
    }
}
