//! NLTCS with cells removed at random: learned around, or filled with the means of their columns.
//!
//! `cargo xtask reproduce holes [--seeds N] [--epochs N] [--share X,...]`
//!
//! Cells of the training rows are removed independently of everything (10, 30 and 50 % of them), by another seed each time, and an RBM is
//! trained three times with the same settings: on the rows as they were, on the rows with their holes, and on the rows with each hole
//! filled by the mean of what is left of its column. The figure is the exact mean log-likelihood of the whole test rows.

use crate::sets::density;
use crate::{Fallible, Outcome};
use harmonium::model::{Blueprint, Method, Training};
use harmonium::models::Rbm;
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::training::{Plan, Posterior};
use harmonium_data::{Binarize, Dataset};
use ndarray::Array2;
use std::time::Instant;

const HIDDEN: usize = 40;
const SHARES: [f64; 3] = [0.1, 0.3, 0.5];

pub(crate) fn run(words: &[&str]) -> Outcome {
    let (mut seeds, mut epochs, mut shares) = (3_u64, 60_u64, SHARES.to_vec());
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let value = words.next().copied().ok_or(format!("`{word}` needs a value"))?;
        match word {
            "--seeds" => seeds = value.parse()?,
            "--epochs" => epochs = value.parse()?,
            "--share" => shares = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            other => return Err(format!("`{other}` is not a flag of `reproduce holes`").into()),
        }
    }
    let set = density("nltcs")?;
    let plan = |seed| Plan { seed, epochs, learning_rate: 0.05, ..Plan::default() };
    println!("{HIDDEN} hidden units, {epochs} epochs; exact test log-likelihoods in nats");
    println!(
        "{:>7} {:>5} {:>9} {:>11} {:>9} {:>18}",
        "removed", "seed", "all cells", "with holes", "filled", "loss / filled loss"
    );
    for &share in &shares {
        let mut losses = Vec::new();
        for seed in 0..seeds {
            let start = Instant::now();
            let (holed, filled) = removed(&set.train, share, seed)?;
            let full = learned(&set.train, &set.test, &plan(seed))?;
            let ours = learned(&holed, &set.test, &plan(seed))?;
            let means = learned(&filled, &set.test, &plan(seed))?;
            let loss = (full - ours) / (full - means);
            losses.push(loss);
            println!("{share:>7} {seed:>5} {full:>9.3} {ours:>11.3} {means:>9.3} {loss:>18.3}");
            eprintln!("{:.0} s", start.elapsed().as_secs_f64());
        }
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        println!("{share:>7}  mean {mean:>49.3}");
    }
    Ok(())
}

/// The rows without a share of their cells, and with the means of their columns in place of these.
fn removed(data: &Dataset, share: f64, seed: u64) -> Fallible<(Dataset, Dataset)> {
    let values = data.to_array(Stream::new(0));
    let (n, d) = values.dim();
    let mut draws = vec![0.0; n * d];
    Stream::new(seed).fork(7).uniforms_into(Site::default(), &mut draws);
    let seen = Array2::from_shape_vec((n, d), draws.iter().map(|u| *u >= share).collect())?;
    let mut filled = values.mapv(|x| x as f32);
    for column in 0..d {
        let there = |row: &usize| seen[[*row, column]];
        let (count, sum) = (0..n)
            .filter(there)
            .fold((0.0, 0.0), |(count, sum), row| (count + 1.0, sum + values[[row, column]]));
        for row in (0..n).filter(|row| !there(row)) {
            filled[[row, column]] = (sum / count) as f32;
        }
    }
    let filled = harmonium_data::Table::from_real(filled.into_raw_vec_and_offset().0, d)?;
    Ok((data.clone().with_mask(seen.view())?, Dataset::new(filled, Binarize::None)?))
}

/// The exact mean log-likelihood of `test` after learning `train`.
fn learned(train: &Dataset, test: &Dataset, plan: &Plan) -> Fallible<f64> {
    let machine = Rbm::binary(train.n_columns(), HIDDEN)?.into_machine();
    let plan = Plan { posterior: Posterior::Auto, ..plan.clone() };
    let model =
        Training::new(Blueprint::Machine(machine), train, &plan).run(&mut [], &mut Silent)?;
    Ok(model.score(test, Method::Exact)?.log_likelihood().ok_or("there is no exact likelihood")?)
}
