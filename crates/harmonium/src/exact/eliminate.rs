//! Sums over the free units of a row where their graph is narrow, one unit after the other.
//!
//! The algorithm works on any pairwise graph ([`crate::graph::Elimination`]); this file asks whether the
//! free units of a row are one, and turns states of its nodes into values of units.

use super::conditional::Query;
use crate::error::Error;
use crate::graph::{self, BucketTree, Pairwise, Values};
use crate::machine::{Clamp, Machine, State, Weights};
use crate::progress::Listener;
use harmonium_kernels::random::{Site, Stream};

/// Binary logarithm of the entries that a table may have: half a gigabyte.
const MOST_ENTRIES: f64 = 26.0;
/// Binary logarithm of how many times as large as the largest table an enumeration has to be.
const WORTH_LOG2: f64 = 4.0;
/// Most free units of a row: what is known of each takes about a kilobyte.
const MOST_UNITS: usize = 1 << 22;

/// The order in which the free units of a row are summed out, and its tables, unless the graph is
/// such that an enumeration of two to the power of `enumerated` terms is as good. Seeking an order takes
/// longer than many an enumeration, so first it is asked how narrow any order could be.
pub(super) fn plan(
    machine: &Machine,
    clamp: &Clamp,
    (x, row): (&State, usize),
    enumerated: f64,
) -> Option<BucketTree> {
    let free: Vec<usize> = machine
        .layer_ids()
        .map(|l| {
            let layer = machine.layer(l);
            let n = (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)).count();
            (n == 0 || layer.units.is_finite()).then_some(n)
        })
        .collect::<Option<_>>()?;
    let n: usize = free.iter().sum();
    let wide = |width: usize| width as f64 > f64::min(MOST_ENTRIES, enumerated - WORTH_LOG2);
    if n > MOST_UNITS || wide(width_of_dense(machine, &free)) {
        return None;
    }
    let graph = Pairwise::of_folded(machine, clamp, x, row).ok()?;
    // A graph of width k has fewer than k n edges.
    let too_many = graph.edges().len() as f64 >= MOST_ENTRIES * n.max(1) as f64;
    if too_many || wide(graph.topology().least_width()) {
        return None;
    }
    BucketTree::narrow(&graph, MOST_ENTRIES)
}

/// Neighbours that some unit of a full matrix has when it is summed out, in any order: known without
/// looking at the graph.
fn width_of_dense(machine: &Machine, free: &[usize]) -> usize {
    let widths = machine.couplings().iter().map(|c| {
        let (a, b) = (free[c.between.0.0], free[c.between.1.0]);
        match &c.weights {
            Weights::Between(_) => a.min(b),
            Weights::Lateral(_) => a.saturating_sub(1),
            Weights::Sparse(_) => 0,
        }
    });
    widths.max().unwrap_or(0)
}

/// What a question takes: binary logarithm of its terms, and bytes of its tables. Where tables that a question
/// needs twice do not fit into the usual share of the memory, they are made twice.
pub(super) fn cost(tree: &BucketTree, query: Query) -> (f64, f64) {
    let budget = graph::Elimination::usual_budget();
    let pieces = match query {
        Query::LogSum => return (tree.log2_terms(), tree.bytes_of_sum()),
        Query::Means => tree.marginals_within(budget),
        Query::Samples => tree.samples_within(budget),
    };
    let Some(pieces) = pieces else { return (tree.log2_terms(), f64::INFINITY) };
    // Marginals go through all buckets once more, and sum what they find there.
    let again = if query == Query::Means { 3.0 * tree.log2_terms().exp2() } else { 0.0 };
    ((pieces.log2_terms().exp2() + again).log2(), pieces.bytes())
}

/// $\ln\sum e^{-E}$ over the free units of a row; `machine` has zero offsets.
pub(super) fn log_sum(
    machine: &Machine,
    clamp: &Clamp,
    (x, row): (&State, usize),
    tree: &BucketTree,
    listener: &mut dyn Listener,
) -> Result<f64, Error> {
    let graph = Pairwise::of_folded(machine, clamp, x, row)?;
    graph::Elimination::new(&graph, tree).log_sum(listener)
}

/// The values of all layers in a row, free units at their means; `machine` has zero offsets.
pub(super) fn means(
    machine: &Machine,
    clamp: &Clamp,
    (x, row): (&State, usize),
    tree: &BucketTree,
    listener: &mut dyn Listener,
) -> Result<Vec<Vec<f64>>, Error> {
    let graph = Pairwise::of_folded(machine, clamp, x, row)?;
    let found = graph::Elimination::new(&graph, tree).marginals(listener)?;
    let mut values = Values::new(machine, x, row);
    for (node, p) in graph.nodes().iter().zip(&found.nodes) {
        values.set(node, |state| p[state]);
    }
    Ok(values.layers)
}

/// Draws all free units of the rows `drawn` of `samples`, each given row `row` of `x`; what is drawn
/// depends on the row. `machine` has zero offsets.
pub(super) fn draw(
    machine: &Machine,
    clamp: &Clamp,
    (x, row): (&State, usize),
    tree: &BucketTree,
    (drawn, samples): (&[usize], &mut State),
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<(), Error> {
    let graph = Pairwise::of_folded(machine, clamp, x, row)?;
    let elimination = graph::Elimination::new(&graph, tree);
    let stream = stream.fork(2);
    let uniform = |k: usize, node: usize| stream.uniform(Site::new(drawn[k], 0, 0), node);
    let take = |k: usize, states: &[u32]| {
        let mut values = Values::new(machine, x, row);
        for (node, &chosen) in graph.nodes().iter().zip(states) {
            values.set(node, |state| f64::from(u8::from(state == chosen as usize)));
        }
        let layers = machine.layer_ids().zip(&values.layers);
        layers.into_iter().try_for_each(|(l, values)| samples.set_row(l, drawn[k], values))
    };
    let log_sum = elimination.samples(drawn.len(), uniform, take, listener)?;
    machine.check_finite("the logarithm of a sum over all states", log_sum).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::problem::Problem;
    use crate::machine::{Coupling, Edges, Layer, LayerId, Role};
    use crate::models::ising_torus;
    use crate::progress::Silent;
    use crate::random::{Site, Stream};
    use crate::units::Units;

    fn noise(i: usize) -> f64 {
        Stream::new(3).uniform(Site::default(), i) - 0.5
    }

    /// A grid with chords of one kind of unit, and a second layer that some of them see.
    fn grid(units: Units) -> Result<Machine, crate::Error> {
        let mut layers = vec![
            Layer::new("grid", Role::Visible, units, 9)?,
            Layer::new("top", Role::Hidden, Units::Binary, 2)?,
        ];
        for (l, layer) in layers.iter_mut().enumerate() {
            let bias = layer.bias.iter_mut().enumerate();
            bias.for_each(|(i, b)| *b = 2.0 * noise(20 * l + i));
        }
        let near = |i: usize, j: usize| {
            j == i + 3 || (j == i + 1 && !j.is_multiple_of(3)) || (i, j) == (0, 8)
        };
        let pairs = (0..9).flat_map(|i| (i + 1..9).map(move |j| (i, j)));
        let edges = pairs.filter(|&(i, j)| near(i, j)).map(|(i, j)| (i, j, 4.0 * noise(9 * i + j)));
        let weights = crate::machine::Matrix::from_fn(9, 2, |i, j| noise(100 + 2 * i + j))?;
        let couplings = vec![
            Coupling::sparse(LayerId(0), Edges::new(9, edges)?),
            Coupling::between(LayerId(0), LayerId(1), weights),
        ];
        Machine::new(layers, couplings)?.with_constant(-0.7)
    }

    #[test]
    fn elimination_is_enumeration() -> Result<(), crate::Error> {
        for units in [Units::Binary, Units::Spin] {
            let machine = grid(units)?;
            let mut x = State::zeros(&machine, 1)?;
            x.set_row(LayerId(0), 0, &[1.0; 9])?;
            let some: Vec<bool> = (0..9).map(|u| u % 4 == 1).collect();
            for clamp in [
                Clamp::none(),
                Clamp::layers([LayerId(1)]),
                Clamp::none().with_units(LayerId(0), some),
                Clamp::layers([LayerId(0), LayerId(1)]),
            ] {
                let expected = Problem::new(&machine, &clamp, &x, 0)?.log_sum();
                let tree = plan(&machine, &clamp, (&x, 0), f64::INFINITY)
                    .expect("a small graph is narrow");
                let found = log_sum(&machine, &clamp, (&x, 0), &tree, &mut Silent)?;
                assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
            }
        }
        Ok(())
    }

    #[test]
    fn grids_are_narrow_and_large_tori_are_not() -> Result<(), crate::Error> {
        let terms = |side| -> Result<Option<f64>, crate::Error> {
            let torus = ising_torus(side, 0.4)?.into_machine();
            let x = State::zeros(&torus, 1)?;
            Ok(plan(&torus, &Clamp::none(), (&x, 0), f64::INFINITY).map(|tree| tree.log2_terms()))
        };
        assert!(terms(8)?.is_some_and(|t| t < 22.0), "{:?}", terms(8)?);
        assert!(terms(10)?.is_some_and(|t| t < 28.0), "{:?}", terms(10)?);
        assert_eq!(terms(32)?, None);
        assert_eq!(terms(40)?, None);
        Ok(())
    }

    #[test]
    fn elimination_is_left_where_enumeration_is_as_good() {
        // All units have the same neighbours on the other side.
        let rbm = crate::models::Rbm::binary(60, 12).expect("a machine").into_machine();
        let x = State::zeros(&rbm, 1).expect("a state");
        let narrow = |enumerated| plan(&rbm, &Clamp::none(), (&x, 0), enumerated).is_some();
        assert!(narrow(f64::INFINITY) && !narrow(12.0));
    }
}
