//! What a process gives up for good before it works on what is not trusted.
//!
//! Two layers of the kernel, neither of which can be lifted again: a filter of system calls ([`calls`], seccomp) and a domain of files, ports
//! and signals ([`domain`], Landlock). Both hold for a thread and for everything that it starts, so they are either taken by a child before it
//! begins, or by a thread that starts programs ([`super::Launcher`]).
//!
//! A kernel that lacks one of them is no reason not to run, but the operator is told: [`missing`] says what is missing here.

mod calls;
mod domain;

use std::{fmt, io, path::PathBuf, sync::OnceLock, thread};

use rustix::process::{DumpableBehavior, getpid, set_dumpable_behavior};

pub(crate) use self::domain::{SYSTEM, installation, named, systems};

/// The first descriptor that is no standard stream.
const FIRST_OF_OTHERS: i32 = 3;

/// Who is confined.
#[derive(Debug, Clone)]
pub(crate) enum Confined {
    /// A child that decodes: it has its pipes, and needs neither files, processes nor a network.
    Decoder,
    /// A process that becomes a program which is not ours: it reads files below these paths, and may connect to one port.
    Program {
        readable: Vec<PathBuf>,
        port: Option<u16>,
    },
    /// A thread that starts programs which are not ours. They read files below these paths, write to nothing but their pipes and devices
    /// that forget, and have no network. They are in this process group, and stay there.
    Launcher { readable: Vec<PathBuf>, group: i32 },
}

/// A protection that this kernel does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// Filters of system calls.
    Seccomp,
    /// Domains of files.
    Landlock,
    /// Domains of TCP ports, which Landlock has from Linux 6.7 on.
    LandlockTcp,
}

impl Protection {
    /// Its name, as `/health/deep` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::LandlockTcp => "landlock_tcp",
        }
    }

    /// What follows where it is missing.
    #[must_use]
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Seccomp => {
                "system calls of decoding processes are not filtered: a decoder that is taken over acts as the server's user (CONFIG_SECCOMP_FILTER)"
            }
            Self::Landlock => {
                "helper programs can read every file that the server's user can read (CONFIG_SECURITY_LANDLOCK, and landlock in lsm=)"
            }
            Self::LandlockTcp => {
                "yt-dlp could connect past the proxy that it is given (Linux 6.7 with Landlock can prevent that)"
            }
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Confines this thread and what it starts, as far as the kernel can, and returns what it cannot.
///
/// # Errors
/// When a layer that the kernel has cannot be taken.
pub(crate) fn confine(whom: &Confined) -> io::Result<Vec<Protection>> {
    // The domain first: its system calls are none that the filter leaves.
    let mut missing = enter_domain(whom)?;
    missing.extend(filter_calls(whom)?);
    Ok(missing)
}

/// Takes the first layer alone, which opens files.
pub(crate) fn enter_domain(whom: &Confined) -> io::Result<Vec<Protection>> {
    domain::enter(whom)
}

/// Takes the last layer, after which no limits can be set.
pub(crate) fn filter_calls(whom: &Confined) -> io::Result<Option<Protection>> {
    let process = getpid().as_raw_nonzero().get();
    let filter = calls::filter(whom, process).map_err(io::Error::other)?;
    let is_filtered = calls::apply(&filter)?;
    Ok((!is_filtered).then_some(Protection::Seccomp))
}

/// Makes the memory of this process and its part of `/proc` accessible to administrators alone, not to other processes of its user. It gives no
/// core either.
///
/// # Errors
/// When the system refuses it.
pub fn hide_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Keeps what this process was started with, its standard streams aside, from the programs that it starts. A supervisor may have left open what
/// they are not to read, and a domain holds for what is opened from then on. To be called before anything else is open, since it holds for that, too.
pub fn withhold_descriptors() {
    close_fds::set_fds_cloexec(FIRST_OF_OTHERS, &[]);
}

/// The protections that this kernel does not have, as found out by a thread that confined itself and ended.
///
/// # Errors
/// When the thread cannot be started, or a layer that the kernel has cannot be taken.
pub fn missing() -> io::Result<&'static [Protection]> {
    static MISSING: OnceLock<Vec<Protection>> = OnceLock::new();
    if let Some(missing) = MISSING.get() {
        return Ok(missing);
    }
    let whom = Confined::Program {
        readable: Vec::new(),
        port: Some(1),
    };
    let probe = thread::Builder::new()
        .name("confine-probe".to_owned())
        .spawn(move || confine(&whom))?;
    let missing = probe
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the probe stopped")))?;
    Ok(MISSING.get_or_init(|| missing))
}

#[cfg(test)]
mod tests;
