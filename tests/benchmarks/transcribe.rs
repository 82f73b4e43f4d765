//! Transcripts of long recordings, as a server with its neural models makes them.
//!
//! Recordings of human speech with their words ([`recordings`]) are written down one by one, and then an hour of them, one after the
//! other in another order each time, with pauses of other lengths, as one file. All of them are MP3 of 64 kbit/s, so that nothing
//! differs but that they are joined.
//!
//! | figure | what it is |
//! |---|---|
//! | `files` | for each recording, how many words were left out, put in or changed, and how many are said in it |
//! | `wer_single` | the first in all of them, in percent of the second |
//! | `wer_joined` | the same in all of them as one |
//! | `words_joined` | the words that are said in it |
//! | `seconds_joined` | how long it is |
//! | `times_real_time` | how long it is, over the time from the upload to its transcript |
//! | `processor_s` | the processor time of the server meanwhile, without that of its children |
//! | `rss_mb` | the server's resident set at the end |

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Args;
use colloquy::clock::runtime_now;
use colloquy_word_errors::{errors, words};
use harness::sounds::{Noise, converted, wav};
use reqwest::multipart::{Form, Part};
use serde_json::{Map, Value, json};

use crate::{
    figures::{megabytes, rounded},
    recordings::{self, RATE, Recording},
    server::{Server, Start},
};

/// How often it is asked whether a transcript has ended.
const ASKED_EVERY: Duration = Duration::from_millis(150);
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
    let (mut wrong, mut said, mut files) = (0, 0, Map::new());
    for recording in &recordings {
        let heard = transcribe(&server, mp3(&recording.utterances.concat())).await?;
        let expected = words(&recording.words);
        let in_file = errors(&expected, &words(&heard));
        files.insert(
            recording.name.clone(),
            json!({"errors": in_file, "words": expected.len()}),
        );
        wrong += in_file;
        said += expected.len();
        show(options.debug, &recording.words, &heard);
    }
    note("files", files.into());
    note("wer_single", percent(wrong, said).into());

    let (sound, text) = joined(&recordings, options.seconds * RATE);
    let seconds = sound.len() as f64 / RATE as f64;
    let file = mp3(&sound);
    let (began, before) = (runtime_now(), server.processor_time()?);
    let heard = transcribe(&server, file).await?;
    let took = began.elapsed().as_secs_f64();
    let expected = words(&text);
    let wrong = errors(&expected, &words(&heard));
    show(options.debug, &text, &heard);
    note("wer_joined", percent(wrong, expected.len()).into());
    note("words_joined", expected.len().into());
    note("seconds_joined", rounded(seconds, 1.0).into());
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

/// The recordings over and over, so many samples of them, and what is said in them.
fn joined(recordings: &[Recording], samples: usize) -> (Vec<i16>, String) {
    let (mut sound, mut text) = (Vec::with_capacity(samples), String::new());
    let count = recordings.len();
    let mut round = 0;
    while sound.len() < samples {
        // A step that has no divisor in common with the count comes past all of them.
        let steps = (2..).map(|step| step + round);
        let step = steps
            .clone()
            .find(|step| is_coprime(*step, count))
            .unwrap_or(1);
        for place in 0..count {
            let recording = &recordings[(place * step + round) % count];
            sound.extend(recording.utterances.iter().flatten());
            let pause = RATE / 4 + (place * 7 + round * 5) % 9 * RATE / 8;
            sound.extend(Noise::new(7).scaled(8.0).take(pause).map(|it| it as i16));
            text.push_str(&recording.words);
            text.push(' ');
        }
        round += 1;
    }
    (sound, text)
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

fn percent(wrong: usize, said: usize) -> f64 {
    rounded(100.0 * wrong as f64 / said.max(1) as f64, 10.0)
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
