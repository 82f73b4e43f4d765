//! The WebSocket behind the signed URL.

use std::rc::Rc;

use colloquy_protocol::call::Input;
use colloquy_protocol::read_server_message;
use gloo_events::EventListener;
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{CloseEvent, MessageEvent, WebSocket};

use crate::driver::Reporter;
use crate::js::{self, Parsed, TimeoutPromise};

/// How long a socket that is still being opened is kept to send its last frames.
const CLOSE_TIMEOUT_MS: u32 = 3_000;

/// What is said of a socket that closed without a reason.
const LOST: Input = Input::SocketClosed { code: 1006 };

/// An open or opening socket, closed by `Drop`, after which it reports nothing.
pub(crate) struct Socket {
    /// `None` when the browser opened none.
    socket: Option<WebSocket>,
    /// Held while this is the call's socket.
    _current: Rc<()>,
    /// Without them nothing is reported.
    listeners: Option<[EventListener; 4]>,
}

impl Socket {
    /// Opens a socket; its events are reported.
    pub(crate) fn open(url: &str, reporter: Reporter) -> Self {
        let current = Rc::default();
        // Firefox throws for a URL that a policy blocks.
        let socket = WebSocket::new(url).ok();
        let listeners = socket.as_ref().map(|s| listen(s, &reporter, &current));
        if socket.is_none() {
            reporter.report_failure(LOST, &current);
        }
        Self {
            socket,
            _current: current,
            listeners,
        }
    }

    /// Sends a frame; one that cannot be sent is lost with the socket, whose end is reported on its own.
    pub(crate) fn send(&self, frame: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send_with_str(frame);
        }
    }

    /// Sends the last frames, at once or when the socket opens, and closes it. Nothing is reported any more.
    pub(crate) fn send_and_close(mut self, frames: Vec<String>) {
        let opening = self.socket.as_ref();
        let opening = opening.filter(|socket| socket.ready_state() == WebSocket::CONNECTING);
        let Some(socket) = opening else {
            return self.send_all(&frames);
        };
        let mut settled_by = None;
        let settled = Promise::new(&mut |resolve, _reject| {
            settled_by = Some(["open", "close"].map(|name| {
                let resolve = resolve.clone();
                js::listen(socket, name, move |_| js::settle(Some(&resolve)))
            }));
        });
        self.listeners = None;
        let timeout = TimeoutPromise::after(CLOSE_TIMEOUT_MS);
        js::spawn(async move {
            // This promise never rejects.
            let _ = JsFuture::from(js::race(&settled, timeout.promise())).await;
            drop(settled_by);
            self.send_all(&frames);
        });
    }

    fn send_all(&self, frames: &[String]) {
        frames.iter().for_each(|frame| self.send(frame));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.listeners = None;
        if let Some(socket) = &self.socket {
            let _ = socket.close_with_code(1000);
        }
    }
}

fn listen(socket: &WebSocket, reporter: &Reporter, current: &Rc<()>) -> [EventListener; 4] {
    let [opened, received, closed, failed] = std::array::from_fn(|_| reporter.clone());
    let current = Rc::downgrade(current);
    [
        js::listen(socket, "open", move |_| opened.report(Input::SocketOpened)),
        js::listen(socket, "message", move |event| {
            let event: &MessageEvent = event.unchecked_ref();
            if let Some(text) = event.data().as_string() {
                received.report(match Parsed::parse(&text) {
                    Some(frame) => Input::SocketMessage(read_server_message(&frame)),
                    None => Input::SocketGarbage,
                });
            }
        }),
        js::listen(socket, "close", move |event| {
            let event: &CloseEvent = event.unchecked_ref();
            closed.report(Input::SocketClosed { code: event.code() });
        }),
        // Chromium tells of a socket that a policy blocks by this event alone.
        js::listen(socket, "error", move |_| {
            if let Some(current) = current.upgrade() {
                failed.report_failure(LOST, &current);
            }
        }),
    ]
}
