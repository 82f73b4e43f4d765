use serde_json::{Map, json};

use super::*;

const WIDTH: usize = 64;

/// The tensors of the smallest Whisper that there could be, of layers as small as can be.
fn small() -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| tensors.push((name, shape.to_vec()));
    for (name, inputs) in [("conv1", 80), ("conv2", WIDTH)] {
        add(format!("encoder.{name}.weight"), &[WIDTH, inputs, 3]);
        add(format!("encoder.{name}.bias"), &[WIDTH]);
    }
    add("encoder.embed_positions.weight".to_owned(), &[1_500, WIDTH]);
    add("decoder.embed_positions.weight".to_owned(), &[448, WIDTH]);
    add("decoder.embed_tokens.weight".to_owned(), &[9, WIDTH]);
    for part in ["encoder", "decoder"] {
        let mut norms = vec![format!("{part}.layer_norm")];
        let layer = format!("{part}.layers.0");
        let attention: &[&str] = match part {
            "encoder" => &["self_attn"],
            _ => &["self_attn", "encoder_attn"],
        };
        for attention in attention {
            norms.push(format!("{layer}.{attention}_layer_norm"));
            for name in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                add(
                    format!("{layer}.{attention}.{name}.weight"),
                    &[WIDTH, WIDTH],
                );
                if name != "k_proj" {
                    add(format!("{layer}.{attention}.{name}.bias"), &[WIDTH]);
                }
            }
        }
        norms.push(format!("{layer}.final_layer_norm"));
        for name in norms {
            add(format!("{name}.weight"), &[WIDTH]);
            add(format!("{name}.bias"), &[WIDTH]);
        }
        for (name, shape) in [("fc1", [5, WIDTH]), ("fc2", [WIDTH, 5])] {
            add(format!("{layer}.{name}.weight"), &shape);
            add(format!("{layer}.{name}.bias"), &shape[..1]);
        }
    }
    tensors
}

/// A file with these tensors, all of zeros.
fn file(tensors: &[(String, Vec<usize>)]) -> Vec<u8> {
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors {
        let from = end;
        end += 2 * shape.iter().product::<usize>();
        let entry = json!({"dtype": "F16", "shape": shape, "data_offsets": [from, end]});
        header.insert(format!("model.{name}"), entry);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.resize(file.len() + end, 0);
    file
}

fn dimensions(tensors: &[(String, Vec<usize>)]) -> Result<Dimensions, InferenceError> {
    let file = file(tensors);
    Dimensions::of(&WeightsFile::parse(&file)?)
}

#[test]
fn sizes_are_those_of_the_weights() {
    let expected = Dimensions {
        width: WIDTH,
        heads: 1,
        encoder: 1,
        decoder: 1,
        vocabulary: 9,
        bands: 80,
    };
    assert_eq!(dimensions(&small()).unwrap(), expected);
}

#[test]
fn every_weight_has_to_be_there_in_its_shape() {
    let whole = small();
    for index in 0..whole.len() {
        let mut changed = whole.clone();
        let (name, _) = changed.remove(index);
        assert!(dimensions(&changed).is_err(), "{name}");
        let change = |change: &dyn Fn(&mut Vec<usize>)| {
            let mut changed = whole.clone();
            change(&mut changed[index].1);
            dimensions(&changed)
        };
        let wrong = [
            change(&|shape| shape.push(1)),
            change(&|shape| *shape = vec![]),
            change(&|shape| shape.fill(0)),
            change(&|shape| *shape.last_mut().unwrap() += 1),
            change(&|shape| shape.iter_mut().for_each(|size| *size *= 2)),
        ];
        for (at, wrong) in wrong.into_iter().enumerate() {
            let error = wrong.expect_err(&format!("{name} {at}"));
            assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
        }
    }
}
