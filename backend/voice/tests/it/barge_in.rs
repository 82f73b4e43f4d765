//! The visitor speaks over the character.

use std::time::Duration;

use colloquy_voice::{AgentState, EngineConfig, Originator, Output};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, SPEECH_BEGINS, Visitor, recording};
use crate::harness::{Harness, config, ms};

const GREETING: &str = "Welcome to the museum of natural history. We have many bones, stones and birds to show you \
                        today, and a small cafe on the second floor.";

/// When the recording begins; the words follow [`SPEECH_BEGINS`] later. By then the visitor's echo canceller is trusted.
const START: Duration = ms(3000);

fn greeting() -> EngineConfig {
    EngineConfig {
        greetings: vec![GREETING.to_owned()],
        ..config()
    }
}

fn interrupted(config: EngineConfig, words: &'static str) -> Harness {
    let mut harness = Harness::connected(config);
    harness.script.words = Some(words);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(START + ms(3500));
    harness
}

/// A character that speaks while its microphone hears so much of a word from `at` on, as long as a browser's echo canceller
/// lets a piece of the character's own voice pass.
fn with_a_piece_of_speech(at: Duration, length: Duration) -> Harness {
    let mut harness = Harness::connected(greeting());
    harness.script.words = Some("let");
    let speech = 16 * SPEECH_BEGINS.as_millis() as usize;
    let audio = recording();
    let mut piece = audio[speech..speech + 16 * length.as_millis() as usize].to_vec();
    piece.extend(audio[..4800].iter().cycle().take(32_000));
    Visitor::new(Network::default()).say(&mut harness, at, &piece);
    harness.run_until(at + ms(3000));
    harness
}

/// When the character gave way.
fn gave_way(harness: &Harness) -> Duration {
    let (at, _) = harness
        .line_events()
        .into_iter()
        .find(|(_, (_, is_final))| *is_final)
        .unwrap();
    at
}

#[test]
fn the_character_is_silent_within_one_frame() {
    let harness = interrupted(greeting(), "");
    let at = gave_way(&harness);
    let noticed = at - (START + SPEECH_BEGINS);
    assert!(noticed <= ms(96 + 80), "noticed after {noticed:?}");
    let last = harness.voice().last().unwrap().0;
    assert!(
        last <= at && last + ms(20) >= at,
        "last frame at {last:?}, gave way at {at:?}"
    );
    assert_eq!(
        harness.agent(),
        [AgentState::Speaking, AgentState::Listening]
    );
    // The frame of silence that tells the receiver to stop, and nothing else.
    let next = harness
        .frames()
        .into_iter()
        .find(|(sent, _)| *sent > last)
        .unwrap();
    assert_eq!(next.0, last + ms(20));
}

#[test]
fn an_echo_of_the_first_words_interrupts_nobody_and_is_no_turn() {
    for at in [ms(200), ms(900), ms(1700)] {
        let harness = with_a_piece_of_speech(at, ms(250));
        assert_eq!(harness.agent(), [AgentState::Speaking], "at {at:?}");
        assert_eq!(harness.lines().len(), 1, "at {at:?}");
        assert!(harness.utterances().is_empty(), "at {at:?}");
    }
    // The same sound is the visitor's once the canceller has heard enough.
    let harness = with_a_piece_of_speech(ms(2300), ms(250));
    assert!(harness.engine.transcript()[0].interrupted);
    assert_eq!(harness.lines()[1], (Originator::User, "let".to_owned()));
    // Nor is it an echo while nobody speaks.
    let mut silent = Harness::connected(config());
    silent.script.words = Some("let");
    let speech = 16 * SPEECH_BEGINS.as_millis() as usize;
    let piece = &recording()[speech..speech + 4000];
    Visitor::new(Network::default()).say(&mut silent, ms(200), piece);
    silent.run_until(ms(2000));
    assert_eq!(silent.lines()[0], (Originator::User, "let".to_owned()));
}

#[test]
fn words_over_the_first_words_interrupt_when_they_are_too_long_for_an_echo() {
    let mut harness = Harness::connected(greeting());
    harness.script.words = Some("go forward");
    Visitor::new(Network::default()).speak(&mut harness, ms(500), AfterSpeech::Noise);
    harness.run_until(ms(4000));
    let noticed = gave_way(&harness) - (ms(500) + SPEECH_BEGINS);
    assert!(
        noticed >= ms(400) && noticed <= ms(400 + 100),
        "{noticed:?}"
    );
    assert!(harness.engine.transcript()[0].interrupted);
    assert_eq!(
        harness.lines()[1],
        (Originator::User, "go forward".to_owned())
    );
}

#[test]
fn the_line_keeps_what_was_played() {
    let harness = interrupted(greeting(), "go forward");
    let line = &harness.engine.transcript()[0];
    assert_eq!(line.originator, Originator::Bot);
    assert!(line.interrupted);
    assert!(GREETING.starts_with(&line.text), "{}", line.text);
    let after = GREETING[line.text.len()..].chars().next().unwrap();
    assert!(!after.is_alphanumeric(), "cut inside a word: {}", line.text);
    // 15 characters a second were synthesized; up to one word may be missing.
    let played = harness
        .voice()
        .iter()
        .filter(|(at, _)| *at <= gave_way(&harness))
        .count()
        * 20
        * 15
        / 1000;
    let kept = line.text.chars().count();
    assert!(
        kept <= played + 1 && kept + 12 >= played,
        "kept {kept} of {played} characters played"
    );
}

#[test]
fn everything_in_flight_is_cancelled() {
    let mut harness = Harness::connected(config());
    harness.script.reply =
        vec!["This is the first sentence of the answer. And a second one. And a third one. And"];
    harness.script.speech = false;
    harness.input(colloquy_voice::Input::TypedTurn {
        text: "hi".to_owned(),
    });
    harness.run_until(ms(1));
    // The reply is complete; the first sentence is being made and is audible already.
    let sentences: Vec<_> = harness
        .spoken()
        .into_iter()
        .map(|(_, (id, _))| id)
        .collect();
    assert_eq!(sentences.len(), 2, "two sentences ahead, no more");
    let samples = crate::harness::tone(48_000, 4000);
    harness.input(colloquy_voice::Input::Speech {
        sentence: sentences[0],
        samples,
        sample_rate_hz: 48_000,
    });
    Visitor::new(Network::default()).speak(&mut harness, ms(500), AfterSpeech::Noise);
    harness.run_until(ms(1500));
    let sentences: Vec<_> = harness
        .spoken()
        .into_iter()
        .map(|(_, (id, _))| id)
        .collect();
    assert_eq!(sentences.len(), 3, "one plays, two are ahead");
    for sentence in sentences {
        assert!(harness.cancelled(&Output::CancelSpeech(sentence)));
    }
    let line = harness.engine.transcript().last().unwrap();
    assert!(
        line.interrupted && "This is the first sentence of the answer.".starts_with(&line.text)
    );
    // What is not made yet is guessed by the length of the text: 1.1 s are about 16 characters.
    assert!((3..=18).contains(&line.text.len()), "{}", line.text);
}

#[test]
fn an_unheard_reply_leaves_no_line() {
    let mut harness = Harness::new(greeting());
    harness.script.speech_delay = ms(4000);
    harness.script.words = Some("");
    harness.input(colloquy_voice::Input::Connected);
    Visitor::new(Network::default()).speak(&mut harness, ms(0), AfterSpeech::Noise);
    harness.run_until(ms(6000));
    let sentence = harness.spoken()[0].1.0;
    assert!(harness.cancelled(&Output::CancelSpeech(sentence)));
    assert!(
        harness.voice().is_empty()
            && harness.lines().is_empty()
            && harness.line_events().is_empty()
    );
}

#[test]
fn a_reply_cut_before_its_first_word_is_withdrawn() {
    let mut harness = Harness::connected(greeting());
    harness.run_until(ms(40));
    harness.input(colloquy_voice::Input::TypedTurn {
        text: "wait".to_owned(),
    });
    let events = harness.line_events();
    let (line, is_final) = &events[1].1;
    assert_eq!((line.text.as_str(), *is_final), ("", true));
    assert_eq!(harness.lines(), [(Originator::User, "wait".to_owned())]);
}

#[test]
fn a_sound_without_words_gets_the_interruption_message() {
    let message = "Sorry, did you say something?";
    let with_message = EngineConfig {
        interruption_message: Some(message.to_owned()),
        ..greeting()
    };
    let harness = interrupted(with_message.clone(), "");
    assert_eq!(harness.spoken().last().unwrap().1.1, message);
    assert_eq!(harness.lines().len(), 2);
    assert!(harness.replies().is_empty());

    // Words are answered; and a sound that interrupted nobody needs no remark.
    let harness = interrupted(with_message.clone(), "go forward");
    assert!(
        harness
            .spoken()
            .iter()
            .all(|(_, (_, text))| text != message)
    );
    let harness = interrupted(
        EngineConfig {
            greetings: vec![],
            ..with_message
        },
        "",
    );
    assert!(harness.spoken().is_empty());
    // Nor is there one without a message.
    let harness = interrupted(greeting(), "");
    assert_eq!(harness.lines().len(), 1);
}

#[test]
fn without_barge_in_the_character_finishes_and_then_answers() {
    let mut stubborn = greeting();
    stubborn.turns.barge_in = false;
    let mut harness = interrupted(stubborn, "go forward");
    harness.run_until(ms(20_000));
    let lines = harness.engine.transcript();
    assert_eq!(lines[0].text, GREETING);
    assert!(!lines[0].interrupted);
    let reply = harness.replies();
    assert_eq!(reply.len(), 1);
    let end_of_greeting = ms(crate::harness::speech_ms(GREETING) as u64);
    assert!(
        reply[0].0 >= end_of_greeting - ms(100),
        "answered at {:?}",
        reply[0].0
    );
    let last = lines.last().unwrap();
    assert_eq!(
        last.text,
        "Going forward ten meters now. Tell me when to stop, please."
    );
}
