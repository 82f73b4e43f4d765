//! Piper: text to speech, from phonemes.
//!
//! The model makes a sequence of frames of the phonemes, which takes as long as the text is, and sound of the frames. The sound
//! is made in pieces, so that it can be heard while the rest is made: with so many frames of context on both sides a piece is, bit
//! for bit, what it is in the whole.
//!
//! The lengths of phonemes vary by chance. At another speed than the normal one those of a take are scaled before its frames are made, so that
//! together they last as long as the speed says.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;

use crate::{
    InferenceError,
    runtime::{Floats, Input, Network, Runtime},
};

/// The lengths of the phonemes in frames, before the network rounds each of them up: [1, 1, phonemes].
const LENGTHS: &str = "/Mul_1_output_0";
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

/// The shortest and the longest phonemes, relative to their normal length.
const SHORTEST: f32 = 0.1;
const LONGEST: f32 = 16.0;
/// Halvings until the scale is found as exactly as a number has it.
const HALVINGS: u32 = 24;

/// A voice that was loaded. Any number of threads may ask it at a time.
#[derive(Debug)]
pub struct Piper {
    network: Box<dyn Network>,
    settings: Settings,
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
        Ok(Self { network, settings })
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
        let frames = if speed == 1.0 {
            self.run(&ids, None, FRAMES)?
        } else {
            let mut lengths = self.run(&ids, None, LENGTHS)?;
            pace(&mut lengths.data, speed);
            if !is_wanted() {
                return Err(InferenceError::Cancelled);
            }
            self.run(&ids, Some(&lengths), FRAMES)?
        };
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

    /// Gives the network phonemes, and their lengths where those are settled, and takes a value of three dimensions.
    fn run(
        &self,
        ids: &[i32],
        lengths: Option<&Floats>,
        value: &str,
    ) -> Result<Floats, InferenceError> {
        let settings = &self.settings.inference;
        let scales = [
            settings.noise_scale,
            settings.length_scale,
            settings.noise_w,
        ];
        let length = [i32::try_from(ids.len()).unwrap_or(i32::MAX)];
        let shape = [1, ids.len()];
        let mut inputs = vec![
            ("input", Input::Ints(&shape, ids)),
            ("input_lengths", Input::Ints(&[1], &length)),
            ("scales", Input::Floats(&[3], &scales)),
        ];
        inputs.extend(lengths.map(|lengths| (LENGTHS, lengths.input())));
        let taken = self.network.run(&inputs, &[value])?.pop();
        let taken = taken.filter(|taken| taken.shape.len() == 3 && taken.shape[0] == 1);
        taken.ok_or_else(|| InferenceError::Failed(format!("its {value} has another shape")))
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

/// Scales the lengths of phonemes. Each is rounded up to whole frames, and together they then have as many as without it, divided by the speed.
fn pace(lengths: &mut [f32], speed: f32) {
    let frames = |scale: f32| -> f32 { lengths.iter().map(|it| (it * scale).ceil()).sum() };
    let wanted = (frames(1.0) / speed).round();
    let (mut low, mut high) = (SHORTEST, LONGEST);
    for _ in 0..HALVINGS {
        let middle = f32::midpoint(low, high);
        match frames(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    for length in lengths {
        *length *= high;
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
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::runtime::Rten;

    const SETTINGS: &str = r#"{"audio":{"sample_rate":22050},"espeak":{"voice":"en-us"},"inference":{"noise_scale":0.667,
            "length_scale":1,"noise_w":0.8},"phoneme_id_map":{"a":[7]},"num_speakers":1}"#;

    /// The lengths of a take, each a little different, and how many frames they have at the normal speed.
    fn take(phonemes: usize, number: usize) -> (Vec<f32>, f32) {
        let varied = |at: usize| ((at * 7 + number * 5) % 31) as f32 * 0.137;
        let lengths = (0..phonemes).map(|at| 0.3 + varied(at) + at as f32 * 0.003);
        let lengths: Vec<f32> = lengths.collect();
        let frames = lengths.iter().map(|length| length.ceil()).sum();
        (lengths, frames)
    }

    /// A network no two takes of which have the same lengths.
    #[derive(Debug, Default)]
    struct Varying(AtomicUsize);

    impl Network for Varying {
        fn bytes(&self) -> usize {
            0
        }

        fn run(
            &self,
            inputs: &[(&str, Input<'_>)],
            outputs: &[&str],
        ) -> Result<Vec<Floats>, InferenceError> {
            let Some(("input", Input::Ints(&[1, phonemes], _))) = inputs.first().copied() else {
                panic!("other inputs: {inputs:?}")
            };
            let settled = inputs.iter().find_map(|(name, input)| match input {
                Input::Floats(_, lengths) if *name == LENGTHS => Some(lengths.to_vec()),
                Input::Floats(..) | Input::Ints(..) => None,
            });
            let lengths = settled.unwrap_or_else(|| take(phonemes, self.0.fetch_add(1, Relaxed)).0);
            Ok(vec![match outputs {
                [LENGTHS] => Floats {
                    shape: vec![1, 1, phonemes],
                    data: lengths,
                },
                [FRAMES] => {
                    let frames: f32 = lengths.iter().map(|length| length.ceil()).sum();
                    Floats::zeros(&[1, 2, frames as usize])
                }
                _ => panic!("other outputs: {outputs:?}"),
            }])
        }
    }

    #[test]
    fn every_take_keeps_to_its_speed() {
        let piper = Arc::new(Piper {
            network: Box::new(Varying::default()),
            settings: serde_json::from_str(SETTINGS).unwrap(),
        });
        let phonemes = "a".repeat(40);
        let ids = piper.ids(&phonemes).len();
        // At the normal speed a take is as it is.
        let speeds = [1.0, 0.5, 0.75, 1.1, 1.25, 1.5].into_iter().cycle();
        for (number, speed) in speeds.take(30).enumerate() {
            let speaking = piper.speak(&phonemes, speed, &|| true).unwrap();
            let (_, normal) = take(ids, number);
            let kept = normal / speaking.count as f32;
            let error = (kept / speed - 1.0).abs();
            assert!(error < 0.01, "{kept} instead of {speed}");
        }
    }

    #[test]
    fn lengths_have_bounds() {
        let frames = |lengths: &[f32]| -> f32 { lengths.iter().map(|it| it.ceil()).sum() };
        let (normal, all) = take(100, 3);
        for speed in [0.4, 0.9, 1.7] {
            let mut lengths = normal.clone();
            pace(&mut lengths, speed);
            let off = (frames(&lengths) - all / speed).abs();
            assert!(off <= 2.0, "{off} frames at {speed}");
        }
        // No phoneme is shorter than a frame, however fast it is to be, and nothing is nothing.
        let mut lengths = vec![1.5; 10];
        pace(&mut lengths, 100.0);
        assert_eq!(frames(&lengths), 10.0);
        let mut silent = vec![0.0; 3];
        pace(&mut silent, 0.5);
        assert_eq!(silent, [0.0; 3]);
        pace(&mut [], 0.5);
    }

    #[test]
    fn fuzzed_settings_are_errors() {
        let good = SETTINGS;
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
