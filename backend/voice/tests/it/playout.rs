//! When frames go out, and what is in them.

use std::time::Duration;

use colloquy_voice::{Input, SentenceId};

use crate::harness::{Harness, config, ms, speech_ms, tone};

const TEXT: &str = "This is the first sentence of the answer. And this is the second one of it. Here is a third. And \
                    there are four of them.";

/// A call with a reply under way whose speech the test makes.
fn replying(text: &'static str) -> Harness {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![text];
    harness.script.speech = false;
    harness.run_until(ms(1000));
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    harness.run_until(ms(1000));
    harness
}

fn speech(harness: &mut Harness, sentence: SentenceId, duration_ms: usize) {
    let samples = tone(48_000, duration_ms);
    harness.input(Input::Speech {
        sentence,
        samples,
        sample_rate_hz: 48_000,
    });
}

fn sentence(harness: &Harness, index: usize) -> SentenceId {
    harness.spoken()[index].1.0
}

#[test]
fn frames_keep_time() {
    for rate_hz in [16_000, 22_050, 24_000, 44_100, 48_000] {
        let mut harness = Harness::connected(config());
        harness.script.rate_hz = rate_hz;
        harness.script.reply = vec![TEXT];
        harness.run_until(ms(1003));
        harness.input(Input::TypedTurn {
            text: "hi".to_owned(),
        });
        harness.run_until(ms(15_000));
        let voice = harness.voice();
        assert_eq!(voice[0].0, ms(1003), "the first frame goes out at once");
        assert!(voice[0].1.marker);
        for pair in voice.windows(2) {
            assert_eq!(pair[1].0, pair[0].0 + ms(20));
            assert_eq!(pair[1].1.timestamp, pair[0].1.timestamp.wrapping_add(960));
            assert!(!pair[1].1.marker);
        }
        let spoken: usize = harness
            .spoken()
            .iter()
            .map(|(_, (_, text))| speech_ms(text))
            .sum();
        let frames = spoken.div_ceil(20);
        assert!(
            (frames..=frames + 1).contains(&voice.len()),
            "{rate_hz} Hz: {} frames",
            voice.len()
        );
        assert_eq!(harness.engine.stats().frames_sent, voice.len() as u64);
    }
}

#[test]
fn the_voice_arrives_whole() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![TEXT];
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    harness.run_until(ms(15_000));
    let voice = harness.voice();
    let mut decoder = opus::Decoder::new(48_000, opus::Channels::Mono).unwrap();
    let mut samples = [0; 960];
    for (index, (_, frame)) in voice.iter().enumerate() {
        assert_eq!(
            decoder.decode(&frame.payload, &mut samples, false).unwrap(),
            960
        );
        let energy: f64 = samples
            .iter()
            .map(|sample| f64::from(*sample).powi(2))
            .sum();
        let loudness = (energy / 960.0).sqrt();
        // The tone has 5657; the codec needs a moment at the start, and the last frame is not full.
        let edge = index < 2 || index + 2 >= voice.len();
        assert!(
            edge || (4000.0..7500.0).contains(&loudness),
            "frame {index} has {loudness}"
        );
    }
}

#[test]
fn the_first_frame_does_not_wait_for_a_second_sentence() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    harness.script.speech = false;
    harness.input(Input::TypedTurn {
        text: "hi".to_owned(),
    });
    let reply = harness.replies()[0].1;
    harness.input(Input::ReplyText {
        reply,
        delta: "Yes".to_owned(),
    });
    harness.input(Input::ReplyText {
        reply,
        delta: ". ".to_owned(),
    });
    assert_eq!(
        harness.spoken().len(),
        1,
        "a sentence is spoken as soon as it is complete"
    );
    let first = sentence(&harness, 0);
    let at = harness.now;
    harness.input(Input::Speech {
        sentence: first,
        samples: tone(48_000, 19),
        sample_rate_hz: 48_000,
    });
    assert!(harness.voice().is_empty());
    harness.input(Input::Speech {
        sentence: first,
        samples: tone(48_000, 1),
        sample_rate_hz: 48_000,
    });
    assert_eq!(harness.voice().len(), 1);
    assert_eq!(harness.voice()[0].0, at);
}

#[test]
fn a_long_first_sentence_is_begun_at_a_clause() {
    let harness = replying(
        "If you really want to know what I think about it, I would say that the sea is blue.",
    );
    let texts: Vec<_> = harness
        .spoken()
        .into_iter()
        .map(|(_, (_, text))| text)
        .collect();
    assert_eq!(
        texts,
        [
            "If you really want to know what I think about it,",
            "I would say that the sea is blue."
        ]
    );
}

#[test]
fn two_sentences_are_asked_for_ahead() {
    let mut harness = replying(TEXT);
    assert_eq!(harness.spoken().len(), 2);
    for index in 0..4 {
        let id = sentence(&harness, index);
        speech(&mut harness, id, 1000);
        harness.input(Input::SpeechEnded { sentence: id });
        let begun = index + 1;
        assert_eq!(harness.spoken().len(), (begun + 2).min(4));
        harness.run_for(ms(1000));
    }
}

#[test]
fn the_end_of_a_sentence_does_not_wait_for_the_next() {
    let mut harness = replying("One sentence. Another sentence.");
    let (first, second) = (sentence(&harness, 0), sentence(&harness, 1));
    speech(&mut harness, first, 110);
    harness.input(Input::SpeechEnded { sentence: first });
    harness.run_until(ms(1500));
    assert_eq!(harness.voice().len(), 6, "the last frame is half silence");
    speech(&mut harness, second, 100);
    harness.input(Input::SpeechEnded { sentence: second });
    harness.run_until(ms(3000));
    assert_eq!(harness.voice().len(), 6 + 5);
}

#[test]
fn an_underrun_pauses_the_clock_and_loses_nothing() {
    let mut harness = replying("One sentence.");
    let id = sentence(&harness, 0);
    speech(&mut harness, id, 100);
    harness.run_until(ms(1500));
    assert_eq!(harness.voice().len(), 5);
    speech(&mut harness, id, 100);
    harness.input(Input::SpeechEnded { sentence: id });
    harness.run_until(ms(3000));
    let voice = harness.voice();
    assert_eq!(voice.len(), 10);
    assert_eq!(voice[5].0, ms(1500));
    assert!(voice[5].1.marker, "a new talk spurt");
    // RTP time is call time, on the grid of frames.
    let gap = voice[5].1.timestamp.wrapping_sub(voice[4].1.timestamp);
    assert_eq!(gap, 48 * 420);
}

#[test]
fn a_late_timer_is_made_up_for_in_small_bursts() {
    let mut harness = replying("One sentence.");
    let id = sentence(&harness, 0);
    speech(&mut harness, id, 2000);
    harness.run_until(ms(1200));
    let before = harness.voice().len();
    // 50 ms late: two more frames are due with the next.
    harness.now = ms(1271);
    harness.input(Input::Timeout);
    assert_eq!(harness.voice().len(), before + 3);
    assert_eq!(harness.engine.next_timeout(), Some(ms(1280)));
    harness.run_until(ms(1300));
    // A second late: three frames, and then one each 20 ms.
    let before = harness.voice().len();
    harness.now = ms(2300);
    harness.input(Input::Timeout);
    harness.input(Input::Timeout);
    assert_eq!(harness.voice().len(), before + 3);
    assert_eq!(harness.engine.next_timeout(), Some(ms(2320)));
    harness.input(Input::SpeechEnded { sentence: id });
    harness.run_until(ms(6000));
    let voice = harness.voice();
    assert_eq!(voice.len(), 100, "nothing is lost");
    let stamps = voice
        .windows(2)
        .all(|pair| pair[1].1.timestamp == pair[0].1.timestamp.wrapping_add(960));
    assert!(stamps, "what was one spurt stays one");
}

#[test]
fn silence_costs_next_to_nothing() {
    let mut harness = Harness::connected(config());
    harness.run_until(ms(4079));
    let frames = harness.frames();
    assert!(harness.voice().is_empty());
    let at: Vec<_> = frames.iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(
        at[..7],
        [0, 20, 40, 60, 80, 480, 880],
        "five to warm up, then one each 400 ms"
    );
    assert_eq!(frames.len(), 5 + 9);
    for pair in frames.windows(2) {
        let (passed, sequence) = (pair[1].0 - pair[0].0, pair[0].1.sequence.wrapping_add(1));
        assert_eq!(pair[1].1.sequence, sequence);
        let stamp = pair[1].1.timestamp.wrapping_sub(pair[0].1.timestamp);
        assert_eq!(u128::from(stamp), passed.as_millis() * 48);
    }
    let mut decoder = opus::Decoder::new(48_000, opus::Channels::Mono).unwrap();
    let mut samples = [1; 960];
    assert_eq!(
        decoder
            .decode(&frames[0].1.payload, &mut samples, false)
            .unwrap(),
        960
    );
    assert!(samples.iter().all(|sample| *sample == 0));
}

#[test]
fn a_lost_path_pauses_the_voice_without_loss() {
    let mut harness = replying("One sentence.");
    let id = sentence(&harness, 0);
    speech(&mut harness, id, 1000);
    harness.input(Input::SpeechEnded { sentence: id });
    harness.run_until(ms(1200));
    harness.input(Input::Disconnected);
    let sent = harness.frames().len();
    harness.run_until(ms(4000));
    assert_eq!(harness.frames().len(), sent);
    harness.input(Input::Connected);
    harness.run_until(ms(7000));
    let voice = harness.voice();
    assert_eq!(voice.len(), 50);
    let resumed = voice.iter().find(|(at, _)| *at > ms(1200)).unwrap();
    assert_eq!(resumed.0, ms(4000));
    assert!(resumed.1.marker);
    let frames = harness.frames();
    let contiguous = frames
        .windows(2)
        .all(|pair| pair[1].1.sequence == pair[0].1.sequence.wrapping_add(1));
    assert!(contiguous);
    assert_eq!(harness.lines().last().unwrap().1, "One sentence.");
}

#[test]
fn a_redundant_copy_travels_with_the_voice() {
    // Speech-like enough for the encoder to add redundancy: the recording.
    let mut harness = replying("One sentence.");
    let id = sentence(&harness, 0);
    let samples = crate::harness::visitor::recording();
    harness.input(Input::Speech {
        sentence: id,
        samples: samples.clone(),
        sample_rate_hz: 16_000,
    });
    harness.input(Input::SpeechEnded { sentence: id });
    harness.run_until(ms(6000));
    let voice = harness.voice();
    assert_eq!(voice.len(), (samples.len() / 16).div_ceil(20));
    // SILK or hybrid, with the LBRR flag after the VAD flag (RFC 6716, 4.2.4), in most frames of speech.
    let redundant = |payload: &[u8]| payload[0] & 0x80 == 0 && payload[1] & 0x40 != 0;
    let speech = &voice[25..110];
    let count = speech
        .iter()
        .filter(|(_, frame)| redundant(&frame.payload))
        .count();
    assert!(count > speech.len() / 3, "{count} of {}", speech.len());
    let bytes: usize = voice.iter().map(|(_, frame)| frame.payload.len()).sum();
    let bitrate = bytes * 8 * 50 / voice.len();
    assert!((16_000..=40_000).contains(&bitrate), "{bitrate} bit/s");
}

#[test]
fn the_first_timestamp_is_the_offset_at_any_start() {
    let mut harness = Harness::new(config());
    harness.run_until(Duration::from_secs(100));
    harness.input(Input::Connected);
    let early = Harness::connected(config());
    assert_eq!(harness.frames()[0].1, early.frames()[0].1);
}
