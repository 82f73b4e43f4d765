//! What Whisper hears of silence is kept from one load to the next.

use std::{cell::RefCell, fs};

use colloquy_inference::{
    runtime::Rten,
    whisper::{SilenceCache, Whisper},
};

use super::{file, samples, spoken};

/// A cache in memory, which counts what is written.
#[derive(Debug, Default)]
struct Memory {
    contents: RefCell<Option<Vec<u8>>>,
    asked: RefCell<Vec<usize>>,
    writes: RefCell<usize>,
}

impl SilenceCache for Memory {
    fn read(&self, bytes: usize) -> Option<Vec<u8>> {
        self.asked.borrow_mut().push(bytes);
        self.contents.borrow().clone()
    }

    fn write(&self, contents: &[u8]) {
        *self.writes.borrow_mut() += 1;
        *self.contents.borrow_mut() = Some(contents.to_vec());
    }
}

fn load(model: &str, cache: Option<&dyn SilenceCache>) -> Whisper {
    let weights = file(model, "model.bin");
    let vocabulary = file(model, "vocabulary.txt");
    Whisper::load_cached(&Rten::new(), &weights, &vocabulary, cache).unwrap()
}

#[test]
fn silence_that_was_kept_is_what_is_heard() {
    let memory = Memory::default();
    let heard = load("whisper-tiny.en", Some(&memory));
    let contents = memory.contents.borrow().clone().unwrap();
    let again = load("whisper-tiny.en", Some(&memory));
    assert_eq!(
        *memory.writes.borrow(),
        1,
        "the second load computes nothing"
    );
    assert_eq!(*memory.asked.borrow(), [contents.len(); 2]);
    // Four layers each of encoder and decoder, keys and values of 384 numbers at 187 positions.
    assert_eq!(contents.len(), (4 + 4) * 2 * 384 * 187 * 4);
    for (path, _) in spoken() {
        let sound = samples(&path);
        let [one, other] =
            [&heard, &again].map(|whisper| whisper.transcribe(&sound, None, &|| true).unwrap());
        assert_eq!(one, other);
    }
    // What cannot be silence is computed again, and replaced.
    let mut infinite = contents.clone();
    infinite[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    for wrong in [vec![], contents[4..].to_vec(), contents.repeat(2), infinite] {
        *memory.contents.borrow_mut() = Some(wrong);
        load("whisper-tiny.en", Some(&memory));
        assert_eq!(*memory.contents.borrow(), Some(contents.clone()));
    }
    assert_eq!(*memory.writes.borrow(), 5);
}

/// A figure of this process, in MB.
fn megabytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let figure = line.split_whitespace().nth(1).unwrap();
    figure.parse::<u64>().unwrap() / 1_024
}

/// Measures what a load takes, with what is kept in a file and without: each in a process of its own, since the most that a process
/// took is known of it as a whole.
#[test]
#[ignore = "it measures"]
fn cost_of_a_load() {
    let model = std::env::var("MODEL").unwrap_or("whisper-tiny.en".to_owned());
    let path = std::env::temp_dir().join(format!("{model}.silence"));
    let memory = Memory {
        contents: RefCell::new(fs::read(&path).ok()),
        ..Memory::default()
    };
    let is_kept = memory.contents.borrow().is_some();
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured is how long it takes"
    )]
    let began = std::time::Instant::now();
    let whisper = load(&model, Some(&memory));
    println!(
        "{model}, kept: {is_kept}: {} ms, {} MB at most, {} MB then",
        began.elapsed().as_millis(),
        megabytes("VmHWM"),
        megabytes("VmRSS"),
    );
    drop(whisper);
    if let Some(contents) = &*memory.contents.borrow() {
        fs::write(path, contents).unwrap();
    }
}
