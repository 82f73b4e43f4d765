//! The speaker encoder tells persons apart, and hears what the original does.

use std::{cell::Cell, path::Path};

use colloquy_inference::{
    InferenceError,
    ge2e::{Ge2e, MAX_SAMPLES, SpeakerVector},
    runtime::Rten,
};

use super::{RECORDINGS, file, samples};

/// Every tenth number of the vector of `goforward.raw` by the definition of Resemblyzer 0.1.4, computed with NumPy and librosa in numbers of 64 bits.
const GO_FORWARD: [f32; 26] = [
    0.017822, 0.093710, 0.000000, 0.053138, 0.000000, 0.000000, 0.000000, 0.000000, 0.000000,
    0.090536, 0.000000, 0.000000, 0.044137, 0.109175, 0.000000, 0.097489, 0.159337, 0.000000,
    0.070329, 0.043537, 0.047551, 0.000000, 0.038299, 0.059042, 0.073631, 0.000000,
];

fn load() -> Ge2e {
    Ge2e::load(&Rten::new(), &file("ge2e", "pretrained.pt")).unwrap()
}

fn heard(model: &Ge2e, name: &str) -> SpeakerVector {
    let samples = samples(&Path::new(RECORDINGS).join(name));
    model.embed(&samples, &|| true).unwrap().unwrap()
}

#[test]
fn vectors_are_those_of_the_original() {
    let vector = heard(&load(), "goforward.raw");
    let tenth = vector.numbers().iter().step_by(10);
    for (index, (number, expected)) in tenth.zip(GO_FORWARD).enumerate() {
        assert!(
            (number - expected).abs() < 2e-3,
            "{index}: {number} {expected}"
        );
    }
}

#[test]
fn one_person_is_more_like_herself_than_like_others() {
    let model = load();
    let book = |number: &str| format!("librivox/sense_and_sensibility_01_austen_64kb-{number}.wav");
    let reader =
        ["0870", "0880", "0890", "0920", "0930"].map(|number| heard(&model, &book(number)));
    let player =
        ["001", "002", "003", "005"].map(|name| heard(&model, &format!("cards/{name}.wav")));
    let whole = SpeakerVector::mean(&reader).unwrap();
    let least = reader.iter().map(|vector| whole.similarity(vector));
    let least = least.fold(f32::MAX, f32::min);
    let others = player.iter().map(|vector| whole.similarity(vector));
    let most = others.fold(f32::MIN, f32::max);
    println!("the same person {least:.3} at least, another one {most:.3} at most");
    assert!(least > 0.85 && most < 0.8);
}

#[test]
fn what_cannot_be_heard_is_told() {
    let model = load();
    assert_eq!(model.embed(&[], &|| true).unwrap(), None);
    assert_eq!(model.embed(&[0.0; 32_000], &|| true).unwrap(), None);
    let long = vec![0.1; MAX_SAMPLES + 1];
    assert!(matches!(
        model.embed(&long, &|| true),
        Err(InferenceError::TooLong(_))
    ));
    let left = Cell::new(2_u32);
    let is_wanted = || left.replace(left.get().saturating_sub(1)) > 0;
    let cancelled = model.embed(&long[1..], &is_wanted);
    assert!(matches!(cancelled, Err(InferenceError::Cancelled)));
}
