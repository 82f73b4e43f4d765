//! Runs the call state machine in the browser: carries out its commands, reports what happens, and fires callbacks.
//! What it does with microphone, speaker and their devices is in `sound`, what it reports regularly in `reports`.
//!
//! Nothing is borrowed while foreign code runs, so a callback may call any operation, `hangUp` and `handleCall2`
//! included.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use colloquy_protocol::call::{Call, Command, Event, Input, Output};
use colloquy_protocol::{CallError, ErrorCode, SessionState, StatsMeter};
use gloo_events::EventListener;
use gloo_timers::callback::Timeout;
use js_sys::{Function, Object};
use wasm_bindgen::prelude::*;

use crate::audio_session::AudioSession;
use crate::config::Config;
use crate::create::Creation;
use crate::devices::Chosen;
use crate::events::Callbacks;
use crate::history::History;
use crate::js::{self, TimeoutPromise};
use crate::microphone::Microphone;
use crate::page::PageWatch;
use crate::peer::Peer;
use crate::socket::Socket;
use crate::speaker::Speaker;
use crate::wake_lock::WakeLock;
use crate::worklet::Audio;
use crate::{errors, page, policy};

/// What a call holds in the browser; dropping it releases everything.
#[derive(Default)]
pub(crate) struct Resources {
    creation: Option<Creation>,
    /// The audio context that waits for the microphone.
    pub(crate) audio: Option<Audio>,
    pub(crate) audio_session: Option<Rc<AudioSession>>,
    /// The limit of the wait for the audio context.
    pub(crate) audio_timeout: Option<TimeoutPromise>,
    pub(crate) microphone: Option<Microphone>,
    socket: Option<Socket>,
    pub(crate) peer: Option<Peer>,
    pub(crate) speaker: Option<Speaker>,
    timer: Option<(u64, Timeout)>,
    pub(crate) levels: Option<Timeout>,
    pub(crate) stats: Option<(StatsMeter, Timeout)>,
    pub(crate) wake_lock: Option<WakeLock>,
    page_watch: Option<PageWatch>,
    policy_watch: Option<EventListener>,
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
    /// Follows the devices for a page that lists them.
    device_watch: Option<EventListener>,
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
}

/// Reports inputs to the call that it was made for, and to no later one.
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

    /// Reports that a connection failed, a moment later: the browser may tell that a policy blocked it. `current` is held
    /// while the connection is the call's.
    pub(crate) fn report_failure(&self, input: Input, current: &Rc<()>) {
        let reporter = self.clone();
        let current = Rc::downgrade(current);
        js::spawn(async move {
            js::sleep(policy::VIOLATION_DELAY_MS).await;
            if current.strong_count() > 0 {
                reporter.report(input);
            }
        });
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
            let device_watch = device_watch(&callbacks, weak);
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
                    device_watch,
                    started: None,
                    keep_alive: None,
                }),
                config,
            }
        })
    }

    /// Starts or stops what only listeners need, after listeners were added or removed.
    pub(crate) fn listeners_changed(self: &Rc<Self>) {
        let is_connected = {
            let mut state = self.state.borrow_mut();
            if state.device_watch.is_some() != self.callbacks.has("onDevicesChanged") {
                state.device_watch = device_watch(&self.callbacks, &Rc::downgrade(self));
            }
            let status = state.call.as_ref().and_then(Call::status);
            matches!(
                status,
                Some(SessionState::Ongoing | SessionState::Reconnecting)
            )
        };
        if is_connected {
            self.audio_changed();
            self.watch_levels();
            if self.state.borrow().resources.stats.is_none() {
                self.watch_stats();
            }
        }
    }

    /// Whether a call is under way. One whose `onHangUp` has begun is not any more: the next may start there.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.call.as_ref().is_some_and(|call| !call.is_over())
    }

    /// Opens a new log of the conversation, where one is configured.
    pub(crate) fn open_history(&self) -> Result<(), CallError> {
        let target = self.config.history_element();
        if !js::is_absent(&target) {
            let opened = History::open(&target).map_err(|why| {
                let detail = String::from_iter(["config.historyElement: ", why]);
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
            // Synchronously: an audio context starts only while the visitor's click is being handled.
            let audio = Audio::open(&self.worklet_url, &self.reporter());
            let mut state = self.state.borrow_mut();
            state.resources.audio = audio;
            state.resources.page_watch = Some(PageWatch::new(&Rc::downgrade(self)));
            state.resources.policy_watch = Some(policy::watch(Rc::downgrade(self)));
        }
        self.drain();
    }

    /// Passes an input to the call and carries out the outputs.
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

    /// Carries out all outputs in order. A callback that calls an operation only adds outputs.
    fn drain(self: &Rc<Self>) {
        if std::mem::replace(&mut self.state.borrow_mut().draining, true) {
            return;
        }
        while let Some(output) = self.next_output() {
            match output {
                Output::Event(event) => self.dispatch(event),
                Output::Command(command) => self.execute(command),
            }
        }
        self.state.borrow_mut().draining = false;
        self.arm_timer();
    }

    fn next_output(&self) -> Option<Output> {
        self.state.borrow_mut().call.as_mut()?.poll()
    }

    /// Calls `act` after `wait_ms`, unless the returned timeout or the manager is dropped before.
    pub(crate) fn schedule(self: &Rc<Self>, wait_ms: u32, act: fn(&Rc<Self>)) -> Timeout {
        let driver = Rc::downgrade(self);
        Timeout::new(wait_ms, move || {
            if let Some(driver) = driver.upgrade() {
                act(&driver);
            }
        })
    }

    fn arm_timer(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        let next = state.call.as_ref().and_then(Call::next_timeout);
        if state.resources.timer.as_ref().map(|timer| timer.0) != next {
            state.resources.timer = next.map(|at_ms| {
                let wait_ms = at_ms.saturating_sub(js::now_ms()) as u32;
                let timer = self.schedule(wait_ms, |driver| {
                    driver.state.borrow_mut().resources.timer = None;
                    driver.handle(Input::Timeout);
                });
                (at_ms, timer)
            });
        }
    }

    fn dispatch(self: &Rc<Self>, event: Event) {
        let (started, _alive) = match &event {
            Event::Connected => {
                self.watch_levels();
                self.watch_stats();
                self.hold_wake_lock();
                (self.state.borrow_mut().started.take(), None)
            }
            Event::HangUp(_) => {
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
        self.callbacks.dispatch(&event);
        if let Some(started) = started {
            // What resolves a promise does not throw.
            let _ = started.call0(&JsValue::UNDEFINED);
        }
    }

    fn execute(self: &Rc<Self>, command: Command) {
        match command {
            Command::CreateCall(request) => {
                let creation = Creation::begin(request, self.reporter());
                self.state.borrow_mut().resources.creation = Some(creation);
            }
            Command::AcquireMicrophone => self.acquire_microphone(),
            Command::ReplaceMicrophone => self.replace_microphone(),
            Command::OpenSocket(url) => {
                let socket = Socket::open(&url, self.reporter());
                self.state.borrow_mut().resources.socket = Some(socket);
            }
            Command::CloseSocket => self.state.borrow_mut().resources.socket = None,
            Command::Send(frame) => {
                if let Some(socket) = &self.state.borrow().resources.socket {
                    socket.send(&frame);
                }
            }
            Command::SendAndClose(frames) => {
                if let Some(socket) = self.state.borrow_mut().resources.socket.take() {
                    socket.send_and_close(frames);
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

fn device_watch(callbacks: &Callbacks, driver: &Weak<Driver>) -> Option<EventListener> {
    let listens = callbacks.has("onDevicesChanged");
    listens
        .then(|| page::watch_devices(driver.clone()))
        .flatten()
}
