//! The models on processors without AVX-512, and without AVX at all. The runtime picks its kernels by what the processor says that it can do, and
//! has no setting for it, so a processor that can do less is emulated: this program runs itself in `qemu-x86_64` (Debian's `qemu-user`) and
//! compares what the models say there with what they say here. Words are heard there in nightly runs (`tests/run nightly`): it takes minutes.

#![cfg(target_arch = "x86_64")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where, and the child tells the parent by what it prints"
)]

use std::{
    cell::RefCell,
    fs,
    path::Path,
    process::{Command, Output},
};

use colloquy_inference::{
    minilm::MiniLm,
    runtime::Rten,
    silero::{FRAME, Listener, Silero},
    whisper::{SilenceCache, Whisper},
};
use colloquy_models::manifest;
use colloquy_word_errors::words;

const EMULATOR: &str = "qemu-x86_64";

/// Names the file in which the child finds what Whisper hears of silence, which it would take minutes to compute. Without it the child hears no
/// words.
const SILENCE: &str = "COLLOQUY_TEST_SILENCE";

/// Set for a child that embeds no text, either, since whole numbers are slow there without AVX2.
const SPEECH_ALONE: &str = "COLLOQUY_TEST_SPEECH_ALONE";

/// Set in nightly runs.
const NIGHTLY: &str = "COLLOQUY_TEST_NIGHTLY";

const RECORDING: &str = "/usr/share/pocketsphinx/test/data/goforward.raw";

/// A text that becomes a vector.
const TEXT: &str = "How do I reset my password?";

/// Frames of the recording that voice activity is told of.
const FRAMES: usize = 20;

/// A file of a model. Its hash is not compared here, which would take the emulator longer than anything else.
fn file(model: &str, name: &str) -> Vec<u8> {
    let folder = std::env::var_os("COLLOQUY_TEST_MODELS_DIR");
    let folder = folder.expect("COLLOQUY_TEST_MODELS_DIR names a folder with models");
    assert!(manifest::model(model).unwrap().file(name).is_some());
    fs::read(Path::new(&folder).join(model).join(name)).unwrap()
}

/// The first words of the recording, in samples: the emulator takes a minute for all of it.
const HEARD: usize = 18_500;

/// The first words of the recording, at 16,000 samples a second.
fn recording() -> Vec<f32> {
    let bytes = fs::read(RECORDING).unwrap();
    let (samples, _) = bytes.as_chunks::<2>();
    samples
        .iter()
        .take(HEARD)
        .map(|sample| f32::from(i16::from_le_bytes(*sample)) / 32_768.0)
        .collect()
}

/// What is kept of silence, in memory.
#[derive(Debug, Default)]
struct Kept(RefCell<Option<Vec<u8>>>);

impl SilenceCache for Kept {
    fn read(&self, _bytes: usize) -> Option<Vec<u8>> {
        self.0.borrow().clone()
    }

    fn write(&self, contents: &[u8]) {
        *self.0.borrow_mut() = Some(contents.to_vec());
    }
}

/// The models that are asked.
#[derive(Clone, Copy)]
enum Asked<'a> {
    /// Voice activity.
    Speech,
    /// Embeddings, too.
    Vectors,
    /// And Whisper.
    Words(&'a Kept),
}

/// What the models say.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    /// Whether somebody speaks, by frame.
    speech: Vec<f32>,
    /// The vector of a text.
    vector: Option<Vec<f32>>,
    heard: Option<String>,
}

impl Answers {
    fn of_models(asked: Asked<'_>) -> Self {
        let runtime = Rten::new();
        let sound = recording();
        let silero = Silero::load(&runtime, file("silero-vad", "model.onnx")).unwrap();
        let mut listener = Listener::default();
        let (frames, _) = sound.as_chunks::<FRAME>();
        let speech = frames.iter().take(FRAMES);
        let speech = speech.map(|frame| silero.hear(&mut listener, frame).unwrap());
        let speech = speech.collect();
        let vector = match asked {
            Asked::Speech => None,
            Asked::Vectors | Asked::Words(_) => {
                let tokenizer = file("all-minilm-l6-v2", "tokenizer.json");
                let model = file("all-minilm-l6-v2", "model.onnx");
                let minilm = MiniLm::load(&runtime, model, &tokenizer).unwrap();
                Some(minilm.embed(&[TEXT], &|| true).unwrap()[0].to_vec())
            }
        };
        let heard = match asked {
            Asked::Speech | Asked::Vectors => None,
            Asked::Words(silence) => {
                let weights = file("whisper-tiny.en", "model.bin");
                let vocabulary = file("whisper-tiny.en", "vocabulary.txt");
                let cache = Some(silence as &dyn SilenceCache);
                let whisper = Whisper::load_cached(&runtime, &weights, &vocabulary, cache).unwrap();
                Some(whisper.transcribe(&sound, None, &|| true).unwrap().text)
            }
        };
        Self {
            speech,
            vector,
            heard,
        }
    }

    fn print(&self) {
        let numbers = |numbers: &[f32]| {
            let numbers = numbers.iter().map(f32::to_string);
            numbers.collect::<Vec<_>>().join(" ")
        };
        println!("\nspeech: {}", numbers(&self.speech));
        if let Some(vector) = &self.vector {
            println!("vector: {}", numbers(vector));
        }
        if let Some(heard) = &self.heard {
            println!("heard: {heard}");
        }
    }

    fn read(printed: &str) -> Self {
        let line = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name));
        let numbers = |line: &str| {
            let numbers = line.split_whitespace();
            numbers.map(|number| number.parse().unwrap()).collect()
        };
        Self {
            speech: numbers(line("speech: ").unwrap()),
            vector: line("vector: ").map(numbers),
            heard: line("heard: ").map(str::to_owned),
        }
    }
}

/// The cosine of the angle between two vectors.
fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

/// Runs [`answers_here`] on a processor of this kind.
fn emulated(processor: &str, with: Option<(&str, &Path)>) -> Output {
    let mut command = Command::new(EMULATOR);
    command.args(["-cpu", processor]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "answers_here", "--nocapture"]);
    command.args(["--test-threads", "1"]);
    command.env_remove(SILENCE).env_remove(SPEECH_ALONE);
    if let Some((name, value)) = with {
        command.env(name, value);
    }
    let output = command.output();
    output.expect("qemu-x86_64 runs: Debian's package qemu-user")
}

/// Compares answers with those of this processor: the same words, the same vectors but for rounding. Returns them.
fn compare(processor: &str, output: &Output, here: &Answers) -> Answers {
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{processor}: {printed} {complaints}"
    );
    assert!(printed.contains(processor), "{printed}");
    let there = Answers::read(&printed);
    assert_eq!(there.speech.len(), FRAMES);
    for (one, other) in there.speech.iter().zip(&here.speech) {
        assert!((one - other).abs() < 0.02, "{processor}: {one} {other}");
    }
    if let (Some(there), Some(here)) = (&there.vector, &here.vector) {
        let cosine = cosine(there, here);
        println!("{processor}: cosine {cosine}");
        assert!(cosine > 0.99, "{processor}: {cosine}");
    }
    if let (Some(there), Some(here)) = (&there.heard, &here.heard) {
        println!("{processor}: heard {there:?}");
        assert_eq!(words(there), words(here));
    }
    there
}

#[test]
fn models_say_the_same_on_processors_that_can_do_less() {
    let kept = Kept::default();
    let here = Answers::of_models(Asked::Words(&kept));
    assert_eq!(words(here.heard.as_ref().unwrap()), ["go", "forward"]);
    let silence = Path::new(env!("CARGO_TARGET_TMPDIR")).join("silence");
    fs::write(&silence, kept.0.borrow().as_deref().unwrap()).unwrap();
    let is_nightly = std::env::var_os(NIGHTLY).is_some();
    std::thread::scope(|scope| {
        let words = is_nightly.then_some((SILENCE, silence.as_path()));
        let avx2 = scope.spawn(move || emulated("max", words));
        let sse = scope.spawn(|| emulated("Nehalem", Some((SPEECH_ALONE, Path::new("yes")))));
        let there = compare("avx2: yes", &avx2.join().unwrap(), &here);
        assert!(there.vector.is_some());
        assert_eq!(there.heard.is_some(), is_nightly);
        compare("avx2: no", &sse.join().unwrap(), &here);
    });
}

/// What the test above runs elsewhere.
#[test]
#[ignore = "another test runs it, in an emulator"]
fn answers_here() {
    assert!(!is_x86_feature_detected!("avx512f"), "no emulator");
    let can = |is: bool| if is { "yes" } else { "no" };
    println!("avx2: {}", can(is_x86_feature_detected!("avx2")));
    if std::env::var_os(SPEECH_ALONE).is_some() {
        return Answers::of_models(Asked::Speech).print();
    }
    let silence = std::env::var_os(SILENCE);
    let silence = silence.map(|path| Kept(RefCell::new(Some(fs::read(path).unwrap()))));
    let asked = silence.as_ref().map_or(Asked::Vectors, Asked::Words);
    Answers::of_models(asked).print();
}
