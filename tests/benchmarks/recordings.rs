//! Human speech with its words, and sounds without any.

use std::{f64::consts::TAU, fs, path::Path};

use anyhow::Context as _;

/// Where Debian's package has them.
const FOLDER: &str = "/usr/share/pocketsphinx/test/data";

/// Samples of a second.
pub(crate) const RATE: usize = 16_000;

/// What becomes of a recording on its way.
pub(crate) type Change = fn(&[i16]) -> Vec<i16>;

/// What was said.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) samples: Vec<i16>,
    pub(crate) words: String,
}

/// All recordings: a chapter of a novel, playing cards, an order.
pub(crate) fn all() -> anyhow::Result<Vec<Recording>> {
    let mut all = Vec::new();
    for (folder, list) in [
        ("librivox", "transcription"),
        ("cards", "cards.transcription"),
    ] {
        let folder = Path::new(FOLDER).join(folder);
        let lines = fs::read_to_string(folder.join(list))?;
        for line in lines.lines() {
            let (words, name) = line.rsplit_once('(').context("a line without a name")?;
            let name = format!("{}.wav", name.trim().trim_end_matches(')'));
            all.push(Recording {
                samples: samples(&folder.join(name))?,
                words: words.replace("<s>", "").replace("</s>", ""),
            });
        }
    }
    all.push(Recording {
        samples: samples(&Path::new(FOLDER).join("goforward.raw"))?,
        words: "go forward ten meters".to_owned(),
    });
    Ok(all)
}

/// The samples of one recording, by its path in the package's folder.
pub(crate) fn named(path: &str) -> anyhow::Result<Vec<i16>> {
    samples(&Path::new(FOLDER).join(path))
}

/// Samples of 16,000 a second: what follows a header of 44 bytes, if there is one.
fn samples(path: &Path) -> anyhow::Result<Vec<i16>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let sound = match bytes.starts_with(b"RIFF") {
        true => bytes.get(44..).unwrap_or_default(),
        false => &bytes,
    };
    let (pairs, _) = sound.as_chunks::<2>();
    Ok(pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect())
}

/// So many seconds of the recordings, one after the other.
pub(crate) fn seconds(recordings: &[Recording], seconds: usize) -> Vec<i16> {
    let all = recordings.iter().flat_map(|recording| &recording.samples);
    all.copied().take(seconds * RATE).collect()
}

/// As a telephone passes it on: from 300 to 3,400 Hz.
pub(crate) fn telephone(samples: &[i16]) -> Vec<i16> {
    within(samples, 300.0, 3_400.0)
}

/// As it is when it was sampled at 8,000 Hz, which keeps nothing above 4,000 Hz, with what a filter before that takes.
pub(crate) fn at_8khz(samples: &[i16]) -> Vec<i16> {
    within(samples, 0.0, 3_800.0)
}

/// What of a sound is between two frequencies, in Hz.
fn within(samples: &[i16], lowest: f64, highest: f64) -> Vec<i16> {
    let band = |frequency: f64| -> Vec<f64> {
        // A windowed low-pass.
        const HALF: i32 = 100;
        let cut = frequency / RATE as f64;
        (-HALF..=HALF)
            .map(|at| {
                let x = f64::from(at);
                let sinc = if at == 0 {
                    2.0 * cut
                } else {
                    (TAU * cut * x).sin() / (TAU / 2.0 * x)
                };
                sinc * (0.54 + 0.46 * (TAU / 2.0 * x / f64::from(HALF)).cos())
            })
            .collect()
    };
    let (high, low) = (band(highest), band(lowest));
    let filter: Vec<f64> = high
        .iter()
        .zip(&low)
        .map(|(high, low)| high - low)
        .collect();
    let half = filter.len() / 2;
    (0..samples.len())
        .map(|at| {
            let sum: f64 = filter
                .iter()
                .enumerate()
                .map(|(tap, weight)| {
                    let index = (at + tap).checked_sub(half);
                    let sample = index.and_then(|index| samples.get(index));
                    weight * f64::from(sample.copied().unwrap_or(0))
                })
                .sum();
            sum.round() as i16
        })
        .collect()
}

/// In white noise that is 10 dB below the speech.
pub(crate) fn in_noise(samples: &[i16]) -> Vec<i16> {
    let energy: f64 = samples
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum();
    let level = (energy / samples.len().max(1) as f64).sqrt() * 10_f64.powf(-0.5);
    // Uniform noise has a third of the square of its limit.
    let noise = Noise::new(7).scaled(level * 3_f64.sqrt());
    let noisy = samples
        .iter()
        .zip(noise)
        .map(|(sample, noise)| f64::from(*sample) + noise);
    noisy.map(|sample| sample.round() as i16).collect()
}

/// Noise that is the same each time, from -1 to 1.
#[derive(Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn scaled(self, level: f64) -> impl Iterator<Item = f64> {
        self.map(move |value| value * level)
    }
}

impl Iterator for Noise {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Some((self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
    }
}

/// Twenty sounds in which nobody speaks.
pub(crate) fn without_speech() -> Vec<Vec<i16>> {
    let length = 3 * RATE;
    let sound = |wave: &dyn Fn(usize) -> f64| -> Vec<i16> {
        (0..length)
            .map(|at| wave(at).clamp(-32_000.0, 32_000.0) as i16)
            .collect()
    };
    let second = |at: usize| at as f64 / RATE as f64;
    let tone = |at: usize, frequency: f64| (TAU * frequency * second(at)).sin();
    let mut sounds = vec![sound(&|_| 0.0), vec![0; RATE / 4], vec![0; 20 * RATE]];
    // White noise of four loudnesses.
    for level in [30.0, 300.0, 3_000.0, 12_000.0] {
        sounds.push(
            Noise::new(3)
                .scaled(level)
                .take(length)
                .map(|value| value as i16)
                .collect(),
        );
    }
    // Brown noise, as of wind and engines.
    for level in [300.0, 3_000.0] {
        let mut state = 0.0;
        let brown = Noise::new(5).take(length).map(|value| {
            state = 0.98 * state + 0.2 * value;
            (state * level) as i16
        });
        sounds.push(brown.collect());
    }
    // Hum, whistles, chords and a melody.
    for frequency in [50.0, 440.0, 1_000.0] {
        sounds.push(sound(&|at| 4_000.0 * tone(at, frequency)));
    }
    sounds.push(sound(&|at| {
        2_500.0
            * [262.0, 330.0, 392.0]
                .map(|one| tone(at, one))
                .iter()
                .sum::<f64>()
    }));
    sounds.push(sound(&|at| {
        let notes = [262.0, 294.0, 330.0, 349.0, 392.0, 440.0, 494.0, 523.0];
        let note = at / (RATE / 4);
        let fade = 1.0 - (at % (RATE / 4)) as f64 / (RATE / 4) as f64;
        6_000.0 * fade * tone(at, notes[note % notes.len()])
    }));
    // Clicks, knocks and a drum.
    for every in [RATE / 10, RATE / 2] {
        sounds.push(sound(&|at| if at % every < 20 { 20_000.0 } else { 0.0 }));
    }
    sounds.push(sound(&|at| {
        let since = second(at % (RATE / 2));
        15_000.0 * (-since * 20.0).exp() * (TAU * 80.0 * since).sin()
    }));
    // Breath: noise that swells.
    for pace in [0.3, 0.8] {
        let breath = Noise::new(11).take(length).enumerate();
        let breath = breath
            .map(|(at, value)| (value * 1_500.0 * (TAU * pace * second(at)).sin().max(0.0)) as i16);
        sounds.push(breath.collect());
    }
    // A telephone that is engaged.
    sounds.push(sound(&|at| {
        if at % RATE < RATE / 2 {
            5_000.0 * tone(at, 425.0)
        } else {
            0.0
        }
    }));
    sounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twenty_sounds() {
        assert_eq!(without_speech().len(), 20);
    }

    #[test]
    fn a_telephone_passes_its_band() {
        let loudness = |frequency: f64| {
            let tone: Vec<i16> = (0..RATE)
                .map(|at| (8_000.0 * (TAU * frequency * at as f64 / RATE as f64).sin()) as i16)
                .collect();
            let heard = telephone(&tone);
            let energy =
                |sound: &[i16]| -> f64 { sound.iter().map(|s| f64::from(*s).powi(2)).sum() };
            energy(&heard) / energy(&tone)
        };
        assert!(loudness(1_000.0) > 0.9);
        assert!(loudness(6_000.0) < 0.01 && loudness(50.0) < 0.1);
    }

    #[test]
    fn noise_is_ten_decibels_below() {
        let tone: Vec<i16> = (0..RATE).map(|at| ((at % 100) as i16 - 50) * 100).collect();
        let noisy = in_noise(&tone);
        let energy = |sound: &mut dyn Iterator<Item = f64>| sound.map(|s| s * s).sum::<f64>();
        let noise = energy(
            &mut noisy
                .iter()
                .zip(&tone)
                .map(|(a, b)| f64::from(*a) - f64::from(*b)),
        );
        let ratio = energy(&mut tone.iter().copied().map(f64::from)) / noise;
        assert!((9.0..11.0).contains(&ratio), "{ratio}");
    }
}
