//! The child's side: limits first, then the input, then the answer.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufWriter, Read as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use rustix::{
    param::page_size,
    process::{Resource, Rlimit, setrlimit},
};
use serde::Serialize;

use super::frame;

/// All that a child finds in its environment: the allocator is not to set memory aside, which would count as used.
pub(super) const ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ARENA_RESERVE", "0")];

/// The limits of a child, as its parent hands them over.
#[derive(Debug, Clone, Args)]
pub struct ChildLimits {
    /// Memory beyond what the program itself has.
    #[arg(long)]
    memory_bytes: u64,
    /// Processor time.
    #[arg(long)]
    cpu_seconds: u64,
}

/// Limits this process, decodes what comes from standard input and answers on standard output.
pub fn run<E: Serialize>(
    limits: &ChildLimits,
    decode: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>,
) -> anyhow::Result<ExitCode> {
    confine(limits)?;
    let input = read_input()?;
    end_with_parent()?;
    let output = BufWriter::new(io::stdout().lock());
    match decode(input) {
        Ok(decoded) => frame::write_output(output, &decoded)?,
        Err(error) => frame::write_error(output, &serde_json::to_vec(&error)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Limits this process and becomes another program, which is given the same limits: `memory_bytes` is all that it may have.
///
/// # Errors
/// When the limits cannot be set, or the program does not start.
pub fn become_program(
    limits: &ChildLimits,
    program: &ProgramArguments,
) -> anyhow::Result<ExitCode> {
    limit(limits.memory_bytes, limits.cpu_seconds, PROGRAM_FILES)?;
    let error = Command::new(&program.program)
        .args(&program.arguments)
        .exec();
    Err(error).with_context(|| format!("starting {}", program.program.display()))
}

/// A program that is not ours, and what it is told.
#[derive(Debug, Clone, Args)]
pub struct ProgramArguments {
    /// Its path.
    program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// How many files a program may have open: libraries, and data of its own.
const PROGRAM_FILES: u64 = 64;

/// Takes away what decoding does not need. A hard limit cannot be raised again.
fn confine(limits: &ChildLimits) -> anyhow::Result<()> {
    let memory = own_memory()?.saturating_add(limits.memory_bytes);
    // What is open stays open: the three standard streams.
    limit(memory, limits.cpu_seconds, 0)
}

fn limit(memory: u64, cpu_seconds: u64, files: u64) -> anyhow::Result<()> {
    // Where the system runs out of memory, it is to end this process, and not the server. Some systems have no such file.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    for (resource, most, spare) in [
        (Resource::As, memory, 0),
        // The soft limit sends SIGXCPU, which tells the parent why; the hard one would send SIGKILL.
        (Resource::Cpu, cpu_seconds, 1),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nofile, files, 0),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most + spare),
        };
        setrlimit(resource, limit).with_context(|| format!("limiting {resource:?}"))?;
    }
    Ok(())
}

/// The address space of this process before it does anything, in bytes.
fn own_memory() -> anyhow::Result<u64> {
    let statistics = fs::read_to_string("/proc/self/statm").context("reading /proc/self/statm")?;
    let pages = statistics.split(' ').next().unwrap_or_default();
    let pages: u64 = pages.parse().context("/proc/self/statm has no size")?;
    Ok(pages * page_size() as u64)
}

/// The input, whose length stands before it. The pipe stays open behind it for as long as the parent lives.
fn read_input() -> anyhow::Result<Vec<u8>> {
    let mut from = io::stdin().lock();
    let mut length = [0; 8];
    from.read_exact(&mut length).context("no input came")?;
    let length = u64::from_le_bytes(length);
    let mut input = Vec::new();
    input.try_reserve_exact(usize::try_from(length)?)?;
    from.take(length).read_to_end(&mut input)?;
    ensure!(input.len() as u64 == length, "the input broke off");
    Ok(input)
}

/// Ends this process when the parent is gone.
fn end_with_parent() -> io::Result<()> {
    let watch = || {
        // Nothing more comes: this returns at the end of the pipe.
        let _ = io::stdin().lock().read(&mut [0]);
        #[expect(
            clippy::disallowed_methods,
            reason = "the parent is gone, and nobody waits for an answer"
        )]
        std::process::exit(1);
    };
    thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(watch)
        .map(|_| ())
}
