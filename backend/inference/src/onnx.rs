//! Writing networks as ONNX files, operator by operator.

use std::cell::RefCell;

use rten_onnx::{
    onnx::{
        AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
        OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor,
        ValueInfoProto,
    },
    protobuf::{EncodeMessage as _, ValueWriter},
};

use crate::InferenceError;

/// The version of the operators.
const OPERATOR_SET: i64 = 20;

/// The version of the file format.
const FORMAT: i64 = 9;

/// The largest weight of those of 7 bits. Products of two numbers of 8 bits overflow where a processor adds them up in
/// pairs of 16 bits, as those without VNNI do.
pub(crate) const LARGEST_WEIGHT: f32 = 63.0;

/// A value of the network: what an operator gives, an input or a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value(String);

/// A dimension of an input or an output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    /// Always this.
    Is(usize),
    /// Any, the same wherever it has this name.
    Named(&'static str),
}

/// An attribute of an operator.
#[derive(Debug, Clone)]
pub(crate) struct Attribute(AttributeProto);

/// A whole number.
pub(crate) fn int(name: &str, value: i64) -> Attribute {
    Attribute(AttributeProto {
        name: Some(name.to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::INT),
        ..AttributeProto::default()
    })
}

/// Whole numbers.
pub(crate) fn ints(name: &str, values: &[i64]) -> Attribute {
    Attribute(AttributeProto {
        name: Some(name.to_owned()),
        ints: values.to_vec(),
        r#type: Some(AttributeType::INTS),
        ..AttributeProto::default()
    })
}

/// A number with a point.
pub(crate) fn float(name: &str, value: f32) -> Attribute {
    Attribute(AttributeProto {
        name: Some(name.to_owned()),
        f: Some(value),
        r#type: Some(AttributeType::FLOAT),
        ..AttributeProto::default()
    })
}

/// A network that is being written.
#[derive(Default)]
pub(crate) struct Graph {
    graph: GraphProto,
    names: usize,
}

impl Graph {
    fn fresh(&mut self) -> Value {
        self.names += 1;
        Value(format!("v{}", self.names))
    }

    /// An input of numbers with a point.
    pub(crate) fn input(&mut self, name: &str, shape: &[Size]) -> Value {
        self.graph.input.push(described(name, shape));
        Value(name.to_owned())
    }

    /// Makes a value an output.
    pub(crate) fn output(&mut self, name: &str, value: &Value, shape: &[Size]) {
        self.graph.output.push(described(name, shape));
        self.node("Identity", &[value], vec![Value(name.to_owned())], vec![]);
    }

    /// Numbers of this kind that never change, little-endian.
    pub(crate) fn constant(&mut self, kind: DataType, shape: &[usize], bytes: Vec<u8>) -> Value {
        let value = self.fresh();
        self.graph.initializer.push(TensorProto {
            name: Some(value.0.clone()),
            dims: shape.iter().map(|size| *size as i64).collect(),
            data_type: Some(kind),
            raw_data: Some(RefCell::new(bytes)),
            ..TensorProto::default()
        });
        value
    }

    /// Numbers with a point that never change.
    pub(crate) fn floats(&mut self, shape: &[usize], values: &[f32]) -> Value {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.constant(DataType::FLOAT, shape, bytes)
    }

    /// Whole numbers that never change.
    pub(crate) fn ints(&mut self, values: &[i64]) -> Value {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.constant(DataType::INT64, &[values.len()], bytes)
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        outputs: Vec<Value>,
        attributes: Vec<Attribute>,
    ) {
        self.names += 1;
        self.graph.node.push(NodeProto {
            name: Some(format!("n{}", self.names)),
            op_type: Some(operator.to_owned()),
            input: inputs.iter().map(|value| value.0.clone()).collect(),
            output: outputs.into_iter().map(|value| value.0).collect(),
            attribute: attributes
                .into_iter()
                .map(|Attribute(proto)| proto)
                .collect(),
            domain: None,
        });
    }

    /// An operator with one output.
    pub(crate) fn op(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: Vec<Attribute>,
    ) -> Value {
        let output = self.fresh();
        self.node(operator, inputs, vec![output.clone()], attributes);
        output
    }

    /// An operator with several outputs.
    pub(crate) fn op_with<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: Vec<Attribute>,
    ) -> [Value; N] {
        let outputs = std::array::from_fn(|_| self.fresh());
        self.node(operator, inputs, outputs.to_vec(), attributes);
        outputs
    }

    /// The product with a matrix of `rows` rows (`[rows, columns]`, as layers are stored), transposed. Its weights become
    /// 7 bits each, with a scale for each row; what it is multiplied by becomes 8 bits while it runs.
    pub(crate) fn product_of_7_bits(
        &mut self,
        input: &Value,
        rows: usize,
        columns: usize,
        weights: &[f32],
    ) -> Value {
        let mut bytes = vec![0; rows * columns];
        let mut scales = vec![0.0; rows];
        for (row, weights) in weights.chunks_exact(columns).enumerate() {
            let largest = weights
                .iter()
                .fold(0.0_f32, |most, weight| most.max(weight.abs()));
            let scale = largest.max(1e-8) / LARGEST_WEIGHT;
            scales[row] = scale;
            for (column, weight) in weights.iter().enumerate() {
                let quantised = (weight / scale)
                    .round()
                    .clamp(-LARGEST_WEIGHT, LARGEST_WEIGHT);
                bytes[column * rows + row] = (quantised as i8).cast_unsigned();
            }
        }
        let matrix = self.constant(DataType::INT8, &[columns, rows], bytes);
        let zeros = self.constant(DataType::INT8, &[rows], vec![0; rows]);
        let scales = self.floats(&[rows], &scales);
        let [quantised, scale, zero] = self.op_with("DynamicQuantizeLinear", &[input], vec![]);
        let sums = self.op(
            "MatMulInteger",
            &[&quantised, &matrix, &zero, &zeros],
            vec![],
        );
        let sums = self.op("Cast", &[&sums], vec![int("to", 1)]);
        let scale = self.op("Mul", &[&scale, &scales], vec![]);
        self.op("Mul", &[&sums, &scale], vec![])
    }

    /// The file.
    pub(crate) fn file(self) -> Result<Vec<u8>, InferenceError> {
        let model = ModelProto {
            ir_version: Some(FORMAT),
            graph: Some(self.graph),
            opset_import: vec![OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(OPERATOR_SET),
            }],
            producer_name: Some("colloquy".to_owned()),
            ..ModelProto::default()
        };
        let mut file = Vec::new();
        model
            .encode(ValueWriter::new(&mut file))
            .map_err(|error| InferenceError::Failed(error.to_string()))?;
        Ok(file)
    }
}

fn described(name: &str, shape: &[Size]) -> ValueInfoProto {
    let dim = shape.iter().map(|size| match size {
        Size::Is(size) => Dimension {
            dim_value: Some(*size as i64),
            dim_param: None,
        },
        Size::Named(name) => Dimension {
            dim_value: None,
            dim_param: Some((*name).to_owned()),
        },
    });
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            tensor_type: Some(TypeProtoTensor {
                elem_type: Some(DataType::FLOAT),
                shape: Some(TensorShapeProto { dim: dim.collect() }),
            }),
            sequence: None,
        }),
    }
}
