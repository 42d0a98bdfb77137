//! How probable a part of a row is given another part, against enumeration: on every graph and kind of unit, with
//! holes in both parts, exactly and by annealing; and samples of what is hidden.

use crate::machines::{all, assert_close, named, noise};
use crate::model::{Holed, cells};
use harmonium::evaluation::log_partition::Bracket;
use harmonium::evaluation::row_sums::{How, RowWork, annealed_log_sums};
use harmonium::exact;
use harmonium::machine::{Coupling, LayerId, Machine, Matrix};
use harmonium::model::{Completing, Found};
use harmonium::progress::Silent;
use harmonium::sampling::Sampler;
use harmonium::{Dataset, Error, Model};

/// Rows of which a part is asked about: everything that is seen, and what is known of it.
struct Asked {
    all: Holed,
    known: Holed,
}

impl Asked {
    /// The first two rows have holes anywhere, the third none, of the fourth nothing is known; every row has a cell
    /// that is asked about.
    fn new(machine: &Machine, seed: u64) -> Self {
        let (mut all, mut known) = (Holed::new(machine, seed), Holed::new(machine, seed));
        let n = cells(machine).len();
        for row in 0..4 {
            let first = (0..n).find(|&c| row != 2 && !known.observed[row][c]).unwrap_or(row % n);
            known.observed[row][first] = false;
            // Every other cell that is not known stays unseen: it is summed out of both.
            for c in 0..n {
                all.observed[row][c] = known.observed[row][c] || c == first || c % 2 == 0;
            }
        }
        Self { all, known }
    }

    fn data(&self, machine: &Machine) -> (Dataset, Dataset) {
        (self.all.data(machine, 1), self.known.data(machine, 1))
    }

    /// By enumeration, or with real units by the sums that other laws hold against integrals.
    fn exactly(&self, machine: &Machine) -> Vec<f64> {
        let sum = |holed: &Holed, row| {
            let (clamp, x) = (holed.clamp(machine, row), holed.state(machine, row));
            exact::log_sums(machine, &clamp, &x).unwrap()[0]
        };
        (0..4).map(|row| sum(&self.all, row) - sum(&self.known, row)).collect()
    }
}

#[test]
fn conditional_scores_are_differences_of_exact_sums() {
    for (name, machine) in all() {
        let asked = Asked::new(&machine, 80);
        let (data, known) = asked.data(&machine);
        let model = Model::from(machine.clone());
        let found = model.score_given(&data, &known, 0, &mut Silent).unwrap();
        let expected = asked.exactly(&machine);
        for (a, b) in expected.iter().zip(&found.rows) {
            assert_close(*a, *b, 1e-9, &name);
        }
        assert_eq!((found.how, found.bracket), (How::Exact, Bracket::Bound), "{name}");
        assert_close(found.lower, found.upper, 1e-9, &name);
        let per_cell = expected.iter().sum::<f64>() / found.n_asked as f64;
        assert_close(per_cell, found.per_cell(), 1e-9, &name);
    }
}

/// What is asked about a cell after the other is what is asked about both: $\ln p(a, b) = \ln p(b) + \ln p(a \mid b)$.
#[test]
fn conditional_scores_obey_the_chain_rule() {
    for (name, machine) in all() {
        let whole = {
            let mut holed = Holed::new(&machine, 81);
            holed.observed.iter_mut().flatten().for_each(|held| *held = true);
            holed
        };
        let keep = |n: usize| {
            let mut part = Holed::new(&machine, 81);
            let held = |row: &mut Vec<bool>| {
                row.iter_mut().enumerate().for_each(|(c, held)| *held = c < n);
            };
            part.observed.iter_mut().for_each(held);
            part.data(&machine, 1)
        };
        let n = cells(&machine).len();
        if n < 3 {
            continue;
        }
        let (all, most, few) = (whole.data(&machine, 1), keep(n - 1), keep(1));
        let model = Model::from(machine.clone());
        let score = |data, known| model.score_given(data, known, 0, &mut Silent).unwrap();
        let (both, first, second) = (score(&all, &few), score(&most, &few), score(&all, &most));
        for row in 0..4 {
            assert_close(both.rows[row], first.rows[row] + second.rows[row], 1e-9, &name);
        }
    }
}

/// Rows held in part are annealed each as a machine of its own; a lower side is below the sum, an upper side above.
#[test]
fn annealed_sums_of_rows_held_in_part_hold_the_exact_ones() {
    let work = RowWork { betas: 200, chains: 64, seed: 4, ..RowWork::default() };
    for (name, machine) in all() {
        let holed = Holed::new(&machine, 82);
        let sampler = Sampler::new(machine.clone(), harmonium::engine::Arithmetic::F64);
        for row in 0..2 {
            let (clamp, x) = (holed.clamp(&machine, row), holed.state(&machine, row));
            let exact = exact::log_sums(&machine, &clamp, &x).unwrap()[0];
            let sums = annealed_log_sums(&sampler, &clamp, &x, row, &work).unwrap();
            let [_, low, high] = sums.std_errors[0];
            let (lower, upper) = (sums.lower[0] - 5.0 * low, sums.upper[0] + 5.0 * high);
            let hold = lower <= exact + 1e-6 && exact <= upper + 1e-6;
            assert!(hold, "{name}, row {row}: {exact} is not in [{lower}, {upper}]");
        }
    }
}

#[test]
fn nothing_asked_and_other_rows_are_refused() {
    let machine = named("rbm of binary");
    let (model, asked) = (Model::from(machine.clone()), Asked::new(&machine, 83));
    let (data, known) = asked.data(&machine);
    let nothing = model.score_given(&known, &known, 0, &mut Silent);
    assert!(matches!(nothing, Err(Error::Empty { .. })), "{nothing:?}");
    let fewer = known.select_rows(&[0, 1]).unwrap();
    assert!(matches!(
        model.score_given(&data, &fewer, 0, &mut Silent),
        Err(Error::MaskShape { .. })
    ));
}

/// Samples of what is hidden say how they were drawn.
#[test]
fn alternatives_of_small_machines_are_exact() {
    for (name, machine) in all() {
        let data = Holed::new(&machine, 84).data(&machine, 1);
        let model = Model::from(machine.clone());
        let completing = Completing { draws: 3, ..Completing::default() };
        let found = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
        assert_eq!(found.drawn_by.map(|by| by.0), Some(Found::Exact), "{name}");
        assert_eq!(found.draws.nrows(), 12, "{name}");
    }
}

/// A deep machine too large to be summed, whose visible units are all on or all off, equally often: chains hardly
/// change from one to the other.
fn two_valleys() -> Machine {
    let machine = harmonium::models::Dbm::binary(24, &[30, 30]).unwrap().into_machine();
    let mut layers = machine.layers().to_vec();
    layers[0].bias.fill(-4.0);
    layers[1].bias[0] = -96.0;
    let weights = |c: usize, rows: usize| {
        // All other couplings are weak, so that no closed form is found.
        let strong = |i: usize| c == 0 && i.is_multiple_of(30);
        let entry = |i: usize| if strong(i) { 8.0 } else { 0.05 * noise(85, 2000 * c + i) };
        Matrix::from_rows(rows, 30, (0..rows * 30).map(entry).collect()).unwrap()
    };
    let (v, h1, h2) = (LayerId(0), LayerId(1), LayerId(2));
    let couplings =
        vec![Coupling::between(v, h1, weights(0, 24)), Coupling::between(h1, h2, weights(1, 30))];
    Machine::new(layers, couplings).unwrap()
}

/// Where chains stick, alternatives are tempered, and both valleys are seen.
#[test]
fn alternatives_of_chains_that_stick_are_tempered() {
    let model = Model::from(two_valleys());
    let nothing = ndarray::Array2::from_elem((1, 24), f32::NAN);
    let data = Dataset::from_array(nothing.view()).unwrap();
    let completing = Completing { draws: 64, ..Completing::default() };
    let found = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
    assert_eq!(found.drawn_by.map(|by| by.0), Some(Found::Tempered));
    let on = found.draws.rows().into_iter().filter(|row| row.sum() > 12.0).count();
    // Of 64 independent draws 6 to 58 are on but once in 10^10.
    assert!((6..=58).contains(&on), "{on} of 64 are on");
}
