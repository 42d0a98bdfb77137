//! Sums over all states of a graph of small width, one unit after the other.
//!
//! Summing out a unit leaves a table over the units it sees,
//! $$f(x_N) = \ln\sum_{x_u} e^{\sum_{g \ni u} g(x_u, x_N)},$$
//! so a sum costs $\sum_u 2^{|N_u| + 1}$ terms instead of 2 to the power of all units: a grid costs
//! 2 to the power of its shorter side (bucket elimination: Dechter, Artificial Intelligence 113,
//! 1999).

use crate::graph::{Order, Pairwise};
use crate::machine::{Clamp, Machine, State};
use crate::units::Storage;
use rayon::prelude::*;

/// Most units a table may range over: 32 megabytes.
const MOST_NEIGHBOURS: usize = 22;
/// Most units an order is sought for.
const MOST_UNITS: usize = 1024;
/// Entries of a table that one task computes; a power of two.
const CHUNK: usize = 1 << 10;

/// A pairwise energy over units with two values each, and the order in which they are summed out.
pub(super) struct Elimination {
    graph: Pairwise,
    order: Order,
}

/// A function of some units: bit `k` of an index belongs to `units[k]`, which rise.
struct Table {
    units: Vec<usize>,
    logs: Vec<f64>,
}

impl Elimination {
    /// Prepares the sum over the free units of one row of `x`; `machine` has zero offsets. `None`
    /// if a free unit has other than two values, or no order is found that is narrow and takes fewer than two to
    /// the power of `below` terms.
    pub(super) fn new(
        machine: &Machine,
        clamp: &Clamp,
        x: &State,
        row: usize,
        below: f64,
    ) -> Option<Self> {
        if n_free_bits(machine, clamp, row)? > MOST_UNITS {
            return None;
        }
        let graph = Pairwise::of_folded(machine, clamp, x, row).ok()?;
        let n = graph.nodes().len();
        // A graph of width k has fewer than k n edges.
        if graph.edges().len() >= MOST_NEIGHBOURS * n.max(1) {
            return None;
        }
        // Seeking an order takes longer than many an enumeration.
        let topology = graph.topology();
        let width = topology.least_width();
        if width > MOST_NEIGHBOURS || width as f64 + 1.0 >= below {
            return None;
        }
        let order = Order::narrow(&topology, &vec![2; n], MOST_NEIGHBOURS as f64)?;
        (order.log2_terms < below).then_some(Self { graph, order })
    }

    /// Binary logarithm of the number of terms.
    pub(super) fn log2_terms(&self) -> f64 {
        self.order.log2_terms
    }

    /// $\ln\sum e^{-E}$ over all free units.
    pub(super) fn log_sum(&self) -> f64 {
        let mut tables: Vec<Table> = Vec::new();
        for (unit, node) in self.graph.nodes().iter().enumerate() {
            tables.push(Table { units: vec![unit], logs: node.log_fields.clone() });
        }
        for edge in self.graph.edges() {
            let (i, j) = edge.between;
            let states = |k: usize| if i < j { (k & 1, k >> 1) } else { (k >> 1, k & 1) };
            let logs = (0..4).map(|k| self.graph.log_pair(edge, states(k)));
            tables.push(Table { units: vec![i.min(j), i.max(j)], logs: logs.collect() });
        }
        let mut sum = self.graph.constant();
        for &unit in &self.order.nodes {
            let (with, without): (Vec<Table>, Vec<Table>) =
                tables.into_iter().partition(|t| t.units.contains(&unit));
            tables = without;
            let table = sum_out(unit, &with);
            if table.units.is_empty() {
                sum += table.logs[0];
            } else {
                tables.push(table);
            }
        }
        sum
    }
}

/// Number of free units; `None` if one of them has other than two values.
fn n_free_bits(machine: &Machine, clamp: &Clamp, row: usize) -> Option<usize> {
    let mut total = 0;
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        let n_free = (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)).count();
        if n_free > 0 && layer.units.storage() != Storage::Bits {
            return None;
        }
        total += n_free;
    }
    Some(total)
}

/// The logarithm of the sum over one unit of the product of all tables that know it.
fn sum_out(unit: usize, tables: &[Table]) -> Table {
    let mut units: Vec<usize> = tables.iter().flat_map(|t| t.units.iter().copied()).collect();
    units.sort_unstable();
    units.dedup();
    units.retain(|&u| u != unit);
    let lookups: Vec<Lookup<'_>> = tables.iter().map(|t| Lookup::new(t, unit, &units)).collect();
    let mut logs = vec![0.0; 1 << units.len()];
    let fill = |(chunk, out): (usize, &mut [f64])| {
        for (low, out) in out.iter_mut().enumerate() {
            let (mut off, mut on) = (0.0, 0.0);
            for lookup in &lookups {
                let at = lookup.high[chunk] + lookup.low[low];
                off += lookup.logs[at];
                on += lookup.logs[at + lookup.step];
            }
            let most = f64::max(off, on);
            *out = most + (f64::min(off, on) - most).exp().ln_1p();
        }
    };
    if logs.len() <= CHUNK {
        logs.chunks_mut(CHUNK).enumerate().for_each(fill);
    } else {
        logs.par_chunks_mut(CHUNK).enumerate().for_each(fill);
    }
    Table { units, logs }
}

/// Where a table is read for an index of the result: a sum of what its low and its high bits say.
struct Lookup<'a> {
    logs: &'a [f64],
    low: Vec<usize>,
    high: Vec<usize>,
    /// From the first value of the summed unit to the second.
    step: usize,
}

impl<'a> Lookup<'a> {
    fn new(table: &'a Table, unit: usize, units: &[usize]) -> Self {
        let stride = |u: &usize| table.units.iter().position(|t| t == u).map_or(0, |k| 1 << k);
        let strides: Vec<usize> = units.iter().map(stride).collect();
        let n_low = units.len().min(CHUNK.trailing_zeros() as usize);
        let sums = |strides: &[usize]| -> Vec<usize> {
            let at = |code: usize| {
                strides.iter().enumerate().map(|(k, s)| (code >> k & 1) * s).sum::<usize>()
            };
            (0..1 << strides.len()).map(at).collect()
        };
        let (low, high) = (sums(&strides[..n_low]), sums(&strides[n_low..]));
        Self { logs: &table.logs, low, high, step: stride(&unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::problem::Problem;
    use crate::machine::{Coupling, Edges, Layer, LayerId, Role};
    use crate::models::ising_torus;
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
                let found =
                    Elimination::new(&machine, &clamp, &x, 0, f64::INFINITY).map(|e| e.log_sum());
                let error = found.map_or(f64::INFINITY, |f| (f - expected).abs());
                assert!(error < 1e-12, "{}: {found:?}, not {expected}", units.name());
            }
        }
        Ok(())
    }

    #[test]
    fn grids_are_narrow_and_large_tori_are_not() -> Result<(), crate::Error> {
        let terms = |side| -> Result<Option<f64>, crate::Error> {
            let torus = ising_torus(side, 0.4)?.into_machine();
            let x = State::zeros(&torus, 1)?;
            let found = Elimination::new(&torus, &Clamp::none(), &x, 0, f64::INFINITY);
            Ok(found.map(|e| e.log2_terms()))
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
        let narrow = |below| Elimination::new(&rbm, &Clamp::none(), &x, 0, below).is_some();
        assert!(narrow(f64::INFINITY) && !narrow(12.0));
    }
}
