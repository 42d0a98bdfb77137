//! Where a DBM starts: from random weights without centering, centered, pre-trained, and both. The
//! same training follows each; likelihoods of the embedded digits are exact.
//!
//! Who wins depends on the learning rate, so there are two: at the small one pre-training leads and
//! centering has not caught up; at the large one centering leads, and joint training without it even
//! spoils what pre-training had reached.

use crate::Outcome;
use harmonium::evaluation::likelihood;
use harmonium::models::Dbm;
use harmonium::training::{Plan, train};
use harmonium_data::{Binarize, Dataset, digits};
use std::time::Instant;

const SEEDS: u64 = 2;
const EPOCHS: u64 = 300;

pub(crate) fn run() -> Outcome {
    let (table, _) = digits::digits()?;
    let data = Dataset::new(table, Binarize::Threshold(0.5))?;
    let cases = [&[16, 10][..], &[16, 10, 4]].into_iter().flat_map(|h| [(h, 0.01), (h, 0.05)]);
    for (hidden, learning_rate) in cases {
        println!(
            "digits 8x8 at threshold 0.5, dbm 64-{hidden:?}, rate {learning_rate}: mean exact log-likelihood"
        );
        for (name, center, pretrain_epochs) in [
            ("random, uncentered", false, 0),
            ("pre-trained, uncentered", false, 50),
            ("random, centered", true, 0),
            ("pre-trained, centered", true, 50),
        ] {
            let start = Instant::now();
            let mut means = [Vec::new(), Vec::new()];
            for seed in 0..SEEDS {
                let plan = Plan { seed, center, pretrain_epochs, learning_rate, ..Plan::default() };
                for (epochs, means) in [0, EPOCHS].into_iter().zip(&mut means) {
                    let machine = Dbm::binary(64, hidden)?.into_machine();
                    let plan = Plan { epochs, ..plan.clone() };
                    let outcome = train(machine, &data, &plan, &mut [])?;
                    means.push(likelihood::exact(&outcome.machine, &data)?.mean);
                }
            }
            let [before, after] = means
                .map(|means| means.iter().map(|m| format!("{m:.2}")).collect::<Vec<_>>().join(" "));
            println!(
                "{name:24} start {before}  after {EPOCHS} epochs {after}  ({:.0} s)",
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
