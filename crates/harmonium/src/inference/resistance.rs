//! How probable it is that an edge stands in a random spanning tree: its effective resistance.
//!
//! If every edge were a wire of resistance 1, the resistance between the ends of an edge would be the
//! share of spanning trees that hold it (Kirchhoff 1847). With $L$ the Laplacian of the graph,
//! $$R_{uv} = (e_u - e_v)^\top L^{+} (e_u - e_v).$$
//! One node of each connected part is earthed, the rest is factorised as $LDL^\top$ along an order of elimination, and
//! of the inverse only the entries on the pattern of the factor are computed, among which are all edges
//! (Takahashi, Fagan & Chin 1973): narrow graphs cost little however many nodes they have. The resistances of a graph sum
//! to its nodes less its parts (Foster 1949).

use crate::error::Error;
use crate::graph::{Order, Topology};
use crate::machine::check_memory;

/// Multiplications that a factorisation may take: about ten seconds.
const WORK: f64 = 2e10;

/// The effective resistance of each of the edges that `topology` was made of.
///
/// # Errors
///
/// If the graph is so large and dense that it would take too long, or memory ends.
pub fn effective_resistances(
    topology: &Topology,
    edges: &[(usize, usize)],
) -> Result<Vec<f64>, Error> {
    let n = topology.n();
    let pattern = Pattern::new(topology)?;
    let mut factor = Factor::new(&pattern, topology);
    factor.eliminate(n);
    factor.invert();
    let resistance = |&(u, v): &(usize, usize)| {
        let (first, second) =
            if pattern.position[u] < pattern.position[v] { (u, v) } else { (v, u) };
        let place = pattern.seen[first].iter().position(|&w| w == second);
        let between = place.map_or(0.0, |k| factor.rows[first][k]);
        // Rounding may lead out of the range by a little.
        let found = factor.diagonal[u] + factor.diagonal[v] - 2.0 * between;
        found.clamp(f64::MIN_POSITIVE, 1.0)
    };
    Ok(edges.iter().map(resistance).collect())
}

/// Who is seen when it goes.
struct Pattern {
    nodes: Vec<usize>,
    seen: Vec<Vec<usize>>,
    position: Vec<usize>,
}

impl Pattern {
    /// That of a good order; where none is found in time, all that come later.
    fn new(topology: &Topology) -> Result<Self, Error> {
        let n = topology.n();
        // Nodes of one state: the search looks at fill alone, and no table is too large for it.
        let order = Order::narrow(topology, &vec![1; n], 1.0);
        let dense = 8.0 * n as f64 * n as f64;
        let (nodes, seen) = if let Some(order) = order {
            (order.nodes, order.seen)
        } else {
            check_memory(2.0 * dense, || "the resistances of a dense graph".into())?;
            Self::check_work((n as f64).powi(3) / 3.0, n)?;
            ((0..n).collect(), (0..n).map(|u| (u + 1..n).collect()).collect())
        };
        let mut position = vec![0; n];
        nodes.iter().enumerate().for_each(|(k, &u)| position[u] = k);
        let squares = |seen: &Vec<usize>| (seen.len() as f64).powi(2);
        Self::check_work(seen.iter().map(squares).sum(), n)?;
        let bytes: f64 = seen.iter().map(|seen| 16.0 * seen.len() as f64).sum();
        check_memory(bytes, || "the resistances of the graph".into())?;
        Ok(Self { nodes, seen, position })
    }

    fn check_work(work: f64, n: usize) -> Result<(), Error> {
        if work <= WORK {
            return Ok(());
        }
        Err(Error::Topology {
            model: "a bound by spanning trees",
            expected: "a graph whose resistances can be computed",
            found: format!("those of {n} units would take {work:.1e} multiplications"),
        })
    }
}

/// A factorisation, and then the inverse on the same pattern.
struct Factor<'p> {
    pattern: &'p Pattern,
    diagonal: Vec<f64>,
    /// For each node its entries with those it sees when it goes.
    rows: Vec<Vec<f64>>,
    /// For each node where it stands in the row that is being worked on.
    place: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl<'p> Factor<'p> {
    /// The Laplacian.
    fn new(pattern: &'p Pattern, topology: &Topology) -> Self {
        let n = topology.n();
        let mut factor = Self {
            pattern,
            diagonal: (0..n).map(|u| topology.links(u).len() as f64).collect(),
            rows: pattern.seen.iter().map(|seen| vec![0.0; seen.len()]).collect(),
            place: vec![NOWHERE; n],
        };
        for u in 0..n {
            factor.mark(u);
            for v in topology.neighbours(u) {
                if factor.place[v] != NOWHERE {
                    factor.rows[u][factor.place[v]] -= 1.0;
                }
            }
            factor.unmark(u);
        }
        factor
    }

    fn mark(&mut self, u: usize) {
        self.pattern.seen[u].iter().enumerate().for_each(|(k, &v)| self.place[v] = k);
    }

    fn unmark(&mut self, u: usize) {
        self.pattern.seen[u].iter().for_each(|&v| self.place[v] = NOWHERE);
    }

    /// Factorises in place; the last node of each part is earthed.
    fn eliminate(&mut self, n: usize) {
        for k in 0..n {
            let u = self.pattern.nodes[k];
            let seen = &self.pattern.seen[u];
            if seen.is_empty() {
                continue;
            }
            let pivot = self.diagonal[u];
            let row: Vec<f64> = self.rows[u].iter().map(|a| a / pivot).collect();
            self.mark(u);
            for (i, &v) in seen.iter().enumerate() {
                self.diagonal[v] -= row[i] * row[i] * pivot;
                for (entry, &w) in self.rows[v].iter_mut().zip(&self.pattern.seen[v]) {
                    if self.place[w] != NOWHERE {
                        *entry -= row[i] * pivot * row[self.place[w]];
                    }
                }
            }
            self.unmark(u);
            self.rows[u] = row;
        }
    }

    /// Replaces the factor by the inverse, from the last node to the first.
    fn invert(&mut self) {
        for k in (0..self.pattern.nodes.len()).rev() {
            let u = self.pattern.nodes[k];
            let seen = &self.pattern.seen[u];
            if seen.is_empty() {
                self.diagonal[u] = 0.0;
                continue;
            }
            let row = std::mem::take(&mut self.rows[u]);
            let mut inverse = vec![0.0; seen.len()];
            self.mark(u);
            for (i, &v) in seen.iter().enumerate() {
                inverse[i] -= row[i] * self.diagonal[v];
                for (entry, &w) in self.rows[v].iter().zip(&self.pattern.seen[v]) {
                    let j = self.place[w];
                    if j != NOWHERE {
                        inverse[i] -= row[j] * entry;
                        inverse[j] -= row[i] * entry;
                    }
                }
            }
            self.unmark(u);
            let along: f64 = row.iter().zip(&inverse).map(|(l, z)| l * z).sum();
            self.diagonal[u] = 1.0 / self.diagonal[u] - along;
            self.rows[u] = inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resistances(n: usize, edges: &[(usize, usize)]) -> Vec<f64> {
        effective_resistances(&Topology::new(n, edges.iter().copied()), edges)
            .expect("a small graph")
    }

    /// The share of spanning forests of the most edges that hold each edge, by listing them.
    fn shares(n: usize, edges: &[(usize, usize)]) -> Vec<f64> {
        let mut best = (0, 0, vec![0; edges.len()]);
        for set in 0_u32..1 << edges.len() {
            let mut part: Vec<usize> = (0..n).collect();
            let chosen: Vec<usize> = (0..edges.len()).filter(|e| set >> e & 1 == 1).collect();
            let circle = chosen.iter().any(|&e| {
                let (a, b) = (part[edges[e].0], part[edges[e].1]);
                part.iter_mut().filter(|p| **p == a).for_each(|p| *p = b);
                a == b
            });
            if circle || chosen.len() < best.0 {
                continue;
            }
            if chosen.len() > best.0 {
                best = (chosen.len(), 0, vec![0; edges.len()]);
            }
            best.1 += 1;
            chosen.iter().for_each(|&e| best.2[e] += 1);
        }
        best.2.iter().map(|&k| f64::from(k) / f64::from(best.1)).collect()
    }

    #[test]
    fn a_resistance_is_the_share_of_spanning_trees() {
        let complete: Vec<(usize, usize)> =
            (0..5).flat_map(|i| (i + 1..5).map(move |j| (i, j))).collect();
        let apart = vec![(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3), (3, 5)];
        let grid = vec![(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)];
        for (n, edges) in [(5, complete), (8, apart), (6, grid)] {
            for (found, share) in resistances(n, &edges).iter().zip(shares(n, &edges)) {
                assert!((found - share).abs() < 1e-12, "{found}, not {share}");
            }
        }
    }

    #[test]
    fn resistances_sum_to_the_nodes_less_the_parts() {
        let side = 40;
        let at = |r: usize, c: usize| r % side * side + c % side;
        let edges: Vec<(usize, usize)> = (0..side * side)
            .flat_map(|u| {
                let (r, c) = (u / side, u % side);
                [(u, at(r + 1, c)), (u, at(r, c + 1))]
            })
            .collect();
        let found = resistances(side * side, &edges);
        assert!((found.iter().sum::<f64>() - (side * side - 1) as f64).abs() < 1e-8);
        // On a torus all edges are alike.
        assert!(found.iter().all(|r| (r - found[0]).abs() < 1e-10));
        let dense: Vec<(usize, usize)> =
            (0..900).flat_map(|i| (i + 1..900).step_by(2).map(move |j| (i, j))).collect();
        assert!((resistances(900, &dense).iter().sum::<f64>() - 899.0).abs() < 1e-8);
    }
}
