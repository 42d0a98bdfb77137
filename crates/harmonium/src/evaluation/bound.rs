//! The variational lower bound.
//!
//! $$\ln p(v) \ge -\langle E\rangle_q + H(q) - \ln Z$$
//!
//! for every factorised $q$ over the free units; the gap is $KL(q\,\|\,p(h\mid v))$.

use crate::error::Error;
use crate::machine::{Machine, State};
use crate::sampling::Clamp;

/// $-\langle E\rangle_q + H(q)$ of each row: the bound without $\ln Z$. The free layers of `x`
/// hold means, and free Gaussian units have variance $1/\gamma$.
///
/// # Errors
///
/// If clamp or state do not fit the machine.
pub fn unnormalised(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    clamp.check(machine, x.n_rows())?;
    let mut bounds: Vec<f64> = machine.energies(x)?.into_iter().map(|e| -e).collect();
    for (row, bound) in bounds.iter_mut().enumerate() {
        for l in machine.layer_ids().filter(|&l| !clamp.holds_layer(l)) {
            let (layer, means) = (machine.layer(l), x.row(l, row));
            let group = layer.units.group();
            for unit in (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)) {
                let range = unit * group..(unit + 1) * group;
                let precision = layer.precision.get(range.clone()).unwrap_or_default();
                *bound += layer.units.entropy(&means[range], precision);
                // <x^2> = m^2 + 1/gamma: the energy at the mean lacks gamma/2 times the variance.
                *bound -= 0.5 * precision.len() as f64;
            }
        }
    }
    Ok(bounds)
}
