//! The check before a call: permission, devices, and whether the backend and its media port can be reached.
//!
//! For the last it makes the same kinds of connection as a call does, without a call: the backend answers an offer, and
//! both sides look for a path until one is found; and a WebSocket is opened.

use std::cell::Cell;
use std::rc::Rc;

use colloquy_protocol::{
    CallError, CheckAnswer, ErrorCode, check_request, check_socket_url, no_socket, path,
};
use gloo_events::EventListener;
use gloo_timers::callback::Timeout;
use js_sys::{Array, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, RtcPeerConnection, RtcPeerConnectionState, RtcRtpTransceiverDirection,
    RtcRtpTransceiverInit, RtcSdpType, RtcSessionDescriptionInit, WebSocket,
};

use crate::config::Config;
use crate::js::{self, TimeoutPromise};
use crate::microphone::media_devices;
use crate::{create, devices, peer, stats};

/// How long the backend may take to answer in full.
const ANSWER_TIMEOUT_MS: u32 = 10_000;

/// How long the search for a path may take.
const PATH_TIMEOUT_MS: u64 = 10_000;

/// How long after the connection the browser may take to report its path in the statistics.
const PATH_STATS_TIMEOUT_MS: u64 = 1_000;

/// How often a state is polled.
const POLL_INTERVAL_MS: u32 = 10;

/// What `preCallCheck` resolves with.
#[derive(Serialize)]
pub(crate) struct CheckResult {
    ok: bool,
    /// What a call would fail with.
    code: Option<ErrorCode>,
    permission: String,
    microphones: u32,
    speakers: u32,
    backend: Part,
    media: Part,
}

/// The backend or its media port: the findings when it works, the error otherwise.
#[derive(Serialize)]
#[serde(untagged)]
enum Part {
    Backend {
        ok: bool,
        ms: u32,
    },
    #[serde(rename_all = "camelCase")]
    Media {
        ok: bool,
        ms: u32,
        candidate_type: Option<String>,
        protocol: Option<String>,
    },
    Failed {
        ok: bool,
        code: ErrorCode,
        message: String,
    },
}

impl From<CallError> for Part {
    fn from(CallError { code, message }: CallError) -> Self {
        Self::Failed {
            ok: false,
            code,
            message,
        }
    }
}

/// Checks everything that a call needs.
pub(crate) async fn run(config: &Config) -> CheckResult {
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
        let failure = backend.as_ref().err().or(media.as_ref().err());
        failure.map(|error| error.code)
    };
    CheckResult {
        ok: code.is_none(),
        code,
        permission,
        microphones,
        speakers,
        backend: backend.unwrap_or_else(Part::from),
        media: media.unwrap_or_else(Part::from),
    }
}

/// The findings of a part that works, or its failure.
type Outcome = Result<Part, CallError>;

/// Which permission the browser is asked about.
#[derive(Serialize)]
struct PermissionDescriptor {
    name: &'static str,
}

/// `granted`, `denied` or `prompt`; `unknown` in browsers that do not tell, `unsupported` where there are no devices.
async fn permission() -> String {
    if media_devices().is_none() {
        return "unsupported".to_owned();
    }
    let permissions = js::get(&js::navigator(), "permissions");
    let query = Array::of1(&js::to_value(&PermissionDescriptor { name: "microphone" }));
    match js::invoke_async(&permissions, "query", &query).await {
        Ok(status) => js::get(&status, "state").as_string(),
        Err(_) => None,
    }
    .unwrap_or_else(|| "unknown".to_owned())
}

async fn count_devices() -> (u32, u32) {
    match devices::available().await {
        Ok(list) => (list.microphones.len() as u32, list.speakers.len() as u32),
        Err(_) => (0, 0),
    }
}

/// A connection that is closed with the check.
struct Probe(RtcPeerConnection);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn paths(config: &Config) -> (Outcome, Outcome) {
    let Ok((probe, offer)) = offer(config).await else {
        let unsupported = CallError::new(ErrorCode::UnsupportedBrowser);
        return (Err(unsupported.clone()), Err(unsupported));
    };
    let (ms, answer) = match ask(config, &offer).await {
        Ok(answered) => answered,
        // Without an answer nothing is known about the media port.
        Err(error) => return (Err(error.clone()), Err(error)),
    };
    let url = check_socket_url(&config.backend_url);
    let socket = SocketProbe::open(&url);
    let media = media(&probe, &answer).await;
    let backend = match socket.is_open().await {
        true => Ok(Part::Backend { ok: true, ms }),
        false => Err(no_socket(&url)),
    };
    (backend, media)
}

/// Looks for a path to the media port.
async fn media(probe: &Probe, answer: &str) -> Outcome {
    let begun = js::now_ms();
    if !connect(&probe.0, answer).await {
        return Err(ErrorCode::Media.into());
    }
    let ms = since(begun);
    let (candidate_type, protocol) = found_path(&probe.0).await;
    Ok(Part::Media {
        ok: true,
        ms,
        candidate_type,
        protocol,
    })
}

/// A WebSocket that is being opened, and is closed with the check.
struct SocketProbe {
    /// `None` when the browser opened none: Firefox throws for a URL that a policy blocks.
    socket: Option<WebSocket>,
    /// Settled when it is open, or will not be.
    settled: Promise,
    /// Whether it has been open. The server closes it at once.
    opened: Rc<Cell<bool>>,
    _listeners: Option<[EventListener; 3]>,
}

impl SocketProbe {
    fn open(url: &str) -> Self {
        let socket = WebSocket::new(url).ok();
        let opened = Rc::new(Cell::new(false));
        let mut listeners = None;
        let settled = Promise::new(&mut |resolve, _reject| {
            let listen = |socket: &WebSocket| {
                [("open", true), ("close", false), ("error", false)].map(|(name, opens)| {
                    let (resolve, opened) = (resolve.clone(), Rc::clone(&opened));
                    js::listen(socket, name, move |_| {
                        opened.set(opened.get() || opens);
                        js::settle(Some(&resolve));
                    })
                })
            };
            listeners = socket.as_ref().map(listen);
            if listeners.is_none() {
                js::settle(Some(&resolve));
            }
        });
        Self {
            socket,
            settled,
            opened,
            _listeners: listeners,
        }
    }

    async fn is_open(&self) -> bool {
        let timeout = TimeoutPromise::after(ANSWER_TIMEOUT_MS);
        // This promise never rejects.
        let _ = JsFuture::from(js::race(&self.settled, timeout.promise())).await;
        self.opened.get()
    }
}

impl Drop for SocketProbe {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = socket.close_with_code(1000);
        }
    }
}

/// How the path runs. Chromium tells a moment after the connection is up.
async fn found_path(connection: &RtcPeerConnection) -> (Option<String>, Option<String>) {
    let deadline_ms = js::now_ms() + PATH_STATS_TIMEOUT_MS;
    loop {
        let entries = stats::entries(connection.get_stats()).await;
        let path = path(&entries.unwrap_or_default());
        if path.0.is_some() || js::now_ms() >= deadline_ms {
            return path;
        }
        js::sleep(POLL_INTERVAL_MS).await;
    }
}

/// Milliseconds since a time of the page's clock.
fn since(begun_ms: u64) -> u32 {
    js::now_ms().saturating_sub(begun_ms) as u32
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

/// Returns the backend's answer and how long it took. A backend with too many checks at a time is asked once more, when it says.
async fn ask(config: &Config, offer: &str) -> Result<(u32, String), CallError> {
    let (url, body) = check_request(&config.backend_url, offer);
    let mut may_retry = true;
    loop {
        let (ms, answer) = send(&url, &body).await?;
        match answer.retry_after_ms() {
            Some(wait_ms) if may_retry => {
                may_retry = false;
                js::sleep(wait_ms).await;
            }
            _ => return Ok((ms, answer.sdp(&url)?)),
        }
    }
}

/// Asks once, and measures.
async fn send(url: &str, body: &str) -> Result<(u32, CheckAnswer), CallError> {
    let begun = js::now_ms();
    let abort = AbortController::new().map_err(|_| ErrorCode::UnsupportedBrowser)?;
    let given_up = abort.clone();
    let _timeout = Timeout::new(ANSWER_TIMEOUT_MS, move || given_up.abort());
    let sent = create::post(url, None, body, Some(&abort));
    let (response, body) = create::read(sent).await.map_err(|_| unreachable(url))?;
    let retry_after = response.headers().get("Retry-After").ok().flatten();
    let answer = CheckAnswer::read(response.status(), retry_after.as_deref(), body.as_ref());
    Ok((since(begun), answer))
}

fn unreachable(url: &str) -> CallError {
    let detail = String::from_iter(["POST ", url]);
    CallError::with_detail(ErrorCode::Network, &detail)
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
        js::sleep(POLL_INTERVAL_MS).await;
    }
}
