//! Units with one of $q$ values, held as one-hot groups of $q$ entries (Potts units).

use super::log_sum_exp;

pub(super) fn mean_in_place(theta: &mut [f64]) {
    let log_z = log_sum_exp(theta);
    theta.iter_mut().for_each(|t| *t = (*t - log_z).exp());
}

/// Sets the entry whose cumulative probability first exceeds `uniform`.
pub(super) fn sample_in_place(theta: &mut [f64], uniform: f64) {
    mean_in_place(theta);
    let mut cumulative = 0.0;
    // Rounding may leave the sum below the variate: the last category takes the rest.
    let chosen = theta
        .iter()
        .position(|p| {
            cumulative += p;
            uniform < cumulative
        })
        .unwrap_or(theta.len() - 1);
    set_one(theta, chosen);
}

pub(super) fn mode_in_place(theta: &mut [f64]) {
    let best = (0..theta.len()).rev().max_by(|&a, &b| theta[a].total_cmp(&theta[b])).unwrap_or(0);
    set_one(theta, best);
}

/// Writes the one-hot form of category `k`.
pub(crate) fn set_one(entries: &mut [f64], k: usize) {
    entries.fill(0.0);
    entries[k] = 1.0;
}
