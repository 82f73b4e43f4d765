//! The client's side of one call: a state machine without browser, socket or clock.
//!
//! [`Call::handle`] takes what happened and the time; [`Call::poll`] gives what to do next, in order. Whatever happens
//! in whatever order, the first event is `CallStart`, the last is the only `HangUp`, and `CloseEverything` comes before
//! it. `io` has the types of inputs and outputs; `setup` creates the call and opens its session; `link` has the state of
//! the WebSocket, `media` that of the peer connection, `microphone` that of the microphone; `server` handles the server's
//! messages, `timeouts` the timers, `ending` the end of the call.

mod ending;
mod frames;
mod io;
mod link;
mod media;
mod microphone;
mod server;
mod setup;
mod timeouts;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod random_tests;
#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use self::link::Link;
use self::media::{Media, RemoteCandidate, Renewal};
use self::microphone::Microphone;
use crate::{CallError, CloseCode, ErrorCode, IceServer, MAX_TEXT_CHARS, Originator, SessionState};

pub use io::{
    Command, Event, HangUpReason, Input, MediaState, Options, Output, Start, TranscriptLine,
};
pub use link::RECONNECT_WINDOW_MS;

/// The phases of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `POST /v2/calls` is under way.
    Creating { until_ms: u64 },
    /// The session is being opened.
    Opening,
    /// The session is there, and the visitor is asked for the microphone.
    AwaitingMicrophone,
    /// The audio connection is being built.
    Connecting,
    /// Media was up at least once.
    Connected,
    /// Over.
    Ended,
}

/// One call, from `handleCall2` to `onHangUp`.
#[derive(Debug)]
pub struct Call {
    phase: Phase,
    microphone: Microphone,
    link: Link,
    media: Media,
    /// Where `POST /v2/calls` goes, in client mode.
    create_url: String,
    /// The call's id as the REST interface has it, `/v2/calls/<id>`, once it is known.
    call_id: Option<String>,
    /// Those of the last `welcome`.
    ice_servers: Rc<[IceServer]>,
    metadata: Option<String>,
    without_user_info: bool,
    character_role: Option<String>,
    person_role: String,
    muted: bool,
    /// Whether the application knows that nothing plays.
    playback_blocked: bool,
    /// What the server last said; `Starting` before it says anything.
    server_state: SessionState,
    /// The lines of the transcript that may still change.
    open_lines: Vec<TranscriptLine>,
    /// What the application last heard, or how a call ended that was never created.
    status: Option<SessionState>,
    outputs: VecDeque<Output>,
}

impl Call {
    /// Begins a call.
    #[must_use]
    pub fn start(now_ms: u64, start: Start, options: Options) -> Self {
        let mut call = Self::new(options);
        if let Start::Server { signed_url } = &start {
            call.call_id = setup::call_id_of(signed_url);
        }
        call.event(Event::CallStart {
            call_id: call.call_id.clone(),
        });
        if let Err(error) = call.begin(now_ms, start) {
            call.fail(error);
        }
        call
    }

    /// A call that fails at once, for what is known to be wrong before anything was tried.
    #[must_use]
    pub fn refused(error: CallError) -> Self {
        let mut call = Self::new(Options::default());
        call.event(Event::CallStart { call_id: None });
        call.fail(error);
        call
    }

    fn new(options: Options) -> Self {
        Self {
            phase: Phase::Opening,
            microphone: Microphone::Live,
            playback_blocked: false,
            link: Link::new(),
            media: Media::new(),
            create_url: String::new(),
            call_id: None,
            ice_servers: Rc::default(),
            metadata: options.metadata,
            without_user_info: options.without_user_info,
            character_role: options.character_role,
            person_role: options.person_role.unwrap_or_else(|| "You".to_owned()),
            muted: options.muted,
            server_state: SessionState::Starting,
            open_lines: Vec::new(),
            status: None,
            outputs: VecDeque::new(),
        }
    }

    /// What to do next; `None` until something else happens.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether the call has ended and everything about that was said.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended && self.outputs.is_empty()
    }

    /// Whether the call has ended, even if `onHangUp` is still to come.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The status the application heard last, or how the call ended when it was never created; `None` before the call
    /// exists.
    #[must_use]
    pub fn status(&self) -> Option<SessionState> {
        self.status
    }

    /// The call's id as the REST interface has it, `/v2/calls/<id>`, once it is known.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.call_id.as_deref()
    }

    /// Whether a typed turn can be taken: the call is connected, what waits for a link that is away is not too much, and
    /// the text is neither empty nor too long.
    #[must_use]
    pub fn accepts_text(&self, text: &str) -> bool {
        self.phase == Phase::Connected
            && (self.link.is_open() || self.link.has_room())
            && (1..=MAX_TEXT_CHARS).contains(&text.trim().chars().take(MAX_TEXT_CHARS + 1).count())
    }

    /// Takes in what happened. After the end nothing counts any more.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        if self.phase == Phase::Ended {
            return;
        }
        match input {
            Input::Timeout => self.tick(now_ms),
            Input::CreateAnswered(answer) => self.create_answered(now_ms, answer),
            Input::CreateFailed if self.is_creating() => self.create_failed(),
            Input::MicrophoneReady if self.phase == Phase::AwaitingMicrophone => {
                self.phase = Phase::Connecting;
                self.event(Event::CallStarting);
                self.begin_media(now_ms);
                if self.microphone == Microphone::Gone {
                    self.replace_microphone(false);
                }
            }
            Input::MicrophoneReady if self.has_session() => self.microphone = Microphone::Live,
            Input::MicrophoneFailed(code) if self.phase == Phase::AwaitingMicrophone => {
                self.leave(Err(code.into()));
            }
            Input::MicrophoneFailed(code) => self.microphone_failed(code),
            // It may go while the worklet is still being loaded.
            Input::MicrophoneLost if self.phase == Phase::AwaitingMicrophone => {
                self.microphone = Microphone::Gone;
            }
            Input::MicrophoneLost if self.has_session() && self.microphone == Microphone::Live => {
                self.replace_microphone(false);
            }
            Input::DevicesChanged if self.has_session() && self.microphone == Microphone::Gone => {
                self.replace_microphone(true);
            }
            Input::SpeakerFailed => self.non_fatal_error(ErrorCode::SpeakerMissing.into()),
            Input::PlaybackBlocked if !self.playback_blocked => {
                self.non_fatal_error(ErrorCode::AudioBlocked.into());
                self.playback_changed(true);
            }
            Input::PlaybackStarted if self.playback_blocked => self.playback_changed(false),
            Input::SocketOpened => self.socket_opened(now_ms),
            Input::SocketMessage(message) if self.link.can_send() => {
                self.link.heard();
                self.message(now_ms, message);
            }
            Input::SocketGarbage if self.link.can_send() => self.fail(ErrorCode::Protocol.into()),
            Input::SocketClosed { code } if self.link.has_socket() => {
                self.socket_closed(now_ms, code);
            }
            Input::OfferCreated { sdp } => {
                for message in self
                    .media
                    .offered(&sdp, self.link.is_open())
                    .unwrap_or_default()
                {
                    self.send(message);
                }
                self.renew_if_wanted(now_ms);
            }
            Input::LocalCandidate {
                candidate,
                sdp_mid,
                sdp_m_line_index,
            } => {
                let frame =
                    frames::candidate(candidate.as_deref(), sdp_mid.as_deref(), sdp_m_line_index);
                if let Some(message) = self.media.local_candidate(frame) {
                    self.send(message);
                }
            }
            Input::MediaChanged(state) => self.media_changed(now_ms, state),
            Input::MediaFailed(detail) => {
                self.leave(Err(CallError::with_detail(ErrorCode::Media, &detail)));
            }
            Input::ConnectionBlocked { directive, url } => self.blocked(&directive, &url),
            Input::HangUp => self.leave(Ok(HangUpReason::Local)),
            Input::Mute(muted) => self.mute(muted),
            Input::Text(text) if self.accepts_text(&text) => {
                self.send(frames::text(text.trim()));
            }
            Input::CreateFailed
            | Input::MicrophoneReady
            | Input::MicrophoneLost
            | Input::DevicesChanged
            | Input::PlaybackBlocked
            | Input::PlaybackStarted
            | Input::SocketMessage(_)
            | Input::SocketGarbage
            | Input::SocketClosed { .. }
            | Input::Text(_) => {}
        }
    }

    fn has_session(&self) -> bool {
        matches!(self.phase, Phase::Connecting | Phase::Connected)
    }

    fn socket_closed(&mut self, now_ms: u64, number: u16) {
        if let Some(code) = ErrorCode::from_close_number(number) {
            self.fail(code.into());
        } else if self.server_state == SessionState::Error {
            self.fail(ErrorCode::Server.into());
        } else if number == CloseCode::Normal.number() {
            self.end(HangUpReason::Remote);
        } else if self.comes_back(number) {
            self.link.lost(now_ms);
            self.media.link_lost();
            self.update_status();
        } else {
            self.socket_failed();
        }
    }

    /// Returns true if the session is opened again after this close code: it was open, or another node holds the call.
    fn comes_back(&self, number: u16) -> bool {
        let is_elsewhere = number == CloseCode::CallElsewhere.number();
        is_elsewhere || self.link.resume.is_some() || self.link.is_lost()
    }

    fn media_changed(&mut self, now_ms: u64, state: MediaState) {
        if self.media.changed(now_ms, state) {
            if self.phase == Phase::Connecting {
                self.phase = Phase::Connected;
                self.event(Event::Connected);
            }
            self.update_status();
        }
        // A failure is acted on at once, not when the next timer fires.
        self.tick_media(now_ms);
    }

    fn renew_if_wanted(&mut self, now_ms: u64) {
        match self.media.take_renewal(now_ms, self.link.is_open()) {
            Some(Renewal::Restart) => self.command(Command::RestartIce),
            Some(Renewal::Replace) => self.create_peer(),
            None => {}
        }
    }

    fn add_candidate(&mut self, remote: RemoteCandidate) {
        self.command(Command::AddCandidate {
            candidate: remote.candidate,
            sdp_mid: remote.sdp_mid,
            sdp_m_line_index: remote.sdp_m_line_index,
        });
    }

    fn role(&self, originator: Originator) -> String {
        match (originator, &self.character_role) {
            (Originator::User, _) => self.person_role.clone(),
            (Originator::Bot, Some(role)) => role.clone(),
            (Originator::Bot, None) => "Character".to_owned(),
        }
    }

    /// Sends a frame now, or after the link is back.
    fn send(&mut self, frame: String) {
        if self.link.is_open() {
            self.command(Command::Send(frame));
        } else {
            self.link.keep(frame);
        }
    }

    /// Tells the application where the call is, if that changed.
    fn update_status(&mut self) {
        let status = if self.phase != Phase::Connected {
            SessionState::Starting
        } else if self.link.is_lost()
            || self.media.is_lost()
            || self.server_state == SessionState::Reconnecting
        {
            SessionState::Reconnecting
        } else {
            SessionState::Ongoing
        };
        self.set_status(status);
    }

    fn set_status(&mut self, status: SessionState) {
        if self.status != Some(status) {
            self.status = Some(status);
            self.event(Event::StatusUpdate(status));
        }
    }

    /// A failure that the call survives.
    fn non_fatal_error(&mut self, error: CallError) {
        self.event(Event::CallError {
            error,
            fatal: false,
        });
    }

    fn playback_changed(&mut self, blocked: bool) {
        self.playback_blocked = blocked;
        self.event(Event::AudioBlockedChange(blocked));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn command(&mut self, command: Command) {
        self.outputs.push_back(Output::Command(command));
    }
}
