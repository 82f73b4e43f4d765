//! Failures as JavaScript sees them: an `Error` named `CallError` with a stable `code`.

use colloquy_protocol::{CallError, ErrorCode};
use js_sys::{Error, Object};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_sys::DomException;

use crate::js;

/// The properties of a `CallError` beyond those of every `Error`.
#[derive(Serialize)]
struct Properties {
    code: ErrorCode,
    fatal: bool,
}

/// The `Error` object for a failure of an operation, which ends no call.
pub(crate) fn to_js(error: &CallError) -> JsValue {
    of_call(error, false)
}

/// The `Error` object for a failure of a call; `fatal` says whether it ends the call.
pub(crate) fn of_call(error: &CallError, fatal: bool) -> JsValue {
    let object = Error::new(&error.message);
    object.set_name("CallError");
    let code = error.code;
    let properties = js::to_value(&Properties { code, fatal });
    Object::assign(&object, properties.unchecked_ref()).into()
}

/// What a rejection of `getUserMedia` means.
pub(crate) fn microphone_code(rejection: &JsValue) -> ErrorCode {
    let name = rejection
        .dyn_ref::<DomException>()
        .map(DomException::name)
        .unwrap_or_default();
    match name.as_str() {
        "NotAllowedError" | "SecurityError" => ErrorCode::MicrophoneDenied,
        "NotFoundError" | "OverconstrainedError" => ErrorCode::MicrophoneMissing,
        "NotReadableError" | "AbortError" => ErrorCode::MicrophoneBusy,
        // Browsers that throw their own kinds (OverconstrainedError is no DOMException in some).
        _ if js::get(rejection, "name") == "OverconstrainedError" => ErrorCode::MicrophoneMissing,
        _ => ErrorCode::MicrophoneBusy,
    }
}

/// The message of whatever was thrown.
pub(crate) fn message_of(thrown: &JsValue) -> String {
    js::get(thrown, "message").as_string().unwrap_or_default()
}
