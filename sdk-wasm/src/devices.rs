//! The list of microphones and speakers.

use colloquy_protocol::{CallError, ErrorCode};
use js_sys::Array;
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{MediaDeviceInfo, MediaDeviceKind};

use crate::errors::to_js;
use crate::js;
use crate::microphone::media_devices;

/// The device of one kind that is chosen, and by which choice: a later one that a browser is done with sooner stays.
pub(crate) struct Chosen {
    /// `None` for the system's device.
    pub(crate) id: Option<String>,
    /// The number of the choice; 0 for the configuration's.
    pub(crate) choice: u32,
}

impl Chosen {
    pub(crate) fn configured(id: &Option<String>) -> Self {
        let id = id.clone();
        Self { id, choice: 0 }
    }

    pub(crate) fn is_newer_than(&self, choice: u32) -> bool {
        self.choice > choice
    }

    /// Takes a device that can be used, unless a later choice is already in use.
    pub(crate) fn choose(&mut self, choice: u32, id: String) {
        if !self.is_newer_than(choice) {
            *self = Self {
                id: Some(id),
                choice,
            };
        }
    }
}

/// What `getAvailableDevices` resolves with.
#[derive(Serialize)]
pub(crate) struct Devices {
    pub(crate) microphones: Vec<Device>,
    pub(crate) speakers: Vec<Device>,
}

/// A microphone or a speaker; id and label are empty before the visitor allowed the microphone once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Device {
    pub(crate) device_id: String,
    label: String,
    is_default: bool,
}

/// The devices that the browser lists.
pub(crate) async fn available() -> Result<Devices, JsValue> {
    let unsupported = || to_js(&CallError::new(missing_devices_code()));
    let devices = media_devices().ok_or_else(unsupported)?;
    let infos: Array = JsFuture::from(devices.enumerate_devices()?)
        .await?
        .unchecked_into();
    Ok(Devices {
        microphones: list(&infos, MediaDeviceKind::Audioinput),
        speakers: list(&infos, MediaDeviceKind::Audiooutput),
    })
}

/// Why `navigator.mediaDevices` is missing.
pub(crate) fn missing_devices_code() -> ErrorCode {
    if js::get(&js_sys::global(), "isSecureContext") == false {
        ErrorCode::InsecureContext
    } else {
        ErrorCode::UnsupportedBrowser
    }
}

fn list(infos: &Array, kind: MediaDeviceKind) -> Vec<Device> {
    let mut list: Vec<Device> = infos
        .iter()
        .map(JsCast::unchecked_into)
        .filter(|info: &MediaDeviceInfo| info.kind() == kind)
        .map(|info| Device {
            device_id: info.device_id(),
            label: info.label(),
            is_default: false,
        })
        .collect();
    // Some browsers list the system's choice as `default`; the others list it first.
    let default = list.iter().position(|device| device.device_id == "default");
    if let Some(device) = list.get_mut(default.unwrap_or(0)) {
        device.is_default = true;
    }
    list
}
