//! A question to a character as one about it: what "you" said is found where it is told of by name.

use colloquy_index::search::MAX_QUESTION_BYTES;

/// The words for whoever is spoken to, in lower case.
const YOU: [&str; 24] = [
    "you", "yourself", "du", "dich", "dir", "tu", "toi", "te", "vous", "tú", "ti", "usted", "você",
    "ty", "tobie", "ciebie", "jij", "jou", "u", "ты", "тебя", "тебе", "вы", "вас",
];
/// The words for what is theirs.
const YOUR: [&str; 29] = [
    "your", "yours", "dein", "deine", "deinen", "deinem", "deiner", "deines", "ton", "ta", "tes",
    "votre", "vos", "tuyo", "tuya", "tuo", "tua", "tuoi", "tue", "seu", "sua", "twój", "twoja",
    "twoje", "jouw", "твой", "твоя", "твои", "ваш",
];
/// What stands in the place of two words in English.
const CONTRACTIONS: [(&str, &str); 4] = [
    ("you're", "is"),
    ("you've", "has"),
    ("you'll", "will"),
    ("you'd", "would"),
];

/// The question with the name in the place of whoever is spoken to; `None` when nobody is. It ends where no index reads any further, since a
/// long name makes much of a short word.
pub(crate) fn replaced(question: &str, name: &str) -> Option<String> {
    let mut changed = false;
    let mut result = String::new();
    let mut rest = question;
    while result.len() < MAX_QUESTION_BYTES
        && let Some(first) = rest.chars().next()
    {
        if !is_of_word(first) {
            result.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let lower = word.to_lowercase().replace('’', "'");
        let contraction = CONTRACTIONS.iter().find(|(short, _)| *short == lower);
        if let Some((_, verb)) = contraction {
            result.push_str(&format!("{name} {verb}"));
        } else if YOU.contains(&lower.as_str()) {
            result.push_str(name);
        } else if YOUR.contains(&lower.as_str()) {
            result.push_str(&format!("{name}'s"));
        } else {
            result.push_str(word);
            continue;
        }
        changed = true;
    }
    result.truncate(result.floor_char_boundary(MAX_QUESTION_BYTES));
    changed.then_some(result)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\'' | '’')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_spoken_to_gets_a_name() {
        for (question, expected) in [
            (
                "What do you think of your work?",
                Some("What do Ada think of Ada's work?"),
            ),
            ("You’ve been where?", Some("Ada has been where?")),
            ("Was denkst du?", Some("Was denkst Ada?")),
            ("Что ты думаешь?", Some("Что Ada думаешь?")),
            ("When does the youth centre open?", None),
            ("", None),
        ] {
            assert_eq!(replaced(question, "Ada").as_deref(), expected, "{question}");
        }
    }

    #[test]
    fn a_long_name_makes_no_more_of_a_question_than_is_read() {
        let name = "🦁".repeat(200);
        let question = "u ".repeat(10_000);
        let replaced = replaced(&question, &name).unwrap();
        assert!(replaced.starts_with(&format!("{name} {name} ")));
        let expected = MAX_QUESTION_BYTES - 3..=MAX_QUESTION_BYTES;
        assert!(expected.contains(&replaced.len()), "{}", replaced.len());
    }
}
