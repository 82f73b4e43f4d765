//! The screen stays on during a call: a phone that sleeps takes the microphone away.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::js;

/// A screen wake lock, released by `Drop`. The browser itself releases it when the page is hidden.
pub(crate) struct WakeLock {
    sentinel: JsValue,
}

impl WakeLock {
    /// Asks for it; `None` where the browser has none or refuses, for example to save the battery.
    pub(crate) async fn request() -> Option<Self> {
        let wake_lock = js::get(&js::navigator(), "wakeLock");
        let screen = Array::of1(&"screen".into());
        let sentinel = js::invoke_async(&wake_lock, "request", &screen).await;
        Some(Self {
            sentinel: sentinel.ok()?,
        })
    }

    /// Whether the browser has released it.
    pub(crate) fn is_released(&self) -> bool {
        js::get(&self.sentinel, "released") == true
    }
}

impl Drop for WakeLock {
    fn drop(&mut self) {
        let released = js::invoke(&self.sentinel, "release", &Array::new());
        js::ignore_outcome(released.and_then(JsCast::dyn_into));
    }
}
