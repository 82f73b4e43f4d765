//! When an utterance begins and ends, with the detector's judgement given by the test.

use super::*;
use crate::inbound::detector::Earshot;

/// What the detector takes: 16 ms.
const FRAME_SAMPLES: usize = 256;

fn endpointer(turns: &TurnSettings) -> Endpointer {
    Endpointer::new(turns, Box::<Earshot>::default())
}

fn turns() -> TurnSettings {
    TurnSettings {
        start_ms: 96,
        stop_ms: 208,
        min_speech_ms: 160,
        pre_roll_ms: 320,
        post_roll_ms: 96,
        max_utterance_ms: 3200,
        ..TurnSettings::default()
    }
}

/// Judges frames as speech or not; each has its number as samples.
fn judge(endpointer: &mut Endpointer, frames: impl IntoIterator<Item = bool>) {
    for is_speech in frames {
        endpointer.samples.extend([1; FRAME_SAMPLES]);
        endpointer.judge(is_speech);
    }
}

fn changes(endpointer: &mut Endpointer) -> Vec<Change> {
    std::iter::from_fn(|| endpointer.poll()).collect()
}

fn frames(speech: bool, count: usize) -> impl Iterator<Item = bool> {
    std::iter::repeat_n(speech, count)
}

#[test]
fn speech_begins_after_the_start_and_ends_after_the_hold() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, frames(false, 50).chain(frames(true, 5)));
    assert_eq!(changes(&mut endpointer), []);
    judge(&mut endpointer, [true]);
    assert_eq!(
        changes(&mut endpointer),
        [Change::Started {
            ago: Duration::from_millis(96)
        }]
    );
    judge(&mut endpointer, frames(true, 10).chain(frames(false, 12)));
    assert_eq!(changes(&mut endpointer), []);
    assert_eq!(endpointer.remaining_hold(), Some(FRAME_SAMPLES));
    judge(&mut endpointer, [false]);
    let changes = changes(&mut endpointer);
    let [Change::Ended { samples }] = &changes[..] else {
        panic!("{changes:?}")
    };
    // 320 ms before, 16 frames of speech, 96 ms of the hold.
    assert_eq!(samples.len(), (20 + 16 + 6) * FRAME_SAMPLES);
    assert_eq!(endpointer.remaining_hold(), None);
}

#[test]
fn one_doubtful_frame_does_not_start_the_count_anew() {
    let mut endpointer = endpointer(&turns());
    judge(
        &mut endpointer,
        frames(true, 4).chain([false]).chain(frames(true, 3)),
    );
    assert_eq!(
        changes(&mut endpointer),
        [Change::Started {
            ago: Duration::from_millis(128)
        }]
    );
}

#[test]
fn scattered_clicks_never_add_up() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, (0..1000).map(|frame| frame % 3 == 0));
    assert_eq!(changes(&mut endpointer), []);
    assert!(
        endpointer.samples.len() <= samples_of_ms(320 + 200),
        "memory is bounded while idle"
    );
}

#[test]
fn a_pause_shorter_than_the_hold_ends_nothing() {
    let mut endpointer = endpointer(&turns());
    for _ in 0..4 {
        judge(&mut endpointer, frames(true, 10).chain(frames(false, 12)));
    }
    let changes = changes(&mut endpointer);
    assert_eq!(changes.len(), 1, "{changes:?}");
}

#[test]
fn too_little_speech_is_dropped() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, frames(true, 9).chain(frames(false, 13)));
    assert_eq!(changes(&mut endpointer)[1..], [Change::Dropped]);
}

#[test]
fn an_endless_utterance_is_ended_by_force() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, frames(true, 500));
    let mut parts = 0;
    for change in changes(&mut endpointer) {
        if let Change::Ended { samples } = change {
            parts += 1;
            assert_eq!(samples.len(), samples_of_ms(3200));
        }
    }
    assert_eq!(parts, 2);
}

#[test]
fn silence_of_any_length_counts_as_time() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, frames(true, 20));
    changes(&mut endpointer);
    // 208 ms are 13 frames, in pieces that fit no frame.
    for _ in 0..20 {
        endpointer.silence(samples_of_ms(10));
    }
    assert_eq!(changes(&mut endpointer), []);
    endpointer.silence(samples_of_ms(8));
    assert_eq!(changes(&mut endpointer).len(), 1);
}

#[test]
fn ending_by_hand_gives_what_there_is() {
    let mut endpointer = endpointer(&turns());
    judge(&mut endpointer, frames(true, 20));
    changes(&mut endpointer);
    endpointer.end();
    let changes = changes(&mut endpointer);
    assert!(
        matches!(&changes[..], [Change::Ended { samples }] if samples.len() == 20 * FRAME_SAMPLES)
    );
    endpointer.end();
    assert_eq!(endpointer.poll(), None);
}

#[test]
fn digital_silence_is_no_speech() {
    let mut endpointer = endpointer(&TurnSettings {
        start_ms: 16,
        speech_threshold: 0.0,
        ..turns()
    });
    for _ in 0..100 {
        endpointer.audio(&[16; 320]);
    }
    assert_eq!(endpointer.poll(), None);
    endpointer.audio(&[2000; 320]);
    assert!(
        endpointer.poll().is_some(),
        "a threshold of zero takes any sound for speech"
    );
}

#[test]
fn a_pause_is_told_once_and_so_is_its_end() {
    let turns = TurnSettings {
        pause_ms: Some(80),
        ..turns()
    };
    let mut endpointer = endpointer(&turns);
    judge(&mut endpointer, frames(true, 16).chain(frames(false, 4)));
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Started { .. }]
    ));
    assert_eq!(endpointer.remaining_hold(), Some(FRAME_SAMPLES));
    judge(&mut endpointer, [false]);
    let [Change::Paused { samples, .. }] = &changes(&mut endpointer)[..] else {
        panic!("no pause")
    };
    assert_eq!(samples.len(), (16 + 5) * FRAME_SAMPLES);
    // From here on it takes the rest of the hold.
    assert_eq!(endpointer.remaining_hold(), Some(8 * FRAME_SAMPLES));
    judge(&mut endpointer, frames(false, 7));
    assert_eq!(changes(&mut endpointer), []);
    judge(&mut endpointer, [true]);
    assert_eq!(changes(&mut endpointer), [Change::Resumed]);
    judge(&mut endpointer, frames(true, 3).chain(frames(false, 13)));
    let [Change::Paused { .. }, Change::Ended { samples }] = &changes(&mut endpointer)[..] else {
        panic!("no end")
    };
    assert_eq!(samples.len(), (16 + 12 + 4 + 6) * FRAME_SAMPLES);
}

#[test]
fn what_is_too_short_for_an_utterance_has_no_pause() {
    let turns = TurnSettings {
        pause_ms: Some(80),
        ..turns()
    };
    let mut endpointer = endpointer(&turns);
    judge(&mut endpointer, frames(true, 7).chain(frames(false, 13)));
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Started { .. }, Change::Dropped]
    ));
}

#[test]
fn interim_transcripts_of_long_utterances_come_further_apart() {
    let turns = TurnSettings {
        interim_ms: Some(160),
        max_utterance_ms: 60_000,
        ..turns()
    };
    let mut endpointer = endpointer(&turns);
    let mut heard = 0;
    let mut transcribed = 0;
    for _ in 0..3_000 {
        judge(&mut endpointer, [true]);
        heard += FRAME_SAMPLES;
        for change in changes(&mut endpointer) {
            if change == Change::InterimDue {
                transcribed += endpointer.utterance().len();
            }
        }
    }
    assert!(
        heard < transcribed && transcribed < 12 * heard,
        "{transcribed} of {heard}"
    );
}

#[test]
fn a_visitor_who_stutters_costs_no_more_than_one_who_speaks() {
    let turns = TurnSettings {
        pause_ms: Some(80),
        interim_ms: Some(160),
        max_utterance_ms: 60_000,
        ..turns()
    };
    let mut endpointer = endpointer(&turns);
    judge(&mut endpointer, frames(true, 16));
    let (mut heard, mut transcribed) = (16 * FRAME_SAMPLES, 0);
    for _ in 0..500 {
        // A syllable, and a pause that is just one.
        judge(&mut endpointer, frames(true, 1).chain(frames(false, 5)));
        heard += 6 * FRAME_SAMPLES;
        for change in changes(&mut endpointer) {
            transcribed += match change {
                Change::InterimDue => endpointer.utterance().len(),
                Change::Paused {
                    samples,
                    has_grown: true,
                } => samples.len(),
                _ => 0,
            };
        }
    }
    assert!(
        heard < transcribed && transcribed < 12 * heard,
        "{transcribed} of {heard}"
    );
}

#[test]
fn a_pause_may_have_a_hold_of_its_own() {
    let turns = TurnSettings {
        pause_ms: Some(80),
        ..turns()
    };
    let mut endpointer = endpointer(&turns);
    // Outside of a pause there is nothing to hold.
    judge(&mut endpointer, frames(true, 16));
    endpointer.hold_pause(16);
    judge(&mut endpointer, frames(false, 5));
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Started { .. }, Change::Paused { .. }]
    ));
    endpointer.hold_pause(800);
    judge(&mut endpointer, frames(false, 44));
    assert_eq!(changes(&mut endpointer), []);
    assert_eq!(endpointer.remaining_hold(), Some(FRAME_SAMPLES));
    // It is forgotten with the pause.
    judge(&mut endpointer, frames(true, 4).chain(frames(false, 12)));
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Resumed, Change::Paused { .. }]
    ));
    judge(&mut endpointer, [false]);
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Ended { .. }]
    ));
    // A hold that is over already ends it with the next frame.
    judge(&mut endpointer, frames(true, 16).chain(frames(false, 10)));
    changes(&mut endpointer);
    endpointer.hold_pause(96);
    assert_eq!(endpointer.remaining_hold(), Some(FRAME_SAMPLES));
    judge(&mut endpointer, [false]);
    assert!(matches!(
        changes(&mut endpointer)[..],
        [Change::Ended { .. }]
    ));
}

/// Takes what is loud for speech, in frames of twice the length.
struct Loud;

impl VoiceDetector for Loud {
    fn frame_samples(&self) -> usize {
        2 * FRAME_SAMPLES
    }

    fn score(&mut self, frame: &[i16]) -> f32 {
        assert_eq!(frame.len(), self.frame_samples());
        f32::from(frame.iter().any(|sample| *sample > 1_000))
    }

    fn reset(&mut self) {}
}

#[test]
fn any_detector_may_judge_frames_of_any_length() {
    let mut endpointer = Endpointer::new(&turns(), Box::new(Loud));
    for (loudness, count) in [(500, 9_600), (5_000, 8_000), (0, 4_000)] {
        for piece in vec![loudness; count].chunks(320) {
            endpointer.audio(piece);
        }
    }
    let changes = changes(&mut endpointer);
    let [Change::Started { ago }, Change::Ended { samples }] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(*ago, Duration::from_millis(96));
    let spoken = samples.iter().filter(|sample| **sample == 5_000).count();
    assert_eq!(spoken, 8_000);
}
