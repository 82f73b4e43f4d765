//! The audio graph between the microphone and the track that is sent: source, worklet node, destination.
//!
//! The worklet gives true silence on mute, the microphone's level, and a track that stays the same when the device
//! changes. Beside it an analyser measures the level of what is played. A browser without worklets and a worklet that a
//! policy blocks do without; so does a context that is suspended or that the system interrupts, until it runs.

use std::cell::Cell;
use std::rc::Rc;

use gloo_events::EventListener;
use js_sys::{Array, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_sys::{
    AnalyserNode, AudioContext, AudioContextState, AudioWorkletNode, MediaStream,
    MediaStreamAudioDestinationNode, MediaStreamAudioSourceNode, MediaStreamTrack, MessageEvent,
};

use crate::driver::Reporter;
use crate::js::{self, ignore_outcome};

/// The name that `worklet.js` registers.
const PROCESSOR: &str = "colloquy-microphone";

/// How long a context outlives its nodes: Chromium keeps what a worklet node holds for ever when its context is closed
/// before the audio thread has seen that the node is disconnected.
const CLOSE_AFTER_MS: u32 = 100;

/// An audio context, closed by `Drop`.
///
/// It is made while the visitor's click is being handled, because browsers let only such a context run.
pub(crate) struct Audio {
    context: AudioContext,
    ready: Promise,
    _on_state: EventListener,
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
            ignore_outcome(context.close());
            return None;
        };
        let ready = Promise::all_settled(&Array::of2(&module, &resumed));
        let changed = reporter.clone();
        let on_state = js::listen(&context, "statechange", move |_| {
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
            ignore_outcome(self.context.resume());
        }
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        let context = self.context.clone();
        js::spawn(async move {
            js::sleep(CLOSE_AFTER_MS).await;
            ignore_outcome(context.close());
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
    _on_level: EventListener,
    meter: Option<LevelMeter>,
}

/// `AudioWorkletNodeOptions`: mono. One input and one output, whose channels are the input's, are the default.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeOptions {
    channel_count: u32,
    channel_count_mode: &'static str,
}

/// A message to the worklet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Message {
    /// Whether it sends silence.
    Muted(bool),
    /// Whether it posts levels.
    Levels(bool),
    /// Its node is not used any more.
    Closed(bool),
}

/// Listens to what is played, without playing it; disconnected by `Drop`.
struct LevelMeter {
    track: MediaStreamTrack,
    source: MediaStreamAudioSourceNode,
    analyser: AnalyserNode,
    samples: Vec<f32>,
}

impl Graph {
    /// Builds the graph; the error is that the worklet is not there.
    pub(crate) fn build(audio: &Audio, stream: &MediaStream) -> Result<Self, JsValue> {
        let context = &audio.context;
        let options = js::to_value(&NodeOptions {
            channel_count: 1,
            channel_count_mode: "explicit",
        });
        // The node comes last, since nothing takes it away when another part fails.
        let source = context.create_media_stream_source(stream)?;
        let destination = context.create_media_stream_destination()?;
        let node = AudioWorkletNode::new_with_options(context, PROCESSOR, options.unchecked_ref())?;
        let level = Rc::new(Cell::new(0.0));
        let heard = Rc::clone(&level);
        let port = node.port()?;
        let on_level = js::listen(&port, "message", move |event| {
            let event: &MessageEvent = event.unchecked_ref();
            heard.set(event.data().as_f64().unwrap_or(0.0));
        });
        // A port with listeners keeps its messages until it is told that they are there.
        port.start();
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
        self.post(&Message::Muted(muted));
    }

    /// Measures the level of the microphone, or leaves it.
    pub(crate) fn measure(&self, levels: bool) {
        self.post(&Message::Levels(levels));
    }

    fn post(&self, message: &Message) {
        if let Ok(port) = self.node.port() {
            let _ = port.post_message(&js::to_value(message));
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
        if self
            .meter
            .as_ref()
            .is_some_and(|meter| meter.track == *track)
        {
            return Ok(());
        }
        let context = &audio.context;
        let stream = MediaStream::new_with_tracks(&Array::of1(track))?;
        let source = context.create_media_stream_source(&stream)?;
        let analyser = context.create_analyser()?;
        analyser.set_fft_size(METER_SAMPLES);
        source.connect_with_audio_node(&analyser)?;
        self.meter = Some(LevelMeter {
            track: track.clone(),
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
        self.post(&Message::Closed(true));
        let _ = self.source.disconnect();
        let _ = self.node.disconnect();
        if let Some(track) = self.track() {
            track.stop();
        }
    }
}
