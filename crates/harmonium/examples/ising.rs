//! The Ising model on a torus and its ln Z, against Kaufman's formula of 1949.
//!
//! A torus of 4 × 4 spins is summed exactly. One of 16 × 16 has 2²⁵⁶ states; sampled from both sides, its
//! ln Z comes with an interval, which the formula can check.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::Model;
use harmonium::evaluation::log_partition::{Method, Settings};
use harmonium::models::ising_torus;
use harmonium::progress::Silent;

/// $\ln Z$ of a torus of `side` × `side` spins with coupling `k` (Kaufman, Phys. Rev. 76, 1949).
fn kaufman(side: usize, k: f64) -> f64 {
    let n = side as f64;
    // cosh γ_q = cosh 2K coth 2K − cos(π q / n), and γ_0 = 2K + ln tanh K.
    let gamma = |q: usize| match q {
        0 => 2.0 * k + k.tanh().ln(),
        _ => ((2.0 * k).cosh() / (2.0 * k).tanh() - (std::f64::consts::PI * q as f64 / n).cos())
            .acosh(),
    };
    let product = |odd: usize, sign: f64| -> f64 {
        (0..side)
            .map(|r| 0.5 * n * gamma(2 * r + odd))
            .map(|g| g.exp() + sign * (-g).exp())
            .product()
    };
    let sum = product(1, 1.0) + product(1, -1.0) + product(0, 1.0) + product(0, -1.0);
    0.5 * n * n * (2.0 * (2.0 * k).sinh()).ln() - 2.0_f64.ln() + sum.ln()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let small = Model::from(ising_torus(4, 0.4)?);
    let exact = small.log_partition(&Settings::default(), &mut Silent)?;
    let known = kaufman(4, 0.4);
    println!("4 x 4 spins, K = 0.4:   ln Z = {:.6}, by Kaufman {known:.6}", exact.log_z);
    assert!((exact.log_z - 14.561_093).abs() < 1e-6);

    let large = Model::from(ising_torus(16, 0.4)?);
    let method = Some(Method::Sandwich);
    let settings = Settings { method, betas: Some(1000), ..Settings::default() };
    let sampled = large.log_partition(&settings, &mut Silent)?;
    let (known, spins) = (kaufman(16, 0.4), 256.0);
    println!(
        "16 x 16 spins, K = 0.4: ln Z = {:.2} between {:.2} and {:.2}, by Kaufman {known:.2}",
        sampled.log_z, sampled.lower, sampled.upper
    );
    println!("A spin adds {:.4} nats; alone it would add ln 2 = 0.6931.", known / spins);
    assert!(sampled.lower <= known && known <= sampled.upper, "the interval holds the known value");
    Ok(())
}
