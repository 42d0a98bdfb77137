//! Orders in which the nodes of a graph are summed out, one after the other.
//!
//! Summing out a node leaves a table over the nodes it sees, which then see each other. The largest
//! table decides what an order costs. The greedy orders take the node whose neighbours need the
//! fewest new edges (min-fill: Rose 1972; Kjærulff 1990), or the one that leaves the smallest table.
//! Neighbours are lists and the next node is the first of a heap, so a chain of a million nodes takes
//! a second.

use super::Topology;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Neighbours that may be looked at in search of one order: about a second. Wide graphs end here.
const MOST_LOOKS: u64 = 1 << 28;

/// An order of nodes, and what summing them out in it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The nodes, the first to go first.
    pub nodes: Vec<usize>,
    /// For each node, by its number, those it sees when it goes, in the order in which they go.
    pub seen: Vec<Vec<usize>>,
    /// Binary logarithm of the number of terms.
    pub log2_terms: f64,
}

/// What a greedy order looks at first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Greed {
    /// The number of new edges.
    Fill,
    /// The number of entries of the table.
    Entries,
}

impl Order {
    /// The best of two greedy orders and that in which the nodes stand, which is good for grids
    /// and tori; `None` if all need a table of more than two to the power of `most_log2` entries.
    /// Node `u` has `n_states[u]` states.
    pub fn narrow(graph: &Topology, n_states: &[usize], most_log2: f64) -> Option<Self> {
        let by = |greed| Search::new(graph, n_states, most_log2).greedily(greed);
        let as_they_stand = Search::new(graph, n_states, most_log2).in_order(0..graph.n());
        let orders = [by(Greed::Fill), by(Greed::Entries), as_they_stand].into_iter().flatten();
        orders.min_by(|a, b| a.log2_terms.total_cmp(&b.log2_terms))
    }
}

/// A binary logarithm in units of 2^-20: whole numbers, so that sums can be taken back.
fn fixed(log2: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^30")]
    let whole = (log2.clamp(0.0, 1024.0) * f64::from(1 << 20)).round() as u64;
    whole
}

/// A graph whose nodes go one after the other.
struct Search<'a> {
    /// Whom each node that is left sees, and some that have gone.
    sees: Vec<Vec<usize>>,
    gone: Vec<bool>,
    n_states: &'a [usize],
    /// Binary logarithm of the number of states; of those of all neighbours that are left.
    log2_states: Vec<u64>,
    log2_entries: Vec<u64>,
    most_log2: u64,
    terms: f64,
    nodes: Vec<usize>,
    seen: Vec<Vec<usize>>,
    /// For each node the last set it was marked as a member of.
    mark: Vec<u64>,
    sets: u64,
    looks: u64,
}

/// What the next node is chosen by: one of fill and table, the other, the node.
type Key = (u64, u64, usize);

impl<'a> Search<'a> {
    fn new(graph: &Topology, n_states: &'a [usize], most_log2: f64) -> Self {
        let n = graph.n();
        let list = |u: usize| {
            let mut list: Vec<usize> = graph.neighbours(u).filter(|&v| v != u).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        let sees: Vec<Vec<usize>> = (0..n).map(list).collect();
        let log2_states: Vec<u64> = n_states.iter().map(|&q| fixed((q as f64).log2())).collect();
        let sum = |list: &Vec<usize>| list.iter().map(|&v| log2_states[v]).sum();
        Self {
            log2_entries: sees.iter().map(sum).collect(),
            sees,
            gone: vec![false; n],
            n_states,
            log2_states,
            most_log2: fixed(most_log2),
            terms: 0.0,
            nodes: Vec::with_capacity(n),
            seen: vec![Vec::new(); n],
            mark: vec![0; n],
            sets: 0,
            looks: 0,
        }
    }

    fn in_order(mut self, nodes: impl Iterator<Item = usize>) -> Option<Order> {
        for node in nodes {
            self.eliminate(node)?;
        }
        Some(self.finish())
    }

    fn greedily(mut self, greed: Greed) -> Option<Order> {
        let n = self.sees.len();
        let mut keys: Vec<Option<Key>> = Vec::with_capacity(n);
        let mut heap = BinaryHeap::with_capacity(n);
        for node in 0..n {
            let key = self.key(node, greed);
            heap.extend(key.map(Reverse));
            keys.push(key);
        }
        let mut touched = Vec::new();
        while self.nodes.len() < n {
            let Reverse(key) = heap.pop()?;
            let node = key.2;
            if keys[node] != Some(key) {
                continue;
            }
            keys[node] = None;
            self.eliminate(node)?;
            self.touched_into(node, &mut touched);
            for &u in &touched {
                let key = self.key(u, greed);
                if keys[u] != key {
                    heap.extend(key.map(Reverse));
                    keys[u] = key;
                }
            }
        }
        Some(self.finish())
    }

    fn finish(mut self) -> Order {
        let mut position = vec![0; self.nodes.len()];
        self.nodes.iter().enumerate().for_each(|(k, &u)| position[u] = k);
        self.seen.iter_mut().for_each(|seen| seen.sort_unstable_by_key(|&v| position[v]));
        Order { nodes: self.nodes, seen: self.seen, log2_terms: self.terms.max(1.0).log2() }
    }

    /// The key of a node; `None` while its table would be too large.
    fn key(&mut self, node: usize, greed: Greed) -> Option<Key> {
        let entries = self.log2_entries[node];
        if entries > self.most_log2 {
            return None;
        }
        let fill = self.fill(node);
        Some(match greed {
            Greed::Fill => (fill, entries, node),
            Greed::Entries => (entries, fill, node),
        })
    }

    /// Forgets the neighbours of a node that have gone.
    fn tidy(&mut self, node: usize) {
        self.looks += self.sees[node].len() as u64;
        self.sees[node].retain(|&v| !self.gone[v]);
    }

    /// Twice the number of edges that would join the neighbours of a node.
    fn fill(&mut self, node: usize) -> u64 {
        self.tidy(node);
        let near = &self.sees[node];
        if near.len() < 2 {
            return 0;
        }
        self.sets += 1;
        near.iter().for_each(|&v| self.mark[v] = self.sets);
        let mut joined = 0;
        for &v in near {
            self.looks += self.sees[v].len() as u64;
            joined += self.sees[v].iter().filter(|&&w| self.mark[w] == self.sets).count();
        }
        (near.len() * (near.len() - 1) - joined) as u64
    }

    /// The nodes whose keys a node that has gone may have changed: those it saw, and what they see
    /// if new edges may have joined them.
    fn touched_into(&mut self, node: usize, out: &mut Vec<usize>) {
        out.clear();
        out.extend_from_slice(&self.seen[node]);
        if out.len() > 1 {
            for &v in &self.seen[node] {
                self.looks += self.sees[v].len() as u64;
                out.extend(self.sees[v].iter().filter(|&&w| !self.gone[w]));
            }
            out.sort_unstable();
            out.dedup();
        }
    }

    /// Joins the neighbours of a node with each other and takes it out.
    fn eliminate(&mut self, node: usize) -> Option<()> {
        if self.log2_entries[node] > self.most_log2 || self.looks > MOST_LOOKS {
            return None;
        }
        self.tidy(node);
        self.gone[node] = true;
        let near = std::mem::take(&mut self.sees[node]);
        self.terms += near.iter().map(|&v| self.n_states[v] as f64).product::<f64>()
            * self.n_states[node] as f64;
        for &v in &near {
            self.log2_entries[v] -= self.log2_states[node];
            if near.len() == 1 {
                break;
            }
            self.sets += 1;
            self.mark[v] = self.sets;
            let list = &mut self.sees[v];
            self.looks += (list.len() + near.len()) as u64;
            list.iter().for_each(|&w| self.mark[w] = self.sets);
            for &w in near.iter().filter(|&&w| self.mark[w] != self.sets) {
                list.push(w);
                self.log2_entries[v] += self.log2_states[w];
            }
        }
        self.seen[node] = near;
        self.nodes.push(node);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: usize, height: usize) -> Topology {
        let right = (0..width * height).filter(move |u| u % width + 1 < width);
        let down = 0..width * (height - 1);
        Topology::new(
            width * height,
            right.map(|u| (u, u + 1)).chain(down.map(move |u| (u, u + width))),
        )
    }

    #[test]
    fn an_order_takes_every_node_once() {
        let graph = grid(4, 5);
        let order = Order::narrow(&graph, &[2; 20], 22.0).unwrap();
        let mut nodes = order.nodes.clone();
        nodes.sort_unstable();
        assert!(nodes.into_iter().eq(0..20));
    }

    #[test]
    fn no_order_is_narrower_than_the_least_width() {
        let complete: Vec<_> = (0..6).flat_map(|i| (0..i).map(move |j| (j, i))).collect();
        let halves: Vec<_> = (0..4).flat_map(|i| (4..30).map(move |j| (i, j))).collect();
        let path: Vec<_> = (1..20).map(|i| (i - 1, i)).collect();
        for (n, pairs, width) in
            [(6, &complete, 5), (30, &halves, 4), (20, &path, 1), (7, &vec![], 0)]
        {
            let graph = Topology::new(n, pairs.iter().copied());
            assert_eq!(graph.least_width(), width);
            let order = Order::narrow(&graph, &vec![2; n], 22.0).expect("small graphs are narrow");
            assert!(order.log2_terms >= width as f64 + 1.0, "{n} nodes: {}", order.log2_terms);
        }
    }

    #[test]
    fn a_tree_costs_pairs_and_a_grid_its_shorter_side() {
        let chain = Topology::new(9, (0..8).map(|i| (i, i + 1)));
        let order = Order::narrow(&chain, &[3; 9], 22.0).unwrap();
        assert!((order.log2_terms - (8.0 * 9.0 + 3.0_f64).log2()).abs() < 1e-12);
        let wide = Order::narrow(&grid(3, 12), &[2; 36], 22.0).unwrap();
        assert!(wide.log2_terms <= (36.0 * 2.0_f64.powi(4)).log2());
        // A table over three of four nodes with five states each has 125 entries.
        let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
        let clique = Topology::new(4, pairs);
        assert!(Order::narrow(&clique, &[5; 4], 125.0_f64.log2() + 1e-9).is_some());
        assert_eq!(Order::narrow(&clique, &[5; 4], 6.9), None);
    }
}
