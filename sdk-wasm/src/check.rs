//! The check before a call: permission, devices, and whether the backend and its media port can be reached.
//!
//! For the last it makes the same kind of connection as a call does, without a call: the backend answers an offer, and
//! both sides look for a path until one is found.

use colloquy_protocol::{CheckAnswer, ErrorCode, check_request};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, RtcPeerConnection, RtcPeerConnectionState, RtcRtpTransceiverDirection,
    RtcRtpTransceiverInit, RtcSdpType, RtcSessionDescriptionInit,
};

use crate::config::Config;
use crate::js::{self, Timeout};
use crate::microphone::media_devices;
use crate::{create, devices, peer, stats};

/// How long the backend may take to answer in full.
const ANSWER_TIMEOUT_MS: f64 = 10_000.0;

/// How long the search for a path may take.
const PATH_TIMEOUT_MS: u64 = 10_000;

/// How long after the connection the browser may take to name its path.
const NAMED_WITHIN_MS: u64 = 1_000;

/// How often a state is looked at.
const LOOK_EVERY_MS: f64 = 10.0;

/// What the check found.
pub(crate) async fn run(config: &Config) -> JsValue {
    let permission = permission().await;
    let (microphones, speakers) = count_devices().await;
    let (backend, media) = paths(config).await;
    // In the order in which a call would meet them.
    let code = if media_devices().is_none() {
        Some(devices::missing_devices_code())
    } else if permission == "denied" {
        Some(ErrorCode::MicrophoneDenied)
    } else if microphones == 0 {
        Some(ErrorCode::MicrophoneMissing)
    } else {
        backend.as_ref().err().or(media.as_ref().err()).copied()
    };
    let name = code.map_or(JsValue::NULL, |code| code.as_str().into());
    let part = |found: Found| found.unwrap_or_else(failed);
    js::object([
        ("ok", code.is_none().into()),
        ("code", name),
        ("permission", permission.into()),
        ("microphones", microphones.into()),
        ("speakers", speakers.into()),
        ("backend", part(backend)),
        ("media", part(media)),
    ])
}

/// What is known of a part that works, or why it does not.
type Found = Result<JsValue, ErrorCode>;

/// `granted`, `denied` or `prompt`; `unknown` in browsers that do not tell, `unsupported` where there are no devices.
async fn permission() -> String {
    if media_devices().is_none() {
        return "unsupported".to_owned();
    }
    let permissions = js::get(&js::navigator(), "permissions");
    let query = Array::of1(&js::object([("name", "microphone".into())]));
    match js::invoke_async(&permissions, "query", &query).await {
        Ok(status) => js::get(&status, "state").as_string(),
        Err(_) => None,
    }
    .unwrap_or_else(|| "unknown".to_owned())
}

async fn count_devices() -> (u32, u32) {
    let Ok(list) = devices::available().await else {
        return (0, 0);
    };
    let count = |kind: &str| js::get(&list, kind).unchecked_into::<Array>().length();
    (count("microphones"), count("speakers"))
}

fn failed(code: ErrorCode) -> JsValue {
    js::object([
        ("ok", false.into()),
        ("code", code.as_str().into()),
        ("message", code.advice().into()),
    ])
}

/// A connection that is closed with the check.
struct Probe(RtcPeerConnection);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn paths(config: &Config) -> (Found, Found) {
    let Ok((probe, offer)) = offer(config).await else {
        let unsupported = ErrorCode::UnsupportedBrowser;
        return (Err(unsupported), Err(unsupported));
    };
    let (backend, answer) = match ask(config, &offer).await {
        Ok((ms, answer)) => (Ok(reached(ms)), answer),
        // Without an answer nothing is known about the media port.
        Err(code) => return (Err(code), Err(code)),
    };
    let begun = js::now_ms();
    if !connect(&probe.0, &answer).await {
        return (backend, Err(ErrorCode::Media));
    }
    let ms = js::now_ms() - begun;
    let (candidate_type, protocol) = found_path(&probe.0).await;
    let media = js::object([
        ("ok", true.into()),
        ("ms", (ms as f64).into()),
        ("candidateType", candidate_type),
        ("protocol", protocol),
    ]);
    (backend, Ok(media))
}

/// How the path runs. Chromium tells a moment after the connection is up.
async fn found_path(connection: &RtcPeerConnection) -> (JsValue, JsValue) {
    let deadline_ms = js::now_ms() + NAMED_WITHIN_MS;
    loop {
        let entries = stats::entries(connection.get_stats()).await;
        let path = stats::shown_path(&entries.unwrap_or_default());
        if !path.0.is_null() || js::now_ms() >= deadline_ms {
            return path;
        }
        // It only resolves.
        let _ = JsFuture::from(js::sleep(LOOK_EVERY_MS)).await;
    }
}

fn reached(ms: u64) -> JsValue {
    js::object([("ok", true.into()), ("ms", (ms as f64).into())])
}

async fn offer(config: &Config) -> Result<(Probe, String), JsValue> {
    let probe = Probe(peer::connection(&config.ice, &[])?);
    let init = RtcRtpTransceiverInit::new();
    init.set_direction(RtcRtpTransceiverDirection::Recvonly);
    probe.0.add_transceiver_with_str_and_init("audio", &init);
    let mut sdp = peer::make_offer(&probe.0, false).await?;
    if config.ice.relay_only {
        // The backend must know the relay's address, since the relay lets nobody else in.
        until(&probe.0, PATH_TIMEOUT_MS, |c| {
            js::get(c, "iceGatheringState") == "complete"
        })
        .await;
        let description = js::get(&probe.0, "localDescription");
        sdp = js::get(&description, "sdp").as_string().unwrap_or(sdp);
    }
    Ok((probe, sdp))
}

/// The backend's answer and how long it took.
async fn ask(config: &Config, offer: &str) -> Result<(u64, String), ErrorCode> {
    let begun = js::now_ms();
    let (url, body) = check_request(&config.backend_url, offer);
    let abort = AbortController::new().map_err(|_| ErrorCode::UnsupportedBrowser)?;
    let give_up = js::get_function(&abort, "abort").map(|give_up| give_up.bind0(&abort));
    let _patience = give_up.map(|give_up| Timeout::new(&give_up, ANSWER_TIMEOUT_MS));
    let sent = create::post(&url, None, &body, Some(&abort));
    let (status, body) = create::read(sent).await.map_err(|_| ErrorCode::Network)?;
    let answer = CheckAnswer::read(status, body.as_ref()).sdp()?;
    Ok((js::now_ms() - begun, answer))
}

/// Whether a path comes about.
async fn connect(connection: &RtcPeerConnection, answer: &str) -> bool {
    let description = RtcSessionDescriptionInit::new(RtcSdpType::Answer);
    description.set_sdp(answer);
    if JsFuture::from(connection.set_remote_description(&description))
        .await
        .is_err()
    {
        return false;
    }
    until(connection, PATH_TIMEOUT_MS, |c| {
        !matches!(
            c.connection_state(),
            RtcPeerConnectionState::New | RtcPeerConnectionState::Connecting
        )
    })
    .await;
    connection.connection_state() == RtcPeerConnectionState::Connected
}

/// Waits for a state, or for as long as it may take.
async fn until(
    connection: &RtcPeerConnection,
    timeout_ms: u64,
    reached: impl Fn(&RtcPeerConnection) -> bool,
) {
    let deadline_ms = js::now_ms() + timeout_ms;
    while !reached(connection) && js::now_ms() < deadline_ms {
        // It only resolves.
        let _ = JsFuture::from(js::sleep(LOOK_EVERY_MS)).await;
    }
}
