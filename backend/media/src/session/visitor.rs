//! What the visitor tells of themselves, found out between turns: once the character has answered a turn, so that nobody waits for
//! it, and one question at a time.

use std::collections::BTreeMap;

use colloquy_analyses::UserProfile;
use colloquy_base::language::language_tag;
use colloquy_characters::Character;
use colloquy_config::CallsConfig;
use colloquy_protocol::MAX_FRAME_BYTES;
use colloquy_voice::{AgentState, Event, Originator};
use serde_json::{Map, Value};

/// How much is told in one frame, in bytes. As text inside of a frame, some characters take twice as many.
const MOST_BYTES: usize = MAX_FRAME_BYTES / 4;

/// What is known of the visitor, and whether to find out more.
#[derive(Debug)]
pub(super) struct Visitor {
    /// `None` where nobody wants to know.
    profile: Option<UserProfile>,
    turn: Turn,
    is_asked: bool,
}

/// What became of the visitor's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It was looked at, or there was none.
    Known,
    /// The character has not answered it yet.
    Said,
    /// It may be looked at.
    Answered,
}

impl Visitor {
    /// A visitor of whom is wanted to be known what the character's schema has, or else the settings.
    pub(super) fn new(character: &Character, settings: &CallsConfig) -> Self {
        let parameters = &character.parameters;
        let descriptions: BTreeMap<String, String> = match &parameters.profile_schema {
            None => settings.user_info(),
            Some(schema) => schema
                .iter()
                .map(|(field, it)| (field.clone(), it.description.clone().unwrap_or_default()))
                .collect(),
        };
        // `auto` is the name of none.
        let language = parameters.language.as_deref();
        let language = language.filter(|language| language_tag(language).is_some());
        let profile = UserProfile::new(descriptions, language);
        Self {
            profile: (!profile.is_empty()).then_some(profile),
            turn: Turn::Known,
            is_asked: false,
        }
    }

    /// Nothing is to be found out.
    pub(super) fn leave_alone(&mut self) {
        self.profile = None;
    }

    /// Something happened in the conversation, and says whether the question that is asked is to be dropped: a model that answers one
    /// after the other would let the visitor's next reply wait for it. A line that was taken back tells nothing.
    #[must_use]
    pub(super) fn heard(&mut self, event: &Event) -> bool {
        match event {
            Event::Transcript {
                line,
                is_final: true,
            } if line.originator == Originator::User && !line.text.is_empty() => {
                self.turn = Turn::Said;
            }
            Event::Agent(AgentState::Listening) if self.turn == Turn::Said => {
                self.turn = Turn::Answered;
            }
            Event::Agent(AgentState::Thinking) if self.is_asked => {
                self.is_asked = false;
                self.turn = Turn::Said;
                return true;
            }
            _ => {}
        }
        false
    }

    /// What is known, where it is time to find out more; [`Visitor::found`] has to follow.
    pub(super) fn ask(&mut self) -> Option<UserProfile> {
        if self.turn != Turn::Answered || self.is_asked {
            return None;
        }
        let profile = self.profile.clone()?;
        self.turn = Turn::Known;
        self.is_asked = true;
        Some(profile)
    }

    /// Returns the fields that are known, with their values.
    pub(super) fn facts(&self) -> Map<String, Value> {
        let profile = self.profile.as_ref();
        profile.map(UserProfile::facts).unwrap_or_default()
    }

    /// What is known now, `None` where that failed, and gives what is new of it as JSON objects that fit into frames.
    pub(super) fn found(&mut self, profile: Option<UserProfile>) -> Vec<String> {
        self.is_asked = false;
        let (Some(profile), Some(known)) = (profile, &mut self.profile) else {
            return Vec::new();
        };
        let news = profile.news_since(known);
        *known = profile;
        in_frames(news)
    }
}

/// Fields as JSON objects, as few as have at most [`MOST_BYTES`] each.
fn in_frames(fields: Map<String, Value>) -> Vec<String> {
    let mut objects: Vec<Map<String, Value>> = Vec::new();
    let mut bytes = 0;
    for (field, value) in fields {
        let more = Value::from(field.as_str()).to_string().len() + value.to_string().len() + 2;
        match objects.last_mut() {
            Some(object) if bytes + more <= MOST_BYTES => {
                bytes += more;
                object.insert(field, value);
            }
            _ => {
                bytes = more;
                objects.push(Map::from_iter([(field, value)]));
            }
        }
    }
    let texts = objects
        .into_iter()
        .map(|object| Value::from(object).to_string());
    texts.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use colloquy_protocol::ServerMessage;
    use colloquy_voice::{Line, LineId};

    use super::*;

    fn line(originator: Originator, text: &str, is_final: bool) -> Event {
        let line = Line {
            id: LineId(1),
            originator,
            text: text.to_owned(),
            at: Duration::ZERO,
            interrupted: false,
            is_aside: false,
        };
        Event::Transcript { line, is_final }
    }

    fn character(parameters: serde_json::Value) -> Character {
        Character {
            reference: None,
            personality: String::new(),
            parameters: serde_json::from_value(parameters).unwrap(),
        }
    }

    fn visitor(parameters: serde_json::Value) -> Visitor {
        Visitor::new(&character(parameters), &CallsConfig::default())
    }

    #[test]
    fn a_turn_is_looked_at_once_it_was_answered() {
        let mut visitor = visitor(serde_json::json!({}));
        let said = line(Originator::User, "I am Ada.", true);
        assert!(!visitor.heard(&said));
        assert!(visitor.ask().is_none(), "it has no answer");
        for state in [AgentState::Thinking, AgentState::Speaking] {
            assert!(!visitor.heard(&Event::Agent(state)));
            assert!(visitor.ask().is_none(), "the answer goes on");
        }
        assert!(!visitor.heard(&Event::Agent(AgentState::Listening)));
        assert!(visitor.ask().is_some());
        assert!(visitor.ask().is_none(), "it is being looked at");
        assert!(visitor.found(None).is_empty());
        assert!(visitor.ask().is_none(), "a failure waits for the next turn");
    }

    /// However much a model makes of the most fields that there may be, clients take the frames.
    #[test]
    fn all_that_may_be_told_fits_into_frames() {
        for letter in ['a', 'é', '\u{1}', '"', '\\'] {
            let value = Value::from(letter.to_string().repeat(500));
            let name = |number: usize| format!("{number:02}{}", letter.to_string().repeat(98));
            let fields: Map<String, Value> = (0..50).map(|it| (name(it), value.clone())).collect();
            let infos = in_frames(fields.clone());
            let mut told = Map::new();
            for info in infos {
                let object: Map<String, Value> = serde_json::from_str(&info).unwrap();
                let frame = serde_json::to_string(&ServerMessage::UserInfo { info }).unwrap();
                assert!(
                    frame.len() <= MAX_FRAME_BYTES,
                    "{letter:?}: {}",
                    frame.len()
                );
                told.extend(object);
            }
            assert_eq!(told, fields);
        }
        let few = Map::from_iter([("a".to_owned(), Value::Null), ("b".to_owned(), "c".into())]);
        assert_eq!(in_frames(few), [r#"{"a":null,"b":"c"}"#]);
        assert!(in_frames(Map::new()).is_empty());
    }

    #[test]
    fn a_question_gives_way_to_the_next_reply_and_is_asked_after_it() {
        let mut visitor = visitor(serde_json::json!({}));
        assert!(!visitor.heard(&line(Originator::User, "I am Ada.", true)));
        assert!(!visitor.heard(&Event::Agent(AgentState::Listening)));
        assert!(visitor.ask().is_some());
        // A sound without words is a turn, too.
        assert!(visitor.heard(&Event::Agent(AgentState::Thinking)));
        assert!(visitor.ask().is_none());
        assert!(!visitor.heard(&Event::Agent(AgentState::Listening)));
        assert!(visitor.ask().is_some());
    }

    #[test]
    fn what_is_no_turn_of_the_visitor_tells_nothing() {
        for event in [
            line(Originator::User, "I am", false),
            line(Originator::User, "", true),
            line(Originator::Bot, "I am a guide.", true),
        ] {
            let mut visitor = visitor(serde_json::json!({}));
            let _ = visitor.heard(&event);
            let _ = visitor.heard(&Event::Agent(AgentState::Listening));
            assert!(visitor.ask().is_none(), "{event:?}");
        }
    }

    #[test]
    fn nothing_is_asked_where_nobody_wants_to_know() {
        let own = serde_json::json!({"profile_schema": {"pet": {"type": "string"}}});
        for (page_listens, parameters, is_asked) in [
            (true, serde_json::json!({}), true),
            (false, serde_json::json!({}), false),
            (true, serde_json::json!({"profile_schema": {}}), false),
            (true, own.clone(), true),
            (false, own, false),
        ] {
            let mut visitor = visitor(parameters.clone());
            if !page_listens {
                visitor.leave_alone();
            }
            let _ = visitor.heard(&line(Originator::User, "I am Ada.", true));
            let _ = visitor.heard(&Event::Agent(AgentState::Listening));
            assert_eq!(visitor.ask().is_some(), is_asked, "{parameters}");
        }
    }
}
