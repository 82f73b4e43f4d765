//! What the driver does with microphone, speaker and their devices.

use std::rc::Rc;

use colloquy_protocol::call::Input;
use colloquy_protocol::{ErrorCode, IceServer};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::MediaStreamTrack;

use crate::audio_session::AudioSession;
use crate::devices::{self, Devices};
use crate::driver::{Driver, Reporter, Resources, State};
use crate::js::{self, TimeoutPromise, ignore_outcome};
use crate::microphone::{Capture, DeviceId, Microphone};
use crate::peer::Peer;
use crate::speaker::Speaker;
use crate::wake_lock::WakeLock;
use crate::worklet::Audio;

/// How long the context may take to run and the worklet to load, once there is a microphone, before a call does without.
const READY_TIMEOUT_MS: u32 = 1_000;

impl Driver {
    /// Opens the microphone of the call and reports it.
    pub(crate) fn acquire_microphone(self: &Rc<Self>) {
        let reporter = self.reporter();
        let processing = self.config.processing;
        js::spawn(async move {
            let capture = loop {
                // Nobody is asked for the microphone of a call that is over.
                let Some(driver) = reporter.active() else {
                    return;
                };
                driver.state.borrow_mut().resources.audio_session = AudioSession::hold();
                let id = driver.state.borrow().microphone.id.clone();
                let device_id = id.as_deref().map(DeviceId::Ideal);
                let opened = Capture::open(device_id, processing, reporter.clone()).await;
                // A microphone that comes after the end of its call is dropped here, and so released.
                let Some(driver) = reporter.active() else {
                    return;
                };
                // Another one may have been chosen while the visitor was asked.
                if driver.state.borrow().microphone.id != id {
                    continue;
                }
                match opened {
                    Ok(capture) => break capture,
                    Err(code) => return driver.handle(Input::MicrophoneFailed(code)),
                }
            };
            connect_worklet(capture, &reporter).await;
        });
    }

    /// Opens any microphone in place of one that went away, and reports it.
    pub(crate) fn replace_microphone(self: &Rc<Self>) {
        let reporter = self.reporter();
        let processing = self.config.processing;
        let replaced = self.state.borrow().microphone.choice;
        js::spawn(async move {
            let opened = Capture::open(None, processing, reporter.clone()).await;
            let Some(driver) = reporter.active() else {
                return;
            };
            // What was chosen meanwhile stays.
            if driver.state.borrow().microphone.is_newer_than(replaced) {
                return;
            }
            let input = match opened.map(|capture| driver.use_capture(capture)) {
                Ok(Ok(())) => Input::MicrophoneReady,
                Ok(Err(_)) => Input::MicrophoneFailed(ErrorCode::MicrophoneBusy),
                Err(code) => Input::MicrophoneFailed(code),
            };
            driver.handle(input);
        });
    }

    /// Takes the sound of the running call from another device.
    pub(crate) fn use_capture(&self, capture: Capture) -> Result<(), JsValue> {
        if let Some(microphone) = &mut self.state.borrow_mut().resources.microphone {
            microphone.switch(capture)?;
        }
        self.update_sent_track();
        Ok(())
    }

    /// Sends the graph's track while its context runs, the microphone's own otherwise.
    fn update_sent_track(&self) {
        let state = self.state.borrow();
        let microphone = state.resources.microphone.as_ref();
        let track = microphone.and_then(Microphone::track);
        if let (Some(track), Some(peer)) = (track, &state.resources.peer) {
            ignore_outcome(Ok(peer.sender().replace_track(Some(&track))));
        }
    }

    /// Handles that the audio context was stopped, for example by a telephone call, or that it runs.
    pub(crate) fn audio_changed(&self) {
        let levels = self.callbacks.has("onLevels");
        let mut state = self.state.borrow_mut();
        let Resources {
            microphone,
            speaker,
            ..
        } = &mut state.resources;
        if let Some(microphone) = microphone {
            microphone.resume();
            microphone.build_graph(levels);
            if levels && let Some(track) = speaker.as_ref().and_then(Speaker::track) {
                microphone.meter(&track);
            }
        }
        drop(state);
        self.update_sent_track();
    }

    /// Resumes what a browser has stopped or blocked: the audio graph, the playback, the wake lock. Browsers allow it
    /// most reliably while a click or key of the visitor is being handled.
    pub(crate) fn resume_media(self: &Rc<Self>) -> Option<Promise> {
        self.hold_wake_lock();
        let state = self.state.borrow();
        if let Some(audio) = &state.resources.audio {
            audio.resume();
        }
        if let Some(microphone) = &state.resources.microphone {
            microphone.resume();
        }
        state.resources.speaker.as_ref().and_then(Speaker::unlock)
    }

    /// Keeps the screen on while the call is connected.
    pub(crate) fn hold_wake_lock(self: &Rc<Self>) {
        let wanted = {
            let state = self.state.borrow();
            let held = state.resources.wake_lock.as_ref();
            self.config.wake_lock
                && state.resources.peer.is_some()
                && held.is_none_or(WakeLock::is_released)
        };
        if !wanted {
            return;
        }
        let reporter = self.reporter();
        js::spawn(async move {
            let lock = WakeLock::request().await;
            if let Some(driver) = reporter.active() {
                driver.state.borrow_mut().resources.wake_lock = lock;
            }
        });
    }

    /// Devices came or went during a call.
    pub(crate) fn follow_devices(self: &Rc<Self>) {
        self.handle(Input::DevicesChanged);
        self.with_devices(Self::follow_speaker);
    }

    /// Plays on the system's speaker while the chosen one is away, and on the chosen one when it is back.
    fn follow_speaker(&self, list: &Devices) {
        let mut state = self.state.borrow_mut();
        let State {
            speaker: chosen,
            resources,
            ..
        } = &mut *state;
        // Empty is the system's.
        let wanted = chosen.id.as_deref().filter(|id| !id.is_empty());
        let (Some(id), Some(speaker)) = (wanted, &mut resources.speaker) else {
            return;
        };
        let is_there = list.speakers.iter().any(|device| device.device_id == id);
        speaker.follow(id, is_there);
    }

    /// Tells the page that lists them which devices there are now.
    pub(crate) fn report_devices(self: &Rc<Self>) {
        self.with_devices(|driver, list| {
            let callbacks = &driver.callbacks;
            callbacks.fire("onDevicesChanged", &js::to_value(list));
        });
    }

    fn with_devices(self: &Rc<Self>, act: fn(&Self, &Devices)) {
        let driver = Rc::clone(self);
        js::spawn(async move {
            if let Ok(list) = devices::available().await {
                act(&driver, &list);
            }
        });
    }

    /// Makes the peer connection with the microphone's track, and its offer.
    pub(crate) fn create_peer(self: &Rc<Self>, ice_servers: &[IceServer]) -> Result<(), JsValue> {
        let reporter = self.reporter();
        let mut state = self.state.borrow_mut();
        let microphone = state.resources.microphone.as_ref();
        let track = microphone
            .and_then(Microphone::track)
            .ok_or(JsValue::UNDEFINED)?;
        // A second connection plays through the element that the visitor's click may have set free already.
        let speaker = match state.resources.speaker.take() {
            Some(speaker) => {
                speaker.detach();
                speaker
            }
            None => {
                let mut speaker = Speaker::new(reporter.clone())?;
                // Empty is the system's.
                let wanted = state.speaker.id.as_deref().filter(|id| !id.is_empty());
                if let Some(id) = wanted {
                    report_speaker(speaker.choose(id), reporter.clone());
                }
                speaker
            }
        };
        let heard = reporter.clone();
        let play = move |track: MediaStreamTrack| {
            if let Some(driver) = heard.active() {
                driver.play(&track);
            }
        };
        let peer = Peer::new(&self.config.ice, ice_servers, &track, reporter, play)?;
        peer.offer(false);
        state.resources.speaker = Some(speaker);
        state.resources.peer = Some(peer);
        Ok(())
    }

    fn play(self: &Rc<Self>, track: &MediaStreamTrack) {
        if let Some(speaker) = &self.state.borrow().resources.speaker {
            speaker.play(track);
        }
        self.audio_changed();
    }
}

/// Reports the microphone of a call as ready once the worklet and the audio context are, or after `READY_TIMEOUT_MS` without
/// them. They are used as soon as they are ready: a context may wait for a click, a worklet for a slow network.
async fn connect_worklet(capture: Capture, reporter: &Reporter) {
    let ready = {
        let Some(driver) = reporter.active() else {
            return;
        };
        let mut state = driver.state.borrow_mut();
        let audio = state.resources.audio.take();
        let ready = audio.as_ref().map(Audio::ready);
        let mut microphone = Microphone::new(capture, audio);
        microphone.mute(state.muted);
        state.resources.microphone = Some(microphone);
        ready.map(|ready| {
            let timeout = TimeoutPromise::after(READY_TIMEOUT_MS);
            let first = js::race(&ready, timeout.promise());
            state.resources.audio_timeout = Some(timeout);
            (ready, first)
        })
    };
    let (ready, first) = ready.unzip();
    if let Some(first) = first {
        // Whether the worklet was loaded shows when the graph is built.
        let _ = JsFuture::from(first).await;
    }
    if let Some(driver) = reporter.active() {
        driver.state.borrow_mut().resources.audio_timeout = None;
        driver.audio_changed();
        driver.handle(Input::MicrophoneReady);
    }
    if let Some(ready) = ready {
        let _ = JsFuture::from(ready).await;
        if let Some(driver) = reporter.active() {
            driver.audio_changed();
        }
    }
}

/// A configured speaker that cannot be used, or that the browser does not let a page choose, is told, and the call goes on
/// with the system's.
fn report_speaker(chosen: Option<Promise>, reporter: Reporter) {
    js::spawn(async move {
        let used = match chosen {
            Some(chosen) => JsFuture::from(chosen).await.is_ok(),
            None => false,
        };
        if !used {
            reporter.report(Input::SpeakerFailed);
        }
    });
}
