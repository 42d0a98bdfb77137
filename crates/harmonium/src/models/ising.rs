//! Machines of statistical physics whose partition function is known: yardsticks for everything
//! that samples or estimates.

use super::Bm;
use crate::error::Error;
use crate::machine::{Coupling, Edges, Layer, LayerId, Machine, Role, Triangle};
use crate::units::Units;
use std::collections::BTreeMap;

/// The longest side of a torus: a million spins, of which a hundred chains take 800 megabytes.
pub const LONGEST_SIDE: usize = 1024;
/// The most spins that all see each other: 100 megabytes of weights, and five times that while
/// they are sampled.
pub const MOST_SPINS: usize = 5000;

/// The Ising model on a torus of `side` × `side` spins,
/// $E(s) = -K\sum_{\langle ij\rangle} s_i s_j$, every spin with a bond to its right and one down.
///
/// The definition is kept to the letter on small tori, as in Kaufman's formula: with side 2 both
/// bonds of a pair join the same two spins and add up to $2K$; with side 1 the spin is its own
/// neighbour and the bonds are the constant $-2K$.
///
/// ```
/// use harmonium::{exact, models::ising_torus};
/// let torus = ising_torus(4, 0.4)?;
/// let kaufman = 14.561093;
/// assert!((exact::log_partition(torus.machine())? - kaufman).abs() < 1e-6);
/// # Ok::<(), harmonium::Error>(())
/// ```
///
/// # Errors
///
/// If the side is not between 1 and [`LONGEST_SIDE`], or $K$ is not finite.
pub fn ising_torus(side: usize, coupling: f64) -> Result<Bm, Error> {
    if !(1..=LONGEST_SIDE).contains(&side) {
        let (name, value) = ("L", side.to_string());
        return Err(Error::Setting { name, value, range: "a whole number from 1 to 1024" });
    }
    check_finite("K", coupling)?;
    let n = side * side;
    let bonds = (0..n).flat_map(|i| {
        let (row, column) = (i / side, i % side);
        [(i, row * side + (column + 1) % side), (i, (row + 1) % side * side + column)]
    });
    let mut constant = 0.0;
    let mut edges: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (i, j) in bonds {
        if i == j {
            constant -= coupling;
        } else {
            *edges.entry((i.min(j), i.max(j))).or_default() += coupling;
        }
    }
    let layer = Layer::new("visible", Role::Visible, Units::Spin, n)?;
    let edges = Edges::new(n, edges.into_iter().map(|((i, j), w)| (i, j, w)))?;
    let machine = Machine::new(vec![layer], vec![Coupling::sparse(LayerId(0), edges)])?;
    Bm::try_from(machine.with_constant(constant)?)
}

/// The Curie–Weiss model, $E(s) = -\tfrac{\beta}{2N}\bigl(\sum_i s_i\bigr)^2$: every spin sees
/// every other with weight $\beta/N$, and the squares $s_i^2 = 1$ are the constant $-\beta/2$.
///
/// # Errors
///
/// If the number of spins is not between 1 and [`MOST_SPINS`], or $\beta$ is not finite.
pub fn curie_weiss(n_spins: usize, beta: f64) -> Result<Bm, Error> {
    if !(1..=MOST_SPINS).contains(&n_spins) {
        let (name, value) = ("N", n_spins.to_string());
        return Err(Error::Setting { name, value, range: "a whole number from 1 to 5000" });
    }
    check_finite("BETA", beta)?;
    let layer = Layer::new("visible", Role::Visible, Units::Spin, n_spins)?;
    let weights = Triangle::from_fn(n_spins, |_, _| beta / n_spins as f64)?;
    let machine = Machine::new(vec![layer], vec![Coupling::lateral(LayerId(0), weights)])?;
    Bm::try_from(machine.with_constant(-0.5 * beta)?)
}

fn check_finite(name: &'static str, value: f64) -> Result<(), Error> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::Setting { name, value: value.to_string(), range: "a finite number" })
}
