//! Processes that decode what is not trusted: their limits, and what becomes of those that go beyond them.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use colloquy::{
    config::SandboxConfig,
    fair_queue::{Claim, Priority},
    sandbox::{Limit, Limits, Sandbox, SandboxError},
    speech::OggError,
};
use harness::{
    TestDatabase,
    elsewhere::eventually,
    patience,
    process::{Server, binary},
    sounds::generated,
};
use tokio::time::Instant;

const PLENTY: Limits = Limits {
    memory_bytes: 512 * 1024 * 1024,
    cpu_seconds: 60,
    time: Duration::from_secs(60),
    output_bytes: 64 * 1024 * 1024,
};

type Decoded = Result<Vec<u8>, SandboxError<OggError>>;

fn sandbox(program: &Path) -> Sandbox {
    Sandbox::new(&SandboxConfig {
        processes: 2,
        program: Some(program.to_owned()),
        ..SandboxConfig::default()
    })
}

async fn decode(sandbox: &Sandbox, limits: Limits, file: &[u8]) -> Decoded {
    let claim = Claim::new(Priority::Background, "acme");
    let what = ["audio", "--longest-ms", "3600000"];
    let file = Bytes::copy_from_slice(file);
    sandbox.decode(&claim, &what, limits, file).await
}

/// Silence in Vorbis.
fn silence(seconds: u32) -> Vec<u8> {
    let source = format!("anullsrc=r=48000:cl=mono:d={seconds}");
    generated(&source, "a.ogg", &["-c:a", "libvorbis"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_decoded_within_its_limits_and_not_beyond() {
    let sandbox = sandbox(binary());
    let file = silence(60);
    let began = Instant::now();
    let samples = decode(&sandbox, PLENTY, &file).await.unwrap();
    let took = began.elapsed();
    println!("{} bytes of sound took {took:?}", samples.len());
    assert!(samples.len().abs_diff(60 * 32_000) < 100);
    let began = Instant::now();
    decode(&sandbox, PLENTY, &silence(1)).await.unwrap();
    println!("a second took {:?}", began.elapsed());

    let little_memory = Limits {
        memory_bytes: 4 * 1024 * 1024,
        ..PLENTY
    };
    let little_output = Limits {
        output_bytes: samples.len() - 1,
        ..PLENTY
    };
    let little_time = Limits {
        time: Duration::from_millis(1),
        ..PLENTY
    };
    for (limits, expected) in [
        (little_memory, Limit::Memory),
        (little_output, Limit::Output),
        (little_time, Limit::Time),
    ] {
        let outcome = decode(&sandbox, limits, &file).await;
        let is_expected = matches!(&outcome, Err(SandboxError::Limit(limit)) if *limit == expected);
        assert!(
            is_expected,
            "{expected:?}: {:?}",
            outcome.map(|out| out.len())
        );
    }
    for broken in [&file[..100], b"RIFF....WAVE", b""] {
        let outcome = decode(&sandbox, PLENTY, broken).await;
        let refused = matches!(outcome, Err(SandboxError::Refused(_)));
        assert!(refused, "{:?}", outcome.map(|out| out.len()));
    }
}

/// Ten minutes of silence take longer than a second to decode in a build for tests.
#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_that_goes_on_ends_with_its_processor_time() {
    let little = Limits {
        cpu_seconds: 1,
        ..PLENTY
    };
    let file = silence(600);
    let outcome = decode(&sandbox(binary()), little, &file).await;
    let ended = matches!(outcome, Err(SandboxError::Limit(Limit::Time)));
    assert!(ended, "{:?}", outcome.map(|out| out.len()));
}

/// A program that does this instead of decoding.
fn script(folder: &Path, name: &str, does: &str) -> Sandbox {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox(&path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_misbehaves_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let run_within = async |time: Duration, name: &str, does: &str| {
        let sandbox = script(folder.path(), name, does);
        let limits = Limits {
            time,
            output_bytes: 1_000,
            ..PLENTY
        };
        // More than a pipe holds, which nobody reads.
        decode(&sandbox, limits, &[0; 300_000]).await
    };
    let run = async |name: &str, does: &str| {
        run_within(patience(Duration::from_secs(5)), name, does).await
    };
    let good = r"printf '\000\003\000\000\000abc\001\000\000\000\000'; sleep 60";
    assert_eq!(run("good", good).await.unwrap(), b"abc");
    let refused = r#"printf '\002\015\000\000\000"Unsupported"'"#;
    let outcome = run("refuses", refused).await;
    assert!(matches!(
        outcome,
        Err(SandboxError::Refused(OggError::Unsupported))
    ));

    let began = Instant::now();
    let time = Duration::from_millis(500);
    let outcome = run_within(time, "hangs", "sleep 600").await;
    assert!(matches!(outcome, Err(SandboxError::Limit(Limit::Time))));
    assert!(began.elapsed() < patience(Duration::from_secs(20)));
    let endless = r"while printf '\000\003\000\000\000abc'; do :; done";
    let outcome = run("endless", endless).await;
    assert!(matches!(outcome, Err(SandboxError::Limit(Limit::Output))));
    // As the system does that has no memory left.
    let outcome = run("killed", "kill -9 $$").await;
    assert!(matches!(outcome, Err(SandboxError::Limit(Limit::Memory))));
    for (name, does) in [
        ("silent", "exit 0"),
        ("failing", "exit 3"),
        ("crashing", "kill -SEGV $$"),
        ("truncated", r"printf '\000\003\000\000\000ab'"),
        ("unended", r"printf '\000\003\000\000\000abc'"),
        ("greedy", r"printf '\000\377\377\377\377abc'; sleep 60"),
        ("unknown", r"printf '\011\000\000\000\000'; sleep 60"),
        ("malformed", r"printf '\002\003\000\000\000abc'"),
    ] {
        let outcome = run(name, does).await;
        let Err(error @ SandboxError::Crashed(_)) = outcome else {
            panic!("{name}: {outcome:?}");
        };
        assert!(!error.may_pass(), "{name}");
    }
    let missing = sandbox(&folder.path().join("missing"));
    let outcome = decode(&missing, PLENTY, b"").await;
    assert!(matches!(outcome, Err(SandboxError::NotStarted(_))));
}

/// The child of a server that is gone.
struct Orphan(Child);

impl Orphan {
    fn start() -> Self {
        let child = Command::new(binary())
            .args([
                "decode",
                "--memory-bytes",
                "100000000",
                "--cpu-seconds",
                "7",
            ])
            .args(["audio", "--longest-ms", "3600000"])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn send(&mut self, file: &[u8]) {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(&(file.len() as u64).to_le_bytes()).unwrap();
        input.write_all(file).unwrap();
    }

    async fn ends(mut self) {
        drop(self.0.stdin.take());
        eventually("the child ends with its parent", || {
            let ended = self.0.try_wait().unwrap().is_some();
            std::future::ready(ended)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_takes_its_limits_first_and_ends_with_its_parent() {
    let waiting = Orphan::start();
    let limits = format!("/proc/{}/limits", waiting.0.id());
    eventually("it has limited itself", || async {
        let limits = fs::read_to_string(&limits).unwrap();
        let limit = |name: &str| {
            let line = limits.lines().find(|line| line.starts_with(name))?;
            line[name.len()..].split_whitespace().next()?.parse().ok()
        };
        limit("Max open files") == Some(0_u64)
            && limit("Max core file size") == Some(0)
            && limit("Max file size") == Some(0)
            && limit("Max cpu time") == Some(7)
            && limit("Max processes").is_some_and(|most| most <= 4_096)
            && limit("Max address space").is_some_and(|bytes| bytes < 2_000_000_000)
    })
    .await;
    println!("{}", fs::read_to_string(&limits).unwrap());
    let status = format!("/proc/{}/status", waiting.0.id());
    eventually("it has given up what it does not need", || async {
        let status = fs::read_to_string(&status).unwrap();
        let has = |line: &str| status.lines().any(|it| it == line);
        // Where the kernel has no filters, there is no such line.
        let is_filtered = has("Seccomp:\t2") || !status.contains("Seccomp:");
        is_filtered && has("NoNewPrivs:\t1")
    })
    .await;
    let score = format!("/proc/{}/oom_score_adj", waiting.0.id());
    assert_eq!(fs::read_to_string(score).unwrap().trim(), "1000");
    waiting.ends().await;
    // Also one that has all it wants to know, and nobody who reads what it gives.
    let mut working = Orphan::start();
    working.send(&silence(600));
    working.ends().await;
}

/// What the kernel hides of a process belongs to the administrator, whoever runs it.
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_the_server_is_not_for_other_processes_of_its_user() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let database = TestDatabase::sqlite_in(folder.path().join("data"));
    let server = Server::start_unprivileged(&database, |_| {}).await;
    let process = format!("/proc/{}", server.pid());
    let owner = |path: &str| fs::metadata(path).unwrap().uid();
    assert_ne!(owner(&process), 0);
    assert_eq!(owner(&format!("{process}/environ")), 0);
    assert_eq!(owner(&format!("{process}/mem")), 0);
}
