//! The stream of expanded questions: the words of the nearest passages, weighted, beside those of the question.
//!
//! This is pseudo-relevance feedback (RM3). The passages are the first ones of the other two streams together. A term counts as much as it
//! stands in them and is rare in the space; the question's own terms keep half of the weight.

use std::collections::HashMap;

use crate::{
    analysis::{Language, document_terms},
    fusion::FusionParameters,
};

/// How many passages are read: of a space with few, the half of them, since those that are left are about something else.
const PASSAGES: usize = 5;
/// How many of their terms count.
const TERMS: usize = 32;
/// What they count, where all terms of question and passages together count 1.
const SHARE: f64 = 0.5;
/// As in BM25: from how many times on a term counts no more, and how much longer texts count less.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// How the other two streams become one here, in a space of so many chunks, whatever they count for the caller: words find the subject,
/// vectors the sense.
#[must_use]
pub fn parameters(parameters: &FusionParameters, chunks: usize) -> FusionParameters {
    FusionParameters {
        top_k: PASSAGES.min(chunks.div_ceil(2)),
        rrf_weight_dense: 1.0,
        rrf_weight_bm25: 0.5,
        rrf_weight_sparse: 0.0,
        query_weight_original: 1.0,
        query_weight_replaced: 1.0,
        ..*parameters
    }
}

/// A passage that is taken for an answer.
#[derive(Debug)]
pub struct Source {
    /// What is searched of it.
    pub text: String,
    /// The language that it is in.
    pub language: Language,
}

/// The terms of the expanded question. `idf` tells how rare a term is in the space, `mean_terms` how long its texts are.
pub fn expanded(
    question: &[String],
    sources: &[Source],
    mean_terms: f64,
    idf: &mut dyn FnMut(&str) -> f64,
) -> Vec<(String, f32)> {
    let mut weights: HashMap<String, f64> = HashMap::new();
    for (rank, source) in sources.iter().enumerate() {
        let terms = document_terms(&source.text, source.language);
        let norm = K1 * (1.0 - B + B * terms.len() as f64 / mean_terms.max(1.0));
        let mut counts: HashMap<String, f64> = HashMap::new();
        for term in terms {
            *counts.entry(term).or_default() += 1.0;
        }
        for (term, count) in counts {
            *weights.entry(term).or_default() +=
                count * (K1 + 1.0) / (count + norm) / (1.0 + rank as f64);
        }
    }
    let mut rarity: HashMap<String, f64> = HashMap::new();
    for term in weights.keys().chain(question) {
        if !rarity.contains_key(term) {
            rarity.insert(term.clone(), idf(term));
        }
    }
    let rare = |term: &str| rarity.get(term).copied().unwrap_or_default();
    let mut best: Vec<(String, f64)> = weights
        .into_iter()
        .map(|(term, weight)| {
            let weight = weight * rare(&term);
            (term, weight)
        })
        .collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    best.truncate(TERMS);
    let found: f64 = best.iter().map(|(_, weight)| weight).sum();
    let asked: f64 = question.iter().map(|term| rare(term)).sum();
    let mut all: HashMap<String, f64> = HashMap::new();
    for (term, weight) in best {
        *all.entry(term).or_default() += SHARE * weight / found.max(f64::MIN_POSITIVE);
    }
    for term in question {
        *all.entry(term.clone()).or_default() +=
            (1.0 - SHARE) * rare(term) / asked.max(f64::MIN_POSITIVE);
    }
    // What scores multiplies with the rarity again.
    #[expect(clippy::cast_possible_truncation, reason = "weights are near 1")]
    let weighted = |(term, weight): (String, f64)| {
        let rare = rare(&term);
        (term, (weight / rare.max(1e-9)) as f32)
    };
    let mut terms: Vec<_> = all
        .into_iter()
        .filter(|(term, _)| rare(term) > 0.0)
        .map(weighted)
        .collect();
    terms.sort_by(|a, b| a.0.cmp(&b.0));
    terms
}
