//! The visitor's microphone: permission, the track that is sent, mute, and the change of device.

use colloquy_protocol::ErrorCode;
use colloquy_protocol::call::Input;
use js_sys::Promise;
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{MediaDevices, MediaStream, MediaStreamConstraints, MediaStreamTrack};

use crate::driver::Reporter;
use crate::errors::microphone_code;
use crate::js;
use crate::worklet::{Audio, Graph};

/// Which device is asked for, and how strictly: a `ConstrainDOMString`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum DeviceId<'a> {
    /// Another device will do when this one is gone.
    Ideal(&'a str),
    /// This device or none.
    Exact(&'a str),
}

/// `MediaTrackConstraints` for a microphone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Constraints<'a> {
    /// The system's choice without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<DeviceId<'a>>,
    echo_cancellation: bool,
    noise_suppression: bool,
    auto_gain_control: bool,
}

/// What the browser does with the sound before the call gets it.
#[derive(Clone, Copy)]
pub(crate) struct Processing {
    pub(crate) echo_cancellation: bool,
    pub(crate) noise_suppression: bool,
    pub(crate) auto_gain_control: bool,
}

/// An open capture, stopped by `Drop`.
pub(crate) struct Capture {
    stream: MediaStream,
    _on_ended: Closure<dyn FnMut()>,
}

impl Capture {
    /// Asks the browser, and through it the visitor, for a microphone, the system's choice where no device is named; that
    /// it went away is reported.
    pub(crate) async fn open(
        device_id: Option<DeviceId<'_>>,
        processing: Processing,
        reporter: Reporter,
    ) -> Result<Self, ErrorCode> {
        let devices = media_devices().ok_or(ErrorCode::UnsupportedBrowser)?;
        let asked = ask(&devices, device_id, processing).map_err(|e| microphone_code(&e))?;
        let stream = JsFuture::from(asked)
            .await
            .map_err(|e| microphone_code(&e))?;
        let on_ended = Closure::new(move || reporter.report(Input::MicrophoneLost));
        let capture = Self {
            stream: stream.unchecked_into(),
            _on_ended: on_ended,
        };
        // The event comes when the device goes, not when this SDK stops the track. Firefox gives its tracks' events to
        // this property alone.
        if let Some(track) = capture.track() {
            track.set_onended(Some(capture._on_ended.as_ref().unchecked_ref()));
        }
        Ok(capture)
    }

    fn track(&self) -> Option<MediaStreamTrack> {
        self.stream.get_audio_tracks().get(0).dyn_into().ok()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(track) = self.track() {
            track.set_onended(None);
            track.stop();
        }
    }
}

/// The browser's devices, `None` in an insecure page or an old browser.
pub(crate) fn media_devices() -> Option<MediaDevices> {
    let devices = js::get(&js::navigator(), "mediaDevices");
    (!js::is_absent(&devices)).then(|| devices.unchecked_into())
}

fn ask(
    devices: &MediaDevices,
    device_id: Option<DeviceId<'_>>,
    processing: Processing,
) -> Result<Promise, JsValue> {
    let audio = js::to_value(&Constraints {
        device_id,
        echo_cancellation: processing.echo_cancellation,
        noise_suppression: processing.noise_suppression,
        auto_gain_control: processing.auto_gain_control,
    });
    let constraints = MediaStreamConstraints::new();
    constraints.set_audio(&audio);
    devices.get_user_media_with_constraints(&constraints)
}

/// The microphone of a call, released by `Drop`.
pub(crate) struct Microphone {
    // The graph goes before the capture that it reads, and before the context that it runs in.
    graph: Option<Graph>,
    capture: Capture,
    audio: Option<Audio>,
    muted: bool,
}

impl Microphone {
    /// A microphone that sends the device's own sound; `audio` is where a graph can be built.
    pub(crate) fn new(capture: Capture, audio: Option<Audio>) -> Self {
        Self {
            graph: None,
            capture,
            audio,
            muted: false,
        }
    }

    /// Leads the sound through the worklet from now on, where that works; `levels` says whether it measures.
    pub(crate) fn build_graph(&mut self, levels: bool) {
        if let Some(audio) = &self.audio
            && self.graph.is_none()
            && audio.is_running()
        {
            // Without its worklet, which a policy may block, the call does without a graph.
            self.graph = Graph::build(audio, &self.capture.stream).ok();
            self.mute(self.muted);
        }
        if let Some(graph) = &self.graph {
            graph.measure(levels);
        }
    }

    /// The track to send: the graph's while it runs, the device's own otherwise.
    pub(crate) fn track(&self) -> Option<MediaStreamTrack> {
        match (&self.graph, &self.audio) {
            (Some(graph), Some(audio)) if audio.is_running() => graph.track(),
            _ => self.capture.track(),
        }
    }

    /// Sends silence, or sound again.
    pub(crate) fn mute(&mut self, muted: bool) {
        self.muted = muted;
        let graph = self.graph.as_ref();
        if let Some(graph) = graph {
            graph.mute(muted);
        }
        // A disabled track is silent at once and in every browser; the worklet alone would be a message late. Both are
        // disabled, since either may be the one that is sent.
        let tracks = [graph.and_then(Graph::track), self.capture.track()];
        for track in tracks.into_iter().flatten() {
            track.set_enabled(!muted);
        }
    }

    /// Takes the sound from another device and keeps the mute. The track to send may be another one afterwards.
    pub(crate) fn switch(&mut self, capture: Capture) -> Result<(), JsValue> {
        if let (Some(graph), Some(audio)) = (&mut self.graph, &self.audio) {
            graph.switch(audio, &capture.stream)?;
        }
        self.capture = capture;
        self.mute(self.muted);
        Ok(())
    }

    /// Gets the audio graph going when the browser stopped it, or has not let it begin.
    pub(crate) fn resume(&self) {
        if let Some(audio) = &self.audio {
            audio.resume();
        }
    }

    /// Measures how loud a track is that an element plays, where there is a graph.
    pub(crate) fn meter(&mut self, track: &MediaStreamTrack) {
        if let (Some(graph), Some(audio)) = (&mut self.graph, &self.audio) {
            // A meter that a browser refuses shows nothing; the call needs none.
            let _ = graph.meter(audio, track);
        }
    }

    /// The level, 0 to 1; 0 while muted and where the worklet is missing.
    pub(crate) fn level(&self) -> f64 {
        match &self.graph {
            Some(graph) if !self.muted => graph.level(),
            _ => 0.0,
        }
    }

    /// The level of what is played, 0 to 1; 0 where the worklet is missing.
    pub(crate) fn speaker_level(&mut self) -> f64 {
        self.graph.as_mut().map_or(0.0, Graph::speaker_level)
    }
}
