//! The WebSocket behind the signed URL.

use colloquy_protocol::call::Input;
use colloquy_protocol::read_server_message;
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{CloseEvent, MessageEvent, WebSocket};

use crate::driver::Reporter;
use crate::js::{self, Alarm, Parsed};

/// How long a socket that is still being opened is kept to say goodbye.
const GOODBYE_TIMEOUT_MS: f64 = 3_000.0;

/// An open or opening socket, closed by `Drop`, after which it reports nothing.
pub(crate) struct Socket {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut()>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
}

impl Socket {
    /// Opens a socket; its events are reported.
    pub(crate) fn open(url: &str, reporter: &Reporter) -> Result<Self, JsValue> {
        let socket = WebSocket::new(url)?;
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
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Ok(Self {
            socket,
            _on_open: on_open,
            _on_message: on_message,
            _on_close: on_close,
        })
    }

    /// Sends a frame; one that cannot be sent is lost with the socket, whose end is reported on its own.
    pub(crate) fn send(&self, frame: &str) {
        let _ = self.socket.send_with_str(frame);
    }

    /// Sends the last frames, at once or when the socket opens, and closes it. Nothing is reported any more.
    pub(crate) fn say_goodbye(self, frames: Vec<String>) {
        if self.socket.ready_state() != WebSocket::CONNECTING {
            return self.send_all(&frames);
        }
        self.socket.set_onmessage(None);
        let settled = Promise::new(&mut |resolve, _reject| {
            self.socket.set_onopen(Some(&resolve));
            self.socket.set_onclose(Some(&resolve));
        });
        let patience = Alarm::after(GOODBYE_TIMEOUT_MS);
        spawn_local(async move {
            // It only resolves.
            let _ = JsFuture::from(js::race(&settled, patience.promise())).await;
            self.send_all(&frames);
        });
    }

    fn send_all(&self, frames: &[String]) {
        frames.iter().for_each(|frame| self.send(frame));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close_with_code(1000);
    }
}
