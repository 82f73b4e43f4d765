//! Documents made Markdown, as the server does it: in a child process for each.
//!
//! The documents are those of `tests/data/documents`, whose Markdown people have looked through. Text is recognized on pictures
//! where Tesseract is installed.
//!
//! | figure | what it is |
//! |---|---|
//! | `token_f1`, `token_f1_FORMAT` | how much of the reference is there and how much else is not, by words: the mean over documents, of 1 |
//! | `empty` | documents without any text, or refused |
//! | `pdf_pages_per_s` | pages of PDF a second on one core, with each page's quality judged |
//! | `pdf_pages_per_s_unpdf` | the same by the library `unpdf` alone, with its defaults and nothing judged |
//! | `peak_mb` | the largest resident set of a child |
//! | `document_p50_ms` | from a document to its Markdown, with the start of the child |

mod score;
mod set;

use std::{
    collections::BTreeMap,
    fmt, fs,
    hint::black_box,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use colloquy::{
    clock::{Clock as _, SystemClock},
    config::SandboxConfig,
    digitize::{DigitizeOptions, Format, Ocr, digitize},
    fair_queue::{Claim, Priority},
    sandbox::Sandbox,
};
use colloquy_extract::{Options, extract};
use serde_json::{Map, Value, json};

use crate::figures::{megabytes, percentile, rounded};

/// How long pages are read for the figure of their speed.
const MEASURED: Duration = Duration::from_secs(5);
/// How often the memory of children is looked at.
const LOOKED_AT: Duration = Duration::from_millis(1);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct ExtractOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show each document with its score.
    #[arg(long)]
    debug: bool,
    /// The program whose children read documents; the `colloquy` beside this program unless given.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Map<String, Value>,
    documents: Vec<(String, f64)>,
    options: ExtractOptions,
}

/// Runs the benchmark.
pub(crate) async fn run(options: ExtractOptions) -> anyhow::Result<Report> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("colloquy"),
    };
    let sandbox = Sandbox::new(&SandboxConfig {
        processes: 1,
        program: Some(program),
        ..SandboxConfig::default()
    });
    let ocr = Ocr::open(&sandbox, &["eng"]).await.ok();
    let claim = Claim::own(Priority::Background);
    let samples = set::samples().context("the documents are not there")?;
    let watch = Watch::start();
    let mut scores: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut documents, mut took, mut empty) = (vec![], vec![], 0);
    for sample in &samples {
        let extension = sample.name.rsplit('.').next().unwrap_or_default();
        let format = Format::of_extension(extension).context("a document of no format")?;
        let began = SystemClock.instant();
        let file = Bytes::from(sample.bytes.clone());
        let read = digitize(
            &sandbox,
            ocr.as_ref(),
            &claim,
            file,
            format,
            &DigitizeOptions::default(),
        )
        .await;
        took.push(SystemClock.instant().saturating_duration_since(began));
        let text = read.map(|read| read.document.markdown).unwrap_or_default();
        empty += usize::from(text.trim().is_empty());
        let score = score::f1(&score::without_notes(&text), &sample.reference);
        scores.entry(sample.format.clone()).or_default().push(score);
        documents.push((format!("{}/{}", sample.format, sample.name), score));
    }
    let peak = watch.stop();
    took.sort();
    let mut figures = Map::new();
    let mean = |scores: &[f64]| {
        rounded(
            scores.iter().sum::<f64>() / scores.len().max(1) as f64,
            1_000.0,
        )
    };
    let all: Vec<f64> = scores.values().flatten().copied().collect();
    figures.insert("token_f1".to_owned(), json!(mean(&all)));
    for (format, scores) in &scores {
        figures.insert(format!("token_f1_{format}"), json!(mean(scores)));
    }
    figures.insert("documents".to_owned(), json!(samples.len()));
    figures.insert("empty".to_owned(), json!(empty));
    let [ours, unpdf] = pages_a_second(&samples)?;
    figures.insert("pdf_pages_per_s".to_owned(), json!(ours));
    figures.insert("pdf_pages_per_s_unpdf".to_owned(), json!(unpdf));
    figures.insert("peak_mb".to_owned(), json!(rounded(megabytes(peak), 10.0)));
    figures.insert("document_p50_ms".to_owned(), json!(percentile(&took, 50)));
    Ok(Report {
        figures,
        documents,
        options,
    })
}

/// What reads a document and tells its pages.
type Reader = dyn Fn(&[u8]) -> anyhow::Result<u32>;

/// Pages a second, on this thread: as the server reads them, and by the library alone. They take turns, so that both have the same machine.
fn pages_a_second(samples: &[set::Sample]) -> anyhow::Result<[f64; 2]> {
    let documents: Vec<&set::Sample> = samples
        .iter()
        .filter(|sample| sample.format == "pdf")
        .collect();
    let ours = |bytes: &[u8]| -> anyhow::Result<u32> {
        let document = extract(bytes, Format::Pdf, &Options::default())?;
        Ok(document.pages.unwrap_or_default())
    };
    let unpdf = |bytes: &[u8]| -> anyhow::Result<u32> {
        let options = unpdf::ParseOptions::new().lenient().sequential();
        let document = unpdf::parse_bytes_with_options(bytes, options.with_resources(false))?;
        black_box(unpdf::render::to_markdown(
            &document,
            &unpdf::RenderOptions::default(),
        )?);
        Ok(document.page_count())
    };
    let readers: [&Reader; 2] = [&ours, &unpdf];
    let (mut pages, mut took) = ([0; 2], [Duration::ZERO; 2]);
    while took.iter().any(|took| *took < MEASURED) {
        for sample in &documents {
            for (at, read) in readers.iter().enumerate() {
                let began = SystemClock.instant();
                pages[at] += read(&sample.bytes).with_context(|| sample.name.clone())?;
                took[at] += SystemClock.instant().saturating_duration_since(began);
            }
        }
    }
    Ok([0, 1].map(|at| rounded(f64::from(pages[at]) / took[at].as_secs_f64(), 1.0)))
}

/// Watches the memory of this process's children.
struct Watch {
    largest: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Watch {
    fn start() -> Self {
        let largest = Arc::new(AtomicU64::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (largest, ended) = (Arc::clone(&largest), Arc::clone(&ended));
            move || {
                while !ended.load(Ordering::Relaxed) {
                    for child in children() {
                        largest.fetch_max(peak_of(child).unwrap_or_default(), Ordering::Relaxed);
                    }
                    thread::sleep(LOOKED_AT);
                }
            }
        });
        Self {
            largest,
            ended,
            thread,
        }
    }

    /// The largest resident set of a child, in bytes.
    fn stop(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.largest.load(Ordering::Relaxed)
    }
}

/// The processes that this one started and that run `colloquy`.
fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let all = lists.flat_map(|list| {
        list.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<u32>>()
    });
    let is_ours = |pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.file_name() == Some(Path::new("colloquy").as_os_str()))
    };
    all.filter(is_ours).collect()
}

/// The largest resident set that a process has had so far, in bytes.
fn peak_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.options.debug {
            for (name, score) in &self.documents {
                writeln!(formatter, "{score:.3} {name}")?;
            }
        }
        if self.options.json {
            return write!(formatter, "{}", Value::Object(self.figures.clone()));
        }
        for (name, value) in &self.figures {
            writeln!(formatter, "{name:<24} {value}")?;
        }
        Ok(())
    }
}
