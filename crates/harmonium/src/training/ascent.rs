//! How a gradient moves a machine: the coordinates it is followed in, penalties, the optimiser, and the bounds that
//! parameters keep.

use super::coordinates::Coordinates;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::exact;
use crate::machine::{Machine, Role};
use crate::moments::Moments;
use crate::optim::{Optimizer, Penalties};

/// How a gradient moves a machine.
pub(super) struct Ascent<'a> {
    pub(super) penalties: &'a Penalties,
    pub(super) coordinates: &'a Coordinates,
    /// Running mean of each layer on the data side, and its mean there without the offset: what a
    /// sparsity target needs.
    pub(super) activity: &'a [Vec<f64>],
    pub(super) centered_mean: &'a [Vec<f64>],
    pub(super) rate: f64,
    pub(super) momentum: f64,
    /// The largest parameter that can be computed with.
    pub(super) largest: f64,
}

/// The largest parameter that an arithmetic can compute with: where it multiplies in double
/// precision, one whose square still leaves room for sums.
pub(super) fn largest_parameter(arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::F64 => 1e150,
        Arithmetic::F32 | Arithmetic::I16 => f64::from(f32::MAX),
    }
}

impl Ascent<'_> {
    /// Adds the penalties to the gradient of the likelihood and moves the machine: the norm of the
    /// gradient, and that of the update of the weights over that of the weights. Nothing moves, and
    /// nothing is returned, if a number is not finite or a parameter would become too large.
    pub(super) fn apply(
        &self,
        machine: &mut Machine,
        gradient: &mut Moments,
        optimizer: &mut dyn Optimizer,
    ) -> Result<Option<[f64; 2]>, Error> {
        let (penalties, coordinates) = (self.penalties, self.coordinates);
        let sparsity = |gradient: &mut Moments| {
            penalties.add_sparsity(machine, self.activity, self.centered_mean, gradient);
        };
        if !coordinates.is_none() {
            sparsity(gradient);
        }
        coordinates.bring(machine, gradient);
        penalties.add_decay(&coordinates.weights(machine), gradient);
        if coordinates.is_none() {
            sparsity(gradient);
        }
        penalties.clip(gradient);
        let norm = gradient.norm();
        optimizer.update(&mut gradient.slices_mut(), self.rate, self.momentum);
        coordinates.send_back(machine, gradient);
        let update = &*gradient;
        if !norm.is_finite() || outgrows(machine, update, self.largest) {
            return Ok(None);
        }
        let ratio = update_ratio(machine, update);
        match self.apply_normalised(machine, update) {
            // No part of it leaves a distribution.
            Err(Error::Diverges { .. }) => return Ok(None),
            applied => applied?,
        }
        penalties.project(machine, |machine| coordinates.weights(machine));
        Ok(Some([norm, ratio]))
    }

    /// Adds an update, or the largest half, quarter, … of it after which the machine still has a
    /// distribution: couplings between Gaussian units must not outgrow their precision.
    fn apply_normalised(&self, machine: &mut Machine, update: &Moments) -> Result<(), Error> {
        const HALVINGS: i32 = 30;
        if exact::always_normalises(machine) {
            self.coordinates.apply(machine, update, 1.0);
            return Ok(());
        }
        let before = machine.clone();
        let mut refused = Ok(());
        for halving in 0..HALVINGS {
            self.coordinates.apply(machine, update, 0.5_f64.powi(halving));
            refused = machine.check_normalises();
            if refused.is_ok() {
                self.coordinates.bound(machine);
                break;
            }
            machine.clone_from(&before);
        }
        refused
    }
}

/// Whether an update holds a number that is not finite, or would make a bias or a weight larger than
/// `largest`.
fn outgrows(machine: &Machine, update: &Moments, largest: f64) -> bool {
    let fits = |values: &[f64], moves: &[f64]| {
        let sums = values.iter().zip(moves).map(|(x, u)| x + u);
        // To the end, which takes less than to look for the first that does not fit.
        sums.fold(true, |all, x| all & (x.abs() <= largest))
    };
    let mut layers = machine.layers().iter().zip(&update.bias);
    let mut couplings = machine.couplings().iter().zip(&update.weights);
    let own = update.own.iter().flatten().all(|u| u.is_finite());
    !(own
        && layers.all(|(l, u)| fits(&l.bias, u))
        && couplings.all(|(c, u)| fits(c.weights.entries(), u)))
}

fn update_ratio(machine: &Machine, update: &Moments) -> f64 {
    let norm = |xs: &mut dyn Iterator<Item = f64>| xs.map(|x| x * x).sum::<f64>().sqrt();
    let moved = norm(&mut update.weights.iter().flatten().copied());
    let couplings = machine.couplings().iter();
    let size = norm(&mut couplings.flat_map(|c| c.weights.entries()).copied());
    if size > 0.0 { moved / size } else { 0.0 }
}

/// Lets the offsets of hidden layers follow the means of the data phase, without changing
/// the distribution. Those of visible layers are the means of the data already.
pub(super) fn recenter(machine: &mut Machine, means: &[Vec<f64>], rate: f64) -> Result<(), Error> {
    if rate == 0.0 {
        return Ok(());
    }
    let layers = machine.layers().iter().zip(means);
    let offsets: Vec<Vec<f64>> = layers
        .map(|(layer, mean)| match layer.role {
            Role::Visible => layer.offset.clone(),
            Role::Hidden => {
                layer.offset.iter().zip(mean).map(|(o, m)| o + rate * (m - o)).collect()
            }
        })
        .collect();
    machine.recenter(&offsets)
}
