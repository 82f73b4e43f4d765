//! Whatever happens in whatever order: no panic, no busy timer, no flood, and nothing after the end.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use colloquy_voice::{
    Engine, EngineConfig, Input, Output, PauseId, PredictedHold, ReplyId, RtpPacket, SentenceId,
    TranscriptionId, TurnSettings, UtteranceStage,
};
use proptest::prelude::*;
use support::by_length;

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, Visitor};
use crate::harness::{Harness, config, ms};

fn any_input() -> impl Strategy<Value = Input> {
    let id = 0_u64..6;
    let text = prop_oneof![
        "[a-z]{1,9}[ .,!?]{0,2}",
        Just("Hello there. ".to_owned()),
        Just(String::new())
    ];
    prop_oneof![
        Just(Input::Connected),
        Just(Input::Disconnected),
        Just(Input::Timeout),
        (
            any::<u16>(),
            any::<u32>(),
            prop::collection::vec(any::<u8>(), 0..80)
        )
            .prop_map(|(sequence, timestamp, payload)| {
                Input::Packet(RtpPacket {
                    sequence,
                    timestamp,
                    payload: Bytes::from(payload),
                })
            }),
        (id.clone(), text.clone()).prop_map(|(id, text)| Input::Transcribed {
            transcription: TranscriptionId(id),
            text,
        }),
        id.clone().prop_map(|id| Input::TranscriptionFailed {
            transcription: TranscriptionId(id)
        }),
        (id.clone(), text.clone()).prop_map(|(id, delta)| Input::ReplyText {
            reply: ReplyId(id),
            delta
        }),
        id.clone()
            .prop_map(|id| Input::ReplyRetracted { reply: ReplyId(id) }),
        id.clone()
            .prop_map(|id| Input::ReplyEnded { reply: ReplyId(id) }),
        id.clone()
            .prop_map(|id| Input::ReplyFailed { reply: ReplyId(id) }),
        (
            id.clone(),
            0_usize..20_000,
            prop::sample::select(vec![8_000, 22_050, 24_000, 48_000])
        )
            .prop_map(|(id, samples, sample_rate_hz)| {
                Input::Speech {
                    sentence: SentenceId(id),
                    samples: vec![500; samples],
                    sample_rate_hz,
                }
            }),
        id.clone().prop_map(|id| Input::SpeechEnded {
            sentence: SentenceId(id)
        }),
        id.prop_map(|id| Input::SpeechFailed {
            sentence: SentenceId(id)
        }),
        text.prop_map(|text| Input::TypedTurn { text }),
        any::<bool>().prop_map(Input::Mute),
        (0..4_u64, any::<bool>()).prop_map(|(pause, is_complete)| Input::EndOfTurnPredicted {
            pause: PauseId(pause),
            is_complete,
        }),
    ]
}

fn eager() -> EngineConfig {
    EngineConfig {
        turns: TurnSettings {
            start_ms: 16,
            min_speech_ms: 16,
            interim_ms: Some(100),
            pause_ms: Some(48),
            early_transcripts: true,
            predicted_hold: Some(PredictedHold {
                complete_ms: 64,
                incomplete_ms: 900,
            }),
            ..config().turns
        },
        greetings: vec!["Hello. I am here.".to_owned()],
        interruption_message: Some("Yes?".to_owned()),
        provider_timeout: ms(700),
        time_limit: ms(30_000),
        ..config()
    }
}

/// What every history must satisfy.
fn check(log: &[(Duration, Output)]) {
    let sends: Vec<_> = log
        .iter()
        .filter_map(|(at, output)| match output {
            Output::Send(frame) => Some((*at, frame)),
            _ => None,
        })
        .collect();
    for (index, (at, frame)) in sends.iter().enumerate() {
        if index > 0 {
            let (_, before) = sends[index - 1];
            assert_eq!(frame.sequence, before.sequence.wrapping_add(1));
            let ahead = frame.timestamp.wrapping_sub(before.timestamp);
            assert!(
                (960..1 << 31).contains(&ahead),
                "RTP time goes by whole frames, and forwards"
            );
        }
        // In any stretch of time there are no more frames than fit, one burst, and a frame of silence.
        if index >= 10 {
            assert!(
                *at - sends[index - 10].0 >= ms(20) * (10 - 4),
                "a flood of frames at {at:?}"
            );
        }
    }
    let mut ids = BTreeSet::new();
    for (_, output) in log {
        if let Output::Speak { sentence, text } = output {
            assert!(ids.insert(*sentence) && !text.trim().is_empty());
        }
    }
    let end = log
        .iter()
        .position(|(_, output)| matches!(output, Output::End(_)));
    assert!(
        end.is_none_or(|end| end + 1 == log.len()),
        "nothing follows the end"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: by_length(200, 4_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_survived(
        history in prop::collection::vec((0_u64..400, any_input()), 0..120),
        lazy_timers in any::<bool>(),
    ) {
        let mut harness = Harness::new(eager());
        harness.script.words = None;
        harness.script.reply = vec![];
        harness.script.speech = false;
        for (pause, input) in history {
            if lazy_timers {
                harness.now += ms(pause);
            } else {
                harness.run_for(ms(pause));
            }
            harness.input(input);
        }
        harness.run_for(ms(3000));
        harness.input(Input::HangUp);
        harness.run_for(ms(1000));
        check(&harness.log);
        prop_assert!(harness.ends().len() == 1);
        prop_assert_eq!(harness.engine.next_timeout(), None);
    }

}

proptest! {
    // A whole conversation takes a while to encode.
    #![proptest_config(ProptestConfig { cases: by_length(40, 800), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hanging_up_at_any_moment_of_a_conversation_ends_it(
        moment in 0_u64..14_000,
        loss_percent in 0_u64..30,
        jitter_ms in 0_u64..150,
        delay in 0_u64..900,
        seed in any::<u64>(),
    ) {
        let mut harness = Harness::new(EngineConfig { time_limit: ms(12_000), seed, ..eager() });
        harness.script.words_delay = ms(delay);
        harness.script.reply_delay = ms(delay / 2);
        harness.script.speech_delay = ms(delay / 3);
        harness.input(Input::Connected);
        let mut visitor = Visitor::new(Network { loss_percent, jitter_ms, duplicate_percent: 5, seed });
        visitor.speak(&mut harness, ms(700), AfterSpeech::Nothing);
        visitor.speak(&mut harness, ms(3200 + delay), AfterSpeech::Noise);
        harness.run_until(ms(moment));
        harness.input(Input::HangUp);
        harness.run_for(ms(2000));
        check(&harness.log);
        prop_assert_eq!(harness.ends().len(), 1);
        for line in harness.engine.transcript() {
            prop_assert!(!line.text.is_empty());
        }
        // Each reply is to what was asked for.
        let asked = harness.utterances().len() + harness.transcriptions(UtteranceStage::Paused).len();
        prop_assert!(harness.replies().len() <= asked + 1);
    }
}

#[test]
fn the_same_history_gives_the_same_call() {
    let run = || {
        let mut harness = Harness::connected(eager());
        let network = Network {
            loss_percent: 10,
            jitter_ms: 40,
            duplicate_percent: 5,
            seed: 1,
        };
        Visitor::new(network).speak(&mut harness, ms(700), AfterSpeech::Noise);
        harness.run_until(ms(10_000));
        harness.log
    };
    assert!(run() == run());
    assert!(Engine::new(eager()).is_ok());
}
