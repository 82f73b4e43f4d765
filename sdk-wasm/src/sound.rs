//! What the driver does with microphone, speaker and their devices.

use std::rc::Rc;

use colloquy_protocol::call::Input;
use colloquy_protocol::{ErrorCode, IceServer};
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::MediaStreamTrack;

use crate::driver::{Driver, Reporter, Resources};
use crate::js::quietly;
use crate::microphone::{Capture, Microphone, Wish};
use crate::peer::Peer;
use crate::speaker::Speaker;
use crate::wake_lock::WakeLock;
use crate::{devices, events, js};

impl Driver {
    /// Opens the microphone of the call and reports it.
    pub(crate) fn acquire_microphone(self: &Rc<Self>) {
        let reporter = self.reporter();
        let (device_id, audio) = {
            let mut state = self.state.borrow_mut();
            (state.microphone_id.clone(), state.resources.audio.take())
        };
        let levels = self.callbacks.on_levels.is_some();
        let processing = self.config.processing;
        expect_both_directions();
        spawn_local(async move {
            let wish = device_id.as_deref().map_or(Wish::Any, Wish::Ideal);
            let opened = match Capture::open(wish, processing, reporter.clone()).await {
                Ok(capture) => Ok(Microphone::new(capture, audio, levels, &reporter).await),
                Err(code) => Err(code),
            };
            // A microphone that comes after the end of its call is dropped here, and so released.
            let Some(driver) = reporter.active() else {
                return;
            };
            let input = match opened {
                Ok(mut microphone) => {
                    let mut state = driver.state.borrow_mut();
                    microphone.mute(state.muted);
                    state.resources.microphone = Some(microphone);
                    Input::MicrophoneReady
                }
                Err(code) => Input::MicrophoneFailed(code),
            };
            driver.handle(input);
        });
    }

    /// Opens any microphone in place of one that went away, and reports it.
    pub(crate) fn replace_microphone(self: &Rc<Self>) {
        let reporter = self.reporter();
        let processing = self.config.processing;
        spawn_local(async move {
            let opened = Capture::open(Wish::Any, processing, reporter.clone()).await;
            let Some(driver) = reporter.active() else {
                return;
            };
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
        self.send_sound();
        Ok(())
    }

    /// Makes sure that the track that has sound is the one that is sent.
    fn send_sound(&self) {
        let state = self.state.borrow();
        let microphone = state.resources.microphone.as_ref();
        let track = microphone.and_then(Microphone::track);
        if let (Some(track), Some(peer)) = (track, &state.resources.peer) {
            quietly(Ok(peer.sender().replace_track(Some(&track))));
        }
    }

    /// The audio context stopped, for a telephone call perhaps, or runs again.
    pub(crate) fn audio_changed(&self) {
        if let Some(microphone) = &self.state.borrow().resources.microphone {
            microphone.resume();
        }
        self.send_sound();
    }

    /// Sets going again what a browser stops or holds back: the audio graph, the playback, the wake lock. Best called
    /// while the visitor does something on the page.
    pub(crate) fn wake(self: &Rc<Self>) -> Option<Promise> {
        self.keep_awake();
        let state = self.state.borrow();
        if let Some(microphone) = &state.resources.microphone {
            microphone.resume();
        }
        state.resources.speaker.as_ref().and_then(Speaker::unlock)
    }

    /// Keeps the screen on while the call is connected.
    pub(crate) fn keep_awake(self: &Rc<Self>) {
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
        spawn_local(async move {
            let lock = WakeLock::request().await;
            if let Some(driver) = reporter.active() {
                driver.state.borrow_mut().resources.wake_lock = lock;
            }
        });
    }

    /// Devices came or went.
    pub(crate) fn devices_changed(self: &Rc<Self>) {
        self.handle(Input::DevicesChanged);
        let driver = Rc::clone(self);
        spawn_local(async move {
            let Ok(list) = devices::available().await else {
                return;
            };
            driver.leave_missing_speaker(&list);
            if let Some(function) = &driver.callbacks.on_devices_changed {
                events::fire(function, &list);
            }
        });
    }

    /// Plays on the system's speaker when the chosen one is gone.
    fn leave_missing_speaker(&self, list: &JsValue) {
        let state = self.state.borrow();
        let (Some(id), Some(speaker)) = (&state.speaker_id, &state.resources.speaker) else {
            return;
        };
        let speakers: Array = js::get(list, "speakers").unchecked_into();
        let there = |device: JsValue| js::get(&device, "deviceId") == id.as_str();
        if !speakers.iter().any(there)
            && let Some(chosen) = speaker.choose("")
        {
            quietly(Ok(chosen));
        }
    }

    /// Makes the peer connection with the microphone's track, and its offer.
    pub(crate) fn create_peer(self: &Rc<Self>, ice_servers: &[IceServer]) -> Result<(), JsValue> {
        let reporter = self.reporter();
        let mut state = self.state.borrow_mut();
        let microphone = state.resources.microphone.as_ref();
        let track = microphone
            .and_then(Microphone::track)
            .ok_or(JsValue::UNDEFINED)?;
        let speaker = Speaker::new()?;
        let chosen = state
            .speaker_id
            .as_deref()
            .and_then(|id| speaker.choose(id));
        if let Some(chosen) = chosen {
            report_speaker(chosen, reporter.clone());
        }
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
        let reporter = self.reporter();
        let mut state = self.state.borrow_mut();
        let Resources {
            microphone,
            speaker,
            ..
        } = &mut state.resources;
        if let Some(speaker) = speaker {
            speaker.play(track, reporter);
        }
        if self.callbacks.on_levels.is_some()
            && let Some(graph) = microphone.as_mut().and_then(Microphone::graph)
        {
            // A meter that a browser refuses shows nothing; the call needs none.
            let _ = graph.meter(track);
        }
    }
}

/// Tells the audio session of an iPhone what comes, so that it does not change over in the middle of the first words.
fn expect_both_directions() {
    let session = js::get(&js::navigator(), "audioSession");
    if session.is_object() {
        let _ = js_sys::Reflect::set(&session, &"type".into(), &"play-and-record".into());
    }
}

/// A configured speaker that cannot be used is told, and the call goes on with the system's.
fn report_speaker(chosen: Promise, reporter: Reporter) {
    spawn_local(async move {
        if JsFuture::from(chosen).await.is_err() {
            reporter.report(Input::SpeakerFailed);
        }
    });
}
