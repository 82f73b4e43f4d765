use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::*;

const LIMITS: Limits = Limits {
    memory_bytes: 512 * 1024 * 1024,
    cpu_seconds: 10,
    time: Duration::from_secs(60),
    output_bytes: 1_000,
};

/// A sandbox whose children do this.
fn sandbox(folder: &Path, does: &str) -> Sandbox {
    let program = folder.join("program");
    fs::write(&program, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Sandbox::new(&SandboxConfig {
        processes: 1,
        program: Some(program),
        ..SandboxConfig::default()
    })
}

async fn decode(
    sandbox: &Sandbox,
    caller: impl Into<Caller<'_>>,
) -> Result<Vec<u8>, SandboxError<String>> {
    sandbox.decode(caller, &["it"], LIMITS, Bytes::new()).await
}

/// Counts its runs, and is killed in the first ones as if the system had no memory left.
fn killed(folder: &Path, times: u32) -> Sandbox {
    let runs = folder.join("runs");
    let runs = runs.display();
    let does = format!(
        "echo >> {runs}; [ $(wc -l < {runs}) -gt {times} ] || kill -9 $$\n\
         printf '\\000\\003\\000\\000\\000abc\\001\\000\\000\\000\\000'"
    );
    sandbox(folder, &does)
}

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("runs"))
        .unwrap()
        .lines()
        .count()
}

#[tokio::test]
async fn a_child_that_is_killed_again_and_again_needs_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let background = Claim::new(Priority::Background, "acme");
    let outcome = decode(&killed(folder.path(), u32::MAX), &background).await;
    assert!(
        matches!(outcome, Err(SandboxError::Limit(Limit::Memory))),
        "{outcome:?}"
    );
    assert_eq!(runs(folder.path()), MOST_KILLED as usize);
}

#[tokio::test]
async fn a_child_that_was_killed_once_runs_again_where_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = killed(folder.path(), 1);
    let background = Claim::new(Priority::Background, "acme");
    assert_eq!(decode(&sandbox, &background).await.unwrap(), b"abc");
    assert_eq!(runs(folder.path()), 2);

    let folder = tempfile::tempdir().unwrap();
    let request = Claim::new(Priority::Request, "acme");
    let outcome = decode(&killed(folder.path(), 1), &request).await;
    assert!(matches!(outcome, Err(SandboxError::Killed)), "{outcome:?}");
    assert_eq!(runs(folder.path()), 1);
}

#[tokio::test]
async fn time_is_counted_from_when_a_child_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox(folder.path(), "sleep 0.4; exit 3");
    let claim = Claim::new(Priority::Background, "acme");
    let spent = [Spent::default(), Spent::default()];
    let [one, other] = spent.each_ref().map(|spent| Caller::counted(&claim, spent));
    let begun = runtime_now();
    let outcomes = tokio::join!(decode(&sandbox, one), decode(&sandbox, other));
    let in_all = begun.elapsed();
    assert!(outcomes.0.is_err() && outcomes.1.is_err());
    let [one, other] = spent.map(|spent| spent.time());
    assert!(one.as_millis() >= 400 && other.as_millis() >= 400);
    // There is one place, for which one of them waited.
    assert!(one + other <= in_all, "{one:?}, {other:?} of {in_all:?}");
}

/// One that goes on, keeps its standard error open, and takes longer than anybody waits.
#[tokio::test]
async fn a_program_that_gives_too_much_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox(folder.path(), "while :; do echo more; done; exec sleep 600");
    let program = Program {
        path: Path::new("/no/matter"),
        arguments: &[],
        environment: &[],
        port: None,
    };
    let claim = Claim::new(Priority::Request, "acme");
    let input = Bytes::new();
    // Nothing else ends it.
    let limits = Limits {
        cpu_seconds: 600,
        ..LIMITS
    };
    let outcome = sandbox
        .run_program_telling::<Vec<u8>>(&claim, program, limits, input.clone())
        .await;
    assert!(
        matches!(outcome, Err(SandboxError::Limit(Limit::Output))),
        "{outcome:?}"
    );
    let outcome = sandbox.run_program(&claim, program, limits, input).await;
    assert!(
        matches!(outcome, Err(SandboxError::Limit(Limit::Output))),
        "{outcome:?}"
    );
}

/// What is kept of an output: how much there was, and the most that came at once.
#[derive(Debug, Default)]
struct Counted {
    bytes: usize,
    most: usize,
}

impl ProgramOutput for Counted {
    fn accept(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.most = self.most.max(bytes.len());
    }
}

#[tokio::test]
async fn an_output_is_read_as_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox(folder.path(), "exec head -c 8000000 /dev/zero");
    let program = Program {
        path: Path::new("/no/matter"),
        arguments: &[],
        environment: &[("PATH", "/usr/bin:/bin")],
        port: None,
    };
    let limits = Limits {
        output_bytes: 8_000_000,
        ..LIMITS
    };
    let claim = Claim::new(Priority::Request, "acme");
    let ended = sandbox.run_program_telling::<Counted>(&claim, program, limits, Bytes::new());
    let counted = ended.await.unwrap().output;
    assert_eq!(counted.bytes, 8_000_000);
    assert!(counted.most <= 64 * 1024, "{counted:?}");
}
