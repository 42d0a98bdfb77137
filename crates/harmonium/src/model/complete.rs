//! Completing: missing values of a row get their means given the rest.
//!
//! The observed units are held while Gibbs sampling runs; the means of the missing ones are averaged
//! over the second half of the sweeps (Rao–Blackwell: means, not samples, are averaged),
//! $$E[x_\text{missing} \mid x_\text{observed}] \approx \tfrac1T \sum_{t=T+1}^{2T}
//!   E[x_\text{missing} \mid x^{(t)}_\text{rest}].$$
//! Where nothing but the labels is missing, they get $p(y \mid v)$ by [`Model::classify`].

use super::classify::Classifying;
use super::given::Given;
use super::sample::array;
use super::{arithmetic, pieces, visible_entries};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Clamp, LayerId, MOST_STEPS, State};
use crate::models::Body;
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::Sampler;
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::{Array2, ArrayView2};

/// Rows looked at together.
const ROWS: usize = 512;

/// How rows are completed.
#[derive(Clone, Copy, Debug)]
pub struct Completing {
    /// Sweeps to average over, after as many to settle.
    pub sweeps: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// The arithmetic of the chains; by default single precision.
    pub arithmetic: Option<Arithmetic>,
}

impl Default for Completing {
    fn default() -> Self {
        Self { sweeps: 500, seed: 0, arithmetic: None }
    }
}

impl Completing {
    /// Whether every setting is in its range.
    fn check(&self) -> Result<(), Error> {
        if !(1..=MOST_STEPS).contains(&self.sweeps) {
            let value = self.sweeps.to_string();
            return Err(Error::Setting { name: "sweeps", value, range: "from 1 to 10^15" });
        }
        Ok(())
    }
}

/// Rows without holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// The visible layers side by side: observed values as they were, missing ones at their means.
    pub values: Array2<f64>,
    /// Units that were missing.
    pub n_missing: usize,
    /// What the classes are called whose probabilities stand behind the columns of the data, where nothing
    /// but the labels was missing.
    pub classes: Option<Vec<String>>,
}

impl Model {
    /// Fills the missing cells of `data` with their means given the rest of their row.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or memory ends.
    pub fn complete(&self, data: &Dataset) -> Result<Array2<f64>, Error> {
        Ok(self.complete_with(data, None, &Completing::default(), &mut Silent)?.values)
    }

    /// The same with a mask (1 is observed; one row holds for all) and everything that can be set.
    ///
    /// # Errors
    ///
    /// If the data or the mask does not fit, memory ends, or the listener cancels.
    pub fn complete_with(
        &self,
        data: &Dataset,
        observed: Option<ArrayView2<'_, bool>>,
        completing: &Completing,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        completing.check()?;
        match &self.body {
            _ if observed.is_none() && self.lacks_labels_alone(data)? => {
                self.label(data, completing.seed, listener)
            }
            Body::Machine(_) => self.given(data, observed)?.complete(completing, listener),
            Body::Dbn(_) => Err(Error::Topology {
                model: "completing",
                expected: "a machine, or a deep belief network with labels to be found",
                found: "found a deep belief network without labels, or a mask".into(),
            }),
        }
    }

    /// Whether the labels of `data` are missing, and nothing else.
    fn lacks_labels_alone(&self, data: &Dataset) -> Result<bool, Error> {
        if self.labels().is_none() || data.labels().is_some() || data.has_missing() {
            return Ok(false);
        }
        let layers = self.data_layers()?;
        let feed = Feed::new(&layers, &self.schema(data)?, data)?;
        Ok(feed.lacks_labels_alone())
    }

    /// Rows with the probabilities of their classes in the place of their labels.
    fn label(
        &self,
        data: &Dataset,
        seed: u64,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        let classifying = Classifying { seed, ..Classifying::default() };
        let found = self.classify_with(data, &classifying, listener)?;
        let layers = self.data_layers()?;
        let feed = Feed::new(&layers, &self.schema(data)?, data)?;
        let (filled, n_rows) = (feed.filled(), data.n_rows());
        let n_columns = visible_entries(&layers);
        let mut values = Vec::with_capacity(n_rows * n_columns);
        for rows in pieces(n_rows, ROWS) {
            let x = feed.batch(rows.clone(), Stream::new(0)).to_state(&layers)?;
            for (row, of) in rows.enumerate() {
                for l in layers.layer_ids() {
                    if filled.contains(&l) {
                        values.extend_from_slice(x.row(l, row));
                    } else {
                        values.extend(found.probabilities.row(of));
                    }
                }
            }
        }
        let values = array(n_rows, n_columns, values);
        Ok(Completed { values, n_missing: n_rows, classes: Some(found.classes) })
    }
}

impl Given<'_> {
    /// The given rows with their missing units at their means.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn complete(
        &self,
        completing: &Completing,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        completing.check()?;
        let stream = Stream::new(completing.seed);
        let (mut x, clamp) = self.start(1, stream)?;
        let arithmetic = arithmetic(completing.arithmetic, Arithmetic::F32);
        let sampler = Sampler::new(self.model.top().clone(), arithmetic);
        let sums = conditional_sums(&sampler, &clamp, &mut x, completing.sweeps, stream, listener)?;
        let machine = sampler.machine();
        let n_columns = visible_entries(machine);
        let mut values = Vec::with_capacity(x.n_rows() * n_columns);
        let mut n_missing = 0;
        for row in 0..x.n_rows() {
            for (&l, sums) in machine.visible_layers().iter().zip(&sums) {
                let (len, group) = (machine.layer(l).len(), machine.layer(l).units.group());
                for i in 0..len {
                    let held = clamp.holds(l, row, i / group);
                    n_missing += usize::from(!held && i % group == 0);
                    let mean = sums[row * len + i] / completing.sweeps as f64;
                    values.push(if held { x.row(l, row)[i] } else { mean });
                }
            }
        }
        let values = array(x.n_rows(), n_columns, values);
        Ok(Completed { values, n_missing, classes: None })
    }
}

/// The means of the visible units given all the rest, summed over the second half of the sweeps.
/// Units of visible layers that see each other count with the values that were drawn: the mean of one
/// given the mean of the other would be another thing.
fn conditional_sums(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &mut State,
    sweeps: usize,
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<Vec<Vec<f64>>, Error> {
    let visible = sampler.machine().visible_layers();
    let machine = sampler.machine();
    let alone = |l: &&LayerId| visible.iter().all(|&m| !machine.coupled(**l, m));
    let averaged: Vec<LayerId> = visible.iter().filter(alone).copied().collect();
    let mut sums: Vec<Vec<f64>> = visible.iter().map(|&l| vec![0.0; x.layer(l).len()]).collect();
    for sweep in 0..2 * sweeps {
        sampler.gibbs(clamp, x, 1, stream.fork(3).fork(sweep as u64))?;
        if sweep >= sweeps {
            let means = sampler.conditional_means(clamp, x, &averaged)?;
            for (sum, &l) in sums.iter_mut().zip(&visible) {
                sum.iter_mut().zip(means.layer(l)).for_each(|(s, m)| *s += m);
            }
        }
        tell(listener, "completing", sweep as u64 + 1, 2 * sweeps as u64)?;
    }
    Ok(sums)
}
