//! The character's voice: an audio element outside the document, and the device it plays on.

use colloquy_protocol::call::Input;
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{HtmlAudioElement, MediaStream, MediaStreamTrack};

use crate::driver::Reporter;
use crate::js;

/// An audio element, silenced by `Drop`.
pub(crate) struct Speaker {
    element: HtmlAudioElement,
    /// Whether the system's device plays because the chosen one was unplugged.
    away: bool,
}

impl Speaker {
    pub(crate) fn new() -> Result<Self, JsValue> {
        let element = HtmlAudioElement::new()?;
        element.set_autoplay(true);
        // Without it an iPhone opens a player.
        element.set_attribute("playsinline", "")?;
        Ok(Self {
            element,
            away: false,
        })
    }

    /// Plays a track. A browser that wants the visitor to do something first is reported.
    pub(crate) fn play(&self, track: &MediaStreamTrack, reporter: Reporter) {
        let Ok(stream) = MediaStream::new_with_tracks(&Array::of1(track)) else {
            return;
        };
        self.element.set_src_object(Some(&stream));
        let playing = self.element.play();
        spawn_local(async move {
            let played = match playing {
                Ok(playing) => JsFuture::from(playing).await,
                Err(error) => Err(error),
            };
            // Other rejections say that the element got another source or was paused at the end.
            if let Err(rejection) = played
                && js::get(&rejection, "name") == "NotAllowedError"
            {
                reporter.report(Input::PlaybackBlocked);
            }
        });
    }

    /// The track that is played.
    pub(crate) fn track(&self) -> Option<MediaStreamTrack> {
        let stream = self.element.src_object()?;
        stream.get_audio_tracks().get(0).dyn_into().ok()
    }

    /// Plays what is not playing yet, `None` when it does.
    pub(crate) fn unlock(&self) -> Option<Promise> {
        let waits = self.element.paused() && self.element.src_object().is_some();
        waits.then(|| self.element.play().ok()).flatten()
    }

    /// Plays on another device, `None` where the browser does not let a page choose.
    pub(crate) fn choose(&mut self, device_id: &str) -> Option<Promise> {
        self.away = false;
        self.play_on(device_id)
    }

    /// Plays on the system's device while the chosen one is not there, and on the chosen one again when it is back.
    pub(crate) fn follow(&mut self, device_id: &str, is_there: bool) {
        if self.away == is_there {
            self.away = !is_there;
            let playing = self.play_on(if is_there { device_id } else { "" });
            js::quietly(playing.ok_or(JsValue::UNDEFINED));
        }
    }

    fn play_on(&self, device_id: &str) -> Option<Promise> {
        js::invoke(&self.element, "setSinkId", &Array::of1(&device_id.into()))
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
