//! Samples of a model, free or with part of each given.
//!
//! Exactly where that is affordable. Elsewhere by chains: of Gibbs sampling, with cluster moves where
//! the free units are a ferromagnet; where they do not mix, by parallel tempering. Of a deep belief
//! network the top RBM is sampled, followed by one pass down.

use super::chains::Plain;
use super::given::{Given, Known};
use super::tempered::{FEW_ROWS, temper};
use super::{arithmetic, visible_entries};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::verdict::{R_HAT_OF_SAMPLES, Trust, Verdict};
use crate::exact::{self, Budget, Query};
use crate::machine::{Base, Clamp, Layer, MOST_STEPS, Machine, Role, State, check_memory};
use crate::models::Body;
use crate::progress::{Listener, Silent};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{DbnSampler, MeanField, Pass, Sampler};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Sweeps of plain chains at first; by default they double while that promises to help.
const FIRST_SWEEPS: usize = 1000;
/// The same with cluster moves, which forget faster.
const FIRST_CLUSTER_SWEEPS: usize = 200;
/// Sweeps after which plain chains end in any case.
const MOST_SWEEPS: usize = 8000;

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
}

/// How samples are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Exactly where that is affordable, else by chains that have mixed, else by tempering; plain
    /// chains where sweeps are asked for.
    #[default]
    Auto,
    /// Independent draws from the distribution itself, or nothing.
    Exact,
    /// Plain chains of Gibbs sampling.
    Gibbs,
    /// Parallel tempering.
    Tempered,
}

/// How samples were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// As independent draws from the distribution itself.
    Exact,
    /// By plain chains of Gibbs sampling.
    Gibbs,
    /// By chains of Gibbs sampling and cluster moves.
    Cluster,
    /// By parallel tempering.
    Tempered,
    /// By the variational bound of each class.
    MeanField,
    /// By annealed importance sampling.
    Annealed,
    /// By draws of the recognition distribution of a deep belief network.
    Recognition,
}

impl Found {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Gibbs => "gibbs",
            Self::Cluster => "cluster",
            Self::Tempered => "tempered",
            Self::MeanField => "mean-field",
            Self::Annealed => "ais",
            Self::Recognition => "recognition",
        }
    }
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    /// Samples; with rows given, for each of them.
    pub n: usize,
    /// How they are found.
    pub method: Sampling,
    /// Sweeps before each sample of plain chains, or rounds of tempering; by default as many as it
    /// takes, up to a limit.
    pub sweeps: Option<usize>,
    /// The root of all randomness.
    pub seed: u64,
    /// What is shown of the visible units.
    pub show: Show,
    /// The arithmetic of the chains; by default the fastest.
    pub arithmetic: Option<Arithmetic>,
}

impl Default for Drawing {
    fn default() -> Self {
        Self {
            n: 100,
            method: Sampling::Auto,
            sweeps: None,
            seed: 0,
            show: Show::Values,
            arithmetic: None,
        }
    }
}

/// Samples: the visible layers side by side, a row each.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The values.
    pub values: Array2<f64>,
    /// How they were found.
    pub method: Found,
    /// Whether they can be trusted.
    pub trust: Trust,
    /// Sweeps before each sample, or rounds of tempering; 0 if exact.
    pub sweeps: usize,
    /// Ways of replicas from the hot end of a ladder to the machine and back, if there were ladders.
    pub round_trips: Option<u64>,
}

impl Drawn {
    /// What a person should know about the samples, if anything.
    pub fn warning(&self) -> Option<String> {
        let agree = self.trust.r_hat.is_none_or(|r| r <= R_HAT_OF_SAMPLES);
        match self.round_trips {
            Some(trips) if agree && self.trust.verdict == Verdict::NotMixed => Some(format!(
                "replicas of parallel tempering came round only {trips} times in {} rounds: what the \
                 cold end shows may not be all there is",
                self.sweeps
            )),
            _ => self.trust.warning(self.sweeps),
        }
    }
}

/// States of the machine that is sampled.
struct States {
    x: State,
    clamp: Clamp,
    method: Found,
    trust: Trust,
    sweeps: usize,
    round_trips: Option<u64>,
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
        let (method, sweeps) = (Sampling::Gibbs, Some(sweeps.0));
        let drawing = Drawing { n, method, sweeps, seed, ..Drawing::default() };
        Ok(self.draw(&drawing, &mut Silent)?.values)
    }

    /// Whether every setting is in its range, and the samples fit into memory: the chains, what is
    /// drawn from them, and the values that are returned.
    fn check(&self, drawing: &Drawing) -> Result<(), Error> {
        let &Drawing { n, sweeps, .. } = drawing;
        if n == 0 {
            return Err(Error::Setting { name: "n", value: "0".into(), range: "at least 1" });
        }
        if let Some(sweeps) = sweeps.filter(|s| *s > MOST_STEPS) {
            let value = sweeps.to_string();
            return Err(Error::Setting { name: "sweeps", value, range: "at most 10^15" });
        }
        let rows = self.n_rows();
        let entries: usize = self.model.top()?.layers().iter().map(Layer::len).sum();
        let shown: usize = self.model.body.visible().iter().map(|layer| layer.len()).sum();
        let bytes = n as f64 * rows as f64 * (entries + 2 * shown) as f64 * 8.0;
        check_memory(bytes, || format!("{n} samples for each of {rows} rows"))
    }

    /// The same with everything that can be set.
    ///
    /// # Errors
    ///
    /// If no sample is asked for, exact ones are and there are too many terms, memory ends, or the
    /// listener cancels.
    pub fn draw(&self, drawing: &Drawing, listener: &mut dyn Listener) -> Result<Drawn, Error> {
        self.check(drawing)?;
        let stream = Stream::new(drawing.seed);
        let states = self.states(drawing, stream, listener)?;
        let arithmetic = arithmetic(drawing.arithmetic, Arithmetic::I16);
        let States { x, clamp, method, trust, sweeps, round_trips } = states;
        let values = match &self.model.body {
            Body::Machine(machine) => {
                let x = match drawing.show {
                    Show::Values => x,
                    Show::Means => {
                        visible_means(&Sampler::new(machine.clone(), arithmetic), &clamp, x)?
                    }
                };
                visible_values(machine, &x)
            }
            Body::Dbn(dbn) => {
                let sampler = DbnSampler::new(dbn.clone(), arithmetic);
                let down = stream.fork(3);
                let pass = match drawing.show {
                    Show::Values => Pass::Samples(down),
                    Show::Means => Pass::LastMeans(down),
                };
                let drawn = sampler.generate(&x, pass)?;
                array(drawn.n_rows(), dbn.layer(0).len(), drawn.layer(0).to_vec())
            }
            Body::Network(_) => return Err(Error::NoDistribution),
        };
        Ok(Drawn { values, method, trust, sweeps, round_trips })
    }

    /// States of the machine that is sampled, by the method that was asked for or by the one that
    /// suits it.
    fn states(
        &self,
        drawing: &Drawing,
        stream: Stream,
        listener: &mut dyn Listener,
    ) -> Result<States, Error> {
        match (drawing.method, drawing.sweeps) {
            (Sampling::Exact, _) => self.exactly(drawing.n, stream, listener),
            (Sampling::Tempered, rounds) => self.by_tempering(drawing, rounds, stream, listener),
            (Sampling::Gibbs, sweeps) => {
                self.by_chains(drawing, Some(sweeps.unwrap_or(FIRST_SWEEPS)), stream, listener)
            }
            (Sampling::Auto, Some(sweeps)) => {
                self.by_chains(drawing, Some(sweeps), stream, listener)
            }
            (Sampling::Auto, None) => {
                let (held, clamp) = self.held()?;
                let cost = exact::cost(self.model.top()?, &clamp, &held, Query::Samples)?;
                if cost.is_within(Budget::SAMPLES) {
                    return self.exactly(drawing.n, stream, listener);
                }
                let plain = self.by_chains(drawing, None, stream, listener)?;
                if plain.trust.verdict == Verdict::Mixed || self.n_rows() > FEW_ROWS {
                    return Ok(plain);
                }
                self.by_tempering(drawing, None, stream, listener)
            }
        }
    }

    fn exactly(
        &self,
        n: usize,
        stream: Stream,
        listener: &mut dyn Listener,
    ) -> Result<States, Error> {
        let (held, clamp) = self.held()?;
        let machine = self.model.top()?;
        let x = exact::conditional_samples_with(machine, &clamp, &held, n, stream, listener)?;
        let of: Vec<usize> = (0..x.n_rows()).map(|row| row / n).collect();
        let trust = Trust::exact(x.n_rows());
        let clamp = clamp.select_rows(&of);
        Ok(States { x, clamp, method: Found::Exact, trust, sweeps: 0, round_trips: None })
    }

    /// By chains of as many sweeps as asked for; otherwise with cluster moves where there are some,
    /// and more sweeps while that promises to help.
    fn by_chains(
        &self,
        drawing: &Drawing,
        sweeps: Option<usize>,
        stream: Stream,
        listener: &mut dyn Listener,
    ) -> Result<States, Error> {
        let arithmetic = arithmetic(drawing.arithmetic, Arithmetic::I16);
        let sampler = Sampler::new(self.model.top()?.clone(), arithmetic);
        let mut chains = Plain::new(&sampler, self, drawing.n, stream)?;
        let clusters = sweeps.is_none() && chains.add_clusters(self)?;
        let first = if clusters { FIRST_CLUSTER_SWEEPS } else { FIRST_SWEEPS };
        let mut trust = chains.run(sweeps.unwrap_or(first), listener)?;
        while sweeps.is_none() && Plain::may_mix(&trust) && chains.sweeps() < MOST_SWEEPS {
            trust = chains.run(2 * chains.sweeps(), listener)?;
        }
        let method = if clusters { Found::Cluster } else { Found::Gibbs };
        let sweeps = chains.sweeps();
        let (x, clamp) = chains.into_samples();
        Ok(States { x, clamp, method, trust, sweeps, round_trips: None })
    }

    fn by_tempering(
        &self,
        drawing: &Drawing,
        rounds: Option<usize>,
        stream: Stream,
        listener: &mut dyn Listener,
    ) -> Result<States, Error> {
        let machine = self.model.top()?;
        let arithmetic = arithmetic(drawing.arithmetic, Arithmetic::F32);
        let sampler = Sampler::new(machine.clone(), arithmetic);
        let base = self.model.hot_end()?;
        let found = temper(&sampler, &base, self, (drawing.n, rounds), stream, listener)?;
        Ok(States {
            x: found.x,
            clamp: found.clamp,
            method: Found::Tempered,
            trust: found.trust,
            sweeps: found.rounds,
            round_trips: Some(found.round_trips),
        })
    }
}

impl Model {
    /// Where tempering begins: units with the means of the training data where the model remembers
    /// them.
    pub(super) fn hot_end(&self) -> Result<Base, Error> {
        let machine = self.top()?;
        let means = match &self.body {
            Body::Machine(_) => self.about.data.means(visible_entries(machine)),
            Body::Dbn(_) | Body::Network(_) => None,
        };
        means.map_or_else(
            || Base::of_middle(machine),
            |means| Base::from_visible_means(machine, &means),
        )
    }
}

/// The means of the free visible units given the hidden ones; what was given stays as it is.
pub(super) fn visible_means(
    sampler: &Sampler,
    given: &Clamp,
    mut x: State,
) -> Result<State, Error> {
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
