//! What surrounds a call: the conversation in the page, statistics, the screen, the check before a call.

use wasm_bindgen_test::wasm_bindgen_test;

use super::*;

const USER_LINE: &str = r#"{"type":"transcript","id":"1","originator":"user","text":"<b>Hi</b>","final":false,"at_ms":5}"#;
const USER_LINE_LATER: &str = r#"{"type":"transcript","id":"1","originator":"user","text":"<b>Hi</b> there","final":true,"at_ms":5}"#;
const BOT_LINE: &str =
    r#"{"type":"transcript","id":"2","originator":"bot","text":"Hello.","final":true,"at_ms":9}"#;

#[wasm_bindgen_test]
async fn the_conversation_is_shown_in_an_element() {
    let config = r#"{"historyElement":"history","personRole":"Visitor"}"#;
    let scene = Scene::configured(false, worklet(), config);
    scene.backend.add_element("history");
    scene.connect().await;
    for frame in [USER_LINE, BOT_LINE] {
        scene.backend.say(frame);
    }
    scene.heard("Hello.").await;
    assert_eq!(
        scene.backend.history(),
        "log: line user interim=Visitor: <b>Hi</b> | line bot=Guide: Hello."
    );
    scene.backend.say(USER_LINE_LATER);
    scene.heard("there").await;
    assert_eq!(
        scene.backend.history(),
        "log: line user=Visitor: <b>Hi</b> there | line bot=Guide: Hello."
    );
    scene.manager.hang_up();
    assert!(
        scene.backend.history().contains("Hello."),
        "it stays after the end"
    );
    scene.connect().await;
    assert_eq!(
        scene.backend.history(),
        "log: ",
        "the next call begins anew"
    );
}

#[wasm_bindgen_test]
async fn the_newest_line_is_followed_unless_the_visitor_scrolled_up() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    scene.connect().await;
    for id in 0..30 {
        scene.backend.say(&line(id));
    }
    scene.heard("line 29").await;
    assert!(scene.backend.scrolled_to_end());
    scene.backend.scroll_up();
    scene.backend.say(&line(30));
    scene.heard("line 30").await;
    assert!(!scene.backend.scrolled_to_end(), "the visitor reads above");
}

fn line(id: u32) -> String {
    format!(
        r#"{{"type":"transcript","id":"{id}","originator":"bot","text":"line {id}","final":true,"at_ms":{id}}}"#
    )
}

#[wasm_bindgen_test]
async fn an_element_that_is_not_there_is_named() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"nowhere"}"#);
    settle(scene.call()).await;
    assert_eq!(scene.log()[1], "onError CallError:INVALID_ARGUMENT");
    assert_eq!(scene.log().last().map(String::as_str), Some("onHangUp"));
}

#[wasm_bindgen_test]
fn a_configuration_that_cannot_be_used_is_named() {
    let backend = Backend::new();
    for (config, name) in [
        (r#"{"audio":7}"#, "config.audio"),
        (
            r#"{"audio":{"echoCancellation":"yes"}}"#,
            "config.audio.echoCancellation",
        ),
        (r#"{"iceServers":{}}"#, "config.iceServers"),
        (
            r#"{"iceTransportPolicy":"direct"}"#,
            "config.iceTransportPolicy",
        ),
        (r#"{"wakeLock":1}"#, "config.wakeLock"),
        (r#"{"historyElement":1}"#, "config.historyElement"),
    ] {
        let config = js_sys::JSON::parse(config).unwrap();
        let error = CallManager::new(&backend.callbacks(false), &config, None)
            .err()
            .unwrap();
        assert_eq!(code_of(&error), "INVALID_ARGUMENT");
        let error: js_sys::Error = error.unchecked_into();
        assert!(error.message().includes(name, 0), "{name}");
    }
    backend.uninstall();
}

#[wasm_bindgen_test]
async fn statistics_come_every_two_seconds() {
    let scene = Scene::connected().await;
    scene.heard("onStats").await;
    // The first report has no rates.
    settle(wait(2_500)).await;
    let stats = scene.backend.stats();
    let shown: String = js_sys::JSON::stringify(&stats).unwrap().into();
    let number = |name: &str| Reflect::get(&stats, &name.into()).unwrap().as_f64();
    assert!(number("bitrateSent") > Some(500.0), "{shown}");
    assert!(
        number("roundTripMs").is_some_and(|ms| ms < 1_000.0),
        "{shown}"
    );
    let text = |name: &str| Reflect::get(&stats, &name.into()).unwrap().as_string();
    assert_eq!(text("protocol").as_deref(), Some("udp"), "{shown}");
    assert!(text("quality").is_some());
}

#[wasm_bindgen_test]
async fn the_screen_stays_on_during_a_call_and_only_then() {
    let scene = Scene::new();
    scene.connect().await;
    settle(wait(100)).await;
    assert_eq!(scene.backend.wake_locks(), "held");
    scene.manager.hang_up();
    assert_eq!(scene.backend.wake_locks(), "released");
    drop(scene);

    let scene = Scene::configured(false, worklet(), r#"{"wakeLock":false}"#);
    scene.connect().await;
    settle(wait(100)).await;
    assert_eq!(scene.backend.wake_locks(), "");
}

#[wasm_bindgen_test]
async fn the_check_before_a_call_finds_what_is_there() {
    let backend = Backend::new();
    let report = check().await;
    assert!(report.contains(r#""backend":{"ok":true"#), "{report}");
    assert!(report.contains(r#""media":{"ok":true"#), "{report}");
    assert!(report.contains(r#""protocol":"udp""#), "{report}");
    assert!(
        report.starts_with(r#"{"ok":true,"permission":"#),
        "{report}"
    );
    assert_eq!(backend.captures(), 0, "it asks for no microphone");

    backend.refuse(503);
    let report = check().await;
    assert!(
        report.contains(r#""backend":{"ok":false,"code":"CAPACITY""#),
        "{report}"
    );
    assert!(report.starts_with(r#"{"ok":false"#), "{report}");
    backend.uninstall();
}

async fn check() -> String {
    let config = Object::new();
    Reflect::set(&config, &"backendUrl".into(), &BACKEND_URL.into()).unwrap();
    let report = JsFuture::from(CallManager::pre_call_check(&config).unwrap()).await;
    js_sys::JSON::stringify(&report.unwrap()).unwrap().into()
}
