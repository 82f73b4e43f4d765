//! Who speaks when, and what is written down.

use colloquy_voice::{AgentState, Input, Originator, Output};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor};
use crate::harness::{Harness, config, ms};

const WORDS: &str = "go forward ten meters";

fn visitor() -> Visitor {
    Visitor::new(Network::default())
}

#[test]
fn a_question_gets_an_answer() {
    let mut harness = Harness::connected(config());
    visitor().speak(&mut harness, ms(1000), AfterSpeech::Noise);
    harness.run_until(ms(12_000));
    assert_eq!(
        harness.agent(),
        [
            AgentState::Thinking,
            AgentState::Speaking,
            AgentState::Listening
        ]
    );
    let answer = "Going forward ten meters now. Tell me when to stop, please.".to_owned();
    assert_eq!(
        harness.lines(),
        [
            (Originator::User, WORDS.to_owned()),
            (Originator::Bot, answer.clone())
        ]
    );

    let events = harness.line_events();
    let texts: Vec<_> = events
        .iter()
        .map(|(_, (line, is_final))| (line.text.as_str(), *is_final))
        .collect();
    assert_eq!(
        texts,
        [
            (WORDS, true),
            ("Going forward ten meters now.", false),
            (answer.as_str(), false),
            (answer.as_str(), true),
        ]
    );
    // The second sentence appears when it is heard, and the line is final when the last sound was.
    let voice = harness.voice();
    assert_eq!(events[1].0, voice[0].0);
    assert!(events[2].0 > voice[0].0 + ms(1800));
    assert_eq!(events[3].0, voice[voice.len() - 1].0 + ms(20));
    assert!(!harness.engine.transcript()[1].interrupted);
}

#[test]
fn the_answer_is_audible_as_soon_as_there_is_speech() {
    let mut harness = Harness::connected(config());
    visitor().speak(&mut harness, ms(1000), AfterSpeech::Noise);
    harness.run_until(ms(12_000));
    assert_eq!(
        harness.voice()[0].0,
        harness.utterances()[0].0,
        "scripted providers take no time, neither do we"
    );
}

#[test]
fn going_on_before_the_answer_asks_again() {
    let mut harness = Harness::connected(config());
    harness.script.reply_delay = ms(900);
    let mut visitor = visitor();
    visitor.speak(&mut harness, ms(1000), AfterSpeech::Nothing);
    visitor.speak(&mut harness, ms(3300), AfterSpeech::Noise);
    harness.run_until(ms(15_000));
    let replies = harness.replies();
    assert_eq!(replies.len(), 2);
    assert!(harness.cancelled(&Output::CancelReply(replies[0].1)));
    let spoken: Vec<_> = harness
        .lines()
        .into_iter()
        .map(|(originator, _)| originator)
        .collect();
    assert_eq!(
        spoken,
        [Originator::User, Originator::User, Originator::Bot]
    );
    assert!(
        harness.voice()[0].0 > replies[1].0,
        "nothing of the first answer is heard"
    );
    use AgentState::{Listening, Speaking, Thinking};
    assert_eq!(
        harness.agent(),
        [Thinking, Listening, Thinking, Speaking, Listening]
    );
}

#[test]
fn a_sound_while_thinking_loses_no_answer() {
    for barge_in in [true, false] {
        let mut quiet = config();
        quiet.turns.barge_in = barge_in;
        quiet.interruption_message = Some("Pardon?".to_owned());
        let mut harness = Harness::connected(quiet);
        harness.script.reply_delay = ms(1200);
        let mut visitor = visitor();
        visitor.speak(&mut harness, ms(1000), AfterSpeech::Nothing);
        visitor.speak(&mut harness, ms(3300), AfterSpeech::Noise);
        harness.run_until(ms(3800));
        assert_eq!(harness.replies().len(), 1);
        harness.script.words = Some("");
        harness.run_until(ms(15_000));
        assert_eq!(
            harness.replies().len(),
            2,
            "the answer that was taken back is asked for again"
        );
        assert_eq!(harness.lines().len(), 2);
        assert!(
            harness
                .spoken()
                .iter()
                .all(|(_, (_, text))| text != "Pardon?"),
            "nothing was interrupted"
        );
    }
}

#[test]
fn a_late_transcript_takes_its_place() {
    let mut harness = Harness::connected(config());
    harness.script.words = None;
    let mut visitor = visitor();
    visitor.speak(&mut harness, ms(1000), AfterSpeech::Nothing);
    visitor.speak(&mut harness, ms(4000), AfterSpeech::Nothing);
    harness.run_until(ms(7000));
    let utterances: Vec<_> = harness
        .utterances()
        .into_iter()
        .map(|(_, (id, _))| id)
        .collect();
    assert_eq!(utterances.len(), 2);
    harness.transcribe(ms(7000), utterances[1], "second");
    harness.transcribe(ms(7100), utterances[0], "first");
    harness.run_until(ms(7050));
    assert!(
        harness.replies().is_empty(),
        "an answer would miss what was said first"
    );
    harness.run_until(ms(7200));
    assert_eq!(harness.replies().len(), 1);
    let user = |text: &str| (Originator::User, text.to_owned());
    assert_eq!(harness.lines()[..2], [user("first"), user("second")]);
}

#[test]
fn no_words_no_line() {
    let mut harness = Harness::connected(config());
    harness.script.words = Some("  ");
    visitor().speak(&mut harness, ms(1000), AfterSpeech::Noise);
    harness.run_until(ms(6000));
    assert_eq!(harness.utterances().len(), 1);
    assert!(
        harness.lines().is_empty() && harness.replies().is_empty() && harness.agent().is_empty()
    );
}

#[test]
fn a_typed_turn_interrupts_and_is_answered() {
    let mut greeting = config();
    greeting.greetings =
        vec!["Hello, I am here to talk with you about anything at all.".to_owned()];
    let mut harness = Harness::connected(greeting);
    harness.run_until(ms(1500));
    let heard = harness.voice().len();
    harness.input(Input::TypedTurn {
        text: " What is new? ".to_owned(),
    });
    assert_eq!(harness.replies().len(), 1);
    assert_eq!(harness.voice().len(), heard);
    harness.run_until(ms(8000));
    let lines = harness.engine.transcript();
    assert!(
        lines[0].interrupted && lines[0].text.starts_with("Hello, I") && lines[0].text.len() < 40
    );
    assert_eq!(lines[1].text, "What is new?");
    assert_eq!(lines[2].originator, Originator::Bot);
}

#[test]
fn a_typed_turn_is_answered_while_the_microphone_hears_something() {
    let mut harness = Harness::connected(config());
    visitor().speak(&mut harness, ms(1000), AfterSpeech::Noise);
    harness.run_until(ms(2000));
    harness.input(Input::TypedTurn {
        text: "stop".to_owned(),
    });
    assert_eq!(harness.replies().len(), 1);
}

#[test]
fn the_greeting_is_chosen_by_the_seed() {
    let greetings: Vec<String> = ["One.", "Two.", "Three."].map(str::to_owned).to_vec();
    let mut chosen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut harness = Harness::connected(colloquy_voice::EngineConfig {
            greetings: greetings.clone(),
            seed,
            ..config()
        });
        harness.run_until(ms(3000));
        let said = harness.lines()[0].1.clone();
        assert!(greetings.contains(&said));
        let again = harness.spoken()[0].1.1.clone();
        assert_eq!(said, again);
        chosen.insert(said);
        harness.input(Input::Disconnected);
        harness.input(Input::Connected);
        assert_eq!(
            harness.spoken().len(),
            1,
            "a reconnect is no second greeting"
        );
    }
    assert_eq!(chosen.len(), 3);
}

#[test]
fn a_thought_that_was_taken_for_a_reply_is_retracted() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    let reply = harness.replies()[0].1;
    let text = |delta: &str| Input::ReplyText {
        reply,
        delta: delta.to_owned(),
    };
    harness.input(text(
        "The visitor greets me again. I keep the plan to myself. And",
    ));
    harness.run_for(ms(500));
    let heard = |harness: &Harness| {
        let lines = harness.lines().into_iter();
        let bot = lines.filter(|(originator, _)| *originator == Originator::Bot);
        bot.map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(heard(&harness), ["The visitor greets me again."]);
    harness.input(Input::ReplyRetracted { reply });
    assert!(heard(&harness).is_empty());
    let (line, is_final) = harness.line_events().last().unwrap().1.clone();
    assert!(line.text.is_empty() && is_final, "{line:?}");

    harness.input(text("Hello there."));
    harness.input(Input::ReplyEnded { reply });
    harness.run_for(ms(10_000));
    assert_eq!(heard(&harness), ["Hello there."]);
    assert!(harness.failures().is_empty());
    let spoken = harness.spoken();
    let last = spoken.last().unwrap();
    assert_eq!(last.1.1, "Hello there.");
}

#[test]
fn answers_to_cancelled_questions_are_dropped() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    harness.script.speech = false;
    harness.input(Input::TypedTurn {
        text: "first".to_owned(),
    });
    let old = harness.replies()[0].1;
    harness.input(Input::ReplyText {
        reply: old,
        delta: "The old answer is this. ".to_owned(),
    });
    let old_sentence = harness.spoken()[0].1.0;
    harness.input(Input::TypedTurn {
        text: "second".to_owned(),
    });
    assert!(harness.cancelled(&Output::CancelReply(old)));
    assert!(harness.cancelled(&Output::CancelSpeech(old_sentence)));

    let before = harness.log.len();
    harness.input(Input::ReplyText {
        reply: old,
        delta: "More of it. And more. ".to_owned(),
    });
    harness.input(Input::ReplyEnded { reply: old });
    harness.input(Input::ReplyFailed { reply: old });
    let samples = vec![1000; 4800];
    harness.input(Input::Speech {
        sentence: old_sentence,
        samples,
        sample_rate_hz: 48_000,
    });
    harness.input(Input::SpeechEnded {
        sentence: old_sentence,
    });
    harness.input(Input::SpeechFailed {
        sentence: old_sentence,
    });
    let transcription = colloquy_voice::TranscriptionId(99);
    harness.input(Input::Transcribed {
        transcription,
        text: "x".to_owned(),
    });
    harness.input(Input::TranscriptionFailed { transcription });
    assert_eq!(harness.log.len(), before, "{:?}", &harness.log[before..]);
}
