//! The program yt-dlp: it says what there is at an address of a video platform, as JSON, and stores nothing for us.
//!
//! It runs confined, with limits of memory, time and output, writes no files, and is told to read no settings of its own. It uses the extractors
//! of the wanted platforms alone, since others follow addresses wherever they lead, and all that it fetches goes through a proxy of the guarded
//! client, which is there for as long as it runs, and whose address with its credentials the program reads from its standard input.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use colloquy_base::fair_queue::Claim;
use colloquy_config::KnowledgeConfig;
use colloquy_fetch::{Fetcher, ProxyBounds};
use colloquy_sandbox::{
    Limit, Limits, Program, ProgramEnd, ProgramOutput, Sandbox, SandboxError, program_on_path,
};

/// What it is called, where the settings name no other.
const NAME: &str = "yt-dlp";
/// All memory of the process: an interpreter and pages of a platform.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
const CPU_SECONDS: u64 = 60;
/// Most of the time it waits for the platform.
const TIME: Duration = Duration::from_secs(120);
/// The longest description of a video, which is in memory as a whole.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The longest list of a channel, which is not: an entry has two kilobytes.
const MOST_LIST_BYTES: usize = 256 * 1024 * 1024;
/// What it may fetch: pages and programs of a platform are some megabytes, and the lists of a large channel some tens of them. It gives up by
/// itself on an origin that says nothing for 20 seconds.
const PROXY: ProxyBounds = ProxyBounds {
    connections: 8,
    bytes: 256 * 1024 * 1024,
    idle: Duration::from_secs(30),
    time: TIME,
};
/// The longest reason that is told of a failure, in characters.
const LONGEST_REASON: usize = 200;
/// The longest version and name of an option that are told, in characters.
const LONGEST_WORD: usize = 40;
/// The reason of a program that tells none.
const NOTHING_TOLD: &str = "the program failed";

/// Why there is no description of a video.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramFailure {
    /// The program is not there.
    #[error(
        "videos of this address need the program yt-dlp, which is not installed on this server"
    )]
    NotInstalled,
    /// The program does not know an option that it is always given.
    #[error("yt-dlp {version} on this server is too old: it does not know the option {option}")]
    TooOld {
        /// The version that it says it has.
        version: String,
        /// The option, with its dashes.
        option: String,
    },
    /// The program fails before it looks at any address.
    #[error("yt-dlp on this server does not run: {0}")]
    Broken(String),
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

/// The program, and what it runs with.
#[derive(Debug)]
pub(crate) struct YtDlp<'a> {
    program: Option<PathBuf>,
    extractors: String,
    sandbox: &'a Sandbox,
    fetcher: &'a Fetcher,
    claim: Claim,
}

impl<'a> YtDlp<'a> {
    /// The program that the settings name, or the one on the path, working for somebody.
    pub(crate) fn new(
        settings: &KnowledgeConfig,
        sandbox: &'a Sandbox,
        fetcher: &'a Fetcher,
        claim: Claim,
    ) -> Self {
        let named = settings.yt_dlp.clone();
        Self {
            program: named.or_else(|| program_on_path(NAME)),
            extractors: settings.video_extractors.join(","),
            sandbox,
            fetcher,
            claim,
        }
    }

    /// The description of the video at an address, JSON that nobody has looked at.
    ///
    /// # Errors
    /// When it is not installed, finds nothing, or takes too much.
    pub(crate) async fn describe(&self, url: &str) -> Result<Vec<u8>, ProgramFailure> {
        self.run(&["--no-playlist"], url, MOST_BYTES).await
    }

    /// The first videos in a list of a channel, each in short, JSON that is taken as it comes.
    ///
    /// # Errors
    /// When it is not installed, finds nothing, or takes too much.
    pub(crate) async fn list<T: ProgramOutput>(
        &self,
        url: &str,
        most: usize,
    ) -> Result<T, ProgramFailure> {
        let items = format!("1:{most}");
        let options = ["--flat-playlist", "--playlist-items", &items];
        self.run(&options, url, MOST_LIST_BYTES).await
    }

    /// Checks that the program runs and knows the options that it is given. Returns its version.
    ///
    /// # Errors
    /// When it is not installed, does not run, or is too old.
    pub(crate) async fn check(&self) -> Result<String, ProgramFailure> {
        let arguments = self.options();
        let ended = self.start::<Vec<u8>>(&arguments, None, Bytes::new(), MOST_BYTES);
        let ended = ended.await?;
        if let Some(option) = unknown_option(&ended.told) {
            return Err(self.too_old(option).await);
        }
        // It looks at its options before it misses an address.
        match String::from_utf8_lossy(&ended.told).contains(NO_ADDRESS) {
            true => Ok(self.version().await),
            false => Err(ProgramFailure::Broken(last_line(&ended.told))),
        }
    }

    /// Runs it on an address, with options beside those that it always gets.
    async fn run<T: ProgramOutput>(
        &self,
        options: &[&str],
        url: &str,
        output_bytes: usize,
    ) -> Result<T, ProgramFailure> {
        // No proxy is opened for a program that is not there.
        self.file()?;
        let proxy = self.fetcher.proxy(PROXY).await;
        let proxy = proxy.map_err(|error| ProgramFailure::Later(error.to_string()))?;
        let mut arguments = self.options();
        arguments.extend(options);
        arguments.extend(["--", url]);
        // Every user of the system may read arguments, and other processes of this user an environment: the credentials come by standard input.
        let settings = Bytes::from(format!("--proxy {}\n", proxy.url()));
        let running = self.start::<T>(&arguments, Some(proxy.port()), settings, output_bytes);
        let ended = tokio::select! {
            ended = running => ended?,
            never = proxy.serve() => match never {},
        };
        if ended.is_success {
            return Ok(ended.output);
        }
        match unknown_option(&ended.told) {
            Some(option) => Err(self.too_old(option).await),
            None => Err(failure(&ended.told)),
        }
    }

    /// The options that it always gets. Further ones are on its standard input.
    fn options(&self) -> Vec<&str> {
        vec![
            "--ignore-config",
            "--no-plugin-dirs",
            "--no-remote-components",
            "--no-cache-dir",
            "--no-warnings",
            "--use-extractors",
            &self.extractors,
            "--config-locations",
            "-",
            "--dump-single-json",
        ]
    }

    async fn too_old(&self, option: String) -> ProgramFailure {
        let version = self.version().await;
        ProgramFailure::TooOld { version, option }
    }

    /// The version that the program says it has.
    async fn version(&self) -> String {
        let arguments = ["--ignore-config", "--version"];
        let told = self.start::<Vec<u8>>(&arguments, None, Bytes::new(), MOST_BYTES);
        let told = told.await.map(|ended| ended.output).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        let version = told.trim_start().chars();
        let version: String = version
            .take_while(|c| c.is_ascii_alphanumeric() || ".-_@".contains(*c))
            .take(LONGEST_WORD)
            .collect();
        match version.is_empty() {
            true => "of an unknown version".to_owned(),
            false => version,
        }
    }

    fn file(&self) -> Result<&Path, ProgramFailure> {
        let file = self.program.as_deref().filter(|program| program.is_file());
        file.ok_or(ProgramFailure::NotInstalled)
    }

    /// Runs it confined, until it ends by itself.
    async fn start<T: ProgramOutput>(
        &self,
        arguments: &[&str],
        port: Option<u16>,
        input: Bytes,
        output_bytes: usize,
    ) -> Result<ProgramEnd<T>, ProgramFailure> {
        let path = env::var("PATH").unwrap_or_default();
        // Its interpreter is found by the path; it has no home, and no other proxy.
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
            output_bytes,
        };
        let program = Program {
            path: self.file()?,
            arguments,
            environment: &environment,
            port,
        };
        let ran = self
            .sandbox
            .run_program_telling(&self.claim, program, limits, input);
        ran.await.map_err(|error| match error {
            SandboxError::Limit(Limit::Time) => ProgramFailure::TooLong,
            SandboxError::Limit(_) => ProgramFailure::Limit,
            SandboxError::Crashed(why) => ProgramFailure::Refused(why),
            SandboxError::Refused(never) => match never {},
            passing => ProgramFailure::Later(passing.to_string()),
        })
    }
}

/// What stands between the name of the program and that of an option that it does not know.
const NO_OPTION: &str = ": error: no such option: ";
/// What the program says without an address.
const NO_ADDRESS: &str = ": error: You must provide at least one URL";

/// Returns the option that the program does not know.
fn unknown_option(told: &[u8]) -> Option<String> {
    let told = String::from_utf8_lossy(told);
    // A platform may have such words in what it says, which the program puts behind others.
    let mut lines = told.lines().filter_map(|line| line.split_once(NO_OPTION));
    let (_, option) = lines.find(|(program, _)| !program.contains(char::is_whitespace))?;
    let clean = option.chars().filter(|c| !c.is_control());
    Some(clean.take(LONGEST_WORD).collect())
}

/// Returns the last line of what the program says, as far as it is told.
fn last_line(told: &[u8]) -> String {
    let told = String::from_utf8_lossy(told);
    let mut lines = told.lines().map(str::trim).filter(|line| !line.is_empty());
    told_of(lines.next_back().unwrap_or(NOTHING_TOLD))
}

/// Returns the beginning of a line without what is not for people.
fn told_of(line: &str) -> String {
    let clean = line.chars().filter(|c| !c.is_control());
    clean.take(LONGEST_REASON).collect()
}

/// What passes, by what the program says of it in lower case. Nothing else does: videos that are private, gone, for members or of an age, and
/// addresses of none.
const PASSING: [(&str, &str); 17] = [
    ("not a bot", ASKS_FOR_LESS),
    ("too many requests", ASKS_FOR_LESS),
    ("rate-limited", ASKS_FOR_LESS),
    ("try again later", ASKS_FOR_LESS),
    ("tunnel connection failed: 502", NO_ANSWER),
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
/// What the program says of an address that the proxy refuses, in lower case.
const FORBIDDEN: &str = "tunnel connection failed: 403";
const NOT_ALLOWED: &str = "it leads to an address that is not allowed";
/// What stands before the status with which a platform answers.
const STATUS: &str = "http error ";

/// Why the program failed, by what it says.
fn failure(told: &[u8]) -> ProgramFailure {
    let told = String::from_utf8_lossy(told);
    let lines = told.lines().map(str::trim);
    let line = lines
        .filter_map(|line| line.strip_prefix("ERROR:"))
        .next_back();
    let line = line.unwrap_or(NOTHING_TOLD).trim();
    let lower = line.to_lowercase();
    if lower.contains(FORBIDDEN) {
        return ProgramFailure::Refused(NOT_ALLOWED.to_owned());
    }
    match passing(&lower) {
        Some(reason) => ProgramFailure::Later(reason),
        None => ProgramFailure::Refused(told_of(line)),
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
mod tests;
