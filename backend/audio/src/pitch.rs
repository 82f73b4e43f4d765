//! How high somebody speaks.

use pitch_detection::detector::{PitchDetector as _, mcleod::McLeodDetector};

/// Seconds of sound that are looked at at once, and from one of these to the next.
const WINDOW_SECONDS: f64 = 0.064;
const STEP_SECONDS: f64 = 0.032;
/// The pitch of human speech, in Hz.
const HUMAN_HZ: std::ops::RangeInclusive<f32> = 60.0..=400.0;
/// The mean square of the quietest window that counts: -50 dB.
const LEAST_POWER: f32 = 1e-5;
/// How periodic a window has to be, from 0 to 1.
const LEAST_CLARITY: f32 = 0.8;
/// Windows with a pitch that there have to be.
const LEAST_VOICED: usize = 5;

/// The median pitch of speech, in Hz, of samples from -1 to 1; `None` where too little of it is voiced.
#[must_use]
pub fn median_pitch_hz(samples: &[f32], sample_rate_hz: u32) -> Option<f32> {
    let samples_of = |seconds: f64| (seconds * f64::from(sample_rate_hz)) as usize;
    let (window, step) = (samples_of(WINDOW_SECONDS), samples_of(STEP_SECONDS).max(1));
    let rate = usize::try_from(sample_rate_hz).ok()?;
    let mut detector = McLeodDetector::<f32>::new(window, window / 2);
    let least_power = LEAST_POWER * window as f32;
    let windows = (0..samples.len().saturating_sub(window)).step_by(step);
    let found = windows.filter_map(|from| {
        let sound = &samples[from..from + window];
        let pitch = detector.get_pitch(sound, rate, least_power, LEAST_CLARITY)?;
        HUMAN_HZ
            .contains(&pitch.frequency)
            .then_some(pitch.frequency)
    });
    let mut found: Vec<f32> = found.collect();
    found.sort_by(f32::total_cmp);
    (found.len() >= LEAST_VOICED).then(|| found[found.len() / 2])
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;

    const RATE_HZ: u32 = 16_000;

    /// A second of a voice: a tone with its overtones.
    fn voice(hz: f32) -> Vec<f32> {
        let at = |index: usize| index as f32 / RATE_HZ as f32;
        let overtone = |time: f32, number: u8| {
            let number = f32::from(number);
            (TAU * hz * number * time).sin() / number
        };
        let sample = |time: f32| (1..=8).map(|number| overtone(time, number)).sum::<f32>();
        (0..RATE_HZ as usize)
            .map(|index| 0.2 * sample(at(index)))
            .collect()
    }

    #[test]
    fn the_pitch_of_voices_is_told() {
        for hz in [85.0, 110.0, 180.0, 220.0, 330.0] {
            let told = median_pitch_hz(&voice(hz), RATE_HZ).unwrap();
            assert!((told / hz - 1.0).abs() < 0.02, "{hz}: {told}");
        }
        // Silence in between does not count.
        let mut sound = vec![0.0; 40_000];
        sound.extend(voice(110.0));
        assert!((median_pitch_hz(&sound, RATE_HZ).unwrap() - 110.0).abs() < 2.0);
    }

    #[test]
    fn what_is_no_voice_has_no_pitch() {
        let noise: Vec<f32> = (0..16_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 - 0.5)
            .collect();
        for sound in [
            vec![],
            vec![0.3; 7],
            vec![0.0; 16_000],
            noise,
            voice(1_000.0),
        ] {
            assert_eq!(median_pitch_hz(&sound, RATE_HZ), None);
        }
    }
}
