//! The audio graph between the microphone and the track that is sent: source, worklet node, destination.
//!
//! The worklet gives true silence on mute, the microphone's level, and a track that stays the same when the device
//! changes. Beside it an analyser measures the level of what is played. A browser without worklets and a worklet that a
//! policy blocks do without; so does a context that is suspended or that the system interrupts, until it runs.

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

/// How long a context outlives its nodes: Chromium keeps what a worklet node holds for ever when its context is closed
/// before the audio thread has seen that the node is disconnected.
const CLOSE_AFTER_MS: f64 = 100.0;

/// An audio context, closed by `Drop`.
///
/// It is made while the visitor's click is being handled, because browsers let only such a context run.
pub(crate) struct Audio {
    context: AudioContext,
    ready: Promise,
    _on_state: Listener,
}

impl Audio {
    /// Opens a context and begins to load the worklet, `None` where the browser has none. That the context stops or runs
    /// again is reported.
    pub(crate) fn open(worklet_url: &str, reporter: &Reporter) -> Option<Self> {
        js::get_function(&js_sys::global(), "AudioWorkletNode")?;
        let context = AudioContext::new().ok()?;
        let module = context
            .audio_worklet()
            .and_then(|worklet| worklet.add_module(worklet_url));
        let (Ok(module), Ok(resumed)) = (module, context.resume()) else {
            quietly(context.close());
            return None;
        };
        let ready = Promise::all_settled(&Array::of2(&module, &resumed));
        let changed = reporter.clone();
        let on_state = Listener::new(&context, "statechange", move || {
            if let Some(driver) = changed.active() {
                driver.audio_changed();
            }
        });
        Some(Self {
            context,
            ready,
            _on_state: on_state,
        })
    }

    /// Resolves when it is known whether the context runs and whether the worklet is there.
    pub(crate) fn ready(&self) -> Promise {
        self.ready.clone()
    }

    /// Safari has a state more than the standard, `interrupted`, which is as little running as the others.
    pub(crate) fn is_running(&self) -> bool {
        self.context.state() == AudioContextState::Running
    }

    /// Asks the browser to run the context; it may want the visitor to do something first.
    pub(crate) fn resume(&self) {
        if !self.is_running() {
            quietly(self.context.resume());
        }
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
    meter: Option<LevelMeter>,
}

/// Listens to what is played, without playing it; disconnected by `Drop`.
struct LevelMeter {
    source: MediaStreamAudioSourceNode,
    analyser: AnalyserNode,
    samples: Vec<f32>,
}

impl Graph {
    /// Builds the graph; the error is that the worklet is not there.
    pub(crate) fn build(
        audio: &Audio,
        stream: &MediaStream,
        levels: bool,
    ) -> Result<Self, JsValue> {
        let context = &audio.context;
        let options = js::object([
            ("numberOfInputs", 1.into()),
            ("numberOfOutputs", 1.into()),
            ("outputChannelCount", Array::of1(&1.into()).into()),
            ("channelCount", 1.into()),
            ("channelCountMode", "explicit".into()),
            ("processorOptions", js::object([("levels", levels.into())])),
        ]);
        // The node comes last, since nothing takes it away when another part fails.
        let source = context.create_media_stream_source(stream)?;
        let destination = context.create_media_stream_destination()?;
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
        Ok(Self {
            source,
            node,
            destination,
            level,
            _on_level: on_level,
            meter: None,
        })
    }

    /// Takes the sound from another stream; the track that is sent stays.
    pub(crate) fn switch(&mut self, audio: &Audio, stream: &MediaStream) -> Result<(), JsValue> {
        let source = audio.context.create_media_stream_source(stream)?;
        source.connect_with_audio_node(&self.node)?;
        let _ = self.source.disconnect();
        self.source = source;
        Ok(())
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
    pub(crate) fn meter(&mut self, audio: &Audio, track: &MediaStreamTrack) -> Result<(), JsValue> {
        if self.meter.is_some() {
            return Ok(());
        }
        let context = &audio.context;
        let stream = MediaStream::new_with_tracks(&Array::of1(track))?;
        let source = context.create_media_stream_source(&stream)?;
        let analyser = context.create_analyser()?;
        analyser.set_fft_size(METER_SAMPLES);
        source.connect_with_audio_node(&analyser)?;
        self.meter = Some(LevelMeter {
            source,
            analyser,
            samples: vec![0.0; METER_SAMPLES as usize],
        });
        Ok(())
    }

    /// The level of what is played, 0 to 1.
    pub(crate) fn speaker_level(&mut self) -> f64 {
        self.meter.as_mut().map_or(0.0, LevelMeter::level)
    }
}

impl LevelMeter {
    fn level(&mut self) -> f64 {
        self.analyser.get_float_time_domain_data(&mut self.samples);
        let energy: f32 = self.samples.iter().map(|sample| sample * sample).sum();
        f64::from(energy / METER_SAMPLES as f32).sqrt()
    }
}

impl Drop for LevelMeter {
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
