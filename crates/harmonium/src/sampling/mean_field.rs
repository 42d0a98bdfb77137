//! Mean field: the factorised $q$ that is closest to $p$ in the sense of the lower bound.
//!
//! Iterates $m_l \leftarrow E[x_l \mid m_{\setminus l}]$ over the free layers, one after the
//! other (unit by unit inside laterally coupled layers; Gaussian units that see each other together, as
//! one Gaussian with their covariance). Each update maximises the bound
//! $-\langle E\rangle_q + H(q)$ over its block while the rest is held, so sequential mean field
//! never lowers it. Rows stop on their own, so a row's result does not depend on its neighbours.

use super::gibbs::mark;
use super::walk::{Heat, Response, Walk, in_tasks};
use super::{Clamp, Sampler, fast_mean_field, packed};
use crate::engine::Engine;
use crate::error::Error;
use crate::machine::{FreeReals, LayerId, Machine, Meaning, State};
use serde::{Deserialize, Serialize};

/// When a mean-field iteration stops, and how far it moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeanField {
    /// A row is done once no mean moves by more than this.
    pub tolerance: f64,
    /// Sweeps after which a row stops in any case.
    pub max_sweeps: usize,
    /// How much of the old value is kept at each update; 0 is plain coordinate ascent.
    pub damping: f64,
}

impl Default for MeanField {
    fn default() -> Self {
        Self { tolerance: 1e-6, max_sweeps: 50, damping: 0.0 }
    }
}

impl MeanField {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(0.0..1.0).contains(&self.damping) {
            let value = self.damping.to_string();
            return Err(Error::Setting { name: "damping", value, range: "at least 0, below 1" });
        }
        if self.max_sweeps == 0 {
            let value = "0".into();
            return Err(Error::Setting { name: "max-sweeps", value, range: "at least 1" });
        }
        Ok(())
    }
}

/// What a fixed-point iteration did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Convergence {
    /// Sweeps of the slowest row.
    pub sweeps: usize,
    /// Mean number of sweeps of a row.
    pub mean_sweeps: f64,
    /// Largest change of a mean in a row's last sweep.
    pub change: f64,
    /// Rows that did not reach the tolerance.
    pub unconverged: usize,
}

impl Sampler {
    /// Replaces the free layers of every row by means of the factorised posterior.
    ///
    /// The values in `x` are where it starts. Not reaching the tolerance is reported, not an error.
    ///
    /// # Errors
    ///
    /// If a setting is out of range, or clamp or state have another shape than the machine.
    pub fn mean_field(
        &self,
        clamp: &Clamp,
        x: &mut State,
        settings: MeanField,
    ) -> Result<Convergence, Error> {
        settings.check()?;
        self.check(clamp, x)?;
        mark(x, clamp, Meaning::Means);
        let step = 1.0 - settings.damping;
        let walk = Walk { engine: self.engine(), clamp, heat: Heat::None, step };
        Ok(until_still(walk, x, settings.max_sweeps, settings.tolerance, Response::Mean))
    }

    /// Starts the free layers from what is held, outwards from it: a place from which mean field
    /// needs few sweeps.
    ///
    /// A layer sees those of its neighbours that are held or were started before it; the others
    /// stand at their offsets and send nothing, which in a centered machine is their best guess.
    /// Salakhutdinov & Hinton (2009) count what comes from below twice, to stand for what is missing
    /// from above: that starts farther from the fixed point, with and without centering.
    ///
    /// # Errors
    ///
    /// If clamp or state have another shape than the machine.
    pub fn start_outwards(&self, clamp: &Clamp, x: &mut State) -> Result<(), Error> {
        self.check(clamp, x)?;
        let (graph, engine) = (self.graph(), self.engine());
        let mut waiting: Vec<LayerId> =
            graph.layer_ids().filter(|&l| clamp.frees_layer(l)).collect();
        for &l in &waiting {
            x.set_layer(l, &engine.offsets()[l.0].repeat(x.n_rows()));
        }
        mark(x, clamp, Meaning::Means);
        let mut at_rest = State::zeros(graph, 1)?;
        for (l, offset) in graph.layer_ids().zip(engine.offsets()) {
            at_rest.set_layer(l, offset);
        }
        let sees = |l: LayerId, waiting: &[LayerId]| {
            graph.layer_ids().any(|m| m != l && graph.coupled(l, m) && !waiting.contains(&m))
        };
        while let Some(next) = waiting.iter().position(|&l| sees(l, &waiting)) {
            let l = waiting[next];
            let waits = |m: LayerId| waiting.contains(&m);
            match engine {
                Engine::Packed(engine) if fast_mean_field::knows(engine, l) => {
                    fast_mean_field::start(engine, l, waits, &mut at_rest, x);
                }
                _ => visit_means(engine, clamp, x, &[l]),
            }
            waiting.remove(next);
        }
        Ok(())
    }

    /// Replaces layers that do not see each other by their conditional means.
    ///
    /// Given the rest these means are exact, so statistics taken with them have less noise and the
    /// same expectation (Rao–Blackwell). Layers with lateral couplings and Gaussian units that see each
    /// other are left as they are.
    pub(crate) fn average_block(&self, clamp: &Clamp, x: &mut State, block: &[LayerId]) {
        let engine = self.engine();
        let alone = |l: &LayerId| {
            let layer = &engine.layers()[l.0];
            layer.lateral.is_none() && layer.joint.is_none() && clamp.frees_layer(*l)
        };
        let block: Vec<LayerId> = block.iter().copied().filter(alone).collect();
        visit_means(engine, clamp, x, &block);
        for l in block {
            x.layers[l.0].meaning = Meaning::Means;
        }
    }
}

/// Sweeps every row until it moves no more than `tolerance`.
pub(super) fn until_still(
    walk: Walk<'_>,
    x: &mut State,
    max_sweeps: usize,
    tolerance: f64,
    response: Response,
) -> Convergence {
    let n_rows = x.n_rows();
    let reports = match walk.engine {
        Engine::Packed(engine) if fast_mean_field::fits(&walk, engine, response) => {
            fast_mean_field::until_still(&walk, engine, x, max_sweeps, tolerance)
        }
        Engine::Packed(engine) => {
            let mut sweep = |active: &[usize], change: &mut Vec<f64>| {
                change.clear();
                change.resize(n_rows, 0.0);
                for l in walk.engine.visits(engine.schedule().iter().flatten()) {
                    packed::visit(&walk, engine, x, l, active, response, change);
                }
            };
            vec![iterate(n_rows, max_sweeps, tolerance, &mut sweep)]
        }
        Engine::Reference(engine) => in_tasks(x, |rows, scratch| {
            let n = rows.n;
            let mut sweep = |active: &[usize], change: &mut Vec<f64>| {
                scratch.change.clear();
                walk.sweep(engine, rows, active, scratch, response);
                // A walk with nothing free has moved nothing.
                scratch.change.resize(n, 0.0);
                change.clone_from(&scratch.change);
            };
            iterate(n, max_sweeps, tolerance, &mut sweep)
        }),
    };
    Convergence {
        sweeps: reports.iter().map(|r| r.0).max().unwrap_or(0),
        mean_sweeps: reports.iter().map(|r| r.1).sum::<usize>() as f64 / n_rows.max(1) as f64,
        change: reports.iter().map(|r| r.2).fold(0.0, f64::max),
        unconverged: reports.iter().map(|r| r.3).sum(),
    }
}

/// Of some rows: most sweeps, sweeps of all rows, largest last change, and rows that still move.
pub(super) type Report = (usize, usize, f64, usize);

/// Sweeps `n` rows until each is still.
pub(super) fn iterate(
    n: usize,
    max_sweeps: usize,
    tolerance: f64,
    sweep: &mut dyn FnMut(&[usize], &mut Vec<f64>),
) -> Report {
    let mut active: Vec<usize> = (0..n).collect();
    let mut change = Vec::new();
    let (mut total, mut sweeps, mut worst) = (0, 0, 0.0_f64);
    while !active.is_empty() && sweeps < max_sweeps {
        sweep(&active, &mut change);
        (sweeps, total) = (sweeps + 1, total + active.len());
        let (still, moving) = active.iter().partition(|&&r| change[r] <= tolerance);
        let still: Vec<usize> = still;
        worst = still.iter().map(|&r| change[r]).fold(worst, f64::max);
        active = moving;
    }
    worst = active.iter().map(|&r| change[r]).fold(worst, f64::max);
    (sweeps, total, worst, active.len())
}

/// Visits layers once, putting their free units at their conditional means.
pub(super) fn visit_means(engine: &Engine, clamp: &Clamp, x: &mut State, layers: &[LayerId]) {
    let walk = Walk { engine, clamp, heat: Heat::None, step: 1.0 };
    walk.visit_all(x, layers, Response::Mean);
}

/// $-\langle E\rangle_q + H(q)$ of each row, whose free layers hold means; free Gaussian units have the covariance
/// $\Lambda^{-1}$. A bound of $\ln\sum_h e^{-E(v, h)}$, which is met where the free units are independent.
///
/// # Errors
///
/// If clamp or state do not fit the machine.
pub(crate) fn bounds(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    clamp.check(machine, x.n_rows())?;
    let mut bounds: Vec<f64> = machine.energies(x)?.into_iter().map(|e| -e).collect();
    for (row, bound) in bounds.iter_mut().enumerate() {
        let finite = |l: &LayerId| !clamp.holds_layer(*l) && !machine.is_gaussian(*l);
        for l in machine.layer_ids().filter(finite) {
            let (layer, means) = (machine.layer(l), x.row(l, row));
            let group = layer.units.group();
            for unit in (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)) {
                let range = unit * group..(unit + 1) * group;
                *bound += layer.units.entropy(&means[range.clone()], layer.own().piece(range));
            }
        }
    }
    // The entropy of a Gaussian, less what its spread adds to the energy: n/2.
    for FreeReals { density, rows, .. } in machine.free_reals(clamp, x.n_rows())? {
        rows.iter().for_each(|&row| bounds[row] += density.constant());
    }
    Ok(bounds)
}
