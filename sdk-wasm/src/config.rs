//! The two arguments of the constructor, which the loader has checked, as the crate uses them.

use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;

use crate::js;
use crate::microphone::Processing;

const DEFAULT_TIME_LIMIT_SECONDS: u32 = 600;

/// The application's functions; an absent one is skipped.
pub(crate) struct Callbacks {
    pub(crate) on_call_start: Function,
    pub(crate) on_call_error: Function,
    pub(crate) on_hang_up: Function,
    pub(crate) on_status_update: Function,
    pub(crate) on_call_starting: Option<Function>,
    pub(crate) on_connected: Option<Function>,
    pub(crate) on_user_info: Option<Function>,
    pub(crate) on_rag_info: Option<Function>,
    pub(crate) on_transcript: Option<Function>,
    pub(crate) on_agent_state_change: Option<Function>,
    pub(crate) on_levels: Option<Function>,
    pub(crate) on_devices_changed: Option<Function>,
    pub(crate) on_stats: Option<Function>,
    pub(crate) on_error: Option<Function>,
}

impl Callbacks {
    /// Reads the callbacks; the loader has seen that the required ones are there.
    pub(crate) fn read(callbacks: &JsValue) -> Self {
        let optional = |name: &str| js::get_function(callbacks, name);
        let required = |name: &str| js::get(callbacks, name).unchecked_into();
        Self {
            on_call_start: required("onCallStart"),
            on_call_error: required("onCallError"),
            on_hang_up: required("onHangUp"),
            on_status_update: required("onStatusUpdate"),
            on_call_starting: optional("onCallStarting"),
            on_connected: optional("onConnected"),
            on_user_info: optional("onUserInfo"),
            on_rag_info: optional("onRagInfo"),
            on_transcript: optional("onTranscript"),
            on_agent_state_change: optional("onAgentStateChange"),
            on_levels: optional("onLevels"),
            on_devices_changed: optional("onDevicesChanged"),
            on_stats: optional("onStats"),
            on_error: optional("onError"),
        }
    }
}

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
    /// The element that shows the conversation, or its id; `undefined` without one.
    pub(crate) history_element: JsValue,
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
            history_element: js::get(config, "historyElement"),
        }
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
