//! Whisper from the files of its first publishers, in the format safetensors. They are made of those of CTranslate2, whose numbers
//! they have, so that what is heard has to be the same.

use std::collections::HashMap;

use colloquy_inference::{InferenceError, runtime::Rten, whisper::Whisper};
use half::{bf16, f16};
use serde_json::{Map, json};

use super::{TINY, file, samples, spoken};

/// Layers of the encoder and of the decoder of tiny.en, and numbers of a position.
const LAYERS: usize = 4;
const WIDTH: usize = 384;

/// Weights: rows, and a shape.
#[derive(Clone)]
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// Reads a file of CTranslate2 that is known to be well-formed.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self, bytes: usize) -> usize {
        let bytes = self.take(bytes).iter().rev();
        bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
    }

    fn name(&mut self) -> String {
        let length = self.number(2);
        let bytes = self.take(length).strip_suffix(&[0]).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Its weights by name, which are numbers of 16 bits.
    fn weights(mut self) -> HashMap<String, Tensor> {
        let (_, _, _) = (self.number(4), self.name(), self.number(4));
        let mut weights = HashMap::new();
        for _ in 0..self.number(4) {
            let name = self.name();
            let rank = self.number(1);
            let shape = (0..rank).map(|_| self.number(4)).collect();
            let (kind, length) = (self.number(1), self.number(4));
            let (numbers, _) = self.take(length).as_chunks::<2>();
            if kind == 4 {
                let values = numbers.iter().map(|one| f16::from_le_bytes(*one).to_f32());
                let values = values.collect();
                weights.insert(name, Tensor { shape, values });
            }
        }
        weights
    }
}

/// The same weights by the names of Hugging Face.
fn renamed(weights: &HashMap<String, Tensor>) -> Vec<(String, Tensor)> {
    let mut tensors = Vec::new();
    let mut whole = |name: String, from: &str| tensors.push((name, weights[from].clone()));
    for (part, rest) in [("encoder", &["conv1", "conv2"][..]), ("decoder", &[])] {
        for (name, from) in rest.iter().flat_map(|name| {
            ["weight", "bias"].map(|what| (format!("{name}.{what}"), format!("{name}/{what}")))
        }) {
            whole(format!("{part}.{name}"), &format!("{part}/{from}"));
        }
        let positions = format!("{part}/position_encodings/encodings");
        whole(format!("{part}.embed_positions.weight"), &positions);
        let mut norms = vec![("layer_norm".to_owned(), "layer_norm".to_owned())];
        for layer in 0..LAYERS {
            let (to, from) = (format!("layers.{layer}"), format!("layer_{layer}"));
            for (norm, named) in [
                ("self_attn_layer_norm", "self_attention"),
                ("encoder_attn_layer_norm", "attention"),
                ("final_layer_norm", "ffn"),
            ] {
                if (part, named) != ("encoder", "attention") {
                    norms.push((format!("{to}.{norm}"), format!("{from}/{named}/layer_norm")));
                }
            }
            for (linear, named) in [
                ("self_attn.out_proj", "self_attention/linear_1"),
                ("encoder_attn.q_proj", "attention/linear_0"),
                ("encoder_attn.out_proj", "attention/linear_2"),
                ("fc1", "ffn/linear_0"),
                ("fc2", "ffn/linear_1"),
            ] {
                if part == "encoder" && named.starts_with("attention") {
                    continue;
                }
                for what in ["weight", "bias"] {
                    let named = format!("{part}/{from}/{named}/{what}");
                    whole(format!("{part}.{to}.{linear}.{what}"), &named);
                }
            }
        }
        for (to, from) in norms {
            whole(
                format!("{part}.{to}.weight"),
                &format!("{part}/{from}/gamma"),
            );
            whole(format!("{part}.{to}.bias"), &format!("{part}/{from}/beta"));
        }
    }
    whole(
        "decoder.embed_tokens.weight".to_owned(),
        "decoder/embeddings/weight",
    );
    // Queries, keys and values are layers of their own.
    for (part, attention, named, of) in [
        (
            "encoder",
            "self_attn",
            "self_attention/linear_0",
            &["q", "k", "v"][..],
        ),
        (
            "decoder",
            "self_attn",
            "self_attention/linear_0",
            &["q", "k", "v"],
        ),
        ("decoder", "encoder_attn", "attention/linear_1", &["k", "v"]),
    ] {
        for layer in 0..LAYERS {
            for what in ["weight", "bias"] {
                let all = &weights[&format!("{part}/layer_{layer}/{named}/{what}")];
                let pieces = all.values.chunks_exact(all.values.len() / of.len());
                for (of, values) in of.iter().zip(pieces) {
                    if (*of, what) == ("k", "bias") {
                        assert!(values.iter().all(|value| *value == 0.0));
                        continue;
                    }
                    let mut shape = all.shape.clone();
                    shape[0] = WIDTH;
                    let values = values.to_vec();
                    let name = format!("{part}.layers.{layer}.{attention}.{of}_proj.{what}");
                    tensors.push((name, Tensor { shape, values }));
                }
            }
        }
    }
    tensors
}

/// A file with these tensors, of numbers that are stored as `kind`, of so many bytes each.
fn safetensors(
    tensors: &[(String, Tensor)],
    kind: &str,
    store: impl Fn(f32, &mut Vec<u8>),
) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    for (name, tensor) in tensors {
        let from = data.len();
        for value in &tensor.values {
            store(*value, &mut data);
        }
        let entry =
            json!({"dtype": kind, "shape": tensor.shape, "data_offsets": [from, data.len()]});
        header.insert(format!("model.{name}"), entry);
    }
    let mut header = serde_json::to_vec(&header).unwrap();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.append(&mut data);
    file
}

/// The vocabulary as the number of each piece.
fn numbered() -> Vec<u8> {
    let vocabulary = String::from_utf8(file("whisper-tiny.en", "vocabulary.txt")).unwrap();
    let pieces = vocabulary.lines().take(50_257).enumerate();
    let pieces: Map<_, _> = pieces
        .map(|(number, piece)| (piece.to_owned(), json!(number)))
        .collect();
    serde_json::to_vec(&pieces).unwrap()
}

fn tensors() -> Vec<(String, Tensor)> {
    let model = file("whisper-tiny.en", "model.bin");
    renamed(&Reader(&model).weights())
}

#[test]
fn the_original_files_are_heard_with_as_well() {
    let tensors = tensors();
    let floats = safetensors(&tensors, "F32", |value, data| {
        data.extend(value.to_le_bytes());
    });
    let halves = safetensors(&tensors, "F16", |value, data| {
        data.extend(f16::from_f32(value).to_le_bytes());
    });
    let vocabulary = numbered();
    let floats = Whisper::load(&Rten::new(), &floats, &vocabulary).unwrap();
    let halves = Whisper::load(&Rten::new(), &halves, &vocabulary).unwrap();
    for (path, _) in spoken() {
        let sound = samples(&path);
        let hear = |whisper: &Whisper| whisper.transcribe_words(&sound, None, &|| true).unwrap();
        let expected = hear(&TINY);
        assert!(expected.transcript.is_speech());
        assert_eq!(hear(&floats), expected);
        assert_eq!(hear(&halves), expected);
    }
}

#[test]
fn original_files_that_are_malformed_are_errors() {
    let (runtime, vocabulary) = (Rten::new(), numbered());
    let store = |value: f32, data: &mut Vec<u8>| data.extend(bf16::from_f32(value).to_le_bytes());
    let tensors = tensors();
    let refused = |tensors: &[(String, Tensor)]| {
        let model = safetensors(tensors, "BF16", store);
        let error = Whisper::load(&runtime, &model, &vocabulary).unwrap_err();
        assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    };
    let mut without = tensors.clone();
    without.retain(|(name, _)| name != "decoder.layers.3.encoder_attn.q_proj.bias");
    refused(&without);
    let mut fewer = tensors.clone();
    let (_, positions) = fewer
        .iter_mut()
        .find(|(name, _)| name == "decoder.embed_positions.weight")
        .unwrap();
    positions.shape[0] = 10;
    positions.values.truncate(10 * WIDTH);
    refused(&fewer);
    let mut turned = tensors.clone();
    let (_, inner) = turned
        .iter_mut()
        .find(|(name, _)| name == "decoder.layers.0.fc1.weight")
        .unwrap();
    inner.shape.reverse();
    refused(&turned);
    let whole = safetensors(&tensors, "BF16", store);
    for wrong in [&whole[..whole.len() - 1], &whole[..1_000], &whole[1..]] {
        let error = Whisper::load(&runtime, wrong, &vocabulary).unwrap_err();
        assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
    }
}
