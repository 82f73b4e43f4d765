//! Running networks. The trait is as small as the models here need, so that what stands behind it can be replaced.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::{Layout as _, Tensor, TensorView};

use crate::{InferenceError, framing};

/// Numbers in rows, the last dimension together.
#[derive(Debug, Clone, PartialEq)]
pub struct Floats {
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Vec<f32>,
}

impl Floats {
    /// Zeros of this shape.
    #[must_use]
    pub fn zeros(shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            data: vec![0.0; shape.iter().product()],
        }
    }

    /// As what a network is given.
    #[must_use]
    pub fn input(&self) -> Input<'_> {
        Input::Floats(&self.shape, &self.data)
    }
}

/// What a network is given: a shape, and numbers in rows.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Numbers with a point.
    Floats(&'a [usize], &'a [f32]),
    /// Whole numbers.
    Ints(&'a [usize], &'a [i32]),
}

/// A network that was loaded.
pub trait Network: fmt::Debug + Send + Sync {
    /// The bytes of its weights and of how they are put together, as they were in its file. What the runtime makes of them to compute faster comes on
    /// top: as much again at most.
    fn bytes(&self) -> usize;

    /// Gives it these inputs, by their names, and takes these outputs.
    ///
    /// # Errors
    /// When it has no such input or output, or the shapes do not fit.
    fn run(
        &self,
        inputs: &[(&str, Input<'_>)],
        outputs: &[&str],
    ) -> Result<Vec<Floats>, InferenceError>;
}

/// What runs networks.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Loads a network from an ONNX file.
    ///
    /// # Errors
    /// When the file is malformed, or has operators that the runtime lacks.
    fn load(&self, file: Vec<u8>) -> Result<Box<dyn Network>, InferenceError>;
}

thread_local! {
    /// What computes for this thread alone: `rten` computes on threads of its own, whoever asks. A thread that asks for the first time makes
    /// it, so it has the priority of that thread; it ends with it.
    static OWN: Arc<ThreadPool> = Arc::new(ThreadPool::with_num_threads(1));
}

/// The runtime `rten`.
pub struct Rten {
    /// The threads of all who ask; without them everybody who asks has one.
    shared: Option<Arc<ThreadPool>>,
}

impl fmt::Debug for Rten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rten").finish_non_exhaustive()
    }
}

impl Rten {
    /// A runtime that computes with one thread for each thread that asks, with the priority that this one has: as many answers at a time as there
    /// are threads that ask.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: None }
    }

    /// A runtime with so many threads, which all who ask share: one answer takes less time, and others wait for it.
    #[must_use]
    pub fn shared(threads: usize) -> Self {
        Self {
            shared: Some(Arc::new(ThreadPool::with_num_threads(threads.max(1)))),
        }
    }
}

impl Default for Rten {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for Rten {
    fn load(&self, file: Vec<u8>) -> Result<Box<dyn Network>, InferenceError> {
        framing::check(&file)?;
        let bytes = file.len();
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        let model = caught(|| options.load(file)).map_err(InferenceError::Malformed)?;
        let model = model.map_err(|error| InferenceError::Malformed(error.to_string()))?;
        Ok(Box::new(RtenNetwork {
            model,
            bytes,
            shared: self.shared.clone(),
        }))
    }
}

struct RtenNetwork {
    model: Model,
    bytes: usize,
    shared: Option<Arc<ThreadPool>>,
}

impl fmt::Debug for RtenNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtenNetwork").finish_non_exhaustive()
    }
}

impl RtenNetwork {
    fn node(&self, name: &str) -> Result<NodeId, InferenceError> {
        self.model.node_id(name).map_err(failed)
    }
}

impl Network for RtenNetwork {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn run(
        &self,
        inputs: &[(&str, Input<'_>)],
        outputs: &[&str],
    ) -> Result<Vec<Floats>, InferenceError> {
        let inputs = inputs
            .iter()
            .map(|(name, input)| Ok((self.node(name)?, input.view()?)))
            .collect::<Result<Vec<_>, InferenceError>>()?;
        let outputs = outputs
            .iter()
            .map(|name| self.node(name))
            .collect::<Result<Vec<_>, _>>()?;
        let mut options = RunOptions::default();
        let threads = self.shared.clone();
        options.thread_pool = Some(threads.unwrap_or_else(|| OWN.with(Arc::clone)));
        let values = caught(|| self.model.run(inputs, &outputs, Some(options)));
        let values = values.map_err(InferenceError::Failed)?;
        values.map_err(failed)?.into_iter().map(floats).collect()
    }
}

impl<'a> Input<'a> {
    fn view(self) -> Result<ValueOrView<'a>, InferenceError> {
        Ok(match self {
            Self::Floats(shape, data) => view(shape, data)?.into(),
            Self::Ints(shape, data) => view(shape, data)?.into(),
        })
    }
}

fn view<'a, T>(shape: &[usize], data: &'a [T]) -> Result<TensorView<'a, T>, InferenceError> {
    TensorView::try_from_data(shape, data).map_err(failed)
}

fn floats(value: Value) -> Result<Floats, InferenceError> {
    let tensor: Tensor<f32> = value.try_into().map_err(failed)?;
    Ok(Floats {
        shape: tensor.shape().to_vec(),
        data: tensor.into_data(),
    })
}

/// What the runtime answers. It panics over some networks whose operators have parameters that cannot be; nothing is left behind
/// that could be wrong, since it changes nothing but what it answers with.
fn caught<T>(ask: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| "the runtime panicked".to_owned())
}

fn failed(error: impl fmt::Display) -> InferenceError {
    InferenceError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::{Graph, Size, ints};

    /// A network that doubles what it is given.
    fn doubling() -> Vec<u8> {
        let mut graph = Graph::default();
        let given = graph.input("given", &[Size::Named("count")]);
        let doubled = graph.op("Add", &[&given, &given], vec![]);
        graph.output("doubled", &doubled, &[Size::Named("count")]);
        graph.file().unwrap()
    }

    #[test]
    fn networks_run_and_what_does_not_fit_is_an_error() {
        let network = Rten::new().load(doubling()).unwrap();
        assert_eq!(network.bytes(), doubling().len());
        let given = Floats {
            shape: vec![3],
            data: vec![1.0, 2.0, 3.0],
        };
        let run = |name, output| network.run(&[(name, given.input())], &[output]);
        assert_eq!(run("given", "doubled").unwrap()[0].data, [2.0, 4.0, 6.0]);
        assert!(run("other", "doubled").is_err() && run("given", "other").is_err());
        let wrong = Input::Floats(&[4], &given.data);
        assert!(network.run(&[("given", wrong)], &["doubled"]).is_err());
        let ints = Input::Ints(&[1], &[1]);
        assert!(network.run(&[("given", ints)], &["doubled"]).is_err());
    }

    #[test]
    fn a_network_that_the_runtime_panics_over_is_an_error() {
        let mut graph = Graph::default();
        let given = graph.input("given", &[Size::Named("rows"), Size::Named("columns")]);
        let turned = graph.op("Transpose", &[&given], vec![ints("perm", &[0, 7])]);
        let doubled = graph.op("MatMul", &[&given, &turned], vec![]);
        graph.output(
            "doubled",
            &doubled,
            &[Size::Named("rows"), Size::Named("rows")],
        );
        let given = Input::Floats(&[1, 1], &[1.0]);
        let ran = Rten::new()
            .load(graph.file().unwrap())
            .and_then(|network| network.run(&[("given", given)], &["doubled"]));
        assert!(ran.is_err());
    }

    #[test]
    fn no_fuzzed_file_makes_the_runtime_panic() {
        let runtime = Rten::new();
        colloquy_fuzz::fuzz(&[doubling()], |file| match runtime.load(file.to_vec()) {
            Ok(_) => "a network".to_owned(),
            Err(error) => error.to_string().chars().take(60).collect(),
        });
    }
}
