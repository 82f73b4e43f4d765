//! The reply to a conversation.

use colloquy_knowledge::{Origin, terms};

use super::{
    super::super::{ChatRequest, ChatRole},
    answer::{Answer, Material},
    facts,
    intent::{self, Intent},
    names,
    phrases::{self, Phrases},
    reading,
    titles::{MAX_TOPIC_BYTES, file_stem, spoken_title},
};

/// Subjects that are named at once.
const MAX_TOPICS: usize = 3;

/// A reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// The words.
    pub(super) text: String,
    /// The number of the passage that it rests on.
    pub(super) passage: Option<usize>,
}

impl From<String> for Reply {
    /// A reply that rests on no passage.
    fn from(text: String) -> Self {
        Self {
            text,
            passage: None,
        }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The reply to the last turn of the visitor.
pub(super) fn reply(request: &ChatRequest) -> Reply {
    let conversation = Conversation::new(request);
    let options = conversation.options();
    // The last option differs in its own way from any before it, so there is always one.
    let fresh = options
        .iter()
        .find(|option| !conversation.was_just_said(&option.text));
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
    /// What the visitor is called, if they said so.
    visitor: Option<String>,
    facts: facts::Facts,
}

impl<'a> Conversation<'a> {
    fn new(request: &'a ChatRequest) -> Self {
        let turns = reading::turns(&request.messages);
        let phrases = phrases::of(request.grounding.language.as_deref());
        let answered = turns
            .iter()
            .rposition(|(role, _)| *role == ChatRole::Assistant)
            .map_or(0, |at| at + 1);
        let (past, now) = turns.split_at(answered);
        let said: Vec<_> = now.iter().map(|(_, text)| text.trim()).collect();
        let said = said.join(" ");
        let replies = said_by(past, ChatRole::Assistant);
        let asked = said_by(&turns, ChatRole::User);
        Self {
            request,
            phrases,
            said: reading::end(&said, reading::QUESTION_BYTES).to_owned(),
            asked_before: said_by(past, ChatRole::User)
                .last()
                .copied()
                .unwrap_or_default(),
            last: replies.last().copied(),
            replies,
            visitor: names::given(&asked, phrases),
            facts: facts::of(reading::beginning(
                &request.grounding.personality,
                reading::SYSTEM_BYTES,
            )),
        }
    }

    /// What could be said, the best first.
    fn options(&self) -> Vec<Reply> {
        let phrases = self.phrases;
        if let Some(options) = self.about_the_visitor() {
            return options;
        }
        match intent::of(&self.said, self.request.grounding.name.as_deref(), phrases) {
            Intent::Greeting => self.greeting(),
            Intent::HowAreYou => vec![
                format!("{} {}", phrases.fine, self.offer()).into(),
                phrases.fine.into(),
                self.offer().into(),
            ],
            Intent::Thanks => vec![phrases.welcome.into(), self.offer().into()],
            Intent::Goodbye => vec![phrases.farewell.into(), phrases.welcome.into()],
            Intent::No => vec![phrases.all_right.into(), self.offer().into()],
            Intent::More => self.more(),
            Intent::WhoAreYou => self.who(),
            Intent::WhatCanYouDo => vec![
                self.offer().into(),
                format!("{} {}", self.who_briefly(), self.offer()).into(),
            ],
            Intent::Again => match self.last {
                Some(last) => vec![self.again(last).into()],
                None => self.greeting(),
            },
            Intent::Content => match self.answer() {
                Some(answer) => self.told(&answer),
                None => self.unanswered(),
            },
        }
    }

    /// What the visitor is called, where they ask for it or say it.
    fn about_the_visitor(&self) -> Option<Vec<Reply>> {
        let phrases = self.phrases;
        let named =
            |template: &str, name: &str| template.replace("{name}", &names::capitalized(name));
        if names::is_asked_for(&self.said, phrases) {
            // Somebody who never said it gets the answer to any other question.
            let told = named(phrases.your_name, self.visitor.as_deref()?);
            return Some(vec![told.clone().into(), self.again(&told).into()]);
        }
        let name = names::only_given(&self.said, phrases)?;
        let met = named(phrases.met, &name);
        Some(vec![
            format!("{met} {}", self.offer()).into(),
            met.into(),
            self.offer().into(),
        ])
    }

    fn greeting(&self) -> Vec<Reply> {
        let phrases = self.phrases;
        let plain = format!("{} {}", phrases.hello_back, self.offer());
        match &self.request.grounding.name {
            Some(name) if self.replies.is_empty() => vec![
                format!(
                    "{} {}",
                    phrases.hello_named.replace("{name}", name),
                    self.offer()
                )
                .into(),
                plain.into(),
            ],
            _ => vec![plain.into(), self.offer().into(), phrases.hello_back.into()],
        }
    }

    fn who(&self) -> Vec<Reply> {
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
        let all = about.into_iter().chain([told, brief]);
        all.map(Reply::from).collect()
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
        let grounding = &self.request.grounding;
        let known = grounding.topics.iter().map(|title| readable(title));
        // What the character carries is among the topics; of a base it is known by what was found in it.
        let found = reading::passages(&grounding.passages).into_iter();
        let found = found.filter(|(passage, _)| matches!(passage.document, Origin::Kept(_)));
        let found = found.map(|(passage, text)| {
            let title = spoken_title(passage, text);
            reading::beginning(&title, MAX_TOPIC_BYTES).to_owned()
        });
        for topic in known.chain(found) {
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
    fn told(&self, answer: &Answer) -> Vec<Reply> {
        let plain = answer.text.clone();
        let passage = answer.source.as_ref().map(|source| source.passage);
        let rest_on = |texts: [String; 2]| texts.map(|text| Reply { text, passage }).to_vec();
        let title = answer
            .source
            .as_ref()
            .map_or("", |source| source.title.as_str());
        if title.is_empty() {
            return rest_on([plain.clone(), self.again(&plain)]);
        }
        let citation = self.phrases.according.replace("{title}", title);
        let cited = citation.replace("{text}", &plain);
        let citation = citation.replace("{text}", "");
        let was_cited = self
            .replies
            .iter()
            .any(|reply| reply.contains(citation.trim()));
        let is_named = plain.to_lowercase().contains(&title.to_lowercase());
        rest_on(match (self.was_told(&plain), is_named || was_cited) {
            (true, _) => [self.again(&plain), cited],
            (false, true) => [plain, cited],
            (false, false) => [cited, plain],
        })
    }

    fn more(&self) -> Vec<Reply> {
        let last = self.last.unwrap_or_default();
        let material = self.material();
        let following = material.following(last, |sentence| self.was_told(sentence));
        if let Some(answer) = following {
            let passage = answer.source.map(|source| source.passage);
            let text = answer.text;
            return vec![Reply { text, passage }];
        }
        // "Yes" to an offer of subjects, or nothing left of this one.
        if material.was_quoted(last) {
            return vec![
                format!("{} {}", self.phrases.no_more, self.offer()).into(),
                self.phrases.no_more.into(),
            ];
        }
        let Some(passage) = self.request.grounding.passages.first() else {
            return vec![
                self.phrases.tell_me.into(),
                self.offer().into(),
                self.phrases.all_right.into(),
            ];
        };
        let material = Material::new(std::slice::from_ref(passage), []);
        let about = material.answer(&passage.title, "", |text| self.was_told(text));
        about.map_or_else(
            || vec![self.phrases.tell_me.into(), self.offer().into()],
            |answer| self.told(&answer),
        )
    }

    /// Nothing is known: that, and what else there is to talk about.
    fn unanswered(&self) -> Vec<Reply> {
        if terms(&self.said).is_empty() && !intent::is_question(&self.said) {
            return vec![self.offer().into(), self.phrases.tell_me.into()];
        }
        let templates = if intent::is_question(&self.said) {
            &self.phrases.unknown
        } else {
            &self.phrases.unclear
        };
        let turn = self.replies.len();
        (0..templates.len())
            .map(|at| templates[(turn + at) % templates.len()])
            .map(|template| format!("{template} {}", self.offer()).into())
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

/// What one side said in these turns.
fn said_by<'a>(turns: &[(ChatRole, &'a str)], role: ChatRole) -> Vec<&'a str> {
    let own = turns.iter().filter(|(other, _)| *other == role);
    own.map(|(_, text)| *text).collect()
}

/// A title as it can be said: file names lose their ending and their underscores.
fn readable(title: &str) -> String {
    let title = reading::beginning(title.trim(), MAX_TOPIC_BYTES);
    match file_stem(title) {
        Some(stem) => stem.replace(['_', '-'], " "),
        None => title.replace('_', " "),
    }
}
