//! The sentences that answer a question.

use std::cmp::Ordering;

use colloquy_knowledge::{
    Bm25, Concept, Learned, Passage,
    prose::{BlockKind, UNMARKED, blocks},
    sentences, terms,
};

use super::{
    intent, kinds::asks_what_is_needed, labels, prices::Asked, reading, steps, titles::spoken_title,
};

/// A sentence has to share this part of the question's weight.
const MIN_COVERAGE: f64 = 0.34;
/// A heading with this part of the question's weight names what is asked for, if the question has as much of its words.
const HEADING_COVERAGE: f64 = 0.6;
/// What words of the turns before count.
const CONTEXT_WEIGHT: f64 = 0.35;
/// A following sentence may be said too when it scores this part of the best one; one that was not said yet may be said
/// instead.
const FOLLOWING: f64 = 0.6;
/// A sentence of the kind asked for (a time, a number, a place) is preferred by this factor.
const KIND_BONUS: f64 = 1.35;
/// A sentence that shares words with the question only by its title counts this part.
const BY_TITLE: f64 = 0.5;
/// A sentence with a price that nobody asked for counts this part, unless it holds what was asked for, too.
const BY_PRICE: f64 = 0.5;
/// What a character knows by itself counts this part of what its documents say.
const BY_ITSELF: f64 = 0.5;
/// An answer is at most this long, in characters and in sentences, of which the steps of an instruction are not counted.
const MAX_CHARS: usize = 320;
const MAX_SENTENCES: usize = 3;
/// A longer sentence is cut, in bytes.
const MAX_SENTENCE_BYTES: usize = 1_024;
/// The most sentences that are compared.
const MOST_SENTENCES: usize = 4_096;
/// The most words of a title, a heading or the names of columns that count for the sentences below.
const MOST_WORDS_ABOVE: usize = 12;
/// How much of these is read, in bytes.
const ABOVE_BYTES: usize = 400;
/// The most words of a question that are compared, and of its context.
const MAX_QUESTION_WORDS: usize = 128;

/// An answer found in the material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The sentences.
    pub(super) text: String,
    /// Where they stand; `None` for what the character knows by itself.
    pub(super) source: Option<Source>,
}

/// Where an answer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The number of the passage.
    pub(super) passage: usize,
    /// The title of its document, as it is said; empty where that is no more than the name of a file.
    pub(super) title: String,
}

/// What can be said.
pub(super) struct Material {
    sentences: Vec<Sentence>,
    headings: Vec<Heading>,
    titles: Vec<String>,
    /// Of the sentences, each with its title and heading.
    index: Bm25,
    /// Of the sentences alone.
    own: Bm25,
    /// What the passages say about which words belong together.
    learned: Learned,
}

struct Heading {
    /// The passage that it stands in or above.
    place: Place,
    words: Vec<String>,
    /// The heading that this one stands below, by its number.
    above: Option<usize>,
    is_question: bool,
}

/// Where a passage stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The first passage of its document, by its number.
    document: usize,
    /// The place of the passage in its document.
    chunk_index: usize,
}

impl Place {
    fn is_before(self, other: Self) -> bool {
        self.document == other.document && self.chunk_index < other.chunk_index
    }
}

impl Heading {
    fn new(text: &str, above: Option<usize>, place: Place) -> Self {
        Self {
            place,
            words: few_terms(text),
            above,
            is_question: asks(text),
        }
    }
}

struct Sentence {
    text: String,
    /// Its own terms; the index knows those of its title and heading too.
    own: Vec<String>,
    /// The number of these.
    about: usize,
    /// The passage, or none for what the character knows by itself.
    passage: Option<usize>,
    /// The heading above it, by its number. Sentences of one section follow each other.
    heading: Option<usize>,
    /// It asks something, so that it answers nothing; what follows may.
    is_question: bool,
    /// The number of the item of a list that it stands in.
    step: Option<u16>,
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
        let passages = reading::passages(passages);
        let mut all = Vec::new();
        let mut headings: Vec<Heading> = Vec::new();
        // What sentences are about besides their own words; the first is nothing.
        let mut contexts: Vec<Vec<String>> = vec![Vec::new()];
        for (number, (passage, text)) in passages.iter().enumerate() {
            let is_of_document = |(other, _): &(&Passage, &str)| other.document == passage.document;
            let place = Place {
                document: passages.iter().position(is_of_document).unwrap_or(number),
                chunk_index: passage.chunk_index,
            };
            let title = few_terms(&passage.title);
            let label_end = labels::end_of(passage, text);
            let mut heading = None;
            // What stands in front of the text's own headings is about the words of all headings above the passage.
            let mut of_headings = Vec::new();
            for above in &passage.headings {
                let above = labels::without(above, label_end);
                headings.push(Heading::new(above, heading, place));
                heading = Some(headings.len() - 1);
                of_headings.extend(few_terms(above));
            }
            let above_text = heading;
            // The words above a block that complete it where it is code.
            let mut announcement: Option<String> = None;
            // The headings of the text that what comes stands below, with their levels.
            let mut open: Vec<(u8, usize)> = Vec::new();
            for block in blocks(text) {
                let announced = announcement.take();
                let with_code;
                let (columns, said) = match block.kind {
                    BlockKind::Heading { level } => {
                        open.retain(|(other, _)| *other < level);
                        let above = open.last().map(|(_, number)| *number);
                        // A line that is not marked stands below all headings.
                        let above = above.or(above_text.filter(|_| level == UNMARKED));
                        let text = labels::without(&block.text, label_end);
                        headings.push(Heading::new(text, above, place));
                        open.push((level, headings.len() - 1));
                        heading = Some(headings.len() - 1);
                        of_headings = few_terms(text);
                        announcement = Some(text.to_owned());
                        continue;
                    }
                    BlockKind::Row { columns } => (columns, vec![block.text.as_str()]),
                    BlockKind::Text => ("", sentences(&block.text)),
                    BlockKind::Code => {
                        let Some(above) = announced else { continue };
                        let Some(whole) = steps::announced(&above, block.source) else {
                            continue;
                        };
                        // The sentence with its code stands for the one without.
                        all.pop_if(|last: &mut Sentence| last.text == above);
                        with_code = whole;
                        ("", vec![with_code.as_str()])
                    }
                };
                let first = all.len();
                let step = steps::number(block.source);
                let columns = few_terms(columns);
                let above = [title.as_slice(), &of_headings, &columns].concat();
                contexts.push(above.clone());
                for text in said.into_iter().take(MOST_SENTENCES - all.len()) {
                    let text = labels::without(text, label_end);
                    let is_question = asks(text);
                    all.push(Sentence {
                        text: finished(text),
                        own: terms(text),
                        about: contexts.len() - 1,
                        passage: Some(number),
                        heading,
                        is_question,
                        step,
                    });
                    if is_question {
                        // "Do you want a map? Ask at the entrance."
                        contexts.push([above.as_slice(), &few_terms(text)].concat());
                    }
                }
                let last = all[first..].last().filter(|it| it.text.ends_with(':'));
                announcement = last.map(|it| it.text.clone());
            }
        }
        let facts = facts.into_iter().take(MOST_SENTENCES - all.len());
        let facts = facts.map(|text| Sentence {
            own: terms(&text),
            text,
            about: 0,
            passage: None,
            heading: None,
            is_question: false,
            step: None,
        });
        all.extend(facts);
        let with_context =
            |sentence: &Sentence| [&contexts[sentence.about][..], &sentence.own].concat();
        let titles = passages.iter();
        Self {
            own: Bm25::of_sentences(all.iter().map(|sentence| sentence.own.clone())),
            index: Bm25::of_sentences(all.iter().map(with_context)),
            titles: titles
                .map(|(passage, text)| spoken_title(passage, text))
                .collect(),
            sentences: all,
            headings,
            learned: Learned::of(passages.iter().map(|(_, text)| *text)),
        }
    }

    /// The title of a passage as it is said.
    pub(super) fn title(&self, passage: usize) -> &str {
        self.titles.get(passage).map_or("", String::as_str)
    }

    /// The best answer to `said`; `context` is what was said before it. `told` says which sentences were said already:
    /// those give way to equally good ones.
    pub(super) fn answer(
        &self,
        said: &str,
        context: &str,
        told: impl Fn(&str) -> bool,
    ) -> Option<Answer> {
        let words = |text: &str, weight: f64| {
            let mut words = Concept::among(text, weight, &self.learned);
            words.truncate(MAX_QUESTION_WORDS);
            words
        };
        let mut question = words(said, 1.0);
        if question.len() > 1 && asks_what_is_needed(said) {
            // The rest says what it is about.
            let own = |word: &Concept| word.variants().next().map(|(term, _)| term.to_owned());
            question.retain(|word| own(word).as_deref() != Some("need"));
        }
        let is_follow_up = question.len() < 2 || intent::points_back(said);
        let asked = match is_follow_up {
            true => Asked::of(said).after(context),
            false => Asked::of(said),
        };
        let context = match is_follow_up {
            true => words(context, CONTEXT_WEIGHT),
            false => Vec::new(),
        };
        if let Some(answer) = self.below_heading(&question, asked, &told) {
            return Some(answer);
        }
        let total: f64 = question.iter().map(|word| self.index.weight_of(word)).sum();
        let score = |at: usize| {
            let sentence = &self.sentences[at];
            let covered: f64 = question
                .iter()
                .map(|word| self.index.covers(at, word) * self.index.weight_of(word))
                .sum();
            let fits = asked.fits(&sentence.text);
            // "Where is that?" has no subject of its own; it needs the one of before, and the kind asked for.
            let coverage = match question.is_empty() {
                true if is_follow_up && fits => 1.0,
                true => 0.0,
                false => covered / total,
            };
            if sentence.is_question || coverage < MIN_COVERAGE {
                return 0.0;
            }
            let bonus = if fits { KIND_BONUS } else { 1.0 };
            let shares = |word: &Concept| sentence.has(word);
            let own = if question.is_empty() || question.iter().any(shares) {
                1.0
            } else {
                BY_TITLE
            };
            let by_price = match asked.has_other_price(&sentence.text) {
                true => BY_PRICE,
                false => 1.0,
            };
            let source = match sentence.passage {
                Some(_) => 1.0,
                None => BY_ITSELF,
            };
            let words = || question.iter().chain(&context);
            let score = self.index.score(at, words()) + self.own.score(at, words());
            own * by_price * source * bonus * coverage.sqrt() * score
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
        let is_open = asked.kind.is_none() && question.len() < 2;
        Some(self.around(chosen, asked, |said, next| {
            let has = |at: usize, word| self.sentences[at].has(word);
            let adds = question
                .iter()
                .any(|word| has(next, word) && !said.iter().any(|at| has(*at, word)));
            (adds || is_open) && scores[next] >= FOLLOWING * scores[chosen]
        }))
    }

    /// What stands below the heading that names what is asked for: from its beginning, or from the first sentence of the kind that is
    /// asked for. What was said already gives way to what follows it. A question that is a heading is answered below its own headings, too.
    /// Of headings that name it equally well the first one counts, but of one document that of the passage which stands before the others.
    fn below_heading(
        &self,
        question: &[Concept],
        asked: Asked,
        told: impl Fn(&str) -> bool,
    ) -> Option<Answer> {
        let total: f64 = question.iter().map(|word| self.index.weight_of(word)).sum();
        let fit = |terms: &[String]| {
            let has = |word: &Concept| {
                let mut variants = word.variants();
                variants.any(|(variant, _)| terms.iter().any(|term| term == variant))
            };
            let named = question.iter().filter(|word| has(word));
            let named: f64 = named.map(|word| self.index.weight_of(word)).sum();
            let asked = terms.iter().filter(|term| {
                let mut variants = question.iter().flat_map(Concept::variants);
                variants.any(|(variant, _)| variant == **term)
            });
            let asked = asked.count() as f64 / terms.len() as f64;
            match total > 0.0 && !terms.is_empty() {
                true => (named / total).min(asked),
                false => 0.0,
            }
        };
        let mut fits: Vec<f64> = Vec::with_capacity(self.headings.len());
        for heading in &self.headings {
            let asked = heading.above.filter(|at| self.headings[*at].is_question);
            let asked = asked.map_or(0.0, |at| fits[at]);
            fits.push(fit(&heading.words).max(asked));
        }
        let mut has_text = vec![false; fits.len()];
        for heading in self.sentences.iter().filter_map(|it| it.heading) {
            has_text[heading] = true;
        }
        let is_better = |next: usize, best: usize| match fits[next].total_cmp(&fits[best]) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let (next, best) = (&self.headings[next], &self.headings[best]);
                next.place.is_before(best.place)
            }
        };
        let heading = (0..fits.len())
            .filter(|at| has_text[*at] && fits[*at] >= HEADING_COVERAGE)
            .reduce(|best, next| match is_better(next, best) {
                true => next,
                false => best,
            })?;
        let below = |at: &usize| self.sentences[*at].heading == Some(heading);
        let is_fresh = |at: &usize| !told(&self.sentences[*at].text);
        let section: Vec<usize> = (0..self.sentences.len()).filter(below).collect();
        let of_kind = |at: &&usize| asked.kind.is_none() || asked.fits(&self.sentences[**at].text);
        let chosen = section
            .iter()
            .filter(|at| is_fresh(at))
            .find(of_kind)
            .or_else(|| section.iter().find(|at| is_fresh(at)))
            .or_else(|| section.first())?;
        // All that a heading asks for stands below it, a price, too.
        Some(self.around(*chosen, asked.of_any_kind(), |_, _| true))
    }

    /// The sentences that follow what was said last, and were not said yet.
    pub(super) fn following(&self, said: &str, told: impl Fn(&str) -> bool) -> Option<Answer> {
        let last = (0..self.sentences.len())
            .rev()
            .find(|at| said.contains(&self.sentences[*at].text))?;
        let next = (last + 1..self.sentences.len()).find(|at| {
            let (sentence, last) = (&self.sentences[*at], &self.sentences[last]);
            sentence.passage == last.passage && sentence.passage.is_some() && !told(&sentence.text)
        })?;
        Some(self.around(next, Asked::default(), |_, _| false))
    }

    /// Whether something of a passage was said.
    pub(super) fn was_quoted(&self, said: &str) -> bool {
        let mut of_passages = self.sentences.iter().filter(|it| it.passage.is_some());
        of_passages.any(|sentence| said.contains(&sentence.text))
    }

    /// Returns true if a sentence stands in a step of a numbered list behind one of the same step, the step before, or the words that announce the
    /// list.
    fn is_next_step(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|before| &self.sentences[before]) else {
            return false;
        };
        match (before.step, self.sentences[at].step) {
            (Some(last), Some(step)) => last <= step,
            (None, Some(_)) => before.text.ends_with(':'),
            (_, None) => false,
        }
    }

    /// The sentence with those around it that it needs, and those that belong to the answer: `belongs` gets what is
    /// said so far and the next one. A price that a question for something else did not ask for is left out, unless what
    /// follows leans on it. Of the steps of an instruction, all are said from the first one, as far as there is room, where they are asked for.
    fn around(&self, at: usize, asked: Asked, belongs: impl Fn(&[usize], usize) -> bool) -> Answer {
        let chosen = &self.sentences[at];
        let same_section = |other: usize| {
            self.sentences.get(other).is_some_and(|it| {
                it.passage.is_some() && it.passage == chosen.passage && it.heading == chosen.heading
            })
        };
        let mut start = at;
        if leans_back(&chosen.text) && at > 0 && same_section(at - 1) {
            start = at - 1;
        }
        let leans = |other: usize| same_section(other) && leans_back(&self.sentences[other].text);
        let is_step = |other: usize| asked.steps && same_section(other) && self.is_next_step(other);
        let length = |said: &[usize]| -> usize {
            let texts = said.iter().map(|at| &self.sentences[*at].text);
            texts.map(|text| text.chars().count() + 1).sum()
        };
        let mut first = start;
        while is_step(first) && same_section(first - 1) {
            first -= 1;
        }
        let mut said: Vec<usize> = (first..=at).collect();
        if length(&said) > MAX_CHARS {
            said = (start..=at).collect();
        }
        let mut next = at + 1;
        while same_section(next) && (said.len() < MAX_SENTENCES || is_step(next)) {
            if asked.has_other_price(&self.sentences[next].text) && !leans(next + 1) {
                next += 1;
                continue;
            }
            let continues = next == at + 1 && leans(next);
            let with_next = [said.as_slice(), &[next]].concat();
            let is_said = is_step(next) || continues || belongs(&said, next);
            if !is_said || length(&with_next) > MAX_CHARS {
                break;
            }
            said = with_next;
            next += 1;
        }
        let text = said
            .iter()
            .map(|at| self.sentences[*at].text.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        Answer {
            text,
            source: chosen.passage.map(|passage| Source {
                passage,
                title: self.title(passage).to_owned(),
            }),
        }
    }
}

/// A sentence that cannot be understood without the one before it.
fn leans_back(text: &str) -> bool {
    const PRONOUNS: &[&str] = &[
        "it", "its", "they", "their", "he", "his", "she", "her", "this", "these", "those", "there",
    ];
    let first = text.split_whitespace().next().unwrap_or_default();
    PRONOUNS.contains(&first.to_lowercase().as_str())
}

/// A sentence as it is said: what is too long is cut, and a line of a list gets the full stop that speaking it needs.
fn finished(text: &str) -> String {
    if text.len() > MAX_SENTENCE_BYTES {
        let cut = reading::beginning(text, MAX_SENTENCE_BYTES);
        let whole_words = cut.rfind(' ').map_or(cut, |at| &cut[..at]);
        return format!("{whole_words} …");
    }
    if text.ends_with(|c: char| c.is_alphanumeric() || c == ')') {
        format!("{text}.")
    } else {
        text.to_owned()
    }
}

/// The first words of a title or heading.
fn few_terms(text: &str) -> Vec<String> {
    let mut terms = terms(reading::beginning(text, ABOVE_BYTES));
    terms.truncate(MOST_WORDS_ABOVE);
    terms
}

/// Whether a text is a question.
pub(super) fn asks(text: &str) -> bool {
    text.ends_with(['?', '？', '؟'])
}
