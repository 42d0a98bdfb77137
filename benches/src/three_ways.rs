//! One general Boltzmann machine, coupled inside both layers, learned with three data sides:
//! exactly, by clamped Gibbs sampling and by mean field. The model side is exact, so that nothing
//! else differs, and then by persistent chains. All likelihoods are exact.
//!
//! The data are all rows of four bits with an even sum. No pair of bits says anything about them, so
//! that couplings between visible units are of no use and hidden units have to do the work: on bars
//! and stripes the visible couplings do it alone, and all data sides come out the same.

use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::{bound, likelihood};
use harmonium::machine::{Batch, Machine};
use harmonium::models::{Bm, Lateral};
use harmonium::optim::Schedule;
use harmonium::sampling::{Clamp, MeanField, Sampler};
use harmonium::training::{Plan, Posterior, Rule, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table, synthetic};
use std::time::Instant;

const SEEDS: u64 = 5;
const N_VISIBLE: usize = 4;
const N_HIDDEN: usize = 5;

pub(crate) fn run() -> Outcome {
    let rows = even_rows();
    let table = Table::from_real(rows.clone(), N_VISIBLE)?;
    let data = Dataset::new(table, Binarize::Threshold(0.5))?;
    let independent = data.n_rows() as f64 * N_VISIBLE as f64 * 0.5_f64.ln();
    println!(
        "even parity of {N_VISIBLE} bits, bm {N_VISIBLE}-{N_HIDDEN} with laterals in both layers; \
         without hidden units {independent:.2}, best possible {:.2}",
        synthetic::best_total(data.table())
    );
    println!("totals by seed, and how far the mean-field bound is below each");
    for (rule, learning_rate) in [(Rule::Exact, 0.5), (Rule::Pcd, 0.05)] {
        for posterior in [Posterior::Exact, Posterior::Gibbs, Posterior::MeanField] {
            let start = Instant::now();
            let (mut totals, mut gaps) = (Vec::new(), Vec::new());
            for seed in 0..SEEDS {
                let plan = Plan {
                    seed,
                    posterior,
                    rule,
                    learning_rate,
                    epochs: 3000,
                    chains: 500,
                    k: Schedule::Constant(5.0),
                    momentum: Schedule::Constant(0.9),
                    l2: 0.0,
                    // Hidden units that start alike would stay alike for long.
                    initial_std: 0.5,
                    ..Plan::default()
                };
                let sizes = ((Units::Binary, N_VISIBLE), (Units::Binary, N_HIDDEN));
                let machine = Bm::new(sizes.0, sizes.1, Lateral::Both)?.into_machine();
                let machine = train(machine, &data, &plan, &mut [])?.machine;
                let exact = likelihood::exact(&machine, &data)?;
                let gap = exact.total() - bound_total(&machine, &rows, exact.log_partition)?;
                totals.push(format!("{:.2}", exact.total()));
                gaps.push(format!("{gap:.2}"));
            }
            println!(
                "model side {:5}  data side {:10} {}; bounds below by {}; {:.0} s",
                format!("{rule:?}").to_lowercase(),
                format!("{posterior:?}").to_lowercase(),
                totals.join(" "),
                gaps.join(" "),
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}

/// All rows of bits with an even sum.
fn even_rows() -> Vec<f32> {
    let bit = |row: u32, i: usize| if row >> i & 1 == 1 { 1.0 } else { 0.0 };
    let even = (0..1_u32 << N_VISIBLE).filter(|row| row.count_ones() % 2 == 0);
    even.flat_map(|row| (0..N_VISIBLE).map(move |i| bit(row, i))).collect()
}

/// The mean-field bound on the total log-likelihood.
fn bound_total(machine: &Machine, rows: &[f32], log_z: f64) -> Fallible<f64> {
    let (sampler, clamp) =
        (Sampler::new(machine.clone(), Arithmetic::F64), Clamp::visible(machine));
    let rows: Vec<f64> = rows.iter().map(|x| f64::from(*x)).collect();
    let mut x = Batch::from_rows(machine, N_VISIBLE, &rows)?.to_state(machine)?;
    sampler.start_outwards(&clamp, &mut x)?;
    let settings = MeanField { max_sweeps: 1000, ..MeanField::default() };
    sampler.mean_field(&clamp, &mut x, settings)?;
    let bounds = bound::unnormalised(machine, &clamp, &x)?;
    Ok(bounds.iter().map(|b| b - log_z).sum())
}
