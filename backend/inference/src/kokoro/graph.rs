//! The network's file, with operators that the runtime knows. Its one `FusedMatMul`, which onnxruntime's tools make of a transposition
//! and a product, becomes these two again.

use rten_onnx::onnx::{AttributeProto, AttributeType, ModelProto, NodeProto};

use crate::{InferenceError, framing};

/// What has to be written as two operators.
const FUSED: &str = "FusedMatMul";

/// The file with operators that the runtime knows.
///
/// # Errors
/// When it is malformed, or a product in it is of a kind that Kokoro's file does not have.
pub(super) fn known(file: Vec<u8>) -> Result<Vec<u8>, InferenceError> {
    framing::check(&file)?;
    let malformed = |message: String| InferenceError::Malformed(message);
    let mut model = ModelProto::parse_buf(&file).map_err(|error| malformed(error.to_string()))?;
    let Some(graph) = model.graph.as_mut() else {
        return Err(malformed("it has no network".to_owned()));
    };
    let is_fused = |node: &NodeProto| node.op_type.as_deref() == Some(FUSED);
    if !graph.node.iter().any(is_fused) {
        return Ok(file);
    }
    drop(file);
    let mut nodes = Vec::with_capacity(graph.node.len() + 1);
    for node in std::mem::take(&mut graph.node) {
        match is_fused(&node) {
            true => nodes.extend(
                unfused(node)
                    .ok_or_else(|| malformed(format!("a {FUSED} in it is of another kind")))?,
            ),
            false => nodes.push(node),
        }
    }
    graph.node = nodes;
    model
        .write_buf()
        .map_err(|error| InferenceError::Failed(error.to_string()))
}

/// The transposition of the first factor, of three dimensions, and the product.
fn unfused(node: NodeProto) -> Option<[NodeProto; 2]> {
    let is_known = node.attribute.iter().all(|attribute| {
        match (attribute.name.as_deref(), attribute.i, attribute.f) {
            (Some("transA"), Some(1), _) => true,
            (Some("transB" | "transBatchA" | "transBatchB"), value, _) => value.unwrap_or(0) == 0,
            (Some("alpha"), _, value) => value == Some(1.0),
            _ => false,
        }
    });
    let transposes = |one: &AttributeProto| one.name.as_deref() == Some("transA");
    let ([first, second], [_]) = (node.input.as_slice(), node.output.as_slice()) else {
        return None;
    };
    if !is_known || !node.attribute.iter().any(transposes) {
        return None;
    }
    let turned = format!("colloquy.{}", node.output[0]);
    let transposition = NodeProto {
        name: Some(turned.clone()),
        op_type: Some("Transpose".to_owned()),
        input: vec![first.clone()],
        output: vec![turned.clone()],
        attribute: vec![AttributeProto {
            name: Some("perm".to_owned()),
            ints: vec![0, 2, 1],
            r#type: Some(AttributeType::INTS),
            ..AttributeProto::default()
        }],
        domain: None,
    };
    let product = NodeProto {
        op_type: Some("MatMul".to_owned()),
        input: vec![turned, second.clone()],
        attribute: Vec::new(),
        domain: None,
        ..node
    };
    Some([transposition, product])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        onnx::{Attribute, Graph, Size, float, int},
        runtime::{Input, Rten, Runtime as _},
    };

    fn file(attributes: Vec<Attribute>) -> Vec<u8> {
        let mut graph = Graph::default();
        let given = graph.input("given", &[Size::Is(1), Size::Is(2), Size::Is(2)]);
        let matrix = graph.floats(&[1, 2, 1], &[1.0, 10.0]);
        let product = graph.op(FUSED, &[&given, &matrix], attributes);
        graph.output(
            "product",
            &product,
            &[Size::Is(1), Size::Is(2), Size::Is(1)],
        );
        graph.file().unwrap()
    }

    fn of_kokoro() -> Vec<u8> {
        file(vec![
            int("transA", 1),
            int("transB", 0),
            int("transBatchA", 0),
            float("alpha", 1.0),
        ])
    }

    fn run(file: Vec<u8>) -> Result<Vec<f32>, InferenceError> {
        let network = Rten::new().load(file)?;
        let given = Input::Floats(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let mut outputs = network.run(&[("given", given)], &["product"])?;
        Ok(outputs.remove(0).data)
    }

    #[test]
    fn a_product_that_transposes_is_run() {
        assert!(
            run(of_kokoro()).is_err(),
            "rewriting is not needed any more"
        );
        // The columns [1, 3] and [2, 4] are its rows.
        assert_eq!(run(known(of_kokoro()).unwrap()).unwrap(), [31.0, 42.0]);
    }

    #[test]
    fn products_of_other_kinds_are_errors() {
        for attributes in [
            vec![],
            vec![int("transA", 0)],
            vec![int("transA", 1), int("transB", 1)],
            vec![int("transA", 1), float("alpha", 0.5)],
            vec![int("transA", 1), int("unheard", 1)],
        ] {
            let error = known(file(attributes)).unwrap_err();
            assert!(matches!(error, InferenceError::Malformed(_)), "{error}");
        }
    }

    #[test]
    fn no_fuzzed_file_makes_it_panic() {
        colloquy_fuzz::fuzz(&[of_kokoro()], |file| {
            let ran = known(file.to_vec()).and_then(run);
            let outcome = ran.map_or_else(|error| error.to_string(), |_| "sound".to_owned());
            let letters = outcome.chars().filter(char::is_ascii_lowercase);
            letters.take(60).collect()
        });
    }
}
