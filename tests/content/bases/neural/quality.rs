//! How good rankings are, on a part of Cranfield: `tests/bench retrieve` measures all of it.

#[path = "../../../benchmarks/retrieve/cranfield.rs"]
mod cranfield;

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    sync::Arc,
};

use colloquy::clock::SystemClock;
use colloquy_index::{
    chunking::{ChunkOptions, chunk},
    embedded::{EmbeddedIndex, EmbeddedOptions},
    fusion::FusionParameters,
    search::{Change, IndexedDocument, Question, SearchIndex as _, SearchRequest, Space},
};
use colloquy_inference::{
    minilm::{MAX_TOKENS, MiniLm},
    runtime::Rten,
};
use cranfield::Collection;
use uuid::Uuid;

use harness::neural::folder;

const SPACE: Space = Space {
    base: Uuid::from_u128(1),
    generation: 0,
};

fn collection() -> Collection {
    cranfield::read(&cranfield::folder()).unwrap()
}

/// The mean of nDCG@10 over questions, where these abstracts are searched. Without a model the words are compared alone.
async fn ndcg10(
    collection: &Collection,
    abstracts: impl Iterator<Item = usize>,
    questions: &[usize],
    model: Option<&MiniLm>,
) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let (options, clock) = (EmbeddedOptions::default(), Arc::new(SystemClock));
    let index = EmbeddedIndex::open(folder.path(), options, clock).unwrap();
    let embed = |texts: &[&str]| -> Vec<Vec<f32>> {
        let Some(model) = model else {
            return vec![vec![1.0]; texts.len()];
        };
        let vectors = model.embed(texts, &|| true).unwrap();
        vectors.into_iter().map(|vector| vector.to_vec()).collect()
    };
    let count = |text: &str| match model {
        Some(model) => model.count_tokens(text),
        None => text.split_whitespace().count(),
    };
    let put = |number: usize| {
        let document = &collection.abstracts[number];
        let options = ChunkOptions::of(MAX_TOKENS);
        let chunks = chunk(&document.text, &document.title, options, &count);
        let texts: Vec<String> = chunks.iter().map(|chunk| chunk.passage()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let document = IndexedDocument {
            id: Uuid::from_u128(number as u128),
            language: None,
            chunks: chunks
                .into_iter()
                .zip(embed(&texts).iter().map(|vector| vector.as_slice().into()))
                .collect(),
        };
        Change::Put(SPACE, document)
    };
    index.apply(abstracts.map(put).collect()).await.unwrap();
    let mut sum = 0.0;
    for question in questions {
        let text = collection.questions[*question].clone();
        let vector = model.map(|_| embed(&[&text]).remove(0));
        let request = SearchRequest {
            space: SPACE,
            original: Question { text, vector },
            replaced: None,
            fusion: FusionParameters::default(),
        };
        let found = index.search(request).await.unwrap();
        let mut known = HashSet::new();
        let documents = found.passages.iter().map(|it| it.place.document.as_u128());
        let ranking: Vec<usize> = documents
            .map(|it| it as usize)
            .filter(|it| known.insert(*it))
            .collect();
        sum += cranfield::ndcg10(&ranking, &collection.answers[*question]);
    }
    sum / questions.len() as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn words_alone_rank_as_well_as_they_did() {
    let collection = collection();
    let questions: Vec<usize> = (0..collection.questions.len()).collect();
    let abstracts = 0..collection.abstracts.len();
    let quality = ndcg10(&collection, abstracts, &questions, None).await;
    println!("words alone: {quality:.4}");
    assert!(quality >= 0.40, "{quality}");
}

/// No default was chosen by the odd questions.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_and_words_together_rank_better() {
    let file = |name: &str| fs::read(folder().join("all-minilm-l6-v2").join(name)).unwrap();
    let (runtime, network) = (Rten::shared(2), file("model.onnx"));
    let model = MiniLm::load(&runtime, network, &file("tokenizer.json")).unwrap();
    let collection = collection();
    let questions: Vec<usize> = (1..60).step_by(2).collect();
    let answers = questions.iter().flat_map(|it| &collection.answers[*it]);
    let mut abstracts: BTreeSet<usize> = answers.copied().collect();
    abstracts.extend((0..collection.abstracts.len()).step_by(8));
    let ranked = async |model| {
        let abstracts = abstracts.iter().copied();
        ndcg10(&collection, abstracts, &questions, model).await
    };
    let (together, words) = (ranked(Some(&model)).await, ranked(None).await);
    println!("together: {together:.4}, words alone: {words:.4}");
    assert!(together >= 0.55 && together > words, "{together}, {words}");
}
