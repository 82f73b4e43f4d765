//! How much of a conversation is read, so that what an answer takes of memory has a bound that does not depend on its request.

use std::sync::Arc;

use colloquy_knowledge::Passage;

use super::super::super::{ChatMessage, ChatRequest, ChatRole};

/// The beginning of the system prompt, or of the character's personality, that is read, in bytes.
pub(super) const SYSTEM_BYTES: usize = 64 * 1024;
/// How much of the last turns is read, in bytes; each turn counts with [`TURN_BYTES`] more.
pub(super) const TURNS_BYTES: usize = 64 * 1024;
/// How much of the passages is read, in bytes, the best first.
pub(super) const PASSAGES_BYTES: usize = 64 * 1024;
/// How much is read of one turn, in bytes: its end for one of the visitor, where the question is, and else its beginning.
pub(super) const TURN_BYTES_READ: usize = 16 * 1024;
/// How much of what the visitor said since the last reply is the question, in bytes: its end.
pub(super) const QUESTION_BYTES: usize = 4 * 1024;
/// What a turn counts for itself, in bytes.
const TURN_BYTES: usize = 64;

/// How many times the bytes that are read an answer may take at its peak: each sentence is kept with its words, and these twice for
/// their statistics. A system prompt of sentences of three words took 24 times; twice that is counted.
const WORKING_FACTOR: u64 = 48;

/// The most memory that an answer to a request of so many bytes takes besides the request.
pub(super) fn working_bytes(request_bytes: u64) -> u64 {
    let most = (SYSTEM_BYTES + TURNS_BYTES + PASSAGES_BYTES) as u64;
    WORKING_FACTOR * request_bytes.min(most)
}

/// The beginning of a text.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The end of a text.
pub(super) fn end(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// The part of a turn that is read, in so many bytes at most.
pub(super) fn part(role: ChatRole, text: &str, most: usize) -> &str {
    match role {
        ChatRole::User => end(text, most),
        ChatRole::Assistant => beginning(text, most),
    }
}

/// What is left to read of the turns, the last of which comes first.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(TURNS_BYTES)
    }
}

impl Room {
    /// Takes the room of a turn; false if there is none.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.0.checked_sub(text.len() + TURN_BYTES) {
            Some(left) => self.0 = left,
            None => return false,
        }
        true
    }
}

/// A conversation as far as it is read. Its character and passages are shared and not copied.
pub(super) fn read(request: &ChatRequest) -> ChatRequest {
    let message = |(role, text): (ChatRole, &str)| ChatMessage {
        role,
        content: text.to_owned(),
    };
    ChatRequest {
        system: beginning(&request.system, SYSTEM_BYTES).to_owned(),
        messages: turns(&request.messages).into_iter().map(message).collect(),
        grounding: Arc::clone(&request.grounding),
    }
}

/// The turns that are read, oldest first.
pub(super) fn turns(messages: &[ChatMessage]) -> Vec<(ChatRole, &str)> {
    let mut room = Room::default();
    let read = messages.iter().rev().map(|message| {
        (
            message.role,
            part(message.role, &message.content, TURN_BYTES_READ),
        )
    });
    let mut turns: Vec<_> = read.take_while(|(_, text)| room.take(text)).collect();
    turns.reverse();
    turns
}

/// The passages that are read, with the text of each.
pub(super) fn passages(passages: &[Passage]) -> Vec<(&Passage, &str)> {
    let mut room = PASSAGES_BYTES;
    let mut read = Vec::new();
    for passage in passages {
        let text = beginning(&passage.text, room);
        room -= text.len();
        read.push((passage, text));
        if room == 0 {
            break;
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turns_are_read() {
        let turn = |role, content: String| ChatMessage { role, content };
        let long = "äx".repeat(TURNS_BYTES);
        let said = [
            turn(ChatRole::User, "first".to_owned()),
            turn(ChatRole::Assistant, format!("begins {long}")),
            turn(ChatRole::User, format!("{long} ends")),
        ];
        let read = turns(&said);
        assert_eq!(read.len(), 3);
        assert!(read[1].1.starts_with("begins ") && read[2].1.ends_with(" ends"));
        let bytes: usize = read.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes <= 2 * TURN_BYTES_READ + 5);

        let many = vec![turn(ChatRole::User, "x".to_owned()); 100_000];
        assert_eq!(turns(&many).len(), TURNS_BYTES / (TURN_BYTES + 1));
    }

    #[test]
    fn the_best_passages_are_read() {
        let passage = |bytes: usize| Passage {
            text: "x".repeat(bytes),
            ..Passage::default()
        };
        let all = [passage(10), passage(PASSAGES_BYTES), passage(10)];
        let read: Vec<_> = passages(&all).iter().map(|(_, text)| text.len()).collect();
        assert_eq!(read, [10, PASSAGES_BYTES - 10]);
    }
}
