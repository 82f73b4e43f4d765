//! The application's callbacks, and which of them each of the state machine's events is for.

use colloquy_protocol::call::Event;
use js_sys::{Object, WeakRef};
use wasm_bindgen::prelude::*;

use crate::{errors, js};

/// The object with the application's callbacks.
///
/// The manager holds it, and a call while it runs. Held here, it would hold the manager, which its functions use, and
/// neither could ever be collected.
pub(crate) struct Callbacks(WeakRef);

impl Callbacks {
    pub(crate) fn new(object: &Object) -> Self {
        Self(WeakRef::new(object))
    }

    /// The object, for a call to hold; `None` when the manager is gone.
    pub(crate) fn object(&self) -> Option<Object> {
        self.0.deref()
    }

    /// Whether the application listens.
    pub(crate) fn has(&self, name: &str) -> bool {
        let object = self.object();
        object.is_some_and(|object| js::get_function(&object, name).is_some())
    }

    /// Calls a callback as a method of its object, where the application listens. What it throws is shown in the console
    /// and does not touch the call. `undefined` is no argument.
    pub(crate) fn fire(&self, name: &str, argument: &JsValue) {
        let Some(object) = self.object() else {
            return;
        };
        let Some(function) = js::get_function(&object, name) else {
            return;
        };
        let result = if argument.is_undefined() {
            function.call0(&object)
        } else {
            function.call1(&object, argument)
        };
        if let Err(thrown) = result {
            js::console_error("colloquy: a callback threw", &thrown);
        }
    }

    /// Tells the application of an event.
    pub(crate) fn dispatch(&self, event: &Event) {
        let name = match event {
            Event::CallStarting => return self.fire("onCallStarting", &JsValue::UNDEFINED),
            Event::Connected => return self.fire("onConnected", &JsValue::UNDEFINED),
            Event::CallError { error, fatal } => {
                let error = errors::of_call(error, *fatal);
                self.fire("onError", &error);
                return self.fire("onCallError", &error);
            }
            Event::CallStart { .. } => "onCallStart",
            Event::StatusUpdate(_) => "onStatusUpdate",
            Event::UserInfo(_) => "onUserInfo",
            Event::RagInfo { .. } => "onRagInfo",
            Event::Transcript(_) => "onTranscript",
            Event::AgentStateChange(_) => "onAgentStateChange",
            Event::AudioBlockedChange(_) => "onAudioBlockedChange",
            Event::HangUp(_) => "onHangUp",
        };
        self.fire(name, &js::to_value(event));
    }
}
