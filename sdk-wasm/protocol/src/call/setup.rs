//! How a call comes to its session and to its audio connection: the request that creates it, the WebSocket, the
//! microphone, the peer connection.

use std::rc::Rc;

use super::link::LinkState;
use super::media::Negotiation;
use super::{Call, Command, Phase, Start, frames};
use crate::{CallError, CreateAnswer, ErrorCode, MAX_FRAME_BYTES};

/// How long `POST /v2/calls` may take.
pub(super) const CREATE_TIMEOUT_MS: u64 = 20_000;

impl Call {
    pub(super) fn begin(&mut self, now_ms: u64, start: Start) -> Result<(), CallError> {
        if self.hello().len() > MAX_FRAME_BYTES {
            return Err(CallError::with_detail(
                ErrorCode::InvalidArgument,
                "customMetadata is larger than 64 KiB",
            ));
        }
        match start {
            Start::Client(new_call) => {
                let request = new_call.into_request()?;
                self.create_url.clone_from(&request.url);
                self.phase = Phase::Creating {
                    until_ms: now_ms + CREATE_TIMEOUT_MS,
                };
                self.command(Command::CreateCall(request));
                Ok(())
            }
            Start::Server { signed_url } => self.created(now_ms, signed_url),
        }
    }

    pub(super) fn is_creating(&self) -> bool {
        matches!(self.phase, Phase::Creating { .. })
    }

    pub(super) fn create_answered(&mut self, now_ms: u64, answer: CreateAnswer) {
        if !self.is_creating() {
            return;
        }
        let next = answer
            .signed_url(&self.create_url)
            .and_then(|url| self.created(now_ms, url));
        if let Err(error) = next {
            self.fail(error);
        }
    }

    /// The call exists. Its session is opened before the visitor is asked for the microphone: a URL that is spent or has
    /// expired shows there.
    fn created(&mut self, now_ms: u64, signed_url: String) -> Result<(), CallError> {
        if !is_socket_url(&signed_url) {
            return Err(CallError::with_detail(
                ErrorCode::InvalidArgument,
                "the signed URL must begin with wss:// or ws://",
            ));
        }
        self.call_id = call_id_of(&signed_url);
        self.link.url = signed_url;
        self.phase = Phase::Opening;
        self.update_status();
        self.open_socket(now_ms);
        Ok(())
    }

    pub(super) fn open_socket(&mut self, now_ms: u64) {
        self.link.opening(now_ms);
        self.command(Command::OpenSocket(self.link.target().to_owned()));
    }

    /// The first frame of a connection. What is the call's is said once: with a resume token beside it, the metadata could be too
    /// large for a frame.
    pub(super) fn hello(&self) -> String {
        match &self.link.resume {
            Some(token) => frames::resume(token),
            None => frames::hello(self.metadata.as_deref(), self.without_user_info),
        }
    }

    pub(super) fn socket_opened(&mut self, now_ms: u64) {
        if !matches!(self.link.state, LinkState::Opening { .. }) {
            return;
        }
        self.link.greeting(now_ms);
        let hello = self.hello();
        self.command(Command::Send(hello));
    }

    /// Builds the audio connection when both are there: the microphone and the session.
    pub(super) fn begin_media(&mut self, now_ms: u64) {
        if self.phase == Phase::Connecting
            && self.media.negotiation == Negotiation::Absent
            && self.link.is_open()
        {
            self.media.peer_created(now_ms);
            self.create_peer();
        }
    }

    pub(super) fn create_peer(&mut self) {
        self.command(Command::CreatePeer(Rc::clone(&self.ice_servers)));
    }

    /// The request that creates the call got no answer.
    pub(super) fn create_failed(&mut self) {
        let detail = String::from_iter(["POST ", &self.create_url]);
        self.fail(CallError::with_detail(ErrorCode::Network, &detail));
    }

    /// The session's WebSocket did not open, or did not come back. Its signature is left out.
    pub(super) fn socket_failed(&mut self) {
        let url = &self.link.url;
        let end = find(url, "?").unwrap_or(url.len());
        let message = String::from_iter([
            "No WebSocket opens at ",
            url.get(..end).unwrap_or_default(),
            ". Check the network, and that each proxy in front of the backend passes the headers Upgrade and Connection on.",
        ]);
        self.fail(CallError {
            code: ErrorCode::Network,
            message,
        });
    }

    /// A policy of the page blocked a connection: this call's, or another one of the page, which is none of its business.
    pub(super) fn blocked(&mut self, directive: &str, blocked: &str) {
        let target = match (self.phase, &self.link.state) {
            (Phase::Creating { .. }, _) => &self.create_url,
            // Where the node itself is out of reach, the address of all nodes is asked again.
            (_, LinkState::Opening { .. }) if !self.link.is_redirected() => &self.link.url,
            _ => return,
        };
        let origin = origin_of(target);
        // Some browsers tell no more of a WebSocket's URL than its scheme.
        let is_ours = origin.eq_ignore_ascii_case(origin_of(blocked))
            || find(origin, ":").and_then(|end| origin.get(..end)) == Some(blocked);
        if is_ours {
            let message = String::from_iter([
                "The page's Content-Security-Policy blocks the backend. Add ",
                origin,
                " to ",
                directive,
                ".",
            ]);
            self.fail(CallError {
                code: ErrorCode::Network,
                message,
            });
        }
    }
}

/// Whether a URL is one of a WebSocket.
pub(super) fn is_socket_url(url: &str) -> bool {
    url.starts_with("wss://") || url.starts_with("ws://")
}

/// The id in a signed URL, `/v2/calls/<id>`, as the REST interface has it.
pub(super) fn call_id_of(signed_url: &str) -> Option<String> {
    const CALLS: &str = "/v2/calls/";
    let begin = find(signed_url, CALLS)?;
    let end = end_of_segment(signed_url, begin + CALLS.len());
    let found = signed_url.get(begin..end)?;
    (found.len() > CALLS.len()).then(|| found.to_owned())
}

/// Scheme, host and port of a URL, without the port that its scheme has anyway.
fn origin_of(url: &str) -> &str {
    let authority = find(url, "://").map_or(0, |at| at + 3);
    let origin = url.get(..end_of_segment(url, authority)).unwrap_or(url);
    let is_secure = url.starts_with("wss:") || url.starts_with("https:");
    let default_port = if is_secure { ":443" } else { ":80" };
    origin.strip_suffix(default_port).unwrap_or(origin)
}

/// Where a text begins in another. The searches of the standard library are larger than this whole module.
fn find(text: &str, wanted: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(wanted.len());
    windows.position(|window| window == wanted.as_bytes())
}

/// Where the part of a URL ends that begins at `from`.
fn end_of_segment(url: &str, from: usize) -> usize {
    let rest = url.bytes().enumerate().skip(from);
    let mut ends = rest.filter(|(_, byte)| matches!(byte, b'/' | b'?' | b'#'));
    ends.next().map_or(url.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_call_is_in_its_signed_url() {
        let id = |url| call_id_of(url);
        let found = Some("/v2/calls/0197".to_owned());
        assert_eq!(id("wss://h/v2/calls/0197/session?expires=1&sig=2"), found);
        assert_eq!(id("wss://h:8443/voice/v2/calls/0197/session"), found);
        assert_eq!(id("wss://h/v2/calls/"), None);
        assert_eq!(id("wss://h/other"), None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, origin) in [
            ("wss://h/v2/calls/1/session?x=1", "wss://h"),
            ("wss://h:443/v2", "wss://h"),
            ("wss://h:8443?x", "wss://h:8443"),
            ("https://h", "https://h"),
            ("http://[::1]:80/", "http://[::1]"),
            ("wss", "wss"),
            ("", ""),
        ] {
            assert_eq!(origin_of(url), origin);
        }
    }
}
