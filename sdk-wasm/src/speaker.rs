//! The character's voice: an audio element outside the document, and the device it plays on.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{HtmlAudioElement, MediaStream, MediaStreamTrack};

use crate::js;

/// An audio element, silenced by `Drop`.
pub(crate) struct Speaker {
    element: HtmlAudioElement,
}

impl Speaker {
    pub(crate) fn new() -> Result<Self, JsValue> {
        let element = HtmlAudioElement::new()?;
        element.set_autoplay(true);
        // Without it an iPhone opens a player.
        element.set_attribute("playsinline", "")?;
        Ok(Self { element })
    }

    /// Plays a track.
    pub(crate) fn play(&self, track: &MediaStreamTrack) {
        let Ok(stream) = MediaStream::new_with_tracks(&Array::of1(track)) else {
            return;
        };
        self.element.set_src_object(Some(&stream));
        if let Ok(playing) = self.element.play() {
            // A browser that wants a gesture first rejects this; autoplay starts the element when it may.
            spawn_local(async move {
                let _ = JsFuture::from(playing).await;
            });
        }
    }

    /// Plays on another device, `None` where the browser does not let a page choose.
    pub(crate) fn choose(&self, device_id: &str) -> Option<Promise> {
        js::get_function(&self.element, "setSinkId")?
            .call1(&self.element, &device_id.into())
            .ok()?
            .dyn_into()
            .ok()
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = self.element.pause();
        self.element.set_src_object(None);
    }
}
