//! The reply to a conversation.

use colloquy_knowledge::terms;

use super::{
    super::super::{ChatMessage, ChatRequest, ChatRole},
    answer::{Answer, Material},
    facts,
    intent::{self, Intent},
    phrases::{self, Phrases},
};

/// Subjects that are named at once.
const MAX_TOPICS: usize = 3;

/// The reply to the last turn of the visitor.
pub(super) fn reply(request: &ChatRequest) -> String {
    let conversation = Conversation::new(request);
    let options = conversation.options();
    // The last option differs in its own way from any before it, so there is always one.
    let fresh = options
        .iter()
        .find(|option| !conversation.was_just_said(option));
    fresh.or(options.last()).cloned().unwrap_or_default()
}

/// The conversation, as the reply needs it.
struct Conversation<'a> {
    request: &'a ChatRequest,
    phrases: &'static Phrases,
    /// What the visitor said since the last reply.
    said: String,
    /// What the visitor had said before that.
    asked_before: &'a str,
    /// The last reply.
    last: Option<&'a str>,
    /// All replies.
    replies: Vec<&'a str>,
    facts: facts::Facts,
}

impl<'a> Conversation<'a> {
    fn new(request: &'a ChatRequest) -> Self {
        let messages = &request.messages;
        let answered = messages
            .iter()
            .rposition(|message| message.role == ChatRole::Assistant)
            .map_or(0, |at| at + 1);
        let (past, now) = messages.split_at(answered);
        let said = now
            .iter()
            .map(|message| message.content.trim())
            .collect::<Vec<_>>()
            .join(" ");
        let of = |role| move |message: &&'a ChatMessage| message.role == role;
        Self {
            request,
            phrases: phrases::of(request.grounding.language.as_deref()),
            said,
            asked_before: past
                .iter()
                .rev()
                .find(of(ChatRole::User))
                .map_or("", |message| &message.content),
            last: past
                .iter()
                .rev()
                .find(of(ChatRole::Assistant))
                .map(|message| message.content.as_str()),
            replies: past
                .iter()
                .filter(of(ChatRole::Assistant))
                .map(|message| message.content.as_str())
                .collect(),
            facts: facts::of(&request.grounding.personality),
        }
    }

    /// What could be said, the best first.
    fn options(&self) -> Vec<String> {
        let phrases = self.phrases;
        match intent::of(&self.said, self.request.grounding.name.as_deref(), phrases) {
            Intent::Greeting => self.greeting(),
            Intent::HowAreYou => vec![
                format!("{} {}", phrases.fine, self.offer()),
                phrases.fine.to_owned(),
                self.offer(),
            ],
            Intent::Thanks => vec![phrases.welcome.to_owned(), self.offer()],
            Intent::Goodbye => vec![phrases.farewell.to_owned(), phrases.welcome.to_owned()],
            Intent::No => vec![phrases.all_right.to_owned(), self.offer()],
            Intent::More => self.more(),
            Intent::WhoAreYou => self.who(),
            Intent::WhatCanYouDo => vec![
                self.offer(),
                format!("{} {}", self.who_briefly(), self.offer()),
            ],
            Intent::Again => match self.last {
                Some(last) => vec![self.again(last)],
                None => self.greeting(),
            },
            Intent::Content => match self.answer() {
                Some(answer) => self.told(&answer),
                None => self.unanswered(),
            },
        }
    }

    fn greeting(&self) -> Vec<String> {
        let phrases = self.phrases;
        let plain = format!("{} {}", phrases.hello_back, self.offer());
        match &self.request.grounding.name {
            Some(name) if self.replies.is_empty() => vec![
                format!(
                    "{} {}",
                    phrases.hello_named.replace("{name}", name),
                    self.offer()
                ),
                plain,
            ],
            _ => vec![plain, self.offer(), phrases.hello_back.to_owned()],
        }
    }

    fn who(&self) -> Vec<String> {
        let brief = self.who_briefly();
        let own = self.facts.own.iter().map(String::as_str);
        let about = match &self.request.grounding.name {
            Some(name) => own
                .clone()
                .find(|fact| fact.contains(name.as_str()))
                .map(str::to_owned)
                .or_else(|| own.clone().next().map(|fact| format!("{brief} {fact}"))),
            None => own.clone().next().map(str::to_owned),
        };
        let told = format!("{brief} {}", self.offer());
        about.into_iter().chain([told, brief]).collect()
    }

    fn who_briefly(&self) -> String {
        match &self.request.grounding.name {
            Some(name) => self.phrases.i_am.replace("{name}", name),
            None => self.phrases.i_am_nobody.to_owned(),
        }
    }

    /// What the conversation can be about.
    fn offer(&self) -> String {
        let mut topics = Vec::new();
        let passages = self
            .request
            .grounding
            .passages
            .iter()
            .map(|passage| &passage.title);
        for topic in self.request.grounding.topics.iter().chain(passages) {
            let topic = readable(topic);
            if !topic.is_empty() && !topics.contains(&topic) && topics.len() < MAX_TOPICS {
                topics.push(topic);
            }
        }
        match topics.split_last() {
            None => self.phrases.tell_me.to_owned(),
            Some((last, [])) => self.phrases.offer.replace("{topics}", last),
            Some((last, others)) => {
                let list = format!(
                    "{}{}{last}",
                    others.join(&self.phrases.comma),
                    self.phrases.and
                );
                self.phrases.offer.replace("{topics}", &list)
            }
        }
    }

    fn material(&self) -> Material {
        let facts = self.facts.other.iter().chain(&self.facts.own).cloned();
        Material::new(&self.request.grounding.passages, facts)
    }

    fn answer(&self) -> Option<Answer> {
        let context = format!("{} {}", self.asked_before, self.last.unwrap_or_default());
        self.material()
            .answer(&self.said, &context, |sentence| self.was_told(sentence))
    }

    /// An answer as it is said: with the title of its source, unless that was cited before or stands in it anyway.
    fn told(&self, answer: &Answer) -> Vec<String> {
        let plain = answer.text.clone();
        let title = answer
            .title
            .as_deref()
            .map(readable)
            .filter(|title| !title.is_empty());
        let Some(title) = title else {
            return vec![plain.clone(), self.again(&plain)];
        };
        let citation = self.phrases.according.replace("{title}", &title);
        let cited = citation.replace("{text}", &plain);
        let citation = citation.replace("{text}", "");
        let was_cited = self
            .replies
            .iter()
            .any(|reply| reply.contains(citation.trim()));
        let is_named = plain.to_lowercase().contains(&title.to_lowercase());
        if self.was_told(&plain) {
            return vec![self.again(&plain), cited];
        }
        if is_named || was_cited {
            vec![plain, cited]
        } else {
            vec![cited, plain]
        }
    }

    fn more(&self) -> Vec<String> {
        let last = self.last.unwrap_or_default();
        let following = self
            .material()
            .following(last, |sentence| self.was_told(sentence));
        match following {
            Some(answer) => vec![answer.text],
            // "Yes" to an offer of subjects, or nothing left of this one.
            None if self.material_was_quoted(last) => vec![
                format!("{} {}", self.phrases.no_more, self.offer()),
                self.phrases.no_more.to_owned(),
            ],
            None => match self.request.grounding.passages.first() {
                Some(passage) => {
                    let first = std::slice::from_ref(passage);
                    let material = Material::new(first, []);
                    let about = material.answer(&passage.title, "", |text| self.was_told(text));
                    about.map_or_else(
                        || vec![self.phrases.tell_me.to_owned(), self.offer()],
                        |answer| self.told(&answer),
                    )
                }
                None => vec![
                    self.phrases.tell_me.to_owned(),
                    self.offer(),
                    self.phrases.all_right.to_owned(),
                ],
            },
        }
    }

    fn material_was_quoted(&self, last: &str) -> bool {
        self.request.grounding.passages.iter().any(|passage| {
            colloquy_knowledge::sentences(&passage.text)
                .iter()
                .any(|sentence| last.contains(sentence))
        })
    }

    /// Nothing is known: that, and what else there is to talk about.
    fn unanswered(&self) -> Vec<String> {
        if terms(&self.said).is_empty() && !intent::is_question(&self.said) {
            return vec![self.offer(), self.phrases.tell_me.to_owned()];
        }
        let templates = if intent::is_question(&self.said) {
            &self.phrases.unknown
        } else {
            &self.phrases.unclear
        };
        let turn = self.replies.len();
        (0..templates.len())
            .map(|at| templates[(turn + at) % templates.len()])
            .map(|template| format!("{template} {}", self.offer()))
            .collect()
    }

    /// What was said before, said again.
    fn again(&self, words: &str) -> String {
        let prefix = self.phrases.as_said.replace("{words}", "");
        // Asked twice, the words alone.
        match words.strip_prefix(prefix.trim_end()) {
            Some(bare) => bare.trim_start().to_owned(),
            None => self.phrases.as_said.replace("{words}", words),
        }
    }

    fn was_told(&self, sentence: &str) -> bool {
        self.replies.iter().any(|reply| reply.contains(sentence))
    }

    fn was_just_said(&self, reply: &str) -> bool {
        self.last
            .is_some_and(|last| intent::plain(last) == intent::plain(reply))
    }
}

/// A title as it can be said: file names lose their ending and their underscores.
fn readable(title: &str) -> String {
    let title = title.trim();
    let stem = match title.rsplit_once('.') {
        Some((stem, ending))
            if (1..=5).contains(&ending.len())
                && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && !terms(stem).is_empty() =>
        {
            stem
        }
        _ => title,
    };
    stem.replace('_', " ")
}
