//! The visitor's voice over good and bad networks.

use colloquy_voice::{EngineConfig, Input, Output, UtteranceStage};

use crate::harness::network::Network;
use crate::harness::visitor::{AfterSpeech, SPEECH_BEGINS, SPEECH_ENDS, Visitor, recording};
use crate::harness::{Harness, config, ms};

/// How alike two recordings sound: the correlation of their loudness in 20 ms steps, where they fit best.
fn likeness(heard: &[i16], original: &[i16]) -> f64 {
    let loudness = |samples: &[i16]| -> Vec<f64> {
        let energy = |step: &[i16]| {
            step.iter()
                .map(|sample| f64::from(*sample).powi(2))
                .sum::<f64>()
        };
        samples
            .chunks(320)
            .map(|step| (energy(step) + ROOM).ln())
            .collect()
    };
    let heard = loudness(heard);
    let offsets = (0..8_000).step_by(80);
    offsets
        .map(|offset| correlation(&heard, &loudness(&original[offset..])))
        .fold(f64::MIN, f64::max)
}

/// The energy of 20 ms of the room's noise, below which loudness says nothing.
const ROOM: f64 = 320.0 * 60.0 * 60.0;

fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let count = left.len().min(right.len()) as f64;
    let pairs = || left.iter().zip(right);
    let (mean_left, mean_right) = (
        pairs().map(|(l, _)| l).sum::<f64>() / count,
        pairs().map(|(_, r)| r).sum::<f64>() / count,
    );
    let covariance: f64 = pairs()
        .map(|(l, r)| (l - mean_left) * (r - mean_right))
        .sum();
    let spread_left: f64 = pairs().map(|(l, _)| (l - mean_left).powi(2)).sum();
    let spread_right: f64 = pairs().map(|(_, r)| (r - mean_right).powi(2)).sum();
    covariance / (spread_left * spread_right).sqrt()
}

const START: std::time::Duration = ms(1000);

/// One sentence over the network, and what the engine did with it.
fn hear(network: Network) -> Harness {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    Visitor::new(network).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    harness
}

#[test]
fn a_sentence_is_one_turn_whatever_the_network_does() {
    for (loss_percent, jitter_ms, seed) in [0, 5, 10, 20]
        .into_iter()
        .flat_map(|loss| [0, 30, 60].map(|jitter| (loss, jitter)))
        .flat_map(|(loss, jitter)| [0, 1, 2].map(|seed| (loss, jitter, seed)))
    {
        let case = format!("{loss_percent} % loss, {jitter_ms} ms jitter, seed {seed}");
        let harness = hear(Network {
            loss_percent,
            jitter_ms,
            duplicate_percent: 5,
            seed,
        });
        let utterances = harness.utterances();
        assert_eq!(utterances.len(), 1, "{case}");
        let (at, (_, samples)) = &utterances[0];

        let hold = *at - (START + SPEECH_ENDS);
        let network_delay = ms(jitter_ms) + if loss_percent > 0 { ms(20) } else { ms(0) };
        assert!(
            hold <= ms(260) + network_delay,
            "{case}: ended {hold:?} after the words"
        );
        assert!(hold >= ms(180), "{case}: ended {hold:?} after the words");

        let alike = likeness(samples, &recording());
        assert!(alike > 0.85, "{case}: likeness {alike}");
        // Nothing is cut at either end: there is some of the quiet before and after, and not all of the hold.
        let length = ms(samples.len() as u64 / 16);
        let words = SPEECH_ENDS - SPEECH_BEGINS;
        let quiet = length.saturating_sub(words);
        assert!(
            (ms(200 + 50)..=ms(300 + 200)).contains(&quiet),
            "{case}: {length:?} long"
        );

        let stats = harness.engine.stats();
        assert!(
            stats.frames_concealed + stats.frames_recovered <= stats.packets_lost,
            "{case}"
        );
        assert_eq!(stats.packets_lost > 0, loss_percent > 0, "{case}");
        assert_eq!(stats.frames_recovered > 0, loss_percent > 0, "{case}");
        assert!(stats.packets_duplicate > 0, "{case}");
    }
}

#[test]
fn loss_is_counted_as_it_happened() {
    let network = Network {
        loss_percent: 10,
        seed: 3,
        ..Network::default()
    };
    let delays = network.delays(1000);
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    let sent = Visitor::new(network).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    let arrived: Vec<bool> = delays[..sent]
        .iter()
        .map(|copies| !copies.is_empty())
        .collect();
    let first = arrived.iter().position(|arrived| *arrived).unwrap();
    let last = arrived.iter().rposition(|arrived| *arrived).unwrap();
    let lost = arrived[first..=last]
        .iter()
        .filter(|arrived| !**arrived)
        .count();
    assert_eq!(harness.engine.stats().packets_lost, lost as u64);
    assert_eq!(harness.engine.stats().packets_late, 0);
}

#[test]
fn reordering_and_copies_change_no_sample() {
    let clean = hear(Network::default());
    let messy = hear(Network {
        jitter_ms: 35,
        duplicate_percent: 30,
        seed: 5,
        ..Network::default()
    });
    let stats = messy.engine.stats();
    assert_eq!(
        (
            stats.packets_lost,
            stats.packets_late,
            stats.frames_concealed
        ),
        (0, 0, 0)
    );
    assert!(stats.packets_duplicate > 30);
    assert!(
        clean.utterances()[0].1 == messy.utterances()[0].1,
        "the audio differs"
    );
    assert!((25..=45).contains(&stats.jitter_delay_ms), "{stats:?}");
    assert_eq!(clean.engine.stats().jitter_delay_ms, 20);
}

#[test]
fn a_turn_ends_by_the_clock_when_packets_stop() {
    for cut_ms in [1500, 2000, 2330] {
        let mut harness = Harness::connected(config());
        let audio = &recording()[..16 * cut_ms];
        let sent = Visitor::new(Network::default()).say(&mut harness, START, audio);
        let last_packet = START + ms(20) * sent as u32;
        harness.run_until(ms(6000));
        let utterances = harness.utterances();
        assert_eq!(utterances.len(), 1);
        let waited = utterances[0].0 - last_packet;
        assert!(
            waited <= ms(200 + 60),
            "{waited:?} after the last packet at {cut_ms} ms"
        );
        assert!(!harness.voice().is_empty(), "the reply is spoken");
    }
}

#[test]
fn digital_silence_ends_a_turn_and_starts_none() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::DigitalSilence);
    harness.run_until(ms(6000));
    let utterances = harness.utterances();
    assert_eq!(utterances.len(), 1);
    let hold = utterances[0].0 - (START + SPEECH_ENDS);
    assert!(hold <= ms(260), "{hold:?}");
}

#[test]
fn a_pause_without_packets_inside_the_hold_is_silence() {
    let mut harness = Harness::connected(config());
    let mut visitor = Visitor::new(Network::default());
    let audio = recording();
    visitor.say(&mut harness, START, &audio[..16 * 1200]);
    // 120 ms without packets, in RTP time as well; the sequence goes on.
    visitor.say(&mut harness, START + ms(1320), &audio[16 * 1200..]);
    harness.run_until(ms(6000));
    let utterances = harness.utterances();
    assert_eq!(utterances.len(), 1, "the pause is shorter than the hold");
    let samples = &utterances[0].1.1;
    let silent = samples
        .chunks(160)
        .filter(|step| step.iter().all(|sample| *sample == 0))
        .count();
    assert!(
        (10..=13).contains(&silent),
        "{silent} steps of 10 ms are silent"
    );
    assert_eq!(harness.engine.stats().packets_lost, 0);
}

#[test]
fn a_new_stream_is_understood_from_its_first_packet() {
    let mut harness = Harness::connected(config());
    harness.script.reply = vec![];
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    let mut second = Visitor::new(Network::default());
    second.sequence = 9_000;
    second.timestamp_offset = 123_456_789;
    second.speak(&mut harness, ms(7000), AfterSpeech::Nothing);
    harness.run_until(ms(12_000));
    let utterances = harness.utterances();
    assert_eq!(utterances.len(), 2);
    assert!(likeness(&utterances[1].1.1, &recording()) > 0.85);
    let stats = harness.engine.stats();
    assert_eq!((stats.packets_lost, stats.packets_late), (0, 0));
}

#[test]
fn a_muted_microphone_is_silence() {
    let mut harness = Harness::connected(config());
    harness.input(Input::Mute(true));
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    assert!(harness.utterances().is_empty());

    let mut harness = Harness::connected(config());
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.schedule(START + ms(1510), Input::Mute(true));
    harness.schedule(START + ms(4000), Input::Mute(false));
    harness.run_until(ms(6000));
    let utterances = harness.utterances();
    assert_eq!(utterances.len(), 1);
    assert_eq!(
        utterances[0].0,
        START + ms(1510),
        "muting ends the turn at once"
    );
}

#[test]
fn long_speech_is_cut_and_goes_on_without_a_gap() {
    let whole = hear(Network::default()).utterances().remove(0).1.1;
    let mut short = config();
    short.turns.max_utterance_ms = 1600;
    let mut harness = Harness::connected(short);
    harness.script.reply = vec![];
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    let utterances = harness.utterances();
    assert_eq!(utterances.len(), 2);
    let parts: Vec<i16> = utterances
        .into_iter()
        .flat_map(|(_, (_, samples))| samples)
        .collect();
    assert!(parts == whole, "the audio differs");
    assert_eq!(harness.lines().len(), 2, "each part is a line");
    assert_eq!(harness.replies().len(), 1, "both parts have one answer");
}

#[test]
fn a_short_sound_is_no_turn() {
    let mut picky = config();
    picky.turns.min_speech_ms = 2500;
    let mut harness = Harness::connected(picky);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    assert!(harness.utterances().is_empty());
    assert!(harness.agent().is_empty());
}

#[test]
fn interim_results_come_while_the_visitor_speaks() {
    let mut interim = config();
    interim.turns.interim_ms = Some(500);
    let mut harness = Harness::connected(interim);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(START + ms(1700));
    let requests = |harness: &Harness| harness.transcriptions(UtteranceStage::Running);
    let asked = requests(&harness);
    assert_eq!(asked.len(), 1, "one at a time");
    let (transcription, ref first) = asked[0].1;
    harness.input(Input::Transcribed {
        transcription,
        text: "go for".to_owned(),
    });
    assert!(
        harness.lines().is_empty(),
        "what may change is no part of the transcript"
    );
    harness.run_until(ms(6000));
    assert_eq!(requests(&harness).len(), 2);
    let (second, ref samples) = requests(&harness)[1].1;
    assert!(samples.len() > first.len());
    assert!(
        harness.cancelled(&Output::CancelTranscription(second)),
        "nobody waits for it when the utterance is over"
    );

    let events = harness.line_events();
    let (interim, is_final) = &events[0].1;
    assert_eq!((interim.text.as_str(), *is_final), ("go for", false));
    let (line, is_final) = &events[1].1;
    assert_eq!(
        (line.text.as_str(), *is_final),
        ("go forward ten meters", true)
    );
    assert_eq!(
        line.id, interim.id,
        "the final result replaces the interim one"
    );
    let begun = line.at - START;
    assert!(
        begun >= SPEECH_BEGINS - ms(60) && begun <= SPEECH_BEGINS + ms(100),
        "{begun:?}"
    );
}

/// Transcribes early, in a pause of 80 ms.
fn early() -> EngineConfig {
    let mut early = config();
    early.turns.stop_ms = 500;
    early.turns.pause_ms = Some(80);
    early.turns.early_transcripts = true;
    early
}

/// The sentence twice, with a pause between that is shorter than the hold, and silence behind.
fn with_a_pause() -> Vec<i16> {
    let spoken = recording();
    let room = &spoken[..4800];
    let (first, second) = (&spoken[..16 * 2250], &spoken[16 * 450..16 * 2250]);
    [first, &room[..1000], second, room, room, room, room].concat()
}

#[test]
fn the_words_are_there_when_the_hold_ends() {
    for afterwards in [
        AfterSpeech::Noise,
        AfterSpeech::DigitalSilence,
        AfterSpeech::Nothing,
    ] {
        let mut harness = Harness::connected(early());
        harness.script.words_delay = ms(300);
        Visitor::new(Network::default()).speak(&mut harness, START, afterwards);
        harness.run_until(ms(6000));
        assert!(harness.utterances().is_empty(), "it was asked once");
        let asked = harness.transcriptions(UtteranceStage::Paused);
        let (asked, (_, samples)) = asked.last().unwrap();
        let replied = harness.replies()[0].0;
        let hold = replied - *asked;
        assert!(
            (ms(400)..=ms(440)).contains(&hold),
            "the reply waits for nothing but the hold: {hold:?}"
        );
        assert!(likeness(samples, &recording()) > 0.9);
        assert_eq!(harness.lines()[0].1, "go forward ten meters");
    }
}

#[test]
fn a_late_answer_to_the_question_in_the_pause_is_the_final_one() {
    let mut harness = Harness::connected(early());
    harness.script.words_delay = ms(900);
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    harness.run_until(ms(6000));
    assert!(harness.utterances().is_empty());
    let asked = harness.transcriptions(UtteranceStage::Paused);
    let asked = asked.last().unwrap().0;
    assert_eq!(harness.replies()[0].0, asked + ms(900));
}

#[test]
fn a_visitor_who_goes_on_is_heard_to_the_end() {
    let mut harness = Harness::connected(early());
    Visitor::new(Network::default()).say(&mut harness, START, &with_a_pause());
    harness.run_until(ms(8000));
    assert_eq!(harness.replies().len(), 1, "it was one turn");
    let asked = harness.transcriptions(UtteranceStage::Paused);
    assert!(asked.len() >= 2, "{}", asked.len());
    let (_, (_, all)) = asked.last().unwrap();
    assert!(all.len() > 16 * 3500, "{}", all.len());
    // What was heard in the first pause was shown, and is no line of its own.
    let shown = &harness.line_events()[0];
    assert_eq!((shown.0, shown.1.1), (asked[0].0, false));
    assert_eq!(harness.lines().len(), 2);
}

#[test]
fn a_question_in_a_pause_is_cancelled_when_the_visitor_goes_on() {
    let mut harness = Harness::connected(early());
    harness.script.words_delay = ms(2000);
    Visitor::new(Network::default()).say(&mut harness, START, &with_a_pause());
    harness.run_until(ms(9000));
    let asked = harness.transcriptions(UtteranceStage::Paused);
    let (last, before) = asked.split_last().unwrap();
    assert!(!before.is_empty());
    for (_, (question, _)) in before {
        assert!(harness.cancelled(&Output::CancelTranscription(*question)));
    }
    assert!(!harness.cancelled(&Output::CancelTranscription(last.1.0)));
    assert_eq!(harness.replies().len(), 1);
}

#[test]
fn what_failed_in_a_pause_is_asked_again_at_the_end() {
    let mut harness = Harness::connected(early());
    harness.script.words = None;
    Visitor::new(Network::default()).speak(&mut harness, START, AfterSpeech::Noise);
    while harness.transcriptions(UtteranceStage::Paused).is_empty() {
        harness.run_for(ms(10));
    }
    harness.script.words = Some("go forward ten meters");
    let asked = harness.transcriptions(UtteranceStage::Paused);
    for (_, (transcription, _)) in asked {
        harness.input(Input::TranscriptionFailed { transcription });
    }
    harness.run_until(ms(6000));
    let late =
        harness.transcriptions(UtteranceStage::Paused).len() - 1 + harness.utterances().len();
    assert!(late >= 1);
    assert!(harness.failures().is_empty());
    assert_eq!(harness.lines()[0].1, "go forward ten meters");
}
