//! Scores and ln Z of a model of one machine against enumeration.

use crate::machines::{all, assert_close, named};
use crate::model::{Holed, cells, seeing_each_other};
use harmonium::evaluation::log_partition::{self, Settings};
use harmonium::exact;
use harmonium::machine::{Machine, State};
use harmonium::model::{Behind, Scoring, Visits};
use harmonium::progress::{Listener, Silent, Work};
use harmonium::sampling::{Clamp, posterior_factorises};
use harmonium::{Dataset, Error, Method, Model, Score};

/// Little work, with a fixed seed.
fn annealing() -> Settings {
    Settings { betas: Some(200), chains: Some(100), seed: 3, ..Settings::default() }
}

fn scored(model: &Model, data: &Dataset, method: Method) -> Score {
    let scoring = Scoring { method, annealing: annealing(), ..Scoring::default() };
    model.score_with(data, &scoring, &mut Silent).unwrap()
}

/// $\ln \sum e^{-E}$ over all states that agree with the clamp; with real units, the sums that other
/// laws hold against integrals.
fn log_sum(machine: &Machine, clamp: &Clamp, x: &State) -> f64 {
    match exact::states(machine, clamp, x, 0) {
        Ok(states) => {
            let energies = machine.energies(&states).unwrap();
            let least = energies.iter().copied().fold(f64::INFINITY, f64::min);
            energies.iter().map(|e| (least - e).exp()).sum::<f64>().ln() - least
        }
        Err(_) => exact::log_sums(machine, clamp, x).unwrap()[0],
    }
}

/// $\ln p$ of what each row observes.
fn log_probabilities(machine: &Machine, holed: &Holed) -> Vec<f64> {
    let log_z = log_sum(machine, &Clamp::none(), &State::zeros(machine, 1).unwrap());
    let of = |row| log_sum(machine, &holed.clamp(machine, row), &holed.state(machine, row)) - log_z;
    (0..4).map(of).collect()
}

fn whole(machine: &Machine, seed: u64) -> Holed {
    let mut holed = Holed::new(machine, seed);
    holed.observed.iter_mut().flatten().for_each(|held| *held = true);
    holed
}

#[test]
fn exact_scores_sum_out_what_is_missing() {
    for (name, machine) in all() {
        for holed in [Holed::new(&machine, 50), whole(&machine, 51)] {
            let (model, data) = (Model::from(machine.clone()), holed.data(&machine, 1));
            let expected = log_probabilities(&machine, &holed);
            for method in [Method::Exact, Method::Auto] {
                let found = model.score(&data, method).unwrap();
                assert_eq!((found.method, found.n), (Method::Exact, 4), "{name}");
                for (a, b) in expected.iter().zip(&found.rows) {
                    assert_close(*a, *b, 1e-9, &name);
                }
                let n = found.rows.len() as f64;
                let mean = found.rows.iter().sum::<f64>() / n;
                let squares: f64 = found.rows.iter().map(|r| (r - mean).powi(2)).sum();
                assert_close(mean, found.mean, 1e-12, &name);
                assert_close(
                    (squares / (n - 1.0) / n).sqrt(),
                    found.data_std_error.unwrap(),
                    1e-12,
                    "the spread is divided by n - 1",
                );
                assert_eq!(found.interval(), Some((found.mean, Some(found.mean))), "{name}");
            }
        }
    }
}

#[test]
fn a_layer_that_the_data_lacks_is_summed_out() {
    let mut tried = 0;
    let more = ("visible layers that see each other".to_owned(), seeing_each_other());
    for (name, machine) in all().into_iter().chain([more]) {
        let first = machine.visible_layers()[0];
        let n = machine.layer(first).len();
        let mut holed = whole(&machine, 52);
        if n == holed.array(&machine, 1).ncols() || n == cells(&machine).len() {
            // One layer, or as many columns as all layers have units: those are categories.
            continue;
        }
        tried += 1;
        for (i, cell) in cells(&machine).iter().enumerate() {
            holed.observed.iter_mut().for_each(|row| row[i] = cell.layer == first);
        }
        let part = holed.array(&machine, 1).slice_axis(ndarray::Axis(1), (..n).into()).to_owned();
        let data = Dataset::from_array(part.view()).unwrap();
        let found = Model::from(machine.clone()).score(&data, Method::Exact).unwrap();
        assert_eq!(found.dimensions, n, "{name}");
        for (a, b) in log_probabilities(&machine, &holed).iter().zip(&found.rows) {
            assert_close(*a, *b, 1e-9, &name);
        }
    }
    assert!(tried >= 2);
}

/// Weights count in the mean and in the interval alike.
#[test]
fn the_score_is_the_weighted_mean_whatever_the_method() {
    let machine = named("rbm of binary");
    let holed = whole(&machine, 53);
    let weights = vec![10.0, 0.1, 3.0, 0.2];
    let data = holed.data(&machine, 1).with_weights(weights.clone()).unwrap();
    let model = Model::from(machine.clone());
    let rows = log_probabilities(&machine, &holed);
    let total: f64 = weights.iter().sum();
    let mean = rows.iter().zip(&weights).map(|(r, w)| r * w).sum::<f64>() / total;
    let equal = rows.iter().sum::<f64>() / 4.0;
    assert!((mean - equal).abs() > 0.05, "weights that matter: {mean} and {equal}");
    let exact = scored(&model, &data, Method::Exact);
    assert_close(mean, exact.mean, 1e-10, "exact");
    for method in [Method::Ais, Method::Bound] {
        // Sums of the rows of an RBM are exact, and so is ln Z here: the interval has no width.
        let settings = Settings { method: Some(log_partition::Method::Exact), ..annealing() };
        let scoring = Scoring { method, annealing: settings, ..Scoring::default() };
        let found = model.score_with(&data, &scoring, &mut Silent).unwrap();
        assert_close(mean, found.mean, 1e-6, "mean");
        let (lower, upper) = found.interval().unwrap();
        assert!(lower <= found.mean + 1e-9, "{method}: {lower} is above {}", found.mean);
        assert!((lower - mean).abs() < 1e-3, "{method}: {lower} is far from {mean}");
        if let Some(upper) = upper {
            assert!((upper - mean).abs() < 1e-3, "{method}: {upper} is far from {mean}");
        }
        let spread = found.data_std_error.unwrap();
        assert_close(exact.data_std_error.unwrap(), spread, 1e-5, "spread");
        let Behind::Estimated { estimate, .. } = &found.behind else { panic!("an estimate") };
        assert_close(found.mean, estimate.mean, 1e-12, "one mean");
        assert_close(spread, estimate.data_std_error.unwrap(), 1e-12, "one spread");
    }
}

#[test]
fn annealed_intervals_contain_the_exact_score_and_bounds_are_below_it() {
    for (name, machine) in all() {
        let holed = whole(&machine, 54);
        let (model, data) = (Model::from(machine.clone()), holed.data(&machine, 1));
        let exact = log_probabilities(&machine, &holed).iter().sum::<f64>() / 4.0;
        let ais = scored(&model, &data, Method::Ais);
        let (lower, upper) = ais.interval().unwrap();
        let more = 2.0 * ais.std_error().unwrap() + 1e-9;
        let (lower, upper) = (lower - more, upper.unwrap() + more);
        assert!(lower <= exact && exact <= upper, "{name}: {lower} {exact} {upper}");
        assert!(upper - lower < 1.0, "{name}: an interval of {} nats", upper - lower);
        let settings = Settings { method: Some(log_partition::Method::Exact), ..annealing() };
        let scoring = Scoring { method: Method::Bound, annealing: settings, ..Scoring::default() };
        let bound = model.score_with(&data, &scoring, &mut Silent).unwrap();
        for (b, e) in bound.rows.iter().zip(log_probabilities(&machine, &holed)) {
            assert!(*b <= e + 1e-9, "{name}: a bound of {b} for {e}");
            if posterior_factorises(&machine, &Clamp::visible(&machine)) {
                assert_close(e, *b, 1e-5, "the bound is tight where the posterior factorises");
            }
        }
        assert!(bound.interval().unwrap().0 <= exact + 1e-9, "{name}");
    }
}

/// $\ln PL$ by letting one unit go at a time, and $F = -\ln\sum_h e^{-E}$.
#[test]
fn pseudo_likelihood_and_free_energy_are_what_they_are_defined_as() {
    let mut tried = [0, 0];
    for (name, machine) in all() {
        let holed = whole(&machine, 55);
        let (model, data) = (Model::from(machine.clone()), holed.data(&machine, 1));
        let visible = Clamp::visible(&machine);
        let free = model.score(&data, Method::FreeEnergy).unwrap();
        assert!(free.interval().is_none() && free.log_likelihood().is_none());
        for row in 0..4 {
            let exact = -log_sum(&machine, &visible, &holed.state(&machine, row));
            let found = free.rows[row];
            if posterior_factorises(&machine, &visible) {
                tried[0] += 1;
                assert_close(exact, found, 1e-9, &name);
            } else {
                assert!(found >= exact - 1e-9, "{name}: {found} is below {exact}");
            }
        }
        let Ok(pseudo) = model.score(&data, Method::Pseudo) else { continue };
        tried[1] += 1;
        for row in 0..4 {
            let x = holed.state(&machine, row);
            let with_all = log_sum(&machine, &visible, &x);
            let mut expected = 0.0;
            for i in 0..cells(&machine).len() {
                let mut freed = whole(&machine, 55);
                freed.observed[row][i] = false;
                expected += with_all - log_sum(&machine, &freed.clamp(&machine, row), &x);
            }
            assert_close(expected, pseudo.rows[row], 1e-9, &name);
        }
        let one = Scoring { method: Method::Pseudo, visits: Visits::One, ..Scoring::default() };
        assert!(model.score_with(&data, &one, &mut Silent).unwrap().mean.is_finite());
        let holes = Holed::new(&machine, 56).data(&machine, 1);
        assert!(matches!(model.score(&holes, Method::Pseudo), Err(Error::Shape { .. })), "{name}");
    }
    assert!(tried[0] >= 20 && tried[1] >= 4, "{tried:?}");
}

#[test]
fn methods_that_do_not_fit_say_so() {
    let machine = named("rbm of binary");
    let (model, data) = (Model::from(machine.clone()), whole(&machine, 57).data(&machine, 1));
    let error = model.score(&data, Method::Importance).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("deep belief network") && words.contains("`ais`"), "{words}");
    let narrow = Dataset::from_array(ndarray::arr2(&[[0.0]]).view()).unwrap();
    assert!(matches!(model.score(&narrow, Method::Exact), Err(Error::ColumnCount { .. })));
}

#[test]
fn log_partition_is_the_sum_over_all_states() {
    for (name, machine) in all() {
        let expected = log_sum(&machine, &Clamp::none(), &State::zeros(&machine, 1).unwrap());
        let model = Model::from(machine.clone());
        for method in [None, Some(log_partition::Method::Exact)] {
            let settings = Settings { method, ..annealing() };
            let found = model.log_partition(&settings, &mut Silent).unwrap();
            assert_close(expected, found.log_z, 1e-9, &name);
            assert_eq!((found.lower, found.upper), (found.log_z, found.log_z), "{name}");
        }
        let settings = Settings { method: Some(log_partition::Method::Sandwich), ..annealing() };
        let found = model.log_partition(&settings, &mut Silent).unwrap();
        // Each end has a margin of 97.5 %, about two standard errors: here it has four.
        let more = 2.0 * found.std_error + 1e-9;
        let (lower, upper) = (found.lower - more, found.upper + more);
        assert!(lower <= expected && expected <= upper, "{name}: {lower} {expected} {upper}");
        assert!(found.width() < 1.0, "{name}: {}", found.width());
    }
}

/// Counts what it hears and cancels at once.
#[derive(Default)]
struct Cancels(u64);

impl Listener for Cancels {
    fn at(&mut self, _work: Work<'_>) {
        self.0 += 1;
    }

    fn cancelled(&mut self) -> bool {
        true
    }
}

#[test]
fn a_listener_stops_every_verb() {
    let machine = named("rbm of binary");
    let (model, data) = (Model::from(machine.clone()), whole(&machine, 58).data(&machine, 1));
    let cancelled = |what: &str, result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Cancelled { .. })), "{what}: {result:?}");
    };
    let mut listener = Cancels::default();
    let drawing = harmonium::model::Drawing::default();
    cancelled("sample", model.freely().draw(&drawing, &mut listener).map(drop));
    let completing = harmonium::model::Completing::default();
    let found = model.complete_with(&data, None, &completing, &mut listener).map(drop);
    cancelled("complete", found);
    let extracting = harmonium::model::Extracting::default();
    cancelled("features", model.features_with(&data, &extracting, &mut listener).map(drop));
    for method in [Method::Exact, Method::Ais, Method::Bound, Method::Pseudo, Method::FreeEnergy] {
        let scoring = Scoring { method, annealing: annealing(), ..Scoring::default() };
        let found = model.score_with(&data, &scoring, &mut listener).map(drop);
        cancelled(&method.to_string(), found);
    }
    cancelled("portrait", model.portrait(Some(&data), 0, None, &mut listener).map(drop));
    let settings = Settings { method: Some(log_partition::Method::Sandwich), ..annealing() };
    cancelled("ln Z", model.log_partition(&settings, &mut listener).map(drop));
    assert!(listener.0 > 9, "the listener also hears how far the work is");
}
