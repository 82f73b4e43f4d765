//! The life of one call as its client lives it: a state machine without browser, socket or clock.
//!
//! [`Call::handle`] takes what happened and the time; [`Call::poll`] gives what to do next, in order. Whatever happens
//! in whatever order, the first event is `CallStart`, the last is the only `HangUp`, and `CloseEverything` comes before
//! it. `link` owns the WebSocket's side, `media` the peer connection's; `server` follows what the server says.

mod frames;
mod link;
mod media;
mod server;
mod vocabulary;

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod random_tests;
#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests;

use std::collections::VecDeque;

use self::link::{Link, LinkState, LinkTick};
use self::media::{Media, MediaTick, RemoteCandidate};
use crate::{
    CallError, CloseCode, CreateAnswer, ErrorCode, MAX_FRAME_BYTES, MAX_TEXT_CHARS, Originator,
    SessionState,
};

pub use link::RECONNECT_WINDOW_MS;
pub use vocabulary::{Command, Event, Input, MediaState, Options, Output, Start, TranscriptLine};

/// How long `POST /v2/calls` may take.
const CREATE_TIMEOUT_MS: u64 = 20_000;

/// Where a call is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `POST /v2/calls` is under way.
    Creating { until_ms: u64 },
    /// The visitor is asked for the microphone.
    Asking,
    /// The session is being built; no media yet.
    Connecting,
    /// Media was up at least once.
    Talking,
    /// Over.
    Ended,
}

/// Whether there is a microphone, once there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Microphone {
    Live,
    /// Another one is being opened; `told` when the application knows that the first is gone.
    Replacing {
        told: bool,
    },
    /// None is left. The visitor still hears, and may type.
    Gone,
}

/// One call, from `handleCall2` to `onHangUp`.
#[derive(Debug)]
pub struct Call {
    phase: Phase,
    microphone: Microphone,
    link: Link,
    media: Media,
    metadata: Option<String>,
    character_role: Option<String>,
    person_role: String,
    muted: bool,
    /// Whether the application knows that nothing plays.
    playback_blocked: bool,
    /// What the server last said; `Starting` before it says anything.
    server_state: SessionState,
    /// What the application last heard, or how a call ended that was never created.
    status: Option<SessionState>,
    outputs: VecDeque<Output>,
}

impl Call {
    /// Begins a call.
    #[must_use]
    pub fn start(now_ms: u64, start: Start, options: Options) -> Self {
        let mut call = Self::new(options);
        call.event(Event::CallStart);
        if let Err(error) = call.begin(now_ms, start) {
            call.fail(error);
        }
        call
    }

    /// A call that fails at once, for what is known to be wrong before anything was tried.
    #[must_use]
    pub fn refused(error: CallError) -> Self {
        let mut call = Self::new(Options::default());
        call.event(Event::CallStart);
        call.fail(error);
        call
    }

    fn new(options: Options) -> Self {
        Self {
            phase: Phase::Asking,
            microphone: Microphone::Live,
            playback_blocked: false,
            link: Link::new(),
            media: Media::new(),
            metadata: options.metadata,
            character_role: options.character_role,
            person_role: options.person_role.unwrap_or_else(|| "You".to_owned()),
            muted: options.muted,
            server_state: SessionState::Starting,
            status: None,
            outputs: VecDeque::new(),
        }
    }

    fn begin(&mut self, now_ms: u64, start: Start) -> Result<(), CallError> {
        if self.hello().len() > MAX_FRAME_BYTES {
            return Err(CallError::with_detail(
                ErrorCode::InvalidArgument,
                "customMetadata is larger than 64 KiB",
            ));
        }
        match start {
            Start::Client(new_call) => {
                let request = new_call.into_request()?;
                self.phase = Phase::Creating {
                    until_ms: now_ms + CREATE_TIMEOUT_MS,
                };
                self.command(Command::CreateCall(request));
                Ok(())
            }
            Start::Server { signed_url } => self.created(signed_url),
        }
    }

    /// What to do next; `None` until something else happens.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] at the latest.
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        match self.phase {
            Phase::Creating { until_ms } => Some(until_ms),
            Phase::Asking | Phase::Ended => None,
            Phase::Connecting | Phase::Talking => {
                match (self.link.next_timeout(), self.media.next_timeout()) {
                    (Some(link), Some(media)) => Some(link.min(media)),
                    (link, media) => link.or(media),
                }
            }
        }
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

    /// Whether a typed turn can be taken: the call is connected, what waits for a link that is away is not too much, and
    /// the text is neither empty nor too long.
    #[must_use]
    pub fn accepts_text(&self, text: &str) -> bool {
        self.phase == Phase::Talking
            && (self.link.is_open() || self.link.has_room())
            && (1..=MAX_TEXT_CHARS).contains(&text.trim().chars().count())
    }

    /// Takes in what happened. After the end nothing counts any more.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        if self.phase == Phase::Ended {
            return;
        }
        match input {
            Input::Timeout => self.tick(now_ms),
            Input::CreateAnswered(answer) => self.create_answered(answer),
            Input::CreateFailed if self.is_creating() => self.fail(ErrorCode::Network.into()),
            Input::MicrophoneReady if self.phase == Phase::Asking => {
                self.phase = Phase::Connecting;
                self.event(Event::CallStarting);
                self.open_socket(now_ms);
                if self.microphone == Microphone::Gone {
                    self.replace_microphone(false);
                }
            }
            Input::MicrophoneReady if self.has_session() => self.microphone = Microphone::Live,
            Input::MicrophoneFailed(code) if self.phase == Phase::Asking => self.fail(code.into()),
            Input::MicrophoneFailed(code) => self.microphone_failed(code),
            // It may go while the worklet is still being loaded.
            Input::MicrophoneLost if self.phase == Phase::Asking => {
                self.microphone = Microphone::Gone;
            }
            Input::MicrophoneLost if self.has_session() && self.microphone == Microphone::Live => {
                self.replace_microphone(false);
            }
            Input::DevicesChanged if self.has_session() && self.microphone == Microphone::Gone => {
                self.replace_microphone(true);
            }
            Input::SpeakerFailed => self.trouble(ErrorCode::SpeakerMissing.into()),
            Input::PlaybackBlocked if !self.playback_blocked => {
                self.trouble(ErrorCode::AudioBlocked.into());
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
                self.restart_if_wanted();
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
                self.leave(Some(CallError::with_detail(ErrorCode::Media, &detail)));
            }
            Input::HangUp => self.leave(None),
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
        matches!(self.phase, Phase::Connecting | Phase::Talking)
    }

    fn replace_microphone(&mut self, told: bool) {
        self.microphone = Microphone::Replacing { told };
        self.command(Command::ReplaceMicrophone);
    }

    /// No microphone in place of the lost one. The call goes on; the next device that is plugged in is tried.
    fn microphone_failed(&mut self, code: ErrorCode) {
        if let Microphone::Replacing { told } = self.microphone {
            self.microphone = Microphone::Gone;
            if !told {
                self.trouble(code.into());
            }
        }
    }

    fn is_creating(&self) -> bool {
        matches!(self.phase, Phase::Creating { .. })
    }

    fn create_answered(&mut self, answer: CreateAnswer) {
        if !self.is_creating() {
            return;
        }
        let next = answer.signed_url().and_then(|url| self.created(url));
        if let Err(error) = next {
            self.fail(error);
        }
    }

    /// The call exists; its session waits for the microphone.
    fn created(&mut self, signed_url: String) -> Result<(), CallError> {
        if !(signed_url.starts_with("wss://") || signed_url.starts_with("ws://")) {
            return Err(CallError::with_detail(
                ErrorCode::InvalidArgument,
                "the signed URL must begin with wss://",
            ));
        }
        self.link.url = signed_url;
        self.phase = Phase::Asking;
        self.update_status();
        self.command(Command::AcquireMicrophone);
        Ok(())
    }

    fn open_socket(&mut self, now_ms: u64) {
        self.link.opening(now_ms);
        self.command(Command::OpenSocket(self.link.url.clone()));
    }

    /// The first frame of a connection. The metadata is the call's, so it is said once: with a resume token beside it, it
    /// could be too large for a frame.
    fn hello(&self) -> String {
        match &self.link.resume {
            Some(token) => frames::hello(None, Some(token)),
            None => frames::hello(self.metadata.as_deref(), None),
        }
    }

    fn socket_opened(&mut self, now_ms: u64) {
        if !matches!(self.link.state, LinkState::Opening { .. }) {
            return;
        }
        self.link.greeting(now_ms);
        let hello = self.hello();
        self.command(Command::Send(hello));
    }

    fn socket_closed(&mut self, now_ms: u64, number: u16) {
        if let Some(code) = ErrorCode::from_close_number(number) {
            self.fail(code.into());
        } else if self.server_state == SessionState::Error {
            self.fail(ErrorCode::Server.into());
        } else if number == CloseCode::Normal.number() {
            self.end(None);
        } else if self.link.resume.is_some() {
            self.link.lost(now_ms);
            self.media.link_lost();
            self.update_status();
        } else {
            self.fail(ErrorCode::Network.into());
        }
    }

    fn media_changed(&mut self, now_ms: u64, state: MediaState) {
        if self.media.changed(now_ms, state) {
            if self.phase == Phase::Connecting {
                self.phase = Phase::Talking;
                self.event(Event::Connected);
            }
            self.update_status();
        }
        // A failure is acted on at once, not when the next timer fires.
        self.tick_media(now_ms);
    }

    fn mute(&mut self, muted: bool) {
        if muted == self.muted {
            return;
        }
        self.muted = muted;
        self.command(Command::MuteMicrophone(muted));
        // A link that is away is told by `welcomed`.
        if self.link.is_open() {
            self.command(Command::Send(frames::mute(muted)));
        }
    }

    fn tick(&mut self, now_ms: u64) {
        match self.phase {
            Phase::Creating { until_ms } if now_ms >= until_ms => {
                self.fail(ErrorCode::Network.into());
            }
            Phase::Creating { .. } | Phase::Asking | Phase::Ended => {}
            Phase::Connecting | Phase::Talking => {
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
            LinkTick::GiveUp => self.fail(ErrorCode::Network.into()),
        }
    }

    fn tick_media(&mut self, now_ms: u64) {
        if self.phase == Phase::Ended {
            return;
        }
        match self.media.tick(now_ms) {
            MediaTick::Nothing => {}
            MediaTick::Restart => {
                self.update_status();
                self.restart_if_wanted();
            }
            MediaTick::GiveUp => self.leave(Some(ErrorCode::Media.into())),
        }
    }

    fn restart_if_wanted(&mut self) {
        if self.media.take_restart(self.link.is_open()) {
            self.command(Command::RestartIce);
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
        let status = if self.phase != Phase::Talking {
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
    fn trouble(&mut self, error: CallError) {
        self.event(Event::CallError {
            error,
            fatal: false,
        });
    }

    fn playback_changed(&mut self, blocked: bool) {
        self.playback_blocked = blocked;
        self.event(Event::AudioBlockedChange(blocked));
    }

    fn fail(&mut self, error: CallError) {
        self.end(Some(error));
    }

    /// Ends the call by what the server knows, or cannot be told.
    fn end(&mut self, error: Option<CallError>) {
        self.stop();
        self.finish(error);
    }

    /// Ends the call from this side: the server is told, where there is a session to tell it in.
    fn leave(&mut self, error: Option<CallError>) {
        self.stop();
        let mut last = vec![frames::hang_up()];
        if !self.link.can_send() {
            last.insert(0, self.hello());
        }
        if matches!(self.link.state, LinkState::Waiting { .. }) {
            self.command(Command::OpenSocket(self.link.url.clone()));
        }
        // Without a session the URL is still unused, and the server ends the call when it expires.
        if !matches!(self.link.state, LinkState::Closed) {
            self.command(Command::SayGoodbye(last));
        }
        self.finish(error);
    }

    /// What was about to be done is dropped; what happened is told all the same.
    fn stop(&mut self) {
        self.outputs
            .retain(|output| matches!(output, Output::Event(_)));
        self.phase = Phase::Ended;
    }

    /// The only way out: everything is released, and the application is told.
    fn finish(&mut self, error: Option<CallError>) {
        self.command(Command::CloseEverything);
        let last = match &error {
            Some(_) => SessionState::Error,
            None => SessionState::Completed,
        };
        if let Some(error) = error {
            self.event(Event::CallError { error, fatal: true });
        }
        match self.status {
            Some(_) => self.set_status(last),
            // A call that was never created has no status to change.
            None => self.status = Some(last),
        }
        self.event(Event::HangUp);
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn command(&mut self, command: Command) {
        self.outputs.push_back(Output::Command(command));
    }
}
