//! Block Gibbs sampling (Geman & Geman 1984).
//!
//! A sweep replaces each free layer by a sample of $p(x_l \mid \text{rest})$, all its units at
//! once; where a lateral coupling lets units of one layer see each other, one unit at a time.

use super::Clamp;
use super::walk::{Heat, Place, Walk, in_tasks};
use crate::error::Error;
use crate::machine::{Engine, Machine, Meaning, State};
use crate::units::Draw;
use harmonium_kernels::random::{Site, Stream};

/// Runs `n_sweeps` sweeps in every row; row `r` and sweep `s` address their own variates.
///
/// # Errors
///
/// If the clamp or the state has another shape than the machine.
pub fn gibbs(
    machine: &Machine,
    engine: &Engine,
    clamp: &Clamp,
    x: &mut State,
    n_sweeps: usize,
    stream: Stream,
) -> Result<(), Error> {
    clamp.check(machine, x.n_rows())?;
    x.check(machine)?;
    let walk = Walk { engine, clamp, heat: Heat::None, step: 1.0 };
    sample_sweeps(walk, x, 0..n_sweeps, stream);
    Ok(())
}

/// Sweeps numbered `sweeps`, with whatever heat the walk has.
pub(super) fn sample_sweeps(
    walk: Walk<'_>,
    x: &mut State,
    sweeps: std::ops::Range<usize>,
    stream: Stream,
) {
    mark(x, walk.clamp, Meaning::Values);
    in_tasks(x, |rows, scratch| {
        let all: Vec<usize> = (0..rows.n).collect();
        for sweep in sweeps.clone() {
            walk.sweep(rows, &all, scratch, &|place, theta, precision| {
                sample(walk.engine, place, sweep, stream, theta, precision);
            });
        }
    });
}

/// The response of Gibbs sampling.
pub(super) fn sample(
    engine: &Engine,
    place: Place,
    sweep: usize,
    stream: Stream,
    theta: &mut [f64],
    precision: &[f64],
) {
    let site = Site::new(place.row, sweep, place.layer.0);
    let draw = Draw { stream, site, start: place.start };
    engine.layers()[place.layer.0].units.sample_in_place(theta, precision, draw);
}

/// Says what the numbers of all layers that are not wholly held are from now on.
pub(super) fn mark(x: &mut State, clamp: &Clamp, meaning: Meaning) {
    for (l, layer) in (0..).map(crate::machine::LayerId).zip(&mut x.layers) {
        if !clamp.holds_layer(l) {
            layer.meaning = meaning;
        }
    }
}
