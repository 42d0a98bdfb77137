//! Samples and features of a model of one machine against enumeration.

use crate::machines::{all, discrete, named};
use crate::model::{Holed, assert_near, cells, conditional_means, labelled_machines};
use crate::statistics::assert_distributed;
use harmonium::data::{Binarize, Labels, Table};
use harmonium::engine::Arithmetic;
use harmonium::machine::{LayerId, Machine, Role, State};
use harmonium::model::{Drawing, Extracting, Show};
use harmonium::progress::Silent;
use harmonium::sampling::{Clamp, posterior_factorises};
use harmonium::{Dataset, Error, Model, Sweeps, exact};
use ndarray::{Array2, Axis};

/// How often each state of the visible units comes up, in the order of `states`.
pub(crate) fn counts(machine: &Machine, states: &[Vec<f64>], rows: &Array2<f64>) -> Vec<f64> {
    let mut counts = vec![0.0; states.len()];
    for row in rows.rows() {
        let row = row.to_vec();
        let found = states.iter().position(|s| *s == row);
        counts[found.unwrap_or_else(|| panic!("{row:?} in {:?}", machine.layers()[0].units))] +=
            1.0;
    }
    counts
}

/// The visible states that agree with what is held, and their exact probabilities.
pub(crate) fn visible_states(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let all = exact::states(machine, clamp, x, 0).unwrap();
    let of = exact::probabilities(machine, &all).unwrap();
    let (mut states, mut p): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
    for s in 0..all.n_rows() {
        let visible: Vec<f64> =
            machine.visible_layers().iter().flat_map(|&l| all.row(l, s).to_vec()).collect();
        if let Some(at) = states.iter().position(|known| *known == visible) {
            p[at] += of[s];
        } else {
            states.push(visible);
            p.push(of[s]);
        }
    }
    (states, p)
}

#[test]
fn samples_given_part_of_a_row_have_the_conditional_probabilities() {
    const N: usize = 1500;
    for (name, machine) in discrete() {
        let holed = Holed::new(&machine, 42);
        let model = Model::from(machine.clone());
        let given = model.given(&holed.data(&machine, 1), None).unwrap();
        let samples = given.sample(N, Sweeps(60), 3).unwrap();
        assert_eq!(samples.nrows(), 4 * N, "{name}");
        for row in 0..4 {
            let of_row = samples.slice_axis(Axis(0), (row * N..(row + 1) * N).into()).to_owned();
            let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
            let (states, p) = visible_states(&machine, &clamp, &x);
            let counts = counts(&machine, &states, &of_row);
            if states.len() > 1 {
                assert_distributed(&format!("{name}, row {row}"), &counts, &p);
            }
        }
        let free = model.sample(N, Sweeps(60), 4).unwrap();
        let one = State::zeros(&machine, 1).unwrap();
        let (states, p) = visible_states(&machine, &Clamp::none(), &one);
        assert_distributed(&name, &counts(&machine, &states, &free), &p);
    }
}

#[test]
fn samples_of_real_units_have_the_exact_first_and_second_moments() {
    const N: usize = 1500;
    for (name, machine) in crate::machines::gaussian() {
        let holed = Holed::new(&machine, 43);
        let model = Model::from(machine.clone());
        let given = model.given(&holed.data(&machine, 1), None).unwrap();
        let samples = given.sample(N, Sweeps(80), 3).unwrap();
        for row in 0..4 {
            let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
            let moments = exact::moments(&machine, &clamp, &x, &[1.0]).unwrap();
            for (cell, &held) in cells(&machine).iter().zip(&holed.observed[row]) {
                let real = !machine.layer(cell.layer).units.is_finite();
                for (i, c) in cell.entries.clone().zip(cell.columns.clone()) {
                    let what = format!("{name}, row {row}, column {c}");
                    let values: Vec<f64> = (0..N).map(|k| samples[[row * N + k, c]]).collect();
                    if held {
                        let known = x.row(cell.layer, 0)[i];
                        assert!(values.iter().all(|v| *v == known), "{what}");
                        continue;
                    }
                    assert_near(&what, &values, moments.bias[cell.layer.0][i]);
                    if real {
                        let squares: Vec<f64> = values.iter().map(|v| -0.5 * v * v).collect();
                        assert_near(&what, &squares, moments.own[cell.layer.0][i]);
                    }
                }
            }
        }
    }
}

/// A row of means is the conditional mean of the visible units given some hidden state, and hidden
/// states come as often as they should.
#[test]
fn shown_means_are_those_given_exactly_drawn_hidden_states() {
    const N: usize = 3000;
    let mut tried = 0;
    for (name, machine) in discrete() {
        let hidden: Vec<LayerId> =
            machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
        let clamp = Clamp::layers(hidden.iter().copied());
        if hidden.is_empty() || !posterior_factorises(&machine, &clamp) {
            continue;
        }
        tried += 1;
        let all = crate::machines::every_state(&machine);
        let of = exact::probabilities(&machine, &all).unwrap();
        let (mut means, mut p): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
        for s in 0..all.n_rows() {
            let mut one = State::zeros(&machine, 1).unwrap();
            hidden.iter().for_each(|&l| one.set_row(l, 0, all.row(l, s)).unwrap());
            let mean = conditional_means(&machine, &clamp, &one);
            let near = |m: &Vec<f64>| m.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-9);
            if let Some(at) = means.iter().position(near) {
                p[at] += of[s];
            } else {
                means.push(mean);
                p.push(of[s]);
            }
        }
        let model = Model::from(machine.clone());
        let arithmetic = Some(Arithmetic::F64);
        let drawing = Drawing {
            n: N,
            sweeps: Some(60),
            seed: 9,
            show: Show::Means,
            arithmetic,
            ..Drawing::default()
        };
        let drawn = model.freely().draw(&drawing, &mut Silent).unwrap().values;
        let mut counts = vec![0.0; means.len()];
        for row in drawn.rows() {
            let near = |m: &Vec<f64>| m.iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-9);
            counts[means.iter().position(near).unwrap_or_else(|| panic!("{name}: {row}"))] += 1.0;
        }
        assert_distributed(&name, &counts, &p);
    }
    assert!(tried >= 4, "only {tried} machines show means");
}

#[test]
fn samples_of_a_class_have_its_probabilities() {
    for (name, model) in labelled_machines() {
        let machine = model.top().unwrap().clone();
        for (class, of) in ["a", "b", "c"].into_iter().enumerate() {
            let samples = model.of_class(of).unwrap().sample(2000, Sweeps(60), 6).unwrap();
            let mut one = State::zeros(&machine, 1).unwrap();
            let label: Vec<f64> = (0..3).map(|k| f64::from(u8::from(k == class))).collect();
            one.set_row(LayerId(1), 0, &label).unwrap();
            let (states, p) = visible_states(&machine, &Clamp::layers([LayerId(1)]), &one);
            assert_distributed(name, &counts(&machine, &states, &samples), &p);
        }
        assert!(matches!(model.of_class("d"), Err(Error::NoClass { .. })), "{name}");
    }
    let plain = Model::from(named("rbm of binary"));
    assert!(matches!(plain.of_class("a"), Err(Error::NoClass { .. })));
}

#[test]
fn means_of_a_class_are_means_and_its_label_stays() {
    for (name, model) in labelled_machines() {
        let arithmetic = Some(Arithmetic::F64);
        let drawing = Drawing {
            n: 500,
            sweeps: Some(60),
            seed: 6,
            show: Show::Means,
            arithmetic,
            ..Drawing::default()
        };
        let drawn = model.of_class("b").unwrap().draw(&drawing, &mut Silent).unwrap().values;
        let machine = model.top().unwrap();
        let mut one = State::zeros(machine, 1).unwrap();
        one.set_row(LayerId(1), 0, &[0.0, 1.0, 0.0]).unwrap();
        let means = conditional_means(machine, &Clamp::layers([LayerId(1)]), &one);
        for c in 0..means.len() {
            let values = drawn.column(c).to_vec();
            assert_near(name, &values, means[c]);
            let between = values.iter().any(|v| *v > 1e-6 && *v < 1.0 - 1e-6);
            assert_eq!(between, c < 3, "{name}: column {c}");
        }
    }
}

#[test]
fn features_are_exact_posterior_means_where_the_posterior_factorises() {
    let mut tried = 0;
    for (name, machine) in all() {
        let hidden: Vec<LayerId> =
            machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
        let mut holed = Holed::new(&machine, 44);
        holed.observed.iter_mut().flatten().for_each(|held| *held = true);
        let (model, data) = (Model::from(machine.clone()), holed.data(&machine, 1));
        if hidden.is_empty() {
            assert!(matches!(model.features(&data), Err(Error::NoHidden { .. })), "{name}");
            continue;
        }
        let found = model.features(&data).unwrap();
        assert_eq!(found.nrows(), 4);
        let mut at = 0;
        for &l in &hidden {
            let (layer, n) = (Some(machine.layer(l).name.clone()), machine.layer(l).len());
            let extracting = Extracting { layer, ..Extracting::default() };
            let one = model.features_with(&data, &extracting, &mut Silent).unwrap();
            let slice = found.slice_axis(Axis(1), (at..at + n).into());
            assert_eq!(one.values, slice, "{name}: a layer is its part of all");
            at += n;
        }
        assert_eq!(found.ncols(), at);
        let wrong = Extracting { layer: Some("layer0".into()), ..Extracting::default() };
        assert!(model.features_with(&data, &wrong, &mut Silent).is_err(), "{name}");
        if !posterior_factorises(&machine, &Clamp::visible(&machine)) {
            continue;
        }
        tried += 1;
        for row in 0..4 {
            let x = holed.state(&machine, row);
            let moments = exact::moments(&machine, &Clamp::visible(&machine), &x, &[1.0]).unwrap();
            let means: Vec<f64> = hidden.iter().flat_map(|l| moments.bias[l.0].clone()).collect();
            for (m, f) in means.iter().zip(found.row(row)) {
                assert!((m - f).abs() < 1e-5 * (1.0 + m.abs()), "{name}, row {row}: {m} != {f}");
            }
        }
    }
    assert!(tried >= 6, "only {tried} machines have exact features");
}

/// Labelled data and weights of samples go through the same door.
#[test]
fn features_of_labelled_rows_use_the_label() {
    let (name, model) = labelled_machines().swap_remove(0);
    let machine = model.top().unwrap();
    let rows = Array2::from_shape_fn((3, 3), |(r, c)| f64::from(u8::from(r == c)));
    let table = Table::from_array(rows.view()).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let data = data.with_labels(Labels::from_values(vec![2, 0, 1])).unwrap();
    let found = model.features(&data).unwrap();
    for (row, class) in [2, 0, 1].into_iter().enumerate() {
        let mut x = State::zeros(machine, 1).unwrap();
        x.set_row(LayerId(0), 0, &rows.row(row).to_vec()).unwrap();
        let label: Vec<f64> = (0..3).map(|k| f64::from(u8::from(k == class))).collect();
        x.set_row(LayerId(1), 0, &label).unwrap();
        let moments = exact::moments(machine, &Clamp::visible(machine), &x, &[1.0]).unwrap();
        for (m, f) in moments.bias[2].iter().zip(found.row(row)) {
            assert!((m - f).abs() < 1e-5, "{name}, row {row}: {m} != {f}");
        }
    }
}

/// What is shown of given rows: the free units at their means given the hidden ones, what was given as
/// it is.
#[test]
fn means_of_given_rows_average_to_the_conditional_means() {
    const N: usize = 400;
    for name in ["rbm of binary", "rbm of categorical", "chain of spin", "tree of categorical"] {
        let machine = named(name);
        let holed = Holed::new(&machine, 45);
        let model = Model::from(machine.clone());
        let given = model.given(&holed.data(&machine, 1), None).unwrap();
        let arithmetic = Some(Arithmetic::F64);
        let drawing = Drawing {
            n: N,
            sweeps: Some(60),
            seed: 7,
            show: Show::Means,
            arithmetic,
            ..Drawing::default()
        };
        let drawn = given.draw(&drawing, &mut Silent).unwrap().values;
        for row in 0..4 {
            let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
            let means = conditional_means(&machine, &clamp, &x);
            for (cell, held) in cells(&machine).iter().zip(&holed.observed[row]) {
                for c in cell.columns.clone() {
                    let values: Vec<f64> = (0..N).map(|k| drawn[[row * N + k, c]]).collect();
                    assert_near(&format!("{name}, row {row}, column {c}"), &values, means[c]);
                    let whole = values.iter().all(|v| v.fract() == 0.0);
                    assert_eq!(whole, *held, "{name}, row {row}, column {c}");
                }
            }
        }
    }
}
