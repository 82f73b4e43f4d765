//! What a client may have missed: what was said to it while its connection was away, or shortly before that was noticed.
//! It is said again when the client comes back. Lines have ids and replace each other, so that twice does no harm; what has
//! none is kept only while the connection is known to be away, and so said once.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use colloquy_protocol::ServerMessage;

/// How long a message may be under way on a connection that lives.
const TRAVEL: Duration = Duration::from_secs(3);

/// How many messages are kept; a client that is away for longer than that has the transcript after the call.
const KEPT: usize = 200;

/// The messages of which nothing shows that they arrived.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    messages: VecDeque<(Instant, ServerMessage)>,
}

impl ReplayBuffer {
    /// Keeps a message that is part of the conversation; what is about the connection is made anew.
    pub(super) fn said(&mut self, message: &ServerMessage, is_away: bool, now: Instant) {
        let kept = match message {
            ServerMessage::Transcript { .. } | ServerMessage::AgentState { .. } => true,
            ServerMessage::UserInfo { .. } | ServerMessage::RagInfo { .. } => is_away,
            _ => false,
        };
        if !kept {
            return;
        }
        self.messages
            .retain(|(_, earlier)| !replaces(message, earlier));
        if self.messages.len() == KEPT {
            self.messages.pop_front();
        }
        self.messages.push_back((now, message.clone()));
    }

    /// The client was heard: what was said a while ago has arrived.
    pub(super) fn heard(&mut self, now: Instant) {
        while let Some((at, _)) = self.messages.front()
            && *at + TRAVEL < now
        {
            self.messages.pop_front();
        }
    }

    /// What to say again.
    pub(super) fn take(&mut self) -> Vec<ServerMessage> {
        self.messages
            .drain(..)
            .map(|(_, message)| message)
            .collect()
    }
}

/// Whether the later message makes the earlier one void.
fn replaces(later: &ServerMessage, earlier: &ServerMessage) -> bool {
    match (later, earlier) {
        (ServerMessage::Transcript { id, .. }, ServerMessage::Transcript { id: other, .. }) => {
            id == other
        }
        (ServerMessage::AgentState { .. }, ServerMessage::AgentState { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use colloquy_protocol::{AgentState, Originator};

    use super::*;
    use colloquy_base::clock::{Clock as _, SystemClock};

    fn line(id: &str, text: &str) -> ServerMessage {
        ServerMessage::Transcript {
            id: id.to_owned(),
            originator: Originator::User,
            text: text.to_owned(),
            is_final: true,
            at_ms: 0,
        }
    }

    #[test]
    fn what_was_said_since_the_client_was_heard_is_said_again() {
        let start = SystemClock.instant();
        let after = |ms| start + Duration::from_millis(ms);
        let mut replay = ReplayBuffer::default();
        replay.said(&line("1", "old"), false, start);
        replay.said(&line("2", "under way"), false, after(4_000));
        replay.heard(after(5_000));
        replay.said(&line("3", "hel"), false, after(6_000));
        replay.said(&line("3", "hello"), true, after(7_000));
        assert_eq!(replay.take(), [line("2", "under way"), line("3", "hello")]);
        assert!(replay.take().is_empty());
    }

    #[test]
    fn what_has_no_id_is_said_once() {
        let now = SystemClock.instant();
        let told = |info: &str| ServerMessage::UserInfo {
            info: info.to_owned(),
        };
        let mut replay = ReplayBuffer::default();
        replay.said(&told("heard"), false, now);
        replay.said(&told("said while it was away"), true, now);
        assert_eq!(replay.take(), [told("said while it was away")]);
    }

    #[test]
    fn only_the_conversation_and_its_last_state_are_kept_and_not_for_ever() {
        let now = SystemClock.instant();
        let mut replay = ReplayBuffer::default();
        replay.said(&ServerMessage::Pong { t: 1.0 }, true, now);
        for state in [AgentState::Thinking, AgentState::Speaking] {
            replay.said(&ServerMessage::AgentState { state }, false, now);
        }
        let state = AgentState::Speaking;
        assert_eq!(replay.take(), [ServerMessage::AgentState { state }]);
        for id in 0..300 {
            replay.said(&line(&id.to_string(), "text"), false, now);
        }
        assert_eq!(replay.take().len(), KEPT);
    }
}
