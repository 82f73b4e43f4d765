//! Transcription by the program `pocketsphinx_batch`: weak, English only, but real and without a network.
//!
//! Loading the model takes longer than a short utterance, so processes are kept: each reads the names of sound files
//! from its standard input for as long as it lives, and writes a line for each to its standard output. A process that
//! was left in the middle of an utterance (a time-out, a cancelled request) is killed and replaced.
//!
//! It sets the loudness of an utterance in relation to all of it, so what is nearly silent before and after the words is
//! cut off: after half a second of a browser's suppressed noise it takes "meters" for "years".
//!
//! The sound goes through a file that only this user can read ([`sounds`]).

use std::{
    collections::BTreeSet,
    num::NonZero,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use colloquy_audio::wav;
use colloquy_base::fair_queue::{Claim, FairQueue, Priority};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    task::spawn_blocking,
    time::timeout,
};

use super::{
    super::{ProviderError, ProviderErrorKind, Transcriber, Understood, Utterance},
    POCKETSPHINX, busy, not_understood,
    programs::start_listening,
    queue, sounds,
};

const PROGRAM: &str = "pocketsphinx_batch";
/// The longest that an utterance may take, once it has a slot.
const LIMIT: Duration = Duration::from_secs(60);
/// How many utterances a process decodes before another takes its place. Each may take `LIMIT`: it is replaced before its processor time,
/// [`colloquy_sandbox::PROGRAM_CPU_SECONDS`], is used up.
const MOST_UTTERANCES: u64 = 100;
/// How many utterances before that the other begins to load: a call that waits meanwhile is not delayed by it.
const STARTED_AHEAD: u64 = 10;
/// The most states that are followed at once, a tenth of the program's default. Measured on Debian's test recordings it
/// costs no word and saves a third of the time.
const MAX_STATES: &str = "3000";

/// The frames that loudness is judged by: 10 ms.
const FRAME_SAMPLES: usize = 160;
/// What has less energy than the loudest frame by this (45 dB) is no part of a word.
const QUIET: f64 = 3.2e-5;
/// What stays of the quiet at either end: 40 ms.
const MARGIN_SAMPLES: usize = 640;

/// Where the model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// The program.
    pub program: PathBuf,
    /// The acoustic model: a folder.
    pub acoustic: PathBuf,
    /// The language model.
    pub language: PathBuf,
    /// The dictionary.
    pub dictionary: PathBuf,
}

impl Default for Models {
    /// As Debian's packages `pocketsphinx` and `pocketsphinx-en-us` install them.
    fn default() -> Self {
        let folder = Path::new("/usr/share/pocketsphinx/model/en-us");
        Self {
            program: PathBuf::from(PROGRAM),
            acoustic: folder.join("en-us"),
            language: folder.join("en-us.lm.bin"),
            dictionary: folder.join("cmudict-en-us.dict"),
        }
    }
}

/// The program PocketSphinx: as many processes at once as the machine has cores; further utterances wait in a fair
/// queue.
#[derive(Debug, Clone)]
pub struct PocketSphinx {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    models: Models,
    /// A slot for each utterance that may be decoded at once.
    queue: FairQueue,
    /// Processes without work; at most as many as there are slots.
    idle: Mutex<Vec<Process>>,
}

impl Default for PocketSphinx {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self::new(Models::default(), cores)
    }
}

impl PocketSphinx {
    /// Decodes up to `processes` utterances at once. Nothing is started before it is needed.
    #[must_use]
    pub fn new(models: Models, processes: usize) -> Self {
        Self {
            pool: Arc::new(Pool {
                models,
                queue: queue("transcriber", processes),
                idle: Mutex::default(),
            }),
        }
    }
}

#[async_trait]
impl Transcriber for PocketSphinx {
    fn name(&self) -> &str {
        POCKETSPHINX
    }

    fn warm(&self) {
        let mut idle = self.pool.idle();
        if idle.is_empty() {
            match Process::start(&self.pool.models) {
                Ok(process) => idle.push(process),
                // The first utterance will say it to somebody.
                Err(error) => tracing::warn!(reason = %error, "the transcriber cannot be started"),
            }
        }
    }

    fn understands(&self) -> Understood {
        Understood::Only(BTreeSet::from(["en"]))
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        if let Some(language) = &utterance.language {
            let understood = self.understands().check(language);
            understood.map_err(|unknown| not_understood(POCKETSPHINX, &unknown))?;
        }
        let entered = self.pool.queue.enter(&utterance.claim).await;
        let _slot = entered.map_err(|full| busy(POCKETSPHINX, full))?;
        let sound = spawn_blocking(move || sounds::write(&wav::raw(spoken(&utterance.samples))))
            .await
            .map_err(|_| failed("the sound could not be handed over"))?
            .map_err(|error| failed(format!("handing the sound over: {}", error.kind())))?;
        let mut lease = self.pool.lease()?;
        // The slot is there: what is waited for now is the program alone.
        let late = |_| {
            ProviderError::new(
                POCKETSPHINX,
                ProviderErrorKind::Timeout,
                "it gives no words",
            )
        };
        let decoded = timeout(LIMIT, lease.process()?.decode(sound.path())).await;
        let text = decoded.map_err(late)??;
        lease.finished = true;
        Ok(text)
    }

    async fn check(&self) -> Result<(), ProviderError> {
        let silence = Utterance::new([0_i16; 1_600], None, Claim::own(Priority::Background));
        self.transcribe(silence).await.map(|_| ())
    }
}

impl Pool {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease(&self) -> Result<Lease<'_>, ProviderError> {
        let waiting = loop {
            let Some(mut process) = self.idle().pop() else {
                break None;
            };
            if process.is_alive() {
                break Some(process);
            }
        };
        let process = match waiting {
            Some(process) => process,
            None => Process::start(&self.models)?,
        };
        Ok(Lease {
            pool: self,
            process: Some(process),
            finished: false,
        })
    }
}

/// A process at work. It goes back to the pool when its utterance is finished; otherwise, or after `MOST_UTTERANCES`, it is killed, and
/// its successor takes its place, or if there is none yet another that begins to load.
struct Lease<'a> {
    pool: &'a Pool,
    /// There until the lease ends.
    process: Option<Process>,
    finished: bool,
}

impl Lease<'_> {
    fn process(&mut self) -> Result<&mut Process, ProviderError> {
        self.process
            .as_mut()
            .ok_or_else(|| failed("the program has ended"))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(mut used) = self.process.take() else {
            return;
        };
        let left = MOST_UTTERANCES.saturating_sub(used.decoded);
        let start = || Process::start(&self.pool.models).ok();
        let next = if self.finished && left > 0 {
            if left <= STARTED_AHEAD && used.successor.is_none() {
                used.successor = start().map(Box::new);
            }
            Some(used)
        } else {
            let successor = used.successor.take();
            drop(used); // kills it
            successor.map(|loaded| *loaded).or_else(start)
        };
        self.pool.idle().extend(next);
    }
}

/// A running program.
#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Utterances so far.
    decoded: u64,
    /// Takes its place, and loads meanwhile.
    successor: Option<Box<Process>>,
}

impl Process {
    fn start(models: &Models) -> Result<Self, ProviderError> {
        for file in [&models.acoustic, &models.language, &models.dictionary] {
            if !file.exists() {
                return Err(ProviderError::new(
                    POCKETSPHINX,
                    ProviderErrorKind::Misconfigured,
                    format!("the model {} is not installed", file.display()),
                ));
            }
        }
        let mut child = start_listening(&models.program, |command| {
            command
                .arg("-hmm")
                .arg(&models.acoustic)
                .arg("-lm")
                .arg(&models.language)
                .arg("-dict")
                .arg(&models.dictionary)
                .args(["-maxhmmpf", MAX_STATES])
                .args(["-adcin", "yes", "-cepext", ""])
                .args(["-ctl", "/dev/stdin", "-hyp", "/dev/stdout"])
                .args(["-logfn", "/dev/null"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
        })?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input,
                output: BufReader::new(output).lines(),
                decoded: 0,
                successor: None,
            }),
            _ => Err(failed("the program has no pipes")),
        }
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The words of a sound file.
    async fn decode(&mut self, sound: &Path) -> Result<String, ProviderError> {
        let Some(name) = sound.to_str() else {
            return Err(failed(
                "the folder for temporary files has no readable name",
            ));
        };
        self.decoded += 1;
        let request = format!("{name}\n");
        self.input
            .write_all(request.as_bytes())
            .await
            .map_err(|_| failed("the program has ended"))?;
        let line = self
            .output
            .next_line()
            .await
            .map_err(|error| failed(format!("reading the words: {}", error.kind())))?
            .ok_or_else(|| failed("the program has ended"))?;
        words(&line, name).ok_or_else(|| {
            ProviderError::new(
                POCKETSPHINX,
                ProviderErrorKind::Malformed,
                "a line that is not the answer to this utterance",
            )
        })
    }
}

/// The words of an answer, `<words> (<file> <score>)`.
fn words(line: &str, name: &str) -> Option<String> {
    let (words, rest) = line.rsplit_once(" (")?;
    let score = rest.strip_prefix(name)?.strip_suffix(')')?;
    score.trim().parse::<i64>().ok()?;
    Some(words.trim().to_owned())
}

/// The utterance without the quiet at its ends.
fn spoken(samples: &[i16]) -> &[i16] {
    let energies: Vec<f64> = samples
        .chunks(FRAME_SAMPLES)
        .map(|frame| frame.iter().map(|sample| f64::from(*sample).powi(2)).sum())
        .collect();
    let threshold = energies.iter().copied().fold(0.0, f64::max) * QUIET;
    let is_loud = |energy: &f64| *energy > threshold;
    let (Some(first), Some(last)) = (
        energies.iter().position(is_loud),
        energies.iter().rposition(is_loud),
    ) else {
        return samples;
    };
    let begin = (first * FRAME_SAMPLES).saturating_sub(MARGIN_SAMPLES);
    let end = ((last + 1) * FRAME_SAMPLES + MARGIN_SAMPLES).min(samples.len());
    &samples[begin..end]
}

fn failed(message: impl Into<String>) -> ProviderError {
    ProviderError::new(POCKETSPHINX, ProviderErrorKind::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_belong_to_their_utterance() {
        let cases = [
            ("go forward (/tmp/a.raw -7095)", Some("go forward")),
            (" (/tmp/a.raw 0)", Some("")),
            ("go forward (/tmp/b.raw -7095)", None),
            ("go forward", None),
            ("go (/tmp/a.raw soon)", None),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line, "/tmp/a.raw").as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn the_quiet_around_the_words_is_cut() {
        let quiet = [9, -9].repeat(4_000);
        let word = [5_000, -5_000].repeat(800);
        let pause = [0; 4_000];
        let said = [&word[..], &pause, &word].concat();
        let utterance = [&quiet[..], &said, &quiet].concat();
        let spoken = spoken(&utterance);
        assert_eq!(spoken.len(), said.len() + 2 * MARGIN_SAMPLES);
        assert_eq!(&spoken[MARGIN_SAMPLES..][..said.len()], said);
        for all in [&quiet[..], &pause, &word, &[], &[7]] {
            assert_eq!(super::spoken(all), all);
        }
    }

    /// A pool whose program needs no model.
    fn pool() -> Pool {
        let models = Models {
            program: "/bin/true".into(),
            acoustic: "/".into(),
            language: "/".into(),
            dictionary: "/".into(),
        };
        Pool {
            models,
            queue: queue("transcriber", 1),
            idle: Mutex::default(),
        }
    }

    /// What is in the pool after a process has decoded so many utterances.
    fn after(pool: &Pool, mut process: Process, decoded: u64, finished: bool) -> Process {
        process.decoded = decoded;
        drop(Lease {
            pool,
            process: Some(process),
            finished,
        });
        let next = pool.idle().pop().unwrap();
        assert!(pool.idle().is_empty());
        next
    }

    #[tokio::test]
    async fn a_process_is_replaced_before_its_processor_time_is_used_up() {
        const { assert!(MOST_UTTERANCES * LIMIT.as_secs() < colloquy_sandbox::PROGRAM_CPU_SECONDS) }
        let pool = pool();
        let last = MOST_UTTERANCES - 1;
        for (decoded, expected) in [(last, last), (MOST_UTTERANCES, 0)] {
            let process = Process::start(&pool.models).unwrap();
            let next = after(&pool, process, decoded, true);
            assert_eq!(next.decoded, expected);
        }
    }

    #[tokio::test]
    async fn the_successor_of_a_process_loads_before_it_is_needed() {
        let pool = pool();
        let first = MOST_UTTERANCES - STARTED_AHEAD;
        let used = Process::start(&pool.models).unwrap();
        let pid = used.child.id();
        let used = after(&pool, used, first - 1, true);
        assert!(used.successor.is_none());
        let used = after(&pool, used, first, true);
        let successor = used.successor.as_ref().unwrap().child.id();
        assert!(successor.is_some() && successor != pid);
        let used = after(&pool, used, MOST_UTTERANCES - 1, true);
        assert_eq!(used.child.id(), pid);
        let next = after(&pool, used, MOST_UTTERANCES, true);
        assert_eq!(next.child.id(), successor, "no other is started");
        assert!(next.decoded == 0 && next.successor.is_none());

        // It is there, too, where an utterance is left in the middle.
        let used = after(&pool, next, first, true);
        let successor = used.successor.as_ref().unwrap().child.id();
        let next = after(&pool, used, first + 1, false);
        assert_eq!(next.child.id(), successor);
    }

    #[tokio::test]
    async fn a_missing_program_or_model_is_named() {
        let transcribe = async |models| {
            let utterance = Utterance::new([0_i16; 160], None, Claim::own(Priority::Call));
            PocketSphinx::new(models, 1).transcribe(utterance).await
        };
        let program = Models {
            program: "no-such-program".into(),
            acoustic: "/".into(),
            language: "/".into(),
            dictionary: "/".into(),
        };
        let error = transcribe(program).await.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Misconfigured);
        assert!(error.message.contains("not installed"), "{error}");
        let model = Models {
            language: "/no/such/model".into(),
            ..Models::default()
        };
        let error = transcribe(model).await.unwrap_err();
        assert!(error.message.contains("is not installed"), "{error}");
    }
}
