//! The vectors of one space, in memory, and the passages nearest to a question.
//!
//! A vector is kept twice: as bytes, a 256th of its largest number exact, and as one bit for each number, its sign. A small space is compared
//! by bytes. In a large one the signs are compared first, which takes a few nanoseconds a vector, and the bytes only of those vectors that
//! agree in most signs: nothing has to be built when documents come, and nothing is left behind when they go.

use std::{collections::HashMap, thread};

use multiversion::multiversion;
use uuid::Uuid;

use crate::{
    analysis::Language,
    chunking::ChunkId,
    search::{Hit, Place},
};

/// Rows that lie side by side. Memory is taken for that many at a time.
const BLOCK: usize = 1_024;
/// Up to so many rows all are compared by their bytes.
const EXACT: usize = 20_000;
/// Of more rows, those are compared by bytes that agree in most signs: this part of them, and some for each that is wanted.
const CANDIDATE_PART: usize = 128;
const CANDIDATES_EACH: usize = 24;
/// From so many rows on two threads compare.
const PARALLEL: usize = 100_000;
/// The largest number of a question's vector. With those of rows it fits 32 bits for all dimensions there may be.
const QUESTION_SCALE: f32 = 2_047.0;

/// A vector as bytes: its direction is `codes`, each times `scale`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Codes {
    pub(super) codes: Vec<i8>,
    pub(super) scale: f32,
}

impl Codes {
    /// The direction of a vector; `None` when it has none.
    pub(super) fn of(vector: &[f32]) -> Option<Self> {
        let (direction, most) = direction(vector)?;
        let step = most / 127.0;
        // The range is bounded by construction.
        #[expect(clippy::cast_possible_truncation, reason = "127 at most")]
        let codes = direction.iter().map(|number| (number / step).round() as i8);
        Some(Self {
            codes: codes.collect(),
            scale: step,
        })
    }

    /// The vector again, as exact as it is kept.
    pub(super) fn vector(&self) -> Vec<f32> {
        self.codes
            .iter()
            .map(|code| f32::from(*code) * self.scale)
            .collect()
    }
}

/// The vector with the length of 1, and its largest number.
fn direction(vector: &[f32]) -> Option<(Vec<f32>, f32)> {
    let squares: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
    let length = squares.sqrt();
    if !length.is_normal() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is 1 at most")]
    let direction: Vec<f32> = vector
        .iter()
        .map(|number| (f64::from(*number) / length) as f32)
        .collect();
    let most = direction
        .iter()
        .fold(0.0_f32, |most, number| most.max(number.abs()));
    Some((direction, most))
}

/// What is known of a row beside its vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Its number in the index, which is never used again.
    pub(super) number: u64,
    pub(super) id: ChunkId,
    pub(super) place: Place,
    /// The terms of its text.
    pub(super) terms: u32,
    pub(super) language: Language,
}

#[derive(Debug, Default)]
struct Block {
    rows: Vec<Row>,
    /// The place of a row in the list of its document's rows.
    slots: Vec<u32>,
    scales: Vec<f32>,
    codes: Vec<i8>,
    signs: Vec<u8>,
}

/// The rows of a space.
#[derive(Debug, Default)]
pub(super) struct Partition {
    dimensions: usize,
    blocks: Vec<Block>,
    len: usize,
    /// Where the rows of a document are.
    documents: HashMap<Uuid, Vec<u32>>,
    /// Where a row is.
    numbers: HashMap<u64, u32>,
    terms: u64,
    languages: HashMap<Language, usize>,
}

impl Partition {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The dimensions of its vectors; 0 as long as there is none.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The terms of all of its texts.
    pub(super) fn terms(&self) -> u64 {
        self.terms
    }

    /// The languages of its texts, the commonest first.
    pub(super) fn languages(&self) -> Vec<Language> {
        let mut languages: Vec<_> = self.languages.iter().collect();
        languages.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        languages
            .into_iter()
            .map(|(language, _)| *language)
            .collect()
    }

    pub(super) fn document_len(&self, document: Uuid) -> usize {
        self.documents.get(&document).map_or(0, Vec::len)
    }

    pub(super) fn row(&self, number: u64) -> Option<&Row> {
        let at = usize::try_from(*self.numbers.get(&number)?).ok()?;
        self.blocks.get(at / BLOCK)?.rows.get(at % BLOCK)
    }

    /// The number of the row of a place.
    pub(super) fn number(&self, place: Place) -> Option<u64> {
        let (block, within) = self.at(place)?;
        Some(block.rows[within].number)
    }

    /// The vector of a place, as exact as it is kept.
    pub(super) fn vector(&self, place: Place) -> Option<Vec<f32>> {
        let (block, within) = self.at(place)?;
        let codes = block.codes(within, self.dimensions).iter();
        let scale = block.scales[within];
        Some(codes.map(|code| f32::from(*code) * scale).collect())
    }

    /// How near the rows of these places are to a vector; none where the vector has no direction or other dimensions.
    pub(super) fn cosines(
        &self,
        vector: &[f32],
        places: impl Iterator<Item = Place>,
    ) -> HashMap<Place, f32> {
        let question = Question::of(vector).filter(|_| vector.len() == self.dimensions);
        let Some(question) = question else {
            return HashMap::new();
        };
        let cosine = |place| {
            let (block, within) = self.at(place)?;
            Some((place, block.hit(within, &question).score))
        };
        places.filter_map(cosine).collect()
    }

    /// Where the row of a place is: the block, and its place there.
    fn at(&self, place: Place) -> Option<(&Block, usize)> {
        let rows = self.documents.get(&place.document)?;
        let row = |at: &u32| {
            let at = usize::try_from(*at).ok()?;
            let (block, within) = (self.blocks.get(at / BLOCK)?, at % BLOCK);
            let row = block.rows.get(within)?;
            (row.place == place).then_some((block, within))
        };
        // Chunks mostly come in their order.
        let guess = rows.get(place.index).and_then(row);
        guess.or_else(|| rows.iter().find_map(row))
    }

    /// Adds a row. Its vector has the dimensions of the others.
    pub(super) fn push(&mut self, row: Row, codes: &Codes) {
        if self.len == 0 {
            self.dimensions = codes.codes.len();
        }
        let Ok(at) = u32::try_from(self.len) else {
            return;
        };
        if self.len.is_multiple_of(BLOCK) {
            self.blocks.push(Block::default());
        }
        let Some(block) = self.blocks.last_mut() else {
            return;
        };
        let rows = self.documents.entry(row.place.document).or_default();
        block
            .slots
            .push(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        rows.push(at);
        block.rows.push(row);
        block.scales.push(codes.scale);
        block.codes.extend_from_slice(&codes.codes);
        block.signs.extend(codes.codes.chunks(8).map(|codes| {
            let bits = codes.iter().enumerate();
            bits.fold(0, |byte, (bit, code)| byte | u8::from(*code > 0) << bit)
        }));
        self.len += 1;
        self.numbers.insert(row.number, at);
        self.terms += u64::from(row.terms);
        *self.languages.entry(row.language).or_default() += 1;
    }

    /// Removes the rows of a document.
    pub(super) fn remove(&mut self, document: Uuid) {
        while let Some(at) = self.documents.get_mut(&document).and_then(Vec::pop) {
            self.swap_remove(at);
        }
        self.documents.remove(&document);
    }

    /// Puts the last row in the place of this one.
    fn swap_remove(&mut self, at: u32) {
        let dimensions = self.dimensions;
        let signs = dimensions.div_ceil(8);
        let Some(mut last) = self.blocks.pop() else {
            return;
        };
        let (Some(row), Some(scale), Some(slot)) =
            (last.rows.pop(), last.scales.pop(), last.slots.pop())
        else {
            return;
        };
        let codes = last
            .codes
            .split_off(last.codes.len().saturating_sub(dimensions));
        let bits = last.signs.split_off(last.signs.len().saturating_sub(signs));
        if !last.rows.is_empty() {
            self.blocks.push(last);
        }
        self.len -= 1;
        let mut gone = row;
        let index = usize::try_from(at).unwrap_or(usize::MAX);
        if index < self.len
            && let Some(block) = self.blocks.get_mut(index / BLOCK)
        {
            let within = index % BLOCK;
            gone = std::mem::replace(&mut block.rows[within], row);
            block.scales[within] = scale;
            block.slots[within] = slot;
            block.codes[within * dimensions..][..dimensions].copy_from_slice(&codes);
            block.signs[within * signs..][..signs].copy_from_slice(&bits);
            self.numbers.insert(row.number, at);
            let rows = self.documents.get_mut(&row.place.document);
            let slot = usize::try_from(slot).unwrap_or(usize::MAX);
            if let Some(moved) = rows.and_then(|rows| rows.get_mut(slot)) {
                *moved = at;
            }
        }
        self.numbers.remove(&gone.number);
        self.terms -= u64::from(gone.terms);
        if let Some(rows) = self.languages.get_mut(&gone.language) {
            *rows -= 1;
            if *rows == 0 {
                self.languages.remove(&gone.language);
            }
        }
    }

    /// All rows, with their vectors.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Row, Codes)> {
        let dimensions = self.dimensions.max(1);
        self.blocks.iter().flat_map(move |block| {
            let codes = block.codes.chunks(dimensions).zip(&block.scales);
            block.rows.iter().zip(codes.map(|(codes, scale)| Codes {
                codes: codes.to_vec(),
                scale: *scale,
            }))
        })
    }

    /// About what it keeps in memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let block = |block: &Block| {
            block.rows.capacity() * size_of::<Row>()
                + block.slots.capacity() * size_of::<u32>()
                + block.scales.capacity() * size_of::<f32>()
                + block.codes.capacity()
                + block.signs.capacity()
        };
        let blocks: usize = self.blocks.iter().map(block).sum();
        // A table of a hash map is half full or more; a list takes an allocation.
        let tables = self.documents.len() * 2 * size_of::<(Uuid, Vec<u32>)>()
            + self.len * size_of::<u32>() * 2
            + self.numbers.capacity() * (size_of::<(u64, u32)>() + 1);
        u64::try_from(blocks + tables).unwrap_or(u64::MAX)
    }

    /// The rows nearest to a vector, the nearest first; none where the vector has no direction or other dimensions.
    pub(super) fn nearest(&self, vector: &[f32], most: usize) -> Vec<Hit> {
        if vector.len() != self.dimensions || most == 0 {
            return Vec::new();
        }
        let Some(question) = Question::of(vector) else {
            return Vec::new();
        };
        let mut found = match self.len <= EXACT {
            true => self.all(&question),
            false => self.candidates(&question, most),
        };
        let order = |a: &Hit, b: &Hit| {
            let (a, b) = ((a.score, a.id, a.place), (b.score, b.id, b.place));
            b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2)))
        };
        if found.len() > most {
            found.select_nth_unstable_by(most, order);
            found.truncate(most);
        }
        found.sort_by(order);
        found
    }

    fn all(&self, question: &Question) -> Vec<Hit> {
        let hits = self
            .blocks
            .iter()
            .flat_map(|block| (0..block.rows.len()).map(|within| block.hit(within, question)));
        hits.collect()
    }

    /// The rows that agree with the question in most signs, with their scores.
    fn candidates(&self, question: &Question, most: usize) -> Vec<Hit> {
        let wanted = (most * CANDIDATES_EACH).max(self.len / CANDIDATE_PART);
        let mut distances = vec![0_u16; self.len];
        let threads = if self.len < PARALLEL { 1 } else { 2 };
        let part = self.blocks.len().div_ceil(threads).max(1);
        let mut counts = thread::scope(|scope| {
            let work = self
                .blocks
                .chunks(part)
                .zip(distances.chunks_mut(part * BLOCK));
            let mut work =
                work.map(|(blocks, distances)| move || compare(blocks, question, distances));
            let first = work.next();
            let others: Vec<_> = work.map(|work| scope.spawn(work)).collect();
            let first = first.map(|mut work| work()).into_iter();
            first
                .chain(others.into_iter().filter_map(|other| other.join().ok()))
                .collect::<Vec<_>>()
        });
        let mut total = counts.pop().unwrap_or_default();
        for counts in counts {
            total
                .iter_mut()
                .zip(counts)
                .for_each(|(total, count)| *total += count);
        }
        let mut so_far = 0;
        let within = total.iter().position(|count| {
            so_far += count;
            so_far >= wanted
        });
        let furthest = within.unwrap_or(total.len());
        let near = distances
            .iter()
            .enumerate()
            .filter(|(_, distance)| usize::from(**distance) <= furthest);
        near.filter_map(|(at, _)| Some(self.blocks.get(at / BLOCK)?.hit(at % BLOCK, question)))
            .collect()
    }
}

/// In how many signs rows differ from the question, and how many rows differ in so many.
#[multiversion(targets("x86_64+avx2+popcnt", "x86_64+sse4.2+popcnt"))]
fn compare(blocks: &[Block], question: &Question, distances: &mut [u16]) -> Vec<usize> {
    let bytes = question.signs.len();
    let mut counts = vec![0; bytes * 8 + 1];
    for (block, distances) in blocks.iter().zip(distances.chunks_mut(BLOCK)) {
        for (signs, distance) in block.signs.chunks_exact(bytes).zip(distances) {
            let differ = hamming_bitwise_fast::slice::distance(&question.signs, signs);
            *distance = u16::try_from(differ).unwrap_or(u16::MAX);
            counts[usize::from(*distance)] += 1;
        }
    }
    counts
}

/// The product of two vectors.
#[multiversion(targets("x86_64+avx2", "x86_64+sse4.2"))]
fn product(codes: &[i8], numbers: &[i16]) -> i32 {
    let products = codes
        .iter()
        .zip(numbers)
        .map(|(code, number)| i32::from(*code) * i32::from(*number));
    products.sum()
}

impl Block {
    fn codes(&self, within: usize, dimensions: usize) -> &[i8] {
        &self.codes[within * dimensions..][..dimensions]
    }

    fn hit(&self, within: usize, question: &Question) -> Hit {
        let codes = self.codes(within, question.numbers.len());
        let product = product(codes, &question.numbers);
        let row = &self.rows[within];
        Hit {
            id: row.id,
            place: row.place,
            score: product as f32 * self.scales[within] * question.scale,
        }
    }
}

/// The vector of a question, as rows are compared with it.
struct Question {
    numbers: Vec<i16>,
    scale: f32,
    signs: Vec<u8>,
}

impl Question {
    fn of(vector: &[f32]) -> Option<Self> {
        let (direction, most) = direction(vector)?;
        let scale = most / QUESTION_SCALE;
        #[expect(clippy::cast_possible_truncation, reason = "2,047 at most")]
        let numbers: Vec<i16> = direction
            .iter()
            .map(|number| (number / scale).round() as i16)
            .collect();
        let signs = numbers.chunks(8).map(|numbers| {
            let bits = numbers.iter().enumerate();
            bits.fold(0, |byte, (bit, number)| byte | u8::from(*number > 0) << bit)
        });
        Some(Self {
            signs: signs.collect(),
            numbers,
            scale,
        })
    }
}

#[cfg(test)]
mod tests;
