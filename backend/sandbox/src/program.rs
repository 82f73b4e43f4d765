//! Programs that are not ours: each is what a child becomes, for one input.

use std::{convert::Infallible, io, path::Path, process::ExitStatus, process::Stdio};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use super::{
    Caller, LAST_MOMENT, Limit, Limits, Sandbox, SandboxError, end, of_status, private::hidden,
};

/// How much of what a program says of itself is kept.
const MOST_TOLD: usize = 16 * 1024;
/// The most that it may write there, in bytes: more is no message to anybody.
const MOST_WRITTEN: u64 = 1024 * 1024;
/// How much of what it writes is read at once.
const PIECE: usize = 64 * 1024;

/// A program that is not ours, and what it is given besides its input.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// All that it finds in its environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// The TCP port that it may connect to, on any IPv4 address; without one it has no network.
    pub port: Option<u16>,
}

/// What is kept of a program's output, which is given to it as it comes. A program that is run again begins with another one.
pub trait ProgramOutput: Default {
    /// Accepts the next bytes.
    fn accept(&mut self, bytes: &[u8]);
}

/// All of it.
impl ProgramOutput for Vec<u8> {
    fn accept(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// How a program ended that says itself why it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEnd<T> {
    /// Whether it says that it succeeded.
    pub is_success: bool,
    /// What it wrote.
    pub output: T,
    /// What it wrote to its standard error, the first 16 KiB.
    pub told: Vec<u8>,
}

/// How a program ended within its limits.
struct Ended<T> {
    status: ExitStatus,
    output: T,
    told: Vec<u8>,
}

impl Sandbox {
    /// Runs a program that is not ours on an input, and gives what it writes. Its limits are its own: `memory_bytes` is all that it
    /// has. It may read what belongs to the system, to itself and to its interpreter, and what the settings add, without what is hidden
    /// ([`super::hide`]); it writes no files, starts no processes, and finds nothing in its environment but what it is given.
    ///
    /// # Errors
    /// A limit that it went beyond; whatever else went wrong with it.
    pub async fn run_program(
        &self,
        caller: impl Into<Caller<'_>>,
        program: Program<'_>,
        limits: Limits,
        input: Bytes,
    ) -> Result<Vec<u8>, SandboxError<Infallible>> {
        let run = async || {
            let command = self.program_command(program, limits);
            let ended: Ended<Vec<u8>> = run_to_end(command, limits, input.clone()).await?;
            match ended.status.success() {
                true => Ok(ended.output),
                false => Err(of_status(ended.status)),
            }
        };
        self.in_place(caller.into(), run).await
    }

    /// Like [`Sandbox::run_program`], for a program that says on its standard error why it fails, which is then no error here. What it writes
    /// need not be kept as a whole.
    ///
    /// # Errors
    /// A limit that it went beyond; whatever else went wrong with it.
    pub async fn run_program_telling<T: ProgramOutput>(
        &self,
        caller: impl Into<Caller<'_>>,
        program: Program<'_>,
        limits: Limits,
        input: Bytes,
    ) -> Result<ProgramEnd<T>, SandboxError<Infallible>> {
        let run = async || {
            let mut command = self.program_command(program, limits);
            command.stderr(Stdio::piped());
            let ended: Ended<T> = run_to_end(command, limits, input.clone()).await?;
            match ended.status.code() {
                Some(code) => Ok(ProgramEnd {
                    is_success: code == 0,
                    output: ended.output,
                    told: ended.told,
                }),
                None => Err(of_status(ended.status)),
            }
        };
        self.in_place(caller.into(), run).await
    }

    fn program_command(&self, program: Program<'_>, limits: Limits) -> Command {
        let mut command = self.command(limits);
        command.arg("program");
        for (option, paths) in [("--readable", &self.readable), ("--hidden", &hidden())] {
            for path in paths {
                command.arg(option).arg(path);
            }
        }
        if let Some(port) = program.port {
            command.args(["--port", &port.to_string()]);
        }
        command.arg("--").arg(program.path).args(program.arguments);
        command.envs(program.environment.iter().copied());
        command
    }
}

async fn run_to_end<T: ProgramOutput>(
    mut command: Command,
    limits: Limits,
    input: Bytes,
) -> Result<Ended<T>, SandboxError<Infallible>> {
    let mut child = command.spawn().map_err(SandboxError::NotStarted)?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(SandboxError::Crashed("it has no pipes".to_owned()));
    };
    let stderr = child.stderr.take();
    let (mut output, mut told) = (T::default(), vec![]);
    let work = async {
        let feed = async {
            // A program that takes no more says why by its end.
            let _: io::Result<()> = stdin.write_all(&input).await;
            drop(stdin);
            std::future::pending::<Infallible>().await
        };
        let listen = async {
            if let Some(mut stderr) = stderr {
                let mut first = (&mut stderr).take(MOST_TOLD as u64);
                let _: io::Result<usize> = first.read_to_end(&mut told).await;
                // It is to go on, whatever else it says.
                let mut rest = stderr.take(MOST_WRITTEN);
                let written = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
                if written.is_ok_and(|written| written == MOST_WRITTEN) {
                    return Err(Stop::TooLong);
                }
            }
            Ok(())
        };
        let read = async {
            let mut left = limits.output_bytes;
            let mut piece = vec![0; PIECE];
            loop {
                let read = stdout.read(&mut piece).await?;
                if read == 0 {
                    return Ok::<(), Stop>(());
                }
                // Nobody waits for the end of a program that gives too much.
                left = left.checked_sub(read).ok_or(Stop::TooLong)?;
                output.accept(&piece[..read]);
            }
        };
        tokio::select! {
            read = async { tokio::try_join!(read, listen) } => read.map(|_| ()),
            never = feed => match never {},
        }
    };
    let Ok(read) = timeout(limits.time, work).await else {
        end(&mut child).await;
        return Err(SandboxError::Limit(Limit::Time));
    };
    if matches!(read, Err(Stop::TooLong)) {
        end(&mut child).await;
        return Err(SandboxError::Limit(Limit::Output));
    }
    let ended = timeout(LAST_MOMENT, child.wait()).await;
    end(&mut child).await;
    match (read, ended) {
        (Ok(()), Ok(Ok(status))) => Ok(Ended {
            status,
            output,
            told,
        }),
        (_, Ok(Ok(status))) => Err(of_status(status)),
        (Err(Stop::Broken(error)), _) | (_, Ok(Err(error))) => {
            Err(SandboxError::Crashed(error.kind().to_string()))
        }
        (_, Err(_)) => Err(SandboxError::Crashed("it closed its output".to_owned())),
    }
}

/// Why the output of a program is not read to its end.
enum Stop {
    TooLong,
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}
