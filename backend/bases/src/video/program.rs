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
use colloquy_sandbox::{Limit, Limits, Sandbox, SandboxError};

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
    /// It takes too long, which is mostly the platform's doing.
    #[error("the description of the video takes too long")]
    TooLong,
    /// It could not be run now, or the platform does not answer now. What that says is not repeated here, since the log has this.
    #[error("{0}")]
    Later(String),
}

impl ProgramFailure {
    /// Whether the same may be described at another time. What takes too long may do so each time.
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
            SandboxError::Limit(Limit::Time) => ProgramFailure::TooLong,
            SandboxError::Limit(_) => ProgramFailure::Limit,
            SandboxError::Crashed(why) => ProgramFailure::Refused(why),
            SandboxError::Refused(never) => match never {},
            passing => ProgramFailure::Later(passing.to_string()),
        })?;
        match ended.is_success {
            true => Ok(ended.output),
            false => Err(failure(&ended.told)),
        }
    }
}

/// What passes, by what the program says of it in lower case. Nothing else does: videos that are private, gone, for members or of an age, and
/// addresses of none.
const PASSING: [(&str, &str); 16] = [
    ("not a bot", ASKS_FOR_LESS),
    ("too many requests", ASKS_FOR_LESS),
    ("rate-limited", ASKS_FOR_LESS),
    ("try again later", ASKS_FOR_LESS),
    ("timed out", NO_ANSWER),
    ("temporary failure in name resolution", NO_ANSWER),
    ("failed to resolve", NO_ANSWER),
    ("failed to establish a new connection", NO_ANSWER),
    ("connection refused", NO_ANSWER),
    ("connection reset", NO_ANSWER),
    ("connection aborted", NO_ANSWER),
    ("closed connection", NO_ANSWER),
    ("network is unreachable", NO_ANSWER),
    ("no route to host", NO_ANSWER),
    ("eof occurred", NO_ANSWER),
    ("incompleteread", NO_ANSWER),
];
const ASKS_FOR_LESS: &str = "the video's platform refuses to answer so many requests";
const NO_ANSWER: &str = "the video's platform could not be reached";
/// What stands before the status with which a platform answers.
const STATUS: &str = "http error ";

/// Why the program failed, by what it says.
fn failure(told: &[u8]) -> ProgramFailure {
    let told = String::from_utf8_lossy(told);
    let lines = told.lines().map(str::trim);
    let line = lines
        .filter_map(|line| line.strip_prefix("ERROR:"))
        .next_back();
    let line = line.unwrap_or("the program failed").trim();
    match passing(&line.to_lowercase()) {
        Some(reason) => ProgramFailure::Later(reason),
        None => {
            let clean = line.chars().filter(|c| !c.is_control());
            ProgramFailure::Refused(clean.take(LONGEST_REASON).collect())
        }
    }
}

/// What is wrong now and may not be later, in words of this server.
fn passing(line: &str) -> Option<String> {
    let status = line.split_once(STATUS).and_then(|(_, rest)| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u16>().ok()
    });
    if let Some(status @ (408 | 425 | 429 | 500..=599)) = status {
        return Some(format!("the video's platform answers with status {status}"));
    }
    let mut signs = PASSING.iter();
    let (_, reason) = signs.find(|(sign, _)| line.contains(sign))?;
    Some((*reason).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(told: &[u8]) -> String {
        match failure(told) {
            ProgramFailure::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

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

    /// As yt-dlp says it.
    #[test]
    fn what_passes_is_told_from_what_stays() {
        for line in [
            "[youtube] x: Sign in to confirm you\u{2019}re not a bot. Use --cookies-from-browser or --cookies for the authentication.",
            "[youtube] x: Video unavailable. This content isn't available, try again later. The current session has been rate-limited by YouTube for up to an hour.",
            "[vimeo] x: Unable to download JSON metadata: HTTP Error 429: Too Many Requests (caused by <HTTPError 429: Too Many Requests>)",
            "[generic] Unable to download webpage: HTTP Error 503: Service Unavailable (caused by <HTTPError 503: Service Unavailable>)",
            "[youtube] x: Unable to download API page: [Errno -3] Temporary failure in name resolution (caused by TransportError('[Errno -3] ..'))",
            "[vimeo] x: Unable to download webpage: HTTPSConnection(host='vimeo.example', port=443): Failed to resolve 'vimeo.example' ([Errno -2] Name or service not known)",
            "[youtube] x: Unable to download webpage: <urlopen error [Errno 111] Connection refused> (caused by URLError(..))",
            "[youtube] x: Unable to download webpage: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
            "[youtube] x: Unable to download webpage: The read operation timed out",
        ] {
            let failure = failure(format!("ERROR: {line}\n").as_bytes());
            assert!(failure.may_pass(), "{line}: {failure:?}");
            let words = failure.to_string();
            assert!(words.starts_with("the video's platform"), "{words}");
        }
        for line in [
            "[youtube] x: Private video. Sign in if you've been granted access to this video.",
            "[youtube] x: Sign in to confirm your age. This video may be inappropriate for some users.",
            "[youtube] x: Video unavailable. This video has been removed by the uploader",
            "[youtube] x: Join this channel to get access to members-only content like this video.",
            "[generic] Unable to download webpage: HTTP Error 404: Not Found (caused by <HTTPError 404: Not Found>)",
            "Unsupported URL: https://videos.example/x",
            "[youtube:tab] x: This channel does not have a streams tab",
        ] {
            assert_eq!(reason(format!("ERROR: {line}\n").as_bytes()), line);
        }
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
