//! Kokoro: text to speech, from the phonemes of espeak-ng.
//!
//! One network speaks with many voices, each a file of styles: numbers that the network is given beside the phonemes, for each
//! length of an utterance. Its decoder looks at all of an utterance, so that sound comes when all of it is made; who wants to hear
//! the beginning early gives it the text in parts.

mod graph;
mod symbols;

use crate::{
    InferenceError,
    runtime::{Input, Network, Runtime},
};

/// Samples of a second.
pub const SAMPLE_RATE_HZ: u32 = 24_000;

/// The voice of espeak-ng whose phonemes it knows.
pub const PHONEMES_OF: &str = "en-us";

/// The most symbols of one utterance. Phonemes are about as many.
pub const MAX_SYMBOLS: usize = 510;

/// The number that stands before and behind the symbols.
const EDGE: i32 = 0;

/// Numbers of a style, and how many styles a voice has: one for each number of symbols.
const STYLE: usize = 256;
const STYLES: usize = MAX_SYMBOLS;

/// The speeds that it knows. Sound that is slower would take more memory than anybody expects.
const SPEEDS: std::ops::RangeInclusive<f32> = 0.25..=4.0;

/// How loud a sample is that belongs to no pause, and what is kept before the first and behind the last of them, in samples.
const AUDIBLE: f32 = 0.003;
const BEFORE: usize = SAMPLE_RATE_HZ as usize / 50;
const BEHIND_CLAUSE: usize = SAMPLE_RATE_HZ as usize * 3 / 25;
const BEHIND_SENTENCE: usize = SAMPLE_RATE_HZ as usize * 7 / 20;

/// A network that was loaded. Any number of threads may ask it at a time.
#[derive(Debug)]
pub struct Kokoro {
    network: Box<dyn Network>,
}

/// A voice that was loaded.
#[derive(Debug)]
pub struct Style(Vec<f32>);

impl Style {
    /// Reads a voice's file: numbers of 32 bits, little-endian.
    ///
    /// # Errors
    /// When it has another length, or something in it is no number.
    pub fn read(file: &[u8]) -> Result<Self, InferenceError> {
        let malformed = |message: &str| InferenceError::Malformed(message.to_owned());
        let (numbers, rest) = file.as_chunks::<4>();
        if numbers.len() != STYLES * STYLE || !rest.is_empty() {
            return Err(malformed("a voice has 510 styles of 256 numbers"));
        }
        let numbers: Vec<_> = numbers
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(Self(numbers)),
            false => Err(malformed("a voice has a number that is none")),
        }
    }

    /// The style for so many symbols.
    fn of(&self, symbols: usize) -> &[f32] {
        let row = symbols.clamp(1, STYLES) - 1;
        &self.0[row * STYLE..(row + 1) * STYLE]
    }
}

impl Kokoro {
    /// Loads the network from its ONNX file.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn load(runtime: &dyn Runtime, file: Vec<u8>) -> Result<Self, InferenceError> {
        let network = runtime.load(graph::known(file)?)?;
        Ok(Self { network })
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// The sound of these phonemes, from -1 to 1, at this speed; 1 is normal. What it has no symbol for is passed over. The pauses
    /// at both ends are shortened; the one at the end depends on the last punctuation mark.
    ///
    /// # Errors
    /// [`InferenceError::TooLong`] beyond [`MAX_SYMBOLS`]; when the network fails.
    pub fn speak(
        &self,
        style: &Style,
        phonemes: &str,
        speed: f32,
    ) -> Result<Vec<f32>, InferenceError> {
        let too_long = || {
            let message = format!("an utterance has {MAX_SYMBOLS} symbols at most");
            InferenceError::TooLong(message)
        };
        // Counted before anything is made of them, too.
        if phonemes.chars().count() > 2 * MAX_SYMBOLS {
            return Err(too_long());
        }
        let symbols = symbols::numbers(phonemes);
        if symbols.len() > MAX_SYMBOLS {
            return Err(too_long());
        }
        if symbols.is_empty() {
            return Ok(Vec::new());
        }
        let style = style.of(symbols.len());
        let speed = speed.clamp(*SPEEDS.start(), *SPEEDS.end());
        let tokens = [&[EDGE], symbols.as_slice(), &[EDGE]].concat();
        let inputs = [
            ("tokens", Input::Ints(&[1, tokens.len()], &tokens)),
            ("style", Input::Floats(&[1, STYLE], style)),
            ("speed", Input::Floats(&[1], &[speed])),
        ];
        let sound = self.network.run(&inputs, &["audio"])?.pop();
        let sound = sound.map(|sound| sound.data).unwrap_or_default();
        if sound.is_empty() || !sound.iter().all(|sample| sample.is_finite()) {
            return Err(InferenceError::Failed("it made no sound".to_owned()));
        }
        let behind = match phonemes.trim_end().ends_with(['.', '!', '?', '…']) {
            true => BEHIND_SENTENCE,
            false => BEHIND_CLAUSE,
        };
        let kept = [BEFORE, behind].map(|samples| (samples as f32 / speed) as usize);
        Ok(trimmed(sound, kept))
    }
}

/// The sound without the pauses at its ends, but for so many samples at the first and at the last.
fn trimmed(mut sound: Vec<f32>, [before, behind]: [usize; 2]) -> Vec<f32> {
    let is_audible = |sample: &f32| sample.abs() > AUDIBLE;
    let (Some(first), Some(last)) = (
        sound.iter().position(is_audible),
        sound.iter().rposition(is_audible),
    ) else {
        return Vec::new();
    };
    sound.truncate((last + 1).saturating_add(behind));
    sound.drain(..first.saturating_sub(before));
    for sample in &mut sound {
        *sample = sample.clamp(-1.0, 1.0);
    }
    sound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Floats, Rten};

    /// Answers with as many samples as it is given tokens, each as loud as the style says.
    #[derive(Debug)]
    struct Echo;

    impl Network for Echo {
        fn bytes(&self) -> usize {
            0
        }

        fn run(
            &self,
            inputs: &[(&str, Input<'_>)],
            outputs: &[&str],
        ) -> Result<Vec<Floats>, InferenceError> {
            assert_eq!(outputs, ["audio"]);
            let [
                ("tokens", Input::Ints(&[1, count], tokens)),
                ("style", Input::Floats(&[1, STYLE], style)),
                ("speed", Input::Floats(&[1], &[_])),
            ] = *inputs
            else {
                panic!("other inputs: {inputs:?}")
            };
            assert_eq!((tokens[0], tokens[count - 1]), (EDGE, EDGE));
            assert_eq!(tokens.len(), count);
            Ok(vec![Floats {
                shape: vec![count],
                data: vec![style[0]; count],
            }])
        }
    }

    fn style(number: impl Fn(usize) -> f32) -> Vec<u8> {
        (0..STYLES * STYLE)
            .flat_map(|index| number(index / STYLE).to_le_bytes())
            .collect()
    }

    #[test]
    fn the_style_is_of_the_number_of_symbols() {
        let kokoro = Kokoro {
            network: Box::new(Echo),
        };
        let style = Style::read(&style(|row| (row + 1) as f32 / 1_000.0)).unwrap();
        let speak = |phonemes: &str| kokoro.speak(&style, phonemes, 1.0);
        assert_eq!(speak(&"a".repeat(100)).unwrap(), [0.1; 102]);
        assert_eq!(speak(&"aɪ".repeat(MAX_SYMBOLS)).unwrap(), [0.51; 512]);
        // Nothing that it knows, or nothing that can be heard.
        assert_eq!(speak("").unwrap(), [0.0; 0]);
        assert_eq!(speak("你好😀").unwrap(), [0.0; 0]);
        assert_eq!(speak("a").unwrap(), [0.0; 0]);
        for long in ["a".repeat(MAX_SYMBOLS + 1), "你".repeat(1_021)] {
            let error = speak(&long).unwrap_err();
            assert!(matches!(error, InferenceError::TooLong(_)), "{error}");
        }
    }

    #[test]
    fn pauses_are_shortened() {
        let pause = [0.0; 10_000];
        let sound = [&pause[..], &[0.5, 0.0, -7.0], &pause].concat();
        let trimmed = trimmed(sound, [50, 100]);
        assert_eq!(trimmed.len(), 50 + 3 + 100);
        assert_eq!(trimmed[50..53], [0.5, 0.0, -1.0]);
        assert_eq!(super::trimmed(vec![0.4], [50, 100]), [0.4]);
    }

    /// Says something for a second, and is silent for as long before and behind it, as fast as it is told.
    #[derive(Debug)]
    struct Paused;

    impl Network for Paused {
        fn bytes(&self) -> usize {
            0
        }

        fn run(
            &self,
            inputs: &[(&str, Input<'_>)],
            _: &[&str],
        ) -> Result<Vec<Floats>, InferenceError> {
            let Some(("speed", Input::Floats(_, &[speed]))) = inputs.last().copied() else {
                panic!("other inputs: {inputs:?}")
            };
            let second = (SAMPLE_RATE_HZ as f32 / speed) as usize;
            let data = [0.0, 0.5, 0.0].map(|loudness| vec![loudness; second]);
            let data = data.concat();
            Ok(vec![Floats {
                shape: vec![data.len()],
                data,
            }])
        }
    }

    #[test]
    fn pauses_keep_to_the_speed_as_words_do() {
        let kokoro = Kokoro {
            network: Box::new(Paused),
        };
        let style = Style::read(&style(|_| 0.5)).unwrap();
        for phonemes in ["həlˈoʊ,", "həlˈoʊ."] {
            let length = |speed| kokoro.speak(&style, phonemes, speed).unwrap().len() as f32;
            for speed in [0.5, 0.75, 1.25, 1.5] {
                let kept = length(1.0) / length(speed);
                assert!((kept / speed - 1.0).abs() < 0.001, "{kept} for {speed}");
            }
        }
    }

    #[test]
    fn files_that_are_malformed_are_errors() {
        let good = style(|_| 0.5);
        assert!(Style::read(&good).is_ok());
        let wrong = style(|row| if row == 400 { f32::NAN } else { 0.5 });
        for wrong in [&good[4..], &good[..good.len() - 1], &[], &wrong] {
            let error = Style::read(wrong).unwrap_err();
            assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
        }
        for wrong in [vec![], vec![7; 1_000]] {
            let error = Kokoro::load(&Rten::new(), wrong).unwrap_err();
            assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
        }
    }
}
