//! The client's side of a session: its messages, its offers, and its connection, which may be lost and replaced.

use std::time::Instant;

use colloquy_protocol::{ByeReason, ClientMessage, CloseCode, MAX_TEXT_CHARS, ServerMessage};
use colloquy_transport::{offer::Offer, peer::Peer};
use colloquy_voice::Input;

use super::{
    MediaPath, Session,
    ending::{End, Failure},
    excerpt,
    limits::{MAX_TYPED_BYTES, MAX_TYPED_TURNS, WINDOW},
};
use crate::signalling::Wire;

impl Session {
    pub(super) fn heard(&mut self, message: ClientMessage, now: Instant) {
        match message {
            ClientMessage::Offer { sdp, .. } => self.offered(sdp, now),
            // The client's own checks show its addresses; those that it names are not used.
            ClientMessage::Candidate { .. } => {
                if self.peer.is_none() {
                    self.violated("a candidate came before the offer");
                }
            }
            ClientMessage::Mute { muted } => self.tell_engine(Input::Mute(muted), now),
            ClientMessage::Text { text } => self.typed(text.trim(), now),
            ClientMessage::HangUp => self.tell_engine(Input::HangUp, now),
            ClientMessage::Ping { t } => self.say(&ServerMessage::Pong { t }),
            ClientMessage::Hello { .. } => self.violated("hello came twice"),
            _ => {}
        }
    }

    /// Takes a typed turn, unless it is too long or there are too many.
    fn typed(&mut self, text: &str, now: Instant) {
        let refused = |code: &str, message: String| ServerMessage::Error {
            code: code.to_owned(),
            message,
            fatal: false,
        };
        if text.is_empty() {
            return;
        }
        if text.chars().count() > MAX_TEXT_CHARS {
            let message = format!("a typed turn has at most {MAX_TEXT_CHARS} characters");
            self.say(&refused("TEXT_TOO_LONG", message));
        } else if self.limits.typed_turns.count(now, text.len()) {
            let text = text.to_owned();
            self.tell_engine(Input::TypedTurn { text }, now);
        } else {
            let seconds = WINDOW.as_secs();
            let message = format!(
                "a call has at most {MAX_TYPED_TURNS} typed turns in each {seconds} s, and {MAX_TYPED_BYTES} bytes of them in all"
            );
            self.say(&refused("TEXT_TOO_MUCH", message));
        }
    }

    pub(super) fn offered(&mut self, sdp: String, now: Instant) {
        if !self.limits.offers.count(now, 1) {
            return self.violated("too many offers came");
        }
        match self.answer(&sdp, now) {
            Ok(sdp) => self.say(&ServerMessage::Answer { sdp }),
            Err(error) => {
                // The stack's error may quote the offer, which has the client's addresses.
                tracing::info!("an offer was refused");
                self.say(&ServerMessage::Error {
                    code: Failure::BadOffer.code().to_owned(),
                    message: format!("the offer was refused: {}", excerpt(&error)),
                    fatal: true,
                });
                self.end_with(End::failed(Failure::BadOffer));
            }
        }
    }

    pub(super) fn answer(&mut self, sdp: &str, now: Instant) -> anyhow::Result<String> {
        let offer = Offer::parse(sdp)?;
        if self.peer.is_none() {
            self.expect_media(now);
        }
        let peer = match &mut self.peer {
            Some(peer) if peer.continues(&offer) => peer,
            other => {
                let media = &self.media;
                if let Some(mut old) = other.take() {
                    old.close(&media.net);
                }
                other.insert(Peer::new(
                    &media.identity,
                    media.net.candidates(),
                    &offer,
                    self.ssrc,
                    now,
                )?)
            }
        };
        let (answer, fragment) = peer.accept(&offer, now)?;
        self.place.listen(&fragment);
        Ok(answer)
    }

    pub(super) fn lost_wire(&mut self, now: Instant) {
        if self.wire.take().is_some() {
            tracing::info!("the client's connection was lost");
            self.media
                .live
                .set_reopenable(&self.id, self.path == MediaPath::New);
            self.reconsider_giving_up(now);
        }
    }

    pub(super) fn replace_wire(&mut self, wire: Wire, now: Instant) {
        if let Some(old) = self.wire.take() {
            old.say(&ServerMessage::Bye {
                reason: ByeReason::Replaced,
                code: None,
            });
            old.close(CloseCode::Normal.number(), "REPLACED");
        }
        let resume = self.media.live.renew(&self.id);
        self.presence.hear(now);
        self.attach(wire, resume);
        self.say(&ServerMessage::Status {
            state: self.state(),
        });
        for message in self.replay.take() {
            self.say(&message);
        }
        self.reconsider_giving_up(now);
    }

    pub(super) fn attach(&mut self, wire: Wire, resume: String) {
        self.media.live.set_reopenable(&self.id, false);
        if !wire.wants_user_info {
            self.visitor.leave_alone();
        }
        wire.say(&ServerMessage::Welcome {
            call_id: format!("/v2/calls/{}", self.id),
            character: self.character.clone(),
            ice_servers: self.media.ice_servers.clone(),
            resume,
            time_limit_seconds: u32::try_from(self.time_limit.as_secs()).unwrap_or(u32::MAX),
            heartbeat_seconds: self.media.config.calls.heartbeat_seconds,
        });
        self.wire = Some(wire);
    }

    pub(super) fn violated(&mut self, what: &'static str) {
        self.say(&ServerMessage::Error {
            code: Failure::Protocol.code().to_owned(),
            message: what.to_owned(),
            fatal: true,
        });
        self.end_with(End::failed(Failure::Protocol));
    }

    pub(super) fn say(&mut self, message: &ServerMessage) {
        let is_away = self.wire.is_none();
        self.replay
            .said(message, is_away, self.media.clock.instant());
        if let Some(wire) = &self.wire
            && !wire.say(message)
        {
            let now = self.media.clock.instant();
            self.lost_wire(now);
        }
    }
}
