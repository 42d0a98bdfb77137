//! Block Gibbs sampling (Geman & Geman 1984).
//!
//! A sweep replaces each free layer by a sample of $p(x_l \mid \text{rest})$, all its units at
//! once; where a lateral coupling lets units of one layer see each other, one unit at a time.

use super::Clamp;
use super::packed;
use super::walk::{Heat, Response, Walk, in_tasks};
use crate::engine::Engine;
use crate::error::Error;
use crate::machine::{LayerId, Machine, Meaning, State};
use harmonium_kernels::random::Stream;

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
    if sweeps.is_empty() {
        return;
    }
    match walk.engine {
        Engine::Packed(engine) => {
            for sweep in sweeps {
                for &l in engine.schedule().iter().flatten() {
                    let response = Response::Sample { stream, sweep };
                    packed::visit_all_rows(&walk, engine, x, l, response);
                }
            }
        }
        Engine::Reference(engine) => {
            in_tasks(x, |rows, scratch| {
                let all: Vec<usize> = (0..rows.n).collect();
                for sweep in sweeps.clone() {
                    walk.sweep(engine, rows, &all, scratch, Response::Sample { stream, sweep });
                }
            });
        }
    }
}

/// Sweeps over everything, without the last block of the last sweep.
pub(crate) fn open_sweeps(engine: &Engine, x: &mut State, n_sweeps: usize, stream: Stream) {
    let clamp = Clamp::none();
    let walk = Walk { engine, clamp: &clamp, heat: Heat::None, step: 1.0 };
    let Some((_, first)) = engine.schedule().split_last() else { return };
    sample_sweeps(walk, x, 0..n_sweeps.saturating_sub(1), stream);
    let sweep = n_sweeps.saturating_sub(1);
    first.iter().for_each(|block| walk.visit_all(x, block, Response::Sample { stream, sweep }));
}

/// Says what the numbers of all layers that are not wholly held are from now on.
pub(super) fn mark(x: &mut State, clamp: &Clamp, meaning: Meaning) {
    for (l, layer) in (0..).map(LayerId).zip(&mut x.layers) {
        if !clamp.holds_layer(l) {
            layer.meaning = meaning;
        }
    }
}
