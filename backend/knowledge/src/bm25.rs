//! Okapi BM25 over texts that are already terms.

use std::collections::HashMap;

use super::Concept;

const K1: f64 = 1.2;
/// How much less a long text counts; sentences differ in length for less of a reason than passages do.
const B: f64 = 0.75;
const B_OF_SENTENCES: f64 = 0.3;

/// The part of its weight that a word counts which stands nowhere.
const UNKNOWN: f64 = 0.5;

/// The statistics of a small collection, in memory. A term is kept once, and each text as numbers of terms, so that an index takes about
/// as much memory as its text.
#[derive(Debug, Clone, Default)]
pub struct Bm25 {
    /// The number of each term.
    numbers: HashMap<String, u32>,
    /// By the number of the term, in how many texts it stands.
    frequency: Vec<u32>,
    /// For each text, the numbers of its terms in ascending order, and how often each stands in it.
    counts: Vec<Box<[(u32, u32)]>>,
    lengths: Vec<f64>,
    mean_length: f64,
    b: f64,
}

impl Bm25 {
    /// Counts the terms of these texts.
    pub fn new(texts: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut index = Self {
            b: B,
            ..Self::default()
        };
        for terms in texts {
            index.lengths.push(terms.len() as f64);
            let mut numbers: Vec<u32> = terms.into_iter().map(|term| index.number(term)).collect();
            numbers.sort_unstable();
            let same = numbers.chunk_by(|one, other| one == other);
            let counts: Box<[(u32, u32)]> = same
                .filter_map(|same| Some((*same.first()?, same.len() as u32)))
                .collect();
            for (number, _) in &counts {
                index.frequency[*number as usize] += 1;
            }
            index.counts.push(counts);
        }
        let total: f64 = index.lengths.iter().sum();
        index.mean_length = (total / index.lengths.len().max(1) as f64).max(1.0);
        index
    }

    /// The number of a term, which is new if nobody has asked for it.
    fn number(&mut self, term: String) -> u32 {
        let next = self.frequency.len() as u32;
        let number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.frequency.push(0);
        }
        number
    }

    /// How often a term stands in a text.
    fn count(&self, text: usize, term: &str) -> u32 {
        let (Some(number), Some(counts)) = (self.numbers.get(term), self.counts.get(text)) else {
            return 0;
        };
        let found = counts.binary_search_by_key(number, |(number, _)| *number);
        found.map_or(0, |at| counts[at].1)
    }

    /// Counts the terms of these sentences.
    pub fn of_sentences(sentences: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self {
            b: B_OF_SENTENCES,
            ..Self::new(sentences)
        }
    }

    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How much a term tells; a term that stands nowhere tells most.
    #[must_use]
    pub fn weight(&self, term: &str) -> f64 {
        let texts = self.counts.len() as f64;
        let with = self.numbers.get(term);
        let with = with.map_or(0.0, |number| f64::from(self.frequency[*number as usize]));
        (1.0 + (texts - with + 0.5) / (with + 0.5)).ln()
    }

    /// Whether the term stands in any text.
    #[must_use]
    pub fn knows(&self, term: &str) -> bool {
        self.numbers.contains_key(term)
    }

    /// Whether the term stands in this text.
    #[must_use]
    pub fn has(&self, text: usize, term: &str) -> bool {
        self.count(text, term) > 0
    }

    /// How much a word of a question tells: as much as the best of its variants that stand somewhere.
    #[must_use]
    pub fn weight_of(&self, concept: &Concept) -> f64 {
        let weight =
            |(term, count): (&str, f64)| self.knows(term).then(|| count * self.weight(term));
        let best = concept.known().filter_map(weight).reduce(f64::max);
        let best = best.or_else(|| concept.variants().filter_map(weight).reduce(f64::max));
        // A word that stands nowhere may be the subject, or one of those that people say beside it.
        let unknown = || {
            concept
                .variants()
                .next()
                .map(|(term, _)| UNKNOWN * self.weight(term))
        };
        best.or_else(unknown).unwrap_or_default()
    }

    /// Which part of a word of a question stands in this text: all of it with the word or one that means much the same, less with what
    /// belongs to it in these documents.
    #[must_use]
    pub fn covers(&self, text: usize, concept: &Concept) -> f64 {
        if concept.known().any(|(term, _)| self.has(text, term)) {
            return 1.0;
        }
        let learned = concept.learned().filter(|(term, _)| self.has(text, term));
        learned.map(|(_, part)| part).fold(0.0, f64::max)
    }

    /// The score of a text for the words of a question, of which the best variant counts; 0 when none of them stands in it.
    pub fn score<'a>(&self, text: usize, query: impl IntoIterator<Item = &'a Concept>) -> f64 {
        let Some(length) = self.lengths.get(text) else {
            return 0.0;
        };
        let norm = K1 * (1.0 - self.b + self.b * length / self.mean_length);
        let score = |(term, weight): (&str, f64)| {
            let count = f64::from(self.count(text, term));
            weight * self.weight(term) * count * (K1 + 1.0) / (count + norm)
        };
        let best = |concept: &Concept| concept.variants().map(score).fold(0.0, f64::max);
        query.into_iter().map(best).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Learned, terms};

    fn index() -> Bm25 {
        Bm25::new(
            ["lion eat meat", "giraffe eat leaf", "zoo open nine zoo zoo"]
                .map(|text| text.split(' ').map(str::to_owned).collect()),
        )
    }

    #[test]
    fn rare_terms_tell_more() {
        let index = index();
        assert!(index.weight("lion") > index.weight("eat"));
        assert!(index.weight("unknown") > index.weight("lion"));
        let question = Concept::all("lion eat", 1.0);
        let score = |text| index.score(text, &question);
        assert!(score(0) > score(1) && score(1) > score(2));
        assert_eq!(score(2), 0.0);
        assert_eq!(score(9), 0.0);
    }

    #[test]
    fn a_related_word_counts_less_than_the_word_itself() {
        let words = ["zoo price", "zoo cost", "zoo lion"];
        let index = Bm25::new(words.map(terms));
        let question = Concept::all("cost", 1.0);
        let score = |text| index.score(text, &question);
        assert!(score(1) > score(0) && score(0) > score(2));
        assert_eq!(score(2), 0.0);
        assert_eq!(index.covers(0, &question[0]), 1.0);
        assert_eq!(index.covers(2, &question[0]), 0.0);
    }

    #[test]
    fn what_was_learned_counts_less_still() {
        let texts = [
            "You pay Value Added Tax (VAT).",
            "VAT is twenty percent.",
            "Lions",
        ];
        let index = Bm25::new(texts.map(terms));
        let learned = Learned::of(texts);
        let question = Concept::among("tax", 1.0, &learned);
        let covers = |text| index.covers(text, &question[0]);
        assert_eq!(covers(0), 1.0);
        assert!(covers(1) > 0.5 && covers(1) < 1.0);
        assert_eq!(covers(2), 0.0);
        let score = |text| index.score(text, &question);
        assert!(score(0) > score(1) && score(1) > score(2));
        assert_eq!(index.weight_of(&question[0]), index.weight("tax"));
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let index = Bm25::new([]);
        assert!(index.is_empty());
        assert_eq!(index.score(0, &Concept::all("lion", 1.0)), 0.0);
    }
}
