//! Microphones that go and come, speakers that cannot be used, and browsers that play nothing.

use super::*;

#[test]
fn a_lost_microphone_is_replaced() {
    let mut scene = Scene::talking();
    scene.input(Input::MicrophoneLost);
    assert_eq!(scene.take(), ["another microphone"]);
    scene.input(Input::MicrophoneLost);
    scene.input(Input::DevicesChanged);
    assert!(scene.take().is_empty(), "one attempt at a time");
    scene.input(Input::MicrophoneReady);
    scene.input(Input::DevicesChanged);
    assert!(scene.take().is_empty());
    scene.input(Input::MicrophoneLost);
    assert_eq!(scene.take(), ["another microphone"]);
}

#[test]
fn a_call_without_a_microphone_goes_on_and_takes_the_next_one() {
    let mut scene = Scene::talking();
    scene.input(Input::MicrophoneLost);
    scene.take();
    scene.input(Input::MicrophoneFailed(ErrorCode::MicrophoneMissing));
    assert_eq!(scene.take(), ["trouble MICROPHONE_MISSING"]);
    assert_eq!(scene.call.status(), Some(SessionState::Ongoing));
    assert!(scene.call.accepts_text("hello"));

    scene.input(Input::DevicesChanged);
    scene.input(Input::MicrophoneFailed(ErrorCode::MicrophoneMissing));
    assert_eq!(scene.take(), ["another microphone"], "told once");
    scene.input(Input::DevicesChanged);
    scene.input(Input::MicrophoneReady);
    assert_eq!(scene.take(), ["another microphone"]);
    scene.input(Input::DevicesChanged);
    assert!(scene.take().is_empty());
}

#[test]
fn a_microphone_that_the_page_chose_replaces_the_lost_one() {
    let mut scene = Scene::talking();
    scene.input(Input::MicrophoneLost);
    scene.input(Input::MicrophoneFailed(ErrorCode::MicrophoneBusy));
    scene.input(Input::MicrophoneReady);
    scene.take();
    scene.input(Input::DevicesChanged);
    assert!(scene.take().is_empty());
}

#[test]
fn a_microphone_lost_before_the_connection_is_replaced_too() {
    let mut scene = Scene::server();
    scene.take();
    scene.input(Input::MicrophoneLost);
    scene.input(Input::DevicesChanged);
    assert!(
        scene.take().is_empty(),
        "the first one is still being opened"
    );
    scene.input(Input::MicrophoneReady);
    assert_eq!(
        scene.take().last().map(String::as_str),
        Some("another microphone")
    );
    scene.input(Input::MicrophoneReady);
    assert!(scene.take().is_empty());
    scene.input(Input::MicrophoneLost);
    assert_eq!(scene.take(), ["another microphone"]);
}

#[test]
fn blocked_playback_is_told_once_each_time_and_so_is_its_end() {
    let mut scene = Scene::talking();
    scene.input(Input::PlaybackStarted);
    for _ in 0..2 {
        scene.input(Input::PlaybackBlocked);
        scene.input(Input::PlaybackBlocked);
        assert_eq!(scene.take(), ["trouble AUDIO_BLOCKED", "blocked true"]);
        scene.input(Input::PlaybackStarted);
        scene.input(Input::PlaybackStarted);
        assert_eq!(scene.take(), ["blocked false"]);
    }
    scene.input(Input::SpeakerFailed);
    assert_eq!(scene.take(), ["trouble SPEAKER_MISSING"]);
}
