//! A feed-forward net as ONNX: what other programs run.
//!
//! One input `input` of shape (rows, n) in single precision, for each layer a `Gemm` and its activation (`Sigmoid`,
//! `Relu` or nothing), and one `output`: `Softmax` for classes, `Sigmoid` for tags, the values themselves
//! otherwise. The messages of the format (ONNX 1, operators of version 13) are written by hand: they are a tree of numbered fields.
//! A net beside whose data stand the means of a deep machine takes them as the last columns of its input: mean
//! field is not a graph of operators.

use crate::error::Error;
use crate::models::{Activation, Loss, Network};

/// The version of the format, and of the operators.
const FORMAT: u64 = 8;
const OPERATORS: u64 = 13;
/// `TensorProto.DataType.FLOAT`, and the kinds of attributes.
const FLOAT: u64 = 1;
const INT_ATTRIBUTE: u64 = 2;

/// A message while it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(u8::try_from(n & 0x7f).unwrap_or(0) | 0x80);
            n >>= 7;
        }
        self.0.push(u8::try_from(n).unwrap_or(0));
    }

    /// A whole number.
    fn number(mut self, field: u64, n: u64) -> Self {
        self.varint(field << 3);
        self.varint(n);
        self
    }

    /// A text, a message, or raw bytes.
    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, inside: &Self) -> Self {
        self.bytes(field, &inside.0)
    }
}

/// `TensorProto`: dims 1, data_type 2, name 8, raw_data 9.
#[expect(clippy::cast_possible_truncation, reason = "single precision")]
fn tensor(name: &str, shape: &[usize], values: &[f64]) -> Message {
    let mut message = Message::default();
    for &n in shape {
        message = message.number(1, n as u64);
    }
    let raw: Vec<u8> = values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
    message.number(2, FLOAT).text(8, name).bytes(9, &raw)
}

/// `NodeProto`: input 1, output 2, op_type 4, attribute 5.
fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let message = inputs.iter().fold(Message::default(), |m, input| m.text(1, input));
    message.text(2, output).text(4, operator)
}

/// `ValueInfoProto` of a matrix of single precision with any number of rows: name 1, type 2; its type a
/// `Tensor` 1 of elem_type 1 and shape 2, whose `dim` 1 has a dim_value 1 or a dim_param 2.
fn matrix(name: &str, columns: usize) -> Message {
    let rows = Message::default().text(2, "rows");
    let columns = Message::default().number(1, columns as u64);
    let shape = Message::default().message(1, &rows).message(1, &columns);
    let tensor = Message::default().number(1, FLOAT).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// The bytes of an ONNX file.
///
/// # Errors
///
/// If the outputs are of several kinds, as those of a net that gives a mixed table back: one operator cannot say
/// what they are.
pub fn write_onnx(network: &Network) -> Result<Vec<u8>, Error> {
    let losses = network.losses();
    let [(_, loss)] = losses[..] else {
        return Err(Error::Topology {
            model: "an ONNX file",
            expected: "outputs of one kind",
            found: format!("found {} runs of outputs", losses.len()),
        });
    };
    let mut graph = Message::default();
    let mut below = "input".to_owned();
    for layer in network.layers() {
        let name = &layer.name;
        let (weights, bias) = (format!("{name}.weights"), format!("{name}.bias"));
        let sum = format!("{name}.sum");
        graph = graph.message(1, &node("Gemm", &[&below, &weights, &bias], &sum));
        below = match layer.activation {
            Activation::Logistic | Activation::Relu => {
                let operator =
                    if layer.activation == Activation::Relu { "Relu" } else { "Sigmoid" };
                graph = graph.message(1, &node(operator, &[&sum], name));
                name.clone()
            }
            Activation::Linear => sum,
        };
    }
    let last = match loss {
        Loss::Softmax => {
            // `AttributeProto`: name 1, i 3, type 20.
            let axis = Message::default().text(1, "axis").number(3, 1).number(20, INT_ATTRIBUTE);
            node("Softmax", &[&below], "probabilities").message(5, &axis)
        }
        Loss::Sigmoid => node("Sigmoid", &[&below], "probabilities"),
        Loss::Squared => node("Identity", &[&below], "values"),
    };
    let output = if loss == Loss::Squared { "values" } else { "probabilities" };
    // `GraphProto`: node 1, name 2, initializer 5, input 11, output 12.
    graph = graph.message(1, &last).text(2, "network");
    for layer in network.layers() {
        let (n, m) = layer.weights.shape();
        let weights = tensor(&format!("{}.weights", layer.name), &[n, m], layer.weights.entries());
        let bias = tensor(&format!("{}.bias", layer.name), &[m], &layer.bias);
        graph = graph.message(5, &weights).message(5, &bias);
    }
    graph = graph.message(11, &matrix("input", network.n_inputs()));
    graph = graph.message(12, &matrix(output, network.n_outputs()));
    // `ModelProto`: ir_version 1, producer_name 2, producer_version 3, graph 7, opset_import 8 (domain 1, version 2).
    let operators = Message::default().text(1, "").number(2, OPERATORS);
    let model = Message::default()
        .number(1, FORMAT)
        .text(2, "harmonium")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, &graph)
        .message(8, &operators);
    Ok(model.0)
}
