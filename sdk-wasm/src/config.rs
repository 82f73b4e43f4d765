//! The two arguments of the constructor, checked once.

use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;

use crate::errors::invalid_argument;
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
    /// Reads the callbacks; a required one that is missing, or one that is no function, is an error.
    pub(crate) fn read(callbacks: &JsValue) -> Result<Self, JsValue> {
        if !callbacks.is_object() {
            return Err(invalid_argument("callbacks must be an object"));
        }
        let optional = |name: &str| {
            let value = js::get(callbacks, name);
            if js::is_absent(&value) {
                return Ok(None);
            }
            match value.dyn_into::<Function>() {
                Ok(function) => Ok(Some(function)),
                Err(_) => Err(not_a_function(name)),
            }
        };
        let required = |name: &str| optional(name)?.ok_or_else(|| not_a_function(name));
        Ok(Self {
            on_call_start: required("onCallStart")?,
            on_call_error: required("onCallError")?,
            on_hang_up: required("onHangUp")?,
            on_status_update: required("onStatusUpdate")?,
            on_call_starting: optional("onCallStarting")?,
            on_connected: optional("onConnected")?,
            on_user_info: optional("onUserInfo")?,
            on_rag_info: optional("onRagInfo")?,
            on_transcript: optional("onTranscript")?,
            on_agent_state_change: optional("onAgentStateChange")?,
            on_levels: optional("onLevels")?,
            on_devices_changed: optional("onDevicesChanged")?,
            on_stats: optional("onStats")?,
            on_error: optional("onError")?,
        })
    }
}

fn not_a_function(name: &str) -> JsValue {
    invalid_argument(&["callbacks.", name, " must be a function"].concat())
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
    /// Reads the configuration; `undefined` and `null` stand for the defaults.
    pub(crate) fn read(config: &JsValue) -> Result<Self, JsValue> {
        if !js::is_absent(config) && !config.is_object() {
            return Err(invalid_argument("config must be an object"));
        }
        let string = |name: &str| {
            let value = js::get(config, name);
            match value.as_string() {
                Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
                None if js::is_absent(&value) => Ok(None),
                None => Err(invalid_argument(
                    &["config.", name, " must be a string"].concat(),
                )),
            }
        };
        let audio = js::get(config, "audio");
        if !js::is_absent(&audio) && !audio.is_object() {
            return Err(invalid_argument("config.audio must be an object"));
        }
        let history_element = js::get(config, "historyElement");
        if !(js::is_absent(&history_element)
            || history_element.is_string()
            || history_element.is_object())
        {
            return Err(invalid_argument(
                "config.historyElement must be an element or its id",
            ));
        }
        let backend_url = match string("backendUrl")? {
            Some(url) => Some(url),
            None => string("BACKEND_URL")?,
        };
        Ok(Self {
            character_role: string("characterRole")?,
            person_role: string("personRole")?,
            microphone_id: string("microphoneId")?,
            speaker_id: string("speakerId")?,
            backend_url: backend_url.unwrap_or_else(page_origin),
            time_limit_seconds: time_limit_seconds(&js::get(config, "callTimeLimitSeconds"))?,
            character_params: character_params(&js::get(config, "characterParams"))?,
            processing: Processing {
                echo_cancellation: flag(&audio, "audio.", "echoCancellation")?,
                noise_suppression: flag(&audio, "audio.", "noiseSuppression")?,
                auto_gain_control: flag(&audio, "audio.", "autoGainControl")?,
            },
            ice: Ice::read(config)?,
            wake_lock: flag(config, "", "wakeLock")?,
            history_element,
        })
    }
}

impl Ice {
    fn read(config: &JsValue) -> Result<Self, JsValue> {
        let servers = js::get(config, "iceServers");
        if !js::is_absent(&servers) && !Array::is_array(&servers) {
            return Err(invalid_argument("config.iceServers must be an array"));
        }
        let policy = js::get(config, "iceTransportPolicy");
        let relay_only = policy == "relay";
        if !(relay_only || js::is_absent(&policy) || policy == "all") {
            return Err(invalid_argument(
                "config.iceTransportPolicy must be all or relay",
            ));
        }
        Ok(Self {
            servers: servers.dyn_into().ok(),
            relay_only,
        })
    }
}

/// A switch that is on unless it is turned off.
fn flag(options: &JsValue, path: &str, name: &str) -> Result<bool, JsValue> {
    let value = js::get(options, name);
    match value.as_bool() {
        Some(value) => Ok(value),
        None if js::is_absent(&value) => Ok(true),
        None => Err(invalid_argument(
            &["config.", path, name, " must be a boolean"].concat(),
        )),
    }
}

fn page_origin() -> String {
    let location = js::get(&js_sys::global(), "location");
    js::get(&location, "origin").as_string().unwrap_or_default()
}

fn time_limit_seconds(value: &JsValue) -> Result<u32, JsValue> {
    match value.as_f64() {
        Some(seconds) if (1.0..=f64::from(u32::MAX)).contains(&seconds) => Ok(seconds as u32),
        None if js::is_absent(value) => Ok(DEFAULT_TIME_LIMIT_SECONDS),
        _ => Err(invalid_argument(
            "config.callTimeLimitSeconds must be a positive number",
        )),
    }
}

fn character_params(value: &JsValue) -> Result<Option<String>, JsValue> {
    if js::is_absent(value) {
        return Ok(None);
    }
    js::object_json(value)
        .map(Some)
        .ok_or_else(|| invalid_argument("config.characterParams must be an object"))
}
