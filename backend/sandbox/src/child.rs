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
    process::{Resource, Rlimit, getrlimit, getuid, setrlimit},
};
use serde::Serialize;

use super::{
    confine::{
        Confined, confine, enter_domain, filter_calls, hide_memory, installation, named, systems,
    },
    frame,
};

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
    confine_decoder(limits)?;
    let input = read_input()?;
    end_with_parent()?;
    let output = BufWriter::new(io::stdout().lock());
    match decode(input) {
        Ok(decoded) => frame::write_output(output, &decoded)?,
        Err(error) => frame::write_error(output, &serde_json::to_vec(&error)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Limits and confines this process and becomes another program, for which both hold: `memory_bytes` is all that it may have. It may read
/// what belongs to the system and to itself, write to its pipes, and connect to the port that it is given; it starts no other process.
///
/// # Errors
/// When the limits cannot be set, or the program does not start.
pub fn become_program(
    limits: &ChildLimits,
    program: &ProgramArguments,
) -> anyhow::Result<ExitCode> {
    be_ended_first();
    limit(limits.memory_bytes, limits.cpu_seconds, PROGRAM_FILES)?;
    let mut readable = systems(&program.hidden);
    readable.extend(installation(&program.program, &program.hidden));
    readable.extend(named(&program.readable, &program.hidden));
    // Its own process is the one that this process becomes.
    readable.push(PathBuf::from("/proc/self"));
    let port = program.port;
    confine(&Confined::Program { readable, port }).context("confining the process")?;
    let error = Command::new(&program.program)
        .args(&program.arguments)
        .exec();
    Err(error).with_context(|| format!("starting {}", program.program.display()))
}

/// A program that is not ours, and what it is told.
#[derive(Debug, Clone, Args)]
pub struct ProgramArguments {
    /// A file or folder that it may read besides; may be repeated.
    #[arg(long)]
    readable: Vec<PathBuf>,
    /// A folder that it may not read, also where it lies in one that it may; may be repeated.
    #[arg(long)]
    hidden: Vec<PathBuf>,
    /// The one TCP port that it may connect to; it has no network without.
    #[arg(long)]
    port: Option<u16>,
    /// Its path.
    program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// How many files a program may have open: libraries, and data of its own.
const PROGRAM_FILES: u64 = 64;

/// How many threads and processes the server's user may have once a child is there. Where system calls cannot be filtered, this bounds what a
/// child can start; an administrator is exempt of it.
pub(super) const MOST_THREADS: u64 = 4_096;

/// Returns true if the system bounds how many threads and processes helper programs start: those of an administrator are not counted.
#[must_use]
pub fn bounds_processes() -> bool {
    !getuid().is_root()
}

/// Takes away what decoding does not need, for good. What the kernel lacks for that is told at the start of the server.
fn confine_decoder(limits: &ChildLimits) -> anyhow::Result<()> {
    let memory = own_memory()?.saturating_add(limits.memory_bytes);
    be_ended_first();
    // Its memory has what partners sent: no other process of the same user is to read it.
    hide_memory().context("hiding its memory")?;
    let whom = Confined::Decoder;
    enter_domain(&whom).context("leaving the files")?;
    // What is open stays open: the three standard streams.
    limit(memory, limits.cpu_seconds, 0)?;
    filter_calls(&whom).context("filtering system calls")?;
    Ok(())
}

/// Where the system runs out of memory, it is to end this process, and not the server. Some systems have no such file.
fn be_ended_first() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

fn limit(memory: u64, cpu_seconds: u64, files: u64) -> anyhow::Result<()> {
    for (resource, most, spare) in [
        (Resource::As, memory, 0),
        // The soft limit sends SIGXCPU, which tells the parent why; the hard one would send SIGKILL.
        (Resource::Cpu, cpu_seconds, 1),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nofile, files, 0),
        (Resource::Nproc, MOST_THREADS, 0),
    ] {
        // One that is lower already cannot be raised.
        let bound = |limit: u64| {
            let lower = getrlimit(resource).maximum;
            Some(lower.map_or(limit, |lower| lower.min(limit)))
        };
        let limit = Rlimit {
            current: bound(most),
            maximum: bound(most + spare),
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
