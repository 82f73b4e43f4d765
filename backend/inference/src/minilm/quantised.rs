//! The network with its weights as the file has them, 8 bits each. The file multiplies them with their scales first, so that a
//! runtime makes numbers of 32 bits of all of them: four times the memory, and slower products.
//!
//! Here tables are multiplied with their scales where they are looked up. Products are of whole numbers: the weights become 7
//! bits (see `onnx`), and what they are multiplied with 8 bits, with a scale for each token, so that no token depends on others that
//! are computed at the same time.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
};

use crate::{InferenceError, framing, onnx::LARGEST_WEIGHT};

/// The largest number that a token's vector is made of, and the one that stands for zero.
const LARGEST: f32 = 127.0;
const ZERO: u8 = 128;

/// The network of a file with its weights quantised. A file without such weights stays as it is.
pub(super) fn quantised(file: Vec<u8>) -> Result<Vec<u8>, InferenceError> {
    framing::check(&file)?;
    let mut model = ModelProto::parse_buf(&file)
        .map_err(|error| InferenceError::Malformed(error.to_string()))?;
    let Some(graph) = model.graph.take() else {
        return Ok(file);
    };
    // What other graphs inside of it need is not known here.
    let nests = |node: &NodeProto| node.attribute.iter().any(|one| one.g.is_some());
    if graph.node.iter().any(nests) {
        return Ok(file);
    }
    drop(file);
    model.graph = Some(Rewriter::new(&graph).rewritten(&graph));
    model
        .write_buf()
        .map_err(|error| InferenceError::Failed(error.to_string()))
}

/// Weights of the file: numbers of 8 bits in rows, and their scales.
#[derive(Clone, Copy)]
struct Weights<'a> {
    numbers: &'a TensorProto,
    rows: usize,
    columns: usize,
    scales: &'a TensorProto,
}

/// What a product is made of: a value in 8 bits, and how large the largest number of each token is.
#[derive(Clone)]
struct Tokens {
    numbers: String,
    largest: String,
}

struct Rewriter<'a> {
    constants: HashMap<&'a str, &'a TensorProto>,
    producers: HashMap<&'a str, &'a NodeProto>,
    nodes: Vec<NodeProto>,
    made: Vec<TensorProto>,
    tokens: HashMap<String, Tokens>,
    names: usize,
}

impl<'a> Rewriter<'a> {
    fn new(graph: &'a GraphProto) -> Self {
        let constants = graph.initializer.iter();
        let constants = constants.filter_map(|one| Some((one.name.as_deref()?, one)));
        let outputs = |node: &'a NodeProto| node.output.iter().map(move |name| (&**name, node));
        Self {
            constants: constants.collect(),
            producers: graph.node.iter().flat_map(outputs).collect(),
            nodes: Vec::new(),
            made: Vec::new(),
            tokens: HashMap::new(),
            names: 0,
        }
    }

    fn rewritten(mut self, graph: &GraphProto) -> GraphProto {
        for node in &graph.node {
            if self.lookup(node).is_none() && self.product(node).is_none() {
                self.nodes.push(node.clone());
            }
        }
        let mut needed: HashSet<_> = graph
            .output
            .iter()
            .filter_map(|one| one.name.clone())
            .collect();
        let mut nodes: Vec<_> = Vec::new();
        for node in self.nodes.into_iter().rev() {
            if node.output.iter().any(|name| needed.contains(name)) {
                needed.extend(node.input.iter().cloned());
                nodes.push(node);
            }
        }
        nodes.reverse();
        let is_needed =
            |one: &TensorProto| one.name.as_ref().is_some_and(|name| needed.contains(name));
        GraphProto {
            node: nodes,
            initializer: graph
                .initializer
                .iter()
                .cloned()
                .chain(self.made)
                .filter(is_needed)
                .collect(),
            input: graph.input.clone(),
            output: graph.output.clone(),
            value_info: Vec::new(),
        }
    }

    /// The weights that a value is, if it is the product of such with their scales.
    fn weights(&self, value: &str) -> Option<Weights<'a>> {
        let product = self.producers.get(value).filter(|node| is(node, "Mul"))?;
        let [numbers, scales] = product.input.as_slice() else {
            return None;
        };
        let cast = self
            .producers
            .get(&**numbers)
            .filter(|node| is(node, "Cast"))?;
        let numbers = self.constants.get(&**cast.input.first()?)?;
        let scales = self.constants.get(&**scales)?;
        let &[rows, columns] = numbers.dims.as_slice() else {
            return None;
        };
        let (rows, columns) = (usize::try_from(rows).ok()?, usize::try_from(columns).ok()?);
        let bytes = numbers.raw_data.as_ref()?.borrow().len();
        let is_known = numbers.data_type == Some(DataType::INT8)
            && scales.data_type == Some(DataType::FLOAT)
            && columns > 0
            && rows.checked_mul(columns) == Some(bytes);
        is_known.then_some(Weights {
            numbers,
            rows,
            columns,
            scales,
        })
    }

    /// Rewrites a look-up in a table whose rows have a scale each.
    fn lookup(&mut self, node: &NodeProto) -> Option<()> {
        let ([table, places], [found]) = (node.input.as_slice(), node.output.as_slice()) else {
            return None;
        };
        let is_by_row = |node: &NodeProto| node.attribute.iter().all(|one| one.i.unwrap_or(0) == 0);
        let weights = self
            .weights(table)
            .filter(|_| is(node, "Gather") && is_by_row(node))?;
        if weights.scales.dims != [i64::try_from(weights.rows).ok()?, 1] {
            return None;
        }
        let (numbers, scales) = (
            weights.numbers.name.as_ref()?,
            weights.scales.name.as_ref()?,
        );
        let numbers = self.op("Gather", &[numbers, places], vec![]);
        let numbers = self.op("Cast", &[&numbers], vec![to_floats()]);
        let scales = self.op("Gather", &[scales, places], vec![]);
        self.node("Mul", &[&numbers, &scales], found.clone(), vec![]);
        Some(())
    }

    /// Rewrites a product with a matrix whose columns have a scale each.
    fn product(&mut self, node: &NodeProto) -> Option<()> {
        let ([input, matrix], [output]) = (node.input.as_slice(), node.output.as_slice()) else {
            return None;
        };
        let weights = self.weights(matrix).filter(|_| is(node, "MatMul"))?;
        let (numbers, scales) = of_7_bits(weights)?;
        let Tokens {
            numbers: tokens,
            largest,
        } = self.tokens(input);
        let dims = vec![weights.numbers.dims[0], weights.numbers.dims[1]];
        let matrix = self.constant(DataType::INT8, dims, numbers);
        let zeros = self.constant(
            DataType::INT8,
            vec![weights.numbers.dims[1]],
            vec![0; weights.columns],
        );
        let zero = self.constant(DataType::UINT8, vec![], vec![ZERO]);
        let scales = scales
            .iter()
            .flat_map(|scale| (scale / LARGEST).to_le_bytes())
            .collect();
        let scales = self.constant(DataType::FLOAT, vec![weights.numbers.dims[1]], scales);
        let sums = self.op("MatMulInteger", &[&tokens, &matrix, &zero, &zeros], vec![]);
        let sums = self.op("Cast", &[&sums], vec![to_floats()]);
        let sums = self.op("Mul", &[&sums, &scales], vec![]);
        self.node("Mul", &[&sums, &largest], output.clone(), vec![]);
        Some(())
    }

    /// A value in 8 bits, made once for all that is multiplied with it.
    fn tokens(&mut self, value: &str) -> Tokens {
        if let Some(tokens) = self.tokens.get(value) {
            return tokens.clone();
        }
        let little = self.float(1e-10);
        let step = self.float(1.0 / LARGEST);
        let zero = self.constant(DataType::UINT8, vec![], vec![ZERO]);
        let sizes = self.op("Abs", &[value], vec![]);
        let axes = AttributeProto {
            name: Some("axes".to_owned()),
            ints: vec![-1],
            r#type: Some(AttributeType::INTS),
            ..AttributeProto::default()
        };
        let largest = self.op("ReduceMax", &[&sizes], vec![axes]);
        let largest = self.op("Add", &[&largest, &little], vec![]);
        let inverse = self.op("Reciprocal", &[&largest], vec![]);
        let shares = self.op("Mul", &[value, &inverse], vec![]);
        let numbers = self.op("QuantizeLinear", &[&shares, &step, &zero], vec![]);
        let tokens = Tokens { numbers, largest };
        self.tokens.insert(value.to_owned(), tokens.clone());
        tokens
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("colloquy.{}", self.names)
    }

    fn constant(&mut self, kind: DataType, dims: Vec<i64>, bytes: Vec<u8>) -> String {
        let name = self.fresh();
        self.made.push(TensorProto {
            name: Some(name.clone()),
            dims,
            data_type: Some(kind),
            raw_data: Some(RefCell::new(bytes)),
            ..TensorProto::default()
        });
        name
    }

    fn float(&mut self, value: f32) -> String {
        self.constant(DataType::FLOAT, vec![], value.to_le_bytes().to_vec())
    }

    fn op(&mut self, operator: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let output = self.fresh();
        self.node(operator, inputs, output.clone(), attributes);
        output
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: String,
        attribute: Vec<AttributeProto>,
    ) {
        self.nodes.push(NodeProto {
            name: Some(format!("{output} {operator}")),
            op_type: Some(operator.to_owned()),
            input: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output],
            attribute,
            domain: None,
        });
    }
}

/// Weights in 7 bits, and the scale of each column.
fn of_7_bits(weights: Weights<'_>) -> Option<(Vec<u8>, Vec<f32>)> {
    let scales = weights.scales.raw_data.as_ref()?.borrow();
    let (scales, _) = scales.as_chunks::<4>();
    if weights.scales.dims.last() != weights.numbers.dims.last() || scales.len() != weights.columns
    {
        return None;
    }
    let numbers = weights.numbers.raw_data.as_ref()?.borrow();
    let mut largest = vec![1_u8; weights.columns];
    for row in numbers.chunks_exact(weights.columns) {
        for (largest, byte) in largest.iter_mut().zip(row) {
            *largest = (*largest).max(byte.cast_signed().unsigned_abs());
        }
    }
    let quantised = quantised_numbers();
    let mut bytes = Vec::with_capacity(numbers.len());
    for row in numbers.chunks_exact(weights.columns) {
        let row = row.iter().zip(&largest);
        bytes.extend(
            row.map(|(byte, largest)| quantised[usize::from(*largest)][usize::from(*byte)]),
        );
    }
    let scales = scales
        .iter()
        .zip(&largest)
        .map(|(scale, largest)| f32::from_le_bytes(*scale) * f32::from(*largest) / LARGEST_WEIGHT);
    Some((bytes, scales.collect()))
}

/// What each number of 8 bits becomes in 7, for each largest one of its column: there are few of them, and millions of weights.
fn quantised_numbers() -> Vec<[u8; 256]> {
    let of_largest = |largest: u8| {
        std::array::from_fn(|byte| {
            let number = f32::from((byte as u8).cast_signed());
            let quantised = (number / f32::from(largest) * LARGEST_WEIGHT).round();
            (quantised as i8).cast_unsigned()
        })
    };
    (0..=128).map(of_largest).collect()
}

fn is(node: &NodeProto, operator: &str) -> bool {
    node.op_type.as_deref() == Some(operator)
}

fn to_floats() -> AttributeProto {
    AttributeProto {
        name: Some("to".to_owned()),
        i: Some(i64::from(DataType::FLOAT.0)),
        r#type: Some(AttributeType::INT),
        ..AttributeProto::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        onnx::{Graph, Size, int},
        runtime::{Input, Rten, Runtime as _},
    };

    const ROWS: usize = 5;
    const WIDTH: usize = 16;
    const COLUMNS: usize = 3;

    /// Whole numbers from -127 to 127, as bytes.
    fn numbers(count: usize) -> Vec<u8> {
        let number = |index: usize| (index * 101 % 255) as i64 - 127;
        (0..count)
            .map(|index| (number(index) as i8).cast_unsigned())
            .collect()
    }

    /// A table that is looked up, and two products with what is found.
    fn file() -> Vec<u8> {
        let mut graph = Graph::default();
        let given = graph.input("given", &[Size::Named("texts"), Size::Named("tokens")]);
        let places = graph.op("Cast", &[&given], vec![int("to", 7)]);
        let mut weights = |rows: usize, columns: usize, shape: [usize; 2]| {
            let scales: Vec<_> = (1..=shape[0] * shape[1])
                .map(|one| one as f32 * 1e-3)
                .collect();
            let numbers = graph.constant(DataType::INT8, &[rows, columns], numbers(rows * columns));
            let numbers = graph.op("Cast", &[&numbers], vec![int("to", 1)]);
            let scales = graph.floats(&shape, &scales);
            graph.op("Mul", &[&numbers, &scales], vec![])
        };
        let table = weights(ROWS, WIDTH, [ROWS, 1]);
        let first = weights(WIDTH, WIDTH, [1, WIDTH]);
        let second = weights(WIDTH, COLUMNS, [1, COLUMNS]);
        let found = graph.op("Gather", &[&table, &places], vec![]);
        let first = graph.op("MatMul", &[&found, &first], vec![]);
        let second = graph.op("MatMul", &[&found, &second], vec![]);
        let both = graph.op("Concat", &[&first, &second], vec![int("axis", -1)]);
        graph.output(
            "both",
            &both,
            &[
                Size::Named("texts"),
                Size::Named("tokens"),
                Size::Is(WIDTH + COLUMNS),
            ],
        );
        graph.file().unwrap()
    }

    fn run(file: Vec<u8>, given: &[f32]) -> Result<Vec<f32>, InferenceError> {
        let network = Rten::new().load(file)?;
        let given = Input::Floats(&[2, 2], given);
        Ok(network.run(&[("given", given)], &["both"])?.remove(0).data)
    }

    fn operators(file: &[u8]) -> Vec<String> {
        let graph = ModelProto::parse_buf(file).unwrap().graph.unwrap();
        graph
            .node
            .into_iter()
            .filter_map(|node| node.op_type)
            .collect()
    }

    #[test]
    fn a_quantised_network_gives_nearly_the_same() {
        let quantised = quantised(file()).unwrap();
        let operators = operators(&quantised);
        let count = |name: &str| operators.iter().filter(|one| *one == name).count();
        assert_eq!((count("MatMul"), count("MatMulInteger")), (0, 2));
        // What two products have in common is made once.
        assert_eq!((count("QuantizeLinear"), count("Gather")), (1, 2));
        let given = [0.0, 1.0, 2.0, 4.0];
        let (is, was) = (
            run(quantised, &given).unwrap(),
            run(file(), &given).unwrap(),
        );
        assert_eq!(is.len(), 4 * (WIDTH + COLUMNS));
        let largest = was.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
        for (is, was) in is.iter().zip(&was) {
            assert!((is - was).abs() < largest * 0.02, "{is} {was}");
        }
    }

    #[test]
    fn a_network_without_such_weights_stays_as_it_is() {
        let mut graph = Graph::default();
        let given = graph.input("given", &[Size::Named("texts"), Size::Is(2)]);
        let matrix = graph.floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let both = graph.op("MatMul", &[&given, &matrix], vec![]);
        graph.output("both", &both, &[Size::Named("texts"), Size::Is(2)]);
        let file = graph.file().unwrap();
        let given = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(
            operators(&quantised(file.clone()).unwrap()),
            operators(&file)
        );
        assert_eq!(
            run(quantised(file).unwrap(), &given).unwrap(),
            [7.0, 10.0, 15.0, 22.0]
        );
    }

    #[test]
    fn no_fuzzed_file_makes_it_panic() {
        colloquy_fuzz::fuzz(&[file()], |file| {
            let quantised = match quantised(file.to_vec()) {
                Ok(quantised) => quantised,
                Err(error) => return error.to_string().chars().take(60).collect(),
            };
            let ran = run(quantised, &[0.0, 1.0, 2.0, 3.0]);
            let ran = ran.map_err(|error| error.to_string());
            let outcome = ran.map_or_else(|error| error, |_| "vectors".to_owned());
            outcome
                .chars()
                .filter(char::is_ascii_lowercase)
                .take(60)
                .collect()
        });
    }
}
