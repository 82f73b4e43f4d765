//! What fused rankings always are.

use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::search::Hit;

fn hit(content: u8, document: u128) -> Hit {
    Hit {
        id: ChunkId::of(&content.to_string()),
        place: Place {
            document: Uuid::from_u128(document),
            index: 0,
        },
        score: 1.0,
    }
}

fn ranking(stream: Stream, form: Form, hits: Vec<Hit>) -> Ranking {
    Ranking {
        stream,
        form,
        hits,
        took: Duration::ZERO,
    }
}

#[test]
fn weights_and_ranks_make_the_score() {
    let rankings = [
        ranking(
            Stream::Dense,
            Form::Original,
            vec![hit(1, 1), hit(2, 2), hit(2, 3)],
        ),
        ranking(Stream::Bm25, Form::Replaced, vec![hit(2, 3)]),
    ];
    let parameters = FusionParameters {
        rrf_weight_bm25: 2.0,
        query_weight_replaced: 0.5,
        ..FusionParameters::default()
    };
    let fused = fuse(&rankings, &parameters);
    assert_eq!(fused[0].id, hit(2, 2).id);
    assert_eq!(fused[0].score, 1.0 / 17.0 + 2.0 * 0.5 / 16.0);
    assert_eq!(fused[0].place.document.as_u128(), 2);
    assert_eq!(fused[0].duplicates.len(), 1);
    assert_eq!(fused[1].score, 1.0 / 16.0);
}

#[test]
fn parameters_from_outside_are_bounded() {
    let parameters = FusionParameters {
        top_k: usize::MAX,
        search_multiplier: usize::MAX,
        rrf_k: f64::NAN,
        rrf_weight_dense: f64::INFINITY,
        rrf_weight_bm25: -1.0,
        ..FusionParameters::default()
    };
    assert_eq!(parameters.depth(), FusionParameters::MAX_DEPTH);
    assert_eq!(parameters.weight(Stream::Dense, Form::Original), 0.0);
    assert_eq!(parameters.weight(Stream::Bm25, Form::Original), 0.0);
    let rankings = [ranking(Stream::Sparse, Form::Original, vec![hit(1, 1)])];
    assert!(fuse(&rankings, &parameters)[0].score.is_finite());
}

fn rankings() -> impl Strategy<Value = Vec<Ranking>> {
    let hits = prop::collection::vec((0..12_u8, 0..4_u128), 0..20);
    let kinds = prop::sample::subsequence(
        vec![
            (Stream::Dense, Form::Original),
            (Stream::Sparse, Form::Original),
            (Stream::Bm25, Form::Original),
            (Stream::Dense, Form::Replaced),
        ],
        0..=4,
    );
    (kinds, prop::collection::vec(hits, 4)).prop_map(|(kinds, hits)| {
        let lists = kinds.into_iter().zip(hits);
        lists
            .map(|((stream, form), hits)| {
                let hits = hits.into_iter().map(|(content, place)| hit(content, place));
                ranking(stream, form, hits.collect())
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn fused_rankings_are_sorted_whole_and_the_same_in_any_order(rankings in rankings(), top_k in 0..15_usize) {
        let parameters = FusionParameters { top_k, ..FusionParameters::default() };
        let fused = fuse(&rankings, &parameters);
        prop_assert!(fused.len() <= top_k);
        let all: std::collections::BTreeSet<_> =
            rankings.iter().flat_map(|ranking| ranking.hits.iter().map(|hit| hit.id)).collect();
        prop_assert_eq!(fused.len(), all.len().min(top_k));
        for pair in fused.windows(2) {
            prop_assert!(pair[0].score >= pair[1].score);
            prop_assert!(pair[0].id != pair[1].id);
        }
        for passage in &fused {
            let sum: f64 = passage.shares.iter().map(|share| share.share).sum();
            prop_assert!((sum - passage.score).abs() < 1e-12);
            prop_assert!(passage.shares.len() <= rankings.len());
            prop_assert!(!passage.duplicates.contains(&passage.place));
        }
        let mut backwards = rankings.clone();
        backwards.reverse();
        let places = |fused: &[Fused]| fused.iter().map(|passage| {
            ((passage.score * 1e9).round() as u64, passage.id, passage.place, passage.duplicates.clone())
        }).collect::<Vec<_>>();
        if top_k == 14 {
            let (mut one, mut other) = (places(&fused), places(&fuse(&backwards, &parameters)));
            one.sort();
            other.sort();
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn a_better_rank_is_never_worse(rankings in rankings(), at in 1..19_usize) {
        let parameters = FusionParameters { top_k: 100, ..FusionParameters::default() };
        let Some(first) = rankings.first() else { return Ok(()) };
        let Some(moved) = first.hits.get(at).copied() else { return Ok(()) };
        let score = |rankings: &[Ranking]| {
            let fused = fuse(rankings, &parameters);
            fused.iter().find(|passage| passage.id == moved.id).map(|passage| passage.score)
        };
        let before = score(&rankings);
        let mut better = rankings.clone();
        better[0].hits.swap(at, at - 1);
        prop_assert!(score(&better) >= before);
    }
}
