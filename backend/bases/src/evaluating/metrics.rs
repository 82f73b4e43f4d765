//! How well rankings answer questions.
//!
//! A document is relevant if the question expects it, and otherwise not (binary relevance). A ranking of passages is one of documents: each stands where
//! its best passage stands, and documents that share a passage stand in the order of their ids.

use colloquy_index::search::Passage;
use uuid::Uuid;

/// How well a ranking answers a question, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scores {
    /// The part of the expected documents that are among the first `k`.
    pub(crate) recall: f64,
    /// The gain of the expected documents among the first `k`, each discounted by its rank, over that of an ideal ranking.
    pub(crate) ndcg: f64,
    /// 1 / rank of the first expected document; 0 if none is among the first `k`.
    pub(crate) reciprocal_rank: f64,
}

impl Scores {
    /// Returns the scores of the ranks of all expected documents, each from 1, or `None` if it was not found. Without expected documents there
    /// are no scores.
    pub(crate) fn of(ranks: &[Option<usize>], k: usize) -> Option<Self> {
        if ranks.is_empty() {
            return None;
        }
        let within = || ranks.iter().copied().flatten().filter(|rank| *rank <= k);
        let ideal: f64 = (1..=ranks.len().min(k)).map(gain).sum();
        let first = within().min();
        Some(Self {
            recall: within().count() as f64 / ranks.len() as f64,
            ndcg: within().map(gain).sum::<f64>() / ideal,
            reciprocal_rank: first.map_or(0.0, |rank| 1.0 / rank as f64),
        })
    }

    /// Returns the means of scores; `None` if there are none.
    pub(crate) fn mean(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / count;
        (!all.is_empty()).then(|| Self {
            recall: mean(|scores| scores.recall),
            ndcg: mean(|scores| scores.ndcg),
            reciprocal_rank: mean(|scores| scores.reciprocal_rank),
        })
    }
}

/// What a document of this rank adds.
fn gain(rank: usize) -> f64 {
    1.0 / (rank as f64 + 1.0).log2()
}

/// Returns the documents of ranked passages, best first, each once.
pub(crate) fn documents(passages: &[Passage]) -> Vec<Uuid> {
    let mut ranked: Vec<Uuid> = Vec::new();
    for passage in passages {
        let places = std::iter::once(&passage.place).chain(&passage.duplicates);
        for place in places {
            if !ranked.contains(&place.document) {
                ranked.push(place.document);
            }
        }
    }
    ranked
}

#[cfg(test)]
mod tests {
    use colloquy_index::{chunking::ChunkId, search::Place};

    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    /// The expected values are computed by hand: log2(2) = 1, log2(3) = 1.584962501, log2(4) = 2, log2(5) = 2.321928095, log2(6) = 2.584962501.
    #[test]
    fn scores_are_those_of_their_definitions() {
        for (ranks, k, recall, ndcg, reciprocal_rank) in [
            // All of them at the top.
            (vec![Some(1)], 10, 1.0, 1.0, 1.0),
            (vec![Some(2), Some(1)], 10, 1.0, 1.0, 1.0),
            // (1/2) / 1
            (vec![Some(3)], 10, 1.0, 0.5, 1.0 / 3.0),
            // (1/log2(3) + 1/log2(6)) / (1 + 1/log2(3))
            (vec![Some(5), Some(2)], 10, 1.0, 0.624_050_520_0, 0.5),
            // One of two: 1 / (1 + 1/log2(3))
            (vec![Some(1), None], 10, 0.5, 0.613_147_192_8, 1.0),
            // Behind the cut-off.
            (vec![Some(5)], 4, 0.0, 0.0, 0.0),
            (vec![Some(4)], 4, 1.0, 0.430_676_558_1, 0.25),
            (vec![None, None], 10, 0.0, 0.0, 0.0),
            // More are expected than count: 2 of 3 at most, ideally both places.
            (vec![Some(1), Some(2), Some(3)], 2, 2.0 / 3.0, 1.0, 1.0),
        ] {
            let scores = Scores::of(&ranks, k).unwrap();
            close(scores.recall, recall);
            close(scores.ndcg, ndcg);
            close(scores.reciprocal_rank, reciprocal_rank);
        }
        assert_eq!(Scores::of(&[], 10), None);
    }

    #[test]
    fn figures_are_means_over_questions() {
        let of = |ranks: &[Option<usize>]| Scores::of(ranks, 10).unwrap();
        let all = [of(&[Some(1)]), of(&[Some(3)]), of(&[None])];
        let mean = Scores::mean(&all).unwrap();
        close(mean.recall, 2.0 / 3.0);
        close(mean.ndcg, 0.5);
        close(mean.reciprocal_rank, 4.0 / 9.0);
        assert_eq!(Scores::mean(&[]), None);
    }

    #[test]
    fn a_document_stands_where_its_best_passage_stands() {
        let at = |document: u128, index| Place {
            document: Uuid::from_u128(document),
            index,
        };
        let passage = |place, duplicates| Passage {
            place,
            duplicates,
            id: ChunkId::from_bytes([0; 16]),
            path: Vec::new(),
            headings: Vec::new(),
            text: String::new(),
            range: 0..0,
            score: 0.0,
            shares: Vec::new(),
        };
        let passages = [
            passage(at(7, 1), Vec::new()),
            passage(at(3, 0), vec![at(7, 4), at(9, 0)]),
            passage(at(7, 0), Vec::new()),
            passage(at(1, 0), Vec::new()),
        ];
        let ranked = documents(&passages).into_iter().map(|id| id.as_u128());
        assert_eq!(ranked.collect::<Vec<_>>(), [7, 3, 9, 1]);
        assert!(documents(&[]).is_empty());
    }
}
