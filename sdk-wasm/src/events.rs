//! The application's callbacks, and which of them each of the state machine's events is for.

use colloquy_protocol::RagDocument;
use colloquy_protocol::call::{Event, TranscriptLine};
use js_sys::{Array, Object, WeakRef};
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
    pub(crate) fn tell(&self, event: Event) {
        let nothing = JsValue::UNDEFINED;
        let (name, argument) = match event {
            Event::CallStart => ("onCallStart", nothing),
            Event::CallStarting => ("onCallStarting", nothing),
            Event::Connected => ("onConnected", nothing),
            Event::StatusUpdate(status) => ("onStatusUpdate", status.as_str().into()),
            Event::UserInfo(info) => ("onUserInfo", info.into()),
            Event::RagInfo {
                documents,
                count,
                total_tokens,
            } => ("onRagInfo", rag_info(&documents, count, total_tokens)),
            Event::Transcript(line) => ("onTranscript", transcript_line(&line)),
            Event::AgentStateChange(state) => ("onAgentStateChange", state.as_str().into()),
            Event::AudioBlockedChange(blocked) => ("onAudioBlockedChange", blocked.into()),
            Event::CallError { error, fatal } => {
                let error = errors::of_call(&error, fatal);
                self.fire("onError", &error);
                ("onCallError", error)
            }
            Event::HangUp => ("onHangUp", nothing),
        };
        self.fire(name, &argument);
    }
}

fn rag_info(documents: &[RagDocument], count: u32, total_tokens: u32) -> JsValue {
    let list = Array::new();
    for document in documents {
        list.push(&js::object([
            ("title", document.title.as_str().into()),
            ("fusion_score", document.fusion_score.into()),
            ("token_count", document.token_count.into()),
        ]));
    }
    js::object([
        ("documents", list.into()),
        ("count", count.into()),
        ("total_tokens", total_tokens.into()),
    ])
}

fn transcript_line(line: &TranscriptLine) -> JsValue {
    js::object([
        ("id", line.id.as_str().into()),
        ("originator", line.originator.as_str().into()),
        ("role", line.role.as_str().into()),
        ("text", line.text.as_str().into()),
        ("final", line.is_final.into()),
        ("atMs", (line.at_ms as f64).into()),
    ])
}
