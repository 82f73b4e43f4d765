//! What a voice speaks with: a network of Piper's, or Kokoro's with a style. The way from a text to pieces of sound is the same for
//! both.
//!
//! Piper's sound is made in pieces. Kokoro's is made of all that it is given at once, so it is given a text in clauses: a short
//! one first, so that it is heard early, and more in each that follows, which is made while those before it are heard.

use std::sync::Arc;

use colloquy_inference::{
    InferenceError,
    kokoro::{self, Kokoro, Style},
    piper::{self, MAX_PHONEMES, Piper},
    runtime::Rten,
};
use colloquy_models::{
    folder::ModelsFolder,
    manifest::{Model, ModelFile},
};

/// What the names of Piper's voices in the manifest begin with, which the voice's own name does not.
const PIPER: &str = "piper-";

/// What the names of the files with Kokoro's styles end with.
const STYLE: &str = ".bin";

/// The real-time factor below which Kokoro speaks by default: what is heard has to be made meanwhile, beside the work of other calls.
const KOKORO_BY_DEFAULT: f64 = 0.4;

/// How much slower than that a machine is, at the first try, that is not measured any further.
const HOPELESS: f64 = 2.0;

/// Phonemes that Kokoro takes at once. Some are written with two symbols.
const MOST_OF_KOKORO: usize = kokoro::MAX_SYMBOLS / 2;

/// How long the first part of a text is about, in phonemes, and the longest: the memory for a part grows with it, 20 MB for each second of
/// its sound. Below the least, Kokoro hurries.
const FIRST_PART: usize = 40;
const LONGEST_PART: usize = 80;
const LEAST_PART: usize = 12;

/// A network that was loaded, and what makes it speak with one voice.
#[derive(Debug, Clone)]
pub(super) enum Speaker {
    /// A voice is a network.
    Piper(Arc<Piper>),
    /// Voices share a network.
    Kokoro(Arc<Kokoro>, Arc<Style>),
}

/// An utterance whose sound is being made.
#[derive(Debug)]
pub(super) enum Speaking {
    /// Piece by piece.
    Piper(piper::Speaking),
    /// All at once, of these phonemes at this speed; `None` once it was made.
    Kokoro(Arc<Kokoro>, Arc<Style>, Option<(String, f32)>),
}

impl Speaker {
    /// The voices of a model, each with what requests call it.
    ///
    /// # Errors
    /// When one of its files is missing, damaged or malformed.
    pub(super) fn load(
        folder: &ModelsFolder,
        model: &'static Model,
    ) -> anyhow::Result<Vec<(&'static str, Self)>> {
        let file = |name| {
            let file = model.file(name);
            let file = file.ok_or_else(|| anyhow::anyhow!("{} has no {name}", model.name))?;
            anyhow::Ok(folder.read(model, file)?)
        };
        if let Some(id) = model.name.strip_prefix(PIPER) {
            let piper = Piper::load(&Rten::new(), file("voice.onnx")?, &file("voice.json")?)?;
            return Ok(vec![(id, Self::Piper(Arc::new(piper)))]);
        }
        let kokoro = Arc::new(Kokoro::load(&Rten::new(), file("model.onnx")?)?);
        let id_of = |file: &'static ModelFile| Some((file.name.strip_suffix(STYLE)?, file));
        let voices = model.files.iter().filter_map(id_of).map(|(id, file)| {
            let style = Arc::new(Style::read(&folder.read(model, file)?)?);
            Ok((id, Self::Kokoro(Arc::clone(&kokoro), style)))
        });
        voices.collect()
    }

    /// The real-time factor below which a model speaks by default; `None` where any machine is fast enough for it.
    pub(super) fn by_default_below(model: &Model) -> Option<f64> {
        (!model.name.starts_with(PIPER)).then_some(KOKORO_BY_DEFAULT)
    }

    /// Samples of a second.
    pub(super) fn sample_rate_hz(&self) -> u32 {
        match self {
            Self::Piper(piper) => piper.sample_rate_hz(),
            Self::Kokoro(..) => kokoro::SAMPLE_RATE_HZ,
        }
    }

    /// The voice of espeak-ng whose phonemes it knows.
    pub(super) fn phonemes_of(&self) -> &str {
        match self {
            Self::Piper(piper) => piper.phonemes_of(),
            Self::Kokoro(..) => kokoro::PHONEMES_OF,
        }
    }

    /// The most phonemes of a sentence.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::Piper(_) => MAX_PHONEMES,
            Self::Kokoro(..) => MOST_OF_KOKORO,
        }
    }

    /// The phonemes of sentences, as it is to be given them.
    pub(super) fn parts(&self, sentences: Vec<String>) -> Vec<String> {
        match self {
            Self::Piper(_) => sentences,
            Self::Kokoro(..) => parts(&sentences),
        }
    }

    /// How many bytes the weights of its network have.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Piper(piper) => piper.bytes(),
            Self::Kokoro(kokoro, _) => kokoro.bytes(),
        }
    }

    /// Begins to speak these phonemes, at this speed; 1 is normal.
    ///
    /// # Errors
    /// When they are too many, nobody wants it any more, or the network fails.
    pub(super) fn speak(
        &self,
        phonemes: &str,
        speed: f32,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Speaking, InferenceError> {
        Ok(match self {
            Self::Piper(piper) => Speaking::Piper(piper.speak(phonemes, speed, is_wanted)?),
            Self::Kokoro(kokoro, style) => Speaking::Kokoro(
                Arc::clone(kokoro),
                Arc::clone(style),
                Some((phonemes.to_owned(), speed)),
            ),
        })
    }
}

impl Speaking {
    /// The next piece of sound, from -1 to 1; `None` at the end.
    ///
    /// # Errors
    /// When nobody wants it any more, or the network fails.
    pub(super) fn next_piece(
        &mut self,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<f32>>, InferenceError> {
        match self {
            Self::Piper(speaking) => speaking.next_piece(is_wanted),
            Self::Kokoro(kokoro, style, left) => {
                let left = left.take();
                if left.is_some() && !is_wanted() {
                    return Err(InferenceError::Cancelled);
                }
                let sound = left.map(|(phonemes, speed)| kokoro.speak(style, &phonemes, speed));
                sound.transpose()
            }
        }
    }
}

/// A real-time factor, measured more than once only where that may still be below the one that is wanted.
///
/// # Errors
/// When the network fails.
pub(super) fn measured<E>(
    wanted: Option<f64>,
    once: impl FnOnce() -> Result<f64, E>,
    best: impl FnOnce() -> Result<f64, E>,
) -> Result<f64, E> {
    if let Some(wanted) = wanted {
        let first = once()?;
        if first > wanted * HOPELESS {
            return Ok(first);
        }
    }
    best()
}

/// Sentences in parts, the first of them short.
fn parts(sentences: &[String]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for sentence in sentences {
        let mut part = String::new();
        for clause in clauses(sentence) {
            let length = part.chars().count();
            if length >= LEAST_PART && length + clause.chars().count() > length_of(parts.len()) {
                parts.push(std::mem::take(&mut part));
            }
            part.push_str(clause);
            // What no mark divides is cut between words, later than at a mark.
            while let Some(at) = cut(&part, 2 * length_of(parts.len())) {
                let rest = part.split_off(at);
                parts.push(std::mem::replace(&mut part, rest));
            }
        }
        parts.push(part);
    }
    let trimmed = parts.iter().map(|part| part.trim().to_owned());
    trimmed.filter(|part| !part.is_empty()).collect()
}

/// How long the part with this number is to be: what follows is made while those before it are heard.
fn length_of(number: usize) -> usize {
    (FIRST_PART << number.min(8)).min(LONGEST_PART)
}

/// Where a text of more than so many letters is cut: behind the last space before them, or right there.
fn cut(text: &str, most: usize) -> Option<usize> {
    let (end, _) = text.char_indices().nth(most)?;
    let space = text[..end].rfind(' ').map(|space| space + 1);
    Some(space.unwrap_or(end))
}

/// The clauses of a sentence, each with its mark and the space behind it.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let mut before = None;
    sentence.split_inclusive(move |letter: char| {
        let is_end = letter == ' ' && matches!(before, Some(',' | ';' | ':'));
        before = Some(letter);
        is_end
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn of(sentences: &[&str]) -> Vec<String> {
        let sentences: Vec<_> = sentences.iter().map(|one| (*one).to_owned()).collect();
        parts(&sentences)
    }

    #[test]
    fn texts_are_spoken_in_clauses_that_grow() {
        let clause = "wˈʌn tˈuː θɹˈiː fˈɔːɹ fˈaɪv, ";
        let sentence = format!("{}ˈɛnd.", clause.repeat(12));
        let parts = of(&[&sentence, "mˈɔːɹ."]);
        let lengths: Vec<_> = parts.iter().map(|part| part.chars().count()).collect();
        let length = clause.trim().chars().count();
        assert_eq!(lengths[0], length, "one clause comes first");
        assert_eq!(lengths[1], 2 * length + 1, "and more follow");
        assert!(lengths.iter().all(|length| *length <= LONGEST_PART));
        assert_eq!(parts.join(" "), format!("{sentence} mˈɔːɹ."));
        assert_eq!(
            parts.last().unwrap(),
            "mˈɔːɹ.",
            "no part is of two sentences"
        );
    }

    #[test]
    fn what_is_short_stays_together_and_what_is_long_is_cut_between_words() {
        assert_eq!(of(&["jˈɛs, aɪ dˈuː."]), ["jˈɛs, aɪ dˈuː."]);
        assert_eq!(of(&[]), [""; 0]);
        assert_eq!(of(&["", " "]), [""; 0]);
        let endless = "wˈɜːd ".repeat(200);
        let parts = of(&[&endless, &"ə".repeat(2_000)]);
        assert!(
            parts
                .iter()
                .all(|part| part.chars().count() <= 2 * LONGEST_PART)
        );
        assert!(parts[0].chars().count() <= 2 * FIRST_PART);
        assert!(parts[0].ends_with("wˈɜːd"), "{}", parts[0]);
        let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').count();
        let all: usize = parts.iter().map(|part| letters(part)).sum();
        assert_eq!(all, letters(&endless) + 2_000);
        // Whatever it is, the network takes it.
        const { assert!(2 * LONGEST_PART <= MOST_OF_KOKORO) }
    }

    #[test]
    fn a_machine_that_is_far_too_slow_is_measured_once() {
        let of = |wanted: Option<f64>, first: f64, best: f64| {
            let asked = Cell::new(0);
            let count = |factor| {
                asked.set(asked.get() + 1);
                Ok(factor)
            };
            let measured = measured::<()>(wanted, || count(first), || count(best));
            (measured.unwrap(), asked.get())
        };
        assert_eq!(of(Some(0.4), 0.9, 0.7), (0.9, 1));
        // The first try is the slowest one.
        assert_eq!(of(Some(0.4), 0.6, 0.3), (0.3, 2));
        assert_eq!(of(None, 0.9, 0.7), (0.7, 1));
    }

    #[test]
    fn kokoro_speaks_by_default_on_fast_machines_alone() {
        let below = |name: &str| {
            let model = colloquy_models::manifest::model(name).unwrap();
            Speaker::by_default_below(model)
        };
        assert_eq!(below("kokoro-82m"), Some(0.4));
        assert_eq!(below("piper-en_US-joe-medium"), None);
    }
}
