//! The audio graph between the microphone and the track that is sent: source, worklet node, destination.
//!
//! The worklet gives true silence on mute, the microphone's level, and a track that stays the same when the device
//! changes. Beside it an analyser measures the level of what is played. A browser without worklets, a worklet that a
//! policy blocks, and a context that stays suspended do without; one that the system interrupts in the middle of a call
//! does without until it runs again.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    AnalyserNode, AudioContext, AudioContextState, AudioWorkletNode, MediaStream,
    MediaStreamAudioDestinationNode, MediaStreamAudioSourceNode, MediaStreamTrack, MessageEvent,
};

use crate::driver::Reporter;
use crate::js::{self, Listener, quietly};

/// The name that `worklet.js` registers.
const PROCESSOR: &str = "colloquy-microphone";

/// How long the context may take to run and the worklet to load, once there is a microphone.
const READY_TIMEOUT_MS: f64 = 1_000.0;

/// How long a context outlives its nodes: Chromium keeps what a worklet node holds for ever when its context is closed
/// before the audio thread has seen that the node is disconnected.
const CLOSE_AFTER_MS: f64 = 100.0;

/// An audio context, closed by `Drop`.
///
/// It is made while the visitor's click is being handled, because browsers let only such a context run.
pub(crate) struct Audio {
    context: AudioContext,
    loaded: Promise,
}

impl Audio {
    /// Opens a context and begins to load the worklet, `None` where the browser has none.
    pub(crate) fn open(worklet_url: &str) -> Option<Self> {
        js::get_function(&js_sys::global(), "AudioWorkletNode")?;
        let context = AudioContext::new().ok()?;
        let module = context
            .audio_worklet()
            .and_then(|worklet| worklet.add_module(worklet_url));
        let Ok(module) = module else {
            quietly(context.close());
            return None;
        };
        let loaded = Promise::all_settled(&Array::of1(&module));
        quietly(context.resume());
        Some(Self { context, loaded })
    }

    /// Whether the graph can be built: the worklet is loaded and the context runs.
    pub(crate) async fn is_ready(&self) -> bool {
        let Ok(resumed) = self.context.resume() else {
            return false;
        };
        let both = Promise::all(&Array::of2(&self.loaded, &resumed));
        let first = JsFuture::from(js::race(&both, &js::sleep(READY_TIMEOUT_MS))).await;
        // When the time is over, there is nothing in it.
        let settled = first.unwrap_or_default();
        let module = js::get(&js::get(&settled, "0"), "0");
        let outcome = js::get(&module, "status");
        outcome == "fulfilled" && self.is_running()
    }

    /// Safari has a state more than the standard, `interrupted`, which is as little running as the others.
    fn is_running(&self) -> bool {
        self.context.state() == AudioContextState::Running
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        let context = self.context.clone();
        spawn_local(async move {
            let _ = JsFuture::from(js::sleep(CLOSE_AFTER_MS)).await;
            quietly(context.close());
        });
    }
}

/// Samples that a level of the speaker is measured over: 43 ms at 48 kHz, about the time between two reports.
const METER_SAMPLES: u32 = 2048;

/// The running graph, taken apart by `Drop`.
pub(crate) struct Graph {
    source: MediaStreamAudioSourceNode,
    node: AudioWorkletNode,
    destination: MediaStreamAudioDestinationNode,
    level: Rc<Cell<f64>>,
    _on_level: Closure<dyn FnMut(MessageEvent)>,
    _on_state: Listener,
    meter: Option<Meter>,
    audio: Audio,
}

/// Listens to what is played, without playing it; disconnected by `Drop`.
struct Meter {
    source: MediaStreamAudioSourceNode,
    analyser: AnalyserNode,
    samples: Vec<f32>,
}

impl Graph {
    /// Builds the graph; closes the context when the browser refuses. That the context stops or runs again is reported.
    pub(crate) fn build(
        audio: Audio,
        stream: &MediaStream,
        levels: bool,
        reporter: &Reporter,
    ) -> Result<Self, JsValue> {
        let context = &audio.context;
        let source = context.create_media_stream_source(stream)?;
        let destination = context.create_media_stream_destination()?;
        let options = js::object([
            ("numberOfInputs", 1.into()),
            ("numberOfOutputs", 1.into()),
            ("outputChannelCount", Array::of1(&1.into()).into()),
            ("channelCount", 1.into()),
            ("channelCountMode", "explicit".into()),
            ("processorOptions", js::object([("levels", levels.into())])),
        ]);
        let node = AudioWorkletNode::new_with_options(context, PROCESSOR, options.unchecked_ref())?;
        let level = Rc::new(Cell::new(0.0));
        let heard = Rc::clone(&level);
        let on_level = Closure::<dyn FnMut(_)>::new(move |event: MessageEvent| {
            heard.set(event.data().as_f64().unwrap_or(0.0));
        });
        node.port()?
            .set_onmessage(Some(on_level.as_ref().unchecked_ref()));
        source.connect_with_audio_node(&node)?;
        node.connect_with_audio_node(&destination)?;
        let changed = reporter.clone();
        let on_state = Listener::new(context, "statechange", move || {
            if let Some(driver) = changed.active() {
                driver.audio_changed();
            }
        });
        Ok(Self {
            source,
            node,
            destination,
            level,
            _on_level: on_level,
            _on_state: on_state,
            meter: None,
            audio,
        })
    }

    /// Takes the sound from another stream; the track that is sent stays.
    pub(crate) fn switch(&mut self, stream: &MediaStream) -> Result<(), JsValue> {
        let source = self.audio.context.create_media_stream_source(stream)?;
        source.connect_with_audio_node(&self.node)?;
        let _ = self.source.disconnect();
        self.source = source;
        Ok(())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.audio.is_running()
    }

    /// Asks the browser to run the graph again; it may want the visitor to do something first.
    pub(crate) fn resume(&self) {
        if !self.is_running() {
            quietly(self.audio.context.resume());
        }
    }

    pub(crate) fn mute(&self, muted: bool) {
        if let Ok(port) = self.node.port() {
            let _ = port.post_message(&js::object([("muted", muted.into())]));
        }
    }

    /// The track to send.
    pub(crate) fn track(&self) -> Option<MediaStreamTrack> {
        self.destination
            .stream()
            .get_audio_tracks()
            .get(0)
            .dyn_into()
            .ok()
    }

    /// The level of the microphone, 0 to 1.
    pub(crate) fn level(&self) -> f64 {
        self.level.get()
    }

    /// Measures from now on how loud a track is, which an element must play: Chromium decodes no other.
    pub(crate) fn meter(&mut self, track: &MediaStreamTrack) -> Result<(), JsValue> {
        let context = &self.audio.context;
        let stream = MediaStream::new_with_tracks(&Array::of1(track))?;
        let source = context.create_media_stream_source(&stream)?;
        let analyser = context.create_analyser()?;
        analyser.set_fft_size(METER_SAMPLES);
        source.connect_with_audio_node(&analyser)?;
        self.meter = Some(Meter {
            source,
            analyser,
            samples: vec![0.0; METER_SAMPLES as usize],
        });
        Ok(())
    }

    /// The level of what is played, 0 to 1.
    pub(crate) fn speaker_level(&mut self) -> f64 {
        self.meter.as_mut().map_or(0.0, Meter::level)
    }
}

impl Meter {
    fn level(&mut self) -> f64 {
        self.analyser.get_float_time_domain_data(&mut self.samples);
        let energy: f32 = self.samples.iter().map(|sample| sample * sample).sum();
        f64::from(energy / METER_SAMPLES as f32).sqrt()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let _ = self.source.disconnect();
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(port) = self.node.port() {
            port.set_onmessage(None);
            let _ = port.post_message(&js::object([("closed", true.into())]));
        }
        let _ = self.source.disconnect();
        let _ = self.node.disconnect();
        if let Some(track) = self.track() {
            track.stop();
        }
    }
}
