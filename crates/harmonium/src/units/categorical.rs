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

/// The first entry that a unit of `q` categories cannot hold, written as one whole number or as a
/// one-hot group.
pub(super) fn impossible(q: usize, unit: &[f64]) -> Option<usize> {
    if unit.len() == 1 && q > 1 {
        return (unit[0].fract() != 0.0 || unit[0] < 0.0 || unit[0] >= q as f64).then_some(0);
    }
    let wrong = unit.iter().position(|x| *x != 0.0 && *x != 1.0);
    let ones = unit.iter().filter(|x| **x == 1.0).count();
    wrong.or((ones != 1).then(|| unit.iter().rposition(|x| *x == 1.0).unwrap_or(0)))
}

/// Writes the one-hot form of category `k`.
pub(crate) fn set_one(entries: &mut [f64], k: usize) {
    entries.fill(0.0);
    entries[k] = 1.0;
}
