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
    let tokens = input_tokens(request);
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    let data = match &script.fault {
        Some(Fault::Empty) => Vec::new(),
        Some(Fault::Dimensions(numbers)) => {
            let shorter = data.into_iter().map(|mut entry| {
                let all = entry["embedding"].as_array_mut();
                all.into_iter().for_each(|all| all.truncate(*numbers));
                entry
            });
            shorter.collect()
        }
        _ => data,
    };
    let mut body = json!({"object": "list", "data": data, "model": request["model"]});
    if script.fault != Some(Fault::Untold) {
        body["usage"] = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    }
    let body = match &script.fault {
        Some(Fault::Malformed { .. }) => Bytes::from("{\"data\": [{"),
        _ => Bytes::from(body.to_string()),
    };
    finished(script, vec![body], Vec::new(), 0)
}

/// The tokens of a request: its words.
#[must_use]
pub fn input_tokens(request: &Value) -> u64 {
    let words = |text: &Value| text.as_str().unwrap_or_default().split_whitespace().count() as u64;
    match &request["input"] {
        Value::Array(texts) => texts.iter().map(words).sum(),
        text => words(text),
    }
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
