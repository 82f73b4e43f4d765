//! The character's voice: an audio element outside the document, and the device it plays on.

use colloquy_protocol::call::Input;
use gloo_events::EventListener;
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{HtmlAudioElement, MediaStream, MediaStreamTrack};

use crate::driver::Reporter;
use crate::js;

/// An audio element, silenced by `Drop`.
pub(crate) struct Speaker {
    element: HtmlAudioElement,
    /// Whether the system's device is used because the chosen one was unplugged.
    is_fallback: bool,
    reporter: Reporter,
    _listeners: [EventListener; 2],
}

impl Speaker {
    /// That the browser holds the sound back, and that it plays again, is reported.
    pub(crate) fn new(reporter: Reporter) -> Result<Self, JsValue> {
        let element = HtmlAudioElement::new()?;
        element.set_autoplay(true);
        // Without it an iPhone opens a player.
        element.set_attribute("playsinline", "")?;
        let listen = |name, input: fn() -> Input| {
            let reporter = reporter.clone();
            js::listen(&element, name, move |_| reporter.report(input()))
        };
        let listeners = [
            // Only the browser or the system pauses it, for example during a telephone call.
            listen("pause", || Input::PlaybackBlocked),
            listen("playing", || Input::PlaybackStarted),
        ];
        Ok(Self {
            element,
            reporter,
            is_fallback: false,
            _listeners: listeners,
        })
    }

    /// Plays a track.
    pub(crate) fn play(&self, track: &MediaStreamTrack) {
        if let Ok(stream) = MediaStream::new_with_tracks(&Array::of1(track)) {
            self.element.set_src_object(Some(&stream));
            self.start();
        }
    }

    /// Detaches the track until the next one is played: a track that ends while attached looks like a pause by the system.
    pub(crate) fn detach(&self) {
        self.element.set_src_object(None);
    }

    /// Begins to play; the promise rejects when the browser wants the visitor to do something first, which is reported.
    fn start(&self) -> Option<Promise> {
        let playing = self.element.play().ok()?;
        let started = JsFuture::from(playing.clone());
        let reporter = self.reporter.clone();
        js::spawn(async move {
            // Other rejections say that the element got another source or was paused at the end.
            if let Err(rejection) = started.await
                && js::get(&rejection, "name") == "NotAllowedError"
            {
                reporter.report(Input::PlaybackBlocked);
            }
        });
        Some(playing)
    }

    /// The track that is played.
    pub(crate) fn track(&self) -> Option<MediaStreamTrack> {
        let stream = self.element.src_object()?;
        stream.get_audio_tracks().get(0).dyn_into().ok()
    }

    /// Plays what is not playing yet, `None` when it does.
    pub(crate) fn unlock(&self) -> Option<Promise> {
        let waits = self.element.paused() && self.element.src_object().is_some();
        waits.then(|| self.start()).flatten()
    }

    /// Plays on another device, `None` where the browser does not let a page choose.
    pub(crate) fn choose(&mut self, device_id: &str) -> Option<Promise> {
        self.is_fallback = false;
        self.set_sink(device_id)
    }

    /// Plays on the system's device while the chosen one is not there, and on the chosen one again when it is back.
    pub(crate) fn follow(&mut self, device_id: &str, is_there: bool) {
        if self.is_fallback == is_there {
            self.is_fallback = !is_there;
            let playing = self.set_sink(if is_there { device_id } else { "" });
            js::ignore_outcome(playing.ok_or(JsValue::UNDEFINED));
        }
    }

    fn set_sink(&self, device_id: &str) -> Option<Promise> {
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
