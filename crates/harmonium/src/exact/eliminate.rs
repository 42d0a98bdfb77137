//! Sums over all states of a graph of small width, one unit after the other.
//!
//! Summing out a unit leaves a table over the units it sees,
//! $$f(x_N) = \ln\sum_{x_u} e^{\sum_{g \ni u} g(x_u, x_N)},$$
//! so a sum costs $\sum_u 2^{|N_u| + 1}$ terms instead of 2 to the power of all units: a grid costs
//! 2 to the power of its shorter side (bucket elimination: Dechter, Artificial Intelligence 113,
//! 1999). In the greedy order the next unit is the one whose neighbours need the fewest new edges.

use crate::machine::{LayerId, Machine, State};
use crate::sampling::Clamp;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Most units a table may range over: 32 megabytes.
const MOST_NEIGHBOURS: usize = 22;
/// Most units an order is sought for.
const MOST_UNITS: usize = 1024;
/// Entries of a table that one task computes; a power of two.
const CHUNK: usize = 1 << 10;

/// A pairwise energy over units with two values each, and the order in which they are summed out.
pub(super) struct Elimination {
    /// $-E$ without the free units.
    constant: f64,
    /// The two values of each unit.
    values: Vec<[f64; 2]>,
    /// The field on each unit.
    field: Vec<f64>,
    edges: Vec<(usize, usize, f64)>,
    order: Vec<usize>,
    pub(super) log2_terms: f64,
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
        let mut numbers: Vec<Vec<Option<usize>>> = Vec::new();
        let mut constant = -machine.constant();
        let (mut values, mut field) = (Vec::new(), Vec::new());
        for l in machine.layer_ids() {
            let (layer, x) = (machine.layer(l), x.row(l, row));
            let group = layer.units.group();
            let mut of_layer = vec![None; layer.len()];
            for (i, number) in of_layer.iter_mut().enumerate() {
                if clamp.holds(l, row, i / group) {
                    constant += layer.bias[i] * x[i];
                    let own = layer.own().piece(i..i + 1);
                    constant -= layer.units.own_energy(own, &x[i..=i]);
                    continue;
                }
                let [low, high] = &layer.units.configurations()?.0[..] else { return None };
                let ([low], [high]) = (&low[..], &high[..]) else { return None };
                *number = Some(values.len());
                values.push([*low, *high]);
                field.push(layer.bias[i]);
            }
            numbers.push(of_layer);
        }
        let n = values.len();
        if n > MOST_UNITS {
            return None;
        }
        let mut edges = Vec::new();
        for c in machine.couplings() {
            let (a, b) = c.between;
            let at = |l: LayerId, i: usize| (numbers[l.0][i], x.row(l, row)[i]);
            c.weights.for_each(|i, j, w| match (at(a, i), at(b, j)) {
                ((None, x), (None, y)) => constant += w * x * y,
                ((Some(u), _), (None, y)) => field[u] += w * y,
                ((None, x), (Some(v), _)) => field[v] += w * x,
                ((Some(u), _), (Some(v), _)) => edges.push((u, v, w)),
            });
        }
        // A graph of width k has fewer than k n edges.
        if edges.len() >= MOST_NEIGHBOURS * n.max(1) {
            return None;
        }
        // Seeking an order takes longer than many an enumeration.
        let width = least_width(n, &edges);
        if width > MOST_NEIGHBOURS || width as f64 + 1.0 >= below {
            return None;
        }
        let (order, log2_terms) = order(n, &edges).filter(|(_, terms)| *terms < below)?;
        Some(Self { constant, values, field, edges, order, log2_terms })
    }

    /// $\ln\sum e^{-E}$ over all free units.
    pub(super) fn log_sum(&self) -> f64 {
        let mut tables: Vec<Table> = Vec::new();
        for (unit, values) in self.values.iter().enumerate() {
            let logs = values.iter().map(|v| self.field[unit] * v).collect();
            tables.push(Table { units: vec![unit], logs });
        }
        for &(i, j, w) in &self.edges {
            let (i, j) = (i.min(j), i.max(j));
            let logs = (0..4).map(|k| w * self.values[i][k & 1] * self.values[j][k >> 1]);
            tables.push(Table { units: vec![i, j], logs: logs.collect() });
        }
        let mut sum = self.constant;
        for &unit in &self.order {
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

/// A bound from below on the neighbours that some unit has when it is summed out, in any order: in a part of the graph
/// where all have $k$ neighbours, the first to go has as many. Found by taking out the unit with
/// the fewest, again and again.
fn least_width(n: usize, edges: &[(usize, usize, f64)]) -> usize {
    let mut neighbours = vec![Vec::new(); n];
    for &(i, j, _) in edges {
        neighbours[i].push(j);
        neighbours[j].push(i);
    }
    let mut left: BTreeSet<(usize, usize)> =
        neighbours.iter().enumerate().map(|(u, of)| (of.len(), u)).collect();
    let mut degrees: Vec<usize> = neighbours.iter().map(Vec::len).collect();
    let mut width = 0;
    while let Some((degree, unit)) = left.pop_first() {
        width = width.max(degree);
        for &v in &neighbours[unit] {
            if left.remove(&(degrees[v], v)) {
                degrees[v] -= 1;
                left.insert((degrees[v], v));
            }
        }
    }
    width
}

/// An order of small width, and the binary logarithm of the terms it takes: the better of the
/// greedy one and that in which the units stand, which is good for grids and tori.
fn order(n: usize, edges: &[(usize, usize, f64)]) -> Option<(Vec<usize>, f64)> {
    let greedy = eliminated(n, edges, |left, cost, graph| {
        left.iter().copied().min_by_key(|&u| (cost[u], graph.degree(u)))
    });
    let as_they_stand = eliminated(n, edges, |left, _, _| left.first().copied());
    let orders = [greedy, as_they_stand].into_iter().flatten();
    orders.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The order in which `next` chooses among the units that are left, given how many edges each
/// would need; `None` once a unit has too many neighbours.
fn eliminated(
    n: usize,
    edges: &[(usize, usize, f64)],
    next: impl Fn(&[usize], &[usize], &Adjacency) -> Option<usize>,
) -> Option<(Vec<usize>, f64)> {
    let mut graph = Adjacency::new(n, edges);
    let mut cost: Vec<usize> = (0..n).map(|u| graph.new_edges(u)).collect();
    let mut left: Vec<usize> = (0..n).collect();
    let (mut order, mut terms) = (Vec::with_capacity(n), 0.0_f64);
    while let Some(unit) = next(&left, &cost, &graph) {
        let neighbours = graph.neighbours(unit);
        if neighbours.len() > MOST_NEIGHBOURS {
            return None;
        }
        terms += 2.0_f64.powi(i32::try_from(neighbours.len()).unwrap_or(i32::MAX) + 1);
        left.retain(|&u| u != unit);
        order.push(unit);
        graph.eliminate(unit, &neighbours);
        let mut touched = neighbours.clone();
        touched.extend(neighbours.iter().flat_map(|&u| graph.neighbours(u)));
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|u| cost[u] = graph.new_edges(u));
    }
    Some((order, terms.max(1.0).log2()))
}

/// Which units see each other, as bits.
struct Adjacency {
    n_words: usize,
    words: Vec<u64>,
}

impl Adjacency {
    fn new(n: usize, edges: &[(usize, usize, f64)]) -> Self {
        let n_words = n.div_ceil(64);
        let mut graph = Self { n_words, words: vec![0; n * n_words] };
        for &(i, j, _) in edges {
            graph.join(i, j);
        }
        graph
    }

    fn row(&self, u: usize) -> &[u64] {
        &self.words[u * self.n_words..(u + 1) * self.n_words]
    }

    fn join(&mut self, i: usize, j: usize) {
        self.words[i * self.n_words + j / 64] |= 1 << (j % 64);
        self.words[j * self.n_words + i / 64] |= 1 << (i % 64);
    }

    fn degree(&self, u: usize) -> u32 {
        self.row(u).iter().map(|w| w.count_ones()).sum()
    }

    fn neighbours(&self, u: usize) -> Vec<usize> {
        let bits = |(k, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| 64 * k + b)
        };
        self.row(u).iter().enumerate().flat_map(bits).collect()
    }

    /// Twice the number of edges that would join the neighbours of `u`.
    fn new_edges(&self, u: usize) -> usize {
        let mine = self.row(u);
        let missing = |v: usize| {
            let theirs = mine.iter().zip(self.row(v));
            theirs.map(|(a, b)| (a & !b).count_ones() as usize).sum::<usize>() - 1
        };
        self.neighbours(u).into_iter().map(missing).sum()
    }

    /// Joins the neighbours of `unit` with each other and takes it out.
    fn eliminate(&mut self, unit: usize, neighbours: &[usize]) {
        for (k, &i) in neighbours.iter().enumerate() {
            neighbours[..k].iter().for_each(|&j| self.join(i, j));
            self.words[i * self.n_words + unit / 64] &= !(1 << (unit % 64));
        }
        let n = self.n_words;
        self.words[unit * n..(unit + 1) * n].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::problem::Problem;
    use crate::machine::{Coupling, Edges, Layer, Role};
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
            Ok(found.map(|e| e.log2_terms))
        };
        assert!(terms(8)?.is_some_and(|t| t < 22.0), "{:?}", terms(8)?);
        assert!(terms(10)?.is_some_and(|t| t < 28.0), "{:?}", terms(10)?);
        assert_eq!(terms(32)?, None);
        assert_eq!(terms(40)?, None);
        Ok(())
    }

    #[test]
    fn no_order_is_narrower_than_the_least_width() {
        let all = |pairs: &[(usize, usize)]| -> Vec<(usize, usize, f64)> {
            pairs.iter().map(|&(i, j)| (i, j, 1.0)).collect()
        };
        let complete: Vec<_> = (0..6).flat_map(|i| (0..i).map(move |j| (j, i))).collect();
        let halves: Vec<_> = (0..4).flat_map(|i| (4..30).map(move |j| (i, j))).collect();
        let path: Vec<_> = (1..20).map(|i| (i - 1, i)).collect();
        for (n, pairs, width) in
            [(6, &complete, 5), (30, &halves, 4), (20, &path, 1), (7, &vec![], 0)]
        {
            let edges = all(pairs);
            assert_eq!(least_width(n, &edges), width);
            let (_, log2_terms) = order(n, &edges).expect("small graphs are narrow");
            assert!(log2_terms >= width as f64 + 1.0, "{n} units: {log2_terms}");
        }
        // Where all have the same neighbours on the other side, enumeration is as good.
        let rbm = crate::models::Rbm::binary(60, 12).expect("a machine").into_machine();
        let x = State::zeros(&rbm, 1).expect("a state");
        let narrow = |below| Elimination::new(&rbm, &Clamp::none(), &x, 0, below).is_some();
        assert!(narrow(f64::INFINITY) && !narrow(12.0));
    }
}
