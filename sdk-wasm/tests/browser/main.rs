//! `CallManager` in a real browser, against a backend inside the page.
#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a test fails where it is wrong")]

mod calls;
mod page;
mod sound;

use colloquy_sdk::CallManager;
use js_sys::{Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen(module = "/tests/fake_backend.js")]
extern "C" {
    type Backend;
    #[wasm_bindgen(constructor)]
    fn new() -> Backend;
    #[wasm_bindgen(method)]
    fn uninstall(this: &Backend);
    #[wasm_bindgen(method)]
    fn callbacks(this: &Backend, throwing: bool) -> Object;
    #[wasm_bindgen(method)]
    fn refuse(this: &Backend, status: u16);
    #[wasm_bindgen(method, js_name = refuseMicrophone)]
    fn refuse_microphone(this: &Backend, name: &str, ms: u32);
    #[wasm_bindgen(method, js_name = allowMicrophone)]
    fn allow_microphone(this: &Backend);
    #[wasm_bindgen(method, js_name = allowAnyMicrophone)]
    fn allow_any_microphone(this: &Backend);
    #[wasm_bindgen(method, js_name = delayMicrophone)]
    fn delay_microphone(this: &Backend, ms: u32);
    #[wasm_bindgen(method)]
    fn asked(this: &Backend) -> u32;
    #[wasm_bindgen(method, js_name = openMicrophones)]
    fn open_microphones(this: &Backend) -> String;
    #[wasm_bindgen(method)]
    fn configuration(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = addAudioSession)]
    fn add_audio_session(this: &Backend);
    #[wasm_bindgen(method, js_name = sessionTypes)]
    fn session_types(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = chooseSpeakers)]
    fn choose_speakers(this: &Backend, how: &str, ms: u32);
    #[wasm_bindgen(method)]
    fn sinks(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = listSpeakers)]
    fn list_speakers(this: &Backend, ids: &str);
    #[wasm_bindgen(method, js_name = delayWorklet)]
    fn delay_worklet(this: &Backend, ms: u32);
    #[wasm_bindgen(method, js_name = holdAudio)]
    fn hold_audio(this: &Backend, state: &str);
    #[wasm_bindgen(method, js_name = releaseAudio)]
    fn release_audio(this: &Backend) -> Promise;
    #[wasm_bindgen(method, js_name = audioIsClosed)]
    fn audio_is_closed(this: &Backend) -> bool;
    #[wasm_bindgen(method, js_name = hasLevel)]
    fn has_level(this: &Backend) -> Promise;
    #[wasm_bindgen(method)]
    fn unplug(this: &Backend);
    #[wasm_bindgen(method, js_name = deviceChange)]
    fn device_change(this: &Backend);
    #[wasm_bindgen(method, js_name = ignoreConnections)]
    fn ignore_connections(this: &Backend, count: u32);
    #[wasm_bindgen(method)]
    fn given(this: &Backend, name: &str) -> String;
    #[wasm_bindgen(method, js_name = failCheck)]
    fn fail_check(this: &Backend, how: &str);
    #[wasm_bindgen(method, js_name = refuseChecks)]
    fn refuse_checks(this: &Backend, times: u32, status: u16, retry_after: &str);
    #[wasm_bindgen(method, getter)]
    fn checks(this: &Backend) -> u32;
    #[wasm_bindgen(method, getter, js_name = waitedMs)]
    fn waited_ms(this: &Backend) -> f64;
    #[wasm_bindgen(method)]
    fn hurry(this: &Backend, times: u32);
    #[wasm_bindgen(method)]
    fn permit(this: &Backend, state: &str);
    #[wasm_bindgen(method, js_name = withoutDevices)]
    fn without_devices(this: &Backend, how: &str);
    #[wasm_bindgen(method, getter)]
    fn aborted(this: &Backend) -> u32;
    #[wasm_bindgen(method, js_name = stopPlayback)]
    fn stop_playback(this: &Backend);
    #[wasm_bindgen(method)]
    fn visitor(this: &Backend, event: &str);
    #[wasm_bindgen(method, js_name = delayOpening)]
    fn delay_opening(this: &Backend, ms: u32);
    #[wasm_bindgen(method)]
    fn listeners(this: &Backend) -> u32;
    #[wasm_bindgen(method, js_name = readAloud)]
    fn read_aloud(this: &Backend);
    #[wasm_bindgen(method)]
    fn said(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = historyName)]
    fn history_name(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = stopAudio)]
    fn stop_audio(this: &Backend, for_good: bool) -> Promise;
    #[wasm_bindgen(method, js_name = restartAudio)]
    fn restart_audio(this: &Backend) -> Promise;
    #[wasm_bindgen(method, js_name = blockPlayback)]
    fn block_playback(this: &Backend, blocked: bool);
    #[wasm_bindgen(method)]
    fn constraints(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = addElement)]
    fn add_element(this: &Backend, id: &str);
    #[wasm_bindgen(method)]
    fn element(this: &Backend) -> JsValue;
    #[wasm_bindgen(method)]
    fn restyle(this: &Backend, css: &str);
    #[wasm_bindgen(method, js_name = styleOf)]
    fn style_of(this: &Backend, part: &str, property: &str) -> String;
    #[wasm_bindgen(method, js_name = isStyled)]
    fn is_styled(this: &Backend) -> bool;
    #[wasm_bindgen(method)]
    fn history(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = scrollUp)]
    fn scroll_up(this: &Backend);
    #[wasm_bindgen(method, js_name = scrolledToEnd)]
    fn scrolled_to_end(this: &Backend) -> bool;
    #[wasm_bindgen(method)]
    fn stats(this: &Backend) -> JsValue;
    #[wasm_bindgen(method, js_name = hidePage)]
    fn hide_page(this: &Backend);
    #[wasm_bindgen(method, js_name = wakeLocks)]
    fn wake_locks(this: &Backend) -> String;
    #[wasm_bindgen(method)]
    fn say(this: &Backend, frame: &str);
    #[wasm_bindgen(method, js_name = sayRaw)]
    fn say_raw(this: &Backend, data: &str);
    #[wasm_bindgen(method)]
    fn cut(this: &Backend);
    #[wasm_bindgen(method, js_name = cut)]
    fn close(this: &Backend, code: u16);
    #[wasm_bindgen(method, js_name = failSocket)]
    fn fail_socket(this: &Backend);
    #[wasm_bindgen(method)]
    fn violate(this: &Backend, disposition: &str, url: &str);
    #[wasm_bindgen(method)]
    fn log(this: &Backend) -> String;
    #[wasm_bindgen(method)]
    fn frames(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = lastFrame)]
    fn last_frame(this: &Backend) -> String;
    #[wasm_bindgen(method)]
    fn request(this: &Backend) -> String;
    #[wasm_bindgen(method, js_name = isReleased)]
    fn is_released(this: &Backend) -> bool;
    #[wasm_bindgen(method)]
    fn captures(this: &Backend) -> u32;
    #[wasm_bindgen(method, js_name = waitFor)]
    fn wait_for(this: &Backend, text: &str) -> Promise;
    #[wasm_bindgen(method)]
    fn energy(this: &Backend) -> Promise;
    #[wasm_bindgen(method)]
    fn hears(this: &Backend) -> Promise;
    fn wait(ms: u32) -> Promise;
    #[wasm_bindgen(js_name = scriptUrl)]
    fn script_url(source: &str) -> String;
}

/// What was said before a change is still in the jitter buffer for a moment.
const SETTLES_MS: u32 = 1_000;

/// The sound energy below which nothing is heard.
const SILENCE: f64 = 1e-6;

const BACKEND_URL: &str = "https://calls.invalid";

const SIGNED_URL: &str = "wss://calls.invalid/v2/calls/1/session";

/// A backend and a manager connected to it.
struct Scene {
    backend: Backend,
    manager: CallManager,
    /// Callbacks and configuration, which the manager does not hold.
    _held: [Object; 2],
}

/// Where the SDK finds its worklet.
fn worklet() -> String {
    script_url(include_str!("../../../js/src/worklet.js"))
}

impl Scene {
    fn new() -> Self {
        Self::with(false, worklet())
    }

    fn with(throwing: bool, worklet_url: String) -> Self {
        Self::configured(throwing, worklet_url, "{}")
    }

    /// A manager with these keys of the configuration besides the usual one.
    fn configured(throwing: bool, worklet_url: String, config: &str) -> Self {
        Self::with_backend(Backend::new(), throwing, worklet_url, &parsed(config))
    }

    /// The same with a backend that was prepared, and a configuration that JSON cannot say.
    fn with_backend(
        backend: Backend,
        throwing: bool,
        worklet_url: String,
        config: &Object,
    ) -> Self {
        let callbacks = backend.callbacks(throwing);
        Reflect::set(config, &"BACKEND_URL".into(), &BACKEND_URL.into()).unwrap();
        let manager = CallManager::new(&callbacks, config, Some(worklet_url));
        Self {
            backend,
            manager,
            _held: [callbacks, config.clone()],
        }
    }

    fn call(&self) -> Promise {
        let null = JsValue::NULL;
        self.manager
            .handle_call2(&null, &null, &SIGNED_URL.into(), &null, false)
    }

    async fn connected() -> Self {
        let scene = Self::new();
        scene.connect().await;
        scene
    }

    async fn connect(&self) {
        settle(self.call()).await;
        self.heard("onStatusUpdate \"ongoing\"").await;
    }

    async fn heard(&self, text: &str) {
        JsFuture::from(self.backend.wait_for(text)).await.unwrap();
    }

    /// Waits until the visitor is heard.
    async fn hears(&self) {
        JsFuture::from(self.backend.hears()).await.unwrap();
    }

    /// Listens to a visitor who is muted, each time for longer than the fake microphone pauses. On a busy machine what was
    /// said before takes its time to arrive.
    async fn hears_nothing(&self, when: &str) {
        let mut heard = self.energy().await;
        for _ in 0..3 {
            if heard >= SILENCE {
                heard = self.energy().await;
            }
        }
        assert!(heard < SILENCE, "heard {heard} {when}");
    }

    async fn energy(&self) -> f64 {
        let energy = JsFuture::from(self.backend.energy()).await.unwrap();
        energy.as_f64().unwrap()
    }

    fn log(&self) -> Vec<String> {
        self.backend.log().lines().map(str::to_owned).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.manager.hang_up();
        self.backend.uninstall();
    }
}

fn parsed(json: &str) -> Object {
    js_sys::JSON::parse(json).unwrap().unchecked_into()
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        settle(wait(20)).await;
    }
    assert!(is_so(), "{what}");
}

async fn settle(promise: Promise) {
    JsFuture::from(promise).await.unwrap();
}

fn code_of(error: &JsValue) -> String {
    let code = Reflect::get(error, &"code".into()).unwrap();
    code.as_string().unwrap_or_default()
}
