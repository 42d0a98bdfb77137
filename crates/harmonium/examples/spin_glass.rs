//! The ground state of a spin glass, exactly and by four searches.
//!
//! Couplings of +1 and −1 on a grid of 12 × 12 spins frustrate each other: no state satisfies all of them, and many states are
//! stable against the flip of any one spin (Edwards & Anderson 1975). The grid is narrow, so the best state is known;
//! what a search finds can be held against it.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::Model;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Role};
use harmonium::model::{Approach, Maximiser, Maximising};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::units::Units;

const SIDE: usize = 12;

/// A grid with open sides whose couplings are ±1, drawn from a seed, at inverse temperature `beta`.
fn glass(beta: f64, seed: u64) -> Result<Machine, harmonium::Error> {
    let n = SIDE * SIDE;
    let right = (0..n).filter(|u| u % SIDE + 1 < SIDE).map(|u| (u, u + 1));
    let down = (0..n - SIDE).map(|u| (u, u + SIDE));
    let sign =
        |k: usize| if Stream::new(seed).uniform(Site::default(), k) < 0.5 { 1.0 } else { -1.0 };
    let edges = right.chain(down).enumerate().map(|(k, (u, v))| (u, v, beta * sign(k)));
    let layer = Layer::new("spins", Role::Visible, Units::Spin, n)?;
    Machine::new(vec![layer], vec![Coupling::sparse(LayerId(0), Edges::new(n, edges)?)])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::from(glass(1.0, 0)?);
    let spins = (SIDE * SIDE) as f64;
    let mut ground = f64::NAN;
    for by in [
        Maximiser::Exact,
        Maximiser::MaxProduct,
        Maximiser::Alternating,
        Maximiser::Annealing,
        Maximiser::Tempering,
    ] {
        let maximising = Maximising { by, sweeps: Some(500), ..Maximising::default() };
        let found = model.freely().most_probable(&maximising, &mut Silent)?;
        if by == Maximiser::Exact {
            ground = found.energy;
        }
        let proof = if found.mode.is_proved() { ", proved" } else { "" };
        println!(
            "{:<12} E = {:7.1}, {:.4} a spin; {} of {} starts{proof}",
            by.name(),
            found.energy,
            found.energy / spins,
            found.mode.hits,
            found.mode.starts
        );
        assert!(found.energy >= ground - 1e-9, "no search is below the ground state");
    }
    // How many ground states there are: ln Z + beta E falls to their logarithm as it gets colder.
    let cold = Model::from(glass(12.0, 0)?).infer(Approach::JunctionTree)?;
    let log_z = cold.answers[0].log_z.ok_or("it is exact")?;
    println!("about e^{:.1} states have the energy of the ground state", log_z + 12.0 * ground);
    Ok(())
}
