//! Decoding what is not trusted, in a child process.
//!
//! A decoder that is fed by a stranger may want gigabytes, run for ever, or crash, and an allocation that fails ends its
//! process. So the server's own program is run again for each file ([`child`]): it limits itself before it reads anything,
//! takes the file from its standard input and gives the result, or a typed error, to its standard output, in frames
//! ([`frame`]). It gets no environment, no files and no way to open one, no network, no other process ([`confine`]), and it ends with its
//! parent, whatever happens to that. Programs that are not ours are confined, too, whether a child becomes one for a single input, or a
//! capability keeps one ([`Launcher`]), and what is the server's own is hidden from all of them ([`hide`]). The parent bounds time and output once more, and how many children there are; who waits for one is served fairly. Where
//! the system runs out of memory, it ends children before the server, and a child that it ends again and again needs too much.
//!
//! What is decoded, and how, belongs to the capability that asks.

pub mod child;
mod confine;
mod frame;
mod launcher;
mod private;
mod program;

use std::{
    convert::Infallible,
    future::Future,
    io,
    num::NonZero,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

pub use self::{
    confine::{Protection, hide_memory, missing, withhold_descriptors},
    launcher::{Launcher, PROGRAM_CPU_SECONDS, program_on_path},
    private::{hidden_around, hide, readable_around},
    program::{Program, ProgramEnd, ProgramOutput},
};

use bytes::Bytes;
use colloquy_base::{
    clock::runtime_now,
    fair_queue::{Bounds, Claim, FairQueue, Full, Priority},
};
use colloquy_config::SandboxConfig;
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, Command},
    time::{sleep, timeout},
};

/// The running program, also when its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How long a child that has closed its output may take to end.
const LAST_MOMENT: Duration = Duration::from_secs(2);
/// How many may wait for a child, for each that may run.
const WAITING_FOR_EACH: usize = 32;
/// How often a child is started in the background for one input that somebody else ends it at, and the wait between.
const MOST_KILLED: u32 = 3;
const AFTER_KILLED: Duration = Duration::from_secs(5);

/// What a child may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory beyond what the program itself has, in bytes. It holds the input and the output, too.
    pub memory_bytes: u64,
    /// Processor time, in whole seconds.
    pub cpu_seconds: u64,
    /// Time in all.
    pub time: Duration,
    /// What it may give, in bytes.
    pub output_bytes: usize,
}

/// A limit that a child went beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Its memory, or all that the system has.
    Memory,
    /// Its time.
    Time,
    /// What it may give.
    Output,
}

/// Why there is no result. `E` is what the decoder itself says of its input.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError<E> {
    /// The decoder refused the input.
    #[error(transparent)]
    Refused(E),
    /// The input needs more than it may.
    #[error("it went beyond its limit of {0:?}")]
    Limit(Limit),
    /// The decoder crashed, or gave no answer that could be understood.
    #[error("the decoder failed: {0}")]
    Crashed(String),
    /// Somebody else ended the child.
    #[error("the decoder was killed")]
    Killed,
    /// Too many wait already.
    #[error(transparent)]
    Full(#[from] Full),
    /// No child could be started.
    #[error("the decoder does not start: {0}")]
    NotStarted(io::Error),
}

impl<E> SandboxError<E> {
    /// Whether the same input may be decoded at another time.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Killed | Self::Full(_) | Self::NotStarted(_))
    }
}

/// How long children ran in all, and were rested after somebody killed them; what they waited for their places does not count.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

impl Spent {
    fn add(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(millis, Ordering::Relaxed);
    }

    /// The time until now.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Whom a child works for.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    claim: &'a Claim,
    spent: Option<&'a Spent>,
}

impl<'a> Caller<'a> {
    /// One whose children's time is added up.
    #[must_use]
    pub fn counted(claim: &'a Claim, spent: &'a Spent) -> Self {
        let spent = Some(spent);
        Self { claim, spent }
    }

    fn spend(self, time: Duration) {
        if let Some(spent) = self.spent {
            spent.add(time);
        }
    }
}

impl<'a> From<&'a Claim> for Caller<'a> {
    fn from(claim: &'a Claim) -> Self {
        Self { claim, spent: None }
    }
}

/// What a child is given.
#[derive(Debug, Clone)]
pub enum Input {
    /// These bytes.
    Bytes(Bytes),
    /// What is in this file, of which little is in memory at a time.
    File(PathBuf),
}

impl From<Bytes> for Input {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl Input {
    /// How long it is, in bytes.
    ///
    /// # Errors
    /// When there is no such file.
    pub async fn length(&self) -> io::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::File(path) => Ok(tokio::fs::metadata(path).await?.len()),
        }
    }

    async fn open(self) -> io::Result<Open> {
        match self {
            Self::Bytes(bytes) => Ok(Open::Bytes(bytes)),
            Self::File(path) => {
                let file = File::open(path).await?;
                let length = file.metadata().await?.len();
                Ok(Open::File(file, length))
            }
        }
    }
}

/// An input that can be read.
enum Open {
    Bytes(Bytes),
    File(File, u64),
}

/// Children that decode.
#[derive(Debug)]
pub struct Sandbox {
    program: PathBuf,
    queue: FairQueue,
    /// What programs that are not ours may read besides what belongs to them.
    readable: Vec<PathBuf>,
}

impl Sandbox {
    /// As the settings say. Nothing is started before it is needed.
    #[must_use]
    pub fn new(config: &SandboxConfig) -> Self {
        let processes = match config.processes {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            processes => processes as usize,
        };
        let waiting = processes * WAITING_FOR_EACH;
        let bounds = Bounds {
            slots: processes,
            waiting,
            waiting_of_owner: waiting.div_ceil(2),
        };
        let own = || PathBuf::from(OWN_PROGRAM);
        Self {
            program: config.program.clone().unwrap_or_else(own),
            queue: FairQueue::new("sandbox", bounds),
            readable: config.readable.clone(),
        }
    }

    /// Runs `colloquy decode WHAT` on an input, and gives what it made of it.
    ///
    /// # Errors
    /// What the decoder says; a limit that it went beyond; whatever else went wrong with the child.
    pub async fn decode<E: DeserializeOwned>(
        &self,
        caller: impl Into<Caller<'_>>,
        what: &[&str],
        limits: Limits,
        input: impl Into<Input>,
    ) -> Result<Vec<u8>, SandboxError<E>> {
        let input = input.into();
        let run = || self.run(what, limits, input.clone());
        let result = self.in_place(caller.into(), run).await;
        let outcome = match &result {
            Ok(_) => "ok",
            Err(SandboxError::Refused(_)) => "refused",
            Err(SandboxError::Limit(_)) => "limit",
            Err(_) => "failed",
        };
        metrics::counter!("colloquy_sandbox_runs_total", "outcome" => outcome).increment(1);
        result
    }

    /// Runs a child when there is a place for it. In the background one that somebody else ended, as the system does without memory, runs
    /// again a few times; then it is taken for one that needs more than there is.
    async fn in_place<T, E, F>(
        &self,
        caller: Caller<'_>,
        run: impl Fn() -> F,
    ) -> Result<T, SandboxError<E>>
    where
        F: Future<Output = Result<T, SandboxError<E>>>,
    {
        let mut killed = 0;
        loop {
            let slot = self.queue.enter(caller.claim).await?;
            let begun = runtime_now();
            let result = run().await;
            drop(slot);
            caller.spend(begun.elapsed());
            match result {
                Err(SandboxError::Killed) if caller.claim.priority == Priority::Background => {
                    killed += 1;
                    tracing::warn!(killed, "a child was killed");
                    if killed == MOST_KILLED {
                        return Err(SandboxError::Limit(Limit::Memory));
                    }
                    sleep(AFTER_KILLED).await;
                    caller.spend(AFTER_KILLED);
                }
                result => return result,
            }
        }
    }

    async fn run<E: DeserializeOwned>(
        &self,
        what: &[&str],
        limits: Limits,
        input: Input,
    ) -> Result<Vec<u8>, SandboxError<E>> {
        let open = input.open().await.map_err(SandboxError::NotStarted)?;
        let mut child = self.start(what, limits).map_err(SandboxError::NotStarted)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SandboxError::Crashed("it has no pipes".to_owned()));
        };
        let answer = async {
            tokio::select! {
                answer = frame::read(stdout, limits.output_bytes) => answer,
                never = feed(stdin, open) => match never {},
            }
        };
        let Ok(answer) = timeout(limits.time, answer).await else {
            end(&mut child).await;
            return Err(SandboxError::Limit(Limit::Time));
        };
        match answer {
            Ok(frame::Answer::Output(output)) => {
                end(&mut child).await;
                Ok(output)
            }
            Ok(frame::Answer::Error(error)) => {
                end(&mut child).await;
                Err(match serde_json::from_slice(&error) {
                    Ok(error) => SandboxError::Refused(error),
                    Err(_) => SandboxError::Crashed("an error of no known form".to_owned()),
                })
            }
            Ok(frame::Answer::TooLong) => {
                end(&mut child).await;
                Err(SandboxError::Limit(Limit::Output))
            }
            Ok(frame::Answer::Broken) | Err(_) => {
                let ended = timeout(LAST_MOMENT, child.wait()).await;
                end(&mut child).await;
                Err(match ended {
                    Ok(Ok(status)) => of_status(status),
                    Ok(Err(error)) => SandboxError::Crashed(error.kind().to_string()),
                    Err(_) => SandboxError::Crashed("it closed its output".to_owned()),
                })
            }
        }
    }

    fn start(&self, what: &[&str], limits: Limits) -> io::Result<Child> {
        self.command(limits).args(what).spawn()
    }

    fn command(&self, limits: Limits) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("decode")
            .args(["--memory-bytes", &limits.memory_bytes.to_string()])
            .args(["--cpu-seconds", &limits.cpu_seconds.to_string()])
            .env_clear()
            .envs(child::ENVIRONMENT)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// Writes the input, and then keeps the pipe open, whose end would tell the child that we are gone. A child that takes no
/// more says on its output why; one whose input breaks off hears that by the end of the pipe.
async fn feed(mut stdin: ChildStdin, input: Open) -> Infallible {
    let written = async {
        match input {
            Open::Bytes(bytes) => {
                stdin.write_all(&(bytes.len() as u64).to_le_bytes()).await?;
                stdin.write_all(&bytes).await?;
            }
            Open::File(file, length) => {
                stdin.write_all(&length.to_le_bytes()).await?;
                let mut rest = file.take(length);
                let copied = tokio::io::copy(&mut rest, &mut stdin).await?;
                if copied < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        stdin.flush().await
    };
    if written
        .await
        .is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe)
    {
        drop(stdin);
    }
    std::future::pending().await
}

/// Ends a child that is not needed any more.
async fn end(child: &mut Child) {
    // Both fail when it has ended already.
    let _ = child.start_kill();
    let _ = timeout(LAST_MOMENT, child.wait()).await;
}

/// Why a child ended that gave no whole answer.
fn of_status<E>(status: ExitStatus) -> SandboxError<E> {
    match status.signal().map(Signal::from_named_raw) {
        // Rust's answer to an allocation that fails.
        Some(Some(Signal::ABORT)) => SandboxError::Limit(Limit::Memory),
        Some(Some(Signal::XCPU)) => SandboxError::Limit(Limit::Time),
        Some(Some(Signal::KILL | Signal::TERM | Signal::INT)) => SandboxError::Killed,
        _ => SandboxError::Crashed(status.to_string()),
    }
}

#[cfg(test)]
mod tests;
