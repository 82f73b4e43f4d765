use half::{bf16, f16};

use super::*;

/// A file with this header and so many bytes after it.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Tensors of each kind, with names that a decoder has.
fn small() -> Vec<u8> {
    let header = r#"{"__metadata__":{"format":"pt","n":[1,{}]},
        "model.decoder.layers.0.self_attn.q_proj.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
        "model.decoder.layers.0.self_attn.q_proj.bias":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},
        "model.decoder.layers.0.self_attn.k_proj.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[24,32]},
        "model.decoder.layers.0.self_attn.v_proj.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[32,40]},
        "model.decoder.layers.0.self_attn.v_proj.bias":{"dtype":"BF16","shape":[2],"data_offsets":[40,44]},
        "decoder.layer_norm.weight":{"dtype":"F16","shape":[2],"data_offsets":[44,48]},
        "model.other":{"dtype":"I64","shape":[],"data_offsets":[48,56]}}   "#;
    let floats = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut data: Vec<u8> = floats.into_iter().flat_map(f32::to_le_bytes).collect();
    let halves = [0.5_f32, -0.5, 1.5, 2.5];
    data.extend(
        halves
            .iter()
            .flat_map(|one| f16::from_f32(*one).to_le_bytes()),
    );
    let numbers = [8.0_f32, 16.0, 32.0, 64.0, 128.0, 256.0];
    data.extend(
        numbers
            .iter()
            .flat_map(|one| bf16::from_f32(*one).to_le_bytes()),
    );
    data.extend(
        halves[..2]
            .iter()
            .flat_map(|one| f16::from_f32(*one).to_le_bytes()),
    );
    data.extend([0; 8]);
    file(header, &data)
}

#[test]
fn queries_keys_and_values_are_one_layer() {
    let file = small();
    assert!(is_one(&file));
    let tensors = Tensors::parse(&file).unwrap();
    let weights = tensors.get("decoder/layer_0/self_attention/linear_0/weight");
    let weights = weights.unwrap();
    assert_eq!(weights.shape, [6, 2]);
    assert_eq!(
        weights.values,
        [
            1.0, 2.0, 3.0, 4.0, 0.5, -0.5, 1.5, 2.5, 8.0, 16.0, 32.0, 64.0
        ]
    );
    let bias = tensors.get("decoder/layer_0/self_attention/linear_0/bias");
    let bias = bias.unwrap();
    assert_eq!(bias.shape, [6]);
    assert_eq!(bias.values, [5.0, 6.0, 0.0, 0.0, 128.0, 256.0]);
    // Names may lack what they begin with.
    let norm = tensors.get("decoder/layer_norm/gamma").unwrap();
    assert_eq!((norm.shape, norm.values), (vec![2], vec![0.5, -0.5]));
    for missing in [
        "decoder/layer_norm/beta",
        "decoder/layer_1/self_attention/linear_0/weight",
        "decoder/layer_0/self_attention/linear_1/bias",
        "decoder/layer_0/attention/linear_1/bias",
        "decoder/other",
        "",
    ] {
        assert!(tensors.get(missing).is_err() && tensors.shape(missing).is_err());
    }
}

#[test]
fn every_name_of_a_network_has_parts() {
    for (name, expected) in [
        ("encoder/conv1/weight", "model.encoder.conv1.weight"),
        ("encoder/layer_norm/beta", "model.encoder.layer_norm.bias"),
        (
            "decoder/position_encodings/encodings",
            "model.decoder.embed_positions.weight",
        ),
        (
            "decoder/layer_12/attention/layer_norm/gamma",
            "model.decoder.layers.12.encoder_attn_layer_norm.weight",
        ),
        (
            "encoder/layer_3/ffn/linear_1/bias",
            "model.encoder.layers.3.fc2.bias",
        ),
    ] {
        assert_eq!(parts(name).unwrap(), [expected]);
    }
}

#[test]
fn ranges_and_sizes_have_to_fit() {
    let one = |entry: &str| file(&format!(r#"{{"a":{entry}}}"#), &[0; 8]);
    let whole = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    assert!(Tensors::parse(&one(whole)).is_ok());
    for wrong in [
        // Outside, the wrong way round, with a gap, or not all of it.
        r#"{"dtype":"F32","shape":[3],"data_offsets":[0,12]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}"#,
        // Another size, one that cannot be counted, too many dimensions.
        r#"{"dtype":"F16","shape":[2],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[9223372036854775808,9223372036854775808],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[1,1,1,1,2],"data_offsets":[0,8]}"#,
        // Something is missing or of another type.
        r#"{"dtype":"F32","shape":[2]}"#,
        r#"{"dtype":7,"shape":[2],"data_offsets":[0,8]}"#,
        "[]",
    ] {
        assert!(Tensors::parse(&one(wrong)).is_err(), "{wrong}");
    }
    let two = |a: [usize; 2], b: [usize; 2]| {
        let entry = |[from, to]: [usize; 2]| {
            let size = to - from;
            format!(r#"{{"dtype":"I8","shape":[{size}],"data_offsets":[{from},{to}]}}"#)
        };
        let header = format!(r#"{{"a":{},"b":{}}}"#, entry(a), entry(b));
        Tensors::parse(&file(&header, &[0; 8])).is_ok()
    };
    assert!(two([0, 4], [4, 8]) && two([4, 8], [0, 4]));
    assert!(!two([0, 8], [4, 8]) && !two([0, 3], [4, 8]) && !two([0, 8], [0, 8]));
    // The same name twice is one tensor, and the other one's numbers are left over.
    let twice = format!(
        r#"{{"a":{whole},"a":{}}}"#,
        whole.replace("[0,8]", "[8,16]")
    );
    assert!(Tensors::parse(&file(&twice, &[0; 16])).is_err());
}

#[test]
fn headers_are_bounded() {
    for length in [u64::MAX, 1 << 40, (1 << 20) + 1, 100] {
        let mut file = length.to_le_bytes().to_vec();
        file.extend(b"{}");
        assert!(Tensors::parse(&file).is_err(), "{length}");
    }
    let deep = format!(r#"{{"__metadata__":{}"#, "[".repeat(1_000_000));
    assert!(Tensors::parse(&file(&deep, &[])).is_err());
    assert!(Tensors::parse(&file("{}", &[])).is_ok());
    let whole = small();
    for length in 0..whole.len() {
        assert!(Tensors::parse(&whole[..length]).is_err(), "{length}");
    }
}

#[test]
fn no_fuzzed_file_makes_it_panic() {
    let outcome = |bytes: &[u8]| match Tensors::parse(bytes) {
        Ok(tensors) => {
            let names = [
                "decoder/layer_0/self_attention/linear_0/weight",
                "decoder/layer_0/self_attention/linear_0/bias",
                "decoder/layer_norm/gamma",
            ];
            let read = names.map(|name| {
                let weights = tensors.get(name).ok();
                // What it is of and how much it is are the same.
                assert_eq!(
                    weights.as_ref().map(|weights| weights.values.len()),
                    weights
                        .as_ref()
                        .map(|weights| weights.shape.iter().product())
                );
                weights.map(|weights| weights.values.len().min(9))
            });
            format!("{read:?}")
        }
        Err(error) => {
            let kind = error.to_string();
            let kind = kind.chars().filter(char::is_ascii_lowercase);
            kind.take(60).collect()
        }
    };
    colloquy_fuzz::fuzz(&[small()], outcome);
}
