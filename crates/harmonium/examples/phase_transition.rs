//! Magnetisation and energy of the Ising model over temperature: samples against Onsager and Yang, and two
//! approximations beside them.
//!
//! A torus of 24 × 24 spins is sampled at five temperatures. The infinite lattice has closed forms for both
//! (Onsager 1944; Yang 1952); mean field and Bethe's approximation, which is belief propagation, put the transition too high.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::Model;
use harmonium::graph::Pairwise;
use harmonium::inference::{FixedPoints, Iteration, belief_propagation, mean_field};
use harmonium::machine::{Clamp, State};
use harmonium::model::Drawing;
use harmonium::models::ising_torus;
use harmonium::progress::Silent;
use std::f64::consts::PI;

const SIDE: usize = 24;

/// The spontaneous magnetisation of the infinite lattice.
fn yang(k: f64) -> f64 {
    (1.0 - (2.0 * k).sinh().powi(-4)).max(0.0).powf(0.125)
}

/// The energy of a spin of the infinite lattice, in units of the coupling.
fn onsager(k: f64) -> f64 {
    let modulus = 2.0 * (2.0 * k).sinh() / (2.0 * k).cosh().powi(2);
    // The complete elliptic integral by the arithmetic-geometric mean.
    let (mut a, mut g) = (1.0, (1.0 - modulus * modulus).sqrt());
    for _ in 0..40 {
        (a, g) = (0.5 * (a + g), (a * g).sqrt());
    }
    let integral = PI / (2.0 * a);
    let rest = 2.0 / PI * (2.0 * (2.0 * k).tanh().powi(2) - 1.0) * integral;
    -(1.0 + rest) / (2.0 * k).tanh()
}

/// The magnetisation in the best fixed point of an approximation.
fn magnetisation(found: &FixedPoints) -> f64 {
    let sum: f64 = found.best.nodes.iter().map(|p| p[1] - p[0]).sum();
    (sum / found.best.nodes.len() as f64).abs()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("   T   |m| sampled    Yang   Bethe  mean field   energy sampled  Onsager");
    for temperature in [1.6, 2.0, 2.2, 3.0, 5.0] {
        let k = 1.0 / temperature;
        let torus = ising_torus(SIDE, k)?;
        let graph = {
            let machine = torus.machine();
            Pairwise::new(machine, &Clamp::none(), &State::zeros(machine, 1)?, 0)?
        };
        let few = |iteration: Iteration| Iteration { random_starts: 4, ..iteration };
        let bethe = belief_propagation(&graph, &few(Iteration::of_messages(&graph)), &mut Silent)?;
        let field = mean_field(&graph, &few(Iteration::of_mean_field(&graph)), &mut Silent)?;

        let drawing = Drawing { n: 200, ..Drawing::default() };
        let drawn = Model::from(torus).freely().draw(&drawing, &mut Silent)?;
        let (spins, samples) = ((SIDE * SIDE) as f64, drawn.values.nrows() as f64);
        let (mut m, mut e) = (0.0, 0.0);
        for row in drawn.values.rows() {
            m += row.sum().abs() / spins / samples;
            let at = |r: usize, c: usize| row[r % SIDE * SIDE + c % SIDE];
            let bonds = (0..SIDE * SIDE).map(|u| {
                let (r, c) = (u / SIDE, u % SIDE);
                at(r, c) * (at(r + 1, c) + at(r, c + 1))
            });
            e -= bonds.sum::<f64>() / spins / samples;
        }
        println!(
            "{temperature:5.2}  {m:11.3}  {:6.3}  {:6.3}  {:10.3}  {e:15.3}  {:7.3}",
            yang(k),
            magnetisation(&bethe),
            magnetisation(&field),
            onsager(k)
        );
        assert!((e - onsager(k)).abs() < 0.05, "the energy of a torus is near that of the lattice");
    }
    Ok(())
}
