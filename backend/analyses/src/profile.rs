//! What a conversation that goes on tells of its user, such as a call: what is known so far, and what each turn adds.
//!
//! Nothing is stored, and nothing is charged: who has the conversation pays for all of it.

use std::{collections::BTreeMap, sync::Arc};

use colloquy_config::EMBEDDED_MODEL;
use colloquy_providers::Model;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use super::{
    asking,
    failure::Failure,
    question::{self, AnswerSource, Question},
    request::{Input, Message, Originator},
    stated,
};
use crate::Analyses;

/// The most characters of a conversation that are looked at, the last ones: what was said before is in the profile.
const MOST_CHARS: usize = 20_000;

/// The most characters of a value.
const MOST_VALUE_CHARS: usize = 500;

/// What is known of the user of a conversation, by the fields that are wanted; cheap to clone.
#[derive(Debug, Clone)]
pub struct UserProfile {
    language: String,
    descriptions: Arc<BTreeMap<String, String>>,
    known: BTreeMap<String, Option<String>>,
}

/// A line of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct ConversationLine<'a> {
    /// Whether the user said it, else the character.
    pub is_of_user: bool,
    /// The words.
    pub text: &'a str,
}

impl UserProfile {
    /// Nothing is known yet. `descriptions` says what each field means, with an empty text where its name says it;
    /// `language` is that of the conversation, by its name, where it is known.
    #[must_use]
    pub fn new(descriptions: BTreeMap<String, String>, language: Option<&str>) -> Self {
        let unknown = descriptions.keys().map(|field| (field.clone(), None));
        Self {
            language: language.unwrap_or_default().to_owned(),
            known: unknown.collect(),
            descriptions: Arc::new(descriptions),
        }
    }

    /// Whether nothing is wanted to be known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is known once a conversation has come so far, its oldest line first. The model of analyses is asked, as often as for
    /// any other analysis.
    ///
    /// # Errors
    /// When the model fails, or no answer fits. It tells nothing of what was said.
    pub async fn after(
        &self,
        analyses: &Analyses,
        lines: &[ConversationLine<'_>],
    ) -> anyhow::Result<Self> {
        let input = Input {
            messages: last_messages(lines),
            language: self.language.clone(),
            profile: self.known.clone(),
            descriptions: (*self.descriptions).clone(),
            feedback: BTreeMap::new(),
            extra: None,
        };
        let model = analyses.model();
        let output = if model.name() == EMBEDDED_MODEL {
            spawn_blocking(move || stated::analyze(&input)).await?
        } else {
            let most = analyses.config.analyses.max_questions.into();
            question::until_it_fits(&input, 0, most, Unpaid { analyses, model }).await?
        };
        let cut = |text: String| text.chars().take(MOST_VALUE_CHARS).collect();
        let known = output.profile.into_iter();
        Ok(Self {
            known: known
                .map(|(field, value)| (field, value.map(cut)))
                .collect(),
            ..self.clone()
        })
    }

    /// Returns the fields that are known, with their values.
    #[must_use]
    pub fn facts(&self) -> Map<String, Value> {
        let known = self.known.iter();
        known
            .filter_map(|(field, value)| Some((field.clone(), value.clone()?.into())))
            .collect()
    }

    /// The fields whose values are others than in an earlier profile, null where nothing is known any more.
    #[must_use]
    pub fn news_since(&self, earlier: &Self) -> Map<String, Value> {
        let values = self.known.iter();
        let news = values.filter(|(field, value)| earlier.known.get(*field) != Some(*value));
        news.map(|(field, value)| (field.clone(), value.clone().into()))
            .collect()
    }
}

/// The last lines that are not too long together, the last one in any case.
fn last_messages(lines: &[ConversationLine<'_>]) -> Vec<Message> {
    let mut chars = 0;
    let last = lines.iter().rev().enumerate().take_while(|(index, line)| {
        chars += line.text.chars().count();
        *index == 0 || chars <= MOST_CHARS
    });
    let mut messages: Vec<Message> = last
        .map(|(_, line)| Message {
            originator: match line.is_of_user {
                true => Originator::User,
                false => Originator::Bot,
            },
            text: line.text.to_owned(),
        })
        .collect();
    messages.reverse();
    messages
}

/// Questions that nobody is charged for by themselves.
struct Unpaid<'a> {
    analyses: &'a Analyses,
    model: &'a Model,
}

impl AnswerSource for Unpaid<'_> {
    async fn ask(&self, _asked: i64, question: &Question<'_>) -> anyhow::Result<String> {
        let asked = question.request(self.analyses, self.model);
        let answer = asking::answer(self.analyses, self.model, &asked.request).await;
        let (text, _) = answer.map_err(|(error, _)| Failure::Model(error))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(is_of_user: bool, text: &str) -> ConversationLine<'_> {
        ConversationLine { is_of_user, text }
    }

    #[test]
    fn the_last_lines_are_looked_at() {
        let long = "a".repeat(MOST_CHARS / 2);
        let lines = [line(true, &long), line(false, &long), line(true, "b")];
        let messages = last_messages(&lines);
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0].originator, Originator::Bot);
        assert_eq!(messages[1].text, "b");
        let longer = "é".repeat(MOST_CHARS + 1);
        let messages = last_messages(&[line(false, "a"), line(true, &longer)]);
        assert_eq!(messages.len(), 1);
        assert!(last_messages(&[]).is_empty());
    }

    #[test]
    fn news_are_what_was_not_known_so_before() {
        let descriptions = ["age", "city", "job", "name"].map(|it| (it.to_owned(), String::new()));
        let empty = UserProfile::new(descriptions.into(), None);
        let with = |values: [Option<&str>; 4]| {
            let fields = empty.known.keys().cloned();
            let values = values.map(|value| value.map(str::to_owned));
            UserProfile {
                known: fields.zip(values).collect(),
                ..empty.clone()
            }
        };
        let earlier = with([None, Some("Paris"), Some("clerk"), Some("Ada")]);
        let later = with([None, Some("Berlin"), None, Some("Ada")]);
        let news = later.news_since(&earlier);
        assert_eq!(json!(news), json!({"city": "Berlin", "job": null}));
        assert!(later.news_since(&later).is_empty());
        assert!(empty.news_since(&empty).is_empty());
    }
}
