//! Runs the call state machine in the browser: carries out its commands, reports what happens, and fires callbacks.
//! What it does with microphone, speaker and their devices is in `sound`, what it reports regularly in `reports`.
//!
//! Nothing is borrowed while foreign code runs, so a callback may call any operation, `hangUp` and `handleCall2`
//! included.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use colloquy_protocol::call::{Call, Command, Event, Input, Output};
use colloquy_protocol::{CallError, ErrorCode, StatsMeter};
use js_sys::{Function, Object};
use wasm_bindgen::prelude::*;

use crate::audio_session::AudioSession;
use crate::config::Config;
use crate::create::Creation;
use crate::devices::Chosen;
use crate::events::Callbacks;
use crate::history::History;
use crate::js::{self, Alarm, Listener, Timeout};
use crate::microphone::Microphone;
use crate::page::PageWatch;
use crate::peer::Peer;
use crate::socket::Socket;
use crate::speaker::Speaker;
use crate::wake_lock::WakeLock;
use crate::worklet::Audio;
use crate::{errors, page};

/// What a call holds in the browser; dropping it releases everything.
#[derive(Default)]
pub(crate) struct Resources {
    creation: Option<Creation>,
    /// The audio context that waits for the microphone.
    pub(crate) audio: Option<Audio>,
    pub(crate) audio_session: Option<Rc<AudioSession>>,
    /// How long the call waits for the audio context.
    pub(crate) patience: Option<Alarm>,
    pub(crate) microphone: Option<Microphone>,
    socket: Option<Socket>,
    pub(crate) peer: Option<Peer>,
    pub(crate) speaker: Option<Speaker>,
    timer: Option<(u64, Timeout)>,
    pub(crate) levels: Option<Timeout>,
    pub(crate) stats: Option<(StatsMeter, Timeout)>,
    pub(crate) wake_lock: Option<WakeLock>,
    page_watch: Option<PageWatch>,
    /// The conversation in the page, which keeps what it shows.
    history: Option<History>,
}

/// What changes while a manager lives.
pub(crate) struct State {
    pub(crate) call: Option<Call>,
    /// Counts the calls, so that a late answer to an earlier one is told apart.
    pub(crate) generation: u32,
    pub(crate) resources: Resources,
    pub(crate) muted: bool,
    /// Counts the choices of devices.
    choices: u32,
    pub(crate) microphone: Chosen,
    pub(crate) speaker: Chosen,
    draining: bool,
    /// Settles the promise of `handleCall2`.
    started: Option<Function>,
    /// Keeps a running call and its callbacks alive when the page lets go of the manager.
    keep_alive: Option<(Rc<Driver>, Option<Object>)>,
}

impl State {
    /// The number of a choice of devices that is being made.
    pub(crate) fn next_choice(&mut self) -> u32 {
        self.choices += 1;
        self.choices
    }
}

/// A manager's state and what it was constructed with.
pub(crate) struct Driver {
    pub(crate) callbacks: Callbacks,
    pub(crate) config: Config,
    worklet_url: String,
    pub(crate) state: RefCell<State>,
    on_timer: Closure<dyn FnMut()>,
    pub(crate) on_levels: Closure<dyn FnMut()>,
    pub(crate) on_stats: Closure<dyn FnMut()>,
    _device_watch: Option<Listener>,
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
            let (timed, levelled, measured) = (weak.clone(), weak.clone(), weak.clone());
            let lists_devices = callbacks.has("onDevicesChanged");
            let watched = lists_devices.then(|| page::watch_devices(weak.clone()));
            Self {
                callbacks,
                worklet_url,
                state: RefCell::new(State {
                    call: None,
                    generation: 0,
                    resources: Resources::default(),
                    muted: false,
                    choices: 0,
                    microphone: Chosen::configured(&config.microphone_id),
                    speaker: Chosen::configured(&config.speaker_id),
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
                on_stats: Closure::new(move || {
                    if let Some(driver) = measured.upgrade() {
                        driver.report_stats();
                    }
                }),
                _device_watch: watched.flatten(),
            }
        })
    }

    /// Whether a call is under way. One whose `onHangUp` has begun is not any more: the next may start there.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.call.as_ref().is_some_and(|call| !call.is_over())
    }

    /// Makes the log of the conversation anew, where the page wants one.
    pub(crate) fn open_history(&self) -> Result<(), CallError> {
        let target = self.config.history_element();
        if !js::is_absent(&target) {
            let opened = History::open(&target).map_err(|why| {
                let detail = ["config.historyElement: ", why].concat();
                CallError::with_detail(ErrorCode::InvalidArgument, &detail)
            });
            self.state.borrow_mut().resources.history = Some(opened?);
        }
        Ok(())
    }

    /// Runs a call; `started` is called once it is connected or over.
    pub(crate) fn run(self: &Rc<Self>, call: Call, started: Function) {
        let is_ended = call.is_ended();
        {
            let mut state = self.state.borrow_mut();
            state.generation = state.generation.wrapping_add(1);
            state.call = Some(call);
            state.started = Some(started);
            state.keep_alive = Some((Rc::clone(self), self.callbacks.object()));
        }
        if !is_ended {
            // Here and now, because the visitor's click is still being handled.
            let audio = Audio::open(&self.worklet_url, &self.reporter());
            let mut state = self.state.borrow_mut();
            state.resources.audio = audio;
            state.resources.page_watch = Some(PageWatch::new(&Rc::downgrade(self)));
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

    fn tell(self: &Rc<Self>, event: Event) {
        let (started, _alive) = match &event {
            Event::Connected => {
                self.watch_levels();
                self.watch_stats();
                self.keep_awake();
                (self.state.borrow_mut().started.take(), None)
            }
            Event::HangUp => {
                let mut state = self.state.borrow_mut();
                (state.started.take(), state.keep_alive.take())
            }
            Event::Transcript(line) => {
                if let Some(history) = &mut self.state.borrow_mut().resources.history {
                    history.show(line);
                }
                (None, None)
            }
            _ => (None, None),
        };
        self.callbacks.tell(event);
        if let Some(started) = started {
            // What resolves a promise does not throw.
            let _ = started.call0(&JsValue::UNDEFINED);
        }
    }

    fn obey(self: &Rc<Self>, command: Command) {
        match command {
            Command::CreateCall(request) => {
                let creation = Creation::begin(request, self.reporter());
                self.state.borrow_mut().resources.creation = Some(creation);
            }
            Command::AcquireMicrophone => self.acquire_microphone(),
            Command::ReplaceMicrophone => self.replace_microphone(),
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
            Command::SayGoodbye(frames) => {
                if let Some(socket) = self.state.borrow_mut().resources.socket.take() {
                    socket.say_goodbye(frames);
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
}
