//! Units that hold whole numbers: what their names promise, and where they start.

use crate::machines::{assert_close, noise};
use harmonium::data::{Binarize, Dataset, Table};
use harmonium::evaluation::baseline::Fitted;
use harmonium::evaluation::likelihood;
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use harmonium::models::{Above, over};
use harmonium::progress::Silent;
use harmonium::schema::Feed;
use harmonium::training::{Plan, Rule, Trainer, drive, initialise};
use harmonium::units::binary::{log_partition as softplus, logistic};
use harmonium::units::{OwnParameters, Units};
use ndarray::Array2;

/// A binomial unit is the sum of binary ones that share their input.
#[test]
fn binomial_units_are_sums_of_binary_ones() {
    let own = [1.0];
    let own = OwnParameters::new(&own, 1);
    for n in [1, 2, 5, 300] {
        let units = Units::Binomial { n };
        for theta in [-6.0, -0.7, 0.0, 2.3] {
            let log_z = n as f64 * softplus(theta);
            assert_close(units.log_partition(&[theta], own) / log_z, 1.0, 1e-12, "ln Z");
            let mut mean = [theta];
            units.mean_in_place(&mut mean, own);
            assert_close(mean[0] / n as f64, logistic(theta), 1e-12, "mean");
        }
    }
    // And so a machine of them is one of binary units with the same weights.
    let hidden = Layer::new("h", Role::Hidden, Units::Binary, 2).unwrap();
    let weights = |n: usize| Matrix::from_fn(n, 2, |_, j| [0.8, -1.3][j]).unwrap();
    let machine = |units, n: usize| {
        let mut layer = Layer::new("v", Role::Visible, units, n).unwrap();
        layer.bias.fill(0.4);
        let couple = Coupling::between(LayerId(0), LayerId(1), weights(n));
        Machine::new(vec![layer, hidden.clone()], vec![couple]).unwrap()
    };
    let sums = [machine(Units::Binomial { n: 4 }, 1), machine(Units::Binary, 4)]
        .map(|m| exact::log_partition(&m).unwrap());
    assert_close(sums[0], sums[1], 1e-12, "four bits");
}

/// Counts of dispersion 1 are those of Poisson, cut off where nothing is left; of dispersion near 0 geometric.
#[test]
fn counts_lie_between_poisson_and_geometric() {
    let units = Units::Counts { max: 200 };
    let rate: f64 = 3.7;
    let log_z = units.log_partition(&[rate.ln()], OwnParameters::new(&[1.0], 1));
    assert_close(log_z, rate, 1e-12, "Poisson");
    let mut mean = [rate.ln()];
    units.mean_in_place(&mut mean, OwnParameters::new(&[1.0], 1));
    assert_close(mean[0], rate, 1e-12, "its mean");
    let log_z = units.log_partition(&[-0.5], OwnParameters::new(&[1e-300], 1));
    assert_close(log_z, -(1.0 - (-0.5_f64).exp()).ln(), 1e-12, "geometric");
}

/// Whatever the shares of levels are, an uncoupled unit can have them.
#[test]
fn levels_may_have_any_shares() {
    let shares = [0.3, 0.05, 0.4, 0.05, 0.2_f64];
    let mut layer = Layer::new("v", Role::Visible, Units::Ordinal { levels: 5 }, 1).unwrap();
    let slope = (shares[4] / shares[0]).ln() / 4.0;
    layer.bias = vec![slope];
    let energy = |k: usize| (shares[0] / shares[k]).ln() + slope * k as f64;
    layer.own = (1..4).map(energy).collect();
    let machine = Machine::new(vec![layer], Vec::new()).unwrap();
    let log_z = exact::log_partition(&machine).unwrap();
    for (k, share) in shares.iter().enumerate() {
        let data = plain(&Array2::from_elem((1, 1), k as f32));
        let score = likelihood::exact(&machine, &data).unwrap().mean;
        assert_close(score, share.ln(), 1e-12, "a share");
    }
    assert_close(log_z, -shares[0].ln(), 1e-12, "ln Z");
}

/// Numbers as they are.
fn plain(values: &Array2<f32>) -> Dataset {
    Dataset::new(Table::from_array(values.view()).unwrap(), Binarize::None).unwrap()
}

/// Columns of counts and levels that vary more or less than chance.
fn columns() -> (Vec<Layer>, Dataset) {
    let kinds = [Units::Counts { max: 63 }, Units::Ordinal { levels: 6 }, Units::Binomial { n: 8 }];
    let layers = kinds.iter().enumerate();
    let layers = layers.map(|(l, &u)| Layer::new(format!("c{l}"), Role::Visible, u, 1).unwrap());
    let value = |row: usize, column: usize| {
        let (u, v) = (noise(5, row) + 0.5, noise(6, 3 * row + column) + 0.5);
        match column {
            0 => (12.0 * (0.4 * u + 0.6 * v * v)).floor(),
            1 => (6.0 * (0.5 * u + 0.5 * v)).floor(),
            _ => (9.0 * (0.7 * u + 0.3 * v)).floor(),
        }
    };
    let values = Array2::from_shape_fn((500, 3), |(r, c)| value(r, c) as f32);
    (layers.collect(), plain(&values))
}

#[test]
fn units_start_with_the_mean_and_the_variance_of_their_column() {
    let (layers, data) = columns();
    let mut machine = over(layers, Above::Rbm(2)).unwrap();
    let plan = Plan { initial_std: 0.0, ..Plan::default() };
    initialise(&mut machine, &data, &plan).unwrap();
    for (l, column) in [(0, 0), (1, 1)] {
        let values: Vec<f64> = (0..500).map(|r| f64::from(data.table().at(r, column))).collect();
        let mean = values.iter().sum::<f64>() / 500.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 500.0;
        let layer = machine.layer(LayerId(l));
        let sums = |theta: f64| layer.units.log_partition(&[theta], layer.own());
        let (b, h) = (layer.bias[0], 1e-3);
        let slope = (sums(b + h) - sums(b - h)) / (2.0 * h);
        let bend = (sums(b + h) - 2.0 * sums(b) + sums(b - h)) / (h * h);
        assert_close(slope, mean, 1e-4 * (1.0 + mean), "mean");
        assert_close(bend, variance, 1e-3 * (1.0 + variance), "variance");
    }
}

/// Learning finds what columns have in common, and beats what is known of each alone.
#[test]
fn machines_of_counts_and_levels_learn() {
    let (layers, data) = columns();
    let machine = over(layers, Above::Rbm(4)).unwrap();
    let plan =
        Plan { epochs: 60, batch: 50, rule: Rule::Exact, learning_rate: 0.1, ..Plan::default() };
    let fitted = Fitted::of(&machine, &data).unwrap().unwrap();
    let feed = Feed::of(&machine, &data).unwrap();
    let alone = fitted.score(&feed).unwrap().independent.mean;
    let mut machine = machine;
    initialise(&mut machine, &data, &plan).unwrap();
    let mut trainer = Trainer::new(machine, &data, &plan).unwrap();
    let start = likelihood::exact(trainer.machine(), &data).unwrap().mean;
    drive(&mut trainer, &mut [], &mut Silent).unwrap();
    let end = likelihood::exact(trainer.machine(), &data).unwrap().mean;
    assert!(end > start + 0.05 && end > alone, "{start} -> {end}, columns alone {alone}");
}

/// Sizes that no sum is taken over are refused, with the range.
#[test]
fn sizes_out_of_range_are_refused() {
    let wrong = [
        Units::Counts { max: 0 },
        Units::Counts { max: 5000 },
        Units::Binomial { n: 0 },
        Units::Ordinal { levels: 1 },
        Units::Ordinal { levels: 65 },
    ];
    for units in wrong {
        let layer = Layer::new("v", Role::Visible, units, 2).unwrap();
        let error = Machine::new(vec![layer], Vec::new()).unwrap_err();
        assert!(error.to_string().contains("1023"), "{error}");
    }
}
