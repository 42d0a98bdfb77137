//! Where a net comes from: a machine, a deep belief network, or nothing.
//!
//! | source | layers of the net |
//! |---|---|
//! | RBM | $h = \sigma(b - \mu W + vW)$ |
//! | DBN | the recognition weights of each layer, then the top RBM's |
//! | DBM | $h_1 = \sigma(b_1 + (v - \mu_v)W_1 + (q(h_2 \mid v) - \mu_2)W_2^\top)$, $h_2 = \sigma(b_2 + (h_1 - \mu_1)W_2)$, …: the two uses of $W_2$ go separate ways from here on (Salakhutdinov & Hinton 2009) |
//! | nothing | normal numbers: variance $2/n$ for rectified units, $1/n$ for others, $n$ being the units below |
//!
//! Offsets are folded into biases. What stands above a layer and is not part of its input, labels or a third hidden
//! layer, is taken to be at its offset, its mean. On top comes a linear layer: from the weights of the labels where the
//! source has learned as many classes, else from small normal numbers.

use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, Weights};
use crate::models::{Activation, Body, Dbn, Dense, Directed, Network, OUTPUT, Posterior, Target};
use crate::random::{Site, Stream};
use crate::schema::LABELS;
use crate::units::{Storage, Units};

/// The variates of the first weights.
const INIT: u64 = 0;
/// Standard deviation of the first weights of an output over learned layers.
const OUTPUT_STD: f64 = 0.01;

/// What a net is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Hidden layers that are added, from the data upwards.
    pub hidden: Vec<usize>,
    /// What the units of these make of their input.
    pub activation: Activation,
    /// Numbers that come out.
    pub n_outputs: usize,
    /// What it is asked for.
    pub target: Target,
    /// The root of all randomness.
    pub seed: u64,
}

impl Shape {
    /// A classifier without further hidden layers.
    pub fn classes(n_classes: usize, seed: u64) -> Self {
        let (hidden, activation) = (Vec::new(), Activation::Relu);
        Self { hidden, activation, n_outputs: n_classes, target: Target::Classes, seed }
    }
}

/// A net of random weights over data layers.
///
/// # Errors
///
/// If a layer is empty, or memory ends.
pub fn random(inputs: &[Layer], shape: &Shape) -> Result<Network, Error> {
    let n: usize = inputs.iter().map(Layer::len).sum();
    let layers = grown(Vec::new(), n, shape, None)?;
    Network::new(inputs.to_vec(), None, layers, shape.target)
}

/// The net of a model, with further layers of random weights on top.
///
/// # Errors
///
/// If the model is a net or a machine whose layers are not a chain of binary ones, or memory ends.
pub fn classifier(body: &Body, shape: &Shape) -> Result<Network, Error> {
    match body {
        Body::Machine(machine) => of_machine(machine, shape),
        Body::Dbn(dbn) => of_dbn(dbn, shape),
        Body::Network(_) => Err(wrong("a machine or a deep belief network", "found a net".into())),
    }
}

fn wrong(expected: &'static str, found: String) -> Error {
    Error::Topology { model: "fine-tuning", expected, found }
}

/// Adds further hidden layers and the output.
fn grown(
    mut layers: Vec<Dense>,
    mut n_below: usize,
    shape: &Shape,
    output: Option<Dense>,
) -> Result<Vec<Dense>, Error> {
    let stream = Stream::new(shape.seed).fork(INIT);
    let learned = !layers.is_empty();
    for &n in &shape.hidden {
        let name = format!("hidden{}", layers.len() + 1);
        let gain = if shape.activation == Activation::Relu { 2.0 } else { 1.0 };
        let std = (gain / n_below as f64).sqrt();
        layers.push(normal(
            name,
            shape.activation,
            (n_below, n),
            std,
            stream.fork(layers.len() as u64),
        )?);
        n_below = n;
    }
    let output = output.filter(|o| shape.hidden.is_empty() && o.len() == shape.n_outputs);
    layers.push(if let Some(output) = output {
        output
    } else {
        let small = learned && shape.hidden.is_empty();
        let std = if small { OUTPUT_STD } else { (1.0 / n_below as f64).sqrt() };
        let (shape, stream) = ((n_below, shape.n_outputs), stream.fork(layers.len() as u64));
        normal(OUTPUT.into(), Activation::Linear, shape, std, stream)?
    });
    Ok(layers)
}

/// A layer of normal weights and biases of 0.
fn normal(
    name: String,
    activation: Activation,
    (n_below, n): (usize, usize),
    std: f64,
    stream: Stream,
) -> Result<Dense, Error> {
    if n == 0 || n_below == 0 {
        return Err(Error::Empty { what: format!("layer `{name}`") });
    }
    let mut weights = Matrix::zeros(n_below, n)?;
    for (row, entries) in weights.entries_mut().chunks_exact_mut(n).enumerate() {
        stream.normals_into(Site::new(row, 0, 0), entries);
        entries.iter_mut().for_each(|w| *w *= std);
    }
    Ok(Dense { name, activation, weights, bias: vec![0.0; n] })
}

/// A machine with bits instead of spins in its hidden layers.
fn with_bits(machine: &Machine) -> Result<Machine, Error> {
    let mut machine = machine.clone();
    for l in machine.hidden_layers() {
        let layer = machine.layer(l);
        if layer.units == Units::Spin {
            machine = machine.spins_to_bits(l)?;
        } else if !layer.units.is_zero_or_one() || layer.units.storage() != Storage::Bits {
            let found = format!("found {} units in `{}`", layer.units.name(), layer.name);
            return Err(wrong("binary units in the hidden layers", found));
        }
    }
    Ok(machine)
}

fn of_machine(machine: &Machine, shape: &Shape) -> Result<Network, Error> {
    let machine = with_bits(machine)?;
    let chain = chain(&machine)?;
    let inputs: Vec<LayerId> =
        machine.visible_layers().into_iter().filter(|&l| machine.layer(l).name != LABELS).collect();
    let mut below = inputs.clone();
    // A second hidden layer is seen by the first: its means stand beside the data.
    let beside = chain.get(1).copied();
    let mut layers = Vec::new();
    for (depth, &l) in chain.iter().enumerate() {
        if depth == 0 {
            below.extend(beside);
        }
        layers.push(seen(&machine, &below, l)?);
        below = vec![l];
    }
    let labels = machine.visible_layers().into_iter().find(|&l| machine.layer(l).name == LABELS);
    let top = chain.last().copied();
    let output = labels.zip(top).filter(|&(y, top)| machine.coupled(y, top)).map(|(y, top)| {
        let labels = seen(&machine, &[top], y)?;
        Ok::<_, Error>(Dense { name: OUTPUT.into(), activation: Activation::Linear, ..labels })
    });
    let n_below = layers.last().map_or(0, Dense::len);
    let layers = grown(layers, n_below, shape, output.transpose()?)?;
    let inputs = inputs.iter().map(|&l| machine.layer(l).clone()).collect();
    let posterior = beside.map(|layer| Posterior { machine: machine.clone(), layer });
    Network::new(inputs, posterior, layers, shape.target)
}

fn of_dbn(dbn: &Dbn, shape: &Shape) -> Result<Network, Error> {
    let mut layers = Vec::new();
    for part in dbn.directed() {
        layers.push(seen(&part.recognition, &[Directed::BELOW], Directed::ABOVE)?);
    }
    let top = with_bits(dbn.top())?;
    layers.push(seen(&top, &[Dbn::BELOW_TOP], dbn.top_hidden())?);
    let output = dbn.labels().map(|_| {
        let labels = seen(&top, &[dbn.top_hidden()], Dbn::LABELS)?;
        Ok::<_, Error>(Dense { name: OUTPUT.into(), activation: Activation::Linear, ..labels })
    });
    let n_below = layers.last().map_or(0, Dense::len);
    let layers = grown(layers, n_below, shape, output.transpose()?)?;
    let input = Layer { role: Role::Visible, ..dbn.layer(0).clone() };
    Network::new(vec![input], None, layers, shape.target)
}

/// The hidden layers from the data upwards, each seeing the next.
fn chain(machine: &Machine) -> Result<Vec<LayerId>, Error> {
    let expected = "hidden layers one above the other";
    let data: Vec<LayerId> =
        machine.visible_layers().into_iter().filter(|&l| machine.layer(l).name != LABELS).collect();
    let hidden = machine.hidden_layers();
    if let Some(c) =
        machine.couplings().iter().find(|c| c.is_lateral() && hidden.contains(&c.between.0))
    {
        let name = &machine.layer(c.between.0).name;
        return Err(wrong(expected, format!("found layer `{name}` coupled with itself")));
    }
    let mut chain: Vec<LayerId> =
        hidden.iter().copied().filter(|&h| data.iter().any(|&v| machine.coupled(v, h))).collect();
    let one = |n: usize| {
        if n == 1 { Ok(()) } else { Err(wrong(expected, format!("found {n} side by side"))) }
    };
    one(chain.len())?;
    if let Some(&v) = data.iter().find(|&&v| !machine.coupled(v, chain[0])) {
        let name = &machine.layer(v).name;
        return Err(wrong(
            expected,
            format!("found data layer `{name}` that the first does not see"),
        ));
    }
    while chain.len() < hidden.len() {
        let last = chain[chain.len() - 1];
        let next: Vec<LayerId> = hidden
            .iter()
            .copied()
            .filter(|h| !chain.contains(h) && machine.coupled(last, *h))
            .collect();
        one(next.len())?;
        chain.push(next[0]);
    }
    Ok(chain)
}

/// What layer `l` makes of the layers `below`, everything else at its offset.
fn seen(machine: &Machine, below: &[LayerId], l: LayerId) -> Result<Dense, Error> {
    let layer = machine.layer(l);
    let n_below = below.iter().map(|&b| machine.layer(b).len()).sum();
    let mut weights = Matrix::zeros(n_below, layer.len())?;
    let mut bias = layer.bias.clone();
    let mut start = 0;
    for &b in below {
        let (offset, n) = (&machine.layer(b).offset, layer.len());
        for c in machine.couplings().iter().filter(|c| c.other_end(b) == Some(l)) {
            let Weights::Between(w) = &c.weights else { continue };
            for (i, mu) in offset.iter().enumerate() {
                let row = &mut weights.entries_mut()[(start + i) * n..(start + i + 1) * n];
                for (j, entry) in row.iter_mut().enumerate() {
                    *entry = weight(c, w, b, i, j);
                    bias[j] -= mu * *entry;
                }
            }
        }
        start += offset.len();
    }
    Ok(Dense { name: layer.name.clone(), activation: Activation::Logistic, weights, bias })
}

/// The weight between entry `i` of layer `b` and entry `j` of the other end.
fn weight(c: &Coupling, w: &Matrix, b: LayerId, i: usize, j: usize) -> f64 {
    if c.between.0 == b { w.at(i, j) } else { w.at(j, i) }
}
