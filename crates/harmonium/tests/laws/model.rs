//! Completing with one machine against enumeration, and the rows and machines of the other laws of a
//! model.

use crate::machines::{all, assert_close, extent, noise, some_states};
use crate::statistics::assert_mean;
use harmonium::evaluation::verdict::Verdict;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State};
use harmonium::model::{Completing, Filling, Found};
use harmonium::models::{Dbm, Rbm, with_labels};
use harmonium::progress::Silent;
use harmonium::sampling::Clamp;
use harmonium::units::Units;
use harmonium::{Dataset, Error, Model, exact};
use ndarray::{Array2, Axis};

/// A visible unit: its layer, its entries there, and its columns beside all others.
pub(crate) struct Cell {
    pub(crate) layer: LayerId,
    pub(crate) entries: std::ops::Range<usize>,
    pub(crate) columns: std::ops::Range<usize>,
}

pub(crate) fn cells(machine: &Machine) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut column = 0;
    for layer in machine.visible_layers() {
        let group = machine.layer(layer).units.group();
        for unit in 0..machine.layer(layer).n_units() {
            let entries = unit * group..(unit + 1) * group;
            cells.push(Cell { layer, entries, columns: column..column + group });
            column += group;
        }
    }
    cells
}

/// Rows of which part is known: each of some states with units left out, as data and as a clamp.
pub(crate) struct Holed {
    pub(crate) x: State,
    /// Whether each visible unit of each row is observed.
    pub(crate) observed: Vec<Vec<bool>>,
}

impl Holed {
    /// Four rows: holes anywhere, other holes, nothing missing, everything missing.
    pub(crate) fn new(machine: &Machine, seed: u64) -> Self {
        let mut x = some_states(machine, 4, seed);
        for l in machine.layer_ids() {
            for row in 0..4 {
                // Tables hold 32-bit numbers.
                let rounded: Vec<f64> =
                    x.row(l, row).iter().map(|&v| f64::from(v as f32)).collect();
                x.set_row(l, row, &rounded).unwrap();
            }
        }
        let n = cells(machine).len();
        let anywhere = |row: usize| (0..n).map(move |i| noise(seed + 1, row * 50 + i) > 0.0);
        let mut observed: Vec<Vec<bool>> = (0..2).map(|row| anywhere(row).collect()).collect();
        // The two rows differ, and both have something to find.
        observed[0][0] = false;
        observed[1][n - 1] = false;
        observed[1][0] = true;
        observed.extend([vec![true; n], vec![false; n]]);
        Self { x, observed }
    }

    /// The clamp that holds what row `row` observes, for a state of one row.
    pub(crate) fn clamp(&self, machine: &Machine, row: usize) -> Clamp {
        let mut clamp = Clamp::none();
        for l in machine.visible_layers() {
            let of = cells(machine).into_iter().zip(&self.observed[row]);
            let held = of.filter(|(cell, _)| cell.layer == l).map(|(_, held)| *held).collect();
            clamp = clamp.with_units(l, held);
        }
        clamp
    }

    /// Row `row` alone.
    pub(crate) fn state(&self, machine: &Machine, row: usize) -> State {
        let mut one = State::zeros(machine, 1).unwrap();
        machine.layer_ids().for_each(|l| one.set_row(l, 0, self.x.row(l, row)).unwrap());
        one
    }

    /// Each row `times` times, as an array with NaN for what is missing.
    pub(crate) fn array(&self, machine: &Machine, times: usize) -> Array2<f64> {
        let cells = cells(machine);
        let n_columns = cells.last().unwrap().columns.end;
        let mut values = Array2::from_elem((4 * times, n_columns), f64::NAN);
        for row in 0..4 * times {
            let of = row / times;
            for (cell, _) in cells.iter().zip(&self.observed[of]).filter(|(_, held)| **held) {
                let known = &self.x.row(cell.layer, of)[cell.entries.clone()];
                for (c, v) in cell.columns.clone().zip(known) {
                    values[[row, c]] = *v;
                }
            }
        }
        values
    }

    pub(crate) fn data(&self, machine: &Machine, times: usize) -> Dataset {
        Dataset::from_array(self.array(machine, times).view()).unwrap()
    }
}

/// The means of the visible entries given what is held, by enumeration or, with real units, by the
/// moments that other laws hold against integrals.
pub(crate) fn conditional_means(machine: &Machine, clamp: &Clamp, x: &State) -> Vec<f64> {
    let moments = exact::moments(machine, clamp, x, &[1.0]).unwrap();
    let means: Vec<f64> =
        machine.visible_layers().iter().flat_map(|l| moments.bias[l.0].clone()).collect();
    if let Ok(states) = exact::states(machine, clamp, x, 0) {
        let p = exact::probabilities(machine, &states).unwrap();
        for cell in cells(machine) {
            for (i, c) in cell.entries.zip(cell.columns) {
                let sum: f64 = (0..p.len()).map(|s| p[s] * states.row(cell.layer, s)[i]).sum();
                assert!((sum - means[c]).abs() < 1e-9, "two sums of one mean");
            }
        }
    }
    means
}

/// Fails unless the mean of independent values is within four standard errors of `expected`, and
/// the rounding of single precision.
pub(crate) fn assert_near(name: &str, values: &[f64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let tolerance = 4.0 * error + 1e-6 * (1.0 + expected.abs());
    assert!((mean - expected).abs() < tolerance, "{name}: {mean} ± {error}, not {expected}");
    assert!(error < 0.1, "{name}: an error of {error} cannot tell anything");
}

/// A machine whose two visible layers see each other, beside those of the laws.
pub(crate) fn seeing_each_other() -> Machine {
    let layer = |name: &str, role, n, seed| {
        let mut layer = Layer::new(name, role, Units::Binary, n).unwrap();
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * noise(seed, i));
        layer
    };
    let layers = vec![
        layer("left", Role::Visible, 2, 1),
        layer("right", Role::Visible, 2, 2),
        layer("hidden", Role::Hidden, 2, 3),
    ];
    let couple = |a: usize, b: usize| {
        let w = |i, j| 8.0 * noise(10 + (a + b) as u64, i * 7 + j);
        Coupling::between(LayerId(a), LayerId(b), Matrix::from_fn(2, 2, w).unwrap())
    };
    Machine::new(layers, vec![couple(0, 1), couple(0, 2), couple(1, 2)]).unwrap()
}

fn completable() -> Vec<(String, Machine)> {
    let more = ("visible layers that see each other".to_owned(), seeing_each_other());
    all().into_iter().chain([more]).collect()
}

/// By default exactly; equal rows are equal whatever the method.
#[test]
fn completed_values_are_exact_conditional_means() {
    for (name, machine) in completable() {
        let holed = Holed::new(&machine, 40);
        let given = holed.array(&machine, 3);
        let data = Dataset::from_array(given.view()).unwrap();
        let model = Model::from(machine.clone());
        let found = model.complete_with(&data, None, &Completing::default(), &mut Silent).unwrap();
        let missing = holed.observed.iter().flatten().filter(|held| !**held).count();
        assert_eq!(found.n_missing, missing * 3, "{name}");
        assert_eq!((found.method, found.verdict), (Found::Exact, Verdict::Exact), "{name}");
        assert_eq!((found.largest_error(), found.warning()), (0.0, None), "{name}");
        for row in 0..12 {
            let (clamp, x) = (holed.clamp(&machine, row / 3), holed.state(&machine, row / 3));
            let means = conditional_means(&machine, &clamp, &x);
            for c in 0..means.len() {
                let (known, value) = (given[[row, c]], found.values[[row, c]]);
                if known.is_nan() {
                    assert_close(means[c], value, 1e-9, &format!("{name}, row {row}, column {c}"));
                } else {
                    assert_eq!(value.to_bits(), known.to_bits(), "{name}: what was observed");
                }
            }
        }
    }
}

/// A value ± 1.96 standard errors holds the exact mean in 95 % of the cells; cells of one machine
/// share their chains, so a machine counts with one of them.
#[test]
fn error_bars_of_completed_values_hold() {
    let (mut held, mut tried) = (0_u32, 0_u32);
    for seed in 0..extent(3, 12) {
        for (name, machine) in completable() {
            let holed = Holed::new(&machine, 400 + seed);
            let data = holed.data(&machine, 2);
            let completing = Completing { method: Filling::Gibbs, seed, ..Completing::default() };
            let model = Model::from(machine.clone());
            let found = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
            assert_eq!(found.method, Found::Gibbs);
            for row in [0, 1, 3] {
                for array in [&found.values, &found.errors] {
                    assert_eq!(array.row(2 * row), array.row(2 * row + 1), "{name}: equal rows");
                }
            }
            // A visible layer of one unit has nothing missing in the second row.
            let row = if cells(&machine).len() > 1 { [0, 1, 3][seed as usize % 3] } else { 3 };
            let means = conditional_means(
                &machine,
                &holed.clamp(&machine, row),
                &holed.state(&machine, row),
            );
            let missing: Vec<usize> =
                (0..means.len()).filter(|c| holed.array(&machine, 1)[[row, *c]].is_nan()).collect();
            let c = missing[seed as usize % missing.len()];
            let (value, error) = (found.values[[2 * row, c]], found.errors[[2 * row, c]]);
            // A unit whose neighbours are all held has one mean, and no error: it must be exact.
            assert!(error < 0.5, "{name}: an error of {error}");
            // Single precision rounds.
            let gap = (value - means[c]).abs() - 1e-6;
            assert!(
                gap < 8.0 * error,
                "{name}, row {row}, column {c}: {value} ± {error}, {means:?}"
            );
            held += u32::from(gap < 1.96 * error);
            tried += 1;
        }
    }
    let (n, p) = (f64::from(tried), 0.95_f64);
    let least = n * p - 4.0 * (n * p * (1.0 - p)).sqrt();
    assert!(f64::from(held) >= least, "{held} of {tried} hold, at least {least:.0} should");
}

/// Samples beside the means are of the same distribution, whatever the method; equal rows have samples of their own.
#[test]
fn samples_of_missing_cells_have_their_means() {
    const DRAWS: usize = 256;
    for (name, machine) in completable() {
        let holed = Holed::new(&machine, 41);
        let (given, data) = (holed.array(&machine, 2), holed.data(&machine, 2));
        let model = Model::from(machine.clone());
        // Samples of one chain are 64 sweeps apart.
        for (method, sweeps) in [(Filling::Exact, None), (Filling::Gibbs, Some(2048))] {
            let completing =
                Completing { method, sweeps, draws: DRAWS, seed: 9, ..Completing::default() };
            let found = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
            assert_eq!(found.draws.dim(), (8 * DRAWS, given.ncols()), "{name}");
            for row in [0, 1, 3] {
                let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
                let means = conditional_means(&machine, &clamp, &x);
                let of_row = 2 * row * DRAWS..2 * (row + 1) * DRAWS;
                for c in 0..means.len() {
                    let drawn: Vec<f64> = of_row.clone().map(|d| found.draws[[d, c]]).collect();
                    let known = given[[2 * row, c]];
                    if known.is_nan() && drawn.iter().any(|v| *v != drawn[0]) {
                        assert_mean(&format!("{name}, {method:?}, {row}, {c}"), &drawn, means[c]);
                    } else if !known.is_nan() {
                        assert!(drawn.iter().all(|v| *v == known), "{name}: what was observed");
                    }
                }
            }
            let copy = |k: usize| {
                found.draws.slice_axis(Axis(0), ((6 + k) * DRAWS..(7 + k) * DRAWS).into())
            };
            assert_ne!(copy(0), copy(1), "{name}: equal rows");
        }
        let many = Completing { draws: 1025, ..Completing::default() };
        assert!(model.complete_with(&data, None, &many, &mut Silent).is_err(), "{name}");
    }
}

#[test]
fn a_mask_hides_as_missing_cells_do_and_a_layer_may_be_absent() {
    for (name, machine) in all() {
        let holed = Holed::new(&machine, 41);
        let mut whole = Holed::new(&machine, 41);
        whole.observed.iter_mut().flatten().for_each(|held| *held = true);
        let mask = holed.array(&machine, 1).mapv(|v| !v.is_nan());
        let completing = Completing { sweeps: Some(5), seed: 2, ..Completing::default() };
        let model = Model::from(machine.clone());
        let complete = |data: &Dataset, mask: Option<&Array2<bool>>| {
            let mask = mask.map(|mask| mask.view());
            model.complete_with(data, mask, &completing, &mut Silent).unwrap()
        };
        let (holes, masked) = (holed.data(&machine, 1), whole.data(&machine, 1));
        assert_eq!(complete(&holes, None), complete(&masked, Some(&mask)), "{name}");
        let first = machine.layer(machine.visible_layers()[0]).len();
        // As many columns as all layers have units would be categories.
        if first < mask.ncols() && first != cells(&machine).len() {
            let mut without = whole.array(&machine, 1);
            let part = without.slice_axis(Axis(1), (..first).into()).to_owned();
            without.slice_axis_mut(Axis(1), (first..).into()).fill(f64::NAN);
            let absent = Dataset::from_array(part.view()).unwrap();
            let missing = Dataset::from_array(without.view()).unwrap();
            assert_eq!(complete(&absent, None), complete(&missing, None), "{name}");
        }
        let wrong = Array2::from_elem((4, mask.ncols() + 1), true);
        let refused = model.complete_with(&masked, Some(wrong.view()), &completing, &mut Silent);
        assert!(matches!(refused, Err(Error::MaskShape { .. })), "{name}: {refused:?}");
    }
}

/// A labelled machine with all weights strong, and the model that remembers the names of classes.
fn labelled(machine: &Machine, seed: u64) -> Model {
    let machine = with_labels(machine, 3).unwrap();
    let mut k = 0;
    let machine = {
        let mut layers = machine.layers().to_vec();
        for layer in &mut layers {
            layer.bias.iter_mut().for_each(|b| {
                k += 1;
                *b = 2.0 * noise(seed, k);
            });
        }
        let couplings = machine.couplings().iter().map(|c| {
            let (n, m) = (layers[c.between.0.0].len(), layers[c.between.1.0].len());
            let at = 100 * (1 + c.between.0.0 + 3 * c.between.1.0);
            let w = |i, j| 4.0 * noise(seed, at + i * 11 + j);
            Coupling::between(c.between.0, c.between.1, Matrix::from_fn(n, m, w).unwrap())
        });
        let couplings = couplings.collect();
        Machine::new(layers, couplings).unwrap()
    };
    let mut model = Model::from(machine);
    model.about.data.classes = ["a", "b", "c"].map(str::to_owned).to_vec();
    model
}

pub(crate) fn labelled_machines() -> Vec<(&'static str, Model)> {
    vec![
        ("labelled RBM", labelled(Rbm::binary(3, 3).unwrap().machine(), 60)),
        ("labelled DBM", labelled(Dbm::binary(3, &[2, 2]).unwrap().machine(), 61)),
    ]
}

/// Probabilities of labels: what is missing in a labelled machine is its layer of labels.
#[test]
fn completed_labels_are_class_probabilities() {
    for (name, model) in labelled_machines() {
        let rows = Array2::from_shape_fn((2, 3), |(_, c)| f64::from(u8::from(c == 1)));
        let data = Dataset::from_array(rows.view()).unwrap();
        let found = model.complete(&data).unwrap();
        let machine = model.top().unwrap();
        let mut one = State::zeros(machine, 1).unwrap();
        one.set_row(LayerId(0), 0, &[0.0, 1.0, 0.0]).unwrap();
        let means = conditional_means(machine, &Clamp::layers([LayerId(0)]), &one);
        for c in 0..6 {
            assert_close(means[c], found[[0, c]], 1e-9, &format!("{name}, column {c}"));
        }
    }
}
