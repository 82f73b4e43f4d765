//! Whisper's encoder and decoder as networks, written from its weights.
//!
//! The encoder hears as many frames as an utterance has, and not the thirty seconds that Whisper was trained with. What it
//! would have heard in the rest, silence, was heard once and is kept: the keys and values of its attention, at every eighth
//! position. They are added to those of the utterance, and count eight times each ("silence", below).

use crate::{
    InferenceError,
    onnx::{Graph, Size, Value, float, int, ints},
};

use super::{
    dimensions::Dimensions,
    weights::{Weights, WeightsFile},
};

impl Dimensions {
    /// The shape of keys over some positions, which are transposed.
    fn keys(&self, positions: &'static str) -> [Size; 4] {
        [
            Size::Is(1),
            Size::Is(self.heads),
            Size::Is(self.head_width()),
            Size::Named(positions),
        ]
    }

    /// The shape of values over some positions.
    fn values(&self, positions: &'static str) -> [Size; 4] {
        [
            Size::Is(1),
            Size::Is(self.heads),
            Size::Named(positions),
            Size::Is(self.head_width()),
        ]
    }
}

struct Builder<'a> {
    graph: Graph,
    weights: &'a WeightsFile<'a>,
    dimensions: Dimensions,
}

/// How queries, keys and values are divided between heads: positions before numbers, or after them.
const BY_POSITION: [i64; 4] = [0, 2, 1, 3];
const TRANSPOSED: [i64; 4] = [0, 2, 3, 1];

impl<'a> Builder<'a> {
    fn new(weights: &'a WeightsFile<'a>, dimensions: Dimensions) -> Self {
        Self {
            graph: Graph::default(),
            weights,
            dimensions,
        }
    }

    fn constant(&mut self, name: &str) -> Result<Value, InferenceError> {
        let Weights { shape, values } = self.weights.get(name)?;
        Ok(self.graph.floats(&shape, &values))
    }

    fn add(&mut self, one: &Value, other: &Value) -> Value {
        self.graph.op("Add", &[one, other], vec![])
    }

    fn norm(&mut self, input: &Value, name: &str) -> Result<Value, InferenceError> {
        let gamma = self.constant(&format!("{name}/gamma"))?;
        let beta = self.constant(&format!("{name}/beta"))?;
        let attributes = vec![int("axis", -1), float("epsilon", 1e-5)];
        Ok(self
            .graph
            .op("LayerNormalization", &[input, &gamma, &beta], attributes))
    }

    /// A layer of a matrix and a bias. The first numbers of its output are those of queries, which are scaled.
    fn linear(
        &mut self,
        input: &Value,
        name: &str,
        queries: usize,
    ) -> Result<Value, InferenceError> {
        let mut weights = self.weights.get(&format!("{name}/weight"))?;
        let mut bias = self.weights.get(&format!("{name}/bias"))?.values;
        let &[rows, columns] = weights.shape.as_slice() else {
            return Err(InferenceError::Malformed(format!("{name} is no matrix")));
        };
        if bias.len() != rows || queries > rows {
            return Err(InferenceError::Malformed(format!(
                "{name} has another bias"
            )));
        }
        let scale = (self.dimensions.head_width() as f32).sqrt().recip();
        for weight in &mut weights.values[..queries * columns] {
            *weight *= scale;
        }
        for bias in &mut bias[..queries] {
            *bias *= scale;
        }
        let product = self
            .graph
            .product_of_7_bits(input, rows, columns, &weights.values);
        let bias = self.graph.floats(&[rows], &bias);
        Ok(self.add(&product, &bias))
    }

    fn heads(&mut self, input: &Value, order: &[i64]) -> Value {
        let Dimensions { heads, .. } = self.dimensions;
        let width = self.dimensions.head_width();
        let shape = self.graph.ints(&[1, -1, heads as i64, width as i64]);
        let divided = self.graph.op("Reshape", &[input, &shape], vec![]);
        self.graph
            .op("Transpose", &[&divided], vec![ints("perm", order)])
    }

    /// Attention, and the layer after it.
    fn attend(
        &mut self,
        [queries, keys, values]: [&Value; 3],
        bias: &Value,
        name: &str,
    ) -> Result<Value, InferenceError> {
        let scores = self.graph.op("MatMul", &[queries, keys], vec![]);
        let scores = self.add(&scores, bias);
        let shares = self.graph.op("Softmax", &[&scores], vec![int("axis", -1)]);
        let heard = self.graph.op("MatMul", &[&shares, values], vec![]);
        let heard = self
            .graph
            .op("Transpose", &[&heard], vec![ints("perm", &BY_POSITION)]);
        let shape = self.graph.ints(&[1, -1, self.dimensions.width as i64]);
        let heard = self.graph.op("Reshape", &[&heard, &shape], vec![]);
        self.linear(&heard, name, 0)
    }

    fn feed_forward(&mut self, input: &Value, layer: &str) -> Result<Value, InferenceError> {
        let normed = self.norm(input, &format!("{layer}/ffn/layer_norm"))?;
        let inner = self.linear(&normed, &format!("{layer}/ffn/linear_0"), 0)?;
        let inner = self.graph.op("Gelu", &[&inner], vec![]);
        let outer = self.linear(&inner, &format!("{layer}/ffn/linear_1"), 0)?;
        Ok(self.add(input, &outer))
    }

    /// Queries, keys and values of a layer that attends to itself, divided between heads.
    fn own(
        &mut self,
        input: &Value,
        layer: &str,
        keys: &[i64],
    ) -> Result<[Value; 3], InferenceError> {
        let normed = self.norm(input, &format!("{layer}/self_attention/layer_norm"))?;
        let name = format!("{layer}/self_attention/linear_0");
        let all = self.linear(&normed, &name, self.dimensions.width)?;
        let attributes = vec![int("axis", -1), int("num_outputs", 3)];
        let [queries, own_keys, values] = self.graph.op_with("Split", &[&all], attributes);
        Ok([
            self.heads(&queries, &BY_POSITION),
            self.heads(&own_keys, keys),
            self.heads(&values, &BY_POSITION),
        ])
    }

    fn convolution(
        &mut self,
        input: &Value,
        name: &str,
        stride: i64,
    ) -> Result<Value, InferenceError> {
        let filter = self.constant(&format!("encoder/{name}/weight"))?;
        let bias = self.constant(&format!("encoder/{name}/bias"))?;
        let attributes = vec![
            ints("kernel_shape", &[3]),
            ints("pads", &[1, 1]),
            ints("strides", &[stride]),
        ];
        let output = self.graph.op("Conv", &[input, &filter, &bias], attributes);
        Ok(self.graph.op("Gelu", &[&output], vec![]))
    }
}

/// The encoder. Inputs: `mel` [1, bands, frames]; `bias` [1, positions], what is added to the scores of each position, of the
/// utterance and of the silence after it; for each layer, the silence's `silence_keys_I`, `silence_values_I`, and for each
/// layer of the decoder `silence_cross_keys_I`, `silence_cross_values_I`. Outputs: for each layer of the decoder `cross_keys_I`,
/// `cross_values_I`, with the silence; for each layer, `own_keys_I`, `own_values_I`, without it.
pub(super) fn encoder(
    weights: &WeightsFile<'_>,
    dimensions: Dimensions,
) -> Result<Vec<u8>, InferenceError> {
    let mut builder = Builder::new(weights, dimensions);
    let frames = [
        Size::Is(1),
        Size::Is(dimensions.bands),
        Size::Named("frames"),
    ];
    let mel = builder.graph.input("mel", &frames);
    let bias = builder
        .graph
        .input("bias", &[Size::Is(1), Size::Named("all")]);
    let heard = builder.convolution(&mel, "conv1", 1)?;
    let heard = builder.convolution(&heard, "conv2", 2)?;
    let heard = builder
        .graph
        .op("Transpose", &[&heard], vec![ints("perm", &[0, 2, 1])]);
    let positions = builder.constant("encoder/position_encodings/encodings")?;
    let length = builder
        .graph
        .op("Shape", &[&heard], vec![int("start", 1), int("end", 2)]);
    let [from, axis] = [0, 0].map(|zero| builder.graph.ints(&[zero]));
    let positions = builder
        .graph
        .op("Slice", &[&positions, &from, &length, &axis], vec![]);
    let mut state = builder.add(&heard, &positions);
    for index in 0..dimensions.encoder {
        let layer = format!("encoder/layer_{index}");
        let [queries, keys, values] = builder.own(&state, &layer, &TRANSPOSED)?;
        let graph = &mut builder.graph;
        graph.output(
            &format!("own_keys_{index}"),
            &keys,
            &dimensions.keys("heard"),
        );
        graph.output(
            &format!("own_values_{index}"),
            &values,
            &dimensions.values("heard"),
        );
        let silence = graph.input(
            &format!("silence_keys_{index}"),
            &dimensions.keys("silence"),
        );
        let keys = graph.op("Concat", &[&keys, &silence], vec![int("axis", 3)]);
        let silence = graph.input(
            &format!("silence_values_{index}"),
            &dimensions.values("silence"),
        );
        let values = graph.op("Concat", &[&values, &silence], vec![int("axis", 2)]);
        let name = format!("{layer}/self_attention/linear_1");
        let attended = builder.attend([&queries, &keys, &values], &bias, &name)?;
        state = builder.add(&state, &attended);
        state = builder.feed_forward(&state, &layer)?;
    }
    let state = builder.norm(&state, "encoder/layer_norm")?;
    for index in 0..dimensions.decoder {
        let both = builder.linear(
            &state,
            &format!("decoder/layer_{index}/attention/linear_1"),
            0,
        )?;
        let attributes = vec![int("axis", -1), int("num_outputs", 2)];
        let [keys, values] = builder.graph.op_with("Split", &[&both], attributes);
        let keys = builder.heads(&keys, &TRANSPOSED);
        let values = builder.heads(&values, &BY_POSITION);
        let graph = &mut builder.graph;
        let name = format!("silence_cross_keys_{index}");
        let silence = graph.input(&name, &dimensions.keys("silence"));
        let keys = graph.op("Concat", &[&keys, &silence], vec![int("axis", 3)]);
        graph.output(
            &format!("cross_keys_{index}"),
            &keys,
            &dimensions.keys("all"),
        );
        let name = format!("silence_cross_values_{index}");
        let silence = graph.input(&name, &dimensions.values("silence"));
        let values = graph.op("Concat", &[&values, &silence], vec![int("axis", 2)]);
        graph.output(
            &format!("cross_values_{index}"),
            &values,
            &dimensions.values("all"),
        );
    }
    builder.graph.file()
}

/// A step of the decoder. Inputs: `tokens` [1, new, width], the embeddings of tokens and positions; `mask` [new, past + new], what is
/// added to the scores of tokens; `bias` [1, all] as for the encoder; for each layer, `past_keys_I`, `past_values_I` [1, heads,
/// past, numbers], `cross_keys_I`, `cross_values_I`. Outputs: `scores` [new, vocabulary]; for each layer, `keys_I`, `values_I`, which are
/// the past of the next step, and `queries_I` [1, new, width], what the tokens ask of the utterance.
pub(super) fn decoder(
    weights: &WeightsFile<'_>,
    dimensions: Dimensions,
) -> Result<Vec<u8>, InferenceError> {
    let mut builder = Builder::new(weights, dimensions);
    let width = Size::Is(dimensions.width);
    let mut state = builder
        .graph
        .input("tokens", &[Size::Is(1), Size::Named("new"), width]);
    let mask = builder
        .graph
        .input("mask", &[Size::Named("new"), Size::Named("said")]);
    let bias = builder
        .graph
        .input("bias", &[Size::Is(1), Size::Named("all")]);
    for index in 0..dimensions.decoder {
        let layer = format!("decoder/layer_{index}");
        let [queries, keys, values] = builder.own(&state, &layer, &BY_POSITION)?;
        let mut and_past = |name: &str, new: &Value| {
            let graph = &mut builder.graph;
            let past = graph.input(&format!("past_{name}_{index}"), &dimensions.values("past"));
            let all = graph.op("Concat", &[&past, new], vec![int("axis", 2)]);
            graph.output(&format!("{name}_{index}"), &all, &dimensions.values("said"));
            all
        };
        let keys = and_past("keys", &keys);
        let values = and_past("values", &values);
        let keys = builder
            .graph
            .op("Transpose", &[&keys], vec![ints("perm", &[0, 1, 3, 2])]);
        let name = format!("{layer}/self_attention/linear_1");
        let attended = builder.attend([&queries, &keys, &values], &mask, &name)?;
        state = builder.add(&state, &attended);
        let normed = builder.norm(&state, &format!("{layer}/attention/layer_norm"))?;
        let name = format!("{layer}/attention/linear_0");
        let queries = builder.linear(&normed, &name, dimensions.width)?;
        let shape = [Size::Is(1), Size::Named("new"), width];
        builder
            .graph
            .output(&format!("queries_{index}"), &queries, &shape);
        let queries = builder.heads(&queries, &BY_POSITION);
        let graph = &mut builder.graph;
        let keys = graph.input(&format!("cross_keys_{index}"), &dimensions.keys("all"));
        let values = graph.input(&format!("cross_values_{index}"), &dimensions.values("all"));
        let name = format!("{layer}/attention/linear_2");
        let attended = builder.attend([&queries, &keys, &values], &bias, &name)?;
        state = builder.add(&state, &attended);
        state = builder.feed_forward(&state, &layer)?;
    }
    let state = builder.norm(&state, "decoder/layer_norm")?;
    let shape = builder.graph.ints(&[-1, dimensions.width as i64]);
    let state = builder.graph.op("Reshape", &[&state, &shape], vec![]);
    let Dimensions {
        vocabulary, width, ..
    } = dimensions;
    let embeddings = weights.get("decoder/embeddings/weight")?.values;
    let graph = &mut builder.graph;
    let scores = graph.product_of_7_bits(&state, vocabulary, width, &embeddings);
    graph.output(
        "scores",
        &scores,
        &[Size::Named("new"), Size::Is(vocabulary)],
    );
    builder.graph.file()
}
