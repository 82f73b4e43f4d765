use super::*;

const FRAME: usize = 1_536;
const SECOND: usize = RATE_HZ;

/// A window of so many seconds in which somebody speaks from and to these times, and what a perfect detector hears in it.
fn window(seconds: f64, spoken: &[(f64, f64)]) -> (Vec<i16>, Vec<f32>) {
    let length = (seconds * SECOND as f64) as usize;
    let speaks = |at: usize| {
        let at = at as f64 / SECOND as f64;
        spoken
            .iter()
            .any(|(begin, end)| (*begin..*end).contains(&at))
    };
    let loud = |at: usize| ((at as f64 * 0.02).sin() * 9_000.0) as i16;
    let sound = (0..length).map(|at| if speaks(at) { loud(at) } else { 0 });
    let frames = 0..length.div_ceil(FRAME);
    let scores = frames.map(|frame| f32::from(u8::from(speaks(frame * FRAME))));
    (sound.collect(), scores.collect())
}

fn cut_all(
    seconds: f64,
    spoken: &[(f64, f64)],
    longest: f64,
    is_last: bool,
) -> (Vec<Cut>, usize, Vec<i16>) {
    let (sound, scores) = window(seconds, spoken);
    let phrases = phrases(&scores, FRAME, sound.len());
    let longest = (longest * SECOND as f64) as usize;
    let (cuts, next) = cut(&sound, &phrases, longest, is_last);
    for cut in &cuts {
        assert!(cut.length() <= longest && cut.length() > 0, "{cut:?}");
    }
    (cuts, next, sound)
}

fn seconds(samples: usize) -> f64 {
    samples as f64 / SECOND as f64
}

#[test]
fn cuts_are_in_pauses_and_silence_is_left_out() {
    let spoken = [
        (1.0, 4.0),
        (4.5, 7.5),
        (12.0, 15.0),
        (15.6, 18.0),
        (25.0, 29.0),
    ];
    let (cuts, next, sound) = cut_all(30.0, &spoken, 7.0, true);
    assert_eq!(next, sound.len());
    let begins: Vec<f64> = cuts.iter().map(|cut| seconds(cut.begin())).collect();
    assert_eq!(cuts.len(), 3, "{cuts:?}");
    for (begin, expected) in begins.iter().zip([0.9, 11.9, 24.9]) {
        assert!((begin - expected).abs() < 0.05, "{begins:?}");
    }
    let heard: f64 = cuts.iter().map(|cut| seconds(cut.length())).sum();
    assert!((15.4..17.2).contains(&heard), "{heard} s of 15.4");
    for cut in &cuts {
        for stretch in &cut.0 {
            let border = |at: usize| sound[at.min(sound.len() - 1)];
            assert_eq!((border(stretch.start), border(stretch.end)), (0, 0));
        }
    }
}

#[test]
fn what_is_not_finished_belongs_to_the_next_window() {
    // The second sample would have room for more, the last phrase goes on.
    let spoken = [(1.0, 6.0), (7.0, 11.0), (13.0, 15.0), (18.0, 20.0)];
    let (cuts, next, _) = cut_all(20.0, &spoken, 8.0, false);
    assert_eq!(cuts.len(), 1);
    assert!((seconds(next) - 6.9).abs() < 0.05, "{}", seconds(next));
    // Nothing is finished but the time: what there is becomes a sample.
    let (cuts, next, _) = cut_all(20.0, &spoken[2..], 15.0, false);
    assert_eq!(cuts.len(), 1);
    assert!((seconds(next) - 17.9).abs() < 0.05, "{}", seconds(next));
    // Nobody speaks.
    let (cuts, next, sound) = cut_all(20.0, &[], 8.0, false);
    assert_eq!((cuts.len(), next), (0, sound.len() - BEFORE));
}

#[test]
fn who_never_pauses_is_cut_where_it_is_quietest() {
    let (mut sound, scores) = window(20.0, &[(0.0, 20.0)]);
    sound[6 * SECOND..6 * SECOND + MOMENT * 2].fill(10);
    let phrases = phrases(&scores, FRAME, sound.len());
    let (cuts, next) = cut(&sound, &phrases, 8 * SECOND, false);
    assert!(!cuts.is_empty() && next > 6 * SECOND && next < sound.len());
    let end = cuts[0].begin() + cuts[0].length();
    assert!(
        (6 * SECOND..6 * SECOND + 2 * MOMENT).contains(&end),
        "{end}"
    );
    let together: usize = cuts.iter().map(Cut::length).sum();
    assert_eq!(together, next, "nothing is lost");
}

/// Whatever stands at the borders of windows, all that is said is in one sample, and only there.
#[test]
fn nothing_is_lost_or_doubled_between_windows() {
    const WINDOW: usize = 10 * SECOND;
    for shift in (0..40).step_by(5) {
        let mut spoken = Vec::new();
        let mut at = 0.3 + f64::from(shift) * 0.11;
        for number in 0..14 {
            let length = 0.15 + f64::from(number * 7 % 11) * 0.3;
            spoken.push((at, at + length));
            at += length + 0.25 + f64::from(number * 5 % 9) * 0.2;
        }
        let (sound, _) = window(at + 1.0, &spoken);
        let (mut begin, mut taken) = (0, Vec::new());
        loop {
            let end = sound.len().min(begin + WINDOW);
            let part = &sound[begin..end];
            let scores: Vec<f32> = part
                .chunks(FRAME)
                .map(|frame| f32::from(u8::from(frame.iter().any(|sample| *sample != 0))))
                .collect();
            let phrases = phrases(&scores, FRAME, part.len());
            let is_last = end == sound.len();
            let (cuts, next) = cut(part, &phrases, 4 * SECOND, is_last);
            let stretches = cuts.iter().flat_map(|cut| &cut.0);
            taken.extend(stretches.map(|it| begin + it.start..begin + it.end));
            if is_last {
                break;
            }
            begin += next;
        }
        for pair in taken.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{shift}: {pair:?}");
        }
        let loud = (0..sound.len()).step_by(97).filter(|at| sound[*at] != 0);
        let lost = loud.filter(|at| !taken.iter().any(|range| range.contains(at)));
        let lost: Vec<usize> = lost.collect();
        assert!(
            lost.is_empty(),
            "{shift}: {} from {:?}",
            lost.len(),
            lost.first()
        );
    }
}

#[test]
fn every_window_brings_the_recording_on() {
    for longest in [5.0, 15.0, 60.0] {
        for spoken in [
            vec![(0.0, 30.0)],
            vec![(29.9, 30.0)],
            vec![],
            vec![(0.0, 1.0), (1.5, 30.0)],
        ] {
            let (_, next, sound) = cut_all(30.0, &spoken, longest, false);
            assert!(next > 0 && next <= sound.len(), "{longest} {spoken:?}");
        }
    }
}

#[test]
fn samples_are_as_loud_as_each_other() {
    let (sound, scores) = window(6.0, &[(1.0, 5.0)]);
    let phrases = phrases(&scores, FRAME, sound.len());
    let quiet: Vec<i16> = sound.iter().map(|sample| sample / 8).collect();
    let level = |window: &[i16]| {
        let (cuts, _) = cut(window, &phrases, 10 * SECOND, true);
        let sound = cuts[0].sound(window);
        assert_eq!(
            (sound[0], sound[sound.len() - 1]),
            (0, 0),
            "there is no click"
        );
        let values: Vec<f32> = sound.into_iter().map(loudness::value).collect();
        loudness::loudness_lufs(&values, RATE_HZ as u32).unwrap()
    };
    assert!((level(&sound) - level(&quiet)).abs() < 0.5);
}
