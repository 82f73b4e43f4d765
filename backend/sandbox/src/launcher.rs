//! Programs of this machine that a capability keeps, such as synthesizers. What they are given was written by strangers, so they are started by a
//! thread that is confined, and inherit that: they read what belongs to the system, write no files, and have no network. What they start themselves
//! ends with the server at the latest, however that ends ([`Group`]).

use std::{
    env, fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use nix::sys::signal::{SigSet, Signal};
use rustix::{
    io::Errno,
    process::{Pid, Resource, Rlimit, getrlimit, prlimit},
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
};

use super::{
    child::MOST_THREADS,
    confine::{Confined, confine, installation, named, systems},
    private::hidden,
};

/// The address space of a program, in bytes: PocketSphinx takes 300 MB.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// How many files it may have open.
const MOST_FILES: u64 = 64;
/// Processor time of a program, in seconds, after which the system kills it. One that stays has to be replaced before.
pub const PROGRAM_CPU_SECONDS: u64 = 7_200;

/// A program to start, and where its process goes.
struct Launch {
    command: Command,
    runtime: Handle,
    started: mpsc::SyncSender<io::Result<Child>>,
}

/// What the keeper of a group does: it waits until nobody holds the other end of its standard input, and kills the group. A supervisor that stops
/// the server may signal each of its processes.
const KEEPER: &str = "trap '' HUP INT TERM; read -r _; kill -s KILL 0";

/// A process group, which programs are started in and cannot leave. Its leader kills all of it when this is dropped, or when this process has ended.
#[derive(Debug)]
struct Group {
    keeper: std::process::Child,
    id: i32,
}

impl Group {
    fn begin() -> io::Result<Self> {
        let keeper = std::process::Command::new("/bin/sh")
            .args(["-c", KEEPER])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        // Whoever asks for a program is not to hear that this one is not there.
        let keeper = keeper.map_err(|error| io::Error::other(format!("/bin/sh: {error}")))?;
        let id = i32::try_from(keeper.id()).map_err(io::Error::other)?;
        Ok(Self { keeper, id })
    }

    /// Returns false if somebody has ended the keeper.
    fn is_kept(&mut self) -> bool {
        matches!(self.keeper.try_wait(), Ok(None))
    }
}

/// The confined thread, and the group of what it starts.
#[derive(Debug)]
struct Starter {
    launches: mpsc::Sender<Launch>,
    group: Group,
}

/// Starts programs by a confined thread.
#[derive(Debug)]
pub struct Launcher {
    programs: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    starter: Mutex<Option<Starter>>,
}

impl Launcher {
    /// A launcher of these programs, which may read below these paths besides what belongs to the system and to them, without what is hidden
    /// ([`super::hide`]) when the first of them starts. Nothing is started before it is needed.
    #[must_use]
    pub fn new(programs: &[&str], readable: Vec<PathBuf>) -> Self {
        Self {
            programs: programs.iter().map(PathBuf::from).collect(),
            readable,
            starter: Mutex::default(),
        }
    }

    /// Starts a program, found by the path of this process, in an environment of its own, which has no secrets. It ends when it is dropped.
    ///
    /// # Errors
    /// When the thread cannot be confined; when the program does not start.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn start(&self, program: &Path, prepare: impl FnOnce(&mut Command)) -> io::Result<Child> {
        let mut command = Command::new(found(program)?);
        command.env_clear().kill_on_drop(true);
        for name in ["PATH", "LANG", "LC_ALL"] {
            command.envs(env::var_os(name).map(|value| (name, value)));
        }
        prepare(&mut command);
        let (launches, group) = self.starter()?;
        command.process_group(group);
        let (started, start) = mpsc::sync_channel(1);
        let launch = Launch {
            command,
            runtime: Handle::current(),
            started,
        };
        let gone = || io::Error::other("the thread that starts programs is gone");
        launches.send(launch).map_err(|_| gone())?;
        let child = start.recv().map_err(|_| gone())??;
        // The thread may not; nobody has given the program anything to read yet.
        bound(&child)?;
        Ok(child)
    }

    /// Returns the thread, which is started unless it is there, and the group of what it starts.
    fn starter(&self) -> io::Result<(mpsc::Sender<Launch>, i32)> {
        let mut starter = self.starter.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = starter.take_if(|starter| starter.group.is_kept());
        let kept = kept.map_or_else(|| self.begin(), Ok)?;
        let kept = starter.insert(kept);
        Ok((kept.launches.clone(), kept.group.id))
    }

    fn begin(&self) -> io::Result<Starter> {
        let hidden = hidden();
        let mut readable = systems(&hidden);
        for program in &self.programs {
            readable.extend(
                found(program)
                    .map(|program| installation(&program, &hidden))
                    .unwrap_or_default(),
            );
        }
        readable.extend(named(&self.readable, &hidden));
        let group = Group::begin()?;
        let whom = Confined::Launcher {
            readable,
            group: group.id,
        };
        let (launches, launch) = mpsc::channel::<Launch>();
        let (ready, confined) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("launcher".to_owned())
            .spawn(move || {
                // What the kernel lacks is told at the start of the server.
                let is_confined =
                    leave_signals_to_others().and_then(|()| confine(&whom).map(|_| ()));
                let may_begin = is_confined.is_ok();
                let waits = ready.send(is_confined).is_ok();
                if may_begin && waits {
                    launch.iter().for_each(Launch::start);
                }
            })?;
        confined.recv().map_err(io::Error::other)??;
        Ok(Starter { launches, group })
    }
}

/// Blocks the signals of the server in this thread. The system may deliver them to any thread, and a confined one cannot pass them on: its
/// filter refuses the system call by which their handler wakes the server. Programs that it starts have them blocked, too, and are ended by SIGKILL.
fn leave_signals_to_others() -> io::Result<()> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    signals.thread_block().map_err(io::Error::from)
}

impl Launch {
    fn start(mut self) {
        let _runtime = self.runtime.enter();
        // Who does not wait any more loses it, and with that it is killed.
        let _ = self.started.send(self.command.spawn());
    }
}

/// Bounds what a process may take, and what it starts, which inherits each limit for itself. The filter of the thread lets a program that was
/// taken over start others, as the thread does; the number of threads bounds them, of which an administrator is exempt, and they end with their
/// [`Group`]. The system, when it has no memory left, ends all of them before the server.
fn bound(child: &Child) -> io::Result<()> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let Some(pid) = pid.and_then(Pid::from_raw) else {
        return Ok(());
    };
    for (resource, most) in [
        (Resource::As, MOST_BYTES),
        (Resource::Cpu, PROGRAM_CPU_SECONDS),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, MOST_FILES),
        (Resource::Nproc, MOST_THREADS),
    ] {
        // One that is lower already cannot be raised.
        let lower = getrlimit(resource).maximum;
        let most = lower.map_or(most, |lower| lower.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        match prlimit(Some(pid), resource, limit) {
            // It has ended already.
            Ok(_) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Some systems have no such file.
    let _ = fs::write(
        format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero()),
        "1000",
    );
    Ok(())
}

/// The file of a program. Its path is absolute, so that it is started without a copy of this process, which a confined thread cannot make.
fn found(program: &Path) -> io::Result<PathBuf> {
    if program.is_absolute() {
        return Ok(program.to_owned());
    }
    let file = program_on_path(program).filter(|file| file.is_absolute());
    file.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns the file of a program in one of the folders of `PATH`, the first of them that has it.
#[must_use]
pub fn program_on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut files = env::split_paths(&path).map(|folder| folder.join(name.as_ref()));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncReadExt as _, time::timeout};

    use super::*;

    #[tokio::test]
    async fn what_is_hidden_in_a_readable_folder_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let (open, secret) = (folder.path().join("open"), data.join("secret"));
        for file in [&open, &secret] {
            fs::write(file, "hunter2\n").unwrap();
        }
        crate::hide([data]).unwrap();
        let launcher = Launcher::new(&["bash"], vec![folder.path().to_owned()]);
        let read = async |file: &Path| {
            let start = |command: &mut Command| {
                command
                    .args(["--norc", "-c", "read -r line <\"$0\" && echo $line"])
                    .arg(file)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
            };
            let child = launcher.start(Path::new("bash"), start).unwrap();
            child.wait_with_output().await.unwrap().stdout
        };
        assert_eq!(read(&open).await, b"hunter2\n");
        assert_eq!(read(&secret).await, b"");
    }

    #[tokio::test]
    async fn what_is_started_is_bounded() {
        let launcher = Launcher::new(&["sleep"], vec![]);
        let start = |command: &mut Command| {
            command.arg("60");
        };
        let child = launcher.start(Path::new("sleep"), start).unwrap();
        let file = |name: &str| {
            let file = format!("/proc/{}/{name}", child.id().unwrap());
            fs::read_to_string(file).unwrap()
        };
        let limits = file("limits");
        let limit = |name: &str| {
            let line = limits.lines().find(|line| line.starts_with(name))?;
            line[name.len()..].split_whitespace().next()?.parse().ok()
        };
        assert_eq!(limit("Max address space"), Some(MOST_BYTES), "{limits}");
        assert_eq!(limit("Max open files"), Some(MOST_FILES), "{limits}");
        for none in ["Max core file size", "Max file size"] {
            assert_eq!(limit(none), Some(0), "{none}: {limits}");
        }
        // What the tests themselves may have can be less.
        for (name, resource, most) in [
            ("Max cpu time", Resource::Cpu, PROGRAM_CPU_SECONDS),
            ("Max processes", Resource::Nproc, MOST_THREADS),
        ] {
            let lower = getrlimit(resource).maximum;
            let most = lower.map_or(most, |lower| lower.min(most));
            assert_eq!(limit(name), Some(most), "{name}: {limits}");
        }
        assert_eq!(file("oom_score_adj").trim(), "1000");
    }

    /// The handler of a signal that came to such a thread could not wake the server.
    #[tokio::test]
    async fn the_thread_takes_no_signal_of_the_server() {
        let launcher = Launcher::new(&["true"], vec![]);
        let child = launcher.start(Path::new("true"), |_| ());
        child.unwrap().wait().await.unwrap();
        let mut launchers = 0;
        for thread in fs::read_dir("/proc/self/task").unwrap() {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            if !status.starts_with("Name:\tlauncher\n") {
                continue;
            }
            launchers += 1;
            let blocked = status.lines().find_map(|it| it.strip_prefix("SigBlk:\t"));
            let blocked = u64::from_str_radix(blocked.unwrap(), 16).unwrap();
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                assert!(blocked >> (signal as u32 - 1) & 1 == 1, "{status}");
            }
        }
        assert!(launchers > 0);
    }

    /// A program that was taken over can start others, as this shell does (`vfork`).
    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_the_launcher() {
        let launcher = Launcher::new(&["/bin/dash"], vec![]);
        let start = |command: &mut Command| {
            command
                .args(["-c", "/bin/dash -c 'echo here; exec sleep 600'; :"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
        };
        let mut child = launcher.start(Path::new("/bin/dash"), start).unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut told = [0; 5];
        output.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, b"here\n");
        child.kill().await.unwrap();
        drop(launcher);
        // The pipe ends with the last process that has it.
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(60), output.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "it runs on");
    }

    #[tokio::test]
    async fn a_group_whose_keeper_was_ended_is_followed_by_another() {
        let launcher = Launcher::new(&["true"], vec![]);
        let run = async || {
            let child = launcher.start(Path::new("true"), |_| ());
            child.unwrap().wait().await.unwrap().success()
        };
        assert!(run().await);
        {
            let mut starter = launcher.starter.lock().unwrap();
            let keeper = &mut starter.as_mut().unwrap().group.keeper;
            keeper.kill().unwrap();
            keeper.wait().unwrap();
        }
        assert!(run().await);
    }
}
