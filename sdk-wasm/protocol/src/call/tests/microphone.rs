//! Microphones that go and come, speakers that cannot be used, and browsers that play nothing.

use super::*;

#[test]
fn a_lost_microphone_is_replaced() {
    let mut harness = Harness::talking();
    harness.input(Input::MicrophoneLost);
    assert_eq!(harness.take(), ["another microphone"]);
    harness.input(Input::MicrophoneLost);
    harness.input(Input::DevicesChanged);
    assert!(harness.take().is_empty(), "one attempt at a time");
    harness.input(Input::MicrophoneReady);
    harness.input(Input::DevicesChanged);
    assert!(harness.take().is_empty());
    harness.input(Input::MicrophoneLost);
    assert_eq!(harness.take(), ["another microphone"]);
}

#[test]
fn a_call_without_a_microphone_goes_on_and_takes_the_next_one() {
    let mut harness = Harness::talking();
    harness.input(Input::MicrophoneLost);
    harness.take();
    harness.input(Input::MicrophoneFailed(ErrorCode::MicrophoneMissing));
    assert_eq!(harness.take(), ["non-fatal MICROPHONE_MISSING"]);
    assert_eq!(harness.call.status(), Some(SessionState::Ongoing));
    assert!(harness.call.accepts_text("hello"));

    harness.input(Input::DevicesChanged);
    harness.input(Input::MicrophoneFailed(ErrorCode::MicrophoneMissing));
    assert_eq!(harness.take(), ["another microphone"], "told once");
    harness.input(Input::DevicesChanged);
    harness.input(Input::MicrophoneReady);
    assert_eq!(harness.take(), ["another microphone"]);
    harness.input(Input::DevicesChanged);
    assert!(harness.take().is_empty());
}

#[test]
fn a_microphone_that_the_page_chose_replaces_the_lost_one() {
    let mut harness = Harness::talking();
    harness.input(Input::MicrophoneLost);
    harness.input(Input::MicrophoneFailed(ErrorCode::MicrophoneBusy));
    harness.input(Input::MicrophoneReady);
    harness.take();
    harness.input(Input::DevicesChanged);
    assert!(harness.take().is_empty());
}

#[test]
fn a_microphone_lost_before_the_connection_is_replaced_too() {
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    harness.take();
    harness.input(Input::MicrophoneLost);
    harness.input(Input::DevicesChanged);
    assert!(
        harness.take().is_empty(),
        "the first one is still being opened"
    );
    harness.input(Input::MicrophoneReady);
    assert_eq!(
        harness.take().last().map(String::as_str),
        Some("another microphone")
    );
    harness.input(Input::MicrophoneReady);
    assert!(harness.take().is_empty());
    harness.input(Input::MicrophoneLost);
    assert_eq!(harness.take(), ["another microphone"]);
}

#[test]
fn blocked_playback_is_told_once_each_time_and_so_is_its_end() {
    let mut harness = Harness::talking();
    harness.input(Input::PlaybackStarted);
    for _ in 0..2 {
        harness.input(Input::PlaybackBlocked);
        harness.input(Input::PlaybackBlocked);
        assert_eq!(harness.take(), ["non-fatal AUDIO_BLOCKED", "blocked true"]);
        harness.input(Input::PlaybackStarted);
        harness.input(Input::PlaybackStarted);
        assert_eq!(harness.take(), ["blocked false"]);
    }
    harness.input(Input::SpeakerFailed);
    assert_eq!(harness.take(), ["non-fatal SPEAKER_MISSING"]);
}
