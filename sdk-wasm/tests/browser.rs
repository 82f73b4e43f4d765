//! `CallManager` in a real browser, against a backend inside the page.
#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a test fails where it is wrong")]

use colloquy_sdk::CallManager;
use js_sys::{Array, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen(module = "/tests/fake_backend.js")]
extern "C" {
    type Backend;
    #[wasm_bindgen(constructor)]
    fn new() -> Backend;
    #[wasm_bindgen(method)]
    fn uninstall(this: &Backend);
    #[wasm_bindgen(method)]
    fn callbacks(this: &Backend, throwing: bool) -> JsValue;
    #[wasm_bindgen(method)]
    fn refuse(this: &Backend, status: u16);
    #[wasm_bindgen(method, js_name = refuseMicrophone)]
    fn refuse_microphone(this: &Backend, name: &str);
    #[wasm_bindgen(method)]
    fn say(this: &Backend, frame: &str);
    #[wasm_bindgen(method)]
    fn cut(this: &Backend);
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

const SIGNED_URL: &str = "wss://calls.invalid/v2/calls/1/session";

/// A backend and a manager connected to it.
struct Scene {
    backend: Backend,
    manager: CallManager,
}

impl Scene {
    fn new() -> Self {
        Self::with(false, script_url(include_str!("../../js/src/worklet.js")))
    }

    fn with(throwing: bool, worklet_url: String) -> Self {
        let backend = Backend::new();
        let callbacks = backend.callbacks(throwing);
        let config = js_sys::Object::new();
        Reflect::set(
            &config,
            &"BACKEND_URL".into(),
            &"https://calls.invalid".into(),
        )
        .unwrap();
        let manager = CallManager::new(&callbacks, &config, Some(worklet_url)).unwrap();
        Self { backend, manager }
    }

    fn call(&self) -> Promise {
        let null = JsValue::NULL;
        self.manager
            .handle_call2(&null, &null, &SIGNED_URL.into(), &null)
    }

    async fn connected() -> Self {
        let scene = Self::new();
        settle(scene.call()).await;
        scene.heard("onStatusUpdate \"ongoing\"").await;
        scene
    }

    async fn heard(&self, text: &str) {
        JsFuture::from(self.backend.wait_for(text)).await.unwrap();
    }

    /// Waits until the visitor is heard.
    async fn hears(&self) {
        JsFuture::from(self.backend.hears()).await.unwrap();
    }

    /// Listens for a while to a visitor who is muted.
    async fn hears_nothing(&self, when: &str) {
        let energy = JsFuture::from(self.backend.energy()).await.unwrap();
        let energy = energy.as_f64().unwrap();
        assert!(energy < 1e-6, "heard {energy} {when}");
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

async fn settle(promise: Promise) {
    JsFuture::from(promise).await.unwrap();
}

/// The identifier of the microphone that is listed last.
async fn last_microphone() -> Option<String> {
    let devices = JsFuture::from(CallManager::get_available_devices())
        .await
        .unwrap();
    let microphones = Reflect::get(&devices, &"microphones".into()).unwrap();
    let last = Array::from(&microphones).pop();
    Reflect::get(&last, &"deviceId".into()).unwrap().as_string()
}

fn code_of(error: &JsValue) -> String {
    let code = Reflect::get(error, &"code".into()).unwrap();
    code.as_string().unwrap_or_default()
}

#[wasm_bindgen_test]
fn the_constructor_names_a_missing_callback() {
    let none = JsValue::UNDEFINED;
    let error = CallManager::new(&none, &none, None).err().unwrap();
    assert_eq!(code_of(&error), "INVALID_ARGUMENT");
    for name in ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate"] {
        let backend = Backend::new();
        let callbacks = backend.callbacks(false);
        Reflect::set(&callbacks, &name.into(), &7.into()).unwrap();
        let error = CallManager::new(&callbacks, &none, None).err().unwrap();
        let error: js_sys::Error = error.unchecked_into();
        assert!(error.message().includes(name, 0));
        assert_eq!(error.name(), "CallError");
        backend.uninstall();
    }
}

#[wasm_bindgen_test]
async fn devices_are_listed_with_one_default() {
    let devices = JsFuture::from(CallManager::get_available_devices())
        .await
        .unwrap();
    let microphones: Array = Reflect::get(&devices, &"microphones".into())
        .unwrap()
        .unchecked_into();
    assert!(microphones.length() > 0);
    let defaults = microphones
        .iter()
        .filter(|device| Reflect::get(device, &"isDefault".into()).unwrap() == true);
    assert_eq!(defaults.count(), 1);
    assert!(
        Reflect::get(&devices, &"speakers".into())
            .unwrap()
            .is_array()
    );
}

#[wasm_bindgen_test]
async fn a_call_in_client_mode_runs_in_the_documents_order() {
    let scene = Scene::new();
    assert_eq!(scene.manager.get_state(), "idle");
    let metadata = js_sys::JSON::parse(r#"{"page":"start"}"#).unwrap();
    let started = scene.manager.handle_call2(
        &"repo:acme".into(),
        &"guide".into(),
        &"the-key".into(),
        &metadata,
    );
    assert_eq!(scene.manager.get_state(), "starting");
    settle(started).await;
    scene.heard("\"ongoing\"").await;
    assert_eq!(
        scene.backend.request(),
        r#"{"url":"https://calls.invalid/v2/calls","key":"the-key","body":{"character":"repo:acme/guide","call_time_limit_seconds":"600"}}"#
    );
    scene
        .backend
        .say(r#"{"type":"agent_state","state":"thinking"}"#);
    scene.backend.say(
        r#"{"type":"transcript","id":"1","originator":"bot","text":"Hello.","final":true,"at_ms":5}"#,
    );
    scene
        .backend
        .say(r#"{"type":"user_info","info":"likes tea"}"#);
    scene.backend.say(
        r#"{"type":"rag_info","total_tokens":3,"documents":[{"title":"Tea","fusion_score":0.5,"token_count":3}]}"#,
    );
    scene.heard("onRagInfo").await;
    assert!(scene.manager.send_text("hello".into()));
    assert!(!scene.manager.send_text(" ".into()));
    assert_eq!(
        scene.backend.last_frame(),
        r#"{"type":"text","text":"hello"}"#
    );
    scene.manager.hang_up();
    scene.manager.hang_up();
    assert_eq!(scene.manager.get_state(), "completed");
    assert!(scene.backend.frames().ends_with("hang_up"));
    assert!(scene.backend.is_released());
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onStatusUpdate \"starting\"",
            "onCallStarting",
            "onConnected",
            "onStatusUpdate \"ongoing\"",
            "onAgentStateChange \"thinking\"",
            r#"onTranscript {"id":"1","originator":"bot","role":"Guide","text":"Hello.","final":true,"atMs":5}"#,
            "onUserInfo \"likes tea\"",
            r#"onRagInfo {"documents":[{"title":"Tea","fusion_score":0.5,"token_count":3}],"count":1,"total_tokens":3}"#,
            "onStatusUpdate \"completed\"",
            "onHangUp",
        ]
    );
}

#[wasm_bindgen_test]
async fn a_hang_up_during_the_permission_releases_the_microphone() {
    let scene = Scene::new();
    let started = scene.call();
    scene.manager.hang_up();
    settle(started).await;
    settle(wait(1_500)).await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onStatusUpdate \"starting\"",
            "onStatusUpdate \"completed\"",
            "onHangUp"
        ]
    );
    assert!(scene.backend.captures() <= 1);
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn a_refused_microphone_and_a_refused_key_have_their_codes() {
    let scene = Scene::new();
    scene.backend.refuse_microphone("NotAllowedError");
    settle(scene.call()).await;
    assert_eq!(
        scene.log()[2..],
        [
            "onCallError CallError:MICROPHONE_DENIED",
            "onStatusUpdate \"error\"",
            "onHangUp"
        ]
    );
    drop(scene);

    let scene = Scene::new();
    scene.backend.refuse(401);
    let null = JsValue::NULL;
    let key = "wrong".into();
    settle(
        scene
            .manager
            .handle_call2(&"repo:acme".into(), &"guide".into(), &key, &null),
    )
    .await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onCallError CallError:INVALID_KEY",
            "onHangUp"
        ]
    );
}

#[wasm_bindgen_test]
async fn arguments_that_cannot_work_end_the_call_and_not_the_page() {
    let scene = Scene::new();
    let null = JsValue::NULL;
    settle(scene.manager.handle_call2(&null, &null, &null, &null)).await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onCallError CallError:INVALID_ARGUMENT",
            "onHangUp"
        ]
    );
}

#[wasm_bindgen_test]
async fn a_second_call_is_refused_and_a_later_one_is_not() {
    let scene = Scene::new();
    let first = scene.call();
    let refused = JsFuture::from(scene.call()).await.unwrap_err();
    assert_eq!(code_of(&refused), "CALL_ACTIVE");
    settle(first).await;
    scene.manager.hang_up();
    settle(scene.call()).await;
    let count = |name: &str| scene.log().iter().filter(|line| *line == name).count();
    assert_eq!((count("onCallStart"), count("onHangUp")), (2, 1));
}

#[wasm_bindgen_test]
async fn callbacks_that_throw_do_not_break_a_call() {
    let worklet = script_url(include_str!("../../js/src/worklet.js"));
    let scene = Scene::with(true, worklet);
    settle(scene.call()).await;
    scene.heard("\"ongoing\"").await;
    scene.backend.say(r#"{"type":"bye","reason":"time_limit"}"#);
    scene.heard("onHangUp").await;
    assert!(
        scene
            .log()
            .contains(&"onStatusUpdate \"completed\"".to_owned())
    );
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn mute_is_silence_and_survives_a_change_of_device() {
    let scene = Scene::connected().await;
    scene.hears().await;
    scene.manager.mute(true);
    settle(wait(SETTLES_MS)).await;
    scene.hears_nothing("while muted").await;

    let id = last_microphone().await;
    settle(scene.manager.change_devices(id, None)).await;
    assert_eq!(scene.backend.captures(), 2);
    scene.hears_nothing("after the change").await;
    scene.manager.mute(false);
    scene.hears().await;
    assert_eq!(scene.backend.frames().matches("offer").count(), 1);
}

#[wasm_bindgen_test]
async fn a_device_that_is_not_there_leaves_the_call_as_it_is() {
    let scene = Scene::connected().await;
    let missing = Some("no-such-device".to_owned());
    let changed = scene.manager.change_devices(missing, None);
    // Firefox's fake devices ignore the identifier.
    if let Err(error) = JsFuture::from(changed).await {
        assert_eq!(code_of(&error), "MICROPHONE_MISSING");
    }
    settle(wait(SETTLES_MS)).await;
    scene.hears().await;
}

#[wasm_bindgen_test]
async fn a_worklet_that_cannot_be_loaded_is_done_without() {
    let scene = Scene::with(false, "/no-such-worklet.js".to_owned());
    settle(scene.call()).await;
    scene.heard("\"ongoing\"").await;
    scene.hears().await;
    scene.manager.mute(true);
    settle(wait(SETTLES_MS)).await;
    scene.hears_nothing("while muted").await;
    let id = last_microphone().await;
    settle(scene.manager.change_devices(id, None)).await;
    scene.hears_nothing("after the change").await;
}

#[wasm_bindgen_test]
async fn a_lost_socket_comes_back_while_the_sound_goes_on() {
    let scene = Scene::connected().await;
    scene.backend.cut();
    scene.heard("reconnecting").await;
    settle(wait(800)).await;
    assert_eq!(scene.manager.get_state(), "ongoing");
    assert_eq!(scene.backend.frames().matches("hello").count(), 2);
    assert_eq!(scene.backend.frames().matches("offer").count(), 1);
    scene.hears().await;
}
