//! The timers of a call.

use super::link::LinkTick;
use super::media::MediaTick;
use super::{Call, Command, Phase, ending, frames};

impl Call {
    /// When to come back with [`Input::Timeout`](super::Input::Timeout) at the latest.
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        match self.phase {
            Phase::Creating { until_ms } => Some(until_ms),
            Phase::Ended => None,
            Phase::Opening | Phase::AwaitingMicrophone | Phase::Connecting | Phase::Connected => {
                match (self.link.next_timeout(), self.media.next_timeout()) {
                    (Some(link), Some(media)) => Some(link.min(media)),
                    (link, media) => link.or(media),
                }
            }
        }
    }

    pub(super) fn tick(&mut self, now_ms: u64) {
        match self.phase {
            Phase::Creating { until_ms } if now_ms >= until_ms => {
                self.create_failed();
            }
            Phase::Creating { .. } | Phase::Ended => {}
            Phase::Opening | Phase::AwaitingMicrophone | Phase::Connecting | Phase::Connected => {
                self.tick_link(now_ms);
                self.tick_media(now_ms);
            }
        }
    }

    fn tick_link(&mut self, now_ms: u64) {
        match self.link.tick(now_ms) {
            LinkTick::Nothing => {}
            LinkTick::Ping => {
                self.command(Command::Send(frames::ping(now_ms as f64)));
            }
            LinkTick::Lost => {
                self.command(Command::CloseSocket);
                self.socket_closed(now_ms, 1006);
            }
            LinkTick::Retry => self.open_socket(now_ms),
            LinkTick::GiveUp => self.socket_failed(),
        }
    }

    pub(super) fn tick_media(&mut self, now_ms: u64) {
        if self.phase == Phase::Ended {
            return;
        }
        match self.media.tick(now_ms) {
            MediaTick::Nothing => {}
            MediaTick::Again => self.renew_if_wanted(now_ms),
            MediaTick::Restart => {
                self.update_status();
                self.renew_if_wanted(now_ms);
            }
            MediaTick::GiveUp(failure) => self.leave(Err(ending::no_audio(failure))),
        }
    }
}
