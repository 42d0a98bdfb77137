//! Samples of a model, free or with part of each given.
//!
//! Gibbs sampling of the machine; of a deep belief network, Gibbs sampling of its top RBM and one pass
//! down.

use super::given::{Given, Known};
use super::{arithmetic, visible_entries};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Clamp, Layer, MOST_STEPS, Machine, Role, State, check_memory};
use crate::models::Body;
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{DbnSampler, MeanField, Pass, Sampler};
use ndarray::Array2;

/// Sweeps between two looks at the progress.
const PIECE: usize = 50;

/// A number of sweeps of Gibbs sampling: every free unit is drawn once in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweeps(pub usize);

/// What is shown of the visible units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// The values that were drawn.
    #[default]
    Values,
    /// Their means given the hidden units: smoother pictures. Where visible units see each other, the
    /// means are those of mean field.
    Means,
    /// Their means, but the values where visible units see each other: there only what was drawn
    /// shows how.
    Picture,
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    /// Samples; with rows given, for each of them.
    pub n: usize,
    /// Sweeps before each sample.
    pub sweeps: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// What is shown of the visible units.
    pub show: Show,
    /// The arithmetic of the chains; by default the fastest.
    pub arithmetic: Option<Arithmetic>,
}

impl Default for Drawing {
    fn default() -> Self {
        Self { n: 100, sweeps: 1000, seed: 0, show: Show::Values, arithmetic: None }
    }
}

/// Samples: the visible layers side by side, a row each.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The values.
    pub values: Array2<f64>,
}

impl Model {
    /// `n` samples, each after `sweeps` sweeps of Gibbs sampling, a row each: the visible layers side by
    /// side.
    ///
    /// # Errors
    ///
    /// If `n` is zero or memory ends.
    pub fn sample(&self, n: usize, sweeps: Sweeps, seed: u64) -> Result<Array2<f64>, Error> {
        self.freely().sample(n, sweeps, seed)
    }

    /// The model with nothing given.
    pub fn freely(&self) -> Given<'_> {
        Given { model: self, known: Known::Nothing }
    }
}

impl Given<'_> {
    /// `n` samples (for each given row, if rows are given) after `sweeps` sweeps of Gibbs sampling over
    /// the free units.
    ///
    /// # Errors
    ///
    /// If `n` is zero or memory ends.
    pub fn sample(&self, n: usize, sweeps: Sweeps, seed: u64) -> Result<Array2<f64>, Error> {
        let drawing = Drawing { n, sweeps: sweeps.0, seed, ..Drawing::default() };
        Ok(self.draw(&drawing, &mut Silent)?.values)
    }

    /// Whether every setting is in its range, and the samples fit into memory: the chains, what is
    /// drawn from them, and the values that are returned.
    fn check(&self, drawing: &Drawing) -> Result<(), Error> {
        let &Drawing { n, sweeps, .. } = drawing;
        if n == 0 {
            return Err(Error::Setting { name: "n", value: "0".into(), range: "at least 1" });
        }
        if sweeps > MOST_STEPS {
            let value = sweeps.to_string();
            return Err(Error::Setting { name: "sweeps", value, range: "at most 10^15" });
        }
        let rows = match &self.known {
            Known::Rows { values, .. } => values.n_rows(),
            Known::Nothing | Known::Class(_) => 1,
        };
        let entries: usize = self.model.top().layers().iter().map(Layer::len).sum();
        let shown: usize = self.model.body.visible().iter().map(|layer| layer.len()).sum();
        let bytes = n as f64 * rows as f64 * (entries + 2 * shown) as f64 * 8.0;
        check_memory(bytes, || format!("{n} samples for each of {rows} rows"))
    }

    /// The same with everything that can be set.
    ///
    /// # Errors
    ///
    /// If no sample is asked for, memory ends, or the listener cancels.
    pub fn draw(&self, drawing: &Drawing, listener: &mut dyn Listener) -> Result<Drawn, Error> {
        self.check(drawing)?;
        let stream = Stream::new(drawing.seed);
        let (x, clamp) = self.start(drawing.n, stream)?;
        let arithmetic = arithmetic(drawing.arithmetic, Arithmetic::I16);
        let values = match &self.model.body {
            Body::Machine(machine) => {
                let sampler = Sampler::new(machine.clone(), arithmetic);
                let x = sweep(&sampler, &clamp, x, drawing.sweeps, stream, listener)?;
                let x = if shows_means(machine, drawing.show) {
                    visible_means(&sampler, &clamp, x)?
                } else {
                    x
                };
                visible_values(machine, &x)
            }
            Body::Dbn(dbn) => {
                let sampler = DbnSampler::new(dbn.clone(), arithmetic);
                let x = sweep(sampler.top(), &clamp, x, drawing.sweeps, stream, listener)?;
                let down = stream.fork(3);
                let pass = match drawing.show {
                    Show::Values => Pass::Samples(down),
                    Show::Means | Show::Picture => Pass::LastMeans(down),
                };
                let drawn = sampler.generate(&x, pass)?;
                array(drawn.n_rows(), dbn.layer(0).len(), drawn.layer(0).to_vec())
            }
        };
        Ok(Drawn { values })
    }
}

/// Runs the chains in pieces, so that progress can be shown.
fn sweep(
    sampler: &Sampler,
    clamp: &Clamp,
    mut x: State,
    sweeps: usize,
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<State, Error> {
    for done in (0..sweeps).step_by(PIECE) {
        let n = PIECE.min(sweeps - done);
        sampler.gibbs(clamp, &mut x, n, stream.fork(2).fork(done as u64))?;
        tell(listener, "sampling", (done + n) as u64, sweeps as u64)?;
    }
    Ok(x)
}

fn shows_means(machine: &Machine, show: Show) -> bool {
    let visible = machine.visible_layers();
    let lateral = visible.iter().any(|&l| visible.iter().any(|&m| machine.coupled(l, m)));
    match show {
        Show::Values => false,
        Show::Means => true,
        Show::Picture => !lateral,
    }
}

/// The means of the free visible units given the hidden ones; what was given stays as it is.
fn visible_means(sampler: &Sampler, given: &Clamp, mut x: State) -> Result<State, Error> {
    let (machine, mut clamp) = (sampler.machine(), given.clone());
    let hidden = machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden);
    hidden.for_each(|l| clamp.hold_layer(l));
    sampler.infer(&clamp, &mut x, MeanField::default())?;
    Ok(x)
}

/// The visible layers side by side.
pub(super) fn visible_values(machine: &Machine, x: &State) -> Array2<f64> {
    let (visible, n_columns) = (machine.visible_layers(), visible_entries(machine));
    let mut values = Vec::with_capacity(x.n_rows() * n_columns);
    for row in 0..x.n_rows() {
        visible.iter().for_each(|&l| values.extend_from_slice(x.row(l, row)));
    }
    array(x.n_rows(), n_columns, values)
}

/// Values row by row as an array.
///
/// # Panics
///
/// If there are more or fewer.
pub(super) fn array(n_rows: usize, n_columns: usize, values: Vec<f64>) -> Array2<f64> {
    Array2::from_shape_vec((n_rows, n_columns), values)
        .expect("as many values as rows times columns")
}
