//! The visitor's microphone: permission, the track that is sent, mute, and the change of device.

use colloquy_protocol::ErrorCode;
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{MediaDevices, MediaStream, MediaStreamConstraints, MediaStreamTrack};

use crate::errors::microphone_code;
use crate::js;
use crate::worklet::{Audio, Graph};

/// How strictly a device is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Wish {
    /// Another device will do when this one is gone.
    Ideal,
    /// This device or none.
    Exact,
}

/// An open capture, stopped by `Drop`.
pub(crate) struct Capture {
    stream: MediaStream,
}

impl Capture {
    /// Asks the browser, and through it the visitor, for a microphone.
    pub(crate) async fn open(device_id: Option<&str>, wish: Wish) -> Result<Self, ErrorCode> {
        let devices = media_devices().ok_or(ErrorCode::UnsupportedBrowser)?;
        let asked = ask(&devices, device_id, wish).map_err(|e| microphone_code(&e))?;
        match JsFuture::from(asked).await {
            Ok(stream) => Ok(Self {
                stream: stream.unchecked_into(),
            }),
            Err(rejection) => Err(microphone_code(&rejection)),
        }
    }

    fn track(&self) -> Option<MediaStreamTrack> {
        self.stream.get_audio_tracks().get(0).dyn_into().ok()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(track) = self.track() {
            track.stop();
        }
    }
}

/// The browser's devices, `None` in an insecure page or an old browser.
pub(crate) fn media_devices() -> Option<MediaDevices> {
    let navigator = js::get(&js_sys::global(), "navigator");
    let devices = js::get(&navigator, "mediaDevices");
    (!js::is_absent(&devices)).then(|| devices.unchecked_into())
}

fn ask(devices: &MediaDevices, device_id: Option<&str>, wish: Wish) -> Result<Promise, JsValue> {
    let key = match wish {
        Wish::Ideal => "ideal",
        Wish::Exact => "exact",
    };
    let device = device_id.map_or(JsValue::UNDEFINED, |id| js::object([(key, id.into())]));
    let audio = js::object([
        ("deviceId", device),
        ("echoCancellation", true.into()),
        ("noiseSuppression", true.into()),
        ("autoGainControl", true.into()),
    ]);
    let constraints = MediaStreamConstraints::new();
    constraints.set_audio(&audio);
    devices.get_user_media_with_constraints(&constraints)
}

/// The microphone of a call, released by `Drop`.
pub(crate) struct Microphone {
    // The graph goes before the capture that it reads.
    graph: Option<Graph>,
    capture: Capture,
    muted: bool,
}

impl Microphone {
    /// Opens a microphone and leads it through the worklet where that works.
    pub(crate) async fn open(
        device_id: Option<&str>,
        audio: Option<Audio>,
        levels: bool,
    ) -> Result<Self, ErrorCode> {
        let capture = Capture::open(device_id, Wish::Ideal).await?;
        let graph = match audio {
            Some(audio) if audio.is_ready().await => {
                Graph::build(audio, &capture.stream, levels).ok()
            }
            _ => None,
        };
        Ok(Self {
            graph,
            capture,
            muted: false,
        })
    }

    /// The track to send.
    pub(crate) fn track(&self) -> Option<MediaStreamTrack> {
        match &self.graph {
            Some(graph) => graph.track(),
            None => self.capture.track(),
        }
    }

    /// Sends silence, or sound again.
    pub(crate) fn mute(&mut self, muted: bool) {
        self.muted = muted;
        if let Some(graph) = &self.graph {
            graph.mute(muted);
        }
        // A disabled track is silent at once and in every browser; the worklet alone would be a message late.
        if let Some(track) = self.track() {
            track.set_enabled(!muted);
        }
    }

    /// Takes the sound from another device and keeps the mute; the track to send from now on, if it is another one.
    pub(crate) fn switch(&mut self, capture: Capture) -> Result<Option<MediaStreamTrack>, JsValue> {
        if let Some(graph) = &mut self.graph {
            graph.switch(&capture.stream)?;
            self.capture = capture;
            return Ok(None);
        }
        self.capture = capture;
        self.mute(self.muted);
        Ok(self.track())
    }

    /// The level, 0 to 1; 0 while muted and where the worklet is missing.
    pub(crate) fn level(&self) -> f64 {
        match &self.graph {
            Some(graph) if !self.muted => graph.level(),
            _ => 0.0,
        }
    }

    /// The audio graph, which can measure the speaker too; `None` where the worklet is missing.
    pub(crate) fn graph(&mut self) -> Option<&mut Graph> {
        self.graph.as_mut()
    }
}
