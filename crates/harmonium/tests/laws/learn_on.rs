//! Learning on from given parameters and chains, and the way back from features, against enumeration.

use crate::machines::{all, some_states};
use harmonium::data::synthetic::{Repeats, bars_and_stripes};
use harmonium::evaluation::pseudo::{Visit, log_against_complements, log_pseudo_likelihood};
use harmonium::machine::{Batch, LayerId, Machine, Role, State};
use harmonium::model::LearnedOn;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::sampling::Clamp;
use harmonium::training::{Numbers, Rule};
use harmonium::units::Units;
use harmonium::{Binarize, Dataset, Model, Plan, exact};
use ndarray::{Array2, Axis};

/// A plan of plain ascent: nothing but the learning rate.
fn plain(rule: Rule, epochs: u64) -> Plan {
    Plan {
        rule,
        epochs,
        batch: 1000,
        learning_rate: 0.1,
        decay: Schedule::Constant(1.0),
        momentum: Schedule::Constant(0.0),
        l2: 0.0,
        center: false,
        precision: Numbers::F64,
        ..Plan::default()
    }
}

fn rbm(n_hidden: usize) -> Model {
    let mut layers = Rbm::binary(9, n_hidden).unwrap().into_machine().layers().to_vec();
    layers[0].bias.iter_mut().enumerate().for_each(|(i, b)| *b = 0.1 * i as f64 - 0.4);
    let weights = (0..9 * n_hidden).map(|k| 0.3 * ((k * 7 % 5) as f64 - 2.0)).collect();
    let matrix = harmonium::machine::Matrix::from_rows(9, n_hidden, weights).unwrap();
    let coupling = harmonium::machine::Coupling::between(LayerId(0), LayerId(1), matrix);
    Model::from(Machine::new(layers, vec![coupling]).unwrap())
}

fn learn(model: &Model, data: &Dataset, plan: &Plan, chains: Option<&Array2<f64>>) -> LearnedOn {
    let chains = chains.map(|chains| chains.view());
    model.learn_on(data, plan, chains, &mut [], &mut Silent).unwrap()
}

#[test]
fn learning_on_twice_is_learning_twice_as_long() {
    let data =
        Dataset::new(bars_and_stripes(3, Repeats::Counted).unwrap(), Binarize::None).unwrap();
    let start = rbm(4);
    let both = learn(&start, &data, &plain(Rule::Exact, 6), None).model;
    let first = learn(&start, &data, &plain(Rule::Exact, 3), None).model;
    let second = learn(&first, &data, &plain(Rule::Exact, 3), None).model;
    assert_eq!((second.about.epoch, second.about.step), (6, 6));
    for ((name, a), (_, b)) in both.parameters().unwrap().iter().zip(&second.parameters().unwrap())
    {
        for (a, b) in a.values.iter().zip(&b.values) {
            assert!((a - b).abs() < 1e-12, "{name}: {a} and {b}");
        }
    }
    let likelihood = |model: &Model| model.score(&data, harmonium::Method::Exact).unwrap().mean;
    assert!(likelihood(&second) > likelihood(&first) && likelihood(&first) > likelihood(&start));
}

/// One step of PCD from chains whose hidden units are known: visible units are drawn given them, so the mean update over
/// many chains is the data side minus $E[v \mid h]$.
#[test]
fn chains_go_on_from_where_they_are() {
    let data =
        Dataset::new(bars_and_stripes(3, Repeats::Counted).unwrap(), Binarize::None).unwrap();
    let start = rbm(3);
    let n_chains = 20_000;
    let plan = Plan { chains: n_chains, ..plain(Rule::Pcd, 1) };
    let hidden = [1.0, 0.0, 1.0];
    let chains =
        Array2::from_shape_fn((n_chains, 12), |(_, c)| if c < 9 { 0.0 } else { hidden[c - 9] });
    let found = learn(&start, &data, &plan, Some(&chains));
    let machine = start.top().unwrap();
    let means =
        start.reconstruct(Array2::from_shape_fn((1, 3), |(_, c)| hidden[c]).view()).unwrap();
    let before = &machine.layer(LayerId(0)).bias;
    let after = &found.model.top().unwrap().layer(LayerId(0)).bias;
    for (i, seen) in data.column_means().iter().enumerate() {
        let expected = 0.1 * (seen - means[(0, i)]);
        // A mean of so many bits is this far off at most, at six standard errors.
        let room = 0.1 * 6.0 * 0.5 / (n_chains as f64).sqrt();
        assert!((after[i] - before[i] - expected).abs() < room, "unit {i}");
    }
    let chains = found.chains.unwrap();
    assert_eq!(chains.dim(), (n_chains, 12));
    assert!(chains.iter().all(|x| *x == 0.0 || *x == 1.0));
    let drawn = chains.column(0).sum() / n_chains as f64;
    assert!((drawn - means[(0, 0)]).abs() < 6.0 * 0.5 / (n_chains as f64).sqrt());
    let few = chains.slice_axis(Axis(0), (0..5).into()).to_owned();
    assert!(start.learn_on(&data, &plan, Some(few.view()), &mut [], &mut Silent).is_err());
}

#[test]
fn features_of_grey_rows_are_those_of_their_probabilities() {
    let model = rbm(4);
    let grey = Array2::from_shape_fn((5, 9), |(r, c)| (40 * (r % 3) + 11 * c + 100) as u8);
    let data = Dataset::from_array(grey.view()).unwrap().binarized(Binarize::Sample).unwrap();
    let found = model.features(&data).unwrap();
    let machine = model.top().unwrap();
    for (row, values) in grey.rows().into_iter().enumerate() {
        let mut x = State::zeros(machine, 1).unwrap();
        let v: Vec<f64> = values.iter().map(|&b| f64::from(b) / 255.0).collect();
        x.set_row(LayerId(0), 0, &v).unwrap();
        let theta = machine.theta(LayerId(1), &x, 0).unwrap();
        for (found, t) in found.row(row).iter().zip(theta) {
            assert!((found - 1.0 / (1.0 + (-t).exp())).abs() < 1e-6);
        }
    }
    // Rows 0 and 3 are equal.
    assert_eq!(found.row(0), found.row(3));
}

#[test]
fn rows_against_complements_are_free_energies_apart() {
    let Model { body: harmonium::models::Body::Machine(machine), .. } = rbm(4) else {
        unreachable!()
    };
    let offsets = [vec![0.3; 9], vec![-0.2; 4]];
    let mut machine = machine;
    machine.recenter(&offsets).unwrap();
    let rbm = Rbm::try_from(machine.clone()).unwrap();
    let values = Array2::from_shape_fn((3, 9), |(r, c)| match r {
        0 => f64::from(u8::from(c % 2 == 0)),
        1 => f64::from(u8::from(c % 3 == 0)),
        _ => 0.1 * c as f64,
    });
    let found = log_against_complements(&rbm, values.view()).unwrap();
    let free = |v: &[f64]| {
        let mut x = State::zeros(&machine, 1).unwrap();
        x.set_row(LayerId(0), 0, v).unwrap();
        machine.free_energy_over(&[LayerId(1)], &x).unwrap()[0]
    };
    for (row, found) in values.rows().into_iter().zip(&found) {
        let v = row.to_vec();
        let expected: f64 = (0..9)
            .map(|i| {
                let mut other = v.clone();
                other[i] = 1.0 - other[i];
                -(free(&v) - free(&other)).exp().ln_1p()
            })
            .sum();
        assert!((found - expected).abs() < 1e-10, "{found} and {expected}");
    }
    let bits: Vec<f64> = values.iter().take(18).copied().collect();
    let batch = Batch::from_rows(&machine, 9, &bits).unwrap();
    let pseudo = log_pseudo_likelihood(&machine, &batch, Visit::All).unwrap();
    assert!(pseudo.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-10));
}

/// Visible units that see nothing but hidden ones have the means of enumeration given those; where they see each other
/// mean field answers, which is not looked at here.
#[test]
fn reconstructions_are_means_given_the_hidden_units() {
    for (name, machine) in all() {
        let lateral = machine.couplings().iter().any(|c| {
            let role = |l: LayerId| machine.layer(l).role;
            role(c.between.0) == Role::Visible && role(c.between.1) == Role::Visible
        });
        let hidden: Vec<LayerId> =
            machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
        let real = machine.layers().iter().any(|l| l.units == Units::Gaussian);
        if lateral || hidden.is_empty() || real {
            continue;
        }
        let x = some_states(&machine, 3, 5);
        let row = |r: usize| hidden.iter().flat_map(|&l| x.row(l, r).to_vec()).collect::<Vec<_>>();
        let features = Array2::from_shape_fn((3, row(0).len()), |(r, c)| row(r)[c]);
        let found = Model::from(machine.clone()).reconstruct(features.view()).unwrap();
        let clamp = Clamp::layers(hidden.iter().copied());
        let means = exact::conditional_means(&machine, &clamp, &x).unwrap();
        for r in 0..3 {
            let expected =
                machine.visible_layers().into_iter().flat_map(|l| means.row(l, r).to_vec());
            for (a, b) in found.row(r).iter().zip(expected) {
                assert!((a - b).abs() < 1e-5, "{name}: {a} and {b}");
            }
        }
        assert!(
            Model::from(machine).reconstruct(features.slice_axis(Axis(1), (1..).into())).is_err()
        );
    }
}
