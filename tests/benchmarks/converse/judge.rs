//! Rules for answers. Each judges one answer and knows the previous refusal of the conversation.
//!
//! A rule is written so that several wordings pass; bounds on words and on what else an answer may hold keep it from passing by quoting all there is,
//! by refusing everything, or by a refusal with a guess beside it.

use super::{
    set::{Begins, Kind, Turn},
    words::{has_phrase, sentences, words},
};

/// How an answer was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Rules that were broken, in words; an acceptable answer has none.
    pub(crate) faults: Vec<String>,
    /// True if the answer says something that is wrong.
    pub(crate) is_contradicted: bool,
    /// True if the answer says that it does not know.
    pub(crate) is_refusal: bool,
}

impl Verdict {
    /// True if no rule was broken.
    pub(crate) fn is_acceptable(&self) -> bool {
        self.faults.is_empty()
    }
}

/// The most words of a refusal, and of the first one of a conversation, which may suggest something.
const REFUSAL_WORDS: (usize, usize) = (20, 40);

/// What a voice must not say: marks of formats, targets of links and names of files.
const MARKS: [&str; 12] = [
    "|", "*", "#", "](", "`", "<", "http", "www.", ".md", ".html", ".csv", ".txt",
];

/// Phrases that say that something is not known.
const REFUSALS: [&str; 41] = [
    "dont know",
    "do not know",
    "not sure",
    "no idea",
    "cant say",
    "cannot say",
    "can not say",
    "couldnt say",
    "could not say",
    "cant tell",
    "cannot tell",
    "couldnt tell",
    "no information",
    "dont have that",
    "do not have that",
    "dont have any",
    "do not have any",
    "dont have information",
    "havent got that",
    "nothing about",
    "nothing on that",
    "doesnt say",
    "does not say",
    "dont say",
    "do not say",
    "couldnt find",
    "could not find",
    "cant find",
    "cannot find",
    "found nothing",
    "cant help with",
    "cannot help with",
    "not something i know",
    "unaware",
    "not aware",
    "beyond what i know",
    "cant answer",
    "cannot answer",
    "couldnt answer",
    "not told",
    "wasnt told",
];

/// Judges an answer. `previous` is the latest refusal of the conversation, or `None` before the first.
pub(crate) fn judge(
    turn: &Turn,
    answer: &str,
    titles: &[String],
    previous: Option<&str>,
) -> Verdict {
    let said = words(answer);
    let is_refusal = REFUSALS.iter().any(|phrase| has_phrase(&said, phrase));
    let mut faults = Vec::new();
    if said.is_empty() {
        faults.push("says nothing".to_owned());
    }
    if turn.kind != Kind::Manners && said == words(&turn.says) {
        faults.push("says what the visitor said".to_owned());
    }
    let lower = answer.to_lowercase();
    for mark in MARKS.iter().filter(|mark| lower.contains(**mark)) {
        faults.push(format!("speaks {mark:?}"));
    }
    let most = turn.words.unwrap_or(Turn::WORDS);
    if said.len() > most {
        faults.push(format!("has {} words, not {most}", said.len()));
    }
    let prices = said.iter().filter(|word| *word == "euros").count();
    if prices > prices_of(turn.kind) {
        faults.push(format!("tells {prices} prices"));
    }
    for rule in &turn.all {
        if !any(&said, rule) {
            faults.push(format!("lacks {rule:?}"));
        }
    }
    for phrase in turn.avoid.iter().filter(|phrase| any(&said, phrase)) {
        faults.push(format!("says {phrase:?}"));
    }
    let wrong: Vec<&String> = turn.none.iter().filter(|it| any(&said, it)).collect();
    for phrase in &wrong {
        faults.push(format!("is wrong: {phrase:?}"));
    }
    match turn.begins {
        Some(begins) if !begins_with(&said, begins) => {
            faults.push(format!("does not begin with {begins:?}"));
        }
        _ => {}
    }
    match turn.language.as_deref() {
        Some(language) if !is_in(&said, language) => faults.push(format!("is not in {language}")),
        _ => {}
    }
    match (turn.declines, is_refusal) {
        (true, true) => refusal(turn, answer, &said, titles, previous, &mut faults),
        (true, false) => faults.push("answers what it cannot know".to_owned()),
        (false, true) => faults.push("refuses".to_owned()),
        (false, false) => {}
    }
    Verdict {
        is_contradicted: !wrong.is_empty(),
        is_refusal,
        faults,
    }
}

/// True if a turn has a rule of its own beside the bounds of all.
#[cfg(test)]
pub(crate) fn has_rule(turn: &Turn) -> bool {
    !turn.all.is_empty() || turn.declines || turn.begins.is_some() || turn.language.is_some()
}

/// Judges a refusal: short, without titles and figures, other words than the previous one.
fn refusal(
    turn: &Turn,
    answer: &str,
    said: &[String],
    titles: &[String],
    previous: Option<&str>,
    faults: &mut Vec<String>,
) {
    let most = match previous {
        None => (2, REFUSAL_WORDS.1),
        Some(_) => (1, REFUSAL_WORDS.0),
    };
    if sentences(answer) > most.0 {
        faults.push("refuses in several sentences".to_owned());
    }
    if said.len() > most.1 {
        faults.push("refuses in many words".to_owned());
    }
    for title in titles.iter().filter(|title| has_phrase(said, title)) {
        faults.push(format!("shows the title {title:?}"));
    }
    let asked = words(&turn.says);
    let is_figure = |word: &&String| word.chars().all(|it| it.is_ascii_digit());
    // "One" is a pronoun as well.
    for figure in said.iter().filter(is_figure).filter(|it| *it != "1") {
        if !asked.contains(figure) {
            faults.push(format!("refuses, but says {figure}"));
        }
    }
    if previous.is_some_and(|previous| words(previous) == said) {
        faults.push("repeats the previous refusal".to_owned());
    }
}

/// Returns the most prices of an answer, so that a table read aloud does not pass; a sum may name its parts.
fn prices_of(kind: Kind) -> usize {
    match kind {
        Kind::Arithmetic | Kind::Control => 4,
        _ => 3,
    }
}

fn any(said: &[String], rule: &str) -> bool {
    rule.split('|').any(|phrase| has_phrase(said, phrase))
}

fn begins_with(said: &[String], begins: Begins) -> bool {
    const YES: [&str; 9] = [
        "yes",
        "yeah",
        "yep",
        "sure",
        "certainly",
        "of course",
        "indeed",
        "absolutely",
        "correct",
    ];
    const NO: [&str; 12] = [
        "no",
        "nope",
        "not",
        "sorry no",
        "unfortunately not",
        "unfortunately no",
        "im afraid not",
        "i am afraid not",
        "im sorry no",
        "i am sorry no",
        "sadly not",
        "never",
    ];
    let openings = match begins {
        Begins::Yes => YES.as_slice(),
        Begins::No => NO.as_slice(),
    };
    openings
        .iter()
        .any(|opening| said.starts_with(&words(opening)))
}

/// True if an answer has more of the small words of a language than of English ones.
fn is_in(said: &[String], language: &str) -> bool {
    const ENGLISH: &str = "the is are and of to i you we in it my for not that at from";
    let small = match language {
        "de" => {
            "der die das ist sind und nicht ich sie wir uhr ein eine kostet von bis zu nur leider mit im es auf"
        }
        "fr" => "le la les est sont et nous vous je ne pas de du un une des en à il",
        "es" => "el la los las es son y de no un una yo se lo en que a por hablo",
        _ => return false,
    };
    let count = |small: &str| {
        let small: Vec<&str> = small.split(' ').collect();
        said.iter()
            .filter(|word| small.contains(&word.as_str()))
            .count()
    };
    count(small) > count(ENGLISH)
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
