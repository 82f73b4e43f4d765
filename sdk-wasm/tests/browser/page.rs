//! What surrounds a call: the conversation in the page, statistics, the screen, the check before a call.

use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::{Element, ShadowRootInit, ShadowRootMode};

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
async fn a_screen_reader_is_given_each_line_once_when_its_words_are_final() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    scene.connect().await;
    assert_eq!(scene.backend.history_name(), "Conversation");
    scene.backend.read_aloud();
    // The last words of a line are those that it has.
    let spoken = BOT_LINE.replace("true", "false");
    for frame in [USER_LINE, USER_LINE_LATER, &spoken, BOT_LINE] {
        scene.backend.say(frame);
    }
    scene.heard(r#""Hello.","final":true"#).await;
    settle(wait(0)).await;
    assert_eq!(scene.backend.said(), "You: <b>Hi</b> there | Guide: Hello.");
    scene.manager.hang_up();
    let element: Element = scene.backend.element().unchecked_into();
    element.set_attribute("aria-label", "Talk").unwrap();
    scene.connect().await;
    assert_eq!(scene.backend.history_name(), "Talk");
}

#[wasm_bindgen_test]
async fn words_that_were_taken_back_are_hidden() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    scene.connect().await;
    scene.backend.say(USER_LINE);
    scene.heard("<b>Hi</b>").await;
    let element: Element = scene.backend.element().unchecked_into();
    let hidden = || {
        let root = element.shadow_root().unwrap();
        root.query_selector("p[hidden]").unwrap().is_some()
    };
    assert!(!hidden());
    scene
        .backend
        .say(&USER_LINE_LATER.replace("<b>Hi</b> there", ""));
    scene.heard(r#""text":"","final":true"#).await;
    assert!(hidden());
}

#[wasm_bindgen_test]
async fn what_a_page_has_in_a_shadow_root_stays() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    let element: Element = scene.backend.element().unchecked_into();
    let open = ShadowRootInit::new(ShadowRootMode::Open);
    let root = element.attach_shadow(&open).unwrap();
    root.set_inner_html("<p>the page's</p>");
    settle(scene.call()).await;
    assert_eq!(scene.log()[1], "onError CallError:INVALID_ARGUMENT");
    assert_eq!(root.inner_html(), "<p>the page's</p>");
}

#[wasm_bindgen_test]
async fn devices_are_listened_to_in_a_call_and_for_a_page_that_lists_them() {
    let scene = Scene::new();
    assert_eq!(scene.backend.listeners(), 1);
    scene.connect().await;
    assert_eq!(scene.backend.listeners(), 2);
    let callbacks = scene.backend.callbacks(false);
    Reflect::delete_property(&callbacks, &"onDevicesChanged".into()).unwrap();
    let null = JsValue::NULL;
    let other = CallManager::new(&callbacks, &null, None);
    assert_eq!(scene.backend.listeners(), 2, "nobody listens to it");
    scene.manager.hang_up();
    settle(other.handle_call2(&null, &null, &SIGNED_URL.into(), &null, false)).await;
    assert_eq!(scene.backend.listeners(), 2);
    // The page may let go of a manager in a call.
    drop(other);
    assert_eq!(scene.backend.listeners(), 2);
    scene.backend.say(r#"{"type":"bye","reason":"time_limit"}"#);
    until("the call is over", || scene.backend.listeners() == 1).await;
}

#[wasm_bindgen_test]
async fn the_newest_line_is_followed_unless_the_visitor_scrolled_up() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    for (css, call) in [
        ("#history { height: 100px; overflow: auto }", 0),
        ("#history::part(log) { height: 100px; overflow-y: auto }", 1),
    ] {
        scene.backend.restyle(css);
        scene.connect().await;
        let first = call * 100;
        for id in first..first + 30 {
            scene.backend.say(&line(id));
        }
        scene.heard(&format!("line {}\"", first + 29)).await;
        assert!(scene.backend.scrolled_to_end(), "{css}");
        scene.backend.scroll_up();
        scene.backend.say(&line(first + 30));
        scene.heard(&format!("line {}\"", first + 30)).await;
        assert!(
            !scene.backend.scrolled_to_end(),
            "the visitor reads above: {css}"
        );
        scene.manager.hang_up();
    }
}

#[wasm_bindgen_test]
async fn the_conversation_has_the_styles_that_the_page_gives_its_parts() {
    let scene = Scene::configured(false, worklet(), r#"{"historyElement":"history"}"#);
    scene.backend.add_element("history");
    scene.connect().await;
    for frame in [USER_LINE, BOT_LINE] {
        scene.backend.say(frame);
    }
    scene.heard("Hello.").await;
    assert!(!scene.backend.is_styled());
    let weight = |part: &str| scene.backend.style_of(part, "font-weight");
    assert_eq!(
        (weight("role"), weight("text")),
        ("400".into(), "400".into())
    );
    scene.backend.restyle(
        "#history::part(role) { font-weight: 700 } #history::part(bot) { text-align: end }
         #history::part(interim) { opacity: 0.5 } p { text-align: center }",
    );
    assert_eq!(
        (weight("role"), weight("text")),
        ("700".into(), "400".into())
    );
    let style = |part: &str, property: &str| scene.backend.style_of(part, property);
    assert_eq!(style("bot", "text-align"), "end");
    assert_eq!(style("bot", "opacity"), "1");
    // No other rule of the page reaches it.
    assert_eq!(style("user", "text-align"), "start");
    assert_eq!(style("user", "opacity"), "0.5");
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
async fn the_configuration_reaches_what_it_is_for() {
    let backend = Backend::new();
    backend.add_element("history");
    backend.choose_speakers("any", 0);
    backend.allow_any_microphone();
    let config = parsed(
        r#"{"backendUrl":"https://own.invalid/","callTimeLimitSeconds":90,"characterParams":{"name":"Ann"},
            "characterRole":"Sage","microphoneId":"desk","speakerId":"hall",
            "iceServers":[{"urls":["stun:127.0.0.1:3478"]}]}"#,
    );
    Reflect::set(&config, &"historyElement".into(), &backend.element()).unwrap();
    let scene = Scene::with_backend(backend, false, worklet(), &config);
    let (partner, name, key) = ("repo:acme".into(), "guide".into(), "key".into());
    let null = JsValue::NULL;
    settle(
        scene
            .manager
            .handle_call2(&partner, &name, &key, &null, false),
    )
    .await;
    scene.heard("\"ongoing\"").await;
    assert_eq!(
        scene.backend.request(),
        r#"{"url":"https://own.invalid/v2/calls","key":"key","body":{"character":"repo:acme/guide","call_time_limit_seconds":"90","character_params":{"name":"Ann"}}}"#
    );
    assert_eq!(scene.backend.open_microphones(), r#"[{"ideal":"desk"}]"#);
    assert_eq!(scene.backend.sinks(), r#"["hall"]"#);
    let configuration = scene.backend.configuration();
    assert!(
        configuration.contains(r#""urls":["stun:127.0.0.1:3478"]"#),
        "{configuration}"
    );
    assert!(
        configuration.contains(r#""iceTransportPolicy":"all""#),
        "{configuration}"
    );
    scene.backend.say(BOT_LINE);
    scene.heard(r#""role":"Sage""#).await;
    assert_eq!(scene.backend.history(), "log: line bot=Sage: Hello.");
    scene.manager.hang_up();

    // Without a backend it is the page's own server.
    let backend = &scene.backend;
    let callbacks = backend.callbacks(false);
    let manager = CallManager::new(&callbacks, &null, None);
    let started = manager.handle_call2(&partner, &name, &key, &null, false);
    let location = Reflect::get(&js_sys::global(), &"location".into()).unwrap();
    let origin = Reflect::get(&location, &"origin".into()).unwrap();
    let url = format!(r#"{{"url":"{}/v2/calls""#, origin.as_string().unwrap());
    assert!(backend.request().starts_with(&url), "{}", backend.request());
    manager.hang_up();
    settle(started).await;
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
    scene.backend.hide_page();
    settle(wait(100)).await;
    assert_eq!(scene.backend.wake_locks(), "released held");
    scene.manager.hang_up();
    assert_eq!(scene.backend.wake_locks(), "released released");
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
        report.starts_with(r#"{"ok":true,"code":null,"permission":"#),
        "{report}"
    );
    assert_eq!(backend.captures(), 0, "it asks for no microphone");

    backend.refuse(503);
    let report = check().await;
    assert!(
        report.contains(r#""backend":{"ok":false,"code":"CAPACITY""#),
        "{report}"
    );
    assert!(
        report.starts_with(r#"{"ok":false,"code":"CAPACITY""#),
        "{report}"
    );
    backend.uninstall();
}

#[wasm_bindgen_test]
async fn the_check_before_a_call_names_what_a_call_would_fail_with() {
    let unsupported = r#""permission":"unsupported","microphones":0"#;
    for (state, without, code, part) in [
        (
            "denied",
            "",
            "MICROPHONE_DENIED",
            r#""permission":"denied""#,
        ),
        (
            "prompt",
            "none",
            "MICROPHONE_MISSING",
            r#""microphones":0,"speakers":0"#,
        ),
        ("prompt", "insecure", "INSECURE_CONTEXT", unsupported),
        ("prompt", "secure", "UNSUPPORTED_BROWSER", unsupported),
    ] {
        let backend = Backend::new();
        backend.permit(state);
        if !without.is_empty() {
            backend.without_devices(without);
        }
        let report = check().await;
        let start = format!(r#"{{"ok":false,"code":"{code}""#);
        assert!(report.starts_with(&start), "{report}");
        assert!(report.contains(part), "{report}");
        assert!(report.contains(r#""backend":{"ok":true"#), "{report}");
        assert!(report.contains(r#""media":{"ok":true"#), "{report}");
        backend.uninstall();
    }
}

#[wasm_bindgen_test]
async fn the_check_before_a_call_waits_for_nothing_for_ever() {
    let silent = r#""backend":{"ok":false,"code":"NETWORK""#;
    for (how, code, backend_part, aborted) in [
        ("answer", "NETWORK", silent, 1),
        ("body", "NETWORK", silent, 1),
        ("media", "MEDIA", r#""backend":{"ok":true"#, 0),
    ] {
        let backend = Backend::new();
        backend.permit("granted");
        backend.fail_check(how);
        backend.hurry(20);
        let report = check().await;
        let start = format!(r#"{{"ok":false,"code":"{code}""#);
        assert!(report.starts_with(&start), "{report}");
        assert!(report.contains(backend_part), "{report}");
        let media = format!(r#""media":{{"ok":false,"code":"{code}""#);
        assert!(report.contains(&media), "{report}");
        assert_eq!(backend.aborted(), aborted, "{how}");
        backend.uninstall();
    }
}

#[wasm_bindgen_test]
async fn the_check_before_a_call_opens_a_socket_and_names_the_proxy_that_lets_none_through() {
    let backend = Backend::new();
    backend.permit("granted");
    backend.fail_check("upgrade");
    let report = check().await;
    let failed = format!(
        r#""backend":{{"ok":false,"code":"NETWORK","message":"The backend answers HTTP, but no WebSocket opens at {}/v2/calls/check/session. "#,
        BACKEND_URL.replace("http", "ws"),
    );
    assert!(report.contains(&failed), "{report}");
    assert!(report.contains("Upgrade"), "{report}");
    assert!(report.contains(r#""media":{"ok":true"#), "{report}");
    assert!(
        report.starts_with(r#"{"ok":false,"code":"NETWORK""#),
        "{report}"
    );
    backend.uninstall();
}

#[wasm_bindgen_test]
async fn the_check_before_a_call_asks_a_busy_backend_once_more() {
    let backend = Backend::new();
    backend.permit("granted");
    backend.refuse_checks(1, 429, "1");
    let report = check().await;
    assert!(report.starts_with(r#"{"ok":true,"code":null"#), "{report}");
    assert_eq!(backend.checks(), 2);
    let waited_ms = backend.waited_ms();
    assert!(waited_ms > 900.0, "{waited_ms}");
    backend.uninstall();
    for (status, retry_after, code, asked) in [
        (429, "1", "RATE_LIMITED", 2),
        (503, "5", "CAPACITY", 2),
        (429, "60", "RATE_LIMITED", 1),
        (429, "", "RATE_LIMITED", 1),
    ] {
        let backend = Backend::new();
        backend.permit("granted");
        backend.refuse_checks(3, status, retry_after);
        backend.hurry(20);
        let report = check().await;
        let start = format!(r#"{{"ok":false,"code":"{code}""#);
        assert!(report.starts_with(&start), "{report}");
        assert_eq!(backend.checks(), asked, "{status} {retry_after}");
        backend.uninstall();
    }
}

async fn check() -> String {
    let config = Object::new();
    Reflect::set(&config, &"backendUrl".into(), &BACKEND_URL.into()).unwrap();
    let report = JsFuture::from(CallManager::pre_call_check(&config)).await;
    js_sys::JSON::stringify(&report.unwrap()).unwrap().into()
}
