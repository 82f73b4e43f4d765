//! The life of a call: its order, its ends, its failures, its connection.

use wasm_bindgen_test::wasm_bindgen_test;

use super::*;

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
        false,
    );
    assert_eq!(scene.manager.get_state(), "starting");
    assert_eq!(scene.backend.given("onCallStart"), r#"{"callId":null}"#);
    assert_eq!(scene.manager.call_id(), None);
    settle(started).await;
    scene.heard("\"ongoing\"").await;
    assert_eq!(scene.manager.call_id().as_deref(), Some("/v2/calls/1"));
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
    assert_eq!(scene.backend.given("onHangUp"), r#""local""#);
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
async fn a_hang_up_before_the_permission_asks_nobody() {
    let scene = Scene::new();
    let started = scene.call();
    assert_eq!(
        scene.backend.given("onCallStart"),
        r#"{"callId":"/v2/calls/1"}"#
    );
    scene.manager.hang_up();
    settle(started).await;
    until("it is said", || scene.backend.frames() == "hello hang_up").await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onStatusUpdate \"starting\"",
            "onStatusUpdate \"completed\"",
            "onHangUp"
        ]
    );
    assert_eq!(scene.backend.asked(), 0);
    until("the audio is closed", || scene.backend.audio_is_closed()).await;
}

#[wasm_bindgen_test]
async fn a_hang_up_during_the_permission_releases_the_microphone() {
    let scene = Scene::new();
    scene.backend.delay_microphone(300);
    let started = scene.call();
    until("the visitor is asked", || scene.backend.asked() == 1).await;
    scene.manager.hang_up();
    settle(started).await;
    assert_eq!(scene.log().last().map(String::as_str), Some("onHangUp"));
    assert_eq!(scene.backend.captures(), 0);
    until("the microphone is there", || scene.backend.captures() == 1).await;
    assert!(scene.backend.is_released());
    assert_eq!(scene.backend.frames(), "hello hang_up");
}

#[wasm_bindgen_test]
async fn nobody_is_asked_for_the_microphone_of_a_call_that_cannot_be() {
    let scene = Scene::new();
    scene.backend.delay_opening(60_000);
    let started = scene.call();
    scene.backend.close(4410);
    settle(started).await;
    assert_eq!(
        scene.log()[2..],
        [
            "onError CallError:URL_EXPIRED",
            "onCallError CallError:URL_EXPIRED",
            "onStatusUpdate \"error\"",
            "onHangUp"
        ]
    );
    assert_eq!(scene.backend.given("onHangUp"), r#""error""#);
    assert_eq!(scene.backend.asked(), 0);
}

#[wasm_bindgen_test]
async fn a_connection_that_comes_to_nothing_is_followed_by_another() {
    let scene = Scene::new();
    scene.backend.ignore_connections(1);
    let started = scene.call();
    settle(started).await;
    assert_eq!(scene.manager.get_state(), "ongoing");
    let offers = || scene.backend.frames().matches("offer").count();
    assert_eq!(offers(), 2);
    assert_eq!(scene.backend.captures(), 1, "the microphone stays the same");
    scene.hears().await;
    let count = |name: &str| scene.log().iter().filter(|line| *line == name).count();
    assert_eq!((count("onCallStarting"), count("onConnected")), (1, 1));
    scene.manager.hang_up();
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn a_connection_that_a_policy_blocks_is_named_at_once() {
    let scene = Scene::new();
    scene.backend.delay_opening(60_000);
    let started = scene.call();
    for (disposition, url) in [
        ("report", "wss://calls.invalid"),
        ("enforce", "https://other.invalid/x"),
    ] {
        scene.backend.violate(disposition, url);
        assert_eq!(scene.manager.get_state(), "starting");
    }
    scene.backend.violate("enforce", "wss://calls.invalid");
    settle(started).await;
    assert_eq!(scene.log()[2], "onError CallError:NETWORK");
    assert_eq!(scene.manager.get_state(), "error");
}

#[wasm_bindgen_test]
async fn a_socket_that_fails_without_closing_ends_the_call() {
    let scene = Scene::new();
    scene.backend.delay_opening(60_000);
    let started = scene.call();
    scene.backend.fail_socket();
    settle(started).await;
    assert_eq!(scene.log()[2], "onError CallError:NETWORK");
}

#[wasm_bindgen_test]
async fn a_hang_up_while_the_socket_opens_is_said_when_it_is_open() {
    let scene = Scene::new();
    scene.backend.delay_opening(500);
    let started = scene.call();
    scene.manager.hang_up();
    settle(started).await;
    assert_eq!(scene.log().last().map(String::as_str), Some("onHangUp"));
    assert_eq!(scene.backend.open_microphones(), "[]");
    assert_eq!(scene.backend.frames(), "");
    until("the socket is closed", || scene.backend.is_released()).await;
    assert_eq!(scene.backend.frames(), "hello hang_up");
}

#[wasm_bindgen_test]
async fn a_socket_that_does_not_open_is_left_after_a_while() {
    let scene = Scene::new();
    scene.backend.delay_opening(60_000);
    let started = scene.call();
    scene.manager.hang_up();
    settle(started).await;
    assert!(!scene.backend.is_released());
    until("the socket is closed", || scene.backend.is_released()).await;
    assert_eq!(scene.backend.frames(), "");
}

#[wasm_bindgen_test]
async fn a_hang_up_while_the_connection_is_away_is_said_in_a_new_one() {
    let scene = Scene::connected().await;
    scene.backend.cut();
    scene.manager.hang_up();
    assert_eq!(scene.backend.open_microphones(), "[]");
    until("it is said", || {
        scene.backend.frames().ends_with(" hello hang_up")
    })
    .await;
    let count = |name: &str| scene.log().iter().filter(|line| *line == name).count();
    assert_eq!(count("onHangUp"), 1);
}

#[wasm_bindgen_test]
async fn a_hang_up_while_the_worklet_loads_is_clean() {
    let scene = Scene::new();
    scene.backend.delay_worklet(700);
    let started = scene.call();
    until("the microphone is there", || scene.backend.captures() == 1).await;
    scene.manager.hang_up();
    settle(started).await;
    // Until the module has come, or was refused by a context that is closed.
    settle(wait(1_000)).await;
    assert!(scene.backend.is_released());
    assert!(scene.backend.audio_is_closed());
    assert_eq!(scene.backend.captures(), 1);
}

#[wasm_bindgen_test]
async fn a_refused_microphone_and_a_refused_key_have_their_codes() {
    let scene = Scene::new();
    scene.backend.refuse_microphone("NotAllowedError", 0);
    settle(scene.call()).await;
    assert_eq!(
        scene.log()[2..],
        [
            "onError CallError:MICROPHONE_DENIED",
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
            .handle_call2(&"repo:acme".into(), &"guide".into(), &key, &null, false),
    )
    .await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onError CallError:INVALID_KEY",
            "onCallError CallError:INVALID_KEY",
            "onHangUp"
        ]
    );
    assert_eq!(scene.manager.get_state(), "error");

    scene.backend.refuse(0);
    settle(
        scene
            .manager
            .handle_call2(&"repo:acme".into(), &"guide".into(), &key, &null, false),
    )
    .await;
    assert_eq!(
        scene.log()[4..],
        [
            "onCallStart",
            "onError CallError:NETWORK",
            "onCallError CallError:NETWORK",
            "onHangUp"
        ]
    );
}

#[wasm_bindgen_test]
async fn a_server_that_speaks_something_else_ends_the_call() {
    let scene = Scene::connected().await;
    scene.backend.say_raw("<!doctype html>");
    scene.heard("onHangUp").await;
    assert!(
        scene
            .log()
            .contains(&"onCallError CallError:PROTOCOL".to_owned())
    );
    assert_eq!(scene.manager.get_state(), "error");
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn metadata_that_is_no_object_or_too_large_is_refused() {
    let scene = Scene::new();
    let large = Object::new();
    let text = "x".repeat(65_536);
    Reflect::set(&large, &"text".into(), &text.into()).unwrap();
    let circle = Object::new();
    Reflect::set(&circle, &"circle".into(), &circle).unwrap();
    let refused: [JsValue; 4] = [
        "page".into(),
        js_sys::Array::new().into(),
        circle.into(),
        large.into(),
    ];
    for (count, metadata) in refused.iter().enumerate() {
        let null = JsValue::NULL;
        let url = SIGNED_URL.into();
        let call = scene
            .manager
            .handle_call2(&null, &null, &url, metadata, false);
        settle(call).await;
        let told = [
            "onCallStart",
            "onError CallError:INVALID_ARGUMENT",
            "onCallError CallError:INVALID_ARGUMENT",
            "onHangUp",
        ];
        assert_eq!(scene.log()[count * 4..], told);
    }
    assert_eq!(scene.backend.frames(), "");
}

#[wasm_bindgen_test]
async fn arguments_that_cannot_work_end_the_call_and_not_the_page() {
    let scene = Scene::new();
    let null = JsValue::NULL;
    settle(
        scene
            .manager
            .handle_call2(&null, &null, &null, &null, false),
    )
    .await;
    assert_eq!(
        scene.log(),
        [
            "onCallStart",
            "onError CallError:INVALID_ARGUMENT",
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
    let scene = Scene::with(true, worklet());
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
async fn a_lost_socket_comes_back_while_the_sound_goes_on() {
    let scene = Scene::connected().await;
    scene.backend.cut();
    scene.heard("reconnecting").await;
    until("the connection is back", || {
        scene.manager.get_state() == "ongoing"
    })
    .await;
    assert_eq!(scene.backend.frames().matches("hello").count(), 2);
    assert_eq!(scene.backend.frames().matches("offer").count(), 1);
    scene.hears().await;
}
