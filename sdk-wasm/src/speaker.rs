//! The character's voice: an audio element outside the document, and the device it plays on.

use colloquy_protocol::call::Input;
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{HtmlAudioElement, MediaStream, MediaStreamTrack};

use crate::driver::Reporter;
use crate::js::{self, Listener};

/// An audio element, silenced by `Drop`.
pub(crate) struct Speaker {
    element: HtmlAudioElement,
    /// Whether the system's device plays because the chosen one was unplugged.
    away: bool,
    reporter: Reporter,
    _listeners: [Listener; 2],
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
            Listener::new(&element, name, move || reporter.report(input()))
        };
        let listeners = [
            // Nobody but the browser pauses it, for a telephone call perhaps.
            listen("pause", || Input::PlaybackBlocked),
            listen("playing", || Input::PlaybackStarted),
        ];
        Ok(Self {
            element,
            reporter,
            away: false,
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

    /// Begins to play; the promise rejects when the browser wants the visitor to do something first, which is reported.
    fn start(&self) -> Option<Promise> {
        let playing = self.element.play().ok()?;
        let started = JsFuture::from(playing.clone());
        let reporter = self.reporter.clone();
        spawn_local(async move {
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
