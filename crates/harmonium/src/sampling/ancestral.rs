//! The two ways through a deep belief network: recognition upwards, generation downwards.
//!
//! $$q(h \mid v) = q(h_1 \mid v)\, q(h_2 \mid h_1) \cdots, \qquad
//!   p(v, h_1, \dots \mid h_{L-1}) = p(h_{L-2} \mid h_{L-1}) \cdots p(v \mid h_1)$$
//!
//! Each factor is one visit of one layer of a two-layer machine, so both ways are the walk that
//! every sampler takes. A sample of the model is a sample of the top RBM (Gibbs sampling) and one
//! pass down (Hinton, Osindero & Teh 2006).

use super::walk::{Heat, Response, Walk};
use super::{Clamp, Label, Sampler};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Batch, LayerId, LayerState, Machine, Meaning, State};
use crate::models::{Dbn, Directed};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::Stream;

/// What a pass makes of the layers it comes through.
#[derive(Clone, Copy, Debug)]
pub enum Pass {
    /// Samples, each layer given the sample before it.
    Samples(Stream),
    /// Means, each layer given the means before it.
    Means,
    /// Samples, and means of the layer the pass ends in.
    LastMeans(Stream),
}

impl Pass {
    /// What step `step` of `n_steps` responds with. Its variates are those of the step.
    fn response(self, step: usize, n_steps: usize) -> Response {
        match self {
            Self::LastMeans(_) if step + 1 == n_steps => Response::Mean,
            Self::Samples(stream) | Self::LastMeans(stream) => {
                Response::Sample { stream: stream.fork(step as u64), sweep: 0 }
            }
            Self::Means => Response::Mean,
        }
    }
}

/// A [`Dbn`] and the samplers of its parts.
#[derive(Clone, Debug)]
pub struct DbnSampler {
    dbn: Dbn,
    generative: Vec<Sampler>,
    recognition: Vec<Sampler>,
    top: Sampler,
}

impl DbnSampler {
    /// Lays out every part for the numbers of an arithmetic.
    pub fn new(dbn: Dbn, arithmetic: Arithmetic) -> Self {
        let lay = |m: &Machine| Sampler::new(m.clone(), arithmetic);
        Self {
            generative: dbn.directed().iter().map(|d| lay(&d.generative)).collect(),
            recognition: dbn.directed().iter().map(|d| lay(&d.recognition)).collect(),
            top: lay(dbn.top()),
            dbn,
        }
    }

    /// The network.
    pub fn dbn(&self) -> &Dbn {
        &self.dbn
    }

    /// Gives the network away.
    pub fn into_dbn(self) -> Dbn {
        self.dbn
    }

    /// The sampler of the RBM on top.
    pub fn top(&self) -> &Sampler {
        &self.top
    }

    /// Changes the parameters of the network, not its shape; the samplers follow.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Dbn) -> R) -> R {
        let result = change(&mut self.dbn);
        let follow = |sampler: &mut Sampler, now: &Machine| {
            sampler.change(|machine| machine.copy_parameters(now));
        };
        for (l, part) in self.dbn.directed().iter().enumerate() {
            follow(&mut self.generative[l], &part.generative);
            follow(&mut self.recognition[l], &part.recognition);
        }
        follow(&mut self.top, self.dbn.top());
        result
    }
}

/// Values of the layers below the top RBM's hidden one, for a number of samples.
#[derive(Clone, Debug)]
pub struct DbnState {
    n_rows: usize,
    /// From the data upwards: visible, $h_1, \dots, h_{L-1}$.
    layers: Vec<LayerState>,
    /// The labels in the data, if it had them.
    labels: Option<LayerState>,
}

impl DbnState {
    /// Samples given row by row: the columns of the visible layer and, where the model has labels,
    /// perhaps one for each class behind them. The hidden layers are zero.
    ///
    /// # Errors
    ///
    /// If the columns do not fit, or a value is impossible for its units.
    pub fn from_rows(dbn: &Dbn, n_columns: usize, values: &[f64]) -> Result<Self, Error> {
        let batch = Batch::from_given_rows(&dbn.data_layers()?, n_columns, values)?;
        Self::from_batch(dbn, &batch)
    }

    /// The same for a batch of the layers that data fills, see [`Dbn::data_layers`]; labels that
    /// the batch does not hold are not known.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn from_batch(dbn: &Dbn, batch: &Batch) -> Result<Self, Error> {
        let layers = dbn.data_layers()?;
        let mut x = batch.to_state(&layers)?;
        x.layers.iter_mut().for_each(LayerState::pack);
        let labels = if x.layers.len() > 1 { x.layers.pop() } else { None };
        let labels = labels.filter(|_| batch.clamp().holds_layer(LayerId(1)));
        let n_rows = x.n_rows();
        let mut layers = x.layers;
        for part in dbn.directed() {
            let zeros = State::zeros(&part.recognition, n_rows)?;
            layers.extend(zeros.layers.into_iter().nth(Directed::ABOVE.0));
        }
        Ok(Self { n_rows, layers, labels })
    }

    /// Overwrites a layer in all rows.
    ///
    /// # Errors
    ///
    /// If there is no such layer below the top RBM's hidden one, or there are not as many values
    /// as it has entries.
    pub fn set_layer(&mut self, l: usize, values: &[f64]) -> Result<(), Error> {
        let (n, n_rows) = (self.layers.len(), self.n_rows);
        let shape =
            |what: &str, expected, found| Error::Shape { what: what.into(), expected, found };
        let layer = self.layers.get_mut(l).ok_or(shape("a layer number", n, l))?;
        if values.len() != layer.len * n_rows {
            return Err(shape("the values of a layer", layer.len * n_rows, values.len()));
        }
        layer.numbers_mut().copy_from_slice(values);
        layer.meaning = Meaning::Values;
        Ok(())
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// All rows of a layer, one after the other; layer 0 is visible.
    ///
    /// # Panics
    ///
    /// If there is no such layer below the top RBM's hidden one.
    pub fn layer(&self, l: usize) -> &[f64] {
        self.layers[l].numbers()
    }

    /// The values of a layer in one row.
    ///
    /// # Panics
    ///
    /// As [`DbnState::layer`], or if there is no such row.
    pub fn row(&self, l: usize, row: usize) -> &[f64] {
        let len = self.layers[l].len;
        &self.layer(l)[row * len..(row + 1) * len]
    }

    /// The class of each row, where the data had it.
    pub fn labels(&self) -> Vec<Label> {
        let Some(labels) = &self.labels else { return vec![Label::Unknown; self.n_rows] };
        let class =
            |row: &[f64]| row.iter().position(|x| *x == 1.0).map_or(Label::Unknown, Label::Known);
        labels.numbers().chunks_exact(labels.len).map(class).collect()
    }

    /// Adds the rows of the layer below the top, which holds samples, to `bits`.
    pub(crate) fn append_top_bits(&self, bits: &mut BitMatrix) {
        let Some(below) = self.layers.last() else { return };
        for row in 0..self.n_rows {
            if let Some(packed) = below.bits() {
                bits.push_words(packed.row(row));
            } else {
                let values = &below.numbers()[row * below.len..(row + 1) * below.len];
                bits.push_row(|i| values[i] == 1.0);
            }
        }
    }

    /// The values of the top RBM's visible layers; its other layers, and labels that are not
    /// known, are at their neutral means.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn to_top(&self, dbn: &Dbn) -> Result<State, Error> {
        let mut x = State::neutral(dbn.top(), self.n_rows)?;
        if let Some(below) = self.layers.last() {
            x.layers[Dbn::BELOW_TOP.0] = below.clone();
        }
        if let Some(labels) = &self.labels {
            x.layers[Dbn::LABELS.0] = labels.clone();
        }
        Ok(x)
    }
}

impl DbnSampler {
    /// Goes up: replaces the hidden layers below the top by what the recognition distribution makes
    /// of the visible one.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn recognise(&self, x: &mut DbnState, pass: Pass) -> Result<(), Error> {
        let n = self.dbn.directed().len();
        for l in 0..n {
            let up = self.conditional(l, Way::Up);
            x.layers[l + 1] = up.respond(&x.layers[l], x.n_rows, pass.response(l, n))?;
        }
        Ok(())
    }

    /// Goes down: the layers that generation makes of the top RBM's visible layer in `top`.
    ///
    /// # Errors
    ///
    /// If `top` is not a state of the top RBM, or memory ends.
    pub fn generate(&self, top: &State, pass: Pass) -> Result<DbnState, Error> {
        top.check(self.dbn.top())?;
        let (n, n_rows) = (self.dbn.directed().len(), top.n_rows());
        let mut layers = vec![top.layers[Dbn::BELOW_TOP.0].clone()];
        for (step, l) in (0..n).rev().enumerate() {
            let down = self.conditional(l, Way::Down);
            let below = down.respond(&layers[step], n_rows, pass.response(step, n))?;
            layers.push(below);
        }
        layers.reverse();
        let labels = self.dbn.labels().map(|_| top.layers[Dbn::LABELS.0].clone());
        Ok(DbnState { n_rows, layers, labels })
    }
}

/// One conditional of a two-layer machine.
struct Conditional<'a> {
    sampler: &'a Sampler,
    from: LayerId,
    to: LayerId,
}

impl Conditional<'_> {
    /// What the layer it is about makes of the values of the other.
    fn respond(
        &self,
        values: &LayerState,
        n_rows: usize,
        response: Response,
    ) -> Result<LayerState, Error> {
        let mut x = State::zeros(self.sampler.graph(), n_rows)?;
        x.layers[self.from.0] = values.clone();
        let clamp = Clamp::none();
        let walk =
            Walk { engine: self.sampler.engine(), clamp: &clamp, heat: Heat::None, step: 1.0 };
        walk.visit_all(&mut x, &[self.to], response);
        x.layers[self.to.0].meaning = match response {
            Response::Mean => Meaning::Means,
            Response::Sample { .. } | Response::Mode => Meaning::Values,
        };
        Ok(x.layers.swap_remove(self.to.0))
    }
}

/// Which of the two ways of a directed layer is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

impl DbnSampler {
    /// $\theta$ of the layer that the conditional `way` of directed layer `l` is about, given rows
    /// of the other.
    pub(crate) fn thetas(&self, l: usize, way: Way, given: &[f64]) -> Result<Vec<f64>, Error> {
        let Conditional { sampler, from, to } = self.conditional(l, way);
        let machine = sampler.graph();
        let mut state = State::zeros(machine, given.len() / machine.layer(from).len())?;
        state.set_layer(from, given);
        Ok(sampler.natural_parameters(&mut state, to))
    }

    fn conditional(&self, l: usize, way: Way) -> Conditional<'_> {
        let (sampler, from, to) = match way {
            Way::Up => (&self.recognition[l], Directed::BELOW, Directed::ABOVE),
            Way::Down => (&self.generative[l], Directed::ABOVE, Directed::BELOW),
        };
        Conditional { sampler, from, to }
    }

    /// The two layers of directed layer `l` as a state of either machine: those of `x`, and the
    /// same with the layer that `way` is about at its conditional means.
    pub(crate) fn pair(&self, x: &DbnState, l: usize, way: Way) -> Result<[State; 2], Error> {
        let conditional = self.conditional(l, way);
        let mut seen = State::zeros(conditional.sampler.graph(), x.n_rows)?;
        seen.layers.clone_from_slice(&x.layers[l..l + 2]);
        let mut expected = seen.clone();
        expected.layers[conditional.to.0] =
            conditional.respond(&x.layers[l + conditional.from.0], x.n_rows, Response::Mean)?;
        Ok([seen, expected])
    }
}
