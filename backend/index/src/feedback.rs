//! Pseudo-relevance feedback: the passages nearest to a question, which are the first ones of words and vectors together, say what it is about.
//!
//! - The stream of expanded questions has their words, weighted, beside those of the question (RM3). A term counts as much as it
//!   stands in them and is rare in the space; the question's own terms keep half of the weight.
//! - The stream of vectors is put in the order of a question that is moved towards their vectors (Rocchio). What it found stays the same.

use std::{collections::HashMap, hash::BuildHasher};

use crate::{
    analysis::{Language, document_terms},
    best::Best,
    fusion::FusionParameters,
    search::{Hit, Place},
};

/// How many passages are read: of a space with few, the half of them, since those that are left are about something else.
const PASSAGES: usize = 5;
/// How many of their terms count.
const TERMS: usize = 32;
/// What they count, where all terms of question and passages together count 1.
const SHARE: f64 = 0.5;
/// What their vectors count, where those of question and passages together count 1.
const VECTOR_SHARE: f64 = 0.4;
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

/// What the passage of this rank counts, from 0.
fn weight(rank: usize) -> f64 {
    1.0 / (1.0 + rank as f64)
}

/// A passage that is taken for an answer.
#[derive(Debug)]
pub struct Source {
    /// What is searched of it.
    pub text: String,
    /// The language that it is in.
    pub language: Language,
}

/// What a space says of terms.
pub struct Terms<'a> {
    /// How long its texts are, in terms.
    pub mean: f64,
    /// How rare a term is that stands in one text alone. None is rarer.
    pub rarest: f64,
    /// How rare a term is; 0 where it does not stand at all.
    pub rarity: &'a mut dyn FnMut(&str) -> f64,
}

/// The terms of the expanded question, weighted.
pub fn expanded(question: &[String], sources: &[Source], space: Terms<'_>) -> Vec<(String, f32)> {
    let mut weights: HashMap<String, f64> = HashMap::new();
    for (rank, source) in sources.iter().enumerate() {
        let terms = document_terms(&source.text, source.language);
        let norm = K1 * (1.0 - B + B * terms.len() as f64 / space.mean.max(1.0));
        let mut counts: HashMap<String, f64> = HashMap::new();
        for term in terms {
            *counts.entry(term).or_default() += 1.0;
        }
        for (term, count) in counts {
            *weights.entry(term).or_default() += count * (K1 + 1.0) / (count + norm) * weight(rank);
        }
    }
    let mut known: HashMap<String, f64> = HashMap::new();
    let mut rare = |term: &str| match known.get(term) {
        Some(rarity) => *rarity,
        None => {
            let rarity = (space.rarity)(term);
            known.insert(term.to_owned(), rarity);
            rarity
        }
    };
    let best = best(weights, space.rarest, &mut rare);
    let found: f64 = best.iter().map(|(weight, _)| weight).sum();
    let asked: f64 = question.iter().map(|term| rare(term)).sum();
    let mut all: HashMap<String, f64> = HashMap::new();
    for (weight, term) in best {
        *all.entry(term).or_default() += SHARE * weight / found.max(f64::MIN_POSITIVE);
    }
    for term in question {
        *all.entry(term.clone()).or_default() +=
            (1.0 - SHARE) * rare(term) / asked.max(f64::MIN_POSITIVE);
    }
    // What scores multiplies with the rarity again.
    #[expect(clippy::cast_possible_truncation, reason = "weights are near 1")]
    let weighted = |(term, weight): (String, f64)| {
        let rarity = rare(&term);
        (rarity > 0.0).then(|| (term, (weight / rarity.max(1e-9)) as f32))
    };
    let mut terms: Vec<_> = all.into_iter().filter_map(weighted).collect();
    terms.sort_by(|a, b| a.0.cmp(&b.0));
    terms
}

/// The terms that count most, which is as much as they weigh and are rare. Looking up how rare a term is takes time, so those are left out that
/// would not be among the best if they were as rare as can be.
fn best(
    weights: HashMap<String, f64>,
    rarest: f64,
    rare: &mut dyn FnMut(&str) -> f64,
) -> Vec<(f64, String)> {
    let mut heaviest: Vec<_> = weights.into_iter().collect();
    heaviest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut best = Best::new(TERMS);
    for (term, weight) in heaviest {
        if best.floor().is_some_and(|floor| weight * rarest < floor) {
            break;
        }
        best.push(weight * rare(&term), term);
    }
    let mut best = best.into_vec();
    // Sums are the same in every run.
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    best
}

/// The vector of a question, moved towards those of the nearest passages, the first of them most. Only the directions of vectors count.
#[must_use]
pub fn moved(question: &[f32], passages: &[Vec<f32>]) -> Vec<f32> {
    let mut middle = vec![0.0; question.len()];
    for (rank, passage) in passages.iter().enumerate() {
        add(&mut middle, &floats(passage), weight(rank));
    }
    let mut moved = vec![0.0; question.len()];
    add(&mut moved, &floats(question), 1.0 - VECTOR_SHARE);
    add(&mut moved, &middle, VECTOR_SHARE);
    #[expect(clippy::cast_possible_truncation, reason = "they are 1 at most")]
    let moved = moved.into_iter().map(|number| number as f32);
    moved.collect()
}

/// Puts the hits of vectors in the order of these cosines. Their own scores stay: they say how near the question itself is.
pub fn reorder<S: BuildHasher>(hits: &mut [Hit], cosines: &HashMap<Place, f32, S>) {
    let cosine = |hit: &Hit| cosines.get(&hit.place).copied().unwrap_or(f32::MIN);
    hits.sort_by(|a, b| {
        let places = (a.id, a.place).cmp(&(b.id, b.place));
        cosine(b).total_cmp(&cosine(a)).then(places)
    });
}

fn floats(vector: &[f32]) -> Vec<f64> {
    vector.iter().copied().map(f64::from).collect()
}

/// Adds the direction of a vector so many times; nothing where it has none.
fn add(sum: &mut [f64], vector: &[f64], times: f64) {
    let squares: f64 = vector.iter().map(|number| number * number).sum();
    let length = squares.sqrt();
    if length.is_normal() {
        for (sum, number) in sum.iter_mut().zip(vector) {
            *sum += times * number / length;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::chunking::ChunkId;

    fn cosine(one: &[f32], other: &[f32]) -> f32 {
        let product = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        product(one, other) / (product(one, one) * product(other, other)).sqrt()
    }

    proptest! {
        #[test]
        fn the_best_terms_are_those_of_all(
            weights in proptest::collection::vec(0_u8..9, 0..120),
            frequencies in proptest::collection::vec(0_u64..200, 120),
        ) {
            let rarity = |chunks| crate::indexing::rarity(200, chunks);
            let weights = weights.into_iter().map(f64::from).enumerate();
            let weights: HashMap<String, f64> = weights.map(|(term, weight)| (term.to_string(), weight)).collect();
            let rare = |term: &str| rarity(frequencies[term.parse::<usize>().expect("a number")]);
            let mut all: Vec<_> = weights.iter().map(|(term, weight)| (weight * rare(term), term.clone())).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            all.truncate(TERMS);
            prop_assert_eq!(best(weights, rarity(1), &mut |term| rare(term)), all);
        }
    }

    #[test]
    fn terms_that_cannot_be_among_the_best_are_not_looked_up() {
        let light = (0..1_000).map(|term| (format!("light{term}"), 0.1));
        let heavy = (0..TERMS).map(|term| (format!("heavy{term}"), 1.0));
        let mut asked = 0;
        let found = best(light.chain(heavy).collect(), 6.0, &mut |_| {
            asked += 1;
            3.0
        });
        assert!(found.iter().all(|(_, term)| term.starts_with("heavy")));
        assert_eq!(asked, TERMS);
    }

    #[test]
    fn a_question_moves_towards_its_first_passages() {
        let question = [2.0, 0.0, 0.0];
        let passages = [vec![0.0, 9.0, 0.0], vec![0.0, 0.0, 0.1]];
        let moved = moved(&question, &passages);
        let [own, first, second] = [
            cosine(&moved, &question),
            cosine(&moved, &passages[0]),
            cosine(&moved, &passages[1]),
        ];
        assert!(own > first && first > second && second > 0.1, "{moved:?}");
        for nothing in [vec![], vec![vec![0.0; 3]], vec![vec![f32::INFINITY; 3]]] {
            let stays = super::moved(&question, &nothing);
            assert!((cosine(&stays, &question) - 1.0).abs() < 1e-6, "{stays:?}");
        }
    }

    #[test]
    fn hits_stand_in_the_order_of_cosines_and_keep_their_scores() {
        let place = |index| Place {
            document: Uuid::nil(),
            index,
        };
        let mut hits: Vec<Hit> = (0..4)
            .map(|index| Hit {
                id: ChunkId::of(&index.to_string()),
                place: place(index),
                score: 1.0 - index as f32 / 10.0,
            })
            .collect();
        let before = hits.clone();
        let cosines = HashMap::from([(place(0), 0.2), (place(1), 0.1), (place(3), 0.9)]);
        reorder(&mut hits, &cosines);
        let order: Vec<usize> = hits.iter().map(|hit| hit.place.index).collect();
        assert_eq!(order, [3, 0, 1, 2]);
        assert!(hits.iter().all(|hit| before.contains(hit)));
    }
}
