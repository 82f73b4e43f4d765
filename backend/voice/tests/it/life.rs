//! How a call begins and ends.

use std::time::Duration;

use colloquy_voice::{EndReason, Engine, EngineConfig, EngineError, Input, Output, TurnSettings};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor};
use crate::harness::{Harness, config, ms};

fn limited(limit: Duration) -> EngineConfig {
    EngineConfig {
        time_limit: limit,
        ..config()
    }
}

#[test]
fn the_time_limit_is_exact() {
    let mut harness = Harness::new(limited(ms(1234)));
    harness.run_until(ms(500));
    assert_eq!(
        harness.engine.next_timeout(),
        None,
        "nothing happens before the path is up"
    );
    harness.input(Input::Connected);
    harness.run_until(ms(900));
    harness.input(Input::Disconnected);
    harness.input(Input::Connected);
    harness.run_until(ms(9000));
    assert_eq!(harness.ends(), [(ms(1734), EndReason::TimeLimit)]);
    assert_eq!(harness.engine.call_time(ms(9000)), ms(1234));
    assert_eq!(harness.engine.call_time(ms(9_999_000)), ms(1234));
}

#[test]
fn the_time_limit_holds_when_the_timer_is_late_and_the_path_is_lost() {
    let mut harness = Harness::connected(limited(ms(1000)));
    harness.input(Input::Disconnected);
    assert_eq!(harness.engine.next_timeout(), Some(ms(1000)));
    harness.now = ms(5000);
    harness.input(Input::TypedTurn {
        text: "too late".to_owned(),
    });
    assert_eq!(harness.ends(), [(ms(5000), EndReason::TimeLimit)]);
    assert!(harness.lines().is_empty());
    assert_eq!(
        harness.engine.call_time(ms(5000)),
        ms(1000),
        "the call is not longer for a late timer"
    );
}

#[test]
fn hanging_up_cancels_everything_first() {
    let mut harness = Harness::connected(config());
    harness.script.words = None;
    harness.script.reply = vec![];
    Visitor::new(Network::default()).speak(&mut harness, ms(0), AfterSpeech::Nothing);
    harness.run_until(ms(3000));
    let utterance = harness.utterances()[0].1.0;
    harness.script.speech = false;
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    let reply = harness.replies()[0].1;
    harness.input(Input::ReplyText {
        reply,
        delta: "One sentence. ".to_owned(),
    });
    let sentence = harness.spoken()[0].1.0;
    let before = harness.log.len();
    harness.input(Input::HangUp);
    let outputs: Vec<_> = harness.log[before..]
        .iter()
        .map(|(_, output)| output.clone())
        .collect();
    assert_eq!(
        outputs,
        [
            Output::CancelReply(reply),
            Output::CancelSpeech(sentence),
            Output::CancelTranscription(utterance),
            Output::End(EndReason::HangUp),
        ]
    );
    assert_eq!(harness.engine.next_timeout(), None);
    harness.input(Input::Connected);
    harness.input(Input::TypedTurn {
        text: "hello?".to_owned(),
    });
    harness.input(Input::HangUp);
    assert_eq!(harness.log.len(), before + 4, "nothing follows the end");
}

#[test]
fn hanging_up_cuts_the_line_to_what_was_played() {
    let greeting = "Welcome to the museum of natural history and of the arts.";
    let mut harness = Harness::connected(EngineConfig {
        greetings: vec![greeting.to_owned()],
        ..config()
    });
    harness.run_until(ms(1000));
    harness.input(Input::HangUp);
    let line = &harness.engine.transcript()[0];
    // 15 characters a second.
    assert_eq!(line.text, "Welcome to the");
    assert!(!line.interrupted, "nobody spoke over it");
    let (last, is_final) = harness.line_events().last().unwrap().1.clone();
    assert_eq!((&last, is_final), (line, true));
}

#[test]
fn hanging_up_before_the_path_is_up_is_an_end_too() {
    let mut harness = Harness::new(config());
    harness.input(Input::HangUp);
    assert_eq!(harness.ends(), [(ms(0), EndReason::HangUp)]);
    assert_eq!(harness.engine.call_time(ms(100)), Duration::ZERO);
}

#[test]
fn words_heard_so_far_survive_the_end() {
    let mut interim = config();
    interim.turns.interim_ms = Some(500);
    let mut harness = Harness::connected(interim);
    Visitor::new(Network::default()).speak(&mut harness, ms(0), AfterSpeech::Noise);
    harness.run_until(ms(1500));
    let asked = harness.log.iter().find_map(|(_, output)| match output {
        Output::Transcribe { transcription, .. } => Some(*transcription),
        _ => None,
    });
    let transcription = asked.unwrap();
    harness.input(Input::Transcribed {
        transcription,
        text: "go for".to_owned(),
    });
    harness.input(Input::HangUp);
    assert_eq!(harness.lines()[0].1, "go for");
}

#[test]
fn nonsense_is_refused() {
    let turns = |change: fn(&mut TurnSettings)| {
        let mut config = config();
        change(&mut config.turns);
        config
    };
    let nonsense = [
        EngineConfig {
            bitrate_bps: 100,
            ..config()
        },
        EngineConfig {
            time_limit: Duration::ZERO,
            ..config()
        },
        EngineConfig {
            provider_timeout: Duration::ZERO,
            ..config()
        },
        turns(|turns| turns.speech_threshold = f32::NAN),
        turns(|turns| turns.max_utterance_ms = 500),
        turns(|turns| turns.pre_roll_ms = u32::MAX),
    ];
    for config in nonsense {
        assert!(matches!(Engine::new(config), Err(EngineError::Config(_))));
    }
}

#[test]
fn an_engine_can_move_between_threads() {
    fn movable<T: Send>() {}
    movable::<Engine>();
}
