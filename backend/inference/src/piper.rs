//! Piper: text to speech, from phonemes.
//!
//! The model makes a sequence of frames of the phonemes, which takes as long as the text is, and sound of the frames. The sound
//! is made in pieces, so that it can be heard while the rest is made: with so many frames of context on both sides a piece is, bit
//! for bit, what it is in the whole.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde::Deserialize;

use crate::{
    InferenceError,
    runtime::{Floats, Input, Network, Runtime},
};

/// The value between the two halves of the network: the frames, [1, width, frames].
const FRAMES: &str = "/Mul_7_output_0";

/// Frames of the first piece, about half a second. Every further one has this much more.
const FIRST_PIECE: usize = 40;
/// Frames of the longest piece.
const LONGEST_PIECE: usize = 160;
/// Frames that a piece is made with on either side.
const CONTEXT: usize = 12;

/// The most phonemes of one utterance. The time and the memory for its frames grow faster than it does.
pub const MAX_PHONEMES: usize = 500;

/// The ids of the beginning, the end, and of what stands between two phonemes.
const BEGIN: i32 = 1;
const END: i32 = 2;
const PAD: i32 = 0;

/// Phonemes whose length is measured, which most voices know.
const MEASURED: &str = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ.";
/// The shortest phonemes, relative to their normal length.
const SHORTEST: f32 = 0.1;

/// A voice that was loaded. Any number of threads may ask it at a time.
#[derive(Debug)]
pub struct Piper {
    network: Box<dyn Network>,
    settings: Settings,
    /// Measured when it is first needed.
    pace: OnceLock<Pace>,
}

/// How the length of an utterance follows from the scale that the network multiplies the length of each phoneme by. The network rounds each
/// length up to whole frames, so part of an utterance does not scale.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    /// Frames that scale, of an utterance that is spoken at normal speed, over all of its frames.
    scaled_part: f32,
}

impl Pace {
    /// The pace of an utterance that has so many frames at its normal length, and at half of it.
    fn of(normal: usize, half: usize) -> Self {
        let scaled = 2 * normal.saturating_sub(half);
        let scaled_part = scaled as f32 / normal.max(1) as f32;
        Self {
            scaled_part: scaled_part.clamp(0.5, 1.0),
        }
    }

    /// What the length of each phoneme is multiplied by at this speed.
    fn scale(self, speed: f32) -> f32 {
        let scale = 1.0 - (1.0 - 1.0 / speed) / self.scaled_part;
        scale.max(SHORTEST)
    }
}

/// What a voice's JSON file says.
#[derive(Debug, Deserialize)]
struct Settings {
    audio: AudioSettings,
    espeak: EspeakSettings,
    inference: InferenceSettings,
    phoneme_id_map: HashMap<String, Vec<i32>>,
    num_speakers: u32,
}

#[derive(Debug, Deserialize)]
struct AudioSettings {
    sample_rate: u32,
}

#[derive(Debug, Deserialize)]
struct EspeakSettings {
    voice: String,
}

#[derive(Debug, Deserialize)]
struct InferenceSettings {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

/// An utterance whose sound is being made.
#[derive(Debug)]
pub struct Speaking {
    piper: Arc<Piper>,
    frames: Floats,
    count: usize,
    made: usize,
    piece: usize,
}

impl Piper {
    /// Loads a voice from its ONNX file and its JSON file.
    ///
    /// # Errors
    /// When one of them is malformed, or the voice has several speakers.
    pub fn load(
        runtime: &dyn Runtime,
        model: Vec<u8>,
        settings: &[u8],
    ) -> Result<Self, InferenceError> {
        let malformed = |message: String| InferenceError::Malformed(message);
        let settings: Settings =
            serde_json::from_slice(settings).map_err(|error| malformed(error.to_string()))?;
        if settings.num_speakers > 1 {
            return Err(malformed(
                "voices of several speakers are not known".to_owned(),
            ));
        }
        if !(8_000..=48_000).contains(&settings.audio.sample_rate) {
            return Err(malformed("the sample rate is out of range".to_owned()));
        }
        let network = runtime.load(model)?;
        Ok(Self {
            network,
            settings,
            pace: OnceLock::new(),
        })
    }

    /// What the length of each phoneme is multiplied by at this speed.
    fn scale(&self, speed: f32) -> Result<f32, InferenceError> {
        if speed == 1.0 {
            return Ok(1.0);
        }
        if let Some(pace) = self.pace.get() {
            return Ok(pace.scale(speed));
        }
        let ids = self.ids(MEASURED);
        // Without noise the same phonemes always take as long.
        let frames = |scale| self.frames(&ids, scale, 0.0);
        let [normal, half] = [frames(1.0)?, frames(0.5)?].map(|frames| frames.shape[2]);
        Ok(self
            .pace
            .get_or_init(|| Pace::of(normal, half))
            .scale(speed))
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// Samples of a second.
    #[must_use]
    pub fn sample_rate_hz(&self) -> u32 {
        self.settings.audio.sample_rate
    }

    /// The voice of espeak-ng whose phonemes it knows.
    #[must_use]
    pub fn phonemes_of(&self) -> &str {
        &self.settings.espeak.voice
    }

    /// Begins to speak these phonemes, at this speed; 1 is normal. What it does not know is passed over.
    ///
    /// # Errors
    /// [`InferenceError::TooLong`] beyond [`MAX_PHONEMES`]; [`InferenceError::Cancelled`] when nobody wants it any more before the model runs;
    /// when the model fails.
    pub fn speak(
        self: &Arc<Self>,
        phonemes: &str,
        speed: f32,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Speaking, InferenceError> {
        if phonemes.chars().count() > MAX_PHONEMES {
            let message = format!("an utterance has {MAX_PHONEMES} phonemes at most");
            return Err(InferenceError::TooLong(message));
        }
        let ids = self.ids(phonemes);
        if !is_wanted() {
            return Err(InferenceError::Cancelled);
        }
        let noise_w = self.settings.inference.noise_w;
        let frames = self.frames(&ids, self.scale(speed)?, noise_w)?;
        Ok(Speaking {
            count: frames.shape[2],
            piper: Arc::clone(self),
            frames,
            made: 0,
            piece: FIRST_PIECE,
        })
    }

    fn ids(&self, phonemes: &str) -> Vec<i32> {
        let mut ids = vec![BEGIN, PAD];
        let mut buffer = [0; 4];
        for phoneme in phonemes.chars() {
            let known = self
                .settings
                .phoneme_id_map
                .get(&*phoneme.encode_utf8(&mut buffer));
            for id in known.into_iter().flatten() {
                ids.extend([*id, PAD]);
            }
        }
        ids.push(END);
        ids
    }

    /// The frames of phonemes whose length is multiplied by a scale, [1, width, frames]; `noise_w` makes their lengths vary.
    fn frames(&self, ids: &[i32], scale: f32, noise_w: f32) -> Result<Floats, InferenceError> {
        let settings = &self.settings.inference;
        let scales = [settings.noise_scale, settings.length_scale * scale, noise_w];
        let length = [i32::try_from(ids.len()).unwrap_or(i32::MAX)];
        let shape = [1, ids.len()];
        let inputs = [
            ("input", Input::Ints(&shape, ids)),
            ("input_lengths", Input::Ints(&[1], &length)),
            ("scales", Input::Floats(&[3], &scales)),
        ];
        let frames = self.network.run(&inputs, &[FRAMES])?.pop();
        let frames = frames.filter(|frames| frames.shape.len() == 3 && frames.shape[0] == 1);
        frames.ok_or_else(|| InferenceError::Failed("its frames have another shape".to_owned()))
    }

    /// The sound of these frames.
    fn sound(&self, frames: &Floats) -> Result<Vec<f32>, InferenceError> {
        let sound = self.network.run(&[(FRAMES, frames.input())], &["output"])?;
        Ok(sound
            .into_iter()
            .next()
            .map(|sound| sound.data)
            .unwrap_or_default())
    }
}

impl Speaking {
    /// The next piece of sound, from -1 to 1; `None` at the end.
    ///
    /// # Errors
    /// [`InferenceError::Cancelled`] when nobody wants it any more before the model runs; when the model fails.
    pub fn next_piece(
        &mut self,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<f32>>, InferenceError> {
        if self.made == self.count {
            return Ok(None);
        }
        if !is_wanted() {
            return Err(InferenceError::Cancelled);
        }
        let begin = self.made;
        let end = (begin + self.piece).min(self.count);
        let from = begin.saturating_sub(CONTEXT);
        let to = (end + CONTEXT).min(self.count);
        let sound = self.piper.sound(&columns(&self.frames, from, to))?;
        let samples = sound.len() / (to - from);
        if samples == 0 {
            return Err(InferenceError::Failed("it made no sound".to_owned()));
        }
        (self.made, self.piece) = (end, (self.piece + FIRST_PIECE).min(LONGEST_PIECE));
        let piece = &sound[(begin - from) * samples..(end - from) * samples];
        Ok(Some(piece.to_vec()))
    }

    /// All of its sound, made at once.
    ///
    /// # Errors
    /// When the model fails.
    pub fn whole(&self) -> Result<Vec<f32>, InferenceError> {
        self.piper.sound(&self.frames)
    }
}

/// The frames from one to another.
fn columns(frames: &Floats, from: usize, to: usize) -> Floats {
    let (width, count) = (frames.shape[1], frames.shape[2]);
    let mut data = Vec::with_capacity(width * (to - from));
    for row in frames.data.chunks_exact(count) {
        data.extend_from_slice(&row[from..to]);
    }
    Floats {
        shape: vec![1, width, to - from],
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Rten;

    #[test]
    fn the_part_that_does_not_scale_is_made_up_for() {
        // 300 frames, of which 100 are there at any length.
        let pace = Pace::of(300, 200);
        let length = |speed| 200.0 * pace.scale(speed) + 100.0;
        for speed in [0.5, 0.8, 1.0, 1.25, 1.5, 2.5] {
            let expected = 300.0 / speed;
            assert!((length(speed) - expected).abs() < 0.01, "{speed}");
        }
        assert_eq!(Pace::of(0, 0).scale(1.0), 1.0);
        assert_eq!(Pace::of(300, 300).scale(2.5), SHORTEST);
    }

    #[test]
    fn settings_that_are_malformed_are_errors() {
        let good = r#"{"audio":{"sample_rate":22050},"espeak":{"voice":"en-us"},"inference":{"noise_scale":0.667,
            "length_scale":1,"noise_w":0.8},"phoneme_id_map":{"a":[7]},"num_speakers":1}"#;
        let load = |settings: &str| {
            let loaded = Piper::load(&Rten::new(), vec![1, 2, 3], settings.as_bytes());
            loaded.unwrap_err().to_string()
        };
        // Good settings come as far as the model.
        assert!(!load(good).contains("JSON"), "{}", load(good));
        for (from, to, part) in [
            ("22050", "7", "sample rate"),
            ("22050", "1000000", "sample rate"),
            ("\"num_speakers\":1", "\"num_speakers\":904", "speakers"),
            ("[7]", "[\"x\"]", "invalid type"),
            ("audio", "sound", "missing field"),
        ] {
            let error = load(&good.replace(from, to));
            assert!(error.contains(part), "{error}");
        }
        colloquy_fuzz::fuzz(&[good.as_bytes().to_vec()], |settings| {
            let error = load(&String::from_utf8_lossy(settings));
            let kind = error.chars().filter(char::is_ascii_lowercase);
            kind.take(60).collect()
        });
    }
}
