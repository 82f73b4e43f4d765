//! Sounds in which nobody speaks, at 16,000 samples a second, which are made, and the same each time; and sound as files.

use std::f64::consts::TAU;

pub use test_routes::sounds::wav;
pub use test_sounds::{converted, decoded_by_ffmpeg, ffmpeg, generated, spoken};

/// Samples of a second.
const RATE: usize = 16_000;

/// Noise that is the same each time, from -1 to 1.
#[derive(Debug)]
pub struct Noise(u64);

impl Noise {
    /// The noise of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The same, as loud as this.
    pub fn scaled(self, level: f64) -> impl Iterator<Item = f64> {
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
#[must_use]
pub fn without_speech() -> Vec<Vec<i16>> {
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
