//! Failures as JavaScript sees them: an `Error` named `CallError` with a stable `code`.

use colloquy_protocol::{CallError, ErrorCode};
use js_sys::{Error, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::DomException;

/// The `Error` object for a failure of an operation, which ends no call.
pub(crate) fn to_js(error: &CallError) -> JsValue {
    of_call(error, false)
}

/// The `Error` object for a failure of a call; `fatal` says whether it ends the call.
pub(crate) fn of_call(error: &CallError, fatal: bool) -> JsValue {
    let object = Error::new(&error.message);
    object.set_name("CallError");
    // Setting a property of a fresh object cannot fail.
    let _ = Reflect::set(&object, &"code".into(), &error.code.as_str().into());
    let _ = Reflect::set(&object, &"fatal".into(), &fatal.into());
    object.into()
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
        _ if crate::js::get(rejection, "name") == "OverconstrainedError" => {
            ErrorCode::MicrophoneMissing
        }
        _ => ErrorCode::MicrophoneBusy,
    }
}

/// The message of whatever was thrown.
pub(crate) fn message_of(thrown: &JsValue) -> String {
    crate::js::get(thrown, "message")
        .as_string()
        .unwrap_or_default()
}
