//! Human speech with its words: what Debian packages in `pocketsphinx-testdata` and `alsa-utils`, and the opening of a novel that a package of PyPI
//! has, which `tests/bench` gets.

use std::{
    f64::consts::TAU,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use harness::sounds::Noise;

/// Where Debian's packages have them.
const FOLDER: &str = "/usr/share/pocketsphinx/test/data";
const LOUDSPEAKERS: &str = "/usr/share/sounds/alsa";

/// The file that is got, and the folder that it is in.
const NOVEL: &str = "two_cities.wav";
const NOVEL_FOLDER: &str = "COLLOQUY_TEST_RECORDINGS";

/// What is read in it: the opening of "A Tale of Two Cities".
const NOVEL_WORDS: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, \
    it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, it was the spring \
    of hope, it was the winter of despair, we had everything before us, we had nothing before us, we were all going direct to Heaven, we were \
    all going direct the other way. In short, the period was so far like the present period, that some of its noisiest authorities insisted on \
    its being received, for good or for evil, in the superlative degree of comparison only.";

/// Samples of a second.
pub(crate) const RATE: usize = 16_000;

/// How long a part of a long recording is at least and at most, in samples: visitors do not read chapters.
const PART: std::ops::Range<usize> = 6 * RATE..12 * RATE;

/// What a pause between two parts is looked for with, in samples.
const PAUSE: usize = RATE / 4;

/// What becomes of a recording on its way.
pub(crate) type Change = fn(&[i16]) -> Vec<i16>;

/// What was said.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Its file.
    pub(crate) name: String,
    /// One after the other; a long recording has several.
    pub(crate) utterances: Vec<Vec<i16>>,
    pub(crate) words: String,
}

impl Recording {
    fn short(name: impl Into<String>, samples: Vec<i16>, words: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            utterances: vec![samples],
            words: words.into(),
        }
    }
}

/// All recordings: chapters of two novels, playing cards, an order, and the places of loudspeakers.
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
            let sound = samples(&folder.join(&name))?;
            all.push(Recording::short(
                name,
                sound,
                words.replace("<s>", "").replace("</s>", ""),
            ));
        }
    }
    for (name, words) in [
        ("goforward.raw", "go forward ten meters"),
        ("something.raw", "go somewhere and do something"),
    ] {
        all.push(Recording::short(name, named(name)?, words));
    }
    for place in ["Front", "Rear"] {
        for side in ["Center", "Left", "Right"] {
            all.push(loudspeaker(place, side)?);
        }
    }
    for side in ["Left", "Right"] {
        all.push(loudspeaker("Side", side)?);
    }
    let folder = std::env::var_os(NOVEL_FOLDER)
        .with_context(|| format!("{NOVEL_FOLDER} names the folder of {NOVEL}: tests/bench"))?;
    all.push(Recording {
        name: NOVEL.to_owned(),
        utterances: parts(&samples(&PathBuf::from(folder).join(NOVEL))?),
        words: NOVEL_WORDS.to_owned(),
    });
    Ok(all)
}

fn loudspeaker(place: &str, side: &str) -> anyhow::Result<Recording> {
    let name = format!("{place}_{side}.wav");
    let sound = samples(&Path::new(LOUDSPEAKERS).join(&name))?;
    Ok(Recording::short(name, sound, format!("{place} {side}")))
}

/// The samples of one recording, by its path in the package's folder.
pub(crate) fn named(path: &str) -> anyhow::Result<Vec<i16>> {
    samples(&Path::new(FOLDER).join(path))
}

/// The samples of a file, at [`RATE`]: with a header that says what they are, or at that rate.
fn samples(path: &Path) -> anyhow::Result<Vec<i16>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let (rate, sound) = match bytes.strip_prefix(b"RIFF") {
        Some(_) => wave(&bytes).with_context(|| format!("{} is no wave", path.display()))?,
        None => (RATE, bytes.as_slice()),
    };
    let (pairs, _) = sound.as_chunks::<2>();
    let samples: Vec<i16> = pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    anyhow::ensure!(
        rate % RATE == 0,
        "{} has {rate} samples a second",
        path.display()
    );
    Ok(match rate / RATE {
        1 => samples,
        step => within(&samples, rate, 0.0, 7_600.0)
            .into_iter()
            .step_by(step)
            .collect(),
    })
}

/// The rate and the samples of a wave file.
fn wave(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut rate = None;
    let mut rest = bytes.get(12..)?;
    loop {
        let (head, body) = rest.split_first_chunk::<8>()?;
        let [kind @ .., a, b, c, d] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        match &kind {
            b"fmt " => rate = Some(u32::from_le_bytes(*body.get(4..)?.first_chunk()?) as usize),
            b"data" => return Some((rate?, &body[..length.min(body.len())])),
            _ => {}
        }
        rest = body.get(length.next_multiple_of(2)..)?;
    }
}

/// Cuts a long recording in its pauses: each part ends where it is most quiet.
fn parts(samples: &[i16]) -> Vec<Vec<i16>> {
    let mut parts = Vec::new();
    let mut rest = samples;
    while rest.len() > PART.end {
        let energy = |at: &usize| -> u64 {
            let pause = &rest[*at..*at + PAUSE];
            pause
                .iter()
                .map(|sample| u64::from(sample.unsigned_abs()).pow(2))
                .sum()
        };
        let places = (PART.start..PART.end - PAUSE).step_by(PAUSE / 8);
        let cut = places.min_by_key(energy).unwrap_or(PART.start) + PAUSE / 2;
        parts.push(rest[..cut].to_vec());
        rest = &rest[cut..];
    }
    parts.push(rest.to_vec());
    parts
}

/// Short utterances in which nobody pauses, so that no turn is over before they are.
pub(crate) fn unbroken(recordings: &[Recording]) -> Vec<&[i16]> {
    const WINDOW: usize = RATE / 100;
    const LONGEST_PAUSE: usize = 12;
    const LONGEST: usize = 4 * RATE;
    let utterances = recordings
        .iter()
        .filter(|recording| recording.utterances.len() == 1);
    let utterances = utterances.flat_map(|recording| &recording.utterances);
    let is_unbroken = |samples: &&Vec<i16>| {
        let loudness: Vec<f64> = samples.chunks(WINDOW).map(harness::client::rms).collect();
        let loudest = loudness.iter().copied().fold(0.0, f64::max);
        let is_quiet = |loudness: &f64| *loudness < loudest * 0.05;
        let said = loudness.iter().position(|one| !is_quiet(one)).unwrap_or(0)
            ..loudness.iter().rposition(|one| !is_quiet(one)).unwrap_or(0);
        let pauses = loudness[said].split(|one| !is_quiet(one)).map(<[f64]>::len);
        samples.len() <= LONGEST && pauses.max().is_some_and(|longest| longest <= LONGEST_PAUSE)
    };
    utterances.filter(is_unbroken).map(Vec::as_slice).collect()
}

/// So many seconds of the recordings, one after the other.
pub(crate) fn seconds(recordings: &[Recording], seconds: usize) -> Vec<i16> {
    let utterances = recordings
        .iter()
        .flat_map(|recording| &recording.utterances);
    utterances.flatten().copied().take(seconds * RATE).collect()
}

/// As a telephone passes it on: from 300 to 3,400 Hz.
pub(crate) fn telephone(samples: &[i16]) -> Vec<i16> {
    within(samples, RATE, 300.0, 3_400.0)
}

/// As it is when it was sampled at 8,000 Hz, which keeps nothing above 4,000 Hz, with what a filter before that takes.
pub(crate) fn at_8khz(samples: &[i16]) -> Vec<i16> {
    within(samples, RATE, 0.0, 3_800.0)
}

/// What of a sound of so many samples a second is between two frequencies, in Hz.
fn within(samples: &[i16], rate: usize, lowest: f64, highest: f64) -> Vec<i16> {
    let band = |frequency: f64| -> Vec<f64> {
        // A windowed low-pass.
        const HALF: i32 = 100;
        let cut = frequency / rate as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_recordings_are_cut_where_it_is_quiet() {
        let second = |loudness: i16| vec![loudness; RATE];
        let seconds = [[1_000; 7].as_slice(), &[0], &[1_000; 9], &[10], &[1_000; 5]].concat();
        let sound: Vec<i16> = seconds.into_iter().flat_map(second).collect();
        let parts = parts(&sound);
        assert_eq!(parts.concat(), sound);
        let lengths: Vec<_> = parts.iter().map(|part| part.len() / RATE).collect();
        assert_eq!(
            lengths,
            [7, 10, 5],
            "in the quiet seconds, right after they begin"
        );
    }

    #[test]
    fn waves_are_read_with_what_stands_between() {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend(48_000_u32.to_le_bytes());
        file.extend([0; 8]);
        file.extend(b"LIST\x03\0\0\0abc\0data\x04\0\0\0\x01\0\x02\0more");
        assert_eq!(wave(&file), Some((48_000, [1, 0, 2, 0].as_slice())));
        assert_eq!(wave(&file[..40]), None);
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
