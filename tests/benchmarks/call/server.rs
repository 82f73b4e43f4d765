//! The server under measurement: a process of its own, with a partner, a key and a character.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use harness::upstream::Upstream;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

const ADMIN_KEY: &str = "bench-admin-key";

/// Clock ticks a second in `/proc`: `USER_HZ`, which is 100 on every Linux (proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// How long the server may take to start.
const START: Duration = Duration::from_secs(20);

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pid: u32,
    base: String,
    key: String,
    http: reqwest::Client,
    _data: TempDir,
}

impl Server {
    /// Starts a server that asks the upstream, and gives it a partner and a character.
    pub(super) async fn start(
        upstream: &Upstream,
        program: Option<&Path>,
        debug: bool,
    ) -> anyhow::Result<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => beside_this_program()?,
        };
        let data = tempfile::tempdir()?;
        let mut command = Command::new(&program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COLLOQUY_") {
                command.env_remove(name);
            }
        }
        command
            .arg("serve")
            .env("COLLOQUY_STORE_DIR", data.path())
            .env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0")
            .env("COLLOQUY_ADMIN_KEY", ADMIN_KEY)
            .env("COLLOQUY_CALLS_TURN_STOP_MS", "200")
            .stdout(Stdio::piped())
            .stderr(if debug {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .kill_on_drop(true);
        for service in ["CHAT", "TRANSCRIBER", "SYNTHESIZER"] {
            command.env(
                format!("COLLOQUY_{service}_BASE_URL"),
                upstream.base_url().as_str(),
            );
            command.env(format!("COLLOQUY_{service}_MODEL"), "scripted");
        }
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
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(START)
            .build()?;
        let mut server = Self {
            child,
            pid,
            base,
            key: ADMIN_KEY.to_owned(),
            http,
            _data: data,
        };
        let partner = server.post("/api/partners/bench", json!({})).await?;
        server.key = partner["api_key"]
            .as_str()
            .context("the partner has no key")?
            .to_owned();
        let character =
            json!({"name": "guide", "personality": "You are a friendly guide.", "parameters": {}});
        server.post("/api/characters/bench", character).await?;
        Ok(server)
    }

    /// Makes a call and returns its signed URL.
    pub(super) async fn create_call(&self) -> anyhow::Result<String> {
        let body = json!({"character": "repo:bench/guide", "call_time_limit_seconds": "600"});
        let call = self.post("/v2/calls", body).await?;
        Ok(call["data"]["signedUrl"]
            .as_str()
            .context("the call has no signedUrl")?
            .to_owned())
    }

    async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self
            .http
            .post(format!("{}{path}", self.base))
            .header("x-api-key", &self.key)
            .json(&body);
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "POST {path}: {status} {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// The user and system time of the process so far.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
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
    pub(super) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1_024)
    }

    /// Stops the server.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
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
