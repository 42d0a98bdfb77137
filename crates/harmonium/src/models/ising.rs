//! Machines of statistical physics whose partition function is known: yardsticks for everything
//! that samples or estimates.

use super::Bm;
use crate::error::Error;
use crate::machine::{Coupling, Edges, Layer, LayerId, Machine, Role, Triangle};
use crate::units::Units;
use std::collections::BTreeMap;

/// The longest side of a torus: a million spins, of which a hundred chains take 800 megabytes.
pub const LONGEST_SIDE: usize = 1024;
/// The most sites of a lattice, times their states.
pub const MOST_SITES: usize = 1 << 20;
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
    ising(&[side, side], coupling, 0.0)
}

/// The Ising model on a periodic lattice of any number of directions,
/// $E(s) = -K\sum_{\langle ij\rangle} s_i s_j - h\sum_i s_i$: every spin has a bond to the next one in
/// each direction, the last of `sides` being that of neighbouring numbers. Sides of one and two are
/// taken to the letter, as in [`ising_torus`].
///
/// # Errors
///
/// If there are no sides, one of them is 0, there are more than [`MOST_SITES`] spins, or $K$ or $h$ is
/// not finite.
pub fn ising(sides: &[usize], coupling: f64, field: f64) -> Result<Bm, Error> {
    let n = n_sites(sides, 1)?;
    check_finite("K", coupling)?;
    check_finite("h", field)?;
    let (edges, n_loops) = bonds(sides, n);
    let mut layer = Layer::new("visible", Role::Visible, Units::Spin, n)?;
    layer.bias.fill(field);
    let edges = edges.into_iter().map(|((i, j), count)| (i, j, f64::from(count) * coupling));
    let couplings = vec![Coupling::sparse(LayerId(0), Edges::new(n, edges)?)];
    let machine = Machine::new(vec![layer], couplings)?;
    Bm::try_from(machine.with_constant(-coupling * n_loops as f64)?)
}

/// The Potts model on a periodic lattice, $E(s) = -K\sum_{\langle ij\rangle} \delta(s_i, s_j)$ with
/// `n_states` states to each site; bonds as in [`ising`].
///
/// # Errors
///
/// If there are no sides, one of them is 0, there are fewer than two states, more than
/// [`MOST_SITES`] sites times states, or $K$ is not finite.
pub fn potts(sides: &[usize], n_states: usize, coupling: f64) -> Result<Bm, Error> {
    let q = n_states;
    let n = n_sites(sides, q)?;
    check_finite("K", coupling)?;
    if q < 2 {
        let (name, value) = ("q", q.to_string());
        return Err(Error::Setting { name, value, range: "a whole number from 2 on" });
    }
    let (edges, n_loops) = bonds(sides, n);
    let layer = Layer::new("visible", Role::Visible, Units::Categorical { q }, n)?;
    let pairs = edges.into_iter().flat_map(|((i, j), count)| {
        (0..q).map(move |s| (i * q + s, j * q + s, f64::from(count) * coupling))
    });
    let couplings = vec![Coupling::sparse(LayerId(0), Edges::new(n * q, pairs)?)];
    let machine = Machine::new(vec![layer], couplings)?;
    Bm::try_from(machine.with_constant(-coupling * n_loops as f64)?)
}

/// Sites of a lattice, if it and its states are not too many.
fn n_sites(sides: &[usize], n_states: usize) -> Result<usize, Error> {
    let entries = sides.iter().map(|&side| side as f64).product::<f64>() * n_states as f64;
    if sides.is_empty() || !(1.0..=MOST_SITES as f64).contains(&entries) {
        let (name, value) = ("the number of sites", entries.to_string());
        return Err(Error::Setting { name, value, range: "from 1 to 1048576, states counted" });
    }
    Ok(sides.iter().product())
}

/// How many bonds join each pair of sites of a periodic lattice, and how many join a site with itself.
fn bonds(sides: &[usize], n: usize) -> (BTreeMap<(usize, usize), u32>, usize) {
    let (mut edges, mut n_loops) = (BTreeMap::new(), 0);
    for i in 0..n {
        let mut stride = 1;
        for &side in sides.iter().rev() {
            let at = i / stride % side;
            let j = i - at * stride + (at + 1) % side * stride;
            stride *= side;
            if i == j {
                n_loops += 1;
            } else {
                *edges.entry((i.min(j), i.max(j))).or_insert(0) += 1;
            }
        }
    }
    (edges, n_loops)
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
