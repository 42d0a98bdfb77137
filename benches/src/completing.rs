//! Do error bars of completed values hold? 200 random machines of all kinds with random holes, by Gibbs
//! sampling although they could be summed.
//!
//! One missing cell of each machine counts. A value ± 1.96 standard errors has to hold the exact mean
//! for at least 183 of them: 95 % less what chance allows. By default all cells are exact.

use crate::Outcome;
use crate::coverage::{SHAPES, random};
use harmonium::data::Dataset;
use harmonium::evaluation::verdict::Verdict;
use harmonium::exact;
use harmonium::machine::{LayerId, Machine, State};
use harmonium::model::{Completing, Filling, Found};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Clamp, independent};
use harmonium::{Model, machine::Base};
use ndarray::Array2;
use std::time::Instant;

const N: usize = 200;
/// The fewest that have to hold.
const LEAST: usize = 183;

pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    let (mut held, mut unmixed, mut wrong_default, mut squares) = (0, 0, 0, 0.0);
    let (mut errors, mut sweeps) = (Vec::new(), Vec::new());
    for (k, seed) in (0..N).zip(0_u64..) {
        let shape = k % SHAPES.len();
        let machine = random(&SHAPES[shape], Stream::new(5000 + seed))?;
        let case = Case::new(machine, Stream::new(6000 + seed))?;
        let model = Model::from(case.machine.clone());
        let gibbs = Completing { method: Filling::Gibbs, seed, ..Completing::default() };
        let found = model.complete_with(&case.data()?, None, &gibbs, &mut Silent)?;
        let (row, error) = (found.values[[0, case.column]], found.errors[[0, case.column]]);
        // Numbers are rounded to single precision on the way.
        let gap = ((row - case.exact).abs() - 1e-5).max(0.0);
        held += usize::from(gap <= 1.96 * error);
        squares += (gap / (error + 1e-6)).powi(2);
        unmixed += usize::from(found.verdict != Verdict::Mixed);
        errors.push(error);
        sweeps.push(found.sweeps);
        let usual =
            model.complete_with(&case.data()?, None, &Completing::default(), &mut Silent)?;
        let near = (usual.values[[0, case.column]] - case.exact).abs() < 1e-6;
        wrong_default += usize::from(!near || usual.method != Found::Exact);
    }
    errors.sort_by(f64::total_cmp);
    sweeps.sort_unstable();
    let half = N / 2;
    println!("{held} of {N} bars of 1.96 standard errors hold the exact mean (at least {LEAST})");
    println!("errors in standard errors, root mean square: {:.2}", (squares / N as f64).sqrt());
    println!("standard errors: median {:.4}, largest {:.4}", errors[half], errors[N - 1]);
    println!("sweeps averaged: median {}, most {}", sweeps[half], sweeps[N - 1]);
    println!("not mixed: {unmixed}; by default exact: {}", N - wrong_default);
    println!("{:.0} s", start.elapsed().as_secs_f64());
    if held < LEAST || wrong_default > 0 {
        return Err(format!("{held} bars hold, {wrong_default} defaults are not exact").into());
    }
    Ok(())
}

/// A machine and a row with holes.
struct Case {
    machine: Machine,
    /// The visible layers side by side; NaN where something is missing.
    row: Vec<f64>,
    /// A missing column, and its mean given the rest.
    column: usize,
    exact: f64,
}

impl Case {
    fn new(machine: Machine, stream: Stream) -> Result<Self, harmonium::Error> {
        let base = Base::of_biases(&machine);
        let mut x: State = independent(&machine, &base, 1, stream.fork(0))?;
        let (mut clamp, mut row, mut missing) = (Clamp::none(), Vec::new(), Vec::new());
        let chance = |l: LayerId, unit: usize| stream.uniform(Site::new(1, 0, l.0), unit);
        for l in machine.visible_layers() {
            let layer = machine.layer(l);
            let group = layer.units.group();
            let mut held: Vec<bool> = (0..layer.n_units()).map(|u| chance(l, u) < 0.6).collect();
            held[0] &= l.0 > 0;
            // Tables hold 32-bit numbers.
            #[expect(clippy::cast_possible_truncation, reason = "meant to")]
            let values: Vec<f64> = x.row(l, 0).iter().map(|v| f64::from(*v as f32)).collect();
            for (i, v) in values.iter().enumerate() {
                if !held[i / group] {
                    missing.push((row.len(), l, i));
                }
                row.push(if held[i / group] { *v } else { f64::NAN });
            }
            x.set_row(l, 0, &values)?;
            clamp = clamp.with_units(l, held);
        }
        let chosen = stream.below(Site::new(2, 0, 0), 0, u32::try_from(missing.len()).unwrap_or(1));
        let (column, l, i) = missing[chosen as usize];
        let exact = exact::moments(&machine, &clamp, &x, &[1.0])?.bias[l.0][i];
        Ok(Self { machine, row, column, exact })
    }

    fn data(&self) -> Result<Dataset, Box<dyn std::error::Error>> {
        let row = Array2::from_shape_vec((1, self.row.len()), self.row.clone())?;
        Ok(Dataset::from_array(row.view())?)
    }
}
