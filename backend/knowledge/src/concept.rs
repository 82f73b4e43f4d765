//! What a word of a question stands for: itself, and words that mean much the same.

use std::{collections::HashMap, sync::LazyLock};

use super::terms;

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
}

impl Concept {
    /// What the terms of a text stand for, of which each counts so much.
    #[must_use]
    pub fn all(text: &str, weight: f64) -> Vec<Self> {
        let concept = |term: String| {
            let related = TABLE.get(&term).into_iter().flatten();
            let related = related.map(|other| (other.clone(), RELATED * weight));
            let related = related.collect::<Vec<_>>();
            Self {
                variants: std::iter::once((term, weight)).chain(related).collect(),
            }
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
