//! A model judged by all there is to see: its run, its chains, its samples, its score.
//!
//! Each look costs a fixed amount of work that is known beforehand. What cannot be afforded is left out,
//! and the findings say what was not looked at.

use super::{Drawing, Method, Sampling, Score, Scoring, Show};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::baseline::Gain;
use crate::evaluation::log_partition::Settings;
use crate::evaluation::two_sample::{LEAST_ROWS, Samples, TwoSample, compare};
use crate::exact::{self, Budget};
use crate::findings::Evidence;
use crate::machine::{Clamp, LayerId};
use crate::models::Body;
use crate::progress::Listener;
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::posterior_factorises;
use crate::schema::Feed;
use crate::spread::real_layers;
use crate::units::gaussian::PRECISION;
use harmonium_data::Dataset;

/// Samples that are compared with data, each from a chain of its own.
const SAMPLES: usize = 250;
/// Fewest and most sweeps of their chains.
const SWEEPS: (f64, f64) = (50.0, 1000.0);
/// Rows of data that samples are compared with.
const ROWS: usize = 1000;
/// Rows that are scored beside a baseline.
const SCORED: usize = 100;
/// Chains and temperatures of the annealing, where a score needs one.
const ANNEALING: (usize, usize) = (50, 500);
/// The least and the most work of a judgement, in multiplications: the most is a few seconds.
const WORK: (f64, f64) = (1e9, 6e10);
/// Its share of the work of a training.
const SHARE: f64 = 0.1;
/// What one row costs in one epoch, for each parameter.
const LEARNED: f64 = 6.0;

/// How a model is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judging {
    /// Multiplications that a look may cost.
    pub work: f64,
    /// The root of all randomness.
    pub seed: u64,
    /// The arithmetic of the chains.
    pub arithmetic: Option<Arithmetic>,
}

impl Judging {
    /// As thoroughly as takes a few seconds.
    pub fn thorough(seed: u64, arithmetic: Option<Arithmetic>) -> Self {
        Self { work: WORK.1, seed, arithmetic }
    }

    /// In a small part of the work that the training of `model` on `rows` rows took.
    pub fn after_training(
        model: &Model,
        epochs: u64,
        rows: usize,
        seed: u64,
        arithmetic: Option<Arithmetic>,
    ) -> Self {
        let learned = epochs as f64 * rows as f64 * LEARNED * model.body.n_parameters() as f64;
        Self { work: (SHARE * learned).clamp(WORK.0, WORK.1), seed, arithmetic }
    }
}

impl Model {
    /// Adds to what is known of a run what its model shows: whether chains mix, samples against `data`,
    /// the score beside a baseline. What cannot be looked at, or costs too much, stays unknown.
    ///
    /// # Errors
    ///
    /// If the listener cancels.
    pub fn judge(
        &self,
        evidence: &mut Evidence,
        data: Option<&Dataset>,
        judging: &Judging,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        let known = |error: Error| match error {
            cancelled @ Error::Cancelled { .. } => Err(cancelled),
            _ => Ok(()),
        };
        evidence.at_bounds = self.at_bounds();
        if evidence.mixing.is_empty() {
            let found =
                self.mixing_within(judging.work, judging.seed, judging.arithmetic, listener);
            evidence.mixing = found.or_else(|e| known(e).map(|()| Vec::new()))?;
        }
        let Some(data) = data else { return Ok(()) };
        if evidence.two_sample.is_none() {
            let found = self.against(data, judging, listener);
            evidence.two_sample = found.or_else(|e| known(e).map(|()| None))?;
        }
        if evidence.gain.is_none() {
            let found = self.quick_gain(data, judging.seed, listener);
            evidence.gain = found.or_else(|e| known(e).map(|()| None))?;
        }
        Ok(())
    }

    /// How many real columns have a precision at the end of its range, and of how many; nothing where there are none, or
    /// where it is not known from where they started.
    fn at_bounds(&self) -> Option<(usize, usize)> {
        const ROUNDING: f64 = 1e-6;
        let Body::Machine(machine) = &self.body else { return None };
        let real = real_layers(machine);
        let [l] = real[..] else { return None };
        let spread = self.about.data.spread.as_ref()?;
        let start = spread.precisions(machine.has_lateral(l))?;
        let own = machine.layer(l).own().row(0);
        let ends = [PRECISION.start() * (1.0 + ROUNDING), PRECISION.end() * (1.0 - ROUNDING)];
        let at_end = |(own, start): (&f64, &f64)| own / start <= ends[0] || own / start >= ends[1];
        let n = own.iter().zip(&start).filter(|&pair| at_end(pair)).count();
        (own.len() == start.len()).then_some((n, own.len()))
    }

    /// Samples of the model against rows of data, as values.
    fn against(
        &self,
        data: &Dataset,
        judging: &Judging,
        listener: &mut dyn Listener,
    ) -> Result<Option<TwoSample>, Error> {
        let rows = super::portrait::some_rows(data, ROWS)?;
        let layers = self.data_layers()?;
        let feed = Feed::new(&layers, &self.schema(&rows)?, &rows)?;
        if feed.has_holes() {
            return Ok(None);
        }
        let n = SAMPLES.min(rows.n_rows());
        let sweeps = judging.work / (n as f64 * self.top()?.n_parameters() as f64);
        if n < LEAST_ROWS || sweeps < SWEEPS.0 || feed.filled().first() != Some(&LayerId(0)) {
            return Ok(None);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let drawing = Drawing {
            n,
            method: Sampling::Gibbs,
            sweeps: Some(sweeps.min(SWEEPS.1) as usize),
            seed: judging.seed,
            show: Show::Values,
            arithmetic: judging.arithmetic,
        };
        let width = layers.layer(LayerId(0)).len();
        let drawn = self.freely().draw(&drawing, listener)?.values;
        let drawn = drawn.rows().into_iter().flat_map(|row| row.to_vec()[..width].to_vec());
        let generated = Samples::from_rows(width, &drawn.collect::<Vec<_>>())?;
        let x = feed.batch(0..rows.n_rows(), Stream::new(0)).to_state(&layers)?;
        let seen = (0..x.n_rows()).flat_map(|row| x.row(LayerId(0), row).to_vec());
        let seen = Samples::from_rows(width, &seen.collect::<Vec<_>>())?;
        compare(&generated, &seen, None, Stream::new(judging.seed).fork(320)).map(Some)
    }

    /// By how much the model is better than a baseline, on some rows and with little work: exactly where
    /// that costs little, else by pseudo-likelihood, else by quick annealing.
    fn quick_gain(
        &self,
        data: &Dataset,
        seed: u64,
        listener: &mut dyn Listener,
    ) -> Result<Option<Gain>, Error> {
        let rows = super::portrait::some_rows(data, SCORED)?;
        let annealing = Settings {
            chains: Some(ANNEALING.0),
            betas: Some(ANNEALING.1),
            seed,
            ..Settings::default()
        };
        let method = self.quick_method()?;
        let scoring = Scoring { method, annealing, ..Scoring::default() };
        let score: Score = self.score_with(&rows, &scoring, listener)?;
        Ok(score.gain)
    }

    fn quick_method(&self) -> Result<Method, Error> {
        let Body::Machine(machine) = &self.body else { return Ok(Method::Bound) };
        let clamp = Clamp::visible(machine);
        let factorises = posterior_factorises(machine, &clamp);
        let terms = exact::log2_terms(machine, &Clamp::none(), 1)?;
        let row = exact::log2_terms(machine, &clamp, 1)? + (SCORED as f64).log2();
        if Budget::PAGE.affords(terms) && Budget::PAGE.affords(row) {
            return Ok(Method::Exact);
        }
        let finite = |&l: &LayerId| machine.layer(l).units.is_finite();
        Ok(match (factorises, machine.visible_layers().iter().all(finite)) {
            (true, true) => Method::Pseudo,
            (true, false) => Method::Ais,
            (false, _) => Method::Bound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::findings;
    use crate::model::{Blueprint, Training};
    use crate::models::Rbm;
    use crate::progress::Silent;
    use crate::training::Plan;
    use crate::units::Units;
    use ndarray::Array2;

    /// A precision at either end of its range is said, and one inside it is not.
    #[test]
    fn precisions_at_the_end_of_their_range_are_said() {
        let values = Array2::from_shape_fn((40, 3), |(i, j)| ((7 * i + 3 * j) * i % 11) as f64);
        let data = Dataset::from_array(values.view()).unwrap();
        let machine = Rbm::new((Units::Gaussian, 3), (Units::Binary, 2)).unwrap().into_machine();
        let plan = Plan { epochs: 1, ..Plan::suited_to(&machine) };
        let training = Training::new(Blueprint::Machine(machine), &data, &plan);
        let mut model = training.run(&mut [], &mut Silent).unwrap();
        let said = |model: &Model| {
            let evidence = Evidence { at_bounds: model.at_bounds(), ..Evidence::of(&[]) };
            let found = findings(&evidence);
            found.into_iter().map(|f| f.what).find(|what| what.contains("the end of its range"))
        };
        assert_eq!((model.at_bounds(), said(&model)), (Some((0, 3)), None));
        let spread = model.about.data.spread.clone().unwrap();
        let start = spread.precisions(false).unwrap();
        let Body::Machine(machine) = &mut model.body else { panic!("a machine was trained") };
        let layer = machine.visible_layers()[0].0;
        let own = &mut machine.layers_mut()[layer].own;
        (own[0], own[2]) = (PRECISION.start() * start[0], PRECISION.end() * start[2]);
        let what = said(&model).expect("two columns are at their ends");
        assert!(what.starts_with("The precision of 2 of 3 real columns"), "{what}");
    }
}
