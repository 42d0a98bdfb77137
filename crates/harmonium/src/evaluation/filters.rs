//! What hidden units look for, and how much they are on.
//!
//! The filter of a unit next to the visible layer is its column of weights, $W_{\cdot j}$; that of
//! a deeper unit is the sum of the filters below it, each times the weight to it, $F W_{\cdot j}$.
//! That is what a linear network would look for, and the usual picture of deep layers (Lee,
//! Ekanadham & Ng 2008).

use crate::machine::{Coupling, LayerId, Machine, Role, State, Weights};
use std::collections::VecDeque;

/// The filters of every hidden layer that `visible` reaches, nearest layers first: for each unit a
/// number for each entry of `visible`. A layer that is reached in several ways takes the first.
pub fn projections(machine: &Machine, visible: LayerId) -> Vec<(LayerId, Vec<Vec<f64>>)> {
    let mut found: Vec<(LayerId, Vec<Vec<f64>>)> = Vec::new();
    let mut waiting: VecDeque<(LayerId, Option<usize>)> = [(visible, None)].into();
    while let Some((l, at)) = waiting.pop_front() {
        for c in machine.couplings() {
            let Some(m) = c.other_end(l).filter(|m| machine.layer(*m).role == Role::Hidden) else {
                continue;
            };
            if m == l || found.iter().any(|(reached, _)| *reached == m) {
                continue;
            }
            let Some(weights) = columns(machine, c, l, m) else { continue };
            let filters = match at {
                None => weights,
                Some(at) => through(&found[at].1, &weights),
            };
            waiting.push_back((m, Some(found.len())));
            found.push((m, filters));
        }
    }
    found
}

/// The weights from layer `l` to each unit of layer `m`; nothing for a lateral coupling.
fn columns(machine: &Machine, c: &Coupling, l: LayerId, m: LayerId) -> Option<Vec<Vec<f64>>> {
    let Weights::Between(w) = &c.weights else { return None };
    let weight = |i: usize, j: usize| if c.between.0 == l { w.at(i, j) } else { w.at(j, i) };
    let n = machine.layer(l).len();
    let column = |j: usize| (0..n).map(|i| weight(i, j)).collect();
    Some((0..machine.layer(m).len()).map(column).collect())
}

/// The filters below, each times its weight, summed for each unit above.
fn through(below: &[Vec<f64>], weights: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = below.first().map_or(0, Vec::len);
    let filter = |weights: &Vec<f64>| {
        let mut filter = vec![0.0; n];
        for (w, b) in weights.iter().zip(below) {
            filter.iter_mut().zip(b).for_each(|(f, b)| *f += w * b);
        }
        filter
    };
    weights.iter().map(filter).collect()
}

/// The filters by their norm, the strongest first.
pub fn strongest_first(mut filters: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let norm = |f: &[f64]| f.iter().map(|w| w * w).sum::<f64>();
    filters.sort_by(|a, b| norm(b).total_cmp(&norm(a)));
    filters
}

/// The mean of each entry of a layer over the rows of a state.
pub fn mean_activity(x: &State, l: LayerId) -> Vec<f64> {
    let n = x.n_rows();
    let mut sums = vec![0.0; if n == 0 { 0 } else { x.row(l, 0).len() }];
    for row in 0..n {
        sums.iter_mut().zip(x.row(l, row)).for_each(|(s, x)| *s += x);
    }
    sums.iter().map(|s| s / n as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Layer;
    use crate::machine::Matrix;
    use crate::units::Units;

    fn layer(name: &str, role: Role, n: usize) -> Layer {
        Layer::new(name, role, Units::Binary, n).unwrap()
    }

    /// A chain of 2, 3 and 2 units; the second coupling is written from the top.
    fn chain() -> Machine {
        let layers = vec![
            layer("visible", Role::Visible, 2),
            layer("hidden1", Role::Hidden, 3),
            layer("hidden2", Role::Hidden, 2),
        ];
        let first = Matrix::from_fn(2, 3, |i, j| (10 * i + j) as f64).unwrap();
        let second = Matrix::from_fn(2, 3, |i, j| if i == 0 { 1.0 } else { j as f64 }).unwrap();
        let couplings = vec![
            Coupling::between(LayerId(0), LayerId(1), first),
            Coupling::between(LayerId(2), LayerId(1), second),
        ];
        Machine::new(layers, couplings).unwrap()
    }

    #[test]
    fn deep_filters_are_products_of_weights() {
        let found = projections(&chain(), LayerId(0));
        let first = vec![vec![0.0, 10.0], vec![1.0, 11.0], vec![2.0, 12.0]];
        let second = vec![vec![3.0, 33.0], vec![5.0, 35.0]];
        assert_eq!(found, [(LayerId(1), first), (LayerId(2), second.clone())]);
        let turned: Vec<Vec<f64>> = second.into_iter().rev().collect();
        assert_eq!(strongest_first(turned.iter().rev().cloned().collect()), turned);
    }

    #[test]
    fn activities_are_means_of_columns() {
        let machine = chain();
        let mut x = State::zeros(&machine, 2).unwrap();
        x.set_row(LayerId(1), 0, &[1.0, 0.0, 1.0]).unwrap();
        x.set_row(LayerId(1), 1, &[1.0, 0.0, 0.0]).unwrap();
        assert_eq!(mean_activity(&x, LayerId(1)), [1.0, 0.0, 0.5]);
    }
}
