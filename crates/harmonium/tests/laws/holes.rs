//! Learning from rows in which values are missing: the gradient is that of the likelihood of what is
//! there, on every graph and kind of unit.

use crate::machines::{all, assert_gradient, extent};
use crate::model::Holed;
use crate::statistics::assert_mean;
use harmonium::engine::Arithmetic;
use harmonium::error::Error;
use harmonium::estimators::{
    ClampedGibbs, Context, Estimator, ExactModel, ExactPosterior, MeanFieldPosterior,
};
use harmonium::evaluation::row_sums::{RowWork, annealed_log_sums};
use harmonium::evaluation::{bound, likelihood};
use harmonium::exact;
use harmonium::machine::{Batch, Machine, State};
use harmonium::models::Rbm;
use harmonium::moments::Moments;
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Clamp, MeanField, Sampler};
use harmonium::schema::Feed;
use harmonium::training::{Plan, Posterior, Rule, Trainer, train};
use harmonium_data::synthetic::{Repeats, bars_and_stripes};
use harmonium_data::{Binarize, Dataset, Table};
use ndarray::Array2;

/// Every row of a data set, holes and all.
fn batch_of(machine: &Machine, data: &Dataset) -> Batch {
    let feed = Feed::of(machine, data).unwrap().filled_layers().unwrap();
    assert!(feed.has_holes());
    feed.batch(0..data.n_rows(), Stream::new(0))
}

fn moments_of(
    estimator: &mut dyn Estimator,
    machine: &Machine,
    batch: &Batch,
    arithmetic: Arithmetic,
    stream: Stream,
) -> Moments {
    let sampler = Sampler::new(machine.clone(), arithmetic);
    let context = Context { sampler: &sampler, batch, k: 1, stream };
    let mut moments = Moments::zeros(machine);
    estimator.estimate(&context).unwrap().add_to(machine, 1.0, &mut moments);
    moments
}

/// The mean of $\ln p$ of what each row has.
fn seen(machine: &Machine, batch: &Batch, x: &State) -> f64 {
    let logs = exact::log_probabilities(machine, batch.clamp(), x).unwrap();
    logs.iter().sum::<f64>() / logs.len() as f64
}

#[test]
fn the_gradient_with_holes_is_the_slope_of_the_likelihood_of_what_is_seen() {
    for (name, machine) in all() {
        let data = Holed::new(&machine, 71).data(&machine, 1);
        let batch = batch_of(&machine, &data);
        let side = |estimator: &mut dyn Estimator| {
            moments_of(estimator, &machine, &batch, Arithmetic::F64, Stream::new(0))
        };
        let gradient = side(&mut ExactPosterior::default()).minus(&side(&mut ExactModel));
        let x = batch.to_state(&machine).unwrap();
        assert_gradient(&name, &machine, &gradient, |m| seen(m, &batch, &x));
    }
}

#[test]
fn clamped_chains_over_missing_units_agree_with_sums() {
    for (name, machine) in all() {
        let data = Holed::new(&machine, 72).data(&machine, 8);
        let batch = batch_of(&machine, &data);
        let mut exact = ExactPosterior::default();
        let exact = moments_of(&mut exact, &machine, &batch, Arithmetic::F64, Stream::new(0));
        for arithmetic in [Arithmetic::F64, Arithmetic::F32] {
            let draws: Vec<Vec<f64>> = (0..extent(40, 150))
                .map(|seed| {
                    let mut gibbs = ClampedGibbs::new(60);
                    let stream = Stream::new(seed);
                    moments_of(&mut gibbs, &machine, &batch, arithmetic, stream).slices().concat()
                })
                .collect();
            for (i, expected) in exact.slices().concat().into_iter().enumerate() {
                let values: Vec<f64> = draws.iter().map(|d| d[i]).collect();
                // What is the same in every draw is known up to the rounding of the arithmetic.
                if values.iter().all(|v| (v - expected).abs() < 1e-6 * (1.0 + expected.abs())) {
                    continue;
                }
                assert_mean(&format!("{name}, {arithmetic:?}, moment {i}"), &values, expected);
            }
        }
    }
}

#[test]
fn mean_field_over_missing_units_climbs_its_bound() {
    let settings = MeanField { tolerance: 1e-12, max_sweeps: 10_000, damping: 0.0 };
    for (name, machine) in all() {
        let data = Holed::new(&machine, 73).data(&machine, 1);
        let batch = batch_of(&machine, &data);
        let bound = |m: &Machine| {
            let sampler = Sampler::new(m.clone(), Arithmetic::F64);
            let mut x = batch.to_state(m).unwrap();
            sampler.infer(batch.clamp(), &mut x, settings).unwrap();
            bound::unnormalised(m, batch.clamp(), &x).unwrap()
        };
        let x = batch.to_state(&machine).unwrap();
        let exact = exact::log_sums(&machine, batch.clamp(), &x).unwrap();
        for (bound, exact) in bound(&machine).iter().zip(&exact) {
            assert!(*bound <= exact + 1e-9, "{name}: the bound {bound} is above {exact}");
        }
        let mut posterior = MeanFieldPosterior::new(settings);
        let slope = moments_of(&mut posterior, &machine, &batch, Arithmetic::F64, Stream::new(0));
        assert_gradient(&name, &machine, &slope, |m| bound(m).iter().sum::<f64>() / 4.0);
    }
}

#[test]
fn the_free_units_of_a_row_are_a_machine_of_their_own() {
    for (name, machine) in all() {
        let holed = Holed::new(&machine, 75);
        for row in 0..4 {
            let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
            let rest = machine.rest(&clamp, &x, 0).unwrap();
            let expected = exact::log_sums(&machine, &clamp, &x).unwrap()[0];
            let Some(rest) = rest else {
                let energy = machine.energies(&x).unwrap()[0];
                assert!((expected + energy).abs() < 1e-9, "{name}: {expected} is not {}", -energy);
                continue;
            };
            let found = exact::log_partition(&rest.machine).unwrap();
            assert!(
                (found - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                "{name}: {found}, {expected}"
            );
            let one = State::zeros(&rest.machine, 1).unwrap();
            let of_rest = exact::moments(&rest.machine, &Clamp::none(), &one, &[1.0]).unwrap();
            let whole = exact::moments(&machine, &clamp, &x, &[1.0]).unwrap();
            for (found, (l, entries)) in of_rest.bias.iter().zip(&rest.entries) {
                for (found, &i) in found.iter().zip(entries) {
                    let expected = whole.bias[l.0][i];
                    assert!(
                        (found - expected).abs() < 1e-9,
                        "{name}, {l:?} {i}: {found}, {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn annealing_finds_the_sum_of_a_row_with_holes() {
    for (name, machine) in all() {
        let data = Holed::new(&machine, 76).data(&machine, 1);
        let batch = batch_of(&machine, &data);
        let x = batch.to_state(&machine).unwrap();
        let exact = exact::log_sums(&machine, batch.clamp(), &x).unwrap();
        for precision in extent(vec![Arithmetic::F32], vec![Arithmetic::F32, Arithmetic::F64]) {
            let sampler = Sampler::new(machine.clone(), precision);
            // A row without a value has the modes of the whole machine, and mean field one of them.
            let work = RowWork { betas: 100, chains: extent(100, 400), ..RowWork::default() };
            let found = annealed_log_sums(&sampler, batch.clamp(), &x, 0, &work).unwrap();
            for row in 0..x.n_rows() {
                let [error, below, above] = found.std_errors[row];
                let what = format!("{name}, {precision:?}, row {row}: {} in {found:?}", exact[row]);
                assert!((found.rows[row] - exact[row]).abs() <= 5.0 * error + 1e-5, "{what}");
                assert!(found.bounds[row] <= exact[row] + 1e-5, "{what}");
                assert!(found.lower[row] <= exact[row] + 5.0 * below + 1e-5, "{what}");
                assert!(found.upper[row] >= exact[row] - 5.0 * above - 1e-5, "{what}");
            }
        }
    }
}

#[test]
fn every_rule_learns_around_holes() {
    for (name, machine) in all() {
        let data = Holed::new(&machine, 74).data(&machine, 10);
        for rule in [Rule::Pcd, Rule::Cd, Rule::Pt, Rule::Exact] {
            for posterior in [Posterior::Auto, Posterior::MeanField, Posterior::Exact] {
                let plan =
                    Plan { rule, posterior, epochs: 3, batch: 7, ..Plan::suited_to(&machine) };
                let outcome = train(machine.clone(), &data, &plan, &mut []).unwrap();
                assert_eq!(outcome.steps, 18, "{name}, {rule:?}, {posterior:?}");
                let finite =
                    |m: &Machine| m.layers().iter().all(|l| l.bias.iter().all(|b| b.is_finite()));
                assert!(finite(&outcome.machine), "{name}, {rule:?}, {posterior:?}");
            }
        }
    }
}

/// Bars and stripes, of which a share of the pixels is gone.
fn broken(share: f64) -> (Dataset, Dataset) {
    let table = bars_and_stripes(3, Repeats::Counted).unwrap();
    let whole = Dataset::new(table.clone(), Binarize::None).unwrap();
    let rows: Vec<usize> = (0..20 * table.n_rows()).map(|row| row % table.n_rows()).collect();
    let many = table.select_rows(&rows).unwrap();
    let seen = Array2::from_shape_fn((many.n_rows(), many.n_columns()), |(row, c)| {
        Stream::new(5).uniform(Site::new(row, 0, 0), c) >= share
    });
    let holed = Dataset::new(many.with_mask(seen.view()).unwrap(), Binarize::None).unwrap();
    (whole, holed)
}

/// The same with every hole at the mean of its column, drawn once.
fn filled(holed: &Dataset) -> Dataset {
    let table = holed.table();
    let mean = |c: usize| {
        let there: Vec<f32> =
            (0..table.n_rows()).map(|row| table.at(row, c)).filter(|v| !v.is_nan()).collect();
        there.iter().sum::<f32>() / there.len() as f32
    };
    let means: Vec<f32> = (0..table.n_columns()).map(mean).collect();
    let mut values = Vec::new();
    for row in 0..table.n_rows() {
        for (c, mean) in means.iter().enumerate() {
            let v = table.at(row, c);
            values.push(if v.is_nan() { *mean } else { v });
        }
    }
    Dataset::new(Table::from_real(values, table.n_columns()).unwrap(), Binarize::Sample).unwrap()
}

/// Inside the engine and by moments alike, rows with holes teach more than rows that were filled.
#[test]
fn learning_around_holes_beats_filling_them() {
    let (whole, holed) = broken(0.3);
    let machine = Rbm::binary(9, 12).unwrap().into_machine();
    let score = |data: &Dataset, max_norm| {
        let plan = Plan {
            epochs: 60,
            batch: 20,
            learning_rate: 0.1,
            max_norm,
            l2: 0.0,
            ..Plan::default()
        };
        let machine = train(machine.clone(), data, &plan, &mut []).unwrap().machine;
        likelihood::exact(&machine, &whole).unwrap().mean
    };
    let imputed = score(&filled(&holed), None);
    // A max-norm that nothing reaches keeps the step out of the engine.
    for max_norm in [None, Some(1e6)] {
        let around = score(&holed, max_norm);
        assert!(around > imputed + 0.3, "{max_norm:?}: {around} around holes, {imputed} filled");
    }
}

#[test]
fn a_run_with_holes_resumes_as_if_it_had_not_stopped() {
    let (_, holed) = broken(0.2);
    let machine = Rbm::binary(9, 5).unwrap().into_machine();
    let plan = Plan { epochs: 4, batch: 50, ..Plan::default() };
    let mut through = Trainer::new(machine.clone(), &holed, &plan).unwrap();
    through.run(&mut []).unwrap();
    let mut first = Trainer::new(machine, &holed, &plan).unwrap();
    for _ in 0..9 {
        harmonium::training::Learner::step(&mut first).unwrap();
    }
    let mut second = Trainer::resume(&first.checkpoint(), &holed, &plan).unwrap();
    second.run(&mut []).unwrap();
    assert_eq!(through.machine(), second.machine());
}

#[test]
fn what_cannot_be_learned_from_is_said() {
    let machine = Rbm::binary(3, 2).unwrap().into_machine();
    let table = Table::from_real(vec![1.0, f32::NAN, 0.0, 0.0, f32::NAN, 1.0], 3).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let error = train(machine, &data, &Plan::default(), &mut []).unwrap_err();
    assert!(matches!(error, Error::EmptyColumn { column: 1, n_rows: 2 }), "{error}");
}
