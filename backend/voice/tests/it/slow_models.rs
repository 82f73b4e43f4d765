//! Models that let the visitor wait.

use colloquy_voice::{AgentState, EngineConfig, Input, Originator, Output, ReplyId};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor};
use crate::harness::{Harness, config, ms};

const PATIENCE: &str = "One moment.";

/// A visitor who has asked something, of a character that asks for patience after three seconds.
fn asked() -> (Harness, ReplyId) {
    let mut harness = Harness::connected(EngineConfig {
        patience_message: Some(PATIENCE.to_owned()),
        ..config()
    });
    harness.script.reply = vec![];
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    let reply = harness.replies()[0].1;
    (harness, reply)
}

fn write(harness: &mut Harness, reply: ReplyId, delta: &str) {
    let delta = delta.to_owned();
    harness.input(Input::ReplyText { reply, delta });
}

/// The sentences that speech was asked for, with the milliseconds.
fn asked_for(harness: &Harness) -> Vec<(u64, String)> {
    let spoken = harness.spoken().into_iter();
    spoken
        .map(|(at, (_, text))| (at.as_millis() as u64, text))
        .collect()
}

#[test]
fn a_clause_is_said_once_the_visitor_has_waited() {
    let (mut harness, reply) = asked();
    harness.run_until(ms(500));
    write(&mut harness, reply, "If it rains, we stay inside, and");
    harness.run_until(ms(1_499));
    assert!(harness.spoken().is_empty());
    harness.run_until(ms(1_600));
    assert_eq!(asked_for(&harness), [(1_500, "If it rains,".to_owned())]);
    // It is heard for 0.8 s; then the next clause is due in 1.5 s.
    harness.run_until(ms(3_000));
    write(&mut harness, reply, " we read");
    harness.run_until(ms(6_000));
    let asked = asked_for(&harness);
    assert_eq!(asked[1].1, "we stay inside,");
    assert!((3_700..4_000).contains(&asked[1].0), "{asked:?}");
    // A clause that comes later is said when it is there.
    harness.run_until(ms(7_500));
    write(&mut harness, reply, " a long book, which");
    let third = (7_500, "and we read a long book,".to_owned());
    assert_eq!(asked_for(&harness)[2], third);
    write(&mut harness, reply, " ends.");
    harness.input(Input::ReplyEnded { reply });
    harness.run_until(ms(20_000));
    let said = "If it rains, we stay inside, and we read a long book, which ends.";
    assert_eq!(harness.lines()[1], (Originator::Bot, said.to_owned()));
    assert_eq!(asked_for(&harness).len(), 4, "nobody asked for patience");
}

#[test]
fn a_clause_is_said_though_the_model_stalls_behind_its_comma() {
    let (mut harness, reply) = asked();
    harness.run_until(ms(500));
    write(&mut harness, reply, "Well, if it rains,");
    harness.run_until(ms(1_499));
    assert!(harness.spoken().is_empty());
    harness.run_until(ms(2_900));
    let first = (1_500, "Well, if it rains,".to_owned());
    assert_eq!(asked_for(&harness), [first]);
    write(&mut harness, reply, " we stay inside.");
    harness.input(Input::ReplyEnded { reply });
    harness.run_until(ms(9_000));
    let said = "Well, if it rains, we stay inside.";
    assert_eq!(harness.lines()[1], (Originator::Bot, said.to_owned()));
}

#[test]
fn a_clause_in_arabic_is_said_once_the_visitor_has_waited() {
    let (mut harness, reply) = asked();
    harness.run_until(ms(500));
    write(&mut harness, reply, "إذا هطل المطر اليوم، فسنبقى في");
    harness.run_until(ms(1_600));
    let clause = (1_500, "إذا هطل المطر اليوم،".to_owned());
    assert_eq!(asked_for(&harness), [clause]);
}

#[test]
fn after_three_seconds_patience_is_asked_for() {
    let (mut harness, reply) = asked();
    harness.run_until(ms(2_999));
    assert!(harness.spoken().is_empty());
    harness.run_until(ms(4_900));
    assert_eq!(asked_for(&harness), [(3_000, PATIENCE.to_owned())], "once");
    let agent = [
        AgentState::Thinking,
        AgentState::Speaking,
        AgentState::Thinking,
    ];
    assert_eq!(harness.agent(), agent);
    write(&mut harness, reply, "Here it is. ");
    harness.input(Input::ReplyEnded { reply });
    harness.run_until(ms(9_000));
    let lines = harness.engine.transcript();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (line.text.as_str(), line.is_aside, line.interrupted))
        .collect();
    let expected = [
        ("hi", false, false),
        (PATIENCE, true, false),
        ("Here it is.", false, false),
    ];
    assert_eq!(lines, expected);
    let told: Vec<_> = harness
        .line_events()
        .into_iter()
        .map(|(_, (line, is_final))| (line.text, is_final))
        .collect();
    let told: Vec<_> = told
        .iter()
        .map(|(text, is_final)| (text.as_str(), *is_final))
        .collect();
    assert_eq!(
        told,
        [
            ("hi", true),
            (PATIENCE, false),
            (PATIENCE, true),
            ("Here it is.", false),
            ("Here it is.", true)
        ]
    );
    assert!(harness.failures().is_empty());
}

#[test]
fn a_reply_that_comes_meanwhile_follows_at_once() {
    let (mut harness, reply) = asked();
    harness.run_until(ms(3_200));
    write(&mut harness, reply, "Here it is. ");
    harness.input(Input::ReplyEnded { reply });
    harness.run_until(ms(9_000));
    let texts: Vec<_> = harness.lines().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["hi", PATIENCE, "Here it is."]);
    let states = [
        AgentState::Thinking,
        AgentState::Speaking,
        AgentState::Listening,
    ];
    assert_eq!(harness.agent(), states);
}

#[test]
fn who_speaks_over_it_is_answered_with_what_was_asked_before() {
    let (mut harness, reply) = asked();
    harness.script.speech_delay = ms(0);
    harness.run_until(ms(2_500));
    Visitor::new(Network::default()).speak(&mut harness, ms(3_100), AfterSpeech::Noise);
    harness.run_until(ms(7_000));
    assert!(harness.cancelled(&Output::CancelReply(reply)));
    assert_eq!(harness.replies().len(), 2);
    let own = harness
        .engine
        .transcript()
        .iter()
        .filter(|line| !line.is_aside);
    assert!(own.clone().all(|line| line.originator == Originator::User));
    assert_eq!(own.count(), 2);
}

#[test]
fn patience_that_cannot_be_spoken_is_no_failure_of_the_reply() {
    let (mut harness, reply) = asked();
    harness.script.speech = false;
    harness.run_until(ms(3_100));
    let sentence = harness.spoken()[0].1.0;
    harness.input(Input::SpeechFailed { sentence });
    harness.script.speech = true;
    write(&mut harness, reply, "Here it is. ");
    harness.input(Input::ReplyEnded { reply });
    harness.run_until(ms(9_000));
    let texts: Vec<_> = harness.lines().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["hi", "Here it is."], "no apology");
}
