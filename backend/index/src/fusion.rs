//! Rankings of several streams as one: weighted reciprocal rank fusion.
//!
//! A passage has from each ranking `weight / (rrf_k + rank)`, ranks from 1, where the weight is that of the stream times that of the form
//! of the question. Passages with the same content are one: the first of them counts. Ties are broken by the content's name, so that the
//! same question over the same documents has the same answer, in whatever order they came in.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{
    chunking::ChunkId,
    search::{Form, Place, Ranking, Stream},
};

/// How rankings become one. The names and the first three defaults are the interface's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FusionParameters {
    /// The most passages to return.
    pub top_k: usize,
    /// Each stream gives so many times more.
    pub search_multiplier: usize,
    /// How little the first ranks stand out.
    pub rrf_k: f64,
    /// What the stream of vectors counts.
    pub rrf_weight_dense: f64,
    /// What the stream of expanded questions counts.
    pub rrf_weight_sparse: f64,
    /// What the stream of the question's words counts.
    pub rrf_weight_bm25: f64,
    /// What the question as it was asked counts.
    pub query_weight_original: f64,
    /// What the question with the name replaced counts.
    pub query_weight_replaced: f64,
}

impl Default for FusionParameters {
    /// The weights of the streams were chosen on one half of Cranfield and checked on the other (`tests/bench retrieve`).
    fn default() -> Self {
        Self {
            top_k: 12,
            search_multiplier: 6,
            rrf_k: 15.0,
            rrf_weight_dense: 1.0,
            rrf_weight_sparse: 1.25,
            rrf_weight_bm25: 0.25,
            query_weight_original: 1.0,
            query_weight_replaced: 1.0,
        }
    }
}

impl FusionParameters {
    /// The most passages that may be returned.
    pub const MAX_TOP_K: usize = 1_000;
    /// The most passages that a stream gives.
    pub const MAX_DEPTH: usize = 10_000;

    /// How many passages each stream gives.
    #[must_use]
    pub fn depth(&self) -> usize {
        let depth = self.top_k().saturating_mul(self.search_multiplier.max(1));
        depth.min(Self::MAX_DEPTH)
    }

    pub(crate) fn top_k(&self) -> usize {
        self.top_k.min(Self::MAX_TOP_K)
    }

    /// What a ranking counts. Weights that are no numbers or below nothing count nothing.
    #[must_use]
    pub fn weight(&self, stream: Stream, form: Form) -> f64 {
        let stream = match stream {
            Stream::Dense => self.rrf_weight_dense,
            Stream::Sparse => self.rrf_weight_sparse,
            Stream::Bm25 => self.rrf_weight_bm25,
        };
        let form = match form {
            Form::Original => self.query_weight_original,
            Form::Replaced => self.query_weight_replaced,
        };
        let bounded = |weight: f64| match weight.is_finite() {
            true => weight.clamp(0.0, 1e6),
            false => 0.0,
        };
        bounded(stream) * bounded(form)
    }

    fn k(&self) -> f64 {
        match self.rrf_k.is_finite() {
            true => self.rrf_k.max(0.0),
            false => 15.0,
        }
    }
}

/// What one ranking gave a passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The stream.
    pub stream: Stream,
    /// The form of the question.
    pub form: Form,
    /// The passage's rank there, from 1.
    pub rank: usize,
    /// The stream's own score.
    pub score: f32,
    /// What of the fused score it is.
    pub share: f64,
}

/// A passage with what it got.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// The name of its content.
    pub id: ChunkId,
    /// Where it stands: the first of all places that were found.
    pub place: Place,
    /// Where else.
    pub duplicates: Vec<Place>,
    /// The sum of the shares.
    pub score: f64,
    /// What each ranking gave it, in their order.
    pub shares: Vec<Share>,
}

/// The best passages of these rankings, best first.
#[must_use]
pub fn fuse(rankings: &[Ranking], parameters: &FusionParameters) -> Vec<Fused> {
    let mut fused: HashMap<ChunkId, Fused> = HashMap::new();
    for ranking in rankings {
        let weight = parameters.weight(ranking.stream, ranking.form);
        if weight == 0.0 {
            continue;
        }
        let mut rank = 0;
        for hit in &ranking.hits {
            let passage = fused.entry(hit.id).or_insert_with(|| Fused {
                id: hit.id,
                place: hit.place,
                duplicates: Vec::new(),
                score: 0.0,
                shares: Vec::new(),
            });
            if passage.place != hit.place && !passage.duplicates.contains(&hit.place) {
                passage.duplicates.push(hit.place);
            }
            let last = passage.shares.last();
            if last.is_some_and(|last| (last.stream, last.form) == (ranking.stream, ranking.form)) {
                continue;
            }
            rank += 1;
            let share = weight / (parameters.k() + rank as f64);
            passage.score += share;
            passage.shares.push(Share {
                stream: ranking.stream,
                form: ranking.form,
                rank,
                score: hit.score,
                share,
            });
        }
    }
    let mut fused: Vec<Fused> = fused.into_values().collect();
    for passage in &mut fused {
        // The first place in the order of places, so that it does not depend on which stream came first.
        passage.duplicates.push(passage.place);
        passage.duplicates.sort_unstable();
        passage.place = passage.duplicates.remove(0);
    }
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    fused.truncate(parameters.top_k());
    fused
}

#[cfg(test)]
mod tests;
