//! Stage directions in brackets: `(laughs) Well.`, `[sighs]`, `（笑）`.
//!
//! What stands in brackets is said unless it is a gesture and nothing else. Brackets also explain words (`symptoms (coughs) that last`), so in
//! the middle of a sentence a gesture is a direction only behind a greeting or a comma, or where the sentence ends.

use super::{
    ENDS, SEPARATORS, abroad, bare_words, begins_sentence, is_greeting, near_end, verb,
    words::{ACTIONS, GESTURES, NOUNS, STAGED},
};

const BRACKETS: [(char, char); 5] = [
    ('(', ')'),
    ('[', ']'),
    ('（', '）'),
    ('［', '］'),
    ('【', '】'),
];
/// The longest direction, in bytes and in words.
const MAX_BYTES: usize = 100;
const MAX_WORDS: usize = 6;

/// Returns true for the mark that a direction in brackets begins with.
pub(super) fn is_open(c: char) -> bool {
    BRACKETS.iter().any(|(open, _)| *open == c)
}

/// What stands in the brackets at the beginning of a text, without emphasis, and what follows. The text of a Markdown link is none.
pub(super) fn enclosed(text: &str) -> Option<(&str, &str)> {
    let (open, close) = *BRACKETS.iter().find(|(open, _)| text.starts_with(*open))?;
    let inner = &text[open.len_utf8()..];
    let near = &inner[..inner.floor_char_boundary(MAX_BYTES)];
    let end = near.find(|c: char| c == close || is_open(c))?;
    let after = inner[end..].strip_prefix(close)?;
    let is_link = open == '[' && after.starts_with(['(', '[', ':']);
    let inside = inner[..end].trim_matches(['*', '_', ' ']);
    (!is_link && !inside.is_empty()).then_some((inside, after))
}

/// Returns true if what stands in brackets is done, and not said.
pub(super) fn is_direction(inside: &str, before: &str, after: &str) -> bool {
    let is_abroad = abroad::is_action(inside);
    if !is_abroad && !is_gesture(inside) || inside.split_whitespace().count() > MAX_WORDS {
        return false;
    }
    let is_part = |c: char| c.is_alphanumeric() && !abroad::is_unspaced(c);
    if before.ends_with(is_part) || after.starts_with(is_part) {
        return false;
    }
    let (before, follows) = (near_end(before), after.trim_start());
    let ends_sentence = follows.is_empty() || follows.starts_with(ENDS);
    let may_close = is_abroad || !bare_words(inside).any(|word| NOUNS.contains(&word.as_str()));
    begins_sentence(before, follows)
        || before.ends_with(SEPARATORS)
        || is_greeting(before)
        || may_close && (ends_sentence || follows.starts_with(char::is_uppercase))
}

/// Returns true for a gesture in English, which has no object: "laughs softly", "sigh", "clears her throat".
pub(super) fn is_gesture(inside: &str) -> bool {
    let mut words = bare_words(inside);
    let Some(verb) = verb(&mut words) else {
        return false;
    };
    let rest: Vec<String> = words.collect();
    let verb = verb.as_str();
    if verb == "clears" || verb == "clearing" {
        return rest.last().is_some_and(|last| last == "throat");
    }
    if STAGED.contains(&verb) {
        return rest.iter().all(|word| word.ends_with("ly"));
    }
    // "smiles and nods" is one, "coughs and colds" is not.
    let joins = |pair: &[String]| pair[0] == "and" && !ACTIONS.contains(&pair[1].as_str());
    let explains = |word: &String| matches!(word.as_str(), "of" | "is" | "are" | "or" | "can");
    GESTURES.contains(&verb) && !rest.iter().any(explains) && !rest.windows(2).any(joins)
}
