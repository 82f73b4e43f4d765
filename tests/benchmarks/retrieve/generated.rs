//! Generated chunks: as many as wanted, with words as rare as those of texts are, and vectors in groups, as those of texts are.

use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId},
    search::IndexedDocument,
};
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use uuid::Uuid;

/// The numbers of a vector, as MiniLM has them.
const DIMENSIONS: usize = 384;
/// Groups of vectors.
const GROUPS: usize = 2_000;
/// How many words there are; the word of rank n is n times rarer than the first.
const WORDS: f64 = 200_000.0;
/// The words of a chunk.
const CHUNK: usize = 120;
/// The chunks of a document.
const DOCUMENT: usize = 20;

/// Where chunks and questions come from, the same ones each time.
#[derive(Debug)]
pub(crate) struct Generator {
    random: SmallRng,
    groups: Vec<Vec<f32>>,
    next: u128,
}

impl Generator {
    pub(crate) fn new() -> Self {
        let mut random = SmallRng::seed_from_u64(13);
        let groups = (0..GROUPS).map(|_| numbers(&mut random)).collect();
        Self {
            random,
            groups,
            next: 0,
        }
    }

    fn word(&mut self, from: f64) -> String {
        let place = from + self.random.random::<f64>() * (1.0 - from);
        format!("w{}", WORDS.powf(place).floor())
    }

    /// A vector near the middle of one of the groups.
    pub(crate) fn vector(&mut self) -> Vec<f32> {
        let group = self.random.random_range(0..GROUPS);
        let noise = numbers(&mut self.random);
        self.groups[group]
            .iter()
            .zip(noise)
            .map(|(group, noise)| group + 0.9 * noise)
            .collect()
    }

    /// Eight words, not the commonest ones.
    pub(crate) fn question(&mut self) -> String {
        (0..8)
            .map(|_| self.word(0.25))
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn document(&mut self) -> IndexedDocument {
        let id = Uuid::from_u128(self.next);
        self.next += 1;
        let chunks = (0..DOCUMENT).map(|index| {
            let text = (0..CHUNK)
                .map(|_| self.word(0.0))
                .collect::<Vec<_>>()
                .join(" ");
            let chunk = Chunk {
                id: ChunkId::of(&text),
                index,
                path: vec![format!("w{}", self.next)],
                headings: Vec::new(),
                range: 0..text.len(),
                tokens: CHUNK,
                text,
            };
            (chunk, self.vector().as_slice().into())
        });
        IndexedDocument {
            id,
            language: Some(Language::UNKNOWN),
            chunks: chunks.collect(),
        }
    }
}

fn numbers(random: &mut SmallRng) -> Vec<f32> {
    let number = |_| (0..4).map(|_| random.random::<f32>() - 0.5).sum();
    (0..DIMENSIONS).map(number).collect()
}
