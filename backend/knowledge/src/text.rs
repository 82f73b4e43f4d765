//! Text as sentences and as the terms that searching compares.

use super::numbers;

/// Words that say nothing about the subject of a question.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "actually",
    "again",
    "all",
    "along",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anyway",
    "are",
    "as",
    "at",
    "basically",
    "be",
    "been",
    "but",
    "by",
    "can",
    "come",
    "comes",
    "coming",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "done",
    "else",
    "ever",
    "exactly",
    "for",
    "from",
    "get",
    "gets",
    "getting",
    "give",
    "go",
    "going",
    "gone",
    "got",
    "guess",
    "had",
    "happen",
    "happened",
    "happens",
    "has",
    "have",
    "he",
    "hello",
    "help",
    "her",
    "here",
    "hey",
    "hi",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "kind",
    "know",
    "let",
    "like",
    "made",
    "make",
    "makes",
    "making",
    "many",
    "may",
    "maybe",
    "me",
    "mean",
    "might",
    "moment",
    "more",
    "much",
    "must",
    "my",
    "no",
    "not",
    "now",
    "of",
    "oh",
    "ok",
    "okay",
    "on",
    "or",
    "our",
    "out",
    "perhaps",
    "please",
    "put",
    "puts",
    "quite",
    "really",
    "same",
    "say",
    "shall",
    "she",
    "should",
    "simply",
    "so",
    "some",
    "somehow",
    "something",
    "somewhere",
    "sort",
    "still",
    "stuff",
    "sure",
    "take",
    "takes",
    "taking",
    "tell",
    "than",
    "thank",
    "thanks",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "think",
    "this",
    "those",
    "to",
    "too",
    "uh",
    "um",
    "up",
    "us",
    "use",
    "used",
    "using",
    "very",
    "want",
    "was",
    "way",
    "we",
    "well",
    "went",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "wonder",
    "would",
    "yes",
    "you",
    "your",
    // The words of other languages that stand in most questions.
    "das",
    "dem",
    "den",
    "der",
    "die",
    "du",
    "ein",
    "eine",
    "es",
    "ich",
    "ihr",
    "ist",
    "mir",
    "sie",
    "sind",
    "und",
    "von",
    "wann",
    "was",
    "wer",
    "wie",
    "wir",
    "wo",
    "zu",
    "zum",
    "con",
    "cuando",
    "de",
    "del",
    "el",
    "en",
    "es",
    "la",
    "las",
    "los",
    "para",
    "por",
    "que",
    "qué",
    "quien",
    "se",
    "son",
    "un",
    "una",
    "y",
    "au",
    "aux",
    "ce",
    "des",
    "du",
    "est",
    "et",
    "je",
    "le",
    "les",
    "où",
    "pour",
    "quand",
    "qui",
    "sur",
    "tu",
    "une",
    "vous",
    "che",
    "chi",
    "come",
    "di",
    "e",
    "il",
    "lo",
    "per",
    "sono",
    "é",
    "è",
    "como",
    "da",
    "do",
    "em",
    "o",
    "os",
    "um",
    "uma",
];

/// Abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "vs", "e.g", "i.e", "etc", "approx", "inc", "ltd",
    "jr", "sr",
];

/// The sentences of a text, without markup of lists and headings around them.
#[must_use]
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let line = unmarked(line.trim());
        let mut start = 0;
        let mut characters = line.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let end = at + c.len_utf8();
            let next = characters.peek().map(|(_, next)| *next);
            let ends = match c {
                '。' | '！' | '？' | '।' => true,
                '!' | '?' | '؟' => next.is_none_or(char::is_whitespace),
                '.' => {
                    next.is_none_or(char::is_whitespace)
                        && !is_abbreviation(&line[start..at])
                        && (!is_initialism(&line[start..at])
                            || begins_plainly(&line[end..])
                            || begins_question(&line[start..at], &line[end..])
                            || begins_behind_place(&line[start..at], &line[end..]))
                        && (!is_half_of_day(&line[start..at]) || begins(&line[end..]))
                }
                _ => false,
            };
            if ends {
                sentences.push(&line[start..end]);
                start = end;
            }
        }
        sentences.push(&line[start..]);
    }
    sentences.retain_mut(|sentence| {
        *sentence = sentence.trim();
        sentence.chars().any(char::is_alphanumeric)
    });
    sentences
}

/// A line without the marks of lists and headings in front of it. The dashes of an option of a command are none, and neither is the sign of a
/// number.
fn unmarked(line: &str) -> &str {
    let words = line.trim_start_matches(['#', '*', '-', '•', '>', '|', ' ']);
    let marks = &line[..line.len() - words.len()];
    let dashes = marks.len() - marks.trim_end_matches('-').len();
    let is_option = match dashes {
        1 => {
            let behind = words.strip_prefix(|c: char| c.is_ascii_alphabetic());
            behind.is_some_and(|behind| behind.starts_with(", -"))
        }
        2 => words.starts_with(|c: char| c.is_ascii_lowercase()),
        _ => false,
    };
    // "#1" is no heading, which has a blank behind its mark.
    if marks.ends_with('#') && words.starts_with(|c: char| c.is_ascii_digit()) {
        return &line[marks.len() - 1..];
    }
    match is_option {
        true => &line[marks.len() - dashes..],
        false => words,
    }
}

/// The last word, without the brackets and quotation marks that open before it.
fn last_word(text: &str) -> &str {
    let opens = |c: char| c.is_whitespace() || "([{\"“‘„«".contains(c);
    let mut words = text.rsplit(opens);
    words.next().unwrap_or_default().trim_start_matches('\'')
}

/// "a.m" and "p.m" before their last full stop, which may end a sentence.
fn is_half_of_day(before: &str) -> bool {
    let word = last_word(before);
    ["a.m", "p.m"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(word))
}

/// True for letters with full stops between them before the last one, "U.S", but not for halves of the day.
fn is_initialism(before: &str) -> bool {
    let word = last_word(before);
    let mut letters = word.split('.').map(|part| {
        let mut characters = part.chars();
        characters.next().is_some_and(char::is_alphabetic) && characters.next().is_none()
    });
    word.contains('.') && letters.all(|is_letter| is_letter) && !is_half_of_day(before)
}

/// True if a text begins with a capital and a word that is part of no name: "The", but not "Army".
fn begins_plainly(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let word = first.trim_matches(|c: char| !c.is_alphanumeric());
    let word = word.split(['\'', '’']).next().unwrap_or_default();
    word.starts_with(char::is_uppercase) && STOP_WORDS.contains(&word.to_lowercase().as_str())
}

/// True if a short question follows a text that does not ask itself: "We ship to the U.S. Questions?", but not "Do you ship to the U.S. Army?".
fn begins_question(before: &str, text: &str) -> bool {
    const NEAR_BYTES: usize = 120;
    const ASKING: &[&str] = &[
        "am", "are", "can", "could", "did", "do", "does", "has", "have", "how", "is", "may",
        "should", "was", "were", "what", "when", "where", "which", "who", "why", "will", "would",
    ];
    let near = text[..text.floor_char_boundary(NEAR_BYTES)].trim_start();
    let end = near.find(['.', '!', '?']);
    let is_question = end.is_some_and(|at| near[at..].starts_with('?'));
    let first = before.split_whitespace().next().unwrap_or_default();
    let asks = ASKING.contains(&first.to_lowercase().as_str());
    is_question && near.starts_with(char::is_uppercase) && !asks
}

/// True if a clause ends with a place and another clause follows: "We are in Washington, D.C. Tickets cost $20.", but not "In Washington, D.C. Smith
/// is known." or "It is what the U.S. Army has said."
fn begins_behind_place(before: &str, text: &str) -> bool {
    const VERBS: &[&str] = &[
        "is", "are", "was", "were", "has", "have", "can", "may", "must", "will", "cost", "costs",
        "open", "opens", "close", "closes", "start", "starts", "include", "includes",
    ];
    let place = before.split_whitespace().rev().nth(1).unwrap_or_default();
    let is_place = place.starts_with(char::is_uppercase) && place.ends_with(',');
    let mut words = text.split_whitespace();
    let begins = words
        .next()
        .unwrap_or_default()
        .starts_with(char::is_uppercase);
    let is_clause = is_place && begins && words.next().is_some_and(|verb| VERBS.contains(&verb));
    is_clause && before.split_whitespace().any(|word| VERBS.contains(&word))
}

/// Whether a text begins a sentence: with a capital that is not that of a day, or with a day of which something is said.
fn begins(text: &str) -> bool {
    const DAYS: &[&str] = &[
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    // "Friday is a holiday", "Fridays we close early".
    const BEHIND: &[&str] = &[
        "is", "are", "was", "were", "has", "have", "will", "can", "may", "must", "we", "you",
        "they", "it", "there",
    ];
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let word = first.trim_matches(|c: char| !c.is_alphanumeric());
    let word = word.to_lowercase();
    let is_day = DAYS.contains(&word.trim_end_matches('s'));
    let is_subject = first.ends_with(char::is_alphanumeric)
        && words.next().is_some_and(|next| BEHIND.contains(&next));
    first.starts_with(char::is_uppercase) && (!is_day || is_subject)
}

fn is_abbreviation(before: &str) -> bool {
    let word = last_word(before);
    let one_letter = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    one_letter || ABBREVIATIONS.iter().any(|a| a.eq_ignore_ascii_case(word))
}

/// The terms of a text: words in lower case without their commonest endings, without stop words; numbers in digits, however they are
/// said; for scripts that are written without spaces, pairs of characters.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let lower = numbers::without_separators(&text.to_lowercase());
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let words = words.map(|word| {
        let word = word.trim_matches(['\'', '’']);
        word.split(['\'', '’']).next().unwrap_or_default()
    });
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut next = 0;
    while let Some(word) = words.get(next) {
        if let Some(number) = numbers::spoken_number(&words, next) {
            terms.extend(number.terms);
            next += number.words;
            continue;
        }
        next += 1;
        if STOP_WORDS.contains(word) {
            continue;
        }
        if word.chars().any(is_unspaced) {
            let characters = word.chars().collect::<Vec<_>>();
            match characters.as_slice() {
                [one] => terms.push(one.to_string()),
                many => terms.extend(many.windows(2).map(|pair| pair.iter().collect::<String>())),
            }
        } else {
            terms.push(stem(word).to_owned());
        }
    }
    terms
}

/// Han, Hiragana and Katakana: no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Cuts the endings that tell "opens" and "opening" from "open". Questions and texts are cut alike, so what matters is
/// that related words meet, not that the rest is a word.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return word;
    }
    let word = match word {
        _ if word.len() > 4 && word.ends_with("ies") => &word[..word.len() - 3],
        _ if word.len() > 4
            && (word.ends_with("sses")
                || word.ends_with("xes")
                || word.ends_with("ches")
                || word.ends_with("shes")) =>
        {
            &word[..word.len() - 2]
        }
        _ if word.len() > 3
            && word.ends_with('s')
            && !word.ends_with("ss")
            && !word.ends_with("us") =>
        {
            &word[..word.len() - 1]
        }
        _ => word,
    };
    let word = match word {
        _ if word.len() > 5 && word.ends_with("ing") => &word[..word.len() - 3],
        _ if word.len() > 4 && word.ends_with("ed") => &word[..word.len() - 2],
        _ => word,
    };
    match word {
        _ if word.len() > 3 && word.ends_with('e') || word.len() > 2 && word.ends_with('y') => {
            &word[..word.len() - 1]
        }
        _ => word,
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
