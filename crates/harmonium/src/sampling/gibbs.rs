//! Block Gibbs sampling (Geman & Geman 1984).
//!
//! A sweep replaces each free layer by a sample of $p(x_l \mid \text{rest})$, all its units at
//! once; where a lateral coupling lets units of one layer see each other, one unit at a time.

use super::packed;
use super::walk::{Heat, Response, Walk, in_tasks};
use super::{Clamp, Sampler};
use crate::engine::Engine;
use crate::error::Error;
use crate::machine::{LayerId, Meaning, State};
use harmonium_kernels::random::Stream;

impl Sampler {
    /// Runs `n_sweeps` sweeps in every row; row `r` and sweep `s` address their own variates.
    ///
    /// # Errors
    ///
    /// If the clamp or the state has another shape than the machine.
    pub fn gibbs(
        &self,
        clamp: &Clamp,
        x: &mut State,
        n_sweeps: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        self.check(clamp, x)?;
        let walk = Walk { engine: self.engine(), clamp, heat: Heat::None, step: 1.0 };
        sample_sweeps(walk, x, 0..n_sweeps, stream);
        Ok(())
    }

    /// Sweeps over everything, without the last block of the last sweep: that is left to the
    /// caller, who computes its natural parameters anyway.
    pub(crate) fn open_sweeps(&self, x: &mut State, n_sweeps: usize, stream: Stream) {
        let (engine, clamp) = (self.engine(), Clamp::none());
        let walk = Walk { engine, clamp: &clamp, heat: Heat::None, step: 1.0 };
        let Some((_, first)) = engine.schedule().split_last() else { return };
        sample_sweeps(walk, x, 0..n_sweeps.saturating_sub(1), stream);
        let sweep = n_sweeps.saturating_sub(1);
        first.iter().for_each(|block| walk.visit_all(x, block, Response::Sample { stream, sweep }));
    }

    /// Whether a clamp and a state are of this machine's shape, and Gaussian units that see each other
    /// and are free have a density.
    pub(super) fn check(&self, clamp: &Clamp, x: &State) -> Result<(), Error> {
        clamp.check(self.graph(), x.n_rows())?;
        x.check(self.graph())?;
        let joints = self.engine().joints().iter();
        for joint in joints.filter(|joint| joint.density().is_none()) {
            if !joint.layers().iter().all(|&l| clamp.holds_layer(l)) {
                self.machine().block_of(joint.layers())?;
            }
        }
        Ok(())
    }
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
                for l in walk.engine.visits(engine.schedule().iter().flatten()) {
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

/// Says what the numbers of all layers that are not wholly held are from now on.
pub(super) fn mark(x: &mut State, clamp: &Clamp, meaning: Meaning) {
    for (l, layer) in (0..).map(LayerId).zip(&mut x.layers) {
        if !clamp.holds_layer(l) {
            layer.meaning = meaning;
        }
    }
}
