//! The configuration, which the loader has checked, as the crate uses it.

use js_sys::{Array, Object, WeakRef};
use wasm_bindgen::prelude::*;

use crate::js;
use crate::microphone::Processing;

const DEFAULT_TIME_LIMIT_SECONDS: u32 = 600;

/// The configuration, with the defaults filled in where they do not depend on the call.
pub(crate) struct Config {
    pub(crate) character_role: Option<String>,
    pub(crate) person_role: Option<String>,
    pub(crate) microphone_id: Option<String>,
    pub(crate) speaker_id: Option<String>,
    pub(crate) backend_url: String,
    pub(crate) time_limit_seconds: u32,
    pub(crate) character_params: Option<String>,
    /// What the browser does with the microphone's sound.
    pub(crate) processing: Processing,
    pub(crate) ice: Ice,
    /// Whether the screen stays on during a call.
    pub(crate) wake_lock: bool,
    /// The page's own object, which the manager holds: held here, its element could hold the manager in turn.
    object: Option<WeakRef>,
}

/// How the peer connection looks for a path.
pub(crate) struct Ice {
    /// An array of `RTCIceServer`, which takes the place of the backend's.
    pub(crate) servers: Option<Array>,
    /// Whether only TURN servers may carry the media.
    pub(crate) relay_only: bool,
}

impl Config {
    /// Reads the configuration. What is absent has its default, and so has what cannot be used: the loader, which checks
    /// everything when a manager is made, lets nothing of that kind through.
    pub(crate) fn read(config: &JsValue) -> Self {
        let string = |name: &str| js::get(config, name).as_string().filter(|s| !s.is_empty());
        let audio = js::get(config, "audio");
        let time_limit_seconds = js::get(config, "callTimeLimitSeconds").as_f64();
        Self {
            character_role: string("characterRole"),
            person_role: string("personRole"),
            microphone_id: string("microphoneId"),
            speaker_id: string("speakerId"),
            backend_url: string("backendUrl")
                .or_else(|| string("BACKEND_URL"))
                .unwrap_or_else(page_origin),
            time_limit_seconds: time_limit_seconds.map_or(DEFAULT_TIME_LIMIT_SECONDS, |s| s as u32),
            character_params: js::object_json(&js::get(config, "characterParams")),
            processing: Processing {
                echo_cancellation: flag(&audio, "echoCancellation"),
                noise_suppression: flag(&audio, "noiseSuppression"),
                auto_gain_control: flag(&audio, "autoGainControl"),
            },
            ice: Ice {
                servers: js::get(config, "iceServers").dyn_into().ok(),
                relay_only: js::get(config, "iceTransportPolicy") == "relay",
            },
            wake_lock: flag(config, "wakeLock"),
            object: config.dyn_ref::<Object>().map(WeakRef::new),
        }
    }

    /// The element that shows the conversation, or its id; `undefined` without one.
    pub(crate) fn history_element(&self) -> JsValue {
        let object = self.object.as_ref().and_then(WeakRef::deref);
        js::get(&object.into(), "historyElement")
    }
}

/// A switch that is on unless it is turned off.
fn flag(options: &JsValue, name: &str) -> bool {
    js::get(options, name) != false
}

fn page_origin() -> String {
    let location = js::get(&js_sys::global(), "location");
    js::get(&location, "origin").as_string().unwrap_or_default()
}
