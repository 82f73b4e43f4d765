//! Vectors that are found again, however many there are.

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use super::*;
use crate::indexing::has_direction;

const DIMENSIONS: usize = 96;

fn row(number: u64, document: u128, index: usize) -> Row {
    Row {
        number,
        id: ChunkId::of(&number.to_string()),
        place: Place {
            document: Uuid::from_u128(document),
            index,
        },
        terms: 3,
        language: Language::UNKNOWN,
    }
}

fn random(random: &mut SmallRng) -> Vec<f32> {
    (0..DIMENSIONS)
        .map(|_| random.random::<f32>() + random.random::<f32>() - 1.0)
        .collect()
}

/// Vectors in groups, as those of texts are.
fn grouped(from: &mut SmallRng, groups: &[Vec<f32>]) -> Vec<f32> {
    let group = &groups[from.random_range(0..groups.len())];
    let noise = random(from);
    group.iter().zip(noise).map(|(a, b)| a + 0.8 * b).collect()
}

#[test]
fn vectors_are_kept_nearly_exact() {
    let mut from = SmallRng::seed_from_u64(1);
    for _ in 0..100 {
        let vector = random(&mut from);
        let codes = Codes::of(&vector).unwrap();
        let (direction, _) = direction(&vector).unwrap();
        let product: f32 = codes
            .vector()
            .iter()
            .zip(&direction)
            .map(|(a, b)| a * b)
            .sum();
        // Half of a step each, a 254th of the largest number: they mostly cancel out.
        assert!((product - 1.0).abs() < 0.005, "{product}");
        // What was kept is kept as it is when it is put again.
        assert_eq!(Codes::of(&codes.vector()).unwrap().codes, codes.codes);
    }
    for wrong in [
        vec![0.0; 4],
        vec![f32::NAN; 4],
        vec![f32::INFINITY, 1.0],
        vec![],
    ] {
        assert!(Codes::of(&wrong).is_none() && !has_direction(&wrong));
    }
}

/// Signs alone choose what is compared in a large space; nearly all of the nearest are among it.
#[test]
fn a_large_space_finds_what_comparing_all_would() {
    let mut from = SmallRng::seed_from_u64(2);
    let groups: Vec<_> = (0..300).map(|_| random(&mut from)).collect();
    let mut partition = Partition::default();
    for number in 0..u64::try_from(EXACT + 5_000).unwrap() {
        let codes = Codes::of(&grouped(&mut from, &groups)).unwrap();
        partition.push(
            row(
                number,
                u128::from(number / 10),
                usize::try_from(number % 10).unwrap(),
            ),
            &codes,
        );
    }
    let (mut found, mut wanted) = (0, 0);
    for _ in 0..20 {
        let vector = grouped(&mut from, &groups);
        let mut all = partition.all(&Question::of(&vector).unwrap());
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let near: std::collections::HashSet<_> = partition
            .nearest(&vector, 72)
            .into_iter()
            .map(|hit| hit.id)
            .collect();
        assert_eq!(near.len(), 72);
        wanted += 72;
        found += all[..72]
            .iter()
            .filter(|hit| near.contains(&hit.id))
            .count();
    }
    assert!(found * 100 >= wanted * 97, "{found} of {wanted}");
}

#[test]
fn what_is_removed_is_gone_and_the_rest_is_where_it_was() {
    let mut from = SmallRng::seed_from_u64(3);
    let mut partition = Partition::default();
    let mut vectors: HashMap<u64, (u128, Vec<f32>)> = HashMap::new();
    let mut next = 0;
    for step in 0..400_u64 {
        let document = u128::from(from.random_range(0..40_u32));
        partition.remove(Uuid::from_u128(document));
        vectors.retain(|_, (of, _)| *of != document);
        if step % 3 != 0 {
            for index in 0..from.random_range(1..60_usize) {
                let vector = random(&mut from);
                partition.push(row(next, document, index), &Codes::of(&vector).unwrap());
                vectors.insert(next, (document, vector));
                next += 1;
            }
        }
        assert_eq!(partition.len(), vectors.len());
    }
    assert_eq!(partition.terms(), 3 * u64::try_from(vectors.len()).unwrap());
    assert_eq!(partition.rows().count(), vectors.len());
    for (number, (document, vector)) in &vectors {
        let row = *partition.row(*number).unwrap();
        assert_eq!(row.place.document.as_u128(), *document);
        assert_eq!(partition.number(row.place), Some(*number));
        let found = partition.nearest(vector, 1);
        assert_eq!(found[0].place, row.place);
        assert!(found[0].score > 0.99);
    }
    for document in 0..40 {
        partition.remove(Uuid::from_u128(document));
    }
    assert_eq!(
        (partition.len(), partition.terms(), partition.blocks.len()),
        (0, 0, 0)
    );
    assert!(partition.nearest(&[1.0; DIMENSIONS], 5).is_empty());
}
