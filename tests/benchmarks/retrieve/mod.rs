//! Finding passages: how good the rankings of the index are on Cranfield with the service's own embedder and defaults, and how long a search takes
//! over many chunks.
//!
//! | figure | what it is |
//! |---|---|
//! | `ndcg10` | how good the first ten documents are, of each stream alone and fused |
//! | `ndcg10_held_out` | the same of those questions that no default was chosen by: the odd ones |
//! | `recall100` | the part of the answers among the first hundred, where each stream gives as many |
//! | `p50_ms`, `p50_ms_100k`, `p50_ms_1m` | a search without embedding its question: over Cranfield, over 100,000 and over 1,000,000 generated chunks |
//! | `memory_mb`, `disk_mb` | of the process, at its peak with that many chunks, and of the index's files |

mod cranfield;
mod generated;

use std::{collections::HashSet, fmt, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;
use colloquy::clock::{Clock as _, SystemClock};
use colloquy_index::{
    chunking::{ChunkOptions, chunk},
    embedded::{EmbeddedIndex, EmbeddedOptions},
    fusion::FusionParameters,
    search::{
        Change, IndexedDocument, Question, SearchIndex as _, SearchRequest, SearchResponse, Space,
        Stream,
    },
};
use colloquy_inference::{
    minilm::{MAX_TOKENS, MiniLm},
    runtime::Rten,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::{cranfield::Collection, generated::Generator};
use crate::figures::{megabytes, percentile, rounded};

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct RetrieveOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The folder with the models.
    #[arg(long, env = "COLLOQUY_MODELS_DIR")]
    models: PathBuf,
    /// The collection.
    #[arg(long, default_value_os_t = cranfield::folder())]
    collection: PathBuf,
    /// Measure over 1,000,000 chunks, too: some minutes, 4 GB of memory and of disk.
    #[arg(long)]
    million: bool,
    /// Weights to measure in the place of the defaults: those of dense, sparse and BM25.
    #[arg(long, num_args = 3)]
    weights: Option<Vec<f64>>,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Map<String, Value>,
    json: bool,
}

const SPACE: Space = Space {
    base: Uuid::from_u128(13),
    generation: 0,
};
/// How many chunks come in one call.
const CALL: usize = 1_000;
/// How many searches are measured over generated chunks.
const SEARCHES: usize = 200;

/// Runs the benchmark.
///
/// # Errors
/// When the models or the collection are missing, or the index fails.
pub(crate) async fn run(options: RetrieveOptions) -> anyhow::Result<Report> {
    let mut figures = Map::new();
    cranfield(&options, &mut figures).await?;
    for (name, chunks) in [("100k", 100_000), ("1m", 1_000_000)] {
        if chunks <= 100_000 || options.million {
            generated(name, chunks, &mut figures).await?;
        }
    }
    Ok(Report {
        figures,
        json: options.json,
    })
}

fn open(folder: &std::path::Path) -> anyhow::Result<EmbeddedIndex> {
    Ok(EmbeddedIndex::open(
        folder,
        EmbeddedOptions::default(),
        Arc::new(SystemClock),
    )?)
}

async fn cranfield(
    options: &RetrieveOptions,
    figures: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let collection = cranfield::read(&options.collection)?;
    let file = |name: &str| {
        let path = options.models.join("all-minilm-l6-v2").join(name);
        std::fs::read(&path).with_context(|| path.display().to_string())
    };
    let model = MiniLm::load(
        &Rten::shared(2),
        file("model.onnx")?,
        &file("tokenizer.json")?,
    )?;
    let folder = tempfile::tempdir()?;
    let index = open(folder.path())?;
    let mut changes = Vec::new();
    for (number, document) in (0..).zip(&collection.abstracts) {
        let count = |text: &str| model.count_tokens(text);
        let chunks = chunk(
            &document.text,
            &document.title,
            ChunkOptions::of(MAX_TOKENS),
            &count,
        );
        let texts: Vec<String> = chunks.iter().map(|chunk| chunk.passage()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = model
            .embed(&texts, &|| true)?
            .into_iter()
            .map(|vector| vector.as_slice().into());
        let chunks = chunks.into_iter().zip(vectors).collect();
        changes.push(Change::Put(
            SPACE,
            IndexedDocument {
                id: Uuid::from_u128(number),
                language: None,
                chunks,
            },
        ));
    }
    index.apply(changes).await?;
    let mut parameters = FusionParameters::default();
    if let Some([dense, sparse, bm25]) = options.weights.as_deref() {
        (
            parameters.rrf_weight_dense,
            parameters.rrf_weight_sparse,
            parameters.rrf_weight_bm25,
        ) = (*dense, *sparse, *bm25);
    }
    let questions: Vec<&str> = collection.questions.iter().map(String::as_str).collect();
    let vectors = model.embed(&questions, &|| true)?;
    let (mut service, mut deep, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for (question, vector) in questions.iter().zip(&vectors) {
        let request = SearchRequest {
            space: SPACE,
            original: Question {
                text: (*question).to_owned(),
                vector: Some(vector.to_vec()),
            },
            replaced: None,
            fusion: parameters,
        };
        let found = index.search(request.clone()).await?;
        took.push(found.took);
        service.push(found);
        let fusion = FusionParameters {
            top_k: 150,
            search_multiplier: 1,
            ..parameters
        };
        deep.push(index.search(SearchRequest { fusion, ..request }).await?);
    }
    figures.insert("chunks".to_owned(), json!(index.usage().await?.chunks));
    quality(&collection, &service, &deep, figures);
    figures.insert("p50_ms".to_owned(), json!(median(took)));
    Ok(())
}

/// The documents of a response, in their order.
fn fused(response: &SearchResponse) -> Vec<usize> {
    documents(
        response
            .passages
            .iter()
            .map(|passage| passage.place.document),
    )
}

/// The documents of one stream.
fn alone(response: &SearchResponse, stream: Stream) -> Vec<usize> {
    let rankings = response
        .rankings
        .iter()
        .filter(|ranking| ranking.stream == stream);
    documents(rankings.flat_map(|ranking| ranking.hits.iter().map(|hit| hit.place.document)))
}

fn documents(found: impl Iterator<Item = Uuid>) -> Vec<usize> {
    let mut known = HashSet::new();
    let numbers = found.filter_map(|document| usize::try_from(document.as_u128()).ok());
    numbers.filter(|document| known.insert(*document)).collect()
}

/// The documents that a question finds, best first.
type Ranked<'a> = Box<dyn Fn(usize) -> Vec<usize> + 'a>;

fn quality(
    collection: &Collection,
    service: &[SearchResponse],
    deep: &[SearchResponse],
    figures: &mut Map<String, Value>,
) {
    let mean = |rankings: &dyn Fn(usize) -> Vec<usize>,
                measure: fn(&[usize], &HashSet<usize>) -> f64,
                from: usize,
                step: usize| {
        let measured: Vec<f64> = (from..collection.questions.len())
            .step_by(step)
            .map(|question| measure(&rankings(question), &collection.answers[question]))
            .collect();
        rounded(
            measured.iter().sum::<f64>() / measured.len().max(1) as f64,
            10_000.0,
        )
    };
    let mut streams: Vec<(&str, Ranked<'_>, Ranked<'_>)> = Vec::new();
    for stream in [Stream::Dense, Stream::Sparse, Stream::Bm25] {
        streams.push((
            stream.name(),
            Box::new(move |question| alone(&service[question], stream)),
            Box::new(move |question| alone(&deep[question], stream)),
        ));
    }
    streams.push((
        "fused",
        Box::new(|question| fused(&service[question])),
        Box::new(|question| fused(&deep[question])),
    ));
    let (mut ndcg, mut chosen, mut held_out, mut recall) =
        (Map::new(), Map::new(), Map::new(), Map::new());
    for (name, first, all) in streams {
        ndcg.insert(
            name.to_owned(),
            json!(mean(&first, cranfield::ndcg10, 0, 1)),
        );
        chosen.insert(
            name.to_owned(),
            json!(mean(&first, cranfield::ndcg10, 0, 2)),
        );
        held_out.insert(
            name.to_owned(),
            json!(mean(&first, cranfield::ndcg10, 1, 2)),
        );
        recall.insert(
            name.to_owned(),
            json!(mean(&all, cranfield::recall100, 0, 1)),
        );
    }
    figures.insert("ndcg10".to_owned(), Value::Object(ndcg));
    figures.insert("ndcg10_chosen".to_owned(), Value::Object(chosen));
    figures.insert("ndcg10_held_out".to_owned(), Value::Object(held_out));
    figures.insert("recall100".to_owned(), Value::Object(recall));
}

async fn generated(
    name: &str,
    chunks: usize,
    figures: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut generator = Generator::new();
    let clock = SystemClock;
    let begin = clock.instant();
    {
        let index = open(folder.path())?;
        let mut written = 0;
        while written < chunks {
            let mut changes = Vec::new();
            let mut gathered = 0;
            // A commit for each thousand chunks would be merged again and again.
            while gathered < CALL * 20 && written < chunks {
                let document = generator.document();
                gathered += document.chunks.len();
                written += document.chunks.len();
                changes.push(Change::Put(SPACE, document));
            }
            index.apply(changes).await?;
        }
    }
    let filled = clock.instant().saturating_duration_since(begin);
    let begin = clock.instant();
    let index = open(folder.path())?;
    let opened = clock.instant().saturating_duration_since(begin);
    let (mut took, mut streams) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for search in 0..SEARCHES + 20 {
        let request = SearchRequest {
            space: SPACE,
            original: Question {
                text: generator.question(),
                vector: Some(generator.vector()),
            },
            replaced: None,
            fusion: FusionParameters::default(),
        };
        let found = index.search(request).await?;
        anyhow::ensure!(
            found.passages.len() == 12,
            "{} passages",
            found.passages.len()
        );
        if search >= 20 {
            took.push(found.took);
            for (times, ranking) in streams.iter_mut().zip(&found.rankings) {
                times.push(ranking.took);
            }
        }
    }
    let usage = index.usage().await?;
    let mut times = Map::new();
    for (stream, took) in [Stream::Dense, Stream::Sparse, Stream::Bm25]
        .into_iter()
        .zip(streams)
    {
        times.insert(stream.name().to_owned(), json!(median(took)));
    }
    took.sort();
    figures.insert(format!("p50_ms_{name}"), json!(percentile(&took, 50)));
    figures.insert(format!("p95_ms_{name}"), json!(percentile(&took, 95)));
    figures.insert(format!("streams_p50_ms_{name}"), Value::Object(times));
    figures.insert(
        format!("memory_mb_{name}"),
        json!(peak_memory()?.map(|bytes| megabytes(bytes).round())),
    );
    figures.insert(
        format!("vectors_mb_{name}"),
        json!(megabytes(usage.memory_bytes).round()),
    );
    figures.insert(
        format!("disk_mb_{name}"),
        json!(megabytes(usage.disk_bytes).round()),
    );
    figures.insert(
        format!("fill_s_{name}"),
        json!(rounded(filled.as_secs_f64(), 10.0)),
    );
    figures.insert(
        format!("open_s_{name}"),
        json!(rounded(opened.as_secs_f64(), 100.0)),
    );
    Ok(())
}

/// The most memory that this process had, in bytes, files that it reads as memory included.
fn peak_memory() -> anyhow::Result<Option<u64>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(number.map(|kilobytes| kilobytes * 1024))
}

fn median(mut took: Vec<Duration>) -> Option<f64> {
    took.sort();
    percentile(&took, 50)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return write!(f, "{}", Value::Object(self.figures.clone()));
        }
        for (name, figure) in &self.figures {
            writeln!(f, "{name:24} {figure}")?;
        }
        Ok(())
    }
}
