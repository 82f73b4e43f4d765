//! The list of microphones and speakers.

use colloquy_protocol::{CallError, ErrorCode};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{MediaDeviceInfo, MediaDeviceKind};

use crate::errors::to_js;
use crate::js;
use crate::microphone::media_devices;

/// `{microphones, speakers}`, each a list of `{deviceId, label, isDefault}`.
pub(crate) async fn available() -> Result<JsValue, JsValue> {
    let unsupported = || to_js(&CallError::new(missing_devices_code()));
    let devices = media_devices().ok_or_else(unsupported)?;
    let infos: Array = JsFuture::from(devices.enumerate_devices()?)
        .await?
        .unchecked_into();
    Ok(js::object([
        ("microphones", list(&infos, MediaDeviceKind::Audioinput)),
        ("speakers", list(&infos, MediaDeviceKind::Audiooutput)),
    ]))
}

/// Why `navigator.mediaDevices` is missing.
pub(crate) fn missing_devices_code() -> ErrorCode {
    if js::get(&js_sys::global(), "isSecureContext") == false {
        ErrorCode::InsecureContext
    } else {
        ErrorCode::UnsupportedBrowser
    }
}

fn list(infos: &Array, kind: MediaDeviceKind) -> JsValue {
    let infos: Vec<MediaDeviceInfo> = infos
        .iter()
        .map(JsCast::unchecked_into)
        .filter(|info: &MediaDeviceInfo| info.kind() == kind)
        .collect();
    // Some browsers list the system's choice as `default`; the others list it first.
    let default = infos
        .iter()
        .position(|info| info.device_id() == "default")
        .unwrap_or(0);
    let list = Array::new();
    for (index, info) in infos.iter().enumerate() {
        list.push(&js::object([
            ("deviceId", info.device_id().into()),
            ("label", info.label().into()),
            ("isDefault", (index == default).into()),
        ]));
    }
    list.into()
}
