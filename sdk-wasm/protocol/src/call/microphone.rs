//! The microphone of a call: mute, and the replacement of one that was unplugged.

use super::{Call, Command, frames};
use crate::ErrorCode;

/// Whether there is a microphone, once there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Microphone {
    Live,
    /// Another one is being opened; `reported` when the application was told that there is none.
    Replacing {
        reported: bool,
    },
    /// There is none. The visitor still hears the character and may type.
    Gone,
}

impl Call {
    pub(super) fn replace_microphone(&mut self, reported: bool) {
        self.microphone = Microphone::Replacing { reported };
        self.command(Command::ReplaceMicrophone);
    }

    /// No replacement could be opened. The call goes on, and the next device that is plugged in is tried.
    pub(super) fn microphone_failed(&mut self, code: ErrorCode) {
        if let Microphone::Replacing { reported } = self.microphone {
            self.microphone = Microphone::Gone;
            if !reported {
                self.non_fatal_error(code.into());
            }
        }
    }

    pub(super) fn mute(&mut self, muted: bool) {
        if muted == self.muted {
            return;
        }
        self.muted = muted;
        self.command(Command::MuteMicrophone(muted));
        // After a reconnection it is sent when `welcome` arrives.
        if self.link.is_open() {
            self.command(Command::Send(frames::mute(muted)));
        }
    }
}
