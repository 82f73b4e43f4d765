//! The program yt-dlp: it says what there is at an address of a video platform, as JSON, and fetches nothing for us.
//!
//! It runs with limits of memory, time and output, writes no files, and is told to read no settings of its own.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use colloquy_base::fair_queue::Claim;
use colloquy_config::KnowledgeConfig;
use colloquy_sandbox::{Limits, Sandbox, SandboxError};

/// What it is called, where the settings name no other.
const NAME: &str = "yt-dlp";
/// All memory of the process: an interpreter and pages of a platform.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
const CPU_SECONDS: u64 = 60;
/// Most of the time it waits for the platform.
const TIME: Duration = Duration::from_secs(120);
/// The longest description.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The longest reason that is told of a failure, in characters.
const LONGEST_REASON: usize = 200;

/// Why there is no description.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramFailure {
    /// The program is not there.
    #[error(
        "videos of this address need the program yt-dlp, which is not installed on this server"
    )]
    NotInstalled,
    /// It says why there is nothing.
    #[error("the video cannot be read: {0}")]
    Refused(String),
    /// It takes too much.
    #[error("the description of the video takes too much")]
    Limit,
    /// It could not be run now.
    #[error("{0}")]
    Later(String),
}

impl ProgramFailure {
    /// Whether the same may be described at another time.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Later(_))
    }
}

/// The program.
#[derive(Debug, Clone)]
pub(crate) struct YtDlp(Option<PathBuf>);

impl YtDlp {
    /// The program that the settings name, or the one on the path.
    pub(crate) fn of_settings(settings: &KnowledgeConfig) -> Self {
        let named = settings.yt_dlp.clone();
        Self(named.or_else(|| {
            let path = env::var_os("PATH")?;
            let mut found = env::split_paths(&path).map(|folder| folder.join(NAME));
            found.find(|program| program.is_file())
        }))
    }

    /// The description of the video at an address, JSON that nobody has looked at.
    ///
    /// # Errors
    /// When it is not installed, finds nothing, or takes too much.
    pub(crate) async fn describe(
        &self,
        sandbox: &Sandbox,
        claim: &Claim,
        url: &str,
    ) -> Result<Vec<u8>, ProgramFailure> {
        self.run(sandbox, claim, &["--no-playlist"], url).await
    }

    /// The videos in a list of a channel, each in short, JSON that nobody has looked at.
    ///
    /// # Errors
    /// When it is not installed, finds nothing, or takes too much.
    pub(crate) async fn list(
        &self,
        sandbox: &Sandbox,
        claim: &Claim,
        url: &str,
    ) -> Result<Vec<u8>, ProgramFailure> {
        self.run(sandbox, claim, &["--flat-playlist"], url).await
    }

    /// Runs it on an address, with options beside those that it always gets.
    async fn run(
        &self,
        sandbox: &Sandbox,
        claim: &Claim,
        options: &[&str],
        url: &str,
    ) -> Result<Vec<u8>, ProgramFailure> {
        let Some(program) = self.0.as_deref().filter(|program| program.is_file()) else {
            return Err(ProgramFailure::NotInstalled);
        };
        let common = ["--ignore-config", "--no-cache-dir", "--no-warnings"];
        let mut arguments = [&common[..], &["--dump-single-json"], options].concat();
        arguments.extend(["--", url]);
        let path = env::var("PATH").unwrap_or_default();
        // Its interpreter is found by the path; it has no home.
        let environment = [
            ("PATH", path.as_str()),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C.UTF-8"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ];
        let limits = Limits {
            memory_bytes: MEMORY_BYTES,
            cpu_seconds: CPU_SECONDS,
            time: TIME,
            output_bytes: MOST_BYTES,
        };
        let program: &Path = program;
        let ran = sandbox.run_program_telling(
            claim,
            program,
            &arguments,
            &environment,
            limits,
            Bytes::new(),
        );
        let ended = ran.await.map_err(|error| match error {
            SandboxError::Limit(_) => ProgramFailure::Limit,
            SandboxError::Crashed(why) => ProgramFailure::Refused(why),
            SandboxError::Refused(never) => match never {},
            passing => ProgramFailure::Later(passing.to_string()),
        })?;
        match ended.is_success {
            true => Ok(ended.output),
            false => Err(ProgramFailure::Refused(reason(&ended.told))),
        }
    }
}

/// What the program says of its failure, in a line without its own marks.
fn reason(told: &[u8]) -> String {
    let told = String::from_utf8_lossy(told);
    let lines = told.lines().map(str::trim);
    let line = lines
        .filter_map(|line| line.strip_prefix("ERROR:"))
        .next_back();
    let clean = line.unwrap_or("the program failed").trim();
    let clean = clean.chars().filter(|c| !c.is_control());
    clean.take(LONGEST_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line() {
        let told = b"WARNING: old\nERROR: [platform] abc: Private video. Sign in\x1b[0m\n";
        assert_eq!(reason(told), "[platform] abc: Private video. Sign in[0m");
        assert_eq!(reason(b"\xff\xfe"), "the program failed");
        assert_eq!(
            reason(&[b"ERROR: ", &[b'x'; 5_000][..]].concat()).len(),
            LONGEST_REASON
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_not_installed() {
        let settings = KnowledgeConfig {
            yt_dlp: Some("/no/such/program".into()),
            ..KnowledgeConfig::default()
        };
        let program = YtDlp::of_settings(&settings);
        assert!(!program.0.unwrap().is_file());
    }
}
