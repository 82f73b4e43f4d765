//! Text as terms: what lexical search compares.
//!
//! Words are normalized (NFKC, lower case), stemmed by the language of their document and folded (no accents, no points), so that the forms of a word
//! meet however they are written. Scripts without spaces between words, and Korean, whose particles are part of words, become pairs of
//! characters. Numbers lose their thousands separators. Where a text has nothing but signs, such as an emoji, these are its terms: a
//! query in any script has some.
//!
//! What language a query is in can hardly be told from three words. It is stemmed in each language of the documents that are searched. Of its
//! words without a subject there are mostly enough to tell which are such: "war" is one in German, and none in a question with "when" and "the".

mod language;
mod words;

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

pub use self::language::Language;
use self::words::{Kind, words};

/// The most bytes of a term; what follows is not compared.
pub const MAX_TERM_BYTES: usize = 64;

/// Words of more bytes have no stem.
const MAX_STEMMED: usize = 48;

/// So much of a query tells its language, in bytes.
const TELLING_BYTES: usize = 4_096;

/// Letters that mean a Hebrew preposition, article or conjunction at the beginning of a word.
const HEBREW_PREFIXES: &str = "והבלמכש";

/// The terms of a document's text, as often as they stand in it, in order.
#[must_use]
pub fn document_terms(text: &str, language: Language) -> Vec<String> {
    let mut terms = Vec::new();
    words(text, |word, kind| match kind {
        Kind::Unspaced => {
            let characters: Vec<char> = word.chars().collect();
            // One character alone may be asked for.
            terms.extend(characters.iter().map(char::to_string));
            terms.extend(characters.windows(2).map(|pair| pair.iter().collect()));
        }
        Kind::Word => variants(word, language, &mut |term| terms.push(term)),
        Kind::Number | Kind::Sign => terms.push(bounded(word.to_owned())),
    });
    terms
}

/// The terms of a query over documents in these languages, each once, in the order in which they first stand in it. No more than `most`.
/// Words without a subject in the language of the query, such as articles, count only in a query that has no others: in a few documents they are
/// as rare as any word.
#[must_use]
pub fn query_terms(text: &str, languages: &[Language], most: usize) -> Vec<String> {
    let likely = likely(text, languages);
    let is_telling = |word: &str| {
        let is_one =
            |language: &Language| colloquy_language::is_function_word(word, language.tag());
        likely.is_empty() || !likely.iter().all(is_one)
    };
    let telling = selected_terms(text, languages, most, &is_telling);
    if telling.is_empty() {
        selected_terms(text, languages, most, &|_| true)
    } else {
        telling
    }
}

/// In which of these languages a query seems to be: those that its beginning has most function words of. All of them, where it has none.
fn likely(text: &str, languages: &[Language]) -> Vec<Language> {
    let mut counts = vec![0_usize; languages.len()];
    if languages.len() > 1 {
        let beginning = &text[..text.floor_char_boundary(TELLING_BYTES)];
        words(beginning, |word, _| {
            for (count, language) in counts.iter_mut().zip(languages) {
                *count += usize::from(colloquy_language::is_function_word(word, language.tag()));
            }
        });
    }
    let most = counts.iter().max().copied();
    let counted = languages.iter().zip(counts);
    let likely = counted.filter(|(_, count)| Some(*count) == most);
    likely.map(|(language, _)| *language).collect()
}

/// The same of the words that are selected.
fn selected_terms(
    text: &str,
    languages: &[Language],
    most: usize,
    is_selected: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut terms = Vec::new();
    let mut known = std::collections::HashSet::new();
    let mut signs = Vec::new();
    words(text, |word, kind| {
        if terms.len() >= most {
            return;
        }
        let mut add = |term: String| {
            if known.insert(term.clone()) {
                terms.push(term);
            }
        };
        match kind {
            Kind::Unspaced => {
                let characters: Vec<char> = word.chars().collect();
                match characters.as_slice() {
                    [one] => add(one.to_string()),
                    many => many.windows(2).for_each(|pair| add(pair.iter().collect())),
                }
            }
            Kind::Word if !is_selected(word) => {}
            Kind::Word => match languages {
                [] => variants(word, Language::UNKNOWN, &mut add),
                languages => {
                    for language in languages {
                        variants(word, *language, &mut add);
                    }
                }
            },
            Kind::Number => add(bounded(word.to_owned())),
            Kind::Sign => signs.push(word.to_owned()),
        }
    });
    if terms.is_empty() {
        signs.dedup();
        terms = signs;
    }
    terms.truncate(most);
    terms
}

/// The terms of a word: one, or in Hebrew also what is behind a prefix.
fn variants(word: &str, language: Language, add: &mut dyn FnMut(String)) {
    let stem = match (word.len() <= MAX_STEMMED, language.stemmer()) {
        (true, Some(stemmer)) => stemmer.stem(word),
        _ => Cow::Borrowed(word),
    };
    let term = bounded(folded(&stem));
    if language.is_hebrew()
        && term.chars().count() > 3
        && let Some(rest) = term.strip_prefix(|c| HEBREW_PREFIXES.contains(c))
    {
        add(rest.to_owned());
    }
    if !term.is_empty() {
        add(term);
    }
}

/// Without what many people leave out: accents of Latin, Greek and Cyrillic letters, points of Hebrew and Arabic ones.
fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    let mut folded = String::with_capacity(word.len());
    for c in word.nfd() {
        match c {
            '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}' => {}
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            c => folded.push(c),
        }
    }
    folded.nfc().collect()
}

fn bounded(mut term: String) -> String {
    if term.len() > MAX_TERM_BYTES {
        term.truncate(term.floor_char_boundary(MAX_TERM_BYTES));
    }
    term
}

#[cfg(test)]
mod tests;
