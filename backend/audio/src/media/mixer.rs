//! Mixing the channels of a recording to one.

/// The time over which the loudness of channels is compared.
const WINDOW_MS: u32 = 100;
/// The mean of channels has this part of the loudest one's energy at least: 20 dB less. One of eight channels that speaks alone has 18 dB less.
const LEAST_PART: f64 = 0.01;

/// The mean of all channels. Where these cancel each other out, as those of a stereo recording do of which one is the inverse of the other, it is the
/// loudest channel.
#[derive(Debug, Default)]
pub(super) struct Mixer {
    /// Energy of the mean, and of each channel.
    mean: f64,
    channels: Vec<f64>,
}

impl Mixer {
    /// Mixes the samples of one moment, at so many moments a second.
    pub(super) fn mix(&mut self, rate_hz: u32, frame: &[i16]) -> i16 {
        let &[first, _, ..] = frame else {
            return frame.first().copied().unwrap_or_default();
        };
        let sum: i32 = frame.iter().map(|sample| i32::from(*sample)).sum();
        let mean = i16::try_from(sum / frame.len() as i32).unwrap_or(first);
        let part = 1_000.0 / f64::from(rate_hz.max(1)) / f64::from(WINDOW_MS);
        let follow = |energy: &mut f64, sample: i16| {
            *energy += part * (f64::from(sample).powi(2) - *energy);
        };
        follow(&mut self.mean, mean);
        self.channels.resize(frame.len(), 0.0);
        for (energy, sample) in self.channels.iter_mut().zip(frame) {
            follow(energy, *sample);
        }
        let channels = self.channels.iter().zip(frame);
        let loudest = channels.max_by(|(one, _), (other, _)| one.total_cmp(other));
        match loudest {
            Some((energy, sample)) if self.mean < LEAST_PART * energy => *sample,
            _ => mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(frame: impl Fn(i16) -> Vec<i16>) -> Vec<i16> {
        let mut mixer = Mixer::default();
        let wave = (0..1_600).map(|at| (f64::from(at) * 0.2).sin() * 8_000.0);
        wave.map(|sample| mixer.mix(16_000, &frame(sample as i16)))
            .collect()
    }

    fn loudest(samples: &[i16]) -> u16 {
        let samples = samples.iter().map(|sample| sample.unsigned_abs());
        samples.max().unwrap()
    }

    #[test]
    fn channels_that_cancel_each_other_out_are_not_silence() {
        let one = mixed(|sample| vec![sample]);
        assert_eq!(mixed(|sample| vec![sample, sample]), one);
        let inverse = mixed(|sample| vec![sample, -sample]);
        assert!(loudest(&inverse) > 7_900, "{}", loudest(&inverse));
        let quieter = mixed(|sample| vec![sample, (f64::from(sample) * -0.95) as i16]);
        assert_eq!(quieter, one);
        // One channel of eight that speaks alone is mixed as before.
        let alone = mixed(|sample| [vec![sample], vec![0; 7]].concat());
        let eighth: Vec<_> = one.iter().map(|sample| sample / 8).collect();
        assert_eq!(alone, eighth);
    }
}
