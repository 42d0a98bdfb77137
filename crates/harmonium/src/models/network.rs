//! The feed-forward net: layers that each make something of a weighted sum of the layer below.
//!
//! $$x_0 = [v,\; q(h_2 \mid v)], \qquad x_l = f_l(b_l + x_{l-1} W_l)$$
//!
//! The second part of the input is there where the net was made of a deep machine: the means of its
//! second hidden layer by mean field, which that machine keeps on giving while the net is learned
//! (Salakhutdinov & Hinton 2009, section 3.3). A net has no energy and no distribution: it is asked for
//! classes, tags, values or the input itself, whatever its [`Target`] is.

use super::described;
use crate::error::Error;
use crate::machine::{Layer, LayerId, Machine, Matrix, Role};
use crate::units::{Storage, Units};
use harmonium_kernels::neurons;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a net is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Target {
    /// One class of several: softmax and cross-entropy.
    Classes,
    /// Any of several tags: a sigmoid and cross-entropy for each.
    Tags,
    /// Real numbers: half the squared distance.
    Values,
    /// The data that came in, each entry as its units have it.
    Input,
}

impl Target {
    /// The word for it in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Classes => "classes",
            Self::Tags => "tags",
            Self::Values => "values",
            Self::Input => "input",
        }
    }
}

/// What a unit makes of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Activation {
    /// $\sigma(x)$.
    Logistic,
    /// $\max(x, 0)$.
    Relu,
    /// $x$.
    Linear,
}

impl Activation {
    /// The word for it in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::Relu => "relu",
            Self::Linear => "linear",
        }
    }

    /// The same as the kernels have it.
    pub(crate) fn kernel(self) -> neurons::Activation {
        match self {
            Self::Logistic => neurons::Activation::Logistic,
            Self::Relu => neurons::Activation::Relu,
            Self::Linear => neurons::Activation::Linear,
        }
    }
}

/// How neighbouring outputs are compared with their targets; $z$ are their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// $-\sum_k t_k \ln \mathrm{softmax}(z)_k$.
    Softmax,
    /// $-\sum_k t_k \ln\sigma(z_k) + (1 - t_k)\ln(1 - \sigma(z_k))$.
    Sigmoid,
    /// $\tfrac12\sum_k (z_k - t_k)^2$.
    Squared,
}

/// One layer: $f(b + xW)$.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Its name.
    pub name: String,
    /// $f$.
    pub activation: Activation,
    /// $W$, a row for each unit below and a column for each of its own.
    pub weights: Matrix,
    /// $b$.
    pub bias: Vec<f64>,
}

impl Dense {
    /// Number of units.
    pub fn len(&self) -> usize {
        self.bias.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.bias.is_empty()
    }
}

/// What stands beside the data in the input of a net that was made of a deep machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// The machine, as it was before the net was learned.
    pub machine: Machine,
    /// The layer whose means given the data, by mean field, stand there.
    pub layer: LayerId,
}

/// A feed-forward net. The last layer is linear: its [`Loss`] says what is made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    inputs: Vec<Layer>,
    posterior: Option<Posterior>,
    layers: Vec<Dense>,
    target: Target,
}

/// The name of the last layer.
pub const OUTPUT: &str = "output";

impl Network {
    /// A net of `layers` over the data layers `inputs`, beside which stand the means that `posterior` gives,
    /// if there is one.
    ///
    /// # Errors
    ///
    /// If there are no layers or no inputs, a layer does not fit the one below, the last layer is not
    /// linear or not as long as the target, a number is not finite, or two layers have one name.
    pub fn new(
        inputs: Vec<Layer>,
        posterior: Option<Posterior>,
        layers: Vec<Dense>,
        target: Target,
    ) -> Result<Self, Error> {
        let inputs = inputs.into_iter().map(bare).collect::<Result<Vec<_>, _>>()?;
        let network = Self { inputs, posterior, layers, target };
        network.check_inputs()?;
        network.check_layers()?;
        Ok(network)
    }

    fn check_inputs(&self) -> Result<(), Error> {
        // Names that occur twice are refused.
        Machine::new(self.inputs.clone(), Vec::new())?;
        let Some(Posterior { machine, layer }) = &self.posterior else { return Ok(()) };
        let wrong = |expected, found| Err(Error::Topology { model: "a net", expected, found });
        if !machine.hidden_layers().contains(layer) {
            return wrong("a hidden layer of a machine beside its input", described(machine));
        }
        for layer in &self.inputs {
            let same = |l: &Layer| {
                (&l.name, l.units, l.len(), l.role)
                    == (&layer.name, layer.units, layer.len(), Role::Visible)
            };
            if !machine.layers().iter().any(same) {
                let found = format!("found none like `{}` of {}", layer.name, layer.len());
                return wrong("its data layers in the machine beside its input", found);
            }
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<(), Error> {
        let Some(last) = self.layers.last() else {
            return Err(Error::Empty { what: "the list of layers of a net".into() });
        };
        let (mut below, mut n_below) = (String::from("the input"), self.n_inputs());
        for (l, layer) in self.layers.iter().enumerate() {
            let (expected, found) = ((n_below, layer.len()), layer.weights.shape());
            if expected != found || layer.is_empty() {
                let (first, second) = (below, layer.name.clone());
                return Err(Error::WeightShape { first, second, expected, found });
            }
            let numbers = [("weights", layer.weights.entries()), ("bias", &layer.bias)];
            for (what, numbers) in numbers {
                if let Some(entry) = numbers.iter().position(|x| !x.is_finite()) {
                    let (place, value) = (layer.name.clone(), numbers[entry]);
                    return Err(Error::ParameterValue { place, what, entry, value });
                }
            }
            if self.layers[..l].iter().any(|other| other.name == layer.name) {
                return Err(Error::Duplicate { what: format!("layer `{}`", layer.name) });
            }
            (below, n_below) = (layer.name.clone(), layer.len());
        }
        if last.activation != Activation::Linear {
            let found = format!("found another in `{}`", last.name);
            let expected = "a linear last layer: the target says what is made of it";
            return Err(Error::Topology { model: "a net", expected, found });
        }
        if self.target == Target::Input && last.len() != self.n_data() {
            let (what, expected) = ("the layer that gives the input back".into(), self.n_data());
            return Err(Error::Shape { what, expected, found: last.len() });
        }
        Ok(())
    }

    /// The layers that data goes into.
    pub fn inputs(&self) -> &[Layer] {
        &self.inputs
    }

    /// What stands beside the data, if something does.
    pub fn posterior(&self) -> Option<&Posterior> {
        self.posterior.as_ref()
    }

    /// The layers, from the data upwards.
    pub fn layers(&self) -> &[Dense] {
        &self.layers
    }

    /// What it is asked for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Entries of the data.
    pub fn n_data(&self) -> usize {
        self.inputs.iter().map(Layer::len).sum()
    }

    /// Numbers that come into the first layer.
    pub fn n_inputs(&self) -> usize {
        self.n_data() + self.posterior.as_ref().map_or(0, |p| p.machine.layer(p.layer).len())
    }

    /// Numbers that come out.
    pub fn n_outputs(&self) -> usize {
        self.layers.last().map_or(0, Dense::len)
    }

    /// Number of parameters that are learned.
    pub fn n_parameters(&self) -> usize {
        let of = |l: &Dense| l.bias.len() + l.weights.entries().len();
        self.layers.iter().map(of).sum()
    }

    /// How its outputs are compared with their targets, run by run.
    pub fn losses(&self) -> Vec<(Range<usize>, Loss)> {
        let all = 0..self.n_outputs();
        match self.target {
            Target::Classes => vec![(all, Loss::Softmax)],
            Target::Tags => vec![(all, Loss::Sigmoid)],
            Target::Values => vec![(all, Loss::Squared)],
            Target::Input => self.input_losses(),
        }
    }

    /// Entries of binary layers by sigmoids, categorical units by a softmax for each, others by squares.
    fn input_losses(&self) -> Vec<(Range<usize>, Loss)> {
        let (mut losses, mut start) = (Vec::new(), 0);
        for layer in &self.inputs {
            let all = start..start + layer.len();
            start = all.end;
            match layer.units.storage() {
                Storage::OneHot => {
                    let group = layer.units.group();
                    losses.extend(all.step_by(group).map(|k| (k..k + group, Loss::Softmax)));
                }
                _ if layer.units.is_zero_or_one() => losses.push((all, Loss::Sigmoid)),
                _ => losses.push((all, Loss::Squared)),
            }
        }
        losses
    }

    /// The data layers as a machine without couplings: what a [`Schema`](crate::schema::Schema) of the
    /// net speaks about.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn data_layers(&self) -> Result<Machine, Error> {
        Machine::new(self.inputs.clone(), Vec::new())
    }

    /// The layers, to change their numbers.
    pub(crate) fn layers_mut(&mut self) -> &mut [Dense] {
        &mut self.layers
    }
}

/// A data layer without parameters.
fn bare(layer: Layer) -> Result<Layer, Error> {
    let units: Units = layer.units;
    Layer::new(layer.name.clone(), Role::Visible, units, layer.n_units())
}
