//! The browser's WebRTC statistics.

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
