//! Providers that fail, stall or go on for ever.

use colloquy_voice::{AgentState, EngineConfig, FailedProvider, Input, Output};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor};
use crate::harness::{Harness, config, ms, tone};

const APOLOGY: &str = "Sorry, something went wrong.";

fn typed(harness: &mut Harness) {
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
}

fn bot_lines(harness: &Harness) -> Vec<String> {
    let lines = harness.lines().into_iter();
    lines
        .filter(|(who, _)| *who == colloquy_voice::Originator::Bot)
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn a_failed_transcription_is_apologised_for() {
    for stalls in [false, true] {
        let mut harness = Harness::connected(config());
        harness.script.words = None;
        Visitor::new(Network::default()).speak(&mut harness, ms(0), AfterSpeech::Noise);
        harness.run_until(ms(4000));
        let (asked, (transcription, _)) = harness.utterances().remove(0);
        if !stalls {
            harness.input(Input::TranscriptionFailed { transcription });
        }
        harness.run_until(ms(20_000));
        assert_eq!(harness.failures(), [FailedProvider::Transcriber]);
        assert_eq!(
            harness.cancelled(&Output::CancelTranscription(transcription)),
            stalls
        );
        assert_eq!(bot_lines(&harness), [APOLOGY]);
        if stalls {
            assert_eq!(
                harness.voice()[0].0,
                asked + ms(5000),
                "after exactly the provider timeout"
            );
        }
        harness.transcribe(ms(20_000), transcription, "late words");
        harness.run_until(ms(21_000));
        assert!(harness.replies().is_empty(), "late words are dropped");
    }
}

#[test]
fn a_failed_reply_is_played_as_far_as_it_came() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    typed(&mut harness);
    let reply = harness.replies()[0].1;
    harness.input(Input::ReplyText {
        reply,
        delta: "This much came. And then".to_owned(),
    });
    harness.input(Input::ReplyFailed { reply });
    harness.run_until(ms(10_000));
    assert_eq!(harness.failures(), [FailedProvider::Model]);
    assert_eq!(bot_lines(&harness), ["This much came. And then", APOLOGY]);
    assert_eq!(harness.agent().last(), Some(&AgentState::Listening));
}

#[test]
fn a_stalled_model_counts_as_failed() {
    // At the first word, and after one.
    for words in ["", "One sentence. "] {
        let mut harness = Harness::connected(config());
        harness.script.reply = vec![];
        typed(&mut harness);
        let reply = harness.replies()[0].1;
        harness.run_until(ms(4000));
        harness.input(Input::ReplyText {
            reply,
            delta: words.to_owned(),
        });
        harness.run_until(ms(8999));
        assert!(
            harness.failures().is_empty(),
            "the clock starts anew with each piece"
        );
        harness.run_until(ms(9000));
        assert_eq!(harness.failures(), [FailedProvider::Model]);
        assert!(harness.cancelled(&Output::CancelReply(reply)));
        harness.run_until(ms(20_000));
        assert_eq!(bot_lines(&harness).last().unwrap(), APOLOGY);
    }
}

#[test]
fn a_failed_sentence_is_skipped() {
    let mut harness = Harness::connected(config());
    harness.script.speech = false;
    harness.script.reply = vec!["First sentence. Second sentence. Third sentence."];
    typed(&mut harness);
    harness.run_until(ms(1));
    let ids: Vec<_> = harness
        .spoken()
        .into_iter()
        .map(|(_, (id, _))| id)
        .collect();
    // The first fails half-way, the second at once, the third is made.
    harness.input(Input::Speech {
        sentence: ids[0],
        samples: tone(48_000, 500),
        sample_rate_hz: 48_000,
    });
    harness.input(Input::SpeechFailed { sentence: ids[0] });
    harness.input(Input::SpeechFailed { sentence: ids[1] });
    harness.run_until(ms(100));
    harness.script.speech = true;
    let third = harness.spoken()[2].1.clone();
    assert_eq!(third.1, "Third sentence.");
    harness.input(Input::Speech {
        sentence: third.0,
        samples: tone(48_000, 1000),
        sample_rate_hz: 48_000,
    });
    harness.input(Input::SpeechEnded { sentence: third.0 });
    harness.run_until(ms(10_000));
    assert_eq!(harness.failures(), [FailedProvider::Synthesizer; 2]);
    assert_eq!(bot_lines(&harness), ["First Third sentence.", APOLOGY]);
}

#[test]
fn a_broken_synthesizer_is_not_asked_for_ever() {
    let mut harness = Harness::connected(EngineConfig {
        greetings: vec!["Hello.".to_owned()],
        ..config()
    });
    harness.script.speech = false;
    // The greeting was asked for before the script changed; from here on nothing is made.
    harness.input(Input::HangUp);

    let mut harness = Harness::new(EngineConfig {
        greetings: vec!["Hello.".to_owned()],
        ..config()
    });
    harness.script.speech = false;
    harness.input(Input::Connected);
    harness.run_until(ms(60_000));
    let spoken: Vec<_> = harness
        .spoken()
        .into_iter()
        .map(|(_, (_, text))| text)
        .collect();
    assert_eq!(spoken, ["Hello.", APOLOGY]);
    assert_eq!(harness.failures(), [FailedProvider::Synthesizer; 2]);
    assert!(harness.lines().is_empty() && harness.agent().is_empty());
}

#[test]
fn speech_that_stalls_is_cut_off() {
    let mut harness = Harness::connected(config());
    harness.script.speech = false;
    harness.script.reply = vec!["A sentence."];
    typed(&mut harness);
    harness.run_until(ms(3000));
    let id = harness.spoken()[0].1.0;
    harness.input(Input::Speech {
        sentence: id,
        samples: tone(48_000, 300),
        sample_rate_hz: 48_000,
    });
    harness.run_until(ms(7999));
    assert!(harness.failures().is_empty());
    harness.run_until(ms(8000));
    assert_eq!(harness.failures(), [FailedProvider::Synthesizer]);
    assert!(harness.cancelled(&Output::CancelSpeech(id)));
}

#[test]
fn useless_speech_counts_as_failed() {
    let speak = |pieces: &[(usize, u32)]| {
        let mut harness = Harness::connected(config());
        harness.script.speech = false;
        harness.script.reply = vec!["A sentence."];
        typed(&mut harness);
        harness.run_until(ms(1));
        let sentence = harness.spoken()[0].1.0;
        for &(samples, sample_rate_hz) in pieces {
            harness.input(Input::Speech {
                sentence,
                samples: vec![0; samples],
                sample_rate_hz,
            });
        }
        harness.failures()
    };
    assert_eq!(speak(&[(480, 24_000), (480, 24_000)]), []);
    assert_eq!(speak(&[(480, 0)]), [FailedProvider::Synthesizer]);
    assert_eq!(speak(&[(480, 47_999)]), [FailedProvider::Synthesizer]);
    assert_eq!(
        speak(&[(480, 24_000), (480, 48_000)]),
        [FailedProvider::Synthesizer]
    );
    assert_eq!(speak(&[(8_000 * 91, 8_000)]), [FailedProvider::Synthesizer]);
}

#[test]
fn a_model_without_end_is_stopped() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    harness.script.speech = false;
    typed(&mut harness);
    let reply = harness.replies()[0].1;
    for _ in 0..3000 {
        harness.input(Input::ReplyText {
            reply,
            delta: "And so it goes on and on. ".to_owned(),
        });
    }
    assert!(harness.cancelled(&Output::CancelReply(reply)));
    assert!(harness.failures().is_empty());
}

#[test]
fn a_reply_without_words_that_can_be_spoken_is_apologised_for() {
    // Without words, and with words that the synthesizer has no sound for.
    for (text, has_sound) in [(" ** ", true), ("*smiles*", false)] {
        let mut harness = Harness::connected(config());
        harness.script.reply = vec![text];
        harness.script.speech = has_sound;
        typed(&mut harness);
        harness.run_until(ms(1));
        if !has_sound {
            let sentence = harness.spoken()[0].1.0;
            harness.script.speech = true;
            harness.input(Input::SpeechEnded { sentence });
        }
        harness.run_until(ms(10_000));
        assert_eq!(harness.failures(), [FailedProvider::Model], "{text}");
        assert_eq!(bot_lines(&harness), [APOLOGY], "{text}");
        let last = harness.engine.transcript().last().unwrap();
        assert!(last.is_aside, "no part of the conversation");
    }
    // What was said is no apology, whatever stands beside it.
    let mut harness = Harness::connected(config());
    harness.script.reply = vec!["Hello."];
    typed(&mut harness);
    harness.run_until(ms(10_000));
    assert!(harness.failures().is_empty());
    assert!(
        harness
            .engine
            .transcript()
            .iter()
            .all(|line| !line.is_aside)
    );
}
