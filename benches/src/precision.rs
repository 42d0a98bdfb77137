//! Does learning in 16 bits learn as well? The same runs in `i16` and `f32`, ten seeds each, scored
//! by exact likelihoods of data that were not seen.

use crate::{Fallible, Outcome};
use harmonium::evaluation::likelihood;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::training::{Numbers, Plan, train};
use harmonium_data::{Binarize, Dataset, Options, open_dataset};
use std::path::Path;

const SEEDS: u64 = 10;

pub(crate) fn run() -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !folder.is_dir() {
        return Err("the data folder `../shared/data` is absent: nothing to compare on".into());
    }
    let read = |name: &str, binarize| -> Fallible<Dataset> {
        let path = folder.join(name);
        let path = path.to_str().ok_or("a path that is not text")?;
        Ok(open_dataset(path, &Options::default(), binarize)?.dataset)
    };
    let half = Binarize::Threshold(0.5);
    let mnist = Plan::default();
    compare(
        "MNIST, 16 hidden, 20 epochs",
        16,
        &read("mnist/train-images-idx3-ubyte.gz", half)?,
        &read("mnist/t10k-images-idx3-ubyte.gz", half)?,
        &mnist,
    )?;
    let nltcs = Plan {
        epochs: 60,
        chains: 500,
        k: Schedule::Constant(2.0),
        learning_rate: 0.1,
        l2: 0.0,
        ..Plan::default()
    };
    compare(
        "NLTCS, 20 hidden, 60 epochs",
        20,
        &read("density/nltcs/nltcs.train.data", Binarize::None)?,
        &read("density/nltcs/nltcs.test.data", Binarize::None)?,
        &nltcs,
    )
}

fn compare(
    name: &str,
    n_hidden: usize,
    train_on: &Dataset,
    test: &Dataset,
    plan: &Plan,
) -> Outcome {
    println!("{name}: mean test log-likelihood in nats, {SEEDS} seeds");
    let mut summaries = Vec::new();
    for precision in [Numbers::F32, Numbers::I16] {
        let mut scores = Vec::new();
        for seed in 0..SEEDS {
            let plan = Plan { precision, seed, ..plan.clone() };
            let machine = Rbm::binary(train_on.n_columns(), n_hidden)?.into_machine();
            let outcome = train(machine, train_on, &plan, &mut [])?;
            scores.push(likelihood::exact(&outcome.machine, test)?.mean);
        }
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        let deviation =
            (scores.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / (n - 1.0)).sqrt();
        let list: Vec<String> = scores.iter().map(|s| format!("{s:.3}")).collect();
        println!("  {precision:?}: {mean:.4}, seeds differ by {deviation:.4}: {}", list.join(" "));
        summaries.push((mean, deviation, n));
    }
    let [(a, da, na), (b, db, nb)] = summaries[..] else { return Ok(()) };
    let (gap, error) = ((b - a).abs(), (da * da / na + db * db / nb).sqrt());
    println!(
        "  means differ by {gap:.4} = {:.1} standard errors, {:.2} deviations between seeds",
        gap / error,
        gap / da.max(db)
    );
    if gap >= da.max(db) || gap > 2.0 * error {
        return Err(format!("{name}: i16 and f32 learn differently").into());
    }
    Ok(())
}
