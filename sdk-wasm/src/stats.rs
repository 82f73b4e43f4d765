//! The quality of a call, from the browser's WebRTC statistics (W3C webrtc-stats).

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::js;

/// From these on a call is no longer good, or poor: round trip in milliseconds, loss and concealment as fractions.
const FAIR: (f64, f64) = (250.0, 0.02);
const POOR: (f64, f64) = (500.0, 0.08);

/// What the browser has counted since the start of the connection.
#[derive(Default, Clone, Copy)]
struct Counts {
    at_ms: f64,
    bytes_sent: f64,
    bytes_received: f64,
    packets_received: f64,
    packets_lost: f64,
    samples: f64,
    concealed: f64,
}

/// Compares one report with the last.
#[derive(Default)]
pub(crate) struct Meter {
    last: Counts,
}

impl Meter {
    /// The argument of `onStats`, from what `getStats` promises.
    pub(crate) async fn read(&mut self, report: Promise) -> Result<JsValue, JsValue> {
        let report = JsFuture::from(report).await?;
        let mut counts = Counts::default();
        let mut round_trip_ms = None;
        let mut jitter_ms = None;
        let mut loss_sent = None;
        let mut path = (JsValue::NULL, JsValue::NULL);
        let entries = js::invoke(&report, "values", &js_sys::Array::new())?;
        for entry in js_sys::try_iter(&entries)?.into_iter().flatten() {
            let entry = entry?;
            let number = |name: &str| js::get(&entry, name).as_f64();
            let count = |name: &str| number(name).unwrap_or(0.0);
            match js::get(&entry, "type").as_string().as_deref() {
                Some("inbound-rtp") => {
                    counts.bytes_received = count("bytesReceived");
                    counts.packets_received = count("packetsReceived");
                    counts.packets_lost = count("packetsLost");
                    counts.samples = count("totalSamplesReceived");
                    counts.concealed = count("concealedSamples") - count("silentConcealedSamples");
                    jitter_ms = number("jitter").map(|seconds| seconds * 1000.0);
                }
                Some("outbound-rtp") => {
                    counts.at_ms = count("timestamp");
                    counts.bytes_sent = count("bytesSent");
                }
                Some("remote-inbound-rtp") => {
                    loss_sent = number("fractionLost");
                    round_trip_ms =
                        round_trip_ms.or(number("roundTripTime").map(|seconds| seconds * 1000.0));
                }
                Some("candidate-pair") if is_selected(&entry) => {
                    let measured = number("currentRoundTripTime").map(|seconds| seconds * 1000.0);
                    round_trip_ms = measured.or(round_trip_ms);
                    path = local_candidate(&report, &entry);
                }
                _ => {}
            }
        }
        let last = std::mem::replace(&mut self.last, counts);
        let seconds = (counts.at_ms - last.at_ms) / 1000.0;
        let rate = |now: f64, before: f64| {
            // The first report has nothing to compare with.
            let known = last.at_ms > 0.0 && seconds > 0.0;
            known.then(|| ((now - before) * 8.0 / seconds).max(0.0))
        };
        let lost = (counts.packets_lost - last.packets_lost).max(0.0);
        let loss_received = part(lost, lost + counts.packets_received - last.packets_received);
        let concealed = part(
            counts.concealed - last.concealed,
            counts.samples - last.samples,
        );
        let worst = [loss_sent, Some(loss_received), Some(concealed)]
            .into_iter()
            .flatten()
            .fold(0.0, f64::max);
        let beyond = |(trip, loss): (f64, f64)| round_trip_ms > Some(trip) || worst > loss;
        let quality = match (beyond(POOR), beyond(FAIR)) {
            (true, _) => "poor",
            (_, true) => "fair",
            _ => "good",
        };
        let optional = |value: Option<f64>| value.map_or(JsValue::NULL, JsValue::from_f64);
        Ok(js::object([
            ("quality", quality.into()),
            ("roundTripMs", optional(round_trip_ms)),
            ("jitterMs", optional(jitter_ms)),
            ("lossSent", optional(loss_sent)),
            ("lossReceived", loss_received.into()),
            ("concealed", concealed.into()),
            (
                "bitrateSent",
                optional(rate(counts.bytes_sent, last.bytes_sent)),
            ),
            (
                "bitrateReceived",
                optional(rate(counts.bytes_received, last.bytes_received)),
            ),
            ("candidateType", path.0),
            ("protocol", path.1),
        ]))
    }
}

fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 {
        (some / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Whether media flows over this pair. Firefox has a flag for it; the others nominate one pair.
fn is_selected(pair: &JsValue) -> bool {
    let selected = js::get(pair, "selected");
    if selected.is_undefined() {
        js::get(pair, "nominated") == true && js::get(pair, "state") == "succeeded"
    } else {
        selected == true
    }
}

/// The type and the protocol of the pair's local candidate; of a relayed one, the protocol to the TURN server.
fn local_candidate(report: &JsValue, pair: &JsValue) -> (JsValue, JsValue) {
    let id = js_sys::Array::of1(&js::get(pair, "localCandidateId"));
    let candidate = js::invoke(report, "get", &id).unwrap_or(JsValue::NULL);
    let null = |value: JsValue| {
        if value.is_undefined() {
            JsValue::NULL
        } else {
            value
        }
    };
    let relay = js::get(&candidate, "relayProtocol");
    let protocol = if relay.is_string() {
        relay
    } else {
        js::get(&candidate, "protocol")
    };
    (null(js::get(&candidate, "candidateType")), null(protocol))
}

/// The path of a connection that is up: its candidate's type and protocol.
pub(crate) async fn path(report: Promise) -> (JsValue, JsValue) {
    let Ok(report) = JsFuture::from(report).await else {
        return (JsValue::NULL, JsValue::NULL);
    };
    let pairs = js::invoke(&report, "values", &js_sys::Array::new())
        .ok()
        .and_then(|values| js_sys::try_iter(&values).ok().flatten());
    pairs
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .find(|entry| js::get(entry, "type") == "candidate-pair" && is_selected(entry))
        .map_or((JsValue::NULL, JsValue::NULL), |pair| {
            local_candidate(&report, &pair)
        })
}
