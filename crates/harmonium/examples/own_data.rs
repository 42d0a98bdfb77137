//! Own data, an `ndarray` array, to samples: shopping baskets.
//!
//! A restricted Boltzmann machine learns which goods are bought together. Its samples are new baskets
//! with the same habits, which the shares in data and samples show.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::data::ndarray::{Array2, array};
use harmonium::{Dataset, Plan, Rbm, Sweeps};

const GOODS: [&str; 6] = ["bread", "butter", "jam", "beer", "crisps", "nuts"];

/// The share of baskets with `a` among those with `b`.
fn share(baskets: &Array2<f64>, a: usize, b: usize) -> f64 {
    let with_b = baskets.rows().into_iter().filter(|basket| basket[b] == 1.0);
    let (n, both) = with_b.fold((0.0, 0.0), |(n, both), basket| (n + 1.0, both + basket[a]));
    both / n
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let baskets: Array2<u8> = array![
        [1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1, 0],
        [0, 0, 0, 1, 0, 1],
        [1, 0, 0, 1, 1, 0],
        [1, 1, 0, 0, 1, 0],
    ];
    let data = Dataset::from_array(baskets.view())?;
    let plan = Plan { learning_rate: 0.05, ..Plan::for_epochs(8000) };
    let model = Rbm::binary(6, 8)?.train(&data, &plan)?;
    let samples = model.sample(2000, Sweeps(500), 0)?;

    let counted = baskets.mapv(f64::from);
    println!("share of baskets with ...          data  samples");
    for (a, b) in [(1, 0), (2, 1), (4, 3), (3, 0)] {
        let (seen, drawn) = (share(&counted, a, b), share(&samples, a, b));
        println!("{:>7} among those with {:<10} {seen:5.2}  {drawn:7.2}", GOODS[a], GOODS[b]);
        assert!((seen - drawn).abs() < 0.1, "the samples have the habits of the data");
    }
    Ok(())
}
