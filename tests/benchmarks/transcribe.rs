//! Transcripts of long recordings, as a server with its neural models makes them.
//!
//! An hour of human speech is written down twice: as one file, and in pieces, each of which is a file. A piece is a recording whose words are
//! known ([`recordings`]) between two halves of pauses. They come over and over, in another order each time, between pauses of other lengths. Both
//! are MP3 of 64 kbit/s, so that nothing differs but that they are joined: what a model makes of a hard word depends on the millisecond at which it
//! begins, and a recording that begins at once, heard once, says little of how it fares.
//!
//! | figure | what it is |
//! |---|---|
//! | `files` | for each recording, how many words were left out, put in or changed in all of its pieces, and how many are said in them |
//! | `wer_single` | the first in all of them, in percent of the second |
//! | `wer_joined` | the same in the hour as one file |
//! | `pieces` | how many pieces there are |
//! | `words` | the words that are said in them |
//! | `seconds` | how long the hour is |
//! | `times_real_time` | how long it is, over the time from the upload to its transcript |
//! | `processor_s` | the processor time of the server meanwhile, without that of its children |
//! | `rss_mb` | the server's resident set at the end |

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Args;
use colloquy::clock::runtime_now;
use colloquy_word_errors::{errors, words};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use harness::sounds::{Noise, converted, wav};
use reqwest::multipart::{Form, Part};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    figures::{megabytes, rounded},
    recordings::{self, RATE, Recording},
    server::{Server, Start},
};

/// How often it is asked whether a transcript has ended.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// Pieces that are written down at a time: more of them would ask more often than a key may.
const AT_ONCE: usize = 3;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct TranscribeOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The folder with the models.
    #[arg(long, env = "COLLOQUY_MODELS_DIR")]
    models: PathBuf,
    /// How long the long recording is, in seconds.
    #[arg(long, default_value_t = 3_600)]
    seconds: usize,
    /// Show the server's log, and what was heard.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Map<String, Value>,
    json: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When a model or a recording is missing, or a transcript fails.
pub(crate) async fn run(options: TranscribeOptions) -> anyhow::Result<Report> {
    let recordings = recordings::all().context("recordings: tests/bench gets them")?;
    let models = options.models.display().to_string();
    let server = Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings: vec![("COLLOQUY_MODELS_DIR".to_owned(), models)],
        config: String::new(),
    })
    .await?;
    let mut figures = Map::new();
    let mut note = |name: &str, value: Value| {
        figures.insert(name.to_owned(), value);
    };
    let pieces = pieces(&recordings, options.seconds * RATE);
    let mut files: BTreeMap<&str, Counted> = BTreeMap::new();
    let mut single = Counted::default();
    let heard = stream::iter(&pieces)
        .map(|piece| transcribe(&server, mp3(&piece.sound)))
        .buffered(AT_ONCE)
        .try_collect::<Vec<_>>();
    for (piece, heard) in pieces.iter().zip(heard.await?) {
        let words = &piece.recording.words;
        show(options.debug, words, &heard);
        let counted = Counted::of(words, &heard);
        single.add(&counted);
        files
            .entry(&piece.recording.name)
            .or_default()
            .add(&counted);
    }
    note("files", json!(files));
    note("wer_single", single.percent().into());
    note("pieces", pieces.len().into());

    let sound: Vec<i16> = pieces
        .iter()
        .flat_map(|piece| piece.sound.iter().copied())
        .collect();
    let text: Vec<&str> = pieces
        .iter()
        .map(|piece| piece.recording.words.as_str())
        .collect();
    let text = text.join(" ");
    let seconds = sound.len() as f64 / RATE as f64;
    let file = mp3(&sound);
    let (began, before) = (runtime_now(), server.processor_time()?);
    let heard = transcribe(&server, file).await?;
    let took = began.elapsed().as_secs_f64();
    show(options.debug, &text, &heard);
    let joined = Counted::of(&text, &heard);
    note("wer_joined", joined.percent().into());
    note("words", joined.words.into());
    note("seconds", rounded(seconds, 1.0).into());
    note("times_real_time", rounded(seconds / took, 10.0).into());
    let spent = server.processor_time()?.saturating_sub(before);
    note("processor_s", rounded(spent.as_secs_f64(), 10.0).into());
    note(
        "rss_mb",
        rounded(megabytes(server.resident_bytes()?), 1.0).into(),
    );
    server.stop().await?;
    Ok(Report {
        figures,
        json: options.json,
    })
}

/// A part of the hour.
#[derive(Debug)]
struct Piece<'r> {
    recording: &'r Recording,
    /// The recording, between two halves of a pause.
    sound: Vec<i16>,
}

/// Errors in words.
#[derive(Debug, Default, Serialize)]
struct Counted {
    errors: usize,
    words: usize,
}

impl Counted {
    fn of(said: &str, heard: &str) -> Self {
        let said = words(said);
        Self {
            errors: errors(&said, &words(heard)),
            words: said.len(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.words += other.words;
    }

    fn percent(&self) -> f64 {
        rounded(100.0 * self.errors as f64 / self.words.max(1) as f64, 100.0)
    }
}

/// The recordings over and over, until there are so many samples of them.
fn pieces(recordings: &[Recording], samples: usize) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let count = recordings.len();
    let (mut length, mut round) = (0, 0);
    while length < samples {
        // A step that has no divisor in common with the count comes past all of them.
        let steps = (2..).map(|step| step + round);
        let step = steps
            .clone()
            .find(|step| is_coprime(*step, count))
            .unwrap_or(1);
        for place in 0..count {
            let recording = &recordings[(place * step + round) % count];
            let pause = RATE / 4 + (place * 7 + round * 5) % 9 * RATE / 8;
            let half = || {
                Noise::new(7)
                    .scaled(8.0)
                    .take(pause / 2)
                    .map(|it| it as i16)
            };
            let said = recording.utterances.iter().flatten().copied();
            let sound: Vec<i16> = half().chain(said).chain(half()).collect();
            length += sound.len();
            pieces.push(Piece { recording, sound });
        }
        round += 1;
    }
    pieces
}

fn is_coprime(one: usize, other: usize) -> bool {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one == 1
}

/// A recording as people upload it.
fn mp3(samples: &[i16]) -> Vec<u8> {
    converted(&wav(samples), "recording.mp3", &["-b:a", "64k"])
}

/// The text of a recording.
async fn transcribe(server: &Server, file: Vec<u8>) -> anyhow::Result<String> {
    let form = Form::new().part("audio", Part::bytes(file).file_name("recording.mp3"));
    let made = server.post_form("/v2/transcript", form).await?;
    let path = made["id"].as_str().context("it has no id")?;
    let began = runtime_now();
    loop {
        let read = server.get(path).await?;
        match read["status"].as_str() {
            Some("completed") => {
                let text = read["text"].as_str().context("it has no text")?;
                return Ok(text.to_owned());
            }
            Some("error") => anyhow::bail!("{path}: {}", read["error"]),
            _ => {}
        }
        ensure!(began.elapsed() < PATIENCE, "{path} takes too long");
        tokio::time::sleep(ASKED_EVERY).await;
    }
}

#[expect(clippy::print_stderr, reason = "what --debug asks for")]
fn show(debug: bool, said: &str, heard: &str) {
    if debug {
        eprintln!("said:  {said}\nheard: {heard}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return write!(f, "{}", Value::Object(self.figures.clone()));
        }
        for (name, value) in &self.figures {
            let Value::Object(files) = value else {
                writeln!(f, "{name:<18} {value}")?;
                continue;
            };
            for (file, counted) in files {
                let (errors, words) = (&counted["errors"], &counted["words"]);
                writeln!(f, "{file:<48} {errors:>3} of {words:>3} words")?;
            }
        }
        Ok(())
    }
}
