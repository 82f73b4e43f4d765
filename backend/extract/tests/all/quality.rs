//! The floor that the quality of extraction does not fall below, over documents whose text is known.

#[path = "../../../../tests/benchmarks/extract/score.rs"]
mod score;
#[path = "../../../../tests/benchmarks/extract/set.rs"]
mod set;

use std::collections::BTreeMap;

use colloquy_extract::{Format, Options, extract};

#[test]
fn text_is_as_people_would_write_it() {
    let mut by_format: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for sample in set::samples().unwrap() {
        let format = Format::of_extension(sample.name.rsplit('.').next().unwrap()).unwrap();
        let text = match extract(&sample.bytes, format, &Options::default()) {
            Ok(document) => document.markdown,
            Err(error) => {
                println!("{}: {error}", sample.name);
                String::new()
            }
        };
        if let Ok(folder) = std::env::var("COLLOQUY_TEST_WRITE") {
            std::fs::write(format!("{folder}/{}.md", sample.name), &text).unwrap();
        }
        let score = score::f1(&score::without_notes(&text), &sample.reference);
        println!("{score:.3} {}", sample.name);
        by_format.entry(sample.format).or_default().push(score);
    }
    let all: Vec<f64> = by_format.values().flatten().copied().collect();
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    for (format, scores) in &by_format {
        println!("{:.4} {format}", mean(scores));
    }
    println!("{:.4} of {}", mean(&all), all.len());
    assert!(mean(&all) >= 0.94, "{}", mean(&all));
    for (format, scores) in &by_format {
        let least = match format.as_str() {
            "xlsx" | "ppt" => 0.95,
            _ => 0.82,
        };
        assert!(mean(scores) >= least, "{format}: {}", mean(scores));
        // Nothing is empty.
        assert!(
            scores.iter().all(|score| *score > 0.4),
            "{format}: {scores:?}"
        );
    }
}
