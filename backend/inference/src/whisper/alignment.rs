//! When tokens were said.
//!
//! When the decoder says a token, some heads of its attention look at where the token is in the utterance. What they look at is
//! computed from their queries, which the decoder gives where it is asked for them, and the keys of the utterance. Only the
//! utterance's own positions count: neither the silence that is added to it nor that which stands for the rest of thirty
//! seconds. Dynamic time warping then finds the way through the utterance, token by token, that has most of the attention.

use super::dimensions::Dimensions;
use crate::{InferenceError, runtime::Floats};

/// For each layer of the decoder, what its heads ask of the utterance at each token, [tokens, width].
pub(super) type Queries = Vec<Vec<f32>>;

/// Positions whose median is taken: a single one that stands out is noise.
const MEDIAN: usize = 7;

/// How late the known heads are, in positions: those of `tiny.en` look at a word from 100 ms after its beginning on. Measured against an
/// alignment by PocketSphinx of 82 words in 11 recordings. All heads of the upper half together were not late there.
const LATE: usize = 5;

/// A layer and a head in it.
type Head = (usize, usize);

/// The heads that follow what is said, as they were found for the models that were published: layers, heads in each, whether for
/// all languages; and of each such head a hundred times its layer, plus its number there.
const KNOWN: [(usize, usize, bool, &[usize]); 6] = [
    (4, 6, false, &[100, 200, 205, 300, 301, 302, 303, 304]),
    (4, 6, true, &[202, 300, 302, 303, 304, 305]),
    (6, 8, false, &[303, 407, 501, 505, 507]),
    (6, 8, true, &[301, 402, 403, 407, 501, 502, 504, 506]),
    (
        12,
        12,
        false,
        &[
            606, 700, 703, 708, 802, 805, 807, 900, 904, 908, 910, 1000, 1001, 1002, 1003, 1006,
            1011, 1102, 1104,
        ],
    ),
    (
        12,
        12,
        true,
        &[503, 509, 800, 804, 807, 808, 900, 907, 909, 1005],
    ),
];

/// The heads that follow what is said.
#[derive(Debug)]
pub(super) struct AlignmentHeads {
    heads: Vec<Head>,
    late: usize,
    width: usize,
    head_width: usize,
}

impl AlignmentHeads {
    /// Those of a model. Where they are not known: all heads of the upper half of its layers.
    pub(super) fn of(dimensions: Dimensions, is_multilingual: bool) -> Self {
        let Dimensions { decoder, heads, .. } = dimensions;
        let known: Option<Vec<Head>> = KNOWN
            .iter()
            .find(|(layers, of_layer, all, _)| {
                (*layers, *of_layer, *all) == (decoder, heads, is_multilingual)
            })
            .map(|(.., known)| known.iter().map(|head| (head / 100, head % 100)).collect());
        let upper =
            || (decoder / 2..decoder).flat_map(|layer| (0..heads).map(move |head| (layer, head)));
        Self {
            late: known.as_ref().map_or(0, |_| LATE),
            heads: known.unwrap_or_else(|| upper().collect()),
            width: dimensions.width,
            head_width: dimensions.head_width(),
        }
    }

    /// At which of so many positions each of the last tokens begins, and where the text ends: one more than tokens. `keys_and_values`
    /// are those of each layer, over the utterance's positions and others after them.
    pub(super) fn begins(
        &self,
        queries: &Queries,
        keys_and_values: &[Floats],
        positions: usize,
        tokens: usize,
    ) -> Result<Vec<usize>, InferenceError> {
        // What a token asks leads to the one after it; so the one before the text is asked where the text begins.
        let rows = tokens + 1;
        if positions == 0 {
            return Ok(vec![0; rows]);
        }
        let mut sum: Vec<f32> = Vec::new();
        for (layer, head) in &self.heads {
            let queries = queries.get(*layer);
            let keys = keys_and_values.get(2 * layer);
            let attention = queries
                .zip(keys)
                .and_then(|(queries, keys)| self.attention(queries, keys, *head, positions))
                .filter(|attention| attention.len() >= rows * positions)
                .ok_or_else(|| InferenceError::Failed("attention is missing".to_owned()))?;
            sum.resize(attention.len(), 0.0);
            for (sum, attention) in sum.iter_mut().zip(attention) {
                *sum += attention;
            }
        }
        centre(&mut sum, positions);
        let text = sum.split_off(sum.len().saturating_sub(rows * positions));
        let smooth: Vec<_> = text.chunks_exact(positions).flat_map(medians).collect();
        let begins = warp(&smooth, positions).into_iter();
        Ok(begins
            .map(|begin| begin.saturating_sub(self.late))
            .collect())
    }

    /// The attention of a head, [tokens, positions].
    fn attention(
        &self,
        queries: &[f32],
        keys: &Floats,
        head: usize,
        positions: usize,
    ) -> Option<Vec<f32>> {
        let all = *keys.shape.last()?;
        let keys = keys
            .data
            .chunks_exact(self.head_width * all.max(1))
            .nth(head)?;
        let own = head * self.head_width..(head + 1) * self.head_width;
        let mut attention = Vec::new();
        for query in queries.chunks_exact(self.width) {
            let mut row = vec![0.0; positions];
            for (query, keys) in query.get(own.clone())?.iter().zip(keys.chunks_exact(all)) {
                for (score, key) in row.iter_mut().zip(keys.get(..positions)?) {
                    *score += query * key;
                }
            }
            soften(&mut row);
            attention.extend(row);
        }
        Some(attention)
    }
}

/// Makes shares of scores.
fn soften(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let mut all = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        all += *score;
    }
    for score in scores {
        *score /= all;
    }
}

/// Makes the mean of all tokens zero at each position: what all of them look at says nothing.
fn centre(attention: &mut [f32], positions: usize) {
    let rows = (attention.len() / positions) as f32;
    let mut means = vec![0.0; positions];
    for row in attention.chunks_exact(positions) {
        for (mean, one) in means.iter_mut().zip(row) {
            *mean += one / rows;
        }
    }
    for row in attention.chunks_exact_mut(positions) {
        for (one, mean) in row.iter_mut().zip(&means) {
            *one -= mean;
        }
    }
}

/// The median around each position.
fn medians(row: &[f32]) -> impl Iterator<Item = f32> {
    let last = row.len().saturating_sub(1);
    (0..row.len()).map(move |at| {
        let mut around: [f32; MEDIAN] =
            std::array::from_fn(|index| row[(at + index).saturating_sub(MEDIAN / 2).min(last)]);
        around.sort_unstable_by(f32::total_cmp);
        around[MEDIAN / 2]
    })
}

/// Where each row begins on the way from the first row and position to the last ones that has most of the attention. A step goes to
/// the next position, to the next row, or to both.
fn warp(attention: &[f32], positions: usize) -> Vec<usize> {
    #[derive(Clone, Copy)]
    enum From {
        Both,
        Row,
        Position,
    }
    let rows = attention.len() / positions;
    let mut steps = Vec::with_capacity(attention.len());
    let mut before: Vec<f32> = Vec::new();
    for row in attention.chunks_exact(positions) {
        let mut current: Vec<f32> = Vec::with_capacity(positions);
        for (at, attention) in row.iter().enumerate() {
            let above = before.get(at).map(|best| (*best, From::Row));
            let left = at.checked_sub(1);
            let both = left.and_then(|left| before.get(left));
            let both = both.map(|best| (*best, From::Both));
            let left = left.and_then(|left| current.get(left));
            let left = left.map(|best| (*best, From::Position));
            let best = [both, above, left]
                .into_iter()
                .flatten()
                .reduce(|best, other| if other.0 > best.0 { other } else { best });
            let (best, step) = best.unwrap_or((0.0, From::Both));
            current.push(best + attention);
            steps.push(step);
        }
        before = current;
    }
    let mut begins = vec![0; rows];
    let (mut row, mut at) = (rows.saturating_sub(1), positions - 1);
    loop {
        begins[row] = at;
        if (row, at) == (0, 0) {
            return begins;
        }
        let step = match (row, at) {
            (0, _) => From::Position,
            (_, 0) => From::Row,
            _ => steps[row * positions + at],
        };
        match step {
            From::Both => (row, at) = (row - 1, at - 1),
            From::Row => row -= 1,
            From::Position => at -= 1,
        }
    }
}

#[cfg(test)]
#[path = "alignment_tests.rs"]
mod tests;
