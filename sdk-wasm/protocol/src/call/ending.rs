//! The end of a call: the server is notified where possible, everything is released, and `HangUp` is the last event.

use super::link::LinkState;
use super::media::Failure;
use super::{Call, Command, Event, HangUpReason, Output, Phase, frames};
use crate::{CallError, ErrorCode, SessionState};

impl Call {
    /// Ends the call by a failure that the server knows of or cannot be notified of.
    pub(super) fn fail(&mut self, error: CallError) {
        self.stop();
        self.finish(Err(error));
    }

    /// Ends the call for a reason that the server knows.
    pub(super) fn end(&mut self, reason: HangUpReason) {
        self.stop();
        self.finish(Ok(reason));
    }

    /// Ends the call from this side: the server is notified if there is a session.
    pub(super) fn leave(&mut self, outcome: Result<HangUpReason, CallError>) {
        self.stop();
        let mut last = vec![frames::hang_up()];
        if !self.link.can_send() {
            last.insert(0, self.hello());
        }
        if matches!(self.link.state, LinkState::Waiting { .. }) {
            self.command(Command::OpenSocket(self.link.target().to_owned()));
        }
        // Without a session the URL is still unused, and the server ends the call when it expires.
        if !matches!(self.link.state, LinkState::Closed) {
            self.command(Command::SendAndClose(last));
        }
        self.finish(outcome);
    }

    /// Drops the pending commands and keeps the pending events.
    fn stop(&mut self) {
        for output in std::mem::take(&mut self.outputs) {
            if let Output::Event(event) = output {
                self.event(event);
            }
        }
        self.phase = Phase::Ended;
    }

    /// Releases everything and reports the end to the application. Every end of a call comes here.
    fn finish(&mut self, outcome: Result<HangUpReason, CallError>) {
        // What the server would have said of them does not come any more; the log of the conversation is still there.
        for mut line in std::mem::take(&mut self.open_lines) {
            line.is_final = true;
            self.event(Event::Transcript(line));
        }
        self.command(Command::CloseEverything);
        let (last, reason) = match outcome {
            Ok(reason) => (SessionState::Completed, reason),
            Err(error) => {
                self.event(Event::CallError { error, fatal: true });
                (SessionState::Error, HangUpReason::Error)
            }
        };
        match self.status {
            Some(_) => self.set_status(last),
            // A call that was never created has no status to change.
            None => self.status = Some(last),
        }
        self.event(Event::HangUp(reason));
    }
}

/// The error for missing audio; the remedy for a missing path differs from that for an unfinished handshake.
pub(super) fn no_audio(failure: Failure) -> CallError {
    match failure {
        Failure::NoPath => CallError::with_detail(ErrorCode::Media, "two tries found no path"),
        Failure::Lost => CallError::with_detail(ErrorCode::Media, "it was away for 30 seconds"),
        Failure::NoHandshake => CallError {
            code: ErrorCode::Media,
            message: "A path was found, but the DTLS handshake over it did not finish in two tries. The network \
                      loses packets, or lets only small ones through: try another, and see the backend's log."
                .to_owned(),
        },
    }
}
