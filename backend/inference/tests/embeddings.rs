//! Texts become the vectors that they become elsewhere. The model is in the folder `COLLOQUY_TEST_MODELS_DIR`, where
//! `colloquy models pull all-minilm-l6-v2` put it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

use std::{cell::Cell, sync::LazyLock};

use colloquy_inference::{
    InferenceError,
    minilm::{Embedding, MAX_TOKENS, MiniLm},
    runtime::Rten,
};
use colloquy_models::{folder::ModelsFolder, manifest};

fn file(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("COLLOQUY_TEST_MODELS_DIR");
    let folder = folder.expect("COLLOQUY_TEST_MODELS_DIR names a folder with models");
    let model = manifest::model("all-minilm-l6-v2").unwrap();
    let file = model.file(name).unwrap();
    ModelsFolder::new(folder).read(model, file).unwrap()
}

fn load(threads: usize) -> MiniLm {
    MiniLm::load(
        &Rten::shared(threads),
        file("model.onnx"),
        &file("tokenizer.json"),
    )
    .unwrap()
}

static MINILM: LazyLock<MiniLm> = LazyLock::new(|| load(1));

fn embed(texts: &[&str]) -> Vec<Embedding> {
    MINILM.embed(texts, &|| true).unwrap()
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// 360 words, of which not all are read.
fn long() -> String {
    let sentence = |chapter: usize| {
        let ships = chapter * 7;
        format!(
            "In chapter {chapter} the keeper of the lighthouse counts {ships} ships, writes down their names and waits for the storm."
        )
    };
    (1..19).map(sentence).collect::<Vec<_>>().join(" ")
}

/// Texts of many kinds.
const TEXTS: [&str; 7] = [
    "The quick brown fox jumps over the lazy dog.",
    "How do I reset my password?",
    "I forgot my login and want a new one.",
    "Die Größe der Straße überrascht jeden Fußgänger in Köln.",
    "À la crème brûlée, señor: naïve café, Ångström, İstanbul.",
    "Great job 🎉👍🏽 see you at 5 p.m. 👨‍👩‍👧!",
    "東京は日本の首都です。 北京 is the capital of China.",
];

/// Their tokens and those of the long text, as the library `tokenizers` 0.23.3 counts them.
const COUNTS: [usize; 8] = [10, 7, 11, 19, 19, 13, 19, 396];

/// What begins their vectors and that of the long text, computed from the same files by onnxruntime 1.32.0.
#[rustfmt::skip]
const BEGINNINGS: [[f32; 8]; 8] = [
    [0.0418, 0.0587, 0.0513, 0.0754, 0.0258, -0.0375, 0.0002, -0.0606],
    [0.0054, -0.0611, -0.0713, -0.0342, -0.0428, 0.0684, 0.0085, 0.0160],
    [-0.0682, -0.0949, 0.0473, -0.0360, 0.0315, 0.0002, -0.0084, -0.0185],
    [0.0339, 0.0806, 0.0535, 0.0293, -0.0693, 0.0539, -0.0312, 0.0469],
    [0.0856, -0.0342, -0.0187, 0.0487, -0.0315, 0.0059, 0.0614, -0.0495],
    [-0.0682, -0.0481, 0.1390, 0.0191, 0.0869, 0.0172, 0.0752, -0.0147],
    [0.1256, 0.0711, 0.0860, -0.0116, -0.0311, 0.0023, 0.0689, -0.0312],
    [-0.0036, 0.0014, -0.0093, 0.0792, -0.0493, 0.0256, 0.0282, -0.0251],
];

/// The cosines of each of them with each of those, computed likewise.
#[rustfmt::skip]
const COSINES: [[f32; 8]; 8] = [
    [1.0000, -0.0076, 0.0221, 0.0217, -0.0219, 0.0933, -0.0037, -0.0525],
    [-0.0076, 1.0000, 0.5573, 0.0137, 0.0231, 0.0545, -0.0374, -0.0046],
    [0.0221, 0.5573, 1.0000, 0.0036, -0.0196, 0.0414, -0.0503, 0.0275],
    [0.0217, 0.0137, 0.0036, 1.0000, 0.3467, 0.0107, 0.2518, 0.0504],
    [-0.0219, 0.0231, -0.0196, 0.3467, 1.0000, 0.1175, 0.0569, 0.0594],
    [0.0933, 0.0545, 0.0414, 0.0107, 0.1175, 1.0000, 0.1161, 0.1196],
    [-0.0037, -0.0374, -0.0503, 0.2518, 0.0569, 0.1161, 1.0000, 0.0791],
    [-0.0525, -0.0046, 0.0275, 0.0504, 0.0594, 0.1196, 0.0791, 1.0000],
];

#[test]
fn tokens_are_counted_as_elsewhere() {
    let long = long();
    let counts: Vec<_> = TEXTS
        .iter()
        .chain([&long.as_str()])
        .map(|text| MINILM.count_tokens(text))
        .collect();
    assert_eq!(counts, COUNTS);
    assert_eq!(MINILM.count_tokens(""), 0);
}

#[test]
fn vectors_are_those_of_another_runtime() {
    let long = long();
    let texts: Vec<_> = TEXTS.into_iter().chain([long.as_str()]).collect();
    let vectors = embed(&texts);
    let (mut most, mut cosines) = (0.0_f32, 0.0_f32);
    for (vector, beginning) in vectors.iter().zip(BEGINNINGS) {
        let differences = vector
            .iter()
            .zip(beginning)
            .map(|(is, was)| (is - was).abs());
        most = differences.fold(most, f32::max);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-4);
    }
    for (one, row) in vectors.iter().zip(COSINES) {
        for (other, was) in vectors.iter().zip(row) {
            cosines = cosines.max((cosine(one, other) - was).abs());
        }
    }
    println!("numbers differ by up to {most:.4}, cosines by up to {cosines:.4}");
    assert!(most < 0.025 && cosines < 0.03);
}

#[test]
fn what_means_the_same_is_nearer_than_what_does_not() {
    for (one, same, other) in [
        (
            "How do I reset my password?",
            "I forgot my login and want a new one.",
            "The password of the opera's opening night was sold out.",
        ),
        (
            "When does the shop open?",
            "Our opening hours are from nine to five.",
            "The shop sells bread, cheese and wine.",
        ),
        (
            "A man is riding a horse.",
            "Somebody on horseback crosses the field.",
            "A man is eating a sandwich.",
        ),
    ] {
        let [one, same, other] = embed(&[one, same, other]).try_into().unwrap();
        let (same, other) = (cosine(&one, &same), cosine(&one, &other));
        println!("{same:.3} {other:.3}");
        assert!(same > other + 0.05, "{same} {other}");
    }
}

#[test]
fn a_text_has_the_same_vector_in_any_company() {
    let long = long();
    let texts: Vec<_> = TEXTS
        .into_iter()
        .chain(["", long.as_str(), "short", "a little longer"])
        .collect();
    let texts = texts.repeat(4);
    let together = embed(&texts);
    for (text, together) in texts.iter().zip(&together) {
        let alone = embed(&[text])[0];
        let most = alone
            .iter()
            .zip(together)
            .map(|(one, other)| (one - other).abs());
        let most = most.fold(0.0, f32::max);
        assert!(most < 1e-4, "{text}: {most}");
    }
    assert_eq!(embed(&[]), [[0.0; 384]; 0]);
}

#[test]
fn what_is_beyond_the_bound_is_not_read() {
    let words = |count: usize| vec!["word"; count].join(" ");
    assert_eq!(MINILM.count_tokens(&words(MAX_TOKENS + 1)), MAX_TOKENS + 1);
    let texts = [
        words(MAX_TOKENS - 1),
        words(MAX_TOKENS),
        words(MAX_TOKENS) + " horse",
        words(200_000),
    ];
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let vectors = embed(&texts);
    assert_eq!(vectors[1], vectors[2]);
    assert_eq!(vectors[1], vectors[3]);
    assert_ne!(vectors[0], vectors[1]);
}

#[test]
fn any_text_has_a_vector() {
    let texts = [
        "",
        " \n",
        "\0\u{200d}\u{fffd}",
        "\u{301}\u{301}",
        "[CLS] [SEP] [PAD]",
        "😀",
        "\u{10ffff}",
    ];
    for vector in embed(&texts) {
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-4);
    }
    let endless = "x".repeat(1_000_000);
    assert_eq!(MINILM.count_tokens(&endless), 1);
    assert_eq!(embed(&[&endless]).len(), 1);
}

#[test]
fn what_is_not_wanted_any_more_ends() {
    let asked = Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 4
    };
    let error = MINILM.embed(&["one"; 9], &wanted).unwrap_err();
    assert!(matches!(error, InferenceError::Cancelled), "{error}");
    assert_eq!(asked.get(), 4);
}

#[test]
fn several_threads_may_ask_at_a_time() {
    let alone = embed(&TEXTS);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(|| embed(&TEXTS))).collect();
        for answer in asking {
            assert_eq!(answer.join().unwrap(), alone);
        }
    });
}

#[test]
fn files_that_are_malformed_are_errors() {
    let runtime = Rten::new();
    let (model, tokenizer) = (file("model.onnx"), file("tokenizer.json"));
    let few = String::from_utf8(tokenizer.clone()).unwrap();
    // A token that the network has no vector for.
    let more = few.replace("\"vocab\":{", "\"vocab\":{\"more than it knows\":30522,");
    for (model, tokenizer) in [
        (&model[..model.len() / 2], tokenizer.as_slice()),
        (&model[..1_000], &tokenizer),
        (&model[1..], &tokenizer),
        (&[], &tokenizer),
        (&[7; 1_000], &tokenizer),
        (&model, &tokenizer[..tokenizer.len() / 2]),
        (&model, &[]),
        (&model, more.as_bytes()),
    ] {
        let error = MiniLm::load(&runtime, model.to_vec(), tokenizer).unwrap_err();
        assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    }
}

#[test]
fn no_model_with_changed_bytes_makes_it_panic() {
    let runtime = Rten::new();
    let (model, tokenizer) = (file("model.onnx"), file("tokenizer.json"));
    let mut state = 1_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    // The operators are at its beginning; what follows are mostly weights, which may be anything.
    for _ in 0..20 {
        let mut changed = model.clone();
        for _ in 0..8 {
            changed[random(60_000)] = random(256) as u8;
        }
        match MiniLm::load(&runtime, changed, &tokenizer) {
            Ok(loaded) => drop(loaded.embed(&["a text"], &|| true)),
            Err(error) => assert!(matches!(error, InferenceError::Malformed(_)), "{error}"),
        }
    }
}

/// `cargo test --release -p colloquy-inference --test embeddings -- --ignored --nocapture`
#[test]
#[ignore = "it measures, alone on the machine"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long it takes is what it is for"
)]
fn speed() {
    let memory = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = |name| {
            status
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap()
                .to_owned()
        };
        format!("{} {}", line("VmRSS"), line("VmHWM"))
    };
    let words = vec!["word"; MAX_TOKENS].join(" ");
    let short = vec!["word"; 14].join(" ");
    for threads in [1, 2] {
        let begin = std::time::Instant::now();
        let model = load(threads);
        println!(
            "{threads} threads: loaded in {:?}, {}",
            begin.elapsed(),
            memory()
        );
        for (text, count) in [(&words, 48), (&short, 400)] {
            let texts = vec![text.as_str(); count];
            let mut rates: Vec<_> = (0..5)
                .map(|_| {
                    let begin = std::time::Instant::now();
                    model.embed(&texts, &|| true).unwrap();
                    count as f64 / begin.elapsed().as_secs_f64()
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            println!(
                "{} tokens: {:.1} texts a second",
                model.count_tokens(text) + 2,
                rates[2]
            );
        }
        println!("{}", memory());
    }
}
