//! Cuts streamed text into sentences to speak. How the text was cut into pieces on its way makes no difference,
//! except that a decision waits for the characters it depends on, unless somebody has waited for a clause.

use crate::transcript::is_ideographic;

/// The first sentence may end at a clause from here on, so that the character begins to speak early.
const FIRST_CLAUSE_WIDTH: usize = 40;
/// A clause that somebody waits for has at least this width.
const HURRIED_CLAUSE_WIDTH: usize = 10;
/// The longest stage direction (`*smiles. Then waves.*`) that is kept together, in bytes.
const MAX_DIRECTION_BYTES: usize = 200;
/// Longer sentences are cut: a synthesizer takes its time for them, and a barge-in wastes them.
const MAX_CHARACTERS: usize = 300;
const CLAUSE_ENDS: [char; 12] = [
    ',', ';', ':', '–', '—', '،', '؛', '，', '；', '：', '、', '､',
];
const WIDE_ENDS: [char; 5] = ['。', '！', '？', '｡', '．'];
const NARROW_ENDS: [char; 8] = ['.', '!', '?', '…', '؟', '۔', '।', '॥'];
const CLOSERS: [char; 16] = [
    '"', '\'', '”', '’', '»', ')', ']', '}', '」', '』', '）', '】', '》', '*', '_', '`',
];

/// A period after these never ends a sentence.
const ABBREVIATIONS: [&str; 27] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "rev", "gen", "capt", "lt", "col", "sgt", "hon", "e.g",
    "i.e", "vs", "approx", "cf", "z.b", "d.h", "u.a", "bzw", "ca", "hr", "fr", "sra", "mme",
];
/// A period after these ends a sentence unless the next word goes on in lower case.
const AMBIGUOUS: [&str; 17] = [
    "etc", "inc", "ltd", "co", "corp", "jr", "sr", "a.m", "p.m", "u.s", "u.k", "ph.d", "usw",
    "dept", "est", "apt", "ave",
];
/// A period after these ends a sentence unless a number follows.
const BEFORE_NUMBERS: [&str; 10] = [
    "no", "nr", "fig", "vol", "p", "pp", "ch", "sec", "art", "tel",
];

/// Collects text and gives back sentences. A sentence keeps the white space before it, so that all of them together
/// are the text again.
#[derive(Debug, Default)]
pub struct Splitter {
    text: String,
    /// Whether a sentence was given out already.
    begun: bool,
    /// Whether the next one may end at any clause.
    hurried: bool,
}

impl Splitter {
    /// Takes the next piece of the text.
    pub fn push(&mut self, delta: &str) {
        self.text.push_str(delta);
    }

    /// Lets the next sentence end at a clause: somebody has waited for it.
    pub(crate) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// How much text waits.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.text.len()
    }

    /// The next complete sentence.
    pub fn next_sentence(&mut self) -> Option<String> {
        let end = self.find_end()?;
        Some(self.cut(end))
    }

    /// The next sentence when no more text comes; the last one may be incomplete.
    pub fn next_at_end(&mut self) -> Option<String> {
        if let Some(sentence) = self.next_sentence() {
            return Some(sentence);
        }
        let rest = self.cut(self.text.len());
        rest.contains(char::is_alphanumeric).then_some(rest)
    }

    /// Whether a clause of this width may be said by itself.
    fn may_end_clause(&self, width: usize) -> bool {
        let is_first = !self.begun && width >= FIRST_CLAUSE_WIDTH;
        is_first || self.hurried && width >= HURRIED_CLAUSE_WIDTH
    }

    fn cut(&mut self, end: usize) -> String {
        self.begun = true;
        self.hurried = false;
        let rest = self.text.split_off(end);
        std::mem::replace(&mut self.text, rest)
    }

    /// Where the first sentence in the text ends; `None` if that depends on text to come.
    fn find_end(&self) -> Option<usize> {
        let text = self.text.as_str();
        let begin = text.len() - text.trim_start().len();
        let mut width = 0;
        let mut characters = 0;
        let mut speakable = false;
        let mut skip_to = begin;
        for (at, character) in text[begin..]
            .char_indices()
            .map(|(at, character)| (begin + at, character))
        {
            characters += 1;
            if characters > MAX_CHARACTERS {
                return Some(forced_end(text, begin, at));
            }
            // A Chinese character says about as much as three letters.
            width += if is_ideographic(character) { 3 } else { 1 };
            speakable |= character.is_alphanumeric();
            let after = at + character.len_utf8();
            if at < skip_to {
                continue;
            }
            if character == '*' {
                match direction(text[..at].chars().next_back(), &text[after..]) {
                    Direction::Ends(length) => skip_to = after + length,
                    Direction::None => {}
                    Direction::Unknown => return None,
                }
            }
            if !speakable {
                continue;
            }
            if character == '\n' {
                return Some(after);
            }
            if NARROW_ENDS.contains(&character) || WIDE_ENDS.contains(&character) {
                let run = text[at..]
                    .trim_start_matches(is_end)
                    .trim_start_matches(CLOSERS);
                let run_end = text.len() - run.len();
                match ends_sentence(&text[begin..at], &text[at..run_end], run) {
                    Verdict::Ends => return Some(run_end),
                    Verdict::GoesOn => skip_to = run_end,
                    // The limit holds all the same, but text this short never reaches it.
                    Verdict::Unknown => return None,
                }
            } else if CLAUSE_ENDS.contains(&character) && self.may_end_clause(width) {
                match text[after..].chars().next() {
                    // A model that stalls here may stall for long. Only a number is waited for, which may go on ("10,000").
                    None if self.hurried && !text[..at].ends_with(char::is_numeric) => {
                        return Some(after);
                    }
                    None => return None,
                    Some(next) if next.is_whitespace() || is_ideographic(character) => {
                        return Some(after);
                    }
                    Some(_) if matches!(character, '—' | '、') => return Some(after),
                    Some(_) => {}
                }
            }
        }
        None
    }
}

/// Whether a stage direction begins at an asterisk. It is kept in one sentence, since only whole it is told from emphasis.
enum Direction {
    /// It ends so many bytes behind the asterisk.
    Ends(usize),
    None,
    /// The text that decides has not come yet.
    Unknown,
}

/// Judges an asterisk between these.
fn direction(before: Option<char>, after: &str) -> Direction {
    let begins = before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '“' | '—'));
    if !begins || after.starts_with(|c: char| c == '*' || c.is_whitespace()) {
        return Direction::None;
    }
    let near = &after[..after.floor_char_boundary(MAX_DIRECTION_BYTES)];
    let Some(end) = near.find(['*', '\n']) else {
        return match near.len() < after.len() {
            true => Direction::None,
            false => Direction::Unknown,
        };
    };
    let behind = &near[end..];
    let is_open = behind.starts_with('\n') || near[..end].ends_with(char::is_whitespace);
    match after[end + 1..].chars().next() {
        _ if is_open => Direction::None,
        None => Direction::Unknown,
        Some(next) if next == '*' || next.is_alphanumeric() => Direction::None,
        Some(_) => Direction::Ends(end + 1),
    }
}

enum Verdict {
    Ends,
    GoesOn,
    /// The text that decides has not come yet.
    Unknown,
}

fn is_end(character: char) -> bool {
    NARROW_ENDS.contains(&character) || WIDE_ENDS.contains(&character)
}

/// Judges end marks: `before` is the sentence up to them, `marks` they and the brackets they close, `rest` what
/// follows.
fn ends_sentence(before: &str, marks: &str, rest: &str) -> Verdict {
    let Some(next) = rest.chars().next() else {
        return Verdict::Unknown;
    };
    if marks.contains(WIDE_ENDS) {
        return Verdict::Ends;
    }
    if !next.is_whitespace() {
        return Verdict::GoesOn;
    }
    let follows = rest.trim_start();
    if marks.contains("..") || marks.contains('…') {
        return ends_unless(follows.chars().next(), char::is_lowercase);
    }
    // Marks of emphasis, of which there are three at most, say nothing of how the sentence goes on behind an abbreviation.
    let emphasis = follows.bytes().take(3);
    let emphasis = emphasis.take_while(|mark| matches!(mark, b'*' | b'_'));
    let next_word = follows[emphasis.count()..].chars().next();
    if !marks.starts_with('.') || marks.contains(['!', '?']) {
        return Verdict::Ends;
    }
    // "1." and "a)." at the start of a line count something; they are no sentence.
    if before.chars().all(|character| !character.is_alphabetic()) && !next.eq(&'\n') {
        let counts = before
            .chars()
            .filter(|character| character.is_numeric())
            .count()
            <= 3;
        return if counts {
            Verdict::GoesOn
        } else {
            Verdict::Ends
        };
    }
    let word = last_word(before);
    let lower = word.to_lowercase();
    if ABBREVIATIONS.contains(&lower.as_str()) {
        return Verdict::GoesOn;
    }
    if AMBIGUOUS.contains(&lower.as_str()) || is_initialism(&lower) {
        return ends_unless(next_word, char::is_lowercase);
    }
    if BEFORE_NUMBERS.contains(&lower.as_str()) {
        return ends_unless(next_word, char::is_numeric);
    }
    if is_initial(word) {
        return Verdict::GoesOn;
    }
    Verdict::Ends
}

/// Returns true if the full stop at the end of a text is that of an abbreviation, which may end a sentence, too ("5 p.m.").
#[must_use]
pub fn ends_with_abbreviation(text: &str) -> bool {
    let Some(before) = text.strip_suffix('.') else {
        return false;
    };
    let word = last_word(before);
    let lower = word.to_lowercase();
    let is_listed = ABBREVIATIONS.contains(&lower.as_str()) || AMBIGUOUS.contains(&lower.as_str());
    is_listed || is_initialism(&lower) || is_initial(word)
}

/// Returns true if the full stop at the end of a text is that of an abbreviation that never ends a sentence ("Dr.").
#[must_use]
pub fn never_ends_sentence(text: &str) -> bool {
    text.strip_suffix('.').is_some_and(|before| {
        let lower = last_word(before).to_lowercase();
        ABBREVIATIONS.contains(&lower.as_str())
    })
}

/// Returns true for the initial of a name: "J".
fn is_initial(word: &str) -> bool {
    let mut characters = word.chars();
    let first = characters.next();
    first.is_some_and(|first| first.is_uppercase() && first != 'I') && characters.next().is_none()
}

/// The last word, without what opens before it. An apostrophe belongs to its word ("DON'T"), but not before a word of its own ("l'art") or an
/// initial ("d'A.").
fn last_word(before: &str) -> &str {
    let opens = |c: char| c.is_whitespace() || "([{\"“‘-".contains(c);
    let word = before.rsplit(opens).next().unwrap_or_default();
    match word.rsplit_once(['\'', '’']) {
        Some((front, behind)) => {
            let is_ending = matches!(behind, "s" | "t" | "d" | "m" | "S" | "T" | "D" | "M");
            let letters = front.chars().filter(|c| c.is_alphanumeric());
            match is_ending && letters.count() > 1 {
                true => word,
                false => behind,
            }
        }
        None => word,
    }
}

/// Returns true for letters with full stops between them: "u.n", "d.c".
fn is_initialism(word: &str) -> bool {
    let mut letters = word.split('.').map(|part| {
        let mut characters = part.chars();
        characters.next().is_some_and(char::is_alphabetic) && characters.next().is_none()
    });
    word.contains('.') && letters.all(|is_letter| is_letter)
}

fn ends_unless(next: Option<char>, goes_on: fn(char) -> bool) -> Verdict {
    match next {
        None => Verdict::Unknown,
        Some(next) if goes_on(next) => Verdict::GoesOn,
        Some(_) => Verdict::Ends,
    }
}

/// Where to cut a sentence that is too long: after a clause if there is one in its second half, else between words.
fn forced_end(text: &str, begin: usize, limit: usize) -> usize {
    let window = &text[begin..limit];
    let clause = window.char_indices().rev().find_map(|(at, character)| {
        let after = at + character.len_utf8();
        let ends = CLAUSE_ENDS.contains(&character)
            && (is_ideographic(character)
                || text[begin + after..].starts_with(char::is_whitespace));
        (ends && at >= window.len() / 2).then_some(begin + after)
    });
    let word = || {
        window
            .rfind(char::is_whitespace)
            .filter(|at| *at > 0)
            .map(|at| begin + at)
    };
    clause.or_else(word).unwrap_or(limit)
}

#[cfg(test)]
#[path = "sentences_tests.rs"]
mod tests;
