//! First parameters, from the data.
//!
//! Small random weights; visible biases at which independent units have the means of the data
//! (kept finite for constant features); Gaussian precisions from the data's variance; offsets at
//! the means, where the gradient of a centered machine is best conditioned.

use super::plan::Plan;
use super::trainer::purpose;
use crate::error::Error;
use crate::machine::{Coupling, LayerId, Machine, Role, Weights};
use crate::schema::Feed;
use harmonium_data::Dataset;
use harmonium_kernels::random::{Site, Stream};

/// Sets all parameters of `machine` as the data and the plan ask.
///
/// # Errors
///
/// If the data does not fit the machine.
pub fn initialise(machine: &mut Machine, data: &Dataset, plan: &Plan) -> Result<(), Error> {
    let feed = Feed::of(machine, data)?.filled_layers()?;
    let (means, variances) = visible_statistics(machine, &feed);
    let mut means = means.into_iter();
    let mut variances = variances.into_iter();
    for layer in machine.layers_mut() {
        let neutral = vec![layer.units.neutral_mean(); layer.len()];
        let mean = match layer.role {
            Role::Hidden => neutral,
            Role::Visible => {
                let variance = variances.next().unwrap_or_default();
                layer.units.set_own_from_variance(&mut layer.own, &variance);
                means.next().unwrap_or(neutral)
            }
        };
        layer.bias = layer.bias_of_means(&mean);
        layer.offset = if plan.center { mean } else { vec![0.0; layer.len()] };
    }
    let stream = Stream::new(plan.seed).fork(purpose::INIT);
    for (i, c) in machine.couplings_mut().iter_mut().enumerate() {
        let site = Site::new(0, 0, i);
        stream.normals_into(site, c.weights.entries_mut());
        c.weights.entries_mut().iter_mut().for_each(|w| *w *= plan.initial_std);
    }
    clear_inside_units(machine);
    let constant = machine.constant();
    machine.add_to_constant(-constant);
    Ok(())
}

/// Entries of one unit exclude each other and have no weight.
fn clear_inside_units(machine: &mut Machine) {
    let units: Vec<_> = machine.layers().iter().map(|l| (l.units, l.len())).collect();
    let dense = |c: &&mut Coupling| matches!(c.weights, Weights::Lateral(_));
    for c in machine.couplings_mut().iter_mut().filter(dense) {
        let (units, n) = units[c.between.0.0];
        for i in 0..n {
            let inside = crate::moments::inside_unit(units, i, n);
            c.weights.entries_mut()[crate::machine::row_range(n, i)][..inside].fill(0.0);
        }
    }
}

/// Weighted mean and variance of every entry of the visible layers.
fn visible_statistics(machine: &Machine, feed: &Feed<'_>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let visible = machine.visible_layers();
    let own_nothing = |&l: &LayerId| machine.layer(l).units.own_parameters().is_empty();
    // Variances are for own parameters only.
    if visible.iter().all(own_nothing)
        && let Some(means) = feed.counted_means()
    {
        return (means, vec![Vec::new(); visible.len()]);
    }
    feed.statistics()
}
