//! Where plain chains fail: contrastive divergence, persistent chains and tempered chains at one
//! large, constant rate, without centering or penalties.
//!
//! The likelihood of CD-1 first rises and then falls while training goes on (Fischer & Igel,
//! "Empirical analysis of the divergence of Gibbs sampling based learning algorithms for restricted
//! Boltzmann machines", ICANN 2010): its chains never leave the data. One persistent sweep does not
//! keep up with weights that grow. Chains that exchange temperatures do. All totals are exact.

use crate::{Fallible, Outcome};
use harmonium::evaluation::likelihood;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Rule, train};
use harmonium_data::synthetic::{self, Repeats};
use harmonium_data::{Binarize, Dataset};
use std::time::Instant;

/// A problem, and how it is learned.
struct Problem {
    name: &'static str,
    data: Dataset,
    n_hidden: usize,
    rate: f64,
    epochs: [u64; 4],
}

pub(crate) fn run() -> Outcome {
    let problems = [
        Problem {
            name: "bars and stripes 4x4, 30 patterns",
            data: Dataset::new(synthetic::bars_and_stripes(4, Repeats::Distinct)?, Binarize::None)?,
            n_hidden: 16,
            rate: 0.2,
            epochs: [1000, 4000, 16_000, 32_000],
        },
        Problem {
            name: "labelled shifter, 768 rows",
            data: Dataset::new(synthetic::shifter()?, Binarize::None)?,
            n_hidden: 24,
            rate: 0.4,
            epochs: [2000, 8000, 16_000, 40_000],
        },
    ];
    for problem in &problems {
        problem.run()?;
    }
    Ok(())
}

impl Problem {
    fn run(&self) -> Outcome {
        let best = synthetic::best_total(self.data.table());
        println!(
            "{}, {} hidden, rate {}; best possible {best:.2}; totals after {:?} epochs",
            self.name, self.n_hidden, self.rate, self.epochs
        );
        let mut last = Vec::new();
        for (name, rule) in [("CD-1", Rule::Cd), ("PCD-1", Rule::Pcd), ("tempered", Rule::Pt)] {
            let start = Instant::now();
            print!("  {name:9}");
            let mut total = 0.0;
            for epochs in self.epochs {
                total = self.total(rule, epochs)?;
                print!(" {total:10.2}");
            }
            println!("  {:.0} s", start.elapsed().as_secs_f64());
            last.push(total);
        }
        if last[2] <= last[0].max(last[1]) {
            return Err(
                format!("{}: tempered chains are not the best in the end", self.name).into()
            );
        }
        Ok(())
    }

    fn total(&self, rule: Rule, epochs: u64) -> Fallible<f64> {
        let plan = Plan {
            rule,
            epochs,
            batch: self.data.n_rows(),
            chains: if rule == Rule::Pt { 100 } else { 1000 },
            replicas: 10,
            learning_rate: self.rate,
            decay: Schedule::Constant(1.0),
            momentum: Schedule::Constant(0.0),
            l2: 0.0,
            center: false,
            ..Plan::default()
        };
        let machine = Rbm::binary(self.data.n_columns(), self.n_hidden)?.into_machine();
        let outcome = train(machine, &self.data, &plan, &mut [])?;
        Ok(likelihood::exact(&outcome.machine, &self.data)?.total())
    }
}
