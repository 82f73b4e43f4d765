//! Small talk by language, from `phrases.txt`: what is understood, and what is said.

use std::{collections::HashMap, sync::LazyLock};

use colloquy_base::language;

/// The small talk of a language. The lists are understood, the texts are said; `{name}`, `{topics}`, `{title}`,
/// `{text}` and `{words}` stand for what their names say.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    /// The language is written without spaces.
    pub(super) unspaced: bool,
    pub(super) hello: Vec<&'static str>,
    pub(super) how: Vec<&'static str>,
    pub(super) thanks: Vec<&'static str>,
    pub(super) bye: Vec<&'static str>,
    pub(super) more: Vec<&'static str>,
    pub(super) no: Vec<&'static str>,
    pub(super) who: Vec<&'static str>,
    pub(super) what: Vec<&'static str>,
    pub(super) again: Vec<&'static str>,
    /// How somebody asks what they are called.
    pub(super) my_name: Vec<&'static str>,
    /// How somebody says what they are called, with `{name}`.
    pub(super) named: Vec<&'static str>,
    /// What begins the same way and says something else before a word that is no name: "I'm {name}", "I'm late".
    pub(super) introduced: Vec<&'static str>,
    pub(super) hello_back: &'static str,
    pub(super) hello_named: &'static str,
    pub(super) your_name: &'static str,
    pub(super) met: &'static str,
    pub(super) fine: &'static str,
    pub(super) welcome: &'static str,
    pub(super) farewell: &'static str,
    pub(super) all_right: &'static str,
    pub(super) i_am: &'static str,
    pub(super) i_am_nobody: &'static str,
    pub(super) offer: &'static str,
    pub(super) tell_me: &'static str,
    pub(super) no_more: &'static str,
    pub(super) as_said: &'static str,
    pub(super) according: &'static str,
    /// Of a question without an answer.
    pub(super) unknown: Vec<&'static str>,
    /// Of anything else that nothing is known about.
    pub(super) unclear: Vec<&'static str>,
    pub(super) comma: String,
    pub(super) and: String,
}

const FALLBACK: &str = "en";

static TABLE: LazyLock<HashMap<&'static str, Phrases>> =
    LazyLock::new(|| read(include_str!("phrases.txt")));
static NONE: LazyLock<Phrases> = LazyLock::new(Phrases::default);

/// The phrases of a language tag; English for languages that the table lacks.
pub(super) fn of(language: Option<&str>) -> &'static Phrases {
    let tag = language.unwrap_or(FALLBACK).to_ascii_lowercase();
    let primary = language::primary(&tag);
    TABLE
        .get(primary)
        .or_else(|| TABLE.get(FALLBACK))
        .unwrap_or(&NONE)
}

fn read(table: &'static str) -> HashMap<&'static str, Phrases> {
    let mut languages = HashMap::new();
    let mut current: &mut Phrases = &mut Phrases::default();
    for line in table.lines() {
        if let Some(tag) = line.strip_prefix('[') {
            current = languages.entry(tag.trim_end_matches(']')).or_default();
        } else if let Some((key, value)) = line.split_once(": ")
            && !line.starts_with('#')
        {
            current.set(key, value);
        }
    }
    languages
}

impl Phrases {
    fn set(&mut self, key: &str, value: &'static str) {
        let list = || value.split(" | ").collect();
        // An underscore stands for a space at the edge, which editors would cut.
        let joint = || value.replace('_', " ");
        match key {
            "unspaced" => self.unspaced = value == "yes",
            "hello" => self.hello = list(),
            "how" => self.how = list(),
            "thanks" => self.thanks = list(),
            "bye" => self.bye = list(),
            "more" => self.more = list(),
            "no" => self.no = list(),
            "who" => self.who = list(),
            "what" => self.what = list(),
            "again" => self.again = list(),
            "my_name" => self.my_name = list(),
            "named" => self.named = list(),
            "introduced" => self.introduced = list(),
            "hello_back" => self.hello_back = value,
            "hello_named" => self.hello_named = value,
            "your_name" => self.your_name = value,
            "met" => self.met = value,
            "fine" => self.fine = value,
            "welcome" => self.welcome = value,
            "farewell" => self.farewell = value,
            "all_right" => self.all_right = value,
            "i_am" => self.i_am = value,
            "i_am_nobody" => self.i_am_nobody = value,
            "offer" => self.offer = value,
            "tell_me" => self.tell_me = value,
            "no_more" => self.no_more = value,
            "as_said" => self.as_said = value,
            "according" => self.according = value,
            "unknown" => self.unknown = list(),
            "unclear" => self.unclear = list(),
            "comma" => self.comma = joint(),
            "and" => self.and = joint(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_complete() {
        assert_eq!(TABLE.len(), 15);
        for (tag, p) in TABLE.iter() {
            let lists = [
                &p.hello, &p.how, &p.thanks, &p.bye, &p.more, &p.no, &p.who, &p.what, &p.again,
            ];
            assert!(lists.iter().all(|list| list.len() > 1), "{tag}");
            let texts = [
                (p.hello_back, ""),
                (p.fine, ""),
                (p.welcome, ""),
                (p.farewell, ""),
                (p.all_right, ""),
                (p.i_am_nobody, ""),
                (p.tell_me, ""),
                (p.no_more, ""),
                (p.hello_named, "{name}"),
                (p.i_am, "{name}"),
                (p.your_name, "{name}"),
                (p.met, "{name}"),
                (p.offer, "{topics}"),
                (p.as_said, "{words}"),
                (p.according, "{text}"),
                (p.according, "{title}"),
                (p.comma.as_str(), ""),
                (p.and.as_str(), ""),
            ];
            for (text, placeholder) in texts {
                assert!(
                    !text.is_empty() && text.contains(placeholder),
                    "{tag}: {text}"
                );
            }
            assert!(p.unknown.len() >= 3 && p.unclear.len() >= 3, "{tag}");
            assert!(!p.my_name.is_empty() && !p.named.is_empty(), "{tag}");
            let mut patterns = p.named.iter().chain(&p.introduced);
            assert!(patterns.all(|it| it.matches("{name}").count() == 1));
        }
    }

    #[test]
    fn languages_are_found_by_their_tag() {
        assert!(of(Some("de-CH")).thanks.contains(&"danke"));
        assert!(of(Some("zh-cn")).unspaced);
        assert!(of(Some("tlh")).thanks.contains(&"thanks"));
        assert!(of(None).thanks.contains(&"thanks"));
    }
}
