//! The sentences that answer a question.

use std::ops::Range;

use colloquy_knowledge::{Bm25, Concept, Learned, Passage, sentences, terms};

use super::intent;

/// A sentence has to share this part of the question's weight.
const MIN_COVERAGE: f64 = 0.34;
/// What words of the turns before count.
const CONTEXT_WEIGHT: f64 = 0.35;
/// A following sentence may be said too when it scores this part of the best one; one that was not said yet may be said
/// instead.
const FOLLOWING: f64 = 0.6;
/// A sentence of the kind asked for (a time, a number, a place) is preferred by this factor.
const KIND_BONUS: f64 = 1.35;
/// A sentence that shares words with the question only by its title counts this part.
const BY_TITLE: f64 = 0.5;
/// What a character knows by itself counts this part of what its documents say.
const BY_ITSELF: f64 = 0.5;
/// An answer is at most this long, in characters and in sentences.
const MAX_CHARS: usize = 320;
const MAX_SENTENCES: usize = 3;

/// An answer found in the material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The sentences.
    pub(super) text: String,
    /// The title of where they stand; `None` for what the character knows by itself.
    pub(super) title: Option<String>,
}

/// What can be said.
pub(super) struct Material {
    sentences: Vec<Sentence>,
    /// Of the sentences, each with its title and heading.
    index: Bm25,
    /// Of the sentences alone.
    own: Bm25,
    /// What the passages say about which words belong together.
    learned: Learned,
}

struct Sentence {
    text: String,
    /// Its own terms; the index knows those of its title and heading too.
    own: Vec<String>,
    title: Option<String>,
    /// Sentences of one source follow each other.
    source: usize,
    is_heading: bool,
}

impl Sentence {
    /// Whether a word of the question, or one that means much the same, stands in it.
    fn has(&self, word: &Concept) -> bool {
        let mut variants = word.variants();
        variants.any(|(variant, _)| self.own.iter().any(|own| own == variant))
    }
}

impl Material {
    /// The sentences of the passages, and facts without a title.
    pub(super) fn new(passages: &[Passage], facts: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
        let mut indexed = Vec::new();
        for (source, passage) in passages.iter().enumerate() {
            let mut heading = String::new();
            for text in sentences(&passage.text) {
                let is_heading = is_heading(text);
                if is_heading {
                    text.clone_into(&mut heading);
                }
                indexed.push(terms(&format!("{} {heading} {text}", passage.title)));
                all.push(Sentence {
                    text: finished(text),
                    own: terms(text),
                    title: Some(passage.title.clone()),
                    source,
                    is_heading,
                });
            }
        }
        for (at, text) in facts.into_iter().enumerate() {
            indexed.push(terms(&text));
            all.push(Sentence {
                own: terms(&text),
                text,
                title: None,
                source: passages.len() + at,
                is_heading: false,
            });
        }
        Self {
            own: Bm25::of_sentences(all.iter().map(|sentence| sentence.own.clone())),
            sentences: all,
            index: Bm25::of_sentences(indexed),
            learned: Learned::of(passages.iter().map(|passage| passage.text.as_str())),
        }
    }

    /// The best answer to `said`; `context` is what was said before it. `told` says which sentences were said already:
    /// those give way to equally good ones.
    pub(super) fn answer(
        &self,
        said: &str,
        context: &str,
        told: impl Fn(&str) -> bool,
    ) -> Option<Answer> {
        let question = Concept::among(said, 1.0, &self.learned);
        let is_follow_up = question.len() < 2 || intent::points_back(said);
        let context = match is_follow_up {
            true => Concept::among(context, CONTEXT_WEIGHT, &self.learned),
            false => Vec::new(),
        };
        let total: f64 = question.iter().map(|word| self.index.weight_of(word)).sum();
        let kind = Kind::of(said);
        let score = |at: usize| {
            let sentence = &self.sentences[at];
            let covered: f64 = question
                .iter()
                .map(|word| self.index.covers(at, word) * self.index.weight_of(word))
                .sum();
            let fits = kind.is_some_and(|kind| kind.fits(&sentence.text));
            // "Where is that?" has no subject of its own; it needs the one of before, and the kind asked for.
            let coverage = match question.is_empty() {
                true if is_follow_up && fits => 1.0,
                true => 0.0,
                false => covered / total,
            };
            if sentence.is_heading || coverage < MIN_COVERAGE {
                return 0.0;
            }
            let bonus = if fits { KIND_BONUS } else { 1.0 };
            let shares = |word: &Concept| sentence.has(word);
            let own = if question.is_empty() || question.iter().any(shares) {
                1.0
            } else {
                BY_TITLE
            };
            let source = match sentence.title {
                Some(_) => 1.0,
                None => BY_ITSELF,
            };
            let words = || question.iter().chain(&context);
            let score = self.index.score(at, words()) + self.own.score(at, words());
            own * source * bonus * coverage.sqrt() * score
        };
        let scores = (0..self.sentences.len()).map(score).collect::<Vec<_>>();
        let best = |skip_told: bool| {
            (0..scores.len())
                .filter(|at| scores[*at] > 0.0)
                .filter(|at| !skip_told || !told(&self.sentences[*at].text))
                // The first of equals, which `max_by` would not give.
                .reduce(|best, at| if scores[at] > scores[best] { at } else { best })
        };
        let first = best(false)?;
        let chosen = best(true)
            .filter(|fresh| scores[*fresh] >= FOLLOWING * scores[first])
            .unwrap_or(first);
        let is_open = kind.is_none() && question.len() < 2;
        Some(self.around(chosen, |said, next| {
            let has = |at: usize, word| self.sentences[at].has(word);
            let adds = question
                .iter()
                .any(|word| has(next, word) && !said.clone().any(|at| has(at, word)));
            (adds || is_open) && scores[next] >= FOLLOWING * scores[chosen]
        }))
    }

    /// The sentences that follow what was said last, and were not said yet.
    pub(super) fn following(&self, said: &str, told: impl Fn(&str) -> bool) -> Option<Answer> {
        let last = (0..self.sentences.len())
            .rev()
            .find(|at| said.contains(&self.sentences[*at].text))?;
        let next = (last + 1..self.sentences.len()).find(|at| {
            let sentence = &self.sentences[*at];
            sentence.source == self.sentences[last].source
                && !sentence.is_heading
                && !told(&sentence.text)
        })?;
        Some(self.around(next, |_, _| false))
    }

    /// The sentence with those around it that it needs, and those that belong to the answer: `belongs` gets what is
    /// said so far and the next one.
    fn around(&self, at: usize, belongs: impl Fn(Range<usize>, usize) -> bool) -> Answer {
        let same_source = |other: usize| {
            self.sentences
                .get(other)
                .is_some_and(|s| s.source == self.sentences[at].source && !s.is_heading)
        };
        let mut start = at;
        if leans_back(&self.sentences[at].text) && at > 0 && same_source(at - 1) {
            start = at - 1;
        }
        let mut end = at + 1;
        while end - start < MAX_SENTENCES && same_source(end) {
            let next = &self.sentences[end].text;
            let continues = end == at + 1 && leans_back(next);
            let length: usize = self.sentences[start..=end]
                .iter()
                .map(|sentence| sentence.text.chars().count() + 1)
                .sum();
            if !(continues || belongs(start..end, end)) || length > MAX_CHARS {
                break;
            }
            end += 1;
        }
        let text = self.sentences[start..end]
            .iter()
            .map(|sentence| sentence.text.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        Answer {
            text,
            title: self.sentences[at].title.clone(),
        }
    }
}

/// What a question word asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Number,
    Place,
    /// What happens in some case.
    Case,
    /// What somebody may or can do.
    Possibility,
    /// What is needed.
    Need,
}

impl Kind {
    fn of(said: &str) -> Option<Self> {
        let said = intent::plain(said);
        let has = |words: &[&str]| words.iter().any(|word| said.contains(&format!(" {word} ")));
        if has(&["what if", "what happens", "what now", "was passiert"]) {
            Some(Self::Case)
        } else if has(&[
            "when",
            "what time",
            "how long",
            "hours",
            "wann",
            "cuándo",
            "quand",
            "quando",
        ]) {
            Some(Self::Time)
        } else if has(&[
            "how much",
            "how many",
            "how old",
            "how far",
            "how tall",
            "price",
            "cost",
            "costs",
            "wie viel",
            "wie viele",
            "cuánto",
            "combien",
            "quanto",
        ]) {
            Some(Self::Number)
        } else if has(&["where", "wo", "dónde", "où", "dove", "onde"]) {
            Some(Self::Place)
        } else if has(&[
            "do i need",
            "do i have to",
            "must i",
            "do we need",
            "is it necessary",
        ]) {
            Some(Self::Need)
        } else if has(&["can", "could", "may", "possible", "allowed"]) {
            Some(Self::Possibility)
        } else {
            None
        }
    }

    /// Whether a sentence holds what is asked for.
    fn fits(self, sentence: &str) -> bool {
        const NUMBERS: &[&str] = &[
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve", "twenty", "thirty", "forty", "fifty", "hundred", "thousand",
            "free", "half",
        ];
        const TIMES: &[&str] = &[
            "o'clock",
            "am",
            "pm",
            "noon",
            "midnight",
            "daily",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "morning",
            "evening",
            "summer",
            "winter",
            "year",
            "years",
            "century",
            "today",
        ];
        const PLACES: &[&str] = &[
            "at", "in", "on", "near", "beside", "behind", "opposite", "between", "under", "next",
            "street", "floor", "left", "right", "north", "south", "east", "west", "entrance",
        ];
        let plain = intent::plain(sentence);
        let has = |words: &[&str]| plain.split_whitespace().any(|word| words.contains(&word));
        let counts = has(NUMBERS) || plain.bytes().any(|byte| byte.is_ascii_digit());
        match self {
            Self::Time => counts || has(TIMES),
            Self::Number => counts,
            Self::Place => has(PLACES),
            Self::Case => has(&["when", "if", "once", "after", "wenn"]),
            Self::Possibility => has(&["can", "may", "could", "cannot"]),
            Self::Need => has(&[
                "without", "need", "needs", "must", "require", "requires", "has",
            ]),
        }
    }
}

/// A line that names what follows.
fn is_heading(text: &str) -> bool {
    let ends = text.ends_with(['.', '!', '?', '。', '！', '？', '।', '؟', ':', ';']);
    let tells = text.contains(':') || text.bytes().any(|byte| byte.is_ascii_digit());
    !ends && !tells && text.split_whitespace().count() <= 6
}

/// A sentence that cannot be understood without the one before it.
fn leans_back(text: &str) -> bool {
    const PRONOUNS: &[&str] = &[
        "it", "its", "they", "their", "he", "his", "she", "her", "this", "these", "those", "there",
    ];
    let first = text.split_whitespace().next().unwrap_or_default();
    PRONOUNS.contains(&first.to_lowercase().as_str())
}

/// A line of a list gets the full stop that speaking it needs.
fn finished(text: &str) -> String {
    if text.ends_with(|c: char| c.is_alphanumeric() || c == ')') {
        format!("{text}.")
    } else {
        text.to_owned()
    }
}
