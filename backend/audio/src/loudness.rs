//! How loud a voice is, and what makes it as loud as the others.
//!
//! A voice is measured once, on a sentence, and gets one gain for all that it says: so its pieces remain seamless, and what is
//! louder within an utterance remains so. Loudness is that of ITU-R BS.1770: the energy of the sound as ears weigh its
//! frequencies, of those parts in which something is said.

use std::f64::consts::PI;

/// How loud voices are, in LUFS: as loud as speech is in broadcasting (ATSC A/85), which leaves room for its peaks.
const TARGET_LUFS: f64 = -24.0;

/// The farthest that peaks of the measured sentence may go. Others go farther by a little.
const HIGHEST_PEAK: f64 = 0.7;

/// The gains that are given, about 20 dB either way: what is softer than that is hardly a voice.
const GAINS: (f64, f64) = (0.1, 10.0);

/// The length of a part that is measured, and the way to the next one, in seconds.
const BLOCK_SECONDS: f64 = 0.4;
const STEP_SECONDS: f64 = 0.1;

/// Parts below this are silence, in LUFS; so are those that are this much below the mean of the others, in dB.
const SILENCE_LUFS: f64 = -70.0;
const PAUSE_DB: f64 = -10.0;

/// What the samples of a voice are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain(f32);

impl Gain {
    /// The one that makes a voice as loud as the others, of what it says in a sentence: samples from -1 to 1. A voice that is
    /// silent remains so.
    pub fn of(sound: &[f32], sample_rate_hz: u32) -> Self {
        let Some(loudness) = loudness_lufs(sound, sample_rate_hz) else {
            return Self(1.0);
        };
        let peak = sound
            .iter()
            .fold(0.0_f32, |peak, value| peak.max(value.abs()));
        let wanted = 10_f64.powf((TARGET_LUFS - loudness) / 20.0);
        let gain = wanted.min(HIGHEST_PEAK / f64::from(peak));
        Self(gain.clamp(GAINS.0, GAINS.1) as f32)
    }

    /// The sample that is heard, of one from -1 to 1.
    pub fn sample(self, value: f32) -> i16 {
        // Numbers beyond the last one become it.
        (value * self.0 * f32::from(i16::MAX)).round() as i16
    }
}

/// A sample from -1 to 1.
pub fn value(sample: i16) -> f32 {
    f32::from(sample) / f32::from(i16::MAX)
}

/// How loud a sound is, in LUFS; `None` when nothing can be heard in it, or it is too short to tell.
pub fn loudness_lufs(sound: &[f32], sample_rate_hz: u32) -> Option<f64> {
    let rate = f64::from(sample_rate_hz);
    let weighed = weigh(sound, rate);
    let samples = |seconds: f64| (seconds * rate).round() as usize;
    let energies: Vec<f64> = weighed
        .windows(samples(BLOCK_SECONDS).max(1))
        .step_by(samples(STEP_SECONDS).max(1))
        .map(|block| block.iter().map(|value| value * value).sum::<f64>() / block.len() as f64)
        .collect();
    let heard = mean_above(&energies, SILENCE_LUFS)?;
    let said = mean_above(&energies, lufs(heard) + PAUSE_DB)?;
    Some(lufs(said))
}

/// The mean of the energies that are above a loudness.
fn mean_above(energies: &[f64], threshold: f64) -> Option<f64> {
    let above: Vec<f64> = energies
        .iter()
        .copied()
        .filter(|energy| lufs(*energy) > threshold)
        .collect();
    (!above.is_empty()).then(|| above.iter().sum::<f64>() / above.len() as f64)
}

/// The loudness of an energy, in LUFS (BS.1770, equation 2, of one channel).
fn lufs(energy: f64) -> f64 {
    -0.691 + 10.0 * energy.log10()
}

/// A filter of second order, `b` over `1, a`.
struct Filter {
    b: [f64; 3],
    a: [f64; 2],
}

impl Filter {
    fn pass(&self, sound: &mut [f64]) {
        let (mut first, mut second) = (0.0, 0.0);
        for value in sound {
            let passed = self.b[0] * *value + first;
            first = self.b[1] * *value - self.a[0] * passed + second;
            second = self.b[2] * *value - self.a[1] * passed;
            *value = passed;
        }
    }
}

/// The sound as ears weigh it: what is high counts more, because of the head, and what is very low does not count. The filters
/// of BS.1770, annex 1, whose coefficients are for 48,000 Hz there, by the frequencies and the slopes that they have.
fn weigh(sound: &[f32], rate: f64) -> Vec<f64> {
    let mut weighed: Vec<f64> = sound.iter().copied().map(f64::from).collect();
    let (frequency, gain_db, quality) = (
        1_681.974_450_955_53,
        3.999_843_853_973_35,
        0.707_175_236_955_42,
    );
    let k = (PI * frequency / rate).tan();
    let high = 10_f64.powf(gain_db / 20.0);
    let band = high.powf(0.499_666_774_154_54);
    let norm = 1.0 + k / quality + k * k;
    let head = Filter {
        b: [
            (high + band * k / quality + k * k) / norm,
            2.0 * (k * k - high) / norm,
            (high - band * k / quality + k * k) / norm,
        ],
        a: [
            2.0 * (k * k - 1.0) / norm,
            (1.0 - k / quality + k * k) / norm,
        ],
    };
    let (frequency, quality) = (38.135_470_876_024_44, 0.500_327_037_323_88);
    let k = (PI * frequency / rate).tan();
    let norm = 1.0 + k / quality + k * k;
    let low = Filter {
        b: [1.0, -2.0, 1.0],
        a: [
            2.0 * (k * k - 1.0) / norm,
            (1.0 - k / quality + k * k) / norm,
        ],
    };
    head.pass(&mut weighed);
    low.pass(&mut weighed);
    weighed
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 22_050;

    fn tone(frequency: f64, peak: f64, seconds: f64, rate: u32) -> Vec<f32> {
        let step = 2.0 * PI * frequency / f64::from(rate);
        (0..(seconds * f64::from(rate)) as usize)
            .map(|at| (peak * (step * at as f64).sin()) as f32)
            .collect()
    }

    #[test]
    fn loudness_is_that_of_the_recommendation() {
        // EBU Tech 3341 has tones of 1,000 Hz whose loudness is their peak's level; in two channels, which are 3 dB more than one.
        for (rate, peak_dbfs) in [
            (48_000, -23.0),
            (48_000, -33.0),
            (22_050, -23.0),
            (16_000, -23.0),
        ] {
            let peak = 10_f64.powf(peak_dbfs / 20.0);
            let loudness = loudness_lufs(&tone(1_000.0, peak, 3.0, rate), rate).unwrap();
            let expected = peak_dbfs - 10.0 * 2_f64.log10();
            assert!((loudness - expected).abs() < 0.1, "{rate}: {loudness}");
        }
        // High tones count more, low ones less.
        let of = |frequency| loudness_lufs(&tone(frequency, 0.1, 1.0, RATE), RATE).unwrap();
        assert!(of(4_000.0) > of(1_000.0) + 2.0 && of(30.0) < of(1_000.0) - 5.0);
        // Pauses do not.
        let speech = tone(1_000.0, 0.1, 3.0, RATE);
        let mut paused = speech.clone();
        paused.extend(tone(1_000.0, 0.001, 6.0, RATE));
        let (speech, paused) = (loudness_lufs(&speech, RATE), loudness_lufs(&paused, RATE));
        assert!((speech.unwrap() - paused.unwrap()).abs() < 0.5);
    }

    #[test]
    fn what_is_silent_or_short_has_no_loudness() {
        for sound in [
            vec![],
            vec![0.0; 100_000],
            vec![0.3; 100],
            vec![1e-6; 100_000],
        ] {
            assert_eq!(loudness_lufs(&sound, RATE), None);
            assert_eq!(Gain::of(&sound, RATE), Gain(1.0));
        }
    }

    #[test]
    fn voices_become_as_loud_as_each_other_without_clipping() {
        for peak in [0.05, 0.3, 0.9] {
            let sound = tone(440.0, peak, 2.0, RATE);
            let gain = Gain::of(&sound, RATE);
            let heard: Vec<f32> = sound.iter().map(|at| value(gain.sample(*at))).collect();
            let loudness = loudness_lufs(&heard, RATE).unwrap();
            assert!((loudness - TARGET_LUFS).abs() < 0.1, "{peak}: {loudness}");
        }
        // Clicks are loud for as long as they last only, and stay below the last sample.
        let mut clicks = tone(440.0, 0.01, 2.0, RATE);
        for at in (0..clicks.len()).step_by(4_000) {
            clicks[at] = 0.9;
        }
        let gain = Gain::of(&clicks, RATE);
        let highest = clicks.iter().map(|at| gain.sample(*at)).max();
        assert!(highest <= Some((0.701 * 32_767.0) as i16), "{highest:?}");
        // What is hardly there is not made a noise, and what is beyond the last sample is the last one.
        assert_eq!(Gain::of(&tone(440.0, 0.001, 2.0, RATE), RATE), Gain(10.0));
        assert_eq!(
            (Gain(2.0).sample(0.9), Gain(2.0).sample(-0.9)),
            (i16::MAX, i16::MIN)
        );
    }

    #[test]
    fn pieces_are_what_they_are_in_the_whole() {
        let sound = tone(300.0, 0.8, 1.0, RATE);
        let gain = Gain::of(&sound, RATE);
        let heard =
            |sound: &[f32]| -> Vec<i16> { sound.iter().map(|at| gain.sample(*at)).collect() };
        let pieces: Vec<i16> = sound.chunks(1_234).flat_map(heard).collect();
        assert_eq!(pieces, heard(&sound));
    }
}
