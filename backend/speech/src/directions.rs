//! Stage directions: what models write between asterisks or in brackets that somebody does (`*smiles* Hello!`), which is done and not said.
//!
//! The same marks emphasize words (`I am *really* glad`), which are said. A direction is a thought of its own: it stands where a sentence
//! begins or ends, and its first word is something that people do on a stage, or begins with a small letter and has the form of a verb in English.
//! In the middle of a sentence a gesture is one behind a greeting (`Hello *smiles* nice to see you`). Where both are possible, the words are said.
//! Between other marks (`_smiles_`, `**smiles**`) only a gesture that stands where a sentence begins is a direction.
//!
//! Actions are known in all languages of the interface. Those of other languages than English stand where a sentence begins, behind a greeting
//! or between commas: elsewhere a verb is one of the sentence (`Wenn es regnet, *lacht* sie`).

mod abroad;
#[cfg(test)]
mod abroad_tests;
mod brackets;
mod words;

use std::borrow::Cow;

use colloquy_voice::{ends_with_abbreviation, never_ends_sentence};

use self::words::{ACTIONS, EMPHASIZED, GESTURES, GREETINGS, MANNERS, NO_ACTIONS, OPENING, SCENIC};

/// The longest direction, in bytes.
const MAX_BYTES: usize = 200;
/// How much is read of what stands before a direction, in bytes.
const BEFORE_BYTES: usize = 200;
/// Marks of emphasis.
const EMPHASIS: [char; 3] = ['*', '_', '~'];
/// The most of them in a row.
const MAX_MARKS: usize = 3;
/// What ends a sentence.
const ENDS: [char; 10] = ['.', '!', '?', '…', '。', '！', '？', '؟', '।', '॥'];
/// What separates a direction from what stands before it in a sentence, and from what follows.
const SEPARATORS: [char; 11] = [',', ';', ':', '-', '–', '—', '，', '、', '；', '：', '،'];
const FOLLOWING: [char; 14] = [
    ',', ';', ':', '.', '!', '…', '-', '–', '—', '，', '、', '。', '،', '।',
];
/// A sign of Devanagari that is part of a word, but no letter.
const VIRAMA: char = '\u{94d}';
/// What may close behind that.
const CLOSERS: [char; 11] = ['"', '\'', '”', '’', '»', ')', ']', '」', '』', '）', '_'];
/// What closes a quotation or a bracket, behind which a direction of several words stands, too.
const QUOTED: [char; 3] = ['"', '”', ')'];
/// Faces that end a sentence without a mark.
const EMOTICONS: &[&str] = &[":)", ";)", ":-)", ";-)"];

/// A line without its stage directions.
pub(super) fn removed(line: &str) -> Cow<'_, str> {
    let is_mark = |c: char| EMPHASIS.contains(&c) || brackets::is_open(c);
    if !line.contains(is_mark) {
        return Cow::Borrowed(line);
    }
    let mut said = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(is_mark) {
        let (before, marked) = rest.split_at(at);
        said.push_str(before);
        let (kept, after) = without_direction(marked, &said);
        said.push_str(kept);
        rest = after;
    }
    said.push_str(rest);
    Cow::Owned(said)
}

/// What is said of the beginning of a text, which is a mark, and what follows.
fn without_direction<'t>(marked: &'t str, before: &str) -> (&'t str, &'t str) {
    let kept = |after: &'t str| marked.split_at(marked.len() - after.len());
    if !marked.starts_with(EMPHASIS) {
        return match brackets::enclosed(marked) {
            Some((inside, after)) if brackets::is_direction(inside, before, after) => ("", after),
            _ => kept(marked.trim_start_matches(brackets::is_open)),
        };
    }
    match (enclosed(marked), loosely_enclosed(marked)) {
        (Some((inside, after)), _) if is_direction(inside, before, after) => ("", after),
        (Some((_, after)), _) => kept(after),
        (None, Some((inside, after))) if is_certain(inside, before, after) => ("", after),
        (None, _) => {
            let mark = |c: char| marked.starts_with(c);
            kept(marked.trim_start_matches(mark))
        }
    }
}

/// Returns true if a line begins with a direction between asterisks that are apart from it, the first of which could be the mark of a list.
pub(super) fn begins_apart(line: &str) -> bool {
    loosely_enclosed(line).is_some_and(|(inside, after)| is_certain(inside, "", after))
}

/// What stands between single asterisks at the beginning of a text, and what follows.
fn enclosed(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('*')?;
    let near = &inner[..inner.floor_char_boundary(MAX_BYTES)];
    let (inside, _) = near.split_once('*')?;
    let after = &inner[inside.len() + 1..];
    let is_tight =
        !inside.starts_with(char::is_whitespace) && !inside.ends_with(char::is_whitespace);
    // Two marks are strong emphasis, and what goes on behind the second one is a product or a part of a word.
    let goes_on = |c: char| c == '*' || c.is_alphanumeric() && !abroad::is_unspaced(c);
    let is_closed = !after.starts_with(goes_on);
    (is_tight && is_closed && !inside.is_empty()).then_some((inside, after))
}

/// What stands between marks of emphasis of any kind at the beginning of a text, and what follows. It may be apart from the marks, and a word may
/// follow at once.
fn loosely_enclosed(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|c| EMPHASIS.contains(c))?;
    let inner = text.trim_start_matches(mark);
    let marks = &text[..text.len() - inner.len()];
    let near = &inner[..inner.floor_char_boundary(MAX_BYTES)];
    let end = near.find(mark)?;
    let after = inner[end..].strip_prefix(marks)?;
    let is_whole = marks.len() <= MAX_MARKS && !after.starts_with(mark);
    let inside = inner[..end].trim();
    (is_whole && !inside.is_empty()).then_some((inside, after))
}

/// Returns true for a gesture where a sentence begins, behind which another one does or nothing follows.
fn is_certain(inside: &str, before: &str, after: &str) -> bool {
    let follows = after.trim_start();
    let goes_on = follows.starts_with(char::is_lowercase) || abroad::goes_on(follows);
    !goes_on
        && (brackets::is_gesture(inside) || abroad::is_action(inside))
        && begins_sentence(near_end(before), follows)
}

fn is_direction(inside: &str, before: &str, after: &str) -> bool {
    let before = near_end(before);
    let is_unspaced = after.starts_with(abroad::is_unspaced);
    let is_apart = after.is_empty() || is_unspaced || after.starts_with(char::is_whitespace);
    let follows = after.trim_start();
    let has_words = inside.contains(char::is_whitespace);
    let begins = begins_sentence(before, follows) || has_words && before.ends_with(QUOTED);
    let ends = follows.is_empty();
    let does = action(inside);
    let does_abroad = does.is_none() && abroad::is_action(inside);
    if begins && is_apart {
        let begins_small = inside.starts_with(char::is_lowercase);
        // In "*apples* are red" the sentence goes on.
        let goes_on = follows.starts_with(char::is_lowercase);
        let lower = inside.to_lowercase();
        let is_said = EMPHASIZED.contains(&lower.as_str()) || abroad::is_emphasized(&lower);
        let is_done_abroad =
            does_abroad && (begins_small || !goes_on) && !(is_unspaced && abroad::goes_on(after));
        let is_probable = !goes_on && !is_said && (begins_small || names_person(inside));
        return does.is_some()
            || is_done_abroad
            || is_probable && is_probably_done(inside, before, follows);
    }
    let is_separate = after.starts_with(FOLLOWING);
    if does_abroad {
        let stands_between = before.ends_with(SEPARATORS) && (is_separate || ends);
        return begins && is_separate || stands_between || is_apart && is_greeting(before);
    }
    let Some(action) = does else {
        return false;
    };
    let has_object = follows
        .split_whitespace()
        .next()
        .is_some_and(|word| matches!(word, "of" | "and"));
    if is_apart && !has_object && GESTURES.contains(&action.as_str()) && is_greeting(before) {
        return true;
    }
    // "*sighs*, well", "well, *sighs*, yes", "Hello *waves*".
    let closes = ends || is_apart && follows.starts_with(|c: char| !c.is_lowercase());
    let stands_between = before.ends_with(SEPARATORS) && (is_separate || is_apart);
    let last = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let is_object = OPENING.contains(&last.to_lowercase().as_str());
    begins && is_separate || stands_between || closes && !is_object
}

/// Returns true if a direction begins with who does it.
fn names_person(inside: &str) -> bool {
    bare_words(inside)
        .next()
        .is_some_and(|word| matches!(word.as_str(), "i" | "he" | "she" | "they"))
}

/// Returns true if words between sentences are more likely done than said, though no known action begins them: they begin with what could be a verb of
/// English, with a person and a gesture, or they are how somebody speaks or looks. What stands behind a quotation says who spoke.
fn is_probably_done(inside: &str, before: &str, follows: &str) -> bool {
    let words: Vec<String> = bare_words(inside).collect();
    let [first, rest @ ..] = words.as_slice() else {
        return false;
    };
    let is_scenic = words
        .last()
        .is_some_and(|last| SCENIC.contains(&last.as_str()));
    if rest.len() > 1 && before.ends_with(['"', '”']) {
        return true;
    }
    if names_person(inside) {
        let verb = rest.first().map(String::as_str).unwrap_or_default();
        let third_person = format!("{verb}s");
        return is_scenic || GESTURES.contains(&verb) || GESTURES.contains(&third_person.as_str());
    }
    let begins_scene = matches!(first.as_str(), "in" | "with" | "a" | "an") || rest.len() == 1;
    if is_scenic && begins_scene {
        return true;
    }
    let verb = match rest.first() {
        Some(second) if first.ends_with("ly") => second,
        _ => first,
    };
    let is_inflected = verb.ends_with("ing") || verb.ends_with('s') && !verb.ends_with("ss");
    is_inflected && !NO_ACTIONS.contains(&verb.as_str()) && may_be_english(before, follows)
}

/// Returns true if what stands around a direction is not in another language.
fn may_be_english(before: &str, follows: &str) -> bool {
    let follows = &follows[..follows.floor_char_boundary(BEFORE_BYTES)];
    let around = format!("{before} {follows}");
    colloquy_language::detect(&around).is_none_or(|code| code == "en")
}

/// The last part of what stands before a direction.
fn near_end(before: &str) -> &str {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(BEFORE_BYTES))..];
    near.trim_end()
}

/// Returns true if a sentence ends with a text, so that another begins behind it. A full stop of an abbreviation, a bracket and a quotation
/// mark end none, but an abbreviation that may end a sentence does before nothing or a capital letter.
fn begins_sentence(before: &str, follows: &str) -> bool {
    let bare = before.trim_end_matches(CLOSERS);
    let may_end = bare.len() == before.len()
        && !never_ends_sentence(bare)
        && (follows.is_empty() || follows.starts_with(char::is_uppercase));
    let ends = bare.ends_with(ENDS) && (may_end || !ends_with_abbreviation(bare));
    before.is_empty() || ends || EMOTICONS.iter().any(|face| before.ends_with(face))
}

/// Returns true if greetings and interjections are all that stands in the sentence before an action.
fn is_greeting(before: &str) -> bool {
    let sentence = before.rsplit(ENDS).next().unwrap_or_default();
    let words = sentence.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | VIRAMA));
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    words.peek().is_some()
        && words.all(|word| {
            let word = word.to_lowercase();
            GREETINGS.contains(&word.as_str()) || abroad::is_greeting(&word)
        })
}

/// What people do on a stage, if the first word says it, or the one behind how they do it.
fn action(inside: &str) -> Option<String> {
    let verb = verb(&mut bare_words(inside))?;
    ACTIONS.contains(&verb.as_str()).then_some(verb)
}

/// The words of a direction in small letters, without what stands around them.
fn bare_words(inside: &str) -> impl Iterator<Item = String> {
    inside.split_whitespace().map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.to_lowercase()
    })
}

/// Takes the verb of a direction, and how it is done if that stands before it.
fn verb(words: &mut impl Iterator<Item = String>) -> Option<String> {
    let first = words.next()?;
    match MANNERS.contains(&first.as_str()) {
        true => words.next(),
        false => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_not_said() {
        for (written, said) in [
            ("*smiles*", ""),
            ("*Smiles warmly*", ""),
            ("*smiles* Hello there.", " Hello there."),
            ("Hello there. *waves*", "Hello there. "),
            (
                "Hello there! *waves* How are you?",
                "Hello there!  How are you?",
            ),
            ("Hello *waves*", "Hello "),
            ("*laughs softly* well, that is new.", " well, that is new."),
            ("*sighs*, fine.", ", fine."),
            ("*smiles*.", "."),
            ("Well, *chuckles*, yes.", "Well, , yes."),
            ("Well... *scratches head* Maybe.", "Well...  Maybe."),
            ("*softly whispers* Come here.", " Come here."),
            ("*in a deep voice* Who is there?", " Who is there?"),
            ("*lächelt* Guten Tag.", " Guten Tag."),
            ("Bonjour ! *sourit*", "Bonjour ! "),
            ("*smiles. Then waves.* Hello.", " Hello."),
            (
                "*polishes the counter* What can I get you?",
                " What can I get you?",
            ),
            ("*slowly unfolds a map* We are here.", " We are here."),
            ("*humming a tune* We are here.", " We are here."),
            ("_smiles_ Hello.", " Hello."),
            ("Hello. ~smiles~", "Hello. "),
            ("**smiles softly** Hello.", " Hello."),
            ("***lächelt***", ""),
            ("* smiles *", ""),
            ("*winks*Hello", "Hello"),
            ("*I smile at you.*", ""),
            (
                "Come in. *She laughs softly.* Sit down.",
                "Come in.  Sit down.",
            ),
            ("*nods* *smiles* Yes.", "  Yes."),
            ("Hello *smiles* nice to see you", "Hello  nice to see you"),
            ("Well *chuckles* let me think.", "Well  let me think."),
            (
                "We close at 5 p.m. *smiles* See you!",
                "We close at 5 p.m.  See you!",
            ),
            ("Hallo! :) *lächelt* Guten Tag", "Hallo! :)  Guten Tag"),
            (
                "\"Hello there,\" *she says with a smile.* \"What can I get you?\"",
                "\"Hello there,\"  \"What can I get you?\"",
            ),
            (
                "\"Ja,\" *sagt er leise* \"so ist es.\"",
                "\"Ja,\"  \"so ist es.\"",
            ),
            (
                "That is all (for now) *in a low voice* Follow me.",
                "That is all (for now)  Follow me.",
            ),
            (
                "This is Ann from Acme Inc. *warm smile* How can I help?",
                "This is Ann from Acme Inc.  How can I help?",
            ),
            (
                "Until 5 p.m. *a friendly nod* Anything else?",
                "Until 5 p.m.  Anything else?",
            ),
            ("Obst usw. *lächelt* Noch etwas?", "Obst usw.  Noch etwas?"),
            (
                "Je sais où il est. *sourit* Venez!",
                "Je sais où il est.  Venez!",
            ),
            (
                "\"Come in.\" *in a low voice* Who is it?",
                "\"Come in.\"  Who is it?",
            ),
        ] {
            assert_eq!(removed(written), said, "{written}");
        }
    }

    #[test]
    fn what_is_emphasized_is_said() {
        for written in [
            "I am *really* glad.",
            "That is *great*.",
            "That is *great*!",
            "I love *you*",
            "I like the *waves*.",
            "I like the *waves*",
            "He *laughs* at me.",
            "*Important* notes follow.",
            "*This is important.*",
            "*Please* be quiet.",
            "*apples* are red.",
            "*yes*",
            "Really? *Genau*.",
            "Red, *green*, and blue.",
            "**smiles** are strong",
            "***both*** of them",
            "2 * 3 * 4 and 2*3*4",
            "un*frigging*believable",
            "a * lone mark",
            "an *open mark",
            "He is * smiling *",
            "Read my_file_name and _this_ ~now~.",
            "We are open. *except Sundays*",
            "*closed on holidays*",
            "We are open. *including weekends*",
            "We are open. *sometimes until nine*",
            "Open. *this week only*",
            "Open. *usually closes late*",
            "Hier ist alles gut. *tags und nachts*",
            "*I open at nine.*",
            "_smiles_ are free",
            "Use *args* and *kwargs* here.",
            "*重要* 请注意",
            "So *very*, *very* nice.",
            "We are open until 5 p.m. *except* Mondays",
            "We are open until 5 p.m. *unless* Monday is a holiday",
            "He said \"hello\" *twice* Monday night",
            "See (in the U.S.) *two* Museums",
            "The house (the red one) *opposite* Main Street",
            "Ask Dr. *any* Monday",
            "Open daily. *always*",
            "We like *dogs* And cats.",
            "He *laughs*",
            "The dog *smiles* at you",
            "Oh my dog *smiles* at me",
            "Seeing you *brightens* my day",
            "Whoever knows you *smiles* at that",
            "Are you *laughing* at me?",
            "I wish you *smiles* and sunshine.",
            "The guard opposite you *nods* politely.",
            "Good *looks* are not everything.",
            "Welcome *offers* end on Sunday.",
            "Sure *looks* like rain today.",
            "Hello *waves* of joy",
            "The man behind you *laughs* a lot",
        ] {
            assert_eq!(removed(written), written);
        }
        let many = "*".repeat(100_000);
        assert_eq!(removed(&many), many);
        let open = "*a ".repeat(50_000);
        assert_eq!(removed(&open), open);
        let without_spaces = ".*a*".repeat(50_000);
        assert_eq!(removed(&without_spaces), without_spaces);
        let nods = "*nods* ".repeat(50_000);
        assert_eq!(removed(&nods).len(), 50_000);
    }
}
