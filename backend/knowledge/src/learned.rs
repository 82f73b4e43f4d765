//! What documents themselves say about which words belong together: an abbreviation and what it stands for, a heading and the words of its
//! section.

use std::collections::{HashMap, HashSet};

use super::{
    prose::{BlockKind, blocks},
    terms,
};

/// What a part of a long name counts for its abbreviation, and the other way round, where the word itself counts 1.
const ABBREVIATION: f64 = 0.7;
/// What a word of a section counts for its heading, and the other way round.
const HEADING: f64 = 0.3;

/// The letters of an abbreviation.
const LETTERS: std::ops::RangeInclusive<usize> = 2..=8;
/// The most words before a bracket that are looked at for a long name.
const LONG_NAME_WORDS: usize = 14;
/// How far from a bracket it is looked at, in characters.
const NEAR: usize = 120;
/// How many words of a section belong to its heading: those that it says most often, and no other section says.
const SECTION_WORDS: usize = 5;
/// How often a section says such a word.
const SECTION_COUNT: usize = 2;
/// The most words that belong to one.
const MOST_VARIANTS: usize = 8;
/// How much is read of all documents, in bytes: what is counted of their sections takes many times as much.
const MOST_BYTES: usize = 1024 * 1024;
/// The most words that something is learned about.
const MOST_WORDS: usize = 4_096;

/// The words that belong together in some documents.
#[derive(Debug, Clone, Default)]
pub struct Learned {
    variants: HashMap<String, Vec<(String, f64)>>,
}

/// A heading and the words below it, with how often each stands there.
struct Section {
    heading: Vec<String>,
    words: HashMap<String, usize>,
}

impl Learned {
    /// Reads documents, of which the first [`MOST_BYTES`] together are learned from.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut learned = Self::default();
        let mut all = Vec::new();
        let mut room = MOST_BYTES;
        for text in texts {
            let text = &text[..text.floor_char_boundary(room)];
            room -= text.len();
            let mut section = None;
            for block in blocks(text) {
                learned.abbreviations(&block.text);
                let words = terms(&block.text);
                if matches!(block.kind, BlockKind::Heading { .. }) {
                    all.extend(section.take());
                    let heading: HashSet<_> = words.into_iter().collect();
                    let mut heading: Vec<_> = heading.into_iter().collect();
                    heading.sort();
                    section = Some(Section {
                        heading,
                        words: HashMap::new(),
                    });
                } else if let Some(section) = &mut section {
                    for word in words {
                        *section.words.entry(word).or_default() += 1;
                    }
                }
            }
            all.extend(section);
        }
        learned.headings(&all);
        learned
    }

    /// What belongs to a term, and what each counts.
    pub(super) fn variants(&self, term: &str) -> impl Iterator<Item = (&str, f64)> {
        let variants = self.variants.get(term).into_iter().flatten();
        variants.map(|(term, weight)| (term.as_str(), *weight))
    }

    fn add(&mut self, term: &str, variant: &str, weight: f64) {
        if term == variant || self.variants.len() >= MOST_WORDS && !self.variants.contains_key(term)
        {
            return;
        }
        let variants = self.variants.entry(term.to_owned()).or_default();
        if variants.len() < MOST_VARIANTS && !variants.iter().any(|(known, _)| known == variant) {
            variants.push((variant.to_owned(), weight));
        }
    }

    fn both(&mut self, one: &str, other: &str, weight: f64) {
        self.add(one, other, weight);
        self.add(other, one, weight);
    }

    /// "Long Name (LN)", and "LN (Long Name)".
    fn abbreviations(&mut self, line: &str) {
        let mut searched = 0;
        while let Some(open) = line[searched..].find('(').map(|at| searched + at) {
            searched = open + 1;
            let mut near = line[searched..].char_indices().take(NEAR);
            let Some((length, _)) = near.find(|(_, c)| *c == ')') else {
                continue;
            };
            let near = line[..open].char_indices().rev().take(NEAR).last();
            let before = &line[near.map_or(open, |(at, _)| at)..open];
            let inside = line[searched..searched + length].trim();
            let pair = match is_abbreviation(inside) {
                true => spelled(inside, before).map(|name| (inside, name)),
                false => {
                    let short = before.split_whitespace().next_back().unwrap_or_default();
                    let is_whole = |name: &String| words(inside).count() == words(name).count();
                    is_abbreviation(short)
                        .then(|| spelled(short, inside).filter(is_whole))
                        .flatten()
                        .map(|name| (short, name))
                }
            };
            if let Some((short, name)) = pair {
                for short in terms(short) {
                    for word in terms(&name) {
                        self.both(&short, &word, ABBREVIATION);
                    }
                }
            }
        }
    }

    /// The words of a section that no other one says.
    fn headings(&mut self, sections: &[Section]) {
        // One alone says nothing about what others do not say.
        if sections.len() < 2 {
            return;
        }
        let mut said_in: HashMap<&str, usize> = HashMap::new();
        for section in sections {
            for word in section.words.keys() {
                *said_in.entry(word).or_default() += 1;
            }
        }
        for section in sections {
            let own = section.words.iter().filter(|(word, count)| {
                **count >= SECTION_COUNT && said_in.get(word.as_str()) == Some(&1)
            });
            let mut own: Vec<_> = own.collect();
            // The same documents teach the same.
            own.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            for (word, _) in own.into_iter().take(SECTION_WORDS) {
                for heading in &section.heading {
                    self.both(heading, word, HEADING);
                }
            }
        }
    }
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// Capital letters and digits, as "VAT", "GmbH" or "B2B".
fn is_abbreviation(word: &str) -> bool {
    let capitals = word.chars().filter(|c| c.is_uppercase()).count();
    LETTERS.contains(&word.chars().count())
        && capitals >= 2
        && word.chars().all(char::is_alphanumeric)
}

/// The last words of a text, if their first letters spell an abbreviation. Short words between them need no letter.
fn spelled(short: &str, text: &str) -> Option<String> {
    let mut letters = short.chars().flat_map(char::to_lowercase).rev().peekable();
    let mut name = Vec::new();
    for word in words(text).rev().take(LONG_NAME_WORDS) {
        let Some(letter) = letters.peek() else { break };
        let first = word.chars().flat_map(char::to_lowercase).next();
        if first == Some(*letter) {
            letters.next();
        } else if name.is_empty() || word.chars().count() > 3 {
            return None;
        }
        name.push(word);
    }
    name.reverse();
    letters.peek().is_none().then(|| name.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(text: &str, word: &str) -> Vec<(String, f64)> {
        let learned = Learned::of([text]);
        let variants = learned.variants(word);
        variants
            .map(|(term, weight)| (term.to_owned(), weight))
            .collect()
    }

    #[test]
    fn abbreviations_are_what_they_stand_for() {
        for text in [
            "You pay Value Added Tax (VAT) on it.",
            "You pay VAT (value-added tax) on it.",
        ] {
            let expected = ["valu", "add", "tax"].map(|term| (term.to_owned(), ABBREVIATION));
            assert_eq!(learned(text, "vat"), expected, "{text}");
            assert_eq!(learned(text, "tax"), [("vat".to_owned(), ABBREVIATION)]);
        }
        let name = "The Institute of the History of Art (IHA) is open.";
        assert_eq!(learned(name, "iha").len(), 3);
        for text in [
            "It rains (OK) in Rome.",
            "The zoo (ABC) is open.",
            "Call us (9 to 5).",
            "A bracket (that is open",
            "() (()) )(",
            "Value Added Tax (vat)",
            "(VAT)",
        ] {
            assert!(Learned::of([text]).variants.is_empty(), "{text}");
        }
    }

    #[test]
    fn headings_belong_to_the_words_of_their_sections() {
        let text = "# Getting here\nThe tram stops outside. Take tram 4 or tram 6.\n\n# Feeding\nPenguins eat at noon. \
                    The penguins like visitors.";
        assert_eq!(learned(text, "feed"), [("penguin".to_owned(), HEADING)]);
        assert_eq!(learned(text, "penguin"), [("feed".to_owned(), HEADING)]);
        assert!(learned(text, "noon").is_empty(), "it is said once");
        let single = "# Feeding\nPenguins eat. Penguins swim.";
        assert!(learned(single, "feed").is_empty());
    }

    #[test]
    fn what_is_learned_is_bounded() {
        let pairs = (0..20_000_u32).map(|at| {
            let letter = |shift: u32| char::from(b'A' + (at / 10_u32.pow(shift) % 10) as u8);
            let (a, b, c) = (letter(0), letter(1), letter(2));
            format!("{a}word{at} {b}word{at} {c}word{at} ({a}{b}{c})\n")
        });
        let learned = Learned::of([pairs.collect::<String>().as_str()]);
        assert_eq!(learned.variants.len(), MOST_WORDS);
        let most = learned.variants.values().map(Vec::len).max();
        assert_eq!(most, Some(MOST_VARIANTS));
        for brackets in ["(", "(A", "A(", "( A"] {
            let brackets = brackets.repeat(50_000) + ")";
            assert!(Learned::of([brackets.as_str()]).variants.is_empty());
        }
    }
}
