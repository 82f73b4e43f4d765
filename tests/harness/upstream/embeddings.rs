//! Vectors of texts: texts with words in common point in similar directions, and so do texts with words that mean the same.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{
    Fault, Script,
    answers::{Answer, finished},
};

/// The numbers of a vector.
const DIMENSIONS: usize = 64;

/// Words that mean the same.
const SYNONYMS: [(&str, &str); 3] = [
    ("car", "automobile"),
    ("doctor", "physician"),
    ("cat", "feline"),
];

/// The body of an answer.
pub(super) fn answer(script: &Script, request: &Value) -> Answer {
    let texts: Vec<&str> = match &request["input"] {
        Value::String(text) => vec![text],
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let tokens: usize = texts
        .iter()
        .map(|text| text.split_whitespace().count())
        .sum();
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    let data = match &script.fault {
        Some(Fault::Empty) => Vec::new(),
        _ => data,
    };
    let body = json!({
        "object": "list", "data": data, "model": request["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    });
    let body = match &script.fault {
        Some(Fault::Malformed { .. }) => Bytes::from("{\"data\": [{"),
        _ => Bytes::from(body.to_string()),
    };
    finished(script, vec![body], Vec::new(), 0)
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01_f32; DIMENSIONS];
    let words = text.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        let same = SYNONYMS.iter().find(|(_, other)| *other == word);
        let word = same.map_or(word.as_str(), |(word, _)| word);
        let hash = word.bytes().fold(5_381_usize, |hash, byte| {
            hash.wrapping_mul(33) ^ usize::from(byte)
        });
        vector[hash % DIMENSIONS] += 1.0;
    }
    vector
}
