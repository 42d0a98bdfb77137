//! Completing: missing values of a row get their means given the rest, $E[x_\text{missing} \mid
//! x_\text{observed}]$.
//!
//! Exactly where the terms of all rows that differ are affordable; by Gibbs sampling elsewhere, until a
//! stated error is reached ([`ERROR_SOUGHT`]), with an error bar for each cell. Rows that are
//! equal are looked at once and get the same answer.
//! Where nothing but the labels is missing, they get $p(y \mid v)$ by [`Model::classify`].

use super::averages::{Averages, ERROR_SOUGHT, Wanted, average};
use super::classify::{ClassMethod, Classifying};
use super::given::Given;
use super::sample::{Drawing, Found, Sampling, array};
use super::{arithmetic, pieces, visible_entries};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::verdict::{R_HAT_OF_SAMPLES, Verdict};
use crate::exact::{self, Budget, Query};
use crate::machine::{Clamp, LayerId, MOST_STEPS, Machine, State, check_memory};
use crate::models::Body;
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{MeanField, Sampler};
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// Rows looked at together.
const ROWS: usize = 512;
/// Rows that differ up to which each is asked what it would take.
const MOST_LOOKED_AT: usize = 1000;

/// Rows up to which samples are tempered where plain chains stick.
const MOST_TEMPERED: usize = 16;

/// How means are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filling {
    /// Exactly where that is affordable, else by Gibbs sampling.
    #[default]
    Auto,
    /// As sums over all states, or not at all.
    Exact,
    /// By Gibbs sampling.
    Gibbs,
    /// By mean field: fast, and with an error that is not known.
    MeanField,
}

/// How rows are completed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completing {
    /// How the means are found.
    pub method: Filling,
    /// Sweeps to average over, after as many to settle; by default as many as the error takes, up to a
    /// limit.
    pub sweeps: Option<usize>,
    /// Samples of each row beside the means: what might stand in its missing cells.
    pub draws: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// The arithmetic of the chains; by default single precision.
    pub arithmetic: Option<Arithmetic>,
}

impl Completing {
    /// Whether every setting is in its range.
    fn check(&self) -> Result<(), Error> {
        let (draws, most) = (self.draws, Wanted::most_draws(self.sweeps));
        if draws > most {
            let (value, range) = (draws.to_string(), "at most 8 for each sweep, 1024 by default");
            return Err(Error::Setting { name: "draws", value, range });
        }
        if let Some(sweeps) = self.sweeps.filter(|s| !(1..=MOST_STEPS).contains(s)) {
            let value = sweeps.to_string();
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
    /// The standard error of each value: 0 for what was observed or is exact, NaN where it is not
    /// known. A value ± 1.96 of it holds the exact mean in 95 % of the cases.
    pub errors: Array2<f64>,
    /// The same rows with their missing values drawn, as many for each row as were asked for, one row after the
    /// other: independent where the means are exact, those of the chains behind the means, or of parallel
    /// tempering where these chains stick and the rows are few.
    pub draws: Array2<f64>,
    /// How they were drawn, and whether that can be trusted.
    pub drawn_by: Option<(Found, Verdict)>,
    /// Units that were missing.
    pub n_missing: usize,
    /// What the classes are called whose probabilities stand behind the columns of the data, where nothing
    /// but the labels was missing.
    pub classes: Option<Vec<String>>,
    /// How the means were found; exact only if all of them are.
    pub method: Found,
    /// Whether they can be trusted.
    pub verdict: Verdict,
    /// The largest $\hat R$ of cells whose error is larger than the one sought.
    pub r_hat: Option<f64>,
    /// The most sweeps that were averaged; 0 if all is exact.
    pub sweeps: usize,
}

impl Completed {
    /// The largest standard error; NaN if one is not known.
    pub fn largest_error(&self) -> f64 {
        let larger = |a: f64, b: &f64| if b.is_nan() || *b > a { *b } else { a };
        self.errors.iter().fold(0.0, larger)
    }

    /// What a person should know about the numbers, if anything.
    pub fn warning(&self) -> Option<String> {
        let (error, sweeps) = (self.largest_error(), self.sweeps);
        match (self.verdict, self.r_hat) {
            (Verdict::NotMixed, Some(r)) => Some(format!(
                "the chains behind some cells have not mixed after {sweeps} sweeps: R-hat {r:.2} (at \
                 most {R_HAT_OF_SAMPLES}); the largest standard error, {error:.3}, may be too small"
            )),
            (Verdict::Mixed, Some(_)) => Some(format!(
                "the largest standard error is {error:.3} after {sweeps} sweeps, where \
                 {ERROR_SOUGHT} was sought"
            )),
            _ => None,
        }
    }
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
            _ if observed.is_none()
                && completing.draws == 0
                && self.lacks_labels_alone(data)? =>
            {
                self.label(data, completing.seed, listener)
            }
            Body::Machine(_) => self.given(data, observed)?.complete(completing, listener),
            Body::Dbn(_) => Err(Error::Topology {
                model: "completing",
                expected: "a machine, or a deep belief network with labels to be found",
                found: "found a deep belief network without labels, or a mask".into(),
            }),
            Body::Network(_) => Err(Error::NoDistribution),
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
        let (method, verdict) = match found.method {
            ClassMethod::MeanField => (Found::MeanField, Verdict::Unknown),
            ClassMethod::Ais => (Found::Annealed, Verdict::Unknown),
            ClassMethod::Recognition | ClassMethod::Network => {
                (Found::Recognition, Verdict::Unknown)
            }
            ClassMethod::Auto | ClassMethod::Exact => (Found::Exact, Verdict::Exact),
        };
        let unknown = if method == Found::Exact { 0.0 } else { f64::NAN };
        let errors = found
            .std_errors
            .unwrap_or_else(|| Array2::from_elem(found.probabilities.dim(), unknown));
        let mut all_errors = Array2::zeros((n_rows, n_columns));
        let labels = layers.layer_ids().find(|l| !filled.contains(l));
        let start: usize = layers
            .layer_ids()
            .take_while(|&l| Some(l) != labels)
            .map(|l| layers.layer(l).len())
            .sum();
        let place = start..start + errors.ncols();
        all_errors.slice_axis_mut(Axis(1), place.into()).assign(&errors);
        Ok(Completed {
            values: array(n_rows, n_columns, values),
            errors: all_errors,
            draws: Array2::zeros((0, n_columns)),
            drawn_by: None,
            n_missing: n_rows,
            classes: Some(found.classes),
            method,
            verdict,
            r_hat: None,
            sweeps: 0,
        })
    }
}

impl Given<'_> {
    /// The given rows with their missing units at their means.
    ///
    /// # Errors
    ///
    /// If exact means are asked for and there are too many terms, memory ends, or the listener
    /// cancels.
    pub fn complete(
        &self,
        completing: &Completing,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        completing.check()?;
        if completing.method == Filling::MeanField {
            return self.by_mean_field(completing, listener);
        }
        let (held, clamp) = self.held()?;
        let machine = self.model.top()?;
        // Rows that are equal have means in common, and samples of their own.
        let sets = match completing.draws {
            0 => exact::equal_rows(machine, &clamp, &held),
            _ => (0..held.n_rows()).map(|row| vec![row]).collect(),
        };
        let firsts: Vec<usize> = sets.iter().map(|rows| rows[0]).collect();
        let (exactly, by_chains) = split(machine, (&held, &clamp), &firsts, completing)?;
        let mut rows = Rows::new(machine, &held, completing.draws)?;
        let stream = Stream::new(completing.seed);
        if !exactly.is_empty() {
            let (x, clamp) = (held.select_rows(&exactly), clamp.select_rows(&exactly));
            let means = exact::conditional_means_with(machine, &clamp, &x, listener)?;
            for (k, &row) in exactly.iter().enumerate() {
                rows.put(row, visible_row(machine, &means, k), None);
            }
            if completing.draws > 0 {
                let (n, own) = (completing.draws, stream.fork(5));
                let drawn = exact::conditional_samples_with(machine, &clamp, &x, n, own, listener)?;
                for (k, &row) in exactly.iter().enumerate() {
                    let of_row = (k * n..(k + 1) * n).map(|d| visible_row(machine, &drawn, d));
                    rows.put_draws(row, of_row.collect());
                }
            }
        }
        let mut found = None;
        if !by_chains.is_empty() {
            let arithmetic = arithmetic(completing.arithmetic, Arithmetic::F32);
            let sampler = Sampler::new(machine.clone(), arithmetic);
            let wanted = Wanted { sweeps: completing.sweeps, draws: completing.draws };
            let mut averages = average(&sampler, self, &by_chains, wanted, stream, listener)?;
            for (k, &row) in by_chains.iter().enumerate() {
                rows.put(row, averages.means[k].clone(), Some(averages.errors[k].clone()));
                rows.put_draws(row, std::mem::take(&mut averages.draws[k]));
            }
            found = Some(averages);
        }
        for set in &sets {
            set[1..].iter().for_each(|&row| rows.copy(set[0], row));
        }
        let n_missing = (0..held.n_rows()).map(|row| missing(machine, &clamp, row)).sum();
        let completed = rows.completed(n_missing, found.as_ref());
        if completing.draws == 0 {
            return Ok(completed);
        }
        self.with_free_draws(completed, completing, listener)
    }

    /// The means of the factorised distribution that mean field finds.
    fn by_mean_field(
        &self,
        completing: &Completing,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        if completing.draws > 0 || completing.sweeps.is_some() {
            let (value, range) = ("mean-field".into(), "without samples and sweeps");
            return Err(Error::Setting { name: "method", value, range });
        }
        let (held, clamp) = self.held()?;
        let machine = self.model.top()?;
        let arithmetic = arithmetic(completing.arithmetic, Arithmetic::F32);
        let sampler = Sampler::new(machine.clone(), arithmetic);
        let mut rows = Rows::new(machine, &held, 0)?;
        for piece in pieces(held.n_rows(), ROWS) {
            let (start, end) = (piece.start, piece.end);
            let some: Vec<usize> = piece.collect();
            let (mut x, clamp) = (held.select_rows(&some), clamp.select_rows(&some));
            sampler.infer(&clamp, &mut x, MeanField::default())?;
            for row in 0..some.len() {
                let errors = unknown_errors(machine, &clamp, row);
                rows.put(start + row, visible_row(machine, &x, row), Some(errors));
            }
            tell(listener, "rows", end as u64, held.n_rows() as u64)?;
        }
        let n_missing = (0..held.n_rows()).map(|row| missing(machine, &clamp, row)).sum();
        let completed = rows.completed(n_missing, None);
        Ok(Completed { method: Found::MeanField, verdict: Verdict::Unknown, ..completed })
    }

    /// Where the chains behind samples stick and the rows are few, samples of parallel tempering in their place.
    fn with_free_draws(
        &self,
        mut completed: Completed,
        completing: &Completing,
        listener: &mut dyn Listener,
    ) -> Result<Completed, Error> {
        completed.drawn_by = Some((completed.method, completed.verdict));
        let unasked = completing.method == Filling::Auto && completing.sweeps.is_none();
        let sticks = unasked && completed.verdict == Verdict::NotMixed;
        if sticks && self.n_rows() <= MOST_TEMPERED {
            let Completing { seed, arithmetic, draws: n, .. } = *completing;
            let method = Sampling::Tempered;
            let drawing = Drawing { n, method, seed, arithmetic, ..Drawing::default() };
            let drawn = self.draw(&drawing, listener)?;
            completed.drawn_by = Some((drawn.method, drawn.trust.verdict));
            completed.draws = drawn.values;
        }
        Ok(completed)
    }
}

/// Which of the rows `firsts` are summed exactly, and which averaged by chains.
fn split(
    machine: &Machine,
    (held, clamp): (&State, &Clamp),
    firsts: &[usize],
    completing: &Completing,
) -> Result<(Vec<usize>, Vec<usize>), Error> {
    let all = || firsts.to_vec();
    match (completing.method, completing.sweeps) {
        (Filling::Exact, _) => return Ok((all(), Vec::new())),
        (Filling::Gibbs | Filling::MeanField, _) | (Filling::Auto, Some(_)) => {
            return Ok((Vec::new(), all()));
        }
        (Filling::Auto, None) => {}
    }
    let cost = |rows: &[usize]| {
        let (x, clamp) = (held.select_rows(rows), clamp.select_rows(rows));
        exact::cost(machine, &clamp, &x, Query::Means)
    };
    if cost(firsts)?.is_within(Budget::UNASKED) {
        return Ok((all(), Vec::new()));
    }
    if firsts.len() > MOST_LOOKED_AT {
        return Ok((Vec::new(), all()));
    }
    // Rows that would be affordable if all of them cost as much.
    let share = (firsts.len() as f64).log2();
    let mut parts = (Vec::new(), Vec::new());
    for &row in firsts {
        let mut of_row = cost(&[row])?;
        of_row.log2_total += share;
        let part = if of_row.is_within(Budget::UNASKED) { &mut parts.0 } else { &mut parts.1 };
        part.push(row);
    }
    Ok(parts)
}

/// NaN for every entry that is not held.
fn unknown_errors(machine: &Machine, clamp: &Clamp, row: usize) -> Vec<f64> {
    let of = |l: LayerId| {
        let layer = machine.layer(l);
        let held = move |i: usize| clamp.holds(l, row, i / layer.units.group());
        (0..layer.len()).map(move |i| if held(i) { 0.0 } else { f64::NAN })
    };
    machine.visible_layers().into_iter().flat_map(of).collect()
}

/// Visible units that a row misses.
fn missing(machine: &Machine, clamp: &Clamp, row: usize) -> usize {
    let of = |l: LayerId| {
        (0..machine.layer(l).n_units()).filter(|&unit| !clamp.holds(l, row, unit)).count()
    };
    machine.visible_layers().into_iter().map(of).sum()
}

/// The visible layers of one row side by side.
fn visible_row(machine: &Machine, x: &State, row: usize) -> Vec<f64> {
    machine.visible_layers().iter().flat_map(|&l| x.row(l, row)).copied().collect()
}

/// Values and errors while they are gathered.
struct Rows {
    values: Array2<f64>,
    errors: Array2<f64>,
    draws: Array2<f64>,
    n_draws: usize,
}

impl Rows {
    fn new(machine: &Machine, held: &State, n_draws: usize) -> Result<Self, Error> {
        let (n_rows, n) = (held.n_rows(), visible_entries(machine));
        let bytes = 8.0 * n as f64 * n_rows as f64 * (2 * n_draws) as f64;
        check_memory(bytes, || format!("{n_draws} samples of each of {n_rows} rows"))?;
        let (values, errors) = (Array2::zeros((n_rows, n)), Array2::zeros((n_rows, n)));
        Ok(Self { values, errors, draws: Array2::zeros((n_rows * n_draws, n)), n_draws })
    }

    fn put_draws(&mut self, row: usize, draws: Vec<Vec<f64>>) {
        for (d, values) in draws.into_iter().enumerate() {
            self.draws.row_mut(row * self.n_draws + d).assign(&ndarray::Array1::from(values));
        }
    }

    fn put(&mut self, row: usize, values: Vec<f64>, errors: Option<Vec<f64>>) {
        self.values.row_mut(row).assign(&ndarray::Array1::from(values));
        if let Some(errors) = errors {
            self.errors.row_mut(row).assign(&ndarray::Array1::from(errors));
        }
    }

    fn copy(&mut self, from: usize, to: usize) {
        for array in [&mut self.values, &mut self.errors] {
            let known = array.row(from).to_owned();
            array.row_mut(to).assign(&known);
        }
    }

    fn completed(self, n_missing: usize, averages: Option<&Averages>) -> Completed {
        let verdict = match averages {
            None => Verdict::Exact,
            Some(averages) if averages.have_mixed() => Verdict::Mixed,
            Some(_) => Verdict::NotMixed,
        };
        Completed {
            values: self.values,
            errors: self.errors,
            draws: self.draws,
            drawn_by: None,
            n_missing,
            classes: None,
            method: if averages.is_some() { Found::Gibbs } else { Found::Exact },
            verdict,
            r_hat: averages.and_then(|a| a.r_hat),
            sweeps: averages.map_or(0, |a| a.sweeps),
        }
    }
}
