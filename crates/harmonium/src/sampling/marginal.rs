//! The weight of a state once the layers that a sweep visits first are summed out.
//!
//! $S$ is the first block of the schedule without the layers that are coupled with themselves, unless these
//! are Gaussian, which are integrated together; $K$ is everything else. A sweep replaces $x_S$ before anything reads it, so that $x_K$ alone is the
//! state of a chain, with
//!
//! $$\ln p^*(x_K) = \sum_{l \in S} \Gamma_l(\theta_l) - E(x_K, x_S = 0)$$
//!
//! where $\Gamma$ is `log_partition` of the units and $\theta$ their input: minus the free energy.
//! Two machines of one graph have the same $S$ and $K$. Chains that exchange $x_K$ accept more often
//! than chains that exchange everything, because $x_S$ need not fit.

use super::Sampler;
use crate::error::Error;
use crate::machine::{LayerId, Machine, State, own_energy, pair_energy};
use crate::units::OwnParameters;
use rayon::prelude::*;

/// Numbers to work on below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 50_000;

/// A machine seen through the layers that are not summed out. It remembers biases: it is of use as
/// long as the machine does not change.
#[derive(Clone, Debug)]
pub(crate) struct Marginal {
    summed: Vec<LayerId>,
    /// The kept layers, and their biases without offsets.
    kept: Vec<(LayerId, Vec<f64>)>,
    /// The machine without offsets, where kept layers see each other or themselves.
    coupled: Option<Machine>,
    constant: f64,
}

impl Marginal {
    /// Of the machine of a sampler, with its constant: what $\ln Z$ is made of.
    pub(crate) fn of(machine: &Machine) -> Result<Self, Error> {
        let folded = machine.without_offsets()?;
        let (summed, kept) = split(machine);
        let inside = folded.couplings().iter().any(|c| inside(&kept, c.between));
        let constant = folded.constant();
        let bias = |&l: &LayerId| (l, folded.layer(l).bias.clone());
        let kept = kept.iter().map(bias).collect();
        Ok(Self { summed, kept, constant, coupled: inside.then_some(folded) })
    }

    /// Of the layout of a sampler up to a constant, which is enough for exchanges: at no cost while
    /// the layout learns, where that can be.
    pub(crate) fn up_to_constant(sampler: &Sampler) -> Result<Self, Error> {
        let graph = sampler.graph();
        let (summed, kept) = split(graph);
        let layers = sampler.engine().layers();
        let plain = summed.iter().all(|l| layers[l.0].shift == 0.0);
        if !plain || graph.couplings().iter().any(|c| inside(&kept, c.between)) {
            return Self::of(sampler.machine());
        }
        let kept = kept.iter().map(|&l| (l, layers[l.0].bias.clone())).collect();
        Ok(Self { summed, kept, coupled: None, constant: 0.0 })
    }

    /// $\ln p^*(x_K)$ of each row.
    pub(crate) fn log_densities(&self, sampler: &Sampler, x: &mut State) -> Vec<f64> {
        let of = |&l: &LayerId| (l, sampler.natural_parameters(x, l));
        let thetas: Vec<(LayerId, Vec<f64>)> = self.summed.iter().map(of).collect();
        let layers = sampler.engine().layers();
        let x = &*x;
        let density = |row: usize| {
            let mut log = -self.constant;
            for (l, theta) in thetas.iter().filter(|(l, _)| layers[l.0].joint.is_none()) {
                let layer = &layers[l.0];
                let theta = &theta[row * layer.len..(row + 1) * layer.len];
                log += layer.units.log_partition(theta, OwnParameters::new(&layer.own, layer.len));
            }
            for joint in sampler.engine().joints().iter().filter(|j| self.sums(j.layers()[0])) {
                let theta = |l: LayerId| thetas.iter().find(|(m, _)| *m == l).map(|(_, t)| t);
                let mut u = Vec::with_capacity(joint.len());
                for (l, range) in joint.parts() {
                    let own = row * range.len()..(row + 1) * range.len();
                    u.extend(theta(l).into_iter().flat_map(|theta| &theta[own.clone()]));
                }
                let Some(density) = joint.density() else { return f64::NAN };
                density.whiten(&mut u);
                log += density.log_integral(&u);
            }
            for (l, bias) in &self.kept {
                let layer = &layers[l.0];
                let own = OwnParameters::new(&layer.own, layer.len);
                log -= own_energy(layer.units, bias, own, x.row(*l, row));
            }
            let coupled = self.coupled.iter().flat_map(Machine::couplings);
            for c in coupled.filter(|c| !self.sums(c.between.0) && !self.sums(c.between.1)) {
                let (a, b) = c.between;
                log += pair_energy(&c.weights, x.row(a, row), x.row(b, row));
            }
            log
        };
        let entries: usize = x.layers.iter().map(|l| l.len).sum();
        let joined = !sampler.engine().joints().is_empty();
        let work = if self.coupled.is_some() || joined { entries * entries } else { entries };
        if x.n_rows() * work > WORTH_THREADS && rayon::current_num_threads() > 1 {
            return (0..x.n_rows()).into_par_iter().with_min_len(8).map(density).collect();
        }
        (0..x.n_rows()).map(density).collect()
    }

    fn sums(&self, l: LayerId) -> bool {
        self.summed.contains(&l)
    }
}

/// The layers that are summed out, and those that are kept.
fn split(machine: &Machine) -> (Vec<LayerId>, Vec<LayerId>) {
    let first = machine.schedule().into_iter().next().unwrap_or_default();
    let summed = |l: LayerId| !machine.has_lateral(l) || machine.is_gaussian(l);
    machine.layer_ids().partition(|l| first.contains(l) && summed(*l))
}

fn inside(kept: &[LayerId], between: (LayerId, LayerId)) -> bool {
    kept.contains(&between.0) && kept.contains(&between.1)
}
