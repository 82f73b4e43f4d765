//! The set: characters, each with a folder of documents and its conversations (`NAME.json` and `NAME/` beside this file).

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters, by the names of their files.
pub(crate) const NAMES: [&str; 5] = ["shop", "library", "hotel", "guide", "figure"];

/// A character with what its visitors say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Character {
    /// Personality and parameters; those of the demo for `guide`.
    #[serde(default)]
    pub(crate) character: Value,
    /// Titles of its documents, which a refusal must not show.
    pub(crate) titles: Vec<String>,
    pub(crate) conversations: Vec<Conversation>,
    /// Questions that no document answers, asked one after another in one conversation.
    pub(crate) unanswerable: Vec<String>,
}

/// A conversation, from its first turn to its last.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conversation {
    pub(crate) about: String,
    pub(crate) turns: Vec<Turn>,
}

/// A turn of a visitor and the rules for its answer. Alternatives within a rule are separated by bars.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Turn {
    pub(crate) says: String,
    pub(crate) kind: Kind,
    /// True for turns that need more than a passage that shares words with them.
    pub(crate) hard: bool,
    /// Rules that an answer must meet: one of the alternatives of each.
    pub(crate) all: Vec<String>,
    /// Phrases that contradict the documents or the visitor.
    pub(crate) none: Vec<String>,
    /// Phrases that are not wrong, but do not belong into the answer.
    pub(crate) avoid: Vec<String>,
    /// True if the answer must say that it does not know.
    pub(crate) declines: bool,
    /// The most words; [`Turn::WORDS`] unless given.
    pub(crate) words: Option<usize>,
    /// Language of the answer unless English: `de`, `fr` or `es`.
    pub(crate) language: Option<String>,
    /// First word of the answer.
    pub(crate) begins: Option<Begins>,
    /// An answer that passes, shown beside one that does not.
    pub(crate) good: String,
}

impl Turn {
    /// The most words of an answer. A whole document is longer.
    pub(crate) const WORDS: usize = 45;

    /// Returns a question that no document answers.
    pub(crate) fn unanswerable(says: &str) -> Self {
        Self {
            says: says.to_owned(),
            kind: Kind::Unknown,
            declines: true,
            ..Self::default()
        }
    }
}

/// First word of an answer to a yes/no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Begins {
    Yes,
    No,
}

/// What a turn tries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A question that a passage answers, in words of its own or with typing errors.
    #[default]
    Fact,
    /// A question to answer with yes or no.
    YesNo,
    /// A sum, difference or comparison of prices, dates or hours.
    Arithmetic,
    /// An ellipsis: "And on Mondays?"
    Ellipsis,
    /// A correction, or "that's not what I asked".
    Correction,
    /// Two questions at once.
    Two,
    /// Small talk, alone or mixed with a question.
    SmallTalk,
    /// Facts about the visitor, told or asked back.
    Memory,
    /// A turn in another language.
    Language,
    /// "Repeat that", "slower", "hold on".
    Control,
    /// Greetings, thanks, goodbyes and insults.
    Manners,
    /// Questions about the character.
    Itself,
    /// A question that no document answers.
    Unknown,
}

/// Returns the folder of the set.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("converse")
}

/// Reads a character.
///
/// # Errors
/// The file is missing or not of this form.
pub(crate) fn read(folder: &Path, name: &str) -> anyhow::Result<Character> {
    let path = folder.join(name).with_extension("json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::converse::judge::{has_rule, judge};

    #[test]
    fn the_set_has_the_numbers_that_it_promises() {
        let (mut turns, mut conversations, mut hard, mut unanswerable) = (0, 0, 0, 0);
        for name in NAMES {
            let character = read(&folder(), name).unwrap();
            conversations += character.conversations.len();
            unanswerable += character.unanswerable.len();
            for turn in character.conversations.iter().flat_map(|it| &it.turns) {
                assert!(has_rule(turn), "{name}: {}", turn.says);
                turns += 1;
                hard += usize::from(turn.hard);
            }
        }
        assert_eq!((conversations, turns, unanswerable), (20, 200, 40));
        assert_eq!(hard, 44);
    }

    /// Every turn has an answer that passes; none passes by refusing or by saying the visitor's words.
    #[test]
    fn rules_can_be_met_and_not_by_stock_answers() {
        for name in NAMES {
            let character = read(&folder(), name).unwrap();
            for turn in character.conversations.iter().flat_map(|it| &it.turns) {
                let passes = |answer: &str| judge(turn, answer, &character.titles, None);
                let good = passes(&turn.good);
                assert!(good.is_acceptable(), "{name}: {}: {good:?}", turn.says);
                let echo = (turn.kind != Kind::Manners).then_some(turn.says.as_str());
                let stock = ["", "I don't know.", "I am sorry, I cannot say."];
                for bad in stock.into_iter().chain(echo) {
                    assert!(!passes(bad).is_acceptable(), "{name}: {}: {bad}", turn.says);
                }
            }
        }
    }
}
