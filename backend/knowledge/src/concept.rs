//! What a word of a question stands for: itself, and words that mean much the same.

use std::{collections::HashMap, sync::LazyLock};

use super::{Learned, terms};

/// What a related word counts, where the word itself counts 1.
const RELATED: f64 = 0.8;

/// The related terms of a term.
static TABLE: LazyLock<HashMap<String, Vec<String>>> =
    LazyLock::new(|| read(include_str!("related.txt")));

/// A word of a question, with what its variants count.
#[derive(Debug, Clone, PartialEq)]
pub struct Concept {
    /// The terms, the word's own first, and what each counts.
    variants: Vec<(String, f64)>,
    /// How many of them are known of all texts; the others were learned from these.
    known: usize,
}

impl Concept {
    /// What the terms of a text stand for, of which each counts so much.
    #[must_use]
    pub fn all(text: &str, weight: f64) -> Vec<Self> {
        Self::among(text, weight, &Learned::default())
    }

    /// The same, with what was learned from documents.
    #[must_use]
    pub fn among(text: &str, weight: f64, learned: &Learned) -> Vec<Self> {
        let concept = |term: String| {
            let related = TABLE.get(&term).into_iter().flatten();
            let related = related.map(|other| (other.clone(), RELATED * weight));
            let mut variants: Vec<_> = std::iter::once((term.clone(), weight))
                .chain(related)
                .collect();
            let known = variants.len();
            for (variant, counts) in learned.variants(&term) {
                if !variants.iter().any(|(known, _)| known == variant) {
                    variants.push((variant.to_owned(), counts * weight));
                }
            }
            Self { variants, known }
        };
        terms(text).into_iter().map(concept).collect()
    }

    /// Its variants, and what each of them counts.
    pub fn variants(&self) -> impl Iterator<Item = (&str, f64)> {
        self.variants
            .iter()
            .map(|(term, weight)| (term.as_str(), *weight))
    }
}

impl Concept {
    /// Its variants that mean much the same in all texts.
    pub(super) fn known(&self) -> impl Iterator<Item = (&str, f64)> {
        self.variants().take(self.known)
    }

    /// Its variants that were learned, and which part each counts of what the word itself counts.
    pub(super) fn learned(&self) -> impl Iterator<Item = (&str, f64)> {
        let own = self.variants.first().map_or(1.0, |(_, weight)| *weight);
        let learned = self.variants().skip(self.known);
        learned.map(move |(term, weight)| (term, weight / own))
    }
}

/// Lines of words, each related to the others of its line.
fn read(table: &str) -> HashMap<String, Vec<String>> {
    let mut related: HashMap<String, Vec<String>> = HashMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words = terms(line);
        for word in &words {
            let others = related.entry(word.clone()).or_default();
            for other in &words {
                if other != word && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
    }
    related
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_words_count_less() {
        let [concept] = &Concept::all("How much does it cost?", 1.0)[..] else {
            panic!("one word is about something")
        };
        let counts = |word: &str| concept.variants().find(|(term, _)| *term == word);
        assert_eq!(counts("cost"), Some(("cost", 1.0)));
        assert_eq!(
            counts(&terms("prices")[0]).map(|(_, weight)| weight),
            Some(RELATED)
        );
        assert_eq!(counts("lion"), None);
    }
}
