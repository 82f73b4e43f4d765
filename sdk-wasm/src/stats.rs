//! The browser's WebRTC statistics, and what is told of them.

use colloquy_protocol::{CallStats, path};
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::js::{self, Parsed};

/// The entries of what `getStats` promises.
pub(crate) async fn entries(report: Promise) -> Result<Vec<Parsed>, JsValue> {
    let report = JsFuture::from(report).await?;
    let entries = js::invoke(&report, "values", &Array::new())?;
    Ok(Array::from(&entries).iter().map(Parsed::of).collect())
}

/// The argument of `onStats`.
pub(crate) fn told(stats: &CallStats, entries: &[Parsed]) -> JsValue {
    let optional = |value: Option<f64>| value.map_or(JsValue::NULL, JsValue::from_f64);
    let (candidate_type, protocol) = shown_path(entries);
    js::object([
        ("quality", stats.quality.into()),
        ("roundTripMs", optional(stats.round_trip_ms)),
        ("jitterMs", optional(stats.jitter_ms)),
        ("lossSent", optional(stats.loss_sent)),
        ("lossReceived", stats.loss_received.into()),
        ("concealed", stats.concealed.into()),
        ("bitrateSent", optional(stats.bitrate_sent)),
        ("bitrateReceived", optional(stats.bitrate_received)),
        ("candidateType", candidate_type),
        ("protocol", protocol),
    ])
}

/// The type and the protocol of the path, each `null` while there is none.
pub(crate) fn shown_path(entries: &[Parsed]) -> (JsValue, JsValue) {
    let (candidate_type, protocol) = path(entries);
    let shown = |value: Option<String>| value.map_or(JsValue::NULL, JsValue::from);
    (shown(candidate_type), shown(protocol))
}
