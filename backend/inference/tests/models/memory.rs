//! What answers take of memory beyond the model: the most that each model can be asked for at once, in each of two threads. The most that a
//! process took is known of it as a whole, so nothing else may run in this one: `cargo nextest` gives each test its own, and `tests/run`, which runs the
//! others of this binary in one process, leaves these to it.

use std::{fs, sync::LazyLock, thread};

use colloquy_inference::{
    minilm::{MAX_TOKENS, MiniLm},
    piper::MAX_PHONEMES,
    runtime::Rten,
    whisper::MAX_SECONDS,
};

use super::{RECORDINGS, TINY, file, joe, samples};

/// Answers at a time.
const THREADS: usize = 2;

/// A figure of this process, in MiB.
fn mebibytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let figure = line.split_whitespace().nth(1).unwrap();
    figure.parse::<u64>().unwrap() / 1_024
}

/// What the process takes at most, beyond what it had before, while so many threads do it.
fn taken(threads: usize, answer: &(dyn Fn() + Sync)) -> u64 {
    // The most that it took so far is forgotten.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = mebibytes("VmRSS");
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(answer);
        }
    });
    mebibytes("VmHWM") - before
}

#[test]
fn answers_take_no_more_memory_than_is_said() {
    // More than thirty seconds are refused.
    let speech = samples(format!("{RECORDINGS}/goforward.raw").as_ref());
    let speech: Vec<f32> = speech
        .iter()
        .copied()
        .cycle()
        .take(16_000 * MAX_SECONDS)
        .collect();
    LazyLock::force(&TINY);
    check("whisper-tiny.en", 100, &|| {
        TINY.transcribe_words(&speech, Some("en"), &|| true)
            .unwrap();
    });

    let joe = joe();
    let phonemes = "ˈɑ ".repeat(MAX_PHONEMES / 3);
    check("piper-en_US-joe-medium", 100, &|| {
        let mut speaking = joe.speak(&phonemes, 0.5, &|| true).unwrap();
        // From the sixth on they are as long as pieces become.
        for _ in 0..7 {
            assert!(speaking.next_piece(&|| true).unwrap().is_some());
        }
    });

    let part = |name| file("all-minilm-l6-v2", name);
    let (network, tokenizer) = (part("model.onnx"), part("tokenizer.json"));
    let minilm = MiniLm::load(&Rten::new(), network, &tokenizer).unwrap();
    let text = vec!["word"; MAX_TOKENS].join(" ");
    let texts = vec![text.as_str(); 8];
    check("all-minilm-l6-v2", 30, &|| {
        minilm.embed(&texts, &|| true).unwrap();
    });
}

/// Checks that answers take so many MiB at most, each.
fn check(model: &str, bound: u64, answer: &(dyn Fn() + Sync)) {
    let taken = taken(THREADS, answer);
    assert!(
        taken <= THREADS as u64 * bound,
        "{model}: {taken} MiB in {THREADS} threads"
    );
}
