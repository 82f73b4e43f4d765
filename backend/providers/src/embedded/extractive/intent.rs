//! What the visitor wants, as far as a few words tell it.

use colloquy_knowledge::terms;

use super::phrases::Phrases;

/// What a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Greeting,
    HowAreYou,
    Thanks,
    Goodbye,
    /// "Yes, please", "tell me more".
    More,
    No,
    WhoAreYou,
    WhatCanYouDo,
    /// "Say that again".
    Again,
    /// Anything else: it is about something.
    Content,
}

/// Small talk is small talk only when nothing else is in the turn: "hello" is a greeting, "hello, when do you open" is
/// not.
pub(super) fn of(said: &str, name: Option<&str>, phrases: &Phrases) -> Intent {
    let mut text = plain(said);
    if let Some(name) = name {
        text = text.replace(&plain(name), " ");
    }
    // The length of the longest trigger that fits.
    let fit = |triggers: &[&str]| {
        let fitting = triggers.iter().filter(|trigger| {
            let trigger = if phrases.unspaced {
                (**trigger).to_owned()
            } else {
                plain(trigger)
            };
            text.contains(&trigger) && is_small_talk(&text.replace(&trigger, " "), phrases)
        });
        fitting.map(|trigger| trigger.len()).max()
    };
    let intents = [
        (&phrases.again, Intent::Again),
        (&phrases.who, Intent::WhoAreYou),
        (&phrases.how, Intent::HowAreYou),
        (&phrases.what, Intent::WhatCanYouDo),
        (&phrases.bye, Intent::Goodbye),
        (&phrases.no, Intent::No),
        (&phrases.thanks, Intent::Thanks),
        (&phrases.more, Intent::More),
        (&phrases.hello, Intent::Greeting),
    ];
    let mut fitting = intents
        .into_iter()
        .filter_map(|(triggers, intent)| Some((fit(triggers)?, intent)));
    let chosen = if phrases.unspaced {
        // A short trigger may stand inside a longer one there; the first of equally long ones counts.
        fitting.reduce(|best, next| if next.0 > best.0 { next } else { best })
    } else {
        fitting.next()
    };
    chosen.map_or(Intent::Content, |(_, intent)| intent)
}

/// Whether what is left holds no word about anything.
pub(super) fn is_small_talk(rest: &str, phrases: &Phrases) -> bool {
    let mut rest = rest.to_owned();
    for polite in phrases.hello.iter().chain(&phrases.thanks) {
        let polite = if phrases.unspaced {
            (*polite).to_owned()
        } else {
            plain(polite)
        };
        rest = rest.replace(&polite, " ");
    }
    if phrases.unspaced {
        // A particle or two may be left.
        return rest.chars().filter(|c| c.is_alphanumeric()).count() <= 2;
    }
    terms(&rest).is_empty()
}

/// Lower case, single spaces, one at each end, no punctuation.
pub(super) fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let words = lower
        .split(|c: char| !(c.is_alphanumeric() || c == '\'' || is_mark(c)))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>();
    format!(" {} ", words.join(" "))
}

/// Vowel signs of Hindi, and points of Arabic and Hebrew, belong to their word.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{0900}'..='\u{0963}' | '\u{064b}'..='\u{0652}' | '\u{0591}'..='\u{05c7}')
}

/// Whether the turn asks something, by its first words or its last sign.
pub(super) fn is_question(said: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "what", "when", "where", "who", "whom", "whose", "why", "which", "how", "is", "are", "was",
        "were", "do", "does", "did", "can", "could", "will", "would", "should", "may", "has",
        "have",
    ];
    let plain = plain(said);
    let first = plain.split_whitespace().next().unwrap_or_default();
    said.trim_end().ends_with(['?', '？', '؟']) || BEGINNINGS.contains(&first)
}

/// Whether the turn points at something said before.
pub(super) fn points_back(said: &str) -> bool {
    const POINTERS: &[&str] = &[
        "it", "its", "they", "them", "their", "he", "him", "his", "she", "her", "that", "this",
        "these", "those", "there", "one", "ones", "and", "else",
    ];
    plain(said)
        .split_whitespace()
        .any(|word| POINTERS.contains(&word))
}
