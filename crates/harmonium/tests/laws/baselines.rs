//! The baselines against counting and densities by hand; what a score says beside them.

use crate::machines::{assert_close, noise};
use harmonium::evaluation::baseline::{Fitted, Spread};
use harmonium::machine::{Layer, Machine, Role};
use harmonium::schema::Feed;
use harmonium::units::Units;
use harmonium::{Bm, Dataset, Method, Model, Plan, Rbm};
use harmonium_data::synthetic::{Repeats, bars_and_stripes};
use harmonium_data::{Binarize, Labels};
use ndarray::{Array2, array};

fn layers(units: Units, n: usize) -> Machine {
    Machine::new(vec![Layer::new("visible", Role::Visible, units, n).unwrap()], Vec::new()).unwrap()
}

fn scores(machine: &Machine, train: &Dataset, test: &Dataset) -> (Vec<f64>, Option<Vec<f64>>) {
    let fitted = Fitted::of(machine, train).unwrap().unwrap();
    let found = fitted.score(&Feed::of(machine, test).unwrap()).unwrap();
    (found.independent.rows, found.gaussian.map(|g| g.rows))
}

#[test]
fn finite_units_are_counted_and_smoothed() {
    let train = array![[0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]];
    let test = array![[1.0, 1.0], [0.0, 0.0], [f64::NAN, 1.0]];
    // Counts plus one half: 3.5 of 5, and 4.5 of 5.
    let expected = [(0.7_f64 * 0.9).ln(), (0.3_f64 * 0.1).ln(), 0.9_f64.ln()];
    let data = |x: &Array2<f64>| Dataset::from_array(x.view()).unwrap();
    let (binary, none) = scores(&layers(Units::Binary, 2), &data(&train), &data(&test));
    assert!(none.is_none(), "bits have no Gaussian");
    let as_spins = |x: &Array2<f64>| data(&x.mapv(|v| 2.0 * v - 1.0));
    let (spins, _) = scores(&layers(Units::Spin, 2), &as_spins(&train), &as_spins(&test));
    // Three categories, of which one never occurs: counts plus one half of 4 + 3/2.
    let (codes, _) = scores(&layers(Units::Categorical { q: 3 }, 2), &data(&train), &data(&test));
    let p = |k: f64| (k + 0.5) / 5.5;
    let of_codes = [(p(3.0) * p(4.0)).ln(), (p(1.0) * p(0.0)).ln(), p(4.0).ln()];
    for (row, expected) in expected.iter().enumerate() {
        assert_close(*expected, binary[row], 1e-12, "binary");
        assert_close(*expected, spins[row], 1e-12, "spin");
        assert_close(of_codes[row], codes[row], 1e-12, "categorical");
    }
}

/// Rows of three correlated columns of very different scales.
fn correlated(n: usize, seed: u64) -> Array2<f64> {
    Array2::from_shape_fn((n, 3), |(row, column)| {
        let shared = noise(seed, 4 * row);
        let own = noise(seed, 4 * row + 1 + column);
        [1.0, 20.0, 0.2][column] * (shared + 0.5 * own) + [0.0, 7.0, -3.0][column]
    })
}

/// The log-density of a row under a Gaussian with this mean and covariance.
fn log_density(x: &[f64], mean: &[f64], covariance: &Array2<f64>) -> f64 {
    let n = x.len();
    let (mut a, mut y, mut log_det) = (covariance.clone(), vec![0.0; n], 0.0);
    let mut rest: Vec<f64> = x.iter().zip(mean).map(|(x, m)| x - m).collect();
    // Gauss's elimination, and the sum of squares on the way.
    let mut squares = 0.0;
    for i in 0..n {
        (y[i], log_det) = (rest[i], log_det + a[[i, i]].ln());
        squares += y[i] * y[i] / a[[i, i]];
        for j in i + 1..n {
            let f = a[[j, i]] / a[[i, i]];
            rest[j] -= f * y[i];
            for k in i..n {
                a[[j, k]] -= f * a[[i, k]];
            }
        }
    }
    -0.5 * (squares + log_det + n as f64 * std::f64::consts::TAU.ln())
}

/// Means, and covariances with correlations as they were shrunk.
fn moments(x: &Array2<f64>, shrinkage: f64) -> (Vec<f64>, Array2<f64>) {
    let n = x.nrows() as f64;
    let mean: Vec<f64> = x.columns().into_iter().map(|c| c.sum() / n).collect();
    let covariance = Array2::from_shape_fn((x.ncols(), x.ncols()), |(i, j)| {
        let pairs = x.rows().into_iter().map(|r| (r[i] - mean[i]) * (r[j] - mean[j]));
        pairs.sum::<f64>() / n * if i == j { 1.0 } else { 1.0 - shrinkage }
    });
    (mean, covariance)
}

#[test]
fn real_units_have_their_density_alone_and_together() {
    let x = correlated(60, 3).mapv(|v| f64::from(v as f32));
    let machine = layers(Units::Gaussian, 3);
    let data = Dataset::from_array(x.view()).unwrap();
    let spread = Spread::of(&machine, &Feed::of(&machine, &data).unwrap()).unwrap();
    assert!(spread.shrinkage > 0.0 && spread.shrinkage < 0.1, "{}", spread.shrinkage);
    let (mean, covariance) = moments(&x, spread.shrinkage);
    let mut holed = x.clone();
    holed[[1, 1]] = f64::NAN;
    holed.row_mut(2).fill(f64::NAN);
    let test = Dataset::from_array(holed.view()).unwrap();
    let (alone, together) = scores(&machine, &data, &test);
    let together = together.unwrap();
    for row in 0..holed.nrows() {
        let held: Vec<usize> = (0..3).filter(|&c| !holed[[row, c]].is_nan()).collect();
        let pick = |of: &dyn Fn(usize) -> f64| held.iter().map(|&c| of(c)).collect::<Vec<_>>();
        let (values, mean) = (pick(&|c| holed[[row, c]]), pick(&|c| mean[c]));
        let full = Array2::from_shape_fn((held.len(), held.len()), |(i, j)| {
            covariance[[held[i], held[j]]]
        });
        let diagonal =
            Array2::from_shape_fn(full.dim(), |(i, j)| if i == j { full[[i, j]] } else { 0.0 });
        assert_close(log_density(&values, &mean, &full), together[row], 1e-5, "together");
        assert_close(log_density(&values, &mean, &diagonal), alone[row], 1e-5, "alone");
    }
    let total = |rows: &[f64]| rows.iter().sum::<f64>();
    assert!(total(&together) > total(&alone) + 20.0, "correlated columns are better together");
}

/// With fewer rows than columns sample correlations cannot be inverted; shrunk ones can, and on
/// columns that are independent they hardly differ from none.
#[test]
fn few_rows_are_shrunk() {
    let x = |seed| Array2::from_shape_fn((10, 40), |(r, c)| noise(seed, 40 * r + c));
    let (train, test) = (x(1), x(2));
    let machine = layers(Units::Gaussian, 40);
    let train = Dataset::from_array(train.view()).unwrap();
    let spread = Spread::of(&machine, &Feed::of(&machine, &train).unwrap()).unwrap();
    assert!(spread.shrinkage > 0.5, "{}", spread.shrinkage);
    let (alone, together) = scores(&machine, &train, &Dataset::from_array(test.view()).unwrap());
    let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
    let (alone, together) = (mean(&alone), mean(&together.unwrap()));
    assert!((alone - together).abs() < 0.2 * alone.abs(), "{alone} and {together}");
}

fn bars() -> Dataset {
    Dataset::new(bars_and_stripes(3, Repeats::Counted).unwrap(), Binarize::None).unwrap()
}

#[test]
fn a_score_stands_beside_its_baseline() {
    let data = bars();
    let trained = |epochs: u64| {
        let plan = Plan { learning_rate: 0.1, ..Plan::for_epochs(epochs) };
        Rbm::binary(9, 8).unwrap().train(&data, &plan).unwrap()
    };
    let (fresh, model) = (trained(0), trained(400));
    for method in [Method::Exact, Method::Ais, Method::Pseudo] {
        let score = model.score(&data, method).unwrap();
        let alone = &score.baseline.as_ref().unwrap().independent;
        assert_close(9.0 * 0.5_f64.ln(), alone.mean, 1e-9, "every pixel is on half the time");
        let gain = score.gain.unwrap();
        assert_close(score.mean - alone.mean, gain.nats, 1e-9, "the gain");
        assert!(!gain.is_none(), "{method}: {gain:?}");
        let gain = fresh.score(&data, method).unwrap().gain.unwrap();
        assert!(gain.is_none(), "{method}, untrained: {gain:?}");
    }
    assert!(model.score(&data, Method::FreeEnergy).unwrap().baseline.is_err());
    let unknown = Model::from(model.top().unwrap().clone());
    assert!(unknown.score(&data, Method::Exact).unwrap().baseline.unwrap_err().contains("trained"));
}

/// Labels and what is missing are part of the baseline, of a machine with visible couplings too.
#[test]
fn every_kind_of_model_has_a_baseline() {
    let classes = (0..16).map(|row| row % 2).collect();
    let data = bars().with_labels(Labels::from_values(classes)).unwrap();
    let machine = Rbm::binary(9, 3).unwrap().into_machine();
    let machine = harmonium::models::with_labels(&machine, 2).unwrap();
    let model = machine.train(&data, &Plan::for_epochs(1)).unwrap();
    let with = model.score(&data, Method::Exact).unwrap().baseline.unwrap();
    let without = model.score(&data.without_labels(), Method::Exact).unwrap().baseline.unwrap();
    let difference = with.independent.mean - without.independent.mean;
    assert_close(0.5_f64.ln(), difference, 1e-9, "two classes, equally often");
    let shape = harmonium::DbnShape::binary(9, &[4, 3]);
    let model = shape.train(&bars(), &Plan::for_epochs(1)).unwrap();
    assert!(model.score(&bars(), Method::Exact).unwrap().baseline.is_ok());
    let lateral = harmonium::models::Lateral::Visible;
    let bm = Bm::new((Units::Binary, 9), (Units::Binary, 2), lateral).unwrap();
    let model = bm.train(&bars(), &Plan::for_epochs(1)).unwrap();
    assert!(model.score(&bars(), Method::Exact).unwrap().baseline.is_ok());
}
