//! The programs of this machine that speak and listen, confined: what they are given was written by strangers.

use std::{io, path::Path, sync::LazyLock};

use colloquy_sandbox::Launcher;
use tokio::process::{Child, Command};

use super::{
    super::{ProviderError, ProviderErrorKind},
    ESPEAK, sounds,
};

/// Starts programs that speak: they read no sound, which is that of all partners.
static SPEAKING: LazyLock<Launcher> =
    LazyLock::new(|| Launcher::new(&[ESPEAK, "stdbuf"], Vec::new()));
/// Starts programs that listen.
static LISTENING: LazyLock<Launcher> =
    LazyLock::new(|| Launcher::new(&["pocketsphinx_batch"], vec![sounds::place()]));

/// Starts a program that speaks. It has no network, writes no files, and reads those of the system alone.
///
/// # Errors
/// When it is not installed, or does not start.
pub(super) fn start(
    program: impl AsRef<Path>,
    prepare: impl FnOnce(&mut Command),
) -> Result<Child, ProviderError> {
    start_by(&SPEAKING, program.as_ref(), prepare)
}

/// Like [`start`], for a program that listens: it also reads what lies in the place of sounds.
///
/// # Errors
/// When it is not installed, or does not start; when there is no folder for sounds.
pub(super) fn start_listening(
    program: impl AsRef<Path>,
    prepare: impl FnOnce(&mut Command),
) -> Result<Child, ProviderError> {
    let program = program.as_ref();
    // Where the place also has something hidden in it, the launcher allows what is there when it begins.
    sounds::prepare().map_err(|error| {
        let reason = format!("there is no folder for sounds: {}", error.kind());
        ProviderError::new(program.to_string_lossy(), ProviderErrorKind::Failed, reason)
    })?;
    start_by(&LISTENING, program, prepare)
}

fn start_by(
    launcher: &Launcher,
    program: &Path,
    prepare: impl FnOnce(&mut Command),
) -> Result<Child, ProviderError> {
    let started = launcher.start(program, prepare);
    started.map_err(|error| not_started(&program.to_string_lossy(), &error))
}

/// A program did not start.
pub(super) fn not_started(program: &str, error: &io::Error) -> ProviderError {
    match error.kind() {
        // Asking again does not install it.
        io::ErrorKind::NotFound => ProviderError::new(
            program,
            ProviderErrorKind::Misconfigured,
            format!("the program {program} is not installed"),
        ),
        kind => ProviderError::new(
            program,
            ProviderErrorKind::Failed,
            format!("the program {program} does not start: {kind}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// What a program does that an attacker has taken over; the shell does each by itself, without another process.
    async fn tries(script: &str) -> (bool, String) {
        let child = start("/bin/bash", |command| {
            command.args(["--norc", "-c", script]).env("LC_ALL", "C");
            command.stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        let output = child.unwrap().wait_with_output().await.unwrap();
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        (output.status.success(), told)
    }

    #[tokio::test]
    async fn a_program_has_no_network_and_no_files_but_those_of_the_system() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "hunter2").unwrap();
        let secret = secret.display();
        let sound = tempfile::NamedTempFile::new_in(sounds::place()).unwrap();
        std::fs::write(sound.path(), "hunter2").unwrap();
        let sound = sound.path().display();
        let this = std::process::id();
        for script in [
            format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
            format!("exec 3<>/dev/udp/127.0.0.1/{port}"),
            format!("read -r line <{secret} && echo $line"),
            format!("read -r line <{sound} || echo $line; [ -n \"$line\" ]"),
            format!("echo gone >{secret}"),
            format!("echo new >{secret}.new"),
            format!("read -r line </proc/{this}/environ && echo read"),
            format!("kill -0 {this}"),
            "(exit 0)".to_owned(),
        ] {
            let (succeeds, told) = tries(&script).await;
            assert!(!succeeds, "{script}: {told}");
            assert!(!told.contains("hunter2"), "{script}: {told}");
        }
        assert_eq!(
            std::fs::read_to_string(secret.to_string()).unwrap(),
            "hunter2"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // What is left is what programs need.
        let (succeeds, told) =
            tries("read -r line </etc/hosts; echo ok >/dev/null && echo ok").await;
        assert!(succeeds && told == "ok\n", "{told}");
    }

    /// A program that was taken over can start others, as this shell does (`vfork`).
    #[tokio::test]
    async fn what_a_program_starts_has_its_limits() {
        let script = "read -r go; /bin/bash --norc -c 'ulimit -t; ulimit -u; ulimit -v'; exit";
        let child = start("/bin/dash", |command| {
            command.args(["-c", script]);
            command.stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        let mut child = child.unwrap();
        // Its limits are set once it has started.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go\n").await.unwrap();
        drop(input);
        let output = child.wait_with_output().await.unwrap();
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        let limits = told.lines().filter_map(|line| line.parse().ok());
        let limits: Vec<u64> = limits.collect();
        let [seconds, threads, kibibytes] = limits[..] else {
            panic!("{told}");
        };
        assert!(seconds <= colloquy_sandbox::PROGRAM_CPU_SECONDS, "{told}");
        assert!(threads <= 4_096 && kibibytes <= 1024 * 1024, "{told}");
    }

    #[tokio::test]
    async fn a_program_knows_nothing_of_the_environment() {
        let (succeeds, told) = tries("compgen -e").await;
        assert!(succeeds, "{told}");
        let names: Vec<&str> = told.split_whitespace().collect();
        assert!(
            names.len() < 8 && !names.contains(&"HOME") && !names.contains(&"CARGO"),
            "{names:?}"
        );
    }
}
