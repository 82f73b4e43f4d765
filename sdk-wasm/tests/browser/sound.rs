//! Microphone and speaker: mute, the change of devices, devices that go, audio that the browser stops.

use js_sys::Array;
use wasm_bindgen_test::wasm_bindgen_test;

use super::*;

/// The identifier of the microphone that is listed last.
async fn last_microphone() -> Option<String> {
    let devices = JsFuture::from(CallManager::get_available_devices())
        .await
        .unwrap();
    let microphones = Reflect::get(&devices, &"microphones".into()).unwrap();
    let last = Array::from(&microphones).pop();
    Reflect::get(&last, &"deviceId".into()).unwrap().as_string()
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
async fn a_microphone_that_is_chosen_while_the_visitor_is_asked_is_used() {
    let scene = Scene::new();
    scene.backend.allow_any_microphone();
    scene.backend.delay_microphone(300);
    let started = scene.call();
    until("the visitor is asked", || scene.backend.asked() == 1).await;
    settle(scene.manager.change_devices(Some("second".into()), None)).await;
    settle(started).await;
    assert_eq!(scene.backend.open_microphones(), r#"[{"ideal":"second"}]"#);
    scene.heard("\"ongoing\"").await;
    scene.hears().await;
}

#[wasm_bindgen_test]
async fn a_microphone_that_is_chosen_in_place_of_a_busy_one_is_used() {
    let scene = Scene::new();
    scene.backend.refuse_microphone("NotReadableError", 300);
    let started = scene.call();
    until("the visitor is asked", || scene.backend.asked() == 1).await;
    settle(scene.manager.change_devices(Some("second".into()), None)).await;
    scene.backend.allow_any_microphone();
    settle(started).await;
    assert_eq!(scene.backend.open_microphones(), r#"[{"ideal":"second"}]"#);
    scene.heard("\"ongoing\"").await;
    assert!(!scene.backend.log().contains("onCallError"));
}

#[wasm_bindgen_test]
async fn a_call_that_ends_while_it_waits_for_its_audio_leaves_no_timer() {
    let scene = Scene::new();
    scene.backend.hold_audio("suspended");
    let started = scene.call();
    until("the microphone is open", || scene.backend.captures() == 1).await;
    assert!(!scene.backend.is_released());
    scene.manager.hang_up();
    assert!(scene.backend.is_released());
    settle(started).await;
}

#[wasm_bindgen_test]
async fn of_two_quick_choices_the_later_one_counts() {
    let scene = Scene::connected().await;
    scene.backend.allow_any_microphone();
    let choose = |id: &str| scene.manager.change_devices(Some(id.to_owned()), None);
    scene.backend.delay_microphone(400);
    let slow = choose("first");
    settle(choose("second")).await;
    settle(slow).await;
    assert_eq!(scene.backend.asked(), 3);
    assert_eq!(scene.backend.open_microphones(), r#"[{"exact":"second"}]"#);

    // What takes the place of one that is unplugged is no choice.
    scene.backend.delay_microphone(400);
    scene.backend.unplug();
    settle(choose("third")).await;
    until("the replacement is there", || scene.backend.captures() == 5).await;
    settle(wait(50)).await;
    assert_eq!(scene.backend.open_microphones(), r#"[{"exact":"third"}]"#);
    scene.hears().await;
    scene.manager.hang_up();
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn a_speaker_that_cannot_be_chosen_is_told_and_the_call_goes_on() {
    for how in ["never", "missing"] {
        let scene = Scene::configured(false, worklet(), r#"{"speakerId":"hall"}"#);
        scene.backend.choose_speakers(how, 0);
        scene.connect().await;
        scene.heard("onCallError CallError:SPEAKER_MISSING").await;
        assert_eq!(scene.manager.get_state(), "ongoing");
        let changed = scene.manager.change_devices(None, Some("yard".into()));
        let refused = JsFuture::from(changed).await.unwrap_err();
        assert_eq!(code_of(&refused), "SPEAKER_MISSING", "{how}");
    }
}

#[wasm_bindgen_test]
async fn of_two_speakers_the_later_choice_is_played_on_even_if_the_first_takes_longer() {
    let scene = Scene::connected().await;
    scene.backend.choose_speakers("any", 300);
    let choose = |id: &str| scene.manager.change_devices(None, Some(id.to_owned()));
    let slow = choose("hall");
    settle(choose("yard")).await;
    settle(slow).await;
    assert_eq!(scene.backend.sinks(), r#"["yard","hall","yard"]"#);
}

#[wasm_bindgen_test]
async fn an_unplugged_speaker_is_left_for_the_systems_until_it_is_back() {
    let scene = Scene::configured(false, worklet(), r#"{"speakerId":"hall"}"#);
    scene.backend.choose_speakers("any", 0);
    scene.connect().await;
    scene.backend.list_speakers("default hall");
    scene.heard("\"deviceId\":\"hall\"").await;
    assert_eq!(scene.backend.sinks(), r#"["hall"]"#);
    for _ in 0..2 {
        scene.backend.list_speakers("default yard");
        let sinks = || scene.backend.sinks() == r#"["hall",""]"#;
        until("the system's speaker plays", sinks).await;
    }
    scene.backend.list_speakers("default hall yard");
    let sinks = || scene.backend.sinks() == r#"["hall","","hall"]"#;
    until("the chosen speaker plays again", sinks).await;
    assert!(!scene.backend.log().contains("onCallError"));
}

#[wasm_bindgen_test]
async fn a_phones_audio_session_is_told_what_comes_and_given_back() {
    let scene = Scene::new();
    scene.backend.add_audio_session();
    settle(scene.call()).await;
    let both = "play-and-record";
    assert_eq!(scene.backend.session_types(), format!("{both} {both}"));
    let null = JsValue::NULL;
    let callbacks = scene.backend.callbacks(false);
    let other = CallManager::new(&callbacks, &null, None);
    let started = other.handle_call2(&null, &null, &SIGNED_URL.into(), &null, false);
    until("both have asked", || scene.backend.asked() == 2).await;
    scene.manager.hang_up();
    let types = scene.backend.session_types();
    assert!(types.ends_with(both), "the other call goes on: {types}");
    other.hang_up();
    assert!(scene.backend.session_types().ends_with(" auto"));
    settle(started).await;
}

#[wasm_bindgen_test]
async fn audio_that_runs_later_than_the_call_is_used_from_then_on() {
    for why in ["slow", "interrupted", "suspended"] {
        let scene = Scene::new();
        match why {
            "slow" => scene.backend.delay_worklet(1_500),
            state => scene.backend.hold_audio(state),
        }
        scene.connect().await;
        if why == "slow" {
            settle(scene.backend.has_level()).await;
            continue;
        }
        scene.hears().await;
        settle(scene.backend.release_audio()).await;
        settle(scene.backend.has_level()).await;
        scene.manager.mute(true);
        scene.hears_nothing(why).await;
        scene.manager.mute(false);
        scene.hears().await;
    }
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
async fn an_unplugged_microphone_is_replaced_and_the_mute_stays() {
    let scene = Scene::connected().await;
    scene.hears().await;
    scene.backend.unplug();
    settle(wait(SETTLES_MS)).await;
    assert_eq!(scene.backend.captures(), 2);
    scene.hears().await;

    scene.manager.mute(true);
    scene.backend.unplug();
    settle(wait(SETTLES_MS)).await;
    assert_eq!(scene.backend.captures(), 3);
    scene.hears_nothing("after the second was unplugged").await;
    scene.manager.mute(false);
    scene.hears().await;
    assert!(!scene.backend.log().contains("onCallError"));
    scene.manager.hang_up();
    assert!(scene.backend.is_released());
}

#[wasm_bindgen_test]
async fn without_any_microphone_the_call_waits_for_the_next() {
    let scene = Scene::connected().await;
    scene.backend.refuse_microphone("NotFoundError", 0);
    scene.backend.unplug();
    scene.heard("onError CallError:MICROPHONE_MISSING").await;
    scene
        .heard("onCallError CallError:MICROPHONE_MISSING")
        .await;
    assert_eq!(scene.manager.get_state(), "ongoing");
    scene.backend.allow_microphone();
    scene.backend.device_change();
    scene.hears().await;
    scene.heard("onDevicesChanged").await;
    assert_eq!(scene.backend.log().matches("onCallError").count(), 1);
}

#[wasm_bindgen_test]
async fn audio_that_the_system_stops_is_set_going_again() {
    let scene = Scene::connected().await;
    scene.hears().await;
    settle(scene.backend.stop_audio(false)).await;
    settle(wait(SETTLES_MS)).await;
    scene.hears().await;
}

#[wasm_bindgen_test]
async fn while_audio_stays_stopped_the_microphone_is_sent_without_it() {
    let scene = Scene::connected().await;
    scene.hears().await;
    settle(scene.backend.stop_audio(true)).await;
    scene.hears().await;
    scene.manager.mute(true);
    settle(wait(SETTLES_MS)).await;
    scene.hears_nothing("while muted and stopped").await;
    settle(scene.backend.restart_audio()).await;
    settle(wait(SETTLES_MS)).await;
    scene.hears_nothing("while muted and running again").await;
    scene.manager.mute(false);
    scene.hears().await;
}

#[wasm_bindgen_test]
async fn a_browser_that_plays_nothing_is_told_and_unlocked() {
    let scene = Scene::new();
    scene.backend.block_playback(true);
    scene.connect().await;
    scene.heard("onCallError CallError:AUDIO_BLOCKED").await;
    let refused = JsFuture::from(scene.manager.start_audio()).await;
    assert_eq!(code_of(&refused.unwrap_err()), "AUDIO_BLOCKED");
    assert_eq!(scene.manager.get_state(), "ongoing");
    scene.backend.block_playback(false);
    settle(scene.manager.start_audio()).await;
    scene.heard("onAudioBlockedChange false").await;
}

#[wasm_bindgen_test]
async fn blocked_sound_is_told_each_time_and_any_click_or_key_ends_it() {
    let scene = Scene::new();
    scene.backend.block_playback(true);
    scene.connect().await;
    let told = || {
        let log = scene.log();
        let count = |line: &str| log.iter().filter(|l| l.starts_with(line)).count();
        [
            count("onCallError CallError:AUDIO_BLOCKED"),
            count("onAudioBlockedChange true"),
            count("onAudioBlockedChange false"),
        ]
    };
    until("it is told", || told() == [1, 1, 0]).await;
    scene.backend.visitor("click");
    settle(wait(100)).await;
    assert_eq!(told(), [1, 1, 0], "the browser still refuses");
    scene.backend.block_playback(false);
    scene.backend.visitor("click");
    until("a click plays it", || told() == [1, 1, 1]).await;
    scene.backend.stop_playback();
    until("it is told again", || told() == [2, 2, 1]).await;
    scene.backend.visitor("keydown");
    until("a key plays it", || told() == [2, 2, 2]).await;
    scene.manager.hang_up();
    settle(wait(100)).await;
    assert_eq!(told(), [2, 2, 2]);
}

#[wasm_bindgen_test]
async fn the_browsers_sound_processing_can_be_turned_off() {
    let config = r#"{"audio":{"echoCancellation":false,"autoGainControl":null}}"#;
    let scene = Scene::configured(false, worklet(), config);
    scene.connect().await;
    let asked = scene.backend.constraints();
    assert!(asked.contains(r#""echoCancellation":false"#), "{asked}");
    assert!(asked.contains(r#""noiseSuppression":true"#), "{asked}");
    assert!(asked.contains(r#""autoGainControl":true"#), "{asked}");
}
