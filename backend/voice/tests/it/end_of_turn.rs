//! Whether the turn is over, where something else than the length of the silence tells.

use std::time::Duration;

use colloquy_voice::{EngineConfig, Input, Output, PauseId, PredictedHold, UtteranceStage};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor, recording};
use crate::harness::{Harness, config, ms};

const START: Duration = ms(600);

/// Asks in a pause of 80 ms, and holds 200 or 800 instead of 500.
fn predicting() -> EngineConfig {
    let mut config = config();
    config.turns.stop_ms = 500;
    config.turns.pause_ms = Some(80);
    config.turns.early_transcripts = true;
    config.turns.predicted_hold = Some(PredictedHold {
        complete_ms: 200,
        incomplete_ms: 800,
    });
    config
}

/// When the last prediction was asked for, and when the reply.
fn asked_and_replied(harness: &Harness) -> (Duration, Duration) {
    (
        harness.predictions().last().unwrap().0,
        harness.replies()[0].0,
    )
}

#[test]
fn the_hold_is_short_or_long_as_the_answer_says() {
    for (is_complete, hold) in [(Some(true), 200), (Some(false), 800), (None, 500)] {
        for afterwards in [
            AfterSpeech::Noise,
            AfterSpeech::DigitalSilence,
            AfterSpeech::Nothing,
        ] {
            let mut harness = Harness::connected(predicting());
            harness.script.is_complete = is_complete;
            harness.script.prediction_delay = ms(60);
            Visitor::new(Network::default()).speak(&mut harness, START, afterwards);
            harness.run_until(ms(6000));
            let (asked, replied) = asked_and_replied(&harness);
            let waited = replied - asked;
            let wanted = ms(hold - 80);
            assert!(
                (wanted - ms(20)..=wanted + ms(40)).contains(&waited),
                "{is_complete:?}: {waited:?} instead of {wanted:?}"
            );
        }
    }
}

#[test]
fn an_answer_that_comes_after_the_short_hold_ends_the_turn_at_once() {
    let mut harness = Harness::connected(predicting());
    harness.script.is_complete = Some(true);
    harness.script.prediction_delay = ms(300);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    let (asked, replied) = asked_and_replied(&harness);
    assert!((ms(300)..=ms(340)).contains(&(replied - asked)));
}

#[test]
fn a_visitor_who_goes_on_takes_the_question_back() {
    let spoken = recording();
    let room = &spoken[..16 * 300];
    let (first, second) = (&spoken[..16 * 2250], &spoken[16 * 450..16 * 2250]);
    let turns = [first, room, second, room, room, room, room, room].concat();
    let mut harness = Harness::connected(predicting());
    // The answer to the first question comes when the visitor speaks again, and is for nobody.
    harness.script.is_complete = Some(true);
    harness.script.prediction_delay = ms(1_000);
    Visitor::new(Network::default()).say(&mut harness, START, &turns);
    harness.run_until(ms(9000));
    let asked = harness.predictions();
    let (_, (first, _)) = asked[0];
    assert!(asked.len() >= 2 && harness.cancelled(&Output::CancelPrediction(first)));
    assert_eq!(harness.replies().len(), 1, "it was one turn");
    assert_eq!(harness.lines().len(), 2);
}

#[test]
fn no_more_than_two_questions_a_second_are_asked() {
    let spoken = recording();
    let word = &spoken[16 * 500..16 * 720];
    let room = &spoken[..16 * 220];
    let stutter = [word, room].concat().repeat(30);
    let mut harness = Harness::connected(predicting());
    Visitor::new(Network::default()).say(&mut harness, START, &stutter);
    harness.run_until(START + ms(stutter.len() as u64 / 16 + 1_000));
    let asked = harness.predictions();
    assert!(asked.len() >= 5, "{}", asked.len());
    for pair in asked.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= ms(500));
    }
}

#[test]
fn the_question_has_eight_seconds_at_most_and_none_is_asked_without_a_setting() {
    let spoken = recording();
    let speech = &spoken[16 * 450..16 * 2250];
    let room = &spoken[..16 * 450];
    let long = [&spoken[..16 * 450], &speech.repeat(6), room, room].concat();
    let mut harness = Harness::connected(predicting());
    Visitor::new(Network::default()).say(&mut harness, START, &long);
    harness.run_until(ms(15_000));
    let asked = harness.predictions();
    let longest = asked.iter().map(|(_, (_, samples))| samples.len()).max();
    assert_eq!(longest, Some(8 * 16_000));

    let mut plain = predicting();
    plain.turns.predicted_hold = None;
    let mut harness = Harness::connected(plain);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    assert!(harness.predictions().is_empty());
    assert!(!harness.transcriptions(UtteranceStage::Paused).is_empty());
}

#[test]
fn what_nobody_asked_changes_nothing() {
    let mut harness = Harness::connected(predicting());
    for pause in 0..4 {
        harness.input(Input::EndOfTurnPredicted {
            pause: PauseId(pause),
            is_complete: true,
        });
    }
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    let (asked, replied) = asked_and_replied(&harness);
    assert!(replied - asked >= ms(400));
}
