//! Real columns: where they start, how they learn, and that their units do not matter.

use crate::machines::{assert_close, noise};
use harmonium::evaluation::baseline::Fitted;
use harmonium::evaluation::likelihood;
use harmonium::exact;
use harmonium::machine::{LayerId, Machine, State};
use harmonium::models::{Bm, Lateral, Rbm};
use harmonium::sampling::Clamp;
use harmonium::schema::Feed;
use harmonium::training::{OptimizerKind, Plan, Rule, Stop, initialise, train};
use harmonium::units::Units;
use harmonium_data::Dataset;
use ndarray::Array2;

/// Rows of `d` columns in two clusters, columns correlated; in the units given by `scale` and `shift`.
fn clusters(n: usize, d: usize, scale: f64, shift: f64) -> Dataset {
    let x = Array2::from_shape_fn((n, d), |(r, c)| {
        let side = if noise(1, r) > 0.1 { 1.0 } else { -1.0 };
        let shared = 2.0 * noise(2, r);
        let own = noise(3, r * d + c);
        let column = 1.0 + c as f64;
        let plain = if c % 2 == 0 { side + 0.3 * shared + 0.6 * own } else { shared + own };
        let unit = scale.powi(1 - i32::try_from(c % 3).unwrap());
        // Tables hold 32-bit numbers: the same digits in every unit.
        f64::from((plain * column * 64.0).round() as f32 / 64.0) * unit + shift * unit
    });
    Dataset::from_array(x.view()).unwrap()
}

fn coupled(d: usize, hidden: usize) -> Machine {
    let (visible, hidden) = ((Units::Gaussian, d), (Units::Binary, hidden));
    Bm::new(visible, hidden, Lateral::Visible).unwrap().into_machine()
}

fn exactly(epochs: u64) -> Plan {
    let machine = coupled(2, 1);
    Plan { rule: Rule::Exact, epochs, batch: 1000, l2: 0.0, ..Plan::suited_to(&machine) }
}

/// What a machine makes of its rows, in the order of the data.
fn rows_of(machine: &Machine, data: &Dataset) -> Vec<f64> {
    likelihood::exact(machine, data).unwrap().rows
}

#[test]
fn coupled_columns_start_as_one_shrunken_gaussian() {
    for (scale, shift) in [(1.0, 0.0), (300.0, 7.0), (1e-3, -2.0)] {
        let data = clusters(40, 5, scale, shift);
        let mut machine = coupled(5, 3);
        for center in [true, false] {
            let plan = Plan { initial_std: 0.0, center, ..exactly(1) };
            initialise(&mut machine, &data, &plan).unwrap();
            let fitted = Fitted::of(&visible(5), &data).unwrap().unwrap();
            let layers = visible(5);
            let baseline = fitted.score(&Feed::of(&layers, &data).unwrap()).unwrap();
            let gaussian = baseline.gaussian.unwrap();
            for (a, b) in gaussian.rows.iter().zip(rows_of(&machine, &data)) {
                assert_close(*a, b, 1e-6, &format!("scale {scale}, center {center}"));
            }
        }
    }
}

fn visible(d: usize) -> Machine {
    let machine = Rbm::new((Units::Gaussian, d), (Units::Binary, 1)).unwrap().into_machine();
    Machine::new(vec![machine.layer(LayerId(0)).clone()], Vec::new()).unwrap()
}

/// Without hidden units that say anything the start is where learning ends.
#[test]
fn one_gaussian_is_where_learning_rests() {
    let data = clusters(30, 4, 20.0, 3.0);
    for center in [true, false] {
        // Adam would make steps of what rounding leaves of the slopes.
        let optimizer = OptimizerKind::Sgd;
        let plan = Plan { initial_std: 0.0, center, optimizer, ..exactly(40) };
        let mut start = coupled(4, 2);
        initialise(&mut start, &data, &plan).unwrap();
        let trained = train(coupled(4, 2), &data, &plan, &mut []).unwrap().machine;
        let (before, after) = (rows_of(&start, &data), rows_of(&trained, &data));
        for (a, b) in before.iter().zip(after) {
            assert_close(*a, b, 1e-6, &format!("center {center}"));
        }
    }
}

/// Hidden units that start with weights leave the covariance of the data where it is, nearly.
#[test]
fn hidden_units_start_inside_the_covariance_of_the_data() {
    let data = clusters(400, 4, 10.0, 1.0);
    for hidden in [1, 3, 9] {
        let mut machine = coupled(4, hidden);
        initialise(&mut machine, &data, &exactly(1)).unwrap();
        let mut alone = coupled(4, hidden);
        initialise(&mut alone, &data, &Plan { initial_std: 0.0, ..exactly(1) }).unwrap();
        let moments = |machine: &Machine| {
            let one = State::zeros(machine, 1).unwrap();
            exact::moments(machine, &Clamp::none(), &one, &[1.0]).unwrap()
        };
        let (with, without) = (moments(&machine), moments(&alone));
        let mean = |m: &harmonium::moments::Moments, i: usize| m.bias[0][i];
        let variance =
            |m: &harmonium::moments::Moments, i: usize| -2.0 * m.own[0][i] - mean(m, i).powi(2);
        for i in 0..4 {
            let (a, b) = (variance(&with, i), variance(&without, i));
            assert!((a / b - 1.0).abs() < 0.35, "{hidden} hidden, column {i}: {a} for {b}");
            let off = (mean(&with, i) - mean(&without, i)).abs() / b.sqrt();
            assert!(off < 0.35, "{hidden} hidden, column {i}: {off} deviations off");
        }
        let (a, b) = (rows_of(&machine, &data), rows_of(&alone, &data));
        let loss = (b.iter().sum::<f64>() - a.iter().sum::<f64>()) / 400.0;
        assert!(loss < 0.25, "{hidden} hidden units start {loss} nats below one Gaussian");
    }
}

/// Columns in other units teach the same model, step by step; the density changes by the Jacobian.
#[test]
fn the_units_of_columns_do_not_matter() {
    let plain = clusters(60, 4, 1.0, 0.0);
    // Powers of two, so that 32-bit numbers hold the same digits.
    let other = clusters(60, 4, 1024.0, 0.0);
    // Columns 0 and 3 are 1024 times as large, 1 as before, 2 a 1024th.
    let jacobian = -(2.0 - 1.0) * 1024.0_f64.ln();
    for machine in
        [coupled(4, 3), Rbm::new((Units::Gaussian, 4), (Units::Binary, 3)).unwrap().into_machine()]
    {
        for rule in [Rule::Exact, Rule::Pcd, Rule::Cd] {
            let precision = harmonium::training::Numbers::F64;
            let plan = Plan { rule, precision, l2: 1e-3, batch: 25, ..exactly(20) };
            let trained = |data: &Dataset| {
                let outcome = train(machine.clone(), data, &plan, &mut []).unwrap();
                assert_eq!(outcome.stop, Stop::Finished);
                rows_of(&outcome.machine, data)
            };
            let (a, b) = (trained(&plain), trained(&other));
            for (a, b) in a.iter().zip(b) {
                assert_close(a + jacobian, b, 1e-6, &format!("{rule:?}"));
            }
        }
    }
}

/// Two clusters are more than one Gaussian: hidden units find them, from the defaults.
#[test]
fn hidden_units_learn_what_one_gaussian_cannot() {
    let data = clusters(300, 4, 50.0, 2.0);
    let test = clusters(300, 4, 50.0, 2.0);
    let layers = visible(4);
    let fitted = Fitted::of(&layers, &data).unwrap().unwrap();
    let gaussian = fitted.score(&Feed::of(&layers, &test).unwrap()).unwrap().gaussian.unwrap().mean;
    for rule in [Rule::Exact, Rule::Pcd] {
        let plan = Plan { rule, batch: 100, ..exactly(600) };
        let outcome = train(coupled(4, 6), &data, &plan, &mut []).unwrap();
        let found = likelihood::exact(&outcome.machine, &test).unwrap().mean;
        assert!(found > gaussian + 0.3, "{rule:?}: {found} against {gaussian}");
    }
}
