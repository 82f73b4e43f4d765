//! `CallManager`: the public operations, from JavaScript values to the driver and back.

use std::rc::Rc;

use colloquy_protocol::call::{Call, Input, Options, Start};
use colloquy_protocol::{CallError, Character, ErrorCode, NewCall, SessionState};
use js_sys::{Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use crate::config::Config;
use crate::driver::Driver;
use crate::events::Callbacks;
use crate::microphone::{Capture, DeviceId, media_devices};
use crate::{check, devices, errors, js};

/// Makes voice calls with a character, one at a time.
#[wasm_bindgen]
pub struct CallManager {
    driver: Rc<Driver>,
}

#[wasm_bindgen]
impl CallManager {
    /// Takes callbacks and configuration as the loader has checked them, and holds them while there is a call: the loader
    /// holds them as long as there is a manager. `worklet_url` is where `worklet.js` is served.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(callbacks: &Object, config: &JsValue, worklet_url: Option<String>) -> Self {
        let callbacks = Callbacks::new(callbacks);
        let config = Config::read(config);
        let driver = Driver::new(callbacks, config, worklet_url.unwrap_or_default());
        Self { driver }
    }

    /// Starts a call: with partner, character and API key, or with `null`, `null` and a signed URL.
    ///
    /// The promise resolves when the call is connected or over; failures of the call go to `onCallError`. It rejects
    /// only with `CALL_ACTIVE`, when a call is under way, which is left alone. `start_reported` says that `onCallStart`
    /// was fired already, while the wasm was being loaded.
    #[wasm_bindgen(js_name = handleCall2)]
    pub fn handle_call2(
        &self,
        partner: &JsValue,
        character: &JsValue,
        credential: &JsValue,
        custom_metadata: &JsValue,
        start_reported: bool,
    ) -> Promise {
        if self.driver.is_busy() {
            return Promise::reject(&errors::to_js(&ErrorCode::CallActive.into()));
        }
        let begun = preflight().and_then(|()| {
            self.driver.open_history()?;
            let options = self.options(custom_metadata)?;
            let start = self.start(partner, character, credential)?;
            Ok(Call::start(js::now_ms(), start, options))
        });
        let mut call = begun.unwrap_or_else(Call::refused);
        if start_reported {
            // The first of all outputs is the event for `onCallStart`.
            call.poll();
        }
        let mut call = Some(call);
        Promise::new(&mut |resolve, _reject| {
            if let Some(call) = call.take() {
                self.driver.run(call, resolve);
            }
        })
    }

    /// Ends the call; without one it does nothing.
    #[wasm_bindgen(js_name = hangUp)]
    pub fn hang_up(&self) {
        self.driver.handle(Input::HangUp);
    }

    /// Sends silence, or sound again. It also holds for later calls.
    pub fn mute(&self, is_muted: bool) {
        self.driver.state.borrow_mut().muted = is_muted;
        self.driver.handle(Input::Mute(is_muted));
    }

    /// The microphones and speakers. Labels and ids are empty before the visitor allowed the microphone once.
    #[wasm_bindgen(js_name = getAvailableDevices)]
    pub fn get_available_devices() -> Promise {
        future_to_promise(async { Ok(js::to_value(&devices::available().await?)) })
    }

    /// What a call would need: `config` is the constructor's.
    #[wasm_bindgen(js_name = preCallCheck)]
    pub fn pre_call_check(config: &JsValue) -> Promise {
        let config = Config::read(config);
        future_to_promise(async move { Ok(js::to_value(&check::run(&config).await)) })
    }

    /// Plays what the browser held back, and gets going again what it stopped. The promise resolves when the character
    /// can be heard, and rejects with `AUDIO_BLOCKED` when the browser still wants a click.
    #[wasm_bindgen(js_name = startAudio)]
    pub fn start_audio(&self) -> Promise {
        let playing = self.driver.resume_media();
        future_to_promise(async move {
            if let Some(playing) = playing {
                JsFuture::from(playing)
                    .await
                    .map_err(|_| errors::to_js(&ErrorCode::AudioBlocked.into()))?;
            }
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Switches devices; `null` keeps the current one. Without a call it chooses for the next one, while a call asks for
    /// the microphone for this one. Of two choices the later one counts, whichever the browser is done with first.
    ///
    /// The promise rejects with a `CallError` when a device cannot be used; the one in use then stays.
    #[wasm_bindgen(js_name = changeDevices)]
    pub fn change_devices(
        &self,
        microphone_id: Option<String>,
        speaker_id: Option<String>,
    ) -> Promise {
        let driver = Rc::clone(&self.driver);
        let choice = driver.state.borrow_mut().next_choice();
        future_to_promise(async move {
            if let Some(id) = microphone_id {
                change_microphone(&driver, choice, id).await?;
            }
            if let Some(id) = speaker_id {
                change_speaker(&driver, choice, id).await?;
            }
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Sends a typed turn; false when there is no connected call, the text is empty or too long, or too much waits for a
    /// connection that is away.
    #[wasm_bindgen(js_name = sendText)]
    pub fn send_text(&self, text: String) -> bool {
        let accepted = {
            let state = self.driver.state.borrow();
            state.call.as_ref().is_some_and(|c| c.accepts_text(&text))
        };
        self.driver.handle(Input::Text(text));
        accepted
    }

    /// The id of the running or last call, `/v2/calls/<id>`, once it is known.
    #[wasm_bindgen(getter, js_name = callId)]
    #[must_use]
    pub fn call_id(&self) -> Option<String> {
        let state = self.driver.state.borrow();
        let call_id = state.call.as_ref().and_then(Call::call_id);
        call_id.map(str::to_owned)
    }

    /// Takes up or leaves off what is done for listeners alone: they have changed.
    #[wasm_bindgen(js_name = listenersChanged)]
    pub fn listeners_changed(&self) {
        self.driver.listeners_changed();
    }

    /// `idle`, or the status of the running or last call.
    #[wasm_bindgen(js_name = getState)]
    #[must_use]
    pub fn get_state(&self) -> String {
        let state = self.driver.state.borrow();
        let name = match &state.call {
            None => "idle",
            Some(call) => call.status().unwrap_or(SessionState::Starting).as_str(),
        };
        name.to_owned()
    }
}

impl CallManager {
    fn options(&self, custom_metadata: &JsValue) -> Result<Options, CallError> {
        let metadata = if js::is_absent(custom_metadata) {
            None
        } else {
            let metadata = js::object_json(custom_metadata);
            Some(metadata.ok_or_else(|| invalid("customMetadata must be an object"))?)
        };
        let config = &self.driver.config;
        Ok(Options {
            metadata,
            character_role: config.character_role.clone(),
            person_role: config.person_role.clone(),
            muted: self.driver.state.borrow().muted,
            without_user_info: !self.driver.callbacks.has("onUserInfo"),
        })
    }

    fn start(
        &self,
        partner: &JsValue,
        character: &JsValue,
        credential: &JsValue,
    ) -> Result<Start, CallError> {
        let credential = credential
            .as_string()
            .ok_or_else(|| invalid("the credential must be a string"))?;
        if js::is_absent(partner) && js::is_absent(character) {
            let signed_url = credential;
            return Ok(Start::Server { signed_url });
        }
        let config = &self.driver.config;
        Ok(Start::Client(NewCall {
            backend_url: config.backend_url.clone(),
            partner: partner.as_string(),
            character: match js::object_json(character) {
                Some(json) => Character::Custom(json),
                None => Character::Saved(character.as_string().unwrap_or_default()),
            },
            key: credential,
            time_limit_seconds: config.time_limit_seconds,
            character_params: config.character_params.clone(),
        }))
    }
}

fn invalid(detail: &str) -> CallError {
    CallError::with_detail(ErrorCode::InvalidArgument, detail)
}

/// Checks what the browser must support before a call is created.
fn preflight() -> Result<(), CallError> {
    let global = js_sys::global();
    if media_devices().is_none() {
        return Err(devices::missing_devices_code().into());
    }
    for name in ["RTCPeerConnection", "WebSocket", "fetch"] {
        if js::get_function(&global, name).is_none() {
            return Err(CallError::with_detail(ErrorCode::UnsupportedBrowser, name));
        }
    }
    Ok(())
}

async fn change_microphone(driver: &Rc<Driver>, choice: u32, id: String) -> Result<(), JsValue> {
    let reporter = driver.reporter();
    let opened = if driver.state.borrow().resources.microphone.is_some() {
        let processing = driver.config.processing;
        let capture = Capture::open(Some(DeviceId::Exact(&id)), processing, reporter.clone()).await;
        Some(capture.map_err(|code| errors::to_js(&code.into()))?)
    } else {
        None
    };
    if driver.state.borrow().microphone.is_newer_than(choice) {
        return Ok(());
    }
    // A call that ended meanwhile wants no microphone any more.
    let switched = opened.filter(|_| reporter.active().is_some());
    let is_switched = switched.is_some();
    if let Some(capture) = switched {
        let busy = |_| errors::to_js(&ErrorCode::MicrophoneBusy.into());
        driver.use_capture(capture).map_err(busy)?;
    }
    driver.state.borrow_mut().microphone.choose(choice, id);
    if is_switched {
        driver.handle(Input::MicrophoneReady);
    }
    Ok(())
}

async fn change_speaker(driver: &Rc<Driver>, choice: u32, id: String) -> Result<(), JsValue> {
    if driver.state.borrow().speaker.is_newer_than(choice) {
        return Ok(());
    }
    play_on(driver, &id).await?;
    let overtaken = {
        let mut state = driver.state.borrow_mut();
        state.speaker.choose(choice, id);
        let newer = state.speaker.is_newer_than(choice);
        newer.then(|| state.speaker.id.clone()).flatten()
    };
    // The browser was done with a later choice sooner, and then undid it.
    match overtaken {
        Some(later) => play_on(driver, &later).await,
        None => Ok(()),
    }
}

/// Plays the running call, if there is one, on this speaker.
async fn play_on(driver: &Rc<Driver>, id: &str) -> Result<(), JsValue> {
    let chosen = {
        let mut state = driver.state.borrow_mut();
        state.resources.speaker.as_mut().map(|s| s.choose(id))
    };
    let used = match chosen {
        None => true,
        Some(None) => false,
        Some(Some(chosen)) => JsFuture::from(chosen).await.is_ok(),
    };
    let missing = || errors::to_js(&ErrorCode::SpeakerMissing.into());
    used.then_some(()).ok_or_else(missing)
}
