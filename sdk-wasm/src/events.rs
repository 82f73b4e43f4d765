//! From the state machine's events to the application's callbacks.

use colloquy_protocol::RagDocument;
use colloquy_protocol::call::{Event, TranscriptLine};
use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;

use crate::config::Callbacks;
use crate::{errors, js};

/// Tells the application of an event, where it listens.
pub(crate) fn tell(callbacks: &Callbacks, event: Event) {
    let nothing = JsValue::UNDEFINED;
    let (function, argument) = match event {
        Event::CallStart => (Some(&callbacks.on_call_start), nothing),
        Event::CallStarting => (callbacks.on_call_starting.as_ref(), nothing),
        Event::Connected => (callbacks.on_connected.as_ref(), nothing),
        Event::StatusUpdate(status) => (Some(&callbacks.on_status_update), status.as_str().into()),
        Event::UserInfo(info) => (callbacks.on_user_info.as_ref(), info.into()),
        Event::RagInfo {
            documents,
            count,
            total_tokens,
        } => (
            callbacks.on_rag_info.as_ref(),
            rag_info(&documents, count, total_tokens),
        ),
        Event::Transcript(line) => (callbacks.on_transcript.as_ref(), transcript_line(&line)),
        Event::AgentStateChange(state) => (
            callbacks.on_agent_state_change.as_ref(),
            state.as_str().into(),
        ),
        Event::CallError { error, fatal } => {
            let error = errors::of_call(&error, fatal);
            if let Some(function) = &callbacks.on_error {
                fire(function, &error);
            }
            (Some(&callbacks.on_call_error), error)
        }
        Event::HangUp => (Some(&callbacks.on_hang_up), nothing),
    };
    if let Some(function) = function {
        fire(function, &argument);
    }
}

/// Calls a callback. What it throws is shown in the console and does not touch the call.
pub(crate) fn fire(function: &Function, argument: &JsValue) {
    let result = if argument.is_undefined() {
        function.call0(&JsValue::UNDEFINED)
    } else {
        function.call1(&JsValue::UNDEFINED, argument)
    };
    if let Err(thrown) = result {
        js::console_error("colloquy: a callback threw", &thrown);
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
