//! Stage directions: what models write between asterisks that somebody does (`*smiles* Hello!`), which is done and not said.
//!
//! The same marks emphasize words (`I am *really* glad`), which are said. A direction is a thought of its own: it stands where a sentence
//! begins or ends and begins with a small letter, or its first word is something that people do on a stage. Where both are possible, the
//! words are said.

use std::borrow::Cow;

/// The longest direction, in bytes.
const MAX_BYTES: usize = 200;

/// What people do in directions, as the third person says it.
const ACTIONS: &[&str] = &[
    "adjusts",
    "admires",
    "adopts",
    "applauds",
    "approaches",
    "arches",
    "bats",
    "beams",
    "beckons",
    "blinks",
    "blushes",
    "bounces",
    "bows",
    "breathes",
    "brightens",
    "brushes",
    "cackles",
    "checks",
    "cheers",
    "chortles",
    "chuckles",
    "clapping",
    "claps",
    "clears",
    "clutches",
    "coughs",
    "cracks",
    "cries",
    "crosses",
    "curtsies",
    "dances",
    "exhales",
    "extends",
    "eyes",
    "fidgets",
    "flashes",
    "flips",
    "folds",
    "frowns",
    "furrows",
    "gasps",
    "gazes",
    "gestures",
    "giggles",
    "giggling",
    "glances",
    "grabs",
    "grinning",
    "grins",
    "groans",
    "grumbles",
    "gulps",
    "hesitates",
    "hugs",
    "hums",
    "inhales",
    "kneels",
    "laughing",
    "laughs",
    "leans",
    "licks",
    "lifts",
    "lights",
    "listens",
    "looks",
    "lowers",
    "mumbles",
    "mutters",
    "nodding",
    "nods",
    "nudges",
    "offers",
    "opens",
    "pats",
    "pauses",
    "peeks",
    "peers",
    "perks",
    "points",
    "ponders",
    "pouts",
    "pulls",
    "purrs",
    "puts",
    "raises",
    "reaches",
    "reads",
    "rolls",
    "rubs",
    "salutes",
    "scoffs",
    "scratches",
    "shakes",
    "shifts",
    "shivers",
    "shrugs",
    "shudders",
    "sighing",
    "sighs",
    "sings",
    "sits",
    "slumps",
    "smiles",
    "smiling",
    "smirks",
    "snaps",
    "snickers",
    "sniffles",
    "sniffs",
    "snorts",
    "sobs",
    "spins",
    "stands",
    "stares",
    "steps",
    "stops",
    "straightens",
    "stretches",
    "strokes",
    "swallows",
    "takes",
    "taps",
    "thinks",
    "tilts",
    "trembles",
    "turns",
    "twirls",
    "wags",
    "waits",
    "walks",
    "waves",
    "waving",
    "whispers",
    "whistles",
    "widens",
    "wiggles",
    "winces",
    "winking",
    "winks",
    "wipes",
    "yawns",
];
/// Words that are said alone, and emphasized.
const ANSWERS: &[&str] = &[
    "absolutely",
    "definitely",
    "exactly",
    "genau",
    "ja",
    "maybe",
    "nein",
    "no",
    "non",
    "oui",
    "perhaps",
    "sí",
    "sì",
    "sure",
    "yes",
];
/// How they do it, before the action.
const MANNERS: &[&str] = &[
    "awkwardly",
    "briefly",
    "brightly",
    "cheerfully",
    "dramatically",
    "enthusiastically",
    "excitedly",
    "gently",
    "happily",
    "mischievously",
    "nervously",
    "playfully",
    "politely",
    "proudly",
    "quickly",
    "quietly",
    "sadly",
    "sheepishly",
    "shyly",
    "slightly",
    "slowly",
    "softly",
    "suddenly",
    "thoughtfully",
    "warmly",
];
/// Words whose next word is no direction: "the *waves*", "to *points*".
const OPENING: &[&str] = &[
    "a", "an", "and", "at", "by", "for", "from", "her", "his", "in", "its", "like", "likes",
    "love", "loves", "many", "my", "of", "on", "or", "our", "some", "the", "their", "these",
    "those", "to", "two", "with", "your",
];

/// A line without its stage directions.
pub(super) fn removed(line: &str) -> Cow<'_, str> {
    if !line.contains('*') {
        return Cow::Borrowed(line);
    }
    let mut said = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('*') {
        let (before, marked) = rest.split_at(at);
        said.push_str(before);
        rest = match enclosed(marked) {
            Some((inside, after)) => {
                if !is_direction(inside, &said, after) {
                    said.push_str(&marked[..marked.len() - after.len()]);
                }
                after
            }
            None => {
                let after = marked.trim_start_matches('*');
                said.push_str(&marked[..marked.len() - after.len()]);
                after
            }
        };
    }
    said.push_str(rest);
    Cow::Owned(said)
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
    let is_closed = !after.starts_with(|c: char| c == '*' || c.is_alphanumeric());
    (is_tight && is_closed && !inside.is_empty()).then_some((inside, after))
}

fn is_direction(inside: &str, before: &str, after: &str) -> bool {
    let before = before.trim_end();
    let begins = before.is_empty()
        || before.ends_with(['.', '!', '?', '…', '"', '”', ')', '。', '！', '？']);
    let is_apart = after.is_empty() || after.starts_with(char::is_whitespace);
    let follows = after.trim_start();
    let ends = follows.is_empty();
    let does = is_action(inside);
    if begins && is_apart {
        let begins_small = inside.starts_with(char::is_lowercase);
        // In "*apples* are red" the sentence goes on.
        let goes_on = follows.starts_with(char::is_lowercase);
        let answers = ANSWERS.contains(&inside.to_lowercase().as_str());
        return does || begins_small && !goes_on && !answers;
    }
    if !does {
        return false;
    }
    // "*sighs*, well", "well, *sighs*, yes", "Hello *waves*".
    let closes = ends || is_apart && follows.starts_with(|c: char| !c.is_lowercase());
    let is_between = |text: &str| text.starts_with([',', ';', ':', '.', '!', '…', '-', '–', '—']);
    let stands_between =
        before.ends_with([',', ';', ':', '-', '–', '—']) && (is_between(after) || is_apart);
    let last = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let is_object = OPENING.contains(&last.to_lowercase().as_str());
    begins && is_between(after) || stands_between || closes && !is_object
}

/// Whether the first word is what people do on a stage, or how they do it.
fn is_action(inside: &str) -> bool {
    let mut words = inside.split_whitespace().map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.to_lowercase()
    });
    let first = words.next().unwrap_or_default();
    let does = |word: &str| ACTIONS.contains(&word);
    match MANNERS.contains(&first.as_str()) {
        true => words.next().is_some_and(|word| does(&word)),
        false => does(&first),
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
            ("*nods* *smiles* Yes.", "  Yes."),
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
            "* smiles *",
            "Use *args* and *kwargs* here.",
            "*重要* 请注意",
            "So *very*, *very* nice.",
        ] {
            assert_eq!(removed(written), written);
        }
        let many = "*".repeat(100_000);
        assert_eq!(removed(&many), many);
        let open = "*a ".repeat(50_000);
        assert_eq!(removed(&open), open);
    }
}
