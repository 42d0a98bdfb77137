//! Exact answers about single rows, against all their states written out.

use crate::machines::{all, assert_close, discrete, extent, gaussian, key, noise, some_states};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::Error;
use harmonium::exact::{self, Budget, Query};
use harmonium::machine::{LayerId, Machine, State};
use harmonium::models::Rbm;
use harmonium::progress::Listener;
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use ndarray::Array2;
use std::collections::BTreeMap;

/// Holds about half of the units of each row, others in each.
fn random_clamp(machine: &Machine, n_rows: usize, seed: u64) -> Clamp {
    machine.layer_ids().fold(Clamp::none(), |clamp, l| {
        let n = machine.layer(l).n_units();
        let held = |(row, unit)| noise(seed + l.0 as u64, row * n + unit) > 0.0;
        clamp.with_mask(l, Array2::from_shape_fn((n_rows, n), held).view())
    })
}

fn clamps(machine: &Machine, n_rows: usize) -> Vec<(&'static str, Clamp)> {
    vec![
        ("nothing held", Clamp::none()),
        ("the visible layers held", Clamp::visible(machine)),
        ("some units held", random_clamp(machine, n_rows, 90)),
    ]
}

#[test]
fn conditional_means_are_those_of_all_states() {
    for (name, machine) in discrete() {
        let x = some_states(&machine, 4, 21);
        for (held, clamp) in clamps(&machine, 4) {
            let what = format!("{name}, {held}");
            let means = exact::conditional_means(&machine, &clamp, &x).unwrap();
            for row in 0..4 {
                let states = exact::states(&machine, &clamp, &x, row).unwrap();
                let p = exact::probabilities(&machine, &states).unwrap();
                for l in machine.layer_ids() {
                    for (i, found) in means.row(l, row).iter().enumerate() {
                        let expected: f64 =
                            p.iter().enumerate().map(|(s, p)| p * states.row(l, s)[i]).sum();
                        assert_close(expected, *found, 1e-11, &what);
                    }
                }
            }
        }
    }
}

/// With real units the moments, which are tested elsewhere, say what the means are.
#[test]
fn conditional_means_of_real_units_are_their_moments() {
    for (name, machine) in gaussian() {
        let x = some_states(&machine, 3, 22);
        for (held, clamp) in clamps(&machine, 3) {
            let means = exact::conditional_means(&machine, &clamp, &x).unwrap();
            for row in 0..3 {
                let mut weights = [0.0; 3];
                weights[row] = 1.0;
                let moments = exact::moments(&machine, &clamp, &x, &weights).unwrap();
                for l in machine.layer_ids() {
                    for (expected, found) in moments.bias[l.0].iter().zip(means.row(l, row)) {
                        assert_close(*expected, *found, 1e-11, &format!("{name}, {held}"));
                    }
                }
            }
        }
    }
}

#[test]
fn conditional_samples_are_distributed_as_all_states() {
    let n = extent(3_000, 20_000);
    for (name, machine) in discrete() {
        let x = some_states(&machine, 2, 23);
        for (held, clamp) in clamps(&machine, 2) {
            let drawn =
                exact::conditional_samples(&machine, &clamp, &x, n, Stream::new(24)).unwrap();
            for row in 0..2 {
                let states = exact::states(&machine, &clamp, &x, row).unwrap();
                let p = exact::probabilities(&machine, &states).unwrap();
                let places: BTreeMap<Vec<u64>, usize> =
                    (0..states.n_rows()).map(|s| (key(&machine, &states, s), s)).collect();
                let mut counts = vec![0.0; states.n_rows()];
                for k in row * n..(row + 1) * n {
                    counts[places[&key(&machine, &drawn, k)]] += 1.0;
                }
                let likely = p.iter().filter(|p| **p * n as f64 >= 5.0).count();
                if likely > 1 {
                    assert_distributed(&format!("{name}, {held}, row {row}"), &counts, &p);
                }
            }
        }
    }
}

#[test]
fn conditional_samples_of_real_units_have_their_moments() {
    let n = 4_000;
    for (name, machine) in gaussian() {
        let x = some_states(&machine, 1, 25);
        for (held, clamp) in clamps(&machine, 1) {
            let drawn =
                exact::conditional_samples(&machine, &clamp, &x, n, Stream::new(26)).unwrap();
            let moments = exact::moments(&machine, &clamp, &x, &[1.0]).unwrap();
            for l in machine.layer_ids() {
                for i in 0..machine.layer(l).len() {
                    let what = format!("{name}, {held}, layer {}, entry {i}", l.0);
                    let values: Vec<f64> = (0..n).map(|row| drawn.row(l, row)[i]).collect();
                    assert_mean(&what, &values, moments.bias[l.0][i]);
                    if !machine.layer(l).units.is_finite() {
                        let squares: Vec<f64> = values.iter().map(|v| -0.5 * v * v).collect();
                        assert_mean(&what, &squares, moments.own[l.0][i]);
                    }
                }
            }
        }
    }
}

/// Equal rows get the same means to the last bit, cost nothing more, and are still drawn independently.
#[test]
fn equal_rows_are_summed_once() {
    for (name, machine) in all() {
        let one = some_states(&machine, 1, 27);
        let mut x = State::zeros(&machine, 3).unwrap();
        for l in machine.layer_ids() {
            (0..3).for_each(|row| x.set_row(l, row, one.row(l, 0)).unwrap());
        }
        let last = LayerId(machine.layers().len() - 1);
        let first = (0..machine.layer(last).n_units()).map(|unit| unit == 0).collect();
        let clamp = Clamp::none().with_units(last, first);
        let cost = |x: &State| exact::cost(&machine, &clamp, x, Query::Means).unwrap();
        assert_eq!(cost(&one), cost(&x), "{name}");
        let means = exact::conditional_means(&machine, &clamp, &x).unwrap();
        for l in machine.layer_ids() {
            assert_eq!(means.row(l, 0), means.row(l, 2), "{name}");
        }
        let drawn = exact::conditional_samples(&machine, &clamp, &x, 40, Stream::new(28)).unwrap();
        let of = |row: usize| -> Vec<Vec<u64>> {
            (row * 40..(row + 1) * 40).map(|k| key(&machine, &drawn, k)).collect()
        };
        assert!(of(0) != of(1) && of(1) != of(2), "{name}: rows must not share their variates");
        // A row that holds something else is another row.
        let mut other = one.row(last, 0).to_vec();
        match machine.layer(last).units.group() {
            1 => other[0] = 1.0 - other[0],
            group => other[..group].rotate_left(1),
        }
        x.set_row(last, 1, &other).unwrap();
        assert!(cost(&x).log2_total >= cost(&one).log2_total + 0.99, "{name}");
    }
}

#[test]
fn what_costs_too_much_is_known_and_refused() {
    let rbm = Rbm::binary(40, 35).unwrap();
    let x = State::zeros(rbm.machine(), 2).unwrap();
    for query in [Query::LogSum, Query::Means, Query::Samples] {
        let cost = exact::cost(rbm.machine(), &Clamp::none(), &x, query).unwrap();
        assert_eq!(cost.log2_terms, 35.0, "{query:?}");
        assert!(!cost.is_within(Budget::LIMIT));
    }
    let expected = Error::TooManyTerms { log2_terms: 35.0, limit: 30.0 };
    let means = exact::conditional_means(rbm.machine(), &Clamp::none(), &x);
    assert_eq!(means.unwrap_err(), expected);
    let drawn = exact::conditional_samples(rbm.machine(), &Clamp::none(), &x, 1, Stream::new(1));
    assert_eq!(drawn.unwrap_err(), expected);
    let clamp = Clamp::visible(rbm.machine());
    assert!(exact::conditional_means(rbm.machine(), &clamp, &x).is_ok());
}

/// Stops at the first report.
struct Impatient;

impl Listener for Impatient {
    fn cancelled(&mut self) -> bool {
        true
    }
}

#[test]
fn exact_answers_can_be_cancelled() {
    let rbm = Rbm::binary(4, 3).unwrap();
    let x = State::zeros(rbm.machine(), 1).unwrap();
    let means = exact::conditional_means_with(rbm.machine(), &Clamp::none(), &x, &mut Impatient);
    assert!(matches!(means, Err(Error::Cancelled { .. })));
    let stream = Stream::new(1);
    let drawn = exact::conditional_samples_with(
        rbm.machine(),
        &Clamp::none(),
        &x,
        2,
        stream,
        &mut Impatient,
    );
    assert!(matches!(drawn, Err(Error::Cancelled { .. })));
}
