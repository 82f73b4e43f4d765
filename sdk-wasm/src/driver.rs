//! Runs the call state machine in the browser: carries out its commands, reports what happens, and fires callbacks.
//!
//! Nothing is borrowed while foreign code runs, so a callback may call any operation, `hangUp` and `handleCall2`
//! included.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use colloquy_protocol::ErrorCode;
use colloquy_protocol::call::{Call, Command, Event, Input, Output};
use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::MediaStreamTrack;

use crate::config::{Callbacks, Config};
use crate::create::Creation;
use crate::js::{self, Timeout};
use crate::microphone::Microphone;
use crate::peer::Peer;
use crate::socket::Socket;
use crate::speaker::Speaker;
use crate::worklet::{Audio, Graph};
use crate::{errors, events};

/// How often `onLevels` fires.
const LEVELS_EVERY_MS: f64 = 50.0;

/// What a call holds in the browser; dropping it releases everything.
#[derive(Default)]
pub(crate) struct Resources {
    creation: Option<Creation>,
    /// The audio context that waits for the microphone.
    audio: Option<Audio>,
    pub(crate) microphone: Option<Microphone>,
    socket: Option<Socket>,
    pub(crate) peer: Option<Peer>,
    pub(crate) speaker: Option<Speaker>,
    timer: Option<(u64, Timeout)>,
    levels: Option<Timeout>,
    page_watch: Option<PageWatch>,
}

/// What changes while a manager lives.
pub(crate) struct State {
    pub(crate) call: Option<Call>,
    /// Counts the calls, so that a late answer to an earlier one is told apart.
    pub(crate) generation: u32,
    pub(crate) resources: Resources,
    pub(crate) muted: bool,
    pub(crate) microphone_id: Option<String>,
    pub(crate) speaker_id: Option<String>,
    draining: bool,
    /// Settles the promise of `handleCall2`.
    started: Option<Function>,
    /// Keeps a running call alive when the page lets go of the manager.
    keep_alive: Option<Rc<Driver>>,
}

/// A manager's state and what it was constructed with.
pub(crate) struct Driver {
    callbacks: Callbacks,
    pub(crate) config: Config,
    worklet_url: String,
    pub(crate) state: RefCell<State>,
    on_timer: Closure<dyn FnMut()>,
    on_levels: Closure<dyn FnMut()>,
}

/// Reports to the call that it was made for; later calls do not hear it.
#[derive(Clone)]
pub(crate) struct Reporter {
    driver: Weak<Driver>,
    generation: u32,
}

impl Reporter {
    pub(crate) fn report(&self, input: Input) {
        if let Some(driver) = self.active() {
            driver.handle(input);
        }
    }

    /// The driver, while the reporter's call is not over.
    pub(crate) fn active(&self) -> Option<Rc<Driver>> {
        let driver = self.driver.upgrade()?;
        let current = {
            let state = driver.state.borrow();
            let ended = state.call.as_ref().is_none_or(Call::is_ended);
            state.generation == self.generation && !ended
        };
        current.then_some(driver)
    }
}

impl Driver {
    pub(crate) fn new(callbacks: Callbacks, config: Config, worklet_url: String) -> Rc<Self> {
        Rc::new_cyclic(|weak: &Weak<Self>| {
            let (timed, levelled) = (weak.clone(), weak.clone());
            Self {
                callbacks,
                worklet_url,
                state: RefCell::new(State {
                    call: None,
                    generation: 0,
                    resources: Resources::default(),
                    muted: false,
                    microphone_id: config.microphone_id.clone(),
                    speaker_id: config.speaker_id.clone(),
                    draining: false,
                    started: None,
                    keep_alive: None,
                }),
                config,
                on_timer: Closure::new(move || {
                    if let Some(driver) = timed.upgrade() {
                        driver.state.borrow_mut().resources.timer = None;
                        driver.handle(Input::Timeout);
                    }
                }),
                on_levels: Closure::new(move || {
                    if let Some(driver) = levelled.upgrade() {
                        driver.report_levels();
                    }
                }),
            }
        })
    }

    /// Whether a call is under way, up to the end of its `onHangUp`.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.call.as_ref().is_some_and(|call| !call.is_over())
    }

    /// Runs a call; `started` is called once it is connected or over.
    pub(crate) fn run(self: &Rc<Self>, call: Call, started: Function) {
        {
            let mut state = self.state.borrow_mut();
            state.generation = state.generation.wrapping_add(1);
            if !call.is_ended() {
                // Here and now, because the visitor's click is still being handled.
                state.resources.audio = Audio::open(&self.worklet_url);
                state.resources.page_watch = PageWatch::new(Rc::downgrade(self));
            }
            state.call = Some(call);
            state.started = Some(started);
            state.keep_alive = Some(Rc::clone(self));
        }
        self.drain();
    }

    /// Hands an input to the call and does what follows from it.
    pub(crate) fn handle(self: &Rc<Self>, input: Input) {
        if let Some(call) = &mut self.state.borrow_mut().call {
            call.handle(js::now_ms(), input);
        }
        self.drain();
    }

    pub(crate) fn reporter(self: &Rc<Self>) -> Reporter {
        Reporter {
            driver: Rc::downgrade(self),
            generation: self.state.borrow().generation,
        }
    }

    /// Carries out all outputs in order. A callback that calls back in only adds to them.
    fn drain(self: &Rc<Self>) {
        if std::mem::replace(&mut self.state.borrow_mut().draining, true) {
            return;
        }
        while let Some(output) = self.next_output() {
            match output {
                Output::Event(event) => self.tell(event),
                Output::Command(command) => self.obey(command),
            }
        }
        self.state.borrow_mut().draining = false;
        self.arm_timer();
    }

    fn next_output(&self) -> Option<Output> {
        self.state.borrow_mut().call.as_mut()?.poll()
    }

    fn arm_timer(&self) {
        let mut state = self.state.borrow_mut();
        let next = state.call.as_ref().and_then(Call::next_timeout);
        if state.resources.timer.as_ref().map(|timer| timer.0) != next {
            state.resources.timer = next.map(|at_ms| {
                let wait_ms = at_ms.saturating_sub(js::now_ms()) as f64;
                let handler = self.on_timer.as_ref().unchecked_ref();
                (at_ms, Timeout::new(handler, wait_ms))
            });
        }
    }

    fn tell(&self, event: Event) {
        let (started, _alive) = match event {
            Event::Connected => (self.state.borrow_mut().started.take(), None),
            Event::HangUp => {
                let mut state = self.state.borrow_mut();
                (state.started.take(), state.keep_alive.take())
            }
            _ => (None, None),
        };
        if matches!(event, Event::Connected) {
            self.watch_levels();
        }
        if let Some((function, argument)) = events::callback(&self.callbacks, event) {
            events::fire(&function, &argument);
        }
        if let Some(started) = started {
            events::fire(&started, &JsValue::UNDEFINED);
        }
    }

    fn obey(self: &Rc<Self>, command: Command) {
        match command {
            Command::CreateCall(request) => {
                let creation = Creation::begin(request, self.reporter());
                self.state.borrow_mut().resources.creation = Some(creation);
            }
            Command::AcquireMicrophone => self.acquire_microphone(),
            Command::OpenSocket(url) => {
                let opened = Socket::open(&url, &self.reporter());
                let failed = opened.is_err();
                self.state.borrow_mut().resources.socket = opened.ok();
                if failed {
                    self.handle(Input::SocketClosed { code: 1006 });
                }
            }
            Command::CloseSocket => self.state.borrow_mut().resources.socket = None,
            Command::Send(frame) => {
                if let Some(socket) = &self.state.borrow().resources.socket {
                    socket.send(&frame);
                }
            }
            Command::CreatePeer(ice_servers) => {
                if let Err(error) = self.create_peer(&ice_servers) {
                    self.handle(Input::MediaFailed(errors::message_of(&error)));
                }
            }
            Command::ApplyAnswer(sdp) => self.with_peer(|peer| peer.apply_answer(&sdp)),
            Command::AddCandidate {
                candidate,
                sdp_mid,
                sdp_m_line_index,
            } => self.with_peer(|peer| {
                peer.add_candidate(candidate.as_deref(), sdp_mid.as_deref(), sdp_m_line_index);
            }),
            Command::RestartIce => self.with_peer(|peer| peer.offer(true)),
            Command::MuteMicrophone(muted) => {
                if let Some(microphone) = &mut self.state.borrow_mut().resources.microphone {
                    microphone.mute(muted);
                }
            }
            Command::CloseEverything => {
                let resources = std::mem::take(&mut self.state.borrow_mut().resources);
                drop(resources);
            }
        }
    }

    fn with_peer(&self, act: impl FnOnce(&Peer)) {
        if let Some(peer) = &self.state.borrow().resources.peer {
            act(peer);
        }
    }

    fn acquire_microphone(self: &Rc<Self>) {
        let reporter = self.reporter();
        let (device_id, audio) = {
            let mut state = self.state.borrow_mut();
            (state.microphone_id.clone(), state.resources.audio.take())
        };
        let levels = self.callbacks.on_levels.is_some();
        spawn_local(async move {
            let opened = Microphone::open(device_id.as_deref(), audio, levels).await;
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

    fn create_peer(
        self: &Rc<Self>,
        ice_servers: &[colloquy_protocol::IceServer],
    ) -> Result<(), JsValue> {
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
        let peer = Peer::new(ice_servers, &track, reporter, play)?;
        peer.offer(false);
        state.resources.speaker = Some(speaker);
        state.resources.peer = Some(peer);
        Ok(())
    }

    fn play(&self, track: &MediaStreamTrack) {
        let mut state = self.state.borrow_mut();
        let Resources {
            microphone,
            speaker,
            ..
        } = &mut state.resources;
        if let Some(speaker) = speaker {
            speaker.play(track);
        }
        if self.callbacks.on_levels.is_some()
            && let Some(graph) = microphone.as_mut().and_then(Microphone::graph)
        {
            // A meter that a browser refuses shows nothing; the call needs none.
            let _ = graph.meter(track);
        }
    }

    fn watch_levels(&self) {
        if self.callbacks.on_levels.is_some() {
            let handler = self.on_levels.as_ref().unchecked_ref();
            let timeout = Timeout::new(handler, LEVELS_EVERY_MS);
            self.state.borrow_mut().resources.levels = Some(timeout);
        }
    }

    fn report_levels(&self) {
        let levels = {
            let mut state = self.state.borrow_mut();
            let microphone = state.resources.microphone.as_mut();
            let (microphone, speaker) = microphone.map_or((0.0, 0.0), |microphone| {
                let speaker = microphone.graph().map_or(0.0, Graph::speaker_level);
                (microphone.level(), speaker)
            });
            js::object([
                ("microphone", microphone.into()),
                ("speaker", speaker.into()),
            ])
        };
        self.watch_levels();
        if let Some(function) = &self.callbacks.on_levels {
            events::fire(function, &levels);
        }
    }
}

/// A configured speaker that cannot be used is told, and the call goes on with the system's.
fn report_speaker(chosen: js_sys::Promise, reporter: Reporter) {
    spawn_local(async move {
        if wasm_bindgen_futures::JsFuture::from(chosen).await.is_err()
            && let Some(driver) = reporter.active()
        {
            let error = ErrorCode::SpeakerMissing.into();
            driver.tell(Event::CallError(error));
        }
    });
}

/// Hangs up when the page goes away.
struct PageWatch {
    global: web_sys::EventTarget,
    on_hide: Closure<dyn FnMut()>,
}

impl PageWatch {
    fn new(driver: Weak<Driver>) -> Option<Self> {
        let global: web_sys::EventTarget = js_sys::global().unchecked_into();
        let on_hide = Closure::<dyn FnMut()>::new(move || {
            if let Some(driver) = driver.upgrade() {
                driver.handle(Input::HangUp);
            }
        });
        let listener = on_hide.as_ref().unchecked_ref();
        global
            .add_event_listener_with_callback("pagehide", listener)
            .ok()?;
        Some(Self { global, on_hide })
    }
}

impl Drop for PageWatch {
    fn drop(&mut self) {
        let listener = self.on_hide.as_ref().unchecked_ref();
        let _ = self
            .global
            .remove_event_listener_with_callback("pagehide", listener);
    }
}
