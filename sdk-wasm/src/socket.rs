//! The WebSocket behind the signed URL.

use std::rc::Rc;

use colloquy_protocol::call::Input;
use colloquy_protocol::read_server_message;
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
    _handlers: Option<Handlers>,
}

struct Handlers {
    _on_open: Closure<dyn FnMut()>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
    _on_error: Closure<dyn FnMut()>,
}

impl Socket {
    /// Opens a socket; its events are reported.
    pub(crate) fn open(url: &str, reporter: Reporter) -> Self {
        let current = Rc::default();
        // Firefox throws for a URL that a policy blocks.
        let socket = WebSocket::new(url).ok();
        let handlers = socket.as_ref().map(|s| listen(s, &reporter, &current));
        if socket.is_none() {
            reporter.report_failure(LOST, &current);
        }
        Self {
            socket,
            _current: current,
            _handlers: handlers,
        }
    }

    /// Sends a frame; one that cannot be sent is lost with the socket, whose end is reported on its own.
    pub(crate) fn send(&self, frame: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send_with_str(frame);
        }
    }

    /// Sends the last frames, at once or when the socket opens, and closes it. Nothing is reported any more.
    pub(crate) fn send_and_close(self, frames: Vec<String>) {
        let opening = self.socket.as_ref();
        let opening = opening.filter(|socket| socket.ready_state() == WebSocket::CONNECTING);
        let Some(socket) = opening else {
            return self.send_all(&frames);
        };
        silence(socket);
        let settled = Promise::new(&mut |resolve, _reject| {
            socket.set_onopen(Some(&resolve));
            socket.set_onclose(Some(&resolve));
        });
        let timeout = TimeoutPromise::after(CLOSE_TIMEOUT_MS);
        js::spawn(async move {
            // This promise never rejects.
            let _ = JsFuture::from(js::race(&settled, timeout.promise())).await;
            self.send_all(&frames);
        });
    }

    fn send_all(&self, frames: &[String]) {
        frames.iter().for_each(|frame| self.send(frame));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            silence(socket);
            let _ = socket.close_with_code(1000);
        }
    }
}

fn listen(socket: &WebSocket, reporter: &Reporter, current: &Rc<()>) -> Handlers {
    let opened = reporter.clone();
    let on_open = Closure::<dyn FnMut()>::new(move || opened.report(Input::SocketOpened));
    let received = reporter.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(text) = event.data().as_string() {
            received.report(match Parsed::parse(&text) {
                Some(frame) => Input::SocketMessage(read_server_message(&frame)),
                None => Input::SocketGarbage,
            });
        }
    });
    let closed = reporter.clone();
    let on_close = Closure::<dyn FnMut(CloseEvent)>::new(move |event: CloseEvent| {
        closed.report(Input::SocketClosed { code: event.code() });
    });
    // Chromium tells of a socket that a policy blocks by this event alone.
    let failed = reporter.clone();
    let current = Rc::downgrade(current);
    let on_error = Closure::<dyn FnMut()>::new(move || {
        if let Some(current) = current.upgrade() {
            failed.report_failure(LOST, &current);
        }
    });
    socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
    socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
    socket.set_onerror(Some(on_error.as_ref().unchecked_ref()));
    Handlers {
        _on_open: on_open,
        _on_message: on_message,
        _on_close: on_close,
        _on_error: on_error,
    }
}

fn silence(socket: &WebSocket) {
    socket.set_onopen(None);
    socket.set_onmessage(None);
    socket.set_onclose(None);
    socket.set_onerror(None);
}
